//! Memory that other ranks map too: words that are atomic, bytes that have one writer at a time.
//!
//! Words are read and written by anybody. Bytes are only touched by the rank whose turn it is:
//! the words say whose, with Release by the one who hands over and Acquire by the one who takes.

#![expect(unsafe_code, reason = "memory that other processes write into")]

use std::fs::File;
use std::ptr::{NonNull, copy_nonoverlapping, null_mut};
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::Halt;

/// A mapping of the segment. Offsets beyond its end panic.
#[derive(Debug)]
pub(super) struct Segment {
    base: NonNull<u8>,
    len: usize,
}

impl Segment {
    /// Maps all of it. Its pages come from where they are first touched.
    pub(super) fn map(file: &File, len: usize) -> Result<Self, Halt> {
        let size = file.metadata().map_or(0, |m| m.len());
        if size < len as u64 {
            return Err(Halt::Garbled(format!(
                "shared memory of {size} B where {len} B were to be"
            )));
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without MAP_FIXED a new mapping replaces nothing.
        let base = unsafe { mmap(null_mut(), len, access, MapFlags::SHARED, file, 0) }
            .map_err(Halt::io("map shared memory"))?;
        let base = NonNull::new(base.cast())
            .ok_or_else(|| Halt::Garbled("shared memory at address 0".to_owned()))?;
        Ok(Self { base, len })
    }

    #[inline]
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "offsets come from the layout that the segment was made for"
        );
        // SAFETY: the offset lies within the mapping.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// A word that every rank may read and write.
    #[inline]
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "asserted, and the mapping begins on a page"
    )]
    pub(super) fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "words are aligned");
        let word = self.at(offset, 4).cast::<u32>();
        // SAFETY: aligned, mapped for as long as `self` lives, and only ever used as an atomic
        // between the barriers that follow its clearing.
        unsafe { AtomicU32::from_ptr(word) }
    }

    /// Bytes that are this rank's turn to change.
    #[inline]
    pub(super) fn slice_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let start = self.at(offset, len);
        // SAFETY: mapped, always initialised, borrowed through `self`; the protocol of the words
        // keeps other ranks from these bytes while it is this rank's turn.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Copies from one place of the segment to another that does not overlap it.
    #[inline]
    pub(super) fn copy_within(&self, from: usize, to: usize, len: usize) {
        assert!(from.abs_diff(to) >= len, "places of one layout lie apart");
        let (from, to) = (self.at(from, len), self.at(to, len));
        // SAFETY: both lie in the mapping and apart; it is this rank's turn on both.
        unsafe { copy_nonoverlapping(from, to, len) }
    }

    /// Copies out of the segment.
    #[inline]
    pub(super) fn copy_out(&self, from: usize, to: &mut [u8]) {
        let from = self.at(from, to.len());
        // SAFETY: mapped, apart from memory that is borrowed mutably, and the writer has handed
        // it over.
        unsafe { copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`; nothing borrowed from it outlives `self`.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok(), "unmapping a whole mapping cannot fail");
    }
}
