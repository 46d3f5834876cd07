//! The end that writes.

#[cfg(not(loom))]
use std::time::Duration;

use super::{
    CONSUMER_SLEEPS, CorruptRing, Ordering, PRODUCER_SLEEPS, PUBLISHED, Record, RingMemory, TAKEN,
    mask, sleep,
};

/// The end of a ring that writes records. There is to be one.
#[derive(Debug)]
pub struct Producer<M> {
    pub(super) memory: M,
    mask: u32,
    /// A barrier stands before a look for sleepers.
    barrier: bool,
    /// Records pushed so far; indexes go round after 2^32.
    pub(super) pushed: u32,
    /// Of these, those that the consumer may see.
    pub(super) published: u32,
    /// Of these, those that the consumer was last seen to have taken.
    pub(super) taken: u32,
}

impl<M: RingMemory> Producer<M> {
    /// The producer of memory whose words are all 0.
    pub fn new(memory: M) -> Self {
        Self {
            mask: mask(&memory),
            barrier: sleep::needs_barrier(),
            memory,
            pushed: 0,
            published: 0,
            taken: 0,
        }
    }

    /// Number of records that the ring holds.
    #[inline]
    pub fn capacity(&self) -> u32 {
        self.mask + 1
    }

    /// The number of the next record to be pushed, counted from 0 and modulo 2^32.
    #[inline]
    pub fn next_index(&self) -> u32 {
        self.pushed
    }

    /// Of the records pushed, those that the consumer was last seen to have released.
    #[inline]
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// Records pushed that the consumer may not see yet.
    #[inline]
    pub fn unpublished(&self) -> u32 {
        self.pushed.wrapping_sub(self.published)
    }

    /// Free slots as far as is known without a look at the other end.
    #[inline]
    fn known_room(&self) -> u32 {
        self.capacity() - self.pushed.wrapping_sub(self.taken)
    }

    /// Looks how far the consumer is.
    ///
    /// # Errors
    /// [`CorruptRing`] where it says what cannot be.
    #[inline]
    pub fn look(&mut self) -> Result<(), CorruptRing> {
        // Pairs with the Release in `Consumer::release`: slots that it gave back were read before.
        let found = self.memory.words()[TAKEN][0].load(Ordering::Acquire);
        if self.pushed.wrapping_sub(found) > self.capacity() {
            return Err(CorruptRing {
                found,
                own: self.pushed,
                capacity: self.capacity(),
            });
        }
        self.taken = found;
        Ok(())
    }

    /// True if so many records can be pushed now.
    ///
    /// # Errors
    /// [`CorruptRing`] where the consumer's index cannot be.
    #[inline]
    pub fn has_room(&mut self, records: u32) -> Result<bool, CorruptRing> {
        if self.known_room() < records {
            self.look()?;
        }
        Ok(self.known_room() >= records)
    }

    /// Number of records, of those wanted, that can be pushed now.
    ///
    /// # Errors
    /// [`CorruptRing`] where the consumer's index cannot be.
    #[inline]
    pub fn room(&mut self, wanted: u32) -> Result<u32, CorruptRing> {
        self.has_room(wanted.min(self.capacity()))?;
        Ok(self.known_room().min(wanted))
    }

    /// Writes a record, to be seen when it is published; false where the ring is full.
    ///
    /// # Errors
    /// [`CorruptRing`] where the consumer's index cannot be.
    #[inline]
    pub fn push(&mut self, record: M::Record) -> Result<bool, CorruptRing> {
        if !self.has_room(1)? {
            return Ok(false);
        }
        let slot = (self.pushed & self.mask) as usize;
        record.put(&self.memory.slots()[slot]);
        self.pushed = self.pushed.wrapping_add(1);
        Ok(true)
    }

    /// Writes what becomes of each of these, from the front as far as there is room, to be seen when it is
    /// published; how many.
    ///
    /// # Errors
    /// [`CorruptRing`] where the consumer's index cannot be.
    #[inline]
    pub fn push_many<T>(
        &mut self,
        from: &[T],
        record: impl Fn(&T) -> M::Record,
    ) -> Result<u32, CorruptRing> {
        let count = self.room(u32::try_from(from.len()).unwrap_or(u32::MAX))?;
        let at = (self.pushed & self.mask) as usize;
        let (round, straight) = self.memory.slots().split_at(at);
        let from = &from[..count as usize];
        let (first, second) = from.split_at(straight.len().min(from.len()));
        for (part, slots) in [(first, straight), (second, round)] {
            for (one, slot) in part.iter().zip(slots) {
                record(one).put(slot);
            }
        }
        self.pushed = self.pushed.wrapping_add(count);
        Ok(count)
    }

    /// Shows the consumer all that was pushed; whether there was anything new.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.published == self.pushed {
            return false;
        }
        // Pairs with the Acquire in `Consumer::look`: the records were written before.
        self.memory.words()[PUBLISHED][0].store(self.pushed, Ordering::Release);
        self.published = self.pushed;
        true
    }

    /// True if the consumer sleeps, or is about to, and has to be woken. It is asked after
    /// [`Producer::publish`], and is true for one of those who ask.
    #[inline]
    pub fn consumer_sleeps(&self) -> bool {
        sleep::has_to_be_woken(&self.memory.words()[CONSUMER_SLEEPS][0], self.barrier)
    }

    /// Shows the consumer all that was pushed, and wakes it where it sleeps in
    /// [`Consumer::wait`](super::Consumer::wait).
    #[cfg(not(loom))]
    #[inline]
    pub fn publish_and_wake(&mut self) {
        if self.publish() && self.consumer_sleeps() {
            sleep::wake(&self.memory.words()[CONSUMER_SLEEPS][0]);
        }
    }

    /// Says that this end is about to sleep until there is room for so many records; false where
    /// there is. [`Consumer::producer_sleeps`](super::Consumer::producer_sleeps) then says so.
    ///
    /// # Errors
    /// [`CorruptRing`] where the consumer's index cannot be.
    pub fn announce_sleep(&mut self, records: u32) -> Result<bool, CorruptRing> {
        sleep::announce(&self.memory.words()[PRODUCER_SLEEPS][0]);
        let has_room = self.has_room(records);
        if has_room != Ok(false) {
            self.end_sleep();
        }
        has_room.map(|has_room| !has_room)
    }

    /// Takes back what [`Producer::announce_sleep`] said.
    pub fn end_sleep(&self) {
        self.memory.words()[PRODUCER_SLEEPS][0].store(0, Ordering::Relaxed);
    }

    /// Sleeps until there may be room for so many records, or for so long; whether there is. Wakes
    /// early at times.
    ///
    /// # Errors
    /// [`CorruptRing`] where the consumer's index cannot be.
    #[cfg(not(loom))]
    pub fn wait_for_room(
        &mut self,
        records: u32,
        at_most: Option<Duration>,
    ) -> Result<bool, CorruptRing> {
        if self.announce_sleep(records)? {
            sleep::sleep(&self.memory.words()[PRODUCER_SLEEPS][0], at_most);
            self.end_sleep();
        }
        self.has_room(records)
    }
}
