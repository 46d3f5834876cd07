//! Placement: which block a rank of popularity stands for.
//!
//! In: a rank in [0, n) and a seed. Out: a block in [0, n), each exactly once,
//! so that no block is lost and none is hit twice as often as its rank says.
//!
//! Let 2^k be the smallest power of two that is at least n. A chain of steps,
//! each a bijection on k-bit numbers (fold the upper half down, multiply by an
//! odd number, add), mixes the rank; a result that is not below n goes through
//! the chain again ("cycle walking"), less than once on average. Following the
//! cycle of a bijection until it re-enters [0, n) is a bijection on [0, n).

use core::num::NonZeroU64;

use weir_run::generate::rng::SplitMix64;

/// A seeded bijection on [0, n), optionally turned so that rank 0 lies at a
/// chosen place.
#[derive(Debug, Clone)]
pub struct Permutation {
    blocks: u64,
    mask: u64,
    fold: u32,
    multiply: [u64; 2],
    add: [u64; 2],
    turn: u64,
}

impl Permutation {
    /// The bijection that belongs to `seed`.
    ///
    /// With `center` (a share of the region, 0..=1) the whole placement is
    /// turned until rank 0 lies at block `floor(center · n)`, the last block
    /// for 1.
    pub fn new(blocks: NonZeroU64, seed: u64, center: Option<f64>) -> Self {
        let blocks = blocks.get();
        let bits = u64::BITS - (blocks - 1).leading_zeros();
        let mut words = SplitMix64::new(seed);
        let mut placed = Self {
            blocks,
            mask: u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0),
            fold: bits.div_ceil(2).max(1),
            multiply: [words.next_u64() | 1, words.next_u64() | 1],
            add: [words.next_u64(), words.next_u64()],
            turn: 0,
        };
        if let Some(center) = center {
            let target = block_at(center, blocks);
            let first = placed.block(0);
            placed.turn = if target >= first {
                target - first
            } else {
                blocks - (first - target)
            };
        }
        placed
    }

    /// The block on which `rank` (below n) is placed.
    #[inline]
    pub fn block(&self, rank: u64) -> u64 {
        let mut x = self.round(rank);
        while x >= self.blocks {
            x = self.round(x);
        }
        let room = self.blocks - self.turn;
        if x >= room { x - room } else { x + self.turn }
    }

    /// The last block, n − 1.
    pub const fn last(&self) -> u64 {
        self.blocks - 1
    }

    #[inline(always)]
    const fn round(&self, x: u64) -> u64 {
        let x = x ^ (x >> self.fold);
        let x = x.wrapping_mul(self.multiply[0]).wrapping_add(self.add[0]) & self.mask;
        let x = x ^ (x >> self.fold);
        let x = x.wrapping_mul(self.multiply[1]).wrapping_add(self.add[1]) & self.mask;
        x ^ (x >> self.fold)
    }
}

/// The block at `share` (0..=1) of a region of `blocks` blocks.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in the region to 53 bits; the cast saturates and the result is clamped"
)]
pub(super) fn block_at(share: f64, blocks: u64) -> u64 {
    ((share * blocks as f64) as u64).min(blocks - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(n: u64) -> NonZeroU64 {
        NonZeroU64::new(n).unwrap()
    }

    #[test]
    fn every_block_is_the_place_of_exactly_one_rank() {
        for n in (1..=300).chain([1000, 4095, 4096, 4097, 65_537]) {
            for (seed, center) in [(1, None), (2, None), (3, Some(0.0)), (4, Some(0.37))] {
                let placed = Permutation::new(blocks(n), seed, center);
                let mut seen = vec![false; usize::try_from(n).unwrap()];
                for rank in 0..n {
                    let block = usize::try_from(placed.block(rank)).unwrap();
                    assert!(!seen[block], "n {n} rank {rank}");
                    seen[block] = true;
                }
            }
        }
    }

    #[test]
    fn a_centre_puts_the_hottest_rank_there() {
        for (center, block) in [(0.0, 0), (0.25, 250), (0.5, 500), (1.0, 999)] {
            let placed = Permutation::new(blocks(1000), 9, Some(center));
            assert_eq!(placed.block(0), block);
        }
    }

    #[test]
    fn regions_up_to_the_largest_number_are_placed_without_overflow() {
        for n in [u64::MAX, 1 << 63, (1 << 63) + 1, 1 << 62] {
            let placed = Permutation::new(blocks(n), 5, Some(0.9));
            for rank in [0, 1, 2, n / 2, n - 1] {
                assert!(placed.block(rank) < n);
            }
        }
    }
}
