//! The source of the commonest workloads: one kind, one size, one target. Everything that the
//! general source decides per operation is decided at build time here.

#![expect(
    clippy::inline_always,
    reason = "parts of the worker loop; a call would pass the operation through memory"
)]

use weir_run::Source;

use crate::generate::offsets::Offsets;
use crate::op::{BlockOp, Verb};
use crate::source::buffers::SlotBuffers;
use crate::source::passes::BetweenPasses;

/// One kind of operation of one size on one target.
#[derive(Debug)]
pub struct FixedSource<G> {
    pub(super) offsets: G,
    pub(super) start: u64,
    pub(super) length: u32,
    pub(super) verb: Verb,
    pub(super) left: u64,
    pub(super) buffers: SlotBuffers,
    pub(super) passes: BetweenPasses,
}

impl<G: Offsets> FixedSource<G> {
    /// The next block; a new pass begins when one is over. One call site, so that it inlines; a
    /// region has at least one block, so that a pass has at least one too.
    #[inline(always)]
    fn next_block(&mut self) -> u64 {
        loop {
            if let Some(block) = self.offsets.next_block() {
                return block;
            }
            self.offsets.restart();
            self.passes.at(0);
        }
    }
}

impl<G: Offsets> Source for FixedSource<G> {
    type Op = BlockOp;
    const ONE_KIND: bool = true;

    #[inline(always)]
    fn only_kind(&self) -> usize {
        self.verb.kind().index()
    }

    #[inline(always)]
    fn next(&mut self, slot: u32) -> Option<BlockOp> {
        self.left = self.left.checked_sub(1)?;
        let block = self.next_block();
        Some(BlockOp {
            offset: self.start + block * u64::from(self.length),
            buffer: self.buffers.at(slot),
            length: self.length,
            target: 0,
            range: 0,
            range_flags: 0,
            verb: self.verb,
            priority: 0,
        })
    }

    #[inline(always)]
    fn has_paused(&mut self) -> bool {
        self.passes.has_acted()
    }

    #[inline(always)]
    fn prepare(&mut self, slot: u32, op: &BlockOp) {
        self.buffers.prepare(slot, op);
    }

    #[inline(always)]
    fn prepare_is_timed(&self) -> bool {
        self.buffers.prepare_is_timed()
    }
}
