//! A worker's thread: everything it owns, so that it can be left behind, and its way from start to
//! the event that says how it ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use weir_schema::{Announcement, CpuUse, Failure, Job, State};
use weir_sys::clock::{Clock, SharedScale, Tick};

use crate::execute::command;
use crate::execute::phases::PhaseShare;
use crate::execute::running::Worker;
use crate::flow::SharedFlow;
use crate::gate::Gate;
use crate::live::WorkerLive;
use crate::runner::{Prepared, PreparedJob, RankOutcome, failure};
use crate::worker::LoopStop;
use crate::worker_context::WorkerContext;

/// Events that other threads send to the run.
pub(crate) enum Event {
    /// This worker waits at the gate.
    Ready(u32),
    /// This worker is done.
    Ended(u32, Box<ThreadEnd>),
    /// Announcement of a thread that makes a job ready.
    Announced(Announcement),
    /// The job that was to be made ready is, or cannot be.
    Made(Result<PreparedJob, Failure>),
    /// A worker of a phase waits for those of other ranks.
    Waits,
    /// The part of the ranks that are here is done in the job of this number.
    RanksEnded(usize, Box<RankOutcome>),
}

/// End of a worker's thread.
#[derive(Debug)]
pub(crate) struct ThreadEnd {
    pub(super) stop: Result<LoopStop, Failure>,
    pub(super) cpu: Option<CpuUse>,
}

/// Everything a worker's thread owns.
pub(super) struct Thread {
    pub(super) job: Arc<Job>,
    pub(super) prepared: Arc<dyn Prepared>,
    pub(super) gate: Arc<Gate>,
    pub(super) flow: Option<Arc<SharedFlow>>,
    pub(super) live: Arc<WorkerLive>,
    pub(super) stop: Arc<AtomicU32>,
    pub(super) id: Arc<AtomicU32>,
    pub(super) clone: u32,
    pub(super) number: u32,
    pub(super) seed: u64,
    pub(super) clock: Clock,
    pub(super) scale: Arc<SharedScale>,
    pub(super) events: Sender<Event>,
    pub(super) directory: Arc<Path>,
    pub(super) phase: Option<Arc<PhaseShare>>,
}

impl Thread {
    /// Starts it; it gets ready and waits at the gate.
    pub(super) fn spawn(self) -> Worker {
        let mut worker = Worker {
            number: self.number,
            clone: self.clone,
            live: Arc::clone(&self.live),
            thread_id: Arc::clone(&self.id),
            stop: Arc::clone(&self.stop),
            stopped: None,
            ready: false,
            ended: false,
            gone: None,
            state: State::NotStarted,
            failure: None,
            cpu: CpuUse::default(),
            came_back: (0, Tick(0)),
            search: None,
        };
        let named = thread::Builder::new().name(format!("weir-{}", self.number));
        if let Err(error) = named.spawn(move || self.run()) {
            worker.ended = true;
            worker.state = State::Failed;
            let message = format!("a thread could not be started: {error}");
            worker.failure = Some(failure("engine", error.raw_os_error(), message));
        }
        worker
    }

    fn run(self) {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        self.id.store(id.unsigned_abs(), Ordering::Relaxed);
        let mut worker = WorkerContext {
            job: &self.job,
            clone: self.clone,
            number: self.number,
            seed: self.seed,
            clock: self.clock,
            scale: Arc::clone(&self.scale),
            stop: &self.stop,
            live: &self.live,
            flow: self.flow.clone(),
            recorded_starts: None,
            gate: &self.gate,
            events: self.events.clone(),
            cpu: None,
            pass_began: None,
            released: None,
            phase: self.phase.as_deref(),
        };
        let start = &self.job.start;
        let work = AssertUnwindSafe(|| {
            if let Some(before) = &start.before {
                command::run(before, &self.directory)?;
            }
            let stop = self.prepared.work(&mut worker)?;
            if let Some(after) = &start.after {
                command::run(after, &self.directory)?;
            }
            Ok(stop)
        });
        let stop = catch_unwind(work).unwrap_or_else(|panic| {
            let text = panic_text(panic.as_ref());
            Err(failure(
                "panic",
                None,
                format!("the worker panicked: {text}"),
            ))
        });
        let cpu = worker.cpu;
        // Nobody listens any more if this worker was left behind.
        let _ = self
            .events
            .send(Event::Ended(self.number, Box::new(ThreadEnd { stop, cpu })));
    }
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no text".into())
}
