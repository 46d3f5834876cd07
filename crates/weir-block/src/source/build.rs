//! From a workload to its source: the fixed one where nothing varies, else the general one.

use std::num::NonZeroU64;
use std::sync::Arc;

use thiserror::Error;
use weir_run::Findings;
use weir_run::generate::Streams;
use weir_run::generate::arrivals::Rate;
use weir_schema::{BlockSize, BlockWorkload, Content, Distribution, Generator, Kind, PerKind};
use weir_sys::SysError;

use crate::engine::priority::Priorities;
use crate::generate::GenerateError;
use crate::generate::mix::KindMix;
use crate::generate::offsets::{Cursor, Sequential, Uniform, UniformMapped};
use crate::generate::payload::{PayloadContent, PayloadRule};
use crate::generate::sizes::{SizeDraw, SizeRule};
use crate::op::Verb;
use crate::recorded::PatternReader;
use crate::source::Extent;
use crate::source::block_order::BlockOrder;
use crate::source::buffers::SlotBuffers;
use crate::source::bursts::{self, BurstSource};
use crate::source::fixed::FixedSource;
use crate::source::flushes::Flushes;
use crate::source::general::{GeneralSource, Script, SourceTarget};
use crate::source::passes::BetweenPasses;
use crate::source::service::Service;
use crate::source::strided::Strided;
use crate::source::target_offsets::TargetOffsets;
use crate::source::verified::{Verification, VerifiedSource, verified};

/// Reason that a workload has no source.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A generator refused its numbers.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// No block fits.
    #[error("the region of {region} bytes is smaller than a block of {block} bytes")]
    RegionTooSmall {
        /// Its length.
        region: u64,
        /// The smallest block.
        block: u64,
    },
    /// Sizes by pattern need a pure pattern.
    #[error("block sizes by pattern cannot be combined with a share of random operations")]
    SizesByPattern,
    /// Memory could not be had.
    #[error(transparent)]
    Memory(#[from] SysError),
    /// Blocks have no common length that a header fits into.
    #[error("the blocks have no common length that could be verified")]
    Interval,
    /// The method does not fit the interval.
    #[error("{0}")]
    Unfit(String),
}

/// Limits at which a worker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimits {
    /// Bytes to move; `u64::MAX`: until the time is up.
    pub bytes: u64,
    /// Bytes that a pass counts for where a skip lets it move less.
    pub pass_bytes: Option<u64>,
    /// Operations to carry out.
    pub operations: u64,
}

/// Everything a source is made of.
#[derive(Debug)]
pub struct Recipe<'a> {
    /// The workload.
    pub workload: &'a BlockWorkload,
    /// Part of each target, in the order of their indices.
    pub extents: &'a [Extent],
    /// Seed of the job.
    pub seed: u64,
    /// Number of the worker over the whole run.
    pub worker: u32,
    /// Bounds.
    pub limits: WorkLimits,
    /// Rates of reads, writes and trims where each kind of the mix has one.
    pub rates: Option<[Option<Rate>; 3]>,
    /// Memory of the slots.
    pub buffers: SlotBuffers,
    /// Action between two passes over a target.
    pub passes: BetweenPasses,
    /// Rules by which data is marked and checked; the workload has some of them too.
    pub verification: Option<Verification>,
    /// Operations that are carried out instead of drawn ones.
    pub recorded: Option<PatternReader>,
    /// Priorities of operations, if any have one.
    pub priorities: Option<Priorities>,
    /// Findings of bad blocks, and names of their targets.
    pub findings: Option<CheckedTarget>,
}

/// Target whose bad blocks are kept.
#[derive(Clone, Debug)]
pub struct CheckedTarget {
    /// Of the worker.
    pub findings: Arc<Findings>,
    /// The target.
    pub name: String,
    /// The worker goes on behind bad blocks.
    pub goes_on: bool,
}

/// Values that a source draws its operations from.
#[derive(Clone, Copy)]
pub(super) struct SourceRules<'a> {
    pub(super) workload: &'a BlockWorkload,
    pub(super) extents: &'a [Extent],
    pub(super) seed: u64,
    pub(super) worker: u32,
    pub(super) limits: WorkLimits,
    pub(super) rates: Option<[Option<Rate>; 3]>,
}

/// A source of block operations: one of its own for the commonest workloads.
#[derive(Debug)]
pub enum AnySource {
    /// One block after the other.
    Sequential(FixedSource<Sequential>),
    /// Each block once per pass, in random order.
    Mapped(FixedSource<UniformMapped>),
    /// Random blocks.
    Uniform(FixedSource<Uniform>),
    /// Everything else.
    Varied(VariedSource),
}

/// A source of block operations of whatever workload.
#[derive(Debug)]
pub enum VariedSource {
    /// Operations alone.
    General(Box<GeneralSource>),
    /// Operations with data that is marked or checked.
    Verified(Box<VerifiedSource>),
    /// Bursts of reads and writes.
    Bursts(Box<BurstSource<false>>),
    /// The same, one burst at a time or with data that is checked.
    Watched(Box<BurstSource<true>>),
}

/// Makes the source of a worker: the fastest there is for the workload.
///
/// # Errors
/// [`BuildError`].
pub fn build(recipe: Recipe<'_>) -> Result<AnySource, BuildError> {
    let is_drawn = recipe.recorded.is_none() && recipe.workload.bursts.is_none();
    if is_drawn && recipe.verification.is_none() && recipe.priorities.is_none() {
        let rules = size_rules(recipe.workload)?;
        if let Some((verb, length)) = fixed_length(recipe.workload, &rules, recipe.extents) {
            return fixed(recipe, verb, length);
        }
    }
    build_varied(recipe).map(AnySource::Varied)
}

/// Makes the source of a worker; it draws the same operations as that of [`build`].
///
/// # Errors
/// [`BuildError`].
pub fn build_varied(recipe: Recipe<'_>) -> Result<VariedSource, BuildError> {
    let rules = size_rules(recipe.workload)?;
    if let Some(reader) = recipe.recorded {
        let streams = Streams::new(recipe.seed, recipe.worker);
        return Ok(VariedSource::General(Box::new(GeneralSource {
            mix: KindMix::new([1, 0, 0], streams.mix())?,
            sizes: SizeDraw::new(rules, streams.sizes())?,
            targets: Vec::new(),
            service: Service::new(&recipe.workload.targets.service, 0, streams)?,
            bytes_left: 0,
            pass_bytes: None,
            behind_pass: 0,
            operations_left: 0,
            smallest: 0,
            flushes: Flushes::default(),
            rewrite_trimmed: false,
            rewrite: None,
            buffers: recipe.buffers,
            passes: recipe.passes,
            priorities: recipe.priorities,
            script: Some(Script {
                reader,
                left: recipe.limits.operations,
            }),
        })));
    }
    if let Some(bursts) = recipe.workload.bursts {
        return bursts::build(recipe, bursts);
    }
    if recipe.verification.is_some() {
        return verified(recipe, rules);
    }
    general(recipe, rules)
}

/// The content of a workload's buffers, in units of so many bytes, for a region of `size` bytes.
pub fn payload_rule(content: &Content, unit: u64, size: u64) -> PayloadRule {
    let set = |percent: u8| (size / unit.max(1) * u64::from(percent) / 100).max(1);
    PayloadRule {
        content: match &content.pattern {
            _ if content.zero => PayloadContent::Zero,
            Some(pattern) => PayloadContent::Pattern(pattern.clone().into()),
            None => PayloadContent::Random,
        },
        refill: content.refill,
        scramble: content.scramble,
        compress_percent: content.compress_percent,
        compress_chunk_bytes: usize::try_from(content.compress_chunk_bytes.0).unwrap_or(0),
        dedupe_percent: content.dedupe_percent,
        dedupe_set_units: content.dedupe_set_percent.map_or(0, set),
        dedupe_set_is_shared: content.dedupe_set_is_shared,
        unit_bytes: usize::try_from(unit).unwrap_or(0),
    }
}

pub(super) fn size_rules(workload: &BlockWorkload) -> Result<[SizeRule; 3], BuildError> {
    let sizes = &workload.sizes;
    let rule = |size: &BlockSize| match size {
        BlockSize::Fixed { bytes } => SizeRule::Fixed { bytes: bytes.0 },
        BlockSize::Range {
            min_bytes,
            max_bytes,
            unaligned,
        } => SizeRule::Range {
            min_bytes: min_bytes.0,
            max_bytes: max_bytes.0,
            unaligned: *unaligned,
        },
        BlockSize::Split { entries } => SizeRule::Split(
            entries
                .iter()
                .map(|e| (e.bytes.0, u32::from(e.percent)))
                .collect(),
        ),
    };
    if !sizes.by_pattern {
        return Ok(Kind::DATA.map(|k| rule(sizes.size.of(k))));
    }
    let access = &workload.access;
    if access.random && access.random_percent != PerKind::all(100) {
        return Err(BuildError::SizesByPattern);
    }
    let chosen = if access.random {
        &sizes.size.write
    } else {
        &sizes.size.read
    };
    Ok([rule(chosen), rule(chosen), rule(chosen)])
}

/// Verb and length, if the fixed source can serve the workload.
fn fixed_length(
    workload: &BlockWorkload,
    rules: &[SizeRule; 3],
    extents: &[Extent],
) -> Option<(Verb, u32)> {
    let mix = workload.mix;
    let (verb, kind) = match (mix.read_percent, mix.write_percent, mix.trim_percent) {
        (100, 0, 0) => (Verb::Read, Kind::Read),
        (0, 100, 0) => (Verb::Write, Kind::Write),
        (0, 0, 100) if !mix.trim_then_write => (Verb::Trim, Kind::Trim),
        _ => return None,
    };
    let SizeRule::Fixed { bytes } = rules[kind.index()] else {
        return None;
    };
    let access = &workload.access;
    let flush = &workload.flush;
    let flushes =
        flush.fsync_every.is_some() || flush.fdatasync_every.is_some() || flush.range.is_some();
    let plain_random = !access.random
        || (access.distribution == Distribution::Uniform
            && access.generator == Generator::Xoshiro
            && *access.random_percent.of(kind) == 100
            && access.align_bytes.is_none_or(|a| a.of(kind).0 == bytes));
    let plain = extents.len() == 1
        && !flushes
        && access.steps <= 1
        && access.skip_bytes == 0
        && access.zones.is_none();
    (plain && plain_random).then_some((verb, u32::try_from(bytes).ok()?))
}

fn blocks_of(extent: Extent, unit: u64) -> Result<NonZeroU64, BuildError> {
    extent
        .length
        .checked_div(unit)
        .and_then(NonZeroU64::new)
        .ok_or(BuildError::RegionTooSmall {
            region: extent.length,
            block: unit,
        })
}

fn fixed(recipe: Recipe<'_>, verb: Verb, length: u32) -> Result<AnySource, BuildError> {
    let Some(&extent) = recipe.extents.first() else {
        return Err(BuildError::RegionTooSmall {
            region: 0,
            block: length.into(),
        });
    };
    let blocks = blocks_of(extent, length.into())?;
    let streams = Streams::new(recipe.seed, recipe.worker);
    let limits = recipe.limits;
    let by_bytes = if limits.bytes == u64::MAX {
        u64::MAX
    } else {
        limits.bytes / u64::from(length)
    };
    let left = by_bytes.min(limits.operations);
    let (start, buffers, passes) = (extent.start, recipe.buffers, recipe.passes);
    let access = &recipe.workload.access;
    macro_rules! source {
        ($variant:ident, $offsets:expr) => {
            AnySource::$variant(FixedSource {
                offsets: $offsets,
                start,
                length,
                verb,
                left,
                buffers,
                passes,
            })
        };
    }
    Ok(if !access.random {
        source!(Sequential, Sequential::new(blocks))
    } else if access.map {
        source!(Mapped, UniformMapped::new(blocks, streams.offsets())?)
    } else {
        source!(Uniform, Uniform::new(blocks, streams.offsets()))
    })
}

pub(super) fn general(
    recipe: Recipe<'_>,
    rules: [SizeRule; 3],
) -> Result<VariedSource, BuildError> {
    let mut source = drawn(SourceRules::of(&recipe), rules, recipe.buffers)?;
    source.passes = recipe.passes;
    source.priorities = recipe.priorities;
    Ok(VariedSource::General(Box::new(source)))
}

impl<'a> SourceRules<'a> {
    pub(super) fn of(recipe: &Recipe<'a>) -> Self {
        Self {
            workload: recipe.workload,
            extents: recipe.extents,
            seed: recipe.seed,
            worker: recipe.worker,
            limits: recipe.limits,
            rates: recipe.rates,
        }
    }
}

pub(super) fn drawn(
    recipe: SourceRules<'_>,
    rules: [SizeRule; 3],
    buffers: SlotBuffers,
) -> Result<GeneralSource, BuildError> {
    let workload = recipe.workload;
    let mix = workload.mix;
    let streams = Streams::new(recipe.seed, recipe.worker);
    let occurring = Kind::DATA.into_iter().filter(|&k| mix.has(k));
    let smallest = occurring
        .map(|k| rules[k.index()].min_bytes())
        .min()
        .unwrap_or(1)
        .max(1);
    let mut targets = Vec::with_capacity(recipe.extents.len());
    for (index, &extent) in (0_u32..).zip(recipe.extents) {
        let walk = walk(
            workload,
            &rules,
            extent,
            smallest,
            recipe.seed,
            streams,
            index,
        )?;
        targets.push(SourceTarget {
            index,
            extent,
            walk,
        });
    }
    let of_mix = [mix.read_percent, mix.write_percent, mix.trim_percent].map(u32::from);
    let count = targets.len();
    let kinds = match recipe.rates {
        Some(rates) => KindMix::by_rates(rates)?,
        None => KindMix::new(of_mix, streams.mix())?,
    };
    let limits = recipe.limits;
    Ok(GeneralSource {
        mix: kinds,
        sizes: SizeDraw::new(rules, streams.sizes())?,
        targets,
        service: Service::new(&workload.targets.service, count, streams)?,
        bytes_left: limits.bytes,
        pass_bytes: limits.pass_bytes,
        behind_pass: limits.bytes.saturating_sub(limits.pass_bytes.unwrap_or(0)),
        operations_left: limits.operations,
        smallest,
        flushes: Flushes::new(&workload.flush, count),
        rewrite_trimmed: mix.trim_then_write,
        rewrite: None,
        buffers,
        passes: BetweenPasses::default(),
        priorities: None,
        script: None,
    })
}

/// The walk over a target, zone by zone if it has zones.
pub(super) fn walk(
    workload: &BlockWorkload,
    rules: &[SizeRule; 3],
    extent: Extent,
    smallest: u64,
    seed: u64,
    streams: Streams,
    target: u32,
) -> Result<BlockOrder, BuildError> {
    let Some(zones) = workload.access.zones else {
        return plain_walk(workload, rules, extent, smallest, seed, streams, target);
    };
    let first = Extent {
        length: zones.range.0.min(extent.length),
        ..extent
    };
    let inner = plain_walk(workload, rules, first, smallest, seed, streams, target)?;
    Ok(BlockOrder::Strided(Box::new(Strided::new(
        inner,
        zones,
        extent.length,
    ))))
}

fn plain_walk(
    workload: &BlockWorkload,
    rules: &[SizeRule; 3],
    extent: Extent,
    smallest: u64,
    seed: u64,
    streams: Streams,
    target: u32,
) -> Result<BlockOrder, BuildError> {
    let access = &workload.access;
    let unit_of = |kind: Kind| {
        let align = access.align_bytes.map(|a| a.of(kind).0).filter(|&a| a > 0);
        align.unwrap_or(smallest)
    };
    let unit = Kind::DATA
        .into_iter()
        .filter(|&k| workload.mix.has(k))
        .map(unit_of)
        .min()
        .unwrap_or(smallest);
    let blocks = blocks_of(extent, unit)?;
    if !access.random {
        let cursor = |kind: Kind| {
            let min = NonZeroU64::new(rules[kind.index()].min_bytes()).unwrap_or(NonZeroU64::MIN);
            Cursor::new(extent.length, access.skip_bytes, min)
        };
        return Ok(BlockOrder::Sequential(Kind::DATA.map(cursor)));
    }
    let unit = NonZeroU64::new(unit).unwrap_or(NonZeroU64::MIN);
    let place = TargetOffsets {
        access,
        blocks,
        unit: unit.get(),
        seed,
        target,
    };
    Ok(BlockOrder::Random {
        blocks: place.generator(streams)?,
        unit,
        length: extent.length,
    })
}
