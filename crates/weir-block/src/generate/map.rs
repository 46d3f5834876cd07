//! The random map: each block exactly once per pass, in random order.
//!
//! In: the number of blocks and, per draw, a wished block. Out: that block, or
//! the next free one behind it (wrapping round) when it has been given before.
//!
//! A tree of bitmaps with 64 children per word: level 0 has one bit per block,
//! a bit above says that the word below is full. Taking a free block touches
//! one word; finding the next free one touches a word or two per level. Memory:
//! n/8 bytes and 1/63 of that for the levels above. Not here: the wishes
//! (`offsets::UniformMapped` draws them ahead so that their words are in cache).

use core::num::NonZeroU64;

use super::GenerateError;
use super::prefetch::prefetch;

const FULL: u64 = u64::MAX;

/// Blocks that have been given in this pass.
#[derive(Debug, Clone)]
pub struct RandomMap {
    /// Level 0, apart from the rest because nearly every draw ends here.
    leaves: Box<[u64]>,
    /// The levels above; the last one is a single word.
    upper: Vec<Box<[u64]>>,
    blocks: u64,
    free: u64,
}

impl RandomMap {
    /// A map of `blocks` free blocks.
    ///
    /// The memory is touched here, so that no page fault falls into the run.
    ///
    /// # Errors
    /// [`GenerateError::MapMemory`] when the memory cannot be had.
    pub fn new(blocks: NonZeroU64) -> Result<Self, GenerateError> {
        let blocks = blocks.get();
        let mut words = blocks.div_ceil(64);
        let leaves = zeroed(words, blocks)?;
        let mut upper = Vec::new();
        while words > 1 {
            words = words.div_ceil(64);
            upper.push(zeroed(words, blocks)?);
        }
        let mut map = Self {
            leaves,
            upper,
            blocks,
            free: blocks,
        };
        map.close_ends();
        Ok(map)
    }

    /// Frees every block: the next pass.
    pub fn reset(&mut self) {
        self.leaves.fill(0);
        for level in &mut self.upper {
            level.fill(0);
        }
        self.free = self.blocks;
        self.close_ends();
    }

    /// The number of blocks of the region.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Asks the cache for the word that [`take`](Self::take) will look at first.
    #[inline(always)]
    pub fn prefetch(&self, wish: u64) {
        prefetch(&self.leaves, place(wish).0);
    }

    /// Takes `wish` (below n), or the next free block behind it, wrapping round.
    /// `None` when the pass is over.
    #[inline(always)]
    pub fn take(&mut self, wish: u64) -> Option<u64> {
        let (word, bit) = place(wish);
        let old = self.leaves[word];
        if old & bit == 0 {
            let new = old | bit;
            self.leaves[word] = new;
            self.free -= 1;
            if new == FULL {
                self.fill_upwards(word);
            }
            return Some(wish);
        }
        self.take_next_free(wish)
    }

    /// Takes up to `want` further blocks that follow `block` without a gap, and
    /// says how many were free: an operation of several blocks stops short
    /// before a block that this pass has given already.
    pub fn extend(&mut self, block: u64, want: u64) -> u64 {
        let mut taken = 0;
        while taken < want {
            let next = block + 1 + taken;
            if next >= self.blocks {
                break;
            }
            let (word, bit) = place(next);
            if self.leaves[word] & bit != 0 {
                break;
            }
            self.take(next);
            taken += 1;
        }
        taken
    }

    #[inline(never)]
    fn take_next_free(&mut self, wish: u64) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        let block = self.next_free(wish).or_else(|| self.next_free(0))?;
        self.take(block)
    }

    /// The first free block at or behind `from`, without wrapping: up until a
    /// word has a zero far enough right, then down along the first zeros.
    fn next_free(&self, from: u64) -> Option<u64> {
        let mut level = 0;
        let mut at = from;
        let mut found = loop {
            let words = if level == 0 {
                &self.leaves
            } else {
                self.upper.get(level - 1)?
            };
            let (word, bit) = place(at);
            let zeros = words.get(word).map_or(0, |w| !w & bit.wrapping_neg());
            if zeros != 0 {
                break first(word, zeros);
            }
            at = (at >> 6) + 1;
            level += 1;
        };
        while level > 0 {
            level -= 1;
            let words = if level == 0 {
                &self.leaves
            } else {
                &self.upper[level - 1]
            };
            let word = index(found);
            found = first(word, !words[word]);
        }
        Some(found)
    }

    #[cold]
    fn fill_upwards(&mut self, child: usize) {
        let mut child = child as u64;
        for level in &mut self.upper {
            let (word, bit) = place(child);
            level[word] |= bit;
            if level[word] != FULL {
                break;
            }
            child >>= 6;
        }
    }

    /// Marks the bits behind the last child of each level as full.
    fn close_ends(&mut self) {
        let mut children = self.blocks;
        for words in core::iter::once(&mut self.leaves).chain(&mut self.upper) {
            if !children.is_multiple_of(64)
                && let Some(last) = words.last_mut()
            {
                *last |= FULL << (children % 64);
            }
            children = children.div_ceil(64);
        }
    }
}

/// The word of a bit, and the bit in it.
#[inline(always)]
const fn place(bit: u64) -> (usize, u64) {
    (index(bit >> 6), 1 << (bit & 63))
}

#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers of words held in memory fit a pointer"
)]
const fn index(word: u64) -> usize {
    word as usize
}

/// The number of the first set bit of `zeros` in word number `word`.
#[inline(always)]
const fn first(word: usize, zeros: u64) -> u64 {
    ((word as u64) << 6) + zeros.trailing_zeros() as u64
}

fn zeroed(words: u64, blocks: u64) -> Result<Box<[u64]>, GenerateError> {
    let refused = GenerateError::MapMemory {
        blocks,
        bytes: blocks.div_ceil(8),
    };
    let words = usize::try_from(words).map_err(|_| refused)?;
    let mut level = Vec::new();
    level.try_reserve_exact(words).map_err(|_| refused)?;
    level.resize(words, 0);
    Ok(level.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(n: u64) -> RandomMap {
        RandomMap::new(NonZeroU64::new(n).unwrap()).unwrap()
    }

    #[test]
    fn a_taken_block_yields_the_next_free_one_and_wraps_round() {
        let mut map = map(200);
        assert_eq!(map.take(198), Some(198));
        assert_eq!(map.take(198), Some(199));
        assert_eq!(map.take(198), Some(0));
        assert_eq!(map.take(0), Some(1));
        assert_eq!(map.free, 196);
    }

    #[test]
    fn the_next_free_block_is_found_across_levels() {
        let mut map = map(300_000);
        for block in 0..299_999 {
            assert_eq!(map.take(5), Some((block + 5) % 300_000));
        }
        assert_eq!(map.take(77), Some(4));
        assert_eq!(map.take(77), None);
        map.reset();
        assert_eq!(map.take(77), Some(77));
    }

    #[test]
    fn an_extension_stops_before_a_block_given_already_and_at_the_end() {
        let mut map = map(100);
        map.take(70);
        map.take(60);
        assert_eq!(map.extend(60, 20), 9);
        map.take(90);
        assert_eq!(map.extend(90, 20), 9);
        assert_eq!(map.free, 100 - 1 - 10 - 10);
    }

    #[test]
    fn a_thousand_million_blocks_need_at_most_130_megabytes() {
        let map = map(1_000_000_000);
        let words = map.leaves.len() + map.upper.iter().map(|level| level.len()).sum::<usize>();
        assert!(words * size_of::<u64>() <= 130_000_000);
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        let refused = RandomMap::new(NonZeroU64::new(u64::MAX).unwrap()).unwrap_err();
        assert!(matches!(refused, GenerateError::MapMemory { .. }));
    }
}
