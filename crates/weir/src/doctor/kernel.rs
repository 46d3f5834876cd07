//! Limits of the kernel, and the libraries and modules that are installed.

use weir_schema::thresholds::{LEAST_AIO, LEAST_FILES, LEAST_LOCKABLE_BYTES, MOST_PARANOID};
use weir_sys::Availability;
use weir_sys::cgroup;
use weir_sys::limits::Limits;
use weir_sys::memory::MemoryFacts;

use super::Machine;
use super::finding::Finding;
use crate::runners::{self, FabricSurvey};

pub(super) fn limits(machine: &Machine) -> Vec<Finding> {
    let limits = Limits::read(&machine.tree);
    let memory = match limits.locked_memory {
        None => Finding::ok("memory may be locked without limit"),
        Some(bytes) if bytes.0 >= LEAST_LOCKABLE_BYTES => {
            Finding::ok(format!("{bytes} may be locked"))
        }
        Some(bytes) => Finding::warn(
            format!("{bytes} may be locked"),
            "buffers of io_uring cannot be registered",
            format!("ulimit -l {}", LEAST_LOCKABLE_BYTES >> 10),
        ),
    };
    let files = match limits.open_files {
        Some(files) if files < LEAST_FILES => Finding::warn(
            format!("{files} files may be open"),
            "jobs of many files fail",
            format!("ulimit -n {LEAST_FILES}"),
        ),
        Some(files) => Finding::ok(format!("{files} files may be open")),
        None => Finding::ok("files may be open without limit"),
    };
    let requests = match (limits.aio_max, limits.aio_used) {
        (Some(most), Some(used)) if most.saturating_sub(used) < LEAST_AIO => Finding::warn(
            format!(
                "{} of {most} libaio requests are left",
                most.saturating_sub(used)
            ),
            "libaio fails at depth",
            "sysctl fs.aio-max-nr=1048576",
        ),
        (Some(most), Some(used)) => {
            let left = most.saturating_sub(used);
            Finding::ok(format!("{left} of {most} libaio requests are left"))
        }
        _ => Finding::absent("the kernel has no libaio"),
    };
    vec![memory, files, requests]
}

pub(super) fn io_uring(_: &Machine) -> Vec<Finding> {
    vec![match runners::availability("io_uring") {
        Availability::Ready => Finding::ok("io_uring can be used"),
        Availability::Missing { what, remedy } => {
            let why = "the cheapest way to a device is closed";
            Finding::warn(format!("missing: {what}"), why, remedy)
        }
    }]
}

pub(super) fn huge_pages(machine: &Machine) -> Vec<Finding> {
    let pools = MemoryFacts::read(&machine.tree).huge_pages;
    let pools = pools.iter().filter(|pool| pool.total > 0);
    let found: Vec<Finding> = pools
        .map(|pool| {
            let found = format!("{} of {} free, of {}", pool.free, pool.total, pool.page);
            if pool.free > 0 {
                return Finding::ok(found);
            }
            let why = "jobs that ask for huge pages fail";
            Finding::warn(found, why, "raise /proc/sys/vm/nr_hugepages")
        })
        .collect();
    if found.is_empty() {
        return vec![Finding::absent("none are reserved; few jobs ask for them")];
    }
    found
}

pub(super) fn control_group(machine: &Machine) -> Vec<Finding> {
    let limits = cgroup::limits(&machine.tree);
    let mut found = Vec::new();
    if let Some(cpus) = limits.cpus {
        let finding = Finding::warn(
            format!("{cpus} CPUs' time at most"),
            "workers stand still when it is used up",
            "raise cpu.max of the group",
        );
        found.push(if cpus < 1.0 { finding.fail() } else { finding });
    }
    found.extend(limits.io.iter().map(|limit| {
        let count = limit.per_second;
        Finding::warn(
            format!(
                "device {}: {count} a second at most ({:?})",
                limit.dev, limit.kind
            ),
            "the limit is measured, not the device",
            "raise io.max of the group",
        )
    }));
    let memory = limits
        .memory
        .map_or(String::new(), |memory| format!(", {memory} of memory"));
    if found.is_empty() {
        found.push(Finding::ok(format!("no limit of CPU time or I/O{memory}")));
    }
    found
}

pub(super) fn libraries(_: &Machine) -> Vec<Finding> {
    let engines = runners::catalogue().engines;
    let engines = engines.iter().map(|engine| {
        let lacks = match runners::availability(engine.name) {
            Availability::Ready => None,
            Availability::Missing { what, remedy } => Some(format!("{what}; {remedy}")),
        };
        (engine.name, lacks)
    });
    let transports = runners::transports();
    let records = transports.records.iter();
    let transports = records.map(|record| (record.name, (transports.lacks)(record.name)));
    [
        ready("engines", &engines.collect::<Vec<_>>()),
        ready("transports", &transports.collect::<Vec<_>>()),
    ]
    .concat()
}

/// Checks the libraries for `ofi+…` addresses of RPCs.
pub(super) fn fabrics(_: &Machine) -> Vec<Finding> {
    match runners::fabrics() {
        Ok(survey) => of_survey(&survey),
        Err(lacks) => vec![Finding::absent(lacks)],
    }
}

/// Checks the library for stores on a DAOS system.
pub(super) fn daos(_: &Machine) -> Vec<Finding> {
    let lacks = runners::lacks_daos().map(Finding::absent);
    vec![lacks.unwrap_or_else(|| Finding::ok("libdaos starts"))]
}

/// Findings on the library with its providers, then on providers that cannot be used.
pub(super) fn of_survey(survey: &FabricSurvey) -> Vec<Finding> {
    let FabricSurvey {
        file,
        version,
        providers,
    } = survey;
    let found = format!("{file} {version}: {}", providers.join(", "));
    let has_shm = providers
        .iter()
        .any(|one| one.split(';').any(|part| part == "shm"));
    let shm = has_shm.then(|| {
        Finding::warn(
            "provider shm",
            "who sends to a process that is killed can hang in it for ever",
            "use shm:// of weir itself between processes of one machine",
        )
    });
    [Finding::ok(found)].into_iter().chain(shm).collect()
}

/// Findings on what can be used here, then on each that cannot, with the reason.
fn ready(kind: &str, all: &[(&str, Option<String>)]) -> Vec<Finding> {
    let there = all.iter().filter(|(_, lacks)| lacks.is_none());
    let there: Vec<&str> = there.map(|(name, _)| *name).collect();
    let missing = all.iter().filter_map(|(name, lacks)| {
        let lacks = lacks.as_ref()?;
        Some(Finding::absent(format!("{name}: {lacks}")))
    });
    let first = Finding::ok(format!("{kind}: {}", there.join(", ")));
    [first].into_iter().chain(missing).collect()
}

pub(super) fn modules(machine: &Machine) -> Vec<Finding> {
    vec![match machine.tree.word("sys/module/kio/version") {
        Some(version) => Finding::ok(format!("kio {version} is loaded")),
        None if machine.tree.has("sys/module/kio") => Finding::ok("kio is loaded"),
        None => {
            Finding::absent("kio is not loaded; `weir kio` measures from user space without it")
        }
    }]
}

pub(super) fn counters(machine: &Machine) -> Vec<Finding> {
    let level: Option<i64> = machine.tree.number("proc/sys/kernel/perf_event_paranoid");
    vec![match level {
        None => Finding::absent("the kernel has no counters of events"),
        Some(level) if level > MOST_PARANOID => Finding::warn(
            format!("perf_event_paranoid is {level}"),
            "users cannot count cycles and misses",
            format!("sysctl kernel.perf_event_paranoid={MOST_PARANOID}"),
        ),
        Some(level) => Finding::ok(format!("perf_event_paranoid is {level}")),
    }]
}
