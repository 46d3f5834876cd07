//! A client's memory for bulk transfers: regions of one file that every server may map.
//!
//! In: sizes. Out: regions, and descriptors of them. The file goes to each server with the
//! handshake; it is far longer than what is used, and only what is allocated has pages. A server maps
//! what a descriptor names. So every server of a client could reach all of its payloads; servers
//! that share memory with a client are of the same machine and were handed the file by it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use weir_sys::shared_memory::SharedMemory;

use super::no_memory;
use crate::links::{MemoryRange, RegionId};
use crate::wire::{BulkAccess, BulkDescriptor, BulkMode, BulkSegment};
use crate::{DerCode, RpcError};

pub(super) const PAGE: u64 = 4096;
/// Pages of the file: as many as half of a descriptor's key can name.
const PAGES: u64 = 1 << 28;
/// Room to move an address by.
const SPARE: usize = 256;

#[derive(Debug)]
struct SharedRegion {
    memory: SharedMemory,
    first_page: u64,
    offset: usize,
    length: usize,
    /// Never used again, so that a server knows one region from the next in its place.
    registration: u32,
}

/// Regions by number.
#[derive(Debug)]
pub(super) struct SharedArena {
    file: OwnedFd,
    regions: Vec<Option<SharedRegion>>,
    /// Pages in use: their first, and how many.
    used: BTreeMap<u64, u64>,
    registrations: u32,
}

impl SharedArena {
    pub(super) fn new() -> Result<Self, RpcError> {
        Ok(Self {
            file: SharedMemory::file("weir-rpc-memory", PAGES * PAGE).map_err(no_memory)?,
            regions: Vec::new(),
            used: BTreeMap::new(),
            registrations: 0,
        })
    }

    /// The descriptor for a server.
    pub(super) fn file(&self) -> Result<OwnedFd, RpcError> {
        self.file.try_clone().map_err(RpcError::io("share memory"))
    }

    /// New memory, zeroed and present.
    pub(super) fn allocate(
        &mut self,
        bytes: usize,
        low_byte: Option<u8>,
    ) -> Result<RegionId, RpcError> {
        let spare = if low_byte.is_some() { SPARE } else { 0 };
        let whole = bytes.max(1).saturating_add(spare) as u64;
        let pages = whole.div_ceil(PAGE);
        let first_page = self
            .gap(pages)
            .ok_or_else(|| RpcError::new(DerCode::NoMemory, "no place in the shared memory"))?;
        let length = usize::try_from(pages * PAGE)
            .map_err(|_| RpcError::new(DerCode::NoMemory, "more than the address space"))?;
        let mut memory =
            SharedMemory::open(&self.file, first_page * PAGE, length).map_err(no_memory)?;
        memory.populate().map_err(no_memory)?;
        self.used.insert(first_page, pages);
        self.registrations = self.registrations.wrapping_add(1);
        let region = SharedRegion {
            memory,
            first_page,
            // The memory begins at a page.
            offset: usize::from(low_byte.unwrap_or(0)),
            length: bytes,
            registration: self.registrations,
        };
        let free = self.regions.iter().position(Option::is_none);
        let index = free.unwrap_or(self.regions.len());
        let id = u32::try_from(index)
            .map_err(|_| RpcError::new(DerCode::NoMemory, "too many buffers"))?;
        if free.is_none() {
            self.regions.push(None);
        }
        self.regions[index] = Some(region);
        Ok(RegionId(id))
    }

    /// Where so many pages are free.
    fn gap(&self, pages: u64) -> Option<u64> {
        let mut from = 0;
        for (&first, &count) in &self.used {
            if first - from >= pages {
                return Some(from);
            }
            from = first + count;
        }
        (PAGES - from >= pages).then_some(from)
    }

    /// Gives memory back; a server that still has it mapped reads zeros.
    pub(super) fn release(&mut self, region: RegionId) {
        let held = self.regions.get_mut(region.0 as usize);
        if let Some(mut held) = held.and_then(Option::take) {
            held.memory.discard();
            self.used.remove(&held.first_page);
        }
    }

    /// All of a region; empty for none.
    #[inline]
    pub(super) fn bytes(&mut self, region: RegionId) -> &mut [u8] {
        match self.regions.get_mut(region.0 as usize) {
            Some(Some(held)) => held.memory.slice_mut(held.offset, held.length),
            _ => &mut [],
        }
    }

    /// Descriptor by which a server reaches a part of a region. The key says which pages it maps.
    pub(super) fn describe(&self, range: MemoryRange, access: BulkAccess) -> BulkDescriptor {
        let mut registration = 0;
        let mut part = BulkSegment {
            length: range.length,
            ..BulkSegment::default()
        };
        if let Some(Some(held)) = self.regions.get(range.region.0 as usize) {
            registration = held.registration;
            part.address = range.offset.saturating_add(held.offset as u64);
            part.key = (held.first_page << 32) | (held.memory.len() as u64 / PAGE);
        }
        BulkDescriptor::one(BulkMode::Shared, access, registration, part)
    }
}
