//! Limits of a server, and its counters.
//!
//! Not here: the account of memory (`account`), and what happens to those who ask for more.

use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// Bounds of a server.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Largest in-line payload of requests and of replies, in bytes; bulk is bounded by the memory.
    pub max_message: u64,
    /// Memory of all sessions, in bytes.
    pub memory: u64,
    /// Connections.
    pub connections: u32,
    /// Connections from one address, this machine's own apart.
    pub per_address: u32,
    /// Sessions of one connection.
    pub sessions_each: u32,
    /// Sessions of all connections.
    pub sessions: u32,
    /// Calls that one session may have out.
    pub credits: u32,
    /// Connections in their handshake.
    pub pending: u32,
    /// Limit of a handshake's time.
    pub handshake: Duration,
    /// Time for which half a frame may lie, and data that a client does not take.
    pub half_frame: Duration,
    /// Time for which a service may hold a call.
    pub held: Duration,
    /// Time for which calls may go on once the server stops.
    pub drain: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_message: 16 << 20,
            memory: 1 << 30,
            connections: 16_384,
            per_address: 4096,
            sessions_each: 1024,
            sessions: 65_536,
            credits: 65_536,
            pending: 1024,
            handshake: Duration::from_secs(5),
            half_frame: Duration::from_secs(30),
            held: Duration::from_secs(30),
            drain: Duration::from_secs(1),
        }
    }
}

/// Counters of a server; any thread may look.
#[derive(Debug, Default)]
pub struct ServerCounters {
    /// Connections that began in another language.
    pub bad_preambles: AtomicU64,
    /// Connections that were turned away: limits, no descriptors left, no such tag, no token.
    pub refused: AtomicU64,
    /// Connections that broke the protocol.
    pub protocol_errors: AtomicU64,
    /// Connections that are open now.
    pub connections: AtomicU32,
    /// Sessions that are open now.
    pub sessions: AtomicU32,
    /// Requests that were taken.
    pub requests: AtomicU64,
}
