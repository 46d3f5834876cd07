//! The sampler of one job: reads the workers' counters at common instants and turns differences
//! into interval series, batches for confidence intervals, and bandwidth samples.
//!
//! In: live counters, the tick of the end of ramp. Out: [`Sampled`]. Instants are aligned to the
//! end of ramp, the same for every worker. Not here: reading more often than asked, results.

use std::sync::Arc;

use weir_schema::{Job, Kind};
use weir_stats::{Batch, BatchStore, Histogram, Moments, Series};
use weir_sys::clock::{Scale, Tick};
use weir_units::{Bytes, Nanos};

use crate::execute::collect::last_done;
use crate::live::{KINDS, WorkerLive};
use crate::shape::is_open_loop;

/// What was sampled of a job.
pub(super) struct Sampled {
    /// By worker, by kind.
    pub(super) workers: Vec<[KindSamples; KINDS]>,
    /// By kind, over all workers.
    pub(super) batches: [BatchStore; KINDS],
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
    merged: [Histogram; KINDS],
}

impl JobSampler {
    pub(super) fn new(job: &Job, lives: Vec<Arc<WorkerLive>>, begin: Tick, scale: Scale) -> Self {
        let interval = Nanos(job.recording.interval_ns.0.max(1_000_000));
        let samples = KindSamples {
            series: Series::new(interval),
            bandwidth: Moments::default(),
            iops: Moments::default(),
            last: Counts::default(),
            bytes_in_sample: 0,
            operations_in_sample: 0,
        };
        let per_kind = [samples.clone(), samples.clone(), samples.clone(), samples];
        Self {
            sampled: Sampled {
                workers: vec![per_kind; lives.len()],
                batches: std::array::from_fn(|_| BatchStore::new(interval)),
            },
            lives,
            begin,
            scale,
            interval,
            after_resets: u64::from(job.bounds.ramp_ns.0 > 0),
            open_loop: is_open_loop(job),
            ticks_seen: 0,
            per_sample: samples_of(job).map(|length| (length.0 / interval.0).max(1)),
            merged: Default::default(),
        }
    }

    /// A sampler of what comes after another reset.
    pub(super) fn anew(self, job: &Job, lives: Vec<Arc<WorkerLive>>, begin: Tick) -> Self {
        let after_resets = 1 + u64::from(job.bounds.ramp_ns.0 > 0);
        if self.after_resets == after_resets {
            return self;
        }
        Self {
            after_resets,
            ..Self::new(job, lives, begin, self.scale)
        }
    }

    /// The instant of the next sample.
    pub(super) fn next_tick(&self) -> Tick {
        let nanos = self.interval.0.saturating_mul(self.ticks_seen + 1);
        self.begin.after(self.scale.to_ticks(Nanos(nanos)))
    }

    /// Takes the samples that are due. Several that are due at once are one read: what was done
    /// counts to the first, as it was not seen when.
    pub(super) fn sample(&mut self, now: Tick) {
        let end = self.end();
        while now >= self.next_tick() && self.next_tick() <= end {
            self.ticks_seen += 1;
            self.take();
        }
    }

    /// When the last worker was done, once all are: intervals after it are not the job's.
    fn end(&self) -> Tick {
        let ends = self.lives.iter().map(|live| last_done(live));
        let all: Option<Vec<Tick>> = ends.collect();
        all.and_then(|all| all.into_iter().max())
            .unwrap_or(Tick(u64::MAX))
    }

    fn take(&mut self) {
        let seconds = self.interval.as_secs_f64();
        let ticks = self.ticks_seen;
        // The length of a sample in seconds, where one ends.
        let ends = self
            .per_sample
            .map(|n| ticks.is_multiple_of(n).then_some(seconds * n as f64));
        let mut sums = [Counts::default(); KINDS];
        for (live, samples) in self.lives.iter().zip(&mut self.sampled.workers) {
            let ramping = live.resets.get() < self.after_resets;
            for kind in Kind::DATA.map(Kind::index) {
                // Until the worker has seen the end of ramp, what it did is not measured.
                let now = if ramping {
                    Counts::default()
                } else {
                    counts(live, kind)
                };
                let done = samples[kind].advance(now, ends);
                sums[kind].operations += done.operations;
                sums[kind].bytes += done.bytes;
            }
        }
        for kind in Kind::DATA.map(Kind::index) {
            let histogram = self.latencies_since_last(kind);
            let batch = Batch {
                operations: sums[kind].operations,
                bytes: Bytes(sums[kind].bytes),
                histogram,
            };
            // Precision is the same throughout, so joining batches cannot fail.
            let _ = self.sampled.batches[kind].push(batch);
        }
    }

    /// Latencies of this kind since the last sample, over all workers.
    fn latencies_since_last(&mut self, kind: usize) -> Histogram {
        let mut merged = Histogram::new();
        let measured = |live: &&Arc<WorkerLive>| live.resets.get() >= self.after_resets;
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
        let since = merged
            .since(&self.merged[kind])
            .unwrap_or_else(|_| merged.clone());
        self.merged[kind] = merged;
        since
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
            for kind in Kind::DATA.map(Kind::index) {
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
    /// Takes an interval: appends what was done since the last one, and the bandwidth and IOPS
    /// samples that end with it.
    fn advance(&mut self, now: Counts, ends: [Option<f64>; 2]) -> Counts {
        let done = Counts {
            operations: now.operations.saturating_sub(self.last.operations),
            bytes: now.bytes.saturating_sub(self.last.bytes),
        };
        self.last = now;
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
fn samples_of(job: &Job) -> [Nanos; 2] {
    let bandwidth = job.recording.bandwidth_sample_ns;
    [bandwidth, job.recording.iops_sample_ns.unwrap_or(bandwidth)]
}
