//! One run of ranks together, from plan to result.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weir_doors::Refusal;
use weir_doors::beff::{LACKS, USAGE};
use weir_net::{Ended, NetError, Observer, Seen};
use weir_run::execute::Signals;
use weir_schema::{
    EndedBy, ExchangeResult, Failure, JobResult, Plan, ProgramFacts, RunResult, SizeResult, Spawn,
    State, Warning, exchange_warnings, latency_bandwidth_figures,
};
use weir_sys::clock::{Clock, Detection};
use weir_units::Nanos;
use weir_world::First;

use super::work::{Done, Work, job_of, ranks_of};
use crate::progress::{Mode, Together};
use crate::world::Party;
use crate::{signals, surroundings};

/// Why a plan cannot be carried out, known before anything is touched.
pub(super) fn refused(plan: &Plan) -> Option<Refusal> {
    let (job, work) = job_of(plan)?;
    let error = work.check(job, ranks_of(plan)).err()?;
    Some(Refusal {
        message: format!("error: {error}\n"),
        code: match error {
            NetError::Missing { .. } => LACKS,
            _ => USAGE,
        },
    })
}

/// The part of a rank that has nothing to tell.
pub(super) fn part(party: &Party, first: Option<First>, plan: &Plan) {
    let (clock, _) = Detection::begin().finish();
    // Without signals of its own it still hears from rank 0, which does not run without them.
    let caught = signals::catch(party.crew(), first).unwrap_or_default();
    // Rank 0 tells what goes wrong.
    let _ = carry_out(party, plan, &clock, &caught, None);
}

/// The run, where rank 0 is, and what is to be ended when its result has been told. What `tell` does with its result it does itself where rank 0 hangs in
/// a call, and the process ends there.
///
/// # Errors
/// Signals cannot be caught.
pub(super) fn whole(
    party: Party,
    plan: &Plan,
    mode: Mode,
    tell: &(dyn Fn(&RunResult) -> u8 + Sync),
) -> Result<(RunResult, Option<Party>), Refusal> {
    let caught = signals::catch(party.crew(), None)?;
    let mut result = envelope(plan);
    let (clock, facts) = Detection::begin().finish();
    result.clock = surroundings::clock_facts(facts);
    let job = plan.jobs().next().map_or("", |(_, job)| &job.name);
    let shown = Together::new(mode, job);
    let begun = Instant::now();
    let so_far = |ended: Ended<Done>| {
        shown.erase();
        let mut result = result.clone();
        result.duration_ns = since(begun);
        fill(&mut result, ended, &caught);
        result
    };
    let observer = Observer {
        look: &|seen: &Seen| shown.show(seen),
        last: &|ended| tell(&so_far(ended)),
    };
    let ended = carry_out(&party, plan, &clock, &caught, Some(&observer));
    let mut result = so_far(ended);
    let left = party.leave().unwrap_or_else(|why| {
        let why = why.message.trim_start_matches("error: ").trim_end();
        if result.complete {
            fail(&mut result, "rank", why.to_owned());
        }
        None
    });
    signals::release();
    Ok((result, left))
}

fn since(begun: Instant) -> Nanos {
    Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// This process's part; what came of it where rank 0 is.
fn carry_out(
    party: &Party,
    plan: &Plan,
    clock: &Clock,
    signals: &Signals,
    observer: Option<&Observer<'_, Done>>,
) -> Ended<Done> {
    let Some((job, work)) = job_of(plan) else {
        let error = NetError::Plan("the plan has no work for ranks together".to_owned());
        return Ended {
            done: None,
            error: Some(error),
        };
    };
    let all = party.each(|world| work.carry_out(job, world, clock, signals, observer));
    all.unwrap_or_else(|error| Ended {
        done: None,
        error: Some(NetError::Other {
            rank: 0,
            message: error.to_string(),
        }),
    })
}

fn fill(result: &mut RunResult, ended: Ended<Done>, signals: &Signals) {
    let is_whole = match (&ended.done, job_of(&result.plan)) {
        (Some(Done::Exchange(done)), Some((_, Work::Exchange(work)))) => {
            result.warnings = exchange_warnings(done, work.replications, "b_eff");
            let (have, all) = (done.sizes.len(), work.measurements());
            if have < all && ended.error.is_none() && !signals.interrupted() {
                result.warnings.push(cut_short(have, all));
            }
            result.warnings.extend(still_cold(done, work.warmup));
            have == all
        }
        (Some(Done::LatencyBandwidth(done)), _) => latency_bandwidth_figures(done).is_some(),
        _ => false,
    };
    // A signal that comes when all is done changes nothing.
    let cut = signals.interrupted() && !is_whole;
    result.complete = !cut;
    let signal = signals.number.load(Relaxed);
    result.ended_by = (cut && signal != 0).then_some(EndedBy { signal });
    if let Some(job) = first(result) {
        job.state = if cut { State::Stopped } else { State::Done };
        match ended.done {
            Some(Done::Exchange(done)) => job.exchange = Some(*done),
            Some(Done::LatencyBandwidth(done)) => job.latency_bandwidth = Some(*done),
            None => {}
        }
    }
    result.warnings.extend(crowded(result));
    if let Some(error) = ended.error {
        let cause = match &error {
            NetError::Plan(_) => "plan",
            NetError::Missing { .. } => "missing",
            _ => "exchange",
        };
        fail(result, cause, error.to_string());
    }
}

/// The time was over before the sizes were.
fn cut_short(have: usize, all: usize) -> Warning {
    Warning::new(
        "max-time",
        Some("b_eff"),
        format!(
            "{have} of {all} sizes were measured in the time of --max-time: b_eff is their mean"
        ),
        "compare it with a mean over the same sizes only, or allow more time",
    )
}

/// The time was over before the warm-up was.
fn still_cold(done: &ExchangeResult, wanted: u32) -> Option<Warning> {
    let cold = |size: &&SizeResult| size.warmup < u64::from(wanted);
    let size = done.sizes.iter().find(cold)?;
    Some(Warning::new(
        "max-time",
        Some("b_eff"),
        format!(
            "{} of {wanted} exchanges warmed up for messages of {} B in the time of --max-time",
            size.warmup,
            1u64 << size.exponent
        ),
        "ask for a shorter warm-up, or allow more time",
    ))
}

/// Ranks of this machine that share CPUs.
fn crowded(result: &RunResult) -> Option<Warning> {
    let ranks = result.plan.ranks?;
    let cpus = result.host.cpus?;
    let here = match ranks.spawn {
        Spawn::Threads | Spawn::Processes => ranks.count,
        Spawn::Launcher => ranks_here(result),
    };
    let job = result.jobs().next().map(|job| job.name.as_str());
    (here > cpus).then(|| {
        Warning::new(
            "oversubscribed",
            job,
            format!("{here} ranks share {cpus} CPUs"),
            "ask for as many ranks as there are CPUs",
        )
    })
}

/// Ranks that said that they are on this machine.
fn ranks_here(result: &RunResult) -> u32 {
    let here = result.host.hostname.as_deref();
    let exchanges = result.jobs().filter_map(|job| job.exchange.as_ref());
    let tests = result
        .jobs()
        .filter_map(|job| job.latency_bandwidth.as_ref());
    let ranks = exchanges
        .flat_map(|e| &e.ranks)
        .chain(tests.flat_map(|t| &t.ranks));
    let count = ranks.filter(|r| r.hostname.as_deref() == here).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn first(result: &mut RunResult) -> Option<&mut JobResult> {
    result.groups.iter_mut().flat_map(|g| &mut g.jobs).next()
}

fn fail(result: &mut RunResult, cause: &str, message: String) {
    result.complete = false;
    if let Some(job) = first(result) {
        job.state = State::Failed;
        job.failure = Some(Failure::new(cause, message));
    }
}

/// A result in which nothing has been done yet.
pub(super) fn envelope(plan: &Plan) -> RunResult {
    let (_, clock) = Detection::begin().finish();
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    RunResult {
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: started.map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(0)),
        complete: true,
        clock: surroundings::clock_facts(clock),
        host: surroundings::host(),
        program: Some(program()),
        ..RunResult::of(plan.clone())
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
