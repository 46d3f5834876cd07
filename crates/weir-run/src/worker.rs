//! The worker: one thread's loop from the release to its last completion.
//!
//! In: an engine, a source of operations, a clock, bounds and pacing. Out: counters and
//! histograms in [`WorkerLive`], and why the loop ended. Monomorphised: no virtual call,
//! allocation, lock or system call of its own per operation. Not here: threads, set-up, results.

mod inline;
mod plain;
mod queued;
mod slots;
mod state;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use weir_sys::clock::{SharedScale, Tick};
use weir_units::Nanos;

use crate::clock::RunClock;
use crate::engine::{Engine, OpTarget};
use crate::live::{KINDS, WorkerLive};
use crate::pacer::PacerPlan;
use crate::source::Source;

/// Bounds and shape of a loop.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct LoopPlan {
    /// Limit of operations in flight.
    pub depth: u32,
    /// Operations handed over at once.
    pub batch: u32,
    /// Completions waited for at once.
    pub reap_min: u32,
    /// Completions taken at once.
    pub reap_max: u32,
    /// New operations are issued when no more than this are in flight, once the queue was full.
    pub refill_below: u32,
    /// Time to measure, after ramp.
    pub runtime: Option<Nanos>,
    /// Time that is not measured.
    pub ramp: Nanos,
    /// An operation slower than this ends the job.
    pub max_latency: Option<Nanos>,
    /// The clock is read for each operation or batch; otherwise only now and then, and no latency
    /// is recorded.
    pub timed: bool,
    /// The clock is read before each operation of a batch too.
    pub stamp_each: bool,
    /// Failed operations of a kind are counted and the loop goes on.
    pub go_on: [bool; KINDS],
    /// These errno values of a kind are no failures.
    pub ignore: [Vec<i32>; KINDS],
    /// Failed operations after which the loop goes on are kept, to be told about.
    pub report_errors: bool,
    /// A full device or file system ends the job in order.
    pub until_full: bool,
    /// Latency counts from the intended start too.
    pub response: bool,
    /// An operation waits until none in flight touches the same bytes.
    pub no_overlap: bool,
}

impl Default for LoopPlan {
    fn default() -> Self {
        Self {
            depth: 1,
            batch: 1,
            reap_min: 1,
            reap_max: u32::MAX,
            refill_below: u32::MAX,
            runtime: None,
            ramp: Nanos(0),
            max_latency: None,
            timed: true,
            stamp_each: false,
            go_on: [false; KINDS],
            ignore: Default::default(),
            report_errors: false,
            until_full: false,
            response: false,
            no_overlap: false,
        }
    }
}

impl LoopPlan {
    /// For what is left when so much of the time, ramp included, has passed.
    pub(crate) fn later(self, passed: Nanos) -> Self {
        let counted = passed.0.saturating_sub(self.ramp.0);
        Self {
            ramp: Nanos(self.ramp.0.saturating_sub(passed.0)),
            runtime: self.runtime.map(|t| Nanos(t.0.saturating_sub(counted))),
            ..self
        }
    }
}

/// Parts that a loop shares with the run.
#[derive(Debug)]
pub struct LoopContext<'a, C> {
    /// The clock.
    pub clock: &'a C,
    /// Present length of a tick.
    pub scale: Arc<SharedScale>,
    /// Non-zero: end.
    pub stop: &'a AtomicU32,
    /// Recorders of the loop.
    pub live: &'a WorkerLive,
    /// The common release.
    pub release: Tick,
    /// Times at which operations may be issued.
    pub pacing: PacerPlan,
}

/// Reason that a loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopStop {
    /// The work was done.
    WorkDone,
    /// The time was up.
    TimeUp,
    /// Somebody asked for it.
    Asked,
    /// An operation failed.
    Failed(OpFailure),
}

/// An operation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpFailure {
    /// The fault.
    pub fault: OpFault,
    /// Index of its kind.
    pub kind: usize,
    /// Target that it acted on.
    pub acts_on: OpTarget,
    /// Bytes asked for.
    pub length: u32,
    /// Bytes that moved before.
    pub moved: u32,
}

/// Fault of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpFault {
    /// An errno.
    Errno(i32),
    /// No more bytes came: the end of the file or device.
    EndOfTarget,
    /// It took longer than the plan allows.
    TooSlow {
        /// Time that it took.
        took: Nanos,
        /// Time that is allowed.
        limit: Nanos,
    },
    /// The engine could not hand over or reap at all.
    Engine(i32),
}

/// Runs the loop that fits the engine.
pub fn drive<E, S, C>(
    engine: &mut E,
    source: &mut S,
    plan: &LoopPlan,
    worker: LoopContext<'_, C>,
) -> LoopStop
where
    E: Engine,
    S: Source<Op = E::Op>,
    C: RunClock,
{
    if E::INLINE {
        inline::run(engine, source, plan, worker)
    } else if E::QUICK
        && !S::CHECKS
        && let Some(sinks) = plain::fits(source, plan, &worker)
    {
        if plan.batch > 1 {
            plain::run::<E, S, C, true>(engine, source, plan, worker, &sinks)
        } else {
            plain::run::<E, S, C, false>(engine, source, plan, worker, &sinks)
        }
    } else {
        queued::run(engine, source, plan, worker)
    }
}
