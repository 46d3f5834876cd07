//! Logs of a run: what a line stands for, where it goes, and how often there is one.
//!
//! Every line of a log is `time in ms, value, kind (0 read, 1 write, 2 trim), bytes per
//! operation[, offset], priority`; a log of buckets has a count per bucket instead of a value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_units::Nanos;

/// One log of each worker of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Log {
    /// What it is a log of.
    pub what: Logged,
    /// The file; `$worker` stands for the worker's number over the whole run, from 1. Workers
    /// whose files have one name share it.
    pub path: String,
    /// A line per kind and window of this length; a line per operation when 0.
    pub window_ns: Nanos,
    /// Latencies: the largest of a window rather than the mean.
    pub maximum: bool,
    /// Lines have a column for the offset (0 for a window).
    pub offset: bool,
    /// The priority is a hexadecimal number of four digits.
    pub hex_priority: bool,
    /// Times count from 1970 instead of from the job's start.
    pub since_1970: bool,
}

/// What a log is a log of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Logged {
    /// Bandwidth in KiB per second.
    Bandwidth,
    /// Operations per second (1 for each operation).
    Operations,
    /// Submission latency in nanoseconds.
    Slat,
    /// Completion latency in nanoseconds.
    Clat,
    /// Total latency in nanoseconds.
    Lat,
    /// How many completion latencies fell into each bucket.
    Buckets {
        /// Two to the power of this many buckets are one.
        coarseness: u8,
    },
}

/// Logs of the bandwidth of the whole run, a line each half second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TotalLog {
    /// The files of reads, writes and trims.
    pub paths: crate::workload::PerKind<String>,
}
