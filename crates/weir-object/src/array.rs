//! Versions of one array: rectangles of records and epochs, what of them a read sees, and what a pass
//! over all versions keeps.

use crate::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An extent that was written or punched at an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) epoch: u64,
    /// Place of its bytes; 0 for a punch.
    pub(super) at: u64,
    /// Place of its record, which has the sums.
    pub(super) record: u64,
}

/// All records.
pub(super) const ALL: (u64, u64) = (0, u64::MAX);

impl Rect {
    pub(super) fn new((start, end): (u64, u64), epoch: u64, at: u64, record: u64) -> Self {
        Self {
            start,
            end,
            epoch,
            at,
            record,
        }
    }

    /// Bytes of its records, which have this size; 0 of a punch.
    pub(super) fn value_bytes(&self, size: u64) -> u64 {
        let records = if self.is_punch() {
            0
        } else {
            self.end - self.start
        };
        records * size
    }

    pub(super) fn extent(&self) -> RecordExtent {
        extent_of(self.start, self.end)
    }

    pub(super) fn is_punch(&self) -> bool {
        self.at == 0
    }

    /// True if it has the whole range.
    pub(super) fn covers(&self, (start, end): (u64, u64)) -> bool {
        self.start <= start && end <= self.end
    }

    pub(super) fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }
}

/// Visible parts by their first record: their end, and their rectangle's number.
pub(super) type View = BTreeMap<u64, (u64, u32)>;

/// An array.
#[derive(Debug, Default)]
pub(super) struct ArrayVersions {
    /// Bytes of a record; 0 while there are only punches.
    pub(super) size: u32,
    pub(super) rects: Vec<Rect>,
    pub(super) view: View,
}

impl ArrayVersions {
    pub(super) fn put(&mut self, rect: Rect) {
        self.rects.push(rect);
        overlay(&mut self.view, &self.rects, number_of(self.rects.len() - 1));
    }

    /// The parts of a range that a read at an epoch sees; the parts may reach beyond the range.
    pub(super) fn view_at(&self, epoch: u64, start: u64, end: u64) -> View {
        let mut view = View::new();
        for (number, rect) in self.rects.iter().enumerate() {
            if rect.epoch <= epoch && rect.overlaps(start, end) {
                overlay(&mut view, &self.rects, number_of(number));
            }
        }
        view
    }

    /// The same, where `newest` is the greatest epoch there is.
    #[inline]
    pub(super) fn seen_at(&self, epoch: u64, newest: u64, start: u64, end: u64) -> Cow<'_, View> {
        if epoch >= newest {
            return Cow::Borrowed(&self.view);
        }
        Cow::Owned(self.view_at(epoch, start, end))
    }

    /// Keeps the rectangles that a test passes, by number.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut number = 0;
        self.rects.retain(|_| {
            number += 1;
            keep(number - 1)
        });
        self.view = self.view_at(u64::MAX, 0, u64::MAX);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "an array has fewer")]
fn number_of(place: usize) -> u32 {
    place as u32
}

/// Visible parts of a range, in order: the range and the rectangle.
pub(super) fn parts(view: &View, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, u32)> {
    let within = touching(view, start, end);
    within.map(move |(from, to, rect)| (from.max(start), to.min(end), rect))
}

/// The same parts whole.
fn touching(view: &View, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, u32)> {
    let before = view.range(..=start).next_back();
    let first = before.map_or(start, |(&from, _)| from);
    let parts = view.range(first..end);
    let parts = parts.map(|(&from, &(to, rect))| (from, to, rect));
    parts.filter(move |(_, to, _)| *to > start)
}

/// Lays a rectangle over a view; parts of a greater epoch stay on top.
fn overlay(view: &mut View, rects: &[Rect], number: u32) {
    let Rect {
        start, end, epoch, ..
    } = rects[number as usize];
    // The common case, which takes no memory: behind everything, or in a hole.
    let under: Vec<(u64, u64, u32)> = touching(view, start, end).collect();
    if under.is_empty() {
        view.insert(start, (end, number));
        return;
    }
    // The end of what is laid so far.
    let mut at = start;
    for (from, to, other) in under {
        if rects[other as usize].epoch > epoch {
            if at < from {
                view.insert(at, (from, number));
            }
            at = to;
            continue;
        }
        view.remove(&from);
        if from < start {
            view.insert(from, (start, other));
        }
        if to > end {
            view.insert(end, (to, other));
        }
    }
    if at < end {
        view.insert(at, (end, number));
    }
}

/// The range of an extent.
pub(super) fn range(extent: RecordExtent) -> (u64, u64) {
    (extent.index, extent.index + extent.count)
}

/// The same the other way.
pub(super) fn extent_of(start: u64, end: u64) -> RecordExtent {
    let (index, count) = (start, end - start);
    RecordExtent { index, count }
}

/// True if one of the punches hides a version from a read.
#[inline]
pub(super) fn hides(punches: &[u64], version: u64, read: u64) -> bool {
    let before = punches.partition_point(|&punch| punch <= read);
    before > 0 && punches[before - 1] >= version
}

/// Range of a pass, and the epochs whose view an aggregation keeps.
pub(super) struct Pass {
    after: u64,
    upto: u64,
    pub(super) keep: Vec<u64>,
    pub(super) freed: FreedVersions,
}

impl Pass {
    /// An aggregation, which keeps what snapshots see, or a pass that drops everything.
    pub(super) fn new(span: EpochRange, snapshots: Option<&[u64]>) -> Self {
        let (after, upto) = (span.after.0, span.upto.0);
        let mut keep = Vec::new();
        if let Some(snapshots) = snapshots {
            keep.extend(snapshots.iter().copied().filter(|&e| e > after && e < upto));
            keep.push(upto);
        }
        Self {
            after,
            upto,
            keep,
            freed: FreedVersions::default(),
        }
    }

    /// Rectangles that a pass keeps, by number; a punch stays while there is something that it hides.
    pub(super) fn kept(
        &mut self,
        array: &ArrayVersions,
        is_hidden: impl Fn(u64, u64) -> bool,
    ) -> Vec<bool> {
        let rects = &array.rects;
        let mut keep: Vec<bool> = rects.iter().map(|r| !self.has(r.epoch)).collect();
        for &epoch in &self.keep {
            for &(_, rect) in array.view_at(epoch, 0, u64::MAX).values() {
                let r = &rects[rect as usize];
                keep[rect as usize] |= !r.is_punch() && !is_hidden(r.epoch, epoch);
            }
        }
        for at in 0..rects.len() {
            let punch = &rects[at];
            if punch.is_punch() && !keep[at] && !self.keep.is_empty() {
                keep[at] = rects.iter().zip(&keep).any(|(r, kept)| {
                    *kept
                        && !r.is_punch()
                        && r.epoch <= punch.epoch
                        && r.overlaps(punch.start, punch.end)
                });
            }
        }
        self.freed.visited += keep.len() as u64;
        keep
    }

    pub(super) fn has(&self, epoch: u64) -> bool {
        epoch > self.after && epoch <= self.upto
    }

    /// Drops punches of the range below which no update is left.
    pub(super) fn trim(&mut self, punches: &mut Vec<u64>, lowest: u64) {
        let before = punches.len();
        let discard = self.keep.is_empty();
        punches.retain(|&punch| !self.has(punch) || !discard && lowest <= punch);
        self.freed.versions += (before - punches.len()) as u64;
        self.freed.visited += before as u64;
    }
}
