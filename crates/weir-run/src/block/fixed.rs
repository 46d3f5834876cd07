//! The source of the commonest workloads: one kind, one size, one target. Everything that the
//! general source decides per operation is decided at build time here.

use crate::block::buffers::Buffers;
use crate::block::op::{BlockOp, Verb};
use crate::generate::offsets::Offsets;
use crate::source::Source;

/// One kind of operation of one size on one target.
#[derive(Debug)]
pub struct FixedSource<G> {
    pub(super) offsets: G,
    pub(super) start: u64,
    pub(super) length: u32,
    pub(super) verb: Verb,
    pub(super) left: u64,
    pub(super) buffers: Buffers,
}

impl<G> FixedSource<G> {
    /// The memory of its slots.
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }
}

impl<G: Offsets> FixedSource<G> {
    /// The next block; a new pass begins when one is over.
    #[inline]
    fn next_block(&mut self) -> Option<u64> {
        self.offsets.next_block().or_else(|| {
            self.offsets.restart();
            self.offsets.next_block()
        })
    }
}

impl<G: Offsets> Source for FixedSource<G> {
    type Op = BlockOp;

    #[inline]
    fn next(&mut self, slot: u32) -> Option<BlockOp> {
        self.left = self.left.checked_sub(1)?;
        let block = self.next_block()?;
        Some(BlockOp {
            offset: self.start + block * u64::from(self.length),
            buffer: self.buffers.at(slot),
            length: self.length,
            target: 0,
            verb: self.verb,
        })
    }

    #[inline]
    fn prepare(&mut self, slot: u32, op: &BlockOp) {
        self.buffers.prepare(slot, op);
    }

    #[inline]
    fn prepare_is_timed(&self) -> bool {
        self.buffers.prepare_is_timed()
    }
}
