//! The stretches of one job's run, from which its figures know how sure they are.
//!
//! In: live counters and latencies, read when a batch of stretches is whole. Out: a [`BatchStore`]
//! per kind, over all workers. Each batch is as long as the ticks of its own reads say; one that is
//! read late is longer, instead of taken apart by guess. Batches grow with the run, so that reading
//! costs less and less. Not here: the interval series of the report (`sampler`).

use std::sync::Arc;

use weir_schema::{Job, KindName, Stage};
use weir_stats::{Batch, BatchStore, Histogram, HistogramError};
use weir_sys::clock::{Scale, Tick};
use weir_units::{Bytes, Nanos};

use crate::execute::collect::last_done;
use crate::live::{StageRecorder, WorkerLive};
use crate::loop_plan::is_open_loop;

/// Short enough for ten in a run of a fraction of a second. The same on all ranks, whose stretches
/// are put together.
const STRETCH: Nanos = Nanos(10_000_000);
/// Workers whose latencies can be read in each stretch without a load to speak of.
const WORKERS_PER_STRETCH: u32 = 16;

/// The workers of a job, as far as they are measured.
#[derive(Clone)]
pub(super) struct MeasuredWorkers {
    pub(super) lives: Vec<Arc<WorkerLive>>,
    pub(super) begin: Tick,
    pub(super) scale: Scale,
    /// A worker is measured once it has been reset so often.
    pub(super) after_resets: u64,
}

/// Counts of a kind up to an instant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) operations: u64,
    pub(super) bytes: u64,
}

impl MeasuredWorkers {
    /// Counts of a worker's kind. Until it has seen the end of ramp, that is not measured.
    pub(super) fn counts(&self, live: &WorkerLive, kind: usize) -> Counts {
        if !self.is_measured(live) {
            return Counts::default();
        }
        let kind = &live.kinds[kind];
        Counts {
            operations: kind.completed.get(),
            bytes: kind.bytes.get(),
        }
    }

    fn is_measured(&self, live: &WorkerLive) -> bool {
        live.resets() >= self.after_resets
    }

    /// An instant so long after the begin.
    pub(super) fn after(&self, time: Nanos) -> Tick {
        self.begin.after(self.scale.to_ticks(time))
    }

    /// Time at which the last worker was done, once all are: completions after it are not the
    /// job's.
    pub(super) fn end(&self) -> Tick {
        let ends = self.lives.iter().map(|live| last_done(live));
        let all: Option<Vec<Tick>> = ends.collect();
        all.and_then(|all| all.into_iter().max())
            .unwrap_or(Tick(u64::MAX))
    }
}

/// The stretches of each kind.
pub(super) struct Stretches {
    kinds: Vec<KindStretches>,
    /// Stage whose latencies are read.
    stage: Stage,
    /// The instant of the last read.
    last: Tick,
}

struct KindStretches {
    number: usize,
    name: KindName,
    store: BatchStore,
    /// As of the last read, over all workers.
    counts: Counts,
    latencies: Histogram,
}

impl Stretches {
    /// Of a job in a run with so many workers.
    pub(super) fn new(job: &Job, workers_of_run: u32, begin: Tick) -> Self {
        let stage = if is_open_loop(job) {
            Stage::Rlat
        } else {
            Stage::Lat
        };
        let per_batch = workers_of_run
            .div_ceil(WORKERS_PER_STRETCH)
            .next_power_of_two();
        let declared = job.workload.kinds().iter().enumerate();
        let rated = declared.filter(|(_, kind)| !kind.is_aside);
        let kinds = rated.map(|(number, kind)| KindStretches {
            number,
            name: KindName::from(kind),
            store: BatchStore::new(STRETCH, per_batch.into()),
            counts: Counts::default(),
            latencies: Histogram::new(),
        });
        Self {
            kinds: kinds.collect(),
            stage,
            last: begin,
        }
    }

    /// The stage whose latencies the batches hold.
    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Each kind with its batches.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&KindName, &BatchStore)> {
        self.kinds.iter().map(|kind| (&kind.name, &kind.store))
    }

    /// All kinds as one: they are read together, so that their batches are of the same stretches.
    pub(super) fn mixed(&self) -> Option<(KindName, BatchStore)> {
        let (first, others) = self.kinds.split_first()?;
        let mut sum = first.store.clone();
        for kind in others {
            sum.add_kind(&kind.store).ok()?;
        }
        Some((KindName::MIXED, sum))
    }

    /// Time at which the present batch is whole.
    pub(super) fn next_tick(&self, workers: &MeasuredWorkers) -> Option<Tick> {
        let store = &self.kinds.first()?.store;
        Some(workers.after(STRETCH.saturating_mul(store.next_end())))
    }

    /// Reads a batch, if one is whole.
    pub(super) fn read_if_due(&mut self, workers: &MeasuredWorkers, seen: Tick) {
        if self.next_tick(workers).is_some_and(|due| due <= seen) {
            self.read(workers, seen);
        }
    }

    /// Reads the stretches that are whole, at the end of the run too few for a batch.
    pub(super) fn read(&mut self, workers: &MeasuredWorkers, seen: Tick) {
        let stretches = self.whole_since_last(workers, seen);
        if stretches > 0 {
            self.read_all(workers, seen, |store, batch| {
                store.push(Batch { stretches, ..batch })
            });
        }
    }

    /// Reads what is left at the end of the run.
    pub(super) fn finish(&mut self, workers: &MeasuredWorkers, seen: Tick) {
        if self.whole_since_last(workers, seen) > 0 {
            self.read(workers, seen);
        } else {
            self.read_all(workers, seen, BatchStore::extend);
        }
    }

    fn whole_since_last(&self, workers: &MeasuredWorkers, seen: Tick) -> u64 {
        let since_begin = workers.scale.to_nanos(seen.since(workers.begin));
        let before = self.kinds.first().map_or(0, |kind| kind.store.seen());
        (since_begin / STRETCH.0).saturating_sub(before)
    }

    fn read_all(
        &mut self,
        workers: &MeasuredWorkers,
        seen: Tick,
        add: impl Fn(&mut BatchStore, Batch) -> Result<(), HistogramError>,
    ) {
        let length_ns = Nanos(workers.scale.to_nanos(seen.since(self.last)));
        if length_ns == Nanos::ZERO {
            return;
        }
        for kind in &mut self.kinds {
            let (operations, bytes) = kind.counts_since_last(workers);
            let batch = Batch {
                stretches: 0,
                length_ns,
                operations,
                bytes: Bytes(bytes),
                histogram: kind.latencies_since_last(workers, self.stage),
            };
            // Precision is the same throughout, so joining batches cannot fail.
            let _ = add(&mut kind.store, batch);
        }
        self.last = seen;
    }
}

impl KindStretches {
    fn counts_since_last(&mut self, workers: &MeasuredWorkers) -> (u64, u64) {
        let counts = workers
            .lives
            .iter()
            .map(|live| workers.counts(live, self.number));
        let now = counts.fold(Counts::default(), |a, b| Counts {
            operations: a.operations + b.operations,
            bytes: a.bytes + b.bytes,
        });
        let before = std::mem::replace(&mut self.counts, now);
        (
            now.operations.saturating_sub(before.operations),
            now.bytes.saturating_sub(before.bytes),
        )
    }

    fn latencies_since_last(&mut self, workers: &MeasuredWorkers, stage: Stage) -> Histogram {
        let mut now = Histogram::new();
        // A job has recorders for kinds that it never does as well, which need not be read.
        let is_done = self.counts.operations > 0;
        let measured = workers
            .lives
            .iter()
            .filter(|live| is_done && workers.is_measured(live));
        for live in measured {
            let kind = &live.kinds[self.number];
            let recorder: &StageRecorder = match stage {
                Stage::Rlat => &kind.rlat,
                _ => &kind.lat,
            };
            if let Some(histogram) = recorder.snapshot() {
                // As above.
                let _ = now.merge(&histogram);
            }
        }
        // After the end of ramp the counts start anew; then everything is since the last.
        let since = now.since(&self.latencies).unwrap_or_else(|_| now.clone());
        self.latencies = now;
        since
    }
}

#[cfg(test)]
mod tests {
    use weir_schema::sample::{JobSample, block_job};
    use weir_schema::{ByKind, Kind, Schedule};

    use super::*;
    use crate::execute::sampler::tests::{MS, done, live};

    fn workers(lives: &[Arc<WorkerLive>]) -> MeasuredWorkers {
        MeasuredWorkers {
            lives: lives.to_vec(),
            begin: Tick(0),
            scale: Scale::IDENTITY,
            after_resets: 0,
        }
    }

    fn stretches(workers_of_run: u32) -> Stretches {
        Stretches::new(&block_job("a"), workers_of_run, Tick(0))
    }

    /// (stretches, length in ms, operations) of each batch of reads.
    fn batches(stretches: &Stretches) -> Vec<(u64, u64, u64)> {
        let (_, reads) = stretches.kinds().next().unwrap();
        let of = |b: &Batch| (b.stretches, b.length_ns.0 / MS, b.operations);
        reads.batches().iter().map(of).collect()
    }

    #[test]
    fn a_stretch_is_as_long_as_its_own_reads_are_apart() {
        let live = live();
        let (workers, mut read) = (workers(&[Arc::clone(&live)]), stretches(1));
        for at in [5, 10, 13, 24, 30, 75, 80] {
            done(&live, 1);
            read.read_if_due(&workers, Tick(at * MS));
        }
        // At 5 and 13 none was whole; at 75 four were.
        let expected = [(1, 10, 2), (1, 14, 2), (1, 6, 1), (4, 45, 1), (1, 5, 1)];
        assert_eq!(batches(&read), expected);
        let (_, reads) = read.kinds().next().unwrap();
        let recorded = reads.batches().iter().map(|b| b.histogram.count());
        assert_eq!(recorded.sum::<u64>(), 7);
    }

    #[test]
    fn batches_grow_with_the_run_and_are_read_less_often() {
        let live = live();
        let (workers, mut read) = (workers(&[Arc::clone(&live)]), stretches(1));
        let mut reads = 0;
        while let Some(due) = read
            .next_tick(&workers)
            .filter(|due| *due <= Tick(30_000 * MS))
        {
            done(&live, 3);
            read.read_if_due(&workers, due);
            reads += 1;
        }
        assert!((100..=200).contains(&batches(&read).len()));
        assert!(reads < 700, "{reads}");
    }

    #[test]
    fn the_stretches_of_many_workers_are_longer_from_the_begin() {
        let workers = workers(&[live()]);
        let first = |of_run| stretches(of_run).next_tick(&workers).unwrap();
        let expected = [10, 10, 20, 40, 2560].map(|ms| Tick(ms * MS));
        assert_eq!([1, 16, 17, 64, 4000].map(first), expected);
    }

    #[test]
    fn nothing_is_read_after_the_last_worker_was_done() {
        let live = live();
        let (workers, mut read) = (workers(&[Arc::clone(&live)]), stretches(1));
        done(&live, 10);
        live.last_done.set(25 * MS);
        read.read(&workers, Tick(900 * MS).min(workers.end()));
        assert_eq!(batches(&read), [(2, 25, 10)]);
    }

    #[test]
    fn what_came_after_the_last_stretch_is_in_the_last_batch() {
        let live = live();
        let (workers, mut read) = (workers(&[Arc::clone(&live)]), stretches(1));
        for (at, operations) in [(10, 3), (13, 4)] {
            done(&live, operations);
            read.read_if_due(&workers, Tick(at * MS));
        }
        read.finish(&workers, Tick(13 * MS));
        assert_eq!(batches(&read), [(1, 13, 7)]);
        read.finish(&workers, Tick(13 * MS));
        assert_eq!(batches(&read), [(1, 13, 7)]);
    }

    #[test]
    fn what_was_done_in_the_ramp_is_in_no_stretch() {
        let live = live();
        let ramping = MeasuredWorkers {
            after_resets: 1,
            ..workers(&[Arc::clone(&live)])
        };
        let mut read = stretches(1);
        done(&live, 100);
        read.read_if_due(&ramping, Tick(10 * MS));
        live.reset();
        done(&live, 7);
        read.read_if_due(&ramping, Tick(20 * MS));
        assert_eq!(batches(&read), [(1, 10, 0), (1, 10, 7)]);
    }

    #[test]
    fn after_counts_began_anew_everything_is_since_then() {
        let live = live();
        let (workers, mut read) = (workers(&[Arc::clone(&live)]), stretches(1));
        done(&live, 100);
        read.read_if_due(&workers, Tick(10 * MS));
        live.reset();
        done(&live, 7);
        read.read_if_due(&workers, Tick(20 * MS));
        let (_, reads) = read.kinds().next().unwrap();
        let recorded = reads.batches().iter().map(|b| b.histogram.count());
        assert_eq!(recorded.collect::<Vec<_>>(), [100, 7]);
    }

    #[test]
    fn an_open_loop_is_as_sure_as_its_latencies_from_intended_starts() {
        let mut job = block_job("a");
        let stage = |job: &Job| Stretches::new(job, 1, Tick(0)).stage();
        assert_eq!(stage(&job), Stage::Lat);
        job.load_mut().pacing.schedule = Some(Schedule::OpsPerSecond {
            limit_per_s: ByKind::default(),
            poisson: false,
            open_loop: true,
            ignore_thinktime: false,
        });
        assert_eq!(stage(&job), Stage::Rlat);
    }

    #[test]
    fn kinds_that_come_along_have_no_stretches() {
        let read = stretches(1);
        let names: Vec<&KindName> = read.kinds().map(|(name, _)| name).collect();
        let rated = [Kind::Read, Kind::Write, Kind::Trim].map(KindName::from);
        assert_eq!(names, rated.iter().collect::<Vec<_>>());
    }
}
