//! The sampler of one job: reads the workers' counters at common instants and turns differences
//! into interval series and bandwidth samples; the stretches (`stretches`) it reads in between.
//!
//! In: live counters, the tick of the end of ramp. Out: [`Sampled`]. Instants are aligned to the
//! end of ramp, the same for every worker. Not here: reading more often than asked, results.

use std::sync::Arc;

use weir_schema::{Job, Recording};
use weir_stats::{Moments, Series};
use weir_sys::clock::{Scale, Tick};
use weir_units::{Bytes, Nanos};

use crate::execute::collect::last_done;
use crate::execute::stretches::{Counts, MeasuredWorkers, Stretches};
use crate::live::WorkerLive;

/// Samples of a job.
pub(super) struct Sampled {
    /// By worker, by kind.
    pub(super) workers: Vec<Vec<KindSamples>>,
    /// Over all workers.
    pub(super) stretches: Stretches,
}

/// Samples of one kind of one worker.
#[derive(Clone, Debug)]
pub(super) struct KindSamples {
    pub(super) series: Series,
    pub(super) bandwidth: Moments,
    pub(super) iops: Moments,
    last: Counts,
    bytes_in_sample: u64,
    operations_in_sample: u64,
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
    workers: MeasuredWorkers,
    interval: Nanos,
    ticks_seen: u64,
    /// Intervals per bandwidth and per IOPS sample.
    per_sample: [u64; 2],
    sampled: Sampled,
    /// Time at which the process was stopped, where it was since the last read: nothing was done
    /// from then on.
    stopped_at: Option<Tick>,
    /// Numbers of the kinds that are part of the rates.
    rated: Vec<usize>,
}

impl JobSampler {
    /// Of a job in a run with so many workers.
    pub(super) fn new(
        job: &Job,
        workers_of_run: u32,
        lives: Vec<Arc<WorkerLive>>,
        (begin, scale): (Tick, Scale),
    ) -> Self {
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
                stretches: Stretches::new(job, workers_of_run, begin),
            },
            workers: MeasuredWorkers {
                lives,
                begin,
                scale,
                after_resets: u64::from(job.load().bounds.ramp_ns.0 > 0),
            },
            interval,
            ticks_seen: 0,
            stopped_at: None,
            per_sample: samples_of(recording).map(|length| (length.0 / interval.0).max(1)),
            rated: rated.collect(),
        }
    }

    /// A sampler of what comes after another reset.
    pub(super) fn anew(self, job: &Job, workers_of_run: u32, begin: Tick) -> Self {
        let after_resets = 1 + u64::from(job.load().bounds.ramp_ns.0 > 0);
        if self.workers.after_resets == after_resets {
            return self;
        }
        let MeasuredWorkers { lives, scale, .. } = self.workers;
        let mut anew = Self::new(job, workers_of_run, lives, (begin, scale));
        anew.workers.after_resets = after_resets;
        anew
    }

    /// The instant of the next sample; none once all workers are done, though their threads may
    /// take a while to say so.
    pub(super) fn next_tick(&self) -> Option<Tick> {
        let stretch = self.sampled.stretches.next_tick(&self.workers);
        let ticks = stretch.into_iter().chain([self.tick(self.ticks_seen + 1)]);
        ticks.min().filter(|next| *next <= self.workers.end())
    }

    /// The end of an interval, by its number from 1.
    fn tick(&self, number: u64) -> Tick {
        self.workers.after(self.interval.saturating_mul(number))
    }

    /// The process was stopped since the last read, and goes on: at the latest from the instant on at
    /// which the next read was due, of which a batch of stretches is the resolution.
    pub(super) fn was_stopped(&mut self) {
        self.stopped_at = self.next_tick();
    }

    /// Takes the samples that are due. Several that are due at once are one read: nobody saw when
    /// what was done since the last was done, so that each has its share by time, as far as the process
    /// was not stopped.
    pub(super) fn sample(&mut self, now: Tick) {
        let seen = now.min(self.workers.end());
        self.sampled.stretches.read_if_due(&self.workers, seen);
        let is_late = self.tick(self.ticks_seen + 2) <= seen;
        let done_by = self.stopped_at.take().map_or(seen, |at| at.min(seen));
        // Read once: what is done meanwhile is part of no interval that is over.
        let mut counts = None;
        while self.tick(self.ticks_seen + 1) <= seen {
            self.ticks_seen += 1;
            let counts = counts.get_or_insert_with(|| self.counts());
            self.take_interval(counts, is_late.then_some(done_by));
        }
    }

    /// Counters of each worker and rated kind now, in the order of workers.
    fn counts(&self) -> Vec<Counts> {
        let lives = self.workers.lives.iter();
        let all = lives.flat_map(|live| self.rated.iter().map(move |kind| (live, *kind)));
        all.map(|(live, kind)| self.workers.counts(live, kind))
            .collect()
    }

    /// Share of the present interval in the work that a worker did until then and that no interval
    /// has yet.
    fn part(&self, live: &WorkerLive, seen: Tick) -> Part {
        let until = last_done(live).map_or(seen, |end| end.min(seen));
        let until = self.workers.scale.to_nanos(until.since(self.workers.begin));
        let from = self.interval.0.saturating_mul(self.ticks_seen - 1);
        Part {
            of: self.interval.0,
            whole: until.saturating_sub(from),
        }
    }

    /// Takes an interval; where it was read late, of what was done until then.
    fn take_interval(&mut self, counts: &[Counts], late: Option<Tick>) {
        let seconds = self.interval.as_secs_f64();
        let ticks = self.ticks_seen;
        // The length of a sample in seconds, where one ends.
        let ends = self
            .per_sample
            .map(|n| ticks.is_multiple_of(n).then_some(seconds * n as f64));
        let parts = self.workers.lives.iter().map(|live| match late {
            Some(seen) => self.part(live, seen),
            None => Part::ALL,
        });
        let parts: Vec<Part> = parts.collect();
        let mut counts = counts.iter();
        for (samples, part) in self.sampled.workers.iter_mut().zip(parts) {
            for (&kind, now) in self.rated.iter().zip(counts.by_ref()) {
                samples[kind].advance(*now, part, ends);
            }
        }
    }

    /// The samples so far.
    pub(super) fn so_far(&self) -> &Sampled {
        &self.sampled
    }

    /// The last, partial interval, and everything.
    pub(super) fn finish(mut self, now: Tick) -> Sampled {
        self.sample(now);
        let workers = &self.workers;
        let end = now.min(workers.end());
        self.sampled.stretches.finish(workers, end);
        for (live, samples) in workers.lives.iter().zip(&mut self.sampled.workers) {
            let end = last_done(live).unwrap_or(now).max(workers.begin);
            let length = workers.scale.to_nanos(end.since(workers.begin));
            let whole = self.interval.0.saturating_mul(self.ticks_seen);
            let rest = Nanos(length.saturating_sub(whole).clamp(1, self.interval.0 - 1));
            for &kind in &self.rated {
                let now = workers.counts(live, kind);
                let last = samples[kind].last;
                let operations = now.operations.saturating_sub(last.operations);
                let bytes = Bytes(now.bytes.saturating_sub(last.bytes));
                if length <= whole {
                    // A loop elsewhere may have told of it after intervals had gone by.
                    samples[kind]
                        .series
                        .end_at(Nanos(length), operations, bytes);
                } else if operations > 0 {
                    // A series that has not ended takes a last interval.
                    let _ = samples[kind].series.finish(rest, operations, bytes);
                }
            }
        }
        self.sampled
    }
}

impl KindSamples {
    /// Takes an interval: appends its part of what was done since the last one, and the bandwidth and IOPS
    /// samples that end with it.
    fn advance(&mut self, now: Counts, part: Part, ends: [Option<f64>; 2]) {
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
    }
}

/// The lengths of bandwidth and IOPS samples.
fn samples_of(recording: &Recording) -> [Nanos; 2] {
    let bandwidth = recording.bandwidth_sample_ns;
    [bandwidth, recording.iops_sample_ns.unwrap_or(bandwidth)]
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use weir_schema::sample::{JobSample, block_job};
    use weir_schema::{BLOCK_KINDS, Recording};

    use super::*;
    use crate::live::{KINDS, Measured};

    pub(in crate::execute) const MS: u64 = 1_000_000;

    pub(in crate::execute) fn live() -> Arc<WorkerLive> {
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
        JobSampler::new(&job, 1, lives.to_vec(), (Tick(0), Scale::IDENTITY))
    }

    pub(in crate::execute) fn done(live: &WorkerLive, reads: u64) {
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
    }

    #[test]
    fn what_is_told_after_the_end_belongs_to_the_interval_of_the_end() {
        let late = live();
        let other = live();
        let mut sampler = sampler(&[Arc::clone(&late), Arc::clone(&other)]);
        done(&late, 73);
        sampler.sample(Tick(100 * MS));
        done(&late, 100);
        sampler.sample(Tick(200 * MS));
        done(&late, 83);
        late.last_done.set(95 * MS);
        other.last_done.set(210 * MS);
        let sampled = sampler.finish(Tick(230 * MS));
        assert_eq!(operations(&sampled, 0), [256, 0]);
    }

    #[test]
    fn nothing_was_done_while_the_process_was_stopped() {
        let live = live();
        let mut sampler = sampler(&[Arc::clone(&live)]);
        done(&live, 100);
        sampler.sample(Tick(100 * MS));
        done(&live, 10);
        sampler.was_stopped();
        sampler.sample(Tick(450 * MS));
        done(&live, 50);
        sampler.sample(Tick(500 * MS));
        // It was stopped when the stretch was due that ends at 110 ms.
        assert_eq!(operations(sampler.so_far(), 0), [100, 10, 0, 0, 50]);
    }

    #[test]
    fn what_is_done_during_a_late_read_is_no_part_of_it() {
        let live = live();
        let mut sampler = sampler(&[Arc::clone(&live)]);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    live.kinds[0].completed.add(1);
                }
            });
            while live.kinds[0].completed.get() == 0 {
                std::hint::spin_loop();
            }
            sampler.was_stopped();
            sampler.sample(Tick(100_000 * MS));
            is_over.store(true, Ordering::Relaxed);
        });
        let operations = operations(sampler.so_far(), 0);
        assert!(operations[0] > 0 && operations[1..].iter().all(|n| *n == 0));
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
        assert_eq!(sampler.next_tick(), Some(Tick(180 * MS)));
        lives[1].last_done.set(185 * MS);
        for now in [185, 320, 900] {
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
