//! Memory of a pool: a file or anonymous memory, mapped, and the order in which stores last.
//!
//! In: a pool's specification. Out: a [`Medium`], bytes by offset. Offsets come from the engine, which
//! checks what it reads from the medium; one beyond the end panics. Not here: what the bytes mean.

#![expect(unsafe_code, reason = "a mapping is raw memory until wrapped here")]

use std::ptr::{NonNull, null_mut};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::prelude::*;
use crate::superblock::{PoolLock, length_of, on_file};

/// Unit of space: values of one size, or a segment of the log.
pub const CHUNK: u64 = 2 << 20;

/// A new pool has not the bytes that every pool takes.
pub(super) fn too_small<T>() -> Result<T> {
    ObjectCode::NoSpace.fail("the pool is smaller than its own records; give 8 MiB or more")
}

/// Bytes that a pool lives in.
pub trait Medium: Send {
    /// Length in bytes.
    fn len(&self) -> u64;
    /// True for a medium without bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes at an offset.
    fn bytes(&self, at: u64, len: usize) -> &[u8];
    /// Bytes at an offset, to be changed.
    fn bytes_mut(&mut self, at: u64, len: usize) -> &mut [u8];
    /// Begins to make the bytes at an offset persistent.
    fn write_back(&mut self, at: u64, len: usize);
    /// Ends what write-backs began: stores behind it become persistent later than those before it.
    fn fence(&mut self);
    /// Provides backing for a range, so that a store to it cannot fail.
    ///
    /// # Errors
    /// `NOSPACE` where the file system has none.
    fn back(&mut self, at: u64, len: u64) -> Result<()>;
}

/// A hint that the line of a value is needed soon.
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing and never faults; its SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Asks for huge pages for a large table, which random look-ups would otherwise miss in the TLB.
pub(super) fn advise_huge<T>(table: &[T]) {
    let start = table.as_ptr().addr().next_multiple_of(CHUNK as usize);
    let end = table.as_ptr_range().end.addr() / CHUNK as usize * CHUNK as usize;
    if start < end {
        let first = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the pages lie within the table; the advice changes no contents.
        let _ = unsafe { madvise(first, end - start, Advice::LinuxHugepage) };
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "of x86-64"))]
enum Instruction {
    Clwb,
    ClflushOpt,
    Clflush,
}

/// A mapped pool, aligned to [`CHUNK`].
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    /// All that was mapped, the lead before `base` too.
    whole: (NonNull<u8>, usize),
    file: Option<PoolLock>,
    /// Writes a line back, where that is needed.
    write_back: Option<Instruction>,
}

// SAFETY: the mapping belongs to no particular thread, and only its owner reaches it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the memory of a pool: a new file, the file that is there (locked, its length unchanged), or
    /// anonymous memory.
    ///
    /// # Errors
    /// By the cause; a file that was there is never changed.
    pub fn new(spec: &PoolSpec) -> Result<Self> {
        let Some(path) = &spec.path else {
            return if spec.durability == Durability::None && spec.mode == PoolMode::Create {
                Self::map(None, spec.bytes, spec)
            } else {
                let why = "anonymous memory is new and survives nothing; give a directory";
                ObjectCode::Inval.fail(why)
            };
        };
        on_file(path, spec.mode, spec.bytes, |file| {
            let len = length_of(&file, path)?;
            Self::map(Some(file), len, spec)
        })
    }

    fn map(file: Option<PoolLock>, bytes: u64, spec: &PoolSpec) -> Result<Self> {
        let fail = |e: Errno| ObjectCode::NoMem.error(format!("cannot map {bytes} B: {e}"));
        let len = usize::try_from(bytes / CHUNK * CHUNK).map_err(|_| fail(Errno::NOMEM))?;
        if len == 0 {
            refuse!(spec.mode == PoolMode::Open => Io, "the pool's file was cut short");
            return too_small();
        }
        let room = len.checked_add(CHUNK as usize);
        let room = room.ok_or_else(|| fail(Errno::NOMEM))?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let (lead, flags) = match file {
            Some(_) => (ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE),
            None => (access, MapFlags::PRIVATE | MapFlags::NORESERVE),
        };
        // SAFETY: without MAP_FIXED a new mapping replaces nothing.
        let start = unsafe { mmap_anonymous(null_mut(), room, lead, flags) }.map_err(fail)?;
        let start = start.cast::<u8>();
        let base = start.wrapping_add(start.align_offset(CHUNK as usize));
        let (Some(start), Some(first)) = (NonNull::new(start), NonNull::new(base)) else {
            return Err(fail(Errno::NOMEM));
        };
        let mut mapping = Self {
            base: first,
            len,
            whole: (start, room),
            file,
            write_back: None,
        };
        let mut persistent = false;
        if let Some(file) = &mapping.file {
            let sync = MapFlags::SHARED_VALIDATE | MapFlags::SYNC | MapFlags::FIXED;
            // SAFETY: the range lies within the mapping made above, which nothing else uses.
            persistent = unsafe { mmap(base.cast(), len, access, sync, file, 0) }.is_ok();
            if !persistent {
                let shared = MapFlags::SHARED | MapFlags::FIXED;
                // SAFETY: as above.
                unsafe { mmap(base.cast(), len, access, shared, file, 0) }.map_err(fail)?;
            }
        }
        // SAFETY: the range is this mapping; the advice changes no contents.
        let _ = unsafe { madvise(base.cast(), len, Advice::LinuxHugepage) };
        if spec.durability == Durability::Power {
            if !persistent && !spec.assume_persistent {
                let why = "durability `power` needs a file system with direct access (DAX)";
                return ObjectCode::NoSys.fail(why);
            }
            mapping.write_back = Some(instruction()?);
        }
        Ok(mapping)
    }

    /// True if a file keeps the pool.
    pub(super) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Makes the pages of a range present.
    ///
    /// # Errors
    /// `NOSPACE` where there are not enough.
    pub fn populate(&mut self, at: u64, len: u64) -> Result<()> {
        let bytes = self.bytes_mut(at, len as usize);
        let (start, len) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the range lies within the mapping; populating changes no contents.
        match unsafe { madvise(start.cast(), len, Advice::LinuxPopulateWrite) } {
            // Kernels before 5.14: they come when touched.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(e) => ObjectCode::NoSpace.fail(format!("cannot map in {len} B: {e}")),
        }
    }

    #[inline]
    fn at(&self, at: u64, len: usize) -> *mut u8 {
        let at = at as usize;
        assert!(
            at <= self.len && len <= self.len - at,
            "offsets lie within the pool"
        );
        // SAFETY: the offset lies within the mapping.
        unsafe { self.base.as_ptr().add(at) }
    }
}

impl Medium for Mapping {
    fn len(&self) -> u64 {
        self.len as u64
    }

    #[inline]
    fn bytes(&self, at: u64, len: usize) -> &[u8] {
        // SAFETY: mapped and initialised, and only `&mut self` changes it: other processes are kept
        // out by the lock of the file.
        unsafe { std::slice::from_raw_parts(self.at(at, len), len) }
    }

    #[inline]
    fn bytes_mut(&mut self, at: u64, len: usize) -> &mut [u8] {
        // SAFETY: as in `bytes`, borrowed through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.at(at, len), len) }
    }

    #[inline]
    fn write_back(&mut self, at: u64, len: usize) {
        // Records are stored later than the values they name.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Release);
        if let Some(instruction) = self.write_back {
            let first = at / 64 * 64;
            let span = at as usize + len - first as usize;
            let start = self.at(first, span);
            write_back_lines(instruction, start, span);
        }
    }

    #[inline]
    fn fence(&mut self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
        if self.write_back.is_some() {
            store_fence();
        }
    }

    fn back(&mut self, at: u64, len: u64) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        fallocate(file, FallocateFlags::empty(), at, len).map_err(|e| {
            let code = match e {
                Errno::NOSPC | Errno::DQUOT | Errno::FBIG => ObjectCode::NoSpace,
                _ => ObjectCode::Io,
            };
            ObjectError::new(code, format!("the file system gives no {len} B more: {e}"))
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let (start, len) = self.whole;
        // SAFETY: the mapping made in `map`; nothing borrowed from it outlives `self`.
        let result = unsafe { munmap(start.as_ptr().cast(), len) };
        debug_assert!(result.is_ok(), "unmapping a whole mapping cannot fail");
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(clippy::unnecessary_wraps, reason = "other processors have none")]
fn instruction() -> Result<Instruction> {
    // Leaf 7 is there on every processor with 64 bits that is still in use; others answer 0.
    let features = core::arch::x86_64::__cpuid_count(7, 0).ebx;
    Ok(match features {
        bits if bits & 1 << 24 != 0 => Instruction::Clwb,
        bits if bits & 1 << 23 != 0 => Instruction::ClflushOpt,
        _ => Instruction::Clflush,
    })
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn write_back_lines(instruction: Instruction, start: *mut u8, len: usize) {
    use core::arch::asm;
    for line in (0..len)
        .step_by(64)
        .map(|offset| start.wrapping_add(offset))
    {
        match instruction {
            // SAFETY: the processor has it; it changes no contents.
            Instruction::Clwb => unsafe {
                asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags));
            },
            // SAFETY: as above.
            Instruction::ClflushOpt => unsafe {
                asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
            },
            // SAFETY: as above; part of x86-64.
            Instruction::Clflush => unsafe {
                asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags));
            },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn store_fence() {
    // SAFETY: part of x86-64; orders write-backs before what follows.
    unsafe { core::arch::x86_64::_mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn instruction() -> Result<Instruction> {
    ObjectCode::NoSys.fail("durability `power` is not known on this processor")
}

#[cfg(not(target_arch = "x86_64"))]
fn write_back_lines(_: Instruction, _: *mut u8, _: usize) {}

#[cfg(not(target_arch = "x86_64"))]
fn store_fence() {}
