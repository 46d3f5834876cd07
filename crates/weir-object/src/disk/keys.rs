//! Keys of the library, in whose order everything of an item lies together, and the sums of values.
//!
//! A key is container (4 bytes) · object (16) · distribution key · attribute key · kind · first record ·
//! inverted epoch, numbers with their greatest byte first: the newest version up to an epoch is the first
//! at or behind it. In keys of the user a byte 0 is followed by 255, and their end is 0 1. A punch of an
//! object or a distribution key stands before all that it hides: 0 0 · inverted epoch.

use super::library::Value;
use crate::prelude::*;

/// Facts of an array: record size and its longest extent.
pub(super) const ARRAY: u8 = 0;
/// A version of a single value, or a punch of the attribute key.
pub(super) const SINGLE: u8 = 1;
/// An extent, or a punch of records.
pub(super) const EXTENT: u8 = 2;

/// Bytes of a key up to its object.
const OBJECT: usize = 20;
/// Container of the pool's own entries: containers, snapshots, whether anything is punched whole.
const POOL: u32 = u32::MAX;
/// Bytes of a version behind the keys of the user.
pub(super) const VERSION: usize = 17;
/// Bytes of a sum before a value.
pub(super) const SUM: usize = 4;

/// Prefix of everything below an object, a distribution key or an attribute key.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) key: Vec<u8>,
    /// End of the distribution key.
    dkey: usize,
}

impl Place {
    pub(super) fn object(container: ContainerId, id: ObjectId) -> Self {
        let mut key = Vec::with_capacity(128);
        key.extend(container.0.to_be_bytes());
        key.extend(id.hi.to_be_bytes());
        key.extend(id.lo.to_be_bytes());
        Self { key, dkey: OBJECT }
    }

    pub(super) fn dkey(container: ContainerId, id: ObjectId, dkey: &[u8]) -> Self {
        let mut place = Self::object(container, id);
        push_part(&mut place.key, dkey, id.dkeys());
        place.dkey = place.key.len();
        place
    }

    pub(super) fn akey(container: ContainerId, id: ObjectId, dkey: &[u8], akey: &[u8]) -> Self {
        Self::dkey(container, id, dkey).with_akey(id, akey)
    }

    /// Below the same distribution key an attribute key.
    pub(super) fn with_akey(mut self, id: ObjectId, akey: &[u8]) -> Self {
        self.key.truncate(self.dkey);
        push_part(&mut self.key, akey, id.akeys());
        self
    }

    /// The item of which an entry of the library is a version; `None` for a punch of an object or a
    /// distribution key, with the place of that.
    pub(super) fn of(key: &[u8]) -> Option<(Self, bool)> {
        if key.len() < OBJECT {
            return None;
        }
        let dkey = part_end(key, OBJECT).unwrap_or(OBJECT);
        let akey = part_end(key, dkey);
        let key = key[..akey.unwrap_or(dkey)].to_vec();
        Some((Self { key, dkey }, akey.is_some()))
    }

    pub(super) fn id(&self) -> ObjectId {
        let (hi, lo) = (word(&self.key[4..]), word(&self.key[12..]));
        ObjectId {
            hi: hi.swap_bytes(),
            lo: lo.swap_bytes(),
        }
    }

    pub(super) fn object_prefix(&self) -> &[u8] {
        &self.key[..OBJECT]
    }

    pub(super) fn dkey_prefix(&self) -> &[u8] {
        &self.key[..self.dkey]
    }

    /// The user's distribution key and attribute key.
    pub(super) fn parts(&self) -> (Vec<u8>, Vec<u8>) {
        let id = self.id();
        (
            part(&self.key[OBJECT..self.dkey], id.dkeys()),
            part(&self.key[self.dkey..], id.akeys()),
        )
    }

    /// Key of a version.
    pub(super) fn version(&self, kind: u8, start: u64, epoch: u64) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.key.len() + VERSION);
        key.extend_from_slice(&self.key);
        key.push(kind);
        key.extend(start.to_be_bytes());
        key.extend((!epoch).to_be_bytes());
        key
    }

    /// Key that stands behind all of a kind.
    pub(super) fn behind(&self, kind: u8) -> Vec<u8> {
        [&self.key[..], &[kind + 1]].concat()
    }
}

fn push_part(out: &mut Vec<u8>, key: &[u8], order: KeyOrder) {
    let push = |byte: &u8| out.extend([*byte, 0xFF].iter().take(1 + usize::from(*byte == 0)));
    match order {
        KeyOrder::Integer => key.iter().rev().for_each(push),
        KeyOrder::Hashed | KeyOrder::Lexical => key.iter().for_each(push),
    }
    out.extend([0, 1]);
}

/// End of a user's key with its mark; `None` where a punch stands, or the end of all.
fn part_end(key: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match key.get(at..)? {
            [0, 0xFF, ..] => at += 2,
            [0, 1, ..] => return Some(at + 2),
            [0, ..] | [] => return None,
            _ => at += 1,
        }
    }
}

fn part(bytes: &[u8], order: KeyOrder) -> Vec<u8> {
    let bytes = bytes.strip_suffix(&[0, 1]).unwrap_or(bytes);
    let mut key = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        key.push(bytes[at]);
        at += if bytes[at] == 0 { 2 } else { 1 };
    }
    if order == KeyOrder::Integer {
        key.reverse();
    }
    key
}

/// Key of a punch of all below a prefix.
pub(super) fn punch(prefix: &[u8], epoch: u64) -> Vec<u8> {
    [prefix, &[0, 0], &(!epoch).to_be_bytes()].concat()
}

/// First key that may stand behind the punches of a prefix.
pub(super) fn first_below(prefix: &[u8]) -> Vec<u8> {
    [prefix, &[0, 1]].concat()
}

/// First key that stands behind all that have a prefix.
pub(super) fn after(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    while key.pop_if(|last| *last == u8::MAX).is_some() {}
    if let Some(last) = key.last_mut() {
        *last += 1;
    }
    key
}

/// Entries of the pool: a container, with its UUID.
pub(super) const CONTAINER: u8 = 0;
/// A snapshot of a container.
pub(super) const SNAPSHOT: u8 = 1;
/// Says that an object or a distribution key was punched.
pub(super) const PUNCHED: u8 = 2;

/// Key of an entry of the pool.
pub(super) fn pool(what: u8, container: u32, epoch: u64) -> Vec<u8> {
    let mut key = POOL.to_be_bytes().to_vec();
    key.push(what);
    key.extend(container.to_be_bytes());
    key.extend(epoch.to_be_bytes());
    key
}

/// Last 8 bytes of a key as a number, inverted: the epoch of a version or a punch.
pub(super) fn epoch_of(key: &[u8]) -> u64 {
    !key.last_chunk().map_or(0, |w| u64::from_be_bytes(*w))
}

/// First record of an extent's key.
pub(super) fn start_of(key: &[u8]) -> u64 {
    let at = key.len().saturating_sub(16);
    word(&key[at..]).swap_bytes()
}

/// Sum of an entry: of its key too, so that no value passes for that of another key.
pub(super) fn seal(sums: ValueSums, key: &[u8], bytes: &[u8]) -> [u8; SUM] {
    (sum_of(sums, key) ^ sum_of(sums, bytes)).to_le_bytes()
}

/// Bytes of an entry behind its sum.
pub(super) fn bare(value: &[u8]) -> &[u8] {
    value.get(SUM..).unwrap_or_default()
}

/// Bytes of an entry, if they have their sum.
pub(super) fn unseal<'a>(sums: ValueSums, key: &[u8], value: &'a [u8]) -> Result<&'a [u8]> {
    match value.split_first_chunk() {
        Some((sum, bytes)) if *sum == seal(sums, key, bytes) => Ok(bytes),
        _ => ObjectCode::Csum.fail("the value is damaged"),
    }
}

/// Two numbers of an entry.
pub(super) fn numbers(value: &Value<'_>) -> Result<(u64, u64)> {
    match bare(value.value()).as_chunks::<8>().0 {
        [a, b] => Ok((u64::from_le_bytes(*a), u64::from_le_bytes(*b))),
        _ => ObjectCode::Csum.fail("an entry of the pool is damaged"),
    }
}
