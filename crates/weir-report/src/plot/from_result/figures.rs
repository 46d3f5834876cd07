//! Named headline figures, of whatever workload: over the size of messages where their names say
//! one (`bandwidth at 64 B`), else a bar each, those of one unit together.

use weir_schema::{Better, Metric};

use super::{JobAcross, PlottedRun, capital};
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{
    Bar, Bars, Chart, Detail, LineShape, Plot, PlotBody, PlotLine, PlotPoint, PlotRule, PlotTable,
    real,
};

/// Figures so many times as large as others hide them on a linear axis.
const WIDE: f64 = 50.0;

/// A figure of one of the results.
struct Figure<'a> {
    run: &'a PlottedRun<'a>,
    metric: &'a Metric,
    /// Measured quantity, and its size.
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
    let name = format!("by-size{}", slug(unit, Metric::BYTES_PER_S));
    let unit = AxisUnit::of_metric(unit);
    let kinds = figures.iter().filter_map(|f| f.size.map(|s| s.0));
    let first = kinds.clone().next()?;
    let several = kinds.clone().any(|kind| kind != first);
    let mut found: Vec<(String, Vec<(u64, &Metric)>)> = Vec::new();
    for figure in figures {
        let (what, size) = figure.size?;
        let name = job.line_name(figure.run, what, several);
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push((size, figure.metric)),
            None => found.push((name, vec![(size, figure.metric)])),
        }
    }
    let (mut lines, mut said, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (name, mut points) in found {
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
    let sizes = lines.iter().flat_map(|line| &line.points).map(|p| p.x);
    let alone = alone.iter().filter(|_| !job.is_labelled).map(|f| f.metric);
    let chart = Chart {
        x: PlotAxis::log("size of a message", AxisUnit::Bytes, sizes),
        y: height(first, &unit, &lines),
        shades: Vec::new(),
        rules: alone.map(|metric| mark(metric, &unit)).collect(),
        lines,
    };
    Some(Plot {
        name,
        title: format!("{} over size", capital(first)),
        caption: said.join(" "),
        body: PlotBody::Chart(chart),
        table: PlotTable {
            head: ["", "size", first].map(str::to_owned).to_vec(),
            rows,
        },
        detail: Detail::Figures,
    })
}

/// The axis of figures over sizes, logarithmic where they lie far apart.
fn height(name: &str, unit: &AxisUnit, lines: &[PlotLine]) -> PlotAxis {
    let points = || lines.iter().flat_map(|line| &line.points);
    let ends = |p: &PlotPoint| p.range.or(p.y.map(|y| (y, y)));
    let least = points().filter_map(ends).map(|e| e.0);
    let least = least.fold(f64::INFINITY, f64::min);
    let most = points().filter_map(ends).map(|e| e.1).fold(0.0, f64::max);
    let both = [least, most].into_iter();
    if least > 0.0 && most / least >= WIDE {
        PlotAxis::log(name, unit.clone(), both).with_room()
    } else {
        PlotAxis::linear(name, unit.clone(), both).with_room()
    }
}

/// A figure as a line across.
fn mark(metric: &Metric, unit: &AxisUnit) -> PlotRule {
    PlotRule {
        at: metric.value,
        upright: false,
        name: format!("{} {}", metric.name, unit.print(metric.value)),
    }
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
    let name = format!("figures{}", slug(unit, ""));
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
    let rows: Vec<Bar> = sorted.map(|figure| bar(job, &unit, figure)).collect();
    let ends = rows.iter().map(|row| {
        let length = row.parts.iter().map(|(_, value)| value).sum();
        row.range.map_or(length, |range| range.1)
    });
    let table = rows
        .iter()
        .map(|row| vec![row.name.clone(), row.text.clone()]);
    Some(Plot {
        name,
        title: match &unit {
            AxisUnit::Seconds => "Times".to_owned(),
            AxisUnit::BytesPerSecond | AxisUnit::OpsPerSecond => "Rates".to_owned(),
            AxisUnit::Other(unit) if unit.is_empty() => "Figures".to_owned(),
            other => format!("Figures in {}", other.word()),
        },
        caption: ends_sentence(figures, &unit)?,
        table: PlotTable {
            head: vec![String::new(), "value".to_owned()],
            rows: table.collect(),
        },
        body: PlotBody::Bars(Bars {
            axis: PlotAxis::linear("", unit, ends),
            rows,
            parts: Vec::new(),
        }),
        detail: Detail::Figures,
    })
}

fn bar(job: &JobAcross<'_, '_>, unit: &AxisUnit, figure: &Figure<'_>) -> Bar {
    let metric = figure.metric;
    let half = metric.half_width().map(|half| unit.print(half));
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
}

/// From the least to the greatest.
fn ends_sentence(figures: &[&Figure<'_>], unit: &AxisUnit) -> Option<String> {
    let metrics = || figures.iter().map(|figure| figure.metric);
    let low = metrics().min_by(|a, b| a.value.total_cmp(&b.value))?;
    let high = metrics().max_by(|a, b| a.value.total_cmp(&b.value))?;
    Some(format!(
        "From {} ({}) to {} ({}).",
        unit.print(low.value),
        low.name,
        unit.print(high.value),
        high.name
    ))
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
