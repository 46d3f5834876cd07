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
use crate::histogram::{Histogram, square};
use crate::recorder_sums::{RecorderSums, add};

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
    buckets: [AtomicU64; SLOTS],
    sums: RecorderSums<SQUARES>,
}

/// Sums of a few values and the extremes of all, in plain memory of the writer: those of a recorder,
/// which others read, take twice the instructions. One tally goes with one recorder until that is
/// reset. The sum of a few latencies stays below 2^64.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    sum: u64,
    squares: u128,
    min: u64,
    max: u64,
}

impl Tally {
    /// Of no value.
    pub const NONE: Self = Self {
        sum: 0,
        squares: 0,
        min: u64::MAX,
        max: 0,
    };

    // Few values are new extremes: apart, so that the others take no conditional moves.

    #[cold]
    #[inline(never)]
    fn lower(&mut self, value: u64) {
        self.min = value;
    }

    #[cold]
    #[inline(never)]
    fn raise(&mut self, value: u64) {
        self.max = value;
    }
}

impl<const SQUARES: bool> Default for Recorder<SQUARES> {
    #[expect(clippy::large_stack_arrays, reason = "32 KiB, once per worker")]
    fn default() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; SLOTS],
            sums: RecorderSums::default(),
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
    #[expect(clippy::inline_always, reason = "a part of the hot path")]
    pub fn record(&self, value: u64) {
        add(&self.buckets[index_of(DEFAULT_BITS, value) & MASK], 1);
        self.sums.record(value);
    }

    /// Counts so many times the same value. As [`Self::record`], one thread at a time.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the hot path")]
    pub fn record_many(&self, value: u64, count: u64) {
        add(&self.buckets[index_of(DEFAULT_BITS, value) & MASK], count);
        self.sums.record_many(value, count);
    }

    /// Takes everything that a histogram of the same or a finer precision has counted, as where another
    /// loop than the run's has recorded it. As [`Self::record`], one thread at a time.
    pub fn add(&self, counted: &Histogram) {
        if counted.bits() < DEFAULT_BITS {
            return;
        }
        for bucket in counted.buckets() {
            let index = index_of(DEFAULT_BITS, bucket.low) & MASK;
            add(&self.buckets[index], bucket.count);
        }
        self.sums.add(counted);
    }

    /// Counts one value, whose part of the figures beside the buckets goes into a tally. As
    /// [`Self::record`], one thread at a time.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the hot path")]
    pub fn record_into(&self, tally: &mut Tally, value: u64) {
        add(&self.buckets[index_of(DEFAULT_BITS, value) & MASK], 1);
        tally.sum = tally.sum.wrapping_add(value);
        if SQUARES {
            tally.squares = tally.squares.wrapping_add(square(value));
        }
        if value < tally.min {
            tally.lower(value);
        }
        if value > tally.max {
            tally.raise(value);
        }
    }

    /// Takes the sums of a tally, which keeps its extremes for more values.
    #[inline]
    pub fn take(&self, tally: &mut Tally) {
        self.sums
            .take(tally.sum, tally.squares, (tally.min, tally.max));
        (tally.sum, tally.squares) = (0, 0);
    }

    /// Histogram of the values counted so far, read from any thread at any time.
    pub fn snapshot(&self) -> Histogram {
        let used = &self.buckets[..bucket_count(DEFAULT_BITS)];
        let counts: Vec<u64> = used.iter().map(|bucket| bucket.load(Relaxed)).collect();
        Histogram::from_parts(DEFAULT_BITS, counts, self.sums.read())
    }

    /// Forgets everything, at the end of the ramp. The writer's to call; a snapshot taken
    /// meanwhile may hold a part of the old counts.
    pub fn reset(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Relaxed);
        }
        self.sums.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn values() -> impl Iterator<Item = u64> {
        (0..20_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64))
    }

    #[test]
    fn a_snapshot_equals_the_plain_histogram_of_the_same_values() {
        let (plain, squares) = (Recorder::<false>::new(), Recorder::<true>::new());
        let mut expected = Histogram::new();
        let mut expected_squares = Histogram::new().with_squares();
        assert_eq!(plain.snapshot(), expected);
        for value in values() {
            plain.record(value);
            expected.record(value);
        }
        // Smaller, so that the sum of squares fits.
        for value in values().map(|value| value >> 16) {
            squares.record(value);
            expected_squares.record(value);
        }
        assert_eq!(plain.snapshot(), expected);
        assert_eq!(squares.snapshot(), expected_squares);
    }

    #[test]
    fn many_equal_values_count_as_each_of_them() {
        let (one_by_one, at_once) = (Recorder::<true>::new(), Recorder::<true>::new());
        for (value, count) in [(0, 1), (1_000, 32), (3 << 30, 5), (u64::MAX >> 20, 1 << 20)] {
            (0..count).for_each(|_| one_by_one.record(value));
            at_once.record_many(value, count);
        }
        assert_eq!(at_once.snapshot(), one_by_one.snapshot());
    }

    #[test]
    fn values_counted_by_way_of_a_tally_are_those_counted_one_by_one() {
        let (one_by_one, tallied) = (Recorder::<true>::new(), Recorder::<true>::new());
        let values: Vec<u64> = values().map(|value| value >> 20).collect();
        let mut tally = Tally::NONE;
        for few in values.chunks(33) {
            for &value in few {
                one_by_one.record(value);
                tallied.record_into(&mut tally, value);
            }
            tallied.take(&mut tally);
        }
        assert_eq!(tallied.snapshot(), one_by_one.snapshot());
    }

    #[test]
    fn a_whole_histogram_counts_as_each_of_its_values() {
        let (one_by_one, at_once) = (Recorder::<true>::new(), Recorder::<true>::new());
        let mut whole = Histogram::new().with_squares();
        for value in values().map(|value| value >> 20) {
            one_by_one.record(value);
            whole.record(value);
        }
        at_once.add(&whole);
        assert_eq!(at_once.snapshot(), one_by_one.snapshot());
        at_once.reset();
        let mut finer = Histogram::with_bits(10).unwrap().with_squares();
        values().for_each(|value| finer.record(value >> 20));
        at_once.add(&finer);
        at_once.add(&Histogram::new());
        assert_eq!(at_once.snapshot(), one_by_one.snapshot());
        let coarse = Histogram::with_bits(4).unwrap();
        at_once.add(&coarse);
        assert_eq!(at_once.snapshot().count(), 20_000);
    }

    #[test]
    fn reset_forgets_the_ramp() {
        let recorder = Recorder::<true>::new();
        values().for_each(|value| recorder.record(value));
        recorder.reset();
        assert_eq!(recorder.snapshot(), Histogram::new().with_squares());
        recorder.record(5);
        assert_eq!(
            (recorder.snapshot().min(), recorder.snapshot().max()),
            (Some(5), Some(5))
        );
    }

    #[test]
    fn every_snapshot_taken_while_recording_is_sound_and_none_goes_back() {
        let recorder = Recorder::<false>::new();
        let done = AtomicBool::new(false);
        let snapshots = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut earlier = Histogram::new();
                let mut snapshots = 0;
                while !done.load(Relaxed) || snapshots == 0 {
                    let now = recorder.snapshot();
                    let interval = now.since(&earlier).unwrap();
                    let stored = serde_json::to_string(&interval).unwrap();
                    assert_eq!(
                        serde_json::from_str::<Histogram>(&stored).unwrap(),
                        interval
                    );
                    earlier = now;
                    snapshots += 1;
                }
                snapshots
            });
            for value in values() {
                recorder.record(value);
            }
            done.store(true, Relaxed);
            reader.join().unwrap()
        });
        assert!(snapshots > 0);
        assert_eq!(recorder.snapshot().count(), 20_000);
    }
}
