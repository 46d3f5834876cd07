//! Moves of a link: which call they belong to, and those that the provider did not take yet.
//!
//! In: a descriptor and a range of own memory. Out: operations of the endpoint, and the call's token
//! when one is done. Not here: reporting them (`incoming`).

use super::peer::{Outlook, Retried};
use crate::links::ofi::endpoint::{FabricEndpoint, FabricPeer, FabricPosted};
use crate::links::ofi::error::FabricError;
use crate::links::ofi::remote_memory::{FabricMove, RemoteMemory};
use crate::links::{MemoryRange, MoveDirection, PeerId, RegionId};
use crate::wire::{BulkAccess, BulkDescriptor, BulkMode};

/// Moves that may wait for the provider to take them.
const MOST_WAITING: usize = 1024;

/// The move between a range of own memory and as many bytes of a peer's memory from an offset on;
/// `None` where the descriptor does not allow it. Whose memory it is remains to be filled in.
pub(super) fn wanted(
    direction: MoveDirection,
    (remote, offset): (&BulkDescriptor, u64),
    own: MemoryRange,
) -> Option<FabricMove> {
    let access = match direction {
        MoveDirection::Get => BulkAccess::READ,
        MoveDirection::Put => BulkAccess::WRITE,
    };
    let is_allowed = remote.mode == BulkMode::Fabric
        && remote.access.allows(access)
        && remote.contains(offset, own.length);
    if !is_allowed {
        return None;
    }
    // Weir's own descriptors have one segment; of others the one that holds the whole range.
    let mut first = 0_u64;
    for segment in remote.segments() {
        let within = offset.checked_sub(first)?;
        if within.checked_add(own.length)? <= segment.length {
            return Some(FabricMove {
                peer: FabricPeer::NOBODY,
                remote: RemoteMemory {
                    address: segment.address.checked_add(within)?,
                    key: segment.key,
                },
                region: own.region,
                offset: usize::try_from(own.offset).ok()?,
                len: usize::try_from(own.length).ok()?,
                owner: 0,
            });
        }
        first = first.checked_add(segment.length)?;
    }
    None
}

/// A move that the provider did not take yet.
#[derive(Debug)]
struct WaitingMove {
    peer: PeerId,
    direction: MoveDirection,
    wanted: FabricMove,
}

/// The moves of a link.
#[derive(Debug, Default)]
pub(super) struct MoveTable {
    /// Whose a move is, by its number.
    owners: Vec<(PeerId, u64)>,
    free: Vec<u32>,
    waiting: Vec<WaitingMove>,
    /// Moves that cannot be.
    refused: Vec<(PeerId, u64)>,
}

impl MoveTable {
    /// Begins a move, now or when the provider takes it; `None` where too many wait.
    pub(super) fn begin(
        &mut self,
        endpoint: &mut FabricEndpoint,
        (direction, mut wanted): (MoveDirection, FabricMove),
        (peer, token): (PeerId, u64),
        in_flight: &mut u32,
    ) -> Result<Option<Outlook>, FabricError> {
        if self.waiting.len() >= MOST_WAITING {
            return Ok(None);
        }
        let number = self.number(peer, token);
        wanted.owner = u64::from(number);
        let is_first = !self.waiting.iter().any(|waiting| waiting.peer == peer);
        if is_first {
            match endpoint.start(direction, &wanted) {
                Ok(FabricPosted::Taken) => {
                    *in_flight += 1;
                    return Ok(Some(Outlook::Clear));
                }
                Ok(FabricPosted::Again) => {}
                Err(FabricError::Invalid(_)) => {
                    self.give_up(number);
                    return Ok(Some(Outlook::Clear));
                }
                Err(error) => {
                    self.free.push(number);
                    return Err(error);
                }
            }
        }
        self.waiting.push(WaitingMove {
            peer,
            direction,
            wanted,
        });
        Ok(Some(Outlook::Stalled))
    }

    fn number(&mut self, peer: PeerId, token: u64) -> u32 {
        if let Some(number) = self.free.pop() {
            self.owners[number as usize] = (peer, token);
            return number;
        }
        self.owners.push((peer, token));
        // What waits is bounded, and so is what an endpoint has in flight.
        u32::try_from(self.owners.len() - 1).unwrap_or(u32::MAX)
    }

    /// Tries again what the provider did not take for this peer.
    pub(super) fn retry(
        &mut self,
        endpoint: &mut FabricEndpoint,
        peer: PeerId,
        in_flight: &mut u32,
    ) -> Retried {
        let mut retried = Retried::default();
        while let Some(at) = self.waiting.iter().position(|move_| move_.peer == peer) {
            let (direction, wanted) = (self.waiting[at].direction, self.waiting[at].wanted);
            match endpoint.start(direction, &wanted) {
                Ok(FabricPosted::Taken) => {
                    *in_flight += 1;
                    retried.has_moved = true;
                    self.waiting.remove(at);
                }
                Ok(FabricPosted::Again) => return retried,
                Err(error) => {
                    retried.error = Some(error);
                    return retried;
                }
            }
        }
        retried.is_clear = true;
        retried
    }

    /// The peer and the token of a move that is done.
    pub(super) fn done(&mut self, owner: u64) -> Option<(PeerId, u64)> {
        let number = u32::try_from(owner).ok()?;
        let done = *self.owners.get(number as usize)?;
        self.free.push(number);
        Some(done)
    }

    fn give_up(&mut self, number: u32) {
        if let Some(&owner) = self.owners.get(number as usize) {
            self.refused.push(owner);
            self.free.push(number);
        }
    }

    /// A move that cannot be, as the next poll says.
    pub(super) fn refuse(&mut self, peer: PeerId, token: u64) {
        self.refused.push((peer, token));
    }

    pub(super) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    pub(super) fn take_refused(&mut self) -> Vec<(PeerId, u64)> {
        std::mem::take(&mut self.refused)
    }

    /// The peer is gone.
    pub(super) fn drop_waiting(&mut self, peer: PeerId) {
        let free = &mut self.free;
        self.waiting.retain(|waiting| {
            let stays = waiting.peer != peer;
            if !stays {
                free.extend(u32::try_from(waiting.wanted.owner));
            }
            stays
        });
        self.refused.retain(|(of, _)| *of != peer);
    }

    /// True if something waits that uses a region.
    pub(super) fn waits_for(&self, region: RegionId) -> bool {
        self.waiting
            .iter()
            .any(|waiting| waiting.wanted.region == region)
    }

    /// Gives memory back: what waits for it will not be.
    pub(super) fn release(&mut self, endpoint: &mut FabricEndpoint, region: RegionId) {
        while let Some(at) = self.waiting.iter().position(|w| w.wanted.region == region) {
            let waiting = self.waiting.remove(at);
            self.give_up(u32::try_from(waiting.wanted.owner).unwrap_or(u32::MAX));
        }
        endpoint.release(region);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::BulkSegment;

    fn descriptor(mode: BulkMode, access: BulkAccess) -> BulkDescriptor {
        let part = BulkSegment {
            address: 1000,
            length: 100,
            key: 5,
        };
        BulkDescriptor::one(mode, access, 0, part)
    }

    fn own(length: u64) -> MemoryRange {
        MemoryRange {
            region: RegionId(3),
            offset: 8,
            length,
        }
    }

    #[test]
    fn a_move_stays_within_the_descriptor_and_does_what_it_allows() {
        let read = descriptor(BulkMode::Fabric, BulkAccess::READ);
        let got = wanted(MoveDirection::Get, (&read, 10), own(90)).unwrap();
        assert_eq!((got.remote.address, got.remote.key), (1010, 5));
        assert_eq!((got.region, got.offset, got.len), (RegionId(3), 8, 90));
        for (offset, length) in [(11, 90), (0, 101), (u64::MAX, 2), (101, 0)] {
            assert!(wanted(MoveDirection::Get, (&read, offset), own(length)).is_none());
        }
        assert!(wanted(MoveDirection::Put, (&read, 0), own(1)).is_none());
        let write = descriptor(BulkMode::Fabric, BulkAccess::WRITE);
        assert!(wanted(MoveDirection::Put, (&write, 0), own(1)).is_some());
        assert!(wanted(MoveDirection::Get, (&write, 0), own(1)).is_none());
        let frames = descriptor(BulkMode::Frames, BulkAccess::BOTH);
        assert!(wanted(MoveDirection::Get, (&frames, 0), own(1)).is_none());
    }
}
