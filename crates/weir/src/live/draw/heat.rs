//! The third screen: columns are times, the newest at the right; rows are latencies. The fuller a cell, the
//! larger its share of the operations of its column.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "pictures have few pixels"
)]

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use super::super::per_second::{JobSecond, least_of};
use super::{DIM, Shown};

/// Columns of the latencies.
const LABEL: u16 = 10;
/// Shades from few to many, which differ by character as well as by colour.
const SHADES: [(&str, Color); 5] = [
    ("·", Color::Blue),
    ("░", Color::Blue),
    ("▒", Color::Cyan),
    ("▓", Color::Yellow),
    ("█", Color::LightYellow),
];

pub(super) fn draw(buffer: &mut Buffer, area: Rect, shown: &Shown<'_>) {
    let window = shown.choice.window;
    let seconds = shown.per_second.seconds(shown.index(), window);
    let rows = || {
        seconds
            .iter()
            .flat_map(|second| second.heat.keys().copied())
    };
    let (Some(low), Some(high)) = (rows().min(), rows().max()) else {
        buffer.set_string(area.x, area.y, "no latencies", DIM);
        return;
    };
    let title = format!("latency by time, last {window} s; fuller is more");
    buffer.set_string(area.x, area.y, title, DIM);
    let room = u32::from(area.height.saturating_sub(1)).max(1);
    // Rows that do not fit are put together.
    let per_line = (high - low + 1).div_ceil(room);
    let columns = columns(
        &seconds,
        window,
        usize::from(area.width.saturating_sub(LABEL)),
    );
    for line in 0..(high - low + 1).div_ceil(per_line) {
        let y = area.bottom().saturating_sub(1).saturating_sub(line as u16);
        let first = low + line * per_line;
        if line % 2 == 0 {
            let label = format!("{:>9}", least_of(first).to_string());
            buffer.set_string(area.x, y, label, DIM);
        }
        for (x, column) in (area.x + LABEL..).zip(&columns) {
            let count = column.range(first..first + per_line).map(|(_, n)| n).sum();
            let most = column.values().copied().max().unwrap_or(1);
            if let Some((symbol, color)) = shade(count, most) {
                buffer.set_string(x, y, symbol, Style::new().fg(color));
            }
        }
    }
}

fn shade(count: u64, most: u64) -> Option<(&'static str, Color)> {
    let share = (1.0 + count as f64).ln() / (1.0 + most as f64).ln();
    let at = (share * SHADES.len() as f64) as usize;
    (count > 0).then(|| SHADES[at.min(SHADES.len() - 1)])
}

/// Operations by row for each column of a window that is `width` columns wide. A second may take several
/// columns, and a column may have several seconds.
fn columns(seconds: &[JobSecond], window: usize, width: usize) -> Vec<BTreeMap<u32, u64>> {
    let missing = window.saturating_sub(seconds.len());
    let column = |at: usize| {
        let first = at * window / width;
        let last = ((at + 1) * window).div_ceil(width).max(first + 1);
        let last = if window < width { first + 1 } else { last };
        let mut sum = BTreeMap::new();
        for second in (first..last).filter_map(|second| seconds.get(second.checked_sub(missing)?)) {
            for (row, count) in &second.heat {
                *sum.entry(*row).or_default() += count;
            }
        }
        sum
    };
    (0..width).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(row: u32, count: u64) -> JobSecond {
        JobSecond {
            heat: BTreeMap::from([(row, count)]),
            ..JobSecond::default()
        }
    }

    #[test]
    fn seconds_share_columns_or_columns_a_second() {
        let seconds = [second(1, 5), second(2, 7)];
        let wide = columns(&seconds, 2, 4);
        let of = |columns: &[BTreeMap<u32, u64>]| -> Vec<Vec<(u32, u64)>> {
            columns
                .iter()
                .map(|c| c.iter().map(|(r, n)| (*r, *n)).collect())
                .collect()
        };
        assert_eq!(of(&wide), [[(1, 5)], [(1, 5)], [(2, 7)], [(2, 7)]]);
        assert_eq!(of(&columns(&seconds, 2, 1)), [[(1, 5), (2, 7)]]);
        // Time that is not there yet is empty, at the left.
        assert_eq!(of(&columns(&seconds[..1], 2, 2)), [vec![], vec![(1, 5)]]);
    }

    #[test]
    fn one_operation_is_seen_and_none_is_not() {
        assert_eq!(shade(0, 1000), None);
        assert_eq!(shade(1, 1_000_000).unwrap().0, "·");
        assert_eq!(shade(1000, 1000).unwrap().0, "█");
    }
}
