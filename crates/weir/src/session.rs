//! One run from plan to result, the same for every door.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_doors::Refusal;
use weir_doors::run::LACKS;
use weir_run::Family;
use weir_run::execute::{self, LiveView, Others, RunControl};
use weir_schema::{Failure, Plan, RunResult};
use weir_sys::clock::{Clock, Detection};
use weir_world::{Crew, RankMonitor};

use crate::{output, signals, surroundings};

/// A worker that does not come back within this time is left behind.
const GRACE: Duration = Duration::from_secs(5);

/// Hears the name of a job that cannot run, and why.
pub(crate) type Forewarn<'a> = dyn FnMut(&str, &str) + 'a;

/// Makes of what this rank can do what all can.
pub(crate) type Agree<'a> = dyn Fn(Result<(), Refusal>) -> Result<(), Refusal> + 'a;

/// What a door chooses.
pub(crate) struct Choices<'a> {
    /// Text before and during the run.
    pub(crate) announce: &'a dyn Fn(&str),
    /// Shown the running jobs.
    pub(crate) observer: Option<&'a mut dyn FnMut(&LiveView<'_>)>,
    /// Told beforehand which job cannot run, and why; the others run. Nothing runs without it.
    pub(crate) forewarn: Option<&'a mut Forewarn<'a>>,
    /// The code of plans that are refused.
    pub(crate) usage: u8,
    /// Other ranks that carry the same plan out.
    pub(crate) others: Option<Others<'a>>,
    /// Their processes, where this one has started them.
    pub(crate) crew: Option<&'a Crew>,
    /// Which of them is lost: that ends the run.
    pub(crate) monitor: Option<&'a RankMonitor>,
    /// Tells the other ranks whether this one can run; an error where one cannot.
    pub(crate) agree: Option<&'a Agree<'a>>,
}

/// Carries a plan out.
pub(crate) fn run(plan: &Plan, choices: Choices<'_>) -> Result<RunResult, Refusal> {
    let detection = Detection::begin();
    let host = surroundings::host();
    let caught = signals::catch(choices.crew, None)?;
    if let Some(monitor) = choices.monitor {
        let caught = Arc::clone(&caught);
        monitor.at_loss(move |_| {
            // Twice would be at once.
            if !caught.interrupted() {
                caught.interruptions.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let (clock, facts): (Clock, _) = detection.finish();
    let block = weir_block::Block::default();
    let families: [&dyn Family; 1] = [&block];
    let control = RunControl {
        families: &families,
        clock,
        clock_facts: surroundings::clock_facts(facts),
        host,
        version: env!("CARGO_PKG_VERSION"),
        directory: Path::new(""),
        signals: caught,
        grace: GRACE,
        announce: choices.announce,
        // As long as the families live, no longer.
        observer: choices
            .observer
            .map(|shown| -> &mut dyn FnMut(&LiveView) { shown }),
        calibrate: true,
        others: choices.others,
    };
    let fit = refuse_what_cannot_run(plan, &control, choices.forewarn, choices.usage);
    match choices.agree {
        Some(agree) => agree(fit)?,
        None => fit?,
    }
    Ok(execute::execute(plan, control))
}

/// Failures of one job that are shown.
const SHOWN: usize = 3;

/// Failures that are known before anything is touched, all at once: what the machine lacks ends
/// every run, and so does a log that cannot be written; the rest ends those that shall run whole or not at all.
fn refuse_what_cannot_run(
    plan: &Plan,
    control: &RunControl<'_>,
    forewarn: Option<&mut Forewarn<'_>>,
    usage: u8,
) -> Result<(), Refusal> {
    let mut failures = execute::check(plan, control);
    let lacking = failures.iter().any(|(_, f)| f.cause == "missing");
    if let Some(forewarn) = forewarn {
        let others = failures.iter().filter(|(_, f)| !ends_every_run(f));
        for (job, message) in brief(others) {
            forewarn(&job, &message);
        }
        failures.retain(|(_, f)| ends_every_run(f));
    }
    if failures.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = brief(failures.iter())
        .into_iter()
        .map(|(job, why)| format!("error: {job}: {why}\n"))
        .collect();
    Err(Refusal {
        message: lines.concat(),
        code: if lacking { LACKS } else { usage },
    })
}

/// Job and message of each failure, of each job the first few: thousands of files may lack the
/// same.
fn brief<'a>(failures: impl Iterator<Item = &'a (String, Failure)>) -> Vec<(String, String)> {
    let mut by_job: Vec<(&String, Vec<String>)> = Vec::new();
    for (job, failure) in failures {
        let message = failure.message.clone();
        match by_job.last_mut() {
            Some((last, messages)) if *last == job => messages.push(message),
            _ => by_job.push((job, vec![message])),
        }
    }
    let few = |(job, mut messages): (&String, Vec<String>)| {
        if messages.len() > SHOWN {
            let more = messages.len() - SHOWN;
            messages.truncate(SHOWN);
            messages.push(format!("{more} more failures of this kind"));
        }
        let job = job.clone();
        messages
            .into_iter()
            .map(move |message| (job.clone(), message))
    };
    by_job.into_iter().flat_map(few).collect()
}

fn ends_every_run(failure: &Failure) -> bool {
    ["missing", "log", "verify"].contains(&failure.cause.as_str())
}

/// Says how a failure came about, for standard error.
pub(crate) fn tell_failures(result: &RunResult) {
    for job in result.jobs() {
        if let Some(failure) = &job.failure {
            output::error(&format!("error: {}: {}\n", job.name, failure.message));
        }
    }
}
