//! Counts of values by row, eight rows to a power of two: as coarse as a picture of many
//! distributions beside each other.
//!
//! In: a histogram. Out: the counts of its rows, as runs of neighbours, which is small where values
//! lie together and a few lie far away. A row is eight buckets of a [`Histogram`] of the usual
//! precision: below 64 rows are 8 wide. Not here: percentiles, which need the histogram.

use serde::{Deserialize, Serialize};
use weir_units::JsonSchema;

use crate::bucket::{DEFAULT_BITS, bucket_count, index_of, low_of};
use crate::histogram::Histogram;

/// Buckets of a row.
const BUCKETS: usize = 8;
/// Rows for every value there is.
const ROWS: usize = bucket_count(DEFAULT_BITS) / BUCKETS;
/// Longest gap of rows without a value within a run: a new run is as long as text.
const GAP: u64 = 2;

/// Number of values in each row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RowCounts(
    /// Runs in rising order: the number of the first row, then the counts of it and of those after it.
    Vec<Vec<u64>>,
);

impl RowCounts {
    /// Those of a histogram.
    pub fn of(histogram: &Histogram) -> Self {
        let mut runs: Vec<Vec<u64>> = Vec::new();
        for bucket in histogram.buckets() {
            let row = (index_of(DEFAULT_BITS, bucket.low) / BUCKETS) as u64;
            let next = |run: &Vec<u64>| run[0] + run.len() as u64 - 1;
            match runs.last_mut().filter(|run| row <= next(run) + GAP) {
                Some(run) if row < next(run) => {
                    let last = run.len() - 1;
                    run[last] += bucket.count;
                }
                Some(run) => {
                    let gap = usize::try_from(row - next(run)).unwrap_or(0);
                    run.resize(run.len() + gap, 0);
                    run.push(bucket.count);
                }
                None => runs.push(vec![row, bucket.count]),
            }
        }
        Self(runs)
    }

    /// Each row that holds something, with its count; rows that there are not are left out.
    pub fn rows(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let of_run = |run: &'_ Vec<u64>| {
            let first = run.first().and_then(|row| usize::try_from(*row).ok());
            let counts = run.iter().skip(1).copied().collect::<Vec<u64>>();
            (first.unwrap_or(ROWS)..ROWS).zip(counts)
        };
        let all = self.0.iter().flat_map(of_run);
        all.filter(|(_, count)| *count > 0)
    }

    /// Number of values counted.
    pub fn count(&self) -> u64 {
        self.rows().map(|(_, n)| n).fold(0, u64::saturating_add)
    }

    /// Lowest value of a row; the row before ends there.
    pub fn low(row: usize) -> u64 {
        if row < ROWS {
            low_of(DEFAULT_BITS, row * BUCKETS)
        } else {
            u64::MAX
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[(u64, u64)]) -> RowCounts {
        let mut histogram = Histogram::new();
        for (value, count) in values {
            histogram.record_n(*value, *count);
        }
        RowCounts::of(&histogram)
    }

    #[test]
    fn there_are_eight_rows_to_a_power_of_two() {
        for power in 6..63 {
            let first = of(&[(1 << power, 1)]).rows().next().unwrap().0;
            assert_eq!(RowCounts::low(first), 1 << power);
            assert_eq!(RowCounts::low(first + 8), 1 << (power + 1));
            let edge = RowCounts::low(first + 3);
            let rows: Vec<_> = of(&[(edge - 1, 5), (edge, 7)]).rows().collect();
            assert_eq!(rows, [(first + 2, 5), (first + 3, 7)]);
        }
        assert_eq!(of(&[(u64::MAX, 1)]).rows().next().unwrap().0, ROWS - 1);
    }

    #[test]
    fn the_stored_form_is_runs_of_neighbours() {
        let counts = of(&[(1000, 3), (1100, 4), (1130, 1), (1400, 2), (1 << 30, 1)]);
        let text = serde_json::to_string(&counts).unwrap();
        // 960 to 1023, 1024 to 1151, a row without any, 1280 to 1407; and 2^30.
        assert_eq!(text, "[[39,3,5,0,2],[200,1]]");
        assert_eq!(serde_json::from_str::<RowCounts>(&text).unwrap(), counts);
    }

    #[test]
    fn rows_that_no_value_has_are_no_rows() {
        for text in [
            "[]",
            "[[]]",
            "[[7]]",
            "[[472,1]]",
            "[[18446744073709551615,1,1]]",
        ] {
            let counts: RowCounts = serde_json::from_str(text).unwrap();
            assert_eq!((counts.rows().count(), counts.count()), (0, 0), "{text}");
        }
        let twice: RowCounts = serde_json::from_str("[[1,18446744073709551615],[1,1]]").unwrap();
        assert_eq!(twice.count(), u64::MAX);
    }

    proptest! {
        #[test]
        fn every_value_is_in_the_row_that_holds_it(
            values in proptest::collection::vec((any::<u64>(), 0_u32..64, 1_u64..1000), 0..50),
        ) {
            let values: Vec<(u64, u64)> = values.iter().map(|(v, by, n)| (v >> by, *n)).collect();
            let counts = of(&values);
            prop_assert_eq!(counts.count(), values.iter().map(|(_, n)| n).sum::<u64>());
            for (row, count) in counts.rows() {
                let (low, end) = (RowCounts::low(row), RowCounts::low(row + 1));
                let is_in = |v: u64| v >= low && (v < end || row == ROWS - 1);
                let inside: u64 = values.iter().filter(|(v, _)| is_in(*v)).map(|(_, n)| n).sum();
                prop_assert_eq!(inside, count);
            }
        }
    }
}
