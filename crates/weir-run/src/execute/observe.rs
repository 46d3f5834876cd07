//! What a run shows of itself while it goes on.

use weir_schema::State;
use weir_stats::Histogram;
use weir_units::{Bytes, Nanos};

/// The running jobs at an instant.
#[derive(Clone, Debug)]
pub struct LiveView {
    /// Since the start of the program.
    pub elapsed_ns: Nanos,
    /// Jobs that are running.
    pub jobs: Vec<LiveJob>,
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
    /// Failed.
    pub errors: u64,
    /// In flight.
    pub in_flight: u64,
    /// Total latencies of all data kinds since its start.
    pub latency: Histogram,
}

/// What a running job is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveState {
    /// Not measured yet.
    Ramp,
    /// Measured.
    Running,
    /// On its way to an end; the state it will have.
    Ending(State),
}
