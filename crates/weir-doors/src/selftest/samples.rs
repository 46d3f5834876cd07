//! Samples: every RPC of a run as a line of text, and the result that they make.
//!
//! In: the text of a samples file, or what a run kept of its RPCs. Out: a [`RunResult`] with exact
//! figures, or the text. Spec: RPC self-test, 8.2. Not here: files.

use std::collections::BTreeMap;

use weir_schema::{
    ErrorCode, Group, GroupResult, Job, JobResult, KindResult, LatencyFigures, LoopOutcome,
    Outcome, Plan, RPC_KINDS, RpcEndpoint, RpcEndpointResult, RpcMaster, RpcOutcome, RpcPayload,
    RpcPayloadKind, RpcSample, RpcWorkload, RunResult, Span, Stage, StageHistogram, Start, State,
    WorkerResult, rpc_error_name,
};
use weir_units::{Bytes, Nanos, QueueDepth};

use super::output::work_of;
use super::sizes::{MessagePair, reply_word, request_word};
use super::values::whole;

/// The first line of a file.
const HEAD: &str = "# weir-selftest-samples 1";
/// The line before the samples of a master.
const COLUMNS: &str = "latency_ns,rank,tag,code";
/// A repetition that was never sent.
const UNSENT: &str = ",,,unsent";

/// The RPCs of one master with one pair of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledMaster {
    /// What was sent and what came back.
    pub pair: MessagePair,
    /// At once.
    pub in_flight: u32,
    /// Which.
    pub master: RpcEndpoint,
    /// From the first to the last.
    pub duration_ns: Nanos,
    /// In the order in which they were begun.
    pub samples: Vec<RpcSample>,
}

/// The samples that a run has kept.
pub fn kept(result: &RunResult) -> Vec<SampledMaster> {
    let mut all = Vec::new();
    for ((_, job), done) in result.plan.jobs().zip(result.jobs()) {
        let (Some(work), Some(outcome)) = (work_of(job), done.rpc()) else {
            continue;
        };
        let good = outcome.masters.iter().filter(|one| one.failure.is_none());
        all.extend(good.map(|master| SampledMaster {
            pair: MessagePair {
                request: work.request,
                reply: work.reply,
            },
            in_flight: u32::try_from(work.in_flight()).unwrap_or(u32::MAX),
            master: master.endpoint,
            duration_ns: master.duration_ns,
            samples: master.samples.clone(),
        }));
    }
    all
}

/// The text of a samples file.
pub fn print(masters: &[SampledMaster]) -> String {
    let mut out = format!("{HEAD}\n");
    for one in masters {
        let (request, reply) = (one.pair.request, one.pair.reply);
        push!(
            out,
            "# tuple send={}:{} reply={}:{} inflight={} master={} duration_ns={}\n{COLUMNS}\n",
            request.bytes,
            request_word(request.kind),
            reply.bytes,
            reply_word(reply.kind),
            one.in_flight,
            one.master,
            one.duration_ns.0
        );
        for sample in &one.samples {
            match sample {
                RpcSample::Sent {
                    latency_ns,
                    endpoint: RpcEndpoint { rank, tag },
                    code,
                } => push!(out, "{},{rank},{tag},{code}\n", latency_ns.0),
                RpcSample::Unsent => push!(out, "{UNSENT}\n"),
            }
        }
    }
    out
}

/// Reads a samples file.
///
/// # Errors
/// Another file; a line that is none, with its number.
pub fn read(text: &str) -> Result<Vec<SampledMaster>, String> {
    let mut lines = (1..).zip(text.lines());
    if lines.next().is_none_or(|(_, line)| line.trim_end() != HEAD) {
        return Err(format!("line 1: it begins with `{HEAD}`"));
    }
    let mut masters: Vec<SampledMaster> = Vec::new();
    let mut has_columns = true;
    for (number, line) in lines {
        let refuse = |why: String| format!("line {number}: {why}");
        let line = line.trim_end();
        if let Some(tuple) = line.strip_prefix("# tuple ") {
            masters.push(tuple_line(tuple).map_err(refuse)?);
            has_columns = false;
        } else if line.is_empty() || line.starts_with('#') {
            // A remark.
        } else if line == COLUMNS {
            has_columns = true;
        } else {
            let last = masters.last_mut().filter(|_| has_columns);
            let last =
                last.ok_or_else(|| refuse(format!("`# tuple …` and `{COLUMNS}` go before it")))?;
            last.samples.push(sample(line).map_err(refuse)?);
        }
    }
    if masters.is_empty() {
        return Err("it has no samples".to_owned());
    }
    // What is counted is added up in 64 bits.
    let mut all = masters.iter().flat_map(|one| &one.samples);
    let mut sum = 0_u64;
    let fits = all.all(|sample| {
        let ns = if let RpcSample::Sent { latency_ns, .. } = sample {
            latency_ns.0
        } else {
            0
        };
        sum.checked_add(ns).is_some_and(|next| {
            sum = next;
            true
        })
    });
    if !fits {
        return Err("its latencies add up to more than 64 bits hold".to_owned());
    }
    Ok(masters)
}

fn tuple_line(text: &str) -> Result<SampledMaster, String> {
    let field = |name: &str| {
        let words = text.split_whitespace();
        let mut values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        values.next().ok_or_else(|| format!("it has no {name}="))
    };
    let number =
        |name: &str, most| whole(field(name)?, (0, most)).map_err(|why| format!("{name}: {why}"));
    let master = field("master")?;
    let master = endpoint(master).ok_or_else(|| format!("master={master}: it takes RANK:TAG"))?;
    let in_flight = number("inflight", u32::MAX.into())?;
    Ok(SampledMaster {
        pair: MessagePair {
            request: payload("send", field("send")?)?,
            reply: payload("reply", field("reply")?)?,
        },
        in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
        master,
        duration_ns: Nanos(number("duration_ns", u64::MAX)?),
        samples: Vec::new(),
    })
}

/// `1048578:BULK_PUT`.
fn payload(name: &str, text: &str) -> Result<RpcPayload, String> {
    let found = text.split_once(':').and_then(|(bytes, word)| {
        let kind = match word {
            "EMPTY" => RpcPayloadKind::Empty,
            "IOV" => RpcPayloadKind::Inline,
            "BULK_GET" if name == "send" => RpcPayloadKind::Bulk,
            "BULK_PUT" if name == "reply" => RpcPayloadKind::Bulk,
            _ => return None,
        };
        let bytes = bytes.parse::<u32>().ok()?;
        Some(RpcPayload { kind, bytes }).filter(|payload| RpcPayload::of(kind, bytes) == *payload)
    });
    found.ok_or_else(|| format!("{name}={text}: it takes BYTES:KIND, as 2000:IOV"))
}

fn endpoint(text: &str) -> Option<RpcEndpoint> {
    let (rank, tag) = text.split_once(':')?;
    Some(RpcEndpoint {
        rank: rank.parse().ok()?,
        tag: tag.parse().ok()?,
    })
}

fn sample(line: &str) -> Result<RpcSample, String> {
    if line == UNSENT {
        return Ok(RpcSample::Unsent);
    }
    let wrong = || format!("`{line}` is no sample: {COLUMNS}, or {UNSENT}");
    let mut fields = line.split(',');
    let mut next = || fields.next().ok_or_else(wrong);
    let (latency, rank, tag, code) = (next()?, next()?, next()?, next()?);
    let code = code.parse::<i32>().ok().filter(|code| *code <= 0);
    match (
        latency.parse(),
        rank.parse(),
        tag.parse(),
        code,
        fields.next(),
    ) {
        (Ok(latency), Ok(rank), Ok(tag), Some(code), None) => Ok(RpcSample::Sent {
            latency_ns: Nanos(latency),
            endpoint: RpcEndpoint { rank, tag },
            code,
        }),
        _ => Err(wrong()),
    }
}

/// The result that these samples make.
pub fn result(masters: &[SampledMaster]) -> RunResult {
    let mut plan = Plan::new("selftest", "selftest", Vec::new());
    plan.groups.clear();
    let mut groups: Vec<GroupResult> = Vec::new();
    for tuple in tuples(masters) {
        let Some(first) = tuple.first() else {
            continue;
        };
        let mut work = RpcWorkload {
            request: first.pair.request,
            reply: first.pair.reply,
            ..RpcWorkload::default()
        };
        work.load.depth.queue_depth = QueueDepth(first.in_flight);
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

/// Masters with the same sizes, one after another, until one of them comes again.
fn tuples(masters: &[SampledMaster]) -> impl Iterator<Item = &[SampledMaster]> {
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
    let masters: Vec<RpcMaster> = tuple.iter().map(of_master).collect();
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

fn of_master(one: &SampledMaster) -> RpcMaster {
    let mut exact: Vec<u64> = Vec::new();
    let mut endpoints: BTreeMap<RpcEndpoint, (RpcEndpointResult, Vec<u64>)> = BTreeMap::new();
    let mut master = RpcMaster::new(one.master, "");
    master.duration_ns = one.duration_ns;
    // Masters begin at the same time.
    master.span = Some(Span {
        start_ns: Nanos::ZERO,
        end_ns: one.duration_ns,
    });
    for sample in &one.samples {
        master.requested += 1;
        let RpcSample::Sent {
            latency_ns,
            endpoint,
            code,
        } = *sample
        else {
            continue;
        };
        let empty = || (RpcEndpointResult::new(endpoint), Vec::new());
        let (result, latencies) = endpoints.entry(endpoint).or_insert_with(empty);
        if code == 0 {
            result.succeeded += 1;
            result.latency.record(latency_ns.0);
            master.latency.record(latency_ns.0);
            latencies.push(latency_ns.0);
            exact.push(latency_ns.0);
        } else {
            *result.failed.entry(code_of(code)).or_default() += 1;
        }
    }
    let mut medians: BTreeMap<RpcEndpoint, Nanos> = BTreeMap::new();
    for (endpoint, (result, mut latencies)) in endpoints {
        latencies.sort_unstable();
        let middle = latencies.len().saturating_sub(1) / 2;
        medians.extend(latencies.get(middle).map(|ns| (endpoint, Nanos(*ns))));
        master.endpoints.push(result);
    }
    master.conclude();
    // What buckets know nearly is known exactly here.
    exact.sort_unstable();
    master.figures = LatencyFigures::of_sorted(&exact);
    for result in &mut master.endpoints {
        result.median_ns = medians.get(&result.endpoint).copied();
    }
    master
}

/// A code without a name stays a number.
fn code_of(code: i32) -> ErrorCode {
    rpc_error_name(code).map_or(ErrorCode::Errno(code), ErrorCode::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_that_is_none_is_refused_with_its_number() {
        let tuple = "# tuple send=0:EMPTY reply=5:IOV inflight=1 master=1:0 duration_ns=9";
        for (lines, says) in [
            (vec!["x"], "line 1: it begins with"),
            (vec![HEAD], "no samples"),
            (vec![HEAD, "1,0,0,0"], "line 2: `# tuple"),
            (vec![HEAD, tuple, "1,0,0,0"], "line 3: `# tuple"),
            (
                vec![HEAD, tuple, COLUMNS, "1,0,0"],
                "line 4: `1,0,0` is no sample",
            ),
            (vec![HEAD, tuple, COLUMNS, "1,0,0,7"], "is no sample"),
            (vec![HEAD, tuple, COLUMNS, "1,0,0,0,0"], "is no sample"),
            (vec![HEAD, tuple, COLUMNS, "-1,0,0,0"], "is no sample"),
            (
                vec![HEAD, "# tuple send=0:EMPTY"],
                "line 2: it has no master=",
            ),
            (
                vec![HEAD, &tuple.replace("5:IOV", "5:EMPTY")],
                "reply=5:EMPTY",
            ),
            (
                vec![HEAD, &tuple.replace("5:IOV", "5:BULK_GET")],
                "reply=5:BULK_GET",
            ),
            (
                vec![HEAD, &tuple.replace("1:0", "1")],
                "master=1: it takes RANK:TAG",
            ),
            (
                vec![HEAD, &tuple.replace("=9", "=x")],
                "duration_ns: it takes",
            ),
            (
                vec![
                    HEAD,
                    tuple,
                    COLUMNS,
                    "18446744073709551615,0,0,0",
                    "1,0,0,0",
                ],
                "more than 64 bits",
            ),
        ] {
            let refusal = read(&lines.join("\n")).unwrap_err();
            assert!(refusal.contains(says), "{lines:?}: {refusal}");
        }
    }

    #[test]
    fn a_tuple_ends_where_its_sizes_or_its_masters_come_again() {
        let of = |bytes, rank| SampledMaster {
            pair: MessagePair {
                request: RpcPayload::of(RpcPayloadKind::Inline, bytes),
                reply: RpcPayload::default(),
            },
            in_flight: 1,
            master: RpcEndpoint { rank, tag: 0 },
            duration_ns: Nanos(1000),
            samples: Vec::new(),
        };
        let all = [of(1, 0), of(1, 1), of(1, 0), of(2, 0), of(2, 1)];
        let sizes: Vec<usize> = tuples(&all).map(<[_]>::len).collect();
        assert_eq!(sizes, [2, 1, 2]);
        assert_eq!(result(&all).groups.len(), 3);
    }

    fn any_master() -> impl Strategy<Value = SampledMaster> {
        let sample = (
            0_u64..1_000_000,
            0_u32..4,
            0_u32..4,
            prop::option::of(-1100_i32..1),
        );
        let sample = sample.prop_map(|(ns, rank, tag, code)| match code {
            None => RpcSample::Unsent,
            Some(code) => RpcSample::Sent {
                latency_ns: Nanos(ns),
                endpoint: RpcEndpoint { rank, tag },
                code: if code > -500 { 0 } else { code },
            },
        });
        let payload = (0_u32..3, 0_u32..5000).prop_map(|(kind, bytes)| {
            use RpcPayloadKind::{Bulk, Empty, Inline};
            RpcPayload::of([Empty, Inline, Bulk][kind as usize], bytes)
        });
        let numbers = (1_u32..100, 0_u32..9, 1_u64..1 << 40);
        (
            payload.clone(),
            payload,
            numbers,
            prop::collection::vec(sample, 0..50),
        )
            .prop_map(
                |(request, reply, (in_flight, rank, ns), samples)| SampledMaster {
                    pair: MessagePair { request, reply },
                    in_flight,
                    master: RpcEndpoint { rank, tag: 0 },
                    duration_ns: Nanos(ns),
                    samples,
                },
            )
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(masters in prop::collection::vec(any_master(), 1..5)) {
            prop_assert_eq!(read(&print(&masters)).unwrap(), masters);
        }

        #[test]
        fn every_repetition_succeeded_failed_or_was_not_sent(one in any_master()) {
            let result = result(std::slice::from_ref(&one));
            let master = &result.groups[0].jobs[0].rpc().unwrap().masters[0];
            let count = one.samples.len() as u64;
            prop_assert_eq!(master.succeeded + master.failed + master.not_sent, count);
            let unsent = one.samples.iter().filter(|s| **s == RpcSample::Unsent).count();
            prop_assert_eq!(master.not_sent, unsent as u64);
            prop_assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        }
    }
}
