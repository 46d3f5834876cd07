//! The result that samples make, with exact figures.
//!
//! In: samples. Out: a [`RunResult`] of a plan as far as they say what was to be done. Not here: their text
//! (`samples`).

use std::collections::{BTreeMap, BTreeSet};

use weir_schema::{
    EndpointSet, ErrorCode, Failure, Group, GroupResult, Job, JobResult, KindResult, LoopOutcome,
    Outcome, Plan, RPC_KINDS, RpcEndpoint, RpcEndpointResult, RpcMaster, RpcOutcome, RpcSample,
    RpcWorkload, RunResult, Span, Stage, StageHistogram, Start, State, WorkerResult,
    rpc_error_name,
};
use weir_units::{Bytes, Nanos, QueueDepth};

use super::samples::SampledMaster;

/// Error of RPCs whose payload was not what was sent.
const WRONG_PAYLOAD: &str = "DER_CSUM";

/// The result that these samples make.
pub fn result(masters: &[SampledMaster]) -> RunResult {
    let mut plan = Plan::new("selftest", "selftest", Vec::new());
    plan.groups.clear();
    let mut groups: Vec<GroupResult> = Vec::new();
    for tuple in tuples(masters) {
        let Some(first) = tuple.first() else {
            continue;
        };
        let work = work(first, tuple);
        let mut job = Job::of_rpcs(first.pair.words().trim_matches(['(', ')']), work);
        job.start = Start {
            barrier: !groups.is_empty(),
            ..Start::default()
        };
        groups.push(GroupResult {
            jobs: vec![job_result(&job, tuple)],
            ..GroupResult::default()
        });
        plan.groups.push(Group { jobs: vec![job] });
    }
    for group in &mut groups {
        group.conclude();
    }
    let durations = masters.iter().map(|one| one.duration_ns);
    RunResult {
        groups,
        duration_ns: durations.fold(Nanos::ZERO, Nanos::saturating_add),
        complete: true,
        ..RunResult::of(plan)
    }
}

/// Plan of the run, as far as the samples say.
fn work(first: &SampledMaster, tuple: &[SampledMaster]) -> RpcWorkload {
    let samples = tuple.iter().flat_map(|master| &master.samples);
    let endpoints: BTreeSet<RpcEndpoint> = samples.map(|one| one.endpoint).collect();
    let all = tuple.iter().map(SampledMaster::requested).max();
    let all = all.unwrap_or(0);
    let masters = tuple.iter().map(|one| EndpointSet::one(one.master));
    let mut work = RpcWorkload {
        request: first.pair.request,
        reply: first.pair.reply,
        repetitions: all.div_ceil((endpoints.len() as u64).max(1)),
        endpoints: endpoints.into_iter().map(EndpointSet::one).collect(),
        // Of one alone they do not say whether it was another than the command.
        masters: masters.filter(|_| tuple.len() > 1).collect(),
        matrix: tuple.iter().any(|one| !one.turns.is_empty()),
        ..RpcWorkload::default()
    };
    work.load.depth.queue_depth = QueueDepth(first.in_flight);
    work.load.bounds.operations = Some(all);
    work
}

/// Masters with the same sizes, one after another, until one of them comes again.
pub(super) fn tuples(masters: &[SampledMaster]) -> impl Iterator<Item = &[SampledMaster]> {
    let mut rest = masters;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let is_next = |at: usize, one: &SampledMaster| {
            (one.pair, one.in_flight) != (first.pair, first.in_flight)
                || rest
                    .iter()
                    .take(at)
                    .any(|before| before.master == one.master)
        };
        let end = rest
            .iter()
            .enumerate()
            .skip(1)
            .find(|(at, one)| is_next(*at, one));
        let (tuple, behind) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = behind;
        Some(tuple)
    })
}

fn job_result(job: &Job, tuple: &[SampledMaster]) -> JobResult {
    let bytes = tuple.first().map_or(0, |one| {
        u64::from(one.pair.request.bytes) + u64::from(one.pair.reply.bytes)
    });
    let masters: Vec<RpcMaster> = tuple
        .iter()
        .map(|one| of_master(one, tuple.len() == 1))
        .collect();
    let workers = (0..)
        .zip(&masters)
        .map(|(number, master)| worker(number, master, bytes));
    let workers: Vec<WorkerResult> = workers.collect();
    let span = workers.iter().filter_map(|w| w.span).reduce(Span::hull);
    let done = LoopOutcome {
        workers,
        ..LoopOutcome::default()
    };
    let mut result = JobResult {
        state: State::Done,
        span,
        outcome: Outcome::Rpc(Box::new(RpcOutcome {
            workers: done,
            masters,
        })),
        ..JobResult::not_started(&job.name)
    };
    result.conclude();
    result
}

/// The same as the work of a loop.
fn worker(number: u32, master: &RpcMaster, bytes: u64) -> WorkerResult {
    let mut errors: BTreeMap<ErrorCode, u64> = BTreeMap::new();
    for (code, count) in master.endpoints.iter().flat_map(|one| &one.failed) {
        *errors.entry(code.clone()).or_default() += count;
    }
    let rpcs = KindResult {
        issued: master.succeeded + master.failed,
        operations: master.succeeded,
        bytes: Bytes(bytes.saturating_mul(master.succeeded)),
        errors,
        runtime_ns: master.duration_ns,
        stages: vec![StageHistogram {
            stage: Stage::Lat,
            histogram: master.latency.clone(),
        }],
        ..KindResult::new(&RPC_KINDS[0])
    };
    WorkerResult {
        clone: number,
        number,
        span: Some(Span {
            start_ns: Nanos::ZERO,
            end_ns: master.duration_ns,
        }),
        state: State::Done,
        kinds: vec![rpcs],
        ..WorkerResult::default()
    }
}

/// Of the only master, or one of several: when each of those was at work no sample says.
fn of_master(one: &SampledMaster, is_alone: bool) -> RpcMaster {
    let mut endpoints: BTreeMap<RpcEndpoint, RpcEndpointResult> = BTreeMap::new();
    let mut master = RpcMaster::new(one.master, "");
    master.duration_ns = one.duration_ns;
    if let Some(why) = &one.failure {
        master.failure = Some(Failure::new("master", why.clone()));
        return master;
    }
    master.span = is_alone.then_some(Span {
        start_ns: Nanos::ZERO,
        end_ns: one.duration_ns,
    });
    master.requested = one.requested();
    for sample in &one.samples {
        let RpcSample {
            latency_ns,
            endpoint,
            code,
        } = *sample;
        let empty = || RpcEndpointResult {
            turn_ns: one.turns.get(&endpoint).copied(),
            ..RpcEndpointResult::new(endpoint)
        };
        let result = endpoints.entry(endpoint).or_insert_with(empty);
        if code == 0 {
            result.succeeded += 1;
            result.latency.record(latency_ns.0);
            master.latency.record(latency_ns.0);
        } else {
            *result.failed.entry(code_of(code)).or_default() += 1;
        }
    }
    master.endpoints = endpoints.into_values().collect();
    let wrong = |one: &RpcEndpointResult| one.failed.get(&ErrorCode::from(WRONG_PAYLOAD)).copied();
    master.mismatches = master.endpoints.iter().filter_map(wrong).sum();
    master.conclude();
    master.set_exact_figures(&one.samples);
    master
}

/// A code without a name stays a number.
fn code_of(code: i32) -> ErrorCode {
    rpc_error_name(code).map_or(ErrorCode::Errno(code), ErrorCode::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_schema::{RpcPayload, RpcPayloadKind, rpc_error_code};

    use super::*;
    use crate::selftest::MessagePair;
    use crate::selftest::output::work_of;
    use crate::selftest::samples::tests::any_master;

    /// A master of messages of so many bytes that has sent nothing.
    fn of(bytes: u32, rank: u32) -> SampledMaster {
        SampledMaster {
            pair: MessagePair {
                request: RpcPayload::of(RpcPayloadKind::Inline, bytes),
                reply: RpcPayload::default(),
            },
            in_flight: 1,
            master: RpcEndpoint { rank, tag: 0 },
            duration_ns: Nanos(1000),
            samples: Vec::new(),
            unsent: 1,
            failure: None,
            turns: BTreeMap::new(),
        }
    }

    #[test]
    fn wrong_payloads_are_counted_and_a_master_that_failed_takes_nothing_from_the_others() {
        let failed = SampledMaster {
            unsent: 0,
            failure: Some("it is not there".to_owned()),
            ..of(1, 0)
        };
        let wrong = rpc_error_code(WRONG_PAYLOAD).unwrap();
        let sample = |code| RpcSample {
            latency_ns: Nanos(5),
            endpoint: RpcEndpoint { rank: 2, tag: 0 },
            code,
        };
        let good = SampledMaster {
            samples: vec![sample(0), sample(wrong), sample(wrong)],
            ..of(1, 1)
        };
        let result = result(&[failed, good]);
        let (_, job) = result.plan.jobs().next().unwrap();
        assert_eq!(work_of(job).unwrap().repetitions, 4);
        let masters = &result.groups[0].jobs[0].rpc().unwrap().masters;
        let counts = |one: &RpcMaster| (one.failure.is_some(), one.mismatches, one.failed);
        let counts: Vec<_> = masters.iter().map(counts).collect();
        assert_eq!(counts, [(true, 0, 0), (false, 2, 2)]);
    }

    #[test]
    fn a_tuple_ends_where_its_sizes_or_its_masters_come_again() {
        let all = [of(1, 0), of(1, 1), of(1, 0), of(2, 0), of(2, 1)];
        let sizes: Vec<usize> = tuples(&all).map(<[_]>::len).collect();
        assert_eq!(sizes, [2, 1, 2]);
        assert_eq!(result(&all).groups.len(), 3);
    }

    proptest! {
        #[test]
        fn every_repetition_succeeded_failed_or_was_not_sent(one in any_master()) {
            let result = result(std::slice::from_ref(&one));
            let master = &result.groups[0].jobs[0].rpc().unwrap().masters[0];
            prop_assert_eq!(master.succeeded + master.failed, one.samples.len() as u64);
            prop_assert_eq!(master.not_sent, one.unsent);
            prop_assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        }
    }
}
