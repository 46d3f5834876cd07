//! A ring in memory that processes share.

use std::fmt;
use std::sync::Arc;

use super::{Record, RingMemory, RingWords};
use crate::error::SysError;
use crate::shared_memory::{AtomicWords, SharedMemory, SharedWords};

/// A ring's memory within a mapping: its words, then its slots.
pub struct MappedRing<R: Record> {
    words: SharedWords<RingWords>,
    slots: SharedWords<R::Slot>,
}

impl<R: Record<Slot: AtomicWords>> MappedRing<R> {
    /// Alignment of words and slots, unless slots are smaller.
    pub const ALIGN: usize = 128;

    /// Bytes of a ring with so many slots.
    pub const fn bytes(slots: u32) -> usize {
        size_of::<RingWords>() + slots as usize * size_of::<R::Slot>()
    }

    /// The ring at an offset of a mapping.
    ///
    /// # Errors
    /// [`SysError::Invalid`] unless the slots are a power of two, the offset a multiple of
    /// [`Self::ALIGN`], and all of it lies in the mapping.
    pub fn at(memory: &Arc<SharedMemory>, offset: usize, slots: u32) -> Result<Self, SysError> {
        let end = offset.checked_add(Self::bytes(slots));
        let fits = end.is_some_and(|end| end <= memory.len());
        if !slots.is_power_of_two() || !offset.is_multiple_of(Self::ALIGN) || !fits {
            return Err(SysError::Invalid(format!(
                "a ring of {slots} slots does not fit at byte {offset} of {} B",
                memory.len()
            )));
        }
        let slots_at = offset + size_of::<RingWords>();
        Ok(Self {
            words: SharedWords::at(memory, offset, 1),
            slots: SharedWords::at(memory, slots_at, slots as usize),
        })
    }
}

impl<R: Record> Clone for MappedRing<R> {
    fn clone(&self) -> Self {
        Self {
            words: self.words.clone(),
            slots: self.slots.clone(),
        }
    }
}

impl<R: Record> fmt::Debug for MappedRing<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MappedRing").field(&self.slots).finish()
    }
}

impl<R: Record<Slot: AtomicWords>> RingMemory for MappedRing<R> {
    type Record = R;

    #[inline]
    fn words(&self) -> &RingWords {
        &self.words[0]
    }

    #[inline]
    fn slots(&self) -> &[R::Slot] {
        &self.slots
    }
}
