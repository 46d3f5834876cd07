//! The table of a comparison: as many columns as its width has room for.
//!
//! In: the figures of a job, the width. Out: cells by row, lines. What leaves first is the chance, then
//! A, which B and the change say as well, then the interval: nothing is cut. Not here: colours.

use std::fmt::Write as _;

use weir_report::NumberFormat;
use weir_schema::Metric;

use crate::comparison::{Comparison, JobComparison, MetricComparison};
use crate::remarks::RemarkTone;
use crate::words::{brief_percent, chance, change_words, interval_words, verdict_words};

/// Columns of the table.
const COLUMNS: usize = 7;
/// Those whose text ends at the right.
const RIGHT: [bool; COLUMNS] = [false, false, false, true, true, true, false];
/// Those that a narrow table leaves out, in this order.
const DISPENSABLE: [usize; 3] = [5, 1, 4];

/// The cells of a row.
pub(crate) type Cells = [String; COLUMNS];

/// The names of the columns.
pub(crate) fn heads(comparison: &Comparison) -> Cells {
    let interval = format!("{} % interval", brief_percent(1.0 - comparison.alpha));
    ["metric", "A", "B", "change", &interval, "p", "verdict"].map(str::to_owned)
}

/// A row for each figure of a job, and whether it is good news.
pub(crate) fn rows_of(job: &JobComparison, numbers: NumberFormat) -> Vec<(Cells, RemarkTone)> {
    let mut kinds: Vec<_> = job.metrics.iter().filter_map(|m| m.kind.as_ref()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let row = |metric: &MetricComparison| {
        (
            cells(metric, numbers, kinds.len() > 1),
            RemarkTone::of(&metric.verdict),
        )
    };
    job.metrics.iter().map(row).collect()
}

fn cells(metric: &MetricComparison, numbers: NumberFormat, with_kind: bool) -> Cells {
    let print = |value: f64| {
        if value.is_finite() {
            numbers.metric(&Metric {
                unit: metric.unit.clone(),
                ..Metric::high("", "", value)
            })
        } else {
            "none".to_owned()
        }
    };
    let name = if with_kind {
        metric.full_name()
    } else {
        metric.name.clone()
    };
    let interval = metric.ratio.and_then(|ratio| ratio.low.zip(ratio.high));
    let interval = interval.map_or_else(String::new, |(low, high)| interval_words(low, high));
    [
        name,
        print(metric.a),
        print(metric.b),
        metric.change().map_or_else(String::new, change_words),
        interval,
        metric.p_adjusted.map_or_else(String::new, chance),
        verdict_words(&metric.verdict),
    ]
}

/// Rows and how wide their columns are.
pub(crate) struct Table {
    widths: Vec<usize>,
    shown: Vec<usize>,
}

impl Table {
    /// Of these rows, the head among them.
    pub(crate) fn of<'a>(rows: &(impl Iterator<Item = &'a Cells> + Clone), width: usize) -> Self {
        let widest = |column: usize| {
            let all = rows.clone().map(|cells| cells[column].chars().count());
            all.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..COLUMNS).map(widest).collect();
        let mut shown: Vec<usize> = (0..COLUMNS).collect();
        for column in DISPENSABLE {
            let wide: usize = shown.iter().map(|column| widths[*column] + 2).sum();
            if wide > width {
                shown.retain(|kept| *kept != column);
            }
        }
        Self { widths, shown }
    }

    /// A row up to its last column, and that.
    pub(crate) fn line(&self, cells: &Cells) -> (String, String) {
        let mut line = String::new();
        let (last, others) = self.shown.split_last().unwrap_or((&0, &[]));
        for column in others.iter().copied() {
            let (cell, width) = (&cells[column], self.widths[column]);
            let _ = if RIGHT[column] {
                write!(line, "  {cell:>width$}")
            } else {
                write!(line, "  {cell:<width$}")
            };
        }
        (line + "  ", cells[*last].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_has_fewer_columns_and_whole_cells() {
        let row = [
            "rate",
            "412 k",
            "431 k",
            "+4.6 %",
            "+3.9 … +5.4 %",
            "0.010",
            "better",
        ];
        let row: Cells = row.map(str::to_owned);
        let line = |width| {
            let (line, last) = Table::of(&[&row].into_iter(), width).line(&row);
            line + &last
        };
        assert_eq!(
            line(80),
            "  rate  412 k  431 k  +4.6 %  +3.9 … +5.4 %  0.010  better"
        );
        assert_eq!(
            line(55),
            "  rate  412 k  431 k  +4.6 %  +3.9 … +5.4 %  better"
        );
        assert_eq!(line(50), "  rate  431 k  +4.6 %  +3.9 … +5.4 %  better");
        assert_eq!(line(20), "  rate  431 k  +4.6 %  better");
    }
}
