//! One run from plan to result, the same for every door.

use std::path::Path;
use std::time::Duration;

use weir_doors::Refusal;
use weir_run::Family;
use weir_run::execute::{self, LiveView, RunControl};
use weir_schema::{Plan, RunResult};
use weir_sys::clock::{Clock, Detection};

use crate::{output, signals, surroundings};

/// A worker that does not come back within this time is left behind.
const GRACE: Duration = Duration::from_secs(5);

/// The families of this build.
const FAMILIES: &[&dyn Family] = &[&weir_block::Block];

/// What a door chooses.
pub(crate) struct Choices<'a> {
    /// Text before and during the run.
    pub(crate) announce: &'a dyn Fn(&str),
    /// Shown the running jobs.
    pub(crate) observer: Option<&'a mut dyn FnMut(&LiveView)>,
    /// A job that cannot run is told beforehand and nothing runs; otherwise the others run.
    pub(crate) all_or_nothing: bool,
}

/// Carries a plan out.
pub(crate) fn run(plan: &Plan, choices: Choices<'_>) -> Result<RunResult, Refusal> {
    let detection = Detection::begin();
    let host = surroundings::host();
    let caught = signals::catch().map_err(|e| Refusal {
        message: format!("error: signals cannot be caught: {e}\n"),
        code: 3,
    })?;
    let (clock, facts): (Clock, _) = detection.finish();
    let control = RunControl {
        families: FAMILIES,
        clock,
        clock_facts: surroundings::clock_facts(facts),
        host,
        version: env!("CARGO_PKG_VERSION"),
        directory: Path::new(""),
        signals: caught,
        grace: GRACE,
        announce: choices.announce,
        observer: choices.observer,
        calibrate: true,
    };
    if choices.all_or_nothing {
        refuse_what_cannot_run(plan, &control)?;
    }
    Ok(execute::execute(plan, control))
}

/// Every failure that is known before anything is touched, at once.
fn refuse_what_cannot_run(plan: &Plan, control: &RunControl<'_>) -> Result<(), Refusal> {
    let failures = execute::check(plan, control);
    if failures.is_empty() {
        return Ok(());
    }
    let lacking = failures.iter().all(|(_, f)| f.cause == "missing");
    let lines = failures
        .iter()
        .map(|(job, f)| format!("error: {job}: {}\n", f.message));
    Err(Refusal {
        message: lines.collect(),
        code: if lacking { 3 } else { 2 },
    })
}

/// Says how a failure came about, for standard error.
pub(crate) fn tell_failures(result: &RunResult) {
    for job in result.jobs() {
        if let Some(failure) = &job.failure {
            output::error(&format!("error: {}: {}\n", job.name, failure.message));
        }
    }
}
