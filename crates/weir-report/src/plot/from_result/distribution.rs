//! Distribution of latencies: the share of operations that took at most so long, with the tail
//! stretched by its nines.

use weir_schema::Stage;
use weir_stats::Histogram;
use weir_units::{Count, Nanos};

use super::{JobAcross, seen};
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{Chart, Detail, LineShape, Plot, PlotBody, PlotLine, PlotPoint, PlotTable, real};

/// The percentiles of the table.
const PERCENTILES: [f64; 7] = [1.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];

pub(super) fn latencies(job: &JobAcross<'_, '_>) -> Option<Plot> {
    let several = job.has_several_kinds();
    let with_response = job
        .kinds()
        .any(|(_, _, kind)| kind.stage(Stage::Rlat).is_some());
    let mut lines: Vec<PlotLine> = Vec::new();
    let mut said = Vec::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (run, _, kind) in job.kinds() {
        let Some((first, _)) = seen(kind) else {
            continue;
        };
        // Beside the response stands what of it the target took.
        let stages = [first, Stage::Lat];
        let shown = if first == Stage::Rlat { 2 } else { 1 };
        for stage in &stages[..shown] {
            let Some(histogram) = kind.stage(*stage) else {
                continue;
            };
            let what = match (with_response, several) {
                (true, true) => format!("{} {}", kind.name, word(*stage)),
                (true, false) => word(*stage).to_owned(),
                (false, _) => kind.name.clone(),
            };
            let name = job.line_name(run, &what, several || with_response);
            said.extend(sentence(&name, histogram));
            rows.push(row(&name, histogram));
            lines.push(PlotLine {
                name,
                slot: lines.len(),
                shape: LineShape::Steps,
                points: steps(histogram),
            });
        }
    }
    if lines.is_empty() {
        return None;
    }
    let all = || lines.iter().flat_map(|line| &line.points);
    let chart = Chart {
        x: PlotAxis::log("latency", AxisUnit::Seconds, all().map(|p| p.x)),
        y: PlotAxis::linear("share done", AxisUnit::Nines, all().filter_map(|p| p.y)),
        shades: Vec::new(),
        rules: Vec::new(),
        lines,
    };
    let percentiles = PERCENTILES.iter().map(|p| format!("p{p}"));
    let head = ["", "min"].map(str::to_owned).into_iter();
    let head = head.chain(percentiles).chain(["max".to_owned()]);
    Some(Plot {
        name: "distribution".into(),
        title: "Distribution of latency".into(),
        caption: said.join(" "),
        body: PlotBody::Chart(chart),
        table: PlotTable {
            head: head.collect(),
            rows,
        },
        detail: Detail::Figures,
    })
}

fn word(stage: Stage) -> &'static str {
    match stage {
        Stage::Rlat => "response",
        _ => "latency",
    }
}

/// From the least latency at share 0; the greatest stands at 1 − 1/N.
fn steps(histogram: &Histogram) -> Vec<PlotPoint> {
    let all = real(histogram.count());
    let highest = all.log10();
    let (Some(least), Some(most)) = (histogram.min(), histogram.max()) else {
        return Vec::new();
    };
    let seconds = |ns: u64| real(ns.max(1)) / 1e9;
    let mut points = vec![PlotPoint::new(seconds(least), 0.0)];
    let mut done = 0;
    for bucket in histogram.buckets() {
        done += bucket.count;
        let beyond = real(histogram.count() - done) / all;
        let height = if beyond > 0.0 {
            (-beyond.log10()).clamp(0.0, highest)
        } else {
            highest
        };
        points.push(PlotPoint::new(
            seconds(bucket.high.clamp(least, most)),
            height,
        ));
    }
    points
}

fn sentence(name: &str, histogram: &Histogram) -> Option<String> {
    let at = |p| histogram.percentile(p).map(Nanos);
    Some(format!(
        "{name}: half of {} took at most {}, 99 % at most {}, the longest {}.",
        Count(histogram.count()),
        at(50.0)?,
        at(99.0)?,
        at(100.0)?
    ))
}

fn row(name: &str, histogram: &Histogram) -> Vec<String> {
    let text = |ns: Option<u64>| ns.map_or_else(String::new, |ns| Nanos(ns).to_string());
    let percentiles = PERCENTILES.map(|p| {
        let mark = if histogram.few_samples(p) { "~" } else { "" };
        text(histogram.percentile(p)) + mark
    });
    let mut row = vec![name.to_owned(), text(histogram.min())];
    row.extend(percentiles);
    row.push(text(histogram.max()));
    row
}
