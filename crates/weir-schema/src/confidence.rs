//! Intervals of a loop's figures, from their course over time.
//!
//! In: workers, and the batches of a kind over all of them. Out: [`Confidence`]: the figures
//! themselves, each with the interval that belongs to it. Pure: of several ranks it is made anew
//! from what was merged. Not here: how wide an interval is (`weir-stats`).

use serde::{Deserialize, Serialize};
use weir_stats::{BatchStore, Histogram};
use weir_units::{JsonSchema, Percent};

use crate::kind::KindName;
use crate::merge::MergeError;
use crate::outcome::LoopOutcome;
use crate::rates::total_rate;
use crate::result::{Confidence, KindResult, LatencyPercentile, Stage, WorkerResult, rated_kinds};

/// Batches of a kind, over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindBatches {
    /// Kind of operation.
    pub kind: KindName,
    /// The stage whose latencies they hold.
    pub stage: Stage,
    /// In order of time.
    pub batches: BatchStore,
}

impl Confidence {
    /// Of what these workers did of a kind; the percentiles are of the batches' stage.
    pub fn of<'a>(
        kind: &KindName,
        workers: impl IntoIterator<Item = &'a WorkerResult>,
        (stage, batches): (Stage, &BatchStore),
        percentiles: &[Percent],
    ) -> Self {
        let workers: Vec<&WorkerResult> = workers.into_iter().collect();
        let parts = workers.iter().flat_map(|w| &w.kinds);
        let of_kind: Vec<&KindResult> = parts.filter(|k| kind.covers(&k.kind)).collect();
        let spans = || workers.iter().filter_map(|w| w.span);
        let total = |count: fn(&KindResult) -> u64| of_kind.iter().map(|k| count(k)).sum();
        let (operations, bytes): (u64, u64) = (total(|k| k.operations), total(|k| k.bytes.0));
        let mut whole = Histogram::new();
        for histogram in of_kind.iter().filter_map(|k| k.stage(stage)) {
            // Recorders have one precision, so merging cannot fail.
            let _ = whole.merge(histogram);
        }
        let batches = &batches.for_estimates();
        let wanted: Vec<f64> = percentiles.iter().map(|p| p.0).collect();
        let found = batches.percentiles(&whole, &wanted).into_iter();
        Self {
            kind: kind.clone(),
            ops_per_s: batches.operations_per_second(total_rate(operations, spans()).0),
            bytes_per_s: (bytes > 0)
                .then(|| batches.bytes_per_second(total_rate(bytes, spans()).0)),
            slow: batches.rate().is_ok_and(|rate| rate.is_slow()),
            latency_stage: whole.mean().map(|_| stage),
            mean_latency_ns: whole.mean().map(|mean| batches.mean(mean)),
            percentiles: found
                .map(|(p, value_ns)| LatencyPercentile {
                    stage,
                    percent: Percent(p),
                    value_ns,
                    few_samples: whole.few_samples(p),
                })
                .collect(),
        }
    }
}

impl LoopOutcome {
    /// Takes the batches of further ranks in; all workers are merged already.
    pub(crate) fn merge_batches(
        &mut self,
        batches: Vec<KindBatches>,
        confidence: Vec<Confidence>,
    ) -> Result<(), MergeError> {
        for theirs in batches {
            match self.batches.iter_mut().find(|b| b.kind == theirs.kind) {
                Some(mine) => mine.batches.merge(&theirs.batches)?,
                None => self.batches.push(theirs),
            }
        }
        let before = std::mem::take(&mut self.confidence);
        let before: Vec<Confidence> = before.into_iter().chain(confidence).collect();
        let kinds = rated_kinds(self.workers.iter()).into_iter();
        let kinds = kinds.chain([KindName::MIXED]);
        let judged = kinds.filter_map(|kind| {
            let of_kind = self.batches.iter().find(|b| b.kind == kind)?;
            let asked = before.iter().filter(|c| c.kind == kind);
            let asked = asked.max_by_key(|c| c.percentiles.len())?;
            let percentiles: Vec<Percent> = asked.percentiles.iter().map(|p| p.percent).collect();
            let over_time = (of_kind.stage, &of_kind.batches);
            Some(Confidence::of(
                &kind,
                &self.workers,
                over_time,
                &percentiles,
            ))
        });
        self.confidence = judged.collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use weir_stats::{Batch, Estimate};
    use weir_units::{Bytes, Nanos};

    use super::*;
    use crate::kind::Kind;
    use crate::outcome::Outcome;
    use crate::result::JobResult;
    use crate::sample;

    const STRETCH: Nanos = Nanos(10_000_000);
    const STRETCHES: u64 = 40;
    const WANTED: [Percent; 3] = [Percent(50.0), Percent(90.0), Percent(99.0)];

    /// The latencies that a rank saw in a stretch.
    fn latencies(rank: u64, stretch: u64) -> Histogram {
        let mut histogram = Histogram::new();
        for i in 0..100 + (stretch * (rank + 3)) % 7 {
            histogram.record(1000 + (i * 37 + stretch * 101 + rank * 13) % 997);
        }
        histogram
    }

    /// Batches and histogram of these ranks as one.
    fn seen(ranks: std::ops::Range<u64>) -> (BatchStore, Histogram) {
        let (mut store, mut whole) = (BatchStore::new(STRETCH, 1), Histogram::new());
        for stretch in 0..STRETCHES {
            let mut histogram = Histogram::new();
            for rank in ranks.clone() {
                histogram.merge(&latencies(rank, stretch)).unwrap();
            }
            whole.merge(&histogram).unwrap();
            let batch = Batch {
                stretches: 1,
                length_ns: STRETCH,
                operations: histogram.count(),
                bytes: Bytes(histogram.count() * 4096),
                histogram,
            };
            store.push(batch).unwrap();
        }
        (store, whole)
    }

    /// A job of these ranks, judged by what they saw as one.
    fn job(ranks: std::ops::Range<u64>) -> JobResult {
        let (batches, whole) = seen(ranks);
        let time = STRETCH.saturating_mul(STRETCHES);
        let kind = sample::kind(Kind::Read, whole.count(), time, &[(Stage::Lat, whole)]);
        let workers = vec![sample::worker(0, time, vec![kind])];
        let read = KindName::from(Kind::Read);
        let confidence = Confidence::of(&read, &workers, (Stage::Lat, &batches), &WANTED);
        let batches = KindBatches {
            kind: read,
            stage: Stage::Lat,
            batches,
        };
        let mut job = sample::job_result("a", Vec::new());
        job.outcome = Outcome::Loop(LoopOutcome {
            workers,
            confidence: vec![confidence],
            batches: vec![batches],
            ..LoopOutcome::default()
        });
        job
    }

    fn group(job: JobResult) -> crate::result::GroupResult {
        crate::result::GroupResult {
            jobs: vec![job],
            ..Default::default()
        }
    }

    #[test]
    fn four_ranks_are_as_sure_as_one_that_saw_all() {
        let mut merged = group(job(0..1));
        for rank in 1..4 {
            // As from another process.
            let text = serde_json::to_string(&group(job(rank..rank + 1))).unwrap();
            merged.merge(serde_json::from_str(&text).unwrap()).unwrap();
        }
        let (found, expected) = (&merged.jobs[0], &job(0..4));
        assert_eq!(found.confidence(), expected.confidence());
        let sure = &found.confidence()[0];
        let is_sure = |e: &Estimate| e.half_width().is_some_and(|half| half > 0.0);
        assert!(is_sure(&sure.ops_per_s) && sure.bytes_per_s.is_some_and(|e| is_sure(&e)));
        assert!(sure.mean_latency_ns.is_some_and(|e| is_sure(&e)));
        let percents: Vec<f64> = sure.percentiles.iter().map(|p| p.percent.0).collect();
        assert_eq!(percents, [50.0, 90.0, 99.0]);
        assert!(
            sure.percentiles.iter().all(|p| is_sure(&p.value_ns)),
            "{sure:?}"
        );
    }

    #[test]
    fn a_rank_without_batches_leaves_the_others_theirs() {
        let mut merged = group(job(0..1));
        let mut none = job(1..2);
        if let Outcome::Loop(done) = &mut none.outcome {
            (done.batches, done.confidence) = (Vec::new(), Vec::new());
        }
        merged.merge(group(none)).unwrap();
        assert!(
            merged.jobs[0].confidence()[0]
                .ops_per_s
                .half_width()
                .is_some()
        );
    }

    #[test]
    fn the_figures_are_those_of_the_whole_run_and_lie_in_their_intervals() {
        let mut job = job(0..1);
        // The last operations came after the last whole stretch.
        let worker = &mut job.workers_mut()[0];
        worker.kinds[0].operations *= 2;
        worker.kinds[0].bytes = Bytes(worker.kinds[0].bytes.0 * 2);
        let (batches, whole) = seen(0..1);
        let over_time = (Stage::Lat, &batches);
        let sure = Confidence::of(&Kind::Read.into(), job.workers(), over_time, &WANTED);
        let (rate, bytes) = (sure.ops_per_s, sure.bytes_per_s.unwrap());
        let twice = f64::from(u32::try_from(whole.count() * 2).unwrap());
        assert!((rate.value - twice / 0.4).abs() < 1e-6, "{rate:?}");
        for e in [rate, bytes, sure.mean_latency_ns.unwrap()] {
            assert!(e.low <= Some(e.value) && Some(e.value) <= e.high, "{e:?}");
        }
    }

    #[test]
    fn kinds_that_are_one_are_as_sure_as_their_sum() {
        let time = STRETCH.saturating_mul(STRETCHES);
        let (mut store, reads) = seen(0..1);
        let (others, writes) = seen(1..2);
        store.add_kind(&others).unwrap();
        let parts = [
            (Kind::Read, reads),
            (Kind::Write, writes),
            (Kind::Sync, Histogram::new()),
        ];
        let kinds = parts.map(|(kind, whole)| {
            let done = if kind == Kind::Sync { 7 } else { whole.count() };
            sample::kind(kind, done, time, &[(Stage::Lat, whole)])
        });
        let workers = vec![sample::worker(0, time, kinds.to_vec())];
        let mixed = Confidence::of(&KindName::MIXED, &workers, (Stage::Lat, &store), &WANTED);
        let (batches, whole) = seen(0..2);
        let one = sample::kind(Kind::Read, whole.count(), time, &[(Stage::Lat, whole)]);
        let workers = vec![sample::worker(0, time, vec![one])];
        let read = KindName::from(Kind::Read);
        let mut sum = Confidence::of(&read, &workers, (Stage::Lat, &batches), &WANTED);
        sum.kind = KindName::MIXED;
        assert_eq!(mixed, sum);
    }

    #[test]
    fn a_rate_that_drifts_is_slow() {
        let mut store = BatchStore::new(STRETCH, 1);
        for operations in 100..140 {
            let batch = Batch {
                stretches: 1,
                length_ns: STRETCH,
                operations,
                ..Batch::default()
            };
            store.push(batch).unwrap();
        }
        let slow = |store| {
            let job = job(0..1);
            Confidence::of(&Kind::Read.into(), job.workers(), (Stage::Lat, store), &[]).slow
        };
        assert!(slow(&store) && !slow(&seen(0..1).0));
    }
}
