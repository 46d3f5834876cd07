//! The kernel's shared rings: operations are queued in memory and handed over by one call.
//!
//! In: operations; each becomes one entry of the submission ring. Out: entries of the completion
//! ring. Buffers and files are registered unless told otherwise, so that the kernel looks nothing
//! up per operation; slot and target are their indices.

#![expect(
    unsafe_code,
    reason = "registered memory, and entries that name memory by address"
)]

pub(super) mod command;
mod entry;
mod rings;

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use rustix::io::Errno;
use rustix::io_uring::{IoringSetupFlags, IoringSqeFlags, io_uring_params};
use weir_run::{Completed, Engine, Submit, Wait};
use weir_schema::EngineChoice;
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::limits::{IoUringAccess, Limits};
use weir_sys::{Availability, Tree};

use super::calls::other;
use super::priority;
use super::pvsync2::call_flags;
use super::{
    EngineEntry, EngineSetup, OpenTarget, Opens, Refused, SlotMemory, Warnings, number, run_engine,
    switch,
};
use crate::op::{BlockOp, Verb};
use entry::EntryShape;
use rings::{EntryHead, RingEntry, RingEvent, Rings};

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "io_uring",
        summary: "the kernel's shared rings: many operations in flight, few system calls",
        settings: &[
            switch(
                "registered_buffers",
                "true",
                "the kernel maps the buffers once",
            ),
            switch(
                "registered_files",
                "true",
                "the kernel looks the targets up once",
            ),
            switch("polled", "false", "the device is polled; needs direct I/O"),
            switch(
                "kernel_poll_thread",
                "false",
                "a kernel thread takes what is queued",
            ),
            number(
                "kernel_poll_cpu",
                (0, 65_535),
                "any",
                "the CPU of that thread",
            ),
            switch(
                "nonvectored",
                "true",
                "one address per operation instead of a list of one",
            ),
            number(
                "force_async",
                (0, 1 << 20),
                "0",
                "each n-th operation goes to a worker",
            ),
            switch(
                "no_wait",
                "false",
                "an operation that would wait fails with EAGAIN instead",
            ),
            switch(
                "uncached",
                "false",
                "data leaves the page cache when the operation is over",
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
    drive: run_engine::<Ring>,
};

/// The most entries of a submission ring.
const MOST_ENTRIES: u32 = 32_768;
/// As many completions have room in the ring of the most entries.
const MOST_IN_FLIGHT: u32 = 2 * MOST_ENTRIES;
/// The most buffers that can be registered.
const MOST_BUFFERS: u32 = 16_384;
/// The poll thread sleeps after this long without work.
const POLL_THREAD_IDLE_MS: u32 = 1_000;

fn availability() -> Availability {
    let Err(errno) = Rings::<RingEntry, RingEvent>::new(1, io_uring_params::default()) else {
        return Availability::Ready;
    };
    let switch = "sysctl kernel.io_uring_disabled=0";
    match (errno, Limits::read(&Tree::real()).io_uring) {
        (Errno::NOSYS, _) => {
            Availability::missing("io_uring in this kernel", "use Linux 5.1 or later")
        }
        (Errno::PERM | Errno::ACCESS, IoUringAccess::Nobody) => {
            Availability::missing("io_uring, switched off for everybody", switch)
        }
        (Errno::PERM | Errno::ACCESS, IoUringAccess::Privileged) => Availability::missing(
            "io_uring, reserved for privileged processes",
            format!("{switch}, or run as root"),
        ),
        (Errno::PERM | Errno::ACCESS, IoUringAccess::Everybody) => Availability::missing(
            "io_uring, refused by a filter of system calls (seccomp)",
            "allow io_uring_setup in the container's profile",
        ),
        (Errno::NOMEM, _) => Availability::missing(
            "memory that may be locked for a ring",
            "raise the limit of locked memory, `ulimit -l`",
        ),
        (errno, _) => Availability::missing(
            format!("io_uring ({})", io::Error::from(errno)),
            "see io_uring_setup(2)",
        ),
    }
}

/// Rings, and what their entries are made of.
///
/// A slot has an entry of its own, in the place of its number. As long as all operations are reads
/// and writes, what does not change from one to the next stays in the entry.
pub(super) struct Ring {
    rings: Rings,
    shape: EntryShape,
    has_poll_thread: bool,
    targets: Vec<OpenTarget>,
    /// By target: the first words of reads and of writes. As long as there are any, the entries of
    /// all slots hold what reads and writes have in common.
    heads: Box<[[EntryHead; 2]]>,
    /// There are more slots than entries: places are used in turn.
    takes_turns: bool,
    /// Each n-th operation goes to a worker of the kernel.
    force_async: u64,
    issued: u64,
    /// For vectored operations: one list of one per slot.
    vectors: Vec<libc::iovec>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// Sets a ring up with the best mode that this kernel accepts.
///
/// Completions wait until the thread enters the kernel anyway, instead of interrupting it. Where
/// operations are handed over one by one, this takes fewer calls than deferring completions until
/// they are asked for: each hand-over posts those that are over.
fn build<E, V: Copy>(
    choice: &EngineChoice,
    entries: u32,
    sizes: IoringSetupFlags,
) -> Result<Rings<E, V>, Errno> {
    let has_poll_thread = choice.flag("kernel_poll_thread", false);
    let mut plain = io_uring_params::default();
    plain.flags = IoringSetupFlags::CLAMP | sizes;
    if choice.flag("polled", false) {
        plain.flags |= IoringSetupFlags::IOPOLL;
    }
    if has_poll_thread {
        plain.flags |= IoringSetupFlags::SQPOLL;
        plain.sq_thread_idle = POLL_THREAD_IDLE_MS;
        if let Some(cpu) = choice.number("kernel_poll_cpu") {
            plain.flags |= IoringSetupFlags::SQ_AFF;
            plain.sq_thread_cpu = u32::try_from(cpu).unwrap_or(u32::MAX);
        }
    }
    // What Linux 6.0 has, then 5.18, then what was there before. Without `SUBMIT_ALL` the kernel
    // stops at the first entry that it refuses, and the others wait for the next hand-over.
    let alone = IoringSetupFlags::COOP_TASKRUN | IoringSetupFlags::SINGLE_ISSUER;
    let submit_all = IoringSetupFlags::SUBMIT_ALL;
    let modes = [alone | submit_all, submit_all, IoringSetupFlags::empty()];
    let mut refused = Errno::INVAL;
    for mode in modes.into_iter().skip(usize::from(has_poll_thread)) {
        let mut params = plain;
        params.flags |= mode;
        match Rings::new(entries, params) {
            Err(Errno::INVAL) => refused = Errno::INVAL,
            result => return result,
        }
    }
    Err(refused)
}

/// Registers what can be registered; what is refused is noted and done without.
fn register<E, V: Copy>(
    rings: &Rings<E, V>,
    choice: &EngineChoice,
    targets: &[OpenTarget],
    memory: SlotMemory,
    warnings: &Warnings,
) -> (bool, bool) {
    let missing = |what: &str, errno: Errno| {
        let error = io::Error::from(errno);
        let cause = format!("The kernel refused to register the {what} ({error}).");
        warnings.add("not-registered", cause);
    };
    let buffers = choice.flag("registered_buffers", true) && memory.slots <= MOST_BUFFERS && {
        let slot = |n: u32| libc::iovec {
            iov_base: memory.base.wrapping_add(n as usize * memory.stride).cast(),
            iov_len: memory.stride,
        };
        let slots: Vec<_> = (0..memory.slots).map(slot).collect();
        // SAFETY: the slots' memory outlives the ring (see `run_engine`).
        let result = unsafe { rings.register_buffers(&slots) };
        result.inspect_err(|e| missing("buffers", *e)).is_ok()
    };
    let files = choice.flag("registered_files", true) && {
        let files: Vec<RawFd> = targets.iter().map(|t| t.file.as_raw_fd()).collect();
        let result = rings.register_files(&files);
        result.inspect_err(|e| missing("files", *e)).is_ok()
    };
    (buffers, files)
}

impl Ring {
    /// Offers an operation of whatever sort, by an entry that is written as a whole.
    #[inline(never)]
    fn submit_any(&mut self, slot: u32, op: &BlockOp) -> Submit {
        let Some(target) = self.targets.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        let vector = self.vectors.get_mut(slot as usize);
        let Some(mut entry) = self.shape.entry(slot, op, target, vector) else {
            return Submit::Done(other(target, *op));
        };
        if self.force_async > 0 {
            self.issued += 1;
            if self.issued.is_multiple_of(self.force_async) {
                entry.head.flags |= IoringSqeFlags::ASYNC.bits();
            }
        }
        // A hole's completion says 0, not its length: the length travels along.
        let hole = if op.verb == Verb::Trim {
            u64::from(op.length)
        } else {
            0
        };
        entry.data = u64::from(slot) | hole << 32;
        if !self.rings.has_room() {
            return Submit::Full;
        }
        self.heads = Box::default();
        let place = if self.takes_turns {
            self.rings.next_place()
        } else {
            slot
        };
        *self.rings.entry(place) = entry;
        self.rings.offer(place);
        Submit::Queued
    }

    /// Waits for completions, a signal or the end of the time.
    #[inline]
    fn wait(&self, at_least: u32, timeout_ns: Option<u64>) -> io::Result<()> {
        let waited = match timeout_ns {
            None => self.rings.wait(at_least),
            // A polled ring cannot wait for a time: look once, the loop comes again.
            Some(_) if self.shape.polled => self.rings.wait(0),
            Some(nanos) => self.rings.wait_timed(at_least, nanos),
        };
        if waited < 0 {
            return not_waited(waited);
        }
        Ok(())
    }
}

/// True if the kernel also takes the entries after one that it refuses.
#[cfg(test)]
pub(super) fn submits_all() -> bool {
    let mut params = io_uring_params::default();
    params.flags = IoringSetupFlags::SUBMIT_ALL;
    Rings::<RingEntry, RingEvent>::new(1, params).is_ok()
}

impl Engine for Ring {
    type Op = BlockOp;
    type Setup = EngineSetup;
    const QUICK: bool = true;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let EngineSetup {
            targets,
            depth,
            memory,
            choice,
            warnings,
            ..
        } = setup;
        if depth > MOST_IN_FLIGHT {
            let reason = format!("a ring keeps no more than {MOST_IN_FLIGHT} in flight");
            return Err(Refused::error(&Errno::INVAL.into(), &reason));
        }
        let entries = depth.clamp(1, MOST_ENTRIES);
        let mut rings = build(&choice, entries, IoringSetupFlags::empty()).map_err(|e| {
            Refused::error(&e.into(), &format!("cannot set a ring of {entries} up"))
        })?;
        let (fixed_buffers, fixed_files) = register(&rings, &choice, &targets, memory, &warnings);
        let shape = EntryShape {
            fixed_buffers,
            fixed_files,
            polled: choice.flag("polled", false),
            rw_flags: call_flags(&choice).bits(),
        };
        let vectored = !fixed_buffers && !choice.flag("nonvectored", true);
        let none = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let vectors = if vectored { depth as usize } else { 0 };
        let head_of = |(number, target)| {
            [Verb::Read, Verb::Write].map(|verb| shape.head(verb, number, target, false))
        };
        let force_async = choice.number("force_async").map_or(0, i64::unsigned_abs);
        let takes_turns = depth > rings.places();
        if !takes_turns {
            (0..depth).for_each(|slot| *rings.entry(slot) = shape.blank(slot));
        }
        Ok(Self {
            rings,
            shape,
            has_poll_thread: choice.flag("kernel_poll_thread", false),
            heads: if takes_turns || vectored || force_async > 0 {
                Box::default()
            } else {
                (0..).zip(&targets).map(head_of).collect()
            },
            takes_turns,
            targets,
            force_async,
            issued: 0,
            vectors: vec![none; vectors],
        })
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        if let Some(heads) = self.heads.get(op.target as usize)
            && let Verb::Read | Verb::Write = op.verb
        {
            // The slot's own entry, whose last operation is over: there is room for it.
            let entry = self.rings.entry(slot);
            entry.head = heads[usize::from(op.verb == Verb::Write)];
            entry.head.priority = op.priority;
            entry.offset = op.offset;
            // The slot's memory outlives the ring (see `run_engine`), and the slot is not used
            // again before its completion.
            entry.memory = op.buffer.0.expose_provenance() as u64;
            entry.length = op.length;
            self.rings.offer(slot);
            return Submit::Queued;
        }
        self.submit_any(slot, op)
    }

    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        let taken = if self.has_poll_thread {
            self.rings.hand_over_to_thread()
        } else {
            self.rings.hand_over()
        };
        u32::try_from(taken).or_else(|_| not_taken(taken))
    }

    #[inline]
    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        let at_least = wait.at_least.min(wait.at_most);
        let mut ready = self.rings.ready();
        // All of the waiting comes before the first completion is told, which reads the clock.
        // With nothing to wait for this only lets the kernel post what is over.
        if ready < at_least.max(1) {
            self.wait(at_least, wait.timeout_ns)?;
            ready = self.rings.ready();
        }
        let taken = ready.min(wait.at_most);
        for behind in 0..taken {
            let event = self.rings.event(behind);
            let result = match event.result {
                0 => (event.data >> 32).cast_signed(),
                result => i64::from(result),
            };
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the lower half is the slot"
            )]
            done(Completed {
                slot: event.data as u32,
                result,
            });
        }
        self.rings.take_events(taken);
        Ok(taken)
    }
}

/// A hand-over that the kernel refused with this negative errno.
#[cold]
#[inline(never)]
fn not_taken(answer: i64) -> io::Result<u32> {
    match errno_of(answer) {
        // It could not take entries at the moment.
        Errno::INTR | Errno::AGAIN | Errno::BUSY => Ok(0),
        errno => Err(errno.into()),
    }
}

/// A wait that ended early with this negative errno.
#[cold]
#[inline(never)]
fn not_waited(answer: i64) -> io::Result<()> {
    match errno_of(answer) {
        Errno::INTR | Errno::TIME => Ok(()),
        errno => Err(errno.into()),
    }
}

fn errno_of(answer: i64) -> Errno {
    i32::try_from(-answer).map_or(Errno::IO, Errno::from_raw_os_error)
}

impl Drop for Ring {
    /// Waits for what is in flight: the kernel must not write into memory that is given back.
    fn drop(&mut self) {
        if self.has_poll_thread && self.rings.offered() > 0 {
            // It takes what is offered, asked or not; where it fails it is gone, and takes nothing.
            let _ = self.commit();
        }
        while self.rings.in_flight() > 0 {
            let wait = Wait {
                at_least: 1,
                at_most: u32::MAX,
                timeout_ns: None,
            };
            if self.reap(wait, |_| ()).is_err() {
                break;
            }
        }
    }
}
