//! Open addressing from 64-bit hashes to numbers of entries.
//!
//! In: a hash, and a test whether an entry is the one that is meant. Out: the entry's number. A slot holds
//! half of the hash beside the number, so that growing touches no entry. Entries are never removed.

use super::image::words;
use super::medium::{advise_huge, prefetch};

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct HashTable {
    slots: Vec<u64>,
    len: usize,
}

words!(HashTable { slots, len });

impl Default for HashTable {
    fn default() -> Self {
        let (slots, len) = (vec![u64::MAX; 64], 0);
        Self { slots, len }
    }
}

impl HashTable {
    /// Slot at which the search for a hash begins: in the order of hashes, so that growing is a walk.
    #[inline]
    fn first(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }

    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&self.slots[self.first(hash >> 32 << 32)]);
    }

    /// The entry of a hash that passes the test.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> u32 {
        let tag = hash >> 32;
        let mut at = self.first(tag << 32);
        loop {
            let slot = self.slots[at];
            if slot == u64::MAX {
                return NONE;
            }
            if slot >> 32 == tag && is(slot as u32) {
                return slot as u32;
            }
            at = self.after(at);
        }
    }

    /// The slot behind one, around the end.
    #[inline]
    fn after(&self, at: usize) -> usize {
        let next = at + 1;
        if next == self.slots.len() { 0 } else { next }
    }

    pub(super) fn insert(&mut self, hash: u64, entry: u32) {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            let slots = self.slots.len() * 2;
            let mut wider = Vec::with_capacity(slots);
            // Before anything is written there.
            advise_huge(wider.spare_capacity_mut());
            wider.resize(slots, u64::MAX);
            for slot in std::mem::replace(&mut self.slots, wider) {
                if slot != u64::MAX {
                    self.put(slot);
                }
            }
        }
        self.put(hash >> 32 << 32 | u64::from(entry));
        self.len += 1;
    }

    fn put(&mut self, slot: u64) {
        let mut at = self.first(slot >> 32 << 32);
        while self.slots[at] != u64::MAX {
            at = self.after(at);
        }
        self.slots[at] = slot;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.slots.len() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_while_the_table_grows() {
        let mut table = HashTable::default();
        // Few different hashes, so that chains are long and wrap.
        let hash =
            |n: u32| u64::from(n % 50).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 0xFFFF_0000 << 32;
        for n in 0..500 {
            table.insert(hash(n), n);
            for m in [0, n / 2, n] {
                assert_eq!(table.find(hash(m), |entry| entry == m), m);
            }
        }
        assert_eq!(table.find(hash(7), |_| false), NONE);
    }
}
