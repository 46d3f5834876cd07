//! The structures and calls of `/dev/kio`, as `kmod/kio/kio_uapi.h` has them.
//!
//! In: numbers. Out: what the module answers. A test compares every size, offset
//! and number with the header.
//! Not here: in which order they are called ([`super::session`]).

#![expect(unsafe_code, reason = "ioctls that rustix does not wrap")]
#![expect(
    clippy::struct_field_names,
    reason = "fields have the names of the header"
)]

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// The type of all calls.
const TYPE: u8 = 0xB7;
/// The version of the structures.
pub(super) const VERSION: u32 = 1;
/// The longest path, with its end.
pub(super) const PATH: usize = 256;
const MESSAGE: usize = 160;
/// Buckets of a histogram; the last one holds everything longer too.
pub(super) const BUCKETS: usize = 1856;
const CODES: usize = 24;

/// A running job, in [`Stats::state`].
pub(super) const RUNNING: u32 = 1;
/// Jobs write on the device.
pub(super) const DEV_WRITE: u32 = 1;
/// Nobody else holds it.
pub(super) const DEV_EXCL: u32 = 2;
pub(super) const OP_MIX: u32 = 0;
pub(super) const OP_READ: u32 = 1;
pub(super) const OP_WRITE: u32 = 2;
pub(super) const OP_TRIM: u32 = 3;
pub(super) const OP_FLUSH: u32 = 4;
pub(super) const DATA_ZERO: u32 = 0;
pub(super) const DATA_RANDOM: u32 = 1;
pub(super) const DATA_VERIFY: u32 = 2;
/// Names of completion codes, by code.
pub(super) const CODE_NAMES: [&str; 15] = [
    "OK",
    "NOTSUPP",
    "TIMEOUT",
    "NOSPC",
    "TRANSPORT",
    "TARGET",
    "RESV_CONFLICT",
    "MEDIUM",
    "PROTECTION",
    "RESOURCE",
    "IOERR",
    "AGAIN",
    "OFFLINE",
    "OTHER",
    "DATA",
];
/// The errno values of the same, as the kernel gives them to programs; 0: no failure.
pub(super) const ERRNOS: [i32; 15] = [
    0,
    libc::EOPNOTSUPP,
    libc::ETIMEDOUT,
    libc::ENOSPC,
    libc::ENOLINK,
    libc::EREMOTEIO,
    libc::EBADE,
    libc::ENODATA,
    libc::EILSEQ,
    libc::ENOMEM,
    libc::EIO,
    0,
    libc::ENODEV,
    libc::EIO,
    libc::EILSEQ,
];
/// A block was read well, and its data is not what it should be.
pub(super) const ERR_DATA: u32 = 14;
pub(super) const JOB_FUA: u32 = 1;
pub(super) const JOB_NOWAIT: u32 = 2;
pub(super) const NOTE_SPLIT: u32 = 2;
pub(super) const NOTE_TAG_WAITS: u32 = 4;
/// Kinds of latency, in the order of [`BurstDirection::sums`].
pub(super) const SLAT: u32 = 0;
pub(super) const CLAT: u32 = 1;
pub(super) const LAT: u32 = 2;

/// A structure of the module: it begins with its size and version.
///
/// # Safety
/// It is `repr(C)`, without padding, and every pattern of bits is a value of it.
pub(super) unsafe trait Message: Sized {
    /// Writes its size and the version.
    fn set_head(&mut self, size: u32);

    /// Makes its call; the module writes its answer into it.
    ///
    /// # Errors
    /// The module's error.
    fn call(&mut self, file: &OwnedFd) -> Result<(), Errno>;
}

macro_rules! message {
    ($(#[$meta:meta])* $name:ident, $number:literal { $($field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $name {
            pub(super) size: u32,
            pub(super) version: u32,
            $(pub(super) $field: $type,)*
        }

        impl $name {
            /// Its call.
            pub(super) const OPCODE: Opcode = opcode::read_write::<$name>(TYPE, $number);
        }

        // SAFETY: repr(C) of integers and arrays of them; a test compares it with the header.
        unsafe impl Message for $name {
            fn set_head(&mut self, size: u32) {
                (self.size, self.version) = (size, VERSION);
            }

            fn call(&mut self, file: &OwnedFd) -> Result<(), Errno> {
                // SAFETY: the module reads and writes as many bytes as the head says, which are
                // those of the message.
                let request = unsafe { Updater::<{ $name::OPCODE }, Self>::new(self) };
                // SAFETY: as above; the descriptor is open, and memory that the message names is
                // lent to the call by whoever names it.
                unsafe { ioctl(file.as_fd(), request) }
            }
        }

        #[cfg(test)]
        impl $name {
            /// Its name, size, and the offset of each field.
            pub(super) const LAYOUT: (&'static str, usize, &'static [(&'static str, usize)]) = (
                stringify!($name),
                size_of::<Self>(),
                &[$((stringify!($field), std::mem::offset_of!(Self, $field)),)*],
            );
        }
    };
}

message! {
    /// Adds a device.
    AddDev, 0x02 {
        path: [u8; PATH],
        flags: u32,
        index: u32,
        bytes: u64,
        logical_block: u32,
        physical_block: u32,
        io_min: u32,
        io_opt: u32,
        max_sectors: u32,
        max_segments: u32,
        max_discard: u64,
        nr_zones: u32,
        rotational: u32,
        poll: u32,
        node: i32,
        tags: u32,
        read_only: u32,
        major: u32,
        minor: u32,
        message: [u8; MESSAGE],
    }
}

message! {
    /// Adds a job: a thread on a device.
    AddJob, 0x03 {
        block_size: u32,
        queue_depth: u32,
        offset_random: u32,
        read_mix_percent: u32,
        offset_stride: i64,
        offset_low: u64,
        offset_high: u64,
        read_burst: u32,
        write_burst: u32,
        burst_finish: u32,
        burst_delay: u32,
        read_sleep_usec: u32,
        write_sleep_usec: u32,
        device: u32,
        cpu: i32,
        node: i32,
        op: u32,
        complete: u32,
        batch: u32,
        data: u32,
        flags: u32,
        seed: u64,
        stream: u32,
        trace: u32,
        align: u64,
        verify_seed: u64,
        generation: u64,
        limit_ios: u64,
        limit_bytes: u64,
        reserved: [u64; 4],
        job: u32,
        err_field: u32,
        notes: u32,
        pad: u32,
        high_used: u64,
        message: [u8; MESSAGE],
    }
}

message! {
    /// Starts all jobs.
    Start, 0x04 {
        runtime_ns: u64,
        ramp_ns: u64,
        interval_ns: u64,
        error_limit: u32,
        flags: u32,
        start_ns: u64,
        message: [u8; MESSAGE],
    }
}

message! {
    /// Ends the run.
    Stop, 0x06 {
        stuck: u32,
        state: u32,
    }
}

message! {
    /// Statistics of a job.
    Stats, 0x07 {
        job: u32,
        state: u32,
        error: i32,
        inflight: u32,
        cpu: u32,
        pid: u32,
        dirs: [BurstDirection; 2],
        runtime_ns: u64,
        cpu_ns: u64,
        drain_ns: u64,
        idle_ns: u64,
        pause_ns: u64,
        verify_ns: u64,
        wakeups: u64,
        polls: u64,
        polls_empty: u64,
        again: u64,
        issued: u64,
        bad_blocks: u64,
        codes: [u64; CODES],
    }
}

message! {
    /// A histogram.
    Hist, 0x08 {
        job: u32,
        kind: u32,
        dir: u32,
        bytes: u32,
        buckets: u64,
    }
}

message! {
    /// Operations of a job that failed.
    Failed, 0x0A {
        job: u32,
        from: u32,
        count: u32,
        total: u32,
        records: u64,
    }
}

message! {
    /// The first operations of a job.
    Traced, 0x0C {
        job: u32,
        from: u32,
        count: u32,
        total: u32,
        records: u64,
    }
}

/// Sum, extremes and squares of latencies.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) sum_ns: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
    pub(super) squares: [u64; 2],
}

/// Reads, or everything else.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct BurstDirection {
    pub(super) ios: u64,
    pub(super) bytes: u64,
    pub(super) errors: u64,
    pub(super) sums: [Sum; 3],
}

/// One of the first operations of a job.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelStep {
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) op: u32,
}

/// One that failed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FailedStep {
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) op: u32,
    pub(super) code: u32,
    pub(super) error: i32,
    pub(super) at: u64,
    pub(super) expected: u64,
    pub(super) got: u64,
}

/// A message of zeros with its head.
pub(super) fn message<M: Message>() -> M {
    // SAFETY: every pattern of bits is a value of a message, zeros too.
    let mut message: M = unsafe { std::mem::zeroed() };
    message.set_head(u32::try_from(size_of::<M>()).unwrap_or(0));
    message
}

/// The buckets of one kind of latency in one direction.
pub(super) fn histogram(file: &OwnedFd, job: u32, kind: u32, dir: u32) -> Result<Vec<u64>, Errno> {
    let mut buckets = vec![0_u64; BUCKETS];
    let mut request: Hist = message();
    (request.job, request.kind, request.dir) = (job, kind, dir);
    request.bytes = u32::try_from(size_of_val(buckets.as_slice())).unwrap_or(0);
    // The module writes no more than `bytes` there, while the call lasts.
    request.buckets = buckets.as_mut_ptr().expose_provenance() as u64;
    request.call(file)?;
    Ok(buckets)
}

/// The first operations of a job, as far as it keeps them.
pub(super) fn steps(file: &OwnedFd, job: u32, most: u32) -> Result<Vec<KernelStep>, Errno> {
    let mut steps = vec![KernelStep::default(); most as usize];
    let mut request: Traced = message();
    (request.job, request.count) = (job, most);
    // The module writes no more than `count` records there, while the call lasts.
    request.records = steps.as_mut_ptr().expose_provenance() as u64;
    request.call(file)?;
    steps.truncate(request.count as usize);
    Ok(steps)
}

/// The first operation of a job that failed.
pub(super) fn first_failure(file: &OwnedFd, job: u32) -> Option<FailedStep> {
    let mut failed = [FailedStep::default()];
    let mut request: Failed = message();
    (request.job, request.count) = (job, 1);
    // The module writes no more than `count` records there, while the call lasts.
    request.records = failed.as_mut_ptr().expose_provenance() as u64;
    request.call(file).ok()?;
    (request.count == 1).then_some(failed[0])
}
