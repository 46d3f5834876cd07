//! Sequential offsets: forwards, with a gap, or backwards.
//!
//! In: the region and a signed skip that is added after each operation. Out:
//! positions. A backward walk that leaves the region begins again at its end. A
//! forward walk is over with its last block; only where the skip behind it leads
//! out of the region does it begin again at the start, as in fio. In any case a
//! pass is over after as many bytes as the region has; without a skip, or
//! backwards by one, each block comes once.
//!
//! One deliberate difference: fio begins a backward walk at offset 0, wraps to
//! the end less the skip, and never reaches the last block; here it begins at
//! the last block.

use core::num::NonZeroU64;

use super::Offsets;

/// Sequential blocks.
#[derive(Debug, Clone)]
pub struct Sequential {
    blocks: u64,
    stride: i64,
    at: u64,
    left: u64,
}

impl Sequential {
    /// Block after block.
    pub const fn new(blocks: NonZeroU64) -> Self {
        Self::with_skip(blocks, 0)
    }

    /// Adds `skip_blocks` after each operation: 1 leaves every other block out,
    /// −2 runs backwards, −1 stays where it is.
    pub const fn with_skip(blocks: NonZeroU64, skip_blocks: i64) -> Self {
        let mut walk = Self {
            blocks: blocks.get(),
            stride: skip_blocks.saturating_add(1),
            at: 0,
            left: blocks.get(),
        };
        walk.at = walk.start();
        walk
    }

    const fn start(&self) -> u64 {
        if self.stride < 0 { self.blocks - 1 } else { 0 }
    }
}

impl Offsets for Sequential {
    #[inline(always)]
    fn next_block(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let block = self.at;
        self.at = match block.checked_add_signed(self.stride) {
            Some(next) if next < self.blocks => next,
            _ => self.start(),
        };
        Some(block)
    }

    fn restart(&mut self) {
        self.at = self.start();
        self.left = self.blocks;
    }
}

/// A sequential walk in bytes, for operations of varying size or a skip that
/// is no multiple of the block.
///
/// Per operation: ask [`room_bytes`](Self::room_bytes), choose a size that
/// fits, then [`advance`](Self::advance). The pass is over when the bytes given
/// reach the region's size; the caller sees it as no room.
#[derive(Debug, Clone)]
pub struct Cursor {
    region_bytes: u64,
    skip_bytes: i64,
    smallest_bytes: u64,
    at: u64,
    left: u64,
}

impl Cursor {
    /// A walk over `region_bytes` in operations of at least `smallest_bytes`,
    /// with `skip_bytes` added after each.
    pub const fn new(region_bytes: u64, skip_bytes: i64, smallest_bytes: NonZeroU64) -> Self {
        let mut walk = Self {
            region_bytes,
            skip_bytes,
            smallest_bytes: smallest_bytes.get(),
            at: 0,
            left: region_bytes,
        };
        walk.at = walk.start();
        walk
    }

    /// Largest length that the next operation may have, in bytes. Less than the
    /// smallest operation means that the pass is over.
    #[inline]
    pub const fn room_bytes(&self) -> u64 {
        let ahead = self.region_bytes - self.at;
        if ahead < self.left { ahead } else { self.left }
    }

    /// The offset of an operation of `bytes` (at most the room), and the step
    /// behind it.
    #[inline]
    pub const fn advance(&mut self, bytes: u64) -> u64 {
        let offset = self.at;
        self.left = self.left.saturating_sub(bytes);
        let end = offset.saturating_add(bytes);
        let last = self.region_bytes.saturating_sub(self.smallest_bytes);
        self.at = match end.checked_add_signed(self.skip_bytes) {
            Some(next) if next <= last => next,
            next => {
                // Behind the last block, or before a rest that is shorter than one.
                let is_behind = match next {
                    Some(next) => end >= self.region_bytes || next < self.region_bytes,
                    None => false,
                };
                if self.skip_bytes > 0 && is_behind {
                    self.left = 0;
                }
                self.start()
            }
        };
        offset
    }

    /// Begins the next pass.
    pub const fn restart(&mut self) {
        self.at = self.start();
        self.left = self.region_bytes;
    }

    /// Backwards when a smallest operation and the skip lead to lower offsets.
    const fn start(&self) -> u64 {
        if self.skip_bytes < 0 && self.skip_bytes.unsigned_abs() > self.smallest_bytes {
            self.region_bytes.saturating_sub(self.smallest_bytes)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(blocks: u64, skip: i64) -> Vec<u64> {
        let mut walk = Sequential::with_skip(NonZeroU64::new(blocks).unwrap(), skip);
        let first: Vec<u64> = core::iter::from_fn(|| walk.next_block()).collect();
        walk.restart();
        let second: Vec<u64> = core::iter::from_fn(|| walk.next_block()).collect();
        assert_eq!(first, second);
        first
    }

    #[test]
    fn a_plain_walk_gives_each_block_in_order() {
        assert_eq!(pass(5, 0), [0, 1, 2, 3, 4]);
        assert_eq!(pass(1, 0), [0]);
    }

    #[test]
    fn a_skip_leaves_blocks_out_and_begins_again_at_the_start() {
        assert_eq!(pass(8, 1), [0, 2, 4, 6, 0, 2, 4, 6]);
        assert_eq!(pass(8, 2), [0, 3, 6, 0, 3, 6, 0, 3]);
        assert_eq!(pass(3, i64::MAX), [0, 0, 0]);
    }

    #[test]
    fn a_skip_of_minus_two_runs_backwards_over_every_block() {
        assert_eq!(pass(5, -2), [4, 3, 2, 1, 0]);
        assert_eq!(pass(6, -3), [5, 3, 1, 5, 3, 1]);
        assert_eq!(pass(3, -1), [0, 0, 0]);
        assert_eq!(pass(3, i64::MIN), [2, 2, 2]);
    }

    fn walked(blocks: u64, skip: i64) -> Vec<u64> {
        let mut cursor = Cursor::new(blocks * 4096, skip * 4096, NonZeroU64::new(4096).unwrap());
        let mut offsets = Vec::new();
        while cursor.room_bytes() >= 4096 {
            offsets.push(cursor.advance(4096) / 4096);
        }
        offsets
    }

    #[test]
    fn a_cursor_gives_the_offsets_of_the_blocks_for_a_fixed_size() {
        for skip in [0_i64, 1, -1, -2, -3] {
            assert_eq!(walked(8, skip), pass(8, skip), "skip {skip}");
        }
    }

    #[test]
    fn a_skip_that_leads_to_the_last_block_ends_the_walk_there() {
        assert_eq!(walked(16, 2), [0, 3, 6, 9, 12, 15]);
        assert_eq!(walked(7, 1), [0, 2, 4, 6]);
        // Out of the region from the block before the last.
        assert_eq!(walked(8, 2), [0, 3, 6, 0, 3, 6, 0, 3]);
        // A block of two does not fit into what is left behind the skip.
        let mut cursor = Cursor::new(128, 0, NonZeroU64::new(1).unwrap());
        assert_eq!((cursor.advance(128), cursor.room_bytes()), (0, 0));
        let mut cursor = Cursor::new(5 * 4096, 2048, NonZeroU64::new(4096).unwrap());
        let starts = [(); 3].map(|()| cursor.advance(4096));
        assert_eq!((starts, cursor.room_bytes()), ([0, 6144, 12288], 0));
    }

    #[test]
    fn a_cursor_covers_the_region_in_operations_of_varying_size() {
        let mut cursor = Cursor::new(10_000, 0, NonZeroU64::new(512).unwrap());
        let mut reached = 0;
        for bytes in [512, 4096, 1024, 4368] {
            assert_eq!(cursor.advance(bytes), reached);
            reached += bytes;
        }
        assert_eq!(cursor.room_bytes(), 0);
        cursor.restart();
        assert_eq!(cursor.room_bytes(), 10_000);
    }
}
