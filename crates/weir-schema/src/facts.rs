//! Facts about the machine, its clock, its devices and the instrument itself.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Nanos};

/// Facts about the host. Absent: could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Node name.
    pub hostname: Option<String>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// Operating system.
    pub os: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Online CPUs.
    pub cpus: Option<u32>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Memory.
    pub memory_bytes: Option<Bytes>,
    /// NUMA nodes.
    pub numa_nodes: Option<u32>,
    /// Tasks that were running or ready to, on the mean over the last minute before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_average: Option<f64>,
    /// Devices behind the targets.
    pub devices: Vec<DeviceFacts>,
}

/// Facts about the program and how it was started. Absent: not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFacts {
    /// Time of the build, since 1970.
    pub built_unix_s: Option<u64>,
    /// The commit it was built from, `-dirty` where the tree had changes.
    pub commit: Option<String>,
    /// Folders that the system searches for libraries first: `LD_LIBRARY_PATH`.
    pub library_path: Option<String>,
}

/// Another program whose figures these are. Its clock, its own cost and what it ran on are known as
/// far as its file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignSource {
    /// The format of the file.
    pub format: String,
    /// The program and its version, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// Facts about a target's device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceFacts {
    /// The target as the plan names it.
    pub target: String,
    /// `file`, `block device`, `character device`.
    pub kind: String,
    /// Size.
    pub size_bytes: Option<Bytes>,
    /// File system below a file.
    pub file_system: Option<String>,
    /// Block device below, `vda`.
    pub device: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its I/O scheduler.
    pub scheduler: Option<String>,
    /// Its logical block.
    pub logical_block_bytes: Option<Bytes>,
    /// Its NUMA node.
    pub numa_node: Option<u32>,
    /// A file that this run has made.
    #[serde(default)]
    pub made: bool,
    /// The driver of a device.
    #[serde(default)]
    pub driver: Option<String>,
    /// The maker's number of the device below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// The kernel's queue for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueFacts>,
    /// The driver's parameter `poll_mode`: interrupts or polling.
    #[serde(default)]
    pub poll_mode: Option<String>,
}

/// Settings of a block device's queue. Absent: could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFacts {
    /// Requests that it holds.
    pub requests: Option<u32>,
    /// The latency of reads for which the kernel holds back writes; 0: it does not.
    pub throttle_ns: Option<Nanos>,
    /// Its driver can be polled.
    pub has_polling: Option<bool>,
    /// It is slow to seek.
    pub is_rotational: Option<bool>,
}

/// Source of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The x86 time stamp counter.
    Tsc,
    /// The aarch64 virtual counter.
    Cntvct,
    /// `CLOCK_MONOTONIC`.
    #[default]
    Monotonic,
    /// A simulated clock.
    Simulated,
}

/// The clock of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockFacts {
    /// Source of the clock.
    pub source: ClockSource,
    /// Reason for this source.
    pub reason: String,
    /// Ticks per second.
    pub frequency_hz: f64,
    /// Cost of one read.
    pub read_ns: f64,
    /// Largest disagreement of an anchor with the line through its neighbours.
    pub residual_ns: Option<f64>,
    /// The same, relative.
    pub residual_ppm: Option<f64>,
    /// Anchors taken.
    pub anchors: u32,
}

/// The instrument's own cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Instrument {
    /// The dearest of the jobs' loops, with the null engine.
    pub ns_per_op: Option<f64>,
    /// Reason that the cost is absent.
    pub absent: Option<String>,
    /// Timer slack of the threads.
    pub timer_slack_ns: Option<Nanos>,
    /// CPU time of the live view, in percent of one CPU, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_cpu_percent: Option<f64>,
    /// Peak resident memory of the process.
    pub peak_memory_bytes: Option<Bytes>,
}

/// Counters of a disk over the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskCounters {
    /// `vda`.
    pub device: String,
    /// Reads completed.
    pub read_operations: u64,
    /// Writes completed.
    pub write_operations: u64,
    /// Reads merged.
    pub read_merges: u64,
    /// Writes merged.
    pub write_merges: u64,
    /// Bytes read.
    pub read_bytes: Bytes,
    /// Bytes written.
    pub write_bytes: Bytes,
    /// Time in reads.
    pub read_ns: Nanos,
    /// Time in writes.
    pub write_ns: Nanos,
    /// Time weighted by what was in flight.
    pub in_queue_ns: Nanos,
    /// Time with something in flight.
    pub busy_ns: Nanos,
    /// Time over which the counters were taken.
    pub elapsed_ns: Nanos,
    /// Devices below a stacked one.
    pub members: Vec<DiskCounters>,
}
