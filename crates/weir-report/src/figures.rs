//! The figures of jobs as rows of tables.

use weir_schema::{Stage, State};
use weir_stats::Histogram;
use weir_units::{Bytes, Nanos};

use crate::entry::{KindSum, ReportEntry};
use crate::number_format::{NumberFormat, brief};
use crate::plot::{JobAcross, PlottedRun, sized};

pub(crate) const NUMBERS: NumberFormat = NumberFormat { raw: false };

/// The columns of [`of_kinds`].
pub(crate) const OF_KINDS: [&str; 10] = [
    "",
    "rate",
    "bandwidth",
    "±",
    "p50",
    "p99",
    "p99.9",
    "max",
    "errors",
    "",
];
/// The columns of [`of_metrics`].
pub(crate) const OF_METRICS: [&str; 3] = ["", "value", "±"];

/// Name of a row.
fn name(job: &JobAcross<'_, '_>, run: &PlottedRun<'_>, what: &str) -> String {
    let label = job.is_labelled.then_some(run.label);
    let parts = [Some(job.name), label, Some(what).filter(|w| !w.is_empty())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// A row for each kind of each result; one for a job without, where it says how it ended.
pub(crate) fn of_kinds(job: &JobAcross<'_, '_>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (run, entry) in &job.runs {
        let several = entry.kinds.len() > 1;
        let ended = state(entry);
        let mut own: Vec<Vec<String>> = entry
            .kinds
            .iter()
            .map(|kind| {
                let what = if several { kind.name.as_str() } else { "" };
                of_kind(name(job, run, what), entry, kind)
            })
            .collect();
        if own.is_empty() && (ended.is_some() || entry.metrics().is_empty()) {
            own.push(vec![name(job, run, "")]);
        }
        for row in &mut own {
            row.resize(OF_KINDS.len(), String::new());
        }
        if let (Some(cell), Some(ended)) = (own.last_mut().and_then(|row| row.last_mut()), ended) {
            *cell = ended;
        }
        rows.extend(own);
    }
    rows
}

/// A row for each headline figure that no column shows, but for those over sizes, which have a plot
/// and a table of their own.
pub(crate) fn of_metrics(job: &JobAcross<'_, '_>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (run, entry) in &job.runs {
        let metrics = entry.metrics();
        for metric in metrics.into_iter().filter(|m| sized(&m.name).is_none()) {
            let half = metric.half_width().filter(|_| metric.value != 0.0);
            rows.push(vec![
                name(job, run, &metric.name),
                NUMBERS.metric(metric),
                half.map_or_else(String::new, |half| {
                    format!("{} %", brief(100.0 * half / metric.value.abs()))
                }),
            ]);
        }
    }
    rows
}

fn of_kind(name: String, entry: &ReportEntry<'_>, kind: &KindSum) -> Vec<String> {
    let sure = entry.confidence(kind).and_then(|c| {
        let half = c
            .ops_per_s
            .half_width()
            .filter(|_| c.ops_per_s.value > 0.0)?;
        Some(format!("{} %", brief(100.0 * half / c.ops_per_s.value)))
    });
    let latency = [Stage::Rlat, Stage::Lat, Stage::Clat];
    let latency = latency.into_iter().find_map(|stage| kind.stage(stage));
    let at = |p: f64| latency.map_or_else(String::new, |h| percentile(h, p));
    let errors: u64 = kind.sum.errors.values().sum();
    vec![
        name,
        entry
            .iops(kind)
            .map_or_else(String::new, |r| NUMBERS.iops(r)),
        entry
            .bandwidth(kind)
            .map_or_else(String::new, |r| NUMBERS.bandwidth(r)),
        sure.unwrap_or_default(),
        at(50.0),
        at(99.0),
        at(99.9),
        at(100.0),
        NUMBERS.count(errors),
    ]
}

fn percentile(histogram: &Histogram, p: f64) -> String {
    let mark = if p < 100.0 && histogram.few_samples(p) {
        "~"
    } else {
        ""
    };
    let value = histogram.percentile(p).map(Nanos);
    value.map_or_else(String::new, |ns| NUMBERS.time(ns) + mark)
}

/// Head and rows without the columns that nothing stands in.
pub(crate) fn used(head: &[&str], rows: &[Vec<String>]) -> (Vec<String>, Vec<Vec<String>>) {
    let is_used = |i: &usize| *i == 0 || rows.iter().any(|row| !row[*i].is_empty());
    let used: Vec<usize> = (0..head.len()).filter(is_used).collect();
    let keep = |row: &Vec<String>| used.iter().map(|i| row[*i].clone()).collect();
    let head = used.iter().map(|i| head[*i].to_owned()).collect();
    (head, rows.iter().map(keep).collect())
}

/// Its state at the end, where that is not as planned.
pub(crate) fn state(entry: &ReportEntry<'_>) -> Option<String> {
    let text = match entry.state() {
        State::Done => return None,
        State::NotStarted => "not started",
        State::Running => "running",
        State::Failed => "FAILED",
        State::Stopped => "stopped",
        State::Hung => "HUNG",
    };
    Some(text.to_owned())
}

/// Work done of all kinds.
pub(crate) fn done(entry: &ReportEntry<'_>) -> Option<String> {
    let kinds = entry.kinds.iter().map(|kind| {
        let done = NUMBERS.count(kind.sum.operations);
        let mut text = format!("{} {done} operations", kind.name);
        if kind.sum.bytes > Bytes::ZERO {
            push!(text, ", {}", NUMBERS.size(kind.sum.bytes));
        }
        text
    });
    let kinds: Vec<String> = kinds.collect();
    (!kinds.is_empty()).then(|| kinds.join("; "))
}
