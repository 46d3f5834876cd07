//! The kernel's shared rings: operations are queued in memory and handed over by one call.
//!
//! In: operations; each becomes one entry of the submission ring. Out: entries of the completion
//! ring. Buffers and files are registered unless told otherwise, so that the kernel looks nothing
//! up per operation; slot and target are their indices.

#![expect(
    unsafe_code,
    reason = "entries that name memory by address, and the enter call"
)]

mod entry;

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use io_uring::squeue::Flags;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{Builder, EnterFlags, IoUring};
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
/// The most buffers that can be registered.
const MOST_BUFFERS: u32 = 16_384;
/// The poll thread sleeps after this long without work.
const POLL_THREAD_IDLE_MS: u32 = 1_000;

fn availability() -> Availability {
    let Err(error) = IoUring::new(1) else {
        return Availability::Ready;
    };
    let switch = "sysctl kernel.io_uring_disabled=0";
    match (error.raw_os_error(), Limits::read(&Tree::real()).io_uring) {
        (Some(libc::ENOSYS), _) => {
            Availability::missing("io_uring in this kernel", "use Linux 5.1 or later")
        }
        (Some(libc::EPERM | libc::EACCES), IoUringAccess::Nobody) => {
            Availability::missing("io_uring, switched off for everybody", switch)
        }
        (Some(libc::EPERM | libc::EACCES), IoUringAccess::Privileged) => Availability::missing(
            "io_uring, reserved for privileged processes",
            format!("{switch}, or run as root"),
        ),
        (Some(libc::EPERM | libc::EACCES), IoUringAccess::Everybody) => Availability::missing(
            "io_uring, refused by a filter of system calls (seccomp)",
            "allow io_uring_setup in the container's profile",
        ),
        (Some(libc::ENOMEM), _) => Availability::missing(
            "memory that may be locked for a ring",
            "raise the limit of locked memory, `ulimit -l`",
        ),
        _ => Availability::missing(format!("io_uring ({error})"), "see io_uring_setup(2)"),
    }
}

/// One ring.
pub(super) struct Ring {
    rings: IoUring,
    shape: EntryShape,
    has_poll_thread: bool,
    targets: Vec<OpenTarget>,
    /// Queued since the last hand-over.
    queued: u32,
    /// Handed over and not yet reaped.
    in_flight: u32,
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
fn build(choice: &EngineChoice, entries: u32) -> io::Result<IoUring> {
    let has_poll_thread = choice.flag("kernel_poll_thread", false);
    let plain = |builder: &mut Builder| {
        builder.setup_clamp();
        if choice.flag("polled", false) {
            builder.setup_iopoll();
        }
        if has_poll_thread {
            builder.setup_sqpoll(POLL_THREAD_IDLE_MS);
            if let Some(cpu) = choice.number("kernel_poll_cpu") {
                builder.setup_sqpoll_cpu(u32::try_from(cpu).unwrap_or(u32::MAX));
            }
        }
    };
    // What Linux 6.0 has, then 5.18, then what was there before. Without `submit_all` the kernel
    // stops at the first entry that it refuses, and the others wait for the next hand-over.
    let modes = [(true, true), (false, true), (false, false)];
    let fitting = modes
        .iter()
        .filter(|(alone, _)| !(*alone && has_poll_thread));
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for (alone, submit_all) in fitting {
        let mut builder: Builder = IoUring::builder();
        plain(&mut builder);
        if *submit_all {
            builder.setup_submit_all();
        }
        if *alone {
            builder.setup_coop_taskrun().setup_single_issuer();
        }
        match builder.build(entries) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            result => return result,
        }
    }
    Err(refused)
}

/// Registers what can be registered; what is refused is noted and done without.
fn register(
    ring: &IoUring,
    choice: &EngineChoice,
    targets: &[OpenTarget],
    memory: SlotMemory,
    warnings: &Warnings,
) -> (bool, bool) {
    let missing = |what: &str, error: &io::Error| {
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
        let result = unsafe { ring.submitter().register_buffers(&slots) };
        result.inspect_err(|e| missing("buffers", e)).is_ok()
    };
    let files = choice.flag("registered_files", true) && {
        let files: Vec<RawFd> = targets.iter().map(|t| t.file.as_raw_fd()).collect();
        ring.submitter()
            .register_files(&files)
            .inspect_err(|e| missing("files", e))
            .is_ok()
    };
    (buffers, files)
}

impl Ring {
    /// One `io_uring_enter`.
    #[inline]
    fn enter(
        &self,
        submit: u32,
        at_least: u32,
        flags: EnterFlags,
        argument: Option<&SubmitArgs<'_, '_>>,
    ) -> io::Result<u32> {
        let ring = self.rings.submitter();
        // SAFETY: the entries that the kernel takes were pushed by `submit`, which answers for
        // their memory; an argument is passed exactly where the flags announce it.
        let taken = unsafe { ring.enter(submit, at_least, flags.bits(), argument) };
        taken.map(|taken| u32::try_from(taken).unwrap_or(u32::MAX))
    }

    /// Waits for completions, a signal or the end of the time.
    #[inline]
    fn wait(&self, at_least: u32, timeout_ns: Option<u64>) -> io::Result<()> {
        let events = EnterFlags::GETEVENTS;
        let entered = match timeout_ns {
            None => self.enter(0, at_least, events, None),
            // A polled ring cannot wait for a time: look once, the loop comes again.
            Some(_) if self.shape.polled => self.enter(0, 0, events, None),
            Some(nanos) => self.wait_timed(at_least, nanos),
        };
        match entered {
            Ok(_) => Ok(()),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINTR | libc::ETIME)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The hand-over failed. The poll thread takes entries whenever it sees them: those that it
    /// has taken will come back.
    #[cold]
    fn not_handed_over(&mut self, error: io::Error) -> io::Result<u32> {
        let left = u32::try_from(self.rings.submission().len()).unwrap_or(u32::MAX);
        let taken = self.queued.saturating_sub(left);
        if !self.has_poll_thread || taken == 0 {
            return Err(error);
        }
        self.queued -= taken;
        self.in_flight += taken;
        Ok(taken)
    }

    #[cold]
    fn wait_timed(&self, at_least: u32, nanos: u64) -> io::Result<u32> {
        let rest = u32::try_from(nanos % 1_000_000_000).unwrap_or(0);
        let time = Timespec::new().sec(nanos / 1_000_000_000).nsec(rest);
        let argument = SubmitArgs::new().timespec(&time);
        self.enter(
            0,
            at_least,
            EnterFlags::GETEVENTS | EnterFlags::EXT_ARG,
            Some(&argument),
        )
    }
}

impl Engine for Ring {
    type Op = BlockOp;
    type Setup = EngineSetup;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let EngineSetup {
            targets,
            depth,
            memory,
            choice,
            warnings,
            ..
        } = setup;
        let entries = depth.clamp(1, MOST_ENTRIES);
        let ring = build(&choice, entries)
            .map_err(|e| Refused::error(&e, &format!("cannot set a ring of {entries} up")))?;
        let (fixed_buffers, fixed_files) = register(&ring, &choice, &targets, memory, &warnings);
        let flags = call_flags(&choice).bits();
        let shape = EntryShape {
            fixed_buffers,
            fixed_files,
            polled: choice.flag("polled", false),
            rw_flags: i32::try_from(flags).unwrap_or(0),
        };
        let vectored = !fixed_buffers && !choice.flag("nonvectored", true);
        let none = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let vectors = if vectored { depth as usize } else { 0 };
        Ok(Self {
            rings: ring,
            shape,
            has_poll_thread: choice.flag("kernel_poll_thread", false),
            targets,
            force_async: choice.number("force_async").map_or(0, i64::unsigned_abs),
            queued: 0,
            in_flight: 0,
            issued: 0,
            vectors: vec![none; vectors],
        })
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        let Some(target) = self.targets.get(op.target as usize) else {
            return Submit::Done(-i64::from(libc::EBADF));
        };
        let vector = self.vectors.get_mut(slot as usize);
        let Some(mut entry) = self.shape.entry(slot, op, target, vector) else {
            return Submit::Done(other(target, op));
        };
        if self.force_async > 0 {
            self.issued += 1;
            if self.issued.is_multiple_of(self.force_async) {
                entry = entry.flags(Flags::ASYNC);
            }
        }
        // A hole's completion says 0, not its length: the length travels along.
        let hole = if op.verb == Verb::Trim {
            u64::from(op.length)
        } else {
            0
        };
        let entry = entry.user_data(u64::from(slot) | hole << 32);
        // SAFETY: the slot's memory outlives the ring (see `run_engine`), and the slot is not used
        // again before its completion; the vector of a slot likewise.
        match unsafe { self.rings.submission().push(&entry) } {
            Ok(()) => {
                self.queued += 1;
                Submit::Queued
            }
            Err(_) => Submit::Full,
        }
    }

    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        // The poll thread takes entries by itself, but sleeps after a while without any.
        let entered = if !self.has_poll_thread {
            self.enter(self.queued, 0, EnterFlags::empty(), None)
        } else if self.rings.submission().need_wakeup() {
            self.enter(self.queued, 0, EnterFlags::SQ_WAKEUP, None)
        } else {
            Ok(self.queued)
        };
        match entered {
            Ok(taken) => {
                self.queued -= taken.min(self.queued);
                self.in_flight += taken;
                Ok(taken)
            }
            Err(e) if is_passing(&e) => Ok(0),
            Err(error) => self.not_handed_over(error),
        }
    }

    #[inline]
    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        let mut taken = 0;
        let mut entered = false;
        loop {
            for entry in &mut self.rings.completion() {
                let data = entry.user_data();
                let result = match entry.result() {
                    0 => i64::from(data >> 32 != 0) * (data >> 32).cast_signed(),
                    other => i64::from(other),
                };
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "the lower half is the slot"
                )]
                done(Completed {
                    slot: data as u32,
                    result,
                });
                taken += 1;
                if taken == wait.at_most {
                    break;
                }
            }
            if entered || taken >= wait.at_least.max(1) {
                self.in_flight -= taken.min(self.in_flight);
                return Ok(taken);
            }
            entered = true;
            // With nothing to wait for this only lets the kernel post what is over.
            self.wait(wait.at_least - taken.min(wait.at_least), wait.timeout_ns)?;
        }
    }
}

/// The kernel could not take entries at the moment.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}

impl Drop for Ring {
    /// Waits for what is in flight: the kernel must not write into memory that is given back.
    fn drop(&mut self) {
        if self.has_poll_thread && self.queued > 0 {
            // It takes what is queued, asked or not; where it fails it is gone, and takes nothing.
            let _ = self.commit();
        }
        while self.in_flight > 0 {
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
