//! Tests that others order a server to run: the server's side of START and STOP.
//!
//! In: orders. Out: whether they are taken; what comes of them goes through [`MasterAnswers`] from
//! the thread that runs the test. Not here: running it.

use super::MasterAnswers;
use crate::rpc::{DerCode, RpcError};

/// An order to run a test.
#[derive(Debug)]
pub struct MasterOrder {
    /// The rank that shall run it.
    pub rank: u32,
    /// Its tag.
    pub tag: u32,
    /// What it is; the wire does not look inside.
    pub body: Vec<u8>,
    /// Where progress and result go.
    pub answers: MasterAnswers,
}

/// Runs ordered tests, on threads of its own.
pub trait TestMasters: Send + Sync {
    /// Takes an order.
    ///
    /// # Errors
    /// `Busy` while this rank and tag runs a test, `NoPermission` where tests may not be ordered,
    /// `NotThere` for targets that the group does not have.
    fn start(&self, order: MasterOrder) -> Result<(), RpcError>;

    /// Who ordered the test of this rank and tag waits no longer, or is gone.
    fn stop(&self, rank: u32, tag: u32);
}

/// Refuses all orders.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMasters;

impl TestMasters for NoMasters {
    fn start(&self, _: MasterOrder) -> Result<(), RpcError> {
        let message = "this server runs no tests by order";
        Err(RpcError::new(DerCode::NoPermission, message))
    }

    fn stop(&self, _: u32, _: u32) {}
}
