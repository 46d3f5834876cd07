//! Percentiles, defined once: the first bucket whose cumulative count reaches p per cent of
//! all, its middle reported, within the exact minimum and maximum.
//!
//! In: a histogram and p. Out: the value, the edges of its bucket, whether too few samples lie
//! beyond it. Not here: how sure a percentile is
//! (`percentile_interval`).

use crate::bucket::{high_of, low_of, middle_of};
use crate::histogram::Histogram;

/// A percentile with fewer samples than this beyond it is marked.
const FEW: u64 = 10;

impl Histogram {
    /// The p-th percentile: the middle of the first bucket whose cumulative count reaches
    /// ceil(p/100 · count), within minimum and maximum; 0 is the minimum, 100 the maximum.
    /// Nothing when empty or when p is outside 0–100. Nine decimals of p count.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let index = self.percentile_index(p)?;
        if p <= 0.0 {
            return self.min();
        }
        if p >= 100.0 {
            return self.max();
        }
        Some(middle_of(self.bits(), index).clamp(self.min()?, self.max()?))
    }

    /// The smallest and the largest value that the p-th percentile can have: the edges of its
    /// bucket, within minimum and maximum.
    pub fn percentile_edges(&self, p: f64) -> Option<(u64, u64)> {
        let index = self.percentile_index(p)?;
        let (min, max) = (self.min()?, self.max()?);
        Some(match p {
            _ if p <= 0.0 => (min, min),
            _ if p >= 100.0 => (max, max),
            _ => (
                low_of(self.bits(), index).clamp(min, max),
                high_of(self.bits(), index).clamp(min, max),
            ),
        })
    }

    /// Half the width of the p-th percentile's bucket relative to it: no value is known better.
    pub fn percentile_grain(&self, p: f64) -> Option<f64> {
        let (low, high) = self.percentile_edges(p)?;
        let value = self.percentile(p)?.max(1);
        // Values are whole numbers: the narrowest bucket is one wide.
        Some((high - low + 1) as f64 / 2.0 / value as f64)
    }

    /// True if fewer than 10 samples lie beyond the p-th percentile, on its far side from the
    /// median.
    pub fn few_samples(&self, p: f64) -> bool {
        let Some(rank) = rank(p, self.count()) else {
            return true;
        };
        let beyond = if p < 50.0 {
            rank.saturating_sub(1)
        } else {
            self.count() - rank
        };
        beyond < FEW
    }

    /// Number of values up to and including this bucket.
    pub(crate) fn count_up_to(&self, index: usize) -> u64 {
        self.counts().iter().take(index + 1).sum()
    }

    fn percentile_index(&self, p: f64) -> Option<usize> {
        self.index_of_rank(rank(p, self.count())?)
    }

    /// The first bucket whose cumulative count reaches `rank`.
    fn index_of_rank(&self, rank: u64) -> Option<usize> {
        let mut reached = 0;
        for (index, count) in self.indexed() {
            reached += count;
            if reached >= rank {
                return Some(index);
            }
        }
        None
    }
}

/// ceil(p/100 · count), at least 1. Computed with integers from p's nine decimals, because in
/// binary floating point 99.9 % of 1000 would be a little more than 999.
pub(crate) fn rank(p: f64, count: u64) -> Option<u64> {
    if count == 0 || !(0.0..=100.0).contains(&p) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 10^11 after the check above"
    )]
    let billionths = (p * 1e9).round() as u64;
    let rank = (u128::from(billionths) * u128::from(count)).div_ceil(100_000_000_000);
    Some(u64::try_from(rank).unwrap_or(count).clamp(1, count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bucket::index_of;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(value);
        }
        histogram
    }

    #[test]
    fn percentiles_of_1_to_100_are_as_by_hand() {
        let histogram = of(1..=100);
        for (p, value) in [
            (0.0, 1),
            (1.0, 1),
            (1.1, 2),
            (50.0, 50),
            (99.0, 99),
            (99.9, 100),
            (100.0, 100),
        ] {
            assert_eq!(histogram.percentile(p), Some(value), "{p}");
            assert_eq!(histogram.percentile_edges(p), Some((value, value)), "{p}");
        }
        for p in [-0.1, 100.1, f64::NAN] {
            assert_eq!(histogram.percentile(p), None);
        }
        assert_eq!(Histogram::new().percentile(50.0), None);
    }

    #[test]
    fn the_99_9th_of_1000_is_the_999th() {
        assert_eq!(rank(99.9, 1000), Some(999));
        assert_eq!(rank(99.9, u64::MAX), Some(18_428_297_329_635_842_064));
        assert_eq!(rank(0.0, 1000), Some(1));
    }

    #[test]
    fn a_percentile_stays_within_minimum_and_maximum() {
        let histogram = of([1001, 1002]);
        assert_eq!(histogram.percentile(50.0), Some(1002));
        assert_eq!(histogram.percentile_edges(50.0), Some((1001, 1002)));
        let grain = histogram.percentile_grain(50.0).unwrap();
        let value = histogram.percentile(50.0).unwrap();
        assert!((grain * value as f64 - 1.0).abs() < 1e-9, "{grain}");
        assert_eq!(of([1000]).percentile(50.0), Some(1000));
    }

    #[test]
    fn fewer_than_ten_samples_beyond_are_marked_on_both_sides() {
        let histogram = of(0..1000);
        assert!(!histogram.few_samples(99.0));
        assert!(histogram.few_samples(99.1));
        assert!(!histogram.few_samples(1.1));
        assert!(histogram.few_samples(1.0));
        assert!(Histogram::new().few_samples(50.0));
    }

    #[test]
    fn the_count_up_to_a_bucket_has_the_bucket_itself() {
        let histogram = of([1, 2, 1000, 1001]);
        let up_to = |value| histogram.count_up_to(index_of(histogram.bits(), value));
        assert_eq!([0, 1, 999, 1000, u64::MAX].map(up_to), [0, 1, 2, 4, 4]);
    }

    proptest! {
        #[test]
        fn percentiles_are_monotone_and_close_to_the_sorted_sample(
            mut values in proptest::collection::vec((any::<u64>(), 0_u32..64), 1..80)
                .prop_map(|v| v.into_iter().map(|(v, s)| v >> s).collect::<Vec<u64>>()),
            ps in proptest::collection::vec(0.0..=100.0, 1..8),
        ) {
            values.sort_unstable();
            let histogram = of(values.iter().copied());
            let mut ps = ps;
            ps.sort_unstable_by(f64::total_cmp);
            let mut before = 0;
            for p in ps {
                let value = histogram.percentile(p).unwrap();
                prop_assert!(value >= before);
                before = value;
                let rank = usize::try_from(rank(p, histogram.count()).unwrap()).unwrap();
                let exact = values[rank - 1];
                prop_assert!(u128::from(value.abs_diff(exact)) * 128 <= u128::from(exact));
                let (low, high) = histogram.percentile_edges(p).unwrap();
                prop_assert!(low <= exact && exact <= high && low <= value && value <= high);
            }
        }
    }
}
