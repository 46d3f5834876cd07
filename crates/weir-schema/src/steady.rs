//! Bounds that look at how a job goes: a steady rate, and the depth that a latency allows.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Nanos, Percent, QueueDepth};

/// A worker ends when its rate is steady; jobs that are one entry of the report end together,
/// on the sum of their rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// The rate that is looked at, once a second.
    pub rate: SteadyRate,
    /// Quantity that must stay below the limit.
    pub measure: SteadyMeasure,
    /// The limit, per second, or in percent of the mean.
    pub limit: f64,
    /// The limit is in percent of the mean.
    pub in_percent: bool,
    /// The stretch that must be steady, in whole seconds.
    pub window_ns: Nanos,
    /// This much at the start is not looked at.
    pub ramp_ns: Nanos,
}

/// Rate that must be steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyRate {
    /// Operations per second.
    Operations,
    /// Bytes per second.
    Bytes,
}

/// Measure of a rate's steadiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyMeasure {
    /// The largest distance from the mean.
    Deviation,
    /// The slope of the line of least squares, per second.
    Slope,
}

/// Result of the search for a steady rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// It was reached.
    pub attained: bool,
    /// The figure that was held against the limit, in its unit; 0 before the first whole window.
    pub criterion: f64,
    /// The largest distance from the mean, per second (where that is the measure).
    pub deviation: f64,
    /// The slope per second (where that is the measure).
    pub slope: f64,
    /// Rates of the last window, one a second, the oldest first.
    pub samples: Vec<SteadySample>,
}

/// The rates of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteadySample {
    /// Operations per second.
    pub ops_per_s: u64,
    /// Bytes per second.
    pub bytes_per_s: Bytes,
}

/// The depth is searched for that keeps a latency: from 1 it doubles until a window fails, then
/// the range is halved. The report is of the last window, at the depth that was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyTarget {
    /// The latency that operations must keep below.
    pub target_ns: Nanos,
    /// Time for which a depth is tried.
    pub window_ns: Nanos,
    /// The share of operations that must keep it.
    pub share: Percent,
    /// Go on adjusting instead of ending with the depth found.
    pub keep_adjusting: bool,
}

/// The depth that a worker's search for a latency came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DepthFound {
    /// The depth at the end.
    pub queue_depth: QueueDepth,
    /// The search came to its end.
    pub settled: bool,
}
