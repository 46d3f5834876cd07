//! One run from plan to result, the same for every door.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::io::Errno;
use weir_doors::fio::log_line;
use weir_doors::{LACKS, Refusal, USAGE};
use weir_run::RankPart;
use weir_run::execute::{self, LiveView, RunControl};
use weir_schema::{Failure, HostFacts, Plan, RunResult, Workload};
use weir_sys::clock::Detection;
use weir_world::RankHost;

use crate::measure::{MeasureRequest, RunObserver};
use crate::ranks::RankGroup;
use crate::runners::Runners;
use crate::{environment, output, signals};

/// Time after which a worker that does not end is left behind.
const GRACE: Duration = Duration::from_secs(5);

/// Context of a run.
pub(crate) struct Choices<'a> {
    /// Observer of the door.
    pub(crate) observer: &'a dyn RunObserver,
    /// Host of the ranks' joint work.
    pub(crate) ranks: &'a RankHost,
    /// Other processes that carry the same plan out.
    pub(crate) group: Option<&'a RankGroup>,
}

/// Carries a plan out.
pub(crate) fn run(plan: &Plan, choices: &Choices<'_>) -> Result<RunResult, Refusal> {
    let detection = Detection::begin();
    let host = environment::host();
    let processes = choices.group.and_then(RankGroup::processes);
    let caught = signals::catch(processes, choices.group.and_then(RankGroup::take_first))?;
    if let Some(monitor) = choices.group.and_then(RankGroup::monitor) {
        let caught = Arc::clone(&caught);
        monitor.at_loss(move |_| {
            // Twice would be at once.
            if !caught.interrupted() {
                caught.interruptions.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let (clock, facts) = detection.finish();
    let runners = Runners::default();
    let meet = || choices.group.map_or(Ok(()), RankGroup::meet);
    let mut observer = |view: &LiveView<'_>| choices.observer.observe(view);
    let control = RunControl {
        runners: &runners.list(),
        ranks: choices.ranks.clone(),
        clock,
        clock_facts: environment::clock_facts(facts),
        host,
        version: env!("CARGO_PKG_VERSION"),
        directory: Path::new(""),
        signals: caught,
        grace: GRACE,
        announce: &|announcement| choices.observer.announce(announcement),
        log_format: log_line,
        observer: Some(&mut observer),
        calibrate: plan.jobs().next().is_none() || has_loops(plan, &runners),
        other_ranks: choices.group.map(|group| group.other_ranks(&meet)),
    };
    let fit = refuse_what_cannot_run(plan, &control, choices.observer);
    match choices.group {
        Some(group) => group.agree(fit)?,
        None => fit?,
    }
    let mut result = execute::execute(plan, control);
    result.program = Some(environment::program());
    Ok(result)
}

/// True if some job has a loop whose own cost can be measured.
fn has_loops(plan: &Plan, runners: &Runners) -> bool {
    let is_for_ranks = |workload: &Workload| {
        let mut list = runners.list().into_iter();
        list.any(|runner| runner.handles(workload) && runner.needs_world())
    };
    plan.jobs().any(|(_, job)| !is_for_ranks(&job.workload))
}

/// The part of one rank in a plan.
///
/// # Errors
/// A job that cannot be divided among ranks.
pub(crate) fn part(mut plan: Plan, rank: u32, ranks: u32) -> Result<Plan, Refusal> {
    let targets = plan.ranks.map(|ranks| ranks.targets).unwrap_or_default();
    let part = RankPart {
        rank,
        ranks,
        targets,
    };
    let runners = Runners::default();
    execute::reduce_to_rank(&mut plan, &runners.list(), part)
        .map_err(|(job, failure)| Refusal::usage(format!("job `{job}`: {}", failure.message)))?;
    Ok(plan)
}

/// Adds the figures that only runners know to a result of several ranks.
pub(crate) fn add_metrics(result: &mut RunResult) {
    execute::add_metrics(result, &Runners::default().list());
}

/// Refuses errors in the joint work of ranks before any rank is started.
pub(crate) fn refuse_work_of_ranks(
    plan: &Plan,
    request: &MeasureRequest<'_>,
) -> Result<(), Refusal> {
    let runners = Runners::default();
    if has_loops(plan, &runners) {
        // Files of ranks have names of their own: each rank looks at its own.
        return Ok(());
    }
    check(plan, (request.observer)(plan).as_ref())
}

/// Refuses what a run of this plan in this process would refuse. Touches nothing.
pub(crate) fn check(plan: &Plan, observer: &dyn RunObserver) -> Result<(), Refusal> {
    let runners = Runners::default();
    let (clock, facts) = Detection::begin().finish();
    let control = RunControl {
        runners: &runners.list(),
        ranks: RankHost::threads(1),
        clock,
        clock_facts: environment::clock_facts(facts),
        host: HostFacts::default(),
        version: "",
        directory: Path::new(""),
        signals: Arc::default(),
        grace: GRACE,
        announce: &|_| (),
        log_format: log_line,
        observer: None,
        calibrate: false,
        other_ranks: None,
    };
    refuse_what_cannot_run(plan, &control, observer)
}

/// Failures of one job that are shown.
const SHOWN: usize = 3;

/// Refuses failures that are known in advance, all at once. A lack of the machine ends every run, and so does
/// a log that cannot be written; other failures end only runs that must be complete.
fn refuse_what_cannot_run(
    plan: &Plan,
    control: &RunControl<'_>,
    observer: &dyn RunObserver,
) -> Result<(), Refusal> {
    let mut failures = execute::check(plan, control);
    let no_rights = Some(Errno::ACCESS.raw_os_error());
    let lacks = |f: &Failure| {
        let lacks_rights = f.errno == no_rights && f.target.is_some() && f.cause != "log";
        lacks_rights || ["authentication", "missing"].contains(&f.cause.as_str())
    };
    let lacking = failures.iter().any(|(_, f)| lacks(f));
    let others = failures.iter().filter(|(_, f)| !ends_every_run(f));
    let mut others = brief(others).into_iter();
    if others.all(|(job, message)| observer.excuses(&job, &message)) {
        failures.retain(|(_, f)| ends_every_run(f));
    }
    if failures.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = brief(failures.iter())
        .into_iter()
        .map(|(job, why)| observer.refusal(&job, &why))
        .collect();
    let code = if lacking { LACKS } else { USAGE };
    let guards = |f: &Failure| ["mounted", "in_use"].contains(&f.cause.as_str());
    Err(Refusal {
        is_guard: failures.iter().any(|(_, f)| guards(f)),
        ..Refusal::new(code, lines.concat())
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

/// Prints the failures on standard error.
pub(crate) fn print_failures(result: &RunResult) {
    for job in result.jobs() {
        if let Some(failure) = &job.failure {
            let job = weir_report::clean(&job.name, false);
            output::error(&format!("error: {job}: {}\n", failure.message));
        }
    }
}
