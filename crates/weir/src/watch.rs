//! Lets other threads see a run while it goes on.
//!
//! In: views of the run, which it shows at every round. Out: what was asked for, on the threads that asked;
//! their wish that it ends. The run's thread makes something only when somebody has asked for it, and
//! never waits for whoever looks at it. Not here: what is done with it (`web`, `live`).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_report::progress::Activity;
use weir_report::prometheus::JobNow;
use weir_run::execute::{LiveJob, LiveState, LiveView};
use weir_schema::{Job, Plan, RunResult};
use weir_units::Nanos;

use crate::measure::RunObserver;
use crate::progress::eta;

/// A run that does not come by for so long has other cares.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a run's jobs do at an instant.
#[derive(Clone)]
pub(crate) struct JobsSeen {
    pub(crate) elapsed_ns: Nanos,
    pub(crate) jobs: Arc<Vec<LiveJob>>,
}

/// Everything measured so far.
#[derive(Clone)]
pub(crate) struct ResultSeen {
    pub(crate) result: Arc<RunResult>,
    /// What jobs do now; nothing once all is measured.
    pub(crate) now: Vec<JobNow>,
}

/// Something that is made when somebody asks for it.
struct Wish<T> {
    is_asked: bool,
    /// How often it was made.
    round: u64,
    last: Option<T>,
}

impl<T> Default for Wish<T> {
    fn default() -> Self {
        Self {
            is_asked: false,
            round: 0,
            last: None,
        }
    }
}

impl<T> Wish<T> {
    fn fulfil(&mut self, made: T) {
        self.last = Some(made);
        self.round += 1;
    }
}

#[derive(Default)]
struct State {
    jobs: Wish<JobsSeen>,
    result: Wish<ResultSeen>,
    /// The run is to end as if its time were over.
    ends_early: bool,
    /// The run does not come by any more.
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

    /// What jobs do now; what they did last where the run does not come by.
    pub(crate) fn jobs(&self) -> Option<JobsSeen> {
        self.ask(|state| &mut state.jobs)
    }

    /// Everything measured by now.
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

    fn ask<T: Clone>(&self, of: fn(&mut State) -> &mut Wish<T>) -> Option<T> {
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

    /// The run comes by no more: nobody need wait for it.
    pub(crate) fn close(&self) {
        self.state().is_over = true;
        self.0.news.notify_all();
    }

    /// Everything is measured.
    pub(crate) fn finish(&self, result: &RunResult) {
        self.state().done = Some(Arc::new(result.clone()));
        self.close();
    }

    /// Makes what is asked for.
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
            state.result.fulfil(result);
        }
        if wants_jobs {
            state.jobs.fulfil(JobsSeen {
                elapsed_ns: view.elapsed_ns,
                jobs: Arc::new(jobs),
            });
        }
        drop(state);
        self.0.news.notify_all();
    }
}

/// Shows a run to who watches it, besides what its door says.
pub(crate) struct WatchedObserver<'a> {
    door: Box<dyn RunObserver + 'a>,
    watch: Watch,
    /// What each job may have in flight, by its number.
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

/// What a job is doing.
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
        // What somebody else asked for is no answer.
        watch.0.news.notify_all();
        watch.state().jobs.fulfil(seen(7));
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
