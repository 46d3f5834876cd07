//! The search for better settings: noise-aware, resumable, independent of what is measured.
//!
//! In: a [`TuneSpace`] of settings, the results of all trials so far. Out: the next trial or the
//! [`TuneEnd`]; the same results and seed always give the same next trial, so that a search continues from
//! its [`Trail`]. [`TuneTemplate`] puts the settings of a trial into the words of a command. Not here:
//! running trials, whether the best differs from the start (`weir-compare` decides that).

mod line;
mod outcomes;
mod search;
mod space;
mod template;
mod trail;

pub use outcomes::{TestedPoint, TuneResult, tested_points};
pub use search::{TuneEnd, TuneGoal, TuneStep, best_so_far, next_step};
pub use space::{SpaceError, TuneDimension, TunePoint, TuneSpace};
pub use template::{TemplateError, TuneTemplate};
pub use trail::{TRAIL_SCHEMA, Trail, TrailHead, TrailTrial};

#[cfg(test)]
mod yardstick;
