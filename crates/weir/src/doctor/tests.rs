//! Checks on machines that are made up.

use std::fs;
use std::path::{Path, PathBuf};

use weir_sys::clock::Clock;
use weir_sys::cpu_time::CpuTimes;
use weir_units::Nanos;

use super::*;
use crate::runners::FabricSurvey;

/// A tree of kernel files that vanishes.
struct Fake(PathBuf);

impl Fake {
    fn with(name: &str, files: &[(&str, &str)]) -> Self {
        let fake =
            Self(std::env::temp_dir().join(format!("weir-doctor-{name}-{}", std::process::id())));
        for (file, text) in files {
            let path = fake.0.join(file);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            fs::write(path, text).unwrap();
        }
        fake
    }

    fn machine(&self) -> Machine {
        let tree = Tree::at(&self.0);
        let (_, clock) = Clock::detect();
        Machine {
            topology: Topology::read(&tree),
            watched: Watched {
                cpus: Vec::new(),
                runnable: None,
                busiest: Vec::new(),
                clock,
                residual: None,
            },
            tree,
            targets: Vec::new(),
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CPU: &str = "sys/devices/system/cpu";

fn times(idle: u64, steal: u64) -> CpuTimes {
    CpuTimes {
        user: Nanos(100 - idle - steal),
        idle: Nanos(idle),
        steal: Nanos(steal),
        ..CpuTimes::default()
    }
}

fn one(findings: Vec<Finding>) -> Finding {
    let [finding] = <[Finding; 1]>::try_from(findings).unwrap();
    finding
}

#[test]
fn the_provider_of_fabrics_that_can_hang_is_warned_of() {
    let survey = |providers: &[&str]| FabricSurvey {
        file: "libfabric.so.1".to_owned(),
        version: "1.17".to_owned(),
        providers: providers.iter().map(|name| (*name).to_owned()).collect(),
    };
    let good = one(kernel::of_survey(&survey(&["tcp;ofi_rxm"])));
    assert_eq!(good, Finding::ok("libfabric.so.1 1.17: tcp;ofi_rxm"));
    let found = kernel::of_survey(&survey(&["tcp", "shm"]));
    let [there, shm] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((there.status, shm.status), (Status::Ok, Status::Warn));
    assert!(shm.why.contains("killed"), "{shm:?}");
}

#[test]
fn a_machine_that_says_nothing_has_lines_without_values() {
    let fake = Fake::with("bare", &[("proc/none", "")]);
    let machine = fake.machine();
    let silent = [
        "governor", "cstates", "steal", "load", "smt", "numa", "pcie", "perf", "kmod",
    ];
    for (id, check) in CHECKS.iter().filter(|(id, _)| silent.contains(id)) {
        let found = one(check(&machine));
        assert_eq!(found.status, Status::Absent, "{id}: {found:?}");
        assert!(!found.found.is_empty());
    }
}

#[test]
fn frequencies_and_idle_states_of_a_laptop_are_warned_of() {
    let fake = Fake::with(
        "laptop",
        &[
            (&format!("{CPU}/online"), "0-1"),
            (
                &format!("{CPU}/cpufreq/policy0/scaling_governor"),
                "powersave",
            ),
            (&format!("{CPU}/cpu0/cpuidle/state0/latency"), "2"),
            (&format!("{CPU}/cpu0/cpuidle/state1/latency"), "100"),
            (&format!("{CPU}/cpu0/cpuidle/state1/name"), "C6"),
            ("proc/sys/kernel/perf_event_paranoid", "4"),
        ],
    );
    let machine = fake.machine();
    assert_eq!(one(cpus::governor(&machine)).status, Status::Warn);
    let idle = one(cpus::idle_states(&machine));
    assert_eq!(
        (idle.status, &*idle.found),
        (Status::Warn, "deepest C6, 100 µs to leave it")
    );
    assert_eq!(one(kernel::counters(&machine)).status, Status::Warn);
    fs::write(
        fake.0.join(format!("{CPU}/cpu0/cpuidle/state1/disable")),
        "1",
    )
    .unwrap();
    assert_eq!(one(cpus::idle_states(&machine)).status, Status::Ok);
}

#[test]
fn what_others_take_is_weighed() {
    let fake = Fake::with("busy", &[(&format!("{CPU}/online"), "0-3")]);
    let mut machine = fake.machine();
    let mut steal = |share: u64| {
        machine.watched.cpus = vec![(0, times(100, 0)), (1, times(0, share))];
        one(cpus::steal(&machine)).status
    };
    assert_eq!(
        [steal(1), steal(2), steal(11)],
        [Status::Ok, Status::Warn, Status::Fail]
    );
    machine.watched.runnable = Some(0.4);
    assert_eq!(one(cpus::load(&machine)).status, Status::Ok);
    machine.watched.runnable = Some(0.5);
    machine.watched.busiest = vec![("make".to_owned(), 0.5)];
    let load = one(cpus::load(&machine));
    assert_eq!(load.status, Status::Warn);
    assert!(load.found.ends_with("on 4 CPUs: make 50 %"), "{load:?}");
}

#[test]
fn a_cores_other_cpu_must_be_idle() {
    let siblings = |cpu: u32| format!("{CPU}/cpu{cpu}/topology/thread_siblings_list");
    let fake = Fake::with(
        "smt",
        &[
            (&format!("{CPU}/online"), "0-1"),
            (&siblings(0), "0-1"),
            (&siblings(1), "0-1"),
        ],
    );
    let mut machine = fake.machine();
    machine.watched.cpus = vec![(0, times(100, 0)), (1, times(97, 0))];
    assert_eq!(one(cpus::siblings(&machine)).status, Status::Ok);
    machine.watched.cpus[1].1 = times(90, 0);
    let found = one(cpus::siblings(&machine));
    assert_eq!(found.status, Status::Warn);
    assert!(
        found.found.contains("CPU 1 is busy for 10.0 %"),
        "{found:?}"
    );
}

#[test]
fn a_disk_is_looked_at_with_its_queue() {
    let disk = "sys/dev/block/253:0";
    let queue = |file: &str| format!("{disk}/queue/{file}");
    let fake = Fake::with(
        "disk",
        &[
            ("sys/class/block/vda/dev", "253:0"),
            ("sys/class/block/loop0/dev", "7:0"),
            (&queue("scheduler"), "none [mq-deadline]"),
            (&queue("nr_requests"), "16"),
        ],
    );
    let machine = fake.machine();
    let found = one(devices::queues(&machine));
    assert_eq!(found.status, Status::Warn);
    assert!(
        found.found.contains("scheduler mq-deadline, 16 requests"),
        "{found:?}"
    );
    fs::write(fake.0.join(queue("scheduler")), "[none] mq-deadline").unwrap();
    assert!(
        one(devices::queues(&machine))
            .remedy
            .contains("nr_requests")
    );
    fs::write(fake.0.join(queue("nr_requests")), "256").unwrap();
    assert_eq!(one(devices::queues(&machine)).status, Status::Ok);
}

#[test]
fn queues_of_an_interface_are_counted() {
    let net = |file: &str| format!("sys/class/net/eth0/{file}");
    let fake = Fake::with(
        "interface",
        &[
            (&net("device/vendor"), "0x8086"),
            (&net("operstate"), "up"),
            (&net("mtu"), "1500"),
            (&net("queues/rx-0/rps_cpus"), "0"),
        ],
    );
    let found = one(devices::networks(&fake.machine())).found;
    assert!(found.starts_with("eth0: 1 receive queue, "), "{found}");
    let second = fake.0.join(net("queues/rx-1"));
    fs::create_dir_all(second).unwrap();
    let found = one(devices::networks(&fake.machine())).found;
    assert!(found.starts_with("eth0: 2 receive queues, "), "{found}");
}

#[test]
fn a_control_group_that_grants_less_than_a_cpu_fails() {
    let fake = Fake::with(
        "group",
        &[
            ("proc/self/cgroup", "0::/"),
            (
                "proc/self/mountinfo",
                "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw",
            ),
            ("sys/fs/cgroup/cpu.max", "50000 100000"),
        ],
    );
    let found = one(kernel::control_group(&fake.machine()));
    assert_eq!(found.status, Status::Fail, "{found:?}");
    fs::write(fake.0.join("sys/fs/cgroup/cpu.max"), "150000 100000").unwrap();
    assert_eq!(
        one(kernel::control_group(&fake.machine())).status,
        Status::Warn
    );
    fs::write(fake.0.join("sys/fs/cgroup/cpu.max"), "max 100000").unwrap();
    assert_eq!(
        one(kernel::control_group(&fake.machine())).status,
        Status::Ok
    );
}

#[test]
fn lines_and_documents_say_the_same() {
    let findings = [
        ("load", Finding::ok("0.0 tasks")),
        (
            "steal",
            Finding::warn("9 %", "others have it", "move").fail(),
        ),
    ];
    let text = finding::text(&findings);
    assert_eq!(
        text,
        "ok    load           0.0 tasks\nFAIL  steal          9 % (others have it; move)\n"
    );
    let document: serde_json::Value = serde_json::from_str(&finding::json(&findings)).unwrap();
    assert_eq!(document["findings"][1]["status"], "FAIL");
    assert_eq!(document["findings"][0]["why"], serde_json::Value::Null);
}
