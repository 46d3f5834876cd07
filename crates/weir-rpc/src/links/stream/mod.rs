//! Frames over streams: the control plane of every link, and the data plane of tcp.
//!
//! In: connected streams, tcp or unix. Out: frames to a handler, one read per connection and round,
//! and one gathering write. While few connections talk they are read without asking epoll first.
//! Long bodies go straight into the memory that the handler names. Not here: handshakes, and what
//! frames mean.

mod collected;
mod memory;
mod peer_stream;
mod read;
mod send_queue;
mod waiting;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;
use weir_sys::tcp_info::{TcpCounts, tcp_counts};

pub use collected::{Collected, CollectedEvent};
pub(crate) use memory::RegionTable;

use self::peer_stream::PeerStream;
use crate::links::peer_table::PeerTable;
use crate::links::{
    Link, LinkHandler, LinkSide, LinkWaker, MemoryRange, NewPeer, PeerId, RegionId, Sent,
    WireCounts,
};
use crate::wire::{BulkAccess, BulkDescriptor, FrameHeader, FrameKind, features};
use crate::{DerCode, MemoryAccount, RpcError};

/// The buffer that all connections are read into first.
const SHARED: usize = 64 << 10;
/// Payloads from here on are written from where they lie.
const BY_REFERENCE: u64 = 8 << 10;
/// So much may wait for a peer to read, except what ends calls and connections.
const ROOM: u64 = 4 << 20;
/// Bulk data wait where they lie once so much waits here.
const BULK_ROOM: u64 = 1 << 20;
/// Talking connections that are read without asking epoll.
const DIRECT: usize = 4;
/// Rounds between two looks at all connections, while some talk.
const FULL_LOOK: u32 = 64;
/// Rounds without a frame after which a connection counts as idle.
const IDLE_ROUNDS: u32 = 4096;
/// Epoll's data of the waker.
const WAKER: u64 = u64::MAX;

/// Framed streams, all of one thread.
pub struct StreamLink {
    epoll: OwnedFd,
    waker: Arc<OwnedFd>,
    streams: PeerTable<PeerStream>,
    memory: RegionTable,
    shared: Vec<u8>,
    /// Places with something to write.
    dirty: Vec<u32>,
    /// Places that talk.
    hot: Vec<u32>,
    lost: Vec<(PeerId, RpcError)>,
    /// Buffers of long bodies, kept for the next ones.
    spare: Vec<Vec<u8>>,
    /// Connections with bytes that were read and not handled: with their handshake, or as too much waited for
    /// them.
    early: Vec<PeerId>,
    /// Account of what peers make a server hold.
    account: Option<MemoryAccount>,
    round: u32,
    /// Streams that talk are read without epoll, and epoll does not hear of them: it would take
    /// its share of every arrival.
    unwatched: bool,
    /// Room came while nobody waited for it: the next poll does not wait.
    gave_room: bool,
    /// Of connections that are closed now.
    closed: TcpCounts,
}

impl StreamLink {
    /// Without connections.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new() -> Result<Self, RpcError> {
        let fail = |errno: Errno| RpcError::io("watch connections")(errno.into());
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(fail)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(fail)?;
        let data = epoll::EventData::new_u64(WAKER);
        epoll::add(&epoll, &waker, data, epoll::EventFlags::IN).map_err(fail)?;
        Ok(Self {
            epoll,
            waker: Arc::new(waker),
            streams: PeerTable::default(),
            memory: RegionTable::default(),
            shared: vec![0; SHARED],
            dirty: Vec::new(),
            hot: Vec::new(),
            lost: Vec::new(),
            spare: Vec::new(),
            early: Vec::new(),
            account: None,
            round: 0,
            unwatched: false,
            gave_room: false,
            closed: TcpCounts::default(),
        })
    }

    /// Takes a connection out, without a word to anybody.
    fn remove(&mut self, peer: PeerId) {
        let Some(mut stream) = self.streams.remove(peer) else {
            return;
        };
        self.streams.give_back(peer);
        let counts = tcp_counts(&stream.fd).unwrap_or_default();
        self.closed.retransmits += counts.retransmits;
        self.closed.bytes += counts.bytes;
        stream.forget(&mut self.memory);
        // Closing the descriptor ends epoll's interest: nobody else has it.
        self.hot.retain(|&place| place != peer.index);
        self.dirty.retain(|&place| place != peer.index);
    }

    /// A connection failed while something was sent: the next poll says so.
    #[cold]
    fn break_off(&mut self, peer: PeerId, why: RpcError) {
        if let Some(stream) = self.streams.get(peer)
            && !stream.broken
        {
            stream.broken = true;
            self.lost.push((peer, why));
        }
    }

    fn mark_hot(&mut self, index: u32) {
        let round = self.round;
        if let Some((_, stream)) = self.streams.at(index) {
            stream.last_round = round;
            if !stream.hot {
                stream.hot = true;
                self.hot.push(index);
            }
        }
    }

    /// Connections that were silent for long leave the list of those that talk, and give back
    /// their buffers.
    fn forget_idle(&mut self) {
        let (streams, round) = (&mut self.streams, self.round);
        self.hot.retain(|&index| {
            let Some((_, stream)) = streams.at(index) else {
                return false;
            };
            if round.wrapping_sub(stream.last_round) < IDLE_ROUNDS {
                return true;
            }
            let watched = stream.watch(&self.epoll, index);
            if watched {
                stream.rest();
            }
            !watched
        });
    }

    fn report_lost<H: LinkHandler<Self>>(&mut self, handler: &mut H) -> u32 {
        let mut events = 0;
        while let Some((peer, why)) = self.lost.pop() {
            if self.streams.contains(peer) {
                self.remove(peer);
                handler.lost(self, peer, why);
                events += 1;
            }
        }
        events
    }

    #[inline]
    fn begin_frame(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        length: u64,
        room: u64,
    ) -> Result<&mut PeerStream, Sent> {
        let stream = self.streams.get(peer).filter(|stream| !stream.broken);
        let Some(stream) = stream else {
            return Err(Sent::Gone);
        };
        if header.waits_for_room() && stream.queue.pending() >= room {
            stream.lacked_room = true;
            return Err(Sent::Full);
        }
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        debug_assert!(length <= stream.max_frame, "a body fits into a frame");
        if !stream.dirty {
            stream.dirty = true;
            self.dirty.push(peer.index);
        }
        stream.queue.push(&header.encode(length, stream.summed));
        Ok(stream)
    }
}

impl Link for StreamLink {
    const REMOTE_MEMORY: bool = false;

    fn allocate(&mut self, bytes: usize, low_byte: Option<u8>) -> Result<RegionId, RpcError> {
        self.memory.allocate(bytes, low_byte)
    }

    fn allocate_many(
        &mut self,
        count: usize,
        bytes: usize,
        low_byte: Option<u8>,
    ) -> Result<Vec<RegionId>, RpcError> {
        self.memory.allocate_many(count, bytes, low_byte)
    }

    fn footprint(&self, count: usize, bytes: usize, low_byte: Option<u8>) -> Option<u64> {
        RegionTable::footprint(count, bytes, low_byte)
    }

    fn limit_memory(&mut self, account: MemoryAccount) {
        self.account = Some(account);
    }

    fn release(&mut self, region: RegionId) {
        self.memory.release(region);
    }

    #[inline]
    fn bytes(&mut self, region: RegionId) -> &mut [u8] {
        self.memory.bytes(region)
    }

    fn describe(&self, _: PeerId, range: MemoryRange, access: BulkAccess) -> BulkDescriptor {
        BulkDescriptor::of_frames(range.offset, range.length, access)
    }

    fn join(&mut self, new: NewPeer) -> Result<PeerId, RpcError> {
        let peer = self.streams.claim()?;
        let stream = PeerStream::new(
            new.stream,
            new.features & features::HEADER_CHECKSUM != 0,
            new.max_frame,
            self.account
                .as_ref()
                .filter(|_| new.side == LinkSide::Server),
        );
        match stream.watched(&self.epoll, peer.index) {
            Ok(stream) => self.streams.insert(peer, stream),
            Err(error) => {
                self.streams.give_back(peer);
                return Err(error);
            }
        }
        if !new.early.is_empty() {
            self.keep_early(peer, new.early);
        }
        self.mark_hot(peer.index);
        Ok(peer)
    }

    #[inline]
    fn send(&mut self, peer: PeerId, header: &FrameHeader, body: &[&[u8]]) -> Sent {
        let length = body.iter().map(|part| part.len() as u64).sum();
        match self.begin_frame(peer, header, length, ROOM) {
            Ok(stream) => {
                for part in body {
                    stream.queue.push(part);
                }
                Sent::Queued
            }
            Err(refused) => refused,
        }
    }

    fn send_memory(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        head: &[u8],
        from: MemoryRange,
    ) -> Sent {
        let length = head.len() as u64 + from.length;
        if let Err(refused) = self.begin_frame(peer, header, length, BULK_ROOM) {
            return refused;
        }
        let Some(stream) = self.streams.get(peer) else {
            return Sent::Gone;
        };
        stream.queue.push(head);
        if from.length < BY_REFERENCE {
            stream.queue.push(self.memory.part(from));
        } else {
            stream.queue.push_part(from, &mut self.memory);
        }
        Sent::Queued
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        let mut at = 0;
        while let Some(&index) = self.dirty.get(at) {
            self.write(index);
            match self.streams.at(index) {
                Some((_, stream)) if !stream.queue.is_empty() && !stream.broken => at += 1,
                Some((_, stream)) => {
                    stream.dirty = false;
                    self.dirty.swap_remove(at);
                }
                None => {
                    self.dirty.swap_remove(at);
                }
            }
        }
        Ok(())
    }

    fn poll<H: LinkHandler<Self>>(
        &mut self,
        wait: Option<Duration>,
        handler: &mut H,
    ) -> io::Result<u32> {
        let mut events = u32::from(std::mem::take(&mut self.gave_room));
        if !self.lost.is_empty() {
            events += self.report_lost(handler);
        }
        if !self.early.is_empty() {
            events += self.handle_early(handler);
        }
        self.round = self.round.wrapping_add(1);
        if self.round.is_multiple_of(IDLE_ROUNDS) {
            self.forget_idle();
        }
        let direct = self.hot.len() <= DIRECT && !self.hot.is_empty();
        if self.unwatched && (wait.is_some() || !direct) {
            self.watch_all();
        }
        if direct {
            let mut at = 0;
            while let Some(&index) = self.hot.get(at) {
                events += self.read(index, handler);
                at += 1;
            }
            let is_full = self.round.is_multiple_of(FULL_LOOK);
            if !is_full && (events > 0 || wait.is_none()) {
                return Ok(events);
            }
            if is_full && wait.is_none() && !self.unwatched {
                self.unwatch_hot();
            }
        }
        // Whoever has something already does not wait for more.
        let wait = wait.filter(|_| events == 0);
        events += self.ask_epoll(wait, handler)?;
        if !self.lost.is_empty() {
            events += self.report_lost(handler);
        }
        Ok(events)
    }

    fn waker(&self) -> LinkWaker {
        LinkWaker::new(Arc::clone(&self.waker))
    }

    fn is_in_use(&self, region: RegionId) -> bool {
        self.memory.is_pinned(region)
    }

    fn close(&mut self, peer: PeerId) {
        if let Some(stream) = self.streams.get(peer) {
            // What does not go out at once never will.
            let _ = stream.write(&mut self.memory);
            self.remove(peer);
        }
    }

    fn wire_counts(&self) -> WireCounts {
        let streams = self.streams.values();
        let counts: Option<Vec<_>> = streams.map(|stream| tcp_counts(&stream.fd)).collect();
        // Of streams that are none of TCP nobody knows.
        let Some(counts) = counts else {
            return WireCounts::default();
        };
        let sum = |of: fn(&TcpCounts) -> u64| counts.iter().chain([&self.closed]).map(of).sum();
        WireCounts {
            retransmits: Some(sum(|one| one.retransmits)),
            bytes: Some(sum(|one| one.bytes)),
        }
    }

    fn close_stale(&mut self, limit: Duration) -> Vec<PeerId> {
        let now = Instant::now();
        let stale = self.streams.iter_mut();
        let stale = stale.filter_map(|(peer, stream)| stream.is_stale(now, limit).then_some(peer));
        let stale: Vec<_> = stale.collect();
        for &peer in &stale {
            let header = FrameHeader::plain(FrameKind::Error);
            let header = header.with_word(DerCode::Protocol.to_status());
            self.send(peer, &header, &[b"half a frame for too long"]);
            self.close(peer);
        }
        stale
    }
}

fn gone(errno: Errno) -> RpcError {
    RpcError::new(
        DerCode::Unreachable,
        format!("the connection is lost: {errno}"),
    )
}
