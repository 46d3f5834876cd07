//! Activity of the machine by second: its CPUs, and the disks behind the targets.
//!
//! In: counters of the kernel. Out: their differences over about a second. Not here: how that is drawn.

#![expect(clippy::cast_precision_loss, reason = "figures for the eye")]

use std::time::Duration;

use weir_sys::Tree;
use weir_sys::cpu_time::{CpuTimes, cpu_times};
use weir_sys::device::{DiskStat, disk_counters};
use weir_sys::frequency::cpu_frequencies;

/// Time between two readings of the counters, as long as they are watched.
const EVERY: Duration = Duration::from_secs(1);

/// Counters at an instant.
#[derive(Clone, Debug, Default)]
struct Counters {
    at: Duration,
    cpus: Vec<(u32, CpuTimes)>,
    disks: Vec<(String, DiskStat)>,
}

/// Activity of a CPU in the last second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CpuSecond {
    pub(super) number: u32,
    /// Percent of the time.
    pub(super) user: f64,
    pub(super) system: f64,
    pub(super) interrupts: f64,
    pub(super) steal: f64,
    pub(super) hertz: Option<u64>,
}

impl CpuSecond {
    /// Busy time in percent.
    pub(super) fn busy(&self) -> f64 {
        self.user + self.system + self.interrupts
    }
}

/// Activity of a disk in the last second, as rates per second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DiskSecond {
    pub(super) name: String,
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) read_bytes: f64,
    pub(super) written_bytes: f64,
    pub(super) in_flight: u64,
    /// Percent of the time.
    pub(super) busy: f64,
}

/// Activity of the machine in the last second.
#[derive(Clone, Debug, Default)]
pub(super) struct MachinePerSecond {
    before: Option<Counters>,
    pub(super) cpus: Vec<CpuSecond>,
    pub(super) disks: Vec<DiskSecond>,
}

impl MachinePerSecond {
    /// Takes a look at this time, if the last one is long enough ago.
    pub(super) fn look(&mut self, tree: &Tree, disks: &[&str], at: Duration) {
        let last = self.before.as_ref().map(|before| before.at);
        if last.is_some_and(|last| at < last + EVERY) {
            return;
        }
        let disks = disks.iter().map(|name| (*name).to_owned());
        let now = Counters {
            at,
            cpus: cpu_times(tree),
            disks: disks
                .filter_map(|name| Some((name.clone(), disk_counters(tree, &name)?)))
                .collect(),
        };
        if let Some(before) = &self.before {
            let frequencies = cpu_frequencies(tree);
            self.cpus = cpus(before, &now, &frequencies);
            self.disks = disk_seconds(before, &now);
        }
        self.before = Some(now);
    }
}

fn cpus(before: &Counters, now: &Counters, frequencies: &[(u32, u64)]) -> Vec<CpuSecond> {
    let of = |(number, times): &(u32, CpuTimes)| {
        let (_, earlier) = before.cpus.iter().find(|(n, _)| n == number)?;
        let done = times.since(earlier);
        let all = done.total().as_secs_f64();
        let share = |part: weir_units::Nanos| {
            if all > 0.0 {
                part.as_secs_f64() / all * 100.0
            } else {
                0.0
            }
        };
        Some(CpuSecond {
            number: *number,
            user: share(done.user),
            system: share(done.system),
            interrupts: share(done.interrupts),
            steal: share(done.steal),
            hertz: frequencies
                .iter()
                .find(|(n, _)| n == number)
                .map(|(_, hertz)| *hertz),
        })
    };
    now.cpus.iter().filter_map(of).collect()
}

fn disk_seconds(before: &Counters, now: &Counters) -> Vec<DiskSecond> {
    let seconds = now.at.saturating_sub(before.at).as_secs_f64().max(1e-3);
    let of = |(name, counters): &(String, DiskStat)| {
        let (_, earlier) = before.disks.iter().find(|(n, _)| n == name)?;
        let done = counters.since(earlier);
        Some(DiskSecond {
            name: name.clone(),
            reads: done.reads as f64 / seconds,
            writes: done.writes as f64 / seconds,
            read_bytes: done.read.0 as f64 / seconds,
            written_bytes: done.written.0 as f64 / seconds,
            in_flight: done.in_flight,
            busy: done.busy.as_secs_f64() / seconds * 100.0,
        })
    };
    now.disks.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use weir_units::{Bytes, Nanos};

    use super::*;

    fn at(seconds: u64, busy: u64) -> Counters {
        let times = CpuTimes {
            user: Nanos(busy * 3),
            system: Nanos(busy),
            idle: Nanos(seconds * 10_000 - busy * 4),
            ..CpuTimes::default()
        };
        let disk = DiskStat {
            reads: busy,
            read: Bytes(busy * 4096),
            busy: Nanos(seconds * 500_000_000),
            in_flight: 7,
            ..DiskStat::default()
        };
        Counters {
            at: Duration::from_secs(seconds),
            cpus: vec![(0, times)],
            disks: vec![("vda".to_owned(), disk)],
        }
    }

    #[test]
    fn shares_and_rates_are_of_the_time_between_two_looks() {
        let (before, now) = (at(1, 100), at(3, 1100));
        let [cpu] = &cpus(&before, &now, &[(0, 2_500_000_000)])[..] else {
            panic!("one CPU")
        };
        assert!(
            (cpu.user - 15.0).abs() < 1e-9 && (cpu.busy() - 20.0).abs() < 1e-9,
            "{cpu:?}"
        );
        assert_eq!(cpu.hertz, Some(2_500_000_000));
        let [disk] = &disk_seconds(&before, &now)[..] else {
            panic!("one disk")
        };
        assert!((disk.reads - 500.0).abs() < 1e-9 && (disk.busy - 50.0).abs() < 1e-9);
        assert_eq!((disk.in_flight, disk.writes), (7, 0.0));
    }

    #[test]
    fn counters_are_read_once_a_second() {
        let mut machine = MachinePerSecond::default();
        let tree = Tree::real();
        for millis in [0, 300, 900] {
            machine.look(&tree, &[], Duration::from_millis(millis));
            assert!(machine.cpus.is_empty(), "{millis}");
        }
        machine.look(&tree, &[], Duration::from_secs(1));
        assert!(!machine.cpus.is_empty());
    }
}
