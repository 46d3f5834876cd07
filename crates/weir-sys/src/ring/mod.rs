//! A ring of fixed-size records from one producer to one consumer: two threads, or two processes.
//!
//! In: memory that both ends see ([`RingMemory`]: of this process in [`HeapRing`], of several in
//! `MappedRing`), all zero at the beginning. Out: a [`Producer`] and a [`Consumer`]. Each counts
//! its records in a word of its own; the words lie on lines of 128 bytes of their own (two cache
//! lines, which processors fetch together), and each end keeps what it last saw of the other's, so
//! that it looks there only when a ring seems full or empty. Both ends act in batches: what was
//! pushed is seen once it is published, what was popped is free once it is released.
//!
//! The other end may be hostile and write anything anywhere: an index of its is checked against the
//! own count and the capacity before it is used ([`CorruptRing`]), own counts are never read back,
//! slots are found by a mask, and records are made of atomic words, which may change but never tear
//! the reader's assumptions. Their content is the reader's to judge.
//!
//! Whoever runs out of work may sleep ([`Consumer::wait`], [`Producer::wait_for_room`]), across
//! processes too. Not here: what the records mean, and how long to spin before sleeping.

mod consumer;
mod heap;
#[cfg(not(loom))]
mod mapped;
mod producer;
mod sleep;

pub use consumer::Consumer;
pub use heap::{HeapRing, HeapRingEnds, heap_ring};
#[cfg(not(loom))]
pub use mapped::MappedRing;
pub use producer::Producer;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Words of a line; the model checker needs no room between them.
const LINE_WORDS: usize = if cfg!(loom) { 1 } else { 32 };
/// A word on cache lines of its own.
type Line = [AtomicU32; LINE_WORDS];
/// The four lines before the slots.
pub type RingWords = [Line; 4];

/// Records published so far: written by the producer alone.
const PUBLISHED: usize = 0;
/// Records taken so far: written by the consumer alone.
const TAKEN: usize = 1;
/// 1 while the consumer sleeps or is about to.
const CONSUMER_SLEEPS: usize = 2;
/// 1 while the producer sleeps or is about to.
const PRODUCER_SLEEPS: usize = 3;

/// A record that travels in a ring: one word, or several.
pub trait Record: Copy {
    /// Its slot, made of atomic words.
    type Slot;

    /// An empty slot.
    fn slot() -> Self::Slot;
    /// Writes it into a slot.
    fn put(self, slot: &Self::Slot);
    /// Reads it from a slot.
    fn get(slot: &Self::Slot) -> Self;
}

// The order of a record's words comes from the index that publishes it: Release in
// `Producer::publish` with Acquire in `Consumer::look`, and for the slot's next use Release in
// `Consumer::release` with Acquire in `Producer::look`.
impl Record for u32 {
    type Slot = AtomicU32;

    fn slot() -> AtomicU32 {
        AtomicU32::new(0)
    }

    #[inline]
    fn put(self, slot: &AtomicU32) {
        slot.store(self, Ordering::Relaxed);
    }

    #[inline]
    fn get(slot: &AtomicU32) -> Self {
        slot.load(Ordering::Relaxed)
    }
}

impl Record for u64 {
    type Slot = AtomicU64;

    fn slot() -> AtomicU64 {
        AtomicU64::new(0)
    }

    #[inline]
    fn put(self, slot: &AtomicU64) {
        slot.store(self, Ordering::Relaxed);
    }

    #[inline]
    fn get(slot: &AtomicU64) -> Self {
        slot.load(Ordering::Relaxed)
    }
}

impl<const WORDS: usize> Record for [u64; WORDS] {
    type Slot = [AtomicU64; WORDS];

    fn slot() -> Self::Slot {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    #[inline]
    fn put(self, slot: &Self::Slot) {
        for (word, at) in self.into_iter().zip(slot) {
            word.put(at);
        }
    }

    #[inline]
    fn get(slot: &Self::Slot) -> Self {
        std::array::from_fn(|word| u64::get(&slot[word]))
    }
}

/// Memory that both ends of a ring see.
pub trait RingMemory {
    /// The record that travels in it.
    type Record: Record;

    /// The words of both ends.
    fn words(&self) -> &RingWords;
    /// The slots; a power of two of them, always as many.
    fn slots(&self) -> &[<Self::Record as Record>::Slot];
}

/// The other end of a ring wrote an index that cannot be: nothing of the ring can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end of a ring of {capacity} says {found} where this one is at {own}")]
pub struct CorruptRing {
    /// The index found.
    pub found: u32,
    /// The own index.
    pub own: u32,
    /// Slots of the ring.
    pub capacity: u32,
}

/// Longest sleep that may be announced at a ring by a thread that sleeps elsewhere. On some systems
/// a wake-up may be missed, and a sleep has to be short.
#[cfg(not(loom))]
pub fn longest_sleep(wait: std::time::Duration) -> std::time::Duration {
    sleep::longest(Some(wait)).unwrap_or(wait)
}

/// The mask that turns an index into the number of a slot.
///
/// Panics where the slots are no power of two, or more than an index can tell apart.
fn mask<M: RingMemory>(memory: &M) -> u32 {
    let slots = memory.slots().len();
    assert!(
        slots.is_power_of_two() && slots <= 1 << 31,
        "a ring has a power of two of slots"
    );
    u32::try_from(slots - 1).unwrap_or(u32::MAX >> 1)
}

#[cfg(test)]
#[cfg(loom)]
mod model;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
