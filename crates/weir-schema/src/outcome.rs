//! Outcome of a job, by its workload; its headline figures.
//!
//! In: what a runner measured. Out: data that merges over ranks without knowing who measured it. A
//! reader that does not know a workload still has its metrics. Not here: how metrics follow from an
//! outcome (`metrics`).

use serde::{Deserialize, Serialize};
use weir_units::JsonSchema;

use crate::confidence::KindBatches;
use crate::exchange::ExchangeResult;
use crate::latency_bandwidth::LatencyBandwidthResult;
use crate::latency_over_time::LatencyOverTime;
use crate::metrics::names_in_rows;
use crate::object_store_result::ObjectOutcome;
use crate::packet_path_result::PacketPathOutcome;
use crate::result::{Confidence, JobResult, WorkerResult};
use crate::rpc_result::RpcOutcome;

/// Outcome of a job, by its workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing: it never started, or another rank has it.
    #[default]
    None,
    /// Outcome of a loop's workers.
    Loop(LoopOutcome),
    /// Messages exchanged between ranks.
    Exchange(Box<ExchangeResult>),
    /// Latencies and bandwidths between ranks.
    LatencyBandwidth(Box<LatencyBandwidthResult>),
    /// Requests to servers, each with a reply.
    Rpc(Box<RpcOutcome>),
    /// Messages in packets through stages, and their answers.
    PacketPath(Box<PacketPathOutcome>),
    /// Tests on an object store, one after the other.
    ObjectStore(Box<ObjectOutcome>),
}

/// Outcome of a loop's workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopOutcome {
    /// Clones of the job, in order.
    pub workers: Vec<WorkerResult>,
    /// Figures with their intervals, per kind, over all workers.
    pub confidence: Vec<Confidence>,
    /// Batches of each kind over time, on their way from a rank to the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<KindBatches>,
    /// Latencies of each kind over time, over all workers and ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_over_time: Vec<LatencyOverTime>,
    /// Cost of a loop of this form itself: nanoseconds per operation with an engine that does
    /// nothing.
    #[serde(default)]
    pub loop_ns_per_op: Option<f64>,
}

impl Outcome {
    /// Workers of which nobody knows yet how sure their figures are.
    pub fn of_workers(workers: Vec<WorkerResult>) -> Self {
        Self::Loop(LoopOutcome {
            workers,
            ..LoopOutcome::default()
        })
    }

    /// Outcome of its loop's workers, where it has a loop.
    pub fn of_loop(&self) -> Option<&LoopOutcome> {
        match self {
            Self::Loop(done) => Some(done),
            Self::Rpc(done) => Some(&done.workers),
            Self::PacketPath(done) => Some(&done.workers),
            Self::None | Self::Exchange(_) | Self::LatencyBandwidth(_) | Self::ObjectStore(_) => {
                None
            }
        }
    }

    /// The same, to be changed.
    pub fn of_loop_mut(&mut self) -> Option<&mut LoopOutcome> {
        match self {
            Self::Loop(done) => Some(done),
            Self::Rpc(done) => Some(&mut done.workers),
            Self::PacketPath(done) => Some(&mut done.workers),
            Self::None | Self::Exchange(_) | Self::LatencyBandwidth(_) | Self::ObjectStore(_) => {
                None
            }
        }
    }
}

impl JobResult {
    /// Its workers; none where it is no loop or never started.
    pub fn workers(&self) -> &[WorkerResult] {
        let done = self.outcome.of_loop();
        done.map_or(&[], |done| &done.workers)
    }

    /// The same, to be changed.
    pub fn workers_mut(&mut self) -> &mut [WorkerResult] {
        let done = self.outcome.of_loop_mut();
        done.map_or(&mut [], |done| &mut done.workers)
    }

    /// Fact about its target that belongs to its work: `durability process`.
    pub fn remark(&self) -> Option<String> {
        let ranks = &self.object_store()?.ranks;
        let mut levels: Vec<&str> = ranks.iter().map(|rank| rank.durability.name()).collect();
        levels.dedup();
        (!levels.is_empty()).then(|| format!("durability {}", levels.join(" and ")))
    }

    /// Figures of its workers with their intervals, per kind.
    pub fn confidence(&self) -> &[Confidence] {
        let done = self.outcome.of_loop();
        done.map_or(&[], |done| &done.confidence)
    }

    /// Cost of its loop itself, where that was measured: nanoseconds per operation.
    pub fn loop_ns_per_op(&self) -> Option<f64> {
        self.outcome.of_loop()?.loop_ns_per_op
    }

    /// Result of the exchange, where that was its work.
    pub fn exchange(&self) -> Option<&ExchangeResult> {
        match &self.outcome {
            Outcome::Exchange(done) => Some(done),
            _ => None,
        }
    }

    /// Latencies and bandwidths between ranks, where they were its work.
    pub fn latency_bandwidth(&self) -> Option<&LatencyBandwidthResult> {
        match &self.outcome {
            Outcome::LatencyBandwidth(done) => Some(done),
            _ => None,
        }
    }

    /// Outcome of RPCs, where they were its work.
    pub fn rpc(&self) -> Option<&RpcOutcome> {
        match &self.outcome {
            Outcome::Rpc(done) => Some(done),
            _ => None,
        }
    }

    /// Outcome of tests on an object store, where they were its work.
    pub fn object_store(&self) -> Option<&ObjectOutcome> {
        match &self.outcome {
            Outcome::ObjectStore(done) => Some(done),
            _ => None,
        }
    }

    /// Outcome of a packet path, where that was its work.
    pub fn packet_path(&self) -> Option<&PacketPathOutcome> {
        match &self.outcome {
            Outcome::PacketPath(done) => Some(done),
            _ => None,
        }
    }
}

impl JobResult {
    /// Its headline figures that the rows of a report about its workers do not show.
    pub fn own_metrics(&self) -> Vec<&Metric> {
        let mut in_rows = names_in_rows(self.workers());
        in_rows.extend(self.phase_metrics().map(|metric| metric.name));
        let is_own = |metric: &&Metric| !in_rows.contains(&metric.name);
        self.metrics.iter().filter(is_own).collect()
    }
}

/// A headline figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Name, unique in its job: `b_eff`, `read p99`.
    pub name: String,
    /// Its unit without prefix: `B/s`, `ops/s`, `s`; empty for a plain number.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// The better one of two values.
    pub better: Better,
    /// The values of repetitions that it comes from, where there are some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<f64>,
    /// Its 95 % interval, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

impl Metric {
    /// Bytes.
    pub const BYTES: &str = "B";
    /// Bytes per second.
    pub const BYTES_PER_S: &str = "B/s";
    /// Operations per second.
    pub const OPS_PER_S: &str = "ops/s";
    /// Seconds.
    pub const SECONDS: &str = "s";

    /// A rate or score: the higher, the better.
    pub fn high(name: impl Into<String>, unit: &str, value: f64) -> Self {
        Self {
            name: name.into(),
            unit: unit.to_owned(),
            value,
            better: Better::Higher,
            samples: Vec::new(),
            interval: None,
        }
    }

    /// Half the width of its interval, where it has one.
    pub fn half_width(&self) -> Option<f64> {
        let interval = self.interval?;
        Some((interval.high - interval.low) / 2.0)
    }

    /// A time or cost: the lower, the better.
    pub fn low(name: impl Into<String>, unit: &str, value: f64) -> Self {
        Self {
            better: Better::Lower,
            ..Self::high(name, unit, value)
        }
    }
}

/// The better one of two values of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The greater one.
    Higher,
    /// The smaller one.
    Lower,
}

/// Interval that holds a figure in 95 of 100 runs like this one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}
