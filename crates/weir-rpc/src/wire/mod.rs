//! The bytes between client and server: encoding and decoding, nothing else.
//!
//! In: values, or bytes that a peer sent. Out: bytes, or values. Everything here is pure, checks
//! every length before it uses it, and allocates no more than the body it reads is long. Not here:
//! when a message may come, and what it means (`client`, `server`). All numbers are little-endian.

mod codec;
mod descriptor;
mod handshake;
mod header;
mod session;

pub use codec::{WireError, WireReader};
pub use descriptor::{BulkAccess, BulkDescriptor, BulkMode, BulkSegment, MOST_SEGMENTS};
pub use handshake::{
    Auth, ClientHello, HelloReply, MAJOR, MINOR, PREAMBLE, Preamble, PreambleReply,
};
pub use header::{FrameHeader, FrameKind, HEADER, RpcId, flag};
pub(crate) use header::{HEADER_WORDS, sum};
pub use session::{Closed, OpenReply, OpenRequest, PingTimes, ProgressNote, PullRange, PushHead};

/// Bits of the handshake: what a side can do beyond the version.
pub mod features {
    /// Headers carry a sum.
    pub const HEADER_CHECKSUM: u64 = 1;
    /// Everything that this build can do.
    pub const ALL: u64 = HEADER_CHECKSUM;
}

/// Largest body of a frame unless both sides agree on less, in bytes.
pub const MAX_FRAME: u32 = (1 << 20) + 64;
/// Smallest limit of a frame's body that a side may ask for.
pub const MIN_FRAME: u32 = 4096;
/// Bulk data travel in frames with at most this many bytes of it.
pub const BULK_PIECE: u64 = 256 << 10;
/// Bulk data that a frame carries behind its offset, where a body has at most so many bytes.
pub const fn bulk_piece(max_frame: u32) -> u64 {
    let longest = max_frame as u64 - 8;
    if longest < BULK_PIECE {
        longest
    } else {
        BULK_PIECE
    }
}
/// Pieces that a server asks for ahead, for each call.
pub const BULK_WINDOW: u32 = 8;

#[cfg(test)]
mod tests;
