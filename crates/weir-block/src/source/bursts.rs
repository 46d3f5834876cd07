//! The source of bursts: runs of reads and writes over one endless sequence of offsets.
//!
//! In: a workload that asks for bursts. Out: its operations; why one cannot be had with settings that
//! would have no effect. Not here: what is drawn ([`crate::generate::bursts`]).

use weir_run::Source;
use weir_run::generate::Streams;
use weir_schema::{
    BadByte, BlockWorkload, Bursts, Damage, Distribution, FailedCheck, FileNames, Generator, Job,
    Kind, Mismatch, PerKind, SectorData, Size, VerifyMethod,
};
use weir_units::Bytes;

use crate::engine::priority::Priorities;
use crate::generate::bursts::{BurstMix, EndlessWalk};
use crate::generate::mix::DataKind;
use crate::op::{BlockOp, Verb};
use crate::source::Extent;
use crate::source::buffers::SlotBuffers;
use crate::source::build::{BuildError, CheckedTarget, Recipe, VariedSource};
use crate::source::sectors::{self, SECTOR, WrongWord};

/// Operations in bursts. `WATCHED`: their completions count, as those of a burst come back before the
/// next one begins, or what they have read is checked.
#[derive(Debug)]
pub struct BurstSource<const WATCHED: bool> {
    draws: BurstDraws,
    start: u64,
    length: u32,
    /// Action in place of reads and writes.
    instead: Option<Verb>,
    pause_behind: bool,
    bytes_left: u64,
    operations_left: u64,
    drains: bool,
    in_flight: u32,
    is_waiting: bool,
    sectors: Option<(SectorData, CheckedTarget)>,
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
    /// The draws of a worker in a region.
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
    let streams = Streams::new(work.access.seed, bursts.stream.unwrap_or(worker));
    let mut draws = BurstDraws::of(work, bursts, extent, streams);
    let most = work.load.bounds.operations.unwrap_or(u64::MAX);
    let count = u64::from(count).min(most);
    let mut next = || {
        if bursts.flush_only {
            return (Kind::Sync, 0);
        }
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

/// All of its blocks have one size.
fn is_of_one_size(workload: &BlockWorkload) -> bool {
    let (sizes, block) = (&workload.sizes, block_of(workload));
    let is_so = |kind: &Kind| {
        let size = sizes.size.of(*kind);
        (size.min().0, size.max().0) == (block, block)
    };
    !sizes.by_pattern && Kind::DATA.iter().all(is_so)
}

fn is_of_one_target(files: &FileNames) -> bool {
    match files {
        FileNames::Listed { paths, .. } => paths.len() == 1,
        FileNames::Generated { count, .. } => *count == 1,
        FileNames::None => true,
        FileNames::Below { .. } | FileNames::Sized { .. } => false,
    }
}

/// Reason that a workload cannot come in bursts.
pub(crate) fn unfit(workload: &BlockWorkload) -> Option<&'static str> {
    let (access, mix) = (&workload.access, &workload.mix);
    let block = block_of(workload);
    let is_plainly_random = access.distribution == Distribution::Uniform
        && access.generator == Generator::Xoshiro
        && access.random_percent == PerKind::all(100);
    let align = access.align_bytes;
    let bounds = &workload.load.bounds;
    let ends = bounds.runtime_ns.is_some() || bounds.operations.is_some();
    let flush = &workload.flush;
    let flush_only = workload.bursts.is_some_and(|bursts| bursts.flush_only);
    let rules = [
        (is_of_one_size(workload), "are of blocks of one size"),
        (
            is_of_one_target(&workload.targets.files),
            "go to one target",
        ),
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
        (workload.verify.is_none(), "are not verified by headers"),
        (
            workload.content.sectors.is_none() || block.is_multiple_of(SECTOR),
            "are of whole sectors where their data follows from its place",
        ),
        (
            !flush_only || (ends && mix.write_percent == 100 && workload.passes.io_size.is_none()),
            "move nothing where they flush: they stand in the place of writes, and bytes do not end them",
        ),
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
    let streams = Streams::new(recipe.seed, bursts.stream.unwrap_or(recipe.worker));
    let draws = BurstDraws::of(recipe.workload, bursts, extent, streams);
    let drains = bursts.drain && draws.mix.has_both();
    let sectors = recipe.workload.content.sectors.zip(recipe.findings);
    macro_rules! source {
        ($variant:ident) => {
            VariedSource::$variant(Box::new(BurstSource {
                draws,
                start: extent.start,
                length: u32::try_from(block_of(recipe.workload)).unwrap_or(u32::MAX),
                instead: bursts.flush_only.then_some(Verb::DataSync),
                pause_behind: bursts.pause_behind,
                bytes_left: recipe.limits.bytes,
                operations_left: recipe.limits.operations,
                drains,
                in_flight: 0,
                is_waiting: false,
                sectors,
                buffers: recipe.buffers,
                priorities: recipe.priorities,
            }))
        };
    }
    Ok(if drains || sectors.is_some() {
        source!(Watched)
    } else {
        source!(Bursts)
    })
}

impl<const WATCHED: bool> Source for BurstSource<WATCHED> {
    type Op = BlockOp;
    const CHECKS: bool = WATCHED;

    #[inline]
    fn next(&mut self, slot: u32) -> Option<BlockOp> {
        if WATCHED {
            let waits = self.drains && self.in_flight > 0;
            self.is_waiting = waits && self.draws.mix.is_at_start();
            if self.is_waiting || self.has_bad_data() {
                return None;
            }
        }
        let bytes = self.bytes_left.checked_sub(u64::from(self.length))?;
        self.operations_left = self.operations_left.checked_sub(1)?;
        self.bytes_left = bytes;
        self.in_flight += u32::from(WATCHED);
        if let Some(verb) = self.instead {
            return Some(BlockOp {
                verb,
                ..BlockOp::default()
            });
        }
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
        WATCHED && self.is_waiting
    }

    #[inline]
    fn completed(&mut self, slot: u32, op: &BlockOp, whole: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some((data, target)) = &self.sectors
            && whole
            && op.verb == Verb::Read
        {
            inspect(*data, target, op, self.buffers.slot(slot, op.length));
        }
    }

    #[inline]
    fn prepare(&mut self, slot: u32, op: &BlockOp) {
        match &self.sectors {
            Some((data, _)) if op.verb == Verb::Write => {
                let buffer = self.buffers.slot_mut(slot, op.length);
                sectors::fill(*data, buffer, op.offset);
            }
            _ => self.buffers.prepare(slot, op),
        }
    }

    #[inline]
    fn prepare_is_timed(&self) -> bool {
        self.sectors.is_some() || self.buffers.prepare_is_timed()
    }
}

impl<const WATCHED: bool> BurstSource<WATCHED> {
    /// True if data read was wrong: the source gives no more operations.
    fn has_bad_data(&self) -> bool {
        let target = self.sectors.as_ref().map(|(_, target)| target);
        target.is_some_and(|target| target.findings.has_ended())
    }
}

/// Checks what was read; a bad block ends the job, unless it goes on behind some.
fn inspect(data: SectorData, target: &CheckedTarget, op: &BlockOp, buffer: &[u8]) {
    let Some(wrong) = sectors::check(data, buffer, op.offset) else {
        return;
    };
    target.findings.count();
    target.findings.add(|| mismatch(&target.name, op, wrong));
    if !target.goes_on || target.findings.is_too_many() {
        target.findings.end();
    }
}

fn mismatch(target: &str, op: &BlockOp, wrong: WrongWord) -> Mismatch {
    let bits = (wrong.wanted ^ wrong.found).count_ones();
    let (offset, length) = (Bytes(op.offset), Bytes(op.length.into()));
    let at_bytes = Bytes(wrong.at);
    Mismatch {
        method: VerifyMethod::Pattern,
        check: FailedCheck::Pattern,
        wanted: format!("{:016x}", wrong.wanted),
        found: format!("{:016x}", wrong.found),
        damage: match bits {
            1..=8 => Damage::BitFlip { at_bytes, bits },
            _ => Damage::Garbled {
                at_bytes: Some(at_bytes),
            },
        },
        target: target.to_owned(),
        offset_bytes: offset,
        length_bytes: length,
        request_offset_bytes: offset,
        request_length_bytes: length,
        kind: Kind::Read,
        media_method: None,
        bad_byte: Some(BadByte { at_bytes, bits }),
        dumps: Vec::new(),
    }
}
