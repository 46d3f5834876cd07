//! Lines over the seconds of the window, the newest at the right edge.
//!
//! In: values of seconds, a scale. Out: a chart. Not here: which values.

#![expect(clippy::cast_precision_loss, reason = "pictures have few pixels")]

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType};

use super::DIM;

/// Lines from which on the ends of the window have names.
const ROOM_FOR_TIMES: u16 = 7;

/// A line of a chart: a value for each second, the newest last; none where nothing was measured.
pub(super) struct SecondsLine {
    pub(super) values: Vec<Option<f64>>,
    pub(super) color: Color,
}

/// Vertical scale of a chart.
pub(super) struct Scale {
    pub(super) bounds: [f64; 2],
    pub(super) labels: Vec<String>,
}

impl Scale {
    /// Scale from 0 to the next round number.
    pub(super) fn from_zero(greatest: f64, label: impl Fn(f64) -> String) -> Self {
        let top = round_up(greatest);
        Self {
            bounds: [0.0, top],
            labels: vec![label(0.0), label(top)],
        }
    }

    /// Decades around these values, of which the logarithms are drawn.
    pub(super) fn of_decades(least: f64, greatest: f64, label: impl Fn(f64) -> String) -> Self {
        let bottom = least.max(1.0).log10().floor();
        let top = greatest.max(10.0).log10().ceil().max(bottom + 1.0);
        Self {
            bounds: [bottom, top],
            labels: vec![label(10_f64.powf(bottom)), label(10_f64.powf(top))],
        }
    }
}

/// 1, 2 or 5 times a power of ten, not below a value.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

/// Draws lines over this many seconds.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    title: String,
    window: usize,
    scale: Scale,
    lines: &[SecondsLine],
) {
    let points: Vec<Vec<(f64, f64)>> = lines.iter().map(|line| points(line, window)).collect();
    let sets = lines.iter().zip(&points).map(|(line, points)| {
        Dataset::default()
            .data(points)
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(line.color))
    });
    let mut ago = Axis::default()
        .bounds([0.0, window.saturating_sub(1).max(1) as f64])
        .style(DIM);
    if area.height >= ROOM_FOR_TIMES {
        ago = ago.labels([format!("{window} s ago"), "now".to_owned()]);
    }
    let height = Axis::default()
        .bounds(scale.bounds)
        .labels(scale.labels)
        .style(DIM);
    let chart = Chart::new(sets.collect()).x_axis(ago).y_axis(height);
    frame.render_widget(chart.block(Block::bordered().title(title)), area);
}

/// The newest value lies at the right edge of the window.
fn points(line: &SecondsLine, window: usize) -> Vec<(f64, f64)> {
    let values = &line.values[line.values.len().saturating_sub(window)..];
    let first = window - values.len();
    let place = |(at, value): (usize, &Option<f64>)| Some(((first + at) as f64, (*value)?));
    values.iter().enumerate().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        for (value, top) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (1.1, 2.0),
            (412e3, 500e3),
            (0.03, 0.05),
        ] {
            assert!((round_up(value) - top).abs() < top * 1e-9, "{value}");
        }
        let scale = Scale::of_decades(75_000.0, 131_000.0, |v| format!("{v:.0}"));
        assert_eq!(scale.labels, ["10000", "1000000"]);
        assert_eq!(scale.bounds.map(|bound| bound.to_string()), ["4", "6"]);
    }

    #[test]
    fn the_newest_second_is_at_the_right_edge_and_gaps_stay_gaps() {
        let line = SecondsLine {
            values: vec![Some(9.0), Some(1.0), None, Some(3.0)],
            color: Color::Blue,
        };
        assert_eq!(points(&line, 3), [(0.0, 1.0), (2.0, 3.0)]);
        assert_eq!(points(&line, 10)[0], (6.0, 9.0));
    }
}
