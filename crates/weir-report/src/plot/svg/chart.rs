//! Points over two axes.

use super::super::axis::PlotAxis;
use super::super::fold::folded;
use super::super::{Chart, LineShape, PlotLine, PlotPoint, Shade};
use super::{WIDTH, legend, short, stroke, text, width_of};

pub(super) const LEFT: f64 = 66.0;
pub(super) const RIGHT: f64 = 18.0;
pub(super) const BELOW: f64 = 42.0;
const HEIGHT: f64 = 230.0;
/// Points of all lines together, so that a picture stays below 30 KB.
const POINTS: usize = 1600;

/// Frame of a chart: its axes and their places.
pub(super) struct Frame<'a> {
    pub(super) x: &'a PlotAxis,
    pub(super) y: &'a PlotAxis,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame<'_> {
    /// Values beyond the axes lie on their ends.
    pub(super) fn at_x(&self, value: f64) -> Option<f64> {
        let place = self.x.place(value)?.clamp(0.0, 1.0);
        Some(self.left + place * (self.right - self.left))
    }

    pub(super) fn at_y(&self, value: f64) -> Option<f64> {
        let place = self.y.place(value)?.clamp(0.0, 1.0);
        Some(self.bottom - place * (self.bottom - self.top))
    }

    pub(super) fn grid(&self) -> String {
        let mut out = String::new();
        for tick in self.y.ticks() {
            let Some(y) = self.at_y(tick.at) else {
                continue;
            };
            out += &stroke("grid", (self.left, y), (self.right, y));
            out += &text("", "end", (self.left - 7.0, y + 4.0), &tick.text);
        }
        let mut free_from = f64::NEG_INFINITY;
        for tick in self.x.ticks() {
            let Some(x) = self.at_x(tick.at) else {
                continue;
            };
            out += &stroke("grid", (x, self.top), (x, self.bottom));
            let half = width_of(&tick.text) / 2.0;
            if x - half > free_from {
                let x = x.min(WIDTH - half);
                out += &text("", "middle", (x, self.bottom + 17.0), &tick.text);
                free_from = x + half + 6.0;
            }
        }
        out += &stroke("axis", (self.left, self.bottom), (self.right, self.bottom));
        let middle = f64::midpoint(self.left, self.right);
        out += &text("", "middle", (middle, self.bottom + 35.0), &self.x.title());
        out + &text("", "start", (8.0, self.top - 9.0), &self.y.title())
    }

    pub(super) fn shades(&self, shades: &[Shade]) -> String {
        let mut out = String::new();
        for shade in shades {
            if let (Some(from), Some(to)) = (self.at_x(shade.from), self.at_x(shade.to)) {
                push!(
                    out,
                    "<rect class=\"shade\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                    short(from),
                    short(self.top),
                    short((to - from).max(1.0)),
                    short(self.bottom - self.top),
                    super::escaped(&shade.name)
                );
            }
        }
        out
    }

    fn rules(&self, chart: &Chart) -> String {
        let mut out = String::new();
        for rule in &chart.rules {
            let (from, to, at, anchor) = if rule.upright {
                let Some(x) = self.at_x(rule.at) else {
                    continue;
                };
                // On the side that has more room.
                let is_left = x < f64::midpoint(self.left, self.right);
                let (at, anchor) = if is_left {
                    (x + 5.0, "start")
                } else {
                    (x - 5.0, "end")
                };
                (
                    (x, self.top),
                    (x, self.bottom),
                    (at, self.bottom - 8.0),
                    anchor,
                )
            } else {
                let Some(y) = self.at_y(rule.at) else {
                    continue;
                };
                let above = if y < self.top + 16.0 {
                    y + 14.0
                } else {
                    y - 5.0
                };
                (
                    (self.left, y),
                    (self.right, y),
                    (self.right - 4.0, above),
                    "end",
                )
            };
            out += &stroke("rule", from, to);
            out += &text("title", anchor, at, &rule.name);
        }
        out
    }

    fn line(&self, line: &PlotLine, most: usize) -> String {
        let points = folded(&line.points, line.shape, most);
        let slot = line.slot % 8;
        let mut out = self.band(&points, slot);
        let mut path = String::new();
        let mut dots = String::new();
        let mut is_joined = false;
        for point in &points {
            let place = point
                .y
                .and_then(|y| Some((self.at_x(point.x)?, self.at_y(y)?)));
            let Some((x, y)) = place else {
                is_joined = false;
                continue;
            };
            let (x, y) = (short(x), short(y));
            let step = match (is_joined, line.shape) {
                (false, _) => format!("M{x} {y}"),
                (true, LineShape::Steps) => format!("H{x}V{y}"),
                (true, _) => format!("L{x} {y}"),
            };
            path += &step;
            if line.shape == LineShape::Dots {
                push!(
                    dots,
                    "<circle class=\"f{slot}\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>"
                );
            }
            is_joined = true;
        }
        push!(out, "<path class=\"line s{slot}\" d=\"{path}\"/>");
        out + &dots
    }

    /// The area between lowest and highest of each point, a piece for each stretch without gaps.
    fn band(&self, points: &[PlotPoint], slot: usize) -> String {
        let mut out = String::new();
        for piece in points.split(|p| p.range.is_none()) {
            if piece.len() < 2 {
                continue;
            }
            let corner = |x: f64, y: f64| Some((self.at_x(x)?, self.at_y(y)?));
            let high = piece.iter().filter_map(|p| corner(p.x, p.range?.1));
            let low = piece.iter().rev().filter_map(|p| corner(p.x, p.range?.0));
            let corners: Vec<String> = high
                .chain(low)
                .map(|(x, y)| format!("{},{}", short(x), short(y)))
                .collect();
            push!(
                out,
                "<polygon class=\"band f{slot}\" points=\"{}\"/>",
                corners.join(" ")
            );
        }
        out
    }
}

/// Its height, and what is drawn.
pub(super) fn drawn(chart: &Chart, top: f64) -> (f64, String) {
    let names: Vec<(usize, &str)> = chart
        .lines
        .iter()
        .filter(|_| chart.lines.len() > 1)
        .map(|line| (line.slot, line.name.as_str()))
        .collect();
    let (legend_height, legend) = legend::drawn(&names, top + 4.0, true);
    let top = top + legend_height + 26.0;
    let frame = Frame {
        x: &chart.x,
        y: &chart.y,
        left: LEFT,
        right: WIDTH - RIGHT,
        top,
        bottom: top + HEIGHT,
    };
    let has_bands = |line: &PlotLine| line.points.iter().any(|p| p.range.is_some());
    // A band has two corners for each point.
    let weight = chart.lines.iter().map(|l| if has_bands(l) { 3 } else { 1 });
    let most = POINTS / weight.sum::<usize>().max(1);
    let mut out = legend + &frame.shades(&chart.shades) + &frame.grid();
    for line in &chart.lines {
        out += &frame.line(line, most.min(700));
    }
    out += &frame.rules(chart);
    (top + HEIGHT + BELOW, out)
}
