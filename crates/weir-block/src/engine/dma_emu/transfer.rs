//! Moving data between an operation's buffer and the card's memory, in order and with faults.
//!
//! In: an operation that its channel accepts. Out: bytes moved. Like a device, the card ends:
//! behind its end there is nothing to read and no room to write.

use rustix::io::{Errno, pread, pwrite};

use super::super::calls::memory;
use super::card::EmulatedCard;
use crate::op::{BlockOp, Verb};

impl EmulatedCard {
    /// Moves an operation's data.
    pub(super) fn transfer(&self, op: &BlockOp) -> Result<usize, Errno> {
        let Some(op) = self.inside(op) else {
            return if op.verb == Verb::Write && op.length > 0 {
                Err(Errno::NOSPC)
            } else {
                Ok(0)
            };
        };
        if op.verb == Verb::Write {
            pwrite(&self.memory, memory(op), op.offset)
        } else {
            pread(&self.memory, memory(op), op.offset)
        }
    }

    /// The same, but one bit of the byte at `place` changes on its way.
    pub(super) fn transfer_with_flip(&self, op: &BlockOp, place: u64) -> Result<usize, Errno> {
        let moved = self.transfer(op)?;
        let Some(index) = usize::try_from(place - op.offset)
            .ok()
            .filter(|&i| i < moved)
        else {
            return Ok(moved);
        };
        if op.verb == Verb::Write {
            // The caller's buffer stays what it is.
            let flipped = memory(*op)[index] ^ 1;
            pwrite(&self.memory, &[flipped], place)?;
        } else {
            memory(*op)[index] ^= 1;
        }
        Ok(moved)
    }

    /// The block gets the data of the block before it, at the card's start of the one after.
    pub(super) fn transfer_from_neighbour(&self, op: &BlockOp) -> Result<usize, Errno> {
        let length = u64::from(op.length);
        let neighbour = op.offset.checked_sub(length).unwrap_or(op.offset + length);
        if op.verb == Verb::Write {
            let Some(op) = self.inside(op) else {
                return Err(Errno::NOSPC);
            };
            let mut block = vec![0; op.length as usize];
            pread(&self.memory, &mut block, neighbour)?;
            return pwrite(&self.memory, &block, op.offset);
        }
        self.transfer(&BlockOp {
            offset: neighbour,
            ..*op
        })
    }

    /// The part of an operation that lies on the card.
    fn inside(&self, op: &BlockOp) -> Option<BlockOp> {
        let room = self.size.checked_sub(op.offset).filter(|&room| room > 0)?;
        let length = u32::try_from(room).map_or(op.length, |room| room.min(op.length));
        Some(BlockOp { length, ..*op })
    }
}
