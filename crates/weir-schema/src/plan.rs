//! The plan: groups of jobs with everything a run needs, before anything is touched.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::log::TotalLog;
use crate::workload::Workload;
use crate::world::Ranks;

/// Plan of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always `weir.plan.v2`.
    pub schema: String,
    /// Name of the run: the job file's name, or the door's.
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
    /// Whose text its door prints. Absent: the peer's, of a door that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// Who carries it out; this process alone where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Ranks>,
    /// Values that only the output of one door needs.
    #[serde(default, skip_serializing_if = "Extensions::is_empty")]
    pub extensions: Extensions,
}

/// Whose text a door prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Voice {
    /// weir's report, exit codes and history.
    Weir,
    /// The text and exit codes of the tool that the door stands for.
    Peer,
}

/// Data of doors, by the door's name. Its form is the door's; nothing else reads it.
pub type Extensions = BTreeMap<String, serde_json::Value>;

impl Plan {
    /// Stores dumps and states of verification in this directory.
    pub fn set_verify_directory(&mut self, directory: &str) {
        for job in self.groups.iter_mut().flat_map(|g| &mut g.jobs) {
            let blocks = job.workload.blocks_mut();
            if let Some(verify) = blocks.and_then(|work| work.verify.as_mut()) {
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
    /// Number of clones that run at once, in each rank.
    pub clones: u32,
    /// Start of the job.
    pub start: Start,
    /// End of the job, and its effect on other jobs.
    #[serde(default)]
    pub end: JobEnd,
    /// Placement of its workers.
    pub placement: Placement,
    /// With what.
    pub engine: EngineChoice,
    /// The work of the job.
    pub workload: Workload,
    /// Place of the job in the report.
    #[serde(default)]
    pub report: JobReport,
    /// The options it came from, in order, canonical names.
    pub words: Vec<Word>,
    /// Values that only the output of one door needs.
    #[serde(default, skip_serializing_if = "Extensions::is_empty")]
    pub extensions: Extensions,
}

/// End of a job beside the bounds of its work, and its effect on other jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobEnd {
    /// Effect of its end on other jobs.
    #[serde(default)]
    pub exit_all: Option<ExitAll>,
    /// It ends when every job without this has ended.
    #[serde(default)]
    pub until_other_jobs_end: bool,
}

/// Place of a job in the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobReport {
    /// All jobs of the group that say so are one entry of the report.
    #[serde(default)]
    pub merge: bool,
    /// Absent from reports.
    #[serde(default)]
    pub hidden: bool,
}

/// One option as it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Canonical name.
    pub key: String,
    /// Value after substitution; absent for a bare flag.
    pub value: Option<String>,
}

/// Start of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// It and all later jobs wait for everything before.
    pub barrier: bool,
    /// It waits for the earlier job of this name.
    pub wait_for: Option<String>,
    /// Counted from the start of the program.
    pub delay: Option<StartDelay>,
    /// Command that each worker runs before it begins.
    #[serde(default)]
    pub before: Option<ShellCommand>,
    /// Command that each worker runs when it has ended.
    #[serde(default)]
    pub after: Option<ShellCommand>,
    /// A step that a search added, by what those before it came to: no part of what the run was to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_search_step: bool,
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

/// Placement of workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Allowed CPUs; all when absent.
    pub cpus: Option<Vec<u32>>,
    /// Sharing of the CPUs between clones.
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
        /// Number of the node.
        node: u32,
    },
    /// These alone.
    Bind {
        /// Numbers of the nodes.
        nodes: Vec<u32>,
    },
    /// These in turn.
    Interleave {
        /// Numbers of the nodes.
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

/// Sharing of the allowed CPUs between clones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShareCpus {
    /// Every clone may use all of them.
    #[default]
    Shared,
    /// One CPU each, in turn.
    Split,
}

/// Jobs that the end of a job stops.
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
