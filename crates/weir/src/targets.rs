//! Targets of the command line: what a job may do to the data that they hold.
//!
//! In: the plan of targets, those whose data may be lost. Out: the plan, in which every other target is
//! opened for reading alone; or a refusal. Not here: whether a device is in use (the write guard).

use std::fs;
use std::os::unix::fs::FileTypeExt as _;

use weir_doors::Refusal;
use weir_schema::catalogue::{ActsOn, EngineInfo, NameUse};
use weir_schema::{BlockWorkload, FileNames, Job, Kind, Plan, Workload};

use crate::{kio, runners};

/// Guards each target of a plan that has a job for each of them, in their order.
///
/// # Errors
/// Data that would be lost without `--destroy`, a file without a size, a job that works on anything else.
pub(crate) fn guard(
    plan: &mut Plan,
    targets: &[String],
    destroyed: &[String],
) -> Result<(), Refusal> {
    let name = plan.jobs().next().map(|(_, job)| job.name.clone());
    plan.name = name.unwrap_or_default();
    let catalogue = runners::catalogue();
    let mut jobs = plan.groups.iter_mut().flat_map(|group| &mut group.jobs);
    for target in targets {
        let other = || refuse(target, "no job works on it");
        let job = jobs.next().ok_or_else(other)?;
        let engine = catalogue.find(&job.engine.name).ok_or_else(other)?;
        let work = work_on(job, target, engine)?;
        let may_be_lost = destroyed.contains(target);
        match fs::metadata(target) {
            Ok(found) if !found.is_file() || found.len() > 0 => {
                check_leave(target, changes(work, engine), may_be_lost)?;
                if may_be_lost && !found.file_type().is_char_device() {
                    check_signature(target)?;
                }
                work.targets.open.read_only |= !may_be_lost;
            }
            _ if work.region.size.is_none() && work.region.file_size_bytes.is_none() => {
                let why = "a file that is new or empty needs a size\n  help: --size=1g";
                return Err(refuse(target, why));
            }
            _ => {}
        }
    }
    Ok(())
}

fn refuse(target: &str, why: &str) -> Refusal {
    Refusal::usage(format!("{target}: {why}"))
}

/// The work of a job, which is on this target and nothing else.
fn work_on<'a>(
    job: &'a mut Job,
    target: &str,
    engine: &EngineInfo,
) -> Result<&'a mut BlockWorkload, Refusal> {
    let name = &engine.name;
    let no_target = || {
        refuse(
            target,
            &format!("the engine {name} works on no file or device"),
        )
    };
    let Workload::Block(work) = &mut job.workload else {
        return Err(no_target());
    };
    if engine.no_target() {
        return Err(no_target());
    }
    let is_alone = match &work.targets.files {
        FileNames::Listed { paths, directories } => paths == &[target] && directories.is_empty(),
        _ => false,
    };
    let why = if work.targets.allow_mounted_write {
        "a target of the command line that is in use is never written: leave --allow_mounted_write out"
    } else if is_alone && work.access.replay.is_none() {
        return Ok(work);
    } else {
        "the options name other files, which belong into a job file"
    };
    Err(refuse(target, why))
}

/// True if a job changes what an existing target holds.
fn changes(work: &BlockWorkload, engine: &EngineInfo) -> bool {
    let changes_files = matches!(
        engine.acts_on,
        ActsOn::Space | ActsOn::Names(NameUse::Makes | NameUse::Removes)
    );
    let targets = &work.targets;
    let renews = targets.create.overwrite || targets.remove_after || targets.renew_each_pass;
    changes_files
        || renews
        || [Kind::Write, Kind::Trim]
            .iter()
            .any(|k| work.carries_out(*k))
}

/// Refuses to lose data that a target holds, and a leave to lose it that is of no use.
fn check_leave(target: &str, is_lost: bool, may_be_lost: bool) -> Result<(), Refusal> {
    match (is_lost, may_be_lost) {
        (true, false) => {
            let help = format!("if that may be lost, --destroy {target}");
            let why = format!("the job would change what it holds\n  help: {help}");
            Err(refuse(target, &why))
        }
        (false, true) => {
            let why = "nothing is written to it; leave it out";
            Err(Refusal::usage(format!("--destroy {target}: {why}")))
        }
        _ => Ok(()),
    }
}

/// Refuses a target that somebody's data can be recognised on.
fn check_signature(target: &str) -> Result<(), Refusal> {
    let Some(holds) = kio::held_data(target) else {
        return Ok(());
    };
    let why = format!(
        "it seems to hold {holds}, and is not written\n  help: if that may be lost, `wipefs --all \
         {target}` first"
    );
    Err(refuse(target, &why))
}
