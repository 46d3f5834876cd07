//! Counts over two axes: a panel below the other, each cell the stronger the more it holds.
//!
//! Cells of one row and strength are one path, in which neighbours are one stroke: ten thousand cells
//! take some 60 KB.

use serde_json::{Value, json};

use super::super::palette::STRENGTHS;
use super::super::{HeatColumn, HeatMap, HeatPanel, count, real, whole};
use super::chart::{BELOW, Frame, HEIGHT, LEFT, RIGHT};
use super::{WIDTH, short, text};

/// Its height, and what is drawn.
pub(super) fn drawn(map: &HeatMap, top: f64) -> (f64, String) {
    let most = map.most();
    let mut top = top + 26.0;
    let mut out = String::new();
    for panel in &map.panels {
        let frame = Frame {
            x: &map.x,
            y: &map.y,
            left: LEFT,
            right: WIDTH - RIGHT,
            top,
            bottom: top + HEIGHT,
        };
        out += &frame.grid();
        if map.panels.len() > 1 {
            out += &text("title", "end", (frame.right, top - 9.0), &panel.name);
        }
        let cells = paths(&frame, map, &panel.columns, most);
        out += &frame.inside(&(frame.shades(&panel.shades) + &cells));
        top += HEIGHT + BELOW + 26.0;
    }
    (top - 26.0, out)
}

/// A path for each row and strength. Rows are as high as the axis has them: below 64 ns they are not
/// alike.
fn paths(frame: &Frame<'_>, map: &HeatMap, columns: &[HeatColumn], most: u64) -> String {
    let rows = map.edges.len().saturating_sub(1);
    // By row: where strokes begin and end, to whole pixels, and how strong they are.
    let mut strokes: Vec<Vec<(usize, usize, usize)>> = vec![Vec::new(); rows];
    for column in columns {
        let (Some(from), Some(to)) = (frame.at_x(column.from), frame.at_x(column.to)) else {
            continue;
        };
        let (from, to) = (whole(from.round()), whole(to.round()));
        for (row, n) in &column.cells {
            let Some(of_row) = strokes.get_mut(*row).filter(|_| to > from) else {
                continue;
            };
            let strength = strength(*n, most);
            match of_row.last_mut() {
                Some(last) if last.1 == from && last.2 == strength => last.1 = to,
                _ => of_row.push((from, to, strength)),
            }
        }
    }
    let mut out = String::new();
    for (edges, strokes) in map.edges.windows(2).zip(&strokes) {
        let (Some(bottom), Some(top)) = (frame.at_y(edges[0]), frame.at_y(edges[1])) else {
            continue;
        };
        if strokes.is_empty() {
            continue;
        }
        // On whole pixels rows neither overlap nor leave a gap.
        let (bottom, top) = (bottom.round(), top.round());
        let height = (bottom - top).max(1.0);
        push!(
            out,
            "<g transform=\"translate(0 {})\" stroke-width=\"{}\">",
            short(bottom - height / 2.0),
            short(height)
        );
        for level in 0..STRENGTHS.len() {
            let path = path(strokes.iter().filter(|stroke| stroke.2 == level));
            if !path.is_empty() {
                push!(out, "<path class=\"h{level}\" d=\"{path}\"/>");
            }
        }
        out += "</g>";
    }
    out
}

/// Strokes of one height.
fn path<'a>(strokes: impl Iterator<Item = &'a (usize, usize, usize)>) -> String {
    let strokes = strokes.map(|(from, to, _)| format!("M{from} 0H{to}"));
    strokes.collect()
}

/// The counts for the page's script, JSON of numbers alone: the edges of the rows; then by panel the
/// columns, each with its begin, its end, and of each cell how many rows above the last it is and its
/// count.
pub(super) fn counts(map: &HeatMap) -> String {
    let column = |column: &HeatColumn| {
        let mut next = 0;
        let cells = column.cells.iter().flat_map(|(row, n)| {
            let above = row - next;
            next = row + 1;
            [above as u64, *n]
        });
        json!((column.from, column.to, cells.collect::<Vec<u64>>()))
    };
    let columns = |panel: &HeatPanel| panel.columns.iter().map(column).collect();
    let panels: Vec<Vec<Value>> = map.panels.iter().map(columns).collect();
    json!((&map.edges, panels)).to_string()
}

/// Strength of a count among all up to the greatest: each has its logarithm's share.
fn strength(n: u64, most: u64) -> usize {
    let share = real(n).ln_1p() / real(most.max(1)).ln_1p();
    let levels = count(STRENGTHS.len());
    whole((share * levels).ceil().clamp(1.0, levels)) - 1
}
