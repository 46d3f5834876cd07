//! Offsets: which block the next operation goes to.
//!
//! In: the number of blocks n of the region and a random stream. Out: block
//! indices in [0, n), until the pass is over. Generators that remember
//! (sequential, mapped, register) give each block once per pass and then end;
//! those that do not (uniform, skewed) never end by themselves: the caller's
//! bound on bytes or operations ends them. In a mixed workload each kind of
//! operation has its own sequential position, so it gets its own generator.
//! Not here: bytes, the block's size, when a new pass is wanted.

mod combined;
mod random;
mod sequential;

pub use combined::{PartlyRandom, RunStyle, SequentialRuns};
pub use random::{Skewed, Uniform, UniformMapped};
pub use sequential::{Cursor, Sequential};

use super::lfsr::Lfsr;

/// A source of block indices, inlined into the worker's loop.
pub trait Offsets {
    /// The next block, or `None` when the pass is over.
    fn next_block(&mut self) -> Option<u64>;

    /// Begins the next pass. Random streams run on, so passes differ.
    fn restart(&mut self);
}

impl Offsets for Lfsr {
    #[inline(always)]
    fn next_block(&mut self) -> Option<u64> {
        Self::next_block(self)
    }

    fn restart(&mut self) {
        Self::restart(self);
    }
}
