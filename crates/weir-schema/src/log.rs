//! Logs of a run: what a record stands for, where it goes, and how often there is one.
//!
//! In a plan a log is a wish. While the run writes it, each record is data that a door's format
//! puts into words.

use serde::{Deserialize, Serialize};
use weir_stats::Histogram;
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::kind::ByKind;

/// One log of each worker of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Log {
    /// Quantity that it logs.
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
    /// The file is a zlib stream.
    #[serde(default)]
    pub compressed: bool,
}

/// Quantity that a log records.
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
    /// Number of completion latencies in each bucket.
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
    pub paths: ByKind<String>,
}

/// One record of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogRecord<'a> {
    /// Milliseconds since the log's zero.
    pub at_ms: u64,
    /// The name of the kind of operation.
    pub kind: &'a str,
    /// The one operation that it is of; nothing where it is of a window.
    pub operation: Option<LogOperation>,
    /// The measured values.
    pub measure: LogMeasure<'a>,
}

/// The operation that a record of a log is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogOperation {
    /// Its first byte.
    pub offset: u64,
    /// Its length.
    pub length: Bytes,
    /// Class and level of its I/O priority as one number, in the form of system calls; 0 where none was
    /// asked for.
    pub priority: u16,
}

/// Values of a record of a log.
#[derive(Clone, Copy, Debug)]
pub enum LogMeasure<'a> {
    /// Bytes were moved in a time.
    Moved(Bytes, Nanos),
    /// Operations were completed in a time.
    Completed(u64, Nanos),
    /// A latency: of an operation, or the mean or the largest of a window.
    Latency(Nanos),
    /// The completion latencies of a window.
    Buckets {
        /// All of them.
        latencies: &'a Histogram,
        /// Bytes per operation.
        mean: Bytes,
        /// Two to the power of this many buckets are one.
        coarseness: u8,
    },
}

/// Puts a record of a log into words, at the end of a text.
pub type LogFormat = fn(&Log, &LogRecord<'_>, &mut String);
