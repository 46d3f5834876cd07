//! View of a run while it goes on.
//!
//! In: the run at an instant. Out: the running jobs at a glance, or everything measured so far,
//! each made only when it is asked for. Not here: when to look; the run asks its observer at
//! every round, which comes at least every 10 ms.

use std::sync::atomic::Ordering;
use weir_schema::ByKind;

use weir_schema::{RunResult, State};
use weir_stats::Histogram;
use weir_units::{Bytes, Nanos};

use super::Signals;
use crate::runner::RankPosition;

/// A run at an instant.
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct LiveView<'a> {
    /// Since the start of the program.
    pub elapsed_ns: Nanos,
    /// Since the first job's release; nothing before it.
    pub measured_ns: Nanos,
    pub(super) jobs: &'a dyn Fn() -> Vec<LiveJob>,
    pub(super) ended: &'a dyn Fn() -> Vec<LiveEnd>,
    pub(super) signals: &'a Signals,
    pub(super) result: &'a dyn Fn() -> RunResult,
}

impl LiveView<'_> {
    /// Jobs that are running.
    pub fn jobs(&self) -> Vec<LiveJob> {
        (self.jobs)()
    }

    /// The jobs that have ended; what neither runs nor has ended waits.
    pub fn ended(&self) -> Vec<LiveEnd> {
        (self.ended)()
    }

    /// Ends the run in order, as a signal does, but by nobody's signal.
    pub fn stop(&self) {
        self.signals.interruptions.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the run as if its time were over: what it did until then is its whole result.
    pub fn end_early(&self) {
        self.signals.end_early.store(true, Ordering::Relaxed);
    }

    /// Everything measured so far.
    pub fn result(&self) -> RunResult {
        (self.result)()
    }
}

/// A job that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveEnd {
    /// Its number over the whole run.
    pub index: usize,
    /// Workers that failed; all of them where it could not start.
    pub failed: usize,
}

/// A running job at an instant, from its start.
#[derive(Clone, Debug)]
pub struct LiveJob {
    /// Name.
    pub name: String,
    /// Its number over the whole run.
    pub index: usize,
    /// Workers.
    pub workers: usize,
    /// Workers that have ended.
    pub gone: usize,
    /// Those of them that failed.
    pub failed: usize,
    /// Released; before that it gets ready.
    pub released: bool,
    /// In ramp, running, ending.
    pub state: LiveState,
    /// Since its release.
    pub elapsed_ns: Nanos,
    /// Share of its work or time that is done, where a bound is known.
    pub fraction: Option<f64>,
    /// Completed.
    pub operations: u64,
    /// Moved.
    pub bytes: Bytes,
    /// Of reads, writes and trims.
    pub by_kind: ByKind<LiveCount>,
    /// Failed.
    pub errors: u64,
    /// In flight.
    pub in_flight: u64,
    /// Total latencies of all data kinds since its start.
    pub latency: Histogram,
    /// Progress of ranks that run it together.
    pub ranks: Option<RankPosition>,
}

/// Operations and bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCount {
    /// Completed.
    pub operations: u64,
    /// Moved.
    pub bytes: u64,
}

/// State of a running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveState {
    /// Not measured yet.
    Ramp,
    /// Measured.
    Running,
    /// On its way to an end; the state it will have.
    Ending(State),
}
