//! Setup of a client.
//!
//! Plain data; in nanoseconds, bytes and counts as the names say.

use std::time::Duration;

use weir_schema::{RpcPayload, RpcPayloadKind, RpcPoll, RpcVerify};

use super::{DialSetup, ServerEndpoint};
use crate::service::self_test;

/// Payloads of a call, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallPayload {
    /// Of the request.
    pub request: RpcPayload,
    /// Of the reply.
    pub reply: RpcPayload,
}

impl CallPayload {
    /// Bytes of a slot's buffer; 0 for none.
    pub(super) fn buffer(&self) -> u64 {
        u64::from(self.request.bytes.max(self.reply.bytes))
    }

    /// Bytes that a call moves.
    pub(super) fn moved(&self) -> i64 {
        i64::from(self.request.bytes) + i64::from(self.reply.bytes)
    }

    /// True if memory of the client is described to the server.
    pub(super) fn has_bulk(&self) -> bool {
        self.request.kind == RpcPayloadKind::Bulk || self.reply.kind == RpcPayloadKind::Bulk
    }

    /// True if calls need a session.
    pub(super) fn has_session(&self) -> bool {
        self.request.kind != RpcPayloadKind::Empty || self.reply.kind != RpcPayloadKind::Empty
    }
}

/// Setup of a client.
#[derive(Clone, Debug)]
pub struct ClientSetup {
    /// Setup of its connections.
    pub dial: DialSetup,
    /// Whom it calls; each entry has a session of its own, those of one rank and tag share a
    /// connection unless each shall have its own.
    pub endpoints: Vec<ServerEndpoint>,
    /// Each entry has a connection of its own.
    pub own_connections: bool,
    /// Calls that may be out at once.
    pub slots: u32,
    /// Payloads of each call.
    pub payload: CallPayload,
    /// Buffers that each session shall have at the server.
    pub buffers: u32,
    /// Calls that each session may have out.
    pub credits: u32,
    /// Calls that all endpoints of one rank together may have out; 0 for any number.
    pub credits_per_rank: u32,
    /// Calls that may be out altogether; 0 for any number.
    pub quota: u32,
    /// Checks of payloads.
    pub verify: RpcVerify,
    /// Bulk data of requests follow them without being asked for, where the link has no remote
    /// memory.
    pub eager: bool,
    /// Limit of a call's time.
    pub timeout: Duration,
    /// Time for which lost servers are tried again while no endpoint is up; `None`: not at all.
    pub reconnect: Option<Duration>,
    /// Low byte of the address of every buffer, on both sides.
    pub low_byte: Option<u8>,
    /// Waits for answers.
    pub poll: RpcPoll,
}

impl ClientSetup {
    /// The operation of the self-test that its calls ask for.
    pub(super) fn operation(&self) -> u16 {
        self_test::operation(self.payload.request.kind, self.payload.reply.kind)
    }
}
