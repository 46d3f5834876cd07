//! Updates and punches: checks, the value's place, the record, the index, in this order.

use super::Mem;
use super::index::Holds;
use super::medium::Medium;
use super::record::{Record, RecordKind};
use super::table::NONE;
use crate::array::Rect;
use crate::prelude::*;

/// Bytes of an array that have one sum, counted from its first record.
pub(super) const PIECE: u64 = 32 << 10;

/// A value of the update at hand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Placed {
    iod: usize,
    extent: RecordExtent,
    at: u64,
    len: u64,
    sum: u32,
    /// Its piece sums.
    sums: (usize, usize),
    /// Place of its record.
    record: u64,
}

/// Pieces of an array's bytes: where each ends, from the place of the first byte within its piece.
pub(super) fn pieces(start: u64, size: u64, len: u64) -> impl Iterator<Item = (u64, u64)> {
    let lead = start.wrapping_mul(size) % PIECE;
    let count = (lead + len).div_ceil(PIECE);
    let at = move |n: u64| (n * PIECE).saturating_sub(lead).min(len);
    (0..count).map(move |n| (at(n), at(n + 1)))
}

/// Values of a call: bytes to copy, or a place that its writer filled.
pub(super) enum Source<'a> {
    Data(&'a [u8]),
    Place(u64),
}

impl<M: Medium> Mem<M> {
    pub(super) fn update_values(
        &mut self,
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &[u8],
    ) -> Result<Ticket> {
        let akey = iods.first().map_or(&[][..], |iod| iod.akey);
        let at = &CallAt::new(key, epoch, conditions);
        check_update(at, iods, data)
            .and_then(|_| self.write(at, iods, &Source::Data(data)))
            .map_err(|e| e.at(key.object, key.dkey, akey, epoch))
    }

    /// A place for a value; where the pool is full, from what was dropped before.
    #[inline]
    pub(super) fn place(&mut self, len: u64) -> Result<u64> {
        match self.space.alloc(&mut self.medium, len) {
            Err(e) if e.code == ObjectCode::NoSpace && !self.deferred.is_empty() => {
                self.rewrite_log()?;
                self.space.alloc(&mut self.medium, len)
            }
            placed => placed,
        }
    }

    /// Writes values that were checked.
    pub(super) fn write(
        &mut self,
        at: &CallAt<'_>,
        iods: &[Iod<'_>],
        source: &Source<'_>,
    ) -> Result<Ticket> {
        known(&self.index.containers, at.key.container)?;
        self.check_writable()?;
        if at.conditions != Conditions::NONE {
            self.check_conditions(at, iods)?;
        }
        self.placed.clear();
        self.piece_sums.clear();
        let bytes = self
            .place_values(at, iods, source)
            .inspect_err(|_| self.unplace(source))?;
        if self.placed.is_empty() {
            // A retry of what is there.
            if let Source::Place(at) = *source {
                self.space.free(at, bytes);
            }
            return Ok(Ticket::Done(bytes));
        }
        self.medium.fence();
        let mark = self.log.mark();
        for number in 0..self.placed.len() {
            let placed = &self.placed[number];
            let mut record = describe(at, &iods[placed.iod], placed);
            record.part = number as u8;
            record.more = number + 1 < self.placed.len();
            record.sums = &self.piece_sums[placed.sums.0..placed.sums.1];
            match self.log.append(&record, &mut self.medium, &mut self.space) {
                Ok(at) => self.placed[number].record = at,
                Err(e) => {
                    self.log.roll_back(mark, &mut self.medium, &mut self.space);
                    self.unplace(source);
                    return Err(e);
                }
            }
        }
        self.medium.fence();
        self.space.reserve = self.log.segments().len() + 1;
        for number in 0..self.placed.len() {
            let placed = self.placed[number];
            let record = describe(at, &iods[placed.iod], &placed);
            self.index.apply(&self.medium, &record, placed.record);
        }
        Ok(Ticket::Done(bytes))
    }

    fn unplace(&mut self, source: &Source<'_>) {
        if let Source::Data(_) = source {
            for placed in self.placed.drain(..) {
                self.space.free(placed.at, placed.len);
            }
        }
    }

    /// Copies the values that are not there yet to their places; the bytes of all.
    fn place_values(
        &mut self,
        &CallAt { key, epoch, .. }: &CallAt<'_>,
        iods: &[Iod<'_>],
        source: &Source<'_>,
    ) -> Result<u64> {
        let object = self.index.object(key.container.0, key.object);
        let mut offset = 0;
        for (number, iod) in iods.iter().enumerate() {
            let item = self.item_at(object, key.dkey, iod.akey);
            if item != NONE {
                self.check_form(item, iod)?;
            }
            for &extent in iod.extents() {
                let len = iod.size * extent.count;
                let from = offset as usize;
                offset += len;
                let given = match *source {
                    Source::Data(data) => &data[from..offset as usize],
                    Source::Place(at) => self.medium.bytes(at, len as usize),
                };
                if item != NONE && self.is_retry(item, iod, extent, epoch, given)? {
                    continue;
                }
                let at = match *source {
                    Source::Place(at) => at,
                    Source::Data(data) => {
                        let at = self.place(len)?;
                        let room = self.medium.bytes_mut(at, len as usize);
                        room.copy_from_slice(&data[from..offset as usize]);
                        at
                    }
                };
                self.medium.write_back(at, len as usize);
                let mut placed = Placed {
                    iod: number,
                    extent,
                    at,
                    len,
                    ..Placed::default()
                };
                if self.sums != ValueSums::None {
                    self.take_sums(iod, &mut placed);
                }
                self.placed.push(placed);
                if self.placed.len() > MAX_IODS {
                    // The parts of a group are counted in a byte.
                    return ObjectCode::Inval.fail("a call has at most 128 values and extents");
                }
            }
        }
        Ok(offset)
    }

    fn take_sums(&mut self, iod: &Iod<'_>, placed: &mut Placed) {
        let bytes = self.medium.bytes(placed.at, placed.len as usize);
        if iod.kind == IodKind::Single {
            placed.sum = sum_of(self.sums, bytes);
            return;
        }
        let first = self.piece_sums.len();
        for (from, to) in pieces(placed.extent.index, iod.size, placed.len) {
            let sum = sum_of(self.sums, &bytes[from as usize..to as usize]);
            self.piece_sums.extend_from_slice(&sum.to_le_bytes());
        }
        placed.sums = (first, self.piece_sums.len());
    }

    /// Refuses a value of another form than the attribute key has.
    fn check_form(&self, item: u32, iod: &Iod<'_>) -> Result<()> {
        let entry = &self.index.items[item as usize];
        let there = match (entry.holds, iod.kind) {
            (Holds::Nothing, _) => ValueForm::None,
            (Holds::Singles, IodKind::Array) if !self.index.has_singles(item) => ValueForm::None,
            (Holds::Singles, _) => ValueForm::Single,
            (Holds::Array, _) => {
                ValueForm::Array(self.index.arrays[entry.more as usize].size.into())
            }
        };
        check_form(iod, there)
    }

    /// True if the same bytes are there at the same epoch; other ones are an error.
    fn is_retry(
        &self,
        item: u32,
        iod: &Iod<'_>,
        extent: RecordExtent,
        epoch: Epoch,
        given: &[u8],
    ) -> Result<bool> {
        let entry = &self.index.items[item as usize];
        if entry.newest.epoch < epoch.0 {
            return Ok(false);
        }
        let same = |at: u64, len: u64| {
            len == given.len() as u64 && self.medium.bytes(at, given.len()) == given
        };
        if entry.holds == Holds::Singles {
            let there = self.index.single_at(entry, epoch.0);
            let there = there.filter(|v| v.epoch == epoch.0);
            let rect = there.map(|v| Rect::new(range(extent), v.epoch, v.at, 0));
            return check_retry(rect, extent, |at| {
                same(at, there.map_or(0, |v| v.len.into()))
            });
        }
        let Some(array) = self.index.arrays.get(entry.more as usize) else {
            return Ok(false);
        };
        let (start, end) = range(extent);
        let mut rects = array.rects.iter();
        let rect = rects.find(|r| r.epoch == epoch.0 && r.overlaps(start, end));
        check_retry(rect.copied(), extent, |at| {
            same(at, iod.size * extent.count)
        })
    }

    /// Number of an attribute key of an object, or of neither.
    #[inline]
    pub(super) fn item_at(&self, object: u32, dkey: &[u8], akey: &[u8]) -> u32 {
        self.index.item(&self.medium, object, dkey, akey)
    }

    fn check_conditions(&self, at: &CallAt<'_>, iods: &[Iod<'_>]) -> Result<()> {
        let CallAt { key, epoch, .. } = *at;
        let object = self.index.object(key.container.0, key.object);
        let head = self.index.head(&self.medium, object, key.dkey);
        let of_akey = |akey: &[u8]| {
            let item = self.item_at(object, key.dkey, akey);
            Ok(self.index.item_exists(item, epoch.0))
        };
        at.conditions
            .check(iods, || Ok(self.index.dkey_exists(head, epoch.0)), of_akey)
    }
}

/// The record of a value, but for its group and its piece sums.
fn describe<'a>(at: &CallAt<'a>, iod: &Iod<'a>, placed: &Placed) -> Record<'a> {
    let CallAt { key, epoch, .. } = *at;
    let mut record = Record::new(RecordKind::Single, key.container.0, key.object, epoch.0);
    (record.dkey, record.akey) = (key.dkey, iod.akey);
    (record.at, record.sum) = (placed.at, placed.sum);
    if iod.kind == IodKind::Array {
        record.kind = RecordKind::Extent;
        record.extent = placed.extent;
        record.size = iod.size as u32;
    } else {
        record.len = placed.len as u32;
    }
    record
}
