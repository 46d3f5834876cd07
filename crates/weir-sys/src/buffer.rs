//! Memory for data on its way: aligned, mapped, touched before it is timed.
//!
//! In: a length, a kind of memory, a place. Out: an [`AlignedBuf`] that the kernel and devices
//! can be pointed at. Not here: what is in it, and who may use which slot when.
//! Every page is present when [`AlignedBuf::new`] returns, so that no fault falls into a timed
//! operation; memory that cannot be had is an error and never another kind of memory.

#![expect(
    unsafe_code,
    reason = "mappings are raw memory until this module wraps them"
)]

use crate::error::SysError;
use crate::mempolicy::MemoryPolicy;
use crate::pin::{MEMLOCK_REMEDY, refused};
use rustix::fs::{FlockOperation, MemfdFlags, flock, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap, mmap_anonymous, munmap};
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use weir_units::Bytes;

/// The size of a huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePage {
    /// 2 MiB.
    TwoMiB,
    /// 1 GiB.
    OneGiB,
}

impl HugePage {
    fn size(self) -> usize {
        match self {
            Self::TwoMiB => 2 << 20,
            Self::OneGiB => 1 << 30,
        }
    }
}

/// The kind of memory behind a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Memory of this process, as a program gets it that asks for nothing.
    Private,
    /// The same, which from 1 MiB on asks for huge pages where the machine gives them on request
    /// (`transparent_hugepage/enabled`): one fault makes present what takes 512 of plain pages.
    Transparent,
    /// Huge pages from the kernel's pool.
    Huge(HugePage),
    /// Memory that child processes share.
    Shared,
    /// Shared memory with a kernel object behind it (what System V segments were used for).
    Memfd(Option<HugePage>),
    /// A file, made or grown to the buffer's length. Its contents are overwritten. The file is
    /// locked for as long as the buffer lives, so that two buffers never share one.
    File(PathBuf),
}

/// Requested properties of a buffer.
#[derive(Clone, Debug)]
pub struct BufferSpec {
    /// Length; more than 0.
    pub len: Bytes,
    /// Address alignment: a power of two; at least a page is given.
    pub align: Bytes,
    /// The kind of memory.
    pub backing: Backing,
    /// Memory policy of its pages; `None` is the thread's own policy.
    pub policy: Option<MemoryPolicy>,
    /// The buffer is never swapped out.
    pub lock: bool,
}

impl BufferSpec {
    /// Private memory, page-aligned, from anywhere, not locked.
    pub fn private(len: Bytes) -> Self {
        Self {
            len,
            align: Bytes(0),
            backing: Backing::Private,
            policy: None,
            lock: false,
        }
    }
}

/// A mapping with an aligned part of the length asked for. Unmapped when dropped.
///
/// While the kernel or a device works on a part of it, whoever started that work keeps from
/// touching the same part: the slices here cannot know.
#[derive(Debug)]
pub struct AlignedBuf {
    /// The mapping, `mapped` bytes long.
    start: NonNull<u8>,
    mapped: usize,
    /// The part in use: `offset + len <= mapped`.
    offset: usize,
    len: usize,
    /// Holds the lock on a file.
    _file: Option<OwnedFd>,
}

// SAFETY: the mapping belongs to this value alone and to no particular thread.
unsafe impl Send for AlignedBuf {}

impl AlignedBuf {
    /// Maps, binds, touches and locks memory as told, in this order.
    ///
    /// # Errors
    /// [`SysError::Map`] if there is not enough memory of this kind; [`SysError::Refused`] if a
    /// policy or lock is not granted; [`SysError::Path`] for a file; [`SysError::Invalid`] for a
    /// length of 0 or an alignment that is no power of two.
    pub fn new(spec: &BufferSpec) -> Result<Self, SysError> {
        let (len, align, mapped) = extent(spec)?;
        let (start, file) = map(&spec.backing, mapped)?;
        let offset = start.as_ptr().align_offset(align);
        let mut buffer = Self {
            start,
            mapped,
            offset,
            len,
            _file: file,
        };
        if prefers_huge_pages(&spec.backing, len) {
            buffer.ask_for_huge_pages(&spec.backing)?;
        }
        if let Some(policy) = &spec.policy {
            policy.apply_to_range(start, Bytes(mapped as u64))?;
        }
        buffer.touch(&spec.backing)?;
        if spec.lock {
            // SAFETY: the range is this value's own; locking changes no contents.
            unsafe { mlock(buffer.as_ptr().cast(), len) }
                .map_err(|e| refused("lock a buffer", e, Some(MEMLOCK_REMEDY)))?;
        }
        Ok(buffer)
    }

    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Its first byte, for the kernel or a device.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        // SAFETY: `offset` lies within the mapping.
        unsafe { self.start.as_ptr().add(self.offset) }
    }

    /// All of it.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len` bytes from here are mapped readable for as long as `self` lives, always
        // initialised (the kernel hands out zeroed pages), and borrowed through `self`.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) }
    }

    /// All of it, to write.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; mapped writable, and `&mut self` keeps other slices away.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) }
    }

    /// A part of it. Panics beyond the end, as slices do. Nothing refers to the bytes around it:
    /// the kernel or a device may be writing those.
    #[inline]
    pub fn slot(&self, offset: usize, len: usize) -> &[u8] {
        let at = self.part(offset, len);
        // SAFETY: `part` gives so many bytes of the mapping, always initialised, and they are
        // borrowed through `self`.
        unsafe { std::slice::from_raw_parts(at, len) }
    }

    /// A part of it, to write. Panics beyond the end, as slices do. Of the bytes around it the same
    /// holds.
    #[inline]
    pub fn slot_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let at = self.part(offset, len);
        // SAFETY: as in `slot`; mapped writable, and `&mut self` keeps other slices away.
        unsafe { std::slice::from_raw_parts_mut(at, len) }
    }

    /// The first of so many bytes. Panics where they are not all in use.
    #[inline]
    fn part(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            len <= self.len && offset <= self.len - len,
            "a slot lies within its buffer"
        );
        self.as_ptr().wrapping_add(offset)
    }

    /// Gives the memory up without unmapping it: for a worker that hangs in the kernel, whose
    /// device may still write there.
    pub fn leak(self) {
        std::mem::forget(self);
    }

    fn ask_for_huge_pages(&mut self, backing: &Backing) -> Result<(), SysError> {
        let start = self.start.as_ptr().cast();
        // SAFETY: the range is this value's own mapping; advice changes no contents.
        match unsafe { madvise(start, self.mapped, Advice::LinuxHugepage) } {
            // A kernel built without them refuses: plain pages serve as well.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(no_memory(backing, self.mapped, error)),
        }
    }

    /// Makes every page present. The kernel does it where it can, because a page that cannot be
    /// had is then an error; a plain write to it would be a SIGBUS.
    fn touch(&mut self, backing: &Backing) -> Result<(), SysError> {
        let start = self.as_ptr().cast();
        // SAFETY: the range is this value's own; populating changes no contents.
        let populated = unsafe { madvise(start, self.len, Advice::LinuxPopulateWrite) };
        match populated {
            Ok(()) => Ok(()),
            Err(Errno::INVAL) => {
                // Kernels before 5.14.
                let page = rustix::param::page_size();
                self.as_mut_slice()
                    .iter_mut()
                    .step_by(page)
                    .for_each(|byte| *byte = 0);
                Ok(())
            }
            Err(error) => Err(no_memory(backing, self.len, error)),
        }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping made in `map`, and slices of it are gone.
        let result = unsafe { munmap(self.start.as_ptr().cast(), self.mapped) };
        debug_assert!(result.is_ok(), "unmapping a whole mapping cannot fail");
    }
}

/// Bytes of the machine's memory that a buffer takes once it is touched: whole pages, and whole huge ones where
/// those are asked for; `None` for one that cannot be.
pub fn footprint(spec: &BufferSpec) -> Option<u64> {
    let (len, ..) = extent(spec).ok()?;
    let page = if prefers_huge_pages(&spec.backing, len) {
        HugePage::TwoMiB.size()
    } else {
        rustix::param::page_size()
    };
    Some(len.checked_next_multiple_of(page)? as u64)
}

/// True if a buffer gains from huge pages that nobody asked for by name: it fills half of one.
fn prefers_huge_pages(backing: &Backing, len: usize) -> bool {
    *backing == Backing::Transparent && len >= HugePage::TwoMiB.size() / 2
}

/// Length, alignment and the length to map, so that the aligned part fits.
fn extent(spec: &BufferSpec) -> Result<(usize, usize, usize), SysError> {
    let page = match spec.backing {
        Backing::Huge(page) | Backing::Memfd(Some(page)) => page.size(),
        _ => rustix::param::page_size(),
    };
    let invalid = |what: &str| Err(SysError::Invalid(what.to_owned()));
    let size = |bytes: Bytes| usize::try_from(bytes.0).unwrap_or(usize::MAX);
    let (len, mut align) = (size(spec.len), size(spec.align).max(page));
    if len == 0 {
        return invalid("a buffer needs a length above 0");
    }
    if !align.is_power_of_two() {
        return invalid("a buffer's alignment is a power of two");
    }
    let mut whole = Some(len);
    if prefers_huge_pages(&spec.backing, len) {
        // A huge page lies within the mapping, at a multiple of its own size.
        let huge = HugePage::TwoMiB.size();
        align = align.max(huge);
        whole = len.checked_next_multiple_of(huge);
    }
    // The kernel aligns to its page; more needs room to move.
    let room = whole.and_then(|whole| whole.checked_add(align - page));
    match room.and_then(|room| room.checked_next_multiple_of(page)) {
        Some(mapped) => Ok((len, align, mapped)),
        None => invalid("a buffer cannot be longer than the address space"),
    }
}

fn map(backing: &Backing, len: usize) -> Result<(NonNull<u8>, Option<OwnedFd>), SysError> {
    let fail = |error: Errno| no_memory(backing, len, error);
    let (start, file) = match backing {
        Backing::Private | Backing::Transparent => {
            (anonymous(len, MapFlags::PRIVATE).map_err(fail)?, None)
        }
        Backing::Shared => (anonymous(len, MapFlags::SHARED).map_err(fail)?, None),
        Backing::Huge(page) => {
            let size = match page {
                HugePage::TwoMiB => MapFlags::HUGE_2MB,
                HugePage::OneGiB => MapFlags::HUGE_1GB,
            };
            let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | size;
            (anonymous(len, flags).map_err(fail)?, None)
        }
        Backing::Memfd(page) => {
            let size = match page {
                None => MemfdFlags::empty(),
                Some(HugePage::TwoMiB) => MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB,
                Some(HugePage::OneGiB) => MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB,
            };
            let file = memfd_create("weir-buffer", size | MemfdFlags::CLOEXEC).map_err(fail)?;
            ftruncate(&file, len as u64).map_err(fail)?;
            // The mapping keeps the object alive; nobody else can reach it any more.
            (shared(&file, len).map_err(fail)?, None)
        }
        Backing::File(path) => {
            let file = buffer_file(path, len)?;
            (shared(&file, len).map_err(fail)?, Some(file))
        }
    };
    let start = NonNull::new(start.cast()).ok_or_else(|| fail(Errno::NOMEM))?;
    Ok((start, file))
}

fn anonymous(len: usize, flags: MapFlags) -> Result<*mut std::ffi::c_void, Errno> {
    // SAFETY: without MAP_FIXED a new mapping replaces nothing.
    unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) }
}

fn shared(file: &OwnedFd, len: usize) -> Result<*mut std::ffi::c_void, Errno> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: without MAP_FIXED a new mapping replaces nothing. The object is either a memfd
    // that nothing else refers to, or a file that this process holds locked.
    unsafe { mmap(null_mut(), len, access, MapFlags::SHARED, file, 0) }
}

/// Opens, locks and, if it is shorter, grows a file.
fn buffer_file(path: &Path, len: usize) -> Result<OwnedFd, SysError> {
    let fail = |what, source| SysError::Path {
        what,
        path: path.to_owned(),
        source,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options
        .open(path)
        .map_err(|e| fail("open the buffer file", e))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|e| fail("lock the buffer file", e.into()))?;
    let length = file
        .metadata()
        .map_err(|e| fail("read the length of", e))?
        .len();
    if length < len as u64 {
        file.set_len(len as u64).map_err(|e| fail("grow", e))?;
    }
    Ok(file.into())
}

fn no_memory(backing: &Backing, len: usize, error: Errno) -> SysError {
    let (kind, remedy) = match backing {
        Backing::Private | Backing::Transparent => ("memory", None),
        Backing::Shared | Backing::Memfd(None) => ("shared memory", None),
        Backing::Huge(HugePage::TwoMiB) | Backing::Memfd(Some(HugePage::TwoMiB)) => (
            "2 MiB huge pages",
            Some("reserve some: `sysctl vm.nr_hugepages=N`"),
        ),
        Backing::Huge(HugePage::OneGiB) | Backing::Memfd(Some(HugePage::OneGiB)) => (
            "1 GiB huge pages",
            Some("reserve some: /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"),
        ),
        Backing::File(_) => ("file-backed memory", None),
    };
    SysError::Map {
        kind,
        len: Bytes(len as u64),
        source: error.into(),
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryFacts;
    use crate::topology::Topology;
    use crate::tree::Tree;
    use crate::tree::fake::FakeTree;

    fn spec(backing: Backing) -> BufferSpec {
        BufferSpec {
            backing,
            ..BufferSpec::private(Bytes(10_000))
        }
    }

    #[test]
    fn each_kind_of_plain_memory_is_aligned_zeroed_and_writable() {
        let fake = FakeTree::new();
        let file = Backing::File(fake.path().join("buffer"));
        for backing in [
            Backing::Private,
            Backing::Shared,
            Backing::Memfd(None),
            file,
        ] {
            let mut buffer = AlignedBuf::new(&spec(backing)).unwrap();
            assert_eq!(buffer.len(), 10_000);
            assert_eq!(buffer.as_ptr().align_offset(4096), 0);
            assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
            buffer.slot_mut(4_096, 512).fill(7);
            assert_eq!(buffer.slot(4_095, 3), [0, 7, 7]);
            assert_eq!(
                buffer.as_slice().iter().map(|&b| u32::from(b)).sum::<u32>(),
                7 * 512
            );
        }
    }

    #[test]
    #[should_panic(expected = "within its buffer")]
    fn a_slot_that_ends_behind_the_buffer_is_refused() {
        let buffer = AlignedBuf::new(&spec(Backing::Private)).unwrap();
        let _ = buffer.slot(9_999, 2);
    }

    #[test]
    #[should_panic(expected = "within its buffer")]
    fn a_slot_whose_end_no_number_holds_is_refused() {
        let mut buffer = AlignedBuf::new(&spec(Backing::Private)).unwrap();
        let _ = buffer.slot_mut(1, usize::MAX);
    }

    #[test]
    fn a_buffer_moves_to_another_thread() {
        let mut buffer = AlignedBuf::new(&spec(Backing::Private)).unwrap();
        let sum = std::thread::spawn(move || {
            buffer.as_mut_slice().fill(1);
            buffer.as_slice().len()
        });
        assert_eq!(sum.join().unwrap(), 10_000);
    }

    #[test]
    fn a_wide_alignment_is_kept() {
        for align in [1, 4_096, 1 << 16, 1 << 21] {
            let align = Bytes(align);
            let buffer = AlignedBuf::new(&BufferSpec {
                align,
                ..spec(Backing::Private)
            })
            .unwrap();
            let align = usize::try_from(align.0).unwrap();
            assert_eq!(buffer.as_ptr().align_offset(align), 0);
            assert_eq!(buffer.as_slice()[9_999], 0);
        }
    }

    /// The kernel's flags of the mapping that holds an address.
    fn flags_of(address: usize) -> Vec<String> {
        let text = Tree::real().text("proc/self/smaps").unwrap();
        let edge = |hex: &str| usize::from_str_radix(hex, 16).ok();
        let range = |line: &str| {
            let (from, to) = line.split(' ').next()?.split_once('-')?;
            Some(edge(from)?..edge(to)?)
        };
        let holds = |line: &&str| range(line).is_some_and(|range| range.contains(&address));
        let mut own = text.lines().skip_while(|line| !holds(line));
        let flags = own.find_map(|line| line.strip_prefix("VmFlags:")).unwrap();
        flags.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn long_buffers_ask_for_huge_pages_and_short_ones_do_not() {
        let switch = "sys/kernel/mm/transparent_hugepage/enabled";
        if Tree::real().text(switch).is_none() {
            eprintln!("skipped: this kernel has no transparent huge pages");
            return;
        }
        let (long, short) = (Bytes(1 << 20), Bytes((1 << 20) - 1));
        for (backing, len, asks) in [
            (Backing::Transparent, long, true),
            (Backing::Transparent, short, false),
            (Backing::Private, long, false),
        ] {
            let spec = BufferSpec {
                backing,
                ..BufferSpec::private(len)
            };
            let buffer = AlignedBuf::new(&spec).unwrap();
            let address = buffer.as_ptr() as usize;
            assert_eq!(
                flags_of(address).iter().any(|f| f == "hg"),
                asks,
                "{spec:?}"
            );
            if asks {
                assert_eq!(address % (2 << 20), 0);
            }
        }
    }

    #[test]
    fn nonsense_is_refused_before_anything_is_mapped() {
        let message = |spec: &BufferSpec| AlignedBuf::new(spec).unwrap_err().to_string();
        assert!(message(&BufferSpec::private(Bytes(0))).contains("length above 0"));
        let align = Bytes(6_000);
        let odd = BufferSpec {
            align,
            ..spec(Backing::Private)
        };
        assert!(message(&odd).contains("power of two"));
        assert!(message(&BufferSpec::private(Bytes(u64::MAX))).contains("address space"));
        assert!(message(&BufferSpec::private(Bytes(1 << 60))).contains("cannot map"));
    }

    #[test]
    fn one_file_serves_one_buffer_at_a_time() {
        let fake = FakeTree::new();
        let spec = spec(Backing::File(fake.path().join("buffer")));
        let first = AlignedBuf::new(&spec).unwrap();
        let message = AlignedBuf::new(&spec).unwrap_err().to_string();
        assert!(message.contains("lock the buffer file"), "{message}");
        drop(first);
        AlignedBuf::new(&spec).unwrap();
    }

    #[test]
    fn huge_pages_are_given_or_refused_with_a_remedy_but_never_replaced() {
        let pools = MemoryFacts::read(&Tree::real()).huge_pages;
        for (page, size) in [(HugePage::TwoMiB, 2 << 20), (HugePage::OneGiB, 1 << 30)] {
            let free = pools
                .iter()
                .find(|p| p.page == Bytes(size))
                .map_or(0, |p| p.free);
            for backing in [Backing::Huge(page), Backing::Memfd(Some(page))] {
                match AlignedBuf::new(&spec(backing)) {
                    Ok(buffer) => {
                        let size = usize::try_from(size).unwrap();
                        assert_eq!(buffer.as_ptr().align_offset(size), 0);
                    }
                    Err(error) => {
                        assert!(error.to_string().contains("reserve some"), "{error}");
                        assert_eq!(free, 0, "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_locked_buffer_is_given_or_refused_with_a_remedy() {
        let locked = BufferSpec {
            lock: true,
            ..spec(Backing::Private)
        };
        if let Err(error) = AlignedBuf::new(&locked) {
            assert!(error.to_string().contains("ulimit -l"), "{error}");
        }
    }

    #[test]
    fn memory_is_bound_to_a_node_that_exists_and_refused_on_one_that_does_not() {
        let nodes = &Topology::of_this_machine().nodes;
        let bound = |node: u32| {
            let policy = MemoryPolicy::Bind([node].into_iter().collect());
            AlignedBuf::new(&BufferSpec {
                policy: Some(policy),
                ..spec(Backing::Private)
            })
        };
        if let Some(node) = nodes
            .iter()
            .find(|node| node.memory.is_some_and(|m| m.0 > 0))
        {
            assert_eq!(bound(node.id).unwrap().as_slice()[9_999], 0);
        }
        let message = bound(1_023).unwrap_err().to_string();
        assert!(message.contains("take memory by policy"), "{message}");
    }

    #[test]
    fn a_leaked_buffer_stays_mapped() {
        let mut buffer = AlignedBuf::new(&spec(Backing::Private)).unwrap();
        buffer.as_mut_slice()[0] = 42;
        let address = buffer.as_ptr();
        buffer.leak();
        // SAFETY: leaking leaves the mapping in place, and nothing else writes to it.
        assert_eq!(unsafe { address.read() }, 42);
    }
}
