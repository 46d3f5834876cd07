//! A job that is ready: laid out, guarded, open. Its workers come here for their part.
//!
//! In: a job, from [`crate::runner`]. Out: the end of each worker's loop, facts about the
//! targets, remarks. Not here: checks that need nothing to be touched.

mod limits;
mod recipe;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use weir_run::generate::Streams;
use weir_run::{
    Amount, JobContext, KINDS, LoopPlan, LoopStop, Measured, OpFailure, OpFault, OperationWriter,
    Prepared, WorkerContext, failure,
};
use weir_schema::catalogue::{ActsOn, NameUse};
use weir_schema::{BlockWorkload, DeviceFacts, Failure, FileNames, Job, Warning};
use weir_sys::device::PathFacts;
use weir_units::Bytes;

use crate::engine::dma_emu::{self, EmulatedCards};
use crate::engine::kernel::KernelSessions;
use crate::engine::{
    EngineEntry, EngineRun, EngineSetup, FileName, Mappings, OpenTarget, SlotMemory, Warnings,
    sync_all,
};
use crate::kinds::measured;
use crate::make::{make, make_names, open};
use crate::memory;
use crate::recorded::RecordedPattern;
use crate::recorded::{PatternFile, PatternReader, check_unchanged, tape};
use crate::runner::{Block, is_removable};
use crate::source::Extent;
use crate::target::{
    FileLayout, SiteKind, SitePart, Sites, between_passes, devices, disks, facts_of, no_sites,
    open_all, reads_blocks_once, spoilers, survey, warm, writes,
};
use crate::thread_placement::place_thread;
use crate::verify::outcome::{StreamSeed, VerifiedJob, mismatch};
use crate::verify::run_mark::{self, RunMark};

/// A job whose targets are open.
pub(crate) struct PreparedBlockJob {
    job: Job,
    workload: BlockWorkload,
    entry: &'static EngineEntry,
    directory: PathBuf,
    mark: RunMark,
    found: Sites,
    /// By clone; taken by its worker.
    targets: Vec<Mutex<Option<Vec<OpenTarget>>>>,
    /// By site, once they are laid out.
    facts: Vec<Option<PathFacts>>,
    warnings_beforehand: Vec<Warning>,
    warnings: Warnings,
    cards: EmulatedCards,
    sessions: KernelSessions,
    is_done: bool,
    recorded: Option<Arc<RecordedPattern>>,
}

impl PreparedBlockJob {
    /// Lays out, guards and opens the targets of a job.
    ///
    /// # Errors
    /// The first target that cannot be used; files made by a failed layout are gone.
    pub(crate) fn new(
        context: &JobContext<'_>,
        workload: &BlockWorkload,
        entry: &'static EngineEntry,
        shared: &Block,
        recorded: Option<Arc<RecordedPattern>>,
    ) -> Result<Self, Failure> {
        let acts_on = entry.info.acts_on;
        let has_sites = !entry.info.no_target();
        let job = context.job;
        let mut found = match acts_on {
            ActsOn::Nothing => no_sites(job.clones, memory::smallest_block(workload)),
            _ => survey(context, workload, has_sites, &shared.made)?,
        };
        found.remarks.iter().for_each(context.announce);
        let mut targets: Vec<Vec<OpenTarget>> = found.parts.iter().map(|_| Vec::new()).collect();
        let only = workload.targets.create.only;
        let (mut facts, mut warnings) = (Vec::new(), Vec::new());
        if let ActsOn::Names(usage) = acts_on {
            make_names(context, workload, usage, &mut found)?;
        } else if has_sites {
            let layouts = make(context, workload, &mut found)?;
            if !only {
                targets = open(context, workload, entry, shared, &found, &layouts)?;
                let touched: u64 = found
                    .list
                    .iter()
                    .map(|site| site.length.min(site.end))
                    .sum();
                facts = facts_of(&found.list);
                warnings = spoilers(&found.list, &facts, workload, Bytes(touched));
            }
            shared.made.note(&found.list);
        }
        if has_sites && facts.is_empty() {
            facts = facts_of(&found.list);
        }
        Ok(Self {
            job: job.clone(),
            workload: workload.clone(),
            entry,
            directory: context.directory.to_owned(),
            mark: run_mark::of_job(context, workload),
            found,
            targets: targets
                .into_iter()
                .map(|list| Mutex::new(Some(list)))
                .collect(),
            facts,
            warnings_beforehand: warnings,
            warnings: Warnings::default(),
            cards: shared.cards.clone(),
            sessions: shared.sessions.clone(),
            is_done: only,
            recorded,
        })
    }

    /// Slots of a worker.
    fn depth(&self) -> u32 {
        memory::slots(self.entry, &self.job)
    }

    fn extents(&self, clone: u32) -> Vec<Extent> {
        let parts = self.found.parts.get(clone as usize);
        parts
            .into_iter()
            .flatten()
            .map(|part| part.extent)
            .collect()
    }

    /// Faults that were asked for and struck nothing: a test of a test that tested nothing.
    fn idle_faults(&self) -> impl Iterator<Item = Warning> {
        let names: Vec<String> = (0..self.job.clones).flat_map(|c| self.names(c)).collect();
        let idle = dma_emu::idle_faults(&self.job.engine, &names, &self.cards);
        idle.into_iter().map(|fault| {
            let cause = format!("The emulated fault {fault} struck no operation.");
            Warning::new("fault-idle", None, cause)
        })
    }

    /// Names of a clone's targets; the job's where none is given.
    fn names(&self, clone: u32) -> Vec<String> {
        if self.workload.targets.files == FileNames::None {
            return vec![self.job.name.clone()];
        }
        let parts = self.found.parts.get(clone as usize).into_iter().flatten();
        parts
            .map(|part| self.found.list[part.site].named.shown.clone())
            .collect()
    }

    /// The targets of a worker by their names.
    fn files(&self, clone: u32) -> Vec<FileName> {
        let parts = self.found.parts.get(clone as usize);
        let name = |part: &SitePart| FileName {
            path: self.found.list[part.site].named.path.clone(),
            start: part.extent.start,
        };
        parts.into_iter().flatten().map(name).collect()
    }

    /// Extents that the source may use: zones follow each other beyond the region, to the target's
    /// end.
    fn grounds(&self, clone: u32) -> Vec<Extent> {
        let mut extents = self.extents(clone);
        if self.workload.access.zones.is_none() {
            return extents;
        }
        let parts = self.found.parts.get(clone as usize);
        for (extent, part) in extents.iter_mut().zip(parts.into_iter().flatten()) {
            let site = &self.found.list[part.site];
            let end = site.length.max(site.end);
            extent.length = extent.length.max(end.saturating_sub(extent.start));
        }
        extents
    }

    /// Each pass has files of its own.
    fn is_renewed(&self) -> bool {
        let renews = self.workload.targets.renew_each_pass && !self.workload.is_endless();
        renews && !self.entry.info.no_target()
    }

    /// True if written data is flushed at the end of each pass.
    fn flushes_at_end(&self) -> bool {
        let flush = &self.workload.flush;
        let asked = flush.fsync_at_end || flush.fsync_on_close;
        asked && writes(&self.workload) && !self.entry.info.no_target()
    }

    /// The targets for another stage, in place of those of the last one.
    fn begin_again(&self, clone: u32, last: Vec<OpenTarget>) -> Result<Vec<OpenTarget>, Failure> {
        let parts = self.parts(clone);
        if self.is_renewed() {
            return self.renew(parts);
        }
        let own = (parts, &last[..], &Mappings::default());
        between_passes(&self.found.list, own, &self.workload).at_all(last.len());
        Ok(last)
    }

    /// Removes the files of a clone between passes, and has them made anew.
    fn renew(&self, parts: &[SitePart]) -> Result<Vec<OpenTarget>, Failure> {
        let sites = parts.iter().map(|part| &self.found.list[part.site]);
        for site in sites.filter(|site| site.is_file()) {
            match rustix::fs::unlink(&site.named.path) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(site.refused("open", "remove it between loops", errno)),
            }
        }
        let list = &self.found.list;
        let layouts: Vec<FileLayout> = list.iter().map(FileLayout::anew).collect();
        let targets = match self.entry.info.acts_on {
            // Its operations take the names.
            ActsOn::Names(_) => Vec::new(),
            _ => open_all(list, &layouts, parts, &self.workload, self.entry.opens)?,
        };
        warm(list, parts, &targets, &self.workload)?;
        Ok(targets)
    }

    fn parts(&self, clone: u32) -> &[SitePart] {
        self.found
            .parts
            .get(clone as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// The part of verification; an engine that moves no data has none.
    fn verified(&self) -> Option<VerifiedJob<'_>> {
        let verify = self.workload.verify.as_ref()?;
        (!self.entry.info.moves_no_data()).then_some(VerifiedJob {
            job: &self.job,
            workload: &self.workload,
            verify,
            directory: &self.directory,
            mark: self.mark,
        })
    }

    /// Flushes what a worker wrote, where the plan says so, as part of its time.
    fn flush(&self, worker: &mut WorkerContext<'_>, targets: &[OpenTarget]) -> Result<(), Failure> {
        if !self.flushes_at_end() {
            return Ok(());
        }
        for (target, part) in targets.iter().zip(self.parts(worker.clone)) {
            let refused = |errno| self.found.list[part.site].refused("io", "flush it", errno);
            sync_all(target).map_err(refused)?;
        }
        worker.end_now();
        Ok(())
    }

    /// A worker's loop over its targets; the whole of its work where it has one stage.
    fn stage(
        &self,
        worker: &mut WorkerContext<'_>,
        stage: u64,
        targets: Vec<OpenTarget>,
    ) -> Result<LoopStop, Failure> {
        let timed = self.recorded.as_ref().filter(|pattern| pattern.is_timed());
        worker.recorded_starts = tape(timed)?.map(PatternReader::starts);
        let depth = self.depth();
        let flushed: Vec<OpenTarget> = targets.iter().map(OpenTarget::again).collect();
        let parts = self.parts(worker.clone);
        let mappings = Mappings::default();
        let own = (parts, &targets[..], &mappings);
        let passes = between_passes(&self.found.list, own, &self.workload);
        let written = Arc::default();
        let grounds = self.grounds(worker.clone);
        let recipe = self.recipe(worker, stage, &grounds, passes, &written)?;
        let setup = EngineSetup {
            targets,
            names: self.names(worker.clone),
            files: self.files(worker.clone),
            depth,
            memory: SlotMemory::of(&recipe.buffers, depth),
            choice: self.job.engine.clone(),
            warnings: self.warnings.clone(),
            cards: self.cards.clone(),
            sessions: self.sessions.clone(),
            mappings,
            streams: Streams::new(worker.seed, worker.number),
        };
        let findings = Arc::clone(&worker.live.findings);
        let streams = StreamSeed::of(worker);
        let plan = LoopPlan {
            until_full: self.workload.passes.until_full,
            no_overlap: self.workload.no_overlap && depth > 1,
            ..worker.loop_plan(depth)
        };
        let stop = (self.entry.drive)(EngineRun {
            worker: &mut *worker,
            recipe,
            plan,
            setup,
        })?;
        if !matches!(stop, LoopStop::Failed(_)) {
            self.flush(worker, &flushed)?;
        }
        check_unchanged(self.recorded.as_deref())?;
        match self.verified() {
            Some(verified) => verified.end(stop, streams, &findings, written.get(), &self.warnings),
            // Data that follows from its place needs no more than what was found.
            None => match findings.list().into_iter().next() {
                Some(first) => Err(mismatch(first, findings.operations())),
                None => Ok(stop),
            },
        }
    }
}

impl Prepared for PreparedBlockJob {
    fn measured(&self, job: &Job) -> [Option<Measured>; KINDS] {
        measured(job, &self.workload, self.is_inline())
    }

    fn is_inline(&self) -> bool {
        (self.entry.is_inline)(self.depth())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn amount(&self, clone: u32) -> Amount {
        let limits = self.limits(&self.extents(clone));
        let bounded = |n: u64| Some(n).filter(|n| *n < u64::MAX);
        // What is read back counts as done work too, and each pass is a round of both.
        let (rounds, both) = match &self.workload.verify {
            Some(verify) if self.workload.reads_back() => (
                self.checked_passes(&self.extents(clone)),
                1 + u64::from(!verify.only),
            ),
            _ => (1, 1),
        };
        Amount {
            bytes: bounded(limits.bytes.saturating_mul(rounds).saturating_mul(both)),
            operations: bounded(limits.operations.saturating_mul(both)),
        }
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        let _kept = place_thread(&self.job.placement, worker.clone)?;
        let held = self.targets.get(worker.clone as usize);
        let taken = held.and_then(|h| h.lock().unwrap_or_else(PoisonError::into_inner).take());
        let Some(mut targets) = taken else {
            return Err(failure("engine", None, "the worker's targets are not open"));
        };
        let stages = self.stages(&self.extents(worker.clone));
        let mut stage = 0;
        loop {
            let last = targets.iter().map(OpenTarget::again).collect();
            let stop = self.stage(worker, stage, targets)?;
            stage += 1;
            if stage >= stages || stop != LoopStop::WorkDone {
                return Ok(stop);
            }
            targets = self.begin_again(worker.clone, last)?;
            worker.begin_pass();
        }
    }

    fn target_name(&self, clone: u32, target: u32) -> Option<String> {
        self.names(clone).into_iter().nth(target as usize)
    }

    fn finish(&self) -> Result<(), Failure> {
        if !self.workload.targets.remove_after || self.entry.info.no_target() {
            return Ok(());
        }
        for site in self.found.list.iter().filter(|site| is_removable(site)) {
            rustix::fs::unlink(&site.named.path)
                .map_err(|errno| site.refused("open", "remove it", errno))?;
        }
        Ok(())
    }

    fn operation_writer(&self) -> Result<Option<Box<dyn OperationWriter>>, Failure> {
        PatternFile::of(&self.job, &self.workload)
    }

    fn devices(&self) -> Vec<DeviceFacts> {
        if self.entry.info.no_target() {
            Vec::new()
        } else {
            devices(&self.found.list, &self.facts)
        }
    }

    fn disks(&self) -> Vec<String> {
        if self.entry.info.no_target() {
            Vec::new()
        } else {
            disks(&self.facts)
        }
    }

    fn never_sleeps(&self) -> bool {
        self.job.engine.name == "null" || self.job.engine.flag("polled", false)
    }

    fn bypasses_caches(&self) -> bool {
        self.workload.targets.open.direct && self.job.engine.name != "null"
    }

    fn reads_blocks_once(&self) -> bool {
        reads_blocks_once(&self.found, &self.workload)
    }

    fn warnings(&self) -> Vec<Warning> {
        self.warnings_beforehand
            .iter()
            .cloned()
            .chain(self.warnings.list())
            .chain(self.idle_faults())
            .collect()
    }

    fn action(&self) -> Option<&'static str> {
        match self.entry.info.acts_on {
            ActsOn::Names(NameUse::Makes) => Some("making"),
            ActsOn::Names(NameUse::LooksAt) => Some("looking at"),
            ActsOn::Names(NameUse::Removes) => Some("removing"),
            _ => None,
        }
    }

    fn explain(&self, clone: u32, at: &OpFailure) -> Option<String> {
        let part = self.found.parts.get(clone as usize)?;
        let site = &self
            .found
            .list
            .get(part.get(at.acts_on.number as usize)?.site)?;
        let errnos: &[i32] = match site.kind {
            Some(SiteKind::Character) => &[libc::EINVAL, libc::EBADF, libc::EIO],
            _ if self.entry.info.name == dma_emu::NAME => &[libc::EINVAL],
            _ => return None,
        };
        let verb = ["reads", "writes", "trims"].get(at.kind)?;
        let OpFault::Errno(errno) = at.fault else {
            return None;
        };
        let name = &self.names(clone)[at.acts_on.number as usize];
        errnos
            .contains(&errno)
            .then(|| format!("device {name} does not accept {verb} (wrong direction?)"))
    }
}
