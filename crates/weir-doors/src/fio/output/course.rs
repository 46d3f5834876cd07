//! Lines of fio about the course of a job: the depth of a latency target, and steady state.
//!
//! In: an entry. Out: its two lines, and its members of the JSON document. fio 3.33 prints the
//! same figure in both units of the bandwidth; here it is converted.

use serde_json::{Map, Value, json};
use weir_schema::{Steadiness, Steady, SteadyMeasure, SteadyRate};

use super::entry::{FioEntry, Formats};
use super::numbers::{Base, FigureUnit, scaled};

/// The line of the latency target, which fio always prints.
pub(super) fn push_latency_target(out: &mut String, entry: &FioEntry<'_>) {
    let (target, window, percent) = target(entry);
    push!(
        out,
        "     latency   : target={target}, window={window}, percentile={percent:.2}%, depth={}\n",
        depth(entry)
    );
}

/// The same in JSON.
pub(super) fn put_latency_target(out: &mut Map<String, Value>, entry: &FioEntry<'_>) {
    let (target, window, percent) = target(entry);
    out.insert("latency_depth".to_owned(), depth(entry).into());
    out.insert("latency_target".to_owned(), target.into());
    out.insert("latency_percentile".to_owned(), percent.into());
    out.insert("latency_window".to_owned(), window.into());
}

/// Target in nanoseconds, window in microseconds, percentage.
fn target(entry: &FioEntry<'_>) -> (u64, u64, f64) {
    match &entry.job.load().pacing.latency_target {
        Some(t) => (t.target_ns.0, t.window_ns.0 / 1000, t.share.0),
        None => (0, 0, 100.0),
    }
}

fn depth(entry: &FioEntry<'_>) -> u64 {
    let found = entry.depth_found.map(|f| u64::from(f.queue_depth.0));
    found.unwrap_or(entry.depth_asked)
}

/// The line of steady state.
pub(super) fn push_steady(out: &mut String, entry: &FioEntry<'_>) {
    let (Some(bound), Some(found)) = (entry.job.load().bounds.steady, &entry.steadiness) else {
        return;
    };
    let Formats { base, rate, digits } = entry.formats;
    let (bytes, operations) = means(&bound, found);
    push!(
        out,
        "  steadystate  : attained={}, bw={} ({}), iops={}, {}{}={:.3}{}\n",
        if found.attained { "yes" } else { "no" },
        scaled(bytes, digits, base, rate),
        scaled(bytes, digits, base.other(), rate),
        scaled(operations, digits, Base::Decimal, FigureUnit::None),
        word(&bound),
        match bound.measure {
            SteadyMeasure::Slope => " slope",
            SteadyMeasure::Deviation => " mean dev",
        },
        found.criterion,
        sign(&bound)
    );
}

/// The same in JSON.
pub(super) fn put_steady(out: &mut Map<String, Value>, entry: &FioEntry<'_>) {
    let (Some(bound), Some(found)) = (entry.job.load().bounds.steady, &entry.steadiness) else {
        return;
    };
    let seconds = seconds(&bound);
    let (bytes, operations) = means(&bound, found);
    // A window that was not filled ends in zeros.
    let padded = |of: fn(&weir_schema::SteadySample) -> u64| -> Vec<u64> {
        let rest = std::iter::repeat(0);
        found
            .samples
            .iter()
            .map(of)
            .chain(rest)
            .take(seconds)
            .collect()
    };
    let slope = match bound.measure {
        SteadyMeasure::Slope => "_slope",
        SteadyMeasure::Deviation => "",
    };
    let value = json!({
        "ss": format!("{}{slope}:{:.6}{}", word(&bound), bound.limit, sign(&bound)),
        "duration": seconds,
        "attained": u8::from(found.attained),
        "criterion": format!("{:.6}{}", found.criterion, sign(&bound)),
        "max_deviation": found.deviation,
        "slope": found.slope,
        "data": {
            "bw_mean": bytes,
            "iops_mean": operations,
            "iops": padded(|s| s.ops_per_s),
            "bw": padded(|s| s.bytes_per_s.0),
        },
    });
    out.insert("steadystate".to_owned(), value);
}

fn word(bound: &Steady) -> &'static str {
    match bound.rate {
        SteadyRate::Operations => "iops",
        SteadyRate::Bytes => "bw",
    }
}

fn sign(bound: &Steady) -> &'static str {
    if bound.in_percent { "%" } else { "" }
}

fn seconds(bound: &Steady) -> usize {
    usize::try_from(bound.window_ns.0 / 1_000_000_000).unwrap_or(usize::MAX)
}

/// Mean bytes and operations per second over the whole window, filled or not.
fn means(bound: &Steady, found: &Steadiness) -> (u64, u64) {
    let seconds = seconds(bound).max(1) as u64;
    let bytes: u64 = found.samples.iter().map(|s| s.bytes_per_s.0).sum();
    let operations: u64 = found.samples.iter().map(|s| s.ops_per_s).sum();
    (bytes / seconds, operations / seconds)
}
