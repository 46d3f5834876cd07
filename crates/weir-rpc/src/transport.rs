//! Interface of a load generator: calls to endpoints, each in a slot.
//!
//! In: which endpoint, which slot. Out: completions by slot. What a call carries was settled when
//! the transport was made. Not here: which endpoint is next, and when (the engine and the loop).

use std::io;
use std::time::{Duration, Instant};

use weir_schema::{RpcEndpoint, RpcServerUse};

use crate::{DerCode, RpcError};

/// The answer to [`RpcTransport::request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested {
    /// Taken; a completion will follow.
    Queued,
    /// This endpoint is not there any more. Nothing was sent and no completion follows.
    Gone,
}

/// Counters of a transport since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RpcCounters {
    /// Answers that came after their call had timed out.
    pub late_replies: u64,
    /// Calls that waited for a buffer at a server, as the servers said.
    pub buffer_waits: u64,
    /// Calls that waited in this process for credits, a quota or room to send.
    pub credit_waits: u64,
    /// Sum of those waits in nanoseconds, as precise as a look per round is.
    pub credit_wait_ns: u64,
    /// Packets that were sent again; `None` where that is not known.
    pub retransmits: Option<u64>,
    /// Bytes of frames both ways; `None` where that is not known.
    pub wire_bytes: Option<u64>,
    /// Connections that were made at first.
    pub connections: u32,
    /// Connections that were lost.
    pub lost_connections: u64,
    /// RPCs at once that a server granted a session, where that is fewer than were wanted; the fewest.
    pub fewer_credits: Option<u32>,
    /// Payloads that were compared or summed.
    pub verified: u64,
    /// Time of that, and of writing and summing what is sent, in nanoseconds.
    pub verify_ns: u64,
}

impl RpcCounters {
    /// Difference to an earlier reading.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let after = |now: u64, then: u64| now.saturating_sub(then);
        let known = |now: Option<u64>, then: Option<u64>| Some(after(now?, then.unwrap_or(0)));
        Self {
            late_replies: after(self.late_replies, before.late_replies),
            buffer_waits: after(self.buffer_waits, before.buffer_waits),
            credit_waits: after(self.credit_waits, before.credit_waits),
            credit_wait_ns: after(self.credit_wait_ns, before.credit_wait_ns),
            retransmits: known(self.retransmits, before.retransmits),
            wire_bytes: known(self.wire_bytes, before.wire_bytes),
            // They were made before the first call, and so were sessions.
            connections: self.connections,
            lost_connections: after(self.lost_connections, before.lost_connections),
            fewer_credits: self.fewer_credits,
            verified: after(self.verified, before.verified),
            verify_ns: after(self.verify_ns, before.verify_ns),
        }
    }
}

/// Trouble of connections and sessions of a client, those of one kind and code together.
#[derive(Clone, Debug)]
pub struct ConnectionTrouble {
    /// Whom the first befell.
    pub endpoint: RpcEndpoint,
    /// They were there before; others were never to be had.
    pub is_loss: bool,
    /// When that befell the first.
    pub when: Instant,
    /// Why the first.
    pub why: RpcError,
    /// Their number.
    pub count: u64,
}

/// Calls to endpoints, by one thread.
pub trait RpcTransport: Sized {
    /// Sends the request of a free slot to an endpoint, a number below that of the endpoints.
    /// Makes no system call; what cannot go out yet waits inside.
    fn request(&mut self, endpoint: u32, slot: u32) -> Requested;

    /// Hands over what was queued.
    ///
    /// # Errors
    /// Nothing can be sent any more.
    fn flush(&mut self) -> io::Result<()>;

    /// Calls `done` for up to `at_most` completions: the slot, and the bytes of request and reply
    /// or a negative code (-1011, or an errno). `timeout_ns` is the longest wait for a first one: 0 only
    /// looks, `None` waits until there is one, a signal comes or all endpoints are gone.
    ///
    /// # Errors
    /// Completions cannot be had any more.
    fn poll(
        &mut self,
        timeout_ns: Option<u64>,
        at_most: u32,
        done: impl FnMut(u32, i64),
    ) -> io::Result<u32>;

    /// The same; also the CPU time of looks that brought nothing.
    ///
    /// # Errors
    /// As [`RpcTransport::poll`].
    fn poll_timed(
        &mut self,
        timeout_ns: Option<u64>,
        at_most: u32,
        done: impl FnMut(u32, i64),
    ) -> io::Result<(u32, Duration)> {
        Ok((self.poll(timeout_ns, at_most, done)?, Duration::ZERO))
    }

    /// True if an endpoint can be called. One that is lost may come back where reconnecting was
    /// asked for.
    fn is_up(&self, endpoint: u32) -> bool;

    /// Why an endpoint cannot be called.
    fn why_down(&self, _endpoint: u32) -> DerCode {
        DerCode::Unreachable
    }

    /// Troubles of connections and sessions so far.
    fn troubles(&self) -> Vec<ConnectionTrouble> {
        Vec::new()
    }

    /// True if a lost endpoint may still come back.
    fn may_return(&self) -> bool {
        false
    }

    /// Gives up every call that is out: the next polls answer each with `Canceled` (-1018).
    fn cancel(&mut self) {}

    /// Asks each server what its thread has used so far, and waits a little for the answers. Before
    /// and after calls, not between them.
    ///
    /// # Errors
    /// Nothing can be sent any more.
    fn server_use(&mut self) -> io::Result<Vec<RpcServerUse>> {
        Ok(Vec::new())
    }

    /// Nanoseconds that it took to connect to an endpoint at first; nothing where nobody connects.
    fn connect_ns(&self, _endpoint: u32) -> Option<u64> {
        None
    }

    /// Counters so far.
    fn counters(&self) -> RpcCounters;

    /// Closes sessions and connections; calls that are still out end here.
    ///
    /// # Errors
    /// An error of closing.
    fn close(self) -> io::Result<RpcCounters>;
}
