//! Versions that a read finds in the index, and what exists at an epoch.

use super::index::{Holds, Index, Item, Single};
use super::table::NONE;
use crate::array::{Rect, hides};

impl Index {
    /// Versions of a single value, oldest first.
    pub(super) fn singles(&self, number: usize) -> impl Iterator<Item = Single> {
        let item = &self.items[number];
        let is = item.holds == Holds::Singles;
        let older = if is && item.more != NONE {
            &self.older[item.more as usize][..]
        } else {
            &[]
        };
        older.iter().copied().chain(is.then_some(item.newest))
    }

    /// Epoch, place and length of each version of an attribute key; a punch has the place 0.
    pub(super) fn versions(&self, number: usize) -> impl Iterator<Item = (u64, u64, u64)> {
        let item = &self.items[number];
        let array = self.arrays.get(item.more as usize);
        let array = array.filter(|_| item.holds == Holds::Array).into_iter();
        let rects = array.flat_map(|a| a.rects.iter().map(|r| (r, u64::from(a.size))));
        let rects = rects.map(|(r, size)| (r.epoch, r.at, r.value_bytes(size)));
        let singles = self.singles(number);
        singles.map(|v| (v.epoch, v.at, v.len.into())).chain(rects)
    }

    /// True if an attribute key has a single value at any epoch.
    pub(super) fn has_singles(&self, number: u32) -> bool {
        self.singles(number as usize).any(|v| !v.is_punch())
    }

    /// Newest version of a single value up to an epoch, hidden or not.
    #[inline]
    pub(super) fn single_at(&self, item: &Item, epoch: u64) -> Option<Single> {
        if item.newest.epoch <= epoch {
            return Some(item.newest);
        }
        let older = self.older.get(item.more as usize)?;
        let before = older.partition_point(|old| old.epoch <= epoch);
        before.checked_sub(1).map(|at| older[at])
    }

    /// True if a punch of the object or the distribution key hides a version of an item from a read.
    #[inline]
    pub(super) fn is_hidden(&self, item: &Item, version: u64, read: u64) -> bool {
        let object = &self.objects[item.object as usize];
        if !object.punches.is_empty() && hides(&object.punches, version, read) {
            return true;
        }
        object.dkey_punched && hides(self.punches(item.head), version, read)
    }

    /// Punches of a distribution key.
    pub(super) fn punches(&self, head: u32) -> &[u64] {
        let number = self.items[head as usize].punches;
        let punches = self.dkey_punches.get(number as usize);
        punches.map_or(&[], |epochs| &epochs[..])
    }

    /// True if a read at an epoch finds something of an item.
    pub(super) fn item_exists(&self, number: u32, epoch: u64) -> bool {
        let Some(item) = self.items.get(number as usize) else {
            return false;
        };
        match item.holds {
            Holds::Nothing => false,
            Holds::Singles => self
                .single_at(item, epoch)
                .is_some_and(|v| !v.is_punch() && !self.is_hidden(item, v.epoch, epoch)),
            Holds::Array => self.any_part(number, epoch, |_, _, _| true),
        }
    }

    /// Visits the visible parts of an array from the first until one is accepted.
    pub(super) fn any_part(
        &self,
        number: u32,
        epoch: u64,
        mut accept: impl FnMut(u64, u64, &Rect) -> bool,
    ) -> bool {
        let item = &self.items[number as usize];
        let array = &self.arrays[item.more as usize];
        let view = array.seen_at(epoch, item.newest.epoch, 0, u64::MAX);
        view.iter().any(|(&start, &(end, rect))| {
            let rect = &array.rects[rect as usize];
            !rect.is_punch() && !self.is_hidden(item, rect.epoch, epoch) && accept(start, end, rect)
        })
    }

    /// Attribute keys of a distribution key.
    pub(super) fn akeys(&self, head: u32) -> impl Iterator<Item = u32> {
        self.chain(head, |item| item.next)
    }

    /// Distribution keys of an object, from one of them on, in the order of their making.
    pub(super) fn dkeys(&self, first: u32) -> impl Iterator<Item = u32> {
        self.chain(first, |item| item.next_dkey)
    }

    fn chain(&self, first: u32, next: fn(&Item) -> u32) -> impl Iterator<Item = u32> {
        let is_one = |number: &u32| *number != NONE;
        let next = move |number: &u32| Some(next(&self.items[*number as usize])).filter(is_one);
        std::iter::successors(Some(first).filter(is_one), next)
    }

    pub(super) fn dkey_exists(&self, head: u32, epoch: u64) -> bool {
        self.akeys(head).any(|item| self.item_exists(item, epoch))
    }

    /// True if an object has an update that no punch of the whole object hides.
    pub(super) fn object_exists(&self, object: u32, epoch: u64) -> bool {
        let entry = &self.objects[object as usize];
        let alive = |(version, at, _): (u64, u64, u64)| {
            at != 0 && version <= epoch && !hides(&entry.punches, version, epoch)
        };
        let dkeys = self.dkeys(entry.first);
        let mut items = dkeys.flat_map(|head| self.akeys(head));
        items.any(|number| self.versions(number as usize).any(alive))
    }
}
