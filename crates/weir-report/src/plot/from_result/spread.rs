//! Spread of members: workers of a job, ranks of a run, from the slowest to the fastest.

use weir_schema::{RankSummary, Span, WorkerResult};
use weir_stats::Histogram;
use weir_units::{Bytes, Nanos};

use super::{JobAcross, MEMBERS, PlottedRun};
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{
    Chart, Detail, LineShape, Plot, PlotBody, PlotLine, PlotPoint, PlotTable, count, real,
};

/// Number of the slowest and of the fastest that are listed.
const LISTED: usize = 8;

/// A member, by what it did.
struct Member {
    name: String,
    rate: f64,
    p99: Option<u64>,
}

pub(super) fn of_workers(job: &JobAcross<'_, '_>) -> Option<Plot> {
    let runs = job.runs.iter().filter(|(_, entry)| entry.workers.len() > 1);
    let moves = |w: &&&WorkerResult| w.kinds.iter().any(|k| k.bytes > Bytes::ZERO);
    let is_bytes = runs
        .clone()
        .any(|(_, e)| e.workers.iter().find(moves).is_some());
    let runs = runs.map(|(run, entry)| {
        let as_one = entry.jobs.len() > 1;
        let members = entry.workers.iter().filter_map(|w| {
            // One that has no operations to do is not slow at them.
            w.kinds.first()?;
            let number = if as_one { w.number } else { w.clone };
            Some(Member {
                name: format!("worker {number}"),
                rate: rate_of(w.span?, (done(w), moved(w)), is_bytes)?,
                p99: p99(w),
            })
        });
        (job.line_name(run, "workers", false), members.collect())
    });
    plot("workers", "worker", is_bytes, runs.collect())
}

pub(super) fn of_ranks(runs: &[PlottedRun<'_>]) -> Option<Plot> {
    let is_bytes = runs
        .iter()
        .any(|run| run.result.ranks.iter().any(|r| r.bytes > Bytes::ZERO));
    let several = runs.len() > 1;
    let runs = runs.iter().filter(|run| run.result.ranks.len() > 1);
    let runs = runs.map(|run| {
        let members = run.result.ranks.iter().filter_map(|rank| {
            Some(Member {
                name: name_of(rank),
                rate: rate_of(rank.span?, (rank.operations, rank.bytes), is_bytes)?,
                p99: None,
            })
        });
        let name = if several { run.label } else { "ranks" };
        (name.to_owned(), members.collect())
    });
    plot("ranks", "rank", is_bytes, runs.collect())
}

fn name_of(rank: &RankSummary) -> String {
    match &rank.hostname {
        Some(host) => format!("rank {} ({host})", rank.rank),
        None => format!("rank {}", rank.rank),
    }
}

fn done(worker: &WorkerResult) -> u64 {
    worker.kinds.iter().map(|k| k.operations).sum()
}

fn moved(worker: &WorkerResult) -> Bytes {
    worker.kinds.iter().map(|k| k.bytes).sum()
}

/// Nothing of one that did nothing, as ranks whose jobs count no operations.
fn rate_of(span: Span, (operations, bytes): (u64, Bytes), is_bytes: bool) -> Option<f64> {
    let time = span.length().as_secs_f64();
    let what = if is_bytes { bytes.0 } else { operations };
    (time > 0.0 && what > 0).then(|| real(what) / time)
}

/// The 99th percentile of everything a worker did, where all of it has one.
fn p99(worker: &WorkerResult) -> Option<u64> {
    use weir_schema::Stage::{Clat, Lat, Rlat};
    let mut all = Histogram::new();
    for kind in &worker.kinds {
        let seen = [Rlat, Lat, Clat]
            .into_iter()
            .find_map(|stage| kind.stage(stage));
        all.merge(seen?).ok()?;
    }
    all.percentile(99.0)
}

fn plot(name: &str, one: &str, is_bytes: bool, runs: Vec<(String, Vec<Member>)>) -> Option<Plot> {
    let unit = if is_bytes {
        AxisUnit::BytesPerSecond
    } else {
        AxisUnit::OpsPerSecond
    };
    let (mut lines, mut said, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (label, mut members) in runs {
        members.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let Some(sentence) = sentence(&label, &members, &unit) else {
            continue;
        };
        said.push(sentence);
        rows.extend(listed(&label, &members, &unit));
        let points = members.iter().enumerate();
        let points = points.map(|(i, m)| PlotPoint::new(count(i + 1), m.rate));
        lines.push(PlotLine {
            name: label,
            slot: lines.len(),
            shape: if members.len() <= MEMBERS {
                LineShape::Dots
            } else {
                LineShape::Steps
            },
            points: points.collect(),
        });
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    points().next()?;
    let title = format!("{name}, the slowest first");
    let places = points().map(|p| p.x);
    let places = PlotAxis::linear(&title, AxisUnit::Other(String::new()), places);
    let chart = Chart {
        x: PlotAxis {
            range: (1.0, places.range.1),
            ..places
        },
        y: PlotAxis::linear("rate", unit, points().filter_map(|p| p.y)).with_room(),
        shades: Vec::new(),
        rules: Vec::new(),
        lines,
    };
    Some(Plot {
        name: name.to_owned(),
        title: format!("Spread of {name}"),
        caption: said.join(" "),
        body: PlotBody::Chart(chart),
        table: PlotTable {
            head: ["", one, "rate", "p99"].map(str::to_owned).to_vec(),
            rows,
        },
        detail: Detail::Members,
    })
}

/// Sentence about the slowest and fastest of members in that order; nothing of fewer than two.
fn sentence(label: &str, members: &[Member], unit: &AxisUnit) -> Option<String> {
    let [slowest, .., fastest] = members else {
        return None;
    };
    let middle = [(members.len() - 1) / 2, members.len() / 2];
    let median = middle.map(|at| members[at].rate).iter().sum::<f64>() / 2.0;
    Some(format!(
        "{label}: the slowest of {} is {} with {}, {:.0} % of the median; the fastest is {} with {}.",
        members.len(),
        slowest.name,
        unit.print(slowest.rate),
        100.0 * slowest.rate / median,
        fastest.name,
        unit.print(fastest.rate),
    ))
}

/// All of a few, or those at both ends of many.
fn listed(label: &str, members: &[Member], unit: &AxisUnit) -> Vec<Vec<String>> {
    let is_listed = |place: usize| {
        members.len() <= MEMBERS || place < LISTED || place + LISTED >= members.len()
    };
    let shown = members
        .iter()
        .enumerate()
        .filter(|(place, _)| is_listed(*place));
    let rows = shown.map(|(_, member)| {
        vec![
            label.to_owned(),
            member.name.clone(),
            unit.print(member.rate),
            member
                .p99
                .map_or_else(String::new, |ns| Nanos(ns).to_string()),
        ]
    });
    rows.collect()
}
