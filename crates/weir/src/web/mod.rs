//! `--web` and `--metrics-file`: state of a run for browsers, Prometheus and other programs.
//!
//! In: a run that is watched; requests, on threads of their own. Out: pages and a file. Not here: HTTP
//! (`server`), the text of metrics (`weir-report`), how a run is watched (`watch`).

mod server;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::json;
use weir_doors::Refusal;
use weir_doors::house::Web;
use weir_report::prometheus::{Form, metrics};
use weir_schema::RunResult;

use crate::output;
use crate::watch::{JobsSeen, ResultSeen, Watch, activity};
use server::{Answer, Request};

/// The page that shows the run.
const PAGE: &str = include_str!("page.html");
/// Time between events.
const EVENT_EVERY: Duration = Duration::from_millis(250);
/// The metrics file is written this often.
const FILE_EVERY: Duration = Duration::from_secs(5);

/// Web view that the arguments ask for, once it is open.
#[derive(Clone)]
pub(crate) struct Window {
    watch: Watch,
    metrics_file: Option<String>,
    /// Held while the file is written.
    writing: Arc<Mutex<()>>,
    linger: Duration,
}

impl Window {
    /// Opens the web view and the metrics file that the arguments ask for.
    ///
    /// # Errors
    /// The address or the file cannot be used.
    pub(crate) fn open(web: &Web, watch: &Watch) -> Result<Option<Self>, Refusal> {
        if web.address.is_none() && web.metrics_file.is_none() {
            return Ok(None);
        }
        let window = Self {
            watch: watch.clone(),
            metrics_file: web.metrics_file.clone(),
            writing: Arc::default(),
            linger: Duration::from_nanos(web.linger.0),
        };
        if let Some(path) = &web.metrics_file {
            let writer = window.clone();
            let started = thread::Builder::new().name("weir-metrics".to_owned());
            started
                .spawn(move || writer.write_now_and_then())
                .map_err(|e| Refusal::lacks(format!("--metrics-file {path}: {e}")))?;
        }
        if let Some(address) = web.address {
            let watch = watch.clone();
            let answers = Arc::new(move |request: &Request| answer(&watch, request));
            let address = server::listen(address, answers)
                .map_err(|e| Refusal::lacks(format!("--web {address}: {e}")))?;
            output::error(&format!("weir: http://{address}/ shows this run\n"));
        }
        Ok(Some(window))
    }

    /// Shows the whole result for as long as the arguments ask for, unless a signal ended the run.
    pub(crate) fn finish(&self, result: &RunResult) {
        self.watch.finish(result);
        self.write_file(&ResultSeen {
            result: Arc::new(result.clone()),
            now: Vec::new(),
        });
        if result.ended_by.is_none() {
            thread::sleep(self.linger);
        }
    }

    fn write_now_and_then(&self) {
        loop {
            thread::sleep(FILE_EVERY);
            match self.watch.result() {
                // The last one is written where the run ends.
                _ if self.watch.done().is_some() => return,
                Some(seen) => self.write_file(&seen),
                None => {}
            }
        }
    }

    fn write_file(&self, seen: &ResultSeen) {
        let Some(path) = &self.metrics_file else {
            return;
        };
        let text = metrics(&seen.result, &seen.now, Form::Text);
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(message) = output::write_file(path, &text) {
            output::error(&message);
        }
    }
}

fn answer(watch: &Watch, request: &Request) -> Answer {
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
            watch.result().map_or(
                Answer::Missing("nothing is measured yet"),
                |ResultSeen { result, now }| {
                    page(form.content_type(), metrics(&result, &now, form))
                },
            )
        }
        "/result.json" => match watch.done() {
            // Numbers of a result are finite, and everything else has a JSON form.
            Some(done) => page(
                "application/json",
                weir_report::json(&done, false).unwrap_or_default(),
            ),
            None => Answer::Missing("the run goes on: the result is here at its end"),
        },
        "/events" => {
            let watch = watch.clone();
            Answer::Events(Box::new(move || next_event(&watch)))
        }
        _ => Answer::Missing("there are /, /events, /metrics, /result.json and /healthz"),
    }
}

/// Next state of the jobs, after a short time; `None` once the measurement is over.
fn next_event(watch: &Watch) -> Option<String> {
    loop {
        thread::sleep(EVENT_EVERY);
        if watch.done().is_some() {
            return None;
        }
        if let Some(seen) = watch.jobs() {
            return Some(event(&seen));
        }
    }
}

/// Counts of the jobs so far, from which a page computes rates.
fn event(seen: &JobsSeen) -> String {
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
