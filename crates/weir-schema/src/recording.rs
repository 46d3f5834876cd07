//! Records of a job: latencies, samples, percentiles, logs.

use serde::{Deserialize, Serialize};
use weir_units::{JsonSchema, Nanos, Percent};

use crate::log::Log;

/// Records that a job keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Recording {
    /// Clock reads per operation.
    pub timing: Timing,
    /// Submission latency.
    pub slat: bool,
    /// Completion latency.
    pub clat: bool,
    /// Total latency.
    pub lat: bool,
    /// Bandwidth samples.
    pub bandwidth: bool,
    /// Exact squares, for a peer's standard deviation.
    pub exact_squares: bool,
    /// Percentiles to report.
    pub percentiles: Vec<Percent>,
    /// Length of an interval of the series.
    pub interval_ns: Nanos,
    /// Length of bandwidth samples for min, max and deviation.
    pub bandwidth_sample_ns: Nanos,
    /// The same for IOPS samples; as long as those of bandwidth when absent.
    #[serde(default)]
    pub iops_sample_ns: Option<Nanos>,
    /// Reads, writes and trims are one kind in the report.
    pub unify_kinds: bool,
    /// Disk counters before and after.
    pub disk_counters: bool,
    /// Per-operation log.
    pub trace: Option<Trace>,
    /// Logs of rates and latencies.
    #[serde(default)]
    pub logs: Vec<Log>,
    /// File that gets the operations, so that they can be carried out again.
    #[serde(default)]
    pub record_operations_to: Option<String>,
    /// Completed operations of a worker that may wait to be written down, where it is more than
    /// the room there is anyhow.
    #[serde(default)]
    pub waiting_operations: u32,
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            timing: Timing::EveryOperation,
            slat: true,
            clat: true,
            lat: true,
            bandwidth: true,
            exact_squares: false,
            percentiles: [50.0, 90.0, 99.0, 99.9].map(Percent).to_vec(),
            interval_ns: Nanos(100_000_000),
            bandwidth_sample_ns: Nanos(500_000_000),
            iops_sample_ns: None,
            unify_kinds: false,
            disk_counters: true,
            trace: None,
            logs: Vec::new(),
            record_operations_to: None,
            waiting_operations: 0,
        }
    }
}

/// Clock reads per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// For each operation.
    #[default]
    EveryOperation,
    /// Once for each batch handed over and each harvest.
    EveryBatch,
    /// Only at the ends of the run: no latencies.
    EndsOnly,
}

/// A per-operation log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// CSV file that gets a line per operation.
    pub path: String,
}
