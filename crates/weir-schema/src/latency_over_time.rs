//! Latencies over time: what a result keeps of a run's batches, after its intervals of confidence are known.
//!
//! In: the batches of a kind, over all workers and ranks. Out: [`LatencyOverTime`], some hundred
//! intervals with percentiles and counts by row, a few hundred bytes each. Not here: how sure figures
//! are (`confidence`), rates over time, which each worker has for itself (`KindResult::series`).

use serde::{Deserialize, Serialize};
use weir_stats::{Batch, RowCounts};
use weir_units::{JsonSchema, Nanos};

use crate::confidence::KindBatches;
use crate::kind::KindName;
use crate::outcome::LoopOutcome;
use crate::result::{GroupResult, JobResult, RunResult, Stage};

/// Of all jobs and kinds together, so that a result of many jobs stays small.
const INTERVALS: usize = 4000;
/// However many there are, each keeps a picture.
const LEAST: usize = 20;

/// The latencies of a kind in each interval of a run, over all workers and ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyOverTime {
    /// Kind of operation.
    pub kind: KindName,
    /// The stage whose latencies these are.
    pub stage: Stage,
    /// From the begin of the measured time on, each from the end of the one before.
    pub intervals: Vec<LatencyInterval>,
}

/// The latencies of an interval; without percentiles where nothing completed in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyInterval {
    /// Its end, from the begin of the measured time.
    pub end_ns: Nanos,
    /// The sum of its latencies.
    pub sum_ns: Nanos,
    /// Half of its operations took at most so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<Nanos>,
    /// 99 of 100 took at most so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<Nanos>,
    /// 999 of 1000 took at most so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<Nanos>,
    /// The longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<Nanos>,
    /// Number of operations in each row of latencies.
    pub rows: RowCounts,
}

impl LatencyInterval {
    /// Latencies of a batch that ends then.
    pub fn of(batch: &Batch, end_ns: Nanos) -> Self {
        let histogram = &batch.histogram;
        let at = |p| histogram.percentile(p).map(Nanos);
        Self {
            end_ns,
            sum_ns: Nanos(u64::try_from(histogram.sum()).unwrap_or(u64::MAX)),
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            max_ns: histogram.max().map(Nanos),
            rows: RowCounts::of(histogram),
        }
    }
}

impl LatencyOverTime {
    /// In so many intervals and perhaps one that is not whole; nothing where no latency was recorded, or all at
    /// the end.
    pub(crate) fn of(batches: &KindBatches, most: usize) -> Option<Self> {
        batches.batches.seen_over_time().ok()?;
        let mut end = Nanos::ZERO;
        let store = batches.batches.joined(most);
        let intervals = store.all().map(|batch| {
            end = end.saturating_add(batch.length_ns);
            LatencyInterval::of(batch, end)
        });
        let intervals: Vec<LatencyInterval> = intervals.collect();
        let is_any = intervals.iter().any(|interval| interval.max_ns.is_some());
        is_any.then(|| Self {
            kind: batches.kind.clone(),
            stage: batches.stage,
            intervals,
        })
    }

    /// Each interval with its begin.
    pub fn spans(&self) -> impl Iterator<Item = (Nanos, &LatencyInterval)> {
        let ends = self.intervals.iter().map(|interval| interval.end_ns);
        let begins = std::iter::once(Nanos::ZERO).chain(ends);
        begins.zip(&self.intervals)
    }
}

impl RunResult {
    /// Judges what several jobs did together, keeps how latencies went over time, and forgets what
    /// only that and further ranks need: all of them are in.
    pub fn conclude_batches(&mut self) {
        let of_phases =
            |job: &JobResult| -> usize { job.measured().map(|m| m.batches().len()).sum() };
        let of_jobs = self.jobs().map(|job| job.batches().len() + of_phases(job));
        let most = (INTERVALS / of_jobs.sum::<usize>().max(1)).max(LEAST);
        let planned = self.plan.groups.iter().map(Some);
        let planned = planned.chain(std::iter::repeat(None));
        for (group, planned) in self.groups.iter_mut().zip(planned) {
            group.confidence = group.judged();
            let are_one = planned.is_some_and(|g| g.jobs.iter().all(|job| job.report.merge));
            if are_one && group.jobs.len() > 1 {
                let together = group.batches_together();
                let over_time = together.iter().filter_map(|b| LatencyOverTime::of(b, most));
                group.latency_over_time = over_time.collect();
            }
            group.forget_batches(most);
        }
    }
}

impl GroupResult {
    /// Of its own batches each job keeps how its latencies went, unless the group has that of all.
    fn forget_batches(&mut self, most: usize) {
        let is_each = self.latency_over_time.is_empty();
        for job in &mut self.jobs {
            if let Some(done) = job.outcome.of_loop_mut() {
                done.forget_batches(is_each, most);
            }
            for phase in &mut job.phases {
                let measured = phase.measured.iter_mut();
                let loops = measured.filter_map(|measured| measured.outcome.of_loop_mut());
                loops.for_each(|done| done.forget_batches(true, most));
            }
        }
    }
}

impl LoopOutcome {
    fn forget_batches(&mut self, is_kept: bool, most: usize) {
        let batches = std::mem::take(&mut self.batches);
        let kept = batches.iter().filter(|_| is_kept);
        self.latency_over_time = kept
            .filter_map(|batches| LatencyOverTime::of(batches, most))
            .collect();
    }
}

impl JobResult {
    /// Latencies of each kind over time; nothing where the group has those of all its jobs.
    pub fn latency_over_time(&self) -> &[LatencyOverTime] {
        let done = self.outcome.of_loop();
        done.map_or(&[], |done| &done.latency_over_time)
    }

    /// Figures of its phases.
    fn measured(&self) -> impl Iterator<Item = &Self> {
        self.phases
            .iter()
            .filter_map(|phase| phase.measured.as_deref())
    }

    fn batches(&self) -> &[KindBatches] {
        let done = self.outcome.of_loop();
        done.map_or(&[], |done| &done.batches)
    }
}

#[cfg(test)]
mod tests {
    use weir_stats::{BatchStore, Histogram};
    use weir_units::Bytes;

    use super::*;
    use crate::kind::Kind;
    use crate::outcome::Outcome;
    use crate::result::{KindResult, StageHistogram};
    use crate::sample;

    const STRETCH: Nanos = Nanos(10_000_000);

    /// Batch of a rank in a stretch.
    fn batch(rank: u64, stretch: u64) -> Batch {
        let mut histogram = Histogram::new();
        for i in 0..20 + (stretch * (rank + 3)) % 7 {
            histogram.record(1000 + (i * 37 + stretch * 101 + rank * 13) % 997);
        }
        histogram.record((rank + 1) << 20);
        Batch {
            stretches: 1,
            length_ns: STRETCH,
            operations: histogram.count(),
            bytes: Bytes(0),
            histogram,
        }
    }

    /// A job of one rank and its worker's latencies.
    fn job(rank: u64, stretches: u64) -> JobResult {
        let (mut batches, mut whole) = (BatchStore::new(STRETCH, 1), Histogram::new());
        for stretch in 0..stretches {
            let batch = batch(rank, stretch);
            whole.merge(&batch.histogram).unwrap();
            batches.push(batch).unwrap();
        }
        let length = STRETCH.saturating_mul(stretches);
        let mut worker = sample::worker(0, length, vec![KindResult::new(Kind::Read)]);
        worker.kinds[0].operations = whole.count();
        worker.kinds[0].stages = vec![StageHistogram {
            stage: Stage::Lat,
            histogram: whole,
        }];
        let mut job = sample::job_result("a", vec![worker]);
        job.span = Some(sample::span(Nanos::ZERO, length));
        if let Outcome::Loop(done) = &mut job.outcome {
            done.batches = vec![KindBatches {
                kind: Kind::Read.into(),
                stage: Stage::Lat,
                batches,
            }];
        }
        job
    }

    fn result(jobs: Vec<JobResult>, are_one: bool) -> RunResult {
        let planned = jobs.iter().map(|_| {
            let mut planned = sample::block_job("a");
            planned.report.merge = are_one;
            planned
        });
        let planned: Vec<_> = planned.collect();
        let mut result = RunResult::of(sample::plan(vec![planned]));
        result.groups[0].jobs = jobs;
        result
    }

    #[test]
    fn latencies_that_are_known_at_the_end_alone_did_not_happen_there() {
        let mut store = BatchStore::new(STRETCH, 1);
        for stretch in 0..30 {
            let mut batch = batch(0, stretch);
            if stretch < 29 {
                batch.histogram = Histogram::new();
            }
            store.push(batch).unwrap();
        }
        let batches = KindBatches {
            kind: Kind::Read.into(),
            stage: Stage::Lat,
            batches: store,
        };
        assert_eq!(LatencyOverTime::of(&batches, 20), None);
    }

    fn count(over_time: &LatencyOverTime) -> u64 {
        over_time.intervals.iter().map(|i| i.rows.count()).sum()
    }

    fn recorded(job: &JobResult) -> u64 {
        let kinds = job.workers().iter().flat_map(|w| &w.kinds);
        let stages = kinds.filter_map(|kind| kind.stage(Stage::Lat));
        stages.map(Histogram::count).sum()
    }

    #[test]
    fn every_latency_of_every_rank_is_in_an_interval() {
        for stretches in [1, 9, 199, 200, 3001] {
            let mut merged = result(vec![job(0, stretches)], false);
            for rank in 1..4 {
                // As from another process, one of which ended a little later.
                let other = result(vec![job(rank, stretches + rank / 3)], false);
                let text = other.to_json().unwrap();
                merged
                    .merge(RunResult::from_rank(text.as_bytes()).unwrap())
                    .unwrap();
            }
            merged.conclude_batches();
            let job = &merged.groups[0].jobs[0];
            let [over_time] = job.latency_over_time() else {
                panic!("{job:?}")
            };
            assert_eq!(count(over_time), recorded(job), "{stretches}");
            assert!(job.batches().is_empty() && over_time.intervals.len() <= 201);
            let ends: Vec<Nanos> = over_time.intervals.iter().map(|i| i.end_ns).collect();
            assert!(ends.is_sorted() && ends[0] > Nanos::ZERO);
            let length = STRETCH.saturating_mul(stretches);
            let last = ends.last().copied().unwrap();
            assert!(last >= length && last.0 - length.0 <= STRETCH.0, "{last:?}");
        }
    }

    #[test]
    fn an_interval_has_the_percentiles_of_its_latencies() {
        let mut merged = result(vec![job(0, 3)], false);
        merged.conclude_batches();
        let over_time = &merged.groups[0].jobs[0].latency_over_time()[0];
        let second = &over_time.intervals[1];
        let histogram = batch(0, 1).histogram;
        assert_eq!(second.end_ns, Nanos(2 * STRETCH.0));
        assert_eq!(second.p50_ns.map(|ns| ns.0), histogram.percentile(50.0));
        assert_eq!(second.p99_ns.map(|ns| ns.0), histogram.percentile(99.0));
        assert_eq!(second.max_ns, Some(Nanos(1 << 20)));
        assert_eq!(u128::from(second.sum_ns.0), histogram.sum());
        let begins: Vec<u64> = over_time.spans().map(|(begin, _)| begin.0).collect();
        assert_eq!(begins, [0, STRETCH.0, 2 * STRETCH.0]);
    }

    #[test]
    fn jobs_that_are_reported_as_one_have_theirs_together_alone() {
        let jobs = || vec![job(0, 50), job(1, 50)];
        let of = |are_one| {
            let mut result = result(jobs(), are_one);
            result.conclude_batches();
            result.groups.remove(0)
        };
        let (one, each) = (of(true), of(false));
        let all: u64 = one.jobs.iter().map(recorded).sum();
        assert_eq!(one.latency_over_time.iter().map(count).sum::<u64>(), all);
        assert!(
            one.jobs
                .iter()
                .all(|job| job.latency_over_time().is_empty())
        );
        assert!(each.latency_over_time.is_empty());
        for job in &each.jobs {
            assert_eq!(count(&job.latency_over_time()[0]), recorded(job));
        }
    }

    #[test]
    fn many_jobs_have_fewer_intervals_each() {
        let mut many = result(vec![job(0, 200); 100], false);
        many.conclude_batches();
        let of = |job: &JobResult| job.latency_over_time()[0].intervals.len();
        let all: Vec<usize> = many.jobs().map(of).collect();
        assert!(all.iter().all(|n| (LEAST..=40).contains(n)), "{all:?}");
        let text = many.to_json().unwrap();
        assert_eq!(RunResult::from_json(&text).unwrap(), many);
    }

    #[test]
    fn what_recorded_no_latency_has_nothing_over_time() {
        let mut silent = job(0, 20);
        if let Outcome::Loop(done) = &mut silent.outcome {
            let mut batches = BatchStore::new(STRETCH, 1);
            let empty = Batch {
                histogram: Histogram::new(),
                ..batch(0, 0)
            };
            batches.push(empty).unwrap();
            done.batches[0].batches = batches;
        }
        let mut result = result(vec![silent], false);
        result.conclude_batches();
        assert!(result.groups[0].jobs[0].latency_over_time().is_empty());
    }
}
