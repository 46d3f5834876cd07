//! The live histogram of one worker: written by it alone, read by anyone at any time.
//!
//! In: a value per operation. Out: snapshots. Counters and buckets are atomics that the writer
//! updates with a relaxed load and a relaxed store, which costs the same as plain memory: no
//! lock prefix, no double buffer. Hence the one rule: a second writer would lose counts
//! (never memory safety). Not here: other precisions than 6 bits, merging ([`Histogram`]).
//!
//! Cost: one index computation, one bucket, the sum and two predictable comparisons; see the
//! example `record_cost`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::bucket::{DEFAULT_BITS, bucket_count, index_of};
use crate::histogram::{Figures, Histogram, square};

/// The next power of two above the 3,776 buckets, so that masking the index proves to the
/// compiler that it is in range.
const SLOTS: usize = 4096;
const MASK: usize = SLOTS - 1;

/// A histogram with one writer, readable while it is written.
///
/// Relaxed everywhere: each counter is right by itself, and a snapshot taken in between may
/// have a value's bucket but not yet its part of the sum. Once the writer has been joined, or
/// has told the reader otherwise that it is done, a snapshot is exact.
///
/// With `SQUARES` the exact sum of squares is kept as well (about 1 ns per value); without, it
/// costs nothing.
#[derive(Debug)]
#[repr(align(128))] // two cache lines: neighbours fetched in pairs would be shared otherwise
pub struct Recorder<const SQUARES: bool = false> {
    buckets: Box<[AtomicU64; SLOTS]>,
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
        add(&self.high, u64::from(carry));
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
fn add(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl<const SQUARES: bool> Default for Recorder<SQUARES> {
    fn default() -> Self {
        Self {
            buckets: Box::new([const { AtomicU64::new(0) }; SLOTS]),
            sum: Wide::default(),
            squares: Wide::default(),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
    }
}

impl<const SQUARES: bool> Recorder<SQUARES> {
    /// An empty recorder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one value. Only one thread may call this, or [`Self::reset`], at a time.
    #[inline(always)]
    pub fn record(&self, value: u64) {
        add(&self.buckets[index_of(DEFAULT_BITS, value) & MASK], 1);
        self.sum.add(value);
        if SQUARES {
            let square = square(value);
            #[expect(clippy::cast_possible_truncation, reason = "the low word is meant")]
            self.squares.add(square as u64);
            add(&self.squares.high, (square >> 64) as u64);
        }
        if value < self.min.load(Relaxed) {
            self.min.store(value, Relaxed);
        }
        if value > self.max.load(Relaxed) {
            self.max.store(value, Relaxed);
        }
    }

    /// What has been counted so far, read from any thread at any time.
    pub fn snapshot(&self) -> Histogram {
        let used = &self.buckets[..bucket_count(DEFAULT_BITS)];
        let counts: Vec<u64> = used.iter().map(|bucket| bucket.load(Relaxed)).collect();
        let figures = Figures {
            sum: self.sum.get(),
            min: self.min.load(Relaxed),
            max: self.max.load(Relaxed),
            sum_of_squares: SQUARES.then(|| self.squares.get()),
        };
        Histogram::from_parts(DEFAULT_BITS, counts, figures)
    }

    /// Forgets everything, at the end of the ramp. The writer's to call; a snapshot taken
    /// meanwhile may hold a part of the old counts.
    pub fn reset(&self) {
        for bucket in self.buckets.iter() {
            bucket.store(0, Relaxed);
        }
        self.sum.clear();
        self.squares.clear();
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }
}
