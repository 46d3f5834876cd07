//! Reads and writes by the functions of the C library: a library that is loaded before it
//! (`LD_PRELOAD`) can take them over.
//!
//! In: an operation and its target. Out: bytes or a negative errno, the form in which engines
//! answer. Not here: flushes and discards ([`super::calls`]).

#![expect(unsafe_code, reason = "calls on memory given by address")]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use libc::{c_int, off_t, ssize_t};

use super::OpenTarget;
use crate::op::BlockOp;

/// The memory of several operations that are carried out by one call. Keeps its room.
pub(super) struct Pieces(Vec<libc::iovec>);

impl Pieces {
    /// None, with room for so many.
    pub(super) fn with_room(room: usize) -> Self {
        Self(Vec::with_capacity(room))
    }

    /// The memory of these operations instead of those before.
    pub(super) fn set<'a>(&mut self, ops: impl Iterator<Item = &'a BlockOp>) {
        self.0.clear();
        self.0.extend(ops.map(piece));
    }

    fn count(&self) -> c_int {
        c_int::try_from(self.0.len()).unwrap_or(c_int::MAX)
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pieces").field(&self.0.len()).finish()
    }
}

/// The memory of an operation, as one piece.
fn piece(op: &BlockOp) -> libc::iovec {
    libc::iovec {
        iov_base: op.buffer.0.cast(),
        iov_len: op.length as usize,
    }
}

#[inline]
fn file(target: &OpenTarget) -> RawFd {
    target.file.as_raw_fd()
}

#[inline]
fn offset(op: &BlockOp) -> off_t {
    op.offset.cast_signed()
}

#[inline]
fn answer(result: ssize_t) -> i64 {
    if result < 0 {
        last_error()
    } else {
        result as i64
    }
}

#[cold]
#[inline(never)]
fn last_error() -> i64 {
    let errno = io::Error::last_os_error().raw_os_error();
    -i64::from(errno.unwrap_or(libc::EIO))
}

/// `lseek` to an offset; the offset or a negative errno.
#[inline]
pub(super) fn seek(target: &OpenTarget, to: u64) -> i64 {
    // SAFETY: the call takes numbers and touches no memory of ours.
    let at = unsafe { libc::lseek(file(target), to.cast_signed(), libc::SEEK_SET) };
    if at < 0 { last_error() } else { at }
}

// SAFETY of the calls below: a source cuts operations from the slots of its buffers, which are
// mapped, as long as the operation says, and outlive the worker's loop; the worker's thread alone
// uses a slot, and only for the operation in it. Pieces live over the call.

/// `read` at the file's own position.
#[inline]
pub(super) fn read(target: &OpenTarget, op: &BlockOp) -> i64 {
    // SAFETY: as above.
    answer(unsafe { libc::read(file(target), op.buffer.0.cast(), op.length as usize) })
}

/// `write` at the file's own position.
#[inline]
pub(super) fn write(target: &OpenTarget, op: &BlockOp) -> i64 {
    // SAFETY: as above.
    answer(unsafe { libc::write(file(target), op.buffer.0.cast(), op.length as usize) })
}

/// `pread`.
#[inline]
pub(super) fn pread(target: &OpenTarget, op: &BlockOp) -> i64 {
    let (memory, length) = (op.buffer.0.cast(), op.length as usize);
    // SAFETY: as above.
    answer(unsafe { libc::pread(file(target), memory, length, offset(op)) })
}

/// `pwrite`.
#[inline]
pub(super) fn pwrite(target: &OpenTarget, op: &BlockOp) -> i64 {
    let (memory, length) = (op.buffer.0.cast(), op.length as usize);
    // SAFETY: as above.
    answer(unsafe { libc::pwrite(file(target), memory, length, offset(op)) })
}

/// `preadv` of one piece.
#[inline]
pub(super) fn preadv(target: &OpenTarget, op: &BlockOp) -> i64 {
    let piece = piece(op);
    // SAFETY: as above.
    answer(unsafe { libc::preadv(file(target), &raw const piece, 1, offset(op)) })
}

/// `pwritev` of one piece.
#[inline]
pub(super) fn pwritev(target: &OpenTarget, op: &BlockOp) -> i64 {
    let piece = piece(op);
    // SAFETY: as above.
    answer(unsafe { libc::pwritev(file(target), &raw const piece, 1, offset(op)) })
}

/// `preadv2` of one piece.
#[inline]
pub(super) fn preadv2(target: &OpenTarget, op: &BlockOp, flags: c_int) -> i64 {
    let piece = piece(op);
    // SAFETY: as above.
    answer(unsafe { libc::preadv2(file(target), &raw const piece, 1, offset(op), flags) })
}

/// `pwritev2` of one piece.
#[inline]
pub(super) fn pwritev2(target: &OpenTarget, op: &BlockOp, flags: c_int) -> i64 {
    let piece = piece(op);
    // SAFETY: as above.
    answer(unsafe { libc::pwritev2(file(target), &raw const piece, 1, offset(op), flags) })
}

/// `readv` at the file's own position.
pub(super) fn readv(target: &OpenTarget, pieces: &Pieces) -> i64 {
    // SAFETY: as above.
    answer(unsafe { libc::readv(file(target), pieces.0.as_ptr(), pieces.count()) })
}

/// `writev` at the file's own position.
pub(super) fn writev(target: &OpenTarget, pieces: &Pieces) -> i64 {
    // SAFETY: as above.
    answer(unsafe { libc::writev(file(target), pieces.0.as_ptr(), pieces.count()) })
}
