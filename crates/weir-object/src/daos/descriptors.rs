//! Descriptors of an update or a fetch, and what they point to.
//!
//! In: a call's keys and descriptors, where its data lies. Out: the structures of libdaos; behind the call, what
//! was found. They may move while the library has them: it knows what their vectors hold, and not the
//! vectors. Not here: the call (`library`).

use std::ptr::null_mut;

use super::calls::{
    ARRAY, FoundMap, MAP_IN_DETAIL, RawBytes, Records, SINGLE, ScatterList, ValueDescriptor,
};
use crate::prelude::*;

/// Ranges that a fetch has room for at first; it is made again with more where that was too few.
const FIRST_ROOM: u32 = 16;

/// Call that descriptors are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Update,
    Fetch,
}

/// Descriptors of one call, kept for the room of their vectors.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    /// All keys, one behind the other.
    keys: Vec<u8>,
    extents: Vec<Records>,
    ranges: Vec<Records>,
    /// Ranges of each attribute key that there is room for.
    room: u32,
    /// The distribution key, then the data of each attribute key.
    pub(super) bytes: Vec<RawBytes>,
    pub(super) values: Vec<ValueDescriptor>,
    pub(super) lists: Vec<ScatterList>,
    pub(super) maps: Vec<FoundMap>,
}

impl Descriptors {
    pub(super) fn new() -> Self {
        let room = FIRST_ROOM;
        Self {
            room,
            ..Self::default()
        }
    }

    /// Describes a call.
    ///
    /// # Errors
    /// `INVAL` where the data is shorter than its descriptors say.
    pub(super) fn fill(
        &mut self,
        direction: CallKind,
        (dkey, iods): (&[u8], &[Iod<'_>]),
        data: *mut [u8],
    ) -> Result<()> {
        let needed = iods.iter().map(part).fold(0, usize::saturating_add);
        refuse!(data.len() < needed => Inval, "the data is shorter than its descriptors say");
        let data = data.cast::<u8>();
        self.hold(dkey, iods);
        let (mut key, mut extent, mut byte) = (dkey.len(), 0, 0);
        let keys = self.keys.as_mut_ptr();
        let extents = self.extents.as_mut_ptr();
        self.bytes.push(RawBytes::new(keys, dkey.len()));
        for iod in iods {
            let len = part(iod);
            let (kind, count) = match iod.kind {
                IodKind::Single => (SINGLE, 1),
                IodKind::Array => (ARRAY, iod.extents.len()),
            };
            self.bytes.push(RawBytes::new(data.wrapping_add(byte), len));
            self.values.push(ValueDescriptor {
                akey: RawBytes::new(keys.wrapping_add(key), iod.akey.len()),
                kind,
                // Of a single value that is fetched any length will do: the list has its room.
                size: match (direction, iod.kind) {
                    (CallKind::Fetch, IodKind::Single) => 0,
                    _ => iod.size,
                },
                flags: 0,
                count: u32::try_from(count).unwrap_or(u32::MAX),
                records: match iod.kind {
                    IodKind::Single => null_mut(),
                    IodKind::Array => extents.wrapping_add(extent),
                },
            });
            key += iod.akey.len();
            extent += if kind == ARRAY { count } else { 0 };
            byte += len;
        }
        let parts = self.bytes.as_mut_ptr();
        self.lists.extend((1..=iods.len()).map(|at| ScatterList {
            count: 1,
            filled: 0,
            parts: parts.wrapping_add(at),
        }));
        if direction == CallKind::Fetch {
            self.map();
        }
        Ok(())
    }

    /// Copies what the caller may change or drop.
    fn hold(&mut self, dkey: &[u8], iods: &[Iod<'_>]) {
        self.keys.clear();
        self.keys.extend_from_slice(dkey);
        self.extents.clear();
        for iod in iods {
            self.keys.extend_from_slice(iod.akey);
            let of_array = iod.extents.iter().filter(|_| iod.kind == IodKind::Array);
            self.extents
                .extend(of_array.map(|&RecordExtent { index, count }| Records { index, count }));
        }
        self.bytes.clear();
        self.values.clear();
        self.lists.clear();
        self.maps.clear();
    }

    /// Asks which ranges of arrays are found: what a hole has for its records stays as it was.
    fn map(&mut self) {
        let room = self.room as usize;
        self.ranges.clear();
        let ranges = self.values.len() * room;
        self.ranges.resize(ranges, Records::default());
        let ranges = self.ranges.as_mut_ptr();
        let numbered = self.values.iter().enumerate();
        self.maps.extend(numbered.map(|(at, descriptor)| FoundMap {
            kind: descriptor.kind,
            room: self.room,
            count: 0,
            flags: MAP_IN_DETAIL,
            size: 0,
            lowest: Records::default(),
            highest: Records::default(),
            records: ranges.wrapping_add(at * room),
        }));
    }

    /// True if a fetch found more ranges than there was room for; it is ready to be made again then.
    pub(super) fn lacked_room(&mut self) -> bool {
        let most = self.maps.iter().map(|map| map.count).max().unwrap_or(0);
        if most <= self.room {
            return false;
        }
        self.room = most;
        self.maps.clear();
        self.map();
        true
    }

    /// Ranges that a fetch found of an attribute key's array.
    fn ranges_of(&self, at: usize) -> impl Iterator<Item = &Records> {
        let count = self.maps.get(at).map_or(0, |map| map.count);
        let ranges = self.ranges.get(at * self.room as usize..);
        ranges.unwrap_or_default().iter().take(count as usize)
    }

    /// Bytes that a fetch found of an attribute key.
    fn found_of(&self, at: usize) -> u64 {
        match self.values.get(at) {
            Some(descriptor) if descriptor.kind == ARRAY => {
                let records: u64 = self.ranges_of(at).map(|range| range.count).sum();
                records.saturating_mul(descriptor.size)
            }
            descriptor => descriptor.map_or(0, |descriptor| descriptor.size),
        }
    }

    /// Bytes that a fetch found.
    pub(super) fn found(&self) -> u64 {
        (0..self.values.len()).map(|at| self.found_of(at)).sum()
    }

    /// Copies what a fetch found, and leaves the rest as it is.
    pub(super) fn copy_found(&self, from: &[u8], to: &mut [u8]) {
        let (mut start, mut extents) = (0, self.extents.iter());
        let parts = self.values.iter().zip(self.bytes.iter().skip(1));
        for (at, (descriptor, part)) in parts.enumerate() {
            if descriptor.kind == SINGLE {
                copy(from, to, start, descriptor.size);
            }
            let (mut first, size) = (start, descriptor.size);
            let of_array = usize::from(descriptor.kind == ARRAY) * descriptor.count as usize;
            for extent in extents.by_ref().take(of_array) {
                for range in self.ranges_of(at) {
                    let index = range.index.max(extent.index);
                    let end = (range.index + range.count).min(extent.index + extent.count);
                    let before = (index - extent.index) * size;
                    copy(from, to, first + before, end.saturating_sub(index) * size);
                }
                first += extent.count * size;
            }
            start += part.room;
        }
    }

    /// Puts into the descriptors what a fetch found.
    pub(super) fn describe(&self, iods: &mut [Iod<'_>]) {
        for (at, (iod, descriptor)) in iods.iter_mut().zip(&self.values).enumerate() {
            iod.found = self.found_of(at);
            iod.size = match iod.kind {
                IodKind::Array if iod.found == 0 => 0,
                _ => descriptor.size,
            };
        }
    }
}

/// Copies bytes from a place to the same place, as far as both have them.
fn copy(from: &[u8], to: &mut [u8], start: u64, len: u64) {
    let place = |at: u64| local(at);
    let range = place(start)..place(start.saturating_add(len));
    if let (Some(from), Some(to)) = (from.get(range.clone()), to.get_mut(range)) {
        to.copy_from_slice(from);
    }
}

/// Bytes of data of a descriptor.
fn part(iod: &Iod<'_>) -> usize {
    usize::try_from(iod.room()).unwrap_or(usize::MAX)
}
