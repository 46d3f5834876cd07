//! A PCI device that a program has for itself, by the kernel's VFIO: its registers, and memory that it may reach.
//!
//! In: a device that [`crate::takeover`] has brought to the driver `vfio-pci`. Out: its registers as shared memory.
//! Not here: what the registers mean.

#![expect(unsafe_code, reason = "ioctls of VFIO, which have no wrapper")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{pread, pwrite};

use crate::error::SysError;
use crate::shared_memory::SharedMemory;

const SET_IOMMU: libc::Ioctl = 0x3B66;
const GROUP_STATUS: libc::Ioctl = 0x3B67;
const SET_CONTAINER: libc::Ioctl = 0x3B68;
const DEVICE_FD: libc::Ioctl = 0x3B6A;
const REGION_INFO: libc::Ioctl = 0x3B6C;
const MAP_DMA: libc::Ioctl = 0x3B71;
const UNMAP_DMA: libc::Ioctl = 0x3B72;
/// `VFIO_TYPE1v2_IOMMU`.
const TYPE1: libc::c_ulong = 3;
/// Every device of the group is without a driver of the kernel.
const VIABLE: u32 = 1;
const READ_AND_WRITE: u32 = 3;
/// Index of the first memory region.
const REGISTERS: u32 = 0;
/// Index of the PCI configuration.
const CONFIGURATION: u32 = 7;
/// Offset of the command in the configuration, and its bits for access to registers and for DMA.
const COMMAND: (u64, u16) = (4, 1 << 1 | 1 << 2);

#[repr(C)]
#[derive(Default)]
struct GroupStatus {
    size: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct Region {
    size: u32,
    flags: u32,
    index: u32,
    more: u32,
    bytes: u64,
    offset: u64,
}

#[repr(C)]
#[derive(Default)]
struct Map {
    size: u32,
    flags: u32,
    address: u64,
    device_address: u64,
    bytes: u64,
}

#[repr(C)]
#[derive(Default)]
struct Unmap {
    size: u32,
    flags: u32,
    device_address: u64,
    bytes: u64,
}

const fn size<T>() -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "a structure of a call")]
    let size = size_of::<T>() as u32;
    size
}

fn answer(result: i32) -> io::Result<i32> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// An open device. The kernel resets it when it is dropped.
#[derive(Debug)]
pub struct VfioDevice {
    // The device goes before its group, and the group before the container.
    device: OwnedFd,
    _group: OwnedFd,
    container: OwnedFd,
}

impl VfioDevice {
    /// Opens the device of this address, alone in its group, and lets it reach memory.
    ///
    /// # Errors
    /// The kernel's: the group is open elsewhere, or has a device with another driver.
    pub fn open(group: u32, address: &str) -> io::Result<Self> {
        let open =
            |path: &str| rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        let container = open("/dev/vfio/vfio")?;
        let group = open(&format!("/dev/vfio/{group}"))?;
        let mut status = GroupStatus {
            size: size::<GroupStatus>(),
            ..GroupStatus::default()
        };
        // SAFETY: the call fills the structure, whose size it has.
        answer(unsafe { libc::ioctl(group.as_raw_fd(), GROUP_STATUS, &raw mut status) })?;
        if status.flags & VIABLE == 0 {
            let why = "another device of its IOMMU group has a driver of the kernel";
            return Err(io::Error::other(why));
        }
        let fd = container.as_raw_fd();
        // SAFETY: the call reads the number.
        answer(unsafe { libc::ioctl(group.as_raw_fd(), SET_CONTAINER, &raw const fd) })?;
        // SAFETY: the argument is a number.
        answer(unsafe { libc::ioctl(fd, SET_IOMMU, TYPE1) })?;
        let name = CString::new(address)?;
        // SAFETY: the call reads a text with its end.
        let device = answer(unsafe { libc::ioctl(group.as_raw_fd(), DEVICE_FD, name.as_ptr()) })?;
        // SAFETY: the descriptor is new, and nobody else's.
        let device = unsafe { OwnedFd::from_raw_fd(device) };
        let opened = Self {
            device,
            _group: group,
            container,
        };
        let configuration = opened.region(CONFIGURATION)?;
        let mut word = [0; 2];
        let at = configuration.offset + COMMAND.0;
        pread(&opened.device, &mut word, at)?;
        let word = u16::from_le_bytes(word) | COMMAND.1;
        pwrite(&opened.device, &word.to_le_bytes(), at)?;
        Ok(opened)
    }

    fn region(&self, index: u32) -> io::Result<Region> {
        let mut region = Region {
            size: size::<Region>(),
            index,
            ..Region::default()
        };
        // SAFETY: the call fills the structure, whose size it has.
        answer(unsafe { libc::ioctl(self.device.as_raw_fd(), REGION_INFO, &raw mut region) })?;
        Ok(region)
    }

    /// Its registers, the first memory region.
    ///
    /// # Errors
    /// The region cannot be mapped.
    pub fn registers(&self) -> Result<SharedMemory, SysError> {
        let refused = |source| SysError::Refused {
            what: "find the device's registers".to_owned(),
            source,
            remedy: None,
        };
        let region = self.region(REGISTERS).map_err(refused)?;
        let length = usize::try_from(region.bytes).unwrap_or(usize::MAX);
        SharedMemory::map(&self.device, region.offset, length)
    }

    /// Lets the device read and write memory, under an address of its own. All three are multiples of a page.
    ///
    /// # Safety
    /// The memory stays until [`VfioDevice::unmap`], and nothing relies on what it holds while the device may write.
    ///
    /// # Errors
    /// The kernel's: it is not mapped here, too much is locked, or the device cannot reach the address.
    pub unsafe fn map(&self, memory: *mut u8, bytes: u64, device_address: u64) -> io::Result<()> {
        let map = Map {
            size: size::<Map>(),
            flags: READ_AND_WRITE,
            address: memory.expose_provenance() as u64,
            device_address,
            bytes,
        };
        // SAFETY: the call reads the structure; the caller vouches for the memory.
        answer(unsafe { libc::ioctl(self.container.as_raw_fd(), MAP_DMA, &raw const map) })
            .map(drop)
    }

    /// Takes memory from the device again.
    ///
    /// # Errors
    /// The kernel's.
    pub fn unmap(&self, device_address: u64, bytes: u64) -> io::Result<()> {
        let mut unmap = Unmap {
            size: size::<Unmap>(),
            device_address,
            bytes,
            ..Unmap::default()
        };
        // SAFETY: the call reads and fills the structure.
        answer(unsafe { libc::ioctl(self.container.as_raw_fd(), UNMAP_DMA, &raw mut unmap) })
            .map(drop)
    }
}
