//! The end that reads.

#[cfg(not(loom))]
use std::time::Duration;

use super::{
    CONSUMER_SLEEPS, CorruptRing, Ordering, PRODUCER_SLEEPS, PUBLISHED, Record, RingMemory, TAKEN,
    mask, sleep,
};

/// The end of a ring that reads records. There is to be one.
#[derive(Debug)]
pub struct Consumer<M> {
    pub(super) memory: M,
    mask: u32,
    /// A barrier stands before a look for sleepers.
    barrier: bool,
    /// Records popped so far; indexes go round after 2^32.
    pub(super) popped: u32,
    /// Of these, those whose slots were given back.
    pub(super) released: u32,
    /// The producer's index of published records, as last seen.
    pub(super) published: u32,
}

impl<M: RingMemory> Consumer<M> {
    /// The consumer of memory whose words are all 0.
    pub fn new(memory: M) -> Self {
        Self {
            mask: mask(&memory),
            barrier: sleep::needs_barrier(),
            memory,
            popped: 0,
            released: 0,
            published: 0,
        }
    }

    /// Number of records that the ring holds.
    #[inline]
    pub fn capacity(&self) -> u32 {
        self.mask + 1
    }

    /// Records that can be popped, as far as is known without a look at the other end.
    #[inline]
    pub fn known(&self) -> u32 {
        self.published.wrapping_sub(self.popped)
    }

    /// Looks how far the producer is; how many records can be popped.
    ///
    /// # Errors
    /// [`CorruptRing`] where it says what cannot be.
    #[inline]
    pub fn look(&mut self) -> Result<u32, CorruptRing> {
        // Pairs with the Release in `Producer::publish`: the records were written before.
        let found = self.memory.words()[PUBLISHED][0].load(Ordering::Acquire);
        let published = found.wrapping_sub(self.popped);
        // What is not given back yet cannot be filled anew.
        if found.wrapping_sub(self.released) > self.capacity() || published < self.known() {
            return Err(CorruptRing {
                found,
                own: self.popped,
                capacity: self.capacity(),
            });
        }
        self.published = found;
        Ok(published)
    }

    /// Number of records that can be popped; the other end is looked at only where none is known.
    ///
    /// # Errors
    /// [`CorruptRing`] where the producer's index cannot be.
    #[inline]
    pub fn available(&mut self) -> Result<u32, CorruptRing> {
        match self.known() {
            0 => self.look(),
            known => Ok(known),
        }
    }

    /// Takes the oldest record; none where the ring is empty. Its slot is used again only after
    /// [`Consumer::release`].
    ///
    /// # Errors
    /// [`CorruptRing`] where the producer's index cannot be.
    #[inline]
    pub fn pop(&mut self) -> Result<Option<M::Record>, CorruptRing> {
        if self.available()? == 0 {
            return Ok(None);
        }
        let slot = (self.popped & self.mask) as usize;
        let record = M::Record::get(&self.memory.slots()[slot]);
        self.popped = self.popped.wrapping_add(1);
        Ok(Some(record))
    }

    /// Takes the oldest records, at most so many, and hands each on; how many. Their slots are used again
    /// only after [`Consumer::release`].
    ///
    /// # Errors
    /// [`CorruptRing`] where the producer's index cannot be.
    #[inline]
    pub fn pop_many(
        &mut self,
        most: u32,
        mut each: impl FnMut(M::Record),
    ) -> Result<u32, CorruptRing> {
        self.pop_parts(most, |slots| {
            for slot in slots {
                each(M::Record::get(slot));
            }
        })
    }

    /// Takes the oldest records, at most so many, and appends what becomes of each; how many. Their slots are
    /// used again only after [`Consumer::release`].
    ///
    /// # Errors
    /// [`CorruptRing`] where the producer's index cannot be.
    #[inline]
    pub fn pop_into<T>(
        &mut self,
        most: u32,
        into: &mut Vec<T>,
        made: impl Fn(M::Record) -> T,
    ) -> Result<u32, CorruptRing> {
        self.pop_parts(most, |slots| {
            into.extend(slots.iter().map(|slot| made(M::Record::get(slot))));
        })
    }

    /// Takes the oldest records, at most so many: their slots in two parts, of which one may be empty.
    #[inline]
    fn pop_parts(
        &mut self,
        most: u32,
        mut part: impl FnMut(&[<M::Record as Record>::Slot]),
    ) -> Result<u32, CorruptRing> {
        if self.known() < most {
            self.look()?;
        }
        let count = self.known().min(most);
        let at = (self.popped & self.mask) as usize;
        let (round, straight) = self.memory.slots().split_at(at);
        let first = straight.len().min(count as usize);
        part(&straight[..first]);
        part(&round[..count as usize - first]);
        self.popped = self.popped.wrapping_add(count);
        Ok(count)
    }

    /// Gives the slots of all that was popped back to the producer; whether there were any.
    #[inline]
    pub fn release(&mut self) -> bool {
        if self.released == self.popped {
            return false;
        }
        // Pairs with the Acquire in `Producer::look`: the records were read before.
        self.memory.words()[TAKEN][0].store(self.popped, Ordering::Release);
        self.released = self.popped;
        true
    }

    /// True if the producer sleeps, or is about to, and has to be woken. It is asked after
    /// [`Consumer::release`], and is true for one of those who ask.
    #[inline]
    pub fn producer_sleeps(&self) -> bool {
        sleep::has_to_be_woken(&self.memory.words()[PRODUCER_SLEEPS][0], self.barrier)
    }

    /// Gives slots back, and wakes the producer where it sleeps in
    /// [`Producer::wait_for_room`](super::Producer::wait_for_room).
    #[cfg(not(loom))]
    #[inline]
    pub fn release_and_wake(&mut self) {
        if self.release() && self.producer_sleeps() {
            sleep::wake(&self.memory.words()[PRODUCER_SLEEPS][0]);
        }
    }

    /// Says that this end is about to sleep until there is a record; false where there is one.
    /// [`Producer::consumer_sleeps`](super::Producer::consumer_sleeps) then says so. Whoever sleeps
    /// elsewhere (on several rings, say) is woken by what it arranged with the producer.
    ///
    /// # Errors
    /// [`CorruptRing`] where the producer's index cannot be.
    pub fn announce_sleep(&mut self) -> Result<bool, CorruptRing> {
        sleep::announce(&self.memory.words()[CONSUMER_SLEEPS][0]);
        let available = self.look();
        if available != Ok(0) {
            self.end_sleep();
        }
        available.map(|records| records == 0)
    }

    /// Takes back what [`Consumer::announce_sleep`] said.
    pub fn end_sleep(&self) {
        self.memory.words()[CONSUMER_SLEEPS][0].store(0, Ordering::Relaxed);
    }

    /// Sleeps until there may be a record, or for so long; whether there is one. Wakes early at
    /// times.
    ///
    /// # Errors
    /// [`CorruptRing`] where the producer's index cannot be.
    #[cfg(not(loom))]
    pub fn wait(&mut self, at_most: Option<Duration>) -> Result<bool, CorruptRing> {
        if self.announce_sleep()? {
            sleep::sleep(&self.memory.words()[CONSUMER_SLEEPS][0], at_most);
            self.end_sleep();
        }
        Ok(self.available()? > 0)
    }
}
