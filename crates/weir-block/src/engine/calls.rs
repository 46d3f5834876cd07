//! Calls that engines share: memory of an operation, discards, flushes, the cache of a device.
//!
//! In: an operation and its target. Out: bytes or a negative errno, the form in which engines
//! answer. Not here: reads and writes, in which engines differ.

#![expect(
    unsafe_code,
    reason = "memory named by address, and ioctls that rustix does not wrap"
)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Setter, ioctl, opcode};
use weir_schema::Lifetime;

use super::OpenTarget;
use crate::op::{BlockOp, Verb};

/// `fcntl(2)` for the hint of an inode.
const F_SET_RW_HINT: libc::c_int = 1024 + 12;
const BLKDISCARD: rustix::ioctl::Opcode = opcode::none(0x12, 119);
const BLKFLSBUF: rustix::ioctl::Opcode = opcode::none(0x12, 97);

/// The answer to an operation.
#[inline]
pub(super) fn answer(result: Result<usize, Errno>) -> i64 {
    match result {
        Ok(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
        Err(errno) => -i64::from(errno.raw_os_error()),
    }
}

/// The memory of an operation.
#[inline]
pub(super) fn memory<'a>(op: BlockOp) -> &'a mut [u8] {
    let (start, length) = (op.buffer.0, op.length as usize);
    // SAFETY: a source cuts operations from the slots of its buffers, which are mapped, always
    // initialised, as long as the operation says, and outlive the worker's loop; the worker's
    // thread alone uses a slot, and only for the operation in it.
    unsafe { std::slice::from_raw_parts_mut(start, length) }
}

/// Carries out what is neither read nor write, inside the call.
#[cold]
#[inline(never)]
pub(super) fn other(target: &OpenTarget, op: &BlockOp) -> i64 {
    let (done, length) = match op.verb {
        Verb::Sync => (flush(target), 0),
        Verb::DataSync => (flush_data(target), 0),
        Verb::RangeSync => (sync_range(target, op), 0),
        Verb::Trim => (discard(target, op.offset, u64::from(op.length)), op.length),
        Verb::Read | Verb::Write => (Err(Errno::INVAL), 0),
    };
    answer(done.map(|()| length as usize))
}

/// Discards a range: on a device by its own command, in a file by a hole.
fn discard(target: &OpenTarget, offset: u64, length: u64) -> Result<(), Errno> {
    let file = target.file.as_fd();
    if target.is_block {
        // SAFETY: BLKDISCARD reads two 64-bit numbers from its argument and writes no memory.
        let request = unsafe { Setter::<BLKDISCARD, [u64; 2]>::new([offset, length]) };
        // SAFETY: as above; the descriptor is open and owned by the target.
        return unsafe { ioctl(file, request) };
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, hole, offset, length)
}

/// `fsync` of the C library, as reads and writes are.
fn flush(target: &OpenTarget) -> Result<(), Errno> {
    // SAFETY: the call takes an open descriptor, and touches no memory of ours.
    checked(unsafe { libc::fsync(target.file.as_raw_fd()) })
}

/// `fdatasync` of the C library, as reads and writes are.
fn flush_data(target: &OpenTarget) -> Result<(), Errno> {
    // SAFETY: the call takes an open descriptor, and touches no memory of ours.
    checked(unsafe { libc::fdatasync(target.file.as_raw_fd()) })
}

/// Flushes a range of the page cache.
fn sync_range(target: &OpenTarget, op: &BlockOp) -> Result<(), Errno> {
    let file = target.file.as_raw_fd();
    let (start, length) = (op.offset.cast_signed(), i64::from(op.range));
    // SAFETY: the call takes numbers and an open descriptor, and touches no memory of ours.
    let result = unsafe { libc::sync_file_range(file, start, length, u32::from(op.range_flags)) };
    checked(result)
}

fn checked(result: libc::c_int) -> Result<(), Errno> {
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Tells the kernel how long data written to this file will stay.
///
/// # Errors
/// The kernel or the file system knows no such hint.
pub(crate) fn set_lifetime(file: BorrowedFd<'_>, lifetime: Lifetime) -> Result<(), Errno> {
    let hint: u64 = match lifetime {
        Lifetime::None => 1,
        Lifetime::Short => 2,
        Lifetime::Medium => 3,
        Lifetime::Long => 4,
        Lifetime::Extreme => 5,
    };
    // SAFETY: the call reads one 64-bit number, which outlives it.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), F_SET_RW_HINT, &raw const hint) };
    checked(result)
}

/// Bounds the segments of a TCP socket.
pub(super) fn set_segment(socket: &OwnedFd, bytes: u32) -> Result<(), Errno> {
    let value = bytes.cast_signed();
    let length = u32::try_from(size_of_val(&value)).unwrap_or(0);
    let at = (&raw const value).cast();
    let fd = socket.as_raw_fd();
    // SAFETY: the kernel reads the option's number, which lives over the call.
    let set = unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, at, length) };
    checked(set)
}

/// Flushes data and metadata of an open target.
pub(crate) fn sync_all(target: &OpenTarget) -> Result<(), Errno> {
    rustix::fs::fsync(&target.file)
}

/// Drops the page cache of a whole block device, which needs privilege.
pub(crate) fn drop_device_cache(file: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: BLKFLSBUF takes no argument.
    let request = unsafe { NoArg::<BLKFLSBUF>::new() };
    // SAFETY: as above; the descriptor is borrowed for the call.
    unsafe { ioctl(file, request) }
}
