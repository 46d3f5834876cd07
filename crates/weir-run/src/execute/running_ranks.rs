//! A job that all ranks do together, as the run of one rank sees it.
//!
//! In: a [`RankJob`] and where ranks do their part. Out: how far it has come, and in the end its
//! outcome. The part runs on the thread that entered the world; this one only looks. Not here: what
//! the part is.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_schema::{ByKind, Job, PhaseResult, State};
use weir_stats::Histogram;
use weir_sys::clock::{Clock, Scale, Tick};
use weir_units::{Bytes, Nanos};
use weir_world::{RankHost, World};

use crate::execute::observe::{LiveJob, LiveState};
use crate::execute::phases::PhaseHost;
use crate::execute::thread::Event;
use crate::execute::{Entry, RunControl, Signals};
use crate::runner::{RankControl, RankJob, RankOutcome, RankPosition, RankProgress, failure};

/// Conversations of the world that are none of a job's.
const FIRST_LANE: usize = 4;
/// Lanes of jobs; one that comes so many jobs later is far from it.
const LANES: usize = 250;

/// A job of all ranks that runs.
pub(super) struct RunningRanks {
    group: usize,
    index: usize,
    job: Arc<Job>,
    prepared: Arc<dyn RankJob>,
    clock: Clock,
    scale: Scale,
    host: PhaseHost,
    events: Sender<Event>,
    signals: Arc<Signals>,
    progress: Arc<RankProgress>,
    release: Option<Tick>,
    /// State that the job will end with when it was asked to end, and the time of that request.
    ending: Option<(State, Tick)>,
    outcome: Option<RankOutcome>,
}

/// Such a job that has ended.
pub(super) struct EndedRanks {
    pub(super) outcome: RankOutcome,
    pub(super) phases: Vec<PhaseResult>,
    pub(super) end: Tick,
}

impl RunningRanks {
    pub(super) fn new(
        entry: Entry<'_>,
        prepared: Arc<dyn RankJob>,
        control: &RunControl<'_>,
        events: Sender<Event>,
    ) -> Self {
        let (job, clock) = (Arc::new(entry.job.clone()), control.clock);
        let host = PhaseHost {
            job: Arc::clone(&job),
            index: entry.index,
            first_worker: entry.first_worker,
            seed: entry.seed,
            run_id: entry.run_id,
            directory: Arc::from(control.directory),
            log_format: control.log_format,
            grace: control.grace,
            zero: clock.now(),
            board: Arc::default(),
        };
        Self {
            group: entry.group,
            index: entry.index as usize,
            job,
            host,
            prepared,
            clock,
            scale: clock.scale(),
            events,
            signals: Arc::default(),
            progress: Arc::default(),
            release: None,
            ending: None,
            outcome: None,
        }
    }

    pub(super) fn group(&self) -> usize {
        self.group
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// It is neither released nor asked to end.
    pub(super) fn is_held(&self) -> bool {
        self.release.is_none() && self.ending.is_none()
    }

    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some() || (self.release.is_none() && self.ending.is_some())
    }

    /// Has all ranks that are here begin; times of the run count from `zero`.
    pub(super) fn release(&mut self, release: Tick, zero: Tick, host: &RankHost) {
        if self.ending.is_some() {
            return;
        }
        self.release = Some(release);
        self.host.zero = zero;
        let lane = FIRST_LANE + self.index % LANES;
        let lane = u8::try_from(lane).unwrap_or(u8::MAX);
        let (index, events) = (self.index, self.events.clone());
        let unable = move |error: weir_world::WorldError| {
            let failure = failure("rank", None, error.to_string());
            let outcome = RankOutcome {
                failure: Some(failure),
                ..RankOutcome::default()
            };
            send(&events, index, outcome);
        };
        host.start(lane, Arc::new(self.work(host)), unable);
    }

    /// The part of each rank that is here; the first of them answers.
    fn work(&self, host: &RankHost) -> impl Fn(&dyn World) + Send + Sync + use<> {
        let (prepared, clock) = (Arc::clone(&self.prepared), self.clock);
        let (signals, progress) = (Arc::clone(&self.signals), Arc::clone(&self.progress));
        let (index, host, phases) = (self.index, host.clone(), self.host.clone());
        // Shared by ranks that are threads; only one of them answers.
        let events = Mutex::new(self.events.clone());
        move |world| {
            let sender = events
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .clone();
            let abandon = |outcome| {
                host.abandon();
                send(&sender, index, outcome);
                host.await_exit_code()
            };
            let outcome = prepared.work(&RankControl {
                world,
                clock: &clock,
                signals: &signals,
                progress: &progress,
                abandon: &abandon,
                phases: &phases,
            });
            if world.rank() == 0 || host.world(0).is_some() {
                send(&sender, index, outcome);
            }
        }
    }

    /// Asks the ranks that are here to end, as a signal of this number does; 0 is none's.
    pub(super) fn stop(&mut self, now: Tick, state: State, signal: i32) {
        if self.ending.is_none() {
            self.ending = Some((state, now));
            self.signals.hear(signal);
        }
    }

    /// Takes what came of it. What ends it as well is known then to the run: a signal to another
    /// rank.
    pub(super) fn set_outcome(&mut self, outcome: RankOutcome, run: &Signals) {
        if self.signals.interrupted() && self.ending.is_none() {
            run.hear(self.signals.number.load(Relaxed));
        }
        self.outcome.get_or_insert(outcome);
    }

    /// Leaves it behind when it does not end although it was asked to.
    pub(super) fn abandon_if_hung(&mut self, now: Tick, grace: Duration) {
        let Some((_, since)) = self.ending.filter(|_| self.release.is_some()) else {
            return;
        };
        let waited = Duration::from_nanos(self.scale.to_nanos(now.since(since)));
        if waited > grace && self.outcome.is_none() {
            let seconds = grace.as_secs();
            let message =
                format!("it was asked to end and has not ended within {seconds} s: left behind");
            self.outcome = Some(RankOutcome {
                failure: Some(failure("hung", None, message)),
                ..RankOutcome::default()
            });
        }
    }

    /// Ends the job: its index, state, release and the outcome of its ranks.
    pub(super) fn finish(self, now: Tick) -> (usize, State, Option<Tick>, EndedRanks) {
        let outcome = self.outcome.unwrap_or_default();
        let state = match (&outcome.failure, self.ending) {
            (Some(failure), _) if failure.cause == "hung" => State::Hung,
            (Some(_), _) => State::Failed,
            // What ended it may have come when all was done.
            (None, _) if outcome.is_whole => State::Done,
            (None, Some((state, _))) => state,
            (None, None) => State::Stopped,
        };
        let ended = EndedRanks {
            outcome,
            phases: self.host.board.phases(),
            end: now,
        };
        (self.index, state, self.release, ended)
    }

    /// View of the job.
    pub(super) fn view(&self, now: Tick) -> LiveJob {
        let position = self.progress.get();
        let elapsed = self
            .release
            .map_or(0, |r| self.scale.to_nanos(now.since(r)));
        if let Some(phase) = self.host.board.view() {
            return LiveJob {
                name: self.job.name.clone(),
                index: self.index,
                elapsed_ns: Nanos(elapsed),
                ranks: Some(RankPosition {
                    fraction: phase.fraction,
                    ..position
                }),
                ..phase
            };
        }
        LiveJob {
            name: self.job.name.clone(),
            index: self.index,
            workers: 0,
            gone: 0,
            failed: 0,
            released: self.release.is_some(),
            state: match self.ending {
                Some((state, _)) => LiveState::Ending(state),
                None => LiveState::Running,
            },
            elapsed_ns: Nanos(elapsed),
            fraction: position.fraction,
            operations: 0,
            bytes: Bytes(0),
            by_kind: ByKind::new(),
            errors: 0,
            in_flight: 0,
            latency: Histogram::new(),
            ranks: Some(position),
        }
    }
}

fn send(events: &Sender<Event>, index: usize, outcome: RankOutcome) {
    // A run that has left the job behind does not listen any more.
    let _ = events.send(Event::RanksEnded(index, Box::new(outcome)));
}
