//! History of a run by second, as far back as the screens show.
//!
//! In: what its jobs have done so far, at each look. Out: rates and latencies of each second, by job; where
//! operations lie by time and latency. Not here: how that is drawn.

#![expect(clippy::cast_precision_loss, reason = "figures for the eye")]

use std::collections::{BTreeMap, VecDeque};

use weir_run::execute::LiveJob;
use weir_stats::Histogram;
use weir_units::Nanos;

use crate::watch::JobsSeen;

/// Seconds that are kept.
pub(super) const KEPT: usize = 600;
/// Most jobs with seconds of their own; beyond that only the sum of all is kept.
const MOST_JOBS: usize = 64;
const SECOND: Nanos = Nanos(1_000_000_000);
/// Rows of the heat map per factor of two.
pub(super) const ROWS_PER_OCTAVE: u32 = 2;

/// Activity of a job in a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct JobSecond {
    /// Operations per second.
    pub(super) rate: f64,
    /// Bytes per second.
    pub(super) bytes: f64,
    pub(super) p50: Option<u64>,
    pub(super) p99: Option<u64>,
    /// Operations by row of the heat map.
    pub(super) heat: BTreeMap<u32, u64>,
}

impl JobSecond {
    /// Rates of the operations within this time.
    fn of(operations: u64, bytes: u64, latency: &Histogram, seconds: f64) -> Self {
        Self {
            rate: operations as f64 / seconds,
            bytes: bytes as f64 / seconds,
            p50: latency.percentile(50.0),
            p99: latency.percentile(99.0),
            heat: heat(latency),
        }
    }
}

/// Operations by row: each factor of two has a few.
fn heat(latency: &Histogram) -> BTreeMap<u32, u64> {
    let mut rows = BTreeMap::new();
    for bucket in latency.buckets() {
        *rows.entry(row_of(bucket.low)).or_default() += bucket.count;
    }
    rows
}

fn row_of(nanos: u64) -> u32 {
    let nanos = nanos.max(1);
    let octave = nanos.ilog2();
    let within = ((nanos - (1 << octave)) * u64::from(ROWS_PER_OCTAVE)) >> octave;
    octave * ROWS_PER_OCTAVE + u32::try_from(within).unwrap_or(0)
}

/// The least latency of a row.
pub(super) fn least_of(row: u32) -> Nanos {
    let begin = 1_u64 << (row / ROWS_PER_OCTAVE).min(63);
    let part = u64::from(row % ROWS_PER_OCTAVE);
    Nanos(begin + begin * part / u64::from(ROWS_PER_OCTAVE))
}

/// A job by its number; none: all of them together.
type WhichJob = Option<usize>;

/// Second after second.
#[derive(Clone, Default)]
pub(super) struct PerSecond {
    /// Oldest first.
    seconds: VecDeque<BTreeMap<WhichJob, JobSecond>>,
    /// Latencies of the last of them.
    latest: BTreeMap<WhichJob, Histogram>,
    /// State of the jobs at the beginning of the present second.
    before: Option<JobsSeen>,
    now: Option<JobsSeen>,
}

impl PerSecond {
    /// Takes a look.
    pub(super) fn look(&mut self, seen: JobsSeen) {
        let before = self.before.get_or_insert_with(|| seen.clone()).clone();
        let length = Nanos(seen.elapsed_ns.0.saturating_sub(before.elapsed_ns.0));
        if length >= SECOND {
            self.end_second(&before, &seen, length.as_secs_f64());
            self.before = Some(seen.clone());
        }
        self.now = Some(seen);
    }

    fn end_second(&mut self, before: &JobsSeen, now: &JobsSeen, seconds: f64) {
        self.latest.clear();
        let mut second = BTreeMap::new();
        let (mut operations, mut bytes) = (0, 0);
        let mut together = Histogram::new();
        for (place, job) in now.jobs.iter().enumerate() {
            let earlier = before.jobs.iter().find(|b| b.index == job.index);
            let was = earlier.map_or((0, 0), |b| (b.operations, b.bytes.0));
            let latency = earlier.and_then(|b| job.latency.since(&b.latency).ok());
            // What counts from the end of the ramp on begins anew there.
            let latency = latency.unwrap_or_else(|| job.latency.clone());
            let done = job.operations.saturating_sub(was.0);
            let moved = job.bytes.0.saturating_sub(was.1);
            operations += done;
            bytes += moved;
            // Live histograms have one precision, so that merging cannot fail.
            let _ = together.merge(&latency);
            if place < MOST_JOBS {
                let alone = JobSecond::of(done, moved, &latency, seconds);
                second.insert(Some(job.index), alone);
                self.latest.insert(Some(job.index), latency);
            }
        }
        second.insert(None, JobSecond::of(operations, bytes, &together, seconds));
        self.latest.insert(None, together);
        self.seconds.push_back(second);
        if self.seconds.len() > KEPT {
            self.seconds.pop_front();
        }
    }

    /// The jobs that run, as of the last look.
    pub(super) fn jobs(&self) -> &[LiveJob] {
        self.now.as_ref().map_or(&[], |seen| &seen.jobs)
    }

    /// Since the start of the program.
    pub(super) fn elapsed(&self) -> Nanos {
        self.now
            .as_ref()
            .map_or(Nanos::ZERO, |seen| seen.elapsed_ns)
    }

    /// The last seconds of a job, or of all together, oldest first.
    pub(super) fn seconds(&self, which: WhichJob, most: usize) -> Vec<JobSecond> {
        let skipped = self.seconds.len().saturating_sub(most);
        let of = |second: &BTreeMap<WhichJob, JobSecond>| second.get(&which).cloned();
        let seconds = self.seconds.iter().skip(skipped);
        seconds
            .map(|second| of(second).unwrap_or_default())
            .collect()
    }

    /// Latencies of the last second, of a job or of all together.
    pub(super) fn latest(&self, which: WhichJob) -> Histogram {
        self.latest.get(&which).cloned().unwrap_or_default()
    }

    /// All latencies of a job, or of all together, since the start.
    pub(super) fn latency(&self, which: WhichJob) -> Histogram {
        let jobs = self.jobs().iter();
        let of = jobs.filter(|job| which.is_none_or(|of| of == job.index));
        let mut whole = Histogram::new();
        for job in of {
            // As above.
            let _ = whole.merge(&job.latency);
        }
        whole
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use weir_run::execute::LiveState;
    use weir_schema::ByKind;
    use weir_units::Bytes;

    use super::*;

    pub(in crate::live) fn job(index: usize, operations: u64, latency: u64) -> LiveJob {
        let mut histogram = Histogram::new();
        histogram.record_n(latency, operations);
        LiveJob {
            name: format!("job{index}"),
            index,
            workers: 1,
            gone: 0,
            failed: 0,
            released: true,
            state: LiveState::Running,
            elapsed_ns: Nanos::ZERO,
            fraction: Some(0.25),
            operations,
            bytes: Bytes(operations * 4096),
            by_kind: ByKind::default(),
            errors: 0,
            in_flight: 3,
            latency: histogram,
            ranks: None,
        }
    }

    pub(in crate::live) fn seen(millis: u64, jobs: Vec<LiveJob>) -> JobsSeen {
        JobsSeen {
            elapsed_ns: Nanos(millis * 1_000_000),
            jobs: Arc::new(jobs),
        }
    }

    #[test]
    fn a_second_is_what_was_done_between_two_looks() {
        let mut per_second = PerSecond::default();
        per_second.look(seen(100, vec![job(0, 1000, 500)]));
        per_second.look(seen(900, vec![job(0, 1500, 500)]));
        assert!(per_second.seconds(None, 60).is_empty());
        per_second.look(seen(1100, vec![job(0, 3000, 500), job(1, 10, 9000)]));
        let [both] = &per_second.seconds(None, 60)[..] else {
            panic!("one second")
        };
        assert!((both.rate - 2010.0).abs() < 1e-9 && both.p99 < Some(600));
        assert_eq!(both.heat.values().sum::<u64>(), 2010);
        let alone = &per_second.seconds(Some(0), 60)[0];
        assert!((alone.rate - 2000.0).abs() < 1e-9);
        assert_eq!(alone.heat.values().sum::<u64>(), 2000);
        assert_eq!(per_second.latency(None).count(), 3010);
        assert_eq!(per_second.latest(Some(0)).count(), 2000);
        assert_eq!(per_second.latest(None).count(), 2010);
    }

    #[test]
    fn no_more_seconds_are_kept_than_are_shown() {
        let mut per_second = PerSecond::default();
        for second in 0..KEPT as u64 + 50 {
            per_second.look(seen(second * 1000, vec![job(0, second, 10)]));
        }
        assert_eq!(per_second.seconds(None, usize::MAX).len(), KEPT);
        assert_eq!(per_second.seconds(None, 10).len(), 10);
    }

    #[test]
    fn of_very_many_jobs_only_the_first_have_seconds_of_their_own() {
        let all = |operations| (0..100).map(|index| job(index, operations, 10)).collect();
        let mut per_second = PerSecond::default();
        per_second.look(seen(0, all(0)));
        per_second.look(seen(1000, all(7)));
        let rate = |which| per_second.seconds(which, 1)[0].rate.round().to_string();
        assert_eq!(
            [rate(None), rate(Some(63)), rate(Some(64))],
            ["700", "7", "0"]
        );
        assert_eq!(per_second.latest(None).count(), 700);
    }

    #[test]
    fn rows_begin_where_the_one_before_ends() {
        for nanos in [1, 2, 3, 4, 5, 6, 7, 100, 999, 1 << 40] {
            let row = row_of(nanos);
            assert!(least_of(row).0 <= nanos.max(1), "{nanos}");
            assert!(nanos < least_of(row + 1).0 || nanos < 4, "{nanos}");
        }
    }
}
