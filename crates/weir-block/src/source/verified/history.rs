//! Record of a job's writes that have to be read back.
//!
//! Where no block is written twice, nothing is kept: the sequence is drawn a second time. Elsewhere
//! the last write of each interval is kept, in four bytes.

use std::collections::{HashSet, VecDeque};

use weir_run::Source;
use weir_schema::{BlockWorkload, Kind};

use crate::op::{BlockOp, Verb};
use crate::source::Extent;
use crate::source::general::GeneralSource;
use crate::source::verified::stamps::{Stamp, Stamps};

/// Written blocks.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each worker")]
pub(in crate::source) enum History {
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
            Self::Kept(kept) => kept.take(op),
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
pub(in crate::source) struct Redrawn {
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
    pub(in crate::source) fn new(again: GeneralSource) -> Self {
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
pub(in crate::source) struct Kept {
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
    pub(in crate::source) fn new(
        extents: &[Extent],
        interval: u32,
        workload: &BlockWorkload,
    ) -> Self {
        let largest = workload.sizes.size.of(Kind::Write).max().0;
        let backlog = workload.verify.as_ref().map_or(0, |v| {
            if v.backlog_batch == 0 {
                v.backlog
            } else {
                v.backlog_batch.min(v.backlog)
            }
        });
        Self::sized(extents, interval, largest, backlog)
    }

    /// For blocks of `largest` bytes at most; the last `backlog` writes are kept in order too.
    fn sized(extents: &[Extent], interval: u32, largest: u64, backlog: u64) -> Self {
        let length = u64::from(interval.max(1));
        let intervals = |bytes: u64| usize::try_from(bytes.div_ceil(length)).unwrap_or(0);
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

    /// Most blocks hold one write, for which nothing is allocated.
    fn take(&mut self, op: &BlockOp) -> Stamps {
        let span = self.span(op);
        let taken = match span {
            [first, rest @ ..] if *first != Stamp::NONE && rest.iter().all(|s| s == first) => {
                Stamps::One(*first)
            }
            _ => Stamps::Each(span.to_vec()),
        };
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use weir_run::generate::rng::Rng;

    const INTERVAL: u32 = 512;

    fn write(target: u32, interval: u64, count: u32) -> BlockOp {
        BlockOp {
            offset: 4096 + interval * u64::from(INTERVAL),
            length: count * INTERVAL,
            target,
            verb: Verb::Write,
            ..BlockOp::default()
        }
    }

    fn kept(backlog: u64) -> History {
        let extent = Extent {
            start: 4096,
            length: 64 * u64::from(INTERVAL),
        };
        let largest = 8 * u64::from(INTERVAL);
        History::Kept(Kept::sized(&[extent, extent], INTERVAL, largest, backlog))
    }

    /// Every interval that is read back, with its stamp.
    fn drain(history: &mut History) -> Vec<((u32, u64), Stamp)> {
        let mut found = Vec::new();
        while let Some((op, stamp)) = history.next() {
            assert_eq!(op.offset % 512, 0);
            assert!(op.length <= 8 * INTERVAL, "{op:?}");
            let intervals = (op.length / INTERVAL) as usize;
            let each = match history.stamps(&op, stamp) {
                Stamps::Each(each) => each,
                Stamps::One(stamp) => vec![stamp; intervals],
                Stamps::Unknown => panic!("they are known"),
            };
            assert_eq!(each.len(), intervals);
            for (index, stamp) in (0..).zip(each) {
                let at = op.offset + index * u64::from(INTERVAL);
                found.push(((op.target, at), stamp));
            }
        }
        found
    }

    #[test]
    fn each_interval_is_read_back_once_with_its_last_write() {
        let mut rng = Rng::new(3);
        let mut history = kept(0);
        let mut last = BTreeMap::new();
        let mut stamp = Stamp::FIRST;
        for _ in 0..100 {
            let count = 1 + u32::try_from(rng.below(8)).unwrap();
            let op = write(u32::try_from(rng.below(2)).unwrap(), rng.below(57), count);
            history.written(&op, stamp, true);
            for index in 0..u64::from(count) {
                last.insert((op.target, op.offset + index * u64::from(INTERVAL)), stamp);
            }
            stamp = stamp.next();
        }
        history.rewind();
        let found = drain(&mut history);
        assert_eq!(found.len(), last.len());
        assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), last);
        assert!(drain(&mut history).is_empty());
    }

    #[test]
    fn a_block_of_one_write_names_that_alone() {
        let mut history = kept(0);
        let later = Stamp::FIRST.next();
        history.written(&write(0, 0, 8), Stamp::FIRST, true);
        history.written(&write(0, 8, 8), Stamp::FIRST, true);
        history.written(&write(0, 10, 1), later, true);
        history.rewind();
        let mut next = || {
            let (op, stamp) = history.next()?;
            Some(history.stamps(&op, stamp))
        };
        assert!(matches!(next(), Some(Stamps::One(Stamp::FIRST))));
        let Some(Stamps::Each(each)) = next() else {
            panic!("of two writes");
        };
        assert_eq!(each.iter().filter(|s| **s == later).count(), 1);
    }

    #[test]
    fn lost_writes_and_discarded_blocks_are_not_read_back() {
        let mut history = kept(0);
        history.written(&write(0, 0, 8), Stamp::FIRST, true);
        history.written(&write(0, 8, 8), Stamp::FIRST, true);
        history.written(&write(0, 0, 2), Stamp::FIRST, false);
        history.trimmed(&write(0, 12, 4));
        history.rewind();
        let offsets: Vec<u64> = drain(&mut history).iter().map(|f| f.0.1).collect();
        let wanted: Vec<u64> = (2..12).map(|n| 4096 + n * 512).collect();
        assert_eq!(offsets, wanted);
    }

    #[test]
    fn a_backlog_reads_the_last_writes_first_and_nothing_twice() {
        let mut history = kept(2);
        for (n, at) in [(1, 0), (2, 16), (3, 32), (4, 32)] {
            history.written(&write(1, at, 8), Stamp(n), true);
        }
        history.rewind();
        // Both of the last two lie in one place.
        let (op, _) = history.next().unwrap();
        assert_eq!(op.offset, 4096 + 32 * 512);
        assert_eq!(history.stamps(&op, Stamp::NONE), Stamps::One(Stamp(4)));
        let offsets: Vec<u64> = drain(&mut history).iter().map(|f| f.0.1).collect();
        let wanted: Vec<u64> = (0..8).chain(16..24).map(|n| 4096 + n * 512).collect();
        assert_eq!(offsets, wanted);
    }
}
