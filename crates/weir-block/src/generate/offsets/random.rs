//! Random offsets: uniform without and with memory, and skewed.

use core::num::NonZeroU64;

use weir_run::generate::rng::Rng;

use super::Offsets;
use crate::generate::GenerateError;
use crate::generate::distribution::OffsetDistribution;
use crate::generate::map::RandomMap;

/// Uniform without memory: blocks repeat, a pass never ends.
#[derive(Debug, Clone)]
pub struct Uniform {
    blocks: u64,
    rng: Rng,
}

impl Uniform {
    /// Draws from [0, `blocks`).
    pub const fn new(blocks: NonZeroU64, rng: Rng) -> Self {
        Self {
            blocks: blocks.get(),
            rng,
        }
    }
}

impl Offsets for Uniform {
    #[inline(always)]
    fn next_block(&mut self) -> Option<u64> {
        Some(self.rng.below(self.blocks))
    }

    fn restart(&mut self) {}
}

/// Wishes drawn ahead of their use.
const AHEAD: usize = 16;

/// Uniform with a map: each block exactly once per pass.
///
/// Wishes are drawn 16 ahead, so that the word of the map that each will look
/// at has arrived from memory by then. The order of the draws, and so the
/// sequence, is the same as without.
#[derive(Debug, Clone)]
pub struct UniformMapped {
    map: RandomMap,
    rng: Rng,
    wishes: [u64; AHEAD],
    turn: usize,
}

impl UniformMapped {
    /// Draws from [0, `blocks`).
    ///
    /// # Errors
    /// [`GenerateError::MapMemory`] when the map's memory cannot be had.
    pub fn new(blocks: NonZeroU64, mut rng: Rng) -> Result<Self, GenerateError> {
        let map = RandomMap::new(blocks)?;
        let wishes = core::array::from_fn(|_| rng.below(blocks.get()));
        Ok(Self {
            map,
            rng,
            wishes,
            turn: 0,
        })
    }

    /// The map, for its memory and what is left of the pass.
    pub const fn map(&self) -> &RandomMap {
        &self.map
    }

    /// Takes up to `want` further blocks behind `block`, for an operation that
    /// is larger than one block; see [`RandomMap::extend`].
    pub fn extend(&mut self, block: u64, want: u64) -> u64 {
        self.map.extend(block, want)
    }
}

impl Offsets for UniformMapped {
    #[inline(always)]
    fn next_block(&mut self) -> Option<u64> {
        let turn = self.turn % AHEAD;
        self.turn = turn + 1;
        let wish = self.wishes[turn];
        let later = self.rng.below(self.map.blocks());
        self.map.prefetch(later);
        self.wishes[turn] = later;
        self.map.take(wish)
    }

    fn restart(&mut self) {
        self.map.reset();
    }
}

/// A skewed distribution: blocks repeat, a pass never ends.
#[derive(Debug, Clone)]
pub struct Skewed {
    distribution: OffsetDistribution,
    rng: Rng,
}

impl Skewed {
    /// Draws from `distribution`.
    pub const fn new(distribution: OffsetDistribution, rng: Rng) -> Self {
        Self { distribution, rng }
    }
}

impl Offsets for Skewed {
    #[inline(always)]
    fn next_block(&mut self) -> Option<u64> {
        Some(self.distribution.draw(&mut self.rng))
    }

    fn restart(&mut self) {}
}
