//! Jobs that are a series of phases: every rank does the same phases in the same order, each between
//! barriers of the world, each with its own load and its own workers.
//!
//! In: [`Phase`]s, from a [`RankJob`](crate::RankJob) on the thread that entered the world. Out: for each what
//! a job of its own would have measured on this rank, and when the rank was in it; all of them stand in
//! the result of the job. Workers, recorders, samples, bounds and what hangs are those of every job.
//! Not here: what the operations are, and how ranks become one result.
//!
//! A runner with two phases, whose workload has a [`Load`]:
//!
//! ```ignore
//! impl RankJob for StoreJob {
//!     fn work(&self, control: &RankControl<'_>) -> RankOutcome {
//!         let store = match control.all_have(Store::open(&self.path)) {
//!             Ok(store) => Arc::new(store),
//!             Err(end) => return end.into(),
//!         };
//!         let load = || self.work.load.clone();
//!         let update = Arc::new(Updates { store: Arc::clone(&store), load: load() });
//!         let list = InlineWork(move |worker: &mut WorkerContext<'_>| {
//!             worker.walk(LIST, || store.list().map(|keys| (keys, 0)))
//!         });
//!         let phases = [Phase::new("update", load(), update), Phase::new("list", load(), Arc::new(list))];
//!         control.series(phases)
//!     }
//! }
//! ```

mod run;
mod share;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weir_schema::{Failure, Job, JobResult, Load, LogFormat, PhaseResult};
use weir_sys::clock::Tick;
use weir_world::WorldError;

use crate::execute::observe::LiveJob;
use crate::execute::running::RunningJob;
use crate::live::lock;
use crate::runner::{Prepared, RankControl, RankOutcome, failure};
use crate::worker::LoopStop;
use crate::worker_context::WorkerContext;

use run::PhaseRun;
pub(crate) use share::PhaseShare;

/// A rank that waits for others looks this often whether one is lost.
const SLICE: Duration = Duration::from_millis(50);

/// A phase of a job: on each rank workers that do the same, between two barriers.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "holds work")]
pub struct Phase {
    /// Name in results; phases of one name and repetition are compared with each other.
    pub name: String,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// Bounds, pace and recording, in place of those of the job.
    pub load: Load,
    /// Workers on each rank.
    pub workers: u32,
    /// Work of each worker.
    pub work: Arc<dyn Prepared>,
}

impl Phase {
    /// A phase of one worker a rank, done once.
    pub fn new(name: impl Into<String>, load: Load, work: Arc<dyn Prepared>) -> Self {
        Self {
            name: name.into(),
            repetition: 0,
            load,
            workers: 1,
            work,
        }
    }

    fn title(&self) -> String {
        PhaseResult::title_of(&self.name, self.repetition)
    }
}

/// Work of a worker that needs nothing but a function, such as a [walk](WorkerContext::walk).
#[derive(Clone, Copy, Debug)]
pub struct InlineWork<F>(pub F);

impl<F> Prepared for InlineWork<F>
where
    F: Fn(&mut WorkerContext<'_>) -> Result<LoopStop, Failure> + Send + Sync,
{
    fn is_inline(&self) -> bool {
        true
    }

    fn work(&self, worker: &mut WorkerContext<'_>) -> Result<LoopStop, Failure> {
        (self.0)(worker)
    }
}

/// A phase's figures on a rank, also of one that was stopped, and its end.
pub type PhaseEnd = (Option<JobResult>, Result<(), SeriesEnd>);

/// Reason that a series ends before its last phase, on all ranks.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesEnd {
    /// A signal, or another job's end.
    Stopped,
    /// Failure of this rank, or the word of the one that failed.
    Failed(Failure),
}

impl From<SeriesEnd> for RankOutcome {
    fn from(end: SeriesEnd) -> Self {
        Self {
            failure: match end {
                SeriesEnd::Stopped => None,
                SeriesEnd::Failed(failure) => Some(failure),
            },
            ..Self::default()
        }
    }
}

/// Word of a rank to the others, by how much it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Ready,
    Stopped(i32),
    Failed(String),
}

impl Word {
    fn weight(&self) -> u8 {
        match self {
            Self::Ready => 0,
            Self::Stopped(_) => 1,
            Self::Failed(_) => 2,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let rest = match self {
            Self::Ready => Vec::new(),
            Self::Stopped(signal) => signal.to_le_bytes().to_vec(),
            Self::Failed(why) => why.clone().into_bytes(),
        };
        [vec![self.weight()], rest].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        match bytes {
            [0] => Self::Ready,
            [1, signal @ ..] => Self::Stopped(signal.try_into().map_or(0, i32::from_le_bytes)),
            [2, why @ ..] => Self::Failed(String::from_utf8_lossy(why).into_owned()),
            _ => Self::Failed("it says what nobody understands".to_owned()),
        }
    }
}

/// Results so far of the phases of a job, for the run's thread to see.
#[derive(Default)]
pub(super) struct PhaseBoard {
    /// A job result that holds them alone.
    done: Mutex<Option<JobResult>>,
    /// View of the present phase, of the first rank that is here.
    view: Mutex<Option<LiveJob>>,
    /// Somebody wants to see it: making a view at every look would cost the workers time.
    is_looked_at: AtomicBool,
}

impl PhaseBoard {
    /// The phases that are done.
    pub(super) fn phases(&self) -> Vec<PhaseResult> {
        let done = lock(&self.done);
        done.as_ref()
            .map(|job| job.phases.clone())
            .unwrap_or_default()
    }

    /// View of the present phase as it was shortly after the last call.
    pub(super) fn view(&self) -> Option<LiveJob> {
        self.is_looked_at.store(true, Ordering::Relaxed);
        lock(&self.view).clone()
    }

    fn show(&self, job: &RunningJob, now: Tick) {
        if self.is_looked_at.swap(false, Ordering::Relaxed) {
            *lock(&self.view) = Some(job.view(now));
        }
    }
}

/// Parts of the run that phases of a job need.
#[derive(Clone)]
pub(crate) struct PhaseHost {
    pub(super) job: Arc<Job>,
    pub(super) index: u32,
    pub(super) first_worker: u32,
    pub(super) seed: u64,
    pub(super) run_id: u16,
    pub(super) directory: Arc<Path>,
    pub(super) log_format: LogFormat,
    pub(super) grace: Duration,
    /// The zero of the run's times.
    pub(super) zero: Tick,
    pub(super) board: Arc<PhaseBoard>,
}

impl PhaseHost {
    /// Time that a worker may take to end: it is left behind, with its place, before the whole job is.
    fn worker_grace(&self) -> Duration {
        self.grace / 2
    }
}

impl RankControl<'_> {
    /// Does these phases one after the other, on all ranks. What is not whole says why.
    pub fn series(&self, phases: impl IntoIterator<Item = Phase>) -> RankOutcome {
        for phase in phases {
            if let (_, Err(end)) = self.phase(&phase) {
                return end.into();
            }
        }
        RankOutcome {
            is_whole: true,
            ..RankOutcome::default()
        }
    }

    /// Does a phase with all other ranks. Where it came to no good end on some rank, none goes on.
    pub fn phase(&self, phase: &Phase) -> PhaseEnd {
        match PhaseRun::start(self, phase) {
            Ok((run, workers)) => run.run(workers),
            Err(end) => (None, Err(end)),
        }
    }

    /// Has all ranks come here with what they need to go on: all have it, or none goes on.
    ///
    /// # Errors
    /// Its own failure, the word of a rank that failed, or a signal.
    pub fn all_have<T>(&self, mine: Result<T, Failure>) -> Result<T, SeriesEnd> {
        let word = match &mine {
            Err(failure) => Word::Failed(failure.message.clone()),
            Ok(_) if self.signals.interrupted() => self.stopped(),
            Ok(_) => Word::Ready,
        };
        let agreed = self.agree(word);
        // Its own failure says more than what comes back of it.
        let mine = mine.map_err(SeriesEnd::Failed)?;
        agreed.map(|()| mine)
    }

    fn stopped(&self) -> Word {
        Word::Stopped(self.signals.number.load(Ordering::Relaxed))
    }

    /// Says this to all ranks and hears from all: a barrier after which every rank knows the same.
    fn agree(&self, word: Word) -> Result<(), SeriesEnd> {
        match self.exchange(word) {
            Ok(Word::Ready) => Ok(()),
            Ok(Word::Stopped(signal)) => {
                self.signals.hear(signal);
                Err(SeriesEnd::Stopped)
            }
            Ok(Word::Failed(why)) => Err(SeriesEnd::Failed(failure("rank", None, why))),
            Err(error) => Err(SeriesEnd::Failed(failure("rank", None, error.to_string()))),
        }
    }

    /// The word that matters most, of the lowest rank that says it. Rank 0 hears all and tells all: who has lost
    /// it knows that, and who is lost cannot keep the word from the others.
    fn exchange(&self, word: Word) -> Result<Word, WorldError> {
        let soon = || Instant::now() + self.phases.grace;
        if self.world.rank() != 0 {
            self.world.send(0, &word.to_bytes(), soon())?;
            return self.hear(0).map(|bytes| Word::from_bytes(&bytes));
        }
        let named = |rank: u32, word: Word| match word {
            Word::Failed(why) if self.world.size() > 1 => {
                Word::Failed(format!("rank {rank}: {why}"))
            }
            word => word,
        };
        let mut agreed = named(0, word);
        for rank in 1..self.world.size() {
            let theirs = match self.hear(rank) {
                Ok(bytes) => named(rank, Word::from_bytes(&bytes)),
                Err(error) => Word::Failed(error.to_string()),
            };
            if theirs.weight() > agreed.weight() {
                agreed = theirs;
            }
        }
        for rank in 1..self.world.size() {
            // Whoever is gone need not hear it.
            let _ = self.world.send(rank, &agreed.to_bytes(), soon());
        }
        Ok(agreed)
    }

    /// The next word of a rank, whose phase may take longer than this one's: as long as it is there. Once all
    /// is to end it has its time of grace.
    fn hear(&self, from: u32) -> Result<Vec<u8>, WorldError> {
        let mut ends: Option<Instant> = None;
        loop {
            match self.world.receive(from, Instant::now() + SLICE) {
                Err(WorldError::Late { .. }) => {}
                heard => return heard,
            }
            if let Some(loss) = self.world.monitor().and_then(weir_world::RankMonitor::lost) {
                return Err(loss);
            }
            if self.signals.interrupted() {
                let grace = self.phases.worker_grace();
                if Instant::now() > *ends.get_or_insert_with(|| Instant::now() + grace) {
                    let seconds = grace.as_secs();
                    return Err(WorldError::Late {
                        peer: from,
                        seconds,
                    });
                }
            }
        }
    }
}
