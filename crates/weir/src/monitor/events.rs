//! Counters of the processor's own unit, of all events, for as long as the monitor runs.
//!
//! In: a process or none for the whole machine. Out: counts, or the kernel's reason for each event that it
//! has no counter of. Not here: the system call (`weir-sys`).

use std::io::ErrorKind;

use weir_diagnose::{HostFigure, Reading};
use weir_doors::Refusal;
use weir_schema::errno;
use weir_sys::Tree;
use weir_sys::cpu_time::cpu_times;
use weir_sys::hardware_counter::{CountedBy, HardwareCount, HardwareCounter, HardwareEvent};

use super::processes::{no_process, threads};
use crate::output;

/// Below this share of the time a count is an estimate, and the report says so.
const WHOLE: f64 = 0.9;

const EVENTS: [HardwareEvent; 9] = [
    HardwareEvent::Cycles,
    HardwareEvent::Instructions,
    HardwareEvent::L1Loads,
    HardwareEvent::L1LoadMisses,
    HardwareEvent::L1Stores,
    HardwareEvent::LlcLoads,
    HardwareEvent::LlcLoadMisses,
    HardwareEvent::LlcStores,
    HardwareEvent::LlcStoreMisses,
];

/// Open counters of each event, and what they said at first.
pub(super) struct Counters(Vec<(HardwareEvent, Result<Vec<HardwareCounter>, String>)>);

impl Counters {
    pub(super) fn open(tree: &Tree, process: Option<u32>) -> Result<Self, Refusal> {
        let who: Vec<CountedBy> = if let Some(process) = process {
            let threads = threads(tree, process).ok_or_else(|| no_process(process))?;
            threads.into_iter().map(CountedBy::Thread).collect()
        } else {
            let cpus = cpu_times(tree).into_iter();
            cpus.map(|(cpu, _)| CountedBy::Cpu(cpu)).collect()
        };
        let open = |event: HardwareEvent| {
            let all = who.iter().map(|who| HardwareCounter::open(event, *who));
            let opened = all.collect::<Result<Vec<_>, _>>();
            (event, opened.map_err(|why| reason(tree, event, &why)))
        };
        Ok(Self(EVENTS.into_iter().map(open).collect()))
    }

    /// What each event has counted since.
    pub(super) fn counts(&self) -> Vec<HostFigure> {
        let of = |(event, counters): &(HardwareEvent, Result<Vec<HardwareCounter>, String>)| {
            let reading = match counters {
                Err(why) => Reading::missing(why),
                Ok(counters) => sum(*event, counters),
            };
            HostFigure::new(event.name(), reading)
        };
        self.0.iter().map(of).collect()
    }
}

fn sum(event: HardwareEvent, counters: &[HardwareCounter]) -> Reading {
    let mut all = 0.0;
    let mut least = 1.0_f64;
    for counter in counters {
        let count = match counter.read() {
            Ok(count) => count,
            Err(why) => return Reading::missing(format!("perf_event {}: {why}", event.name())),
        };
        // One that never ran has counted nothing.
        if let Some((events, share)) = count.since(&HardwareCount::default()) {
            all += events;
            least = least.min(share);
        }
    }
    if least < WHOLE {
        output::error(&format!(
            "note: {} was counted during {:.0} % of the time and scaled\n",
            event.name(),
            least * 100.0
        ));
    }
    Reading::known(all)
}

/// Why an event cannot be counted.
fn reason(tree: &Tree, event: HardwareEvent, why: &std::io::Error) -> String {
    let name = why.raw_os_error().and_then(errno::name);
    let name = name.map_or_else(|| why.to_string(), str::to_owned);
    let paranoid: Option<i32> = tree.number("proc/sys/kernel/perf_event_paranoid");
    let extra = match (why.kind(), paranoid) {
        (ErrorKind::NotFound, _) => ", this machine has no such counter".to_owned(),
        (ErrorKind::PermissionDenied, Some(level)) => format!(", perf_event_paranoid={level}"),
        _ => String::new(),
    };
    format!("perf_event_open {}: {name}{extra}", event.name())
}
