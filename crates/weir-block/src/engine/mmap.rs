//! Copies from and to a mapping of the target; a flush is `msync`.
//!
//! In: operations within the region that was mapped. Out: bytes copied; a page that the kernel
//! cannot provide is an I/O error of its operation (`missing_pages`). So that a full file system
//! is found before the run, blocks of files are allocated then.

#![expect(
    unsafe_code,
    reason = "mappings are raw memory until this module wraps them"
)]

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};
use weir_run::{Engine, Submit};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::calls::{answer, memory, other};
use super::missing_pages;
use super::{EngineEntry, EngineSetup, OpenTarget, Opens, Refused, run_engine, switch};
use crate::op::{BlockOp, Verb};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "mmap",
        summary: "copies from and to a mapping of the target; a flush is msync",
        settings: &[switch(
            "transparent_huge_pages",
            "false",
            "asks the kernel for huge pages in the mapping",
        )],
        synchronous: true,
        acts_on: ActsOn::Data,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::ReadingToo,
    drive: run_engine::<Mmap>,
};

/// A mapped part of a target.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
    /// The target's byte at `start`.
    offset: u64,
    file: Arc<OwnedFd>,
    /// The file's byte at `start`.
    origin: u64,
    access: ProtFlags,
}

impl Mapping {
    fn new(target: &OpenTarget, huge: bool) -> io::Result<Self> {
        let extent = target.extent;
        let page = rustix::param::page_size() as u64;
        let offset = extent.start / page * page;
        let length = usize::try_from(extent.start + extent.length - offset)
            .map_err(|_| io::Error::from(Errno::NOMEM))?;
        // The kernel gives a mapping of /dev/zero memory of its own, which begins at 0: a page
        // behind its length is a SIGBUS.
        let origin = if is_zero_device(target)? { 0 } else { offset };
        let mut access = ProtFlags::READ;
        access.set(ProtFlags::WRITE, target.is_writable);
        // SAFETY: without MAP_FIXED a new mapping replaces nothing; the memory is only copied
        // from and to by address, so that other writers to the target break no reference. Workers
        // on one file have mappings of their own: what two copies to the same bytes leave there is
        // the hardware's matter, as with any other process that maps the file.
        let mapped = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                access,
                MapFlags::SHARED,
                &target.file,
                origin,
            )
        };
        let start = NonNull::new(mapped?.cast()).ok_or(Errno::NOMEM)?;
        let mapping = Self {
            start,
            length,
            offset,
            file: Arc::clone(&target.file),
            origin,
            access,
        };
        if huge {
            // SAFETY: the range is this value's own mapping; the advice changes no contents.
            unsafe { madvise(start.as_ptr().cast(), length, Advice::LinuxHugepage) }?;
        }
        Ok(mapping)
    }

    /// Position of an operation's first byte in the mapping, if all of it is mapped.
    #[inline]
    fn at(&self, op: &BlockOp) -> Option<usize> {
        let from = usize::try_from(op.offset.checked_sub(self.offset)?).ok()?;
        let fits = from.checked_add(op.length as usize)? <= self.length;
        fits.then_some(from)
    }

    /// Copies an operation's data, whose first byte is there; the answer to the operation.
    #[inline]
    fn copy(&self, from: usize, op: &BlockOp) -> i64 {
        let (at, memory) = (self.start.as_ptr().wrapping_add(from), memory(*op));
        let (source, to) = match op.verb {
            Verb::Read => (at.cast_const(), memory.as_mut_ptr()),
            _ => (memory.as_ptr(), at),
        };
        let begin = self.start.addr().get();
        // SAFETY: `at` has as many mapped bytes as the operation, writable where they are written
        // to; the slot's memory is another mapping; and a mapping belongs to one worker.
        let is_whole =
            unsafe { missing_pages::copy(source, to, memory.len(), (begin, begin + self.length)) };
        if is_whole {
            return i64::from(op.length);
        }
        self.put_back(from, memory.len());
        -i64::from(libc::EIO)
    }

    /// Maps the file's pages again where others had to take their places. If that fails, the
    /// worker has its error already.
    #[cold]
    fn put_back(&self, from: usize, length: usize) {
        let page = rustix::param::page_size();
        let first = from / page * page;
        let start = self.start.as_ptr().wrapping_add(first).cast();
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let origin = self.origin + first as u64;
        // SAFETY: the range is a part of this value's own mapping, in which nothing else is mapped.
        let _ = unsafe {
            mmap(
                start,
                from + length - first,
                self.access,
                flags,
                &*self.file,
                origin,
            )
        };
    }

    /// Has its pages mapped anew when they are needed: those that are mapped stay in the page
    /// cache, whatever is dropped there. Best effort, as dropping is.
    fn let_go(&self) {
        // SAFETY: the range is this value's own mapping, shared with its file: what was written
        // to it is in the page cache, and comes back from there.
        let _ = unsafe {
            madvise(
                self.start.as_ptr().cast(),
                self.length,
                Advice::LinuxDontNeed,
            )
        };
    }

    fn flush(&self) -> Result<(), Errno> {
        // SAFETY: the range is this value's own mapping.
        unsafe { msync(self.start.as_ptr().cast(), self.length, MsyncFlags::SYNC) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping made in `new`; nobody keeps an address of it.
        let result = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(result.is_ok(), "unmapping a whole mapping cannot fail");
    }
}

fn is_zero_device(target: &OpenTarget) -> io::Result<bool> {
    let status = rustix::fs::fstat(&target.file)?;
    let is_character = rustix::fs::FileType::from_raw_mode(status.st_mode).is_char_device();
    let device = (
        rustix::fs::major(status.st_rdev),
        rustix::fs::minor(status.st_rdev),
    );
    Ok(is_character && device == (1, 5))
}

/// The mappings of a worker by target, for who drops the page cache; other engines have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings(Rc<RefCell<Vec<Rc<Mapping>>>>);

impl Mappings {
    /// Lets the mapped pages of a target go.
    pub(crate) fn let_go(&self, target: usize) {
        if let Some(mapping) = self.0.borrow().get(target) {
            mapping.let_go();
        }
    }
}

/// Copies from and to mappings.
#[derive(Debug)]
pub(super) struct Mmap {
    parts: Vec<(Rc<Mapping>, OpenTarget)>,
}

/// Allocates the blocks behind a file's mapping: without it a full file system is found in the run.
fn allocate(target: &OpenTarget) -> Result<(), Errno> {
    if target.is_block || !target.is_writable {
        return Ok(());
    }
    let extent = target.extent;
    let flags = FallocateFlags::empty();
    match rustix::fs::fallocate(&target.file, flags, extent.start, extent.length) {
        // Character devices, and file systems without the call.
        Err(Errno::NODEV | Errno::SPIPE | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        other => other,
    }
}

impl Engine for Mmap {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const INLINE: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let huge = setup.choice.flag("transparent_huge_pages", false);
        missing_pages::expect()?;
        let map = |target: OpenTarget| {
            allocate(&target)
                .map_err(|e| Refused::error(&e.into(), "cannot allocate blocks to map"))?;
            let mapping = Mapping::new(&target, huge).map_err(|e| {
                let length = target.extent.length;
                let hint = "use psync for targets that cannot be mapped";
                Refused::error(
                    &e,
                    &format!("cannot map {length} bytes of the target ({hint})"),
                )
            })?;
            Ok((Rc::new(mapping), target))
        };
        let parts = setup
            .targets
            .into_iter()
            .map(map)
            .collect::<io::Result<Vec<_>>>()?;
        let mappings = parts.iter().map(|(mapping, _)| Rc::clone(mapping));
        setup.mappings.0.borrow_mut().extend(mappings);
        Ok(Self { parts })
    }

    #[inline]
    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        let Some((mapping, target)) = self.parts.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        if !matches!(op.verb, Verb::Read | Verb::Write) {
            return Submit::Done(match op.verb {
                Verb::Trim => other(target, *op),
                _ => answer(mapping.flush().map(|()| 0)),
            });
        }
        let Some(at) = mapping.at(op) else {
            return Submit::Done(0);
        };
        if op.verb == Verb::Write && !target.is_writable {
            return Submit::Done(-i64::from(libc::EBADF));
        }
        Submit::Done(mapping.copy(at, op))
    }
}
