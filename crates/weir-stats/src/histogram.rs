//! The log-linear histogram: counts per bucket beside the exact count, sum, minimum and
//! maximum.
//!
//! In: values, or other histograms to merge. Out: mean, deviation, buckets; percentiles are in
//! `percentile`, the stored form in `wire`. For analysis and merging; the hot path records
//! into a [`crate::Recorder`] and takes snapshots of this type.
//!
//! Merging adds buckets: exact, associative and commutative, so that figures of many workers
//! and ranks are computed once, from the merged histogram, and never averaged.

use weir_units::JsonSchema;

use crate::bucket::{DEFAULT_BITS, MAX_BITS, MIN_BITS, high_of, index_of, low_of, middle_of};

/// Counts of values in log-linear buckets: bucket i of b bits holds the value i below 2^(b+1);
/// above, every power of two is cut into 2^b equal buckets.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "crate::wire::Wire")]
pub struct Histogram {
    bits: u8,
    /// Ends with a count that is not zero, so that equal histograms compare equal.
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    /// `u64::MAX` while empty.
    min: u64,
    max: u64,
    /// Saturates; absent unless asked for.
    sum_of_squares: Option<u128>,
}

/// Reason that two histograms cannot be combined, or that one cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// A precision outside the supported range.
    #[error("a histogram has {MIN_BITS} to {MAX_BITS} precision bits, not {0}")]
    Precision(u8),
    /// Different precision: the buckets do not match.
    #[error(
        "histograms of {0} and {1} precision bits cannot be combined; record both with the same precision"
    )]
    PrecisionDiffers(u8, u8),
    /// The combined count does not fit.
    #[error("the combined histogram would hold more than 2^64 values")]
    Overflow,
    /// The histogram to subtract holds what this one does not.
    #[error("the histogram to subtract is not an earlier state of the same one")]
    NotEarlier,
}

/// One bucket that holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value that falls into it.
    pub low: u64,
    /// Largest value that falls into it.
    pub high: u64,
    /// The value it stands for.
    pub middle: u64,
    /// Number of values in it.
    pub count: u64,
}

/// Distance of values from their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Sample variance (divided by n − 1).
    pub variance: f64,
    /// Its root.
    pub deviation: f64,
    /// By how much the deviation may be off because values were counted in buckets; 0 where
    /// the sum of squares was recorded.
    pub error: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::empty(DEFAULT_BITS)
    }
}

impl Histogram {
    /// An empty histogram with the usual precision.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty histogram with 4 to 10 precision bits.
    ///
    /// # Errors
    /// For any other precision.
    pub fn with_bits(bits: u8) -> Result<Self, HistogramError> {
        if !(MIN_BITS..=MAX_BITS).contains(&bits) {
            return Err(HistogramError::Precision(bits));
        }
        Ok(Self::empty(bits))
    }

    /// The same, keeping the exact sum of squares as well.
    #[must_use]
    pub fn with_squares(mut self) -> Self {
        if self.is_empty() {
            self.sum_of_squares = Some(0);
        }
        self
    }

    fn empty(bits: u8) -> Self {
        Self {
            bits,
            counts: Vec::new(),
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
            sum_of_squares: None,
        }
    }

    /// Builds from counts and from figures that may have been read at slightly different
    /// moments: each is brought within what the buckets allow.
    pub(crate) fn from_parts(bits: u8, mut counts: Vec<u64>, figures: HistogramSums) -> Self {
        while counts.last() == Some(&0) {
            counts.pop();
        }
        let mut built = Self::empty(bits);
        built.counts = counts;
        built.count = built.counts.iter().fold(0, |n, c| n.saturating_add(*c));
        built.sum_of_squares = figures.sum_of_squares.map(|_| 0);
        let (Some(first), Some(last)) = (built.first_index(), built.last_index()) else {
            return built;
        };
        built.min = figures.min.clamp(low_of(bits, first), high_of(bits, first));
        built.max = figures
            .max
            .clamp(low_of(bits, last), high_of(bits, last))
            .max(built.min);
        let (low, high) = built.bounds_of(u128::from);
        built.sum = figures.sum.clamp(low, high);
        built.sum_of_squares = figures.sum_of_squares.map(|squares| {
            let (low, high) = built.bounds_of(square);
            squares.clamp(low, high)
        });
        built
    }

    /// From the counts of the first buckets of the default precision, with a minimum, a maximum and a
    /// sum, as far as the buckets allow.
    pub fn of_counts(counts: Vec<u64>, min: u64, max: u64, sum: u128) -> Self {
        let figures = HistogramSums {
            min,
            max,
            sum,
            sum_of_squares: None,
        };
        Self::from_parts(DEFAULT_BITS, counts, figures)
    }

    /// The same with a minimum, a maximum and a sum that are known better than from the buckets, as
    /// far as those allow.
    #[must_use]
    pub fn with_known(self, min: u64, max: u64, sum: u128) -> Self {
        let figures = HistogramSums {
            min,
            max,
            sum,
            sum_of_squares: None,
        };
        Self::from_parts(self.bits, self.counts, figures)
    }

    /// The least and the greatest sum of `f(value)` that the buckets allow.
    fn bounds_of(&self, f: impl Fn(u64) -> u128) -> (u128, u128) {
        let mut bounds = (0_u128, 0_u128);
        for bucket in self.buckets() {
            let times = u128::from(bucket.count);
            let low = f(bucket.low.max(self.min)).saturating_mul(times);
            let high = f(bucket.high.min(self.max)).saturating_mul(times);
            bounds = (bounds.0.saturating_add(low), bounds.1.saturating_add(high));
        }
        bounds
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value `n` times; the total stays at most 2^64 − 1, what would exceed it is
    /// left out.
    pub fn record_n(&mut self, value: u64, n: u64) {
        let n = n.min(u64::MAX - self.count);
        if n == 0 {
            return;
        }
        let index = index_of(self.bits, value);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += n;
        self.count += n;
        self.sum += u128::from(value) * u128::from(n);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if let Some(squares) = &mut self.sum_of_squares {
            *squares = squares.saturating_add(square(value).saturating_mul(u128::from(n)));
        }
    }

    /// Adds everything that `other` counted. The sum of squares survives only if both have it
    /// (or one is empty).
    ///
    /// # Errors
    /// If precisions differ or the counts do not fit; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        if self.bits != other.bits {
            return Err(HistogramError::PrecisionDiffers(self.bits, other.bits));
        }
        let count = self
            .count
            .checked_add(other.count)
            .ok_or(HistogramError::Overflow)?;
        self.sum_of_squares = match (self.is_empty(), other.is_empty()) {
            (true, true) => self.sum_of_squares.or(other.sum_of_squares),
            (true, false) => other.sum_of_squares,
            (false, true) => self.sum_of_squares,
            (false, false) => self
                .sum_of_squares
                .zip(other.sum_of_squares)
                .map(|(a, b)| a.saturating_add(b)),
        };
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count = count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        Ok(())
    }

    /// Histogram of the values counted since an earlier state of the same histogram. Minimum and
    /// maximum are exact if the interval moved them, otherwise the outer edges of its buckets, as
    /// far as the whole reaches.
    ///
    /// # Errors
    /// If the other is not an earlier state of this one.
    pub fn since(&self, earlier: &Self) -> Result<Self, HistogramError> {
        if self.bits != earlier.bits {
            return Err(HistogramError::PrecisionDiffers(self.bits, earlier.bits));
        }
        if earlier.counts.len() > self.counts.len() {
            return Err(HistogramError::NotEarlier);
        }
        let mut counts = self.counts.clone();
        for (now, then) in counts.iter_mut().zip(&earlier.counts) {
            *now = now.checked_sub(*then).ok_or(HistogramError::NotEarlier)?;
        }
        let figures = HistogramSums {
            sum: self.sum.saturating_sub(earlier.sum),
            min: self.min,
            max: self.max,
            sum_of_squares: self
                .sum_of_squares
                .map(|s| s.saturating_sub(earlier.sum_of_squares.unwrap_or(0))),
        };
        Ok(Self::from_parts(self.bits, counts, figures))
    }

    /// Histogram of `count` of the values, spread evenly from the lowest to the highest: the likely
    /// part of some of them where all were seen at once. What is left is `self.since` of it.
    #[must_use]
    pub fn share(&self, count: u64) -> Self {
        if count >= self.count {
            return self.clone();
        }
        let (part, whole) = (u128::from(count), u128::from(self.count));
        // Rounded down at each edge between buckets, so that the counts add up to the part.
        let up_to = |values: u64| u64::try_from(u128::from(values) * part / whole).unwrap_or(0);
        let mut below = 0;
        let counts = self.counts.iter().map(|held| {
            let taken = up_to(below + held) - up_to(below);
            below += held;
            taken
        });
        let of = |sum: u128| sum / whole * part + sum % whole * part / whole;
        let figures = HistogramSums {
            sum: of(self.sum),
            min: self.min,
            max: self.max,
            sum_of_squares: self.sum_of_squares.map(of),
        };
        Self::from_parts(self.bits, counts.collect(), figures)
    }

    /// Precision bits.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Number of values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True if no value was counted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The exact sum.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The exact sum of squares, if it was asked for and fits.
    pub fn sum_of_squares(&self) -> Option<u128> {
        self.sum_of_squares.filter(|squares| *squares < u128::MAX)
    }

    /// The same as kept, saturated if it did not fit.
    pub(crate) fn stored_squares(&self) -> Option<u128> {
        self.sum_of_squares
    }

    /// The smallest value.
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min)
    }

    /// The largest value.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max)
    }

    /// The exact sum over the count.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum as f64 / self.count as f64)
    }

    /// Sample variance and deviation; nothing below two values. Exact with the sum of squares,
    /// otherwise from the buckets' middles with its error stated.
    pub fn spread(&self) -> Option<Spread> {
        if self.count < 2 {
            return None;
        }
        let less_one = (self.count - 1) as f64;
        if let Some(total) = self
            .sum_of_squares()
            .and_then(|s| self.exact_squares_about_mean(s))
        {
            let variance = total / less_one;
            return Some(Spread {
                variance,
                deviation: variance.sqrt(),
                error: 0.0,
            });
        }
        // The middles' own mean, because then the deviation of the middles and the true one
        // differ by at most the root mean square of the distances to the middles.
        let count = self.count as f64;
        let mean = self
            .buckets()
            .map(|b| b.middle as f64 * b.count as f64)
            .sum::<f64>()
            / count;
        let mut about_mean = 0.0;
        let mut distance = 0.0;
        for bucket in self.buckets() {
            let off = bucket.middle as f64 - mean;
            let reach = (bucket.middle - bucket.low).max(bucket.high - bucket.middle) as f64;
            about_mean += bucket.count as f64 * off * off;
            distance += bucket.count as f64 * reach * reach;
        }
        let variance = about_mean / less_one;
        Some(Spread {
            variance,
            deviation: variance.sqrt(),
            error: (distance / less_one).sqrt(),
        })
    }

    /// The sum of (value − mean)², with integers as far as they go: subtracting the large
    /// parts in floating point would lose all digits of a small deviation.
    fn exact_squares_about_mean(&self, squares: u128) -> Option<f64> {
        let count = u128::from(self.count);
        let (floor, rest) = (self.sum / count, self.sum % count);
        let taken = count
            .checked_mul(floor)?
            .checked_mul(floor)?
            .checked_add(floor.checked_mul(rest)?.checked_mul(2)?)?;
        let about_floor = squares.checked_sub(taken)? as f64;
        Some((about_floor - rest as f64 * (rest as f64 / count as f64)).max(0.0))
    }

    /// The buckets that hold something, from the lowest.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.indexed().map(|(index, count)| Bucket {
            low: low_of(self.bits, index),
            high: high_of(self.bits, index),
            middle: middle_of(self.bits, index),
            count,
        })
    }

    /// (index, count) of the buckets that hold something, from the lowest.
    pub(crate) fn indexed(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let all = self.counts.iter().copied().enumerate();
        all.filter(|(_, count)| *count > 0)
    }

    /// The count of each bucket, up to the last that holds something.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    fn first_index(&self) -> Option<usize> {
        self.counts.iter().position(|count| *count > 0)
    }

    fn last_index(&self) -> Option<usize> {
        self.counts.len().checked_sub(1)
    }
}

/// The figures beside the buckets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistogramSums {
    pub(crate) sum: u128,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) sum_of_squares: Option<u128>,
}

/// Cannot overflow.
pub(crate) fn square(value: u64) -> u128 {
    u128::from(value) * u128::from(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new().with_squares();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    fn merged(a: &Histogram, b: &Histogram) -> Histogram {
        let mut sum = a.clone();
        sum.merge(b).unwrap();
        sum
    }

    /// Values of every size, small ones as likely as large ones.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (any::<u64>(), 0_u32..64).prop_map(|(value, shift)| value >> shift);
        proptest::collection::vec(value, 0..60)
    }

    #[test]
    fn count_sum_minimum_maximum_and_mean_are_exact() {
        let histogram = of(&[1000, 3, 70_001, 3]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 71_007));
        assert_eq!((histogram.min(), histogram.max()), (Some(3), Some(70_001)));
        assert_eq!(histogram.mean(), Some(17_751.75));
        let buckets: Vec<Bucket> = histogram.buckets().collect();
        assert_eq!(
            buckets[0],
            Bucket {
                low: 3,
                high: 3,
                middle: 3,
                count: 2
            }
        );
        assert_eq!(
            buckets[1],
            Bucket {
                low: 1000,
                high: 1007,
                middle: 1004,
                count: 1
            }
        );
        assert_eq!(
            buckets[2],
            Bucket {
                low: 69_632,
                high: 70_655,
                middle: 70_144,
                count: 1
            }
        );
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let empty = Histogram::new();
        assert_eq!((empty.min(), empty.max(), empty.mean()), (None, None, None));
        assert_eq!(empty.spread(), None);
        assert_eq!(of(&[5]).spread(), None);
    }

    #[test]
    fn the_exact_deviation_survives_a_large_mean() {
        // Around 10^15, where floating-point squares would have lost these digits.
        let base = 1_000_000_000_000_000;
        let spread = of(&[
            base + 2,
            base + 4,
            base + 4,
            base + 4,
            base + 5,
            base + 5,
            base + 7,
            base + 9,
        ])
        .spread()
        .unwrap();
        assert!((spread.variance - 32.0 / 7.0).abs() < 1e-9);
        assert!(spread.error.abs() < f64::EPSILON);
    }

    #[test]
    fn a_count_that_would_overflow_is_cut_or_refused() {
        let mut full = Histogram::new();
        full.record_n(7, u64::MAX);
        full.record(7);
        assert_eq!(full.count(), u64::MAX);
        let before = full.clone();
        assert_eq!(full.merge(&of(&[1])), Err(HistogramError::Overflow));
        assert_eq!(full, before);
        assert_eq!(Histogram::with_bits(3), Err(HistogramError::Precision(3)));
        let mut fine = Histogram::with_bits(10).unwrap();
        assert_eq!(
            fine.merge(&full),
            Err(HistogramError::PrecisionDiffers(10, 6))
        );
    }

    #[test]
    fn an_interval_that_moved_the_extremes_knows_them_exactly() {
        let earlier = of(&[500, 1000]);
        let moved = merged(&earlier, &of(&[300, 70_001]))
            .since(&earlier)
            .unwrap();
        assert_eq!((moved.min(), moved.max()), (Some(300), Some(70_001)));
        let inside = merged(&earlier, &of(&[901])).since(&earlier).unwrap();
        assert_eq!(
            (inside.min(), inside.max(), inside.sum()),
            (Some(896), Some(903), 901)
        );
        assert_eq!(earlier.since(&of(&[1])), Err(HistogramError::NotEarlier));
    }

    #[test]
    fn a_share_has_values_from_the_lowest_to_the_highest() {
        let hundred = of(&(0..100).collect::<Vec<u64>>());
        let tenth = hundred.share(10);
        let values: Vec<u64> = tenth.buckets().map(|b| b.middle).collect();
        assert_eq!(values, [9, 19, 29, 39, 49, 59, 69, 79, 89, 99]);
        assert_eq!(hundred.share(0), Histogram::new().with_squares());
        assert_eq!(hundred.share(101), hundred);
    }

    proptest! {
        #[test]
        fn a_share_and_what_is_left_are_the_whole(a in values(), count in 0_u64..70) {
            let whole = of(&a);
            let share = whole.share(count);
            prop_assert_eq!(share.count(), count.min(whole.count()));
            let left = whole.since(&share).unwrap();
            let again = merged(&share, &left);
            prop_assert_eq!(again.buckets().collect::<Vec<_>>(), whole.buckets().collect::<Vec<_>>());
        }

        #[test]
        fn merging_is_commutative_and_associative(a in values(), b in values(), c in values()) {
            let (x, y, z) = (of(&a), of(&b), of(&c));
            prop_assert_eq!(merged(&x, &y), merged(&y, &x));
            prop_assert_eq!(merged(&merged(&x, &y), &z), merged(&x, &merged(&y, &z)));
            prop_assert_eq!(merged(&x, &y), of(&[a, b].concat()));
        }

        #[test]
        fn since_undoes_a_merge_but_for_the_extremes(a in values(), b in values()) {
            let (x, y) = (of(&a), of(&b));
            let back = merged(&x, &y).since(&x).unwrap();
            prop_assert_eq!(back.buckets().collect::<Vec<_>>(), y.buckets().collect::<Vec<_>>());
            prop_assert_eq!((back.count(), back.sum()), (y.count(), y.sum()));
            prop_assert!(back.min() <= y.min() && back.max() >= y.max());
        }

        #[test]
        fn the_stated_error_of_the_deviation_holds(values in values()) {
            let exact = of(&values);
            let mut plain = Histogram::new();
            for value in &values {
                plain.record(*value);
            }
            if let (Some(exact), Some(plain)) = (exact.spread(), plain.spread()) {
                let apart = (exact.deviation - plain.deviation).abs();
                prop_assert!(apart <= plain.error * 1.000_001 + exact.deviation * 1e-9);
            }
        }
    }
}
