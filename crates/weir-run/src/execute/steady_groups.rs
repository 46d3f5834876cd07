//! Groups of workers that are watched together for a steady rate: a worker alone, or all workers of
//! a group's jobs that are one entry of the report.
//!
//! In: the running jobs, once a second since each group's start. Out: workers that are asked
//! to end, and what was found, by the group's first worker. Not here: what steady is (`steady`).

use weir_schema::{State, Steadiness, Steady};
use weir_sys::clock::{Scale, Tick};
use weir_units::Nanos;

use crate::execute::running::{RunningJob, Worker};
use crate::execute::steady::{RateCounts, SECOND, SteadyWatch};

/// Workers of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Members {
    /// One worker, by number.
    Worker(u32),
    /// The merged jobs of a group that have the bound.
    Group(usize),
}

/// A group of workers that are watched together.
#[derive(Debug)]
struct SteadyGroup {
    members: Members,
    /// Number of its first worker.
    first: u32,
    origin: Tick,
    scale: Scale,
    seconds: u64,
    watch: SteadyWatch,
}

/// All such groups of a run.
#[derive(Debug, Default)]
pub(super) struct SteadyGroups(Vec<SteadyGroup>);

impl SteadyGroups {
    /// A job with a bound on steadiness was released.
    pub(super) fn add_job(&mut self, job: &RunningJob, bound: Steady, release: Tick, scale: Scale) {
        let group = Members::Group(job.group());
        for worker in job.workers() {
            let members = if job.job.report.merge {
                group
            } else {
                Members::Worker(worker.number)
            };
            if self.0.iter().any(|group| group.members == members) {
                continue;
            }
            self.0.push(SteadyGroup {
                members,
                first: worker.number,
                origin: release,
                scale,
                seconds: 0,
                watch: SteadyWatch::new(bound),
            });
        }
    }

    /// Takes the samples that are due; ends groups whose rate is steady.
    pub(super) fn sample_if_due(&mut self, jobs: &mut [Box<RunningJob>], now: Tick) {
        for group in &mut self.0 {
            group.sample_if_due(jobs, now);
        }
    }

    /// Result of a group, by its first worker.
    pub(super) fn outcome(&self, worker: u32) -> Option<Steadiness> {
        let group = self.0.iter().find(|group| group.first == worker)?;
        Some(group.watch.outcome())
    }
}

impl SteadyGroup {
    fn sample_if_due(&mut self, jobs: &mut [Box<RunningJob>], now: Tick) {
        let next = SECOND.0.saturating_mul(self.seconds + 1);
        let since = self.scale.to_nanos(now.since(self.origin));
        if since < next || self.watch.is_attained() {
            return;
        }
        self.seconds = since / SECOND.0;
        let mut counts = RateCounts::default();
        let mut running = false;
        self.each(jobs, |worker| {
            running |= !worker.ended;
            for kind in worker.live.rated() {
                counts.operations += kind.completed.get();
                counts.bytes += kind.bytes.get();
            }
        });
        if !running {
            return;
        }
        self.watch.sample(Nanos(since), counts);
        if self.watch.is_attained() {
            self.each(jobs, |worker| worker.stop(now, State::Done));
        }
    }

    fn each(&self, jobs: &mut [Box<RunningJob>], mut act: impl FnMut(&mut Worker)) {
        for job in jobs {
            let whole = self.members == Members::Group(job.group()) && job.job.report.merge;
            let watched = job.job.load().bounds.steady.is_some();
            for worker in job.workers_mut() {
                let alone = self.members == Members::Worker(worker.number);
                if alone || (whole && watched) {
                    act(worker);
                }
            }
        }
    }
}
