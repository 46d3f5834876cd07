//! Parts that plots over time share: stretches where nothing completed, and a table of a few
//! stretches.

use crate::plot::axis::AxisUnit;
use crate::plot::{Chart, PlotTable, Shade, count, real};

/// A stretch without completions stands out where at least so many were to be expected.
const MISSED: f64 = 10.0;
/// Rows of a table.
const ROWS: usize = 20;

/// Stretches of at least this length where nothing completed, although there would have been some
/// completions.
pub(super) fn stalls(cells: impl Iterator<Item = (f64, f64, u64)>, least: f64) -> Vec<(f64, f64)> {
    let (mut length, mut done) = (0.0, 0.0);
    let mut empty: Vec<(f64, f64)> = Vec::new();
    for (from, to, operations) in cells {
        length += to - from;
        done += real(operations);
        match empty.last_mut() {
            _ if operations > 0 => {}
            // Both are the same sum of lengths, if not to the last digit.
            Some(last) if (from - last.1).abs() < 1e-9 => last.1 = to,
            _ => empty.push((from, to)),
        }
    }
    let is_stall = |(from, to): &(f64, f64)| {
        let lasts = to - from;
        lasts >= least - 1e-9 && lasts * done / length >= MISSED
    };
    empty.retain(is_stall);
    empty
}

/// The same behind a line.
pub(super) fn shades(name: &str, stalls: &[(f64, f64)]) -> impl Iterator<Item = Shade> {
    stalls.iter().map(move |(from, to)| Shade {
        from: *from,
        to: *to,
        name: format!("{name}: nothing completed"),
    })
}

/// The same in words, with a blank before them; nothing where there are none.
pub(super) fn stall_sentence(stalls: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (from, to) in stalls.iter().take(3) {
        push!(
            text,
            " Nothing completed for {} from {}.",
            AxisUnit::Seconds.print(to - from),
            AxisUnit::Seconds.print(*from)
        );
    }
    if stalls.len() > 3 {
        push!(text, " And {} more such times.", stalls.len() - 3);
    }
    text
}

/// A few stretches of time, and what the heights of each line in them come to; a gap is 0.
pub(super) fn table(chart: &Chart, cell: impl Fn(&[f64]) -> String) -> PlotTable {
    let end = chart.x.range.1;
    let rows = (0..ROWS).map(|i| {
        let share = |i: usize| count(i) / count(ROWS) * end;
        let (from, to) = (share(i), share(i + 1));
        let time = [from, to].map(|at| AxisUnit::Seconds.print(at));
        let mut row = vec![time.join(" to ")];
        row.extend(chart.lines.iter().map(|line| {
            let inside = line.points.iter().filter(|p| p.x >= from && p.x < to);
            let heights: Vec<f64> = inside.map(|p| p.y.unwrap_or(0.0)).collect();
            if heights.is_empty() {
                String::new()
            } else {
                cell(&heights)
            }
        }));
        row
    });
    let head = ["time".to_owned()].into_iter();
    PlotTable {
        head: head
            .chain(chart.lines.iter().map(|l| l.name.clone()))
            .collect(),
        rows: rows
            .filter(|row| row[1..].iter().any(|c| !c.is_empty()))
            .collect(),
    }
}
