//! Tests that others order a server to run: the server's side of START, GO and STOP.
//!
//! In: orders. Out: whether they are taken; whether the test can be run, and what comes of it, goes
//! through [`MasterAnswers`] from the thread that runs it. Not here: running it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use weir_schema::RpcEndpoint;

use super::MasterAnswers;
use crate::{DerCode, MemoryAccount, RpcError};

/// An order to run a test.
#[derive(Debug)]
pub struct MasterOrder {
    /// The rank and tag that shall run it.
    pub master: RpcEndpoint,
    /// Its bytes; the wire does not look inside.
    pub body: Vec<u8>,
    /// Where `START_ACK`, `READY`, progress and result go.
    pub answers: MasterAnswers,
    /// Account of the memory that the test takes.
    pub account: MemoryAccount,
}

/// Signs for a test from whoever ordered it.
#[derive(Clone, Debug, Default)]
pub struct TestControl(Arc<TestSigns>);

#[derive(Debug, Default)]
struct TestSigns {
    end: AtomicU32,
    /// In nanoseconds of the monotonic clock; 0 while nobody has said.
    begin_ns: AtomicU64,
}

impl TestControl {
    /// From now on the test ends: who ordered it waits no longer, or is gone.
    pub fn end(&self) {
        self.0.end.store(1, Ordering::Relaxed);
    }

    /// The first call goes out at this time of the monotonic clock, in nanoseconds.
    pub fn begin_at(&self, time_ns: u64) {
        self.0.begin_ns.store(time_ns.max(1), Ordering::Relaxed);
    }

    /// Sign that the test looks at: not 0 once it shall end.
    pub fn end_sign(&self) -> &AtomicU32 {
        &self.0.end
    }

    /// When the first call goes out, once that was said.
    pub fn begin_ns(&self) -> Option<u64> {
        Some(self.0.begin_ns.load(Ordering::Relaxed)).filter(|time| *time > 0)
    }
}

/// Runs ordered tests, on threads of its own.
pub trait TestMasters: Send + Sync {
    /// Takes an order. It returns at once, on the thread that calls are answered on: what takes time,
    /// as looking for the targets, comes later, and so does `START_ACK` then.
    ///
    /// # Errors
    /// `Busy` while this rank and tag runs a test, `NoPermission` where tests may not be ordered; no
    /// `START_ACK` follows.
    fn start(&self, order: MasterOrder) -> Result<TestControl, RpcError>;
}

/// Refuses all orders.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMasters;

impl TestMasters for NoMasters {
    fn start(&self, _: MasterOrder) -> Result<TestControl, RpcError> {
        let message = "this server runs no tests by order";
        Err(RpcError::new(DerCode::NoPermission, message))
    }
}
