//! Latency and bandwidth: ping-pongs of pairs, rings of all ranks (spec: effective bandwidth,
//! section 9).
//!
//! In: a job, the world, the clock, signals. Out: at rank 0 the times of all pairs and rings,
//! elsewhere nothing. What follows from the times is in `weir-schema`.

mod plan;
mod rank_run;
mod timed;

use serde::{Deserialize, Serialize};
use weir_run::execute::Signals;
use weir_schema::{
    Job, LARGEST_EXPONENT, LatencyBandwidthResult, LatencyBandwidthWorkload, MessageTestResult,
    MpiFacts, RankFacts,
};
use weir_sys::clock::Clock;
use weir_units::Nanos;
use weir_world::World;

use crate::error::{Ended, NetError};
use crate::exchange::available;
use crate::observer::Observer;
use crate::rank_context::{RankContext, RankEnvironment};
use crate::transport::{TransportInfo, transports};

pub(crate) use rank_run::measure_rank;

/// The longest message, as for exchanges.
const LONGEST: u64 = 1 << LARGEST_EXPONENT;

/// Context of one rank.
pub type LatencyBandwidthContext<'a> = RankContext<'a, LatencyBandwidthWorkload>;

/// Function by which a transport runs the plan.
pub(crate) type MeasureRank =
    fn(&LatencyBandwidthContext<'_>, &mut LatencyBandwidthOutcome) -> Result<(), NetError>;

/// One rank's part of the result: the pairs that it was client of, and all rings.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LatencyBandwidthOutcome {
    facts: RankFacts,
    mpi: Option<MpiFacts>,
    tick_ns: Nanos,
    latency: MessageTestResult,
    bandwidth: MessageTestResult,
    wrong_bytes: u64,
}

/// Error that the plan's settings alone show.
///
/// # Errors
/// The first thing found.
pub fn check(
    job: &Job,
    workload: &LatencyBandwidthWorkload,
    ranks: u32,
) -> Result<&'static TransportInfo, NetError> {
    let info = find(job, ranks)?;
    let plan = |message: &str| Err(NetError::Plan(message.to_owned()));
    if ranks < 2 {
        return plan("latency and bandwidth between ranks: it needs at least 2 ranks");
    }
    for test in [&workload.latency, &workload.bandwidth] {
        if !(1..=LONGEST).contains(&test.bytes.0) {
            return plan(&format!("messages have 1 byte to 2^{LARGEST_EXPONENT}"));
        }
        if test.random_rings == 0 {
            return plan("`random_rings` is 0: the figures need at least one random ring");
        }
        let loops = [test.ping_pong, test.ring];
        if loops
            .iter()
            .any(|l| l.loop_length == 0 || l.measurements == 0)
        {
            return plan("every loop needs an iteration and a measurement");
        }
    }
    Ok(info)
}

/// The transport of a job, where it carries messages between any two ranks.
fn find(job: &Job, ranks: u32) -> Result<&'static TransportInfo, NetError> {
    let info = available(job, ranks, 1)?;
    if info.measure_rank.is_some() {
        return Ok(info);
    }
    let able = transports().iter().filter(|t| t.measure_rank.is_some());
    let names: Vec<_> = able.map(|t| t.name).collect();
    Err(NetError::Plan(format!(
        "transport `{}` carries no messages between any two ranks ({} do)",
        info.name,
        names.join(", ")
    )))
}

/// Carries one rank's part out: the result at rank 0, nothing elsewhere. An error or a signal ends
/// it early with what was done. The observer sees rank 0.
pub fn run(
    job: &Job,
    workload: &LatencyBandwidthWorkload,
    world: &dyn World,
    clock: &Clock,
    signals: &Signals,
    observer: Option<&Observer<'_, LatencyBandwidthResult>>,
) -> Ended<LatencyBandwidthResult> {
    let last = |error| observer.map_or(1, |o| (o.last)(Ended { done: None, error }));
    let env = RankEnvironment {
        world,
        clock,
        signals,
        observer: observer.map(|o| (o.look, &last as _)),
    };
    let work = (job, workload, &());
    let ended = env.carry_out(work, workload.timeout_ns, |context, outcome| {
        match check(job, workload, world.size())?.measure_rank {
            Some(measure_rank) => measure_rank(context, outcome),
            None => Ok(()),
        }
    });
    Ended {
        done: ended.done.map(|outcomes| merge(&job.engine.name, outcomes)),
        error: ended.error,
    }
}

/// In rank order. Every rank knows the rings; each pair is known to its client.
fn merge(transport: &str, outcomes: Vec<(u32, LatencyBandwidthOutcome)>) -> LatencyBandwidthResult {
    let mut whole = LatencyBandwidthResult {
        transport: transport.to_owned(),
        ..LatencyBandwidthResult::default()
    };
    for (rank, outcome) in outcomes {
        whole.wrong_bytes += outcome.wrong_bytes;
        whole.ranks.push(outcome.facts);
        if rank == 0 {
            (whole.mpi, whole.tick_ns) = (outcome.mpi, outcome.tick_ns);
            (whole.latency, whole.bandwidth) = (outcome.latency, outcome.bandwidth);
        } else {
            whole.latency.pairs.extend(outcome.latency.pairs);
            whole.bandwidth.pairs.extend(outcome.bandwidth.pairs);
        }
    }
    whole
}
