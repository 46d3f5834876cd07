//! The plan: groups of jobs with everything a run needs, before anything is touched.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_units::{Bytes, BytesPerSec, Iops, Nanos, QueueDepth};

use crate::log::TotalLog;
use crate::recording::Recording;
use crate::steady::{LatencyTarget, Steady};
use crate::workload::{PerKind, Workload};
use crate::world::Ranks;

/// What shall be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always `weir.plan.v1`.
    pub schema: String,
    /// What the run is called: the job file's name, or the door's.
    pub name: String,
    /// The door that wrote the plan.
    pub door: String,
    /// The words it came from, verbatim.
    pub command: Vec<String>,
    /// Options that stood before every job, verbatim.
    pub global_words: Vec<Word>,
    /// Reporting groups in order.
    pub groups: Vec<Group>,
    /// Logs of the whole run.
    #[serde(default)]
    pub total_log: Option<TotalLog>,
    /// Who carries it out; this process alone where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Ranks>,
}

impl Plan {
    /// Stores dumps and states of verification in this directory.
    pub fn set_verify_directory(&mut self, directory: &str) {
        for job in self.groups.iter_mut().flat_map(|g| &mut g.jobs) {
            if let Some(verify) = job.workload.verify_mut() {
                verify.directory = Some(directory.to_owned());
            }
        }
    }

    /// Every job with its group's number, in plan order.
    pub fn jobs(&self) -> impl Iterator<Item = (usize, &Job)> {
        self.groups
            .iter()
            .enumerate()
            .flat_map(|(i, g)| g.jobs.iter().map(move |j| (i, j)))
    }
}

/// Jobs that are reported together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// In plan order.
    pub jobs: Vec<Job>,
}

/// One described piece of work and its clones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Displayed name; need not be unique.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// Workers that do the same.
    pub clones: u32,
    /// All jobs of the group that say so are one entry of the report.
    pub merge: bool,
    /// Absent from reports.
    pub hidden: bool,
    /// When it starts.
    pub start: Start,
    /// What it does.
    pub workload: Workload,
    /// With what.
    pub engine: EngineChoice,
    /// How much at once.
    pub depth: Depth,
    /// When it ends.
    pub bounds: Bounds,
    /// How fast it may go.
    pub pacing: Pacing,
    /// Below this it fails.
    pub minimum_rate: Option<MinimumRate>,
    /// Where its workers run.
    pub placement: Placement,
    /// Its buffers.
    pub memory: Memory,
    /// What is recorded.
    pub recording: Recording,
    /// What happens on errors.
    pub errors: ErrorPolicy,
    /// What its end does to others.
    pub exit_all: Option<ExitAll>,
    /// The options it came from, in order, canonical names.
    pub words: Vec<Word>,
}

/// One option as it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Canonical name.
    pub key: String,
    /// Value after substitution; absent for a bare flag.
    pub value: Option<String>,
    /// Jobs that stand above a word that is given for all: it changes nothing in them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub below: u32,
    /// Jobs up to the end of the file it stands in, for such a word: it changes nothing in
    /// those of further files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde calls"
)]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// When a job starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// It and all later jobs wait for everything before.
    pub barrier: bool,
    /// It waits for the earlier job of this name.
    pub wait_for: Option<String>,
    /// Counted from the start of the program.
    pub delay: Option<StartDelay>,
    /// What each worker runs before it begins.
    #[serde(default)]
    pub before: Option<ShellCommand>,
    /// What each worker runs when it has ended.
    #[serde(default)]
    pub after: Option<ShellCommand>,
}

/// A command for the shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellCommand {
    /// Its text.
    pub text: String,
    /// The file that gets what it says.
    pub output: String,
}

/// A pause before the start: fixed when both bounds are equal, else drawn between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartDelay {
    /// Shortest.
    pub min_ns: Nanos,
    /// Longest.
    pub max_ns: Nanos,
}

/// The engine and its settings in house words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineChoice {
    /// Name in the catalogue.
    pub name: String,
    /// Settings that were given; the engine's defaults hold for the rest.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
}

/// The value of an engine's setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Setting {
    /// A switch.
    Bool(bool),
    /// A whole number.
    Number(i64),
    /// A word or text.
    Text(String),
}

/// How much is in flight and how it is handed over.
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
    /// An operation waits until none in flight touches the same bytes.
    #[serde(default)]
    pub no_overlap: bool,
}

impl Default for Depth {
    fn default() -> Self {
        Self {
            queue_depth: QueueDepth(1),
            submit_batch: 1,
            reap_min: 1,
            reap_max: 0,
            refill_below: None,
            no_overlap: false,
        }
    }
}

/// When a job ends: at the first bound that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// After this time.
    pub runtime_ns: Option<Nanos>,
    /// Start over until the runtime is reached.
    pub time_based: bool,
    /// Run first for this long without counting.
    pub ramp_ns: Nanos,
    /// After so many bytes (the region's size when absent).
    pub io_size: Option<crate::workload::Size>,
    /// After so many operations.
    pub operations: Option<u64>,
    /// Passes over the region.
    pub loops: u64,
    /// Write until the device or file system is full, which is no error.
    pub until_full: bool,
    /// When the rate is steady.
    #[serde(default)]
    pub steady: Option<Steady>,
    /// When every job without this bound has ended.
    #[serde(default)]
    pub with_the_others: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            runtime_ns: None,
            time_based: false,
            ramp_ns: Nanos(0),
            io_size: None,
            operations: None,
            loops: 1,
            until_full: false,
            steady: None,
            with_the_others: false,
        }
    }
}

/// How fast a job may go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pacing {
    /// The schedule of starts; a closed loop when absent.
    pub schedule: Option<Schedule>,
    /// Pauses.
    pub thinktime: Option<Thinktime>,
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
    /// Which flow.
    pub id: u32,
    /// Weight of each worker in it.
    pub weight: u32,
    /// How long a worker that is ahead sleeps; it only yields the CPU when 0.
    pub pause_ns: Nanos,
}

/// Intended starts of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Schedule {
    /// No more than these operations per second of each kind.
    OpsPerSecond {
        /// Limits; absent: free.
        limit_per_s: PerKind<Option<Iops>>,
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
        limit_bytes_per_s: PerKind<Option<BytesPerSec>>,
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MinimumRate {
    /// Bytes per second of each kind.
    pub bytes_per_s: PerKind<Option<BytesPerSec>>,
    /// Operations per second of each kind.
    pub ops_per_s: PerKind<Option<Iops>>,
    /// Time between checks.
    pub cycle_ns: Nanos,
}

/// Where workers run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Allowed CPUs; all when absent.
    pub cpus: Option<Vec<u32>>,
    /// How clones share them.
    pub share: ShareCpus,
    /// Added to the thread's nice value.
    pub nice: i32,
    /// The CPUs of these memory nodes.
    #[serde(default)]
    pub nodes: Option<Vec<u32>>,
    /// Nodes from which memory comes.
    #[serde(default)]
    pub memory: MemoryNodes,
    /// Priority of the thread's I/O.
    #[serde(default)]
    pub io_priority: Option<IoPriority>,
    /// Memory to keep from everybody else, per worker.
    #[serde(default)]
    pub lock_bytes: Bytes,
}

/// Nodes from which memory comes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum MemoryNodes {
    /// As the process started.
    #[default]
    Default,
    /// The node of the CPU that touches a page first.
    Local,
    /// This one first.
    Prefer {
        /// Which.
        node: u32,
    },
    /// These alone.
    Bind {
        /// Which.
        nodes: Vec<u32>,
    },
    /// These in turn.
    Interleave {
        /// Which.
        nodes: Vec<u32>,
    },
}

/// Priority of I/O as `ioprio_set(2)` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoPriority {
    /// 0: none, 1: real time, 2: best effort, 3: idle.
    pub class: u8,
    /// 0 (highest) to 7.
    pub level: u8,
}

/// How clones share the allowed CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShareCpus {
    /// Every clone may use all of them.
    #[default]
    Shared,
    /// One CPU each, in turn.
    Split,
}

/// I/O buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Where they come from.
    pub kind: MemoryKind,
    /// File behind the memory, for `MemoryKind::File`.
    pub path: Option<String>,
    /// Alignment within the page-aligned area.
    pub align_bytes: Option<Bytes>,
    /// Page size of huge memory.
    pub huge_page_bytes: Option<Bytes>,
}

/// Where buffers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Private pages, touched beforehand.
    #[default]
    Private,
    /// Shared pages.
    Shared,
    /// Huge pages.
    Huge,
    /// Shared huge pages.
    SharedHuge,
    /// Pages of a file.
    File,
}

/// What happens when an operation fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorPolicy {
    /// Failed operations of these kinds are counted and the job goes on.
    pub go_on: PerKind<bool>,
    /// These errno values of a kind are no failures.
    pub ignore: PerKind<Vec<i32>>,
    /// Blocks that fail verification are listed and the job goes on.
    #[serde(default)]
    pub go_on_mismatch: bool,
    /// Results name each failed operation after which the job goes on.
    #[serde(default)]
    pub tell: bool,
}

/// What the end of a job stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitAll {
    /// The others of its group, when it ends.
    Group,
    /// Every running job, when it ends.
    Running,
    /// The whole run, when it ends.
    Everything,
    /// The others of its group, only when it fails.
    GroupOnError,
}
