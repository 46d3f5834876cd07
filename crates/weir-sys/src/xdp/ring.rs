//! A ring between this process and the kernel, which says where its words lie.
//!
//! In: mapped memory and offsets in it. Out: one end of the ring: slots to fill and to publish, or slots
//! to read and to release. Both ends count on without bounds; a slot is the count modulo their number.
//! Not here: what a slot means, and the calls that map it (`socket`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::SysError;
use crate::shared_memory::{AtomicWords, SharedMemory, SharedWords};

/// The kernel sleeps until it is woken by a call.
const NEEDS_WAKEUP: u32 = 1;

/// Offsets of a ring's parts in its memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingOffsets {
    pub(super) producer: u64,
    pub(super) consumer: u64,
    /// Kernels before 5.4 have none.
    pub(super) flags: Option<u64>,
    pub(super) slots: u64,
}

/// The words of a ring.
#[derive(Debug)]
struct KernelRing<S> {
    producer: SharedWords<AtomicU32>,
    consumer: SharedWords<AtomicU32>,
    flags: Option<SharedWords<AtomicU32>>,
    slots: SharedWords<S>,
    mask: u32,
}

impl<S: AtomicWords> KernelRing<S> {
    fn new(memory: &Arc<SharedMemory>, offsets: RingOffsets, slots: u32) -> Result<Self, SysError> {
        let word = |offset: u64| {
            let offset = place(memory, offset, size_of::<AtomicU32>())?;
            Ok(SharedWords::at(memory, offset, 1))
        };
        let bytes = (slots as usize).saturating_mul(size_of::<S>());
        let slots_at = place(memory, offsets.slots, bytes)?;
        if !slots.is_power_of_two() {
            return Err(SysError::Invalid(format!(
                "a ring of {slots} slots: the kernel takes powers of two"
            )));
        }
        Ok(Self {
            producer: word(offsets.producer)?,
            consumer: word(offsets.consumer)?,
            flags: offsets.flags.map(word).transpose()?,
            slots: SharedWords::at(memory, slots_at, slots as usize),
            mask: slots - 1,
        })
    }

    #[inline]
    fn slot(&self, count: u32) -> &S {
        &self.slots[(count & self.mask) as usize]
    }
}

/// An offset of the kernel, where so many bytes fit there.
fn place(memory: &SharedMemory, offset: u64, bytes: usize) -> Result<usize, SysError> {
    let at = usize::try_from(offset).ok();
    let end = at.and_then(|at| at.checked_add(bytes));
    match (at, end) {
        (Some(at), Some(end)) if end <= memory.len() && at % 4 == 0 => Ok(at),
        _ => Err(SysError::Invalid(format!(
            "the kernel's ring has {bytes} B at byte {offset} of {} B",
            memory.len()
        ))),
    }
}

/// Bytes of a ring's memory: up to the end of its slots.
pub(super) fn mapped_bytes<S>(offsets: RingOffsets, slots: u32) -> usize {
    let slots = (slots as usize).saturating_mul(size_of::<S>());
    usize::try_from(offsets.slots)
        .unwrap_or(usize::MAX)
        .saturating_add(slots)
}

/// The end of a ring that this process fills.
#[derive(Debug)]
pub(super) struct KernelProducer<S> {
    ring: KernelRing<S>,
    /// Slots filled, published or not.
    filled: u32,
    /// Slots that the kernel had taken at the last look.
    taken: u32,
}

impl<S: AtomicWords> KernelProducer<S> {
    /// The ring in this memory.
    ///
    /// # Errors
    /// [`SysError::Invalid`] where it does not fit or its slots are no power of two.
    pub(super) fn new(
        memory: &Arc<SharedMemory>,
        offsets: RingOffsets,
        slots: u32,
    ) -> Result<Self, SysError> {
        let ring = KernelRing::new(memory, offsets, slots)?;
        // Nobody else writes the producer's word.
        let filled = ring.producer[0].load(Ordering::Relaxed);
        let taken = ring.consumer[0].load(Ordering::Acquire);
        Ok(Self {
            ring,
            filled,
            taken,
        })
    }

    /// The next slot, to be written; none where the ring is full.
    #[inline]
    pub(super) fn next(&mut self) -> Option<&S> {
        if self.filled.wrapping_sub(self.taken) > self.ring.mask && self.look() > self.ring.mask {
            return None;
        }
        let slot = self.ring.slot(self.filled);
        self.filled = self.filled.wrapping_add(1);
        Some(slot)
    }

    /// Slots that the kernel has not taken yet, with a look at its word.
    #[inline]
    pub(super) fn look(&mut self) -> u32 {
        // Pairs with the kernel's release when it has read slots.
        self.taken = self.ring.consumer[0].load(Ordering::Acquire);
        self.filled.wrapping_sub(self.taken)
    }

    /// Shows the kernel all that was written.
    #[inline]
    pub(super) fn publish(&mut self) {
        // Pairs with the kernel's acquire before it reads slots.
        self.ring.producer[0].store(self.filled, Ordering::Release);
    }

    /// The kernel takes nothing before it is woken. Kernels that cannot say so always have to be.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        let flags = self.ring.flags.as_ref();
        flags.is_none_or(|flags| flags[0].load(Ordering::Relaxed) & NEEDS_WAKEUP != 0)
    }
}

/// The end of a ring that the kernel fills.
#[derive(Debug)]
pub(super) struct KernelConsumer<S> {
    ring: KernelRing<S>,
    /// Slots read, released or not.
    read: u32,
    /// Slots that the kernel had filled at the last look.
    filled: u32,
}

impl<S: AtomicWords> KernelConsumer<S> {
    /// The ring in this memory.
    ///
    /// # Errors
    /// [`SysError::Invalid`] where it does not fit or its slots are no power of two.
    pub(super) fn new(
        memory: &Arc<SharedMemory>,
        offsets: RingOffsets,
        slots: u32,
    ) -> Result<Self, SysError> {
        let ring = KernelRing::new(memory, offsets, slots)?;
        // Nobody else writes the consumer's word.
        let read = ring.consumer[0].load(Ordering::Relaxed);
        Ok(Self {
            ring,
            read,
            filled: read,
        })
    }

    /// The oldest slot that was not read yet.
    #[inline]
    pub(super) fn next(&mut self) -> Option<&S> {
        if self.read == self.filled && self.look() == 0 {
            return None;
        }
        let slot = self.ring.slot(self.read);
        self.read = self.read.wrapping_add(1);
        Some(slot)
    }

    /// Slots that wait to be read, with a look at the kernel's word.
    #[inline]
    pub(super) fn look(&mut self) -> u32 {
        // Pairs with the kernel's release when it has filled slots.
        self.filled = self.ring.producer[0].load(Ordering::Acquire);
        self.filled.wrapping_sub(self.read)
    }

    /// Gives the kernel all slots back that were read.
    #[inline]
    pub(super) fn release(&mut self) {
        // Pairs with the kernel's acquire before it fills slots again.
        self.ring.consumer[0].store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    const OFFSETS: RingOffsets = RingOffsets {
        producer: 0,
        consumer: 64,
        flags: Some(128),
        slots: 192,
    };

    fn memory() -> Arc<SharedMemory> {
        Arc::new(SharedMemory::create("weir-test", 4096).unwrap().0)
    }

    fn ends(slots: u32, start: u32) -> (KernelProducer<AtomicU64>, KernelConsumer<AtomicU64>) {
        let memory = memory();
        memory.word(0).store(start, Ordering::Relaxed);
        memory.word(64).store(start, Ordering::Relaxed);
        let producer = KernelProducer::new(&memory, OFFSETS, slots).unwrap();
        let consumer = KernelConsumer::new(&memory, OFFSETS, slots).unwrap();
        (producer, consumer)
    }

    #[test]
    fn what_one_end_publishes_the_other_reads_in_order_across_the_wrap_of_the_counts() {
        // The counts pass 2^32 after the third.
        let (mut producer, mut consumer) = ends(4, u32::MAX - 2);
        let mut expected = 0;
        for round in 0..5_u64 {
            for at in 0..4 {
                let slot = producer.next().unwrap();
                slot.store(round * 4 + at, Ordering::Relaxed);
            }
            assert!(producer.next().is_none(), "four slots are full");
            assert!(consumer.next().is_none(), "nothing is published yet");
            producer.publish();
            assert_eq!(consumer.look(), 4);
            while let Some(slot) = consumer.next() {
                assert_eq!(slot.load(Ordering::Relaxed), expected);
                expected += 1;
            }
            assert_eq!(producer.look(), 4, "nothing is released yet");
            assert!(producer.next().is_none());
            consumer.release();
            assert_eq!(producer.look(), 0);
        }
        assert_eq!(expected, 20);
    }

    #[test]
    fn the_kernel_is_woken_where_it_asks_for_it_and_where_it_cannot_say() {
        let memory = memory();
        let producer = KernelProducer::<AtomicU64>::new(&memory, OFFSETS, 4).unwrap();
        assert!(!producer.needs_wakeup());
        memory.word(128).store(NEEDS_WAKEUP, Ordering::Relaxed);
        assert!(producer.needs_wakeup());
        let old = RingOffsets {
            flags: None,
            ..OFFSETS
        };
        memory.word(128).store(0, Ordering::Relaxed);
        let producer = KernelProducer::<AtomicU64>::new(&memory, old, 4).unwrap();
        assert!(producer.needs_wakeup());
    }

    #[test]
    fn a_ring_that_does_not_fit_its_memory_is_refused() {
        let refused = |offsets, slots| {
            let ring = KernelConsumer::<[AtomicU64; 2]>::new(&memory(), offsets, slots);
            ring.unwrap_err().to_string()
        };
        let long = refused(OFFSETS, 256);
        assert!(long.contains("4096 B at byte 192 of 4096 B"), "{long}");
        let odd = refused(OFFSETS, 3);
        assert!(odd.contains("powers of two"), "{odd}");
        let far = RingOffsets {
            producer: u64::MAX,
            ..OFFSETS
        };
        assert!(refused(far, 4).contains("4 B at byte"));
        assert_eq!(mapped_bytes::<AtomicU64>(OFFSETS, 4), 192 + 32);
    }
}
