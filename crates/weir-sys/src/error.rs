//! Errors between weir and the kernel, named by cause.
//!
//! In: the system call that failed and what it was for. Out: one message each that says what,
//! why and, where something can be done, what to do. Not here: refused writes ([`crate::guard`]).

use std::io;
use std::path::PathBuf;
use weir_units::Bytes;

/// A request that the system did not grant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SysError {
    /// A CPU list that cannot be read.
    #[error("`{text}` is no CPU list: {why} (expected numbers and ranges such as `0-3,8`)")]
    CpuList {
        /// The list as given.
        text: String,
        /// The error in it.
        why: String,
    },
    /// CPUs that this thread may not or cannot run on.
    #[error("cannot run on CPUs {cpus}: {source}")]
    Affinity {
        /// The CPUs asked for.
        cpus: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A scheduling or memory setting of the thread or process was refused.
    #[error("cannot {what}: {source}{}", .remedy.map(|r| format!(" ({r})")).unwrap_or_default())]
    Refused {
        /// The action asked for, as a verb phrase.
        what: String,
        /// The kernel's answer.
        source: io::Error,
        /// Advice for the user.
        remedy: Option<&'static str>,
    },
    /// Memory that could not be had.
    #[error("cannot map {} bytes of {kind}: {source}{}", .len.0, .remedy.map(|r| format!(" ({r})")).unwrap_or_default())]
    Map {
        /// Kind of memory.
        kind: &'static str,
        /// Its size.
        len: Bytes,
        /// The kernel's answer.
        source: io::Error,
        /// Advice for the user.
        remedy: Option<&'static str>,
    },
    /// A request that makes no sense on any machine.
    #[error("{0}")]
    Invalid(String),
    /// A path that could not be looked at.
    #[error("cannot {what} `{}`: {source}", .path.display())]
    Path {
        /// The action tried, as a verb.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}
