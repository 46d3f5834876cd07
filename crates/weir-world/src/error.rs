//! Errors between ranks.

/// Reason that ranks could not come together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// Nothing came, or nothing was taken, in time.
    #[error("rank {peer} did not answer within {seconds} s")]
    Late {
        /// The rank waited for.
        peer: u32,
        /// Length of the silence.
        seconds: u64,
    },
    /// The other rank ended.
    #[error("rank {peer} is gone: {detail}")]
    Gone {
        /// The rank that ended.
        peer: u32,
        /// The sign of the loss.
        detail: String,
    },
    /// The other rank's process runs no more, though it has not ended.
    #[error(
        "rank {peer} does not answer: no heartbeat for {seconds} s (its process is stopped, or its \
         host out of reach)"
    )]
    Silent {
        /// The silent rank.
        peer: u32,
        /// For how long.
        seconds: u64,
    },
    /// The other rank does not come back from a call.
    #[error("rank {peer} hangs in a call")]
    Hangs {
        /// The rank that hangs.
        peer: u32,
    },
    /// A rank did not come to life.
    #[error("rank {rank} could not be started: {detail}")]
    NotStarted {
        /// The rank to be started.
        rank: u32,
        /// The reason.
        detail: String,
    },
    /// There is no such rank.
    #[error("there is no rank {rank}: the world has {size}")]
    NoSuchRank {
        /// The rank meant.
        rank: u32,
        /// Ranks in all.
        size: u32,
    },
    /// More bytes than this kind of world carries at once.
    #[error("a message of {bytes} bytes to rank {peer} is too long")]
    TooLong {
        /// For whom it was.
        peer: u32,
        /// Its length.
        bytes: usize,
    },
    /// The message is not the one that was expected.
    #[error("a message of rank {peer} is garbled: {detail}")]
    Garbled {
        /// The sender.
        peer: u32,
        /// The error in it.
        detail: String,
    },
}

impl WorldError {
    /// The rank that it is about, where there is one.
    pub fn peer(&self) -> Option<u32> {
        match *self {
            Self::Late { peer, .. }
            | Self::Gone { peer, .. }
            | Self::Silent { peer, .. }
            | Self::Hangs { peer }
            | Self::TooLong { peer, .. }
            | Self::Garbled { peer, .. } => Some(peer),
            Self::NotStarted { rank, .. } => Some(rank),
            Self::NoSuchRank { .. } => None,
        }
    }
}
