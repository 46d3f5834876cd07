//! What a job has written and has to read back.
//!
//! Where no block is written twice, nothing is kept: the sequence is drawn a second time. Elsewhere
//! the last write of each interval is kept, in four bytes.

use std::collections::{HashSet, VecDeque};

use weir_schema::{BlockWorkload, Kind};

use crate::block::Extent;
use crate::block::general::GeneralSource;
use crate::block::op::{BlockOp, Verb};
use crate::block::verified::stamps::{Stamp, Stamps};
use crate::source::Source;

/// What was written.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each worker")]
pub(in crate::block) enum History {
    /// Nothing is read back.
    None,
    /// Each block was written once: the same sequence again.
    Redrawn(Redrawn),
    /// The last write of each interval.
    Kept(Kept),
}

impl History {
    /// A write has come back.
    pub(super) fn written(&mut self, op: &BlockOp, stamp: Stamp, whole: bool) {
        match self {
            Self::None => {}
            Self::Redrawn(redrawn) => redrawn.written(stamp, whole),
            Self::Kept(kept) => kept.written(op, if whole { stamp } else { Stamp::NONE }),
        }
    }

    /// A discard has come back: what was there is gone.
    pub(super) fn trimmed(&mut self, op: &BlockOp) {
        if let Self::Kept(kept) = self {
            kept.set(op, Stamp::NONE);
        }
    }

    /// Reading back begins.
    pub(super) fn rewind(&mut self) {
        if let Self::Kept(kept) = self {
            kept.cursor = (0, 0);
        }
    }

    /// The next block to read back, and the write it comes from where it is one.
    pub(super) fn next(&mut self) -> Option<(BlockOp, Stamp)> {
        match self {
            Self::None => None,
            Self::Redrawn(redrawn) => redrawn.next(),
            Self::Kept(kept) => kept.next().map(|op| (op, Stamp::NONE)),
        }
    }

    /// The writes behind a block that was read back; they are done with then.
    pub(super) fn stamps(&mut self, op: &BlockOp, stamp: Stamp) -> Stamps {
        match self {
            Self::Kept(kept) => Stamps::Each(kept.take(op)),
            _ => Stamps::One(stamp),
        }
    }

    /// Overlapping operations must not be in flight together.
    pub(super) fn minds_order(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    /// The next pass over the job's operations begins.
    pub(super) fn renew(&mut self, bytes: u64) {
        if let Self::Redrawn(redrawn) = self {
            redrawn.again.renew(bytes);
        }
    }
}

/// The job's sequence a second time.
#[derive(Debug)]
pub(in crate::block) struct Redrawn {
    again: GeneralSource,
    /// Writes that have come back.
    done: u64,
    /// Writes that were drawn again.
    drawn: u64,
    stamp: Stamp,
    /// Writes that failed.
    lost: HashSet<u32>,
}

impl Redrawn {
    /// `again` gives the same operations as the job's own source.
    pub(in crate::block) fn new(again: GeneralSource) -> Self {
        Self {
            again,
            done: 0,
            drawn: 0,
            stamp: Stamp::FIRST,
            lost: HashSet::new(),
        }
    }

    fn written(&mut self, stamp: Stamp, whole: bool) {
        self.done += 1;
        if !whole {
            self.lost.insert(stamp.0);
        }
    }

    fn next(&mut self) -> Option<(BlockOp, Stamp)> {
        while self.drawn < self.done {
            let op = self.again.next(0)?;
            if op.verb != Verb::Write {
                continue;
            }
            let stamp = self.stamp;
            self.stamp = stamp.next();
            self.drawn += 1;
            if !self.lost.remove(&stamp.0) {
                return Some((op, stamp));
            }
        }
        None
    }
}

/// The last write of each interval.
#[derive(Debug)]
pub(in crate::block) struct Kept {
    interval: u64,
    /// Intervals of the largest block that is read back at once.
    most: usize,
    /// By target: where it begins, and its intervals.
    targets: Vec<(u64, Vec<Stamp>)>,
    /// The next interval to look at: of which target, and which.
    cursor: (usize, usize),
    /// The last writes, for a backlog.
    recent: VecDeque<BlockOp>,
    room: usize,
}

impl Kept {
    pub(in crate::block) fn new(
        extents: &[Extent],
        interval: u32,
        workload: &BlockWorkload,
    ) -> Self {
        let length = u64::from(interval.max(1));
        let intervals = |bytes: u64| usize::try_from(bytes.div_ceil(length)).unwrap_or(0);
        let largest = workload.sizes.size.of(Kind::Write).max().0;
        let backlog = workload.verify.as_ref().map_or(0, |v| {
            if v.backlog_batch == 0 {
                v.backlog
            } else {
                v.backlog_batch.min(v.backlog)
            }
        });
        let table = |e: &Extent| (e.start, vec![Stamp::NONE; intervals(e.length)]);
        Self {
            interval: length,
            most: intervals(largest).max(1),
            targets: extents.iter().map(table).collect(),
            cursor: (0, 0),
            recent: VecDeque::new(),
            room: usize::try_from(backlog).unwrap_or(0),
        }
    }

    fn span(&mut self, op: &BlockOp) -> &mut [Stamp] {
        let Some((start, stamps)) = self.targets.get_mut(op.target as usize) else {
            return &mut [];
        };
        let at = |bytes: u64| usize::try_from(bytes / self.interval).unwrap_or(usize::MAX);
        let first = at(op.offset.saturating_sub(*start)).min(stamps.len());
        let count = at(u64::from(op.length));
        let end = first.saturating_add(count).min(stamps.len());
        &mut stamps[first..end]
    }

    fn set(&mut self, op: &BlockOp, stamp: Stamp) {
        self.span(op).fill(stamp);
    }

    fn written(&mut self, op: &BlockOp, stamp: Stamp) {
        self.set(op, stamp);
        if self.room > 0 {
            if self.recent.len() == self.room {
                self.recent.pop_front();
            }
            self.recent.push_back(*op);
        }
    }

    fn take(&mut self, op: &BlockOp) -> Vec<Stamp> {
        let span = self.span(op);
        let taken = span.to_vec();
        span.fill(Stamp::NONE);
        taken
    }

    fn next(&mut self) -> Option<BlockOp> {
        while let Some(op) = self.recent.pop_front() {
            if self.span(&op).iter().any(|s| *s != Stamp::NONE) {
                return Some(op);
            }
        }
        self.next_in_order()
    }

    /// The next stretch of intervals that were written.
    fn next_in_order(&mut self) -> Option<BlockOp> {
        loop {
            let (target, from) = self.cursor;
            let (start, stamps) = self.targets.get(target)?;
            let Some(first) = stamps[from..].iter().position(|s| *s != Stamp::NONE) else {
                self.cursor = (target + 1, 0);
                continue;
            };
            let first = from + first;
            let written = |s: &&Stamp| **s != Stamp::NONE;
            // Blocks of one size lie at its multiples.
            let most = self.most - first % self.most;
            let count = stamps[first..]
                .iter()
                .take(most)
                .take_while(written)
                .count();
            self.cursor = (target, first + count);
            let length = count as u64 * self.interval;
            return Some(BlockOp {
                offset: start + first as u64 * self.interval,
                length: u32::try_from(length).unwrap_or(u32::MAX),
                target: u32::try_from(target).unwrap_or(u32::MAX),
                verb: Verb::Read,
                ..BlockOp::default()
            });
        }
    }
}
