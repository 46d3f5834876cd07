//! Intervals of several jobs' figures together, from batches that lie side by side.
//!
//! In: the jobs of a group, with the batches of each. Out: their batches together, and a
//! [`Confidence`] per kind. Not here: that of a single job (`confidence`), how wide an interval is
//! (`weir-stats`).

use weir_units::{Nanos, Percent};

use crate::confidence::KindBatches;
use crate::kind::KindName;
use crate::outcome::LoopOutcome;
use crate::result::{Confidence, GroupResult, JobResult, rated_kinds};

/// Jobs that began within this time of each other began together: it is that of a stretch.
const TOGETHER: Nanos = Nanos(10_000_000);

impl GroupResult {
    /// Its figures with their intervals. There are none for a single job, which has its own, nor
    /// for jobs that did not begin together: their rate depends on when they began.
    pub(crate) fn judged(&self) -> Vec<Confidence> {
        if self.jobs.len() < 2 {
            return Vec::new();
        }
        let together = self.batches_together();
        together
            .iter()
            .filter_map(|b| self.judged_kind(b))
            .collect()
    }

    /// Batches of each kind over time; nothing where the jobs did not begin together.
    pub(crate) fn batches_together(&self) -> Vec<KindBatches> {
        if !self.began_together() {
            return Vec::new();
        }
        let kinds = rated_kinds(self.workers()).into_iter();
        let kinds = kinds.chain([KindName::MIXED]);
        kinds.filter_map(|kind| self.batches_of(&kind)).collect()
    }

    fn began_together(&self) -> bool {
        let begins = || self.jobs.iter().map(|job| job.span.map(|s| s.start_ns));
        let first = begins().flatten().min().unwrap_or(Nanos::ZERO);
        let is_with_first = |begin: Nanos| begin.saturating_sub(first) <= TOGETHER;
        begins().all(|begin| begin.is_some_and(is_with_first))
    }

    fn loops(&self) -> impl Iterator<Item = &LoopOutcome> {
        self.jobs.iter().filter_map(|job| job.outcome.of_loop())
    }

    fn batches_of(&self, kind: &KindName) -> Option<KindBatches> {
        let batches = self.loops().flat_map(|done| &done.batches);
        let mut parts = batches.filter(|part| part.kind == *kind);
        let mut sum = parts.next()?.clone();
        for part in parts {
            // Where one has response times and another latencies, they have no distribution together.
            if part.stage != sum.stage {
                return None;
            }
            sum.batches.add_kind(&part.batches).ok()?;
        }
        Some(sum)
    }

    fn judged_kind(&self, together: &KindBatches) -> Option<Confidence> {
        let kind = &together.kind;
        let mut judged = self.loops().flat_map(|done| &done.confidence);
        let judged = judged.find(|c| c.kind == *kind)?;
        let percentiles: Vec<Percent> = judged.percentiles.iter().map(|p| p.percent).collect();
        let workers = self.jobs.iter().flat_map(JobResult::workers);
        let over_time = (together.stage, &together.batches);
        Some(Confidence::of(kind, workers, over_time, &percentiles))
    }
}

#[cfg(test)]
mod tests {
    use weir_stats::{Batch, BatchStore, Histogram};
    use weir_units::Bytes;

    use super::*;
    use crate::confidence::KindBatches;
    use crate::kind::Kind;
    use crate::outcome::Outcome;
    use crate::result::{KindResult, Stage, StageHistogram};
    use crate::sample;

    const STRETCH: Nanos = Nanos(10_000_000);

    /// A job of one worker that began then and did so many reads in each stretch.
    fn job(begin: Nanos, stage: Stage, per_stretch: &[u64]) -> JobResult {
        let mut batches = BatchStore::new(STRETCH, 1);
        let mut whole = Histogram::new();
        for operations in per_stretch {
            let mut histogram = Histogram::new();
            histogram.record_n(1000, *operations);
            whole.merge(&histogram).unwrap();
            let batch = Batch {
                stretches: 1,
                length_ns: STRETCH,
                operations: *operations,
                bytes: Bytes(operations * 4096),
                histogram,
            };
            batches.push(batch).unwrap();
        }
        let length = STRETCH.saturating_mul(per_stretch.len() as u64);
        let span = sample::span(begin, begin.saturating_add(length));
        let mut worker = sample::worker(0, length, vec![KindResult::new(Kind::Read)]);
        worker.span = Some(span);
        worker.kinds[0].operations = whole.count();
        worker.kinds[0].bytes = Bytes(whole.count() * 4096);
        worker.kinds[0].stages = vec![StageHistogram {
            stage,
            histogram: whole,
        }];
        let read: KindName = Kind::Read.into();
        let workers = vec![worker];
        let confidence = Confidence::of(&read, &workers, (stage, &batches), &[Percent(50.0)]);
        JobResult {
            span: Some(span),
            outcome: Outcome::Loop(LoopOutcome {
                workers,
                confidence: vec![confidence],
                batches: vec![KindBatches {
                    kind: read,
                    stage,
                    batches,
                }],
                ..LoopOutcome::default()
            }),
            ..JobResult::not_started("a")
        }
    }

    fn group(jobs: Vec<JobResult>) -> GroupResult {
        GroupResult {
            jobs,
            ..GroupResult::default()
        }
    }

    /// Two jobs of which one has too little in each stretch where the other has too much.
    fn taking_turns() -> [Vec<u64>; 2] {
        let of = |odd: u64| (0..40).map(|at| 100 + 50 * ((at + odd) % 2)).collect();
        [of(0), of(1)]
    }

    #[test]
    fn what_jobs_do_at_the_same_time_is_judged_together() {
        let [a, b] = taking_turns();
        let jobs = vec![
            job(Nanos::ZERO, Stage::Lat, &a),
            job(Nanos(9_000_000), Stage::Lat, &b),
        ];
        let judged = group(jobs).judged();
        let [read] = judged.as_slice() else {
            panic!("{judged:?}")
        };
        assert_eq!(read.kind, KindName::from(Kind::Read));
        // 250 in each stretch of 10 ms, without exception: together they do not vary.
        let half = read.ops_per_s.half_width().unwrap();
        assert!(half / read.ops_per_s.value < 1e-3, "{read:?}");
        assert!((read.ops_per_s.value / (10_000.0 / 0.409) - 1.0).abs() < 1e-9);
        assert_eq!(read.percentiles.len(), 1);
        let mean = read.mean_latency_ns.unwrap().value;
        assert!((mean - 1000.0).abs() < 1.0, "{mean}");
    }

    #[test]
    fn nothing_is_said_of_one_job_of_late_ones_and_of_unlike_latencies() {
        let [a, b] = taking_turns();
        let of = |begin, stage| job(begin, stage, &b);
        let first = || job(Nanos::ZERO, Stage::Lat, &a);
        assert!(group(vec![first()]).judged().is_empty());
        let late = group(vec![first(), of(Nanos(11_000_000), Stage::Lat)]);
        assert!(late.judged().is_empty());
        let unlike = group(vec![first(), of(Nanos::ZERO, Stage::Rlat)]);
        assert!(unlike.judged().is_empty());
        let never = group(vec![first(), JobResult::not_started("b")]);
        assert!(never.judged().is_empty());
    }
}
