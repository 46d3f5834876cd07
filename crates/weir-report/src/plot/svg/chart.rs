//! Points over two axes.

use super::super::axis::{AxisScale, PlotAxis};
use super::super::fold::folded;
use super::super::{Chart, LineShape, PlotLine, PlotPoint, PlotRule, Shade};
use super::{WIDTH, legend, short, stroke, text, width_of};

pub(super) const LEFT: f64 = 66.0;
pub(super) const RIGHT: f64 = 18.0;
pub(super) const BELOW: f64 = 42.0;
pub(super) const HEIGHT: f64 = 230.0;
/// Largest number of points of a line: more than there is room for, as who reads a page looks closer.
const POINTS: usize = 2000;
/// Room around the axes for what lies on their ends.
const EDGE: f64 = 4.0;

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

    /// The ticks of both axes in a group each, its title first.
    pub(super) fn grid(&self) -> String {
        let mut out = group("y", self.y);
        out += &text("", "start", (8.0, self.top - 9.0), &self.y.title());
        for tick in self.y.ticks() {
            let Some(y) = self.at_y(tick.at) else {
                continue;
            };
            out += &stroke("grid", (self.left, y), (self.right, y));
            out += &text("", "end", (self.left - 7.0, y + 4.0), &tick.text);
        }
        out += "</g>";
        out += &group("x", self.x);
        let place = |value| self.at_x(value).unwrap_or(self.left);
        out += &uprights(self.x, &place, (self.top, self.bottom));
        out + &stroke("axis", (self.left, self.bottom), (self.right, self.bottom)) + "</g>"
    }

    /// A picture in the picture, cut off at its edge. The page's script moves what is in it: absolute
    /// coordinates that are not 0, and no others.
    pub(super) fn inside(&self, drawn: &str) -> String {
        let (x, y) = (self.left - EDGE, self.top - EDGE);
        let width = self.right - self.left + 2.0 * EDGE;
        let height = self.bottom - self.top + 2.0 * EDGE;
        format!(
            "<svg x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{x} {y} {width} {height}\">{drawn}</svg>"
        )
    }

    pub(super) fn shades(&self, shades: &[Shade]) -> String {
        let mut out = String::new();
        for shade in shades {
            if let (Some(from), Some(to)) = (self.at_x(shade.from), self.at_x(shade.to)) {
                let to = to.max(from + 1.0);
                let (top, height) = (short(self.top), short(self.bottom - self.top));
                push!(
                    out,
                    "<path class=\"shade\" d=\"M{} 0m0 {top}v{height}H{}v-{height}z\"><title>{}</title></path>",
                    short(from),
                    short(to),
                    super::escaped(&shade.name)
                );
            }
        }
        out
    }

    fn rule(&self, rule: &PlotRule) -> Option<String> {
        let (across, down) = (self.right - self.left, self.bottom - self.top);
        let (place, stroke, label, anchor) = if rule.upright {
            let x = self.at_x(rule.at)?;
            // On the side that has more room.
            let is_left = x < f64::midpoint(self.left, self.right);
            let (label, anchor) = if is_left {
                (5.0, "start")
            } else {
                (-5.0, "end")
            };
            let stroke = format!("m0 {}v{down}", self.top);
            ((x, 0.0), stroke, (label, self.bottom - 8.0), anchor)
        } else {
            let y = self.at_y(rule.at)?;
            let label = if y < self.top + 16.0 { 14.0 } else { -5.0 };
            let stroke = format!("m{} 0h{across}", self.left);
            ((0.0, y), stroke, (self.right - 4.0, label), "end")
        };
        let label = text("title", anchor, label, &rule.name);
        Some(format!(
            "<g transform=\"translate({} {})\"><path class=\"rule\" d=\"{stroke}\"/>{label}</g>",
            short(place.0),
            short(place.1)
        ))
    }

    /// A line with its band and dots, as one element that has its name.
    fn line(&self, line: &PlotLine) -> String {
        let points = folded(&line.points, line.shape, POINTS);
        let slot = line.slot % 8;
        let name = super::escaped(&line.name);
        let mut out = format!("<g class=\"series\" data-name=\"{name}\">");
        out += &self.band(&points, slot);
        let mut path = String::new();
        let mut dots = String::new();
        let mut is_joined = false;
        for point in &points {
            let Some((x, y)) = point.y.and_then(|y| self.at(point.x, y)) else {
                is_joined = false;
                continue;
            };
            match (is_joined, line.shape) {
                (false, _) => push!(path, "M{x} {y}"),
                (true, LineShape::Steps) => push!(path, "H{x}V{y}"),
                (true, _) => push!(path, "L{x} {y}"),
            }
            if line.shape == LineShape::Dots {
                push!(
                    dots,
                    "<circle class=\"f{slot}\" r=\"3\" transform=\"translate({x} {y})\"/>"
                );
            }
            is_joined = true;
        }
        push!(out, "<path class=\"line s{slot}\" d=\"{path}\"/>{dots}</g>");
        out
    }

    /// The area between lowest and highest of each point, a piece for each stretch without gaps.
    fn band(&self, points: &[PlotPoint], slot: usize) -> String {
        let mut out = String::new();
        for piece in points.split(|p| p.range.is_none()) {
            if piece.len() < 2 {
                continue;
            }
            let high = piece.iter().filter_map(|p| self.at(p.x, p.range?.1));
            let low = piece.iter().rev().filter_map(|p| self.at(p.x, p.range?.0));
            let corners: Vec<String> = high.chain(low).map(|(x, y)| format!("{x} {y}")).collect();
            push!(
                out,
                "<path class=\"band f{slot}\" d=\"M{}z\"/>",
                corners.join("L")
            );
        }
        out
    }

    /// Place of a point, from which its values are read again: thousandths of a pixel.
    fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let exact = |at: f64| (at * 1000.0).round() / 1000.0;
        Some((exact(self.at_x(x)?), exact(self.at_y(y)?)))
    }
}

/// The title of an axis to the right, and its ticks from top to bottom.
pub(super) fn uprights(
    axis: &PlotAxis,
    place: &dyn Fn(f64) -> f64,
    (top, bottom): (f64, f64),
) -> String {
    let middle = f64::midpoint(place(axis.range.0), place(axis.range.1));
    let mut out = text("", "middle", (middle, bottom + 35.0), &axis.title());
    let mut free_from = f64::NEG_INFINITY;
    for tick in axis.ticks() {
        let x = place(tick.at);
        out += &stroke("grid", (x, top), (x, bottom));
        let half = width_of(&tick.text) / 2.0;
        if x - half > free_from {
            let x = x.min(WIDTH - half);
            out += &text("", "middle", (x, bottom + 17.0), &tick.text);
            free_from = x + half + 6.0;
        }
    }
    out
}

/// Begin of the group of an axis: its values at both ends, its scale and its unit are in the data.
fn group(class: &str, axis: &PlotAxis) -> String {
    let (name, unit) = (super::escaped(&axis.name), super::escaped(axis.unit.word()));
    let scale = u8::from(axis.scale == AxisScale::Log);
    let (low, high) = axis.range;
    format!(
        "<g class=\"{class}\" data-name=\"{name}\" data-unit=\"{unit}\" data-axis=\"{low} {high} {scale}\">"
    )
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
    let mut inside = frame.shades(&chart.shades);
    inside.extend(chart.lines.iter().map(|line| frame.line(line)));
    inside.extend(chart.rules.iter().filter_map(|rule| frame.rule(rule)));
    let out = legend + &frame.grid() + &frame.inside(&inside);
    (top + HEIGHT + BELOW, out)
}
