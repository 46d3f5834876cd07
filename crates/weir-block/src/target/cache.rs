//! The page cache of targets: dropped before the first pass and before each further one.
//!
//! In: open targets. Out: nothing of them is cached, as far as the kernel complies. Not here: when
//! a pass is over, which sources know.

use std::num::NonZeroU64;
use std::os::fd::AsFd;

use rustix::fs::{Advice, fadvise};
use weir_schema::BlockWorkload;

use super::{Site, SitePart};
use crate::engine::{Mappings, OpenTarget, drop_device_cache};
use crate::source::BetweenPasses;

/// Best effort, as the kernel's own call is: what stays is reported as a warning by its effect.
pub(super) fn drop_cache(target: &OpenTarget) {
    if target.is_block && drop_device_cache(target.file.as_fd()).is_ok() {
        return;
    }
    // Dirty pages cannot be dropped.
    let _ = rustix::fs::fdatasync(&target.file);
    let _ = advise_to_drop(target);
}

/// Action on a worker's targets between two passes.
pub(crate) fn between_passes(
    sites: &[Site],
    (parts, targets, mappings): (&[SitePart], &[OpenTarget], &Mappings),
    workload: &BlockWorkload,
) -> BetweenPasses {
    let mode = workload.targets.open;
    let endless = workload.is_endless();
    // fio drops where it opens a file for a further loop, direct or not, but where it goes on
    // without opening only what a buffered job has left behind.
    let drops = mode.drop_cache && !mode.read_first && !(mode.direct && endless);
    let of_part = |(part, target): (&SitePart, &OpenTarget)| {
        (!sites[part.site].has_no_cache()).then(|| target.again())
    };
    let mut kept: Vec<Option<OpenTarget>> = Vec::new();
    if drops {
        kept.extend(parts.iter().zip(targets).map(of_part));
    }
    if kept.iter().all(Option::is_none) {
        return BetweenPasses::default();
    }
    let mappings = mappings.clone();
    BetweenPasses::new(move |index| {
        if let Some(Some(target)) = kept.get(index) {
            // fio maps anew for a further loop, but not where it goes on without opening.
            if !endless {
                mappings.let_go(index);
            }
            drop_again(target);
        }
    })
}

/// Between passes nobody waits for dirty pages, as in fio: the kernel begins to write them, and a
/// job of buffered writes is not turned into one that flushes.
fn drop_again(target: &OpenTarget) {
    if target.is_block && drop_device_cache(target.file.as_fd()).is_ok() {
        return;
    }
    let _ = advise_to_drop(target);
}

fn advise_to_drop(target: &OpenTarget) -> rustix::io::Result<()> {
    let length = NonZeroU64::new(target.extent.length);
    fadvise(&target.file, target.extent.start, length, Advice::DontNeed)
}
