//! The engines `remote` and `echo`: a store on the targets of servers, called over channels.
//!
//! In: channels to targets ([`Dial`] makes them), or a target's store. Out: an
//! [`ObjectStore`](crate::ObjectStore) on the client's side ([`RemoteStore`]); on the server's side the
//! steps of each request ([`Target`]). A distribution key lies on one target, whole; calls that name
//! none go to all. Values up to [`INLINE`] bytes travel within requests and replies, longer ones by the
//! bulk transfers of the channel, up to [`LONGEST`]. Not here: transports, hosting, who makes pools.

mod client;
mod dial;
mod held;
mod server;
mod wire;

pub use client::RemoteStore;
pub use dial::{Dial, RemoteSetup, TargetCall};
pub use server::{Part, Step, Target, TargetRequest};
pub use wire::{Counters, Descriptors, ListPlace, Reply, Request, ServerInfo, ValueSum, Values};

/// Longest values of a call that travel within a request or a reply, in bytes.
pub const INLINE: u64 = 16 << 10;
/// Longest values of a call, in bytes; longer ones are `REC2BIG`.
pub const LONGEST: u64 = 64 << 20;
/// Longest request in bytes: keys, descriptors, and values that travel within it.
pub const LONGEST_REQUEST: u32 = 512 << 10;
/// Room of a buffer for the head of a reply, before values.
pub const HEAD: usize = 24 << 10;
/// Smallest and largest buffer of a session: a value that is longer than one moves in pieces.
#[expect(clippy::cast_possible_truncation, reason = "it is small")]
pub const BUFFERS: (u32, u32) = (96 << 10, (1 << 20) + HEAD as u32);
/// Most containers that clients can make a pool have.
pub const MOST_CONTAINERS: u64 = 1024;
/// Most ranges that one fetch may find, with holes between them.
const MOST_RANGES: usize = 1024;
/// Most entries of a listing in one reply.
const MOST_ENTRIES: u32 = 4096;
/// Names of the services: what is stored, and what is only moved.
pub const SERVICES: [&str; 2] = ["object", "object-echo"];
/// Version of both; one with another is refused.
pub const VERSION: u16 = 2;
/// Group of the servers.
pub const GROUP: &str = "object";
