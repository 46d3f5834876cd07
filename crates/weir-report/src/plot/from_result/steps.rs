//! A sweep: what rate and latency do while one parameter of the jobs changes, with the knee.

use weir_schema::Stage;
use weir_stats::Histogram;
use weir_units::Nanos;

use super::{PlottedRun, capital, seen};
use crate::entry::ReportEntry;
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{
    Chart, Detail, LineShape, Plot, PlotBody, PlotLine, PlotPoint, PlotRule, PlotTable, real,
};
use crate::sweep::{Knee, Sweep};

/// The points of one result.
struct Steps<'r> {
    label: &'r str,
    parameter: &'static str,
    knee: Option<(f64, String)>,
    is_bytes: bool,
    points: Vec<Step>,
}

/// One value of the parameter.
struct Step {
    at: f64,
    cell: String,
    rate: f64,
    p50: Option<f64>,
    p99: Option<f64>,
}

/// A point of a line, where the step has one.
type StepPoint = fn(&Step) -> Option<(f64, f64)>;

pub(super) fn of_runs(runs: &[PlottedRun<'_>]) -> Vec<Plot> {
    let found: Vec<Steps<'_>> = runs.iter().filter_map(Steps::of).collect();
    let Some(first) = found.first() else {
        return Vec::new();
    };
    let parameter = first.parameter;
    let same: Vec<&Steps<'_>> = found.iter().filter(|s| s.parameter == parameter).collect();
    let several = runs.len() > 1;
    let mut plots = vec![rates(&same, several)];
    plots.extend(latencies(&same, several));
    plots.extend(trade(&same, several));
    plots
}

impl<'r> Steps<'r> {
    /// Nothing unless the jobs of the result are a sweep over a number.
    fn of(run: &'r PlottedRun<'_>) -> Option<Self> {
        let sweep = Sweep::of(&run.entries);
        let parameter = sweep.parameter?;
        let is_bytes = parameter == "block";
        let points = run.entries.iter().zip(&sweep.points).map(|(entry, point)| {
            let latency = latency(entry);
            let percentile = |p| Some(real(latency.as_ref()?.percentile(p)?) / 1e9);
            Some(Step {
                at: point.number?,
                cell: point.cell.clone(),
                rate: rate(entry, is_bytes)?,
                p50: percentile(50.0),
                p99: percentile(99.0),
            })
        });
        let mut points: Vec<Step> = points.collect::<Option<_>>()?;
        points.sort_by(|a, b| a.at.total_cmp(&b.at));
        let knee = sweep.knee(&run.entries).and_then(|knee: Knee| {
            let point = sweep.points.get(knee.entry)?;
            Some((point.number?, point.cell.clone()))
        });
        (points.len() > 1).then_some(Self {
            label: run.label,
            parameter,
            knee,
            is_bytes,
            points,
        })
    }

    fn rate_unit(&self) -> AxisUnit {
        if self.is_bytes {
            AxisUnit::BytesPerSecond
        } else {
            AxisUnit::OpsPerSecond
        }
    }
}

fn rate(entry: &ReportEntry<'_>, is_bytes: bool) -> Option<f64> {
    let of_kinds = entry.kinds.iter().filter_map(|kind| {
        if is_bytes {
            entry.bandwidth(kind).map(|r| r.0)
        } else {
            entry.iops(kind).map(|r| r.0)
        }
    });
    of_kinds.reduce(|a, b| a + b)
}

/// Of all kinds together.
fn latency(entry: &ReportEntry<'_>) -> Option<Histogram> {
    let mut all = Histogram::new();
    let mut stages: Vec<Stage> = Vec::new();
    for kind in entry.kinds.iter().filter(|k| !k.sum.kind.is_aside()) {
        let (stage, histogram) = seen(kind)?;
        stages.push(stage);
        all.merge(histogram).ok()?;
    }
    stages.dedup();
    (stages.len() == 1).then_some(all)
}

/// The axis of the parameter.
fn parameter_axis(steps: &[&Steps<'_>]) -> PlotAxis {
    let parameter = steps.first().map_or("", |s| s.parameter);
    let values = || steps.iter().flat_map(|s| &s.points).map(|p| p.at);
    let unit = if parameter == "block" {
        AxisUnit::Bytes
    } else {
        AxisUnit::Other(String::new())
    };
    let least = values().fold(f64::INFINITY, f64::min);
    let most = values().fold(0.0, f64::max);
    if least > 0.0 && most / least >= 8.0 {
        PlotAxis::log(parameter, unit, values())
    } else {
        PlotAxis::linear(parameter, unit, values())
    }
}

fn lines(steps: &[&Steps<'_>], several: bool, of: &[(&str, StepPoint)]) -> Vec<PlotLine> {
    let mut lines = Vec::new();
    for steps in steps {
        for (what, point) in of {
            let points = steps.points.iter().filter_map(point);
            let points: Vec<_> = points.map(|(x, y)| PlotPoint::new(x, y)).collect();
            if points.is_empty() {
                continue;
            }
            let name = match (several, of.len() > 1) {
                (true, true) => format!("{}: {what}", steps.label),
                (true, false) => steps.label.to_owned(),
                (false, _) => (*what).to_owned(),
            };
            lines.push(PlotLine {
                name,
                slot: lines.len(),
                shape: LineShape::Dots,
                points,
            });
        }
    }
    lines
}

fn ys(lines: &[PlotLine]) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(|l| &l.points).filter_map(|p| p.y)
}

fn rates(steps: &[&Steps<'_>], several: bool) -> Plot {
    let unit = steps
        .first()
        .map_or(AxisUnit::OpsPerSecond, |s| s.rate_unit());
    let lines = lines(steps, several, &[("rate", |p| Some((p.at, p.rate)))]);
    let caption = steps.iter().map(|s| knee_sentence(s, several));
    let rules = steps.iter().filter_map(|s| {
        let (at, cell) = s.knee.clone()?;
        let name = if several {
            format!("knee of {}: {cell}", s.label)
        } else {
            format!("knee: {} {cell}", s.parameter)
        };
        Some(PlotRule {
            at,
            upright: true,
            name,
        })
    });
    let rules: Vec<PlotRule> = rules.collect();
    let chart = Chart {
        x: parameter_axis(steps),
        y: PlotAxis::linear("rate", unit, ys(&lines)).with_room(),
        shades: Vec::new(),
        // Marks of several results would cover each other.
        rules: if several { Vec::new() } else { rules },
        lines,
    };
    Plot {
        name: "sweep".into(),
        title: format!("Rate over {}", steps.first().map_or("", |s| s.parameter)),
        caption: caption.collect::<Vec<_>>().join(" "),
        body: PlotBody::Chart(chart),
        table: table(steps, several),
        detail: Detail::Figures,
    }
}

fn knee_sentence(steps: &Steps<'_>, several: bool) -> String {
    let best = steps.points.iter().map(|p| p.rate).fold(0.0, f64::max);
    let best = steps.rate_unit().print(best);
    let of = if several {
        format!("{}: ", steps.label)
    } else {
        String::new()
    };
    match &steps.knee {
        Some((_, cell)) => format!(
            "{of}{} {cell} is the first with 95 % of the best rate, {best}.",
            capital(steps.parameter)
        ),
        None => format!("{of}The best rate is {best}."),
    }
}

fn latencies(steps: &[&Steps<'_>], several: bool) -> Option<Plot> {
    let p50 = |p: &Step| Some((p.at, p.p50?));
    let p99 = |p: &Step| Some((p.at, p.p99?));
    let lines = lines(steps, several, &[("p50", p50), ("p99", p99)]);
    let parameter = steps.first()?.parameter;
    let (first, last) = (
        steps.first()?.points.first()?,
        steps.first()?.points.last()?,
    );
    let print = |seconds| AxisUnit::Seconds.print(seconds);
    let caption = format!(
        "Half of the operations take at most {} at {parameter} {}, and {} at {}.",
        print(first.p50?),
        first.cell,
        print(last.p50?),
        last.cell
    );
    let chart = Chart {
        x: parameter_axis(steps),
        y: PlotAxis::log("latency", AxisUnit::Seconds, ys(&lines)).with_room(),
        shades: Vec::new(),
        rules: Vec::new(),
        lines,
    };
    Some(Plot {
        name: "sweep-latency".into(),
        title: format!("Latency over {parameter}"),
        caption,
        body: PlotBody::Chart(chart),
        table: table(steps, several),
        detail: Detail::Figures,
    })
}

/// Latency against rate.
fn trade(steps: &[&Steps<'_>], several: bool) -> Option<Plot> {
    let unit = steps.first()?.rate_unit();
    let p50 = |p: &Step| Some((p.rate, p.p50?));
    let p99 = |p: &Step| Some((p.rate, p.p99?));
    let lines = lines(steps, several, &[("p50", p50), ("p99", p99)]);
    lines.first()?;
    let points = steps
        .iter()
        .flat_map(|run| run.points.iter().map(|p| (run.label, p)));
    let (label, best) = points.max_by(|(_, a), (_, b)| a.rate.total_cmp(&b.rate))?;
    let of = if several {
        format!(" of {label}")
    } else {
        String::new()
    };
    let caption = format!(
        "At the best rate, {}{of}, 99 % take at most {}.",
        unit.print(best.rate),
        AxisUnit::Seconds.print(best.p99?)
    );
    let xs = lines.iter().flat_map(|l| &l.points).map(|p| p.x);
    let chart = Chart {
        x: PlotAxis::linear("rate", unit, xs).with_room(),
        y: PlotAxis::log("latency", AxisUnit::Seconds, ys(&lines)).with_room(),
        shades: Vec::new(),
        rules: Vec::new(),
        lines,
    };
    Some(Plot {
        name: "rate-latency".into(),
        title: "Latency over rate".into(),
        caption,
        body: PlotBody::Chart(chart),
        table: table(steps, several),
        detail: Detail::Figures,
    })
}

fn table(steps: &[&Steps<'_>], several: bool) -> PlotTable {
    let time = |seconds: Option<f64>| {
        let time = seconds.and_then(Nanos::from_secs_f64);
        time.map_or_else(String::new, |t| t.to_string())
    };
    let rows = steps.iter().flat_map(|steps| {
        let unit = steps.rate_unit();
        steps.points.iter().map(move |p| {
            let row = [p.cell.clone(), unit.print(p.rate), time(p.p50), time(p.p99)];
            let label = several.then(|| steps.label.to_owned());
            label.into_iter().chain(row).collect()
        })
    });
    let parameter = steps.first().map_or("", |s| s.parameter);
    let head = [parameter, "rate", "p50", "p99"].map(str::to_owned);
    let result = several.then(|| "result".to_owned());
    PlotTable {
        head: result.into_iter().chain(head).collect(),
        rows: rows.collect(),
    }
}
