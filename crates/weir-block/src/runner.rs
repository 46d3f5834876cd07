//! The runner of files and devices: looks at a job, refuses what cannot work, makes the rest ready.
//!
//! In: jobs of the plan. Out: failures before anything is touched, or a [`PreparedBlockJob`] job. Not here:
//! the workers' part ([`crate::prepared`]).

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, access};
use weir_run::{JobContext, PreparedJob, RankPart, Runner, failure};
use weir_schema::catalogue::{ActsOn, NameUse, SettingKind};
use weir_schema::{
    BlockSize, BlockWorkload, Failure, FileNames, Job, Kind, Plan, Setting, Workload,
};
use weir_sys::device::{DirectIo, path_facts};
use weir_sys::guard::{ClaimedDevices, GuardError, Overrides};
use weir_sys::{Availability, Tree};
use weir_units::Bytes;

use crate::buffer_total;
use crate::engine::dma_emu::EmulatedCards;
use crate::engine::kernel::{self, KernelSessions};
use crate::engine::net;
use crate::engine::{self, COMMANDS, EngineEntry, Opens};
use crate::memory;
use crate::plan_settings::senseless_settings;
use crate::prepared::PreparedBlockJob;
use crate::rank_part;
use crate::recorded::{ReplayedJob, replayed_job};
use crate::source;
use crate::target::{
    FileLayout, MadeFiles, Site, Sites, look, may_create, names, needs_write_access, survey, writes,
};
use crate::thread_placement;
use crate::verify;

/// Files, block devices and character devices, and what their jobs share over a run.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub(crate) cards: EmulatedCards,
    pub(crate) made: MadeFiles,
    pub(crate) sessions: KernelSessions,
    pub(crate) claimed: Arc<ClaimedDevices>,
}

impl Runner for Block {
    fn handles(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::Block(_))
    }

    fn check(&self, context: &JobContext<'_>) -> Vec<Failure> {
        let replayed_job = match replayed_job(context) {
            Ok(replayed_job) => replayed_job,
            Err(failure) => return vec![failure],
        };
        let context = &with_job(context, replayed_job.as_ref());
        let Workload::Block(workload) = &context.job.workload else {
            return Vec::new();
        };
        let entry = match engine_of(context) {
            Ok(entry) => entry,
            Err(failure) => return vec![failure],
        };
        let mut failures = check_words(context, workload, entry);
        if entry.info.acts_on == ActsOn::Nothing {
            return failures;
        }
        if !entry.info.moves_no_data() {
            failures.extend(verify::check(context, workload));
        }
        if entry.info.no_target() {
            failures.extend(survey(context, workload, false, &self.made).err());
            return failures;
        }
        failures.extend(self.check_targets(context, workload));
        failures
    }

    fn check_together(&self, contexts: &[JobContext<'_>]) -> Vec<(u32, Failure)> {
        let mut failures = verify::check_together(contexts);
        failures.extend(buffer_total::check_together(contexts));
        failures
    }

    fn part(&self, job: &mut Job, rank: RankPart) -> Result<(), Failure> {
        rank_part::adjust(job, rank)
    }

    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        let replayed_job = replayed_job(context)?;
        let context = &with_job(context, replayed_job.as_ref());
        let Workload::Block(workload) = &context.job.workload else {
            return Err(plan_failure("this workload is no block I/O"));
        };
        let entry = engine_of(context)?;
        if let Some(failure) = check_words(context, workload, entry).into_iter().next() {
            return Err(failure);
        }
        let recorded = replayed_job.as_ref().map(|p| Arc::clone(&p.pattern));
        let ready = PreparedBlockJob::new(context, workload, entry, self, recorded)?;
        Ok(PreparedJob::Workers(Arc::new(ready)))
    }
}

/// The context with the job as its recorded pattern describes it.
fn with_job<'a>(context: &JobContext<'a>, replayed_job: Option<&'a ReplayedJob>) -> JobContext<'a> {
    JobContext {
        job: replayed_job.map_or(context.job, |p| &p.job),
        ..*context
    }
}

fn plan_failure(message: impl Into<String>) -> Failure {
    failure("plan", Some(libc::EINVAL), message)
}

fn engine_of(context: &JobContext<'_>) -> Result<&'static EngineEntry, Failure> {
    let name = &context.job.engine.name;
    let missing = |what: &str, remedy: &str| {
        let message = format!("engine `{name}`: this machine lacks {what} ({remedy})");
        failure("missing", Some(libc::ENOSYS), message)
    };
    match (engine::find(name), engine::availability(name)) {
        (Some(entry), Availability::Ready) => Ok(entry),
        (Some(_), Availability::Missing { what, remedy }) => Err(missing(&what, &remedy)),
        (None, Availability::Missing { remedy, .. }) => Err(failure(
            "engine",
            None,
            format!("there is no engine `{name}`: {remedy}"),
        )),
        (None, Availability::Ready) => Err(failure("engine", None, "unknown engine")),
    }
}

/// Errors that the plan's settings alone show.
fn check_words(
    context: &JobContext<'_>,
    workload: &BlockWorkload,
    entry: &EngineEntry,
) -> Vec<Failure> {
    let job = context.job;
    let mut failures = Vec::new();
    for (name, value) in &job.engine.settings {
        failures.extend(check_setting(entry, name, value));
    }
    let targets = &workload.targets;
    let changes_names = matches!(
        entry.info.acts_on,
        ActsOn::Names(NameUse::Makes | NameUse::Removes)
    );
    if targets.open.read_only
        && (changes_names
            || targets.remove_after
            || targets.renew_each_pass
            || entry.opens == Opens::WritingToo
            || needs_write_access(workload))
    {
        failures.push(failure(
            "plan",
            Some(libc::EROFS),
            "it writes, discards, makes or removes, and nothing may be written",
        ));
    }
    let is_cached = !targets.open.direct && job.engine.name != COMMANDS;
    if job.engine.flag("polled", false) && is_cached {
        failures.push(plan_failure(
            "polled I/O passes the page cache by and needs direct I/O",
        ));
    }
    let senseless = senseless_settings(workload);
    if !senseless.is_empty() {
        // What follows makes use of them.
        failures.extend(senseless.into_iter().map(plan_failure));
        return failures;
    }
    if memory::smallest_block(workload) == 0 {
        failures.push(plan_failure("a block of 0 bytes moves nothing"));
    }
    let drawn = source::check(workload).map_err(|e| plan_failure(e.to_string()));
    failures.extend(drawn.err());
    failures.extend(thread_placement::check(&job.placement, job.clones));
    failures.extend(memory::check(workload).err());
    let mut ignored = workload.load.errors.ignore.values().flatten();
    if let Some(code) = ignored.find(|code| code.errno().is_none()) {
        failures.push(plan_failure(format!(
            "block I/O fails with numbers of errors: there is no error `{code}`"
        )));
    }
    if job.engine.name == kernel::NAME {
        failures.extend(kernel::check(job, workload).map(plan_failure));
    }
    if job.engine.name == net::NAME && failures.is_empty() {
        failures.extend(net::check(job, workload));
    }
    failures
}

fn check_setting(entry: &EngineEntry, name: &str, value: &Setting) -> Option<Failure> {
    let engine = entry.info.name;
    let Some(known) = entry.info.settings.iter().find(|known| known.name == name) else {
        let names: Vec<_> = entry.info.settings.iter().map(|known| known.name).collect();
        let list = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        return Some(plan_failure(format!(
            "engine `{engine}` has no setting `{name}` (it has {list})"
        )));
    };
    let expected = match (known.value, value) {
        (SettingKind::Bool, Setting::Bool(_) | Setting::Number(0 | 1))
        | (SettingKind::Text, Setting::Text(_)) => return None,
        (SettingKind::Word(words), Setting::Text(word)) if words.contains(&word.as_str()) => {
            return None;
        }
        (SettingKind::Number { min, max }, Setting::Number(n)) if (min..=max).contains(n) => {
            return None;
        }
        (SettingKind::Bool, _) => "true or false".to_owned(),
        (SettingKind::Number { min, max }, _) => format!("a number from {min} to {max}"),
        (SettingKind::Checked(check), Setting::Text(text)) => match check(text) {
            Ok(()) => return None,
            Err(wrong) => {
                return Some(plan_failure(format!(
                    "setting `{name}` of engine `{engine}`: {wrong}"
                )));
            }
        },
        (SettingKind::Text | SettingKind::Checked(_), _) => "a text".to_owned(),
        (SettingKind::Word(words), _) => format!("one of {}", words.join(", ")),
    };
    Some(plan_failure(format!(
        "setting `{name}` of engine `{engine}`: expected {expected}"
    )))
}

/// True if an earlier job of the plan may make the file or make it longer.
fn is_made_earlier(context: &JobContext<'_>, path: &Path) -> bool {
    let earlier = context.plan.jobs().take(context.index as usize);
    earlier.into_iter().any(|(_, job)| {
        let Workload::Block(workload) = &job.workload else {
            return false;
        };
        let files = &workload.targets.files;
        (0..job.clones)
            .flat_map(|clone| names(files, &job.name, clone, context.directory))
            .any(|named| named.path == path)
    })
}

fn is_device(context: &JobContext<'_>, shown: &str) -> bool {
    let path = context.directory.join(shown);
    !path.is_file() && path.exists()
}

fn check_site(context: &JobContext<'_>, workload: &BlockWorkload, site: &Site) -> Option<Failure> {
    let path = &site.named.path;
    if site.kind.is_none() {
        if !is_made_earlier(context, path)
            && let Err(failure) = may_create(site, workload)
        {
            return Some(failure);
        }
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())?;
        return (!parent.is_dir()).then(|| {
            let message = format!("the directory {} does not exist", parent.display());
            site.failure("open", Some(libc::ENOENT), &message)
        });
    }
    check_permission(workload, site).or_else(|| check_direct(context, workload, site).err())
}

fn check_permission(workload: &BlockWorkload, site: &Site) -> Option<Failure> {
    let mut wanted = Access::empty();
    wanted.set(Access::READ_OK, workload.carries_out(Kind::Read));
    wanted.set(Access::WRITE_OK, needs_write_access(workload));
    let errno = access(&site.named.path, wanted).err()?;
    let what = if wanted.contains(Access::WRITE_OK) {
        "write to it"
    } else {
        "read it"
    };
    Some(site.refused("open", what, errno))
}

impl Block {
    /// Errors that the targets show, as far as no earlier job can change them: files may
    /// still be made or grow.
    fn check_targets(&self, context: &JobContext<'_>, workload: &BlockWorkload) -> Vec<Failure> {
        let mut failures = Vec::new();
        let mut seen = HashSet::new();
        for clone in 0..context.job.clones {
            let files = &workload.targets.files;
            for named in names(files, &context.job.name, clone, context.directory) {
                if !seen.insert(named.path.clone()) {
                    continue;
                }
                match look(named) {
                    Ok(site) => {
                        let found = check_site(context, workload, &site);
                        failures.extend(found.or_else(|| self.guard(workload, &site, None).err()));
                    }
                    Err(failure) => failures.push(failure),
                }
            }
        }
        let is_empty = seen.is_empty() || matches!(workload.targets.files, FileNames::None);
        if failures.is_empty()
            && let Err(failure) = survey(context, workload, true, &MadeFiles::default())
            && (is_empty
                || failure.cause == "plan"
                || failure.target.as_deref().is_some_and(|shown| {
                    is_device(context, shown)
                        || !is_made_earlier(context, &context.directory.join(shown))
                }))
        {
            failures.push(failure);
        }
        failures
    }

    /// The last look before a device is written. With the run that is about to write, the device is then kept from
    /// others to the end of that run.
    ///
    /// # Errors
    /// It is in use.
    pub(crate) fn guard(
        &self,
        workload: &BlockWorkload,
        site: &Site,
        run: Option<&Plan>,
    ) -> Result<(), Failure> {
        let is_device = !site.is_file();
        if !is_device || !writes(workload) {
            return Ok(());
        }
        let (tree, path) = (Tree::real(), &site.named.path);
        let mounted = workload.targets.allow_mounted_write;
        let mut checked = self.claimed.check(&tree, path, Overrides { mounted });
        if checked.is_ok() && !mounted && run.is_some_and(writes_alone) {
            checked = self.claimed.claim(&tree, path);
        }
        checked.map_err(|error| {
            let (cause, errno) = match &error {
                GuardError::Mounted { .. } => ("mounted", Some(libc::EBUSY)),
                GuardError::Unchecked { source, .. } => ("in_use", source.raw_os_error()),
                _ => ("in_use", Some(libc::EBUSY)),
            };
            Failure {
                target: Some(site.named.shown.clone()),
                ..failure(cause, errno, error.to_string())
            }
        })
    }
}

/// True if this process alone writes the devices of a plan, by calls of its own. A command that a job starts, or
/// the kernel's module, may need them for itself.
fn writes_alone(plan: &Plan) -> bool {
    let mut jobs = plan.jobs().map(|(_, job)| job);
    let has_command = |job: &Job| job.start.before.is_some() || job.start.after.is_some();
    plan.ranks.is_none() && !jobs.any(|job| has_command(job) || job.engine.name == kernel::NAME)
}

/// Fails if direct I/O on an existing target cannot work with this job's sizes.
///
/// # Errors
/// Why it cannot.
pub(crate) fn check_direct(
    context: &JobContext<'_>,
    workload: &BlockWorkload,
    site: &Site,
) -> Result<(), Failure> {
    if !workload.targets.open.direct {
        return Ok(());
    }
    let Ok(facts) = path_facts(&Tree::real(), &site.named.path) else {
        return Ok(());
    };
    if context.job.engine.flag("polled", false)
        && let Some(block) = &facts.block
        && block.has_polling == Some(false)
    {
        let message = format!(
            "polled I/O was asked for, but {} has no queues to poll (load its driver with some, \
             for example nvme.poll_queues=1)",
            block.name
        );
        return Err(site.failure("engine", Some(libc::EOPNOTSUPP), &message));
    }
    let logical = facts.block.and_then(|block| block.logical_block);
    let (memory, offset) = match facts.direct_io {
        Some(DirectIo::Unsupported) => {
            let message = "the file system does not take direct I/O";
            return Err(site.failure("direct_io", Some(libc::EINVAL), message));
        }
        Some(DirectIo::Supported { memory, offset }) => (memory, offset.or(logical)),
        _ => (None, logical),
    };
    let unit = offset.unwrap_or(Bytes(1)).0.max(1);
    if let Some(odd) = sizes(workload)
        .into_iter()
        .find(|size| !size.is_multiple_of(unit))
    {
        let message =
            format!("direct I/O moves multiples of {unit} bytes here: a block has {odd} bytes");
        return Err(site.failure("plan", Some(libc::EINVAL), &message));
    }
    let align = memory::alignment(&workload.memory);
    let needed = memory.unwrap_or(Bytes(1)).0.max(1);
    if !align.is_multiple_of(needed) {
        let message =
            format!("direct I/O needs buffers aligned to {needed} bytes here: they have {align}");
        return Err(site.failure("plan", Some(libc::EINVAL), &message));
    }
    Ok(())
}

/// Sizes of which every operation's is a multiple.
fn sizes(workload: &BlockWorkload) -> Vec<u64> {
    let occurs = |kind: &Kind| workload.sizes.by_pattern || workload.mix.has(*kind);
    let of = |size: &BlockSize| match size {
        BlockSize::Fixed { bytes } => vec![bytes.0],
        BlockSize::Range {
            unaligned: true, ..
        } => vec![1],
        BlockSize::Range { min_bytes, .. } => vec![min_bytes.0],
        BlockSize::Split { entries } => entries.iter().map(|entry| entry.bytes.0).collect(),
    };
    let kinds = Kind::DATA.into_iter().filter(occurs);
    kinds
        .flat_map(|kind| of(workload.sizes.size.of(kind)))
        .collect()
}

/// Layout action for each site.
///
/// # Errors
/// A file would have to be made, and must not be.
pub(crate) fn layouts(
    sites: &Sites,
    workload: &BlockWorkload,
    until_full: bool,
) -> Result<Vec<FileLayout>, Failure> {
    sites
        .list
        .iter()
        .map(|site| FileLayout::of(site, workload, until_full))
        .collect()
}

/// True if this job made something at the path, which may be removed.
pub(crate) fn is_removable(site: &Site) -> bool {
    site.is_file() && Path::new(&site.named.path).is_file()
}
