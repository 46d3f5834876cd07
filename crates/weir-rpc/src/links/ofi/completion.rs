//! Completions of operations: messages that arrived, sends and moves that are done or failed.
//!
//! In: an endpoint. Out: [`FabricCompletion`]s, and a descriptor to sleep on where the provider has
//! one. Reading is also what lets a provider work that makes no progress by itself, so whoever waits
//! keeps reading. Not here: what follows from them (`link`).

#![expect(unsafe_code, reason = "libfabric fills memory given by address")]

use std::ffi::c_int;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::null_mut;

use super::abi::{
    FI_EAGAIN, FI_EAVAIL, FI_ECANCELED, FI_ETRUNC, FI_GETWAIT, FiCqDataEntry, FiCqErrEntry,
    FiOpsCq, FiOpsFabric, FidCq, Roomy, SizedCode, slot,
};
use super::endpoint::FabricEndpoint;
use super::error::FabricError;
use super::objects::{FabricDomain, Object};

/// Number of completions that are read at once.
pub const COMPLETIONS_AT_ONCE: usize = 64;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricWork {
    /// A receive, by its number. It is posted again by the caller.
    Receive(u32),
    /// A send, by its owner.
    Send(u64),
    /// A move, by its owner.
    Move(u64),
    /// Something unknown, as a message that was injected.
    Unknown,
}

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricFailure {
    /// Its endpoint is being closed.
    Canceled,
    /// A message is longer than its receive.
    Truncated,
    /// The peer cannot be reached, or refuses; libfabric's positive number.
    Unreachable(c_int),
}

/// Completion of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricCompletion {
    /// The operation.
    pub work: FabricWork,
    /// Bytes of a message that was received, or why it failed.
    pub result: Result<usize, FabricFailure>,
}

type ReadCall = unsafe extern "C" fn(*mut FidCq, *mut std::ffi::c_void, usize) -> SizedCode;
type ReadError = unsafe extern "C" fn(*mut FidCq, *mut FiCqErrEntry, u64) -> SizedCode;

const NOTHING: FiCqDataEntry = FiCqDataEntry {
    op_context: null_mut(),
    flags: 0,
    len: 0,
    buf: null_mut(),
    data: 0,
};

/// A queue, and room for what is read from it.
#[derive(Debug)]
pub(super) struct CompletionQueue {
    queue: Option<Object<FidCq>>,
    read: ReadCall,
    read_error: ReadError,
    descriptor: Option<RawFd>,
    entries: Box<[FiCqDataEntry; COMPLETIONS_AT_ONCE]>,
}

impl CompletionQueue {
    pub(super) fn new(
        queue: Object<FidCq>,
        has_descriptor: bool,
        domain: &FabricDomain,
    ) -> Result<Self, FabricError> {
        let lacks = FabricError::Lacks("read completions");
        // SAFETY: an open queue.
        let table = unsafe { (*queue.as_ptr()).ops };
        let Some(read) = slot!(table, FiOpsCq, read) else {
            return Err(lacks);
        };
        let read_error = slot!(table, FiOpsCq, readerr).ok_or(lacks)?;
        let mut descriptor: c_int = -1;
        if has_descriptor {
            // SAFETY: the command writes one number for a queue that was opened with a descriptor.
            let code = unsafe { queue.control(FI_GETWAIT, (&raw mut descriptor).cast()) };
            domain.offer.library.good("report its descriptor", code)?;
        }
        Ok(Self {
            queue: Some(queue),
            read,
            read_error,
            descriptor: (descriptor >= 0).then_some(descriptor),
            entries: Box::new([NOTHING; COMPLETIONS_AT_ONCE]),
        })
    }

    fn raw(&self) -> *mut FidCq {
        self.queue.as_ref().map_or(null_mut(), Object::as_ptr)
    }

    /// Closes it; whether libfabric did.
    pub(super) fn close(&mut self) -> bool {
        self.queue.take().is_none_or(Object::close)
    }

    /// Reads completions; their number, or a negative number.
    #[inline]
    fn read(&mut self) -> SizedCode {
        let (queue, into) = (self.raw(), self.entries.as_mut_ptr());
        // SAFETY: an open queue, and room for so many entries of its format.
        unsafe { (self.read)(queue, into.cast(), COMPLETIONS_AT_ONCE) }
    }

    /// The operation that failed.
    fn read_failed(&mut self) -> Option<FiCqErrEntry> {
        let mut entry = Roomy::new(FiCqErrEntry {
            op_context: null_mut(),
            flags: 0,
            len: 0,
            buf: null_mut(),
            data: 0,
            tag: 0,
            olen: 0,
            err: 0,
            prov_errno: 0,
            err_data: null_mut(),
            err_data_size: 0,
        });
        // SAFETY: an open queue; the entry is zeroed, with room behind it and none for more data.
        let code = unsafe { (self.read_error)(self.raw(), (&raw mut entry).cast(), 0) };
        (code > 0).then_some(entry.inner)
    }
}

impl FabricEndpoint {
    /// Lets the provider work, and adds what is done to `into`: at most [`COMPLETIONS_AT_ONCE`].
    ///
    /// # Errors
    /// The queue itself fails.
    #[inline]
    pub fn poll(&mut self, into: &mut Vec<FabricCompletion>) -> Result<(), FabricError> {
        let count = self.queue.read();
        if let Ok(count) = usize::try_from(count) {
            for index in 0..count.min(COMPLETIONS_AT_ONCE) {
                let entry = self.queue.entries[index];
                into.extend(self.done(&entry));
            }
            return Ok(());
        }
        match c_int::try_from(count).unwrap_or(c_int::MIN) {
            code if code == -FI_EAGAIN => Ok(()),
            code if code == -FI_EAVAIL => {
                if let Some(entry) = self.queue.read_failed() {
                    into.push(self.failed(&entry));
                }
                Ok(())
            }
            code => self.good("read completions", code),
        }
    }

    #[inline]
    fn done(&mut self, entry: &FiCqDataEntry) -> Option<FabricCompletion> {
        let operation = self.contexts.operation(entry.op_context)?;
        let (work, result) = (self.work(operation), Ok(entry.len));
        (work != FabricWork::Unknown).then_some(FabricCompletion { work, result })
    }

    /// The operation that is done now; its number is free again, unless it was a receive.
    #[inline]
    fn work(&mut self, operation: u32) -> FabricWork {
        let Some(send) = operation.checked_sub(self.sizes.receives) else {
            return FabricWork::Receive(operation);
        };
        if send < self.sizes.sends {
            self.free_sends.push(operation);
            return FabricWork::Send(self.owners[send as usize]);
        }
        let moved = self.moves.done(operation);
        moved.map_or(FabricWork::Unknown, FabricWork::Move)
    }

    fn failed(&mut self, entry: &FiCqErrEntry) -> FabricCompletion {
        let operation = self.contexts.operation(entry.op_context);
        let work = operation.map_or(FabricWork::Unknown, |operation| self.work(operation));
        let failure = match entry.err {
            FI_ECANCELED => FabricFailure::Canceled,
            FI_ETRUNC => FabricFailure::Truncated,
            code => FabricFailure::Unreachable(code),
        };
        let result = Err(failure);
        FabricCompletion { work, result }
    }

    /// Text of libfabric about a number of a [`FabricFailure`].
    pub fn failure_text(&self, code: c_int) -> String {
        self.domain.offer.library.text(code)
    }

    /// Descriptor that is readable when there is something to poll for; `None` where the provider has no
    /// such thing, or it was not asked for.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let descriptor = self.queue.descriptor?;
        // SAFETY: the queue keeps it open, and lives as long as the borrow.
        Some(unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// True if sleeping on the descriptor misses nothing.
    pub fn may_sleep(&self) -> bool {
        let fabric = self.domain.fabric.as_ptr();
        // SAFETY: an open fabric.
        let table = unsafe { (*fabric).ops };
        let Some(try_wait) = slot!(table, FiOpsFabric, trywait) else {
            return false;
        };
        let Some(queue) = &self.queue.queue else {
            return false;
        };
        let mut queues = [queue.fid()];
        // SAFETY: an open fabric, and one object that was opened from it.
        let code = unsafe { try_wait(fabric, queues.as_mut_ptr(), 1) };
        code == 0
    }
}
