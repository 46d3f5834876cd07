//! Counts over two axes: a panel below the other, each cell the stronger the more it holds.
//!
//! Cells of one strength are one path, in which neighbours of a row are one stroke: a picture of ten
//! thousand cells takes some 20 KB. Where it would take more, neighbouring columns are drawn as one.

use super::super::palette::STRENGTHS;
use super::super::{HeatColumn, HeatMap, HeatPanel, count, real, whole};
use super::chart::{BELOW, Frame, LEFT, RIGHT};
use super::{WIDTH, short, text};

/// Of a panel alone, and of one of several.
const HEIGHTS: [f64; 2] = [230.0, 150.0];
/// The cells of all panels take at most so many bytes.
const BYTES: usize = 22_000;

/// Its height, and what is drawn.
pub(super) fn drawn(map: &HeatMap, top: f64) -> (f64, String) {
    let height = HEIGHTS[usize::from(map.panels.len() > 1)];
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
            bottom: top + height,
        };
        out += &frame.shades(&panel.shades);
        out += &frame.grid();
        out += &cells(&frame, map, panel, (most, BYTES / map.panels.len()));
        if map.panels.len() > 1 {
            out += &text("title", "end", (frame.right, top - 9.0), &panel.name);
        }
        top += height + BELOW + 26.0;
    }
    (top - 26.0, out)
}

/// In so many bytes.
fn cells(
    frame: &Frame<'_>,
    map: &HeatMap,
    panel: &HeatPanel,
    (most, bytes): (u64, usize),
) -> String {
    let mut as_one = 1;
    loop {
        let columns: Vec<HeatColumn> = panel.columns.chunks(as_one).map(joined).collect();
        let drawn = paths(frame, map, &columns, most);
        if drawn.len() <= bytes || columns.len() < 2 {
            return drawn;
        }
        as_one += 1;
    }
}

/// Several columns as one, as strong as they are on average.
fn joined(columns: &[HeatColumn]) -> HeatColumn {
    let mut cells = std::collections::BTreeMap::new();
    for (row, n) in columns.iter().flat_map(|column| &column.cells) {
        let sum: &mut u64 = cells.entry(*row).or_default();
        *sum = sum.saturating_add(*n);
    }
    let mean = |sum: u64| sum.div_ceil(columns.len().max(1) as u64);
    HeatColumn {
        from: columns.first().map_or(0.0, |column| column.from),
        to: columns.last().map_or(0.0, |column| column.to),
        cells: cells
            .into_iter()
            .map(|(row, sum)| (row, mean(sum)))
            .collect(),
    }
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

/// Strokes of one height, each from the end of the one before.
fn path<'a>(strokes: impl Iterator<Item = &'a (usize, usize, usize)>) -> String {
    let mut path = String::new();
    let mut at = None;
    for (from, to, _) in strokes {
        match at {
            None => push!(path, "M{from} 0h{}", to - from),
            Some(at) => push!(path, "m{} 0h{}", from - at, to - from),
        }
        at = Some(*to);
    }
    path
}

/// Strength of a count among all up to the greatest: each has its logarithm's share.
fn strength(n: u64, most: u64) -> usize {
    let share = real(n).ln_1p() / real(most.max(1)).ln_1p();
    let levels = count(STRENGTHS.len());
    whole((share * levels).ceil().clamp(1.0, levels)) - 1
}
