//! Figures of one kind of operation over the members of an entry.
//!
//! In: what workers did. Out: their sum by fio's rules: counts and histograms add, the runtime
//! is the longest, bandwidth and IOPS samples of members that ran side by side add up member by
//! member. Not here: which workers are members (`entry`).

use std::collections::BTreeMap;

use weir_schema::{ClassResult, Job, KindResult, SampleStatistics, Stage};
use weir_stats::Histogram;

/// Bandwidth or IOPS over sampling periods.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    pub(super) count: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    squares: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts of half-second periods")]
impl Samples {
    fn of(moments: Option<&SampleStatistics>, unit: f64) -> Self {
        moments
            .filter(|m| m.count > 0)
            .map_or_else(Self::default, |m| {
                let deviation = m.deviation / unit;
                Self {
                    count: m.count,
                    min: m.min / unit,
                    max: m.max / unit,
                    mean: m.mean / unit,
                    squares: deviation * deviation * (m.count - 1) as f64,
                }
            })
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.squares += other.squares;
    }

    pub(super) fn deviation(&self) -> f64 {
        if self.count > 1 {
            (self.squares / (self.count - 1) as f64).sqrt()
        } else {
            0.0
        }
    }
}

/// Completion and total latencies by I/O priority.
type ByPriority = BTreeMap<u16, [Option<Histogram>; 2]>;

/// Sum of the members' work of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct KindSums {
    pub(super) operations: u64,
    pub(super) issued: u64,
    pub(super) bytes: u64,
    pub(super) short: u64,
    pub(super) dropped: u64,
    pub(super) runtime_ns: u64,
    pub(super) slat: Option<Histogram>,
    pub(super) clat: Option<Histogram>,
    pub(super) lat: Option<Histogram>,
    /// From the intended start.
    pub(super) rlat: Option<Histogram>,
    /// The I/O priority of those that have none of their own.
    priority: u16,
    /// Completion and total latencies by I/O priority, where there are several.
    by_priority: ByPriority,
    /// KiB per second.
    pub(super) bandwidth: Samples,
    pub(super) iops: Samples,
}

impl KindSums {
    /// Engines that complete inside the call have one latency; fio prints it as clat too.
    pub(super) fn of(kind: &KindResult, job: &Job) -> Self {
        let recording = &job.load().recording;
        let stage = |s| kind.stage(s).filter(|h| !h.is_empty()).cloned();
        let lat = stage(Stage::Lat);
        Self {
            operations: kind.operations,
            issued: kind.issued,
            bytes: kind.bytes.0,
            short: kind.short,
            dropped: kind.dropped,
            // What never moved has no time either.
            runtime_ns: if kind.operations > 0 {
                kind.runtime_ns.0.max(1)
            } else {
                0
            },
            slat: stage(Stage::Slat),
            clat: stage(Stage::Clat)
                .or_else(|| lat.clone())
                .filter(|_| recording.clat),
            lat: lat.filter(|_| recording.lat),
            rlat: stage(Stage::Rlat),
            priority: priority_of(job),
            by_priority: by_priority(kind, job),
            bandwidth: Samples::of(kind.bandwidth_samples.as_ref(), 1024.0),
            iops: Samples::of(kind.iops_samples.as_ref(), 1.0),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.add_priorities(other);
        self.operations += other.operations;
        self.issued += other.issued;
        self.bytes += other.bytes;
        self.short += other.short;
        self.dropped += other.dropped;
        self.runtime_ns = self.runtime_ns.max(other.runtime_ns);
        merge(&mut self.slat, other.slat.as_ref());
        merge(&mut self.clat, other.clat.as_ref());
        merge(&mut self.lat, other.lat.as_ref());
        merge(&mut self.rlat, other.rlat.as_ref());
        self.bandwidth.add(&other.bandwidth);
        self.iops.add(&other.iops);
    }

    /// Before anything else is added: what was done so far may have been of one priority.
    fn add_priorities(&mut self, other: &Self) {
        if self.issued == 0 {
            self.priority = other.priority;
        }
        let is_one = self.by_priority.is_empty() && other.by_priority.is_empty();
        if is_one && self.priority == other.priority {
            return;
        }
        self.by_priority = self.priorities();
        for (priority, [clat, lat]) in other.priorities() {
            let mine = self.by_priority.entry(priority).or_default();
            merge(&mut mine[0], clat.as_ref());
            merge(&mut mine[1], lat.as_ref());
        }
    }

    /// Latencies by I/O priority, be it one.
    fn priorities(&self) -> ByPriority {
        if !self.by_priority.is_empty() || self.issued == 0 {
            return self.by_priority.clone();
        }
        [(self.priority, [self.clat.clone(), self.lat.clone()])].into()
    }

    /// Class, level and latency of each I/O priority: the total one if that is wanted, else the
    /// completion latency. Nothing where fewer than two occur.
    pub(super) fn of_priorities(&self, total: bool) -> Vec<(u16, u16, &Histogram)> {
        let by_priority = self.by_priority.iter();
        let found: Vec<_> = by_priority
            .filter_map(|(priority, [clat, lat])| {
                let latency = if total { lat } else { clat }.as_ref()?;
                (!latency.is_empty()).then_some((priority >> 13, priority & 7, latency))
            })
            .collect();
        if found.len() < 2 { Vec::new() } else { found }
    }

    /// Whole milliseconds, at least one where anything happened.
    pub(super) fn runtime_ms(&self) -> u64 {
        milliseconds(self.runtime_ns)
    }

    /// Of flushes: there is one latency, whichever stage recorded it.
    pub(super) fn sync_latency(&self) -> Option<&Histogram> {
        self.clat.as_ref().or(self.lat.as_ref())
    }

    pub(super) fn bytes_per_s(&self) -> u64 {
        per_second(self.bytes, self.runtime_ns)
    }

    pub(super) fn ops_per_s(&self) -> u64 {
        per_second(self.operations, self.runtime_ns)
    }
}

/// The priority of a job's threads, as the kernel has it in one number; 0 where none is set.
fn priority_of(job: &Job) -> u16 {
    const BEST_EFFORT: u8 = 2;
    job.placement.io_priority.as_ref().map_or(0, |priority| {
        let class = if priority.class == 0 {
            BEST_EFFORT
        } else {
            priority.class
        };
        u16::from(class) << 13 | u16::from(priority.level)
    })
}

fn by_priority(kind: &KindResult, job: &Job) -> ByPriority {
    let of_class = |of: &ClassResult| {
        let stage = |wanted| of.stages.iter().find(|s| s.stage == wanted);
        let histogram = |wanted| stage(wanted).map(|s| s.histogram.clone());
        let priority = if of.class == 0 {
            priority_of(job)
        } else {
            of.class
        };
        (priority, [Stage::Clat, Stage::Lat].map(histogram))
    };
    kind.classes.iter().map(of_class).collect()
}

/// A figure that two precisions contribute to has no histogram any more.
pub(super) fn merge(into: &mut Option<Histogram>, other: Option<&Histogram>) {
    let Some(theirs) = other else { return };
    let Some(mine) = into else {
        *into = Some(theirs.clone());
        return;
    };
    if mine.merge(theirs).is_err() {
        *into = None;
    }
}

pub(super) fn milliseconds(ns: u64) -> u64 {
    (ns / 1_000_000).max(u64::from(ns > 0))
}

/// The whole number of events per second; none without time.
pub(super) fn per_second(events: u64, ns: u64) -> u64 {
    let rate = (u128::from(events) * 1_000_000_000)
        .checked_div(u128::from(ns))
        .unwrap_or(0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Minimum, maximum, mean and deviation of a latency, as fio prints them.
pub(super) struct Latency {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) count: u64,
}

impl Latency {
    /// All zero without samples.
    pub(super) fn of(histogram: Option<&Histogram>) -> Self {
        let h = histogram;
        Self {
            min: h.and_then(Histogram::min).unwrap_or(0),
            max: h.and_then(Histogram::max).unwrap_or(0),
            mean: h.and_then(Histogram::mean).unwrap_or(0.0),
            deviation: h.and_then(Histogram::spread).map_or(0.0, |s| s.deviation),
            count: h.map_or(0, Histogram::count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_members_add_up_member_by_member() {
        let one = SampleStatistics {
            count: 3,
            min: 1.0,
            max: 5.0,
            mean: 3.0,
            deviation: 2.0,
        };
        let mut sum = Samples::of(Some(&one), 1.0);
        sum.add(&Samples::of(Some(&one), 1.0));
        assert_eq!((sum.count, sum.min, sum.max, sum.mean), (6, 2.0, 10.0, 6.0));
        // (2² · 2) · 2 / (6 − 1)
        assert!((sum.deviation() - (16.0_f64 / 5.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn rates_are_floored_and_short_runs_last_a_millisecond() {
        assert_eq!(per_second(1 << 20, 1_500_000), 699_050_666);
        assert_eq!(per_second(7, 0), 0);
        assert_eq!(milliseconds(1), 1);
        assert_eq!(milliseconds(2_999_999), 2);
    }
}
