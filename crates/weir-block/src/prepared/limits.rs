//! How much a worker moves: its passes over the targets, in bytes and operations.
//!
//! In: the bounds of a job and the parts of its targets. Out: limits of a source. Not here: bounds
//! in time (`weir-run`).

use weir_schema::Size;

use super::PreparedBlockJob;
use crate::memory;
use crate::source::{Extent, WorkLimits};

impl PreparedBlockJob {
    /// What a worker moves in so many passes.
    pub(super) fn limits(&self, extents: &[Extent], passes: u64) -> WorkLimits {
        let block = memory::smallest_block(&self.workload).max(1);
        // A tail shorter than a block is never moved; of several sizes another may fit there.
        let unit = if memory::largest_block(&self.workload) > block {
            1
        } else {
            block
        };
        let whole = |extent: &Extent| extent.length / unit * unit;
        let total = extents.iter().map(whole).fold(0, u64::saturating_add);
        let region = match self.workload.region.size {
            // With a size for each file, the job's own size bounds what it moves.
            Some(Size::Bytes(size)) if extents.len() > 1 => total.min(size.0),
            _ => total,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a size; saturates"
        )]
        let once = match self.workload.passes.io_size {
            None => region,
            Some(Size::Bytes(bytes)) => self.passes(bytes.0, region, block),
            Some(Size::Percent(percent)) => {
                self.passes((percent / 100.0 * region as f64) as u64, region, block)
            }
        };
        let verify = self.workload.verify.as_ref();
        let endless = self.workload.is_endless() && verify.is_none_or(|v| !v.only);
        // Each byte, and each block, is trimmed and then written.
        let twice = 1 + u64::from(self.workload.mix.trim_then_write);
        let operations = self.workload.load.bounds.operations.unwrap_or(u64::MAX);
        let pass = once.min(region).saturating_mul(twice);
        let is_checked = verify.is_some() && self.workload.reads_back();
        let bytes = if is_checked && self.is_checked_at_its_end() {
            once
        } else if is_checked {
            // Each pass over the region is checked before the next begins.
            pass
        } else {
            // `loops` are passes over the region; `io_size` may ask for more of them.
            pass.saturating_mul(passes).max(once)
        };
        let skips = !self.workload.access.random && self.workload.access.skip_bytes > 0;
        let may_move_less = skips && !endless && self.workload.passes.io_size.is_none();
        WorkLimits {
            bytes: if endless { u64::MAX } else { bytes },
            pass_bytes: may_move_less.then_some(pass),
            operations: operations.saturating_mul(twice),
        }
    }

    /// Passes that are checked one by one: as many as `loops` says, or until `io_size` is moved; what
    /// is read back counts, as in fio.
    pub(super) fn checked_passes(&self, extents: &[Extent]) -> u64 {
        let passes = &self.workload.passes;
        let region = extents
            .iter()
            .map(|e| e.length)
            .fold(0, u64::saturating_add);
        let wanted = match passes.io_size {
            Some(Size::Bytes(bytes)) if !self.is_checked_at_its_end() => bytes.0,
            _ => 0,
        };
        let until = wanted.div_ceil(region.saturating_mul(2).max(1));
        (passes.loops / self.renewals()).max(until).max(1)
    }

    /// Random writes without a map have no passes: all that they write is checked at once, as far
    /// as `io_size` goes.
    fn is_checked_at_its_end(&self) -> bool {
        let access = &self.workload.access;
        access.random && !access.map && self.workload.passes.io_size.is_some()
    }

    /// What is moved of so many bytes in passes over a region: the last block whole, but no
    /// further pass for less than the largest block.
    fn passes(&self, bytes: u64, region: u64, block: u64) -> u64 {
        let rest = bytes % region.max(1);
        if bytes > region && rest < memory::largest_block(&self.workload) {
            return bytes - rest;
        }
        bytes.checked_next_multiple_of(block).unwrap_or(u64::MAX)
    }
}
