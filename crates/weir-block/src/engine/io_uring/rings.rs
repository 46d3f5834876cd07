//! The rings that a thread shares with the kernel: set up, mapped, handed over.
//!
//! In: entries, each written into a place of its own, and the order of the places. Out: events.
//! Not here: what an entry says ([`super::entry`]), when to wait.

#![expect(
    unsafe_code,
    reason = "memory that the kernel reads and writes, and the calls that share it"
)]

use std::ffi::c_void;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::io::Errno;
use rustix::io_uring::{
    IORING_OFF_CQ_RING, IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFeatureFlags,
    IoringRegisterOp, IoringSqFlags, io_uring_enter, io_uring_enter_arg, io_uring_getevents_arg,
    io_uring_params, io_uring_ptr, io_uring_register, io_uring_setup,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// An entry of the submission ring, `struct io_uring_sqe` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RingEntry {
    pub(super) head: EntryHead,
    pub(super) offset: u64,
    pub(super) memory: u64,
    pub(super) length: u32,
    /// Flags of the operation.
    pub(super) call_flags: u32,
    /// Comes back with the event.
    pub(super) data: u64,
    /// Of registered buffers.
    pub(super) buffer: u16,
    pub(super) personality: u16,
    pub(super) other_file: u32,
    pub(super) unused: [u64; 2],
}

/// The first word of an entry.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EntryHead {
    pub(super) opcode: u8,
    pub(super) flags: u8,
    pub(super) priority: u16,
    /// A file descriptor or, with the flag, an index.
    pub(super) file: i32,
}

/// An entry of the completion ring, `struct io_uring_cqe` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct RingEvent {
    /// The user data of the submission entry.
    pub(super) data: u64,
    /// Bytes, or a negative errno.
    pub(super) result: i32,
    flags: u32,
}

const _: () = assert!(size_of::<RingEntry>() == 64);
const _: () = assert!(size_of::<RingEvent>() == 16);

/// Memory that the kernel mapped, unmapped when dropped.
struct Mapping {
    start: NonNull<c_void>,
    length: usize,
}

impl Mapping {
    fn new(ring: &OwnedFd, length: usize, at: u64) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start = unsafe { mmap(std::ptr::null_mut(), length, access, flags, ring, at) }?;
        let start = NonNull::new(start).ok_or(Errno::FAULT)?;
        Ok(Self { start, length })
    }

    /// The address of what lies there.
    fn at<T>(&self, offset: u32) -> NonNull<T> {
        let bytes = self.start.as_ptr().wrapping_byte_add(offset as usize);
        NonNull::new(bytes.cast()).unwrap_or(NonNull::dangling())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing refers to it any more: the rings
        // are dropped with it.
        let _ = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}

/// A submission and a completion ring.
pub(super) struct Rings<E = RingEntry, V = RingEvent> {
    /// As many places as the submission ring has; a power of two.
    entries: NonNull<E>,
    /// The order in which places are handed over.
    order: NonNull<u32>,
    entry_mask: u32,
    /// The next position in the order; the kernel sees it with the next hand-over.
    tail: u32,
    /// Up to where the kernel has taken.
    sent: u32,
    /// Events taken.
    seen: u32,
    events: NonNull<V>,
    event_mask: u32,
    kernel_head: NonNull<AtomicU32>,
    shared_tail: NonNull<AtomicU32>,
    kernel_flags: NonNull<AtomicU32>,
    shared_seen: NonNull<AtomicU32>,
    kernel_events: NonNull<AtomicU32>,
    fd: OwnedFd,
    _mappings: [Option<Mapping>; 3],
}

/// An answer of the kernel in the form in which it came, which is tested by one comparison.
#[inline]
fn answer(result: Result<u32, Errno>) -> i64 {
    match result {
        Ok(number) => i64::from(number),
        Err(errno) => refused(errno),
    }
}

#[cold]
#[inline(never)]
fn refused(errno: Errno) -> i64 {
    -i64::from(errno.raw_os_error())
}

impl<E, V: Copy> Rings<E, V> {
    /// Sets rings up, of at least so many entries unless the parameters let the kernel clamp them. They say as well
    /// how long entries and events are.
    pub(super) fn new(entries: u32, mut params: io_uring_params) -> Result<Self, Errno> {
        // SAFETY: the parameters name no file descriptor (`ATTACH_WQ` is never set).
        let fd = unsafe { io_uring_setup(entries, &mut params) }?;
        let (submission, completion) = (params.sq_off, params.cq_off);
        let order = submission.array as usize + params.sq_entries as usize * size_of::<u32>();
        let events = completion.cqes as usize + params.cq_entries as usize * size_of::<V>();
        let are_one = params.features.contains(IoringFeatureFlags::SINGLE_MMAP);
        let length = if are_one { order.max(events) } else { order };
        let first = Mapping::new(&fd, length, IORING_OFF_SQ_RING)?;
        let second = if are_one {
            None
        } else {
            Some(Mapping::new(&fd, events, IORING_OFF_CQ_RING)?)
        };
        let size = params.sq_entries as usize * size_of::<E>();
        let entries = Mapping::new(&fd, size, IORING_OFF_SQES)?;
        let other = second.as_ref().unwrap_or(&first);
        Ok(Self {
            entries: entries.at(0),
            order: first.at(submission.array),
            entry_mask: params.sq_entries - 1,
            tail: 0,
            sent: 0,
            seen: 0,
            events: other.at(completion.cqes),
            event_mask: params.cq_entries - 1,
            kernel_head: first.at(submission.head),
            shared_tail: first.at(submission.tail),
            kernel_flags: first.at(submission.flags),
            shared_seen: other.at(completion.head),
            kernel_events: other.at(completion.tail),
            fd,
            _mappings: [Some(first), second, Some(entries)],
        })
    }

    /// Number of entries.
    pub(super) fn places(&self) -> u32 {
        self.entry_mask + 1
    }

    /// The entry in a place; it is not among those that were offered and not yet taken.
    #[inline]
    pub(super) fn entry(&mut self, place: u32) -> &mut E {
        let place = self
            .entries
            .as_ptr()
            .wrapping_add((place & self.entry_mask) as usize);
        // SAFETY: the mask keeps the place below the number of entries, all of which are mapped as
        // long as these rings live. The kernel reads an entry between its offer and its taking
        // only, when the caller has no reference to it.
        unsafe { &mut *place }
    }

    /// The place that comes next where they are used in turn.
    pub(super) fn next_place(&self) -> u32 {
        self.tail & self.entry_mask
    }

    /// True if another entry can be offered.
    pub(super) fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// Entries that can be offered.
    pub(super) fn room(&self) -> u32 {
        let offered = self.tail.wrapping_sub(self.taken_by_kernel());
        self.places().saturating_sub(offered)
    }

    /// Offers the entry in a place with the next hand-over, for which there is room.
    #[inline]
    pub(super) fn offer(&mut self, place: u32) {
        let at = (self.tail & self.entry_mask) as usize;
        let position = self.order.as_ptr().wrapping_add(at);
        // SAFETY: the mask keeps the position below the number of entries, and so of positions. The
        // kernel reads those between its head and the shared tail only, and this one is behind.
        unsafe { position.write(place) };
        self.tail = self.tail.wrapping_add(1);
    }

    /// Offered and not yet taken.
    #[inline]
    pub(super) fn offered(&self) -> u32 {
        self.tail.wrapping_sub(self.sent)
    }

    /// Taken by the kernel, and their events not yet.
    pub(super) fn in_flight(&self) -> u32 {
        self.sent.wrapping_sub(self.seen)
    }

    /// Hands over what was offered; how much was taken, or a negative errno.
    #[inline]
    pub(super) fn hand_over(&mut self) -> i64 {
        self.publish();
        let answer = self.enter(self.offered(), 0, IoringEnterFlags::empty());
        if let Ok(taken) = u32::try_from(answer) {
            self.sent = self.sent.wrapping_add(taken);
        }
        answer
    }

    /// The same with a kernel thread that takes by itself, but sleeps after a while without any.
    #[cold]
    pub(super) fn hand_over_to_thread(&mut self) -> i64 {
        self.publish();
        // The thread sets the flag and then looks at the tail; here it is the other way round.
        fence(Ordering::SeqCst);
        // SAFETY: the word is mapped as long as these rings live, and the kernel changes it as an
        // atomic.
        let flags = unsafe { self.kernel_flags.as_ref() }.load(Ordering::Relaxed);
        let offered = self.offered();
        if flags & IoringSqFlags::NEED_WAKEUP.bits() != 0 {
            let answer = self.enter(offered, 0, IoringEnterFlags::SQ_WAKEUP);
            if answer < 0 {
                // Entries that it has taken will come back.
                let taken = self.taken_by_kernel().wrapping_sub(self.sent);
                self.sent = self.sent.wrapping_add(taken);
                return if taken == 0 { answer } else { taken.into() };
            }
        }
        self.sent = self.tail;
        offered.into()
    }

    #[inline]
    fn publish(&self) {
        // SAFETY: the word is mapped as long as these rings live; the kernel only reads it.
        let tail = unsafe { self.shared_tail.as_ref() };
        // Pairs with the kernel's acquire before it reads positions and entries.
        tail.store(self.tail, Ordering::Release);
    }

    fn taken_by_kernel(&self) -> u32 {
        // SAFETY: the word is mapped as long as these rings live, and the kernel changes it as an
        // atomic.
        let head = unsafe { self.kernel_head.as_ref() };
        // Pairs with the kernel's release once it has read the entries.
        head.load(Ordering::Acquire)
    }

    #[inline]
    fn enter(&self, offered: u32, at_least: u32, flags: IoringEnterFlags) -> i64 {
        // SAFETY: whoever wrote the entries that the kernel takes vouched for the memory that they
        // name.
        answer(unsafe { io_uring_enter(&self.fd, offered, at_least, flags) })
    }

    /// Waits until so many events are ready, or a signal; a negative errno where it could not.
    #[inline]
    pub(super) fn wait(&self, at_least: u32) -> i64 {
        self.enter(0, at_least, IoringEnterFlags::GETEVENTS)
    }

    /// Waits until so many events are ready, a signal, or the end of the time.
    #[cold]
    pub(super) fn wait_timed(&self, at_least: u32, nanos: u64) -> i64 {
        let mut time = [nanos / 1_000_000_000, nanos % 1_000_000_000];
        let argument = io_uring_getevents_arg {
            ts: io_uring_ptr::new((&raw mut time).cast()),
            ..io_uring_getevents_arg::default()
        };
        let flags = IoringEnterFlags::GETEVENTS | IoringEnterFlags::EXT_ARG;
        // SAFETY: nothing is handed over, and the kernel reads argument and time during the call.
        answer(unsafe { io_uring_enter_arg(&self.fd, 0, at_least, flags, Some(&argument)) })
    }

    /// Events that are ready.
    #[inline]
    pub(super) fn ready(&self) -> u32 {
        // SAFETY: the word is mapped as long as these rings live, and the kernel changes it as an
        // atomic.
        let tail = unsafe { self.kernel_events.as_ref() };
        // Pairs with the kernel's release once it has written the events.
        tail.load(Ordering::Acquire).wrapping_sub(self.seen)
    }

    /// The event this far behind the first one that is ready.
    #[inline]
    pub(super) fn event(&self, behind: u32) -> V {
        let at = self.seen.wrapping_add(behind) & self.event_mask;
        let place = self.events.as_ptr().wrapping_add(at as usize);
        // SAFETY: the mask keeps the place below the number of events, all of which are mapped as
        // long as these rings live; the kernel writes no event that is ready and not yet taken.
        unsafe { place.read() }
    }

    /// Gives the places of `count` events back to the kernel.
    #[inline]
    pub(super) fn take_events(&mut self, count: u32) {
        self.seen = self.seen.wrapping_add(count);
        // SAFETY: the word is mapped as long as these rings live; the kernel only reads it.
        let seen = unsafe { self.shared_seen.as_ref() };
        // Pairs with the kernel's acquire before it writes events again.
        seen.store(self.seen, Ordering::Release);
    }

    /// Registers memory, in the order of its indices.
    ///
    /// # Safety
    /// It stays mapped as long as these rings live.
    pub(super) unsafe fn register_buffers(&self, buffers: &[libc::iovec]) -> Result<(), Errno> {
        let count = u32::try_from(buffers.len()).unwrap_or(u32::MAX);
        let list = buffers.as_ptr().cast();
        let what = IoringRegisterOp::RegisterBuffers;
        // SAFETY: the kernel reads as many records as the list has; the caller answers for what
        // they name.
        unsafe { io_uring_register(&self.fd, what, list, count) }.map(|_| ())
    }

    /// Registers files, in the order of their indices.
    pub(super) fn register_files(&self, files: &[RawFd]) -> Result<(), Errno> {
        let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
        let list = files.as_ptr().cast();
        let what = IoringRegisterOp::RegisterFiles;
        // SAFETY: the kernel reads as many numbers as the list has.
        unsafe { io_uring_register(self.fd.as_fd(), what, list, count) }.map(|_| ())
    }
}
