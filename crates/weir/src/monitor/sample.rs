//! What the kernel has counted of CPUs, processes, interfaces and memory, at one moment.
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

use super::processes::{
    ProcessCounts, Scheduled, counts_of_machine, counts_of_process, no_process,
};

/// What the kernel has counted until now.
pub(super) struct Sample {
    at: Instant,
    cpus: Vec<(u32, CpuTimes)>,
    process: ProcessCounts,
    /// Packets dropped, by interface.
    drops: BTreeMap<String, u64>,
    /// Bytes that each memory node has moved.
    node_bytes: BTreeMap<u32, u64>,
}

impl Sample {
    pub(super) fn take(tree: &Tree, process: Option<u32>) -> Result<Self, Refusal> {
        let counts = match process {
            Some(process) => counts_of_process(tree, process).ok_or_else(|| no_process(process))?,
            None => counts_of_machine(tree),
        };
        Ok(Self {
            at: Instant::now(),
            cpus: cpu_times(tree),
            process: counts,
            drops: drops(tree, process),
            node_bytes: node_bytes(tree),
        })
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
        figures.extend(self.drops_since(earlier));
        figures
    }

    /// All interfaces together, then each that dropped any.
    fn drops_since(&self, earlier: &Self) -> Vec<HostFigure> {
        let since = |(name, now): (&String, &u64)| {
            let dropped = now.saturating_sub(*earlier.drops.get(name).unwrap_or(now));
            (name.clone(), dropped)
        };
        let each: Vec<(String, u64)> = self.drops.iter().map(since).collect();
        let all: u64 = each.iter().map(|(_, dropped)| dropped).sum();
        let all = if self.drops.is_empty() {
            Reading::missing("/proc/net/dev has no counters")
        } else {
            Reading::known(all as f64)
        };
        let some = each.into_iter().filter(|(_, dropped)| *dropped > 0);
        let of = |(name, dropped): (String, u64)| {
            HostFigure::new(
                format!("{INTERFACE_DROPS} {name}"),
                Reading::known(dropped as f64),
            )
        };
        let all = HostFigure::new(INTERFACE_DROPS, all);
        std::iter::once(all).chain(some.map(of)).collect()
    }

    pub(super) fn nodes_since(&self, earlier: &Self, tree: &Tree) -> BTreeMap<u32, Reading> {
        let seconds = self.at.duration_since(earlier.at).as_secs_f64();
        let of = |node: u32| {
            let now = self.node_bytes.get(&node);
            let moved = now.zip(earlier.node_bytes.get(&node));
            match moved {
                Some((now, then)) => {
                    Reading::known(now.saturating_sub(*then) as f64 / 1e6 / seconds)
                }
                None => Reading::missing(
                    "no resctrl monitoring in /sys/fs/resctrl; record it with pcm-memory",
                ),
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

/// Packets that each interface of a process's network dropped or had no room for.
fn drops(tree: &Tree, process: Option<u32>) -> BTreeMap<String, u64> {
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
        // Received and dropped, received and no room, sent and dropped.
        let all = [3, 4, 11].map(|place: usize| counts.get(place).copied());
        let all = all.into_iter().collect::<Option<Vec<u64>>>()?;
        Some((name.trim().to_owned(), all.iter().sum()))
    };
    text.lines().filter_map(of).collect()
}

/// Bytes that each memory node has moved, where the processor counts them by resctrl.
fn node_bytes(tree: &Tree) -> BTreeMap<u32, u64> {
    let domains = tree.names("sys/fs/resctrl/mon_data");
    let of = |domain: &String| {
        let number = domain.strip_prefix("mon_L3_")?.parse().ok()?;
        let path = format!("sys/fs/resctrl/mon_data/{domain}/mbm_total_bytes");
        Some((number, tree.number(path)?))
    };
    domains.iter().filter_map(of).collect()
}
