//! Memory for moves, and the moves: bytes between it and a peer's memory, by the provider alone.
//!
//! In: lengths, a peer's address and key. Out: a [`RegionId`], operations in flight. Memory that is
//! released while moves use it stays until they are done. Not here: messages (`endpoint`).

#![expect(unsafe_code, reason = "libfabric's calls, on memory given by address")]

use super::endpoint::{FabricEndpoint, FabricPeer, FabricPosted, SendSlot};
use super::error::FabricError;
use super::objects::{RegisteredMemory, Uses};
use crate::links::{MoveDirection, RegionId};

/// Where a peer's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteMemory {
    /// Address of it at the peer.
    pub address: u64,
    /// Key of it at the peer.
    pub key: u64,
}

/// Bytes of a message, and where they come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum MessagePart<'bytes> {
    /// These.
    Bytes(&'bytes [u8]),
    /// Of a region: from a byte on, how many.
    Memory(RegionId, usize, usize),
}

impl MessagePart<'_> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Memory(_, _, len) => *len,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first bytes, at most so many, and the others.
    #[inline]
    pub(super) fn split_at(self, most: usize) -> (Self, Self) {
        let at = most.min(self.len());
        match self {
            Self::Bytes(bytes) => {
                let (first, others) = bytes.split_at(at);
                (Self::Bytes(first), Self::Bytes(others))
            }
            Self::Memory(region, offset, len) => (
                Self::Memory(region, offset, at),
                Self::Memory(region, offset + at, len - at),
            ),
        }
    }
}

/// Both ends of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricMove {
    /// Whose memory.
    pub peer: FabricPeer,
    /// Which memory of the peer's.
    pub remote: RemoteMemory,
    /// Which memory of this side's.
    pub region: RegionId,
    /// From which of its bytes.
    pub offset: usize,
    /// Number of bytes.
    pub len: usize,
    /// Number that its completion reports.
    pub owner: u64,
}

/// A region, and how many moves use it.
#[derive(Debug)]
struct MovedMemory {
    memory: RegisteredMemory,
    in_flight: u32,
    is_released: bool,
}

/// A move in flight.
#[derive(Clone, Copy, Debug, Default)]
struct MoveInFlight {
    region: u32,
    owner: u64,
}

/// All regions and moves of an endpoint.
#[derive(Debug)]
pub(super) struct MoveCalls {
    first: u32,
    free: Vec<u32>,
    in_flight: Vec<MoveInFlight>,
    regions: Vec<Option<MovedMemory>>,
}

impl MoveCalls {
    /// Of operations from `first` on.
    pub(super) fn new(first: u32, count: u32) -> Self {
        Self {
            first,
            free: (first..first + count).rev().collect(),
            in_flight: vec![MoveInFlight::default(); count as usize],
            regions: Vec::new(),
        }
    }

    /// The owner of a move that is done; `None` for a number that is no move's.
    pub(super) fn done(&mut self, operation: u32) -> Option<u64> {
        let index = operation.checked_sub(self.first)?;
        let done = *self.in_flight.get(index as usize)?;
        self.free.push(operation);
        self.unused(done.region);
        Some(done.owner)
    }

    fn unused(&mut self, region: u32) {
        let Some(at) = self.regions.get_mut(region as usize) else {
            return;
        };
        if let Some(memory) = at {
            memory.in_flight = memory.in_flight.saturating_sub(1);
            if memory.is_released && memory.in_flight == 0 {
                let_go(at);
            }
        }
    }

    fn region(&self, region: RegionId) -> Option<&MovedMemory> {
        let memory = self.regions.get(region.0 as usize)?.as_ref()?;
        (!memory.is_released).then_some(memory)
    }

    /// The bytes of a part; `None` for memory that there is not.
    #[inline]
    fn part<'part>(&'part self, part: MessagePart<'part>) -> Option<&'part [u8]> {
        match part {
            MessagePart::Bytes(bytes) => Some(bytes),
            MessagePart::Memory(region, offset, len) => {
                let memory = &self.region(region)?.memory;
                memory.part(offset, len)?;
                Some(memory.slot(offset, len))
            }
        }
    }

    fn region_mut(&mut self, region: RegionId) -> Option<&mut MovedMemory> {
        let memory = self.regions.get_mut(region.0 as usize)?.as_mut()?;
        (!memory.is_released).then_some(memory)
    }

    /// Ends all registrations; whether the fabric let go of the memory.
    pub(super) fn deregister(&mut self) -> bool {
        let mut all = true;
        for region in self.regions.iter_mut().flatten() {
            all &= region.memory.deregister();
        }
        all
    }

    /// Gives the memory up without unmapping it.
    pub(super) fn leak(&mut self) {
        let regions = self.regions.drain(..).flatten();
        regions.for_each(|region| region.memory.leak());
    }
}

/// Unmaps a region, unless the fabric does not let go of it.
fn let_go(region: &mut Option<MovedMemory>) {
    if let Some(mut region) = region.take()
        && !region.memory.deregister()
    {
        region.memory.leak();
    }
}

impl FabricEndpoint {
    /// Memory of `len` bytes for moves, whose first address ends with `low_byte`.
    ///
    /// # Errors
    /// There is not enough memory, or the provider does not register it.
    pub fn allocate(&mut self, len: usize, low_byte: u8) -> Result<RegionId, FabricError> {
        let uses = if self.facts().has_remote_memory {
            Uses::Moves
        } else {
            Uses::Unregistered
        };
        let region = MovedMemory {
            memory: self.register(len, low_byte, uses)?,
            in_flight: 0,
            is_released: false,
        };
        let regions = &mut self.moves.regions;
        let free = regions.iter().position(Option::is_none);
        let at = free.unwrap_or(regions.len());
        let number = u32::try_from(at).map_err(|_| FabricError::Lacks("number so much memory"))?;
        match regions.get_mut(at) {
            Some(free) => *free = Some(region),
            None => regions.push(Some(region)),
        }
        Ok(RegionId(number))
    }

    /// Gives memory back, once no move uses it any more.
    pub fn release(&mut self, region: RegionId) {
        let Some(at) = self.moves.regions.get_mut(region.0 as usize) else {
            return;
        };
        match at {
            Some(memory) if memory.in_flight > 0 => memory.is_released = true,
            _ => let_go(at),
        }
    }

    /// True if moves of this side use a region.
    pub fn is_moving(&self, region: RegionId) -> bool {
        let memory = self.moves.regions.get(region.0 as usize);
        memory.is_some_and(|memory| memory.as_ref().is_some_and(|memory| memory.in_flight > 0))
    }

    /// The bytes of a region; peers may be at work on them. Nothing for one that was released.
    pub fn bytes(&mut self, region: RegionId) -> &mut [u8] {
        match self.moves.region_mut(region) {
            Some(region) => {
                let len = region.memory.len();
                region.memory.slot_mut(0, len)
            }
            None => &mut [],
        }
    }

    /// Writes a part of a message from byte `at` on; zeroes for memory that was released.
    #[inline]
    pub(super) fn fill(&mut self, slot: &SendSlot, at: usize, part: MessagePart<'_>) {
        let (moves, into) = self.moves_and_send_bytes(slot);
        let into = &mut into[at..at + part.len()];
        match moves.part(part) {
            Some(from) => into.copy_from_slice(from),
            None => into.fill(0),
        }
    }

    /// Adds a part of a message to `into`; zeroes for memory that was released.
    pub(super) fn add_part(&self, part: MessagePart<'_>, into: &mut Vec<u8>) {
        match self.moves.part(part) {
            Some(from) => into.extend_from_slice(from),
            None => into.resize(into.len() + part.len(), 0),
        }
    }

    /// Address and key by which a peer reaches a region from this byte on.
    pub fn remote(&self, region: RegionId, offset: u64) -> Option<RemoteMemory> {
        let memory = &self.moves.region(region)?.memory;
        Some(RemoteMemory {
            address: memory.address.checked_add(offset)?,
            key: memory.key,
        })
    }

    /// Begins to copy between a peer's memory and one's own.
    ///
    /// # Errors
    /// The provider fails for good, or the region is shorter.
    pub fn start(
        &mut self,
        direction: MoveDirection,
        wanted: &FabricMove,
    ) -> Result<FabricPosted, FabricError> {
        let what = match direction {
            MoveDirection::Get => "read a peer's memory",
            MoveDirection::Put => "write a peer's memory",
        };
        let Some(&operation) = self.moves.free.last() else {
            return Ok(FabricPosted::Again);
        };
        let region = self.moves.region(wanted.region);
        let part = region.and_then(|region| {
            let part = region.memory.part(wanted.offset, wanted.len)?;
            Some((part, region.memory.descriptor))
        });
        let (part, own) = part.ok_or_else(|| {
            let text = "a move goes beyond the memory that it was asked for with";
            FabricError::Invalid(text.to_owned())
        })?;
        let (endpoint, len, peer) = (self.raw(), wanted.len, wanted.peer.0);
        let (at, key) = (wanted.remote.address, wanted.remote.key);
        let context = self.contexts.address(operation);
        let code = match (direction, self.calls.read, self.calls.write) {
            (MoveDirection::Get, Some(read), _) => {
                // SAFETY: an open endpoint; the memory stays until the move is done (`MoveCalls`).
                unsafe { read(endpoint, part.cast(), len, own, peer, at, key, context) }
            }
            (MoveDirection::Put, _, Some(write)) => {
                let part = part.cast_const().cast();
                // SAFETY: as above.
                unsafe { write(endpoint, part, len, own, peer, at, key, context) }
            }
            _ => return Err(FabricError::Lacks(what)),
        };
        let posted = self.posted(what, code)?;
        if posted == FabricPosted::Taken {
            self.moves.free.pop();
            let index = (operation - self.moves.first) as usize;
            self.moves.in_flight[index] = MoveInFlight {
                region: wanted.region.0,
                owner: wanted.owner,
            };
            if let Some(region) = self.moves.region_mut(wanted.region) {
                region.in_flight += 1;
            }
        }
        Ok(posted)
    }
}
