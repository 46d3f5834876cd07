//! What spoils the numbers, as far as counters and results tell. Each warning has one sentence of
//! cause and one of remedy.

use weir_schema::{ClockSource, Job, JobResult, RunResult, Stage, State, Warning};
use weir_stats::NoInterval;
use weir_sys::Tree;
use weir_sys::cpu_time::{CpuTimes, cpu_times};
use weir_units::Nanos;

use crate::execute::running::Worker;
use crate::runner::Prepared;

/// Counters of the machine at the start of the run.
#[derive(Debug)]
pub(super) struct MachineBefore {
    cpus: Vec<(u32, CpuTimes)>,
    throttling: weir_sys::cgroup::Throttling,
}

impl MachineBefore {
    pub(super) fn read(tree: &Tree) -> Self {
        Self {
            cpus: cpu_times(tree),
            throttling: weir_sys::cgroup::throttling(tree),
        }
    }
}

/// What is known of a job's targets.
pub(super) fn of_job_targets(job: &str, prepared: &dyn Prepared) -> Vec<Warning> {
    let all = prepared.warnings().into_iter();
    all.map(|warning| Warning {
        job: Some(job.to_owned()),
        ..warning
    })
    .collect()
}

/// What is missing in traces and logs.
pub(super) fn of_logs(job: Option<&str>, causes: &[String]) -> Vec<Warning> {
    let remedy = "Write it to a faster or larger place, or log windows instead of operations.";
    causes
        .iter()
        .map(|cause| Warning::new("log", job, cause.clone(), remedy))
        .collect()
}

/// Whether a job came to its end before its ramp did, so that nothing was forgotten.
pub(super) fn of_ramp(job: &Job, workers: &[Worker]) -> Option<Warning> {
    let ramp = job.load().bounds.ramp_ns;
    let in_ramp = |w: &Worker| w.live.started.get() > 0 && w.live.resets() == 0;
    (ramp > Nanos::ZERO && workers.iter().any(in_ramp)).then(|| {
        Warning::new(
            "ramp",
            Some(&job.name),
            format!("It ended within its ramp of {ramp}: the figures are those of the ramp."),
            "Use a shorter ramp, or let it run longer.",
        )
    })
}

/// What the prepared jobs of a run say of themselves.
#[derive(Debug, Default)]
pub(super) struct PreparedJobs {
    /// Every job was prepared, and moves its data past all caches.
    pub(super) all_bypass_caches: bool,
    /// Numbers of the jobs whose workers use a CPU all the time.
    pub(super) never_sleep: Vec<usize>,
}

/// Everything else.
pub(super) fn of_run(
    result: &RunResult,
    before: &MachineBefore,
    seen: &PreparedJobs,
) -> Vec<Warning> {
    let mut found = Vec::new();
    found.extend(clock(result));
    found.extend(machine(result, before));
    found.extend(device_shared(result, seen.all_bypass_caches));
    for (index, (_, job)) in result.plan.jobs().enumerate() {
        if seen.never_sleep.contains(&index) {
            found.extend(oversubscribed(result, job));
        }
    }
    for (job, (_, planned)) in result.jobs().zip(result.plan.jobs()) {
        found.extend(of_job(job));
        found.extend(not_steady(job, planned.load().bounds.ramp_ns));
        found.extend(instrument_cost(result, job));
    }
    found
}

fn clock(result: &RunResult) -> Option<Warning> {
    let clock = &result.clock;
    if clock.source == ClockSource::Monotonic {
        let remedy = "Boot with a trusted TSC (clocksource=tsc) for cheaper and finer clock reads.";
        let cause = format!("The kernel's clock is used: {}.", clock.reason);
        return Some(Warning::new("clock-fallback", None, cause, remedy));
    }
    let (nanos, ppm) = (clock.residual_ns?, clock.residual_ppm?);
    (nanos > 1_000.0 && ppm > 10.0).then(|| {
        let cause = format!("The clock strayed by {nanos:.0} ns ({ppm:.1} ppm) between anchors.");
        Warning::new(
            "clock-residual",
            None,
            cause,
            "Repeat the run; look for a virtual machine that was moved or paused.",
        )
    })
}

fn machine(result: &RunResult, before: &MachineBefore) -> Vec<Warning> {
    let tree = Tree::real();
    let mut found = Vec::new();
    let after = cpu_times(&tree);
    let (mut steal, mut total) = (0, 0);
    for ((_, earlier), (_, later)) in before.cpus.iter().zip(&after) {
        let spent = later.since(earlier);
        steal += spent.steal.0;
        total += spent.total().0;
    }
    if total > 0 && steal * 100 > total {
        let share = steal as f64 * 100.0 / total as f64;
        let cause = format!("The hypervisor took {share:.1} % of the CPU time.");
        found.push(Warning::new(
            "cpu-steal",
            None,
            cause,
            "Run on a machine of its own, or repeat and compare.",
        ));
    }
    let throttled = weir_sys::cgroup::throttling(&tree);
    if throttled.cpu_periods > before.throttling.cpu_periods {
        let cause = "The control group's CPU limit throttled the run.".to_owned();
        found.push(Warning::new(
            "cgroup-limit",
            None,
            cause,
            "Raise cpu.max of the group.",
        ));
    }
    if let Some(governor) = result
        .host
        .governor
        .as_deref()
        .filter(|g| *g != "performance")
    {
        let cause = format!("The CPU frequency governor is {governor}.");
        found.push(Warning::new(
            "cpu-frequency",
            None,
            cause,
            "Set it to performance.",
        ));
    }
    found
}

fn of_job(job: &JobResult) -> Vec<Warning> {
    let mut found = Vec::new();
    let name = Some(job.name.as_str());
    found.extend(preempted(job));
    found.extend(cpu_shared(job));
    found.extend(generator_limited(job));
    for confidence in job.confidence() {
        let kind = &confidence.kind;
        if confidence.ops_per_s.absent == Some(NoInterval::ShortRun) {
            found.push(Warning::new(
                "short-run",
                name,
                format!("The {kind} run was too short for an interval (fewer than 10 stretches)."),
                "Run for at least 0.2 s, better 30 s.",
            ));
        }
        if confidence.slow {
            found.push(Warning::new(
                "slow",
                name,
                format!("The {kind} rate changes slowly: its ± holds for this run only."),
                "Use --repeat to see how runs differ.",
            ));
        }
        if confidence.percentiles.iter().any(|p| p.few_samples) {
            found.push(Warning::new(
                "few-samples",
                name,
                format!(
                    "Fewer than 10 {kind} operations lie beyond a percentile that is marked ~."
                ),
                "Run longer, or ask for lower percentiles.",
            ));
        }
    }
    found
}

/// The first tenth against the remainder, on the series that is in the result.
fn not_steady(job: &JobResult, ramp: Nanos) -> Vec<Warning> {
    let mut found = Vec::new();
    for kind in job.confidence().iter().map(|c| &c.kind) {
        let mut whole: Option<weir_stats::Series> = None;
        for series in job
            .workers()
            .iter()
            .filter_map(|w| w.kind(kind))
            .map(|k| &k.series)
        {
            match &mut whole {
                None => whole = Some(series.clone()),
                // All series of a job have its interval.
                Some(sum) => drop(sum.add(series)),
            }
        }
        let Some(series) = whole else { continue };
        let full = series.len() - usize::from(series.ends_partial());
        let rates: Vec<f64> = series
            .points()
            .take(full)
            .filter_map(|p| p.iops())
            .map(|r| r.0)
            .collect();
        let Ok(test) = weir_stats::warmup::test(&rates, series.interval()) else {
            continue;
        };
        if test.is_steady() {
            continue;
        }
        let remedy = match test.enough_ramp {
            Some(more) => {
                let enough = ramp.saturating_add(more).as_secs_f64();
                format!("Use a ramp of {enough:.1} s.")
            }
            None => "Run longer: it had not settled by half time.".to_owned(),
        };
        let change = (test.first_tenth / test.remainder - 1.0) * 100.0;
        let cause = format!("The first tenth of the {kind} run was {change:+.1} % off the rest.");
        found.push(Warning::new("not-steady", Some(&job.name), cause, &remedy));
    }
    found
}

fn preempted(job: &JobResult) -> Option<Warning> {
    let worst = job.workers().iter().filter_map(|w| {
        let seconds = w.span?.length().0 as f64 / 1e9;
        // A fraction of a second says little about a rate per second.
        (seconds >= 0.5).then(|| (w.cpu.involuntary_switches as f64 / seconds, w.clone))
    });
    let (rate, clone) = worst.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (rate > 10.0).then(|| {
        let cause = format!("{rate:.0} involuntary switches per second on worker {clone}.");
        Warning::new(
            "preempted",
            Some(&job.name),
            cause,
            "Pin the worker to a CPU of its own or stop the other load.",
        )
    })
}

fn generator_limited(job: &JobResult) -> Option<Warning> {
    let late: u64 = job.workers().iter().filter_map(|w| w.late_issues).sum();
    let all: u64 = job
        .workers()
        .iter()
        .flat_map(|w| &w.kinds)
        .map(|k| k.issued)
        .sum();
    (late * 100 > all).then(|| {
        let cause = format!("{late} of {all} operations were issued late although a slot was free: the tool was measured, not the target.");
        Warning::new("generator-limited", Some(&job.name), cause, "Lower the rate, use more workers, or pin them to free CPUs.")
    })
}

fn instrument_cost(result: &RunResult, job: &JobResult) -> Option<Warning> {
    let cost = result.instrument.ns_per_op?;
    let is_null = result
        .plan
        .jobs()
        .any(|(_, j)| j.name == job.name && j.engine.name == "null");
    if is_null || job.state == State::NotStarted {
        return None;
    }
    let kinds = || job.workers().iter().flat_map(|w| &w.kinds);
    let medians = kinds()
        .filter_map(|k| k.stage(Stage::Lat))
        .filter_map(|h| h.percentile(50.0));
    let median = medians.min()?;
    (cost > 0.05 * median as f64).then(|| {
        let share = cost / median.max(1) as f64 * 100.0;
        let cause = format!("The loop's own {cost:.0} ns are {share:.0} % of the median latency.");
        Warning::new(
            "instrument-cost",
            Some(&job.name),
            cause,
            "Compare with the null engine, or measure without latencies.",
        )
    })
}

fn cpu_shared(job: &JobResult) -> Option<Warning> {
    let shares = job.workers().iter().filter_map(|w| {
        let span = w.span?.length().0;
        let waited = w.cpu.run_delay_ns?.0;
        (span >= 500_000_000).then(|| (waited as f64 / span as f64 * 100.0, w.clone))
    });
    let (share, clone) = shares.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (share > 5.0).then(|| {
        let cause =
            format!("Worker {clone} waited {share:.0} % of the time for a CPU that others had.");
        let remedy = "Stop the other load, or use fewer workers than CPUs.";
        Warning::new("cpu-shared", Some(&job.name), cause, remedy)
    })
}

/// Direct I/O reaches the device one to one, so that what its counters show beyond it is
/// somebody else's.
fn device_shared(result: &RunResult, direct: bool) -> Option<Warning> {
    if result.disks.is_empty() || !direct {
        return None;
    }
    let ours: u64 = result
        .groups
        .iter()
        .flat_map(|g| &g.rates)
        .map(|r| r.bytes.0)
        .sum();
    let seen: u64 = result
        .disks
        .iter()
        .map(|d| d.read_bytes.0 + d.write_bytes.0)
        .sum();
    let excess = seen.saturating_sub(ours);
    (ours > 0
        && excess * 50 > ours
        && result
            .plan
            .jobs()
            .all(|(_, j)| j.load().bounds.ramp_ns.0 == 0))
    .then(|| {
        let share = excess as f64 / ours as f64 * 100.0;
        let cause = format!("The device moved {share:.0} % more bytes than this run asked for.");
        Warning::new(
            "device-shared",
            None,
            cause,
            "Stop the other load on the device.",
        )
    })
}

/// Threads that never sleep need a CPU each.
fn oversubscribed(result: &RunResult, job: &Job) -> Option<Warning> {
    let cpus = result.host.cpus?;
    (job.clones > cpus).then(|| {
        let cause = format!("{} workers that never sleep share {cpus} CPUs.", job.clones);
        Warning::new(
            "oversubscribed",
            Some(&job.name),
            cause,
            "Use no more workers than CPUs.",
        )
    })
}
