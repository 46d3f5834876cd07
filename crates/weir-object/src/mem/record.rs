//! The one form of the log's records: a header of 96 bytes, two keys, sums; whole lines of 64 bytes.
//!
//! In: a [`Record`]. Out: its bytes, and a record again from bytes that are not believed: a wrong sum,
//! salt, sequence or length gives `None`. Not here: where records lie.

use crc_fast::{CrcAlgorithm, checksum};

use super::medium::Medium;
use crate::prelude::*;

/// Bytes before the keys.
pub(super) const HEADER: usize = 96;

/// Kinds of records: the log has their numbers, from 1.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident),* $(,)?) => {
        /// Meaning of a record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum RecordKind { $($(#[$doc])* $kind),* }

        const KINDS: &[RecordKind] = &[$(RecordKind::$kind),*];
    };
}

kinds! {
    /// The log goes on in the segment `at`, with the salt `sum`.
    Link,
    /// A container, its name in `object`.
    Container,
    /// A single value.
    Single,
    /// An extent of an array.
    Extent,
    /// A punch of a level.
    PunchObject,
    PunchDkey,
    PunchAkey,
    PunchExtent,
    /// Passes over a container, from `at` to `epoch`.
    Aggregate,
    Discard,
    Snapshot,
    DropSnapshot,
    /// The end of a container and of all that is in it, `epoch` being the last there is.
    DropContainer,
}

/// A record of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) kind: RecordKind,
    /// Place in its group: records that count together or not at all.
    pub(super) part: u8,
    /// True if the group goes on.
    pub(super) more: bool,
    pub(super) container: u32,
    pub(super) object: ObjectId,
    pub(super) epoch: u64,
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) sum: u32,
    /// Size of an array's records.
    pub(super) size: u32,
    pub(super) extent: RecordExtent,
    pub(super) dkey: &'a [u8],
    pub(super) akey: &'a [u8],
    /// Sums of an array's pieces, four bytes each.
    pub(super) sums: &'a [u8],
}

impl Record<'_> {
    /// A record of a kind and a container, with nothing else.
    pub(super) const fn new(kind: RecordKind, of: u32, object: ObjectId, epoch: u64) -> Self {
        Record {
            kind,
            part: 0,
            more: false,
            container: of,
            object,
            epoch,
            at: 0,
            len: 0,
            sum: 0,
            size: 0,
            extent: RecordExtent { index: 0, count: 0 },
            dkey: &[],
            akey: &[],
            sums: &[],
        }
    }

    /// A container, by its number.
    pub(super) fn container(number: u32, uuid: StoreUuid) -> Self {
        let (hi, lo) = (word(&uuid), word(&uuid[8..]));
        Record::new(RecordKind::Container, number, ObjectId { hi, lo }, 0)
    }

    /// The name of the container.
    pub(super) fn uuid(&self) -> StoreUuid {
        let words = (u128::from(self.object.lo) << 64) | u128::from(self.object.hi);
        words.to_le_bytes()
    }

    /// Bytes in the log.
    pub(super) fn stored_len(&self) -> usize {
        (HEADER + self.dkey.len() + self.akey.len() + self.sums.len()).next_multiple_of(64)
    }

    /// Writes the record into a buffer.
    pub(super) fn encode(&self, out: &mut Vec<u8>, seq: u64, salt: u32) {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (dkey, akey) = (self.dkey.len() as u32, self.akey.len() as u32);
        let flags = (self.kind as u32 + 1) | u32::from(self.part) << 8 | u32::from(self.more) << 16;
        let words = [
            pair(0, salt),
            seq,
            self.epoch,
            self.object.hi,
            self.object.lo,
            self.at,
            self.extent.index,
            self.extent.count,
            pair(self.len, self.sum),
            pair(dkey, akey),
            pair(self.container, flags),
            pair(self.size, self.sums.len() as u32),
        ];
        let mut header = [0; HEADER];
        for (slot, word) in header.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *slot = word.to_le_bytes();
        }
        out.clear();
        out.extend_from_slice(&header);
        out.extend_from_slice(self.dkey);
        out.extend_from_slice(self.akey);
        out.extend_from_slice(self.sums);
        out.resize(out.len().next_multiple_of(64), 0);
        let crc = checksum(CrcAlgorithm::Crc32Iscsi, &out[4..]) as u32;
        out[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

fn nth(bytes: &[u8], index: usize) -> u64 {
    let words = bytes.as_chunks::<8>().0;
    words.get(index).map_or(0, |word| u64::from_le_bytes(*word))
}

/// Keys of a record that was checked before.
#[inline]
pub(super) fn key_lens(header: &[u8]) -> (usize, usize) {
    let lens = nth(header, 9);
    ((lens as u32) as usize, (lens >> 32) as usize)
}

/// Sums of a record that was checked before.
pub(super) fn sums_of(medium: &impl Medium, record: u64) -> &[u8] {
    let header = medium.bytes(record, HEADER);
    let (dkey, akey) = key_lens(header);
    let len = (nth(header, 11) >> 32) as usize;
    medium.bytes(record + (HEADER + dkey + akey) as u64, len)
}

/// The record at the start of the bytes, with its sequence number, if it is whole and has the salt.
pub(super) fn decode(bytes: &[u8], salt: u32) -> Option<(Record<'_>, u64)> {
    if bytes.len() < HEADER || (nth(bytes, 0) >> 32) as u32 != salt {
        return None;
    }
    let (dkey, akey) = key_lens(bytes);
    let sums = (nth(bytes, 11) >> 32) as usize;
    if dkey > MAX_KEY || akey > MAX_KEY || sums > bytes.len() {
        return None;
    }
    let len = (HEADER + dkey + akey + sums).next_multiple_of(64);
    let body = bytes.get(4..len)?;
    if checksum(CrcAlgorithm::Crc32Iscsi, body) as u32 != nth(bytes, 0) as u32 {
        return None;
    }
    Some((checked(bytes)?, nth(bytes, 1)))
}

/// The record at the start of bytes that were checked before.
pub(super) fn checked(bytes: &[u8]) -> Option<Record<'_>> {
    let (dkey, akey) = key_lens(bytes);
    let sums = (nth(bytes, 11) >> 32) as usize;
    let (keys, flags) = (&bytes[HEADER..], (nth(bytes, 10) >> 32) as u32);
    let kind = *KINDS.get(((flags & 255) as usize).checked_sub(1)?)?;
    Some(Record {
        kind,
        part: (flags >> 8) as u8,
        more: flags >> 16 & 1 == 1,
        container: nth(bytes, 10) as u32,
        object: ObjectId {
            hi: nth(bytes, 3),
            lo: nth(bytes, 4),
        },
        epoch: nth(bytes, 2),
        at: nth(bytes, 5),
        len: nth(bytes, 8) as u32,
        sum: (nth(bytes, 8) >> 32) as u32,
        size: nth(bytes, 11) as u32,
        extent: RecordExtent {
            index: nth(bytes, 6),
            count: nth(bytes, 7),
        },
        dkey: &keys[..dkey],
        akey: &keys[dkey..dkey + akey],
        sums: &keys[dkey + akey..dkey + akey + sums],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_written_and_refused_when_any_byte_differs() {
        let mut record = Record::new(RecordKind::Extent, 3, ObjectId { hi: 1, lo: 2 }, 9);
        (record.part, record.more, record.at, record.len) = (7, true, 4_096, 80);
        (record.sum, record.size) = (11, 8);
        record.extent = RecordExtent {
            index: 5,
            count: 10,
        };
        (record.dkey, record.akey, record.sums) = (b"blade-1", b"akey--2", &[1, 2, 3, 4]);
        let mut bytes = Vec::new();
        record.encode(&mut bytes, 42, 17);
        assert_eq!(bytes.len(), record.stored_len());
        assert_eq!(decode(&bytes, 17), Some((record, 42)));
        assert_eq!(decode(&bytes, 18), None);
        for at in 0..bytes.len() {
            assert_eq!(decode(&bytes[..at], 17), None);
            bytes[at] ^= 1;
            assert_eq!(decode(&bytes, 17), None, "byte {at}");
            bytes[at] ^= 1;
        }
    }
}
