//! Patterns between sequential and random, around any random generator.
//!
//! In: a generator of jumps. Out: its blocks, with sequential ones between.
//! Only the jumps go through the inner generator's memory: sequential steps may
//! meet blocks that were given before, and do not take them from the pass (as
//! in fio). A step that would leave the region is a jump. The pass is over when
//! the inner generator's is.

use core::num::NonZeroU64;

use weir_run::generate::rng::Rng;

use super::Offsets;

/// Offsets of a run after a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStyle {
    /// The blocks behind it.
    Onwards,
    /// The same block again.
    Identical,
}

/// Runs of N operations per random jump.
#[derive(Debug, Clone)]
pub struct SequentialRuns<G> {
    jumps: G,
    blocks: u64,
    run: u64,
    step: u64,
    at: u64,
    left: u64,
}

impl<G: Offsets> SequentialRuns<G> {
    /// Runs of `run` operations in a region of `blocks` blocks, each begun where
    /// `jumps` says.
    pub const fn new(jumps: G, blocks: NonZeroU64, run: NonZeroU64, style: RunStyle) -> Self {
        Self {
            jumps,
            blocks: blocks.get(),
            run: run.get(),
            step: match style {
                RunStyle::Onwards => 1,
                RunStyle::Identical => 0,
            },
            at: 0,
            left: 0,
        }
    }
}

impl<G: Offsets> Offsets for SequentialRuns<G> {
    #[inline(always)]
    fn next_block(&mut self) -> Option<u64> {
        if self.left > 0 {
            self.left -= 1;
            let next = self.at + self.step;
            if next < self.blocks {
                self.at = next;
                return Some(next);
            }
            // At the region's end the run goes on from another place.
            self.at = self.jumps.next_block()?;
            return Some(self.at);
        }
        self.at = self.jumps.next_block()?;
        self.left = self.run - 1;
        Some(self.at)
    }

    fn restart(&mut self) {
        self.jumps.restart();
        self.left = 0;
    }
}

/// A share of the operations random, the others sequential to the one before.
#[derive(Debug, Clone)]
pub struct PartlyRandom<G> {
    jumps: G,
    blocks: u64,
    percent: u64,
    rng: Rng,
    next: u64,
}

impl<G: Offsets> PartlyRandom<G> {
    /// `percent` of the operations (100 or more: all) go where `jumps` says.
    pub const fn new(jumps: G, blocks: NonZeroU64, percent: u8, rng: Rng) -> Self {
        Self {
            jumps,
            blocks: blocks.get(),
            percent: percent as u64,
            rng,
            next: 0,
        }
    }
}

impl<G: Offsets> Offsets for PartlyRandom<G> {
    #[inline(always)]
    fn next_block(&mut self) -> Option<u64> {
        let jump = self.rng.below(100) < self.percent || self.next >= self.blocks;
        let block = if jump {
            self.jumps.next_block()?
        } else {
            self.next
        };
        self.next = block + 1;
        Some(block)
    }

    fn restart(&mut self) {
        self.jumps.restart();
        self.next = 0;
    }
}
