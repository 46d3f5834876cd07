//! A ring in memory of this process, for two of its threads.

#[cfg(loom)]
use loom::sync::Arc;
#[cfg(not(loom))]
use std::sync::Arc;

use super::{AtomicU32, Consumer, LINE_WORDS, Producer, Record, RingMemory, RingWords};

/// A ring's memory on the heap.
#[derive(Debug)]
pub struct HeapRing<R: Record> {
    words: Lines,
    slots: Box<[R::Slot]>,
}

#[derive(Debug)]
#[repr(align(128))]
struct Lines(RingWords);

impl<R: Record> RingMemory for Arc<HeapRing<R>> {
    type Record = R;

    #[inline]
    fn words(&self) -> &RingWords {
        &self.words.0
    }

    #[inline]
    fn slots(&self) -> &[R::Slot] {
        &self.slots
    }
}

/// Both ends of a ring on the heap.
pub type HeapRingEnds<R> = (Producer<Arc<HeapRing<R>>>, Consumer<Arc<HeapRing<R>>>);

/// Both ends of a ring in memory of this process, with room for at least so many records: the next
/// power of two.
pub fn heap_ring<R: Record>(records: u32) -> HeapRingEnds<R> {
    let slots = records.clamp(1, 1 << 31).next_power_of_two();
    let line = |_| std::array::from_fn::<_, LINE_WORDS, _>(|_| AtomicU32::new(0));
    let memory = Arc::new(HeapRing {
        words: Lines(std::array::from_fn(line)),
        slots: (0..slots).map(|_| R::slot()).collect(),
    });
    (Producer::new(Arc::clone(&memory)), Consumer::new(memory))
}
