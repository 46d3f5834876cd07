//! Limits of a worker: its passes over the targets, in bytes and operations.
//!
//! In: the bounds of a job and the parts of its targets. Out: limits of a source. Not here: bounds
//! in time (`weir-run`).

use weir_schema::{Distribution, Generator, Kind, Size};

use super::PreparedBlockJob;
use crate::memory;
use crate::source::{Extent, WorkLimits};

impl PreparedBlockJob {
    /// Limits of a worker over all of its passes. Where each pass is checked, they are those of one
    /// pass.
    pub(super) fn limits(&self, extents: &[Extent]) -> WorkLimits {
        let passes = &self.workload.passes;
        let operations = self.workload.load.bounds.operations.unwrap_or(u64::MAX);
        if self.workload.bursts.is_some() {
            return WorkLimits {
                bytes: self.io_size(self.span(extents)).unwrap_or(u64::MAX),
                pass_bytes: None,
                operations,
            };
        }
        let region = self.region(extents);
        let only_checks = self.workload.verify.as_ref().is_some_and(|v| v.only);
        let endless = self.workload.is_endless() && !only_checks && !self.is_checked();
        let wanted = self.io_size(region).unwrap_or_else(|| self.span(extents));
        let loops = passes.loops.max(1);
        let bytes = if self.is_checked() && self.is_checked_at_its_end() {
            self.whole_blocks(wanted)
        } else if self.is_checked() {
            // Each pass over the region is checked before the next begins.
            self.whole_blocks(wanted).min(region)
        } else {
            // `loops` multiply `io_size`, which may ask for more passes than they are.
            let moved = region.saturating_mul(self.turns());
            let rounds = self.rounds(wanted, moved).max(loops);
            let most = self.whole_blocks(wanted.saturating_mul(loops));
            if self.uses_blocks_up() {
                region.saturating_mul(rounds).min(most)
            } else {
                most
            }
        };
        let skips = !self.workload.access.random && self.workload.access.skip_bytes > 0;
        let may_move_less = skips && !endless && passes.io_size.is_none();
        let turns = self.turns();
        WorkLimits {
            bytes: if endless {
                u64::MAX
            } else {
                bytes.saturating_mul(turns)
            },
            pass_bytes: may_move_less.then_some(region.saturating_mul(turns)),
            operations: operations.saturating_mul(turns),
        }
    }

    /// Stages of a worker's work, each with a source and an engine of its own: passes between
    /// which the files are made anew or flushed.
    pub(super) fn stages(&self, extents: &[Extent]) -> u64 {
        let loops = self.workload.passes.loops.max(1);
        if self.workload.is_endless() || self.recorded.is_some() {
            1
        } else if self.is_checked() {
            if self.is_renewed() { loops } else { 1 }
        } else if self.is_renewed() || self.flushes_at_end() {
            let pass = self.region(extents).saturating_mul(self.turns());
            self.limits(extents).bytes.div_ceil(pass.max(1)).max(1)
        } else {
            1
        }
    }

    /// Limits of one stage, after `issued` operations of earlier stages.
    pub(super) fn limits_of_stage(
        &self,
        extents: &[Extent],
        stage: u64,
        issued: u64,
    ) -> WorkLimits {
        let all = self.limits(extents);
        let stages = self.stages(extents);
        if self.is_checked() || stages == 1 {
            let operations = all.operations.div_ceil(stages);
            return WorkLimits { operations, ..all };
        }
        let pass = self.region(extents).saturating_mul(self.turns());
        let before = pass.saturating_mul(stage);
        WorkLimits {
            bytes: all.bytes.saturating_sub(before).min(pass),
            operations: all.operations.saturating_sub(issued),
            ..all
        }
    }

    /// Each byte, and each block, is trimmed and then written.
    fn turns(&self) -> u64 {
        1 + u64::from(self.workload.mix.trim_then_write)
    }

    /// True if written data is read back and checked.
    fn is_checked(&self) -> bool {
        self.workload.verify.is_some() && self.workload.reads_back()
    }

    /// Bytes that a pass over all targets moves.
    fn region(&self, extents: &[Extent]) -> u64 {
        let span = self.span(extents);
        if self.has_one_size() {
            self.whole_blocks(span)
        } else {
            span
        }
    }

    /// Bytes of all targets that a pass covers.
    fn span(&self, extents: &[Extent]) -> u64 {
        // A tail shorter than a block is never moved; of several sizes another may fit there.
        let unit = if self.has_one_size() && self.uses_blocks_up() {
            memory::smallest_block(&self.workload).max(1)
        } else {
            1
        };
        let whole = |extent: &Extent| extent.length / unit * unit;
        let total = extents.iter().map(whole).fold(0, u64::saturating_add);
        match self.workload.region.size {
            // With a size for each file, the job's own size bounds what it moves.
            Some(Size::Bytes(size)) if extents.len() > 1 => total.min(size.0),
            _ => total,
        }
    }

    fn has_one_size(&self) -> bool {
        memory::largest_block(&self.workload) <= memory::smallest_block(&self.workload)
    }

    /// True if a pass is over once it has had each block. Where a block may come twice, and where
    /// reads and writes walk apart, there is always another, and the last one is moved whole.
    fn uses_blocks_up(&self) -> bool {
        let access = &self.workload.access;
        let mix = &self.workload.mix;
        if access.random {
            let is_uniform = access.distribution == Distribution::Uniform;
            is_uniform && (access.map || access.generator == Generator::Lfsr)
        } else {
            let kinds = Kind::DATA.into_iter().filter(|&kind| mix.has(kind));
            kinds.count() < 2 || mix.trim_then_write
        }
    }

    /// Bytes that `io_size` asks for, if it is given.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a size; saturates"
    )]
    fn io_size(&self, region: u64) -> Option<u64> {
        Some(match self.workload.passes.io_size? {
            Size::Bytes(bytes) => bytes.0,
            Size::Percent(percent) => (percent / 100.0 * region as f64) as u64,
        })
    }

    /// Bytes rounded up to whole blocks.
    fn whole_blocks(&self, bytes: u64) -> u64 {
        let block = memory::smallest_block(&self.workload).max(1);
        bytes.checked_next_multiple_of(block).unwrap_or(u64::MAX)
    }

    /// Passes that it takes to move so many bytes: none for less than the largest block.
    fn rounds(&self, bytes: u64, region: u64) -> u64 {
        let region = region.max(1);
        let needs_another = bytes % region >= memory::largest_block(&self.workload);
        (bytes / region + u64::from(needs_another)).max(1)
    }

    /// Passes that are checked one by one: as many as `loops` says, or until `io_size` is moved; what
    /// is read back counts, as in fio. Without end where only the time ends them.
    pub(super) fn checked_passes(&self, extents: &[Extent]) -> u64 {
        let passes = &self.workload.passes;
        if self.workload.is_endless() && self.is_checked() {
            return u64::MAX;
        }
        let moved = self.region(extents).saturating_mul(2);
        let until = match passes.io_size {
            Some(Size::Bytes(bytes)) if !self.is_checked_at_its_end() => {
                self.rounds(bytes.0, moved)
            }
            _ => 1,
        };
        let loops = if self.is_renewed() { 1 } else { passes.loops };
        loops.max(until)
    }

    /// Random writes without a map have no passes: all that they write is checked at once, as far
    /// as `io_size` goes.
    fn is_checked_at_its_end(&self) -> bool {
        let access = &self.workload.access;
        access.random && !access.map && self.workload.passes.io_size.is_some()
    }
}
