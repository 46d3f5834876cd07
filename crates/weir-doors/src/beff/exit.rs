//! Exit codes of the door, and its messages about wrong data.

use weir_schema::{ExchangeResult, RunResult, Warning};

use super::first_exchange;
use crate::refusal::{LACKS, USAGE};

/// Causes that lie in the plan, found before anything was exchanged.
const PLAN_CAUSES: &[&str] = &["plan"];
/// Causes that lie in the machine.
const MACHINE_CAUSES: &[&str] = &["missing", "memory"];

/// 0 good; 1 wrong or lost data, or a failed run; 2 and 3 where nothing was exchanged, for a
/// reason of the plan or the machine; 128 + signal.
pub fn exit_code(result: &RunResult) -> u8 {
    if let Some(end) = result.ended_by {
        return u8::try_from(end.signal).map_or(u8::MAX, |signal| signal.saturating_add(128));
    }
    let Some(job) = result.jobs().next() else {
        return 1;
    };
    if let Some(failure) = &job.failure {
        let is = |causes: &[&str]| causes.contains(&failure.cause.as_str());
        return match () {
            () if is(PLAN_CAUSES) => USAGE,
            () if is(MACHINE_CAUSES) => LACKS,
            () => 1,
        };
    }
    let spoilt = |e: &ExchangeResult| e.wrong_bytes() > 0 || e.lost() > 0;
    u8::from(job.exchange().is_some_and(spoilt))
}

/// Text for standard error about a result: failures, wrong bytes per size with the ranks they arrived at,
/// losses, warnings.
pub fn complaints(result: &RunResult) -> String {
    let mut out = String::new();
    // Wrong data is reported below in the peer's words.
    let is_printed_here = |warning: &&Warning| warning.id != "wrong-data";
    for warning in result.warnings.iter().filter(is_printed_here) {
        if warning.id == "exchange-bounds" {
            push!(out, "WARNING: {}\n", warning.cause);
        } else {
            push!(
                out,
                "warning: {}\n  help: {}\n",
                warning.cause,
                warning.remedy
            );
        }
    }
    out += &interruption(result);
    for job in result.jobs() {
        let done = job.exchange();
        if let Some(others) = done.map(|e| &e.other_devices).filter(|o| !o.is_empty()) {
            push!(
                out,
                "note: there are other devices, which --device chooses: {}\n",
                others.join(", ")
            );
        }
        if let Some(failure) = &job.failure {
            push!(out, "error: {}\n", super::in_flags(&failure.message));
        }
        if let Some(exchange) = job.exchange() {
            out += &wrong(exchange);
        }
    }
    out
}

/// Message about the signal that ended the run, and the sizes measured by then.
fn interruption(result: &RunResult) -> String {
    let Some(end) = result.ended_by else {
        return String::new();
    };
    let signal = match end.signal {
        1 => "SIGHUP".to_owned(),
        2 => "SIGINT".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    };
    let planned = first_exchange(&result.plan).map(|(_, _, work)| work.measurements());
    let done = result.jobs().find_map(|job| job.exchange());
    let what = match (done.map_or(0, |done| done.sizes.len()), planned) {
        (0, Some(_)) => " before any size was measured".to_owned(),
        (done, Some(planned)) => format!(": {done} of {planned} sizes were measured"),
        (_, None) => " before all was measured".to_owned(),
    };
    format!("interrupted by {signal}{what}\n")
}

fn wrong(exchange: &ExchangeResult) -> String {
    let mut out = String::new();
    for size in &exchange.sizes {
        let bad = size.ranks.iter().filter(|r| r.wrong_bytes > 0);
        let ranks: Vec<String> = bad.map(|r| r.rank.to_string()).collect();
        let count: u64 = size.ranks.iter().map(|r| r.wrong_bytes).sum();
        if count > 0 {
            push!(
                out,
                "Validation data invalid for message size {} in {count} cases! (rank {})\n",
                1u64 << size.exponent,
                ranks.join(", ")
            );
        }
    }
    if !out.is_empty() {
        out += "ERROR: VALIDATION OF OUTPUT DATA FAILED!\n";
    }
    if exchange.lost() > 0 {
        push!(out, "error: {} messages were lost\n", exchange.lost());
    }
    out
}
