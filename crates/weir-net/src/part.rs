//! A rank's part in what all do together, whatever that is.
//!
//! In: a job and its work, what surrounds it, and how the part is done. Out: what came of all parts,
//! at rank 0. Not here: what is done, and what is made of it.

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
use crate::last_words::{self, Words};
use crate::watch::{Onlooker, Outside, Watch};

/// What one rank carries out.
#[expect(missing_debug_implementations, reason = "holds the world")]
pub struct Part<'a, W, L = ()> {
    pub(crate) job: &'a Job,
    pub(crate) workload: &'a W,
    pub(crate) circle: &'a Circle<'a>,
    pub(crate) watch: &'a Watch,
    pub(crate) clock: &'a Clock,
    /// What ranks tell on the way.
    pub(crate) ledger: &'a L,
}

impl<W, L> Part<'_, W, L> {
    /// Why it ended early: at a message, or before the first one.
    pub(crate) fn ended(&self, at: Option<Spot>, halt: Halt) -> NetError {
        let (rank, cause) = (self.circle.rank(), self.watch.cause(halt));
        match at {
            Some(spot) => NetError::At { spot, cause },
            None => NetError::Setup { rank, cause },
        }
    }
}

/// What surrounds a rank.
pub(crate) struct Around<'a> {
    pub(crate) world: &'a dyn World,
    pub(crate) clock: &'a Clock,
    pub(crate) signals: &'a Signals,
    /// Who looks on at rank 0.
    pub(crate) onlooker: Option<Onlooker<'a>>,
}

impl Around<'_> {
    /// Carries one rank's part out, guarded by a watch that allows `timeout` without progress. At
    /// rank 0 the outcomes of all that told them, nothing elsewhere; those of an early end hold
    /// what was done.
    pub(crate) fn carry_out<W, L, O: Default + Serialize + DeserializeOwned>(
        &self,
        (job, workload, ledger): (&Job, &W, &L),
        timeout: Nanos,
        how: impl FnOnce(&Part<'_, W, L>, &mut O) -> Result<(), NetError>,
    ) -> Words<O> {
        let watch = Watch::new(Duration::from(timeout));
        let circle = Circle::new(self.world);
        let part = Part {
            job,
            workload,
            circle: &circle,
            watch: &watch,
            clock: self.clock,
            ledger,
        };
        let onlooker = self.onlooker.filter(|_| circle.rank() == 0);
        let outside = Outside {
            signals: self.signals,
            crew: self.world.crew(),
        };
        let guarded = watch.over(circle.rank(), outside, onlooker, || {
            let mut outcome = O::default();
            let ending = how(&part, &mut outcome).map_err(|error| {
                if self.signals.interrupted() {
                    error.after_signal()
                } else {
                    error
                }
            });
            last_words::exchange(&circle, (&watch, self.signals), outcome, ending)
        });
        guarded.unwrap_or_else(|source| {
            let cause = Halt::Io {
                what: "start a thread that guards this rank (see ulimit -u)".into(),
                source,
            };
            let error = part.ended(None, cause);
            last_words::exchange(&circle, (&watch, self.signals), O::default(), Err(error))
        })
    }
}
