//! What ranks do together: exchanges of growing size, or ping-pongs and rings.

use weir_net::{Ended, NetError, Observer, exchange, latency_bandwidth};
use weir_run::execute::Signals;
use weir_schema::{
    ExchangeResult, ExchangeWorkload, Job, LatencyBandwidthResult, LatencyBandwidthWorkload, Plan,
    Ranks, Spawn, Workload,
};
use weir_sys::clock::Clock;
use weir_world::World;

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

/// The ranks of a plan: one where it names none.
pub(super) fn ranks_of(plan: &Plan) -> Ranks {
    plan.ranks.unwrap_or(Ranks {
        count: 1,
        spawn: Spawn::Threads,
    })
}

impl Work<'_> {
    /// What is wrong before any rank starts: by the plan's words alone, and on this machine.
    pub(super) fn check(self, job: &Job, ranks: Ranks) -> Result<(), NetError> {
        match self {
            Self::Exchange(work) => exchange::check(job, work, ranks.count)?,
            Self::LatencyBandwidth(work) => latency_bandwidth::check(job, work, ranks.count)?,
        };
        match ranks.spawn {
            // Each rank may be on a machine of its own.
            Spawn::Launcher => Ok(()),
            Spawn::Threads | Spawn::Processes => exchange::check_here(job, ranks.count),
        }
    }

    /// One rank's part; the result at rank 0.
    pub(super) fn carry_out(
        self,
        job: &Job,
        world: &dyn World,
        clock: &Clock,
        signals: &Signals,
        observer: Option<&Observer<'_, Done>>,
    ) -> Ended<Done> {
        match self {
            Self::Exchange(work) => relay(observer, Done::Exchange, |observer| {
                exchange::run(job, work, world, clock, signals, observer)
            }),
            Self::LatencyBandwidth(work) => relay(observer, Done::LatencyBandwidth, |observer| {
                latency_bandwidth::run(job, work, world, clock, signals, observer)
            }),
        }
    }
}

/// Runs it with an observer of whatever is done.
fn relay<R>(
    observer: Option<&Observer<'_, Done>>,
    of: fn(Box<R>) -> Done,
    run: impl FnOnce(Option<&Observer<'_, R>>) -> Ended<R>,
) -> Ended<Done> {
    let done = |ended: Ended<R>| Ended {
        done: ended.done.map(|done| of(Box::new(done))),
        error: ended.error,
    };
    let last = |ended| observer.map_or(1, |o| (o.last)(done(ended)));
    let observer = observer.map(|o| Observer {
        look: o.look,
        last: &last,
    });
    done(run(observer.as_ref()))
}
