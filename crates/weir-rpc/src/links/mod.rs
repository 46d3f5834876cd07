//! A link: one thread's connections to its peers, and the memory that bulk transfers touch.
//!
//! In: frames to send, memory to move. Out: frames that came, to a [`LinkHandler`]. A link carries
//! both planes: calls and bulk data over what it is named after, everything else (sessions, pings,
//! orders) over the stream that the handshake was made on, whose end is the peer's end. Not here:
//! what the frames mean (`client`, `server`), how a connection begins (`stream::handshake`).

pub(crate) mod assembly;
pub mod ofi;
pub(crate) mod peer_table;
pub mod shm;
pub(crate) mod socket;
pub mod stream;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::wire::{BulkDescriptor, FrameHeader};
use crate::{MemoryAccount, RpcError};

/// A connection of a link: its place and which of the connections that have had this place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PeerId {
    /// The place; small numbers, used again.
    pub index: u32,
    /// Counts the place's uses.
    pub generation: u32,
}

/// Memory that a link has allocated. Small numbers, used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegionId(pub u32);

/// A part of a region, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRange {
    /// Of which.
    pub region: RegionId,
    /// From its start.
    pub offset: u64,
    /// Length.
    pub length: u64,
}

impl MemoryRange {
    /// So many bytes of a region, from a place on.
    pub const fn new(region: RegionId, offset: u64, length: u64) -> Self {
        Self {
            region,
            offset,
            length,
        }
    }

    /// Its bytes in the region; `None` beyond the address space.
    #[inline]
    pub(crate) fn bounds(self) -> Option<Range<usize>> {
        let end = self.offset.checked_add(self.length)?;
        Some(usize::try_from(self.offset).ok()?..usize::try_from(end).ok()?)
    }
}

const PAGE: usize = 4 << 10;

/// The answer to a frame or a move that was handed to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Taken. It goes out with the next flush at the latest.
    Queued,
    /// No room: flush, poll, and try again.
    Full,
    /// The peer is gone; its loss is reported by the next poll, or has been.
    Gone,
}

/// Which way the bytes of a move go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveDirection {
    /// From the peer.
    Get,
    /// To the peer.
    Put,
}

/// A frame that a peer has sent.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The peer.
    pub peer: PeerId,
    /// Its header.
    pub header: &'a FrameHeader,
    /// Its body, or the head of it where the data are asked for or placed.
    pub body: &'a [u8],
}

/// Which side of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSide {
    /// It connected.
    Client,
    /// It listened.
    Server,
}

/// Part of the handshake by which the other side reaches this one.
#[derive(Debug, Default)]
pub struct LinkGreeting {
    /// An address of the fabric; empty for links that need none.
    pub address: Vec<u8>,
    /// Descriptors passed along (unix sockets only), as a segment of shared memory.
    pub passed: Vec<OwnedFd>,
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub struct NewPeer {
    /// Which side this is.
    pub side: LinkSide,
    /// The stream of the handshake.
    pub stream: OwnedFd,
    /// Bytes that were read beyond the handshake.
    pub early: Vec<u8>,
    /// Largest body of a frame, in bytes.
    pub max_frame: u32,
    /// Features of both sides: bits of `wire::features`.
    pub features: u64,
    /// Greeting of the other side.
    pub greeting: LinkGreeting,
}

/// Wakes the thread that waits in a link's poll. Cheap to copy; any thread may use it.
#[derive(Clone, Debug)]
pub struct LinkWaker(Arc<OwnedFd>);

impl LinkWaker {
    /// A waker over an event descriptor that the link watches.
    pub fn new(event: Arc<OwnedFd>) -> Self {
        Self(event)
    }

    /// Ends a wait of the link, or its next one.
    pub fn wake(&self) {
        // A full counter means that it is awake already.
        let _ = rustix::io::write(self.0.as_fd(), &1_u64.to_ne_bytes());
    }
}

/// Traffic of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounts {
    /// Packets that were sent again; `None` where the link does not know.
    pub retransmits: Option<u64>,
    /// Bytes both ways, with what frames messages; `None` where the link does not know.
    pub bytes: Option<u64>,
}

/// One thread's connections to its peers.
pub trait Link: Sized {
    /// `get` and `put` move memory by themselves; otherwise the protocol asks the client for data
    /// and sends it data in frames.
    const REMOTE_MEMORY: bool;
    /// Answers are copied, where they find no room, one of each connection at a time.
    const KEEPS_ANSWERS: bool = false;

    /// Memory for payloads, its pages present. With `low_byte` its address ends in that byte.
    ///
    /// # Errors
    /// There is not enough memory.
    fn allocate(&mut self, bytes: usize, low_byte: Option<u8>) -> Result<RegionId, RpcError>;

    /// The same for several buffers of one size, which may lie beside each other.
    ///
    /// # Errors
    /// There is not enough memory for all of them.
    fn allocate_many(
        &mut self,
        count: usize,
        bytes: usize,
        low_byte: Option<u8>,
    ) -> Result<Vec<RegionId>, RpcError> {
        let mut all = Vec::new();
        for _ in 0..count {
            match self.allocate(bytes, low_byte) {
                Ok(region) => all.push(region),
                Err(why) => {
                    for region in all {
                        self.release(region);
                    }
                    return Err(why);
                }
            }
        }
        Ok(all)
    }

    /// Bytes of the machine's memory that such buffers take; `None` where there is not so much in any machine.
    fn footprint(&self, count: usize, bytes: usize, low_byte: Option<u8>) -> Option<u64> {
        let each = bytes.checked_add(usize::from(low_byte.unwrap_or(0)))?;
        let each = each.max(1).checked_next_multiple_of(PAGE)?;
        Some(each.checked_mul(count)? as u64)
    }

    /// Takes what peers make it hold from this account, from now on. A server asks for it.
    fn limit_memory(&mut self, _account: MemoryAccount) {}

    /// Gives memory back. Frames that still refer to it are sent from what it held, or not at all.
    fn release(&mut self, region: RegionId);

    /// Bytes of a region; empty for one that was released.
    fn bytes(&mut self, region: RegionId) -> &mut [u8];

    /// Writes data into a part of a region that is as long; nothing where it does not lie within.
    fn write(&mut self, at: MemoryRange, data: &[u8]) {
        let bounds = at.bounds();
        if let Some(bytes) = bounds.and_then(|bounds| self.bytes(at.region).get_mut(bounds)) {
            bytes.copy_from_slice(data);
        }
    }

    /// Descriptor by which a peer reaches a part of own memory. It goes to the peer of this call alone.
    fn describe(
        &self,
        peer: PeerId,
        range: MemoryRange,
        access: crate::wire::BulkAccess,
    ) -> BulkDescriptor;

    /// Greeting of this side for a handshake. On the client's side it is asked for before each
    /// connect, and [`Link::join`] or another greeting follows.
    ///
    /// # Errors
    /// Something could not be prepared, as shared memory.
    fn greeting(&mut self) -> Result<LinkGreeting, RpcError> {
        Ok(LinkGreeting::default())
    }

    /// Takes a connection whose handshake is done.
    ///
    /// # Errors
    /// The peer cannot be reached by what it said in its greeting.
    fn join(&mut self, peer: NewPeer) -> Result<PeerId, RpcError>;

    /// Queues a frame whose body is these parts, one after the other. Never blocks, and copies
    /// what it needs.
    fn send(&mut self, peer: PeerId, header: &FrameHeader, body: &[&[u8]]) -> Sent;

    /// Queues a frame whose body is `head` and then a part of own memory, which may be read until
    /// the frame is out.
    fn send_memory(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        head: &[u8],
        from: MemoryRange,
    ) -> Sent;

    /// Moves as many bytes as own memory has between it and a peer's memory, there from an offset on, then
    /// calls [`LinkHandler::moved`]. Asked for only where [`Link::REMOTE_MEMORY`].
    fn move_memory(
        &mut self,
        _direction: MoveDirection,
        _peer: PeerId,
        _remote: (&BulkDescriptor, u64),
        _own: MemoryRange,
        _token: u64,
    ) -> Sent {
        Sent::Gone
    }

    /// Hands over what is queued, as much of it as goes.
    ///
    /// # Errors
    /// The link itself is broken; a lost peer is no error here.
    fn flush(&mut self) -> io::Result<()>;

    /// Looks once, or with `wait` waits at most so long for something to come, and calls the
    /// handler for it. Returns how many frames and events there were.
    ///
    /// # Errors
    /// The link itself is broken.
    fn poll<H: LinkHandler<Self>>(
        &mut self,
        wait: Option<Duration>,
        handler: &mut H,
    ) -> io::Result<u32>;

    /// Waker of this thread, for other threads.
    fn waker(&self) -> LinkWaker;

    /// True if what is queued for a peer finds no room with it: more answers would only be kept.
    fn is_congested(&mut self, _peer: PeerId) -> bool {
        false
    }

    /// True if a frame that is not out yet refers to a region, so that its contents must stay.
    fn is_in_use(&self, _region: RegionId) -> bool {
        false
    }

    /// Closes a connection after what is queued for it; no event follows.
    fn close(&mut self, peer: PeerId);

    /// Closes connections that have sent half a frame and nothing more for this long, and returns
    /// them; no event follows. It is called about ten times in that time.
    fn close_stale(&mut self, _limit: Duration) -> Vec<PeerId> {
        Vec::new()
    }

    /// Traffic since the link was made, over all peers.
    fn wire_counts(&self) -> WireCounts {
        WireCounts::default()
    }
}

/// Receiver of a link's frames and events.
pub trait LinkHandler<L: Link> {
    /// Where the data of a long frame goes that carries bulk data, asked once its header and head
    /// (see `FrameHeader::head_length`) are there: that many bytes from the start of the range. With
    /// `None` the whole body comes to `message` like any other.
    fn destination(&mut self, _frame: Frame<'_>, _length: u64) -> Option<MemoryRange> {
        None
    }

    /// The data of a frame has arrived where `destination` said.
    fn placed(&mut self, _link: &mut L, _frame: Frame<'_>, _at: MemoryRange) {}

    /// A frame has come.
    fn message(&mut self, link: &mut L, peer: PeerId, header: &FrameHeader, body: &[u8]);

    /// A get or put has ended.
    fn moved(&mut self, _link: &mut L, _peer: PeerId, _token: u64, _: Result<(), RpcError>) {}

    /// The peer is gone: it closed, broke the protocol, or cannot be reached any more.
    fn lost(&mut self, link: &mut L, peer: PeerId, why: RpcError);
}
