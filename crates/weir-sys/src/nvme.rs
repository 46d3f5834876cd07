//! Questions to an NVMe drive over a descriptor of its generic device, or of its block device.
//!
//! In: descriptors. Out: a namespace's number, the drive's own counts. Not here: reads and writes.

#![expect(unsafe_code, reason = "ioctls of drives, which have no wrapper")]

use std::os::fd::{AsFd, AsRawFd as _};

use rustix::io::Errno;

/// `NVME_IOCTL_ID`.
const NUMBER: libc::Ioctl = 0x4E40;
/// `NVME_IOCTL_ADMIN_CMD`.
const MANAGE: libc::Ioctl = 0xC048_4E41;
const GET_LOG: u8 = 2;
const IDENTIFY: u8 = 6;
/// All namespaces of a drive.
const ALL: u32 = u32::MAX;
/// Bytes of the log of a drive's health.
const HEALTH: usize = 512;
/// Its words of four bytes, less one.
const HEALTH_WORDS: u32 = 127;
/// Bytes of what a drive says of a namespace.
const IDENTITY: usize = 4096;

/// A command of the management of drives, `struct nvme_passthru_cmd` of the kernel.
#[repr(C)]
#[derive(Debug, Default)]
struct ManagementCommand {
    opcode: u8,
    flags: u8,
    unused: u16,
    namespace: u32,
    words2: [u32; 2],
    metadata: u64,
    memory: u64,
    metadata_length: u32,
    length: u32,
    words10: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<ManagementCommand>() == 72);

fn answer(result: i32) -> Result<u32, Errno> {
    u32::try_from(result).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}

/// Number of the namespace behind a descriptor.
///
/// # Errors
/// The kernel's, where it is of no namespace.
pub fn namespace_number(file: impl AsFd) -> Result<u32, Errno> {
    // SAFETY: the call has no argument.
    answer(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), NUMBER) })
}

/// A page that the drive behind a descriptor fills.
fn page<const N: usize>(
    file: impl AsFd,
    opcode: u8,
    namespace: u32,
    word10: u32,
) -> Result<[u8; N], Errno> {
    let mut page = [0_u8; N];
    let mut command = ManagementCommand {
        opcode,
        namespace,
        memory: page.as_mut_ptr().expose_provenance() as u64,
        length: u32::try_from(N).map_err(|_| Errno::INVAL)?,
        words10: [word10, 0, 0, 0, 0, 0],
        ..ManagementCommand::default()
    };
    // SAFETY: the command names the page, which outlives the call, with its length.
    let result = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), MANAGE, &raw mut command) };
    match answer(result)? {
        0 => Ok(page),
        _ => Err(Errno::IO),
    }
}

/// Number of 8 bytes at a place of a page.
fn count(page: &[u8], at: usize) -> u64 {
    let bytes = page[at..].first_chunk();
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Blocks of a namespace, as its drive says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceBlocks {
    /// All of them.
    pub all: u64,
    /// Those that hold something; all where the drive does not count them.
    pub used: u64,
    /// Others are read as this byte, where the drive says so.
    pub empty_reads_as: Option<u8>,
}

impl NamespaceBlocks {
    /// Asks the drive of the namespace behind a descriptor.
    ///
    /// # Errors
    /// The kernel's; `EIO` where the drive refused.
    pub fn ask(file: impl AsFd) -> Result<Self, Errno> {
        let number = namespace_number(&file)?;
        let identity: [u8; IDENTITY] = page(&file, IDENTIFY, number, 0)?;
        Ok(Self::read(&identity))
    }

    fn read(identity: &[u8; IDENTITY]) -> Self {
        Self {
            all: count(identity, 0),
            used: count(identity, 16),
            empty_reads_as: match identity[33] & 7 {
                1 => Some(0),
                2 => Some(0xFF),
                _ => None,
            },
        }
    }
}

/// A drive's own account of its health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveHealth {
    /// Degrees Celsius of the whole drive.
    pub celsius: i32,
    /// Read commands that it completed for its host since it was made.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
}

impl DriveHealth {
    /// Asks the drive behind a descriptor.
    ///
    /// # Errors
    /// The kernel's; `EIO` where the drive refused.
    pub fn ask(file: impl AsFd) -> Result<Self, Errno> {
        let log = page(&file, GET_LOG, ALL, HEALTH_WORDS << 16 | 2)?;
        Ok(Self::read(&log))
    }

    fn read(log: &[u8; HEALTH]) -> Self {
        Self {
            celsius: i32::from(u16::from_le_bytes([log[1], log[2]])) - 273,
            // Counts have 16 bytes, of which no drive fills more than 8.
            reads: count(log, 64),
            writes: count(log, 80),
        }
    }
}

/// The status of a command in words, with its numbers.
pub fn status_text(status: u16) -> String {
    let (kind, code) = (status >> 8 & 7, status & 0xFF);
    let words = match (kind, code) {
        (0, 0x01) => "invalid opcode",
        (0, 0x02) => "invalid field",
        (0, 0x04) => "data transfer error",
        (0, 0x06) => "internal error",
        (0, 0x07) => "abort requested",
        (0, 0x0B) => "invalid namespace",
        (0, 0x20) => "namespace is write protected",
        (0, 0x80) => "block out of range",
        (0, 0x81) => "capacity exceeded",
        (0, 0x82) => "namespace not ready",
        (2, 0x80) => "write fault",
        (2, 0x81) => "unrecovered read error",
        (2, 0x86) => "access denied",
        (2, 0x87) => "block deallocated or never written",
        (3, _) => "an error of the path to it",
        _ => "an error",
    };
    format!("{words} (status {kind:x}h/{code:02x}h)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_health_log_is_read_by_its_places() {
        let mut log = [0; HEALTH];
        log[1..3].copy_from_slice(&320_u16.to_le_bytes());
        log[64..72].copy_from_slice(&7_000_000_001_u64.to_le_bytes());
        log[80] = 5;
        let expected = DriveHealth {
            celsius: 47,
            reads: 7_000_000_001,
            writes: 5,
        };
        assert_eq!(DriveHealth::read(&log), expected);
    }

    #[test]
    fn blocks_in_use_are_read_from_the_page_of_a_namespace() {
        let mut page = [0; IDENTITY];
        // Size, capacity and utilisation.
        for (at, blocks) in [(0, 4_194_304_u64), (8, 4_000_000), (16, 1_048_576)] {
            page[at..at + 8].copy_from_slice(&blocks.to_le_bytes());
        }
        for (feature, byte) in [(0, None), (0x19, Some(0)), (2, Some(0xFF)), (7, None)] {
            page[33] = feature;
            let expected = NamespaceBlocks {
                all: 4_194_304,
                used: 1_048_576,
                empty_reads_as: byte,
            };
            assert_eq!(NamespaceBlocks::read(&page), expected);
        }
    }

    #[test]
    fn a_status_is_told_in_words_and_numbers() {
        assert_eq!(status_text(0x281), "unrecovered read error (status 2h/81h)");
        // The bit that forbids another try is none of the status.
        assert_eq!(status_text(0x4080), "block out of range (status 0h/80h)");
        assert_eq!(status_text(0x7AA), "an error (status 7h/aah)");
    }

    #[test]
    fn a_file_has_no_namespace() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(namespace_number(&file), Err(Errno::NOTTY));
        assert_eq!(DriveHealth::ask(&file), Err(Errno::NOTTY));
        assert_eq!(NamespaceBlocks::ask(&file), Err(Errno::NOTTY));
    }
}
