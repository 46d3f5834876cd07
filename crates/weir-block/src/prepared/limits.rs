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
        WorkLimits {
            bytes: if endless {
                u64::MAX
            } else if verify.is_some() && self.workload.reads_back() {
                // Each pass over the region is checked before the next begins.
                once.min(region)
            } else {
                // `loops` are passes over the region; `io_size` may ask for more of them.
                once.min(region).saturating_mul(passes).max(once)
            },
            operations: self.workload.load.bounds.operations.unwrap_or(u64::MAX),
        }
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
