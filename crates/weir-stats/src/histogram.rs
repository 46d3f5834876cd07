//! The log-linear histogram: counts per bucket beside the exact count, sum, minimum and
//! maximum.
//!
//! In: values, or other histograms to merge. Out: mean, deviation, buckets; percentiles are in
//! `percentile`, the stored form in `wire`. For analysis and merging; the hot path records
//! into a [`crate::Recorder`] and takes snapshots of this type.
//!
//! Merging adds buckets: exact, associative and commutative, so that figures of many workers
//! and ranks are computed once, from the merged histogram, and never averaged.

use crate::bucket::{DEFAULT_BITS, MAX_BITS, MIN_BITS, high_of, index_of, low_of, middle_of};

/// Counts of values in log-linear buckets over the whole `u64` range.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Why two histograms cannot be combined, or one cannot be made.
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
    /// How many fell into it.
    pub count: u64,
}

/// How far values lie from their mean.
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
    pub(crate) fn from_parts(bits: u8, mut counts: Vec<u64>, figures: Figures) -> Self {
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

    /// Adds everything that `other` counted. On an error nothing has changed. The sum of
    /// squares survives only if both have it (or one is empty).
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

    /// What was counted since an earlier state of the same histogram. Minimum and maximum are
    /// exact if the interval moved them, otherwise the outer edges of its buckets.
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
        let figures = Figures {
            sum: self.sum.saturating_sub(earlier.sum),
            min: if self.min < earlier.min { self.min } else { 0 },
            max: if self.max > earlier.max {
                self.max
            } else {
                u64::MAX
            },
            sum_of_squares: self
                .sum_of_squares
                .map(|s| s.saturating_sub(earlier.sum_of_squares.unwrap_or(0))),
        };
        let mut difference = Self::from_parts(self.bits, counts, figures);
        difference.min = difference
            .min
            .max(if difference.is_empty() { 0 } else { self.min });
        difference.max = difference.max.min(self.max);
        Ok(difference)
    }

    /// Precision bits.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was counted.
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

    fn first_index(&self) -> Option<usize> {
        self.counts.iter().position(|count| *count > 0)
    }

    fn last_index(&self) -> Option<usize> {
        self.counts.len().checked_sub(1)
    }
}

/// The figures beside the buckets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) sum: u128,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) sum_of_squares: Option<u128>,
}

/// Cannot overflow.
pub(crate) fn square(value: u64) -> u128 {
    u128::from(value) * u128::from(value)
}
