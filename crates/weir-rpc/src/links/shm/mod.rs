//! The link over shared memory: calls in rings, bulk data by one copy.
//!
//! In: connections over a unix socket, each with memory that the client made (`segment`). Out:
//! frames, and copies from and to the client's memory (`arena`, `windows`), which the server
//! makes by itself. Sessions, pings and orders go over the socket, whose end is the other side's
//! end, however it came. Whatever the other side writes into shared memory is checked, or copied
//! before it is looked at.
//!
//! Rings that talk are looked at in every round, the socket every so many. Who is about to sleep, or
//! has not heard of a connection for long, says so in the ring's memory; the other side then follows
//! its frames with a bell over the socket. So one wait serves calls, orders and ends of all
//! connections.

mod arena;
mod frames;
mod memory;
mod polling;
mod segment;
mod windows;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use weir_sys::SysError;
use weir_sys::shared_memory::SharedMemory;

use self::frames::{FrameReceiver, FrameSender};
use self::memory::LinkMemory;
use self::polling::SOCKET_ROUNDS;
use self::windows::ClientWindows;
use crate::links::peer_table::PeerTable;
use crate::links::stream::{Collected, RegionTable, StreamLink};
use crate::links::{
    Link, LinkGreeting, LinkHandler, LinkSide, LinkWaker, MemoryRange, MoveDirection, NewPeer,
    PeerId, RegionId, Sent,
};
use crate::wire::{BulkAccess, BulkDescriptor, FrameHeader, FrameKind};
use crate::{DerCode, MemoryAccount, RpcError};

/// The frame that wakes the other side. It says nothing.
const BELL: FrameKind = FrameKind::BulkAck;

/// One connection.
#[derive(Debug)]
struct ShmPeer {
    sender: FrameSender,
    receiver: FrameReceiver,
    /// On the server's side.
    windows: Option<ClientWindows>,
    /// Frames that found no room, in order. What answers a call is never refused.
    held: VecDeque<(FrameHeader, Vec<u8>)>,
    /// Something is queued and not published.
    dirty: bool,
    /// It is in the list of those that are looked at.
    busy: bool,
    empty_rounds: u32,
}

/// Connections over shared memory, all of one thread.
pub struct RpcShmLink {
    side: LinkSide,
    control: StreamLink,
    collected: Collected,
    memory: LinkMemory,
    peers: PeerTable<ShmPeer>,
    /// Places that are looked at in every round.
    busy: Vec<u32>,
    /// Places with something to publish.
    dirty: Vec<u32>,
    /// Places with frames that found no room.
    holding: Vec<u32>,
    /// Moves that are done.
    moved: VecDeque<(PeerId, u64, Result<(), RpcError>)>,
    /// Connections that broke while something was sent.
    broken: Vec<(PeerId, RpcError)>,
    /// Memory of the connection that is being made, on the client's side.
    next: Option<Arc<SharedMemory>>,
    scratch: Vec<u8>,
    rounds: u32,
    lacks_room: bool,
}

impl RpcShmLink {
    /// A link without connections, for clients or for servers.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new(side: LinkSide) -> Result<Self, RpcError> {
        Ok(Self {
            side,
            control: StreamLink::new()?,
            collected: Collected::default(),
            memory: LinkMemory::new(side)?,
            peers: PeerTable::default(),
            busy: Vec::new(),
            dirty: Vec::new(),
            holding: Vec::new(),
            moved: VecDeque::new(),
            broken: Vec::new(),
            next: None,
            scratch: Vec::new(),
            rounds: 0,
            lacks_room: false,
        })
    }

    /// Takes a connection out, without a word to anybody.
    fn forget(&mut self, id: PeerId) {
        if self.peers.remove(id).is_some() {
            self.busy.retain(|&place| place != id.index);
            self.dirty.retain(|&place| place != id.index);
            self.holding.retain(|&place| place != id.index);
            self.moved.retain(|(of, ..)| *of != id);
        }
    }

    #[inline]
    fn queue(&mut self, id: PeerId, header: &FrameHeader, body: &[&[u8]]) -> Sent {
        let Some(peer) = self.peers.get(id) else {
            return Sent::Gone;
        };
        let sent = if peer.held.is_empty() {
            peer.sender.send(header, body)
        } else {
            Ok(false)
        };
        match sent {
            Ok(true) => {
                if !peer.dirty {
                    peer.dirty = true;
                    self.dirty.push(id.index);
                }
                Sent::Queued
            }
            Ok(false) => self.without_room(id, header, body),
            Err(why) => {
                self.broken.push((id, why));
                Sent::Gone
            }
        }
    }

    /// New calls are refused; everything else belongs to a call that the other side waits for, or
    /// knows the beginning of, so that there are no more of it than calls.
    #[cold]
    fn without_room(&mut self, id: PeerId, header: &FrameHeader, body: &[&[u8]]) -> Sent {
        self.lacks_room = true;
        if header.waits_for_room() {
            return Sent::Full;
        }
        let Some(peer) = self.peers.get(id) else {
            return Sent::Gone;
        };
        peer.held.push_back((*header, body.concat()));
        if peer.held.len() == 1 {
            self.holding.push(id.index);
        }
        Sent::Queued
    }

    /// Sends what found no room before, as much as finds it now.
    #[cold]
    fn send_held(&mut self) {
        let mut at = 0;
        while let Some(&place) = self.holding.get(at) {
            let Some((id, peer)) = self.peers.at(place) else {
                self.holding.swap_remove(at);
                continue;
            };
            while let Some((header, body)) = peer.held.front() {
                match peer.sender.send(header, &[body]) {
                    Ok(true) => {
                        peer.held.pop_front();
                        if !peer.dirty {
                            peer.dirty = true;
                            self.dirty.push(place);
                        }
                    }
                    Ok(false) => break,
                    Err(why) => {
                        self.broken.push((id, why));
                        peer.held.clear();
                    }
                }
            }
            if peer.held.is_empty() {
                self.holding.swap_remove(at);
            } else {
                at += 1;
            }
        }
        self.publish();
    }

    /// Shows the other sides what is queued, and wakes those that sleep.
    #[inline]
    fn publish(&mut self) {
        while let Some(place) = self.dirty.pop() {
            let Some((id, peer)) = self.peers.at(place) else {
                continue;
            };
            peer.dirty = false;
            if peer.sender.publish() {
                // Where the socket has no room the other side has enough to read.
                self.control.send(id, &FrameHeader::plain(BELL), &[]);
            }
        }
    }
}

impl Link for RpcShmLink {
    const REMOTE_MEMORY: bool = true;
    const KEEPS_ANSWERS: bool = true;

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
        self.control.limit_memory(account);
    }

    fn is_congested(&mut self, peer: PeerId) -> bool {
        let known = self.peers.get(peer);
        known.is_some_and(|peer| !peer.held.is_empty())
    }

    fn release(&mut self, region: RegionId) {
        self.memory.release(region);
    }

    #[inline]
    fn bytes(&mut self, region: RegionId) -> &mut [u8] {
        self.memory.bytes(region)
    }

    fn describe(&self, _: PeerId, range: MemoryRange, access: BulkAccess) -> BulkDescriptor {
        self.memory.describe(range, access)
    }

    fn greeting(&mut self) -> Result<LinkGreeting, RpcError> {
        let LinkMemory::Shared(arena) = &self.memory else {
            return Ok(LinkGreeting::default());
        };
        let (memory, file) = segment::create().map_err(no_memory)?;
        let passed = vec![file, arena.file()?];
        self.next = Some(memory);
        Ok(LinkGreeting {
            passed,
            ..LinkGreeting::default()
        })
    }

    fn join(&mut self, mut new: NewPeer) -> Result<PeerId, RpcError> {
        let wrong = |what: &str| RpcError::protocol(format!("shared memory: {what}"));
        let passed = std::mem::take(&mut new.greeting.passed);
        let (memory, windows) = match self.side {
            LinkSide::Client => (self.next.take(), None),
            // Whoever only gives orders over the socket shares no memory.
            LinkSide::Server if passed.is_empty() => {
                (Some(segment::create().map_err(no_memory)?.0), None)
            }
            LinkSide::Server => {
                let [file, arena] = <[_; 2]>::try_from(passed)
                    .map_err(|_| wrong("the client passed one descriptor, or more than two"))?;
                let memory = segment::open(&file).map_err(|error| wrong(&error.to_string()))?;
                (Some(memory), Some(ClientWindows::new(arena)))
            }
        };
        let memory = memory.ok_or_else(|| wrong("none was made for this connection"))?;
        if new.max_frame as usize > segment::SLAB {
            return Err(wrong("frames longer than its slab were agreed on"));
        }
        let (sender, receiver) =
            segment::ends(&memory, self.side, new.max_frame).map_err(no_memory)?;
        let id = self.control.join(new)?;
        let known = ShmPeer {
            sender,
            receiver,
            windows,
            held: VecDeque::new(),
            dirty: false,
            busy: true,
            empty_rounds: 0,
        };
        self.peers.insert(id, known);
        self.busy.push(id.index);
        Ok(id)
    }

    #[inline]
    fn send(&mut self, peer: PeerId, header: &FrameHeader, body: &[&[u8]]) -> Sent {
        if header.kind.is_data() {
            self.queue(peer, header, body)
        } else {
            self.control.send(peer, header, body)
        }
    }

    fn send_memory(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        head: &[u8],
        from: MemoryRange,
    ) -> Sent {
        // Out of the way of what is borrowed of the link.
        let mut memory = std::mem::take(&mut self.memory);
        let sent = self.send(peer, header, &[head, memory.part(from)]);
        self.memory = memory;
        sent
    }

    /// The handler learns of it with the next poll.
    fn move_memory(
        &mut self,
        direction: MoveDirection,
        id: PeerId,
        (remote, offset): (&BulkDescriptor, u64),
        own: MemoryRange,
        token: u64,
    ) -> Sent {
        let Some(peer) = self.peers.get(id) else {
            return Sent::Gone;
        };
        let part = self.memory.part(own);
        let result = match &mut peer.windows {
            Some(windows) if part.len() as u64 == own.length => {
                windows.copy(direction, (remote, offset), part)
            }
            _ => Err(RpcError::protocol("a move outside of memory")),
        };
        self.moved.push_back((id, token, result));
        Sent::Queued
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.publish();
        self.control.flush()
    }

    #[inline]
    fn poll<H: LinkHandler<Self>>(
        &mut self,
        wait: Option<Duration>,
        handler: &mut H,
    ) -> io::Result<u32> {
        let mut events = 0;
        if !self.moved.is_empty() || !self.broken.is_empty() {
            events += self.hand_on(handler);
        }
        events += self.look_at_rings(handler);
        if !self.holding.is_empty() {
            self.send_held();
        }
        if events == 0
            && let Some(wait) = wait
        {
            events = self.sleep(wait, handler)?;
            self.lacks_room = !self.holding.is_empty();
            return Ok(events);
        }
        self.rounds += 1 + events;
        if self.rounds >= SOCKET_ROUNDS {
            events += self.look_at_sockets(None, handler)?;
        }
        Ok(events)
    }

    fn waker(&self) -> LinkWaker {
        self.control.waker()
    }

    fn close(&mut self, peer: PeerId) {
        self.publish();
        self.control.close(peer);
        self.forget(peer);
    }

    fn close_stale(&mut self, limit: Duration) -> Vec<PeerId> {
        let stale = self.control.close_stale(limit);
        for &peer in &stale {
            self.forget(peer);
        }
        stale
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn no_memory(error: SysError) -> RpcError {
    RpcError::new(DerCode::NoMemory, error.to_string())
}
