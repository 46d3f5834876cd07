//! Windows: parts of a client's memory that a server has mapped.
//!
//! In: the client's file, and descriptors, none of which is believed. Out: copies from and to what
//! they name. A region is mapped when it is first named, and kept for the calls that follow.

use std::os::fd::OwnedFd;

use weir_sys::shared_memory::SharedMemory;

use super::arena::PAGE;
use crate::RpcError;
use crate::links::MoveDirection;
use crate::wire::{BulkAccess, BulkDescriptor, BulkMode, BulkSegment};

/// Regions that are kept mapped; a client needs one or two for each session.
const MOST: usize = 64;

/// One client's memory.
#[derive(Debug)]
pub(super) struct ClientWindows {
    file: OwnedFd,
    /// By registration and key, the last one used at the end.
    mapped: Vec<((u32, u64), SharedMemory)>,
}

impl ClientWindows {
    pub(super) fn new(file: OwnedFd) -> Self {
        Self {
            file,
            mapped: Vec::new(),
        }
    }

    /// Copies between own memory and a part of what a descriptor names.
    pub(super) fn copy(
        &mut self,
        direction: MoveDirection,
        (remote, offset): (&BulkDescriptor, u64),
        own: &mut [u8],
    ) -> Result<(), RpcError> {
        let access = match direction {
            MoveDirection::Get => BulkAccess::READ,
            MoveDirection::Put => BulkAccess::WRITE,
        };
        let (at, window) = self.window(remote, access, offset, own.len() as u64)?;
        match direction {
            MoveDirection::Get => window.copy_out(at, own),
            MoveDirection::Put => window.copy_in(own, at),
        }
        Ok(())
    }

    /// The mapping of what a descriptor names, and where in it the part begins.
    fn window(
        &mut self,
        descriptor: &BulkDescriptor,
        access: BulkAccess,
        offset: u64,
        length: u64,
    ) -> Result<(usize, &SharedMemory), RpcError> {
        let wrong = |what| Err(RpcError::protocol(format!("a descriptor {what}")));
        let &[BulkSegment { address, key, .. }] = descriptor.segments() else {
            return wrong("of shared memory has several parts");
        };
        if descriptor.mode != BulkMode::Shared {
            return wrong("is not of shared memory");
        }
        if !descriptor.access.allows(access) {
            return wrong("does not allow this access");
        }
        if !descriptor.contains(offset, length) {
            return wrong("is shorter than the transfer");
        }
        let (first, pages) = (key >> 32, key & u64::from(u32::MAX));
        // The descriptor's end lies within 64 bits.
        let at = address + offset;
        if at + length > pages * PAGE {
            return wrong("goes beyond its region");
        }
        let name = (descriptor.registration, key);
        match self.mapped.iter().rposition(|(known, _)| *known == name) {
            Some(place) if place + 1 < self.mapped.len() => {
                let last = self.mapped.len() - 1;
                self.mapped.swap(place, last);
            }
            Some(_) => {}
            None => {
                let bytes = usize::try_from(pages * PAGE).unwrap_or(usize::MAX);
                let memory = SharedMemory::open(&self.file, first * PAGE, bytes)
                    .map_err(|error| RpcError::protocol(error.to_string()))?;
                if self.mapped.len() == MOST {
                    self.mapped.remove(0);
                }
                self.mapped.push((name, memory));
            }
        }
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        match self.mapped.last() {
            Some((_, memory)) => Ok((at, memory)),
            None => wrong("cannot be mapped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::arena::SharedArena;
    use super::MoveDirection::{Get, Put};
    use super::*;
    use crate::links::MemoryRange;

    #[test]
    fn a_server_reads_and_writes_what_a_descriptor_names_and_nothing_else() {
        let mut arena = SharedArena::new().unwrap();
        let mut windows = ClientWindows::new(arena.file().unwrap());
        let spare = arena.allocate(10_000, None).unwrap();
        let region = arena.allocate(10_000, Some(3)).unwrap();
        assert_eq!(arena.bytes(region).as_ptr().addr() & 255, 3);
        arena.bytes(region)[5_000..5_004].copy_from_slice(b"abcd");
        let range = MemoryRange::new(region, 4_990, 100);
        let both = arena.describe(range, BulkAccess::BOTH);
        let mut out = [0; 4];
        windows.copy(Get, (&both, 10), &mut out).unwrap();
        assert_eq!(&out, b"abcd");
        windows
            .copy(Put, (&both, 11), &mut b"xy".to_owned())
            .unwrap();
        assert_eq!(&arena.bytes(region)[5_000..5_004], b"axyd");
        assert_eq!(windows.mapped.len(), 1);
        let refused = |windows: &mut ClientWindows, descriptor: &BulkDescriptor, offset| {
            let error = windows
                .copy(Put, (descriptor, offset), &mut b"xy".to_owned())
                .unwrap_err();
            error.message.into_owned()
        };
        let read_only = arena.describe(range, BulkAccess::READ);
        assert!(refused(&mut windows, &read_only, 0).contains("does not allow"));
        assert!(refused(&mut windows, &both, 99).contains("shorter than the transfer"));
        let whole = both.segments()[0];
        for (part, says) in [
            (
                BulkSegment {
                    address: 12_287,
                    ..whole
                },
                "beyond its region",
            ),
            (
                BulkSegment {
                    key: whole.key | 0xffff_ffff,
                    ..whole
                },
                "were to be",
            ),
            (
                BulkSegment {
                    key: u64::MAX,
                    ..whole
                },
                "were to be",
            ),
        ] {
            let forged = BulkDescriptor::one(BulkMode::Shared, BulkAccess::BOTH, 9, part);
            let why = refused(&mut windows, &forged, 0);
            assert!(why.contains(says), "{part:?}: {why}");
        }
        arena.release(spare);
        assert_eq!(
            arena.allocate(1, None).unwrap(),
            spare,
            "places are used again"
        );
    }

    #[test]
    fn memory_that_was_given_back_reads_as_zero_and_its_place_is_another_region() {
        let mut arena = SharedArena::new().unwrap();
        let mut windows = ClientWindows::new(arena.file().unwrap());
        let region = arena.allocate(8, None).unwrap();
        arena.bytes(region).fill(9);
        let range = MemoryRange {
            region,
            offset: 0,
            length: 8,
        };
        let old = arena.describe(range, BulkAccess::BOTH);
        let mut out = [1; 8];
        windows.copy(Get, (&old, 0), &mut out).unwrap();
        arena.release(region);
        windows.copy(Get, (&old, 0), &mut out).unwrap();
        assert_eq!(out, [0; 8]);
        assert!(arena.bytes(region).is_empty());
        let again = arena.allocate(8, None).unwrap();
        let new = arena.describe(
            MemoryRange {
                region: again,
                ..range
            },
            BulkAccess::BOTH,
        );
        assert_ne!(new.registration, old.registration);
    }

    #[test]
    fn few_regions_are_kept_mapped() {
        let mut arena = SharedArena::new().unwrap();
        let mut windows = ClientWindows::new(arena.file().unwrap());
        for _ in 0..MOST + 10 {
            let region = arena.allocate(8, None).unwrap();
            let range = MemoryRange {
                region,
                offset: 0,
                length: 8,
            };
            let descriptor = arena.describe(range, BulkAccess::READ);
            windows.copy(Get, (&descriptor, 0), &mut [0; 8]).unwrap();
        }
        assert_eq!(windows.mapped.len(), MOST);
    }
}
