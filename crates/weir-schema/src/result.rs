//! The result: run → groups → jobs → workers → kinds of operation.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weir_stats::{Estimate, Histogram, Series};
use weir_units::{Bytes, BytesPerSec, Iops, JsonSchema, Nanos, Percent};

use crate::error_code::ErrorCode;
use crate::facts::{ClockFacts, DiskCounters, ForeignSource, HostFacts, Instrument, ProgramFacts};
use crate::kind::KindName;
use crate::latency_over_time::LatencyOverTime;
use crate::outcome::{Metric, Outcome};
use crate::phase::PhaseResult;
use crate::plan::Plan;
use crate::steady::{DepthFound, Steadiness};
use crate::verify::Mismatch;
use crate::warning::Warning;
use crate::world::RankSummary;

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Always `weir.result.v2`.
    pub schema: String,
    /// Version of the program.
    pub weir_version: String,
    /// Place in the history, if it is kept there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryPlace>,
    /// Wall clock at the start, since 1970.
    pub started_unix_ns: u64,
    /// Marks the verified data of this run; drawn from its start.
    #[serde(default)]
    pub run_id: u16,
    /// From the start to the release of the first job, which is the zero of all times.
    #[serde(default)]
    pub zero_ns: Nanos,
    /// From the start of the first job to the end of the last.
    pub duration_ns: Nanos,
    /// The plan was carried out to its end.
    pub complete: bool,
    /// Cause of an early end.
    pub ended_by: Option<EndedBy>,
    /// In plan order.
    pub groups: Vec<GroupResult>,
    /// Summary of each rank, in rank order, where there were several: the figures of jobs and
    /// workers are then those of all ranks together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankSummary>,
    /// Conditions that spoil the numbers.
    pub warnings: Vec<Warning>,
    /// Disks behind the targets.
    pub disks: Vec<DiskCounters>,
    /// The clock.
    pub clock: ClockFacts,
    /// The instrument's own cost.
    pub instrument: Instrument,
    /// The machine.
    pub host: HostFacts,
    /// Source of the figures, if weir did not measure them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ForeignSource>,
    /// The program, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFacts>,
    /// The plan that was run.
    pub plan: Plan,
}

impl RunResult {
    /// Every job, in plan order.
    pub fn jobs(&self) -> impl Iterator<Item = &JobResult> {
        self.groups.iter().flat_map(|g| &g.jobs)
    }

    /// Jobs that failed or hung.
    pub fn failed_jobs(&self) -> usize {
        self.jobs().filter(|j| j.failure.is_some()).count()
    }
}

/// Place of a result in the history of the machine that measured it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPlace {
    /// Its id.
    pub id: String,
    /// The database, where it is another than the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The signal that ended a run early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedBy {
    /// Its number.
    pub signal: i32,
}

/// A span on the run's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// Since the start of the run.
    pub start_ns: Nanos,
    /// Since the start of the run.
    pub end_ns: Nanos,
}

impl Span {
    /// Its length.
    pub fn length(self) -> Nanos {
        Nanos(self.end_ns.0.saturating_sub(self.start_ns.0))
    }
}

/// A reporting group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupResult {
    /// In plan order.
    pub jobs: Vec<JobResult>,
    /// Rates per kind over all its workers.
    pub rates: Vec<Rates>,
    /// From the start of the last of its workers to the end of the first, on all ranks; where
    /// they never ran together it ends before it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Span>,
    /// Figures of several jobs together with their intervals, per kind; nothing where they did not
    /// begin together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confidence: Vec<Confidence>,
    /// Latencies of each kind over time, of jobs that are reported as one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_over_time: Vec<LatencyOverTime>,
}

/// Rates of one kind over all workers of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Kind of operation.
    pub kind: KindName,
    /// Completed.
    pub operations: u64,
    /// Moved.
    pub bytes: Bytes,
    /// Total over (latest end − earliest start).
    pub ops_per_s: Iops,
    /// The same in bytes.
    pub bytes_per_s: BytesPerSec,
    /// Rate while all members ran.
    pub overlap_bytes_per_s: Option<BytesPerSec>,
    /// The same in operations.
    pub overlap_ops_per_s: Option<Iops>,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobResult {
    /// As in the plan.
    pub name: String,
    /// State at its end.
    pub state: State,
    /// From the first worker's start to the last one's end, ramp excluded; absent when it never ran.
    pub span: Option<Span>,
    /// Reason that it failed.
    pub failure: Option<Failure>,
    /// Logs that were written.
    #[serde(default)]
    pub logs: Vec<String>,
    /// Outcome, by its workload.
    #[serde(default)]
    pub outcome: Outcome,
    /// Its headline figures.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Its phases in the order in which they were done, where it has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseResult>,
}

/// State of a job at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not reached.
    #[default]
    NotStarted,
    /// At work; in results of a run that goes on.
    Running,
    /// To its bounds.
    Done,
    /// With an error.
    Failed,
    /// Stopped by a signal or by another job's end.
    Stopped,
    /// A worker did not come back from the kernel and was left behind.
    Hung,
}

/// Failure of a job or worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// errno, where there is one.
    pub errno: Option<i32>,
    /// Stable word for the cause: `io`, `end`, `open`, `layout`, `minimum_rate`, `max_latency`, `panic`,
    /// `hung`, `memory`, `engine`, `plan`, `mismatch`.
    pub cause: String,
    /// One sentence with place and remedy.
    pub message: String,
    /// The target it happened on.
    pub target: Option<String>,
    /// The kind of operation it happened in.
    pub kind: Option<KindName>,
    /// The offset it happened at.
    pub offset_bytes: Option<Bytes>,
    /// The length that was asked for.
    pub length_bytes: Option<Bytes>,
    /// Figures of causes that have more to tell.
    #[serde(default)]
    pub finding: Option<Finding>,
}

/// The figures behind a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Finding {
    /// Bytes per second below the minimum.
    BytesBelowMinimum {
        /// The minimum.
        limit_bytes_per_s: BytesPerSec,
        /// The rate reached.
        found_bytes_per_s: BytesPerSec,
    },
    /// Operations per second below the minimum.
    OpsBelowMinimum {
        /// The minimum.
        limit_per_s: Iops,
        /// The rate reached.
        found_per_s: Iops,
    },
    /// An operation that took longer than one may.
    LatencyAboveMaximum {
        /// The maximum.
        limit_ns: Nanos,
        /// The latency.
        found_ns: Nanos,
    },
    /// Data that is not what was written.
    Mismatch(Box<Mismatch>),
}

/// One worker: a clone of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerResult {
    /// Clone number within the job.
    pub clone: u32,
    /// Number of the worker over the whole run, from 0 in plan order.
    pub number: u32,
    /// Kernel's thread id.
    pub thread_id: Option<u32>,
    /// From release (or the end of ramp) to the last completion.
    pub span: Option<Span>,
    /// State at its end.
    pub state: State,
    /// Reason that it failed.
    pub failure: Option<Failure>,
    /// Per kind, only those that occurred.
    pub kinds: Vec<KindResult>,
    /// CPU time and switches.
    pub cpu: CpuUse,
    /// Depth and batch distributions.
    pub depth: DepthUse,
    /// Time spent before `t_issue` on generating payload, and between passes on dropping the page
    /// cache.
    pub prepare_ns: Option<Nanos>,
    /// Late issues of the open loop: operations issued more than the bound after their intended
    /// start although a slot was free.
    pub late_issues: Option<u64>,
    /// Blocks that failed verification, in the order they were found; the first ones only, where
    /// there are very many.
    #[serde(default)]
    pub mismatches: Vec<Mismatch>,
    /// Operations that failed and were to be reported, where the worker went on; the first
    /// ones only, where there are very many.
    #[serde(default)]
    pub reported_errors: Vec<Failure>,
    /// Steadiness of its rate, where that was a bound; of jobs that are one entry of the report the
    /// first worker has it.
    #[serde(default)]
    pub steadiness: Option<Steadiness>,
    /// The depth that the search for a latency came to.
    #[serde(default)]
    pub depth_found: Option<DepthFound>,
}

impl WorkerResult {
    /// The figures of one kind.
    pub fn kind(&self, kind: impl Into<KindName>) -> Option<&KindResult> {
        let kind = kind.into();
        self.kinds.iter().find(|k| k.kind == kind)
    }
}

/// The kinds that occur among workers and are part of their rates, in the order of reports.
pub(crate) fn rated_kinds<'a>(
    workers: impl Iterator<Item = &'a WorkerResult>,
) -> BTreeSet<KindName> {
    let kinds = workers.flat_map(|worker| &worker.kinds);
    let done = kinds.filter(|kind| kind.operations > 0);
    let done: BTreeSet<KindName> = done.map(|kind| kind.kind.clone()).collect();
    // What stands aside of others counts where it is all there is.
    let rated = done.iter().filter(|kind| !kind.is_aside());
    let rated: BTreeSet<KindName> = rated.cloned().collect();
    if rated.is_empty() { done } else { rated }
}

/// One kind of operation of one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindResult {
    /// Kind of operation.
    pub kind: KindName,
    /// Issued, without those that completed in ramp; failed and lost ones are among them.
    pub issued: u64,
    /// Completed without error.
    pub operations: u64,
    /// Moved.
    pub bytes: Bytes,
    /// Completed with fewer bytes than asked for.
    pub short: u64,
    /// Given up by pacing.
    pub dropped: u64,
    /// Never completed.
    pub lost: u64,
    /// Failed, by code.
    pub errors: BTreeMap<ErrorCode, u64>,
    /// Time over which this kind was active: the worker's span.
    pub runtime_ns: Nanos,
    /// Latency histograms that were recorded.
    pub stages: Vec<StageHistogram>,
    /// The same by class, where something sets operations of one kind apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassResult>,
    /// Operations and bytes per interval.
    pub series: Series,
    /// Bandwidth over sampling periods, bytes per second.
    pub bandwidth_samples: Option<SampleStatistics>,
    /// Operations per second over sampling periods.
    pub iops_samples: Option<SampleStatistics>,
}

impl KindResult {
    /// A stage's histogram, if it was recorded.
    pub fn stage(&self, stage: Stage) -> Option<&Histogram> {
        self.stages
            .iter()
            .find(|s| s.stage == stage)
            .map(|s| &s.histogram)
    }
}

/// A span in an operation's life.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Issue to acceptance.
    Slat,
    /// Acceptance to completion.
    Clat,
    /// Issue to completion.
    Lat,
    /// Intended start to completion.
    Rlat,
    /// Of operations that failed: issue to completion.
    Errors,
}

/// The histogram of one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageHistogram {
    /// Stage of the latency.
    pub stage: Stage,
    /// In nanoseconds.
    pub histogram: Histogram,
}

/// Latencies of the operations of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassResult {
    /// Class that sets them apart: of block operations the I/O priority, class << 13 | level, 0 for
    /// that of the thread.
    pub class: u16,
    /// Latency histograms that were recorded.
    pub stages: Vec<StageHistogram>,
}

/// Minimum, maximum, mean and sample deviation of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleStatistics {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation.
    pub deviation: f64,
}

/// CPU time and switches of a worker's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    /// In user mode.
    pub user_ns: Nanos,
    /// In the kernel.
    pub system_ns: Nanos,
    /// Switches it asked for.
    pub voluntary_switches: u64,
    /// Switches it suffered.
    pub involuntary_switches: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Time it could have run but another thread had the CPU.
    #[serde(default)]
    pub run_delay_ns: Option<Nanos>,
    /// Time that the hypervisor took from its CPU, by the share of the whole run; of the CPU that
    /// it began or ended on, whichever was so for longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_ns: Option<Nanos>,
    /// The CPU it began on.
    #[serde(default)]
    pub first_cpu: Option<u32>,
    /// The CPU it ended on.
    #[serde(default)]
    pub last_cpu: Option<u32>,
}

/// Depth and batch distributions of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DepthUse {
    /// Operations issued while 1, 2, 4, 8, 16, 32, 64 or more were in flight (floor to a power
    /// of two, their own included).
    pub in_flight: [u64; 7],
    /// Hand-overs of 0, 1–4, 5–8, 9–16, 17–32, 33–64 and more operations.
    pub submitted: [u64; 7],
    /// Harvests of 0, 1–4, 5–8, 9–16, 17–32, 33–64 and more operations.
    pub completed: [u64; 7],
    /// Mean in flight over time.
    pub mean_in_flight: Option<f64>,
}

/// Figures of one kind of a job with their intervals, over all its workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confidence {
    /// Kind of operation.
    pub kind: KindName,
    /// Operations per second.
    pub ops_per_s: Estimate,
    /// Bytes per second, where any were moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<Estimate>,
    /// The rate changes so slowly that its interval holds for this run only.
    #[serde(default)]
    pub slow: bool,
    /// The stage of the mean and the percentiles: the response, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_stage: Option<Stage>,
    /// Mean latency in nanoseconds.
    pub mean_latency_ns: Option<Estimate>,
    /// Percentiles of the same stage.
    pub percentiles: Vec<LatencyPercentile>,
}

/// A percentile with its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPercentile {
    /// Of which stage.
    pub stage: Stage,
    /// The percentile.
    pub percent: Percent,
    /// Value and interval in nanoseconds.
    pub value_ns: Estimate,
    /// Fewer than 10 samples lie beyond it.
    pub few_samples: bool,
}
