//! Block I/O: which kinds, where, how large, with which content, on which targets.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Percent};

use crate::bursts::Bursts;
use crate::kind::{Kind, PerKind};
use crate::load_of_loop::Load;
use crate::memory::Memory;
use crate::replay::Replay;
use crate::target::Targets;
use crate::verify::Verify;
use crate::workload::WorkloadFacts;

/// Block I/O: which kinds, where, how large, with which content, on which targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockWorkload {
    /// Reads, writes, trims and their shares.
    pub mix: Mix,
    /// Order of offsets.
    pub access: Access,
    /// Sizes of operations.
    pub sizes: BlockSizes,
    /// Files and devices.
    pub targets: Targets,
    /// Part of each target that is used.
    pub region: Region,
    /// Content of buffers.
    pub content: Content,
    /// Flushes between and after writes.
    pub flush: Flush,
    /// Marks in what is written, and checks of what is read.
    #[serde(default)]
    pub verify: Option<Verify>,
    /// Passes over the region.
    pub passes: Passes,
    /// Reads and writes come in bursts, over offsets that both share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
    /// An operation waits until none in flight touches the same bytes.
    #[serde(default)]
    pub no_overlap: bool,
    /// Buffers.
    pub memory: Memory,
    /// The loop over operations.
    pub load: Load,
}

impl WorkloadFacts for BlockWorkload {
    fn title(&self) -> String {
        let kinds = Kind::DATA.into_iter().filter(|kind| self.mix.has(*kind));
        let kinds: Vec<_> = kinds.map(Kind::name).collect();
        kinds.join(" and ")
    }

    fn seed(&self) -> Option<u64> {
        Some(self.access.seed)
    }

    fn load(&self) -> Option<&Load> {
        Some(&self.load)
    }

    fn load_mut(&mut self) -> Option<&mut Load> {
        Some(&mut self.load)
    }
}

impl BlockWorkload {
    /// It starts over until its time is up.
    pub fn is_endless(&self) -> bool {
        self.passes.time_based && self.load.bounds.runtime_ns.is_some()
    }
}

/// Passes over a region.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Passes {
    /// Bytes after which the job ends; the region's size when absent.
    pub io_size: Option<Size>,
    /// Passes over the region.
    pub loops: u64,
    /// Start over until the runtime is reached.
    pub time_based: bool,
    /// Write until the device or file system is full, which is no error.
    pub until_full: bool,
}

impl Default for Passes {
    fn default() -> Self {
        Self {
            io_size: None,
            loops: 1,
            time_based: false,
            until_full: false,
        }
    }
}

impl BlockWorkload {
    /// True if operations of this kind are carried out: those of the mix, and the reads that check
    /// what was written.
    pub fn carries_out(&self, kind: Kind) -> bool {
        let only_checks = self.verify.as_ref().is_some_and(|v| v.only);
        match kind {
            Kind::Read => self.mix.has(kind) || self.reads_back(),
            Kind::Write | Kind::Trim => self.mix.has(kind) && !only_checks,
            Kind::Sync => false,
        }
    }

    /// True if the job checks the data that it has written itself.
    pub fn reads_back(&self) -> bool {
        let asked = |v: &Verify| v.read_back || v.only || v.backlog > 0;
        self.mix.has(Kind::Write) && self.verify.as_ref().is_some_and(asked)
    }
}

/// Shares of reads, writes and trims; they add up to 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Share of reads.
    pub read_percent: u8,
    /// Share of writes.
    pub write_percent: u8,
    /// Share of trims.
    pub trim_percent: u8,
    /// Each trim is followed by a write of the same block (the write is not drawn).
    pub trim_then_write: bool,
}

impl Mix {
    /// Only operations of one kind.
    pub const fn only(kind: Kind) -> Self {
        let (r, w, t) = match kind {
            Kind::Read => (100, 0, 0),
            Kind::Write | Kind::Sync => (0, 100, 0),
            Kind::Trim => (0, 0, 100),
        };
        Self {
            read_percent: r,
            write_percent: w,
            trim_percent: t,
            trim_then_write: false,
        }
    }

    /// True if operations of this kind occur.
    pub const fn has(&self, kind: Kind) -> bool {
        match kind {
            Kind::Read => self.read_percent > 0,
            Kind::Write => self.write_percent > 0 || self.trim_then_write,
            Kind::Trim => self.trim_percent > 0,
            Kind::Sync => false,
        }
    }
}

/// The order of offsets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Random rather than sequential.
    pub random: bool,
    /// Distribution of the random ones.
    pub distribution: Distribution,
    /// Generator of uniform offsets.
    pub generator: Generator,
    /// Each block once per pass.
    pub map: bool,
    /// Share of operations at random offsets, the others follow their predecessor.
    pub random_percent: PerKind<u8>,
    /// Sequential: signed number of bytes added after each operation (negative runs backwards).
    pub skip_bytes: i64,
    /// Meaning of the count of `steps`.
    pub step: SequencerStep,
    /// Operations per new position (1: a new one for each).
    pub steps: u32,
    /// Alignment of random offsets where it differs from the smallest block.
    pub align_bytes: Option<PerKind<Bytes>>,
    /// Seed of all streams; clones and jobs get their own streams from it.
    pub seed: u64,
    /// The region is walked zone by zone.
    #[serde(default)]
    pub zones: Option<Zones>,
    /// The operations are those of a recorded pattern: files, kinds, offsets, sizes and times.
    #[serde(default)]
    pub replay: Option<Replay>,
}

/// Zones of a region, one after the other with gaps between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zones {
    /// Bytes moved in a zone before the next one.
    pub bytes: Bytes,
    /// Length of a zone, over which random offsets spread.
    pub range: Bytes,
    /// Bytes between the end of a zone and the start of the next.
    pub skip: Bytes,
}

/// Use of a count of operations per position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SequencerStep {
    /// The operations follow each other from the drawn position.
    #[default]
    Sequential,
    /// The operations repeat the drawn position.
    Identical,
}

/// Spread of random offsets over the region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Distribution {
    /// Every block alike.
    #[default]
    Uniform,
    /// Zipf's law with the exponent theta.
    Zipf {
        /// Exponent.
        theta: f64,
        /// Place of the most frequent block, as a share of the region.
        center: Option<f64>,
    },
    /// Pareto: share h of the accesses …
    Pareto {
        /// Skew, 0 < h < 1.
        h: f64,
        /// Place of the most frequent block, as a share of the region.
        center: Option<f64>,
    },
    /// Gaussian around the centre.
    Normal {
        /// Standard deviation in percent of the region.
        deviation_percent: f64,
        /// Centre as a share of the region (0.5 when absent).
        center: Option<f64>,
    },
    /// Shares of the accesses go to consecutive zones.
    Zoned {
        /// One list for all kinds, or one each.
        zones: PerKind<Vec<HotZone>>,
    },
}

/// A zone that gets a share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HotZone {
    /// Share of the accesses.
    pub access_percent: Percent,
    /// Length of the zone.
    pub length: Size,
}

/// Generator of uniform random offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Generator {
    /// xoshiro256++.
    #[default]
    Xoshiro,
    /// A maximal-length shift register: each block once without a map.
    Lfsr,
}

/// Sizes of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockSizes {
    /// Per kind; with `by_pattern`, `read` is for sequential and `write` for random operations.
    pub size: PerKind<BlockSize>,
    /// The sizes are chosen by pattern, not by kind.
    pub by_pattern: bool,
}

/// Size of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum BlockSize {
    /// Always the same.
    Fixed {
        /// Size.
        bytes: Bytes,
    },
    /// Drawn between two bounds.
    Range {
        /// Smallest.
        min_bytes: Bytes,
        /// Largest.
        max_bytes: Bytes,
        /// Any number of bytes rather than multiples of the smallest.
        unaligned: bool,
    },
    /// Drawn from a weighted list.
    Split {
        /// Sizes and weights.
        entries: Vec<SplitEntry>,
    },
}

impl BlockSize {
    /// The smallest size that can occur.
    pub fn min(&self) -> Bytes {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range { min_bytes, .. } => *min_bytes,
            Self::Split { entries } => entries.iter().map(|e| e.bytes).min().unwrap_or_default(),
        }
    }

    /// The largest size that can occur.
    pub fn max(&self) -> Bytes {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range { max_bytes, .. } => *max_bytes,
            Self::Split { entries } => entries.iter().map(|e| e.bytes).max().unwrap_or_default(),
        }
    }
}

/// A size and how often it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitEntry {
    /// Size.
    pub bytes: Bytes,
    /// Share of the operations.
    pub percent: u8,
}

/// A length that may depend on the target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Size in bytes.
    Bytes(Bytes),
    /// A share of the target's size.
    Percent(f64),
}

/// The part of the target that a job uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Length over all files of the job; the whole target when absent.
    pub size: Option<Size>,
    /// Start in each file.
    pub offset: Option<Size>,
    /// Added to the start for clone k, k times.
    pub offset_step: Option<Size>,
    /// A start given in percent is rounded down to this.
    pub offset_align_bytes: Option<Bytes>,
    /// Size of each file: limits the region, and is the size of missing files and of character
    /// devices. A second value makes sizes random between both.
    pub file_size_bytes: Option<(Bytes, Bytes)>,
    /// Only this part of each region, where ranks share the targets; files are still made whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// One of several equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Number of the part, from 0.
    pub number: u32,
    /// Of how many.
    pub of: u32,
}

/// Content of buffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Content {
    /// All zeros.
    pub zero: bool,
    /// New content for each write.
    pub refill: bool,
    /// Touch each 512 bytes so that blocks differ.
    pub scramble: bool,
    /// Repeated bytes instead of random ones.
    pub pattern: Option<Vec<u8>>,
    /// Share that a compressor can remove.
    pub compress_percent: u8,
    /// The length over which the share is kept.
    pub compress_chunk_bytes: Bytes,
    /// Share of blocks that repeat an earlier one.
    pub dedupe_percent: u8,
    /// Repeated blocks come from a set of as many blocks as this share of the region has, not
    /// from those written last.
    #[serde(default)]
    pub dedupe_set_percent: Option<u8>,
    /// Every job that says so has the same set.
    #[serde(default)]
    pub dedupe_set_is_shared: bool,
    /// Of jobs in bursts: what is written follows from its place, and what is read is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sectors: Option<SectorData>,
}

/// Data that follows from its place, so that whoever knows seed and generation can check it: each
/// sector of 512 bytes begins with a magic number, its number and the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SectorData {
    /// Of the words behind.
    pub seed: u64,
    /// Tells writes of the same place apart.
    pub generation: u64,
}

/// Flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flush {
    /// fsync after so many writes.
    pub fsync_every: Option<u32>,
    /// fdatasync after so many writes.
    pub fdatasync_every: Option<u32>,
    /// fsync when the job ends.
    pub fsync_at_end: bool,
    /// fsync at each close.
    pub fsync_on_close: bool,
    /// Flushes of the range that was written since the last one.
    #[serde(default)]
    pub range: Option<RangeFlush>,
}

/// `sync_file_range` over what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RangeFlush {
    /// After so many writes.
    pub every: u32,
    /// Wait for what is being written out already.
    pub wait_before: bool,
    /// Begin to write out.
    pub write: bool,
    /// Wait for what was begun.
    pub wait_after: bool,
}
