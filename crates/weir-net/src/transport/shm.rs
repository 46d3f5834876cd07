//! Memory that all ranks of one machine share, threads and processes alike.
//!
//! Rank 0 makes the segment; the others open it by the path that goes round. Every channel from
//! one rank to another has a ring of slots for small messages: the message and the number that
//! says it is there are written side by side, so that up to 56 bytes change hands with one cache
//! line. Larger ones are copied once: what a rank sends lies in the segment, the receiver copies
//! it from there and says so. No locks; each word has one writer.
//!
//! A wait spins for about 2 µs (less where there are more ranks than processors), yields for a while, then sleeps on the word, never longer than a
//! nap: whoever writes the word wakes a sleeper it sees, and one it just missed wakes by itself.

mod point_to_point;
mod wait;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use weir_schema::{MessageSize, Method};
use weir_sys::buffer::AlignedBuf;
use weir_sys::shared_memory::SharedMemory;
use weir_units::Bytes;

use self::wait::{WaitPolicy, wake};
use super::{PLAIN, Setup, Transport, TransportInfo};
use crate::buffers;
use crate::error::Halt;
use crate::exchange::drive;
use crate::latency_bandwidth::measure_rank;
use crate::pairing::Partners;
use weir_world::RankComm;
use weir_world::Watchdog;

pub(super) const INFO: TransportInfo = TransportInfo {
    name: "shm",
    peer: Some("CPU"),
    summary: "rings in shared memory",
    drive: drive::<Shm>,
    measure_rank: Some(measure_rank::<point_to_point::ShmPointToPoint>),
    ..PLAIN
};

/// Bytes that two cores hand over at once.
const LINE: usize = 64;
const PAGE: usize = 4096;

/// Messages up to this go through the ring, larger ones are copied once: from about here on the
/// second hand-over costs less than fetching lines that were just written.
const SMALL: usize = 512;
/// Slots of a ring: a power of two.
const SLOTS: u32 = 16;
/// A slot: its number, then the message.
const HEAD: usize = 8;
const RING: usize = SLOTS as usize * (SMALL + LINE);

/// A channel's words, each on a line of its own, then its ring.
const PUBLISHED: usize = 0;
const TAKEN: usize = LINE;
const READER_SLEEPS: usize = 2 * LINE;
const WRITER_SLEEPS: usize = 3 * LINE;
const SLOT_0: usize = 4 * LINE;
const CHANNEL: usize = SLOT_0 + RING;

/// A rank's words: one for every round of a barrier, one that says that it has left.
const ROUNDS: usize = 32;
const LEFT: usize = ROUNDS * LINE;
const RANK: usize = (ROUNDS + 1) * LINE;

/// Layout of the shared memory. All ranks come to the same.
#[derive(Clone, Copy, Debug)]
struct Layout {
    ranks: usize,
    replications: usize,
    /// Of one rank's channels, words and rings.
    words: usize,
    /// Of one message, in whole pages.
    message: usize,
}

impl Layout {
    fn of(setup: &Setup<'_>) -> Result<Self, Halt> {
        let too_large = || Halt::Garbled("messages larger than the address space".to_owned());
        let largest = usize::try_from(setup.largest()).map_err(|_| too_large())?;
        let replications = setup.partners.len();
        let words = (RANK + replications * CHANNEL).next_multiple_of(PAGE);
        let message = largest.checked_next_multiple_of(PAGE);
        let layout = Self {
            ranks: setup.comm.size() as usize,
            replications,
            words,
            message: message.ok_or_else(too_large)?,
        };
        layout.len().ok_or_else(too_large)?;
        Ok(layout)
    }

    fn len(&self) -> Option<usize> {
        let messages = self.message.checked_mul(self.replications)?;
        let rank = messages.checked_add(self.words)?;
        rank.checked_mul(self.ranks)?.checked_add(PAGE)
    }

    fn rank(&self, rank: u32) -> usize {
        PAGE + rank as usize * (self.words + self.message * self.replications)
    }

    /// Of the channel that a rank writes.
    fn channel(&self, rank: u32, replication: usize) -> usize {
        self.rank(rank) + RANK + replication * CHANNEL
    }

    fn message(&self, rank: u32, replication: usize) -> usize {
        self.rank(rank) + self.words + replication * self.message
    }
}

/// One rank's two channels of a replication, by offset in the segment.
#[derive(Clone, Copy, Debug)]
struct Lane {
    partners: Partners,
    out: usize,
    into: usize,
    /// Place of the messages sent and received, for a single copy.
    own_message: usize,
    peer_message: usize,
    /// Messages so far, both ways.
    count: u32,
    /// Of what was sent, what the receiver was seen to have taken.
    taken: u32,
}

/// One rank's end.
pub(super) struct Shm {
    segment: SharedMemory,
    layout: Layout,
    rank: u32,
    lanes: Vec<Lane>,
    incoming: Vec<AlignedBuf>,
    /// Of a message.
    len: usize,
    /// Of a slot.
    stride: usize,
    /// Barriers so far.
    meetings: u32,
    wait_policy: WaitPolicy,
}

impl Shm {
    /// The ring: write the slot, take the slot of the other way.
    #[inline]
    fn hand_over(&mut self, replication: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        let lane = &mut self.lanes[replication];
        lane.count = lane.count.wrapping_add(1);
        let number = lane.count;
        let slot = SLOT_0 + (number % SLOTS) as usize * self.stride;
        if number.wrapping_sub(lane.taken) > SLOTS {
            let taken = self.segment.word(lane.out + TAKEN);
            let asleep = self.segment.word(lane.out + WRITER_SLEEPS);
            let left = self.segment.word(self.layout.rank(lane.partners.to) + LEFT);
            let room = |t: u32| number.wrapping_sub(t) <= SLOTS;
            self.wait_policy
                .wait(taken, room, asleep, left, lane.partners.to, watchdog)?;
            lane.taken = taken.load(Ordering::Acquire);
        }
        self.segment
            .copy_within(lane.own_message, lane.out + slot + HEAD, self.len);
        // Pairs with the Acquire of the reader's wait.
        let mark = self.segment.word(lane.out + slot);
        mark.store(number, Ordering::Release);
        wake(mark, self.segment.word(lane.out + READER_SLEEPS));

        let mark = self.segment.word(lane.into + slot);
        let asleep = self.segment.word(lane.into + READER_SLEEPS);
        let left = self
            .segment
            .word(self.layout.rank(lane.partners.from) + LEFT);
        let here = |n: u32| n == number;
        self.wait_policy
            .wait(mark, here, asleep, left, lane.partners.from, watchdog)?;
        let message = self.incoming[replication].as_mut_slice();
        self.segment.copy_out(lane.into + slot + HEAD, message);
        // Pairs with the Acquire of the writer's look for room.
        let taken = self.segment.word(lane.into + TAKEN);
        taken.store(number, Ordering::Release);
        wake(taken, self.segment.word(lane.into + WRITER_SLEEPS));
        Ok(())
    }

    /// The single copy: say that the message is there, copy the peer's, wait until mine is taken.
    #[inline]
    fn copy_over(&mut self, replication: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        let lane = &mut self.lanes[replication];
        lane.count = lane.count.wrapping_add(1);
        let number = lane.count;
        let here = |n: u32| n == number;
        // Pairs with the Acquire of the reader's wait.
        let published = self.segment.word(lane.out + PUBLISHED);
        published.store(number, Ordering::Release);
        wake(published, self.segment.word(lane.out + READER_SLEEPS));

        let published = self.segment.word(lane.into + PUBLISHED);
        let asleep = self.segment.word(lane.into + READER_SLEEPS);
        let left = self
            .segment
            .word(self.layout.rank(lane.partners.from) + LEFT);
        self.wait_policy
            .wait(published, here, asleep, left, lane.partners.from, watchdog)?;
        let message = self.incoming[replication].as_mut_slice();
        self.segment.copy_out(lane.peer_message, message);
        // Pairs with the Acquire of the writer's wait.
        let taken = self.segment.word(lane.into + TAKEN);
        taken.store(number, Ordering::Release);
        wake(taken, self.segment.word(lane.into + WRITER_SLEEPS));

        let taken = self.segment.word(lane.out + TAKEN);
        let asleep = self.segment.word(lane.out + WRITER_SLEEPS);
        let left = self.segment.word(self.layout.rank(lane.partners.to) + LEFT);
        self.wait_policy
            .wait(taken, here, asleep, left, lane.partners.to, watchdog)
    }
}

/// Rank 0 makes the segment and says where it is; the others open it.
fn share(
    comm: &RankComm<'_>,
    watchdog: &Watchdog,
    len: usize,
) -> Result<(SharedMemory, Option<File>), Halt> {
    if comm.rank() != 0 {
        let path = comm.receive(0, watchdog)?;
        let path = String::from_utf8_lossy(&path).into_owned();
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|source| Halt::Io {
            what: "open the shared memory of rank 0 (the ranks have to be on one machine)".into(),
            source,
        })?;
        let segment = mapped(&file, len)?;
        comm.barrier(watchdog)?;
        return Ok((segment, None));
    }
    let file = memfd_create("weir-exchange", MemfdFlags::CLOEXEC)
        .map_err(Halt::io("make shared memory"))?;
    ftruncate(&file, len as u64).map_err(Halt::io("make shared memory this large"))?;
    let file = File::from(file);
    let segment = mapped(&file, len)?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    for rank in 1..comm.size() {
        comm.send(rank, path.as_bytes(), watchdog)?;
    }
    comm.barrier(watchdog)?;
    // The mappings keep it alive; nobody opens it any more.
    Ok((segment, None))
}

fn mapped(file: &File, len: usize) -> Result<SharedMemory, Halt> {
    SharedMemory::open_trusted(file, len).map_err(|error| Halt::Garbled(error.to_string()))
}

impl Transport for Shm {
    fn open(setup: &Setup<'_>) -> Result<Self, Halt> {
        let layout = Layout::of(setup)?;
        let (segment, _) = share(setup.comm, setup.watchdog, layout.len().unwrap_or(0))?;
        let rank = setup.comm.rank();
        let lane = |(replication, partners): (usize, &Partners)| Lane {
            partners: *partners,
            out: layout.channel(rank, replication),
            into: layout.channel(partners.from, replication),
            own_message: layout.message(rank, replication),
            peer_message: layout.message(partners.from, replication),
            count: 0,
            taken: 0,
        };
        Ok(Self {
            lanes: setup.partners.iter().enumerate().map(lane).collect(),
            segment,
            layout,
            rank,
            incoming: Vec::new(),
            len: 0,
            stride: LINE,
            meetings: 0,
            wait_policy: WaitPolicy::new(setup.comm.size()),
        })
    }

    fn prepare(&mut self, size: MessageSize, _: Method, setup: &Setup<'_>) -> Result<(), Halt> {
        self.len = usize::try_from(size.bytes().0).unwrap_or(usize::MAX);
        self.stride = (self.len + HEAD).next_multiple_of(LINE);
        self.incoming = buffers::some(self.lanes.len(), Bytes(self.len as u64))?;
        for lane in &mut self.lanes {
            // What lies in the slots of another size must not look like a number to come.
            self.segment.slice_mut(lane.out + SLOT_0, RING).fill(0);
            for word in [PUBLISHED, TAKEN, READER_SLEEPS, WRITER_SLEEPS] {
                self.segment
                    .word(lane.out + word)
                    .store(0, Ordering::Release);
            }
            (lane.count, lane.taken) = (0, 0);
        }
        // Nobody sends before all slots are empty.
        self.barrier(setup)
    }

    fn outgoing(&mut self, replication: usize) -> &mut [u8] {
        let message = self.lanes[replication].own_message;
        self.segment.slice_mut(message, self.len)
    }

    fn incoming(&mut self, replication: usize) -> &mut [u8] {
        self.incoming[replication].as_mut_slice()
    }

    /// In round k every rank tells the one 2^k further that it is there.
    fn barrier(&mut self, setup: &Setup<'_>) -> Result<(), Halt> {
        self.meetings = self.meetings.wrapping_add(1);
        let number = self.meetings;
        let (ranks, mut step) = (self.layout.ranks as u64, 1);
        for round in 0..ROUNDS {
            if step >= ranks {
                break;
            }
            let at = |distance: u64| {
                let rank = (u64::from(self.rank) + distance) % ranks;
                u32::try_from(rank).unwrap_or(0)
            };
            let (next, previous) = (at(step), at(ranks - step));
            // Pairs with the Acquire of the other's wait.
            let theirs = self.segment.word(self.layout.rank(next) + round * LINE);
            theirs.store(number, Ordering::Release);
            wake(
                theirs,
                self.segment.word(self.layout.rank(next) + round * LINE + 4),
            );
            let mine = self
                .segment
                .word(self.layout.rank(self.rank) + round * LINE);
            let asleep = self
                .segment
                .word(self.layout.rank(self.rank) + round * LINE + 4);
            let left = self.segment.word(self.layout.rank(previous) + LEFT);
            // The other may be in the next barrier already.
            let here = |n: u32| n.wrapping_sub(number) < u32::MAX / 2;
            self.wait_policy
                .wait(mine, here, asleep, left, previous, setup.watchdog)?;
            step *= 2;
        }
        setup.watchdog.progress();
        Ok(())
    }

    #[inline]
    fn exchange(&mut self, replication: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        if self.len <= SMALL {
            self.hand_over(replication, watchdog)
        } else {
            self.copy_over(replication, watchdog)
        }
    }
}

impl Drop for Shm {
    /// Whoever waits for this rank learns that it has left. After the last barrier nobody does.
    fn drop(&mut self) {
        let left = self.segment.word(self.layout.rank(self.rank) + LEFT);
        left.store(1, Ordering::Release);
    }
}
