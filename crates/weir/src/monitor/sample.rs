//! The kernel's counts of CPUs, processes, interfaces and memory at one moment.
//!
//! In: this machine's files of counters. Out: a [`Sample`]; from two of them figures of the time between. Not
//! here: counters of the processor's own unit.

#![expect(
    clippy::cast_precision_loss,
    reason = "counts of a while become floating point where their error is far below noise"
)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weir_diagnose::{HostFigure, INTERFACE_DROPS, RUN_DELAY, Reading, STEAL};
use weir_doors::Refusal;
use weir_sys::Tree;
use weir_sys::cpu_time::{CpuTimes, cpu_times};

use super::drivers::{DriverCounts, is_same_network};
use super::processes::{
    ProcessCounts, Scheduled, counts_of_machine, counts_of_process, no_process,
};

/// Label of the bytes that interfaces moved.
const INTERFACE_BYTES: &str = "interface_bytes";

/// The kernel's counts until now.
pub(super) struct Sample {
    at: Instant,
    cpus: Vec<(u32, CpuTimes)>,
    process: ProcessCounts,
    interfaces: BTreeMap<String, InterfaceCounts>,
    drivers: DriverCounts,
    /// Bytes that each memory node has moved.
    node_bytes: BTreeMap<u32, u64>,
    /// Bytes of the last cache that are in use, by its number.
    cache_bytes: BTreeMap<u32, u64>,
}

/// Counts of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InterfaceCounts {
    /// Packets that it dropped or had no room for, both ways.
    dropped: u64,
    /// Bytes, both ways.
    bytes: u64,
}

impl Sample {
    pub(super) fn take(tree: &Tree, process: Option<u32>) -> Result<Self, Refusal> {
        let counts = match process {
            Some(process) => counts_of_process(tree, process).ok_or_else(|| no_process(process))?,
            None => counts_of_machine(tree),
        };
        let interfaces = interfaces(tree, process);
        let drivers = if is_same_network(tree, process) {
            DriverCounts::of(interfaces.keys())
        } else {
            DriverCounts::default()
        };
        Ok(Self {
            at: Instant::now(),
            cpus: cpu_times(tree),
            process: counts,
            interfaces,
            drivers,
            node_bytes: by_cache(tree, "mbm_total_bytes"),
            cache_bytes: by_cache(tree, "llc_occupancy"),
        })
    }

    /// Keeps the counts of threads that have ended since an earlier sample.
    pub(super) fn keep_ended(&mut self, earlier: &Self) {
        self.process.keep_ended(&earlier.process);
    }

    fn times_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = (u32, CpuTimes)> + 'a {
        let of = |(cpu, now): &(u32, CpuTimes)| {
            let then = earlier.cpus.iter().find(|(known, _)| known == cpu)?;
            Some((*cpu, now.since(&then.1)))
        };
        self.cpus.iter().filter_map(of)
    }

    pub(super) fn busy_since(&self, earlier: &Self) -> BTreeMap<u32, f64> {
        let share = |(cpu, times): (u32, CpuTimes)| {
            let total = times.total().0;
            let idle = times.idle.0 + times.io_wait.0;
            (total > 0).then(|| (cpu, 1.0 - idle as f64 / total as f64))
        };
        self.times_since(earlier).filter_map(share).collect()
    }

    pub(super) fn elapsed_since(&self, earlier: &Self) -> Duration {
        self.at.duration_since(earlier.at)
    }

    fn steal_since(&self, earlier: &Self) -> Reading {
        let (mut steal, mut total) = (0, 0);
        for (_, times) in self.times_since(earlier) {
            steal += times.steal.0;
            total += times.total().0;
        }
        if total == 0 {
            Reading::missing("/proc/stat did not change")
        } else {
            Reading::known(steal as f64 / total as f64)
        }
    }

    pub(super) fn figures_since(&self, earlier: &Self) -> Vec<HostFigure> {
        let (now, then) = (&self.process, &earlier.process);
        let wall_ns = self.elapsed_since(earlier).as_secs_f64() * 1e9;
        let since = now.scheduled_since(then);
        let scheduled = |of: fn(Scheduled) -> u64, at_once: usize| match since {
            Some(time) => Reading::known(of(time) as f64 / wall_ns / at_once as f64),
            None => Reading::missing("the kernel has no scheduler statistics"),
        };
        let counted =
            |now, then| difference(now, then).unwrap_or_else(|| Reading::missing("not counted"));
        let mut figures = vec![
            HostFigure::new("cpus_used", scheduled(|time| time.ran, 1)),
            HostFigure::new(STEAL, self.steal_since(earlier)),
            HostFigure::new(RUN_DELAY, scheduled(|time| time.waited, now.runs_on.max(1))),
            HostFigure::new("context_switches", counted(now.switches, then.switches)),
            HostFigure::new("page_faults", counted(now.faults, then.faults)),
        ];
        figures.extend(self.interfaces_since(earlier, (INTERFACE_DROPS, |of| of.dropped)));
        figures.extend(self.drivers.figures_since(&earlier.drivers));
        figures.extend(self.interfaces_since(earlier, (INTERFACE_BYTES, |of| of.bytes)));
        figures.extend(self.cache_bytes.iter().map(|(cache, bytes)| {
            HostFigure::new(
                format!("llc_occupancy_bytes {cache}"),
                Reading::known(*bytes as f64),
            )
        }));
        figures
    }

    /// All interfaces together, then each that counted any.
    fn interfaces_since(
        &self,
        earlier: &Self,
        (label, of): (&'static str, fn(&InterfaceCounts) -> u64),
    ) -> Vec<HostFigure> {
        let since = |(name, now): (&String, &InterfaceCounts)| {
            let then = earlier.interfaces.get(name).unwrap_or(now);
            (name.clone(), of(now).saturating_sub(of(then)))
        };
        let each: Vec<(String, u64)> = self.interfaces.iter().map(since).collect();
        let all: u64 = each.iter().map(|(_, count)| count).sum();
        let all = if self.interfaces.is_empty() {
            Reading::missing("/proc/net/dev has no counters")
        } else {
            Reading::known(all as f64)
        };
        let some = each.into_iter().filter(|(_, count)| *count > 0);
        let figure = |(name, count): (String, u64)| {
            HostFigure::new(format!("{label} {name}"), Reading::known(count as f64))
        };
        let all = HostFigure::new(label, all);
        std::iter::once(all).chain(some.map(figure)).collect()
    }

    /// Counts of drivers.
    pub(super) fn drivers(&self) -> &DriverCounts {
        &self.drivers
    }

    /// Memory bandwidth is counted by the processor.
    pub(super) fn has_node_bytes(&self) -> bool {
        !self.node_bytes.is_empty()
    }

    /// True if the processor counts the occupancy of the last cache.
    pub(super) fn has_cache_bytes(&self) -> bool {
        !self.cache_bytes.is_empty()
    }

    /// Bandwidth by resctrl; where that counts nothing, the reason why memory controllers are not counted
    /// either.
    pub(super) fn nodes_since(
        &self,
        earlier: &Self,
        tree: &Tree,
        no_units: &str,
    ) -> BTreeMap<u32, Reading> {
        let seconds = self.at.duration_since(earlier.at).as_secs_f64();
        let of = |node: u32| {
            let now = self.node_bytes.get(&node);
            let moved = now.zip(earlier.node_bytes.get(&node));
            match moved {
                Some((now, then)) => {
                    Reading::known(now.saturating_sub(*then) as f64 / 1e6 / seconds)
                }
                None => Reading::missing(format!(
                    "{no_units}; no resctrl monitoring in /sys/fs/resctrl; record it with pcm-memory"
                )),
            }
        };
        let nodes = tree.numbered("sys/devices/system/node", "node");
        nodes.into_iter().map(|node| (node, of(node))).collect()
    }
}

fn difference(now: Option<u64>, then: Option<u64>) -> Option<Reading> {
    let (now, then) = now.zip(then)?;
    Some(Reading::known(now.saturating_sub(then) as f64))
}

/// Reads the counts of each interface in a process's network.
fn interfaces(tree: &Tree, process: Option<u32>) -> BTreeMap<String, InterfaceCounts> {
    let whose = process.map_or_else(|| "self".to_owned(), |process| process.to_string());
    // Not /sys/class/net, which may show the network of whoever mounted it.
    let text = tree
        .text(format!("proc/{whose}/net/dev"))
        .unwrap_or_default();
    let of = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let counts = counts
            .split_ascii_whitespace()
            .map_while(|n| n.parse().ok());
        let counts: Vec<u64> = counts.collect();
        let sum = |places: &[usize]| {
            let all = places.iter().map(|place| counts.get(*place).copied());
            all.collect::<Option<Vec<u64>>>()
                .map(|all| all.iter().sum())
        };
        let counts = InterfaceCounts {
            // Received and dropped, received and no room, sent and dropped.
            dropped: sum(&[3, 4, 11])?,
            bytes: sum(&[0, 8])?,
        };
        Some((name.trim().to_owned(), counts))
    };
    text.lines().filter_map(of).collect()
}

/// Reads the processor's counts of each last cache, and of the memory behind it, by resctrl.
fn by_cache(tree: &Tree, file: &str) -> BTreeMap<u32, u64> {
    let domains = tree.names("sys/fs/resctrl/mon_data");
    let of = |domain: &String| {
        let number = domain.strip_prefix("mon_L3_")?.parse().ok()?;
        let path = format!("sys/fs/resctrl/mon_data/{domain}/{file}");
        Some((number, tree.number(path)?))
    };
    domains.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn counters_of_interfaces_and_caches_are_told_apart() {
        let folder = Scratch::new("sample").unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let dev = "Inter-|   Receive                                                |  Transmit\n\
                   \x20face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n\
                   \x20 a0: 100 2 0 3 4 0 0 0 50 1 0 5 0 0 0 0\n lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n";
        write("proc/self/net/dev", dev);
        write(
            "sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes",
            "9000000\n",
        );
        write("sys/fs/resctrl/mon_data/mon_L3_01/llc_occupancy", "4096\n");
        let tree = Tree::at(folder.path());
        let of = interfaces(&tree, None);
        assert_eq!((of["a0"].dropped, of["a0"].bytes), (12, 150));
        assert_eq!((of["lo"].dropped, of["lo"].bytes), (0, 14));
        assert_eq!(by_cache(&tree, "llc_occupancy"), [(1, 4096)].into());
        let first = Sample::take(&tree, None).unwrap();
        assert!(first.has_node_bytes() && first.has_cache_bytes());
        write(
            "proc/self/net/dev",
            &dev.replace("a0: 100 2 0 3", "a0: 400 2 0 9"),
        );
        let second = Sample::take(&tree, None).unwrap();
        let figures = second.figures_since(&first);
        let value = |name: &str| {
            let figure = figures.iter().find(|figure| figure.name == name);
            figure.and_then(|figure| figure.reading.value)
        };
        assert_eq!(value("interface_drops"), Some(6.0));
        assert_eq!(value("interface_drops a0"), Some(6.0));
        assert_eq!(value("interface_drops lo"), None);
        assert_eq!(value("interface_bytes a0"), Some(300.0));
        assert_eq!(value("llc_occupancy_bytes 1"), Some(4096.0));
    }
}
