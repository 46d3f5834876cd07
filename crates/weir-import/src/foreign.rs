//! Result of another program, before it has the form of a result of weir.
//!
//! In: what a reader found. Out: a [`RunResult`] whose source names the program. What the file does
//! not say stays absent. Not here: any format.

use weir_schema::{
    EngineChoice, ForeignSource, HostFacts, Job, JobResult, LoopOutcome, Metric, Outcome, Plan,
    RunResult, Span, State, UnknownWorkload, Warning, Word, WorkerResult,
};
use weir_units::Nanos;

use crate::error::ImportError;

/// Bytes in what other programs call MiB, and some of them MB.
pub(crate) const MIB: f64 = 1_048_576.0;

/// A run of another program.
#[derive(Debug, Default)]
pub(crate) struct ForeignRun {
    /// The program and its version in its own words.
    pub(crate) program: Option<String>,
    /// Its command line.
    pub(crate) command: Vec<String>,
    /// Start, where the file gives it in a time that is the same everywhere.
    pub(crate) started_unix_ns: u64,
    pub(crate) host: HostFacts,
    /// Options of all jobs.
    pub(crate) global_words: Vec<Word>,
    pub(crate) jobs: Vec<ForeignJob>,
    /// Warnings of the program itself about its figures.
    pub(crate) warnings: Vec<String>,
}

/// A part of it that has figures of its own.
#[derive(Debug, Default)]
pub(crate) struct ForeignJob {
    pub(crate) name: String,
    /// Its work, in a few words.
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) engine: String,
    pub(crate) words: Vec<Word>,
    /// Counts and latencies, where the file has them by kind.
    pub(crate) worker: Option<WorkerResult>,
    pub(crate) metrics: Vec<Metric>,
    /// Reason that its figures are not those of a good run.
    pub(crate) failure: Option<weir_schema::Failure>,
}

impl ForeignRun {
    pub(crate) fn into_result(self, format: &str, file: &str) -> RunResult {
        let name = file.rsplit('/').next().unwrap_or(file);
        let planned = self.jobs.iter().map(ForeignJob::planned).collect();
        let plan = Plan {
            command: self.command,
            global_words: self.global_words,
            ..Plan::new(name, "import", planned)
        };
        let mut result = RunResult::of(plan);
        env!("CARGO_PKG_VERSION").clone_into(&mut result.weir_version);
        result.started_unix_ns = self.started_unix_ns;
        result.host = self.host;
        result.source = Some(ForeignSource {
            format: format.to_owned(),
            program: self.program,
        });
        let warn = |cause: &String| {
            let cause = cause.trim_end_matches('.');
            Warning::new("source-warning", None, format!("{cause}."))
        };
        result.warnings = self.warnings.iter().map(warn).collect();
        let jobs: Vec<JobResult> = self.jobs.into_iter().map(ForeignJob::done).collect();
        let spans = jobs.iter().filter_map(|job| job.span);
        result.duration_ns = spans.map(Span::length).max().unwrap_or(Nanos::ZERO);
        result.complete = true;
        if let Some(group) = result.groups.first_mut() {
            group.jobs = jobs;
        }
        result
    }
}

impl ForeignJob {
    fn planned(&self) -> Job {
        let title = self.title.clone();
        let work = UnknownWorkload { name: title };
        Job {
            description: self.description.clone(),
            words: self.words.clone(),
            ..Job::alone(&self.name, EngineChoice::new(&self.engine), work)
        }
    }

    fn done(self) -> JobResult {
        let state = if self.failure.is_some() {
            State::Failed
        } else {
            State::Done
        };
        let span = self.worker.as_ref().and_then(|worker| worker.span);
        let outcome = self.worker.map_or(Outcome::None, |worker| {
            Outcome::Loop(LoopOutcome {
                workers: vec![WorkerResult { state, ..worker }],
                ..LoopOutcome::default()
            })
        });
        JobResult {
            state,
            span,
            failure: self.failure,
            outcome,
            metrics: unique(self.metrics),
            ..JobResult::not_started(&self.name)
        }
    }
}

/// A result that passes what stored results are checked for: no sum of counts overflows, histograms
/// fit into memory.
pub(crate) fn checked(result: &RunResult) -> Result<RunResult, ImportError> {
    let stored = result.to_json().map_err(|e| ImportError::new(1, e))?;
    RunResult::from_json(&stored).map_err(|e| ImportError::new(1, e))
}

/// Names are unique in a job: a name that comes again gets a number. What is no number is no figure.
fn unique(metrics: Vec<Metric>) -> Vec<Metric> {
    let mut all: Vec<Metric> = Vec::new();
    for mut metric in metrics {
        metric.samples.retain(|value| value.is_finite());
        if !metric.value.is_finite() {
            continue;
        }
        let name = metric.name.clone();
        let mut number = 2;
        while all.iter().any(|m| m.name == metric.name) {
            metric.name = format!("{name} {number}");
            number += 1;
        }
        all.push(metric);
    }
    all
}

/// An option with its value.
pub(crate) fn word(key: &str, value: impl Into<String>) -> Word {
    Word {
        key: key.to_owned(),
        value: Some(value.into()),
    }
}

/// A figure from its repetitions: their mean, and all of them where there are several.
pub(crate) fn of_samples(metric: Metric, samples: Vec<f64>) -> Metric {
    match samples.as_slice() {
        [] => metric,
        [value] => Metric {
            value: *value,
            ..metric
        },
        _ => Metric {
            value: mean(&samples),
            samples,
            ..metric
        },
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 samples")]
fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}
