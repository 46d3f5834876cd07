//! Memory that several processes map: words that are atomic, bytes that have one writer at a time.
//!
//! In: a length, or a descriptor that another process passed. Out: a [`SharedMemory`]. Words are
//! read and written by anybody. Bytes are touched by the side whose turn it is: words say whose,
//! with Release by the one who hands over and Acquire by the one who takes. A peer that breaks this
//! can spoil what the bytes say, never where they are read or written. Not here: who gets the
//! descriptor, and what lies where.

#![expect(unsafe_code, reason = "memory that other processes write into")]

use std::fmt;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{NonNull, copy_nonoverlapping, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use weir_units::Bytes;

use crate::error::SysError;

/// A mapping that other processes may have too. Offsets beyond its end panic.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to no particular thread.
unsafe impl Send for SharedMemory {}
// SAFETY: words are atomic; of bytes the turns are kept as between processes.
unsafe impl Sync for SharedMemory {}

/// Values that any bits make and that any process may change at any time: atomic words alone.
///
/// # Safety
/// The type is made of atomic integers without padding.
pub unsafe trait AtomicWords {}

// SAFETY: an atomic integer.
unsafe impl AtomicWords for AtomicU32 {}
// SAFETY: an atomic integer.
unsafe impl AtomicWords for AtomicU64 {}
// SAFETY: arrays have no padding.
unsafe impl<T: AtomicWords, const N: usize> AtomicWords for [T; N] {}

impl SharedMemory {
    /// A descriptor of new memory, all zero, by which it is opened here and elsewhere. Its length is
    /// sealed: no process can cut it under another's feet. Pages come when they are touched, so that
    /// it may be longer than what there is.
    ///
    /// # Errors
    /// [`SysError::Map`] where the system does not give it.
    pub fn file(name: &str, len: u64) -> Result<OwnedFd, SysError> {
        let fail = |error| no_memory(len, error);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(name, flags).map_err(fail)?;
        ftruncate(&file, len).map_err(fail)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(fail)?;
        Ok(file)
    }

    /// New memory, all zero, and the descriptor by which others open it.
    ///
    /// # Errors
    /// As [`SharedMemory::file`] and [`SharedMemory::open`].
    pub fn create(name: &str, len: usize) -> Result<(Self, OwnedFd), SysError> {
        let file = Self::file(name, len as u64)?;
        Ok((Self::map(&file, 0, len)?, file))
    }

    /// A part of the memory behind a descriptor, which may come from another process and is not
    /// believed: it has to be so long, and sealed against cutting. The offset is a multiple of a
    /// page.
    ///
    /// # Errors
    /// [`SysError::Invalid`] for what is shorter or can be cut, [`SysError::Map`] where the kernel
    /// does not map it.
    pub fn open(file: impl AsFd, offset: u64, len: usize) -> Result<Self, SysError> {
        let seals = fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
        if !seals.contains(SealFlags::SHRINK) {
            return Err(SysError::Invalid(
                "shared memory that can be cut short is refused".to_owned(),
            ));
        }
        let size = rustix::fs::fstat(&file).map_or(0, |stat| stat.st_size);
        let size = u64::try_from(size).unwrap_or(0);
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| end > size) {
            return Err(SysError::Invalid(format!(
                "shared memory of {size} B where {len} B from {offset} on were to be"
            )));
        }
        Self::map(file, offset, len)
    }

    /// Memory behind a path such as `/proc/PID/fd/N`, of a process that is trusted not to cut it.
    ///
    /// # Errors
    /// As [`SharedMemory::open`].
    pub fn open_trusted(file: &File, len: usize) -> Result<Self, SysError> {
        let size = file.metadata().map_or(0, |m| m.len());
        if size < len as u64 {
            return Err(SysError::Invalid(format!(
                "shared memory of {size} B where {len} B were to be"
            )));
        }
        Self::map(file, 0, len)
    }

    /// A part of what a descriptor that is trusted gives: a file, or rings of the kernel. Its pages come
    /// from where they are first touched.
    pub(crate) fn map(file: impl AsFd, offset: u64, len: usize) -> Result<Self, SysError> {
        if len == 0 {
            return Err(SysError::Invalid(
                "shared memory needs a length above 0".to_owned(),
            ));
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without MAP_FIXED a new mapping replaces nothing.
        let base = unsafe { mmap(null_mut(), len, access, MapFlags::SHARED, file, offset) }
            .map_err(|error| no_memory(len as u64, error))?;
        let base = NonNull::new(base.cast()).ok_or_else(|| no_memory(len as u64, Errno::NOMEM))?;
        Ok(Self { base, len })
    }

    /// Makes every page present, so that no fault falls into a timed operation.
    ///
    /// # Errors
    /// [`SysError::Map`] where there are not enough pages.
    pub fn populate(&mut self) -> Result<(), SysError> {
        let start = self.base.as_ptr().cast();
        // SAFETY: the range is this value's own mapping; populating changes no contents.
        match unsafe { madvise(start, self.len, Advice::LinuxPopulateWrite) } {
            // Kernels before 5.14: they come when touched.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(no_memory(self.len as u64, error)),
        }
    }

    /// Gives its pages back to the system, for every process that has it: they read as zero then.
    pub fn discard(&mut self) {
        let start = self.base.as_ptr().cast();
        // SAFETY: the range is this value's own mapping, and nothing is borrowed from it.
        let result = unsafe { madvise(start, self.len, Advice::LinuxRemove) };
        debug_assert!(result.is_ok(), "shared memory has pages to give back");
    }

    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// First address, for calls that take addresses.
    pub fn address(&self) -> usize {
        self.base.as_ptr().expose_provenance()
    }

    #[inline]
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "offsets lie within the shared memory"
        );
        // SAFETY: the offset lies within the mapping.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// A word that every process may read and write.
    #[inline]
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "asserted, and the mapping begins on a page"
    )]
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "words are aligned");
        let word = self.at(offset, 4).cast::<u32>();
        // SAFETY: aligned, mapped for as long as `self` lives, and used as an atomic by everybody.
        unsafe { AtomicU32::from_ptr(word) }
    }

    /// Bytes that are this side's turn to change.
    #[inline]
    pub fn slice_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let start = self.at(offset, len);
        // SAFETY: mapped, always initialised, borrowed through `self`; the protocol of the words
        // keeps others from these bytes while it is this side's turn.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Copies from one place of the memory to another that does not overlap it.
    #[inline]
    pub fn copy_within(&self, from: usize, to: usize, len: usize) {
        assert!(from.abs_diff(to) >= len, "places of one layout lie apart");
        let (from, to) = (self.at(from, len), self.at(to, len));
        // SAFETY: both lie in the mapping and apart; it is this side's turn on both.
        unsafe { copy_nonoverlapping(from, to, len) }
    }

    /// Copies from here to other memory, which is another mapping.
    #[inline]
    pub fn copy_to(&self, from: usize, other: &Self, to: usize, len: usize) {
        let (from, to) = (self.at(from, len), other.at(to, len));
        assert!(from.addr().abs_diff(to.addr()) >= len, "mappings lie apart");
        // SAFETY: both lie in their mappings and apart; it is this side's turn on both.
        unsafe { copy_nonoverlapping(from, to, len) }
    }

    /// Copies out of the memory.
    #[inline]
    pub fn copy_out(&self, from: usize, to: &mut [u8]) {
        let from = self.at(from, to.len());
        // SAFETY: mapped, apart from memory that is borrowed mutably, and the writer has handed
        // it over.
        unsafe { copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) }
    }

    /// Copies into the memory.
    #[inline]
    pub fn copy_in(&self, from: &[u8], to: usize) {
        let to = self.at(to, from.len());
        // SAFETY: mapped; the bytes are this side's turn to write, and borrowed ones of this memory
        // are borrowed through `&mut self`, so that `from` lies elsewhere.
        unsafe { copy_nonoverlapping(from.as_ptr(), to, from.len()) }
    }
}

/// Words within shared memory, found and checked once.
pub struct SharedWords<T> {
    /// Keeps the words mapped.
    memory: Arc<SharedMemory>,
    words: NonNull<[T]>,
}

// SAFETY: all that is reached through it are atomic words.
unsafe impl<T: AtomicWords> Send for SharedWords<T> {}
// SAFETY: all that is reached through it are atomic words.
unsafe impl<T: AtomicWords> Sync for SharedWords<T> {}

impl<T: AtomicWords> SharedWords<T> {
    /// Groups of words that every process may read and write. Offsets beyond the end panic.
    pub fn at(memory: &Arc<SharedMemory>, offset: usize, count: usize) -> Self {
        let bytes = count.checked_mul(size_of::<T>());
        let first = memory.at(offset, bytes.unwrap_or(usize::MAX)).cast::<T>();
        assert!(first.is_aligned(), "words are aligned");
        let first = NonNull::new(first).unwrap_or(NonNull::dangling());
        Self {
            memory: Arc::clone(memory),
            words: NonNull::slice_from_raw_parts(first, count),
        }
    }
}

impl<T: AtomicWords> Deref for SharedWords<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: aligned and within the mapping, which `memory` keeps; atomic by their type's
        // promise.
        unsafe { self.words.as_ref() }
    }
}

impl<T> Clone for SharedWords<T> {
    fn clone(&self) -> Self {
        Self {
            memory: Arc::clone(&self.memory),
            words: self.words,
        }
    }
}

impl<T> fmt::Debug for SharedWords<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedWords").field(&self.memory).finish()
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`; nothing borrowed from it outlives `self`.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok(), "unmapping a whole mapping cannot fail");
    }
}

fn no_memory(len: u64, error: Errno) -> SysError {
    SysError::Map {
        kind: "shared memory",
        len: Bytes(len),
        source: error.into(),
        remedy: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_one_mapping_gets_the_other_has() {
        let (mut mine, file) = SharedMemory::create("weir-test", 8_192).unwrap();
        let theirs = SharedMemory::open(&file, 0, 8_192).unwrap();
        mine.populate().unwrap();
        mine.copy_in(b"abcd", 4_094);
        let mut out = [0; 4];
        theirs.copy_out(4_094, &mut out);
        assert_eq!(&out, b"abcd");
        theirs.copy_within(4_094, 0, 4);
        theirs.copy_to(0, &mine, 100, 2);
        assert_eq!(mine.slice_mut(99, 4), b"\0ab\0");
        theirs.word(8).store(7, Ordering::Release);
        assert_eq!(mine.word(8).load(Ordering::Acquire), 7);
        let half = SharedMemory::open(&file, 4_096, 4_096).unwrap();
        half.copy_out(0, &mut out);
        assert_eq!(&out, b"cd\0\0");
        mine.discard();
        theirs.copy_out(4_094, &mut out);
        assert_eq!(out, [0; 4]);
    }

    #[test]
    fn memory_that_is_shorter_or_can_be_cut_is_refused() {
        let (_, file) = SharedMemory::create("weir-test", 4_096).unwrap();
        let why = SharedMemory::open(&file, 4_096, 1).unwrap_err().to_string();
        assert!(
            why.contains("4096 B where 1 B from 4096 on were to be"),
            "{why}"
        );
        assert!(ftruncate(&file, 0).is_err(), "it is sealed");
        let open = memfd_create("weir-test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&open, 4_096).unwrap();
        let why = SharedMemory::open(&open, 0, 4_096).unwrap_err().to_string();
        assert!(why.contains("can be cut short"), "{why}");
        assert!(SharedMemory::create("weir-test", 0).is_err());
        assert!(SharedMemory::open(&file, u64::MAX, 2).is_err());
    }

    #[test]
    #[should_panic(expected = "offsets lie within")]
    fn an_offset_beyond_the_end_panics() {
        let (memory, _) = SharedMemory::create("weir-test", 4_096).unwrap();
        memory.copy_in(&[0; 2], 4_095);
    }
}
