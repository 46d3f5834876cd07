//! The source of bursts: runs of reads and writes over one endless sequence of offsets.
//!
//! In: a workload that asks for bursts. Out: its operations; why one cannot be had with settings that
//! would have no effect. Not here: what is drawn ([`crate::generate::bursts`]).

use weir_run::Source;
use weir_run::generate::Streams;
use weir_schema::{
    BlockWorkload, Bursts, Distribution, FileNames, Generator, Job, Kind, PerKind, Size,
};

use crate::engine::priority::Priorities;
use crate::generate::bursts::{BurstMix, EndlessWalk};
use crate::generate::mix::DataKind;
use crate::op::{BlockOp, Verb};
use crate::source::Extent;
use crate::source::buffers::SlotBuffers;
use crate::source::build::{BuildError, Recipe, VariedSource};

/// Operations in bursts. `DRAINS`: those of a burst come back before the next one begins.
#[derive(Debug)]
pub struct BurstSource<const DRAINS: bool> {
    draws: BurstDraws,
    start: u64,
    length: u32,
    pause_behind: bool,
    bytes_left: u64,
    operations_left: u64,
    in_flight: u32,
    is_waiting: bool,
    buffers: SlotBuffers,
    priorities: Option<Priorities>,
}

/// Kind and offset of one operation after the other.
#[derive(Debug, Clone)]
pub(crate) struct BurstDraws {
    mix: BurstMix,
    walk: EndlessWalk,
}

impl BurstDraws {
    /// What a worker draws in a region.
    pub(crate) fn of(
        workload: &BlockWorkload,
        bursts: Bursts,
        extent: Extent,
        streams: Streams,
    ) -> Self {
        let mix = &workload.mix;
        let only = [
            (DataKind::Read, mix.read_percent),
            (DataKind::Write, mix.write_percent),
            (DataKind::Trim, mix.trim_percent),
        ];
        let only = only.into_iter().find(|(_, percent)| *percent == 100);
        let access = &workload.access;
        let block = block_of(workload);
        let walk = if access.random {
            let unit = access.align_bytes.map_or(block, |align| align.read.0);
            EndlessWalk::random(extent.length, block, unit, streams.offsets())
        } else {
            EndlessWalk::strided(extent.length, block, stride_of(workload))
        };
        let lengths = [bursts.reads, bursts.writes];
        Self {
            mix: BurstMix::new(
                only.map(|(kind, _)| kind),
                mix.read_percent,
                lengths,
                streams.mix(),
            ),
            walk,
        }
    }

    /// The next operation: its kind, and its offset within the region.
    #[inline]
    pub(crate) const fn next_operation(&mut self) -> (DataKind, u64) {
        (self.mix.next_kind(), self.walk.next_offset())
    }
}

/// The first operations of a worker of a job in bursts: kind and offset of each, as they are issued.
/// Nothing of a job whose region is not given in bytes.
pub fn first_operations(job: &Job, worker: u32, count: u32) -> Vec<(Kind, u64)> {
    let bytes = |size: Option<Size>| match size {
        Some(Size::Bytes(bytes)) => Some(bytes.0),
        _ => None,
    };
    let described = job.blocks().and_then(|work| {
        let start = bytes(work.region.offset)?;
        let length = bytes(work.region.size)?;
        Some((work, work.bursts?, Extent { start, length }))
    });
    let Some((work, bursts, extent)) = described else {
        return Vec::new();
    };
    let streams = Streams::new(work.access.seed, worker);
    let mut draws = BurstDraws::of(work, bursts, extent, streams);
    let most = work.load.bounds.operations.unwrap_or(u64::MAX);
    let count = u64::from(count).min(most);
    let mut next = || {
        let (kind, offset) = draws.next_operation();
        (Kind::DATA[kind.index()], extent.start + offset)
    };
    (0..count).map(|_| next()).collect()
}

/// The one size of its blocks.
pub(crate) fn block_of(workload: &BlockWorkload) -> u64 {
    workload.sizes.size.read.max().0
}

/// From one operation to the next, where they are in order.
pub(crate) fn stride_of(workload: &BlockWorkload) -> i64 {
    let block = i64::try_from(block_of(workload)).unwrap_or(i64::MAX);
    workload.access.skip_bytes.saturating_add(block)
}

/// Why a workload cannot come in bursts.
pub(crate) fn unfit(workload: &BlockWorkload) -> Option<&'static str> {
    let (access, mix) = (&workload.access, &workload.mix);
    let sizes = &workload.sizes;
    let block = block_of(workload);
    let is_of_one_size = !sizes.by_pattern
        && Kind::DATA.iter().all(|kind| {
            let size = sizes.size.of(*kind);
            (size.min().0, size.max().0) == (block, block)
        });
    let files = match &workload.targets.files {
        FileNames::Listed { paths, .. } => paths.len() == 1,
        FileNames::Generated { count, .. } => *count == 1,
        FileNames::None => true,
        FileNames::Below { .. } | FileNames::Sized { .. } => false,
    };
    let is_plainly_random = access.distribution == Distribution::Uniform
        && access.generator == Generator::Xoshiro
        && access.random_percent == PerKind::all(100);
    let align = access.align_bytes;
    let bounds = &workload.load.bounds;
    let ends = bounds.runtime_ns.is_some() || bounds.operations.is_some();
    let flush = &workload.flush;
    let rules = [
        (is_of_one_size, "are of blocks of one size"),
        (files, "go to one target"),
        (
            !access.random || is_plainly_random,
            "go to places that are all alike",
        ),
        (
            !(access.random && access.map),
            "visit places again: leave the map of them out",
        ),
        (
            align.is_none_or(|align| align == PerKind::all(align.read)),
            "have one alignment",
        ),
        (
            access.steps == 1 && access.zones.is_none() && access.replay.is_none(),
            "have one walk over the whole region",
        ),
        (
            mix.trim_percent == 0 || mix.trim_percent == 100,
            "are of reads and writes, or of trims alone",
        ),
        (!mix.trim_then_write, "write no trimmed block again"),
        (
            flush.fsync_every.is_none() && flush.fdatasync_every.is_none() && flush.range.is_none(),
            "have no flushes between",
        ),
        (workload.verify.is_none(), "are not verified"),
        (
            ends || workload.passes.io_size.is_some(),
            "have no end of their own: give a time, bytes or operations",
        ),
    ];
    let broken = rules.into_iter().find(|(holds, _)| !holds);
    broken.map(|(_, rule)| rule)
}

/// Makes the source of a worker.
///
/// # Errors
/// No target.
pub(super) fn build(recipe: Recipe<'_>, bursts: Bursts) -> Result<VariedSource, BuildError> {
    let Some(&extent) = recipe.extents.first() else {
        return Err(BuildError::RegionTooSmall {
            region: 0,
            block: block_of(recipe.workload),
        });
    };
    let streams = Streams::new(recipe.seed, recipe.worker);
    let draws = BurstDraws::of(recipe.workload, bursts, extent, streams);
    let drains = bursts.drain && draws.mix.has_both();
    macro_rules! source {
        ($variant:ident) => {
            VariedSource::$variant(Box::new(BurstSource {
                draws,
                start: extent.start,
                length: u32::try_from(block_of(recipe.workload)).unwrap_or(u32::MAX),
                pause_behind: bursts.pause_behind,
                bytes_left: recipe.limits.bytes,
                operations_left: recipe.limits.operations,
                in_flight: 0,
                is_waiting: false,
                buffers: recipe.buffers,
                priorities: recipe.priorities,
            }))
        };
    }
    Ok(if drains {
        source!(Draining)
    } else {
        source!(Bursts)
    })
}

impl<const DRAINS: bool> Source for BurstSource<DRAINS> {
    type Op = BlockOp;
    const CHECKS: bool = DRAINS;

    #[inline]
    fn next(&mut self, slot: u32) -> Option<BlockOp> {
        if DRAINS {
            self.is_waiting = self.draws.mix.is_at_start() && self.in_flight > 0;
            if self.is_waiting {
                return None;
            }
        }
        let bytes = self.bytes_left.checked_sub(u64::from(self.length))?;
        self.operations_left = self.operations_left.checked_sub(1)?;
        self.bytes_left = bytes;
        self.in_flight += u32::from(DRAINS);
        let (kind, offset) = self.draws.next_operation();
        let mut op = BlockOp {
            offset: self.start + offset,
            buffer: self.buffers.at(slot),
            length: self.length,
            verb: match kind {
                DataKind::Read => Verb::Read,
                DataKind::Write => Verb::Write,
                DataKind::Trim => Verb::Trim,
            },
            ..BlockOp::default()
        };
        if let Some(priorities) = &mut self.priorities {
            op.priority = priorities.next(&op);
        }
        Some(op)
    }

    #[inline]
    fn is_amid(&self) -> bool {
        self.pause_behind && !self.draws.mix.is_at_start()
    }

    #[inline]
    fn is_waiting(&self) -> bool {
        DRAINS && self.is_waiting
    }

    #[inline]
    fn completed(&mut self, _slot: u32, _op: &BlockOp, _whole: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    #[inline]
    fn prepare(&mut self, slot: u32, op: &BlockOp) {
        self.buffers.prepare(slot, op);
    }

    #[inline]
    fn prepare_is_timed(&self) -> bool {
        self.buffers.prepare_is_timed()
    }
}
