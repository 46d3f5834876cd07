//! A server of remote procedure calls, as it is asked for: plain data.
//!
//! In: flags of a door, or a run that serves itself. Out: [`RpcServe`]. Not here: serving
//! (`weir-rpc`), values out of range (the doors).

use std::path::PathBuf;

use weir_units::{Bytes, Nanos};

use crate::RpcPoll;

/// Ranks that one process serves.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcServe {
    /// Name of the group, which is no path.
    pub group: String,
    /// First and last rank; none: the next free one of the table.
    pub ranks: Option<(u32, u32)>,
    /// Ranks of the whole group, where a launcher says so.
    pub group_size: Option<u32>,
    /// Endpoints of each rank.
    pub tags: u32,
    /// URIs that each rank listens at, at least one; port 0 is any.
    pub addresses: Vec<String>,
    /// Network interface that the server belongs to, and that tests ordered here call by.
    pub interface: Option<String>,
    /// Domain of its fabrics.
    pub domain: Option<String>,
    /// Table of the group that names it.
    pub table: Option<RpcTable>,
    /// Threads that answer; none: as many as there are CPUs for.
    pub pollers: Option<u32>,
    /// A CPU for each of them.
    pub cpus: Vec<u32>,
    /// The way they wait.
    pub poll: RpcPoll,
    /// File with the secret that clients must know.
    pub token_file: Option<PathBuf>,
    /// Whoever reaches it may use it, where no token is asked for.
    pub is_open: bool,
    /// Tests may be started from here.
    pub allows_masters: bool,
    /// Longest in-line payload of requests and of replies.
    pub max_message: Bytes,
    /// Memory of all buffers; none: by the memory of the machine.
    pub memory_limit: Option<Bytes>,
    /// Connections.
    pub max_connections: u32,
    /// Sessions of all connections.
    pub max_sessions: u32,
    /// A message that is not whole by then, or not taken, ends its connection.
    pub half_frame_timeout_ns: Nanos,
    /// Busy time of each request.
    pub service_time: RpcServiceTime,
}

impl RpcServe {
    /// One rank that no table names, with the usual limits.
    pub fn alone(group: &str, tags: u32, address: String) -> Self {
        Self {
            group: group.to_owned(),
            ranks: Some((0, 0)),
            group_size: None,
            tags,
            addresses: vec![address],
            interface: None,
            domain: None,
            table: None,
            pollers: None,
            cpus: Vec::new(),
            poll: RpcPoll::Automatic,
            token_file: None,
            is_open: false,
            allows_masters: false,
            max_message: Bytes(16 << 20),
            memory_limit: Some(Bytes(1 << 30)),
            max_connections: 16_384,
            max_sessions: 65_536,
            half_frame_timeout_ns: Nanos::from_secs(30),
            service_time: RpcServiceTime::None,
        }
    }
}

/// Table of a group: a file of its directory that says where each rank listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RpcTable {
    /// The directory.
    pub directory: PathBuf,
    /// The group.
    pub group: String,
    /// Everyone may read it.
    pub is_public: bool,
    /// It has what the older program reads, and no more.
    pub is_plain: bool,
}

/// Time that a server is busy with each request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RpcServiceTime {
    /// None.
    #[default]
    None,
    /// Always the same.
    Constant(Nanos),
    /// Exponential with this mean.
    Exponential(Nanos),
    /// One of two.
    Bimodal {
        /// The first.
        first: Nanos,
        /// Probability of the first, 0 to 1.
        probability: f64,
        /// The second.
        second: Nanos,
    },
}
