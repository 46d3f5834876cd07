//! Calls to a service on another machine, as engines of any family make them.
//!
//! In: requests by operation, each in a slot, with a payload and perhaps memory that the server
//! reads or writes by itself. Out: answers by slot. `weir-rpc` implements it; whoever uses it knows
//! nothing of transports. Not here: which services there are.

use std::io;
use std::time::Duration;

/// Memory that a server may reach during a call. Small numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BulkMemory(pub u32);

/// Access of a server to memory during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkUse {
    /// Read it: data of the caller, as of a write.
    Get,
    /// Write it: data for the caller, as of a read.
    Put,
}

/// Part of memory, which the server reads or writes until it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkPart {
    /// The memory.
    pub memory: BulkMemory,
    /// Where it begins, in bytes from the start of the memory.
    pub offset: u64,
    /// Bytes of it.
    pub length: u64,
    /// Access of the server.
    pub access: BulkUse,
}

/// A session with a service.
pub trait ServiceChannel {
    /// Memory for bulk data, of so many bytes.
    ///
    /// # Errors
    /// There is not enough.
    fn register(&mut self, bytes: usize) -> io::Result<BulkMemory>;

    /// Bytes of registered memory.
    fn memory(&mut self, memory: BulkMemory) -> &mut [u8];

    /// Calls an operation with a payload, and with memory for the server. The slot has to be free.
    ///
    /// # Errors
    /// The service cannot be reached any more, or the payload or the length is too long.
    fn request(
        &mut self,
        slot: u32,
        operation: u16,
        payload: &[u8],
        bulk: Option<BulkPart>,
    ) -> io::Result<()>;

    /// Hands over requests, waits at most so long for an answer, and calls `done` for each: its
    /// slot, and the reply's payload or the negative code of its failure.
    ///
    /// # Errors
    /// No answer can come any more.
    fn poll(
        &mut self,
        wait: Duration,
        done: impl FnMut(u32, Result<&[u8], i64>),
    ) -> io::Result<u32>;
}
