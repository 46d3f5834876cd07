//! Sources of block operations: each makes the next operation of a worker, as its workload says.
//!
//! In: a [`weir_schema::BlockWorkload`] and the extent of each target once its size is
//! known. Out: a source for the worker loop. Not here: opening or laying out targets, engines.

mod block_order;
mod buffers;
mod build;
pub(crate) mod bursts;
mod check;
mod fixed;
mod flushes;
mod general;
mod passes;
pub(crate) mod sectors;
mod service;
mod strided;
mod target_offsets;
mod verified;

pub use buffers::SlotBuffers;
pub use build::{
    AnySource, BuildError, CheckedTarget, Recipe, VariedSource, WorkLimits, build, build_varied,
    payload_rule,
};
pub use bursts::{BurstSource, first_operations};
pub(crate) use check::check;
pub use fixed::FixedSource;
pub use general::GeneralSource;
pub use passes::BetweenPasses;
pub use verified::{EarlierWrites, Verification, VerifiedSource, interval};

/// The part of a target that a worker uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub start: u64,
    /// Length.
    pub length: u64,
}
