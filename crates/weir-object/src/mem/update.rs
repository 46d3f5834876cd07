//! Updates and punches: checks, the value's place, the record, the index, in this order.

use super::Mem;
use super::index::Holds;
use super::medium::Medium;
use super::record::{Record, RecordKind};
use super::table::NONE;
use crate::ObjectCode;
use crate::array::range;
use crate::error::fail;
use crate::limits::{check_apart, check_epoch, check_iods, check_key, extents_of};
use crate::pool::sum_of;
use crate::store::{
    Conditions, Epoch, Iod, IodKind, KeyAt, MAX_IODS, RecordExtent, Reserved, Result, Ticket,
    ValueSums,
};

/// Bytes of an array that have one sum, counted from its first record.
pub(super) const PIECE: u64 = 32 << 10;

/// A value of the update at hand.
#[derive(Clone, Copy, Debug)]
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
    (0..count).map(move |n| {
        (
            (n * PIECE).saturating_sub(lead),
            ((n + 1) * PIECE - lead).min(len),
        )
    })
}

/// Values of a call: bytes to copy, or a place that its writer filled.
enum Source<'a> {
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
        (|| {
            if check_iods(key.object, iods)? != data.len() as u64 {
                return fail(
                    ObjectCode::Inval,
                    "the data has not the length of the descriptors",
                );
            }
            self.write(key, iods, epoch, conditions, &Source::Data(data))
        })()
        .map_err(|e| e.at(key.object, key.dkey, akey, epoch))
    }

    pub(super) fn reserve_value(&mut self, key: KeyAt<'_>, iod: &Iod<'_>) -> Result<Reserved> {
        let len = check_iods(key.object, std::slice::from_ref(iod))?;
        if len == 0 || extents_of(iod).len() != 1 {
            return fail(
                ObjectCode::Inval,
                "space is reserved for one value with a length",
            );
        }
        self.check_writable()?;
        let at = self.place(len)?;
        Ok(Reserved { at, len })
    }

    pub(super) fn publish_value(
        &mut self,
        key: KeyAt<'_>,
        iod: &Iod<'_>,
        epoch: Epoch,
        conditions: Conditions,
        reserved: &Reserved,
    ) -> Result<Ticket> {
        let iods = std::slice::from_ref(iod);
        let done = check_iods(key.object, iods).and_then(|len| {
            if len != reserved.len || extents_of(iod).len() != 1 {
                return fail(ObjectCode::Inval, "the reserved space has another length");
            }
            self.write(key, iods, epoch, conditions, &Source::Place(reserved.at))
        });
        if done.is_err() {
            self.space.free(reserved.at, reserved.len);
        }
        done.map_err(|e| e.at(key.object, key.dkey, iod.akey, epoch))
    }

    /// A place for a value; where the pool is full, from what was dropped before.
    #[inline]
    fn place(&mut self, len: u64) -> Result<u64> {
        match self.space.alloc(&mut self.medium, len) {
            Err(e) if e.code == ObjectCode::NoSpace && !self.deferred.is_empty() => {
                self.rewrite_log()?;
                self.space.alloc(&mut self.medium, len)
            }
            placed => placed,
        }
    }

    fn write(
        &mut self,
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        source: &Source<'_>,
    ) -> Result<Ticket> {
        self.check_open(key.container)?;
        self.check_writable()?;
        check_epoch(epoch)?;
        check_key(key.dkey, key.object.dkeys())?;
        if conditions != Conditions::NONE {
            self.check_update_conditions(key, iods, epoch, conditions)?;
        }
        self.placed.clear();
        self.piece_sums.clear();
        let bytes = self
            .place_values(key, iods, epoch, source)
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
            let mut record = Record::new(RecordKind::Single, key.container.0, key.object, epoch.0);
            describe(&mut record, key, &iods[placed.iod], placed);
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
            let mut record = Record::new(RecordKind::Single, key.container.0, key.object, epoch.0);
            describe(&mut record, key, &iods[placed.iod], &placed);
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
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        source: &Source<'_>,
    ) -> Result<u64> {
        let object = self.index.object(key.container.0, key.object);
        let mut offset = 0;
        for (number, iod) in iods.iter().enumerate() {
            if iod.size == 0 {
                return fail(ObjectCode::Inval, "a value is empty");
            }
            if iod.kind == IodKind::Array {
                check_apart(iod.extents)?;
            }
            let item = match object {
                NONE => NONE,
                object => self.index.item(&self.medium, object, key.dkey, iod.akey),
            };
            if item != NONE {
                self.check_form(item, iod)?;
            }
            for &extent in extents_of(iod) {
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
                    sum: 0,
                    sums: (0, 0),
                    record: 0,
                };
                if self.sums != ValueSums::None {
                    self.take_sums(iod, &mut placed);
                }
                self.placed.push(placed);
                if self.placed.len() > MAX_IODS {
                    // The parts of a group are counted in a byte.
                    return fail(
                        ObjectCode::Inval,
                        "a call has at most 128 values and extents",
                    );
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
        let fits = match (entry.holds, iod.kind) {
            (Holds::Nothing, _) | (Holds::Singles, IodKind::Single) => true,
            (Holds::Singles, IodKind::Array) => {
                self.index.singles(item as usize).all(|v| v.is_punch())
            }
            (Holds::Array, IodKind::Single) => false,
            (Holds::Array, IodKind::Array) => {
                let size = self.index.arrays[entry.more as usize].size;
                size == 0 || u64::from(size) == iod.size
            }
        };
        if fits {
            return Ok(());
        }
        fail(
            ObjectCode::IoInval,
            "the attribute key has values of another kind or record size",
        )
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
        let punched = || fail(ObjectCode::Inval, "the item is punched at the same epoch");
        let same = |at: u64, len: u64| {
            if len == given.len() as u64 && self.medium.bytes(at, given.len()) == given {
                return Ok(true);
            }
            fail(
                ObjectCode::Exist,
                "the item has another value at the same epoch",
            )
        };
        if entry.holds == Holds::Singles {
            return match self.index.single_at(entry, epoch.0) {
                Some(v) if v.epoch == epoch.0 && v.is_punch() => punched(),
                Some(v) if v.epoch == epoch.0 => same(v.at, u64::from(v.len)),
                _ => Ok(false),
            };
        }
        let Some(array) = self.index.arrays.get(entry.more as usize) else {
            return Ok(false);
        };
        let (start, end) = range(extent);
        match array
            .rects
            .iter()
            .find(|r| r.epoch == epoch.0 && r.overlaps(start, end))
        {
            None => Ok(false),
            Some(rect) if rect.is_punch() => punched(),
            Some(rect) if (rect.start, rect.end) == (start, end) => {
                same(rect.at, iod.size * extent.count)
            }
            Some(_) => fail(
                ObjectCode::Exist,
                "the extent overlaps another of the same epoch",
            ),
        }
    }

    fn check_update_conditions(
        &self,
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<()> {
        let object = self.index.object(key.container.0, key.object);
        let head = if object == NONE {
            NONE
        } else {
            self.index.head(&self.medium, object, key.dkey)
        };
        let exists = self.index.dkey_exists(head, epoch.0);
        if conditions.has(Conditions::DKEY_INSERT) && exists {
            return fail(ObjectCode::Exist, "the distribution key exists");
        }
        if conditions.has(Conditions::DKEY_UPDATE) && !exists {
            return fail(ObjectCode::NonExist, "the distribution key does not exist");
        }
        if !conditions.has(Conditions::AKEY_INSERT) && !conditions.has(Conditions::AKEY_UPDATE) {
            return Ok(());
        }
        for iod in iods {
            let item = if head == NONE {
                NONE
            } else {
                self.index.item(&self.medium, object, key.dkey, iod.akey)
            };
            let exists = item != NONE && self.index.item_exists(item, epoch.0);
            if conditions.has(Conditions::AKEY_INSERT) && exists {
                return fail(ObjectCode::Exist, "the attribute key exists");
            }
            if conditions.has(Conditions::AKEY_UPDATE) && !exists {
                return fail(ObjectCode::NonExist, "the attribute key does not exist");
            }
        }
        Ok(())
    }
}

/// Fills a record of a value, but for its group and its piece sums.
fn describe<'a>(record: &mut Record<'a>, key: KeyAt<'a>, iod: &Iod<'a>, placed: &Placed) {
    (record.dkey, record.akey) = (key.dkey, iod.akey);
    (record.at, record.sum) = (placed.at, placed.sum);
    if iod.kind == IodKind::Array {
        record.kind = RecordKind::Extent;
        record.extent = placed.extent;
        record.size = iod.size as u32;
    } else {
        record.len = placed.len as u32;
    }
}
