//! Errors between this program and an MPI library.

use crate::Launcher;

use super::MpiLibraryFacts;

/// Reason that MPI could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MpiError {
    /// No library by any of the known names.
    #[error(
        "no MPI library found (looked for {tried})\n  help: install Open MPI (Debian: \
         `apt-get install openmpi-bin`) or MPICH (`apt-get install mpich`), or name the library's \
         file in WEIR_MPI_LIB"
    )]
    Missing {
        /// The names, joined.
        tried: String,
    },
    /// The library that `WEIR_MPI_LIB` names does not load.
    #[error("WEIR_MPI_LIB={name}: {reason}")]
    NotLoaded {
        /// As given.
        name: String,
        /// The loader's words.
        reason: String,
    },
    /// It is not an MPI library, or one with another binary interface.
    #[error(
        "{file} is neither Open MPI nor compatible with MPICH ({says})\n  help: name another \
         library's file in WEIR_MPI_LIB"
    )]
    Unknown {
        /// The library's file.
        file: String,
        /// The version text of the library.
        says: String,
    },
    /// It lacks a function that every MPI library has.
    #[error("{file} has no {symbol}: it is no complete MPI library")]
    Incomplete {
        /// The library's file.
        file: String,
        /// The missing symbol.
        symbol: String,
    },
    /// The launcher belongs to another MPI than the library: each process is a world of its own.
    #[error(
        "{} started {} processes, but the MPI library sees a world of {library_size}: {} ({}, {})\
         \n  help: start weir with the launcher that came with this library, or name the \
         launcher's own library in WEIR_MPI_LIB",
        launcher.kind, launcher.size, facts.family, facts.name(), facts.file
    )]
    OtherLauncher {
        /// The launcher of this process.
        launcher: Launcher,
        /// The library.
        facts: MpiLibraryFacts,
        /// Processes that the library knows.
        library_size: u32,
    },
    /// MPI can be started once in a process.
    #[error("MPI was started in this process before")]
    InUse,
    /// A call failed.
    #[error("{call}: {detail}")]
    Call {
        /// The function.
        call: &'static str,
        /// The library's words.
        detail: String,
    },
    /// More bytes than a call can count.
    #[error("a message of {bytes} bytes is more than MPI carries at once (2147483647)")]
    TooLong {
        /// As many were meant.
        bytes: usize,
    },
    /// There is no such rank.
    #[error("there is no rank {rank}: the world has {size}")]
    NoSuchRank {
        /// The rank meant.
        rank: u32,
        /// Ranks in all.
        size: u32,
    },
    /// Counts and offsets do not describe the buffer that is given.
    #[error("the parts of an exchange do not fit: {detail}")]
    Layout {
        /// The difference.
        detail: String,
    },
}

impl MpiError {
    /// True if this machine lacks something, so that nothing could be tried.
    pub fn is_lack(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::NotLoaded { .. }
                | Self::Unknown { .. }
                | Self::Incomplete { .. }
        )
    }
}
