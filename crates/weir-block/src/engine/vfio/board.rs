//! The two kinds of drive: one behind VFIO, and one that a thread of this process plays.
//!
//! In: memory. Out: registers, and memory that the drive reaches under an address of its own. Not here: commands.

#![expect(
    unsafe_code,
    reason = "memory given by address, which a drive reads and writes"
)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_sys::shared_memory::{SharedMemory, SharedWords};
use weir_sys::vfio::VfioDevice;

use super::keeper::Keeper;
use super::simulated::SimulatedDrive;
use crate::engine::SlotMemory;

pub(super) const PAGE: u64 = 4096;
/// The same as a length.
pub(super) const PAGE_LENGTH: usize = 4096;
/// The first address of memory for drives. Those below have a window for interrupts.
const FIRST: u64 = 1 << 32;

/// Something that has a drive's registers and reaches memory.
#[derive(Debug)]
pub(super) enum Board {
    Real {
        device: VfioDevice,
        /// Gives the drive back once the device is closed, which comes first.
        _keeper: Keeper,
    },
    Simulated(SimulatedDrive),
}

impl Board {
    pub(super) fn registers(&self) -> io::Result<Arc<SharedMemory>> {
        match self {
            Self::Real { device, .. } => device.registers().map(Arc::new).map_err(io::Error::other),
            Self::Simulated(drive) => Ok(drive.registers()),
        }
    }

    /// # Safety
    /// As [`VfioDevice::map`].
    unsafe fn map(&self, memory: *mut u8, bytes: u64, at: u64) -> io::Result<()> {
        match self {
            // SAFETY: the caller's promise.
            Self::Real { device, .. } => unsafe { device.map(memory, bytes, at) },
            Self::Simulated(drive) => {
                drive.map(memory, bytes, at);
                Ok(())
            }
        }
    }

    fn unmap(&self, at: u64, bytes: u64) {
        match self {
            // A board that is gone reaches nothing any more.
            Self::Real { device, .. } => drop(device.unmap(at, bytes)),
            Self::Simulated(drive) => drive.unmap(at),
        }
    }
}

/// Addresses that a drive has for memory, each given out once.
#[derive(Debug)]
pub(super) struct Addresses(AtomicU64);

impl Default for Addresses {
    fn default() -> Self {
        Self(AtomicU64::new(FIRST))
    }
}

/// Memory that a drive reaches, until this is dropped. The drive must not work on it then.
#[derive(Debug)]
pub(super) struct Reached {
    board: Arc<Board>,
    /// Its first address, for the drive.
    pub(super) at: u64,
    bytes: u64,
}

impl Reached {
    /// # Safety
    /// As [`VfioDevice::map`], until this is dropped.
    unsafe fn new(
        board: &Arc<Board>,
        addresses: &Addresses,
        memory: *mut u8,
        bytes: u64,
    ) -> io::Result<Self> {
        let at = addresses.0.fetch_add(bytes + PAGE, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { board.map(memory, bytes, at) }?;
        Ok(Self {
            board: Arc::clone(board),
            at,
            bytes,
        })
    }

    /// Memory of a worker's slots; the drive's address of its first byte.
    pub(super) fn slots(
        board: &Arc<Board>,
        addresses: &Addresses,
        memory: SlotMemory,
    ) -> io::Result<(Self, u64)> {
        let first = memory.base.addr() as u64;
        let begin = first / PAGE * PAGE;
        let bytes = memory.stride as u64 * u64::from(memory.slots);
        let end = (first + bytes).next_multiple_of(PAGE);
        let within = first - begin;
        let start = memory
            .base
            .wrapping_byte_sub(usize::try_from(within).unwrap_or(0));
        // SAFETY: the buffers outlive the engine, which keeps this (see `run_engine`). Whole pages around them may
        // be reached; commands name bytes of the buffers alone.
        let reached = unsafe { Self::new(board, addresses, start, end - begin) }?;
        let at = reached.at + within;
        Ok((reached, at))
    }
}

impl Drop for Reached {
    fn drop(&mut self) {
        self.board.unmap(self.at, self.bytes);
    }
}

/// Words that weir and a drive share.
#[derive(Debug)]
pub(super) struct DriveMemory {
    reached: Reached,
    pub(super) words: SharedWords<AtomicU64>,
}

impl DriveMemory {
    /// Zeros, so many bytes at least.
    pub(super) fn new(board: &Arc<Board>, addresses: &Addresses, bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(PAGE_LENGTH);
        let (mut memory, _) = SharedMemory::create("weir-nvme", bytes).map_err(io::Error::other)?;
        memory.populate().map_err(io::Error::other)?;
        let start = std::ptr::with_exposed_provenance_mut(memory.address());
        // SAFETY: the mapping is dropped with the words, behind `reached`; words are atomic.
        let reached = unsafe { Reached::new(board, addresses, start, bytes as u64) }?;
        let words = SharedWords::at(&Arc::new(memory), 0, bytes / size_of::<u64>());
        Ok(Self { reached, words })
    }

    /// Its first address, for the drive.
    pub(super) fn at(&self) -> u64 {
        self.reached.at
    }
}
