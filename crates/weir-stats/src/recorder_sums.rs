//! Sums that a recorder keeps beside its buckets: the exact sum, extremes and, where asked for, the
//! sum of squares. As there: one writer, readable at any time. Not here: buckets.

#![expect(clippy::inline_always, reason = "parts of the hot path")]

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::histogram::{Histogram, HistogramSums, square};

/// Sums and extremes with one writer.
#[derive(Debug)]
pub(crate) struct RecorderSums<const SQUARES: bool> {
    sum: Wide,
    squares: Wide,
    min: AtomicU64,
    max: AtomicU64,
}

/// A 128-bit sum in two words.
#[derive(Debug, Default)]
struct Wide {
    low: AtomicU64,
    high: AtomicU64,
}

impl Wide {
    #[inline(always)]
    fn add(&self, value: u64) {
        let (low, carry) = self.low.load(Relaxed).overflowing_add(value);
        self.low.store(low, Relaxed);
        if carry {
            add(&self.high, 1);
        }
    }

    #[inline(always)]
    fn add_wide(&self, value: u128) {
        #[expect(clippy::cast_possible_truncation, reason = "the low word is meant")]
        let (low, carry) = self.low.load(Relaxed).overflowing_add(value as u64);
        self.low.store(low, Relaxed);
        add(&self.high, (value >> 64) as u64 + u64::from(carry));
    }

    /// A reader that meets a carry between the two stores is off by 2^64; the snapshot brings
    /// it within what the buckets allow.
    fn get(&self) -> u128 {
        u128::from(self.high.load(Relaxed)) << 64 | u128::from(self.low.load(Relaxed))
    }

    fn clear(&self) {
        self.low.store(0, Relaxed);
        self.high.store(0, Relaxed);
    }
}

/// The single writer's increment.
#[inline(always)]
pub(crate) fn add(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl<const SQUARES: bool> Default for RecorderSums<SQUARES> {
    fn default() -> Self {
        Self {
            sum: Wide::default(),
            squares: Wide::default(),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
    }
}

impl<const SQUARES: bool> RecorderSums<SQUARES> {
    /// One value.
    #[inline(always)]
    pub(crate) fn record(&self, value: u64) {
        self.sum.add(value);
        if SQUARES {
            self.squares.add_wide(square(value));
        }
        self.widen(value);
    }

    /// Records the same value `count` times.
    #[inline(always)]
    pub(crate) fn record_many(&self, value: u64, count: u64) {
        self.sum.add_wide(u128::from(value) * u128::from(count));
        if SQUARES {
            let all = square(value).wrapping_mul(u128::from(count));
            self.squares.add_wide(all);
        }
        self.widen(value);
    }

    /// Everything that a histogram has counted; squares that it did not keep come from the middles of
    /// its buckets.
    pub(crate) fn add(&self, counted: &Histogram) {
        self.sum.add_wide(counted.sum());
        if SQUARES {
            let of_middles = || {
                counted.buckets().fold(0_u128, |sum, bucket| {
                    let all = square(bucket.middle).saturating_mul(u128::from(bucket.count));
                    sum.saturating_add(all)
                })
            };
            let squares = counted.sum_of_squares().unwrap_or_else(of_middles);
            self.squares.add_wide(squares);
        }
        if let (Some(min), Some(max)) = (counted.min(), counted.max()) {
            self.widen(min);
            self.widen(max);
        }
    }

    /// Sums of a few values with the extremes of these and others.
    #[inline]
    pub(crate) fn take(&self, sum: u64, squares: u128, (min, max): (u64, u64)) {
        self.sum.add(sum);
        if SQUARES {
            self.squares.add_wide(squares);
        }
        self.widen(min);
        self.widen(max);
    }

    /// Keeps the smallest and the largest value.
    #[inline(always)]
    fn widen(&self, value: u64) {
        if value < self.min.load(Relaxed) {
            self.min.store(value, Relaxed);
        }
        if value > self.max.load(Relaxed) {
            self.max.store(value, Relaxed);
        }
    }

    /// The sums so far, read from any thread.
    pub(crate) fn read(&self) -> HistogramSums {
        HistogramSums {
            sum: self.sum.get(),
            min: self.min.load(Relaxed),
            max: self.max.load(Relaxed),
            sum_of_squares: SQUARES.then(|| self.squares.get()),
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.sum.clear();
        self.squares.clear();
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }
}
