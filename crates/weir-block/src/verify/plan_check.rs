//! Errors in a job's verification that are found before anything is touched.
//!
//! In: jobs of the plan. Out: failures that refuse the whole plan, because running the rest would
//! write where it must not, or let damage pass.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use weir_run::{JobContext, failure};
use weir_schema::{
    BlockSize, BlockWorkload, Failure, Kind, SaveState, Verify, VerifyMethod, VerifyState, Workload,
};

use super::Marker;
use crate::engine;
use crate::source::{Extent, interval};
use crate::target::{MadeFiles, survey};
use crate::verify::outcome::{load, store};

/// Shorter intervals have no room for every header.
const SHORTEST: u32 = 80;

fn refused(message: String) -> Failure {
    failure("verify", Some(libc::EINVAL), message)
}

/// Error that the job's own settings show.
pub(crate) fn check(context: &JobContext<'_>, workload: &BlockWorkload) -> Option<Failure> {
    let verify = workload.verify.as_ref()?;
    let Some(length) = interval(workload) else {
        return Some(refused(
            "blocks of any length have no common place for headers".to_owned(),
        ));
    };
    if verify.method.has_header() && length < SHORTEST {
        return Some(refused(format!(
            "a header every {length} bytes leaves no room for data: the length of \
             intervals and the block sizes need a common divisor of at least {SHORTEST}"
        )));
    }
    if verify.only && verify.backlog > 0 {
        return Some(refused(
            "a backlog is of writes, and only checks were asked for".to_owned(),
        ));
    }
    if verify.load_state && !verify.only && workload.carries_out(Kind::Write) {
        return Some(refused(
            "a state says what an earlier run wrote, and this job writes anew: it goes with \
             a job that reads, or that only verifies"
                .to_owned(),
        ));
    }
    if verify.load_state {
        let mut workers = 0..context.job.clones;
        let load = |clone| {
            let worker = context.first_worker + clone;
            load(context.job, verify, context.directory, worker).err()
        };
        if let Some(failure) = workers.find_map(load) {
            return Some(failure);
        }
    }
    if let Some(failure) = unstorable(context, workload, verify) {
        return Some(failure);
    }
    if moves_pattern(workload, verify) {
        return Some(refused(
            "a pattern without headers begins anew with each block: blocks that overlap \
             and differ in size cannot be checked (give one block size)"
                .to_owned(),
        ));
    }
    let unfit = match verify.method {
        VerifyMethod::Null => None,
        _ => Marker::new(verify, length, 1, None).err(),
    };
    unfit.map(|unfit| refused(unfit.to_string()))
}

/// A state that shall be stored at the end, and cannot be.
fn unstorable(
    context: &JobContext<'_>,
    workload: &BlockWorkload,
    verify: &Verify,
) -> Option<Failure> {
    if verify.save_state != SaveState::Always || !workload.carries_out(Kind::Write) {
        return None;
    }
    let directory = store(verify, context.directory);
    let path = directory.join(VerifyState::file_name(
        &context.job.name,
        context.first_worker,
    ));
    let here = Path::new(".");
    let (place, wanted) = if path.exists() {
        (path.as_path(), Access::WRITE_OK)
    } else if directory.as_os_str().is_empty() {
        (here, Access::WRITE_OK | Access::EXEC_OK)
    } else {
        (directory.as_path(), Access::WRITE_OK | Access::EXEC_OK)
    };
    let errno = access(place, wanted).err()?;
    let error = std::io::Error::from(errno);
    let message = format!("the state {} could not be stored: {error}", path.display());
    Some(failure("verify", Some(errno.raw_os_error()), message))
}

/// True where the begin of a pattern cannot be known from the rest of overlapping blocks.
fn moves_pattern(workload: &BlockWorkload, verify: &Verify) -> bool {
    let sizes = &workload.sizes.size;
    verify.method == VerifyMethod::Pattern
        && workload.reads_back()
        && !matches!(sizes.of(Kind::Write), BlockSize::Fixed { .. })
}

/// A part of a file that a job writes and verifies.
struct Claim<'a> {
    context: &'a JobContext<'a>,
    clone: u32,
    path: PathBuf,
    extent: Extent,
}

/// Jobs that would verify what others overwrite meanwhile: by number.
pub(crate) fn check_together(contexts: &[JobContext<'_>]) -> Vec<(u32, Failure)> {
    let claims: Vec<Claim<'_>> = contexts.iter().flat_map(claims).collect();
    let mut found: Vec<(u32, Failure)> = Vec::new();
    for (at, later) in claims.iter().enumerate() {
        let index = later.context.index;
        if found.iter().any(|(i, _)| *i == index) {
            continue;
        }
        let meets = |earlier: &&Claim<'_>| {
            earlier.path == later.path
                && overlap(earlier.extent, later.extent)
                && !are_ordered(contexts, earlier.context.index, index)
        };
        if let Some(earlier) = claims[..at].iter().find(meets) {
            found.push((index, conflict(earlier, later)));
        }
    }
    found
}

fn conflict(earlier: &Claim<'_>, later: &Claim<'_>) -> Failure {
    let path = later.path.display();
    let message = if earlier.context.index == later.context.index {
        format!(
            "its clones {} and {} write and verify the same part of {path}: let their parts \
             begin {}{} bytes apart, or give them files of their own",
            earlier.clone,
            later.clone,
            if has_step(later) { "at least " } else { "" },
            later.extent.length
        )
    } else {
        format!(
            "it writes and verifies a part of {path} that {} writes and verifies at the \
             same time: let one wait for the other, or give them parts of their own",
            earlier.context.job.name
        )
    };
    refused(message)
}

/// Clones have parts of their own, which are too near to each other.
fn has_step(claim: &Claim<'_>) -> bool {
    match &claim.context.job.workload {
        Workload::Block(workload) => workload.region.offset_step.is_some(),
        _ => false,
    }
}

fn overlap(a: Extent, b: Extent) -> bool {
    a.start < b.start.saturating_add(b.length) && b.start < a.start.saturating_add(a.length)
}

fn claims<'a>(context: &'a JobContext<'a>) -> Vec<Claim<'a>> {
    let Workload::Block(workload) = &context.job.workload else {
        return Vec::new();
    };
    let moves_data =
        engine::find(&context.job.engine.name).is_some_and(|entry| !entry.info.moves_no_data());
    let verifies = workload.verify.is_some() && workload.carries_out(Kind::Write);
    if !verifies || !moves_data {
        return Vec::new();
    }
    // What cannot be placed yet fails when its turn comes, before it writes.
    let Ok(sites) = survey(context, workload, true, &MadeFiles::default()) else {
        return Vec::new();
    };
    let mut claims = Vec::new();
    for (clone, parts) in (0..).zip(&sites.parts) {
        for part in parts {
            let named = &sites.list[part.site].named.path;
            claims.push(Claim {
                context,
                clone,
                path: named.canonicalize().unwrap_or_else(|_| named.clone()),
                extent: part.extent,
            });
        }
    }
    claims
}

/// True if the later of two jobs starts after the earlier has ended.
pub(crate) fn are_ordered(contexts: &[JobContext<'_>], earlier: u32, later: u32) -> bool {
    let between = |c: &&JobContext<'_>| c.index > earlier && c.index <= later;
    if contexts.iter().filter(between).any(|c| c.job.start.barrier) {
        return true;
    }
    let mut at = later;
    loop {
        let job = contexts.iter().find(|c| c.index == at).map(|c| c.job);
        let Some(awaited) = job.and_then(|j| j.start.wait_for.as_deref()) else {
            return false;
        };
        let before = contexts.iter().rev().filter(|c| c.index < at);
        match before
            .map(|c| (c.index, &c.job.name))
            .find(|(_, n)| *n == awaited)
        {
            Some((index, _)) if index == earlier => return true,
            Some((index, _)) => at = index,
            None => return false,
        }
    }
}
