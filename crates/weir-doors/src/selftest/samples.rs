//! Samples: every RPC that a run has sent as a line of text, how many it has not, and how it ended.
//!
//! In: the text of a samples file, or a result with samples. Out: the result of a plan as far as samples say what
//! was to be done, or the text. Spec: RPC self-test, 8.2. Not here: files, counting (`RpcMaster::conclude_samples`).

use std::collections::BTreeSet;

use weir_schema::{
    EndpointSet, Failure, Group, GroupResult, Job, JobResult, Plan, RpcEndpoint, RpcEndpointResult,
    RpcMaster, RpcPayload, RpcPayloadKind, RpcSample, RpcWorkload, RunResult, Span, Start,
};
use weir_units::{Nanos, QueueDepth, parse};

use super::MessagePair;
use super::output::measured;
use super::sizes::{reply_word, request_word};

/// The first line of a file.
pub const HEAD: &str = "# weir-selftest-samples 1";
/// The line before the samples of a master.
const COLUMNS: &str = "latency_ns,rank,tag,code";
/// A repetition that was never sent; behind a colon how many, where they are several.
const UNSENT: &str = ",,,unsent";
/// Behind it: why a master has measured nothing.
const FAILED: &str = "# failed: ";
/// Behind it: the exit code of the run.
const EXIT: &str = "# exit=";
/// Codes of the family and of the system have no larger numbers.
const LARGEST_CODE: i32 = 4095;

/// The name of the field; its value is `RANK:TAG/NANOSECONDS`, several with commas.
const TURNS: &str = "turns_ns";

/// The text of a samples file: of a run with this exit code, those masters that have some or have failed.
pub fn print(result: &RunResult, exit_code: u8) -> String {
    let mut out = format!("{HEAD}\n");
    for (work, done) in measured(result) {
        let has_some =
            |one: &&RpcMaster| one.failure.is_some() || one.not_sent > 0 || !one.samples.is_empty();
        for master in done.masters.iter().filter(has_some) {
            print_master(&mut out, work, master);
        }
    }
    push!(out, "{EXIT}{exit_code}\n");
    out
}

fn print_master(out: &mut String, work: &RpcWorkload, master: &RpcMaster) {
    push!(
        out,
        "# tuple send={}:{} reply={}:{} inflight={} master={} duration_ns={}{}\n",
        work.request.bytes,
        request_word(work.request.kind),
        work.reply.bytes,
        reply_word(work.reply.kind),
        work.in_flight(),
        master.endpoint,
        master.duration_ns.0,
        turns_text(&master.endpoints)
    );
    if let Some(why) = &master.failure {
        push!(out, "{FAILED}{}\n", one_line(&why.message));
        return;
    }
    push!(out, "{COLUMNS}\n");
    for sample in &master.samples {
        let RpcEndpoint { rank, tag } = sample.endpoint;
        push!(
            out,
            "{},{rank},{tag},{}\n",
            sample.latency_ns.0,
            sample.code
        );
    }
    match master.not_sent {
        0 => {}
        1 => push!(out, "{UNSENT}\n"),
        count => push!(out, "{UNSENT}:{count}\n"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A master whose samples are read, with the line of its tuple.
type Tuple = (usize, RpcWorkload, RpcMaster);

/// Reads a samples file: the result that it makes, and the exit code of its run.
///
/// # Errors
/// Another file; a line that is none, with its number.
pub fn read(text: &str) -> Result<(RunResult, u8), String> {
    let mut lines = (1..).zip(text.lines());
    if lines.next().is_none_or(|(_, line)| line.trim_end() != HEAD) {
        return Err(format!("line 1: it begins with `{HEAD}`"));
    }
    let mut jobs: Vec<SampledJob> = Vec::new();
    let mut open: Option<Tuple> = None;
    let mut has_columns = true;
    let mut exit_code = 0;
    for (number, line) in lines {
        let refuse = |why: String| format!("line {number}: {why}");
        let line = line.trim_end();
        if let Some(tuple) = line.strip_prefix("# tuple ") {
            close(&mut jobs, open.take())?;
            let (work, master) = tuple_line(tuple).map_err(refuse)?;
            (open, has_columns) = (Some((number, work, master)), false);
        } else if let (Some(why), Some((_, _, last))) = (line.strip_prefix(FAILED), &mut open) {
            last.failure = Some(Failure::new("master", one_line(why)));
        } else if let Some(code) = line.strip_prefix(EXIT) {
            let code =
                parse::whole(code, (0, 255)).map_err(|why| refuse(format!("exit: {why}")))?;
            exit_code = u8::try_from(code).unwrap_or(u8::MAX);
        } else if line.is_empty() || line.starts_with('#') {
            // A remark.
        } else if line == COLUMNS {
            has_columns = true;
        } else {
            let last = open.as_mut().filter(|_| has_columns);
            let (_, _, last) =
                last.ok_or_else(|| refuse(format!("`# tuple …` and `{COLUMNS}` go before it")))?;
            take_row(last, line).map_err(refuse)?;
        }
    }
    close(&mut jobs, open)?;
    if jobs.is_empty() {
        return Err("it has no samples".to_owned());
    }
    check_sums(&jobs)?;
    Ok((result(jobs), exit_code))
}

/// Puts a master that is read with those before it: of the same sizes, until one of them comes again.
///
/// # Errors
/// It has no rows, and has not failed; RPCs that succeeded took no time.
fn close(jobs: &mut Vec<SampledJob>, tuple: Option<Tuple>) -> Result<(), String> {
    let Some((line, work, master)) = tuple else {
        return Ok(());
    };
    if master.requested == 0 && master.failure.is_none() {
        return Err(format!("line {line}: no samples follow this tuple"));
    }
    let succeeded = |one: &RpcSample| one.code == 0;
    if master.duration_ns == Nanos::ZERO && master.samples.iter().any(succeeded) {
        return Err(format!(
            "line {line}: duration_ns: it takes nanoseconds above 0, as RPCs succeeded"
        ));
    }
    let is_new = |known: &RpcMaster| known.endpoint != master.endpoint;
    match jobs.last_mut() {
        Some(last) if last.0 == work && last.1.iter().all(is_new) => last.1.push(master),
        _ => jobs.push((work, vec![master])),
    }
    Ok(())
}

/// Sums of counts have 64 bits.
fn check_sums(jobs: &[SampledJob]) -> Result<(), String> {
    let masters = || jobs.iter().flat_map(|(_, masters)| masters);
    let samples = masters().flat_map(|one| &one.samples);
    if !fits(samples.map(|one| one.latency_ns.0)) {
        return Err("its latencies add up to more than 64 bits hold".to_owned());
    }
    if !fits(masters().map(|one| one.requested)) {
        return Err("its RPCs are more than 64 bits count".to_owned());
    }
    Ok(())
}

fn fits(mut numbers: impl Iterator<Item = u64>) -> bool {
    numbers.try_fold(0_u64, u64::checked_add).is_some()
}

fn tuple_line(text: &str) -> Result<(RpcWorkload, RpcMaster), String> {
    let some = |name: &str| {
        let words = text.split_whitespace();
        let mut values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        values.next()
    };
    let field = |name: &str| some(name).ok_or_else(|| format!("it has no {name}="));
    let turns = some(TURNS).map(|text| {
        let why = || format!("{TURNS}={text}: it takes RANK:TAG/NANOSECONDS, several with commas");
        turns(text).ok_or_else(why)
    });
    let number = |name: &str, range| {
        parse::whole(field(name)?, range).map_err(|why| format!("{name}: {why}"))
    };
    let master = field("master")?;
    let master = endpoint(master).ok_or_else(|| format!("master={master}: it takes RANK:TAG"))?;
    let in_flight = number("inflight", (1, u32::MAX.into()))?;
    let mut work = RpcWorkload {
        request: payload("send", field("send")?)?,
        reply: payload("reply", field("reply")?)?,
        ..RpcWorkload::default()
    };
    work.load.depth.queue_depth = QueueDepth(u32::try_from(in_flight).unwrap_or(u32::MAX));
    let mut master = RpcMaster::new(master, "");
    master.duration_ns = Nanos(number("duration_ns", (0, u64::MAX))?);
    master.endpoints = turns.transpose()?.unwrap_or_default();
    Ok((work, master))
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

/// `0:2`.
fn endpoint(text: &str) -> Option<RpcEndpoint> {
    let (rank, tag) = text.split_once(':')?;
    Some(RpcEndpoint {
        rank: rank.parse().ok()?,
        tag: tag.parse().ok()?,
    })
}

/// The last field of a tuple, with the blank before it; nothing without turns.
fn turns_text(endpoints: &[RpcEndpointResult]) -> String {
    let all = endpoints.iter();
    let all = all.filter_map(|one| Some(format!("{}/{}", one.endpoint, one.turn_ns?.0)));
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        return String::new();
    }
    format!(" {TURNS}={}", all.join(","))
}

/// Endpoints with the turns in the value of such a field.
fn turns(text: &str) -> Option<Vec<RpcEndpointResult>> {
    let one = |turn: &str| {
        let (at, time) = turn.split_once('/')?;
        let at = endpoint(at)?;
        let turn_ns = Some(Nanos(time.parse().ok()?));
        let new = RpcEndpointResult::new(at);
        Some(RpcEndpointResult { turn_ns, ..new })
    };
    text.split(',').map(one).collect()
}

/// One RPC, or some that were not sent.
fn take_row(master: &mut RpcMaster, line: &str) -> Result<(), String> {
    let count = match line.strip_prefix(UNSENT) {
        None => {
            master.samples.push(sample(line)?);
            1
        }
        Some("") => 1,
        Some(rest) => {
            let count = rest.strip_prefix(':').ok_or_else(|| no_sample(line))?;
            parse::whole(count, (1, u64::MAX)).map_err(|why| format!("`{line}`: unsent: {why}"))?
        }
    };
    let all = master.requested.checked_add(count);
    master.requested = all.ok_or_else(|| format!("`{line}`: unsent: more than 64 bits count"))?;
    Ok(())
}

fn no_sample(line: &str) -> String {
    format!("`{line}` is no sample: {COLUMNS}, or {UNSENT}, or {UNSENT}:COUNT")
}

fn sample(line: &str) -> Result<RpcSample, String> {
    let wrong = || no_sample(line);
    let odd = |code: &str| {
        format!(
            "`{line}`: code {code}: it takes 0, or the number of an error from -{LARGEST_CODE} to -1"
        )
    };
    let mut fields = line.split(',');
    let mut next = || fields.next().ok_or_else(wrong);
    let (latency, rank, tag, code) = (next()?, next()?, next()?, next()?);
    let number = code.parse::<i32>().map_err(|_| wrong())?;
    if !(-LARGEST_CODE..=0).contains(&number) {
        return Err(odd(code));
    }
    match (latency.parse(), rank.parse(), tag.parse(), fields.next()) {
        (Ok(latency), Ok(rank), Ok(tag), None) => Ok(RpcSample {
            latency_ns: Nanos(latency),
            endpoint: RpcEndpoint { rank, tag },
            code: number,
        }),
        _ => Err(wrong()),
    }
}

/// Sizes and RPCs at once; the masters with their samples, RPCs that there were to be, and turns.
type SampledJob = (RpcWorkload, Vec<RpcMaster>);

/// The result that these samples make.
fn result(jobs: Vec<SampledJob>) -> RunResult {
    let mut plan = Plan::new("selftest", "selftest", Vec::new());
    plan.groups.clear();
    let mut groups: Vec<GroupResult> = Vec::new();
    let mut duration_ns = Nanos::ZERO;
    for (sizes, mut masters) in jobs {
        let is_alone = masters.len() == 1;
        for master in &mut masters {
            conclude(master, is_alone);
            duration_ns = duration_ns.saturating_add(master.duration_ns);
        }
        let work = work(sizes, &masters);
        let bytes = work.bytes();
        let name = MessagePair::of(&work).words();
        let mut job = Job::of_rpcs(name.trim_matches(['(', ')']), work);
        job.start = Start {
            barrier: !groups.is_empty(),
            ..Start::default()
        };
        let mut group = GroupResult {
            jobs: vec![JobResult::of_masters(&job.name, masters, bytes)],
            ..GroupResult::default()
        };
        group.conclude();
        groups.push(group);
        plan.groups.push(Group { jobs: vec![job] });
    }
    RunResult {
        groups,
        duration_ns,
        complete: true,
        ..RunResult::of(plan)
    }
}

/// Of the only master, or one of several: when each of those was at work no sample says.
fn conclude(master: &mut RpcMaster, is_alone: bool) {
    if master.failure.is_some() {
        *master = RpcMaster {
            failure: master.failure.take(),
            duration_ns: master.duration_ns,
            ..RpcMaster::new(master.endpoint, "")
        };
        return;
    }
    master.span = is_alone.then_some(Span {
        start_ns: Nanos::ZERO,
        end_ns: master.duration_ns,
    });
    master.conclude_samples();
}

/// Plan of the run, as far as the samples say.
fn work(sizes: RpcWorkload, masters: &[RpcMaster]) -> RpcWorkload {
    let called = || masters.iter().flat_map(|one| &one.endpoints);
    let endpoints: BTreeSet<RpcEndpoint> = called().map(|one| one.endpoint).collect();
    let all = masters.iter().map(|one| one.requested).max().unwrap_or(0);
    let several = masters.iter().filter(|_| masters.len() > 1);
    let mut work = RpcWorkload {
        repetitions: all.div_ceil((endpoints.len() as u64).max(1)),
        endpoints: endpoints.into_iter().map(EndpointSet::one).collect(),
        // Of one alone they do not say whether it was another than the command.
        masters: several.map(|one| EndpointSet::one(one.endpoint)).collect(),
        matrix: called().any(|one| one.turn_ns.is_some()),
        ..sizes
    };
    work.load.bounds.operations = Some(all);
    work
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::selftest::output::work_of;

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
            (
                vec![HEAD, tuple, COLUMNS, "1,0,0,7"],
                "line 4: `1,0,0,7`: code 7: it takes 0",
            ),
            (
                vec![HEAD, tuple, COLUMNS, "1,0,0,-999999"],
                "from -4095 to -1",
            ),
            (vec![HEAD, tuple, COLUMNS], "line 2: no samples follow"),
            (
                vec![HEAD, tuple, tuple, COLUMNS, "1,0,0,0"],
                "line 2: no samples follow",
            ),
            (
                vec![HEAD, &tuple.replace("=9", "=0"), COLUMNS, "1,0,0,0"],
                "line 2: duration_ns: it takes",
            ),
            (vec![HEAD, tuple, COLUMNS, "1,0,0,0,0"], "is no sample"),
            (vec![HEAD, tuple, COLUMNS, "-1,0,0,0"], "is no sample"),
            (
                vec![HEAD, tuple, COLUMNS, ",,,unsent5"],
                "line 4: `,,,unsent5` is no sample",
            ),
            (
                vec![HEAD, tuple, COLUMNS, ",,,unsent:0"],
                "line 4: `,,,unsent:0`: unsent: it takes",
            ),
            (
                vec![
                    HEAD,
                    tuple,
                    COLUMNS,
                    ",,,unsent:18446744073709551615",
                    ",,,unsent",
                ],
                "line 5: `,,,unsent`: unsent: more than 64 bits",
            ),
        ] {
            refused(&lines, says);
        }
    }

    #[test]
    fn a_tuple_that_is_none_is_refused_with_its_word() {
        let tuple = "# tuple send=0:EMPTY reply=5:IOV inflight=1 master=1:0 duration_ns=9";
        for (lines, says) in [
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
                vec![HEAD, &tuple.replace("=9", "=9 turns_ns=0:0/x")],
                "turns_ns=0:0/x: it takes RANK:TAG/NANOSECONDS",
            ),
            (
                vec![HEAD, &tuple.replace("inflight=1", "inflight=0")],
                "line 2: inflight: it takes a whole number from 1",
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
            refused(&lines, says);
        }
    }

    fn refused(lines: &[&str], says: &str) {
        let refusal = read(&lines.join("\n")).unwrap_err();
        assert!(refusal.contains(says), "{lines:?}: {refusal}");
    }

    /// The result of these tuples: bytes of requests, rank of the master, lines behind.
    fn of(tuples: &[(u32, u32, &str)]) -> RunResult {
        let mut text = format!("{HEAD}\n");
        for (bytes, rank, lines) in tuples {
            push!(
                text,
                "# tuple send={bytes}:IOV reply=0:EMPTY inflight=1 master={rank}:0 duration_ns=1000\n\
                 {lines}\n"
            );
        }
        read(&text).unwrap().0
    }

    #[test]
    fn wrong_payloads_are_counted_and_a_master_that_failed_takes_nothing_from_the_others() {
        let rows = "latency_ns,rank,tag,code\n5,2,0,0\n5,2,0,-2021\n5,2,0,-2021\n,,,unsent";
        let result = of(&[(1, 0, "# failed: it is not there"), (1, 1, rows)]);
        let (_, job) = result.plan.jobs().next().unwrap();
        assert_eq!(work_of(job).unwrap().repetitions, 4);
        let masters = &result.groups[0].jobs[0].rpc().unwrap().masters;
        let counts = |one: &RpcMaster| (one.failure.is_some(), one.mismatches, one.failed);
        let counts: Vec<_> = masters.iter().map(counts).collect();
        assert_eq!(counts, [(true, 0, 0), (false, 2, 2)]);
    }

    #[test]
    fn a_tuple_ends_where_its_sizes_or_its_masters_come_again() {
        let none = "latency_ns,rank,tag,code\n,,,unsent";
        let all = [(1, 0), (1, 1), (1, 0), (2, 0), (2, 1)].map(|(size, rank)| (size, rank, none));
        let groups = of(&all).groups;
        let sizes = groups
            .iter()
            .map(|group| group.jobs[0].rpc().unwrap().masters.len());
        assert_eq!(sizes.collect::<Vec<_>>(), [2, 1, 2]);
    }

    /// The lines of a master: of a tuple with a number in it, and rows.
    fn any_tuple() -> impl Strategy<Value = String> {
        let sample = (0_u64..1_000_000, 0_u32..4, 0_u32..4, -1100_i32..1);
        let sample = sample.prop_map(|(ns, rank, tag, code)| {
            let code = if code > -500 { 0 } else { code };
            (
                format!("{rank}:{tag}"),
                format!("{ns},{rank},{tag},{code}\n"),
            )
        });
        let samples = prop::collection::vec(sample, 0..50);
        let payload = |bulk: &'static str| {
            (0_u32..3, 1_u32..5000).prop_map(move |(kind, bytes)| match kind {
                0 => "0:EMPTY".to_owned(),
                1 => format!("{bytes}:IOV"),
                _ => format!("{bytes}:{bulk}"),
            })
        };
        let numbers = (1_u32..100, 0_u32..9, 1_u64..1 << 40, any::<bool>());
        let unsent = prop_oneof![Just(0), Just(1), 2_u64..1 << 40];
        let all = (
            payload("BULK_GET"),
            payload("BULK_PUT"),
            numbers,
            unsent,
            samples,
        );
        all.prop_map(
            |(request, reply, (deep, rank, ns, has_turns), unsent, samples)| {
                let called: BTreeSet<&String> = samples.iter().map(|(at, _)| at).collect();
                let turns: Vec<String> = called.iter().map(|at| format!("{at}/{ns}")).collect();
                let turns = match turns.join(",") {
                    all if has_turns && !all.is_empty() => format!(" {TURNS}={all}"),
                    _ => String::new(),
                };
                let unsent = match unsent.max(u64::from(samples.is_empty())) {
                    0 => String::new(),
                    1 => format!("{UNSENT}\n"),
                    count => format!("{UNSENT}:{count}\n"),
                };
                let rows: String = samples.iter().map(|(_, row)| row.as_str()).collect();
                format!(
                    "# tuple send={request} reply={reply} inflight={deep} master={rank}:0 \
                 duration_ns={ns}{turns}\n{COLUMNS}\n{rows}{unsent}"
                )
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_read_is_printed_again_and_every_repetition_is_counted(
            masters in prop::collection::vec(any_tuple(), 1..5),
            failed in any::<bool>(),
            code: u8,
        ) {
            let failed = if failed {
                "# tuple send=0:EMPTY reply=0:EMPTY inflight=1 master=9:0 duration_ns=0\n\
                 # failed: 1:0 runs a test already\n"
            } else {
                ""
            };
            let text = format!("{HEAD}\n{failed}{}{EXIT}{code}\n", masters.concat());
            let (result, exit_code) = read(&text).unwrap();
            prop_assert_eq!(exit_code, code);
            prop_assert_eq!(print(&result, exit_code), text);
            for (_, done) in measured(&result) {
                for master in &done.masters {
                    let sent = master.succeeded + master.failed;
                    prop_assert_eq!(sent, master.samples.len() as u64);
                    prop_assert_eq!(sent + master.not_sent, master.requested);
                }
            }
            prop_assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        }
    }
}
