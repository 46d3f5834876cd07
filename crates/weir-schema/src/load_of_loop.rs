//! The load of a workload that loops over operations: how many at once, for how long, how fast,
//! what is recorded of them, and what happens when one fails.
//!
//! Not here: what the operations are; workloads without a loop, which have none of this.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use weir_units::{BytesPerSec, Iops, JsonSchema, Nanos, QueueDepth};

use crate::block_workload::BlockWorkload;
use crate::error_code::ErrorCode;
use crate::kind::{ByKind, KindName};
use crate::plan::Job;
use crate::recording::Recording;
use crate::steady::{LatencyTarget, Steady};

/// The load of a workload that loops over operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Operations at once.
    pub depth: Depth,
    /// Bounds of the loop.
    pub bounds: Bounds,
    /// Pace.
    pub pacing: Pacing,
    /// Behaviour on errors.
    pub errors: ErrorPolicy,
    /// Below this it fails.
    pub minimum_rate: Option<MinimumRate>,
    /// Recording.
    pub recording: Recording,
}

impl Load {
    /// The kinds of operation that its settings name, each with the setting.
    pub fn named_kinds(&self) -> Vec<(&'static str, &KindName)> {
        let mut named: Vec<(&'static str, &KindName)> = Vec::new();
        let mut add = |setting, kinds: Vec<_>| {
            named.extend(kinds.into_iter().map(|kind| (setting, kind)));
        };
        match &self.pacing.schedule {
            Some(Schedule::OpsPerSecond { limit_per_s, .. }) => {
                add("pacing.schedule.limit_per_s", limit_per_s.keys().collect());
            }
            Some(Schedule::BytesPerSecond {
                limit_bytes_per_s, ..
            }) => {
                let kinds = limit_bytes_per_s.keys().collect();
                add("pacing.schedule.limit_bytes_per_s", kinds);
            }
            None => {}
        }
        if let Some(least) = &self.minimum_rate {
            add(
                "minimum_rate.bytes_per_s",
                least.bytes_per_s.keys().collect(),
            );
            add("minimum_rate.ops_per_s", least.ops_per_s.keys().collect());
        }
        let paused = self.pacing.pause_after_ns.keys().collect();
        add("pacing.pause_after_ns", paused);
        add("errors.go_on", self.errors.go_on.iter().collect());
        add("errors.ignore", self.errors.ignore.keys().collect());
        named
    }
}

/// Load of a workload without a loop: nothing was asked for.
static NO_LOAD: LazyLock<Load> = LazyLock::new(Load::default);

impl Job {
    /// The load of its loop; for a workload without one, as if nothing had been asked for.
    pub fn load(&self) -> &Load {
        self.workload.load().unwrap_or(&NO_LOAD)
    }

    /// Its block I/O, where that is its work.
    pub fn blocks(&self) -> Option<&BlockWorkload> {
        self.workload.blocks()
    }
}

/// Operations in flight and their handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Depth {
    /// Limit of operations in flight.
    pub queue_depth: QueueDepth,
    /// Operations handed over at once.
    pub submit_batch: u32,
    /// Completions waited for at once.
    pub reap_min: u32,
    /// Completions taken at once.
    pub reap_max: u32,
    /// New operations are issued when no more than this are in flight.
    pub refill_below: Option<u32>,
}

impl Default for Depth {
    fn default() -> Self {
        Self {
            queue_depth: QueueDepth(1),
            submit_batch: 1,
            reap_min: 1,
            reap_max: 0,
            refill_below: None,
        }
    }
}

/// Bounds of a loop: it ends at the first that is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// After this time.
    pub runtime_ns: Option<Nanos>,
    /// Run first for this long without counting.
    pub ramp_ns: Nanos,
    /// After so many operations.
    pub operations: Option<u64>,
    /// Steady rate that ends it.
    #[serde(default)]
    pub steady: Option<Steady>,
}

/// Pace of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pacing {
    /// The schedule of starts; a closed loop when absent.
    pub schedule: Option<Schedule>,
    /// Pauses.
    pub thinktime: Option<Thinktime>,
    /// After an operation of this kind nothing is issued for so long.
    #[serde(default, skip_serializing_if = "ByKind::is_empty")]
    pub pause_after_ns: ByKind<Nanos>,
    /// An operation slower than this ends the job.
    pub max_latency_ns: Option<Nanos>,
    /// The depth is searched for that keeps this latency.
    #[serde(default)]
    pub latency_target: Option<LatencyTarget>,
    /// Shares operations with other jobs.
    #[serde(default)]
    pub flow: Option<Flow>,
}

/// Jobs of a flow do operations in the proportion of their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Number of the flow.
    pub id: u32,
    /// Weight of each worker in it.
    pub weight: u32,
    /// Sleep of a worker that is ahead; it only yields the CPU when 0.
    pub pause_ns: Nanos,
}

/// Intended starts of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Schedule {
    /// No more than these operations per second of each kind.
    OpsPerSecond {
        /// Limits; absent: free.
        limit_per_s: ByKind<Iops>,
        /// Exponential gaps instead of equal ones.
        poisson: bool,
        /// The response latency from intended starts is recorded (open loop).
        open_loop: bool,
        /// Missed slots during think time are not made up for.
        ignore_thinktime: bool,
    },
    /// No more than these bytes per second of each kind.
    BytesPerSecond {
        /// Limits; absent: free.
        limit_bytes_per_s: ByKind<BytesPerSec>,
        /// Exponential gaps instead of equal ones.
        poisson: bool,
        /// The response latency from intended starts is recorded (open loop).
        open_loop: bool,
        /// Missed slots during think time are not made up for.
        ignore_thinktime: bool,
    },
}

/// Pauses after blocks of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Thinktime {
    /// The whole pause.
    pub pause_ns: Nanos,
    /// The first part of it that keeps the CPU busy.
    pub spin_ns: Nanos,
    /// Operations between pauses.
    pub every: u32,
    /// Operations count when they complete, not when they are issued.
    #[serde(default)]
    pub completed: bool,
    /// I/O time between pauses, instead of operations.
    pub after_ns: Option<Nanos>,
}

/// Lowest rates that are good enough; a job below them fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MinimumRate {
    /// Bytes per second of each kind.
    pub bytes_per_s: ByKind<BytesPerSec>,
    /// Operations per second of each kind.
    pub ops_per_s: ByKind<Iops>,
    /// Time between checks.
    pub cycle_ns: Nanos,
}

/// Behaviour when an operation fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorPolicy {
    /// Failed operations of these kinds are counted and the job goes on.
    pub go_on: BTreeSet<KindName>,
    /// With so many of them, and of blocks that fail verification, in all jobs of the group that say so,
    /// the job fails all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_at: Option<u32>,
    /// These errors of a kind are no failures.
    pub ignore: ByKind<Vec<ErrorCode>>,
    /// Blocks that fail verification are listed and the job goes on.
    #[serde(default)]
    pub go_on_mismatch: bool,
    /// Results name each failed operation after which the job goes on.
    #[serde(default)]
    pub report_errors: bool,
}
