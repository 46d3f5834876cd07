//! Records of a packet path, from the text that programs print.
//!
//! In: text. Out: typed figures, or the line that cannot be read and what to do. Not here: files.

mod host_report;
mod path_log;
mod pcm;
mod perf_counts;
mod row;
mod workspace_lines;

use thiserror::Error;

pub use host_report::{HostReport, IoRates};
pub use pcm::{NodeBandwidth, PcieCounts, SocketCounts, node_bandwidths, node_traffic};
pub use perf_counts::PerfCounts;

/// Advice about a log that cannot be read.
const LOG_HELP: &str = "the log is what the packet path printed, with its tables unchanged";

/// A text that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}: {message}\n  help: {help}")]
pub struct InputError {
    /// The line, from 1.
    pub line: usize,
    /// The error there.
    pub message: String,
    /// Advice for the user.
    pub help: String,
}

impl InputError {
    pub(crate) fn new(line: usize, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
            help: help.into(),
        }
    }
}
