//! Results as CSV: a row for each kind of operation of each job or phase and for each headline figure that is of
//! none, or for each interval of a kind, in ns, bytes and operations.
//!
//! In: results with their labels. Out: RFC 4180 with line feeds; what is missing is empty. Not here:
//! units of headline figures, which JSON has.

use weir_schema::{LatencyInterval, Metric, Stage};
use weir_stats::Histogram;
use weir_units::Nanos;

use crate::entry::{KindSum, ReportEntry};
use crate::number_format::date;
use crate::phrases::aspects;
use crate::plot::{LabelledResult, PlottedRun, sized};

const HEAD: &str = "run_id,time_utc,label,group,job,kind,workers,block_bytes,queue_depth,operations,\
bytes,duration_ns,ops_per_s,bytes_per_s,ops_per_s_low,ops_per_s_high,lat_mean_ns,lat_min_ns,\
lat_p50_ns,lat_p90_ns,lat_p99_ns,lat_p999_ns,lat_p9999_ns,lat_max_ns,errors,complete,warnings,value";
const SERIES_HEAD: &str = "run_id,time_utc,label,group,job,kind,t_ns,dt_ns,operations,in_flight,\
lat_p50_ns,lat_p99_ns,lat_p999_ns,lat_max_ns";
const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// The head and the rows, each line ended.
pub fn csv(results: &[LabelledResult<'_>]) -> String {
    let mut out = format!("{HEAD}\n");
    for run in &PlottedRun::all(results) {
        for entry in &run.entries {
            let kinds = entry.kinds.iter().map(|kind| row(run, entry, kind));
            let figures = entry.metrics().into_iter();
            let figures = figures.map(|metric| figure_row(run, entry, metric));
            for cells in kinds.chain(figures) {
                push!(out, "{}\n", cells.map(|cell| quoted(&cell)).join(","));
            }
        }
    }
    out
}

/// The head, and a row for each interval of which latencies are known, each line ended.
pub fn csv_series(results: &[LabelledResult<'_>]) -> String {
    let mut out = format!("{SERIES_HEAD}\n");
    for run in &PlottedRun::all(results) {
        for entry in &run.entries {
            for kind in &entry.kinds {
                let of = names(run, entry, &kind.name)
                    .map(|cell| quoted(&cell))
                    .join(",");
                let Some(over_time) = entry.latency_over_time(kind) else {
                    continue;
                };
                for (begin, interval) in over_time.spans() {
                    let cells = interval_cells(begin, interval, over_time.stage);
                    push!(out, "{of},{}\n", cells.join(","));
                }
            }
        }
    }
    out
}

/// Names at the begin of a row.
fn names(run: &PlottedRun<'_>, entry: &ReportEntry<'_>, kind: &str) -> [String; 6] {
    let started = run.result.started_unix_ns;
    [
        started.to_string(),
        date(started).replacen(' ', "T", 1).replace(" UTC", "Z"),
        run.label.to_owned(),
        entry.group.to_string(),
        entry.name().to_owned(),
        kind.to_owned(),
    ]
}

/// The row of a headline figure, in the column of its unit or as a mere value.
fn figure_row(run: &PlottedRun<'_>, entry: &ReportEntry<'_>, metric: &Metric) -> [String; 28] {
    let (column, scale) = match metric.unit.as_str() {
        Metric::BYTES_PER_S => ("bytes_per_s", 1.0),
        Metric::OPS_PER_S | "packets/s" => ("ops_per_s", 1.0),
        Metric::SECONDS => ("lat_mean_ns", 1e9),
        _ => ("value", 1.0),
    };
    let sized = sized(&metric.name);
    let names = names(run, entry, sized.map_or(&metric.name, |(what, _)| what));
    let size = sized.map_or_else(String::new, |(_, size)| size.to_string());
    let cells = names.into_iter().map(Some).chain(std::iter::repeat(None));
    let mut cells = HEAD.split(',').zip(cells).map(|(name, cell)| match name {
        "block_bytes" => size.clone(),
        "complete" => run.result.complete.to_string(),
        "warnings" => warnings(run, entry),
        "value" if name == column => metric.value.to_string(),
        _ if name == column => format!("{:.3}", metric.value * scale),
        _ => cell.unwrap_or_default(),
    });
    std::array::from_fn(|_| cells.next().unwrap_or_default())
}

/// Ids of the warnings about an entry.
fn warnings(run: &PlottedRun<'_>, entry: &ReportEntry<'_>) -> String {
    let is_its = |job: &Option<String>| job.as_deref().is_none_or(|job| job == entry.name());
    let warnings = run.result.warnings.iter().filter(|w| is_its(&w.job));
    let warnings: Vec<&str> = warnings.map(|w| w.id.as_str()).collect();
    warnings.join(" ")
}

fn interval_cells(begin: Nanos, interval: &LatencyInterval, stage: Stage) -> [String; 8] {
    let text = |ns: Option<Nanos>| ns.map_or_else(String::new, |ns| ns.0.to_string());
    let length = interval.end_ns.saturating_sub(begin);
    // By Little's law; a response is not in flight all the time.
    let in_flight = interval.sum_ns.as_secs_f64() / length.as_secs_f64();
    let is_known = stage != Stage::Rlat && in_flight.is_finite();
    [
        begin.0.to_string(),
        length.0.to_string(),
        interval.rows.count().to_string(),
        if is_known {
            format!("{in_flight:.3}")
        } else {
            String::new()
        },
        text(interval.p50_ns),
        text(interval.p99_ns),
        text(interval.p999_ns),
        text(interval.max_ns),
    ]
}

fn row(run: &PlottedRun<'_>, entry: &ReportEntry<'_>, kind: &KindSum) -> [String; 28] {
    let text = |value: Option<u64>| value.map_or_else(String::new, |v| v.to_string());
    let rate = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.3}"));
    let block = entry.plan.and_then(|plan| {
        let aspects = aspects(plan, entry.workers.len().max(1));
        aspects.iter().find(|a| a.name == "block")?.number
    });
    let plan = entry.plan.filter(|_| entry.phase.is_none());
    let depth = plan.and_then(|plan| plan.workload.load());
    let sure = entry.confidence(kind).map(|c| c.ops_per_s);
    let stages = [Stage::Rlat, Stage::Lat, Stage::Clat];
    let latency = stages.into_iter().find_map(|stage| kind.stage(stage));
    let [p50, p90, p99, p999, p9999, max] =
        PERCENTILES.map(|p| text(latency.and_then(|h| h.percentile(p))));
    let errors: u64 = kind.sum.errors.values().sum();
    let [run_id, time, label, group, job, name] = names(run, entry, &kind.name);
    [
        run_id,
        time,
        label,
        group,
        job,
        name,
        entry.workers.len().to_string(),
        block.map_or_else(String::new, |b| format!("{b:.0}")),
        text(depth.map(|load| u64::from(load.depth.queue_depth.0))),
        kind.sum.operations.to_string(),
        kind.sum.bytes.0.to_string(),
        text(entry.time().map(|time| time.0)),
        rate(entry.iops(kind).map(|r| r.0)),
        rate(entry.bandwidth(kind).map(|r| r.0)),
        rate(sure.and_then(|s| s.low)),
        rate(sure.and_then(|s| s.high)),
        latency
            .and_then(Histogram::mean)
            .map_or_else(String::new, |ns| format!("{ns:.0}")),
        text(latency.and_then(Histogram::min)),
        p50,
        p90,
        p99,
        p999,
        p9999,
        max,
        errors.to_string(),
        run.result.complete.to_string(),
        warnings(run, entry),
        String::new(),
    ]
}

/// A cell, in quotes where it would be taken for more than one.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn an_interval_has_a_row_with_its_own_figures() {
        let result = sample::two_kinds();
        let text = csv_series(&[LabelledResult {
            label: "r".into(),
            result: &result,
        }]);
        let lines: Vec<&str> = text.lines().collect();
        let head: Vec<&str> = lines[0].split(',').collect();
        let over_time = result.groups[0].jobs[0].latency_over_time();
        let intervals: usize = over_time.iter().map(|kind| kind.intervals.len()).sum();
        assert_eq!(lines.len(), 1 + intervals);
        let second: Vec<&str> = lines[2].split(',').collect();
        let cell = |name| second[head.iter().position(|n| *n == name).unwrap()];
        let interval = &over_time[0].intervals[1];
        assert_eq!(
            (cell("kind"), cell("t_ns"), cell("dt_ns")),
            ("read", "500000000", "500000000")
        );
        assert_eq!(cell("operations"), interval.rows.count().to_string());
        assert_eq!(cell("lat_p99_ns"), interval.p99_ns.unwrap().0.to_string());
        let in_flight = interval.sum_ns.as_secs_f64() / 0.5;
        assert_eq!(cell("in_flight"), format!("{in_flight:.3}"));
        assert!(
            lines
                .iter()
                .all(|line| line.split(',').count() == head.len())
        );
        let open = sample::open_loop();
        let text = csv_series(&[LabelledResult {
            label: "r".into(),
            result: &open,
        }]);
        let stalled = text.lines().find(|line| line.contains(",12000000000,"));
        assert!(
            stalled.unwrap().ends_with(",500000000,0,,,,,"),
            "{stalled:?}"
        );
    }

    #[test]
    fn a_figure_of_no_kind_has_a_row() {
        let result = sample::message_sizes();
        let text = csv(&[LabelledResult {
            label: "r".into(),
            result: &result,
        }]);
        let metrics = &result.groups[0].jobs[0].metrics;
        assert_eq!(text.lines().count(), 1 + metrics.len(), "{text}");
        let sized = metrics
            .iter()
            .find(|m| m.name.ends_with(" at 8 B"))
            .unwrap();
        let row = format!(",bandwidth,,8,,,,,,{:.3},", sized.value);
        assert!(text.contains(&row), "{row}\n{text}");
    }

    #[test]
    fn a_row_has_the_cells_of_the_head() {
        let mut result = sample::two_kinds();
        result.groups[0].jobs[0].name = "a,\"b\"".into();
        let text = csv(&[LabelledResult {
            label: "r".into(),
            result: &result,
        }]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let cells = |line: &str| line.replace("\"a,\"\"b\"\"\"", "a").split(',').count();
        assert_eq!(
            lines.iter().map(|l| cells(l)).collect::<Vec<_>>(),
            [28, 28, 28]
        );
        let start = "1795239012345678901,2026-11-21T05:30:12Z,r,0,\"a,\"\"b\"\"\",read,1,4096,32,";
        assert!(lines[1].starts_with(start), "{}", lines[1]);
        assert!(lines[2].ends_with(",0,true,,"), "{}", lines[2]);
    }
}
