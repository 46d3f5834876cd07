//! A search over runs: the outcome of a run decides the plan of the next.
//!
//! In: the result of each run. Out: the plan of the next, at the end one result of all. Not here:
//! running a plan, pauses and signals, which are the driver's.

use std::fmt::Debug;

use weir_schema::{Plan, RunResult};
use weir_units::Nanos;

/// Search over runs.
pub trait RunSearch: Debug + Send + Sync {
    /// The plan of the next run; `None` once all is known.
    fn next_plan(&self) -> Option<Plan>;

    /// Takes the result of the last plan's run.
    fn take(&mut self, result: RunResult);

    /// The end of the search; `None` where nothing was run.
    fn end(self: Box<Self>) -> Option<SearchEnd>;

    /// The pause between two runs.
    fn rest(&self) -> Nanos {
        Nanos::ZERO
    }
}

/// End of a search.
#[derive(Clone, Debug)]
pub struct SearchEnd {
    /// One result with the groups of all runs.
    pub result: RunResult,
    /// The search found everything that it was for.
    pub has_found_all: bool,
}
