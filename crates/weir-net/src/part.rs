//! A rank's part in what all do together, whatever that is.
//!
//! In: a job and its work, the world, the clock, signals, and how the part is done. Out: what came
//! of all parts, at rank 0. Not here: what is done, and what is made of it.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_run::execute::Signals;
use weir_schema::Job;
use weir_sys::clock::Clock;
use weir_units::Nanos;
use weir_world::World;

use crate::circle::Circle;
use crate::error::{Halt, NetError, Spot};
use crate::last_words;
use crate::watch::Watch;

/// What one rank carries out.
#[expect(missing_debug_implementations, reason = "holds the world")]
pub struct Part<'a, W> {
    pub(crate) job: &'a Job,
    pub(crate) workload: &'a W,
    pub(crate) circle: &'a Circle<'a>,
    pub(crate) watch: &'a Watch,
    pub(crate) clock: &'a Clock,
}

impl<W> Part<'_, W> {
    /// Why it ended early: at a message, or before the first one.
    pub(crate) fn ended(&self, at: Option<Spot>, halt: Halt) -> NetError {
        let (rank, cause) = (self.circle.rank(), self.watch.cause(halt));
        match at {
            Some(spot) => NetError::At { spot, cause },
            None => NetError::Setup { rank, cause },
        }
    }
}

/// Carries one rank's part out, guarded by a watch that allows `timeout` without progress. All
/// outcomes at rank 0, nothing elsewhere; those of an early end hold what was done.
///
/// # Errors
/// Why there is no result; at rank 0 in the words of the rank nearest to the cause.
pub(crate) fn carry_out<W, O: Default + Serialize + DeserializeOwned>(
    (job, workload): (&Job, &W),
    timeout: Nanos,
    world: &dyn World,
    clock: &Clock,
    signals: &Signals,
    how: impl FnOnce(&Part<'_, W>, &mut O) -> Result<(), NetError>,
) -> Result<Option<Vec<O>>, NetError> {
    let watch = Watch::new(Duration::from(timeout));
    let circle = Circle::new(world);
    let part = Part {
        job,
        workload,
        circle: &circle,
        watch: &watch,
        clock,
    };
    watch.over(signals, || {
        let mut outcome = O::default();
        let ending = how(&part, &mut outcome);
        last_words::exchange(&circle, &watch, outcome, ending)
    })
}
