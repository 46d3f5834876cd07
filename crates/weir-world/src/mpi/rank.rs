//! One rank of an MPI world: the blocking calls, typed.
//!
//! In: a resolved library. Out: calls on slices of bytes. Every call is one C call plus the check
//! of its answer, inlined where it is used, so that a transport over it measures the library.
//! Calls that return before the bytes have moved are in `nonblocking`.

#![expect(
    unsafe_code,
    reason = "calls into the library on memory given by address"
)]

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

use weir_sys::library::Library;

use crate::RankMonitor;
use crate::heartbeat::Heartbeat;
use crate::rank_monitor::RankState;

use super::abi::{Abi, Constant};
use super::calls::Calls;
use super::end::End;
use super::error::MpiError;
use super::facts::MpiLibraryFacts;
use super::level::PostedCounts;

/// The larger of both families' `MPI_MAX_ERROR_STRING`.
const ERROR_TEXT: usize = 512;
/// Thread level of a plain `MPI_Init`, which other programs use and are compared with. The next
/// level, for processes whose other threads never call MPI, is what weir is; but it makes Open MPI
/// 4.1 lock in every call: 20 ns more for an exchange of 115 ns, and 60 ns more for one of 130 ns
/// that is posted and waited for. So other threads have to keep from MPI and sleep while it works.
const THREAD_SINGLE: c_int = 0;

/// Time in which output printed right before the end is forwarded.
const OUTPUT_WAIT: Duration = Duration::from_millis(100);

/// An end of all ranks that takes longer hangs.
const ABORT: Duration = Duration::from_secs(2);

/// A rank that exists, checked once so that no call has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRank(pub(super) c_int);

/// Tag that separates messages between the same two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub(super) c_int);

impl Tag {
    /// The world's own messages; the largest tag that every library has to have.
    pub(super) const CONTROL: Self = Self(32_767);
    /// Tag of the messages that level the ranks.
    pub(super) const LEVEL: Self = Self(32_766);
}

impl From<u8> for Tag {
    fn from(number: u8) -> Self {
        Self(c_int::from(number))
    }
}

/// Counts and offsets, in bytes, of the part of each rank in one buffer.
#[derive(Clone, Debug)]
pub struct MessageLayout {
    counts: Vec<c_int>,
    offsets: Vec<c_int>,
    /// Bytes that the buffer has at least.
    bytes: usize,
}

impl MessageLayout {
    /// Parts by rank, as (offset, length).
    ///
    /// # Errors
    /// An end that MPI cannot count.
    pub fn new(parts: &[(usize, usize)]) -> Result<Self, MpiError> {
        let mut layout = Self {
            counts: Vec::with_capacity(parts.len()),
            offsets: Vec::with_capacity(parts.len()),
            bytes: 0,
        };
        for &(offset, length) in parts {
            layout.offsets.push(count(offset)?);
            layout.counts.push(count(length)?);
            layout.bytes = layout.bytes.max(offset + length);
        }
        Ok(layout)
    }

    fn fits(&self, size: c_int, bytes: usize) -> Result<(), MpiError> {
        if count(self.counts.len())? == size && self.bytes <= bytes {
            return Ok(());
        }
        Err(MpiError::Layout {
            detail: format!(
                "{} parts up to byte {} for {size} ranks and {bytes} bytes",
                self.counts.len(),
                self.bytes
            ),
        })
    }
}

/// One rank of a started MPI world. Dropping it ends MPI, for good.
///
/// It stays on the thread that started MPI.
#[derive(Debug)]
pub struct Mpi<A: Abi> {
    pub(super) calls: Calls<A>,
    pub(super) comm: A::Handle,
    pub(super) byte: A::Handle,
    pub(super) null: A::Handle,
    pub(super) rank: c_int,
    pub(super) size: c_int,
    /// Rank that did not answer in time, and has not since.
    pub(super) silent: Cell<Option<u32>>,
    pub(super) posted: PostedCounts,
    pub(super) monitor: RankMonitor,
    pub(super) heartbeat: RefCell<Option<Heartbeat>>,
    facts: MpiLibraryFacts,
    /// MPI belongs to the thread that started it.
    thread: PhantomData<*const ()>,
}

impl<A: Abi> Mpi<A> {
    /// Starts MPI; the caller made sure that it is the first time in this process.
    pub(super) fn start(library: &Library, facts: &MpiLibraryFacts) -> Result<Self, MpiError> {
        let incomplete = |symbol: String| MpiError::Incomplete {
            file: facts.file.clone(),
            symbol,
        };
        let handle = |which: Constant| {
            let found = A::handle(which, |name| library.symbol(name));
            found.ok_or_else(|| incomplete(format!("{which:?}")))
        };
        // SAFETY: the MPI standard gives each symbol the type of its field, with handles and status as `A`
        // has them; the caller chose `A` by the library's family.
        let calls = unsafe { Calls::resolve(library) };
        let mut mpi = Self {
            calls: calls.map_err(incomplete)?,
            comm: handle(Constant::CommWorld)?,
            byte: handle(Constant::Byte)?,
            null: handle(Constant::RequestNull)?,
            rank: 0,
            size: 0,
            silent: Cell::new(None),
            posted: PostedCounts::for_ranks(0),
            monitor: RankMonitor::default(),
            heartbeat: RefCell::default(),
            facts: facts.clone(),
            thread: PhantomData,
        };
        let errors_return = handle(Constant::ErrorsReturn)?;
        if let Err(error) = mpi.begin(errors_return) {
            // Nothing to end where nothing was started.
            std::mem::forget(mpi);
            return Err(error);
        }
        mpi.rank = mpi.ask("MPI_Comm_rank", mpi.calls.comm_rank)?;
        mpi.size = mpi.ask("MPI_Comm_size", mpi.calls.comm_size)?;
        mpi.posted = PostedCounts::for_ranks(mpi.size.unsigned_abs() as usize);
        Ok(mpi)
    }

    fn begin(&self, errors_return: A::Handle) -> Result<(), MpiError> {
        let (no_count, no_words) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut level: c_int = 0;
        // SAFETY: MPI-2 lets both argument pointers be null; the level is writable. No library
        // offers less than the least.
        let code =
            unsafe { (self.calls.init_thread)(no_count, no_words, THREAD_SINGLE, &raw mut level) };
        self.check("MPI_Init_thread", code)?;
        // SAFETY: both handles are the library's own, and MPI is started.
        let code = unsafe { (self.calls.comm_set_errhandler)(self.comm, errors_return) };
        self.check("MPI_Comm_set_errhandler", code)
    }

    fn ask(
        &self,
        name: &'static str,
        call: unsafe extern "C" fn(A::Handle, *mut c_int) -> c_int,
    ) -> Result<c_int, MpiError> {
        let mut answer: c_int = 0;
        // SAFETY: one of the two calls that tell a number of a communicator; MPI is started and
        // the number is writable.
        let code = unsafe { call(self.comm, &raw mut answer) };
        self.check(name, code).map(|()| answer)
    }

    /// The library.
    pub fn facts(&self) -> &MpiLibraryFacts {
        &self.facts
    }

    /// A rank to exchange with.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn peer(&self, rank: u32) -> Result<PeerRank, MpiError> {
        c_int::try_from(rank)
            .ok()
            .filter(|&number| number < self.size)
            .map(PeerRank)
            .ok_or(MpiError::NoSuchRank {
                rank,
                size: self.size.unsigned_abs(),
            })
    }

    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<(), MpiError> {
        if code == 0 {
            Ok(())
        } else {
            Err(self.failure(call, code))
        }
    }

    #[cold]
    fn failure(&self, call: &'static str, code: c_int) -> MpiError {
        let mut text = [0u8; ERROR_TEXT];
        let mut length: c_int = 0;
        let into = text.as_mut_ptr().cast::<c_char>();
        // SAFETY: the buffer is as large as either family's longest text; the call is allowed at
        // any time.
        let found = unsafe { (self.calls.error_string)(code, into, &raw mut length) };
        let length = usize::try_from(length).unwrap_or(0).min(ERROR_TEXT);
        let detail = if found == 0 {
            String::from_utf8_lossy(&text[..length]).into_owned()
        } else {
            format!("error {code}")
        };
        MpiError::Call { call, detail }
    }

    /// Returns on no rank before all have called it. Has no time limit: for what is measured.
    ///
    /// # Errors
    /// The library's.
    #[inline]
    pub fn barrier(&self) -> Result<(), MpiError> {
        // SAFETY: MPI is started, on this thread.
        let code = unsafe { (self.calls.barrier)(self.comm) };
        self.check("MPI_Barrier", code)
    }

    /// Sends; returns when the bytes may be overwritten.
    ///
    /// # Errors
    /// The library's; more than 2 GiB.
    #[inline]
    pub fn send(&self, to: PeerRank, bytes: &[u8], tag: Tag) -> Result<(), MpiError> {
        let (from, n) = (bytes.as_ptr().cast(), count(bytes.len())?);
        // SAFETY: the library reads `n` bytes of the slice, during the call alone.
        let code = unsafe { (self.calls.send)(from, n, self.byte, to.0, tag.0, self.comm) };
        self.check("MPI_Send", code)
    }

    /// Receives a message that is at most as long as `into`.
    ///
    /// # Errors
    /// The library's, a longer message among them; more than 2 GiB.
    #[inline]
    pub fn receive(&self, from: PeerRank, into: &mut [u8], tag: Tag) -> Result<(), MpiError> {
        let (at, n) = (into.as_mut_ptr().cast(), count(into.len())?);
        let status = A::STATUS_IGNORE;
        // SAFETY: the library writes at most `n` bytes of the slice, during the call alone.
        let code = unsafe { (self.calls.recv)(at, n, self.byte, from.0, tag.0, self.comm, status) };
        self.check("MPI_Recv", code)
    }

    /// Sends and receives at the same time.
    ///
    /// # Errors
    /// The library's, a longer message among them; more than 2 GiB.
    pub fn sendrecv(
        &self,
        to: PeerRank,
        bytes: &[u8],
        from: PeerRank,
        into: &mut [u8],
        tag: Tag,
    ) -> Result<(), MpiError> {
        self.sendrecvs(to, bytes, from, into, tag)?.again()
    }

    /// The same, as often as one likes: all that can be done before the first is.
    ///
    /// # Errors
    /// More than 2 GiB.
    pub fn sendrecvs<'a>(
        &'a self,
        to: PeerRank,
        bytes: &'a [u8],
        from: PeerRank,
        into: &'a mut [u8],
        tag: Tag,
    ) -> Result<Sendrecvs<'a, A>, MpiError> {
        let (n, room) = (count(bytes.len())?, count(into.len())?);
        Ok(Sendrecvs {
            mpi: self,
            sent: (bytes, n, to),
            received: (into, room, from),
            tag,
        })
    }

    /// Every rank sends a part of its buffer to every rank.
    ///
    /// # Errors
    /// The library's; a layout for another number of ranks or for longer buffers.
    #[inline]
    pub fn alltoallv(
        &self,
        bytes: &[u8],
        out: &MessageLayout,
        into: &mut [u8],
        room: &MessageLayout,
    ) -> Result<(), MpiError> {
        out.fits(self.size, bytes.len())?;
        room.fits(self.size, into.len())?;
        let (byte, comm) = (self.byte, self.comm);
        // SAFETY: both layouts have a part for each rank and end within their slices, as was
        // just checked; the library touches them during the call alone.
        let code = unsafe {
            (self.calls.alltoallv)(
                bytes.as_ptr().cast(),
                out.counts.as_ptr(),
                out.offsets.as_ptr(),
                byte,
                into.as_mut_ptr().cast(),
                room.counts.as_ptr(),
                room.offsets.as_ptr(),
                byte,
                comm,
            )
        };
        self.check("MPI_Alltoallv", code)
    }

    /// The length of the next message that is here, if one is.
    pub(super) fn arrived(&self, from: PeerRank, tag: Tag) -> Result<Option<usize>, MpiError> {
        let mut status = A::Status::default();
        let (mut is_here, mut n): (c_int, c_int) = (0, 0);
        let at = &raw mut status;
        // SAFETY: flag and status are writable, the status as large as this family's.
        let code = unsafe { (self.calls.iprobe)(from.0, tag.0, self.comm, &raw mut is_here, at) };
        self.check("MPI_Iprobe", code)?;
        if is_here == 0 {
            return Ok(None);
        }
        // SAFETY: the status was filled by the probe, the count is writable.
        let code = unsafe { (self.calls.get_count)(at, self.byte, &raw mut n) };
        self.check("MPI_Get_count", code)?;
        // A length that MPI cannot say is negative.
        let length = usize::try_from(n).map_err(|_| MpiError::Call {
            call: "MPI_Get_count",
            detail: "the message has no length".to_owned(),
        })?;
        Ok(Some(length))
    }

    /// Ends all ranks at once, from any thread: for watchdogs, when a rank hangs in a call.
    pub fn emergency(&self) -> Emergency<A> {
        Emergency {
            abort: self.calls.abort,
            comm: self.comm,
            monitor: self.monitor.clone(),
        }
    }
}

/// Messages there and back between the same buffers; see [`Mpi::sendrecvs`].
#[derive(Debug)]
pub struct Sendrecvs<'a, A: Abi> {
    mpi: &'a Mpi<A>,
    sent: (&'a [u8], c_int, PeerRank),
    received: (&'a mut [u8], c_int, PeerRank),
    tag: Tag,
}

impl<A: Abi> Sendrecvs<'_, A> {
    /// Once more.
    ///
    /// # Errors
    /// The library's, a longer message among them.
    #[inline]
    pub fn again(&mut self) -> Result<(), MpiError> {
        let (mpi, tag, status) = (self.mpi, self.tag.0, A::STATUS_IGNORE);
        let ((bytes, n, to), (into, room, from)) = (&self.sent, &mut self.received);
        let (out, at) = (bytes.as_ptr().cast(), into.as_mut_ptr().cast());
        let (byte, comm) = (mpi.byte, mpi.comm);
        // SAFETY: the library reads `n` bytes of one slice and writes at most `room` of another,
        // which are their lengths, during the call alone; that they are not the same memory the
        // borrows say.
        let code = unsafe {
            (mpi.calls.sendrecv)(
                out, *n, byte, to.0, tag, at, *room, byte, from.0, tag, comm, status,
            )
        };
        mpi.check("MPI_Sendrecv", code)
    }
}

/// Ends all ranks of a world; see [`Mpi::emergency`].
#[derive(Debug)]
pub struct Emergency<A: Abi> {
    abort: unsafe extern "C" fn(A::Handle, c_int) -> c_int,
    comm: A::Handle,
    monitor: RankMonitor,
}

// SAFETY: a function of the library and one of its constants, beside what any thread may hold; the
// one call that is made with them does not come back.
unsafe impl<A: Abi> Send for Emergency<A> {}

impl<A: Abi> Emergency<A> {
    /// Ends all ranks, with this exit code where the launcher keeps it. Waits a little before, for
    /// what was just printed: Hydra drops what it has not forwarded yet.
    pub fn abort(self, code: u8) -> ! {
        // This one will be silent soon: nobody need say so.
        self.monitor.set_own_state(RankState::Leaves);
        std::thread::sleep(OUTPUT_WAIT);
        // A library that is being ended may not come back from this either.
        let _ = Builder::new().spawn(|| {
            std::thread::sleep(ABORT);
            std::process::abort();
        });
        // SAFETY: the process ends here. The level that MPI was started with knows one thread;
        // both families end the process whatever thread asks, and nothing of this process is
        // used after it.
        let _ = unsafe { (self.abort)(self.comm, c_int::from(code)) };
        std::process::abort()
    }
}

impl<A: Abi> Drop for Mpi<A> {
    /// Ends MPI, which waits for all ranks. Everything is said by now: where a rank is lost, or does
    /// not come in time, all are ended at once.
    fn drop(&mut self) {
        let end = End {
            rank: self.rank.unsigned_abs(),
            monitor: self.monitor.clone(),
        };
        if let Some(loss) = end.monitor.lost() {
            end.apart(&loss, self.emergency());
        }
        // With a rank that does not answer, ending MPI together would not come to an end. The
        // launcher sees the process go, and ends the others.
        if self.silent.get().is_some() {
            return;
        }
        let done = Arc::new(AtomicBool::new(false));
        let (is_done, emergency) = (Arc::clone(&done), self.emergency());
        // Without a thread it may wait for ever, as any program of MPI.
        let _ = Builder::new().spawn(move || end.guard(&is_done, emergency));
        // SAFETY: MPI was started on this thread and nothing borrows from it any more.
        let _ = unsafe { (self.calls.finalize)() };
        done.store(true, Ordering::Release);
    }
}

/// A number of bytes as MPI counts them.
#[inline]
pub(super) fn count(bytes: usize) -> Result<c_int, MpiError> {
    c_int::try_from(bytes).map_err(|_| MpiError::TooLong { bytes })
}
