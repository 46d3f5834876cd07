//! The course of a run in 20 characters: the mean rate of equal stretches of time, from 0.

use weir_units::{Iops, Nanos};

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::ReportEntry;
use crate::layout::{LayoutRow, RowItem};

const CELLS: usize = 20;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Mean rates over equal stretches.
struct Course {
    rates: Vec<f64>,
    each: Nanos,
}

impl Report<'_> {
    pub(super) fn course(&self, entry: &ReportEntry<'_>) -> Option<LayoutRow> {
        let course = course(entry)?;
        let most = course.rates.iter().copied().fold(0.0, f64::max);
        let least = course.rates.iter().copied().fold(most, f64::min);
        let mut text = Text::default();
        for rate in &course.rates {
            text = match level(*rate, most) {
                Some(level) => text.and(Tone::Plain, level),
                None => text.and(Tone::Bad, '·'),
            };
        }
        let range = format!(
            "  {} … {}, {} each, from 0",
            self.numbers.iops_bare(Iops(least)),
            self.numbers.iops(Iops(most)),
            self.numbers.time(course.each),
        );
        Some(LayoutRow::new(
            "over time",
            vec![RowItem::bare("over time", text.and(Tone::Plain, range))],
        ))
    }
}

/// The block for a rate; nothing without completions.
fn level(rate: f64, most: f64) -> Option<char> {
    let share = rate / most;
    (rate > 0.0).then(|| {
        let above = (1..8_u8)
            .take_while(|step| share > f64::from(*step) / 8.0)
            .count();
        LEVELS[above]
    })
}

/// Spreads the intervals of all workers over the cells; an interval that lies in two cells
/// counts in both for its share. Nothing with fewer than two intervals or no completion.
fn course(entry: &ReportEntry<'_>) -> Option<Course> {
    let intervals: Vec<(Nanos, Nanos, u64)> = entry.intervals().collect();
    let end = intervals
        .iter()
        .map(|(start, length, _)| start.saturating_add(*length))
        .max()?;
    let longest = intervals.iter().map(|(_, length, _)| *length).max()?;
    let whole = usize::try_from(end.0 / longest.0.max(1)).unwrap_or(CELLS);
    let cells = whole.min(CELLS);
    if cells < 2 || intervals.iter().all(|(_, _, operations)| *operations == 0) {
        return None;
    }
    let cell = end.as_secs_f64() / f64::from(u32::try_from(cells).ok()?);
    let mut rates = vec![0.0; cells];
    for (start, length, operations) in intervals.into_iter().filter(|(_, _, n)| *n > 0) {
        let (from, length) = (start.as_secs_f64(), length.as_secs_f64());
        let rate = Iops::of(operations, Nanos::from_secs_f64(length)?)?.0;
        let mut begin = 0.0;
        for sum in &mut rates {
            let shared = (from + length).min(begin + cell) - from.max(begin);
            // A millionth of a cell is rounding, not a share.
            if shared > cell * 1e-6 {
                *sum += rate * shared / cell;
            }
            begin += cell;
        }
    }
    Some(Course {
        rates,
        each: Nanos::from_secs_f64(cell)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_eighths_of_the_most_rounded_up() {
        assert_eq!(level(0.0, 800.0), None);
        assert_eq!(level(1.0, 800.0), Some('▁'));
        assert_eq!(level(100.0, 800.0), Some('▁'));
        assert_eq!(level(101.0, 800.0), Some('▂'));
        assert_eq!(level(700.0, 800.0), Some('▇'));
        assert_eq!(level(701.0, 800.0), Some('█'));
        assert_eq!(level(800.0, 800.0), Some('█'));
    }
}
