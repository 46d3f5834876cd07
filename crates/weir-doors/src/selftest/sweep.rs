//! Sweeps: the same pair of sizes with more and more RPCs at once, and where more of them only wait.
//!
//! In: a result whose groups differ in how many RPCs there are at once. Out: a table for each pair, and
//! its knee: the number with the most throughput per latency.

use weir_schema::RunResult;
use weir_stats::Histogram;

use weir_units::parse;

use super::output::{measured, percentile_of};
use super::sizes::MessagePair;
use super::values::MOST;

/// So many points a sweep may have.
const MOST_POINTS: usize = 64;

/// `1,2,4,8`.
pub(super) fn depths(text: &str) -> Result<Vec<u64>, String> {
    let all: Result<Vec<u64>, String> = text
        .split(',')
        .map(|word| parse::whole(word.trim(), (1, MOST.unsigned_abs())))
        .collect();
    let mut all = all?;
    all.sort_unstable();
    all.dedup();
    if all.len() > MOST_POINTS {
        return Err(format!("more than {MOST_POINTS} points"));
    }
    Ok(all)
}

/// Figures of all masters together with so many RPCs at once.
struct SweepPoint {
    in_flight: u64,
    per_s: f64,
    latency: Histogram,
}

/// A table for each pair of sizes that was measured more than once.
pub(super) fn tables(result: &RunResult) -> String {
    let mut pairs: Vec<(MessagePair, Vec<SweepPoint>)> = Vec::new();
    for (work, done) in measured(result) {
        let pair = MessagePair::of(work);
        let mut point = SweepPoint {
            in_flight: work.in_flight(),
            per_s: 0.0,
            latency: weir_schema::rpc_histogram(),
        };
        for master in done.masters.iter().filter(|m| m.failure.is_none()) {
            point.per_s += master.rate();
            // All have one form; one of another adds nothing.
            let _ = point.latency.merge(&master.latency);
        }
        match pairs.iter_mut().find(|(known, _)| *known == pair) {
            Some((_, points)) => points.push(point),
            None => pairs.push((pair, vec![point])),
        }
    }
    let mut out = String::new();
    let is_sweep = |points: &[SweepPoint]| {
        let mut pairs = points.windows(2);
        pairs.any(|two| two[0].in_flight != two[1].in_flight)
    };
    for (pair, points) in pairs.iter().filter(|(_, points)| is_sweep(points)) {
        table(&mut out, *pair, points);
    }
    out
}

fn table(out: &mut String, pair: MessagePair, points: &[SweepPoint]) {
    push!(out, "+ Sweep of {}\n", pair.words());
    push!(
        out,
        "+ {:>9} {:>14} {:>12} {:>12}\n",
        "in flight",
        "RPCs/sec",
        "median (us)",
        "99th % (us)"
    );
    for point in points {
        let micros = |percent| match percentile_of(&point.latency, percent) {
            Some(time) => (time.0 / 1000).to_string(),
            None => "NA".to_owned(),
        };
        push!(
            out,
            "+ {:>9} {:>14.0} {:>12} {:>12}\n",
            point.in_flight,
            point.per_s,
            micros(50.0),
            micros(99.0)
        );
    }
    if let Some(knee) = knee(points) {
        push!(
            out,
            "+ Knee: {knee} in flight, the most throughput per latency\n"
        );
    }
    out.push('\n');
}

/// The number at once with the largest quotient of rate and mean latency.
fn knee(points: &[SweepPoint]) -> Option<u64> {
    let power = |point: &SweepPoint| {
        let mean = point.latency.mean().filter(|mean| *mean > 0.0)?;
        Some((point.in_flight, point.per_s / mean))
    };
    let all = points.iter().filter_map(power);
    let best = all.max_by(|one, other| one.1.total_cmp(&other.1));
    best.map(|(in_flight, _)| in_flight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_more_at_once_only_wait() {
        let point = |in_flight, per_s, ns| {
            let mut latency = weir_schema::rpc_histogram();
            latency.record(ns);
            SweepPoint {
                in_flight,
                per_s,
                latency,
            }
        };
        let points = [
            point(1, 10_000.0, 100_000),
            point(2, 19_000.0, 105_000),
            point(4, 30_000.0, 133_000),
            point(8, 31_000.0, 258_000),
        ];
        assert_eq!(knee(&points), Some(4));
        assert_eq!(knee(&[]), None);
        assert_eq!(depths("8,1,2,2"), Ok(vec![1, 2, 8]));
        for text in ["", "0", "1,x", "1,,2"] {
            assert!(depths(text).is_err(), "{text}");
        }
    }
}
