//! One stream: what waits to go out, and how much of a frame has come in.
//!
//! In: bytes from and to a descriptor. Out: a connection's state. Not here: parsing (`read`).

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::io::Errno;

use super::memory::RegionTable;
use super::read::STEP;
use super::send_queue::SendQueue;
use super::{ROOM, SHARED, gone};
use crate::RpcError;
use crate::account::{Charge, FREE, MemoryAccount};
use crate::links::MemoryRange;
use crate::wire::{FrameHeader, PushHead};

/// A long body on its way in.
#[derive(Debug)]
pub(super) struct LongBody {
    pub(super) header: FrameHeader,
    pub(super) head: [u8; PushHead::LENGTH],
    pub(super) head_length: usize,
    /// Where it goes; `None`: into `gathered`, with its head.
    pub(super) into: Option<MemoryRange>,
    pub(super) gathered: Vec<u8>,
    /// Bytes that are there, and that there will be; without the head where it goes to memory.
    pub(super) got: usize,
    pub(super) length: usize,
}

/// A connection.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, looked at apart"
)]
pub(super) struct PeerStream {
    pub(super) fd: OwnedFd,
    /// Headers carry sums.
    pub(super) summed: bool,
    pub(super) max_frame: u32,
    /// Share of the account that peers of a server take from; it is not read while too much waits to go out,
    /// or the account has nothing left. A client trusts its server.
    charge: Option<Charge>,
    /// Whole frames were read and not handled.
    pub(super) is_stopped: bool,
    /// It is not read, as there is no memory for what comes.
    pub(super) lacks_memory: bool,
    pub(super) dirty: bool,
    pub(super) hot: bool,
    pub(super) broken: bool,
    /// A frame found no room since something last went out.
    pub(super) lacked_room: bool,
    /// When something last came.
    pub(super) last_round: u32,
    /// Counts whole frames, so that half ones are noticed.
    pub(super) frames: u32,
    half: Option<(Instant, u32)>,
    interest: epoll::EventFlags,
    /// Epoll knows of it.
    watched: bool,
    pub(super) queue: SendQueue,
    /// The beginning of a frame.
    pub(super) partial: Vec<u8>,
    pub(super) long: Option<Box<LongBody>>,
    /// Its last frames were long. It is read in small steps then, so that little of the next long
    /// body lands in the shared buffer and has to be copied.
    pub(super) sends_long: bool,
}

impl PeerStream {
    pub(super) fn new(
        fd: OwnedFd,
        summed: bool,
        max_frame: u32,
        account: Option<&MemoryAccount>,
    ) -> Self {
        Self {
            fd,
            summed,
            max_frame,
            charge: account.map(Charge::of_rest),
            is_stopped: false,
            lacks_memory: false,
            dirty: false,
            hot: false,
            broken: false,
            lacked_room: false,
            last_round: 0,
            frames: 0,
            half: None,
            interest: epoll::EventFlags::IN,
            watched: true,
            queue: SendQueue::default(),
            partial: Vec::new(),
            long: None,
            sends_long: false,
        }
    }

    /// Made ready to be polled.
    pub(super) fn watched(self, epoll: &OwnedFd, index: u32) -> Result<Self, RpcError> {
        rustix::io::ioctl_fionbio(&self.fd, true).map_err(gone)?;
        let data = epoll::EventData::new_u64(u64::from(index));
        epoll::add(epoll, &self.fd, data, epoll::EventFlags::IN).map_err(gone)?;
        Ok(self)
    }

    /// Writes until the stream takes no more. Whether somebody may go on now: a frame for which there was no
    /// room, or who waits for memory that was on its way.
    #[inline]
    pub(super) fn write(&mut self, memory: &mut RegionTable) -> Result<bool, Errno> {
        let before = self.queue.pending();
        let is_awaited = self.lacked_room || self.queue.refers();
        while !self.queue.is_empty() {
            if !self.queue.write(&self.fd, memory)? {
                break;
            }
        }
        let goes_on = is_awaited && self.queue.pending() < before;
        self.lacked_room &= !goes_on;
        if self.queue.is_empty() {
            self.discharge();
        }
        Ok(goes_on)
    }

    /// Too much waits for the peer to read it.
    #[inline]
    pub(super) fn is_held_back(&self) -> bool {
        self.charge.is_some() && self.queue.pending() >= ROOM
    }

    /// Bytes that are read of it now: as many as fit, a few where the account has memory for no more, or none. What
    /// is not handled at once is kept, and charged then.
    #[inline]
    pub(super) fn room(&mut self) -> usize {
        if self.stops() {
            return 0;
        }
        let most = SHARED.max(self.long.as_ref().map_or(0, |long| long.got));
        let left = self.charge.as_ref().map_or(u64::MAX, Charge::left);
        let left = left.max(FREE.saturating_sub(self.own()));
        let all = [most, STEP].into_iter();
        all.filter(|bytes| *bytes as u64 <= left).max().unwrap_or(0)
    }

    /// No further frame of it is handled now: too much waits for it, or the account has no memory for what it
    /// holds.
    #[inline]
    pub(super) fn stops(&mut self) -> bool {
        self.is_held_back() || !self.is_charged()
    }

    #[inline]
    fn is_charged(&mut self) -> bool {
        let held = self.held();
        self.charge
            .as_mut()
            .is_none_or(|charge| charge.is_now(held))
            || self.is_charged_bare(held)
    }

    /// The same without memory that it holds for later.
    #[cold]
    fn is_charged_bare(&mut self, before: u64) -> bool {
        self.queue.shrink();
        self.partial.shrink_to_fit();
        let held = self.held();
        held < before
            && self
                .charge
                .as_mut()
                .is_none_or(|charge| charge.is_now(held))
    }

    /// Memory that it holds, beyond what each connection may.
    #[inline]
    fn held(&self) -> u64 {
        self.own().saturating_sub(FREE)
    }

    #[inline]
    fn own(&self) -> u64 {
        let gathered = self
            .long
            .as_ref()
            .map_or(0, |long| long.gathered.capacity());
        (self.partial.capacity() + gathered) as u64 + self.queue.held()
    }

    /// Gives back what it holds no more.
    #[inline]
    pub(super) fn discharge(&mut self) {
        let held = self.held();
        if let Some(charge) = &mut self.charge {
            charge.is_at_most(held);
        }
    }

    /// Events that epoll is to report.
    pub(super) fn wanted(&self) -> epoll::EventFlags {
        let mut wanted = epoll::EventFlags::empty();
        if !self.is_held_back() && !self.is_stopped {
            wanted |= epoll::EventFlags::IN;
        }
        if !self.queue.is_empty() {
            wanted |= epoll::EventFlags::OUT;
        }
        if self.lacks_memory {
            wanted |= epoll::EventFlags::RDHUP;
        }
        wanted
    }

    pub(super) fn set_interest(&mut self, epoll: &OwnedFd, index: u32, wanted: epoll::EventFlags) {
        if !self.watched {
            self.interest = wanted;
        } else if wanted != self.interest {
            let data = epoll::EventData::new_u64(u64::from(index));
            if epoll::modify(epoll, &self.fd, data, wanted).is_ok() {
                self.interest = wanted;
            }
        }
    }

    /// Epoll hears of it no more.
    pub(super) fn unwatch(&mut self, epoll: &OwnedFd) {
        if self.watched && epoll::delete(epoll, &self.fd).is_ok() {
            self.watched = false;
        }
    }

    /// Epoll hears of it again; whether it does.
    pub(super) fn watch(&mut self, epoll: &OwnedFd, index: u32) -> bool {
        if !self.watched {
            let data = epoll::EventData::new_u64(u64::from(index));
            self.watched = epoll::add(epoll, &self.fd, data, self.interest).is_ok();
        }
        self.watched
    }

    /// Half a frame has been there for longer than this.
    pub(super) fn is_stale(&mut self, now: Instant, limit: Duration) -> bool {
        if self.partial.is_empty() && self.long.is_none() {
            self.half = None;
            return false;
        }
        match self.half {
            Some((since, frames)) if frames == self.frames => now.duration_since(since) > limit,
            _ => {
                self.half = Some((now, self.frames));
                false
            }
        }
    }

    /// Nothing has come for long.
    pub(super) fn rest(&mut self) {
        self.hot = false;
        self.queue.shrink();
        self.partial.shrink_to_fit();
    }

    /// Lets go of memory that frames refer to.
    pub(super) fn forget(&mut self, memory: &mut RegionTable) {
        self.queue.clear(memory);
        if let Some(into) = self.long.take().and_then(|long| long.into) {
            memory.unpin(into.region);
        }
    }
}
