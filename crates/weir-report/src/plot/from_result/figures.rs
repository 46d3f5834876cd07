//! Named headline figures, of whatever workload: over the size of messages where their names say
//! one (`bandwidth at 64 B`), else a bar each, those of one unit together.

use std::collections::BTreeMap;

use weir_schema::{Better, Metric};

use super::{JobAcross, PlottedRun, capital};
use crate::plot::axis::{Axis, AxisUnit};
use crate::plot::{
    Bar, Bars, Chart, LineShape, Plot, PlotBody, PlotLine, PlotPoint, PlotTable, Rule, real,
};

/// Figures so many times as large as others hide them on a linear axis.
const WIDE: f64 = 50.0;

/// A figure of one of the results.
struct Figure<'a> {
    run: &'a PlottedRun<'a>,
    metric: &'a Metric,
    /// What is measured, and for which size.
    size: Option<(&'a str, u64)>,
}

pub(super) fn of_job(job: &JobAcross<'_, '_>) -> Vec<Plot> {
    let mut units: Vec<&str> = Vec::new();
    let mut figures = Vec::new();
    for (run, entry) in &job.runs {
        for metric in entry.metrics() {
            if !metric.value.is_finite() {
                continue;
            }
            if !units.contains(&metric.unit.as_str()) {
                units.push(&metric.unit);
            }
            let size = sized(&metric.name);
            figures.push(Figure { run, metric, size });
        }
    }
    let mut plots = Vec::new();
    for unit in units {
        let of_unit = figures.iter().filter(|f| f.metric.unit == unit);
        let (sized, single): (Vec<&Figure<'_>>, Vec<_>) = of_unit.partition(|f| f.size.is_some());
        let bars = bars(job, unit, &single);
        let by_size = by_size(
            job,
            unit,
            &sized,
            if bars.is_none() { &single } else { &[] },
        );
        plots.extend(by_size);
        plots.extend(bars);
    }
    plots
}

/// `bandwidth` and 64 of `bandwidth at 64 B`.
pub(crate) fn sized(name: &str) -> Option<(&str, u64)> {
    let (what, size) = name.rsplit_once(" at ")?;
    Some((what, size.strip_suffix(" B")?.parse().ok()?))
}

/// Figures over sizes; those that stand alone are marked across.
fn by_size(
    job: &JobAcross<'_, '_>,
    unit: &str,
    figures: &[&Figure<'_>],
    alone: &[&Figure<'_>],
) -> Option<Plot> {
    let unit_word = unit;
    let unit = AxisUnit::of_metric(unit);
    let mut found: BTreeMap<String, Vec<(u64, &Metric)>> = BTreeMap::new();
    let mut order = Vec::new();
    let kinds = figures.iter().filter_map(|f| f.size.map(|s| s.0));
    let first = kinds.clone().next()?;
    let several = kinds.clone().any(|kind| kind != first);
    for figure in figures {
        let (what, size) = figure.size?;
        let name = job.line_name(figure.run, what, several);
        if !order.contains(&name) {
            order.push(name.clone());
        }
        found.entry(name).or_default().push((size, figure.metric));
    }
    let mut lines: Vec<PlotLine> = Vec::new();
    let (mut said, mut rows) = (Vec::new(), Vec::new());
    for name in order {
        let mut points = found.remove(&name).unwrap_or_default();
        points.sort_by_key(|(size, _)| *size);
        said.extend(sentence(&name, &points, &unit));
        rows.extend(points.iter().map(|(size, metric)| {
            let size = AxisUnit::Bytes.print(real(*size));
            vec![name.clone(), size, unit.print(metric.value)]
        }));
        lines.push(PlotLine {
            name,
            slot: lines.len(),
            shape: LineShape::Dots,
            points: points.iter().map(|(size, m)| point(*size, m)).collect(),
        });
    }
    let points = || lines.iter().flat_map(|l| &l.points);
    let sizes = points().map(|p| p.x);
    let ends = || points().flat_map(|p| [p.y, p.range.map(|r| r.1)]).flatten();
    let lows = points().flat_map(|p| [p.y, p.range.map(|r| r.0)]).flatten();
    let (least, most) = (
        lows.fold(f64::INFINITY, f64::min),
        ends().fold(0.0, f64::max),
    );
    let chart = Chart {
        x: Axis::log("size of a message", AxisUnit::Bytes, sizes),
        y: if least > 0.0 && most / least >= WIDE {
            Axis::log(first, unit.clone(), [least, most].into_iter()).with_room()
        } else {
            Axis::linear(first, unit.clone(), ends()).with_room()
        },
        shades: Vec::new(),
        rules: alone
            .iter()
            .filter(|_| !job.is_labelled)
            .map(|figure| Rule {
                at: figure.metric.value,
                upright: false,
                name: format!("{} {}", figure.metric.name, unit.print(figure.metric.value)),
            })
            .collect(),
        lines,
    };
    Some(Plot {
        name: format!("by-size{}", slug(unit_word, Metric::BYTES_PER_S)),
        title: format!("{} over size", capital(first)),
        caption: said.join(" "),
        body: PlotBody::Chart(chart),
        table: PlotTable {
            head: ["", "size", first].map(str::to_owned).to_vec(),
            rows,
        },
        of_members: false,
    })
}

/// A figure, and the range of the repetitions that it comes from.
fn point(size: u64, metric: &Metric) -> PlotPoint {
    let samples = metric.samples.iter().copied().filter(|v| v.is_finite());
    let low = samples.clone().fold(metric.value, f64::min);
    let high = samples.fold(metric.value, f64::max);
    PlotPoint {
        range: (metric.samples.len() > 1).then_some((low, high)),
        ..PlotPoint::new(real(size.max(1)), metric.value)
    }
}

fn sentence(name: &str, points: &[(u64, &Metric)], unit: &AxisUnit) -> Option<String> {
    let (least, most) = (points.first()?, points.last()?);
    let size = |size: u64| AxisUnit::Bytes.print(real(size));
    let goal = |metric: &Metric| match metric.better {
        Better::Higher => metric.value,
        Better::Lower => -metric.value,
    };
    let best = points
        .iter()
        .max_by(|a, b| goal(a.1).total_cmp(&goal(b.1)))?;
    Some(format!(
        "{name}: {} at {}, {} at {}; the best is {} at {}.",
        unit.print(least.1.value),
        size(least.0),
        unit.print(most.1.value),
        size(most.0),
        unit.print(best.1.value),
        size(best.0),
    ))
}

/// A bar for each figure; nothing for one alone, which says no more than its number.
fn bars(job: &JobAcross<'_, '_>, unit: &str, figures: &[&Figure<'_>]) -> Option<Plot> {
    if figures.len() < 2 {
        return None;
    }
    let unit_word = unit;
    let unit = AxisUnit::of_metric(unit);
    let mut names: Vec<&str> = Vec::new();
    for figure in figures {
        if !names.contains(&figure.metric.name.as_str()) {
            names.push(&figure.metric.name);
        }
    }
    // Figures of one name stand together.
    let sorted = names
        .iter()
        .flat_map(|name| figures.iter().filter(move |f| f.metric.name == *name));
    let rows = sorted.map(|figure| {
        let metric = figure.metric;
        let half = metric.interval.map(|i| unit.print((i.high - i.low) / 2.0));
        let half = half.map_or_else(String::new, |half| format!(" ± {half}"));
        Bar {
            name: if job.is_labelled {
                format!("{}: {}", metric.name, figure.run.label)
            } else {
                metric.name.clone()
            },
            parts: vec![(slot(job, figure.run), metric.value)],
            range: metric.interval.map(|i| (i.low, i.high)),
            text: unit.print(metric.value) + &half,
        }
    });
    let rows: Vec<Bar> = rows.collect();
    let value = |f: &&&Figure<'_>| f.metric.value;
    let low = figures
        .iter()
        .min_by(|a, b| value(a).total_cmp(&value(b)))?;
    let high = figures
        .iter()
        .max_by(|a, b| value(a).total_cmp(&value(b)))?;
    let caption = format!(
        "From {} ({}) to {} ({}).",
        unit.print(low.metric.value),
        low.metric.name,
        unit.print(high.metric.value),
        high.metric.name
    );
    let ends = rows
        .iter()
        .map(|r| r.range.map_or(r.parts[0].1, |range| range.1));
    let title = match &unit {
        AxisUnit::Seconds => "Times".to_owned(),
        AxisUnit::BytesPerSecond | AxisUnit::OpsPerSecond => "Rates".to_owned(),
        AxisUnit::Other(unit) if unit.is_empty() => "Figures".to_owned(),
        other => format!("Figures in {}", other.word()),
    };
    Some(Plot {
        name: format!("figures{}", slug(unit_word, "")),
        title,
        caption,
        table: PlotTable {
            head: vec![String::new(), "value".to_owned()],
            rows: rows
                .iter()
                .map(|r| vec![r.name.clone(), r.text.clone()])
                .collect(),
        },
        body: PlotBody::Bars(Bars {
            axis: Axis::linear("", unit, ends),
            rows,
            parts: Vec::new(),
        }),
        of_members: false,
    })
}

/// The colour of a result.
fn slot(job: &JobAcross<'_, '_>, run: &PlottedRun<'_>) -> usize {
    let place = job
        .runs
        .iter()
        .position(|(other, _)| std::ptr::eq(*other, run));
    place.unwrap_or(0)
}

/// `-s`, `-b-per-s`; nothing for the unit that goes without saying.
fn slug(unit: &str, usual: &str) -> String {
    if unit == usual {
        return String::new();
    }
    let unit = unit.to_lowercase().replace('/', "-per-");
    let letters = unit
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    format!("-{}", letters.collect::<String>().trim_matches('-'))
}
