//! The sampler of one job: reads the workers' counters at common instants and turns differences
//! into interval series, batches for confidence intervals, and bandwidth samples.
//!
//! In: live counters, the tick of the end of ramp. Out: [`Sampled`]. Instants are aligned to the
//! end of ramp, the same for every worker. Not here: reading more often than asked, results.

use std::sync::Arc;

use weir_schema::{Job, Recording};
use weir_stats::{Batch, BatchStore, Histogram, Moments, Series};
use weir_sys::clock::{Scale, Tick};
use weir_units::{Bytes, Nanos};

use crate::execute::collect::last_done;
use crate::live::WorkerLive;
use crate::loop_plan::is_open_loop;

/// What was sampled of a job.
pub(super) struct Sampled {
    /// By worker, by kind.
    pub(super) workers: Vec<Vec<KindSamples>>,
    /// By kind, over all workers.
    pub(super) batches: Vec<BatchStore>,
}

/// What was sampled of one kind of one worker.
#[derive(Clone, Debug)]
pub(super) struct KindSamples {
    pub(super) series: Series,
    pub(super) bandwidth: Moments,
    pub(super) iops: Moments,
    last: Counts,
    bytes_in_sample: u64,
    operations_in_sample: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    operations: u64,
    bytes: u64,
}

/// A part of something, by time.
#[derive(Clone, Copy, Debug)]
struct Part {
    of: u64,
    whole: u64,
}

impl Part {
    const ALL: Self = Self { of: 1, whole: 1 };

    /// That part of so many, rounded.
    fn of(self, count: u64) -> u64 {
        if self.of >= self.whole {
            return count;
        }
        let (of, whole) = (u128::from(self.of), u128::from(self.whole));
        let part = (u128::from(count) * of + whole / 2) / whole;
        u64::try_from(part).unwrap_or(count)
    }
}

/// The sampler of one job.
pub(super) struct JobSampler {
    lives: Vec<Arc<WorkerLive>>,
    begin: Tick,
    scale: Scale,
    interval: Nanos,
    /// A worker is measured once it has been reset so often.
    after_resets: u64,
    open_loop: bool,
    ticks_seen: u64,
    /// Intervals per bandwidth and per IOPS sample.
    per_sample: [u64; 2],
    sampled: Sampled,
    merged: Vec<Histogram>,
    /// Numbers of the kinds that are part of the rates.
    rated: Vec<usize>,
}

impl JobSampler {
    pub(super) fn new(job: &Job, lives: Vec<Arc<WorkerLive>>, begin: Tick, scale: Scale) -> Self {
        Self {
            after_resets: u64::from(job.load().bounds.ramp_ns.0 > 0),
            open_loop: is_open_loop(job),
            ..Self::of(job, lives, begin, scale)
        }
    }

    /// Of a closed loop without a ramp.
    fn of(job: &Job, lives: Vec<Arc<WorkerLive>>, begin: Tick, scale: Scale) -> Self {
        let (recording, kinds) = (&job.load().recording, job.workload.kinds());
        let rated = (0..kinds.len()).filter(|kind| !kinds[*kind].is_aside);
        let interval = Nanos(recording.interval_ns.0.max(1_000_000));
        let samples = KindSamples {
            series: Series::new(interval),
            bandwidth: Moments::default(),
            iops: Moments::default(),
            last: Counts::default(),
            bytes_in_sample: 0,
            operations_in_sample: 0,
        };
        let per_kind = vec![samples; kinds.len()];
        Self {
            sampled: Sampled {
                workers: vec![per_kind; lives.len()],
                batches: kinds.iter().map(|_| BatchStore::new(interval)).collect(),
            },
            lives,
            begin,
            scale,
            interval,
            after_resets: 0,
            open_loop: false,
            ticks_seen: 0,
            per_sample: samples_of(recording).map(|length| (length.0 / interval.0).max(1)),
            merged: vec![Histogram::new(); kinds.len()],
            rated: rated.collect(),
        }
    }

    /// A sampler of what comes after another reset.
    pub(super) fn anew(self, job: &Job, lives: Vec<Arc<WorkerLive>>, begin: Tick) -> Self {
        let after_resets = 1 + u64::from(job.load().bounds.ramp_ns.0 > 0);
        if self.after_resets == after_resets {
            return self;
        }
        Self {
            after_resets,
            ..Self::new(job, lives, begin, self.scale)
        }
    }

    /// The instant of the next sample; none once all workers are done, though their threads may
    /// take a while to say so.
    pub(super) fn next_tick(&self) -> Option<Tick> {
        let next = self.tick(self.ticks_seen + 1);
        (next <= self.end()).then_some(next)
    }

    /// The end of an interval, by its number from 1.
    fn tick(&self, number: u64) -> Tick {
        let nanos = self.interval.0.saturating_mul(number);
        self.begin.after(self.scale.to_ticks(Nanos(nanos)))
    }

    /// Takes the samples that are due. Several that are due at once are one read: nobody saw when
    /// what was done since the last was done, so that each has its share by time.
    pub(super) fn sample(&mut self, now: Tick) {
        let seen = now.min(self.end());
        let is_late = self.tick(self.ticks_seen + 2) <= seen;
        while self.tick(self.ticks_seen + 1) <= seen {
            self.ticks_seen += 1;
            self.take_interval(is_late.then_some(seen));
        }
    }

    /// How much of what a worker did until then, and no interval has, is of the present one.
    fn part(&self, live: &WorkerLive, seen: Tick) -> Part {
        let until = last_done(live).map_or(seen, |end| end.min(seen));
        let until = self.scale.to_nanos(until.since(self.begin));
        let from = self.interval.0.saturating_mul(self.ticks_seen - 1);
        Part {
            of: self.interval.0,
            whole: until.saturating_sub(from),
        }
    }

    /// When the last worker was done, once all are: intervals after it are not the job's.
    fn end(&self) -> Tick {
        let ends = self.lives.iter().map(|live| last_done(live));
        let all: Option<Vec<Tick>> = ends.collect();
        all.and_then(|all| all.into_iter().max())
            .unwrap_or(Tick(u64::MAX))
    }

    /// Takes an interval; where it was read late, of what was done until then.
    fn take_interval(&mut self, late: Option<Tick>) {
        let seconds = self.interval.as_secs_f64();
        let ticks = self.ticks_seen;
        // The length of a sample in seconds, where one ends.
        let ends = self
            .per_sample
            .map(|n| ticks.is_multiple_of(n).then_some(seconds * n as f64));
        let parts = self.lives.iter().map(|live| match late {
            Some(seen) => self.part(live, seen),
            None => Part::ALL,
        });
        let parts: Vec<Part> = parts.collect();
        let mut sums = vec![Counts::default(); self.merged.len()];
        let workers = self.lives.iter().zip(&mut self.sampled.workers);
        for ((live, samples), part) in workers.zip(parts) {
            let ramping = live.resets() < self.after_resets;
            for &kind in &self.rated {
                // Until the worker has seen the end of ramp, what it did is not measured.
                let now = if ramping {
                    Counts::default()
                } else {
                    counts(live, kind)
                };
                let done = samples[kind].advance(now, part, ends);
                sums[kind].operations += done.operations;
                sums[kind].bytes += done.bytes;
            }
        }
        for kind in self.rated.clone() {
            let most = late.map(|_| sums[kind].operations);
            let histogram = self.latencies_since_last(kind, most);
            let batch = Batch {
                operations: sums[kind].operations,
                bytes: Bytes(sums[kind].bytes),
                histogram,
            };
            // Precision is the same throughout, so joining batches cannot fail.
            let _ = self.sampled.batches[kind].push(batch);
        }
    }

    /// Latencies of this kind since the last sample, over all workers; so many of them.
    fn latencies_since_last(&mut self, kind: usize, most: Option<u64>) -> Histogram {
        let mut merged = Histogram::new();
        let measured = |live: &&Arc<WorkerLive>| live.resets() >= self.after_resets;
        for live in self.lives.iter().filter(measured) {
            let stage = if self.open_loop {
                &live.kinds[kind].rlat
            } else {
                &live.kinds[kind].lat
            };
            if let Some(histogram) = stage.snapshot() {
                // As above.
                let _ = merged.merge(&histogram);
            }
        }
        // After the end of ramp the counts start anew; then everything is since the last.
        let since = merged.since(&self.merged[kind]).unwrap_or_else(|_| {
            self.merged[kind] = Histogram::new();
            merged.clone()
        });
        match most {
            None => {
                self.merged[kind] = merged;
                since
            }
            Some(most) => {
                let share = since.share(most);
                // As above.
                let _ = self.merged[kind].merge(&share);
                share
            }
        }
    }

    /// What was sampled so far.
    pub(super) fn so_far(&self) -> &Sampled {
        &self.sampled
    }

    /// The last, partial interval, and everything.
    pub(super) fn finish(mut self, now: Tick) -> Sampled {
        self.sample(now);
        for (live, samples) in self.lives.iter().zip(&mut self.sampled.workers) {
            let end = last_done(live).unwrap_or(now).max(self.begin);
            let length = self.scale.to_nanos(end.since(self.begin));
            let whole = self.interval.0.saturating_mul(self.ticks_seen);
            let rest = Nanos(length.saturating_sub(whole).clamp(1, self.interval.0 - 1));
            for &kind in &self.rated {
                let now = counts(live, kind);
                let last = samples[kind].last;
                let operations = now.operations.saturating_sub(last.operations);
                let bytes = Bytes(now.bytes.saturating_sub(last.bytes));
                if operations > 0 {
                    // A series that has not ended takes a last interval.
                    let _ = samples[kind].series.finish(rest, operations, bytes);
                }
            }
        }
        self.sampled
    }
}

fn counts(live: &WorkerLive, kind: usize) -> Counts {
    let kind = &live.kinds[kind];
    Counts {
        operations: kind.completed.get(),
        bytes: kind.bytes.get(),
    }
}

impl KindSamples {
    /// Takes an interval: appends its part of what was done since the last one, and the bandwidth and IOPS
    /// samples that end with it.
    fn advance(&mut self, now: Counts, part: Part, ends: [Option<f64>; 2]) -> Counts {
        let open = Counts {
            operations: now.operations.saturating_sub(self.last.operations),
            bytes: now.bytes.saturating_sub(self.last.bytes),
        };
        let done = Counts {
            operations: part.of(open.operations),
            bytes: part.of(open.bytes),
        };
        self.last = Counts {
            operations: now.operations - (open.operations - done.operations),
            bytes: now.bytes - (open.bytes - done.bytes),
        };
        // Only a partial interval refuses a successor, and none was appended yet.
        let _ = self.series.push(done.operations, Bytes(done.bytes));
        self.bytes_in_sample += done.bytes;
        self.operations_in_sample += done.operations;
        if let Some(seconds) = ends[0] {
            self.bandwidth.push(self.bytes_in_sample as f64 / seconds);
            self.bytes_in_sample = 0;
        }
        if let Some(seconds) = ends[1] {
            self.iops.push(self.operations_in_sample as f64 / seconds);
            self.operations_in_sample = 0;
        }
        done
    }
}

/// The lengths of bandwidth and IOPS samples.
fn samples_of(recording: &Recording) -> [Nanos; 2] {
    let bandwidth = recording.bandwidth_sample_ns;
    [bandwidth, recording.iops_sample_ns.unwrap_or(bandwidth)]
}

#[cfg(test)]
mod tests {
    use weir_schema::sample::{JobSample, block_job};
    use weir_schema::{BLOCK_KINDS, Recording};

    use super::*;
    use crate::live::{KINDS, Measured};

    const MS: u64 = 1_000_000;

    fn live() -> Arc<WorkerLive> {
        let measured = Measured {
            latency: true,
            ..Measured::default()
        };
        let mut kinds = [None; KINDS];
        kinds[0] = Some(measured);
        Arc::new(WorkerLive::new(BLOCK_KINDS, kinds))
    }

    fn sampler(lives: &[Arc<WorkerLive>]) -> JobSampler {
        let recording = Recording {
            interval_ns: Nanos(100 * MS),
            bandwidth_sample_ns: Nanos(100 * MS),
            ..Recording::default()
        };
        let job = block_job("a").recorded(|r| *r = recording);
        JobSampler::of(&job, lives.to_vec(), Tick(0), Scale::IDENTITY)
    }

    fn done(live: &WorkerLive, reads: u64) {
        let kind = &live.kinds[0];
        kind.completed.add(reads);
        kind.bytes.add(reads * 4096);
        (0..reads).for_each(|at| kind.lat.record(1000 + at));
    }

    fn operations(sampled: &Sampled, worker: usize) -> Vec<u64> {
        let points = sampled.workers[worker][0].series.points();
        points.map(|point| point.operations).collect()
    }

    #[test]
    fn intervals_that_one_read_finds_have_equal_shares_of_what_was_done() {
        let live = live();
        let mut sampler = sampler(&[Arc::clone(&live)]);
        done(&live, 100);
        sampler.sample(Tick(100 * MS));
        done(&live, 450);
        sampler.sample(Tick(550 * MS));
        done(&live, 50);
        sampler.sample(Tick(600 * MS));
        let sampled = sampler.so_far();
        assert_eq!(operations(sampled, 0), [100; 6]);
        let reads = &sampled.workers[0][0];
        assert!(reads.series.points().all(|p| p.bytes == Bytes(409_600)));
        assert_eq!((reads.iops.min, reads.iops.max), (1000.0, 1000.0));
        for batch in sampled.batches[0].batches() {
            assert_eq!((batch.operations, batch.histogram.count()), (100, 100));
        }
        let latencies = sampled.batches[0]
            .batches()
            .iter()
            .map(|b| b.histogram.sum());
        let recorded = live.kinds[0].lat.snapshot().map(|h| h.sum());
        assert_eq!(Some(latencies.sum::<u128>()), recorded);
    }

    #[test]
    fn a_worker_that_ended_between_two_reads_has_its_share_up_to_its_end() {
        let lives = [live(), live()];
        let mut sampler = sampler(&lives);
        done(&lives[0], 250);
        lives[0].last_done.set(250 * MS);
        done(&lives[1], 350);
        lives[1].last_done.set(350 * MS);
        let sampled = {
            sampler.sample(Tick(700 * MS));
            sampler.finish(Tick(700 * MS))
        };
        assert_eq!(operations(&sampled, 0), [100, 100, 50]);
        assert_eq!(operations(&sampled, 1), [100, 100, 100, 50]);
    }

    #[test]
    fn nothing_is_due_once_all_workers_are_done() {
        let lives = [live(), live()];
        let mut sampler = sampler(&lives);
        lives[0].last_done.set(150 * MS);
        sampler.sample(Tick(170 * MS));
        assert_eq!(sampler.next_tick(), Some(Tick(200 * MS)));
        lives[1].last_done.set(250 * MS);
        for now in [250, 320, 900] {
            sampler.sample(Tick(now * MS));
            assert_eq!(sampler.next_tick(), None, "{now}");
        }
    }

    #[test]
    fn a_read_that_is_late_by_less_than_an_interval_counts_what_it_sees() {
        let live = live();
        let mut sampler = sampler(&[Arc::clone(&live)]);
        done(&live, 7);
        sampler.sample(Tick(199 * MS));
        assert_eq!(operations(sampler.so_far(), 0), [7]);
    }
}
