//! `--web` and `--metrics-file`: what a run does, for browsers, Prometheus and other programs.
//!
//! In: views of the run, which it shows at every round; requests, on threads of their own. Out: pages
//! and a file. The run's thread makes something only when somebody has asked for it. Not here: HTTP
//! (`server`), the text of metrics (`weir-report`).

mod server;

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use weir_doors::run::Web;
use weir_doors::{Refusal, USAGE};
use weir_report::progress::Activity;
use weir_report::prometheus::{Form, JobNow, metrics};
use weir_run::execute::{LiveJob, LiveState, LiveView};
use weir_schema::{Announcement, Job, Plan, RunResult};
use weir_units::Nanos;

use crate::measure::RunObserver;
use crate::output;
use crate::progress::eta;
use server::{Answer, Request};

/// The page that shows the run.
const PAGE: &str = include_str!("page.html");
/// Events come this often.
const EVENT_EVERY: Duration = Duration::from_millis(250);
/// The metrics file is written this often.
const FILE_EVERY: Nanos = Nanos(5_000_000_000);
/// A run that does not come by for so long has other cares.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a run showed last.
#[derive(Clone)]
struct Seen {
    elapsed_ns: Nanos,
    jobs: Arc<Vec<LiveJob>>,
    now: Vec<JobNow>,
    /// Everything measured so far, where somebody asked for that.
    result: Option<Arc<RunResult>>,
}

/// What is asked for, and what is known.
#[derive(Default)]
struct State {
    wants_jobs: bool,
    wants_result: bool,
    seen: Option<Seen>,
    /// How often something was shown.
    round: u64,
    /// The result once all is measured.
    done: Option<Arc<RunResult>>,
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked had not changed it in part.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the run to show itself and waits for it; the last it showed where it does not come by.
    fn ask(&self, whole: bool) -> Option<Seen> {
        let mut state = self.state();
        state.wants_jobs = true;
        state.wants_result |= whole;
        let before = state.round;
        let end = Instant::now() + PATIENCE;
        while state.round == before && state.done.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.seen.clone()
    }

    /// Everything measured so far, and what jobs do now.
    fn so_far(&self) -> Option<(Arc<RunResult>, Vec<JobNow>)> {
        if let Some(done) = self.state().done.clone() {
            return Some((done, Vec::new()));
        }
        let seen = self.ask(true)?;
        let done = self.state().done.clone();
        Some((done.or(seen.result)?, seen.now))
    }

    fn answer(self: &Arc<Self>, request: &Request) -> Answer {
        let page = |content_type, text| Answer::Page { content_type, text };
        match request.path.as_str() {
            "/" => page("text/html; charset=utf-8", PAGE.to_owned()),
            "/healthz" => page("text/plain; charset=utf-8", "ok\n".to_owned()),
            "/metrics" => {
                let form = if request.accept.contains("application/openmetrics-text") {
                    Form::OpenMetrics
                } else {
                    Form::Text
                };
                let so_far = self.so_far();
                so_far.map_or(
                    Answer::Missing("nothing is measured yet"),
                    |(result, now)| page(form.content_type(), metrics(&result, &now, form)),
                )
            }
            "/result.json" => match self.state().done.clone() {
                // Numbers of a result are finite, and everything else has a JSON form.
                Some(done) => page(
                    "application/json",
                    weir_report::json(&done, false).unwrap_or_default(),
                ),
                None => Answer::Missing("the run goes on: the result is here at its end"),
            },
            "/events" => {
                let shared = Arc::clone(self);
                Answer::Events(Box::new(move || shared.next_event()))
            }
            _ => Answer::Missing("there are /, /events, /metrics, /result.json and /healthz"),
        }
    }

    /// What jobs do, a little later; nothing once all is measured.
    fn next_event(&self) -> Option<String> {
        loop {
            thread::sleep(EVENT_EVERY);
            if self.state().done.is_some() {
                return None;
            }
            if let Some(seen) = self.ask(false) {
                return Some(event(&seen));
            }
        }
    }
}

/// What jobs have done so far, from which a page makes rates.
fn event(seen: &Seen) -> String {
    let jobs = seen.jobs.iter().map(|job| {
        json!({
            "name": job.name,
            "operations": job.operations,
            "bytes": job.bytes,
            "errors": job.errors,
            "in_flight": job.in_flight,
            "fraction": job.fraction,
            "phase": activity(job).name(),
            "p50_ns": job.latency.percentile(50.0),
            "p99_ns": job.latency.percentile(99.0),
        })
    });
    json!({ "elapsed_ns": seen.elapsed_ns, "jobs": jobs.collect::<Vec<_>>() }).to_string()
}

fn activity(job: &LiveJob) -> Activity {
    match job.state {
        _ if !job.released => Activity::Setup,
        LiveState::Ramp => Activity::Ramp,
        LiveState::Running => Activity::Measure,
        LiveState::Ending(_) => Activity::Drain,
    }
}

/// What the words ask for, once it is open.
#[derive(Clone)]
pub(crate) struct Window {
    shared: Arc<Shared>,
    metrics_file: Option<String>,
    linger: Duration,
}

impl Window {
    /// Listens, where the words ask for that.
    ///
    /// # Errors
    /// The address cannot be had.
    pub(crate) fn open(web: &Web) -> Result<Option<Self>, Refusal> {
        if web.address.is_none() && web.metrics_file.is_none() {
            return Ok(None);
        }
        let shared = Arc::new(Shared::default());
        if let Some(address) = web.address {
            let answering = Arc::clone(&shared);
            let answers = Arc::new(move |request: &Request| answering.answer(request));
            let address = server::listen(address, answers)
                .map_err(|e| Refusal::lacks(format!("--web {address}: {e}")))?;
            output::error(&format!("weir: http://{address}/ shows this run\n"));
        }
        if let Some(path) = &web.metrics_file {
            output::check_writable(path).map_err(|message| Refusal::new(USAGE, message))?;
        }
        Ok(Some(Self {
            shared,
            metrics_file: web.metrics_file.clone(),
            linger: Duration::from_nanos(web.linger.0),
        }))
    }

    /// Everything is measured: shows the result for as long as the words ask for, unless somebody ended
    /// the run.
    pub(crate) fn finish(&self, result: &RunResult) {
        self.shared.state().done = Some(Arc::new(result.clone()));
        self.shared.news.notify_all();
        self.write_file(result, &[]);
        if result.ended_by.is_none() {
            thread::sleep(self.linger);
        }
    }

    fn write_file(&self, result: &RunResult, now: &[JobNow]) {
        let Some(path) = &self.metrics_file else {
            return;
        };
        if let Err(message) = output::write_file(path, &metrics(result, now, Form::Text)) {
            output::error(&message);
        }
    }
}

/// Shows a run to whoever asks, besides what its door says.
pub(crate) struct WebObserver<'a> {
    pub(crate) door: Box<dyn RunObserver + 'a>,
    window: Window,
    /// What each job may have in flight, by its number.
    limits: Vec<Option<u64>>,
    next_file: Cell<Nanos>,
}

impl<'a> WebObserver<'a> {
    pub(crate) fn new(window: Window, plan: &Plan, door: Box<dyn RunObserver + 'a>) -> Self {
        let limit = |job: &Job| {
            let depth = job.workload.load()?.depth.queue_depth.0;
            Some(u64::from(depth) * u64::from(job.clones))
        };
        Self {
            door,
            window,
            limits: plan.jobs().map(|(_, job)| limit(job)).collect(),
            next_file: Cell::new(FILE_EVERY),
        }
    }
}

impl RunObserver for WebObserver<'_> {
    fn announce(&self, announcement: &Announcement) {
        self.door.announce(announcement);
    }

    fn observe(&self, view: &LiveView<'_>) {
        self.door.observe(view);
        if self.window.metrics_file.is_some() && view.elapsed_ns >= self.next_file.get() {
            self.next_file
                .set(view.elapsed_ns.saturating_add(FILE_EVERY));
            let now = now(&view.jobs(), &self.limits);
            self.window.write_file(&view.result(), &now);
        }
        let shared = &self.window.shared;
        let mut state = shared.state();
        if !state.wants_jobs {
            return;
        }
        state.wants_jobs = false;
        let whole = std::mem::take(&mut state.wants_result);
        drop(state);
        let jobs = view.jobs();
        let seen = Seen {
            elapsed_ns: view.elapsed_ns,
            now: now(&jobs, &self.limits),
            jobs: Arc::new(jobs),
            result: whole.then(|| Arc::new(view.result())),
        };
        let mut state = shared.state();
        state.seen = Some(seen);
        state.round += 1;
        drop(state);
        shared.news.notify_all();
    }

    fn runs_the_rest(&self) -> bool {
        self.door.runs_the_rest()
    }

    fn forewarn(&self, job: &str, why: &str) {
        self.door.forewarn(job, why);
    }

    fn done(&self) {
        self.door.done();
    }

    fn refusal(&self, job: &str, why: &str) -> String {
        self.door.refusal(job, why)
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
