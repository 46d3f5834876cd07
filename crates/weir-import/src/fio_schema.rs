//! The JSON of fio, as far as it is read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// A document.
#[derive(Debug, Deserialize)]
pub(crate) struct FioDocument {
    #[serde(rename = "fio version")]
    pub(crate) version: String,
    pub(crate) timestamp: Option<u64>,
    pub(crate) timestamp_ms: Option<u64>,
    #[serde(rename = "global options", default)]
    pub(crate) global_options: Map<String, Value>,
    #[serde(default)]
    pub(crate) jobs: Vec<FioJobReport>,
    #[serde(default)]
    pub(crate) client_stats: Vec<FioJobReport>,
}

/// A job, or a group that reports as one.
#[derive(Debug, Deserialize)]
pub(crate) struct FioJobReport {
    pub(crate) jobname: String,
    pub(crate) hostname: Option<String>,
    pub(crate) desc: Option<String>,
    #[serde(default)]
    pub(crate) error: i32,
    #[serde(rename = "job_start")]
    pub(crate) start_ms: Option<u64>,
    #[serde(rename = "job options", default)]
    pub(crate) options: Map<String, Value>,
    pub(crate) read: Option<FioDirection>,
    pub(crate) write: Option<FioDirection>,
    pub(crate) trim: Option<FioDirection>,
    pub(crate) mixed: Option<FioDirection>,
    pub(crate) sync: Option<FioSync>,
    #[serde(rename = "job_runtime")]
    pub(crate) runtime_ms: Option<u64>,
    pub(crate) usr_cpu: Option<f64>,
    pub(crate) sys_cpu: Option<f64>,
    pub(crate) majf: Option<u64>,
    pub(crate) minf: Option<u64>,
}

/// One direction.
#[derive(Debug, Deserialize)]
pub(crate) struct FioDirection {
    pub(crate) io_bytes: u64,
    pub(crate) total_ios: u64,
    /// In milliseconds.
    pub(crate) runtime: u64,
    #[serde(default)]
    pub(crate) short_ios: u64,
    #[serde(default)]
    pub(crate) drop_ios: u64,
    pub(crate) slat_ns: Option<FioLatency>,
    pub(crate) clat_ns: Option<FioLatency>,
    pub(crate) lat_ns: Option<FioLatency>,
    pub(crate) bw_min: Option<f64>,
    pub(crate) bw_max: Option<f64>,
    pub(crate) bw_mean: Option<f64>,
    pub(crate) bw_dev: Option<f64>,
    pub(crate) bw_samples: Option<u64>,
    pub(crate) iops_min: Option<f64>,
    pub(crate) iops_max: Option<f64>,
    pub(crate) iops_mean: Option<f64>,
    pub(crate) iops_stddev: Option<f64>,
    pub(crate) iops_samples: Option<u64>,
}

/// Flushes.
#[derive(Debug, Deserialize)]
pub(crate) struct FioSync {
    pub(crate) total_ios: u64,
    pub(crate) lat_ns: Option<FioLatency>,
}

/// Latencies.
#[derive(Debug, Deserialize)]
pub(crate) struct FioLatency {
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) mean: f64,
    #[serde(rename = "N")]
    pub(crate) count: Option<u64>,
    #[serde(default)]
    pub(crate) percentile: BTreeMap<String, u64>,
    #[serde(default)]
    pub(crate) bins: BTreeMap<String, u64>,
}
