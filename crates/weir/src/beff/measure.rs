//! One run of ranks together, from plan to result.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weir_doors::Refusal;
use weir_doors::beff::{LACKS, USAGE};
use weir_net::NetError;
use weir_run::execute::Signals;
use weir_schema::{
    EndedBy, Failure, GroupResult, Instrument, JobResult, Plan, ProgramFacts, RESULT_SCHEMA,
    RunResult, State, Warning, exchange_warnings,
};
use weir_sys::clock::Detection;
use weir_units::Nanos;

use super::lacking;
use super::world::{Done, Party, Work, job_of};
use crate::{signals, surroundings};

/// Why a plan cannot be carried out, known before anything is touched.
pub(super) fn refused(plan: &Plan) -> Option<Refusal> {
    let (job, work) = job_of(plan)?;
    let ranks = plan.ranks.map_or(1, |r| r.count);
    let error = work.check(job, ranks).err()?;
    Some(Refusal {
        message: format!("error: {error}\n"),
        code: match error {
            NetError::Missing { .. } => LACKS,
            _ => USAGE,
        },
    })
}

/// The part of a rank that has nothing to tell.
pub(super) fn part(party: &Party, plan: &Plan) {
    let (clock, _) = Detection::begin().finish();
    let caught = signals::catch().unwrap_or_default();
    // Rank 0 tells what goes wrong.
    let _ = party.carry_out(plan, &clock, &caught);
}

/// The run, where rank 0 is.
///
/// # Errors
/// Signals cannot be caught.
pub(super) fn whole(party: Party, plan: &Plan) -> Result<RunResult, Refusal> {
    let caught = catch()?;
    let mut result = envelope(plan);
    let (clock, facts) = Detection::begin().finish();
    result.clock = surroundings::clock_facts(facts);
    let begun = Instant::now();
    let answer = party.carry_out(plan, &clock, &caught);
    result.duration_ns = Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    fill(&mut result, answer, &caught);
    if let Some(why) = party.leave()
        && result.failed_jobs() == 0
        && !caught.interrupted()
    {
        fail(&mut result, "rank", why);
    }
    Ok(result)
}

fn catch() -> Result<Arc<Signals>, Refusal> {
    signals::catch().map_err(|e| lacking(&format!("signals cannot be caught: {e}")))
}

fn fill(result: &mut RunResult, answer: Result<Option<Done>, NetError>, signals: &Signals) {
    result.complete = !signals.interrupted();
    let signal = signals.number.load(Relaxed);
    result.ended_by = (signals.interrupted() && signal != 0).then_some(EndedBy { signal });
    match answer {
        Ok(Some(done)) => {
            if let (Done::Exchange(done), Some((_, Work::Exchange(work)))) =
                (&done, job_of(&result.plan))
            {
                result.warnings = exchange_warnings(done, work.replications, "b_eff");
            }
            result.warnings.extend(crowded(result));
            if let Some(job) = first(result) {
                job.state = if signals.interrupted() {
                    State::Stopped
                } else {
                    State::Done
                };
                match done {
                    Done::Exchange(done) => job.exchange = Some(*done),
                    Done::LatencyBandwidth(done) => job.latency_bandwidth = Some(*done),
                }
            }
        }
        Ok(None) => fail(result, "plan", "rank 0 has no result".to_owned()),
        Err(error) => {
            let cause = match &error {
                NetError::Plan(_) => "plan",
                NetError::Missing { .. } => "missing",
                _ => "exchange",
            };
            fail(result, cause, error.to_string());
        }
    }
}

/// Ranks of one process that share CPUs.
fn crowded(result: &RunResult) -> Option<Warning> {
    let ranks = result.plan.ranks?;
    let cpus = result.host.cpus?;
    let here = ranks.spawn != weir_schema::Spawn::Launcher;
    (here && ranks.count > cpus).then(|| Warning {
        id: "oversubscribed".to_owned(),
        job: result.jobs().next().map(|job| job.name.clone()),
        cause: format!("{} ranks share {cpus} CPUs", ranks.count),
        remedy: "ask for as many ranks as there are CPUs".to_owned(),
    })
}

fn first(result: &mut RunResult) -> Option<&mut JobResult> {
    result.groups.iter_mut().flat_map(|g| &mut g.jobs).next()
}

fn fail(result: &mut RunResult, cause: &str, message: String) {
    result.complete = false;
    if let Some(job) = first(result) {
        job.state = State::Failed;
        job.failure = Some(Failure {
            errno: None,
            cause: cause.to_owned(),
            message,
            target: None,
            kind: None,
            offset_bytes: None,
            length_bytes: None,
            finding: None,
        });
    }
}

/// A result in which nothing has been done yet.
pub(super) fn envelope(plan: &Plan) -> RunResult {
    let (_, clock) = Detection::begin().finish();
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let jobs = plan.jobs().map(|(_, job)| JobResult {
        name: job.name.clone(),
        state: State::NotStarted,
        span: None,
        failure: None,
        workers: Vec::new(),
        confidence: Vec::new(),
        logs: Vec::new(),
        exchange: None,
        latency_bandwidth: None,
    });
    RunResult {
        schema: RESULT_SCHEMA.to_owned(),
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: started.map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(0)),
        run_id: 0,
        duration_ns: Nanos(0),
        complete: true,
        ended_by: None,
        groups: vec![GroupResult {
            jobs: jobs.collect(),
            ..GroupResult::default()
        }],
        ranks: Vec::new(),
        warnings: Vec::new(),
        disks: Vec::new(),
        clock: surroundings::clock_facts(clock),
        instrument: Instrument::default(),
        host: surroundings::host(),
        program: Some(program()),
        plan: plan.clone(),
    }
}

fn program() -> ProgramFacts {
    ProgramFacts {
        built_unix_s: env!("WEIR_BUILT").parse().ok(),
        commit: Some(env!("WEIR_COMMIT"))
            .filter(|c| !c.is_empty())
            .map(str::to_owned),
        library_path: std::env::var("LD_LIBRARY_PATH").ok(),
    }
}
