//! Objects, keys and bytes of the tests, by their numbers.
//!
//! In: the layout, a seed. Out: ids, keys, the bytes of a value, and whether bytes that were read are those that
//! the last update wrote. Keys are those of the reference. Not here: operations.

use std::io::Write as _;

use crate::prelude::*;
use weir_run::generate::rng::{GOLDEN, SplitMix64};
use weir_schema::{ObjectClass, ObjectKey, ObjectLayout, ObjectPayload, ObjectTest, ObjectValue};

/// Where in each page the reference puts its letter.
const MARKED: [usize; 16] = [
    0, 3, 7, 13, 23, 56, 105, 158, 231, 400, 712, 1291, 1788, 2371, 3116, 3968,
];
const PAGE: usize = 4096;
/// Number of no walk: values of mixes.
const MIXED: usize = 0;
/// Types of objects, in the top byte of their id.
const INTEGER_DKEYS: u64 = 2;
const FLAT_KEYS: u64 = 8;
const BYTE_ARRAY: u64 = 13;
/// Class of objects without copies, in the byte below; the number of groups stands below that.
const ONE_COPY: u64 = 1 << 48;

/// A value by its numbers: object, distribution key, attribute key, stride.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct At {
    pub(super) object: u64,
    pub(super) dkey: u64,
    pub(super) akey: u64,
    pub(super) stride: u64,
}

/// Everything that a test walks over: how many of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranges {
    pub(super) objects: u64,
    pub(super) dkeys: u64,
    pub(super) akeys: u64,
    pub(super) strides: u64,
}

impl Ranges {
    pub(super) fn of(layout: &ObjectLayout, test: &ObjectTest) -> Self {
        Self {
            objects: test.objects.unwrap_or(layout.objects),
            dkeys: test.dkeys.unwrap_or(layout.dkeys),
            akeys: test.akeys.unwrap_or(layout.akeys),
            strides: test.strides.unwrap_or(layout.strides),
        }
    }

    /// The place behind this one, objects first, then strides, attribute keys, distribution keys.
    pub(super) fn after(&self, at: At) -> Option<At> {
        let mut next = At {
            object: at.object + 1,
            ..at
        };
        if next.object >= self.objects {
            (next.object, next.stride) = (0, next.stride + 1);
        }
        if next.stride >= self.strides {
            (next.stride, next.akey) = (0, next.akey + 1);
        }
        if next.akey >= self.akeys {
            (next.akey, next.dkey) = (0, next.dkey + 1);
        }
        (next.dkey < self.dkeys).then_some(next)
    }

    fn holds(&self, at: At) -> bool {
        at.object < self.objects
            && at.dkey < self.dkeys
            && at.akey < self.akeys
            && at.stride < self.strides
    }
}

/// Names of what is stored.
#[derive(Debug)]
pub(super) struct Names {
    layout: ObjectLayout,
    /// Number of the target among so many; which deal the distribution keys out in turn.
    target: u64,
    targets: u64,
    /// Ids of the objects, made once.
    pub(super) objects: Vec<ObjectId>,
    /// Place of each stride in its array, in strides.
    positions: Vec<u64>,
}

impl Names {
    /// Those of a target of a rank. The low word of an id has the second of the clock and a running number, from
    /// the rank's first on, the high one what the seed draws.
    pub(super) fn new(
        layout: &ObjectLayout,
        class: Option<ObjectClass>,
        (target, targets): (u64, u64),
        (seed, second, first): (u64, u64, u64),
    ) -> Self {
        let mut random = SplitMix64::new(seed);
        let is_array = matches!(layout.value, ObjectValue::Array { .. });
        let form = match (layout.flat, is_array, layout.integer_dkeys) {
            (true, true, _) => BYTE_ARRAY,
            (true, false, _) => FLAT_KEYS,
            (false, _, true) => INTEGER_DKEYS,
            (false, _, false) => 0,
        };
        let class = match class {
            Some(ObjectClass::Tiny) => ONE_COPY | 1 << 32,
            Some(ObjectClass::Large) => ONE_COPY | 0xffff << 32,
            _ => 0,
        };
        let numbers = first..first.saturating_add(layout.objects);
        let objects = numbers.map(|number| ObjectId {
            hi: (form << 56) | class | (random.next_u64() % 100),
            lo: ((second << 32) | (number & u64::from(u32::MAX))).wrapping_add(number >> 32 << 32),
        });
        let objects = objects.collect();
        let shuffled = matches!(layout.value, ObjectValue::Array { shuffled: true });
        let strides = if shuffled { layout.strides } else { 0 };
        let mut positions: Vec<u64> = (0..strides).collect();
        for last in (1..positions.len()).rev() {
            let chosen = random.next_u64() % (last as u64 + 1);
            positions.swap(last, usize::try_from(chosen).unwrap_or(last));
        }
        Self {
            layout: layout.clone(),
            target,
            targets,
            objects,
            positions,
        }
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.layout.value, ObjectValue::Array { .. })
    }

    pub(super) fn object(&self, number: u64) -> ObjectId {
        let place = local(number);
        self.objects.get(place).copied().unwrap_or_default()
    }

    /// First record of a stride.
    pub(super) fn index(&self, stride: u64) -> u64 {
        let place = local(stride);
        let position = self.positions.get(place).copied().unwrap_or(stride);
        position * self.layout.stride_bytes.0
    }

    /// Distribution key of a number, after so many keys.
    pub(super) fn dkey(&self, number: u64, base: u64, key: &mut Vec<u8>) {
        let counted = base + number * self.targets + self.target + 1;
        key.clear();
        if self.layout.integer_dkeys {
            key.extend_from_slice(&counted.to_le_bytes());
        } else {
            // Writing to memory does not fail.
            let _ = write!(key, "blade-{counted}");
        }
    }

    /// Attribute key of a number, after so many keys.
    pub(super) fn akey(&self, number: u64, base: u64, key: &mut Vec<u8>) {
        key.clear();
        if self.layout.flat {
            return;
        }
        if self.layout.constant_akey {
            key.extend_from_slice(b"akey--0");
            return;
        }
        let counted = base + self.layout.dkeys + number + 1;
        let _ = write!(key, "akey--{counted}");
    }

    /// Keys before those of an iteration of a test.
    pub(super) fn base(&self, test: &ObjectTest, iteration: u64) -> u64 {
        let each = self.layout.dkeys + self.layout.akeys;
        u64::from(test.keep_counter) * iteration * each
    }

    /// A distribution key, for people.
    pub(super) fn shown_dkey(&self, key: &[u8]) -> ObjectKey {
        match <[u8; 8]>::try_from(key) {
            Ok(number) if self.layout.integer_dkeys => {
                ObjectKey::Integer(u64::from_le_bytes(number))
            }
            _ => ObjectKey::Name(String::from_utf8_lossy(key).into_owned()),
        }
    }
}

/// One walk of an update, by what it wrote where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) ranges: Ranges,
    pub(super) base: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// Bytes of values: each walk of an update writes others.
#[derive(Debug)]
pub(super) struct Contents {
    payload: ObjectPayload,
    pub(super) seed: u64,
    written: Vec<Written>,
}

impl Contents {
    pub(super) fn new(payload: ObjectPayload, seed: u64) -> Self {
        Self {
            payload,
            seed,
            written: Vec::new(),
        }
    }

    /// A walk begins.
    pub(super) fn begin(&mut self, walk: Written) {
        self.written.push(walk);
    }

    /// Bytes of the present walk at a place, from an offset in its stride on.
    pub(super) fn fill(&self, at: At, base: u64, offset: u64, bytes: &mut [u8]) {
        self.fill_of(self.written.len(), at, base, offset, bytes);
    }

    /// Bytes of a write of a mix, by its number.
    pub(super) fn fill_mixed(&self, at: At, write: u32, bytes: &mut [u8]) {
        let stride = write.into();
        self.fill_of(MIXED, At { stride, ..at }, 0, 0, bytes);
    }

    fn fill_of(&self, walk: usize, at: At, base: u64, offset: u64, bytes: &mut [u8]) {
        if self.payload == ObjectPayload::Compat {
            bytes.fill(0);
            let letter = b'A' + u8::try_from(walk.saturating_sub(1) % 26).unwrap_or(0);
            for page in bytes.chunks_mut(PAGE) {
                let length = page.len();
                for place in MARKED.into_iter().filter(|place| *place < length) {
                    page[place] = letter;
                }
            }
            return;
        }
        let mut key = self.seed;
        for part in [at.object, at.dkey, at.akey, at.stride, base, walk as u64] {
            key = SplitMix64::new(key ^ part).next_u64();
        }
        // Words are those of the stride: a part of it has the same bytes as the whole.
        let mut word = offset / 8;
        let mut skip = usize::try_from(offset % 8).unwrap_or(0);
        let mut left = bytes;
        while !left.is_empty() {
            let value = word_of(key, word).to_le_bytes();
            let length = left.len().min(8 - skip);
            let (now, rest) = left.split_at_mut(length);
            now.copy_from_slice(&value[skip..skip + length]);
            (left, word, skip) = (rest, word + 1, 0);
        }
    }

    /// The first byte of a read that is not what the last update of its place wrote, by its offset in the
    /// stride. Nobody knows what bytes are that no update of this run wrote.
    pub(super) fn differs(&self, at: At, base: u64, offset: u64, bytes: &[u8]) -> Option<u64> {
        let end = offset + bytes.len() as u64;
        let mut from = offset;
        let mut wanted = Vec::new();
        while from < end {
            let (walk, until) = self.newest(at, base, from, end);
            let found = &bytes[local(from - offset)..local(until - offset)];
            if let Some((walk, first)) = walk {
                wanted.resize(found.len(), 0);
                match self.payload {
                    ObjectPayload::Verified => self.fill_of(walk, at, base, from, &mut wanted),
                    ObjectPayload::Compat => {
                        let mut whole = vec![0; local(until - first)];
                        self.fill_of(walk, at, base, first, &mut whole);
                        wanted.copy_from_slice(&whole[local(from - first)..]);
                    }
                }
                let place = found.iter().zip(&wanted).position(|(a, b)| a != b);
                if let Some(place) = place {
                    return Some(from + place as u64);
                }
            }
            from = until;
        }
        None
    }

    /// The last walk that wrote this byte of a stride with the first byte that it wrote there, and the end of
    /// the bytes for which that is so.
    fn newest(&self, at: At, base: u64, from: u64, end: u64) -> (Option<(usize, u64)>, u64) {
        let mut until = end;
        for (number, walk) in self.written.iter().enumerate().rev() {
            if walk.base != base || !walk.ranges.holds(at) {
                continue;
            }
            if (walk.offset..walk.offset + walk.size).contains(&from) {
                let until = until.min(walk.offset + walk.size);
                return (Some((number + 1, walk.offset)), until);
            }
            if walk.offset > from {
                until = until.min(walk.offset);
            }
        }
        (None, until)
    }
}

/// Word of a stream, by its number: splitmix64.
fn word_of(key: u64, number: u64) -> u64 {
    SplitMix64::new(key.wrapping_add(number.wrapping_mul(GOLDEN))).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(offset: u64, size: u64) -> Written {
        Written {
            ranges: Ranges {
                objects: 2,
                dkeys: 2,
                akeys: 2,
                strides: 2,
            },
            base: 0,
            offset,
            size,
        }
    }

    #[test]
    fn objects_are_innermost_and_distribution_keys_outermost() {
        let ranges = walk(0, 1).ranges;
        let mut order = vec![At::default()];
        while let Some(next) = ranges.after(order[order.len() - 1]) {
            order.push(next);
        }
        let numbers: Vec<u64> = order
            .iter()
            .map(|at| at.dkey * 8 + at.akey * 4 + at.stride * 2 + at.object)
            .collect();
        assert_eq!(numbers, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn each_byte_is_held_against_the_last_walk_that_wrote_it() {
        for payload in [ObjectPayload::Verified, ObjectPayload::Compat] {
            let mut contents = Contents::new(payload, 7);
            let at = At {
                dkey: 1,
                ..At::default()
            };
            let mut stored = vec![0; 100];
            contents.begin(walk(0, 100));
            contents.fill(at, 0, 0, &mut stored);
            contents.begin(walk(13, 40));
            contents.fill(at, 0, 13, &mut stored[13..53]);
            assert_eq!(contents.differs(at, 0, 0, &stored), None);
            assert_eq!(contents.differs(at, 0, 5, &stored[5..70]), None);
            // The letter of the second walk is another one.
            let (before, wrong) = (stored[13], 13);
            stored[13] ^= 1;
            assert_eq!(contents.differs(at, 0, 0, &stored), Some(wrong));
            stored[13] = before;
            if payload == ObjectPayload::Verified {
                let other = At { dkey: 0, ..at };
                assert_eq!(contents.differs(other, 0, 0, &stored), Some(0));
                stored[99] ^= 0x80;
                assert_eq!(contents.differs(at, 0, 0, &stored), Some(99));
            }
        }
    }

    #[test]
    fn a_shuffled_array_has_every_place_once_and_by_its_seed() {
        let layout = ObjectLayout {
            strides: 50,
            value: ObjectValue::Array { shuffled: true },
            ..ObjectLayout::default()
        };
        let places = |seed| {
            let names = Names::new(&layout, None, (0, 1), (seed, 1, 0));
            (0..50).map(|s| names.index(s) / 64).collect::<Vec<_>>()
        };
        let (one, other) = (places(1), places(2));
        assert_ne!(one, other);
        assert_eq!(one, places(1));
        let mut sorted = one.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
}
