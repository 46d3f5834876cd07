//! Facts about the targets for the result, and what about them spoils the numbers.
//!
//! In: the sites of a job once they are laid out. Out: device facts, disks, remarks with stable
//! ids. Not here: what only the run shows (hits of the cache, other I/O on the device).

use weir_schema::{BlockWorkload, DeviceFacts, Distribution, Kind, QueueFacts, Warning};
use weir_sys::Tree;
use weir_sys::device::{PathFacts, PathKind, disks_behind, driver_facts, extents, path_facts};
use weir_sys::memory::MemoryFacts;
use weir_units::Bytes;

use super::{Site, Sites};

/// Holes below this share of a file are not worth a word.
const FEW_HOLES: f64 = 0.001;

/// Facts about the file or device at each site, found once: the next job of a sweep
/// waits for this.
pub(crate) fn facts_of(sites: &[Site]) -> Vec<Option<PathFacts>> {
    let tree = Tree::real();
    let facts = |site: &Site| path_facts(&tree, &site.named.path).ok();
    sites.iter().map(facts).collect()
}

/// Facts about the devices under the targets.
pub(crate) fn devices(sites: &[Site], facts: &[Option<PathFacts>]) -> Vec<DeviceFacts> {
    let describe = |(site, facts): (&Site, &Option<PathFacts>)| {
        let facts = facts.clone()?;
        let block = facts.block;
        let driver = facts.dev.and_then(|dev| driver_facts(&Tree::real(), dev));
        let (driver, poll_mode) = driver.map_or((None, None), |d| (Some(d.name), d.poll_mode));
        let driver = driver.or_else(|| block.as_ref()?.driver.clone());
        Some(DeviceFacts {
            target: site.named.shown.clone(),
            made: site.is_file() && (site.is_new || site.kind.is_none()),
            kind: match facts.kind {
                PathKind::Block => "block device",
                PathKind::Character => "character device",
                _ => "file",
            }
            .to_owned(),
            size_bytes: facts.size,
            file_system: facts.file_system.map(|system| system.fs_type),
            device: block.as_ref().map(|block| block.name.clone()),
            model: block.as_ref().and_then(|block| block.model.clone()),
            scheduler: block.as_ref().and_then(|block| block.scheduler.clone()),
            logical_block_bytes: block.as_ref().and_then(|block| block.logical_block),
            serial: block.as_ref().and_then(|block| block.serial.clone()),
            queue: block.as_ref().map(|block| QueueFacts {
                requests: block.queue_requests,
                throttle_ns: block.write_throttle,
                has_polling: block.has_polling,
                is_rotational: block.is_rotational,
            }),
            driver,
            poll_mode,
            numa_node: block.as_ref().and_then(|block| block.numa_node),
        })
    };
    sites.iter().zip(facts).filter_map(describe).collect()
}

/// Names of the disks that the targets rest on.
pub(crate) fn disks(facts: &[Option<PathFacts>]) -> Vec<String> {
    let tree = Tree::real();
    let blocks = facts.iter().flatten().filter_map(|f| f.block.as_ref());
    let mut disks: Vec<_> = blocks
        .flat_map(|block| disks_behind(&tree, block.dev))
        .collect();
    disks.sort();
    disks.dedup();
    disks
}

/// Warnings about conditions that spoil the numbers, as far as they show before the run.
pub(crate) fn spoilers(
    sites: &[Site],
    facts: &[Option<PathFacts>],
    workload: &BlockWorkload,
    touched: Bytes,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let looked: Vec<_> = sites
        .iter()
        .zip(facts)
        .filter_map(|(site, facts)| Some((site, facts.as_ref()?)))
        .collect();
    let is_stored = |facts: &PathFacts| match facts.kind {
        PathKind::Block => true,
        PathKind::Regular => facts
            .file_system
            .as_ref()
            .is_some_and(|system| !system.is_in_memory),
        _ => false,
    };
    let stored = looked.iter().any(|(_, facts)| is_stored(facts));
    let open = &workload.targets.open;
    // Who reads the region through first means the cache.
    if workload.carries_out(Kind::Read) && !open.direct && !open.read_first && stored {
        warnings.extend(page_cache(touched));
    }
    if workload.carries_out(Kind::Read) {
        warnings.extend(
            looked
                .iter()
                .filter_map(|(site, facts)| never_written(site, facts)),
        );
    }
    let content = &workload.content;
    let is_plain = content.zero || content.pattern.is_some();
    if workload.carries_out(Kind::Write) && is_plain && stored {
        let what = if content.zero { "zeros" } else { "a pattern" };
        let cause =
            format!("The job writes {what}, which a device or file system may not store at all.");
        warnings.push(Warning::new("compressible", None, cause));
    }
    warnings
}

/// Its caches are dropped before each pass, and no pass reads a block twice.
pub(crate) fn reads_blocks_once(found: &Sites, workload: &BlockWorkload) -> bool {
    let access = &workload.access;
    let mut users = vec![0; found.list.len()];
    for part in found.parts.iter().flatten() {
        users[part.site] += 1;
    }
    let in_turn = !access.random && access.skip_bytes == 0 && access.steps <= 1;
    let by_map = access.random && access.map && access.distribution == Distribution::Uniform;
    workload.targets.open.drop_cache
        && (in_turn || by_map)
        && (access.zones.is_none() && access.replay.is_none())
        && workload.passes.io_size.is_none()
        && !workload.carries_out(Kind::Write)
        && users.iter().all(|users| *users <= 1)
}

fn page_cache(touched: Bytes) -> Option<Warning> {
    let available = MemoryFacts::read(&Tree::real()).available?;
    (touched < available).then(|| {
        let cause = format!(
            "Buffered reads of {touched} may come from the page cache: {available} of memory are \
             free for it."
        );
        Warning::new("page-cache", None, cause)
    })
}

fn never_written(site: &Site, facts: &PathFacts) -> Option<Warning> {
    if !site.is_file() {
        return None;
    }
    let share = match (&facts.file_system, facts.size, facts.allocated) {
        // Files in memory hold what was written and nothing else; a search for holes would pass
        // over each of their pages.
        (Some(system), Some(size), Some(held)) if system.is_in_memory => {
            share(size.0.saturating_sub(held.0), size.0)
        }
        _ => {
            let path = &site.named.path;
            let found = extents(std::fs::File::open(path).ok()?, path).ok()?;
            share(found.holes.0, found.data.0 + found.holes.0)
        }
    };
    (share > FEW_HOLES).then(|| {
        let shown = &site.named.shown;
        let cause = format!(
            "{:.0} % of {shown} was never written: reads of holes reach no device.",
            (share * 100.0).max(1.0)
        );
        Warning::new("never-written", None, cause)
    })
}

fn share(part: u64, whole: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = part as f64 / whole.max(1) as f64;
    share
}
