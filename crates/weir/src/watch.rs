//! Lets other threads see a run while it goes on.
//!
//! In: views of the run, which it provides at every round. Out: the requested data, on the requesting
//! threads; their request that it ends. The run's thread makes data only on request, and never waits for its
//! readers. Not here: what is done with it (`web`, `live`).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_report::progress::Activity;
use weir_report::prometheus::JobNow;
use weir_run::execute::{LiveJob, LiveState, LiveView};
use weir_schema::{Job, Plan, RunResult};
use weir_units::Nanos;

use crate::measure::RunObserver;
use crate::progress::eta;

/// Time to wait for a run, which may be busy.
const PATIENCE: Duration = Duration::from_secs(2);

/// State of a run's jobs at an instant.
#[derive(Clone)]
pub(crate) struct JobsSeen {
    pub(crate) elapsed_ns: Nanos,
    pub(crate) jobs: Arc<Vec<LiveJob>>,
}

/// The result so far.
#[derive(Clone)]
pub(crate) struct ResultSeen {
    pub(crate) result: Arc<RunResult>,
    /// State of the jobs; empty once the measurement is over.
    pub(crate) now: Vec<JobNow>,
}

/// Value that the run makes when another thread asks for it.
struct Requested<T> {
    is_asked: bool,
    /// Number of times it was made.
    round: u64,
    last: Option<T>,
}

impl<T> Default for Requested<T> {
    fn default() -> Self {
        Self {
            is_asked: false,
            round: 0,
            last: None,
        }
    }
}

impl<T> Requested<T> {
    fn provide(&mut self, made: T) {
        self.last = Some(made);
        self.round += 1;
    }
}

#[derive(Default)]
struct State {
    jobs: Requested<JobsSeen>,
    result: Requested<ResultSeen>,
    /// The run should end as if its time were over.
    ends_early: bool,
    /// The run has ended and answers no more.
    is_over: bool,
    /// The result once all is measured.
    done: Option<Arc<RunResult>>,
}

/// A run as other threads see it.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<Watched>);

#[derive(Default)]
struct Watched {
    state: Mutex<State>,
    news: Condvar,
}

impl Watch {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked had not changed it in part.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// State of the jobs now, or their last one where the run does not answer.
    pub(crate) fn jobs(&self) -> Option<JobsSeen> {
        self.ask(|state| &mut state.jobs)
    }

    /// The result so far.
    pub(crate) fn result(&self) -> Option<ResultSeen> {
        let seen = self.ask(|state| &mut state.result);
        let whole = |result| ResultSeen {
            result,
            now: Vec::new(),
        };
        self.done().map(whole).or(seen)
    }

    /// The result, once all is measured.
    pub(crate) fn done(&self) -> Option<Arc<RunResult>> {
        self.state().done.clone()
    }

    fn ask<T: Clone>(&self, of: fn(&mut State) -> &mut Requested<T>) -> Option<T> {
        let mut state = self.state();
        of(&mut state).is_asked = true;
        let before = of(&mut state).round;
        let end = Instant::now() + PATIENCE;
        while of(&mut state).round == before && !state.is_over {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.0.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        of(&mut state).last.clone()
    }

    /// Ends the run as if its time were over.
    #[cfg(feature = "tui")]
    pub(crate) fn end_early(&self) {
        self.state().ends_early = true;
    }

    /// Ends the answers, so that no thread waits for the run.
    pub(crate) fn close(&self) {
        self.state().is_over = true;
        self.0.news.notify_all();
    }

    /// Provides the whole result.
    pub(crate) fn finish(&self, result: &RunResult) {
        self.state().done = Some(Arc::new(result.clone()));
        self.close();
    }

    /// Provides the requested data.
    fn show(&self, view: &LiveView<'_>, limits: &[Option<u64>]) {
        let mut state = self.state();
        let wants_jobs = std::mem::take(&mut state.jobs.is_asked);
        let wants_result = std::mem::take(&mut state.result.is_asked);
        let ends_early = std::mem::take(&mut state.ends_early);
        drop(state);
        if ends_early {
            view.end_early();
        }
        if !wants_jobs && !wants_result {
            return;
        }
        let jobs = view.jobs();
        let result = wants_result.then(|| ResultSeen {
            result: Arc::new(view.result()),
            now: now(&jobs, limits),
        });
        let mut state = self.state();
        if let Some(result) = result {
            state.result.provide(result);
        }
        if wants_jobs {
            state.jobs.provide(JobsSeen {
                elapsed_ns: view.elapsed_ns,
                jobs: Arc::new(jobs),
            });
        }
        drop(state);
        self.0.news.notify_all();
    }
}

/// Observer that shows a run to those who watch it, besides the door's own.
pub(crate) struct WatchedObserver<'a> {
    door: Box<dyn RunObserver + 'a>,
    watch: Watch,
    /// Most operations in flight of each job, by its number.
    limits: Vec<Option<u64>>,
}

impl<'a> WatchedObserver<'a> {
    pub(crate) fn new(watch: Watch, plan: &Plan, door: Box<dyn RunObserver + 'a>) -> Self {
        let limit = |job: &Job| {
            let depth = job.workload.load()?.depth.queue_depth.0;
            Some(u64::from(depth) * u64::from(job.clones))
        };
        Self {
            door,
            watch,
            limits: plan.jobs().map(|(_, job)| limit(job)).collect(),
        }
    }
}

impl RunObserver for WatchedObserver<'_> {
    fn shown(&self) -> Option<&dyn RunObserver> {
        Some(&*self.door)
    }

    fn observe(&self, view: &LiveView<'_>) {
        self.door.observe(view);
        self.watch.show(view, &self.limits);
    }

    fn done(&self, result: &mut RunResult) {
        self.watch.close();
        self.door.done(result);
    }
}

/// Activity of a job.
pub(crate) fn activity(job: &LiveJob) -> Activity {
    match job.state {
        _ if !job.released => Activity::Setup,
        LiveState::Ramp => Activity::Ramp,
        LiveState::Running => Activity::Measure,
        LiveState::Ending(_) => Activity::Drain,
    }
}

fn now(jobs: &[LiveJob], limits: &[Option<u64>]) -> Vec<JobNow> {
    let of = |job: &LiveJob| JobNow {
        job: job.name.clone(),
        activity: activity(job),
        in_flight: job.in_flight,
        depth_limit: limits.get(job.index).copied().flatten(),
        remaining_ns: job.fraction.and_then(|done| eta(job.elapsed_ns, done)),
    };
    jobs.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_gets_what_was_made_after_that() {
        let watch = Watch::default();
        let other = watch.clone();
        let asked = std::thread::spawn(move || other.jobs().map(|seen| seen.elapsed_ns));
        while !watch.state().jobs.is_asked {
            std::thread::yield_now();
        }
        let seen = |elapsed| JobsSeen {
            elapsed_ns: Nanos(elapsed),
            jobs: Arc::default(),
        };
        // Data requested by another thread is no answer.
        watch.0.news.notify_all();
        watch.state().jobs.provide(seen(7));
        watch.0.news.notify_all();
        assert_eq!(asked.join().unwrap(), Some(Nanos(7)));
    }

    #[test]
    fn once_all_is_measured_nobody_waits() {
        let watch = Watch::default();
        watch.finish(&RunResult::of(Plan::default()));
        assert!(watch.jobs().is_none());
        assert!(watch.result().is_some_and(|seen| seen.now.is_empty()));
    }
}
