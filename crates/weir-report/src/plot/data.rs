//! A plot as data for the page's script.
//!
//! In: a plot. Out: JSON in columns, each series with at most 2,000 points and its numbers with six
//! digits; cells of heat maps as runs of neighbours. Not here: how it stands in the page.

use serde_json::{Value, json};

use super::axis::{AxisScale, PlotAxis};
use super::fold::folded;
use super::{Chart, HeatColumn, HeatPanel, LineShape, Plot, PlotBody, PlotLine, Shade};

/// Largest number of points of a series.
const POINTS: usize = 2000;

/// Nothing for a plot that the script leaves as it is.
pub(crate) fn data_of(plot: &Plot) -> Option<Value> {
    match &plot.body {
        PlotBody::Bars(_) | PlotBody::Pairs(_) => None,
        PlotBody::Chart(chart) => Some(json!({
            "name": plot.name,
            "x": axis(&chart.x),
            "y": axis(&chart.y),
            "lines": chart.lines.iter().map(line).collect::<Vec<_>>(),
            "shades": shades(&chart.shades),
            "rules": rules(chart),
        })),
        PlotBody::Heat(map) => Some(json!({
            "name": plot.name,
            "x": axis(&map.x),
            "y": axis(&map.y),
            "edges": map.edges.iter().map(|at| rounded(*at)).collect::<Vec<_>>(),
            "most": map.most(),
            "panels": map.panels.iter().map(panel).collect::<Vec<_>>(),
        })),
    }
}

fn panel(panel: &HeatPanel) -> Value {
    let ends = panel.columns.iter().map(|column| rounded(column.to));
    let begin = panel.columns.first().map(|column| rounded(column.from));
    json!({
        "name": panel.name,
        "ends": begin.into_iter().chain(ends).collect::<Vec<_>>(),
        "columns": panel.columns.iter().map(runs).collect::<Vec<_>>(),
        "shades": shades(&panel.shades),
    })
}

/// The cells of a column as runs of neighbours: the first row, then the counts of it and of those
/// after it.
fn runs(column: &HeatColumn) -> Vec<Vec<u64>> {
    let mut runs: Vec<Vec<u64>> = Vec::new();
    let mut next = None;
    for (row, n) in &column.cells {
        match runs.last_mut().filter(|_| next == Some(*row)) {
            Some(run) => run.push(*n),
            None => runs.push(vec![*row as u64, *n]),
        }
        next = Some(row + 1);
    }
    runs
}

fn axis(axis: &PlotAxis) -> Value {
    json!({
        "name": axis.name,
        "unit": axis.unit.word(),
        "log": axis.scale == AxisScale::Log,
        "range": [rounded(axis.range.0), rounded(axis.range.1)],
    })
}

fn line(line: &PlotLine) -> Value {
    let points = folded(&line.points, line.shape, POINTS);
    let column = |of: fn(&super::PlotPoint) -> Option<f64>| -> Vec<Value> {
        points.iter().map(|p| number(of(p))).collect()
    };
    let mut data = json!({
        "name": line.name,
        "slot": line.slot % 8,
        "shape": match line.shape {
            LineShape::Straight => "line",
            LineShape::Steps => "steps",
            LineShape::Dots => "dots",
        },
        "x": column(|p| Some(p.x)),
        "y": column(|p| p.y),
    });
    if points.iter().any(|p| p.range.is_some()) {
        data["low"] = column(|p| p.range.map(|r| r.0)).into();
        data["high"] = column(|p| p.range.map(|r| r.1)).into();
    }
    data
}

fn shades(shades: &[Shade]) -> Vec<Value> {
    let shades = shades.iter();
    shades
        .map(|s| json!([rounded(s.from), rounded(s.to), s.name]))
        .collect()
}

fn rules(chart: &Chart) -> Vec<Value> {
    let rules = chart.rules.iter();
    rules
        .map(|r| json!([rounded(r.at), r.upright, r.name]))
        .collect()
}

fn number(value: Option<f64>) -> Value {
    value.map_or(Value::Null, |v| rounded(v).into())
}

/// Six digits: a picture shows four, a tooltip prints three.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
