//! The second screen: the distribution of latencies, the share below each, percentiles now and since the
//! start.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "pictures have few pixels"
)]

use std::collections::BTreeMap;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph, Row, Table};
use weir_stats::Histogram;
use weir_units::Nanos;

use super::{DIM, Shown};

/// Columns of the percentiles.
const TABLE_WIDTH: u16 = 30;
const WANTED: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];
/// Columns beside a bar: the latency, the share.
const BESIDE_BAR: u16 = 18;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, shown: &Shown<'_>) {
    let [pictures, table] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(TABLE_WIDTH)]).areas(area);
    let [bars, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(pictures);
    let whole = shown.per_second.latency(shown.index());
    distribution(frame, bars, &whole, shown.choice.is_logarithmic);
    share_below(frame, below, &whole);
    let latest = shown.per_second.latest(shown.index());
    percentiles(frame, table, &latest, &whole);
}

fn percentiles(frame: &mut Frame<'_>, area: Rect, latest: &Histogram, whole: &Histogram) {
    let text = |of: &Histogram, percent| {
        let value = of.percentile(percent).map(|v| Nanos(v).to_string());
        value.unwrap_or_default()
    };
    let rows = WANTED.iter().map(|percent| {
        let name = if *percent < 100.0 {
            format!("p{percent}")
        } else {
            "max".to_owned()
        };
        Row::new([name, text(latest, *percent), text(whole, *percent)])
    });
    let widths = [
        Constraint::Length(7),
        Constraint::Fill(1),
        Constraint::Fill(1),
    ];
    let header = Row::new(["", "now", "all"]).style(DIM);
    let block = Block::bordered().title(" now, since start ");
    frame.render_widget(Table::new(rows, widths).header(header).block(block), area);
}

/// Draws a bar for each factor of two, or for several of them where room is short.
fn distribution(frame: &mut Frame<'_>, area: Rect, whole: &Histogram, is_logarithmic: bool) {
    let block = Block::bordered().title(" operations by latency ");
    let lines = usize::from(block.inner(area).height).max(1);
    let mut powers: BTreeMap<u32, u64> = BTreeMap::new();
    for bucket in whole.buckets() {
        *powers.entry(bucket.low.max(1).ilog2()).or_default() += bucket.count;
    }
    let ends = powers.keys().next().zip(powers.keys().next_back());
    let (low, high) = ends.map_or((0, 0), |(low, high)| (*low, *high));
    let per_line = (high - low + 1).div_ceil(u32::try_from(lines).unwrap_or(1));
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for (power, count) in &powers {
        *counts.entry((power - low) / per_line).or_default() += count;
    }
    let most = counts.values().copied().max().unwrap_or(1) as f64;
    let room = f64::from(block.inner(area).width.saturating_sub(BESIDE_BAR).max(1));
    let bar = |line: u32| {
        let count = counts.get(&line).copied().unwrap_or(0) as f64;
        let share = if is_logarithmic {
            (1.0 + count).ln() / (1.0 + most).ln()
        } else {
            count / most
        };
        let from = Nanos(1 << (low + line * per_line).min(63)).to_string();
        let of_all = count / whole.count().max(1) as f64 * 100.0;
        Line::from(vec![
            Span::styled(format!("{from:>8} "), DIM),
            Span::styled(
                "█".repeat((share * room).ceil() as usize),
                Style::new().fg(Color::Yellow),
            ),
            Span::raw(format!(" {of_all:.2} %")),
        ])
    };
    let bars = 0..(high - low + 1).div_ceil(per_line);
    let bars: Vec<Line<'_>> = if whole.is_empty() {
        vec![Line::styled("no latencies", DIM)]
    } else {
        bars.map(bar).collect()
    };
    frame.render_widget(Paragraph::new(bars).block(block), area);
}

/// Draws the share of operations at or below each latency. Each step up leaves ten times fewer operations
/// above.
fn share_below(frame: &mut Frame<'_>, area: Rect, whole: &Histogram) {
    let points = tail(whole);
    let block = Block::bordered().title(" share at or below ");
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return frame.render_widget(block, area);
    };
    let (low, high) = (first.0.floor(), last.0.ceil().max(first.0.floor() + 1.0));
    let nines = (last.1.ceil() as usize).clamp(1, 6);
    let set = Dataset::default()
        .data(&points)
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(Style::new().fg(Color::Yellow));
    let label = |exponent: f64| Nanos(10_f64.powf(exponent) as u64).to_string();
    let shares = [
        "0",
        "90 %",
        "99 %",
        "99.9 %",
        "99.99 %",
        "99.999 %",
        "99.9999 %",
    ];
    let x = Axis::default()
        .bounds([low, high])
        .labels([label(low), label(high)])
        .style(DIM);
    let y = Axis::default()
        .bounds([0.0, nines as f64])
        .labels(shares[..=nines].iter().copied())
        .style(DIM);
    let chart = Chart::new(vec![set]).x_axis(x).y_axis(y);
    frame.render_widget(chart.block(block), area);
}

/// Logarithm of a latency, and minus that of the share above it; up to all but one operation.
fn tail(whole: &Histogram) -> Vec<(f64, f64)> {
    let all = whole.count() as f64;
    let mut below = 0_u64;
    let mut points = Vec::new();
    for bucket in whole.buckets() {
        below += bucket.count;
        let above = (all - below as f64).max(1.0) / all;
        points.push(((bucket.middle.max(1) as f64).log10(), -above.log10()));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_goes_up_by_one_where_ten_times_fewer_are_left() {
        let mut all = Histogram::new();
        all.record_n(1_000, 900);
        all.record_n(10_000, 90);
        all.record_n(100_000, 10);
        let heights: Vec<f64> = tail(&all).iter().map(|(_, y)| *y).collect();
        let expected = [1.0, 2.0, 3.0];
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        assert!(heights.iter().zip(&expected).all(near), "{heights:?}");
        assert!((tail(&all)[1].0 - 4.0).abs() < 0.01);
    }
}
