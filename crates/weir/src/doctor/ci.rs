//! `weir doctor --ci`: the smallest change that comparisons establish on this machine.
//!
//! In: jobs, each to be compared with itself. Out: for each figure what would be taken for a change, by
//! the rule of `weir compare`; the exit code. Not here: rounds and their rule (`compare`).

use std::fmt::Write as _;

use serde_json::{Value, json};
use weir_compare::{Comparison, JobComparison, MetricComparison};
use weir_doors::doctor::CiCheck;

use crate::compare::{Measured, measured};
use crate::turns::refuse_launcher;
use crate::{Outcome, output};

/// A signal has ended it.
const SIGNALLED: u8 = 128;

pub(super) fn run(check: &CiCheck) -> Outcome {
    refuse_launcher("--ci")?;
    let mut all = Vec::new();
    let mut worst = 0;
    for job in &check.jobs {
        let Measured {
            comparison, code, ..
        } = measured(job)?;
        worst = worst.max(code);
        all.push(comparison);
        if code > SIGNALLED {
            break;
        }
    }
    let printed = if check.json {
        as_json(&all).to_string() + "\n"
    } else {
        all.iter().map(text).collect::<Vec<_>>().join("\n")
    };
    let is_printed = output::print(&printed);
    Ok(worst.max(u8::from(!is_printed)))
}

fn figures(all: &Comparison) -> impl Iterator<Item = (&JobComparison, &MetricComparison)> {
    let jobs = all.pairs.iter().flat_map(|pair| &pair.jobs);
    jobs.flat_map(|job| job.metrics.iter().map(move |metric| (job, metric)))
}

/// `  read rate   2 %     the threshold (half the interval 0.6 %, how finely it is known 0.0 %)`.
fn text(comparison: &Comparison) -> String {
    let side = comparison.sides.first();
    let (name, rounds) = side.map_or(("", 0), |side| (side.name.as_str(), side.runs));
    let plural = if rounds == 1 { "" } else { "s" };
    let mut out = format!("{name} beside itself, {rounds} round{plural}: a change is told from\n");
    let names: Vec<(String, &MetricComparison)> = figures(comparison)
        .map(|(job, metric)| (full_name(comparison, job, metric), metric))
        .collect();
    let widest = names.iter().map(|(name, _)| name.chars().count()).max();
    let width = widest.unwrap_or(0);
    for (name, metric) in &names {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:width$}  {}", found(metric));
    }
    if names.is_empty() {
        out += "  (no round came to its end)\n";
    }
    out
}

fn full_name(comparison: &Comparison, job: &JobComparison, metric: &MetricComparison) -> String {
    let jobs = comparison.pairs.iter().map(|pair| pair.jobs.len()).max();
    let name = metric.full_name();
    if jobs.unwrap_or(0) > 1 {
        format!("{}: {name}", job.name)
    } else {
        name
    }
}

fn found(metric: &MetricComparison) -> String {
    let (Some(half), Some(smallest)) = (metric.half_width(), metric.smallest_change()) else {
        return "n/a     no value, or none but 0".to_owned();
    };
    let percent = |share: f64| format!("{} %", weir_compare::brief_percent(share));
    let mut limits = [
        (half, "half the interval"),
        (metric.threshold, "the threshold"),
        (metric.grain, "how finely it is known"),
    ];
    limits.sort_by(|a, b| b.0.total_cmp(&a.0));
    let [(_, why), others @ ..] = limits;
    let others = others.map(|(share, what)| format!("{what} {}", percent(share)));
    let why = format!("{why} ({})", others.join(", "));
    let odd = if metric.established {
        let change = metric.change().unwrap_or_default();
        format!(" (! it differed from itself by {})", percent(change))
    } else {
        String::new()
    };
    format!("{:6}  {why}{odd}", percent(smallest))
}

fn as_json(all: &[Comparison]) -> Value {
    let rows = all.iter().flat_map(|comparison| {
        let name = comparison.sides.first().map(|side| side.name.as_str());
        let rounds = comparison.sides.first().map(|side| side.runs);
        figures(comparison).map(move |(job, metric)| {
            json!({
                "target": name,
                "rounds": rounds,
                "job": job.name,
                "metric": metric.full_name(),
                "unit": metric.unit,
                "value": metric.a,
                "smallest_change": metric.smallest_change(),
                "half_width": metric.half_width(),
                "threshold": metric.threshold,
                "grain": metric.grain,
                "differs_from_itself": metric.established,
            })
        })
    });
    json!({ "changes": rows.collect::<Vec<_>>() })
}
