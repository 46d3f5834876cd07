//! Generators: *which* operation comes next, never how it is carried out.
//!
//! In: plain numbers from the plan (counts of blocks, percentages, a seed).
//! Out: block indices ([`offsets`]), kinds of operation ([`mix`]), sizes
//! ([`sizes`]) and buffer content ([`payload`]). No I/O, no clock, no
//! allocation after construction. Not here: random numbers and intended starts
//! ([`weir_run::generate`]).
//!
//! The sequences are part of the result contract: the same plan and seed give
//! the same sequence on every machine and in every later version. Therefore
//! the random numbers are our own, integers are used wherever a
//! formula does not prescribe real numbers, and `libm` replaces the platform's
//! `pow`, `ln` and `exp`. Golden tests pin each generator.
//!
//! Every consumer draws from its own stream, so that switching one on never
//! shifts another. Cost per draw: example `draw_cost`.
#![expect(
    clippy::inline_always,
    reason = "draws belong inside the worker's loop, whatever the inliner's estimate says"
)]

pub mod bursts;
pub mod distribution;
pub mod lfsr;
pub mod map;
pub mod mix;
pub mod offsets;
pub mod payload;
mod permutation;
mod prefetch;
pub mod sizes;

pub use permutation::Permutation;

/// Reason that a generator cannot be built from the numbers given.
///
/// The planner has normally refused such values with their place in the job
/// file; these messages serve plans written by hand.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// The closed form divides by 1 − theta.
    #[error("zipf theta must be positive and different from 1.0 (got {0})")]
    ZipfTheta(f64),
    /// Outside the open interval the exponent has no meaning.
    #[error("pareto input out of range: 0 < h < 1 (got {0})")]
    ParetoInput(f64),
    /// The deviation is a share of the region.
    #[error("normal deviation must lie in 0..=100 percent (got {0})")]
    NormalDeviation(f64),
    /// The centre is a share of the region.
    #[error("centre of a random distribution must lie in 0..=1 (got {0})")]
    Center(f64),
    /// No zone has both weight and blocks.
    #[error(
        "zoned random distribution has no zone with a share of the accesses and at least one block"
    )]
    NoZone,
    /// A mix of nothing.
    #[error("the percentages of reads, writes and trims are all 0")]
    EmptyMix,
    /// A size of 0, an empty list, or a minimum above the maximum.
    #[error("block sizes must be positive, with the minimum at most the maximum")]
    BlockSizes,
    /// A share above the whole.
    #[error("{what} must be at most 100 percent (got {percent})")]
    Percent {
        /// The setting's name.
        what: &'static str,
        /// The value refused.
        percent: u8,
    },
    /// The memory for the map could not be had.
    #[error("no memory for the random map of {blocks} blocks ({bytes} bytes)")]
    MapMemory {
        /// Blocks of the region.
        blocks: u64,
        /// Bytes asked for.
        bytes: u64,
    },
}
