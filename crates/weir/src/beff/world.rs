//! The ranks of a run: threads, processes, or what a launcher started.
//!
//! In: a plan. Out: this process's place among the ranks, and what they did together.

use std::time::Duration;

use weir_doors::Refusal;
use weir_doors::beff::USAGE;
use weir_net::{NetError, exchange, latency_bandwidth};
use weir_run::execute::Signals;
use weir_schema::{
    ExchangeResult, ExchangeWorkload, Job, LatencyBandwidthResult, LatencyBandwidthWorkload, Plan,
    Ranks, Spawn, Workload,
};
use weir_sys::clock::Clock;
use weir_world::mpi::MpiWorld;
use weir_world::{Launcher, ProcessWorld, World, on_threads};

use super::lacking;

/// Processes that have told their result end within this time.
const GRACE: Duration = Duration::from_secs(5);

/// This process among the ranks.
pub(super) enum Party {
    /// All ranks are here.
    Threads(u32),
    /// One rank is here, the others on this machine.
    Process(Box<ProcessWorld>),
    /// One rank is here, by a launcher.
    Mpi(Box<MpiWorld>),
}

/// What ranks do together.
#[derive(Clone, Copy)]
pub(super) enum Work<'a> {
    /// Exchanges of growing size.
    Exchange(&'a ExchangeWorkload),
    /// Ping-pongs and rings.
    LatencyBandwidth(&'a LatencyBandwidthWorkload),
}

/// What came of it.
pub(super) enum Done {
    /// Exchanges of growing size.
    Exchange(Box<ExchangeResult>),
    /// Ping-pongs and rings.
    LatencyBandwidth(Box<LatencyBandwidthResult>),
}

/// The job of a plan for ranks together, and its work.
pub(super) fn job_of(plan: &Plan) -> Option<(&Job, Work<'_>)> {
    let (_, job) = plan.jobs().next()?;
    match &job.workload {
        Workload::Exchange(work) => Some((job, Work::Exchange(work))),
        Workload::LatencyBandwidth(work) => Some((job, Work::LatencyBandwidth(work))),
        _ => None,
    }
}

impl Work<'_> {
    /// What the plan's words alone show to be wrong.
    pub(super) fn check(self, job: &Job, ranks: u32) -> Result<(), NetError> {
        match self {
            Self::Exchange(work) => exchange::check(job, work).map(|_| ()),
            Self::LatencyBandwidth(work) => latency_bandwidth::check(job, work, ranks).map(|_| ()),
        }
    }

    /// One rank's part; the result at rank 0.
    fn carry_out(
        self,
        job: &Job,
        world: &dyn World,
        clock: &Clock,
        signals: &Signals,
    ) -> Result<Option<Done>, NetError> {
        Ok(match self {
            Self::Exchange(work) => exchange::run(job, work, world, clock, signals)?
                .map(|done| Done::Exchange(Box::new(done))),
            Self::LatencyBandwidth(work) => {
                latency_bandwidth::run(job, work, world, clock, signals)?
                    .map(|done| Done::LatencyBandwidth(Box::new(done)))
            }
        })
    }
}

/// Brings the ranks of a plan together.
///
/// # Errors
/// They cannot be started, or launcher and library do not agree.
pub(super) fn enter(plan: &Plan) -> Result<Party, Refusal> {
    let ranks = plan.ranks.unwrap_or(Ranks {
        count: 1,
        spawn: Spawn::Threads,
    });
    match ranks.spawn {
        Spawn::Threads => Ok(Party::Threads(ranks.count)),
        Spawn::Processes => match ProcessWorld::enter(ranks.count) {
            Ok(world) => Ok(Party::Process(Box::new(world))),
            Err(error) => Err(failed(&error.to_string())),
        },
        Spawn::Launcher => launched(ranks.count),
    }
}

fn launched(planned: u32) -> Result<Party, Refusal> {
    let Some(launcher) = Launcher::of_this_process() else {
        return Err(lacking(
            "the plan is for ranks of an MPI launcher (start it with `mpirun -n N`)",
        ));
    };
    let world = crate::world::join(launcher)?;
    if world.size() == planned {
        return Ok(Party::Mpi(Box::new(world)));
    }
    let started = world.size();
    Err(Refusal {
        message: format!(
            "error: the plan is for {planned} ranks, the launcher started {started}\n"
        ),
        code: USAGE,
    })
}

fn failed(why: &str) -> Refusal {
    Refusal {
        message: format!("error: {why}\n"),
        code: 1,
    }
}

impl Party {
    /// Whether rank 0 is here.
    pub(super) fn speaks(&self) -> bool {
        match self {
            Self::Threads(_) => true,
            Self::Process(world) => world.rank() == 0,
            Self::Mpi(world) => world.rank() == 0,
        }
    }

    /// Carries out this process's part; the result where rank 0 is.
    pub(super) fn carry_out(
        &self,
        plan: &Plan,
        clock: &Clock,
        signals: &Signals,
    ) -> Result<Option<Done>, NetError> {
        let Some((job, work)) = job_of(plan) else {
            return Err(NetError::Plan(
                "the plan has no work for ranks together".to_owned(),
            ));
        };
        let part = |world: &dyn World| work.carry_out(job, world, clock, signals);
        match self {
            Self::Threads(count) => {
                let mut answers = on_threads(*count, |world| part(&world)).into_iter();
                answers.next().unwrap_or(Ok(None))
            }
            Self::Process(world) => part(world.as_ref()),
            Self::Mpi(world) => part(world.as_ref()),
        }
    }

    /// Waits for the other ranks' end; why one did not end well.
    pub(super) fn leave(self) -> Option<String> {
        match self {
            Self::Process(world) => world.finish(GRACE).err().map(|e| e.to_string()),
            Self::Threads(_) | Self::Mpi(_) => None,
        }
    }
}
