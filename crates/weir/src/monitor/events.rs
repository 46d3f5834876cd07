//! Counters of the processor's own unit, of all events, for as long as the monitor runs; moves between
//! CPUs, which the kernel counts.
//!
//! In: a process or none for the whole machine. Out: counts, or the kernel's reason for each event that it
//! has no counter of. Not here: the system call (`weir-sys`).

use std::collections::BTreeSet;
use std::io::ErrorKind;

use weir_diagnose::{HostFigure, Reading};
use weir_doors::Refusal;
use weir_schema::errno;
use weir_sys::Tree;
use weir_sys::cpu_time::cpu_times;
use weir_sys::hardware_counter::{CountedBy, HardwareCount, HardwareCounter, HardwareEvent};

use super::processes::{no_process, threads};

/// Share of the time below which a count is an estimate that the report marks.
const WHOLE: f64 = 0.9;
/// The kernel knows no such thread.
const NO_THREAD: i32 = rustix::io::Errno::SRCH.raw_os_error();
/// Instructions after which a counter at 0 is broken.
const MANY: f64 = 1e6;

const EVENTS: [HardwareEvent; 12] = [
    HardwareEvent::Cycles,
    HardwareEvent::Instructions,
    HardwareEvent::L1Loads,
    HardwareEvent::L1LoadMisses,
    HardwareEvent::L1Stores,
    HardwareEvent::LlcLoads,
    HardwareEvent::LlcLoadMisses,
    HardwareEvent::LlcStores,
    HardwareEvent::LlcStoreMisses,
    HardwareEvent::CacheReferences,
    HardwareEvent::CacheMisses,
    MIGRATIONS,
];
const MIGRATIONS: HardwareEvent = HardwareEvent::CpuMigrations;
/// Events that happen whenever instructions do.
const NEVER_0: [HardwareEvent; 4] = [
    HardwareEvent::Cycles,
    HardwareEvent::Instructions,
    HardwareEvent::L1Loads,
    HardwareEvent::L1Stores,
];

/// Counters of misses, each with that of its accesses: many accesses have some misses.
const MISSES_OF: [(HardwareEvent, HardwareEvent); 4] = [
    (HardwareEvent::L1LoadMisses, HardwareEvent::L1Loads),
    (HardwareEvent::LlcLoadMisses, HardwareEvent::LlcLoads),
    (HardwareEvent::LlcStoreMisses, HardwareEvent::LlcStores),
    (HardwareEvent::CacheMisses, HardwareEvent::CacheReferences),
];

/// Open counters of each event.
pub(super) struct Counters {
    events: Vec<(HardwareEvent, Result<Vec<HardwareCounter>, String>)>,
    /// Threads that are counted already.
    known: BTreeSet<u32>,
}

/// Counts of events.
pub(super) struct CountedEvents {
    /// Events of the processor, by perf's names.
    pub(super) events: Vec<HostFigure>,
    /// Moves between CPUs.
    pub(super) migrations: Reading,
    /// Events that shared their unit, with the share of the time in which they were counted.
    pub(super) scaled: Vec<(&'static str, f64)>,
}

impl Counters {
    pub(super) fn open(tree: &Tree, process: Option<u32>) -> Result<Self, Refusal> {
        let mut counters = Self {
            events: EVENTS.map(|event| (event, Ok(Vec::new()))).into(),
            known: BTreeSet::new(),
        };
        if let Some(process) = process {
            if threads(tree, process).is_none() {
                return Err(no_process(process));
            }
            counters.add_threads(tree, process);
        } else {
            for (cpu, _) in cpu_times(tree) {
                counters.add(tree, CountedBy::Cpu(cpu));
            }
        }
        Ok(counters)
    }

    /// Counts threads too that have begun since.
    pub(super) fn add_threads(&mut self, tree: &Tree, process: u32) {
        for thread in threads(tree, process).unwrap_or_default() {
            if self.known.insert(thread) {
                self.add(tree, CountedBy::Thread(thread));
            }
        }
    }

    fn add(&mut self, tree: &Tree, who: CountedBy) {
        for (event, counters) in &mut self.events {
            let Ok(open) = counters else {
                continue;
            };
            match HardwareCounter::open(*event, who) {
                Ok(counter) => open.push(counter),
                // It has ended in the meantime.
                Err(why) if why.raw_os_error() == Some(NO_THREAD) => {}
                Err(why) => *counters = Err(reason(tree, *event, &why)),
            }
        }
    }

    /// Count of each event since the start.
    pub(super) fn counts(&self) -> CountedEvents {
        let mut scaled = Vec::new();
        let mut readings: Vec<(HardwareEvent, Reading)> = Vec::new();
        for (event, counters) in &self.events {
            let (reading, share) = match counters {
                Err(why) => (Reading::missing(why), 1.0),
                Ok(counters) => sum(*event, counters),
            };
            if share < WHOLE {
                scaled.push((event.name(), share));
            }
            readings.push((*event, reading));
        }
        without_stuck(&mut readings);
        let migrations = readings.pop().map(|(_, reading)| reading);
        let figure =
            |(event, reading): (HardwareEvent, Reading)| HostFigure::new(event.name(), reading);
        CountedEvents {
            events: readings.into_iter().map(figure).collect(),
            migrations: migrations.unwrap_or_else(|| Reading::missing("not counted")),
            scaled,
        }
    }
}

/// A counter that stays at 0 while others count does not work.
fn without_stuck(readings: &mut [(HardwareEvent, Reading)]) {
    let has_many = |event: &HardwareEvent| {
        let mut known = readings.iter();
        known.any(|(of, reading)| of == event && reading.value.is_some_and(|count| count > MANY))
    };
    let ran = NEVER_0.iter().any(has_many);
    let misses = MISSES_OF.iter().filter(|(_, all)| has_many(all));
    let misses: Vec<HardwareEvent> = misses.map(|(misses, _)| *misses).collect();
    for (event, reading) in readings {
        let is_never_0 = ran && NEVER_0.contains(event) || misses.contains(event);
        if is_never_0 && reading.value == Some(0.0) {
            *reading = Reading::missing("counter stuck at 0");
        }
    }
}

/// Events of all counters together, and the least share of the time in which one was counted.
fn sum(event: HardwareEvent, counters: &[HardwareCounter]) -> (Reading, f64) {
    let mut all = 0.0;
    let mut least = 1.0_f64;
    for counter in counters {
        let count = match counter.read() {
            Ok(count) => count,
            Err(why) => {
                let why = format!("perf_event {}: {why}", event.name());
                return (Reading::missing(why), 1.0);
            }
        };
        // One that never ran has counted nothing.
        if let Some((events, share)) = count.since(&HardwareCount::default()) {
            all += events;
            least = least.min(share);
        }
    }
    (Reading::known(all), least)
}

/// Reason why an event cannot be counted.
fn reason(tree: &Tree, event: HardwareEvent, why: &std::io::Error) -> String {
    let name = why.raw_os_error().and_then(errno::name);
    let name = name.map_or_else(|| why.to_string(), str::to_owned);
    let paranoid: Option<i32> = tree.number("proc/sys/kernel/perf_event_paranoid");
    let extra = match (why.kind(), paranoid) {
        (ErrorKind::NotFound, _) if is_virtual(tree) => ", no hardware PMU in this VM".to_owned(),
        (ErrorKind::NotFound, _) => ", this machine has no such counter".to_owned(),
        (ErrorKind::PermissionDenied, Some(level)) => format!(", perf_event_paranoid={level}"),
        _ => String::new(),
    };
    format!("perf_event_open {}: {name}{extra}", event.name())
}

/// True if the processor reports a hypervisor.
fn is_virtual(tree: &Tree) -> bool {
    let text = tree.text("proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| {
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn reasons_name_the_machine_or_the_right_that_is_missing() {
        let folder = Scratch::new("events").unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let tree = Tree::at(folder.path());
        let of = |number: Errno| {
            let why = std::io::Error::from(number);
            reason(&tree, HardwareEvent::LlcLoads, &why)
        };
        let no_counter = "perf_event_open LLC-loads: ENOENT, this machine has no such counter";
        assert_eq!(of(Errno::NOENT), no_counter);
        write("proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor\n");
        write("proc/sys/kernel/perf_event_paranoid", "4\n");
        let in_vm = "perf_event_open LLC-loads: ENOENT, no hardware PMU in this VM";
        assert_eq!(of(Errno::NOENT), in_vm);
        let refused = "perf_event_open LLC-loads: EACCES, perf_event_paranoid=4";
        assert_eq!(of(Errno::ACCESS), refused);
    }

    #[test]
    fn a_counter_that_stays_at_0_while_others_count_is_stuck() {
        let of = |cycles: f64| {
            let mut readings = vec![
                (HardwareEvent::Cycles, Reading::known(cycles)),
                (HardwareEvent::L1Loads, Reading::known(0.0)),
                (HardwareEvent::LlcLoadMisses, Reading::known(0.0)),
            ];
            without_stuck(&mut readings);
            readings.remove(1).1
        };
        assert_eq!(of(2e6).reason(), "counter stuck at 0");
        assert_eq!(of(5.0).value, Some(0.0));
        let misses = |references: f64| {
            let mut readings = vec![
                (HardwareEvent::CacheReferences, Reading::known(references)),
                (HardwareEvent::CacheMisses, Reading::known(0.0)),
            ];
            without_stuck(&mut readings);
            readings.remove(1).1
        };
        assert_eq!(misses(2e8).reason(), "counter stuck at 0");
        assert_eq!(misses(100.0).value, Some(0.0));
    }
}
