//! Calls to a service on another machine, as engines of any family make them.
//!
//! In: requests by operation, each in a slot, with a payload and perhaps memory that the server
//! reads or writes by itself. Out: answers by slot. `weir-net` implements it; whoever uses it knows
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

/// A session with a service.
pub trait ServiceChannel {
    /// Memory for bulk data, of so many bytes.
    ///
    /// # Errors
    /// There is not enough.
    fn register(&mut self, bytes: usize) -> io::Result<BulkMemory>;

    /// Content of the memory.
    fn memory(&mut self, memory: BulkMemory) -> &mut [u8];

    /// Calls an operation with a payload. The slot has to be free.
    ///
    /// # Errors
    /// The service cannot be reached any more, or the payload is too long.
    fn request(&mut self, slot: u32, operation: u16, payload: &[u8]) -> io::Result<()>;

    /// The same, and lets the server read or write the first `length` bytes of memory until it
    /// answers.
    ///
    /// # Errors
    /// The service cannot be reached any more, or the payload or length is too long.
    fn request_bulk(
        &mut self,
        slot: u32,
        operation: u16,
        payload: &[u8],
        bulk: (BulkUse, BulkMemory, u64),
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
