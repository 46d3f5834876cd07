//! A job that runs: its threads, how they are ended, and what they left.
//!
//! Everything a thread touches is shared with the run by reference count, so that a worker that
//! never comes back from the kernel can be left behind with its numbers kept.

mod view;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use weir_schema::{CpuUse, Failure, Job, State};
use weir_sys::clock::{Clock, SharedScale, Tick};
use weir_units::Nanos;

use crate::execute::collect::JobSnapshot;
use crate::execute::judge::{FailedTarget, judge};
use crate::execute::minimum::Minimum;
use crate::execute::phases::PhaseShare;
use crate::execute::record::JobRecorder;
use crate::execute::running_ranks::{EndedRanks, RunningRanks};
use crate::execute::sampler::{JobSampler, Sampled};
use crate::execute::search::Search;
use crate::execute::thread::{Event, Thread};
use crate::execute::{Entry, interrupt_thread};
use crate::findings::FailureLimit;
use crate::flow::SharedFlow;
use crate::gate::Gate;
use crate::live::WorkerLive;
use crate::log::{LogFiles, LogOrigin, LogsWritten};
use crate::runner::Prepared;

/// Parts that a job is started with.
pub(super) struct JobSetup<'a> {
    pub(super) entry: Entry<'a>,
    pub(super) prepared: Arc<dyn Prepared>,
    pub(super) clock: Clock,
    pub(super) scale: Arc<SharedScale>,
    pub(super) events: Sender<Event>,
    pub(super) directory: Arc<Path>,
    pub(super) flow: Option<Arc<SharedFlow>>,
    pub(super) failure_limit: Option<FailureLimit>,
    /// Shared by the workers of a phase.
    pub(super) phase: Option<Arc<PhaseShare>>,
}

/// A worker as the run sees it.
pub(super) struct Worker {
    pub(super) number: u32,
    pub(super) clone: u32,
    pub(super) live: Arc<WorkerLive>,
    pub(super) thread_id: Arc<AtomicU32>,
    pub(super) stop: Arc<AtomicU32>,
    /// State that it will end with when it alone was asked to end, and the time of that request.
    pub(super) stopped: Option<(State, Tick)>,
    pub(super) ready: bool,
    pub(super) ended: bool,
    /// Time at which the run learned that it had ended or was lost.
    pub(super) gone: Option<Tick>,
    pub(super) state: State,
    pub(super) failure: Option<Failure>,
    pub(super) cpu: CpuUse,
    /// Operations that had come back at the last look while it was waited for, and when the first
    /// look was that saw so many.
    pub(super) came_back: (u64, Tick),
    /// For the depth that keeps a latency.
    pub(super) search: Option<Search>,
}

/// A job that runs.
pub(super) struct RunningJob {
    group: usize,
    index: usize,
    workers_of_run: u32,
    pub(super) job: Arc<Job>,
    pub(super) prepared: Arc<dyn Prepared>,
    clock: Clock,
    scale: Arc<SharedScale>,
    gate: Arc<Gate>,
    workers: Vec<Worker>,
    release: Option<Tick>,
    sampler: Option<JobSampler>,
    minimum: Option<Minimum>,
    /// State that the job will end with when it was asked to end, and the time of that request.
    ending: Option<(State, Tick)>,
    record: JobRecorder,
    failure: Option<Failure>,
}

/// A job that has ended.
pub(super) struct EndedJob {
    pub(super) index: usize,
    pub(super) state: State,
    pub(super) failure: Option<Failure>,
    pub(super) release: Option<Tick>,
    pub(super) workers: Vec<Worker>,
    pub(super) sampled: Option<Sampled>,
    /// Its logs, and what spoils them.
    pub(super) written: LogsWritten,
    pub(super) is_inline: bool,
    pub(super) prepared: Option<Arc<dyn Prepared>>,
    /// Outcome of the ranks, where all of them ran the job together.
    pub(super) ranks: Option<EndedRanks>,
}

impl EndedJob {
    /// A job that all ranks did together.
    pub(super) fn of_ranks(job: RunningRanks, now: Tick) -> Self {
        let (index, state, release, ranks) = job.finish(now);
        Self {
            state,
            failure: ranks.outcome.failure.clone(),
            release,
            ranks: Some(ranks),
            ..Self::not_started(index)
        }
    }

    pub(super) fn failed(index: u32, failure: Failure) -> Self {
        Self {
            state: State::Failed,
            failure: Some(failure),
            ..Self::not_started(index as usize)
        }
    }

    /// A job that was ended before anything of it began.
    pub(super) fn not_started(index: usize) -> Self {
        Self {
            index,
            state: State::NotStarted,
            failure: None,
            release: None,
            workers: Vec::new(),
            written: LogsWritten::default(),
            sampled: None,
            is_inline: false,
            prepared: None,
            ranks: None,
        }
    }

    pub(super) fn seen(&self) -> JobSnapshot<'_> {
        JobSnapshot {
            index: self.index,
            state: self.state,
            failure: self.failure.as_ref(),
            release: self.release,
            workers: &self.workers,
            sampled: self.sampled.as_ref(),
            is_inline: self.is_inline,
            prepared: self.prepared.as_deref(),
            logs: &self.written.paths,
            now: None,
            ranks: self.ranks.as_ref(),
        }
    }
}

impl RunningJob {
    /// Starts the threads; they get ready and wait at the gate.
    pub(super) fn spawn(setup: JobSetup<'_>, files: &mut LogFiles) -> Self {
        let entry = setup.entry;
        let job = Arc::new(entry.job.clone());
        let gate = Arc::new(Gate::default());
        let measured = setup.prepared.measured(setup.entry.job);
        let (record, failure) = match JobRecorder::open(&setup, files) {
            Ok(record) => (record, None),
            Err(failure) => (JobRecorder::default(), Some(failure)),
        };
        let clones = if setup.prepared.is_done() || failure.is_some() {
            0
        } else {
            job.clones
        };
        let workers = (0..clones).map(|clone| {
            let live = WorkerLive::new(job.workload.kinds(), measured);
            let live = match setup.failure_limit.clone() {
                Some(limit) => live.limited(limit),
                None => live,
            };
            let traced = record.is_by_operation();
            let room = job.load().recording.waiting_operations;
            let live = Arc::new(if traced { live.traced(room) } else { live });
            let thread = Thread {
                job: Arc::clone(&job),
                prepared: Arc::clone(&setup.prepared),
                gate: Arc::clone(&gate),
                flow: setup.flow.clone(),
                live: Arc::clone(&live),
                stop: Arc::default(),
                id: Arc::default(),
                clone,
                number: entry.first_worker + clone,
                seed: entry.seed,
                clock: setup.clock,
                scale: Arc::clone(&setup.scale),
                events: setup.events.clone(),
                directory: Arc::clone(&setup.directory),
                phase: setup.phase.clone(),
            };
            thread.spawn()
        });
        Self {
            group: entry.group,
            index: entry.index as usize,
            workers_of_run: entry.workers_of_run(),
            workers: workers.collect(),
            job,
            prepared: setup.prepared,
            clock: setup.clock,
            scale: setup.scale,
            gate,
            release: None,
            sampler: None,
            minimum: None,
            ending: None,
            record,
            failure,
        }
    }

    pub(super) fn group(&self) -> usize {
        self.group
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn workers(&self) -> &[Worker] {
        &self.workers
    }

    pub(super) fn workers_mut(&mut self) -> &mut [Worker] {
        &mut self.workers
    }

    pub(super) fn has_worker(&self, number: u32) -> bool {
        self.workers.iter().any(|w| w.number == number)
    }

    /// It is neither released nor asked to end.
    pub(super) fn is_held(&self) -> bool {
        self.release.is_none() && self.ending.is_none()
    }

    /// It cannot be released yet.
    pub(super) fn is_getting_ready(&self) -> bool {
        self.is_held() && self.workers.iter().any(|w| !w.ready && !w.ended)
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Its end can be told; one without workers is released like any other before.
    pub(super) fn is_over(&self) -> bool {
        !self.is_held() && self.workers.iter().all(|w| w.ended)
    }

    pub(super) fn next_tick(&self) -> Option<Tick> {
        let sample = self.sampler.as_ref().and_then(JobSampler::next_tick);
        sample.into_iter().chain(self.record.next_tick()).min()
    }

    /// Lets the workers go, at an instant that is so many milliseconds after 1970.
    pub(super) fn release(&mut self, release: Tick, unix_ms: u64) {
        if self.ending.is_some() {
            return;
        }
        let scale = self.scale.load();
        let begin = release.after(scale.to_ticks(self.job.load().bounds.ramp_ns));
        if let Some(target) = self.job.load().pacing.latency_target {
            let limit = self.job.load().depth.queue_depth.0;
            for worker in &mut self.workers {
                worker.search = Some(Search::new(target, limit, begin, scale));
                worker.live.depth_limit.store(1, Ordering::Relaxed);
            }
        }
        let lives = self.lives();
        let bounds = &self.job.load().bounds;
        let origin = LogOrigin {
            begin,
            bound: bounds.runtime_ns.map(|t| begin.after(scale.to_ticks(t))),
            ramps: bounds.ramp_ns.0 > 0,
            scale,
            unix_ms: unix_ms + bounds.ramp_ns.0 / 1_000_000,
        };
        self.record.begin(lives.clone(), release, origin);
        let sampler = JobSampler::new(&self.job, self.workers_of_run, lives, (begin, scale));
        self.sampler = Some(sampler);
        self.minimum = self.job.load().minimum_rate.clone().map(|m| {
            Minimum::new(
                m,
                (self.job.workload.kinds(), self.prepared.measured(&self.job)),
                self.workers.len(),
                (release, scale),
            )
        });
        self.release = Some(release);
        self.gate.open(release);
    }

    /// Asks every worker to end.
    pub(super) fn stop(&mut self, now: Tick, state: State) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some((state, now));
        if self.release.is_none() {
            self.gate.cancel();
        }
        for worker in self.workers.iter().filter(|w| !w.ended) {
            worker.stop.store(1, Ordering::Relaxed);
        }
    }

    /// Handles what the worker of this number reports.
    pub(super) fn handle(&mut self, number: u32, event: Event) {
        let Some(worker) = self.workers.iter_mut().find(|w| w.number == number) else {
            return;
        };
        match event {
            Event::Ready(_) => worker.ready = true,
            Event::Ended(_, outcome) if !worker.ended => {
                worker.ended = true;
                worker.gone = Some(self.clock.now());
                worker.cpu = outcome.cpu.unwrap_or_default();
                let asked = worker.stopped.or(self.ending).map(|e| e.0);
                let (state, failure) = judge(outcome.stop, asked, |at| FailedTarget {
                    name: self.prepared.target_name(worker.clone, at.acts_on.number),
                    kind: worker.live.kind_name(at.kind),
                    remark: worker
                        .is_untouched_by(at.kind)
                        .then(|| self.prepared.explain(worker.clone, at))
                        .flatten(),
                    action: self.prepared.action(),
                });
                worker.state = state;
                worker.failure = worker.failure.take().or(failure);
                if worker.failure.is_some() {
                    worker.state = State::Failed;
                }
            }
            Event::Ended(..)
            | Event::Announced(_)
            | Event::Made(_)
            | Event::Waits
            | Event::RanksEnded(..) => {}
        }
    }

    /// The process was stopped since the last check.
    pub(super) fn was_stopped(&mut self) {
        self.sampler.iter_mut().for_each(JobSampler::was_stopped);
    }

    /// Samples; ends what is too slow, nudges what is asked to end, leaves behind what hangs.
    pub(super) fn check(&mut self, now: Tick, grace: Duration, at_once: bool) {
        if let Some(sampler) = &mut self.sampler {
            // Not the instant at which all jobs are looked at: those before this one took time.
            sampler.sample(self.clock.now());
        }
        self.record.write_due(now);
        self.search(now);
        self.check_minimum(now);
        let asked = self.ending.map(|e| e.1);
        let time_up = self.time_up(now);
        let allowed = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX);
        for worker in self.workers.iter_mut().filter(|w| !w.ended) {
            let alone = worker.stopped.map(|s| s.1);
            // The time of a worker that still waits for a peer has not begun.
            let time_up = time_up.filter(|_| worker.live.started.get() > 0);
            let Some(since) = asked.or(time_up).into_iter().chain(alone).min() else {
                continue;
            };
            worker.live.findings.set_end_due();
            interrupt_thread::interrupt(worker.thread_id.load(Ordering::Relaxed));
            let silent = worker.silent_since(since, now);
            let waited = self.scale.load().to_nanos(now.since(silent));
            if at_once || (waited > allowed && worker.is_silent_for_long(waited)) {
                worker.gone = Some(now);
                worker.abandon(self.prepared.as_ref(), waited, at_once);
            }
        }
    }

    /// Queues of operations fill up fast; they are emptied at every check.
    pub(super) fn is_traced(&self) -> bool {
        self.record.is_by_operation()
    }

    /// Time at which the job's time was up, if it is.
    fn time_up(&self, now: Tick) -> Option<Tick> {
        let bounds = &self.job.load().bounds;
        let span = Nanos(bounds.runtime_ns?.0.saturating_add(bounds.ramp_ns.0));
        let end = self.release?.after(self.scale.load().to_ticks(span));
        (now >= end).then_some(end)
    }

    /// Goes on with the search for a depth; the sampler starts anew with the last window.
    fn search(&mut self, now: Tick) {
        let mut renewed = None;
        for worker in self.workers.iter_mut().filter(|w| !w.ended) {
            renewed = renewed.or(worker.search(now));
        }
        if let Some(begin) = renewed {
            let renew = |old: JobSampler| old.anew(&self.job, self.workers_of_run, begin);
            self.sampler = self.sampler.take().map(renew);
        }
    }

    fn lives(&self) -> Vec<Arc<WorkerLive>> {
        self.workers.iter().map(|w| Arc::clone(&w.live)).collect()
    }

    fn check_minimum(&mut self, now: Tick) {
        let Some(minimum) = &mut self.minimum else {
            return;
        };
        for (index, worker) in self.workers.iter_mut().enumerate() {
            if worker.ended || worker.failure.is_some() {
                continue;
            }
            if let Some(failure) = minimum.check(index, &worker.live, now) {
                worker.failure = Some(worker.placed(failure, self.prepared.as_ref()));
                worker.stop(now, State::Failed);
            }
        }
    }

    /// The job as far as it has come.
    pub(super) fn seen(&self, now: Tick) -> JobSnapshot<'_> {
        JobSnapshot {
            index: self.index,
            state: State::Running,
            failure: self.failure.as_ref(),
            release: self.release,
            workers: &self.workers,
            sampled: self.sampler.as_ref().map(JobSampler::so_far),
            is_inline: self.prepared.is_inline(),
            prepared: Some(self.prepared.as_ref()),
            logs: &[],
            now: Some(now),
            ranks: None,
        }
    }

    /// The end: what is left of the job.
    pub(super) fn finish(mut self, now: Tick) -> EndedJob {
        let mut first = self.first_failure();
        let written = self.record.finish(now, &*self.prepared);
        let sampled = self.sampler.take().map(|s| s.finish(now));
        let hung = self.workers.iter().any(|w| w.state == State::Hung);
        if !hung && let Err(error) = self.prepared.finish() {
            first.get_or_insert(error);
        }
        let state = match (&first, hung) {
            (_, true) => State::Hung,
            (Some(_), false) => State::Failed,
            (None, false) if self.workers.iter().any(|w| w.state == State::Stopped) => {
                State::Stopped
            }
            (None, false) => State::Done,
        };
        EndedJob {
            index: self.index,
            state,
            failure: first,
            release: self.release,
            is_inline: self.prepared.is_inline(),
            workers: self.workers,
            written,
            sampled,
            prepared: Some(self.prepared),
            ranks: None,
        }
    }
}

impl Worker {
    /// No operation of this kind has come to a good end yet.
    fn is_untouched_by(&self, kind: usize) -> bool {
        let live = self.live.kinds.get(kind);
        live.is_none_or(|k| k.completed.get() == 0)
    }

    /// Asks it alone to end.
    pub(super) fn stop(&mut self, now: Tick, state: State) {
        if !self.ended && self.stopped.is_none() {
            self.stopped = Some((state, now));
            self.stop.store(1, Ordering::Relaxed);
        }
    }
}
