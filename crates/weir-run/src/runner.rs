//! A runner carries out one kind of workload: what the run needs from it, and what it gets from
//! the run.
//!
//! The run knows threads, ranks, phases, bounds and results; a runner knows targets and engines. It
//! looks at a job ([`Runner::check`]) and makes it ready ([`Runner::prepare`]). What it then does
//! has one of two forms. A [`Prepared`] job is the same loop on several workers, each on a thread
//! of the run, where it attaches its engine, builds its source and calls [`WorkerContext::drive`]. A
//! [`RankJob`] is what all ranks do together, on the thread that entered their world; it may be a
//! [series](RankControl::series) of phases, each of which is a [`Prepared`] loop on workers of every rank.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_schema::{
    Announcement, DeviceFacts, ErrorCode, Failure, Job, JobResult, LoopOutcome, Metric, Outcome,
    Plan, TargetsPerRank, Warning, Workload,
};
use weir_sys::clock::{Clock, Scale, Tick};
use weir_world::World;

use crate::execute::{PhaseHost, Signals};
use crate::live::{KINDS, Measured, WorkerLive};
use crate::loop_plan::measured_kinds;
use crate::trace::Traced;
use crate::worker::{LoopStop, OpFailure};
use crate::worker_context::WorkerContext;

/// Parts of the run that a runner may use.
#[derive(Clone, Copy)]
pub struct JobContext<'a> {
    /// The plan that the job is of.
    pub plan: &'a Plan,
    /// The job.
    pub job: &'a Job,
    /// Its number over the whole run, from 0.
    pub index: u32,
    /// Number of its first worker over the whole run, from 0.
    pub first_worker: u32,
    /// Seed of its streams: the plan's, or drawn at the start of the run where the plan has 0.
    pub seed: u64,
    /// The number of the run, 1 to 65535.
    pub run_id: u16,
    /// Base directory of relative paths.
    pub directory: &'a Path,
    /// Receiver of announcements, for example that a file is being laid out.
    pub announce: &'a dyn Fn(&Announcement),
    /// Signals; long preparations look at them now and then and give up.
    pub signals: &'a Signals,
}

/// Carries out one kind of workload.
pub trait Runner: Sync {
    /// True if the workload is this runner's.
    fn handles(&self, workload: &Workload) -> bool;

    /// Its jobs are done by all ranks together; one of them has the world at a time.
    fn needs_world(&self) -> bool {
        false
    }

    /// Ranks may be threads of one process.
    fn allows_thread_ranks(&self) -> bool {
        false
    }

    /// Its jobs are [series](RankControl::series) of phases: settings of a job that these have no use for
    /// are refused.
    fn has_phases(&self) -> bool {
        false
    }

    /// Makes the job of all the job of one rank: its files, its share of the region, its seed.
    ///
    /// # Errors
    /// Something cannot be had per rank.
    fn part(&self, _job: &mut Job, _rank: RankPart) -> Result<(), Failure> {
        Ok(())
    }

    /// Everything that can be known to fail before the run; touches nothing.
    fn check(&self, context: &JobContext<'_>) -> Vec<Failure>;

    /// Errors between jobs that can be found before the run, by the number of the later job;
    /// touches nothing.
    fn check_together(&self, _contexts: &[JobContext<'_>]) -> Vec<(u32, Failure)> {
        Vec::new()
    }

    /// Headline figures of its own, of a job that has ended; of several ranks, of all together.
    fn metrics(&self, _job: &Job, _result: &JobResult) -> Vec<Metric> {
        Vec::new()
    }

    /// Makes the targets ready, right before the job's start: opens, lays out, guards.
    ///
    /// # Errors
    /// Why the job cannot run.
    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure>;
}

/// One rank of several that carry a plan out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankPart {
    /// Number of the rank, from 0.
    pub rank: u32,
    /// In all.
    pub ranks: u32,
    /// Use of the targets by the ranks.
    pub targets: TargetsPerRank,
}

/// A job that is ready to run, by what carries it out.
pub enum PreparedJob {
    /// Workers, each on a thread of the run.
    Workers(Arc<dyn Prepared>),
    /// All ranks together.
    Ranks(Arc<dyn RankJob>),
}

/// A job that all ranks do together.
pub trait RankJob: Send + Sync {
    /// One rank's part. What came of all parts is told at rank 0; an error or a signal ends it
    /// early with what was done.
    fn work(&self, control: &RankControl<'_>) -> RankOutcome;
}

/// Parts that a rank runs its part of a job with.
pub struct RankControl<'a> {
    /// All ranks.
    pub world: &'a dyn World,
    /// The clock.
    pub clock: &'a Clock,
    /// Signals to this job: those of the run, and the word to end.
    pub signals: &'a Signals,
    /// Progress, for others to see.
    pub progress: &'a RankProgress,
    /// The part hangs in a call that nothing ends: the run takes what was done, and answers the
    /// code that the process is to end with once everything is said.
    pub abandon: &'a (dyn Fn(RankOutcome) -> u8 + Sync),
    pub(crate) phases: &'a PhaseHost,
}

/// Progress of the first rank of a job.
#[derive(Debug, Default)]
pub struct RankProgress(Mutex<RankPosition>);

/// Progress at an instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankPosition {
    /// The share that is done, where known.
    pub fraction: Option<f64>,
    /// Present step: `8 B`.
    pub at: Option<String>,
    /// For how long nothing has come back.
    pub still: Duration,
}

impl RankProgress {
    /// Shows it.
    pub fn set(&self, position: RankPosition) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }

    /// The position shown last.
    pub fn get(&self) -> RankPosition {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Outcome of a job that ranks ran together; at other ranks than the first an empty one.
#[derive(Debug, Default)]
pub struct RankOutcome {
    /// The measured figures.
    pub outcome: Outcome,
    /// Its headline figures.
    pub metrics: Vec<Metric>,
    /// Everything that was planned.
    pub is_whole: bool,
    /// Reason that it is not whole. A signal is no failure.
    pub failure: Option<Failure>,
    /// Conditions that spoil the figures.
    pub warnings: Vec<Warning>,
}

/// Amount of work that ends a worker; whichever is reached first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Moved.
    pub bytes: Option<u64>,
    /// Completed.
    pub operations: Option<u64>,
}

impl Amount {
    /// The share of it that is done; nothing where no amount is known.
    pub fn share(self, bytes: u64, operations: u64) -> Option<f64> {
        let pairs = [(bytes, self.bytes), (operations, self.operations)];
        let shares = pairs
            .into_iter()
            .filter_map(|(done, whole)| Some(quotient(done, whole?)));
        shares.max_by(f64::total_cmp)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share for the eye")]
fn quotient(done: u64, whole: u64) -> f64 {
    (done as f64 / whole.max(1) as f64).min(1.0)
}

/// Writes a job's operations down in a form of the runner's own.
pub trait OperationWriter {
    /// Takes a completed operation of a clone.
    fn note(&mut self, clone: u32, op: &Traced);

    /// The end of the job, whose targets have these names by clone and number; times count from
    /// `begin`. What went wrong, in a sentence.
    fn finish(
        self: Box<Self>,
        begin: Tick,
        scale: Scale,
        name: &dyn Fn(u32, u32) -> Option<String>,
    ) -> Option<String>;
}

/// A job whose workers are ready to run.
pub trait Prepared: Send + Sync {
    /// Recording settings of each kind; `None` for kinds that do not occur.
    fn measured(&self, job: &Job) -> [Option<Measured>; KINDS] {
        measured_kinds(job, self.is_inline())
    }

    /// One operation at a time, completing inside the call.
    fn is_inline(&self) -> bool;

    /// Nothing to do beyond the preparation.
    fn is_done(&self) -> bool {
        false
    }

    /// Work of each worker of this clone, where it is known.
    fn amount(&self, _clone: u32) -> Amount {
        Amount::default()
    }

    /// One worker's part, on its own thread.
    ///
    /// # Errors
    /// Why the worker could not begin or end in order. A failed operation is not an error here
    /// but a [`LoopStop::Failed`].
    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure>;

    /// The name of a worker's target, for messages.
    fn target_name(&self, _clone: u32, _target: u32) -> Option<String> {
        None
    }

    /// Action of operations on their targets, for messages, where they move no data: "removing".
    fn action(&self) -> Option<&'static str> {
        None
    }

    /// Possible cause of a failed operation on a target that has carried none out yet: one sentence
    /// that names the target.
    fn explain(&self, _clone: u32, _at: &OpFailure) -> Option<String> {
        None
    }

    /// The code of a failed operation, of the negative number that its engine gave.
    fn error_code(&self, number: i32) -> ErrorCode {
        number.into()
    }

    /// Outcome of the job, at its end or so far, from its loop and the records of each worker.
    fn outcome(&self, done: LoopOutcome, _workers: &[&WorkerLive]) -> Outcome {
        Outcome::Loop(done)
    }

    /// After the last worker: removes files that were to be removed.
    ///
    /// # Errors
    /// The step that failed.
    fn finish(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes the job's operations down, where the job asks for it.
    ///
    /// # Errors
    /// The file cannot be written.
    fn operation_writer(&self) -> Result<Option<Box<dyn OperationWriter>>, Failure> {
        Ok(None)
    }

    /// Facts about the targets.
    fn devices(&self) -> Vec<DeviceFacts> {
        Vec::new()
    }

    /// Kernel names of the block devices behind the targets.
    fn disks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Its workers use a CPU all the time.
    fn never_sleeps(&self) -> bool {
        false
    }

    /// All that it moves reaches the disks behind its targets, past every cache.
    fn bypasses_caches(&self) -> bool {
        false
    }

    /// Its caches are dropped before each pass, and no pass reads a block twice.
    fn reads_blocks_once(&self) -> bool {
        false
    }

    /// Conditions that spoil the numbers, as far as the runner can know; the run adds the job's
    /// name.
    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }
}

/// A failure without a place.
pub fn failure(cause: &str, errno: Option<i32>, message: impl Into<String>) -> Failure {
    Failure {
        errno,
        ..Failure::new(cause, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_that_is_nearest_says_how_much_is_done() {
        let both = Amount {
            bytes: Some(1000),
            operations: Some(10),
        };
        assert_eq!(both.share(200, 5), Some(0.5));
        assert_eq!(both.share(900, 5), Some(0.9));
        assert_eq!(both.share(5000, 5), Some(1.0));
        assert_eq!(Amount::default().share(1, 1), None);
    }
}
