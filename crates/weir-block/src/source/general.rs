//! The source of every other workload: mixes, several targets, varying sizes, flushes.

use weir_run::Source;

use crate::engine::priority::Priorities;
use crate::generate::mix::{DataKind, KindMix};
use crate::generate::sizes::SizeDraw;
use crate::op::{BlockOp, Buffer, Verb};
use crate::recorded::PatternReader;
use crate::source::Extent;
use crate::source::block_order::BlockOrder;
use crate::source::buffers::SlotBuffers;
use crate::source::flushes::Flushes;
use crate::source::passes::BetweenPasses;
use crate::source::service::Service;

/// One target with its walk.
#[derive(Debug)]
pub(super) struct SourceTarget {
    pub(super) index: u32,
    pub(super) extent: Extent,
    pub(super) walk: BlockOrder,
}

/// Mixed kinds, several targets, varying sizes.
#[derive(Debug)]
pub struct GeneralSource {
    pub(super) mix: KindMix,
    pub(super) sizes: SizeDraw,
    pub(super) targets: Vec<SourceTarget>,
    pub(super) service: Service,
    pub(super) bytes_left: u64,
    /// Bytes that a pass counts for where a skip lets it move less.
    pub(super) pass_bytes: Option<u64>,
    pub(super) behind_pass: u64,
    pub(super) operations_left: u64,
    pub(super) smallest: u64,
    pub(super) flushes: Flushes,
    /// Each trim is followed by a write of the same block.
    pub(super) rewrite_trimmed: bool,
    pub(super) rewrite: Option<BlockOp>,
    pub(super) buffers: SlotBuffers,
    pub(super) passes: BetweenPasses,
    /// Priorities of operations, if any have one.
    pub(super) priorities: Option<Priorities>,
    /// Operations that are carried out instead of drawn ones.
    pub(super) script: Option<Script>,
}

/// The operations of a recorded pattern.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) reader: PatternReader,
    pub(super) left: u64,
}

impl Script {
    fn next(&mut self, buffer: Buffer) -> Option<BlockOp> {
        self.left = self.left.checked_sub(1)?;
        let op = self.reader.next()?;
        Some(BlockOp {
            offset: op.offset,
            buffer,
            length: op.length,
            target: op.file,
            range: 0,
            range_flags: 0,
            verb: op.verb,
            priority: 0,
        })
    }
}

impl GeneralSource {
    /// The memory of its slots.
    pub(super) fn buffers(&self) -> &SlotBuffers {
        &self.buffers
    }

    /// Gives an operation its priority, where some have one.
    pub(super) fn prioritise(&mut self, op: &mut BlockOp) {
        if let Some(priorities) = &mut self.priorities {
            op.priority = priorities.next(op);
        }
    }

    /// Begins to read back written data, which is another pass over the targets.
    pub(super) fn turn_back(&mut self) {
        self.passes.at_all(self.targets.len());
    }

    /// Counts an operation that reads written data back; such an operation is never
    /// refused.
    pub(super) fn spend_operation(&mut self) {
        self.operations_left = self.operations_left.saturating_sub(1);
    }

    /// Gives the operations of another pass.
    pub(super) fn renew(&mut self, bytes: u64) {
        self.bytes_left = bytes;
        self.behind_pass = 0;
    }

    /// Offset and length on the next target in turn that has something left in this pass.
    fn next_place(&mut self, kind: DataKind) -> Option<(usize, u64, u64)> {
        while let Some(at) = self.service.file() {
            let sizes = &mut self.sizes;
            let left = self.bytes_left;
            let walk = &mut self.targets[at].walk;
            let mut choose = |room: u64| sizes.choose(kind, room.min(left));
            let mut place = walk.next(kind.index(), &mut choose);
            if place.is_none() && self.service.repeats_files() {
                walk.restart();
                self.passes.at(at);
                place = walk.next(kind.index(), &mut choose);
            }
            match place {
                Some((offset, length)) => return Some((at, offset, length)),
                None => self.service.done(),
            }
        }
        None
    }

    fn restart(&mut self) {
        for target in &mut self.targets {
            target.walk.restart();
        }
        self.service.restart();
        self.passes.at_all(self.targets.len());
        if let Some(bytes) = self.pass_bytes {
            self.bytes_left = self.behind_pass;
            self.behind_pass = self.behind_pass.saturating_sub(bytes);
        }
    }

    /// The kind of the next operation and its place, in a further pass where this one is over.
    fn next_operation(&mut self) -> Option<(DataKind, (usize, u64, u64))> {
        let kind = self.mix.next_kind();
        if let Some(place) = self.next_place(kind) {
            return Some((kind, place));
        }
        self.restart();
        if self.bytes_left < self.smallest {
            return None;
        }
        Some((kind, self.next_place(kind)?))
    }

    fn data(&mut self, slot: u32) -> Option<BlockOp> {
        if self.bytes_left < self.smallest {
            return None;
        }
        self.operations_left = self.operations_left.checked_sub(1)?;
        if let Some(mut op) = self.rewrite.take() {
            op.buffer = self.buffers.at(slot);
            return Some(op);
        }
        let (kind, (at, offset, length)) = self.next_operation()?;
        self.mix.took(kind, length);
        let target = &self.targets[at];
        let mut op = BlockOp {
            offset: target.extent.start + offset,
            buffer: self.buffers.at(slot),
            length: u32::try_from(length).unwrap_or(u32::MAX),
            target: target.index,
            range: 0,
            range_flags: 0,
            verb: match kind {
                DataKind::Read => Verb::Read,
                DataKind::Write => Verb::Write,
                DataKind::Trim => Verb::Trim,
            },
            priority: 0,
        };
        self.prioritise(&mut op);
        if self.rewrite_trimmed && op.verb == Verb::Trim {
            let mut rewrite = BlockOp {
                verb: Verb::Write,
                ..op
            };
            self.prioritise(&mut rewrite);
            self.rewrite = Some(rewrite);
        }
        Some(op)
    }
}

impl Source for GeneralSource {
    type Op = BlockOp;

    fn next(&mut self, slot: u32) -> Option<BlockOp> {
        if let Some(script) = &mut self.script {
            let mut op = script.next(self.buffers.at(slot))?;
            self.prioritise(&mut op);
            return Some(op);
        }
        // What was written is flushed before the next operation: after the last one only an end
        // of the job that asks for it flushes.
        let over = self.bytes_left < self.smallest || self.operations_left == 0;
        if !over && let Some(flush) = self.flushes.due() {
            return Some(flush);
        }
        let op = self.data(slot)?;
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(op.length));
        if op.verb == Verb::Write {
            self.flushes.count(&op);
        }
        Some(op)
    }

    #[inline]
    fn has_paused(&mut self) -> bool {
        self.passes.has_acted()
    }

    #[inline]
    fn prepare(&mut self, slot: u32, op: &BlockOp) {
        self.buffers.prepare(slot, op);
    }

    #[inline]
    fn prepare_is_timed(&self) -> bool {
        let is_read = |script: &Script| script.reader.is_read_in_pieces();
        self.buffers.prepare_is_timed() || self.script.as_ref().is_some_and(is_read)
    }
}
