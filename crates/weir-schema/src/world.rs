//! Ranks: the request for them in a plan, and the facts of each in a result.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema};

use crate::result::Span;

/// The ranks that carry a plan out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ranks {
    /// Number of ranks.
    pub count: u32,
    /// Kind of ranks.
    pub spawn: Spawn,
    /// Use of the jobs' targets by the ranks.
    #[serde(default, skip_serializing_if = "TargetsPerRank::is_default")]
    pub targets: TargetsPerRank,
}

impl Ranks {
    /// This process alone.
    pub const ONE: Self = Self::threads(1);

    /// Threads of this process.
    pub const fn threads(count: u32) -> Self {
        Self {
            count,
            spawn: Spawn::Threads,
            targets: TargetsPerRank::Own,
        }
    }
}

/// Use of a job's targets by ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetsPerRank {
    /// Files of their own: `.<rank>` is appended; devices are everybody's.
    #[default]
    Own,
    /// Equal parts of each region.
    Split,
    /// The same regions.
    Shared,
}

impl TargetsPerRank {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the form that serde calls"
    )]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Kind of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spawn {
    /// A thread of one process.
    #[default]
    Threads,
    /// A process on this machine.
    Processes,
    /// Processes that an MPI launcher started.
    Launcher,
}

/// Host, CPU and device of a rank. Absent: could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankFacts {
    /// Number of the rank.
    pub rank: u32,
    /// Node name.
    pub hostname: Option<String>,
    /// The CPU it was pinned to.
    pub cpu: Option<u32>,
    /// That CPU's NUMA node.
    pub numa_node: Option<u32>,
    /// The device it used, by index.
    pub device: Option<u32>,
    /// Name that the device reports.
    #[serde(default)]
    pub device_name: Option<String>,
    /// Name that the platform of that device reports.
    #[serde(default)]
    pub platform_name: Option<String>,
}

/// One rank's share of a result, in short. Of every rank there is one, so it is kept small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankSummary {
    /// Number of the rank.
    pub rank: u32,
    /// Node name.
    pub hostname: Option<String>,
    /// Completed, of all jobs.
    pub operations: u64,
    /// Moved.
    pub bytes: Bytes,
    /// From its first start to its last end; absent when nothing ran.
    pub span: Option<Span>,
    /// Jobs that failed or hung there.
    pub failed_jobs: u64,
    /// It carried the plan out to its end.
    pub complete: bool,
}

/// The MPI library of a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MpiFacts {
    /// `Open MPI` or `MPICH`.
    pub family: String,
    /// Version text of the library, its first line.
    pub library: String,
    /// Of the standard.
    pub version: u32,
    /// Of the standard.
    pub subversion: u32,
    /// The file that was opened.
    pub file: String,
}
