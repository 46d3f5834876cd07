//! Runner of the jobs that ranks do together: exchanges of growing size, or ping-pongs and rings.
//!
//! In: a job of the plan. Out: refusals before anything is touched, or a job for all ranks, whose
//! outcome says what was measured, whether that is all, and what spoils it. Not here: how messages
//! are exchanged and timed ([`crate::exchange`], [`crate::latency_bandwidth`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_run::execute::Signals;
use weir_run::{
    JobContext, PreparedJob, RankControl, RankJob, RankOutcome, RankPosition, RankProgress, Runner,
    failure,
};
use weir_schema::{
    ExchangeResult, ExchangeWorkload, Failure, Job, LatencyBandwidthResult,
    LatencyBandwidthWorkload, Outcome, RankFacts, Ranks, SizeResult, Spawn, Warning, Workload,
    exchange_metrics, exchange_warnings, latency_bandwidth_figures, latency_bandwidth_metrics,
    latency_bandwidth_warnings,
};
use weir_units::Nanos;

use crate::error::{Ended, NetError};
use crate::observer::{Observer, Seen};
use crate::{exchange, latency_bandwidth, wrong_data};

/// Carries exchanges of growing size out.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExchangeRunner;

/// Carries ping-pongs and rings out.
#[derive(Clone, Copy, Debug, Default)]
pub struct LatencyBandwidthRunner;

impl Runner for ExchangeRunner {
    fn handles(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::Exchange(_))
    }

    fn needs_world(&self) -> bool {
        true
    }

    fn allows_thread_ranks(&self) -> bool {
        true
    }

    fn check(&self, context: &JobContext<'_>) -> Vec<Failure> {
        let Workload::Exchange(work) = &context.job.workload else {
            return Vec::new();
        };
        let ranks = ranks_of(context);
        let words = || exchange::check(context.job, work, ranks.count).map(|_| ());
        check(context.job, ranks, words)
    }

    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        let Workload::Exchange(work) = &context.job.workload else {
            return Err(other_workload());
        };
        let job = ExchangeJob {
            work: work.as_ref().clone(),
            job: context.job.clone(),
            ranks: ranks_of(context),
        };
        Ok(PreparedJob::Ranks(Arc::new(job)))
    }
}

impl Runner for LatencyBandwidthRunner {
    fn handles(&self, workload: &Workload) -> bool {
        matches!(workload, Workload::LatencyBandwidth(_))
    }

    fn needs_world(&self) -> bool {
        true
    }

    fn allows_thread_ranks(&self) -> bool {
        true
    }

    fn check(&self, context: &JobContext<'_>) -> Vec<Failure> {
        let Workload::LatencyBandwidth(work) = &context.job.workload else {
            return Vec::new();
        };
        let ranks = ranks_of(context);
        let words = || latency_bandwidth::check(context.job, work, ranks.count).map(|_| ());
        check(context.job, ranks, words)
    }

    fn prepare(&self, context: &JobContext<'_>) -> Result<PreparedJob, Failure> {
        let Workload::LatencyBandwidth(work) = &context.job.workload else {
            return Err(other_workload());
        };
        let job = LatencyBandwidthJob {
            work: work.as_ref().clone(),
            job: context.job.clone(),
            ranks: ranks_of(context),
        };
        Ok(PreparedJob::Ranks(Arc::new(job)))
    }
}

fn other_workload() -> Failure {
    failure("plan", None, "this workload is none between ranks")
}

fn ranks_of(context: &JobContext<'_>) -> Ranks {
    context.plan.ranks.unwrap_or(Ranks::ONE)
}

/// Errors that the plan's settings show, and this machine where all ranks are on it.
fn check(job: &Job, ranks: Ranks, words: impl FnOnce() -> Result<(), NetError>) -> Vec<Failure> {
    if let Some(setting) = idle_setting(job) {
        let message = format!("`{setting}` has no meaning for what ranks do together");
        return vec![failure("plan", None, message)];
    }
    if job.workload.timeout_ns() == Some(Nanos(0)) {
        let message = "`timeout_ns` is 0: the ranks would have no time to answer each other";
        return vec![failure("plan", None, message)];
    }
    let here = || match ranks.spawn {
        // Each rank may be on a machine of its own.
        Spawn::Launcher => Ok(()),
        Spawn::Threads | Spawn::Processes => exchange::check_here(job, ranks.count)
            .and_then(|()| exchange::check_without_launcher(job)),
    };
    let found = words().and_then(|()| here()).err();
    found.iter().map(failure_of).collect()
}

/// A setting of every job that has no meaning for what ranks do together.
fn idle_setting(job: &Job) -> Option<&'static str> {
    let settings = [
        ("clones", job.clones != 1),
        ("start.before", job.start.before.is_some()),
        ("start.after", job.start.after.is_some()),
        ("end.until_other_jobs_end", job.end.until_other_jobs_end),
        ("report.merge", job.report.merge),
    ];
    let idle = settings.iter().find(|(_, is_set)| *is_set);
    idle.map(|(name, _)| *name)
}

fn failure_of(error: &NetError) -> Failure {
    let cause = match error {
        NetError::Plan(_) => "plan",
        NetError::Missing { .. } => "missing",
        _ => "exchange",
    };
    failure(cause, None, error.to_string())
}

struct ExchangeJob {
    job: Job,
    work: ExchangeWorkload,
    ranks: Ranks,
}

impl RankJob for ExchangeJob {
    fn work(&self, control: &RankControl<'_>) -> RankOutcome {
        let (progress, abandon, signals) = (control.progress, control.abandon, control.signals);
        let rank = control.world.rank();
        let look = |seen: &Seen| show(progress, seen);
        let outcome = |ended| self.outcome(ended, rank, signals);
        let last = |ended| abandon(outcome(ended));
        let observer = Observer {
            look: &look,
            last: &last,
        };
        let observer = (rank == 0).then_some(&observer);
        let (world, clock) = (control.world, control.clock);
        outcome(exchange::run(
            &self.job, &self.work, world, clock, signals, observer,
        ))
    }
}

impl ExchangeJob {
    fn outcome(&self, ended: Ended<ExchangeResult>, rank: u32, signals: &Signals) -> RankOutcome {
        let mut warnings = Vec::new();
        let mut is_whole = did_its_part(&ended, rank, signals);
        if let Some(done) = &ended.done {
            let name = &self.job.name;
            warnings = exchange_warnings(done, self.work.replications, name);
            warnings.extend(wrong_data::of_exchange(name, done));
            let (have, all) = (done.sizes.len(), self.work.measurements());
            is_whole = have == all;
            if have < all && ended.error.is_none() && !signals.interrupted() {
                warnings.push(cut_short(name, have, all));
            }
            warnings.extend(still_cold(name, done, self.work.warmup));
            warnings.extend(crowded(name, self.ranks, &done.ranks));
        }
        let metrics = |done| exchange_metrics(done, self.work.replications, is_whole);
        RankOutcome {
            metrics: ended.done.as_ref().map(metrics).unwrap_or_default(),
            outcome: match ended.done {
                Some(done) => Outcome::Exchange(Box::new(done)),
                None => Outcome::None,
            },
            is_whole,
            failure: ended.error.as_ref().map(failure_of),
            warnings,
        }
    }
}

struct LatencyBandwidthJob {
    job: Job,
    work: LatencyBandwidthWorkload,
    ranks: Ranks,
}

impl RankJob for LatencyBandwidthJob {
    fn work(&self, control: &RankControl<'_>) -> RankOutcome {
        let (progress, abandon, signals) = (control.progress, control.abandon, control.signals);
        let rank = control.world.rank();
        let look = |seen: &Seen| show(progress, seen);
        let outcome = |ended| self.outcome(ended, rank, signals);
        let last = |ended| abandon(outcome(ended));
        let observer = Observer {
            look: &look,
            last: &last,
        };
        let observer = (rank == 0).then_some(&observer);
        let (world, clock) = (control.world, control.clock);
        outcome(latency_bandwidth::run(
            &self.job, &self.work, world, clock, signals, observer,
        ))
    }
}

impl LatencyBandwidthJob {
    fn outcome(
        &self,
        ended: Ended<LatencyBandwidthResult>,
        rank: u32,
        signals: &Signals,
    ) -> RankOutcome {
        let done = ended.done.as_ref();
        let name = &self.job.name;
        let wrong = done.and_then(|done| wrong_data::of_latency_bandwidth(name, done));
        let crowded = done.and_then(|done| crowded(name, self.ranks, &done.ranks));
        let mut warnings: Vec<_> = wrong.into_iter().chain(crowded).collect();
        if let Some(done) = done {
            warnings.extend(latency_bandwidth_warnings(done, name));
            warnings.extend(fewer_rings(name, &self.work, done));
        }
        RankOutcome {
            is_whole: match done {
                Some(done) => latency_bandwidth_figures(done).is_some(),
                None => did_its_part(&ended, rank, signals),
            },
            failure: ended.error.as_ref().map(failure_of),
            warnings,
            metrics: done.map(latency_bandwidth_metrics).unwrap_or_default(),
            outcome: match ended.done {
                Some(done) => Outcome::LatencyBandwidth(Box::new(done)),
                None => Outcome::None,
            },
        }
    }
}

/// Another rank than 0, which has nothing to tell, came to its end.
fn did_its_part<R>(ended: &Ended<R>, rank: u32, signals: &Signals) -> bool {
    rank != 0 && ended.error.is_none() && !signals.interrupted()
}

fn show(progress: &RankProgress, seen: &Seen) {
    progress.set(RankPosition {
        fraction: seen.fraction,
        at: seen.place.map(|spot| format!("{} B", spot.bytes)),
        still: seen.still,
    });
}

/// The time was over before the sizes were.
fn cut_short(job: &str, have: usize, all: usize) -> Warning {
    let cause = format!("{have} of {all} sizes were measured in the time allowed");
    Warning::new("max-time", Some(job), cause)
}

/// The time was over before all random rings were measured.
fn fewer_rings(
    job: &str,
    wanted: &LatencyBandwidthWorkload,
    done: &LatencyBandwidthResult,
) -> Option<Warning> {
    wanted.max_time_ns?;
    let tests = [
        ("short", &wanted.latency, &done.latency),
        ("long", &wanted.bandwidth, &done.bandwidth),
    ];
    let cut = tests.iter().filter_map(|(what, wanted, done)| {
        let (have, all) = (done.random.len(), wanted.random_rings);
        (have > 0 && have < all as usize)
            .then(|| format!("{have} of {all} random rings of the {what} messages"))
    });
    let cut: Vec<_> = cut.collect();
    (!cut.is_empty()).then(|| {
        let cause = format!("{} were measured in the time allowed", cut.join(" and "));
        let remedy = "allow more time, or take the figures of random rings as those of few";
        Warning::new("max-time", Some(job), cause).with_remedy(remedy)
    })
}

/// The time was over before the warm-up was.
fn still_cold(job: &str, done: &ExchangeResult, wanted: u32) -> Option<Warning> {
    let cold = |size: &&SizeResult| size.warmup < u64::from(wanted);
    let size = done.sizes.iter().find(cold)?;
    let cause = format!(
        "{} of {wanted} exchanges warmed up for messages of {} B in the time allowed",
        size.warmup,
        1u64 << size.exponent
    );
    let warning = Warning::new("max-time", Some(job), cause);
    Some(warning.with_remedy("ask for a shorter warm-up, or allow more time"))
}

/// Ranks of this machine that share CPUs.
fn crowded(job: &str, ranks: Ranks, facts: &[RankFacts]) -> Option<Warning> {
    let whole = weir_sys::topology::Topology::of_this_machine().cpus.len();
    let (here, cpus) = match ranks.spawn {
        // They have the CPUs that this process was started with.
        Spawn::Threads | Spawn::Processes => (
            ranks.count,
            weir_sys::pin::affinity().map_or(whole, |cpus| cpus.as_slice().len()),
        ),
        Spawn::Launcher => {
            let name = exchange::hostname();
            let here = |facts: &&RankFacts| facts.hostname.as_deref() == Some(&name);
            let here = facts.iter().filter(here).count();
            (u32::try_from(here).unwrap_or(u32::MAX), whole)
        }
    };
    let is_crowd = cpus > 0 && here as usize > cpus;
    let all = is_crowd.then(|| format!("{here} ranks share {cpus} CPUs"));
    // Where ranks are pinned, which share one is known.
    sharing(facts).or(all).map(|cause| {
        let warning = Warning::new("oversubscribed", Some(job), cause);
        warning.with_remedy("give each rank a CPU of its own")
    })
}

/// Ranks of one machine that are kept on one CPU.
fn sharing(facts: &[RankFacts]) -> Option<String> {
    let mut users: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for rank in facts.iter().filter(|rank| rank.cpu.is_some()) {
        let place = (rank.hostname.as_deref(), rank.cpu);
        users.entry(place).or_default().push(rank.rank.to_string());
    }
    let (place, ranks) = users.iter().find(|(_, ranks)| ranks.len() > 1)?;
    let cpu = place.1.unwrap_or_default();
    Some(format!("ranks {} share CPU {cpu}", ranks.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_on_one_cpu_of_one_machine_share_it() {
        let rank = |rank, hostname: &str, cpu| RankFacts {
            rank,
            hostname: Some(hostname.to_owned()),
            cpu,
            ..RankFacts::default()
        };
        let apart = [
            rank(0, "a", Some(0)),
            rank(1, "a", Some(1)),
            rank(2, "b", Some(0)),
            rank(3, "a", None),
            rank(4, "a", None),
        ];
        assert_eq!(sharing(&apart), None);
        let mut together = apart.to_vec();
        together.push(rank(5, "a", Some(1)));
        assert_eq!(sharing(&together).unwrap(), "ranks 1, 5 share CPU 1");
    }
}
