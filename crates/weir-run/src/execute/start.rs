//! Starting jobs: the targets of each are made ready on a thread of their own, then its workers
//! get ready, then all workers of the batch are released at one instant.
//!
//! In: jobs that wait for nothing any more. Out: running jobs. Making a job ready may take
//! minutes, so the run's thread does not wait for it: it goes on with the jobs that run already.
//! There is one batch at a time, and in it one job after the other, so that layouts and
//! announcements keep their order. Not here: which jobs may start (`order`).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, Scope};

use weir_schema::{Announcement, Failure, State};

use super::disks::Disks;
use super::rank_meetings::RankMeetings;
use super::running::{EndedJob, JobSetup, RunningJob};
use super::running_ranks::RunningRanks;
use super::thread::{Event, panic_text};
use super::{Entry, Run, RunControl, Signals, collect, runner_of};
use crate::runner::{JobContext, PreparedJob, Runner, failure};

/// Jobs that start together.
pub(super) struct StartBatch {
    /// Those that nobody has begun to make ready, in their order.
    left: VecDeque<usize>,
    /// The one that is being made ready.
    making: Option<usize>,
    /// The prepared job, or the failure.
    made: Option<Result<PreparedJob, Failure>>,
    /// It is to end before it begins.
    stopped: bool,
    /// The other ranks are met.
    meets: bool,
    /// Every target is there; workers may still get ready.
    all_made: bool,
}

/// Parts that prepare a job away from the run's thread.
struct Preparation<'a> {
    runner: Result<&'a dyn Runner, Failure>,
    entry: Entry<'a>,
    directory: &'a Path,
    signals: Arc<Signals>,
    events: Sender<Event>,
}

impl Preparation<'_> {
    /// Makes the job ready and says so, also if that panics: the run waits for it.
    fn run(self) {
        let make = AssertUnwindSafe(|| self.make());
        let made = catch_unwind(make).unwrap_or_else(|panic| {
            let text = panic_text(panic.as_ref());
            let message = format!("making the job ready panicked: {text}");
            Err(failure("panic", None, message))
        });
        // The run listens until it has heard this.
        let _ = self.events.send(Event::Made(made));
    }

    fn make(&self) -> Result<PreparedJob, Failure> {
        let announce = |announcement: &Announcement| {
            let _ = self.events.send(Event::Announced(announcement.clone()));
        };
        self.runner.clone()?.prepare(&JobContext {
            plan: self.entry.plan,
            job: self.entry.job,
            index: self.entry.index,
            first_worker: self.entry.first_worker,
            seed: self.entry.seed,
            run_id: self.entry.run_id,
            directory: self.directory,
            announce: &announce,
            signals: &self.signals,
        })
    }
}

impl<'a> Run<'a> {
    /// Begins with jobs that wait for nothing any more, and goes on with those begun with.
    pub(super) fn start_due<'scope>(
        &mut self,
        control: &RunControl<'_>,
        disks: &mut Disks,
        meetings: &mut RankMeetings<'_>,
        scope: &'scope Scope<'scope, 'a>,
    ) {
        if self.batch.is_none() && !self.cancelled {
            self.batch = self.next_batch(control, meetings);
        }
        let Some(mut batch) = self.batch.take() else {
            return;
        };
        if let Some(made) = batch.made.take()
            && let Some(index) = batch.making.take()
        {
            let stopped = std::mem::take(&mut batch.stopped);
            self.begin(self.entries[index], made, stopped, control, disks);
        }
        if self.cancelled {
            batch.left.clear();
        }
        if batch.making.is_none() {
            batch.making = batch.left.pop_front();
            if let Some(index) = batch.making {
                self.make(self.entries[index], control, scope);
            }
        }
        if batch.making.is_none() && !batch.all_made {
            batch.all_made = true;
            if batch.meets {
                meetings.after_making();
            }
        }
        if !batch.all_made || self.running.iter().any(|job| job.is_getting_ready()) {
            self.batch = Some(batch);
            return;
        }
        if batch.meets {
            meetings.meet();
        }
        if meetings.broken.is_some() {
            self.cancel(control);
        }
        self.release(control);
    }

    fn next_batch(
        &mut self,
        control: &RunControl<'_>,
        meetings: &mut RankMeetings<'_>,
    ) -> Option<StartBatch> {
        let since = self.timeline.since(self.origin, control.clock.now());
        let due = self.order.due(since);
        if due.is_empty() {
            return None;
        }
        let meets = meetings.are_due_for(&due);
        if meets {
            meetings.before_making();
        }
        Some(StartBatch {
            left: due.into(),
            making: None,
            made: None,
            stopped: false,
            meets,
            all_made: false,
        })
    }

    /// Has a job made ready on another thread, which says when it is.
    fn make<'scope>(
        &self,
        entry: Entry<'a>,
        control: &RunControl<'_>,
        scope: &'scope Scope<'scope, 'a>,
    ) {
        let making = Preparation {
            runner: runner_of(self.runners, entry.job),
            entry,
            directory: self.directory,
            signals: Arc::clone(&control.signals),
            events: self.events.0.clone(),
        };
        let named = Builder::new().name("weir-prepare".to_owned());
        if let Err(error) = named.spawn_scoped(scope, move || making.run()) {
            let message = format!("a thread could not be started: {error}");
            let failed = Err(failure("engine", error.raw_os_error(), message));
            let _ = self.events.0.send(Event::Made(failed));
        }
    }

    /// A job was made ready; notes what came of it for the next round.
    pub(super) fn set_prepared_job(&mut self, made: Result<PreparedJob, Failure>) {
        if let Some(batch) = &mut self.batch {
            batch.made = Some(made);
        }
    }

    /// Starts the workers of a job that was made ready; they get ready themselves.
    fn begin(
        &mut self,
        entry: Entry<'a>,
        made: Result<PreparedJob, Failure>,
        stopped: bool,
        control: &RunControl<'_>,
        disks: &mut Disks,
    ) {
        match made {
            // It was given up for the signal: this job counts as not started.
            Err(_) if control.signals.interrupted() => self.cancel(control),
            Err(failure) => {
                self.check_at = None;
                self.order.ended(entry.index as usize);
                self.ended.push(EndedJob::failed(entry.index, failure));
                self.stop_jobs_after(entry, true, control);
            }
            Ok(PreparedJob::Ranks(prepared)) => {
                let events = self.events.0.clone();
                let mut job = RunningRanks::new(entry, prepared, control, events);
                if stopped || self.cancelled {
                    job.stop(control.clock.now(), State::Stopped, 0);
                }
                self.ranks.push(job);
            }
            Ok(PreparedJob::Workers(prepared)) => {
                if control.calibrate {
                    let (index, is_inline) = (entry.index as usize, prepared.is_inline());
                    let costs = &mut self.loop_costs;
                    costs.measure(index, entry.job, is_inline, &control.clock);
                }
                if entry.job.load().recording.disk_counters {
                    disks.add(&prepared.disks());
                }
                let setup = JobSetup {
                    entry,
                    prepared,
                    clock: control.clock,
                    scale: self.timeline.shared_scale(),
                    events: self.events.0.clone(),
                    directory: Arc::from(self.directory),
                    flow: self.flows.of(entry.job),
                    failure_limit: self.failure_counts.limit_of(entry.group, entry.job),
                    phase: None,
                };
                let mut job = RunningJob::spawn(setup, &mut self.log_files);
                if stopped || self.cancelled {
                    job.stop(control.clock.now(), State::Stopped);
                }
                self.running.push(Box::new(job));
            }
        }
    }

    /// Releases the workers of the batch, all at one instant.
    fn release(&mut self, control: &RunControl<'_>) {
        // From now on there is something to sample.
        self.check_at = None;
        let release = control.clock.now();
        let since = self.timeline.since(self.origin, release);
        let unix_ms = self.started_unix_ns.saturating_add(since.0) / 1_000_000;
        for job in self.running.iter_mut().filter(|job| job.is_held()) {
            job.release(release, unix_ms);
            if let Some(bound) = job.job.load().bounds.steady {
                self.steady_groups
                    .add_job(job, bound, release, control.clock.scale());
            }
            self.first_release.get_or_insert(release);
            // Not before: reading them takes longer than everything else between two steps.
            collect::add_devices(&mut self.devices, job.prepared.devices());
        }
        for job in self.ranks.iter_mut().filter(|job| job.is_held()) {
            let zero = *self.first_release.get_or_insert(release);
            job.release(release, zero, &control.ranks);
        }
    }

    /// Ends those jobs of the batch, of these groups, that do not run yet.
    pub(super) fn stop_batch(&mut self, stops: impl Fn(usize) -> bool) {
        let Some(batch) = &mut self.batch else {
            return;
        };
        let group = |index: usize| self.entries[index].group;
        batch.stopped |= batch.making.is_some_and(|index| stops(group(index)));
        let left = std::mem::take(&mut batch.left).into_iter();
        let (ended, left): (VecDeque<_>, _) = left.partition(|index| stops(group(*index)));
        batch.left = left;
        for index in ended {
            self.order.ended(index);
            self.ended.push(EndedJob::not_started(index));
        }
    }
}
