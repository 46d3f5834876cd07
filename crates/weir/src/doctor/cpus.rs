//! CPUs: their frequencies, idle states, clock, and who else uses them.

use weir_schema::thresholds::{
    GOVERNOR, MOST_CLOCK_NS, MOST_CLOCK_PPM, MOST_IDLE_EXIT_US, MOST_RUNNABLE, MOST_SIBLING_BUSY,
    MOST_STEAL,
};
use weir_sys::clock::TickSource;
use weir_sys::cpu_time::CpuTimes;
use weir_sys::host::DetectedHost;

use super::Machine;
use super::finding::Finding;

const CPUS: &str = "sys/devices/system/cpu";
/// Share of steal from which on figures are wrong, not only disturbed.
const RUINOUS_STEAL: f64 = 0.1;

pub(super) fn governor(machine: &Machine) -> Vec<Finding> {
    let facts = DetectedHost::read(&machine.tree, &machine.topology);
    if facts.governors.is_empty() {
        return vec![Finding::absent("the kernel scales no frequencies here")];
    }
    let mut hints: Vec<String> = Vec::new();
    for cpu in &machine.topology.cpus {
        let file = format!("{CPUS}/cpu{}/cpufreq/energy_performance_preference", cpu.id);
        hints.extend(machine.tree.word(file).filter(|hint| !hints.contains(hint)));
    }
    let mut found = facts.governors.join(", ");
    if !hints.is_empty() {
        found = format!("{found}, preference {}", hints.join(", "));
    }
    let is_good = |word: &String| word == GOVERNOR;
    let all_good = facts.governors.iter().all(is_good) && hints.iter().all(is_good);
    vec![if all_good {
        Finding::ok(found)
    } else {
        let why = "CPUs change their frequency with the load";
        Finding::warn(found, why, "cpupower frequency-set -g performance")
    }]
}

pub(super) fn idle_states(machine: &Machine) -> Vec<Finding> {
    let top = format!("{CPUS}/cpu0/cpuidle");
    let mut deepest: Option<(u64, String)> = None;
    for state in machine.tree.numbered(&top, "state") {
        let word = |name: &str| machine.tree.word(format!("{top}/state{state}/{name}"));
        let exit: Option<u64> = word("latency").and_then(|us| us.parse().ok());
        let is_on = word("disable").is_none_or(|text| text == "0");
        if let Some(exit) = exit.filter(|_| is_on) {
            let name = word("name").unwrap_or_default();
            if deepest.as_ref().is_none_or(|(most, _)| exit > *most) {
                deepest = Some((exit, name));
            }
        }
    }
    let Some((exit, name)) = deepest else {
        return vec![Finding::absent("the kernel lists no idle states")];
    };
    let found = format!("deepest {name}, {exit} µs to leave it");
    vec![if exit > MOST_IDLE_EXIT_US {
        let why = "an idle CPU answers late";
        let remedy = format!("cpupower idle-set -D {MOST_IDLE_EXIT_US}");
        Finding::warn(found, why, remedy)
    } else {
        Finding::ok(found)
    }]
}

pub(super) fn clock(machine: &Machine) -> Vec<Finding> {
    let facts = &machine.watched.clock;
    let found = format!(
        "{}, {:.1} ns a read",
        facts.source.name(),
        facts.read_cost_ns
    );
    if facts.source == TickSource::Monotonic {
        let remedy = "boot with a trusted counter (clocksource=tsc)";
        let finding = Finding::warn(found, "", remedy);
        return vec![Finding {
            why: facts.reason.clone(),
            ..finding
        }];
    }
    let Some(residual) = machine.watched.residual else {
        return vec![Finding::ok(found)];
    };
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a second")]
    let nanos = residual.nanos.0 as f64;
    let found = format!("{found}, strays by {nanos:.0} ns, {:.2} ppm", residual.ppm);
    vec![if nanos > MOST_CLOCK_NS || residual.ppm > MOST_CLOCK_PPM {
        let why = "the counter and the kernel's clock disagree";
        let remedy = "look for a virtual machine that was moved or paused";
        Finding::warn(found, why, remedy)
    } else {
        Finding::ok(found)
    }]
}

/// Share of a CPU's time that a part of it makes.
fn share(times: &CpuTimes, part: impl Fn(&CpuTimes) -> weir_units::Nanos) -> f64 {
    let total = times.total().as_secs_f64();
    if total > 0.0 {
        part(times).as_secs_f64() / total
    } else {
        0.0
    }
}

/// Busy for itself, not lent to others.
fn busy(times: &CpuTimes) -> f64 {
    1.0 - share(times, |t| t.idle) - share(times, |t| t.io_wait) - share(times, |t| t.steal)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

pub(super) fn steal(machine: &Machine) -> Vec<Finding> {
    let cpus = machine.watched.cpus.iter();
    let shares = cpus.map(|(cpu, times)| (share(times, |t| t.steal), cpu));
    let Some((worst, cpu)) = shares.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return vec![Finding::absent("the kernel counts no time of CPUs")];
    };
    if worst <= MOST_STEAL {
        return vec![Finding::ok(format!("{} at most", percent(worst)))];
    }
    let found = format!("{} of CPU {cpu}", percent(worst));
    let why = "the hypervisor gives its time to others";
    let finding = Finding::warn(found, why, "measure on a machine of its own");
    vec![if worst > RUINOUS_STEAL {
        finding.fail()
    } else {
        finding
    }]
}

pub(super) fn load(machine: &Machine) -> Vec<Finding> {
    let Some(runnable) = machine.watched.runnable else {
        return vec![Finding::absent(
            "the kernel does not say what is ready to run",
        )];
    };
    let count = machine.topology.cpus.len();
    let found = format!("{runnable:.1} tasks ready to run on {count} CPUs");
    #[expect(clippy::cast_precision_loss, reason = "CPUs are few")]
    let most = MOST_RUNNABLE * count as f64;
    if runnable <= most {
        return vec![Finding::ok(found)];
    }
    let busiest = machine.watched.busiest.iter();
    let busiest = busiest.map(|(name, share)| format!("{name} {:.0} %", share * 100.0));
    let busiest: Vec<String> = busiest.collect();
    let found = match busiest.as_slice() {
        [] => found,
        _ => format!("{found}: {}", busiest.join(", ")),
    };
    let why = "workers would share CPUs with them";
    vec![Finding::warn(found, why, "stop the other load")]
}

pub(super) fn siblings(machine: &Machine) -> Vec<Finding> {
    let shared = machine
        .topology
        .cpus
        .iter()
        .filter(|cpu| cpu.siblings.len() > 1);
    let shared: Vec<u32> = shared.map(|cpu| cpu.id).collect();
    if shared.is_empty() {
        return vec![Finding::absent("no core has two CPUs")];
    }
    let cpus = machine.watched.cpus.iter();
    let of_shared = cpus.filter(|(cpu, _)| shared.contains(cpu));
    let busiest = of_shared.map(|(cpu, times)| (busy(times), cpu));
    let busiest = busiest.max_by(|a, b| a.0.total_cmp(&b.0));
    vec![match busiest {
        Some((share, cpu)) if share > MOST_SIBLING_BUSY => Finding::warn(
            format!(
                "CPU {cpu} is busy for {}, and shares its core",
                percent(share)
            ),
            "the other CPU of the core is slower meanwhile",
            "pin workers to other cores",
        ),
        _ => Finding::ok("cores have two CPUs, and none is busy"),
    }]
}
