//! The kernel's older interface for asynchronous I/O, by its own system calls.
//!
//! In: operations; each becomes one control block. Out: events, from the kernel or, where asked
//! for, read from its ring without a call. It is asynchronous with direct I/O only; otherwise the
//! hand-over waits for the data.

#![expect(
    unsafe_code,
    reason = "system calls without wrappers, and the ring that they share"
)]

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_run::{Completed, Engine, Submit, Wait};
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::limits::Limits;
use weir_sys::{Availability, Tree};

use super::calls::other;
use super::priority;
use super::pvsync2::call_flags;
use super::{EngineEntry, EngineSetup, OpenTarget, Opens, Refused, run_engine, switch};
use crate::op::{BlockOp, Verb};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "libaio",
        summary: "io_submit and io_getevents; asynchronous with direct I/O only",
        settings: &[
            switch(
                "user_space_reap",
                "false",
                "completions are read from the kernel's ring",
            ),
            switch(
                "no_wait",
                "false",
                "an operation that would wait fails with EAGAIN instead",
            ),
            priority::PERCENT,
            priority::CLASS,
            priority::LEVEL,
            priority::BY_SIZE,
        ],
        synchronous: false,
        acts_on: ActsOn::Data,
    },
    availability,
    is_inline: |_| false,
    opens: Opens::AsNeeded,
    drive: run_engine::<Aio>,
};

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;
/// A control block names a priority (`IOCB_FLAG_IOPRIO`).
const HAS_PRIORITY: u32 = 2;
const RING_MAGIC: u32 = 0xa10a_10a1;

/// `struct iocb` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ControlBlock {
    data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: u32,
    #[cfg(target_endian = "big")]
    key: u32,
    opcode: u16,
    priority: i16,
    file: i32,
    memory: u64,
    length: u64,
    offset: u64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

/// `struct io_event` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    data: u64,
    block: u64,
    result: i64,
    second: i64,
}

/// The head of the ring behind a context, `struct aio_ring` of the kernel.
#[repr(C)]
#[derive(Debug)]
struct RingHead {
    id: u32,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    length: u32,
}

const _: () = assert!(size_of::<ControlBlock>() == 64);
const _: () = assert!(size_of::<Event>() == 32);
const _: () = assert!(size_of::<RingHead>() == 32);

/// A context of the kernel, destroyed when dropped. Destroying waits for what is in flight.
#[derive(Debug)]
struct Context(usize);

impl Context {
    fn new(entries: u32) -> io::Result<Self> {
        let mut context = 0_usize;
        // SAFETY: the kernel writes one word to the context's address.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, entries, &raw mut context) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self(context))
        }
    }

    fn ring(&self) -> Option<&RingHead> {
        let head = std::ptr::with_exposed_provenance::<RingHead>(self.0);
        // SAFETY: the kernel maps the context's ring at the address that is its id, page-aligned,
        // until the context is destroyed.
        let head = unsafe { head.as_ref() }?;
        let known = head.magic == RING_MAGIC && head.length as usize == size_of::<RingHead>();
        (known && head.incompatible == 0).then_some(head)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

fn availability() -> Availability {
    let Err(error) = Context::new(1) else {
        return Availability::Ready;
    };
    match error.raw_os_error() {
        Some(libc::ENOSYS) => Availability::missing(
            "libaio in this kernel",
            "use a kernel with CONFIG_AIO, or the engine io_uring",
        ),
        Some(libc::EAGAIN) => {
            let limits = Limits::read(&Tree::real());
            let (used, most) = (limits.aio_used.unwrap_or(0), limits.aio_max.unwrap_or(0));
            Availability::missing(
                format!("free libaio requests ({used} of {most} are in use)"),
                "raise the limit: sysctl fs.aio-max-nr",
            )
        }
        _ => Availability::missing(format!("libaio ({error})"), "see io_setup(2)"),
    }
}

/// One context.
#[derive(Debug)]
pub(super) struct Aio {
    context: Context,
    reaps_in_user_space: bool,
    rw_flags: u32,
    targets: Vec<OpenTarget>,
    /// By slot.
    blocks: Box<[ControlBlock]>,
    /// Slots submitted since the last hand-over, as the addresses of their blocks.
    queued: Vec<*mut ControlBlock>,
    events: Vec<Event>,
    /// Refused at the hand-over: completions that the kernel will not report.
    refused: Vec<Event>,
}

impl Aio {
    /// Fetches completions into the front of the events; their number.
    #[inline]
    fn fetch(&mut self, wait: Wait) -> io::Result<usize> {
        let room = self.events.len().min(wait.at_most as usize);
        if !self.refused.is_empty() {
            return Ok(self.fetch_refused(room));
        }
        if self.reaps_in_user_space {
            let found = self.fetch_from_ring(room);
            // Fewer than asked for are taken at once too: what is missing comes with the next call.
            if found > 0 || wait.at_least == 0 {
                return Ok(found);
            }
        }
        let at_least = (wait.at_least as usize).min(room);
        let time = wait.timeout_ns.map(|nanos| libc::timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let events = self.events.as_mut_ptr();
        // SAFETY: the kernel writes at most `room` events, for which there is memory, and reads
        // the time-out, if any.
        let found = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context.0,
                at_least,
                room,
                events,
                time,
            )
        };
        match usize::try_from(found) {
            Ok(found) => Ok(found),
            Err(_) => match io::Error::last_os_error() {
                e if e.raw_os_error() == Some(libc::EINTR) => Ok(0),
                error => Err(error),
            },
        }
    }

    #[cold]
    fn fetch_refused(&mut self, room: usize) -> usize {
        let count = self.refused.len().min(room);
        for (event, refused) in self.events.iter_mut().zip(self.refused.drain(..count)) {
            *event = refused;
        }
        count
    }

    #[inline]
    fn fetch_from_ring(&mut self, room: usize) -> usize {
        let Some(ring) = self.context.ring() else {
            return 0;
        };
        let mut head = ring.head.load(Ordering::Relaxed);
        // Pairs with the kernel's barrier between writing an event and moving the tail.
        let tail = ring.tail.load(Ordering::Acquire);
        #[expect(
            clippy::cast_ptr_alignment,
            reason = "the ring begins at a page, its head has 32 bytes"
        )]
        let first = std::ptr::from_ref(ring).wrapping_add(1).cast::<Event>();
        let mut count = 0;
        for event in self.events.iter_mut().take(room) {
            if head == tail {
                break;
            }
            let at = first.wrapping_add(head as usize);
            // SAFETY: the ring's `entries` events follow its head in the same mapping, `head` is
            // below `entries`, and the kernel writes none of those between head and tail.
            *event = unsafe { at.read_volatile() };
            head = if head + 1 >= ring.entries {
                0
            } else {
                head + 1
            };
            count += 1;
        }
        // Pairs with the kernel's look at the head before it fills an event again.
        ring.head.store(head, Ordering::Release);
        count
    }

    /// The priority in the slot's control block, where its flag says that there is one.
    #[cfg(test)]
    pub(super) fn priority(&self, slot: u32) -> Option<i16> {
        let block = self.blocks[slot as usize];
        (block.flags == HAS_PRIORITY).then_some(block.priority)
    }

    /// The kernel did not take the first block: later, or never.
    #[cold]
    fn not_taken(&mut self, error: &io::Error) -> u32 {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        if matches!(errno, libc::EAGAIN | libc::EINTR) || self.queued.is_empty() {
            return 0;
        }
        let block = self.queued.remove(0);
        let first = self.blocks.iter().find(|b| std::ptr::eq(*b, block));
        let data = first.map_or(0, |b| b.data);
        self.refused.push(Event {
            data,
            result: -i64::from(errno),
            ..Event::default()
        });
        1
    }
}

impl Engine for Aio {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const QUICK: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let depth = setup.depth.max(1);
        let context = Context::new(depth).map_err(|e| {
            let hint = "the limit of all processes together is sysctl fs.aio-max-nr";
            Refused::error(&e, &format!("cannot reserve {depth} requests ({hint})"))
        })?;
        let reaps_in_user_space =
            setup.choice.flag("user_space_reap", false) && context.ring().is_some();
        let room = depth as usize;
        Ok(Self {
            context,
            reaps_in_user_space,
            rw_flags: call_flags(&setup.choice).bits(),
            targets: setup.targets,
            blocks: vec![ControlBlock::default(); room].into(),
            queued: Vec::with_capacity(room),
            events: vec![Event::default(); room],
            refused: Vec::new(),
        })
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        let Some(target) = self.targets.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        let opcode = match op.verb {
            Verb::Read => PREAD,
            Verb::Write => PWRITE,
            Verb::Sync => FSYNC,
            Verb::DataSync => FDSYNC,
            Verb::Trim | Verb::RangeSync => return Submit::Done(other(target, op)),
        };
        let Some(block) = self.blocks.get_mut(slot as usize) else {
            return Submit::Full;
        };
        let moves = matches!(op.verb, Verb::Read | Verb::Write);
        *block = ControlBlock {
            data: u64::from(slot),
            rw_flags: if moves { self.rw_flags } else { 0 },
            opcode,
            priority: op.priority.cast_signed(),
            flags: if op.priority == 0 { 0 } else { HAS_PRIORITY },
            file: target.file.as_raw_fd(),
            // A flush names nothing, or is refused.
            memory: if moves {
                op.buffer.0.expose_provenance() as u64
            } else {
                0
            },
            length: u64::from(op.length),
            offset: if moves { op.offset } else { 0 },
            ..ControlBlock::default()
        };
        self.queued.push(block);
        Submit::Queued
    }

    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        let (count, blocks) = (self.queued.len(), self.queued.as_ptr());
        // SAFETY: each address names a block of `self.blocks`, which the kernel copies during the
        // call; the memory that they name outlives the context (see `run_engine`), and a slot is not
        // used again before its completion.
        let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.context.0, count, blocks) };
        let Ok(taken) = u32::try_from(taken) else {
            return Ok(self.not_taken(&io::Error::last_os_error()));
        };
        if taken as usize == count {
            self.queued.clear();
        } else {
            self.queued.drain(..taken as usize);
        }
        Ok(taken)
    }

    #[inline]
    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        let count = self.fetch(wait)?;
        for event in self.events.iter().take(count) {
            #[expect(clippy::cast_possible_truncation, reason = "the data is a slot")]
            done(Completed {
                slot: event.data as u32,
                result: event.result,
            });
        }
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}
