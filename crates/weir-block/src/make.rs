//! Preparation of a job's targets before its workers start: they are laid out, guarded and opened.
//!
//! In: a job and its sites. Out: files as the job needs them, open targets. Not here: which sites
//! there are (`target`), the workers' part ([`crate::prepared`]).

use std::collections::BTreeSet;

use weir_run::JobContext;
use weir_schema::catalogue::NameUse;
use weir_schema::{Announcement, BlockWorkload, Failure, Kind, Mix, Preallocate};
use weir_units::Bytes;

use crate::engine::{EngineEntry, OpenTarget, kernel};
use crate::runner::{Block, check_direct, layouts};
use crate::target::{FileLayout, Sites, lay_out, open_all, warm};

/// Lays files out, with one announcement for those of each clone.
pub(crate) fn make(
    context: &JobContext<'_>,
    workload: &BlockWorkload,
    found: &mut Sites,
) -> Result<Vec<FileLayout>, Failure> {
    let layouts = layouts(found, workload, workload.passes.until_full)?;
    let mut announced = BTreeSet::new();
    for parts in &found.parts {
        let mut new: Vec<usize> = parts.iter().map(|part| part.site).collect();
        new.retain(|site| layouts[*site].is_announced() && announced.insert(*site));
        if new.is_empty() {
            continue;
        }
        let (count, bytes) = (
            new.len(),
            new.iter().map(|site| found.list[*site].end).sum::<u64>(),
        );
        (context.announce)(&Announcement::LayingOut {
            job: context.job.name.clone(),
            files: count as u64,
            bytes: Bytes(bytes),
        });
    }
    for (index, layout) in layouts.iter().enumerate() {
        let seed = context.seed.wrapping_add(index as u64);
        let Some(site) = found.list.get_mut(index) else {
            continue;
        };
        lay_out(site, *layout, workload, seed, context.signals)?;
    }
    Ok(layouts)
}

/// Lays out the files that a job looks at or removes, at their length and without data.
pub(crate) fn make_names(
    context: &JobContext<'_>,
    workload: &BlockWorkload,
    usage: NameUse,
    found: &mut Sites,
) -> Result<(), Failure> {
    if let Some(site) = found.list.iter().find(|site| !site.is_file()) {
        let message = "it is a device: this engine makes, looks at or removes files";
        return Err(site.failure("open", Some(libc::EINVAL), message));
    }
    let mut empty = workload.clone();
    empty.targets.create.preallocate = Preallocate::Truncate;
    empty.mix = Mix::only(Kind::Write);
    if usage == NameUse::Makes {
        // Only whether files may be made at all.
        return layouts(found, &empty, false).map(drop);
    }
    make(context, &empty, found).map(drop)
}

/// Guards and opens the targets of every clone, and warms or drops caches.
pub(crate) fn open(
    context: &JobContext<'_>,
    workload: &BlockWorkload,
    entry: &EngineEntry,
    shared: &Block,
    found: &Sites,
    layouts: &[FileLayout],
) -> Result<Vec<Vec<OpenTarget>>, Failure> {
    for site in &found.list {
        // The kernel's module opens devices exclusively itself, and may hold this one for a job that
        // runs beside this one.
        if entry.info.name != kernel::NAME {
            shared.guard(workload, site, Some(context.plan))?;
        }
        check_direct(context, workload, site)?;
    }
    let mut all = Vec::with_capacity(found.parts.len());
    for parts in &found.parts {
        let targets = open_all(&found.list, layouts, parts, workload, entry.opens)?;
        warm(&found.list, parts, &targets, workload)?;
        all.push(targets);
    }
    Ok(all)
}
