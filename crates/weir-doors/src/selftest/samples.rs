//! Samples: every RPC that a run has sent as a line of text, how many it has not, and how it ended.
//!
//! In: the text of a samples file, or what a run kept of its RPCs. Out: the samples, or the text. Spec: RPC
//! self-test, 8.2. Not here: files, the result that samples make (`sampled_result`).

use std::collections::BTreeMap;

use weir_schema::{RpcEndpoint, RpcMaster, RpcPayload, RpcPayloadKind, RpcSample, RunResult};
use weir_units::{Nanos, parse};

use super::output::measured;
pub use super::sampled_result::result;
use super::sizes::{MessagePair, reply_word, request_word};

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

/// Samples of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledRun {
    /// Of each pair of sizes its masters.
    pub masters: Vec<SampledMaster>,
    /// Exit code: samples alone do not say whether a signal ended the run, or who was not there.
    pub exit_code: u8,
}

/// The RPCs of one master with one pair of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledMaster {
    /// Payloads of requests and replies.
    pub pair: MessagePair,
    /// At once.
    pub in_flight: u32,
    /// Which.
    pub master: RpcEndpoint,
    /// From the first to the last.
    pub duration_ns: Nanos,
    /// Those that were sent, in the order in which they were begun.
    pub samples: Vec<RpcSample>,
    /// Number of RPCs that were not sent.
    pub unsent: u64,
    /// Why it has measured nothing, on one line.
    pub failure: Option<String>,
    /// Time for which each endpoint was called alone; empty unless each had a turn of its own.
    pub turns: BTreeMap<RpcEndpoint, Nanos>,
}

impl SampledMaster {
    /// RPCs that there were to be.
    pub fn requested(&self) -> u64 {
        (self.samples.len() as u64).saturating_add(self.unsent)
    }
}

/// The samples that a run with this exit code has kept, of masters that have some or have failed.
pub fn kept(result: &RunResult, exit_code: u8) -> SampledRun {
    let mut masters = Vec::new();
    for (work, outcome) in measured(result) {
        let one_line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = outcome.masters.iter().map(|master| SampledMaster {
            pair: MessagePair::of(work),
            in_flight: u32::try_from(work.in_flight()).unwrap_or(u32::MAX),
            master: master.endpoint,
            duration_ns: master.duration_ns,
            samples: master.samples.clone(),
            unsent: master.not_sent,
            failure: master.failure.as_ref().map(|why| one_line(&why.message)),
            turns: turns_of(master),
        });
        masters.extend(all.filter(|one| one.failure.is_some() || one.requested() > 0));
    }
    SampledRun { masters, exit_code }
}

/// The text of a samples file.
pub fn print(run: &SampledRun) -> String {
    let mut out = format!("{HEAD}\n");
    for one in &run.masters {
        let (request, reply) = (one.pair.request, one.pair.reply);
        push!(
            out,
            "# tuple send={}:{} reply={}:{} inflight={} master={} duration_ns={}{}\n",
            request.bytes,
            request_word(request.kind),
            reply.bytes,
            reply_word(reply.kind),
            one.in_flight,
            one.master,
            one.duration_ns.0,
            turns_text(&one.turns)
        );
        if let Some(why) = &one.failure {
            push!(out, "{FAILED}{why}\n");
            continue;
        }
        push!(out, "{COLUMNS}\n");
        for sample in &one.samples {
            let RpcEndpoint { rank, tag } = sample.endpoint;
            push!(
                out,
                "{},{rank},{tag},{}\n",
                sample.latency_ns.0,
                sample.code
            );
        }
        match one.unsent {
            0 => {}
            1 => push!(out, "{UNSENT}\n"),
            count => push!(out, "{UNSENT}:{count}\n"),
        }
    }
    push!(out, "{EXIT}{}\n", run.exit_code);
    out
}

/// Why a text is of something else.
fn no_head() -> String {
    format!("line 1: it begins with `{HEAD}`")
}

/// Reads a samples file.
///
/// # Errors
/// Another file; a line that is none, with its number.
pub fn read(text: &str) -> Result<SampledRun, String> {
    let mut lines = (1..).zip(text.lines());
    if lines.next().is_none_or(|(_, line)| line.trim_end() != HEAD) {
        return Err(no_head());
    }
    let mut masters: Vec<SampledMaster> = Vec::new();
    let mut last_tuple = 0;
    let mut has_columns = true;
    let mut exit_code = 0;
    for (number, line) in lines {
        let refuse = |why: String| format!("line {number}: {why}");
        let line = line.trim_end();
        if let Some(tuple) = line.strip_prefix("# tuple ") {
            check_rows(masters.last(), last_tuple)?;
            masters.push(tuple_line(tuple).map_err(refuse)?);
            (has_columns, last_tuple) = (false, number);
        } else if let (Some(why), Some(last)) = (line.strip_prefix(FAILED), masters.last_mut()) {
            last.failure = Some(why.to_owned());
        } else if let Some(code) = line.strip_prefix(EXIT) {
            let code =
                parse::whole(code, (0, 255)).map_err(|why| refuse(format!("exit: {why}")))?;
            exit_code = u8::try_from(code).unwrap_or(u8::MAX);
        } else if line.is_empty() || line.starts_with('#') {
            // A remark.
        } else if line == COLUMNS {
            has_columns = true;
        } else {
            let last = masters.last_mut().filter(|_| has_columns);
            let last =
                last.ok_or_else(|| refuse(format!("`# tuple …` and `{COLUMNS}` go before it")))?;
            take_row(last, line).map_err(refuse)?;
        }
    }
    if masters.is_empty() {
        return Err("it has no samples".to_owned());
    }
    check_rows(masters.last(), last_tuple)?;
    check_sums(&masters)?;
    Ok(SampledRun { masters, exit_code })
}

/// Sums of counts have 64 bits.
fn check_sums(masters: &[SampledMaster]) -> Result<(), String> {
    let samples = masters.iter().flat_map(|one| &one.samples);
    if !fits(samples.map(|one| one.latency_ns.0)) {
        return Err("its latencies add up to more than 64 bits hold".to_owned());
    }
    if !fits(masters.iter().map(SampledMaster::requested)) {
        return Err("its RPCs are more than 64 bits count".to_owned());
    }
    Ok(())
}

fn fits(mut numbers: impl Iterator<Item = u64>) -> bool {
    numbers.try_fold(0_u64, u64::checked_add).is_some()
}

/// A tuple has rows, unless its master has failed, and RPCs that succeeded took some time.
fn check_rows(master: Option<&SampledMaster>, line: usize) -> Result<(), String> {
    let Some(master) = master else {
        return Ok(());
    };
    if master.requested() == 0 && master.failure.is_none() {
        return Err(format!("line {line}: no samples follow this tuple"));
    }
    let succeeded = |one: &RpcSample| one.code == 0;
    if master.duration_ns == Nanos::ZERO && master.samples.iter().any(succeeded) {
        return Err(format!(
            "line {line}: duration_ns: it takes nanoseconds above 0, as RPCs succeeded"
        ));
    }
    Ok(())
}

fn tuple_line(text: &str) -> Result<SampledMaster, String> {
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
    Ok(SampledMaster {
        pair: MessagePair {
            request: payload("send", field("send")?)?,
            reply: payload("reply", field("reply")?)?,
        },
        in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
        master,
        duration_ns: Nanos(number("duration_ns", (0, u64::MAX))?),
        samples: Vec::new(),
        unsent: 0,
        failure: None,
        turns: turns.transpose()?.unwrap_or_default(),
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

/// `0:2`.
fn endpoint(text: &str) -> Option<RpcEndpoint> {
    let (rank, tag) = text.split_once(':')?;
    Some(RpcEndpoint {
        rank: rank.parse().ok()?,
        tag: tag.parse().ok()?,
    })
}

/// Of a master's endpoints.
fn turns_of(master: &RpcMaster) -> BTreeMap<RpcEndpoint, Nanos> {
    let all = master.endpoints.iter();
    all.filter_map(|one| Some((one.endpoint, one.turn_ns?)))
        .collect()
}

/// The last field of a tuple, with the blank before it; nothing without turns.
fn turns_text(turns: &BTreeMap<RpcEndpoint, Nanos>) -> String {
    let all = turns.iter().map(|(at, time)| format!("{at}/{}", time.0));
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        return String::new();
    }
    format!(" {TURNS}={}", all.join(","))
}

/// Value of such a field.
fn turns(text: &str) -> Option<BTreeMap<RpcEndpoint, Nanos>> {
    let one = |turn: &str| {
        let (at, time) = turn.split_once('/')?;
        Some((endpoint(at)?, Nanos(time.parse().ok()?)))
    };
    text.split(',').map(one).collect()
}

/// One RPC, or some that were not sent.
fn take_row(master: &mut SampledMaster, line: &str) -> Result<(), String> {
    let Some(rest) = line.strip_prefix(UNSENT) else {
        master.samples.push(sample(line)?);
        return Ok(());
    };
    let count = match rest.strip_prefix(':') {
        _ if rest.is_empty() => 1,
        Some(count) => {
            parse::whole(count, (1, u64::MAX)).map_err(|why| format!("`{line}`: unsent: {why}"))?
        }
        None => return Err(no_sample(line)),
    };
    let sum = master.unsent.checked_add(count);
    master.unsent = sum.ok_or_else(|| format!("`{line}`: unsent: more than 64 bits count"))?;
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

#[cfg(test)]
pub(crate) mod tests {
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

    pub(crate) fn any_master() -> impl Strategy<Value = SampledMaster> {
        let sample = (0_u64..1_000_000, 0_u32..4, 0_u32..4, -1100_i32..1);
        let sample = sample.prop_map(|(ns, rank, tag, code)| RpcSample {
            latency_ns: Nanos(ns),
            endpoint: RpcEndpoint { rank, tag },
            code: if code > -500 { 0 } else { code },
        });
        let payload = (0_u32..3, 0_u32..5000).prop_map(|(kind, bytes)| {
            use RpcPayloadKind::{Bulk, Empty, Inline};
            RpcPayload::of([Empty, Inline, Bulk][kind as usize], bytes)
        });
        let unsent = prop_oneof![Just(0), Just(1), 2_u64..1 << 40];
        let numbers = (1_u32..100, 0_u32..9, 1_u64..1 << 40, unsent);
        (
            payload.clone(),
            payload,
            numbers,
            prop::collection::vec(sample, 0..50),
        )
            .prop_map(|(request, reply, (in_flight, rank, ns, unsent), samples)| {
                SampledMaster {
                    pair: MessagePair { request, reply },
                    in_flight,
                    master: RpcEndpoint { rank, tag: 0 },
                    duration_ns: Nanos(ns),
                    unsent: unsent.max(u64::from(samples.is_empty())),
                    turns: samples
                        .iter()
                        .map(|one| (one.endpoint, Nanos(ns)))
                        .collect(),
                    samples,
                    failure: None,
                }
            })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(
            masters in prop::collection::vec(any_master(), 1..5),
            failed in any::<bool>(),
            exit_code: u8,
        ) {
            let mut run = SampledRun { masters, exit_code };
            if failed {
                let first = &mut run.masters[0];
                (first.samples, first.unsent) = (Vec::new(), 0);
                first.failure = Some("1:0 runs a test already".to_owned());
            }
            prop_assert_eq!(read(&print(&run)).unwrap(), run);
        }
    }
}
