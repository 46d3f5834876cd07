//! Counters of the units outside the cores: bytes moved by memory controllers and devices.
//!
//! In: the units that the kernel describes. Out: bytes a second of each memory node, bytes of devices, or why
//! there are none. They count for the whole machine, whatever process is monitored. Not here: how a unit's
//! events are described (`weir-sys`).

use std::collections::BTreeMap;

use weir_diagnose::{HostFigure, NodeParts, Reading};
use weir_schema::errno;
use weir_sys::Tree;
use weir_sys::event_source::{EventSource, event_sources};
use weir_sys::hardware_counter::{HardwareCount, HardwareCounter};

/// Events of a kind of memory controller: the units' names, and the events of each direction.
struct MemoryEvents {
    unit: &'static str,
    read: Found,
    written: Found,
}

/// Method of finding an event.
#[derive(Clone, Copy)]
enum Found {
    /// All events whose name begins with this; the kernel states their units.
    Named(&'static str),
    /// Settings that the kernel has no name for, with the bytes of a count.
    Set(&'static str, f64),
}

/// The first of these that counts is used: more than one may see the same bytes.
const MEMORY: [MemoryEvents; 3] = [
    MemoryEvents {
        unit: "uncore_imc",
        read: Found::Named("cas_count_read"),
        written: Found::Named("cas_count_write"),
    },
    MemoryEvents {
        unit: "uncore_imc",
        read: Found::Named("data_read"),
        written: Found::Named("data_write"),
    },
    // Of 64 bytes each, as the processor's manual has them.
    MemoryEvents {
        unit: "amd_umc",
        read: Found::Set("event=0x0a,rdwrmask=0x1", 64.0),
        written: Found::Set("event=0x0a,rdwrmask=0x2", 64.0),
    },
];
/// Units of devices, with the events of each direction.
const IO: (&str, [(&str, Found); 2]) = (
    "uncore_iio_free_running",
    [
        ("pcie_in_bytes", Found::Named("bw_in_port")),
        ("pcie_out_bytes", Found::Named("bw_out_port")),
    ],
);

/// An open counter, with the bytes of a count.
struct UnitCounter {
    counter: HardwareCounter,
    bytes: f64,
}

/// Counters of a node, both directions.
type NodeCounters = [Vec<UnitCounter>; 2];

/// All that could be opened.
pub(super) struct Uncore {
    memory: Result<(&'static str, BTreeMap<u32, NodeCounters>), String>,
    io: Result<Vec<(&'static str, Vec<UnitCounter>)>, String>,
}

impl Uncore {
    pub(super) fn open(tree: &Tree) -> Self {
        Self {
            memory: open_memory(tree),
            io: open_io(tree),
        }
    }

    /// The units that count memory.
    pub(super) fn memory_source(&self) -> Option<&'static str> {
        self.memory.as_ref().ok().map(|(unit, _)| *unit)
    }

    /// Reason why memory is not counted.
    pub(super) fn no_memory(&self) -> &str {
        self.memory.as_ref().err().map_or("", String::as_str)
    }

    pub(super) fn has_io(&self) -> bool {
        self.io.is_ok()
    }

    /// Megabytes a second of each node, read and written.
    pub(super) fn nodes(&self) -> BTreeMap<u32, Result<NodeParts, String>> {
        let Ok((_, nodes)) = &self.memory else {
            return BTreeMap::new();
        };
        let of = |[read, written]: &NodeCounters| {
            Ok(NodeParts {
                read: rate(read)? / 1e6,
                written: rate(written)? / 1e6,
            })
        };
        let nodes = nodes.iter();
        nodes.map(|(node, both)| (*node, of(both))).collect()
    }

    /// Bytes that devices moved, by direction.
    pub(super) fn io_figures(&self) -> Vec<HostFigure> {
        let of = |(name, counters): &(&'static str, Vec<UnitCounter>)| {
            let moved = moved(counters).map(|(bytes, _)| bytes);
            let reading = moved.map_or_else(Reading::missing, Reading::known);
            (!counters.is_empty()).then(|| HostFigure::new(*name, reading))
        };
        let all = self.io.iter().flatten();
        all.filter_map(of).collect()
    }
}

/// Bytes since the counters were opened, and the longest time that one has been open.
fn moved(counters: &[UnitCounter]) -> Result<(f64, f64), String> {
    let (mut bytes, mut seconds) = (0.0, 0.0_f64);
    for one in counters {
        let count = one.counter.read().map_err(|why| why.to_string())?;
        if let Some((events, _)) = count.since(&HardwareCount::default()) {
            bytes += events * one.bytes;
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a while")]
            let open = count.enabled_ns as f64 / 1e9;
            seconds = seconds.max(open);
        }
    }
    Ok((bytes, seconds))
}

fn rate(counters: &[UnitCounter]) -> Result<f64, String> {
    match moved(counters)? {
        (_, 0.0) => Err("the units never counted".to_owned()),
        (bytes, seconds) => Ok(bytes / seconds),
    }
}

fn open_memory(tree: &Tree) -> Result<(&'static str, BTreeMap<u32, NodeCounters>), String> {
    let mut why = "no uncore_imc or amd_umc in /sys/bus/event_source/devices".to_owned();
    for events in &MEMORY {
        let mut nodes: BTreeMap<u32, NodeCounters> = BTreeMap::new();
        let mut opened = Ok(());
        for source in event_sources(tree, events.unit) {
            for cpu in &source.cpus {
                let node = nodes.entry(node_of(tree, *cpu)).or_default();
                for (place, found) in node.iter_mut().zip([events.read, events.written]) {
                    opened = opened.and(open_into(place, tree, &source, *cpu, found));
                }
            }
        }
        nodes.retain(|_, both| both.iter().all(|counters| !counters.is_empty()));
        match opened {
            Ok(()) if !nodes.is_empty() => return Ok((events.unit, nodes)),
            Ok(()) => {}
            Err(refused) => why = refused,
        }
    }
    Err(why)
}

fn open_io(tree: &Tree) -> Result<Vec<(&'static str, Vec<UnitCounter>)>, String> {
    let (unit, directions) = IO;
    let mut opened: Vec<(&'static str, Vec<UnitCounter>)> = Vec::new();
    for (name, found) in directions {
        let mut counters = Vec::new();
        for source in event_sources(tree, unit) {
            for cpu in &source.cpus {
                open_into(&mut counters, tree, &source, *cpu, found)?;
            }
        }
        opened.push((name, counters));
    }
    if opened.iter().all(|(_, counters)| counters.is_empty()) {
        return Err(format!("no {unit} in /sys/bus/event_source/devices"));
    }
    Ok(opened)
}

/// Opens those of these events that a unit has.
fn open_into(
    counters: &mut Vec<UnitCounter>,
    tree: &Tree,
    source: &EventSource,
    cpu: u32,
    found: Found,
) -> Result<(), String> {
    for (config, bytes) in settings(tree, source, found) {
        let opened = HardwareCounter::open_of_unit(source.kind, config, cpu);
        let counter = opened.map_err(|why| {
            let name = why.raw_os_error().and_then(errno::name);
            let name = name.map_or_else(|| why.to_string(), str::to_owned);
            format!("perf_event_open {}: {name}", source.name)
        })?;
        counters.push(UnitCounter { counter, bytes });
    }
    Ok(())
}

/// Settings of events with the bytes of a count. Events in a unit that is not known are left out.
fn settings(tree: &Tree, source: &EventSource, found: Found) -> Vec<([u64; 3], f64)> {
    match found {
        Found::Set(terms, bytes) => {
            let config = source.config(tree, terms);
            config.map(|config| (config, bytes)).into_iter().collect()
        }
        Found::Named(prefix) => {
            let names = source.events(tree).into_iter();
            let of = |name: String| {
                let event = source.event(tree, &name)?;
                Some((event.config, event.scale * bytes_of(&event.unit)?))
            };
            let names = names.filter(|name| name.starts_with(prefix));
            names.filter_map(of).collect()
        }
    }
}

fn bytes_of(unit: &str) -> Option<f64> {
    match unit {
        "MiB" => Some(1024.0 * 1024.0),
        "Bytes" | "B" => Some(1.0),
        "MB" => Some(1e6),
        _ => None,
    }
}

/// The memory node of a CPU; the first, where the machine has one.
fn node_of(tree: &Tree, cpu: u32) -> u32 {
    let folder = format!("sys/devices/system/cpu/cpu{cpu}");
    let nodes = tree.numbered(folder, "node");
    nodes.first().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// PMU of the kernel's software events, which replaces a memory controller here. It counts the CPU clock
    /// in nanoseconds.
    const SOFTWARE: &str = "1\n";
    const CPU_CLOCK: &str = "config=0x0\n";

    fn write(folder: &Scratch, path: &str, text: &str) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn unit(folder: &Scratch, name: &str, events: &[(&str, &str)]) {
        let base = format!("sys/bus/event_source/devices/{name}");
        write(folder, &format!("{base}/type"), SOFTWARE);
        write(folder, &format!("{base}/cpumask"), "0\n");
        write(folder, &format!("{base}/format/config"), "config:0-63\n");
        for (event, scale) in events {
            let event = format!("{base}/events/{event}");
            write(folder, &event, CPU_CLOCK);
            write(folder, &format!("{event}.scale"), scale);
            write(folder, &format!("{event}.unit"), "MiB\n");
        }
    }

    #[test]
    fn bytes_are_counts_times_what_the_kernel_says_they_are_worth() {
        let folder = Scratch::new("uncore").unwrap();
        let tree = Tree::at(folder.path());
        let none = Uncore::open(&tree);
        assert!(none.no_memory().contains("no uncore_imc"));
        assert!(none.nodes().is_empty() && !none.has_io());
        unit(
            &folder,
            "uncore_imc_0",
            &[("cas_count_read", "2.0\n"), ("cas_count_write", "1.0\n")],
        );
        // The same bytes, counted a second time.
        let free = [("data_read", "9.0\n"), ("data_write", "9.0\n")];
        unit(&folder, "uncore_imc_free_running_0", &free);
        unit(
            &folder,
            "uncore_iio_free_running_0",
            &[("bw_in_port0", "1.0\n"), ("bw_in_port1", "1.0\n")],
        );
        write(&folder, "sys/devices/system/cpu/cpu0/node3/x", "");
        let open = Uncore::open(&tree);
        if let Err(why) = &open.memory {
            // Counters of a CPU need a right that not everybody has.
            assert!(why.contains("perf_event_open uncore_imc_0: E"), "{why}");
            return println!("skipped: {why}");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(open.memory_source(), Some("uncore_imc"));
        let nodes = open.nodes();
        let parts = nodes[&3].as_ref().unwrap();
        // A billion counts a second of a MiB each; the clock and the time that it was open are read in turn.
        let of_one = 1e9 * 1.048_576;
        assert!(
            (parts.read / (2.0 * of_one) - 1.0).abs() < 0.05,
            "{parts:?}"
        );
        assert!((parts.written / of_one - 1.0).abs() < 0.05, "{parts:?}");
        let io = open.io_figures();
        assert_eq!((io.len(), io[0].name.as_str()), (1, "pcie_in_bytes"));
        // Two ports of at least 20 ms.
        assert!(io[0].reading.value.unwrap() >= 2.0 * 0.02 * 1e9 * 1_048_576.0);
    }
}
