//! One phase on one rank: its workers get ready, begin when all ranks are ready, are watched, and leave
//! a result.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use weir_schema::{Failure, Job, JobResult, PhaseResult, Plan, RankSpan, Span, State};
use weir_sys::clock::{Tick, Timeline};
use weir_units::Nanos;

use super::share::PhaseShare;
use super::{Phase, PhaseEnd, SeriesEnd, Word};
use crate::execute::running::{EndedJob, JobSetup, RunningJob};
use crate::execute::thread::Event;
use crate::execute::{Entry, collect};
use crate::live::lock;
use crate::log::LogFiles;
use crate::runner::{RankControl, RankPosition, failure};

/// Workers are looked at this often.
const LOOK: Nanos = Nanos(10_000_000);

/// A phase on one rank, from its workers' start to its result.
pub(super) struct PhaseRun<'a> {
    control: &'a RankControl<'a>,
    phase: &'a Phase,
    job: Job,
    share: Arc<PhaseShare>,
    events: Receiver<Event>,
    timeline: Timeline,
    release: Option<Tick>,
    /// End that another rank has told of in the middle of it.
    heard: Option<SeriesEnd>,
}

impl<'a> PhaseRun<'a> {
    /// Has the workers get ready.
    pub(super) fn start(
        control: &'a RankControl<'a>,
        phase: &'a Phase,
    ) -> Result<(Self, RunningJob), SeriesEnd> {
        let host = &control.phases;
        let mut job = Job::clone(&host.job);
        job.name = format!("{} {}", host.job.name, phase.title());
        job.clones = phase.workers;
        let Some(load) = job.workload.load_mut() else {
            let why = "a workload of phases has a load, which each of them has in place of its own";
            return Err(SeriesEnd::Failed(failure("plan", None, why)));
        };
        load.clone_from(&phase.load);
        let rank = control.world.rank();
        let timeline = Timeline::start(control.clock);
        let (sender, events) = mpsc::channel();
        let share = Arc::new(PhaseShare::default());
        let plan = Plan::new(&phase.name, "", vec![job.clone()]);
        let setup = JobSetup {
            entry: Entry {
                plan: &plan,
                group: 0,
                job: &job,
                index: host.index,
                first_worker: host
                    .first_worker
                    .wrapping_add(rank.wrapping_mul(phase.workers)),
                seed: host.seed,
                run_id: host.run_id,
            },
            prepared: Arc::clone(&phase.work),
            clock: *control.clock,
            scale: timeline.shared_scale(),
            events: sender,
            directory: Arc::clone(&host.directory),
            flow: None,
            failure_limit: None,
            phase: Some(Arc::clone(&share)),
        };
        let running = RunningJob::spawn(setup, &mut LogFiles::new(host.log_format));
        control.progress.set(RankPosition {
            at: Some(phase.title()),
            ..RankPosition::default()
        });
        let run = Self {
            control,
            phase,
            job,
            share,
            events,
            timeline,
            release: None,
            heard: None,
        };
        Ok((run, running))
    }

    /// Its figures, where it began, and its end.
    pub(super) fn run(mut self, mut workers: RunningJob) -> PhaseEnd {
        self.wait_while(&mut workers, RunningJob::is_getting_ready);
        let agreed = self
            .control
            .all_have(workers.first_failure().map_or(Ok(()), Err));
        let now = self.control.clock.now();
        if agreed.is_ok() {
            self.release = Some(now);
            workers.release(now, 0);
        } else {
            workers.stop(now, State::Stopped);
        }
        self.wait_while(&mut workers, |job| !job.is_over());
        *lock(&self.control.phases.board.view) = None;
        let ended = workers.finish(self.control.clock.now());
        if let Err(end) = agreed {
            return (None, Err(end));
        }
        let failed = ended.failure.clone();
        let kept = self.keep(&ended);
        let word = match (&failed, &kept, ended.state) {
            (Some(failure), ..) | (None, Err(failure), _) => Word::Failed(failure.message.clone()),
            (None, _, State::Stopped) => self.control.stopped(),
            _ => Word::Ready,
        };
        // What another rank has said in the middle of the phase all have heard.
        let heard = self.heard.take();
        let agreed = heard.map_or_else(|| self.control.agree(word), Err);
        let end = match (failed, &kept) {
            (Some(failure), _) => Err(SeriesEnd::Failed(failure)),
            (None, Err(failure)) => Err(SeriesEnd::Failed(failure.clone())),
            (None, Ok(_)) => agreed,
        };
        (kept.ok(), end)
    }

    fn rank(&self) -> u32 {
        self.control.world.rank()
    }

    /// Watches the workers as long as this is so.
    fn wait_while(&mut self, workers: &mut RunningJob, is_so: impl Fn(&RunningJob) -> bool) {
        let (control, host) = (self.control, self.control.phases);
        while is_so(workers) {
            let wait = self.time_to_wait(workers);
            let first = self.events.recv_timeout(Duration::from_nanos(wait.0));
            for event in first.into_iter().chain(self.events.try_iter()) {
                if let Event::Ready(number) | Event::Ended(number, _) = event {
                    workers.handle(number, event);
                }
            }
            self.timeline.re_anchor(control.clock);
            let now = control.clock.now();
            if control.signals.interrupted() {
                workers.stop(now, State::Stopped);
            }
            workers.check(now, host.worker_grace(), false);
            if self.rank() == 0 {
                host.board.show(workers, now);
            }
            self.meet_if_due(workers);
        }
    }

    fn time_to_wait(&self, workers: &RunningJob) -> Nanos {
        let (clock, now) = (self.control.clock, self.control.clock.now());
        let until = |tick: Tick| Nanos(clock.scale().to_nanos(tick.since(now)));
        workers.next_tick().map_or(LOOK, until).min(LOOK)
    }

    /// Meets the other ranks where all workers of this one that still work wait for that.
    fn meet_if_due(&mut self, workers: &mut RunningJob) {
        let (waiting, failed) = (self.share.waiting(), workers.first_failure());
        if waiting == 0 || (waiting < workers.at_work() && failed.is_none()) {
            return;
        }
        let met = match failed {
            // The others hear of it at the end of the phase, in place of this meeting.
            Some(failure) => Err(failure.message),
            None => self.control.all_have(Ok(())).map_err(|end| {
                let why = match &end {
                    SeriesEnd::Stopped => "the run was stopped".to_owned(),
                    SeriesEnd::Failed(failure) => failure.message.clone(),
                };
                self.heard = Some(end);
                why
            }),
        };
        if met.is_err() {
            workers.stop(self.control.clock.now(), State::Stopped);
        }
        self.share.conclude_meeting(met);
    }

    /// Puts what was measured on the board, and answers it.
    fn keep(&self, ended: &EndedJob) -> Result<JobResult, Failure> {
        let zero = self.control.phases.zero;
        let at = |tick: Tick| self.timeline.since(zero, tick);
        let result = collect::phase_result(&self.job, ended, (&self.timeline, zero));
        let release = self.release.map_or(Nanos::ZERO, at);
        let span = Span {
            start_ns: release,
            end_ns: result.span.map_or(release, |span| span.end_ns),
        };
        let rank = RankSpan {
            rank: self.rank(),
            span,
            parts: self.share.parts(at),
        };
        let phase = PhaseResult {
            name: self.phase.name.clone(),
            repetition: self.phase.repetition,
            ranks: vec![rank],
            measured: Some(Box::new(result.clone())),
        };
        let mut done = lock(&self.control.phases.board.done);
        let done = done.get_or_insert_with(|| JobResult::not_started(&self.job.name));
        let added = done.add_phase(phase);
        added.map_err(|error| failure("rank", None, error.to_string()))?;
        Ok(result)
    }
}
