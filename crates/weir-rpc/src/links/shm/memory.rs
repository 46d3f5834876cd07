//! The memory of a link: a client's is shared with its servers, a server's own is nobody else's.

use super::arena::SharedArena;
use crate::RpcError;
use crate::links::stream::RegionTable;
use crate::links::{LinkSide, MemoryRange, RegionId};
use crate::wire::{BulkAccess, BulkDescriptor};

#[derive(Debug)]
pub(super) enum LinkMemory {
    Own(RegionTable),
    Shared(SharedArena),
}

impl Default for LinkMemory {
    fn default() -> Self {
        Self::Own(RegionTable::default())
    }
}

impl LinkMemory {
    pub(super) fn new(side: LinkSide) -> Result<Self, RpcError> {
        Ok(match side {
            LinkSide::Client => Self::Shared(SharedArena::new()?),
            LinkSide::Server => Self::default(),
        })
    }

    pub(super) fn allocate(
        &mut self,
        bytes: usize,
        low_byte: Option<u8>,
    ) -> Result<RegionId, RpcError> {
        match self {
            Self::Own(own) => own.allocate(bytes, low_byte),
            Self::Shared(arena) => arena.allocate(bytes, low_byte),
        }
    }

    pub(super) fn allocate_many(
        &mut self,
        count: usize,
        bytes: usize,
        low_byte: Option<u8>,
    ) -> Result<Vec<RegionId>, RpcError> {
        match self {
            Self::Own(own) => own.allocate_many(count, bytes, low_byte),
            Self::Shared(arena) => (0..count)
                .map(|_| arena.allocate(bytes, low_byte))
                .collect(),
        }
    }

    pub(super) fn release(&mut self, region: RegionId) {
        match self {
            Self::Own(own) => own.release(region),
            Self::Shared(arena) => arena.release(region),
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self, region: RegionId) -> &mut [u8] {
        match self {
            Self::Own(own) => own.bytes(region),
            Self::Shared(arena) => arena.bytes(region),
        }
    }

    /// A part of a region; empty where it does not lie within.
    #[inline]
    pub(super) fn part(&mut self, range: MemoryRange) -> &mut [u8] {
        let bytes = self.bytes(range.region);
        let part = range.bounds().and_then(|bounds| bytes.get_mut(bounds));
        part.unwrap_or(&mut [])
    }

    /// Descriptor by which the other side reaches a part. A server's memory it cannot reach.
    pub(super) fn describe(&self, range: MemoryRange, access: BulkAccess) -> BulkDescriptor {
        match self {
            Self::Shared(arena) => arena.describe(range, access),
            Self::Own(_) => BulkDescriptor::of_frames(range.offset, range.length, access),
        }
    }
}
