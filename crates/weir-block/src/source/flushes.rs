//! Flushes among the writes of a general source.
//!
//! In: the plan's counts and each write. Out: the flush that is due before the next operation.
//! Not here: flushes at the end.

use std::num::NonZeroU32;

use weir_schema::{Flush, RangeFlush};

use crate::op::{BlockOp, Verb};

/// Flags of `sync_file_range(2)`.
const WAIT_BEFORE: u8 = 1;
const WRITE: u8 = 2;
const WAIT_AFTER: u8 = 4;

/// Flushes among the writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Flushes {
    sync_every: Option<NonZeroU32>,
    data_sync_every: Option<NonZeroU32>,
    range_every: Option<NonZeroU32>,
    range_flags: u8,
    written: u64,
    pending: Option<Verb>,
    target: u32,
    /// By target: what was written since its last range was flushed.
    dirty: Vec<Option<(u64, u64)>>,
}

impl Flushes {
    pub(super) fn new(flush: &Flush, targets: usize) -> Self {
        let every = |n: Option<u32>| n.and_then(NonZeroU32::new);
        let range = flush.range;
        Self {
            sync_every: every(flush.fsync_every),
            data_sync_every: every(flush.fdatasync_every),
            range_every: every(range.map(|r| r.every)),
            range_flags: range.map_or(0, flags),
            dirty: vec![None; if range.is_some() { targets } else { 0 }],
            ..Self::default()
        }
    }

    /// Counts a write.
    pub(super) fn count(&mut self, op: &BlockOp) {
        self.written += 1;
        self.target = op.target;
        if let Some(dirty) = self.dirty.get_mut(op.target as usize) {
            let (start, end) = dirty.unwrap_or((u64::MAX, 0));
            let written_to = op.offset.saturating_add(u64::from(op.length));
            *dirty = Some((start.min(op.offset), end.max(written_to)));
        }
        let due = |every: Option<NonZeroU32>| {
            every.is_some_and(|n| self.written.is_multiple_of(u64::from(n.get())))
        };
        if due(self.sync_every) {
            self.pending = Some(Verb::Sync);
        } else if due(self.data_sync_every) {
            self.pending = Some(Verb::DataSync);
        } else if due(self.range_every) {
            self.pending = Some(Verb::RangeSync);
        }
    }

    /// The flush that comes before the next operation.
    pub(super) fn due(&mut self) -> Option<BlockOp> {
        let verb = self.pending.take()?;
        let mut op = BlockOp {
            target: self.target,
            verb,
            ..BlockOp::default()
        };
        if verb == Verb::RangeSync {
            let dirty = self.dirty.get_mut(self.target as usize)?;
            let (start, end) = dirty.take()?;
            op.offset = start;
            op.range_flags = self.range_flags;
            op.range = u32::try_from(end - start).unwrap_or(u32::MAX);
            let flushed_to = start + u64::from(op.range);
            if flushed_to < end {
                *dirty = Some((flushed_to, end));
                self.pending = Some(verb);
            }
        }
        Some(op)
    }
}

fn flags(range: RangeFlush) -> u8 {
    let flag = |on: bool, flag: u8| if on { flag } else { 0 };
    flag(range.wait_before, WAIT_BEFORE)
        | flag(range.write, WRITE)
        | flag(range.wait_after, WAIT_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(target: u32, offset: u64, length: u32) -> BlockOp {
        BlockOp {
            target,
            offset,
            length,
            verb: Verb::Write,
            ..BlockOp::default()
        }
    }

    #[test]
    fn the_range_written_since_the_last_flush_is_flushed() {
        let flush = Flush {
            range: Some(RangeFlush {
                every: 2,
                wait_before: false,
                write: true,
                wait_after: true,
            }),
            ..Flush::default()
        };
        let mut flushes = Flushes::new(&flush, 2);
        flushes.count(&write(1, 8192, 4096));
        assert_eq!(flushes.due(), None);
        flushes.count(&write(1, 0, 4096));
        let op = flushes.due().unwrap();
        assert_eq!(
            (op.target, op.offset, op.range, op.length),
            (1, 0, 12288, 0)
        );
        assert_eq!(
            (op.verb, op.range_flags),
            (Verb::RangeSync, WRITE | WAIT_AFTER)
        );
        flushes.count(&write(1, 4 << 30, 4096));
        flushes.count(&write(1, 1, 1));
        let ranges: Vec<_> = std::iter::from_fn(|| flushes.due())
            .map(|op| (op.offset, op.range))
            .collect();
        assert_eq!(ranges, [(1, u32::MAX), (1 << 32, 4096)]);
    }

    #[test]
    fn an_fsync_comes_before_smaller_flushes() {
        let flush = Flush {
            fsync_every: Some(2),
            fdatasync_every: Some(1),
            ..Flush::default()
        };
        let mut flushes = Flushes::new(&flush, 1);
        let mut verbs = Vec::new();
        for _ in 0..2 {
            flushes.count(&write(0, 0, 1));
            verbs.extend(flushes.due().map(|op| op.verb));
        }
        assert_eq!(verbs, [Verb::DataSync, Verb::Sync]);
    }
}
