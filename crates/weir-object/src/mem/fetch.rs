//! Fetches: one look-up, the version of the epoch, one copy. Batches hint at what they need first.

use super::Mem;
use super::index::{Holds, Index, keys};
use super::medium::Medium;
use super::record::sums_of;
use super::table::NONE;
use super::update::pieces;
use crate::array::{Rect, parts};
use crate::prelude::*;

/// Fetches of a batch that are hinted at together.
const WINDOW: usize = 8;

impl<M: Medium> Mem<M> {
    #[inline]
    pub(super) fn fetch_values(
        &self,
        key: KeyAt<'_>,
        iods: &mut [Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &mut [u8],
    ) -> Result<Ticket> {
        let akey = iods.first().map_or(&[][..], |iod| iod.akey);
        self.fetch_at(&CallAt::new(key, epoch, conditions), iods, data)
            .map_err(|e| e.at(key.object, key.dkey, akey, epoch))
    }

    fn fetch_at(
        &self,
        at: &CallAt<'_>,
        iods: &mut [Iod<'_>],
        mut out: &mut [u8],
    ) -> Result<Ticket> {
        let CallAt { key, epoch, .. } = *at;
        known(&self.index.containers, key.container)?;
        check_fetch(at, iods, out)?;
        let object = self.index.object(key.container.0, key.object);
        if at.conditions.has(Conditions::DKEY_FETCH) {
            let head = self.index.head(&self.medium, object, key.dkey);
            refuse!(!self.index.dkey_exists(head, epoch.0) => no_dkey());
        }
        let mut found = 0;
        for iod in iods {
            let item = self.item_at(object, key.dkey, iod.akey);
            refuse!(at.conditions.has(Conditions::AKEY_FETCH) && !self.index.item_exists(item, epoch.0) =>
                no_akey());
            let room;
            (room, out) = out.split_at_mut(iod.room() as usize);
            iod.found = 0;
            match iod.kind {
                _ if item == NONE => iod.size = 0,
                IodKind::Single => self.fetch_single(item, iod, epoch.0, room)?,
                IodKind::Array => self.fetch_array(item, iod, epoch.0, room)?,
            }
            found += iod.found;
        }
        Ok(Ticket::Done(found))
    }

    #[inline]
    fn fetch_single(&self, item: u32, iod: &mut Iod<'_>, epoch: u64, out: &mut [u8]) -> Result<()> {
        let entry = &self.index.items[item as usize];
        refuse!(entry.holds == Holds::Array => IoInval, "the attribute key has an array");
        iod.size = 0;
        if entry.holds == Holds::Nothing {
            return Ok(());
        }
        let Some(version) = self.index.single_at(entry, epoch) else {
            return Ok(());
        };
        if version.is_punch() || self.index.is_hidden(entry, version.epoch, epoch) {
            return Ok(());
        }
        let len = version.len as usize;
        iod.size = u64::from(version.len);
        if out.is_empty() {
            return Ok(());
        }
        let Some(out) = out.get_mut(..len) else {
            return ObjectCode::Rec2Big.fail("the value is longer than its room");
        };
        out.copy_from_slice(self.medium.bytes(version.at, len));
        refuse!(self.sums != ValueSums::None && sum_of(self.sums, out) != version.sum => Csum,
            "the value is damaged");
        iod.found = u64::from(version.len);
        Ok(())
    }

    fn fetch_array(&self, of: u32, iod: &mut Iod<'_>, read: u64, mut out: &mut [u8]) -> Result<()> {
        let entry = &self.index.items[of as usize];
        let size = match entry.holds {
            Holds::Array => u64::from(self.index.arrays[entry.more as usize].size),
            Holds::Singles if self.index.has_singles(of) => return only_singles(),
            _ => 0,
        };
        let asked = std::mem::replace(&mut iod.size, size);
        if size == 0 || asked == 0 {
            return Ok(());
        }
        refuse!(asked != size => IoInval, "the array has another record size");
        let array = &self.index.arrays[entry.more as usize];
        for extent in iod.extents {
            let part;
            (part, out) = out.split_at_mut((extent.count * size) as usize);
            let (start, end) = range(*extent);
            let view = array.seen_at(read, entry.newest.epoch, start, end);
            for (from, to, number) in parts(&view, start, end) {
                let rect = &array.rects[number as usize];
                if rect.is_punch() || self.index.is_hidden(entry, rect.epoch, read) {
                    continue;
                }
                let (first, last) = ((from - rect.start) * size, (to - rect.start) * size);
                refuse!(self.sums != ValueSums::None && !self.is_sound(rect, size, first, last) => Csum,
                    "the extent is damaged");
                let bytes = self.medium.bytes(rect.at + first, (last - first) as usize);
                let place = ((from - start) * size) as usize;
                part[place..place + bytes.len()].copy_from_slice(bytes);
                iod.found += bytes.len() as u64;
            }
        }
        Ok(())
    }

    /// True if the pieces that hold a range of an extent's bytes have their sums.
    fn is_sound(&self, rect: &Rect, size: u64, first: u64, last: u64) -> bool {
        let len = (rect.end - rect.start) * size;
        let sums = sums_of(&self.medium, rect.record).as_chunks::<4>().0;
        pieces(rect.start, size, len)
            .zip(sums)
            .all(|((from, to), sum)| {
                to <= first || from >= last || {
                    let bytes = self.medium.bytes(rect.at + from, (to - from) as usize);
                    sum_of(self.sums, bytes) == u32::from_le_bytes(*sum)
                }
            })
    }

    /// Fetches a batch: first all slots, then all entries, then all values are hinted at.
    pub(super) fn fetch_with_hints(&self, batch: &mut [FetchRequest<'_>]) {
        for window in batch.chunks_mut(WINDOW) {
            let mut hashes = [0; WINDOW];
            for (one, hash) in window.iter().zip(&mut hashes) {
                let object = self.index.object(one.key.container.0, one.key.object);
                *hash = Index::dkey_hash(object, one.key.dkey);
                self.index.prefetch_slot(*hash);
            }
            let mut items = [NONE; WINDOW];
            for (item, hash) in items.iter_mut().zip(hashes).take(window.len()) {
                *item = self.index.prefetch_item(hash);
            }
            for &item in items.iter().filter(|&&item| item != NONE) {
                self.index.prefetch_value(&self.medium, item);
            }
            for one in window {
                one.result =
                    self.fetch_values(one.key, one.iods, one.epoch, one.conditions, one.data);
            }
        }
    }

    /// Compares every value with its sum.
    pub(super) fn check_values(&self, visit: &mut dyn FnMut(&DamagedValue)) -> u64 {
        if self.sums == ValueSums::None {
            return 0;
        }
        let mut checked = 0;
        for (number, item) in self.index.items.iter().enumerate() {
            let mut report = |extent, epoch| {
                let (dkey, akey) = keys(&self.medium, item.record);
                visit(&DamagedValue {
                    object: self.index.objects[item.object as usize].id,
                    dkey: dkey.to_vec(),
                    akey: akey.to_vec(),
                    extent,
                    epoch: Epoch(epoch),
                });
            };
            for v in self.index.singles(number).filter(|v| !v.is_punch()) {
                checked += 1;
                if sum_of(self.sums, self.medium.bytes(v.at, v.len as usize)) != v.sum {
                    report(None, v.epoch);
                }
            }
            if item.holds == Holds::Array {
                let array = &self.index.arrays[item.more as usize];
                for rect in array.rects.iter().filter(|r| !r.is_punch()) {
                    checked += 1;
                    if !self.is_sound(rect, u64::from(array.size), 0, u64::MAX) {
                        report(Some(rect.extent()), rect.epoch);
                    }
                }
            }
        }
        checked
    }
}
