//! Shared memory between any two ranks: a channel for each pair of ranks and each way.
//!
//! The same hand-over as in an exchange, cut in two: the sender offers, the receiver takes. Small
//! messages go through the channel's ring and the sender goes on at once; larger ones are copied
//! once, out of the sender's own place in the segment, and the sender waits until they are taken.

use std::sync::atomic::Ordering;

use weir_sys::buffer::AlignedBuf;
use weir_sys::shared_memory::SharedMemory;
use weir_units::Bytes;

use super::wait::{WaitPolicy, wake};
use super::{
    CHANNEL, HEAD, LINE, PAGE, PUBLISHED, READER_SLEEPS, SLOT_0, SLOTS, SMALL, TAKEN,
    WRITER_SLEEPS, share,
};
use crate::buffers;
use crate::error::Halt;
use crate::transport::messages::{Messages, Neighbours, RingDirection};
use weir_world::RankComm;
use weir_world::Watchdog;

/// A slot of the ring, as long as the longest small message needs it: messages of all sizes use
/// the same slots, whose numbers go on.
const STRIDE: usize = (SMALL + HEAD).next_multiple_of(LINE);

/// Layout of the shared memory: for each rank the word that marks it as left, the channels that it
/// writes, and its messages in each direction.
#[derive(Clone, Copy, Debug)]
struct Layout {
    ranks: usize,
    words: usize,
    message: usize,
}

impl Layout {
    fn of(ranks: u32, largest: usize) -> Option<Self> {
        let ranks = ranks as usize;
        let channels = ranks.checked_mul(2)?.checked_mul(CHANNEL)?;
        Some(Self {
            ranks,
            words: channels.checked_add(LINE)?.checked_next_multiple_of(PAGE)?,
            message: largest.checked_next_multiple_of(PAGE)?,
        })
    }

    fn len(&self) -> Option<usize> {
        let rank = self.message.checked_mul(2)?.checked_add(self.words)?;
        rank.checked_mul(self.ranks)
    }

    /// Also where its first word lies.
    fn rank(&self, rank: u32) -> usize {
        rank as usize * (self.words + 2 * self.message)
    }

    fn channel(&self, from: u32, to: u32, direction: RingDirection) -> usize {
        self.rank(from) + LINE + (to as usize * 2 + direction.index()) * CHANNEL
    }

    fn message(&self, from: u32, direction: RingDirection) -> usize {
        self.rank(from) + self.words + direction.index() * self.message
    }
}

/// One end of a channel.
#[derive(Clone, Copy, Debug)]
struct End {
    /// The other one's rank.
    peer: u32,
    channel: usize,
    /// Offset of messages that are copied once.
    message: usize,
    /// Messages so far.
    count: u32,
    /// Of these, the ones that a sender has seen taken.
    taken: u32,
}

/// One rank's ends of all channels.
pub(super) struct ShmPointToPoint {
    segment: SharedMemory,
    layout: Layout,
    rank: u32,
    /// By peer and direction.
    out: Vec<[End; 2]>,
    into: Vec<[End; 2]>,
    incoming: Vec<AlignedBuf>,
    len: usize,
    wait_policy: WaitPolicy,
}

impl ShmPointToPoint {
    /// Says that a message is there; where it fits into the ring, after putting it there.
    #[inline]
    fn offer(
        &mut self,
        direction: RingDirection,
        to: u32,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        let end = &mut self.out[to as usize][direction.index()];
        end.count = end.count.wrapping_add(1);
        let (number, channel) = (end.count, end.channel);
        let word = |at: usize| self.segment.word(channel + at);
        if self.len > SMALL {
            // Pairs with the Acquire of the reader's wait.
            word(PUBLISHED).store(number, Ordering::Release);
            wake(word(PUBLISHED), word(READER_SLEEPS));
            return Ok(());
        }
        if number.wrapping_sub(end.taken) > SLOTS {
            let room = |taken: u32| number.wrapping_sub(taken) <= SLOTS;
            let left = self.segment.word(self.layout.rank(to));
            self.wait_policy
                .wait(word(TAKEN), room, word(WRITER_SLEEPS), left, to, watchdog)?;
            end.taken = word(TAKEN).load(Ordering::Acquire);
        }
        let slot = SLOT_0 + (number % SLOTS) as usize * STRIDE;
        self.segment
            .copy_within(end.message, channel + slot + HEAD, self.len);
        // Pairs with the Acquire of the reader's wait.
        word(slot).store(number, Ordering::Release);
        wake(word(slot), word(READER_SLEEPS));
        Ok(())
    }

    /// Waits for the next message and copies it.
    #[inline]
    fn accept(
        &mut self,
        direction: RingDirection,
        from: u32,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        let end = &mut self.into[from as usize][direction.index()];
        end.count = end.count.wrapping_add(1);
        let (number, channel) = (end.count, end.channel);
        let word = |at: usize| self.segment.word(channel + at);
        let slot = SLOT_0 + (number % SLOTS) as usize * STRIDE;
        let (mark, message) = if self.len > SMALL {
            (word(PUBLISHED), end.message)
        } else {
            (word(slot), channel + slot + HEAD)
        };
        let here = |n: u32| n == number;
        let left = self.segment.word(self.layout.rank(from));
        self.wait_policy
            .wait(mark, here, word(READER_SLEEPS), left, end.peer, watchdog)?;
        let into = self.incoming[direction.index()].as_mut_slice();
        self.segment.copy_out(message, into);
        // Pairs with the Acquire of the writer's waits.
        word(TAKEN).store(number, Ordering::Release);
        wake(word(TAKEN), word(WRITER_SLEEPS));
        Ok(())
    }

    /// Waits until what was offered may be changed.
    #[inline]
    fn settle(
        &mut self,
        direction: RingDirection,
        to: u32,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        if self.len <= SMALL {
            return Ok(());
        }
        let end = &mut self.out[to as usize][direction.index()];
        let (number, channel) = (end.count, end.channel);
        let word = |at: usize| self.segment.word(channel + at);
        let left = self.segment.word(self.layout.rank(to));
        let here = |n: u32| n == number;
        self.wait_policy
            .wait(word(TAKEN), here, word(WRITER_SLEEPS), left, to, watchdog)?;
        end.taken = number;
        Ok(())
    }
}

impl Messages for ShmPointToPoint {
    fn open(comm: &RankComm<'_>, watchdog: &Watchdog, largest: usize) -> Result<Self, Halt> {
        let too_large = || Halt::Garbled("messages larger than the address space".to_owned());
        let (rank, ranks) = (comm.rank(), comm.size());
        let layout = Layout::of(ranks, largest).ok_or_else(too_large)?;
        let (segment, _) = share(comm, watchdog, layout.len().ok_or_else(too_large)?)?;
        let end = |peer, channel, message| End {
            peer,
            channel,
            message,
            count: 0,
            taken: 0,
        };
        let out = |to| {
            RingDirection::BOTH
                .map(|w| end(to, layout.channel(rank, to, w), layout.message(rank, w)))
        };
        let into = |from| {
            RingDirection::BOTH
                .map(|w| end(from, layout.channel(from, rank, w), layout.message(from, w)))
        };
        Ok(Self {
            out: (0..ranks).map(out).collect(),
            into: (0..ranks).map(into).collect(),
            segment,
            layout,
            rank,
            incoming: Vec::new(),
            len: 0,
            wait_policy: WaitPolicy::new(ranks),
        })
    }

    fn prepare(&mut self, bytes: usize) -> Result<(), Halt> {
        self.len = bytes;
        self.incoming = buffers::some(2, Bytes(bytes as u64))?;
        Ok(())
    }

    fn outgoing(&mut self, direction: RingDirection) -> &mut [u8] {
        let message = self.layout.message(self.rank, direction);
        self.segment.slice_mut(message, self.len)
    }

    fn incoming(&mut self, direction: RingDirection) -> &mut [u8] {
        self.incoming[direction.index()].as_mut_slice()
    }

    #[inline]
    fn send(&mut self, direction: RingDirection, to: u32, watchdog: &Watchdog) -> Result<(), Halt> {
        self.offer(direction, to, watchdog)?;
        self.settle(direction, to, watchdog)
    }

    #[inline]
    fn receive(
        &mut self,
        direction: RingDirection,
        from: u32,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        self.accept(direction, from, watchdog)
    }

    #[inline]
    fn sendrecv(
        &mut self,
        direction: RingDirection,
        ring: Neighbours,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        let (to, from) = ring.along(direction);
        self.offer(direction, to, watchdog)?;
        self.accept(direction, from, watchdog)?;
        self.settle(direction, to, watchdog)
    }

    #[inline]
    fn both_ways(&mut self, ring: Neighbours, watchdog: &Watchdog) -> Result<(), Halt> {
        for direction in RingDirection::BOTH {
            self.offer(direction, ring.along(direction).0, watchdog)?;
        }
        for direction in RingDirection::BOTH {
            self.accept(direction, ring.along(direction).1, watchdog)?;
        }
        for direction in RingDirection::BOTH {
            self.settle(direction, ring.along(direction).0, watchdog)?;
        }
        Ok(())
    }
}

impl Drop for ShmPointToPoint {
    /// Whoever waits for this rank learns that it has left.
    fn drop(&mut self) {
        let left = self.segment.word(self.layout.rank(self.rank));
        left.store(1, Ordering::Release);
    }
}
