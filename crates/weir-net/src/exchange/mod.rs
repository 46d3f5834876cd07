//! Exchanges: every rank sends and receives messages of growing size (spec: effective
//! bandwidth, section 1).
//!
//! In: a job, the world, the clock, signals. Out: at rank 0 the times of all ranks, elsewhere
//! nothing. An exchange is never timed alone: the clock is read at both ends of a run of them.

mod rank_run;
mod report;
mod timed;

use std::collections::BTreeSet;

use serde::Serialize;
use weir_run::execute::Signals;
use weir_schema::{
    ExchangeResult, ExchangeWorkload, FaultKind, InjectedFault, Job, LARGEST_EXPONENT, Method,
    Pairing, Transfer, Validation,
};
use weir_sys::Availability;
use weir_sys::clock::Clock;
use weir_world::World;

use crate::error::{Ended, NetError};
use crate::observer::Observer;
use crate::pairing::{Partners, partners, resolve};
use crate::placement;
use crate::rank_context::{RankContext, RankEnvironment};
use crate::transport::{Asked, TransportInfo, find, transports};

pub(crate) use rank_run::{drive, facts_of, hostname};
pub(crate) use report::ExchangeOutcome;
pub use report::RankReports;

/// Channels that a rank has buffers and partners for.
const MOST_CHANNELS: u32 = 1 << 16;

/// Context of one rank of an exchange.
pub type ExchangeContext<'a> = RankContext<'a, ExchangeWorkload, RankReports>;

impl ExchangeContext<'_> {
    /// The rule for these channels, and this rank's partners by replication.
    pub(crate) fn pairs(&self, ring: bool) -> Result<(Pairing, Vec<Partners>), NetError> {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        let rule = resolve(self.workload.pairing, size, ring)?;
        let of = |replication| partners(rule, size, rank, replication);
        Ok((rule, (0..self.workload.replications).map(of).collect()))
    }

    /// No partner on any channel.
    pub(crate) fn alone(&self) -> Vec<Partners> {
        let (to, from) = (self.comm.rank(), self.comm.rank());
        vec![Partners { to, from }; self.workload.replications as usize]
    }

    /// Damage planned for this rank at this size.
    pub(crate) fn faults(&self, exponent: u8) -> impl Iterator<Item = InjectedFault> + '_ {
        let rank = self.comm.rank();
        let faults = self.workload.faults.iter().copied();
        faults.filter(move |fault| fault.rank == rank && fault.exponent == exponent)
    }
}

/// Name in a plan, which is also the value of its option.
fn word(named: &impl Serialize) -> String {
    let word = serde_json::to_value(named).ok();
    let word = word.as_ref().and_then(|word| word.as_str());
    word.unwrap_or_default().to_owned()
}

fn words(named: &[impl Serialize]) -> String {
    let words: Vec<_> = named.iter().map(word).collect();
    if words.is_empty() {
        return "none".to_owned();
    }
    words.join(", ")
}

/// Error that the plan's settings alone show.
///
/// # Errors
/// The first thing found.
pub fn check(
    job: &Job,
    workload: &ExchangeWorkload,
    ranks: u32,
) -> Result<&'static TransportInfo, NetError> {
    let name = &job.engine.name;
    let plan = |message: String| Err(NetError::Plan(message));
    let info = available(job, ranks, workload.replications)?;
    if workload.method != Method::Best && !info.methods.contains(&workload.method) {
        return plan(format!(
            "transport `{name}`: it has no method `{}` (it has {})",
            word(&workload.method),
            words(info.methods)
        ));
    }
    if !info.moves_data && workload.validation != Validation::None {
        return plan(format!(
            "transport `{name}` moves nothing that could be validated (use `none`)"
        ));
    }
    if !info.samples && workload.validation == Validation::Sample {
        return plan(format!(
            "transport `{name}`: messages do not stay on the host, where validation `sample` looks \
             at them (use `const` or `full`)"
        ));
    }
    if workload.validation == Validation::None && workload.faults.iter().any(is_flip) {
        return plan("a byte that is flipped is not noticed with validation `none`".to_owned());
    }
    let other = |t: &&Transfer| !info.transfers.contains(t);
    if let Some(transfer) = workload.transfers.iter().find(other) {
        return plan(format!(
            "transport `{name}`: it has no transfers `{}` (it has {})",
            word(transfer),
            words(info.transfers)
        ));
    }
    if workload.sizes.is_empty() || workload.repetitions == 0 || workload.replications == 0 {
        return plan("exchanges need a size, a repetition and a replication".to_owned());
    }
    if workload.replications > MOST_CHANNELS {
        return plan(format!(
            "{} replications: at most {MOST_CHANNELS} channels",
            workload.replications
        ));
    }
    resolve(workload.pairing, ranks, false)?;
    let wrong = wrong_sizes(workload).or_else(|| wrong_fault(workload, ranks));
    wrong.map_or(Ok(info), plan)
}

fn is_flip(fault: &InjectedFault) -> bool {
    fault.kind == FaultKind::Flip
}

/// A fault that would not be done, or not be seen, and why.
fn wrong_fault(workload: &ExchangeWorkload, ranks: u32) -> Option<String> {
    (0..)
        .zip(&workload.faults)
        .find_map(|(at, fault): (u32, _)| {
            let is_sampled = workload.validation == Validation::Sample && is_flip(fault);
            let unseen = || {
                let why = "validation `sample` looks at the ends of a message";
                (is_sampled && !fault.is_at_an_end()).then(|| why.to_owned())
            };
            let why = workload.misfit(fault, ranks).or_else(unseen)?;
            Some(format!("`faults[{at}]`: {why}"))
        })
}

/// Sizes that no message has, and those that would have two results.
fn wrong_sizes(workload: &ExchangeWorkload) -> Option<String> {
    let mut seen = BTreeSet::new();
    workload.sizes.iter().find_map(|size| {
        let (exponent, length) = (size.exponent, size.loop_length);
        if exponent > LARGEST_EXPONENT || length == 0 {
            return Some(format!(
                "messages of 2^{exponent} B in loops of {length}: the exponent is at most \
                 {LARGEST_EXPONENT}, the loop at least 1"
            ));
        }
        let why = "are listed twice: each size has one result";
        (!seen.insert(exponent)).then(|| format!("messages of 2^{exponent} B {why}"))
    })
}

/// The transport of a job, where this machine can use it as the job says.
pub(crate) fn available(
    job: &Job,
    ranks: u32,
    replications: u32,
) -> Result<&'static TransportInfo, NetError> {
    let name = &job.engine.name;
    let Some(info) = find(name) else {
        let names: Vec<_> = transports().iter().map(|t| t.name).collect();
        let names = names.join(", ");
        return Err(NetError::Plan(format!(
            "there is no transport `{name}` (there are {names})"
        )));
    };
    if let Availability::Missing { what, remedy } = (info.availability)() {
        let transport = name.clone();
        return Err(NetError::Missing {
            transport,
            what,
            remedy,
        });
    }
    crate::settings::check(info, &job.engine)?;
    placement::check(&job.placement)?;
    (info.check)(&Asked {
        engine: &job.engine,
        ranks,
        replications,
    })?;
    Ok(info)
}

/// Error that this machine shows for a job of ranks that are all on it, without starting anything.
/// [`check`] has passed.
///
/// # Errors
/// The first thing found.
pub fn check_here(job: &Job, ranks: u32) -> Result<(), NetError> {
    placement::here(&job.placement, ranks).map_err(NetError::Plan)?;
    let asked = Asked {
        engine: &job.engine,
        ranks,
        replications: 1,
    };
    match find(&job.engine.name) {
        Some(info) => (info.here)(&asked).map_err(|why| asked.wrong(&why)),
        None => Ok(()),
    }
}

/// The transport needs no launcher, where there is none.
///
/// # Errors
/// It does.
pub fn check_without_launcher(job: &Job) -> Result<(), NetError> {
    let name = &job.engine.name;
    match find(name) {
        Some(info) if info.needs_launcher => Err(NetError::Missing {
            transport: name.clone(),
            what: "a launcher of MPI that has started the ranks".to_owned(),
            remedy: "start weir with mpirun or srun".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Carries one rank's part out: the result at rank 0, nothing elsewhere. An error or a signal ends
/// it early with the sizes that were done. The observer sees rank 0.
pub fn run(
    job: &Job,
    workload: &ExchangeWorkload,
    world: &dyn World,
    clock: &Clock,
    signals: &Signals,
    observer: Option<&Observer<'_, ExchangeResult>>,
) -> Ended<ExchangeResult> {
    let reports = RankReports::new(world.size());
    let merged = || Some(reports.merge(&job.engine.name));
    let last = |error| {
        let done = merged();
        observer.map_or(1, |o| (o.last)(Ended { done, error }))
    };
    let env = RankEnvironment {
        world,
        clock,
        signals,
        observer: observer.map(|o| (o.look, &last as _)),
    };
    let work = (job, workload, &reports);
    let ended = env.carry_out(work, workload.timeout_ns, |context, outcome| {
        let info = check(job, workload, world.size())?;
        context.watchdog.expect(runs(workload, info));
        (info.drive)(context, info, outcome)
    });
    for (rank, report) in ended.done.into_iter().flatten() {
        reports.add(rank, report);
    }
    Ended {
        done: merged().filter(|_| world.rank() == 0),
        error: ended.error,
    }
}

/// Timed runs of a plan.
fn runs(workload: &ExchangeWorkload, info: &TransportInfo) -> u64 {
    let loops = workload.measurements() * info.tried(&workload.method).len();
    let loops = u64::try_from(loops).unwrap_or(u64::MAX);
    loops.saturating_mul(workload.repetitions.into())
}
