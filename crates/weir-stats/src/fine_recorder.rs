//! The finest live histogram: one part in two thousand, exact squares, memory for what occurs.
//!
//! In: a value per operation, by one writer. Out: snapshots, from any thread at any time. The 65,536
//! values' worth of buckets come in chunks, one per power of two, that are made when the first value
//! falls into them: latencies of a few powers of two take a few chunks of 8 KiB. As with
//! [`crate::Recorder`], which is smaller and never allocates, a second writer would lose counts.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::bucket::{MAX_BITS, bucket_count, index_of};
use crate::histogram::Histogram;
use crate::recorder_sums::{RecorderSums, add};

/// Buckets of a chunk.
const CHUNK: usize = 1 << MAX_BITS;
/// The next power of two above the 55 chunks, so that masking proves an index to be in range.
const CHUNKS: usize = 64;

type Chunk = Box<[AtomicU64; CHUNK]>;

/// A fine histogram with one writer, readable while it is written.
#[derive(Debug)]
pub struct FineRecorder {
    chunks: [OnceLock<Chunk>; CHUNKS],
    sums: RecorderSums<true>,
}

impl Default for FineRecorder {
    fn default() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            sums: RecorderSums::default(),
        }
    }
}

impl FineRecorder {
    /// The precision of its histograms.
    pub const BITS: u8 = MAX_BITS;

    /// Counts one value. Only one thread may call this, or [`Self::reset`], at a time.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the hot path")]
    pub fn record(&self, value: u64) {
        self.count(index_of(MAX_BITS, value), 1);
        self.sums.record(value);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the hot path")]
    fn count(&self, index: usize, by: u64) {
        let chunk = self.chunks[(index >> MAX_BITS) & (CHUNKS - 1)].get();
        let chunk = chunk.unwrap_or_else(|| self.new_chunk(index));
        add(&chunk[index & (CHUNK - 1)], by);
    }

    #[cold]
    #[inline(never)]
    fn new_chunk(&self, index: usize) -> &Chunk {
        let empty = || Box::new([const { AtomicU64::new(0) }; CHUNK]);
        self.chunks[(index >> MAX_BITS) & (CHUNKS - 1)].get_or_init(empty)
    }

    /// Histogram of the values counted so far, read from any thread at any time.
    pub fn snapshot(&self) -> Histogram {
        let mut counts = vec![0; bucket_count(MAX_BITS)];
        for (number, counted) in counts.chunks_mut(CHUNK).enumerate() {
            let Some(chunk) = self.chunks.get(number).and_then(OnceLock::get) else {
                continue;
            };
            for (count, bucket) in counted.iter_mut().zip(chunk.iter()) {
                *count = bucket.load(Relaxed);
            }
        }
        Histogram::from_parts(MAX_BITS, counts, self.sums.read())
    }

    /// Forgets everything, at the end of the ramp. The writer's to call.
    pub fn reset(&self) {
        for chunk in self.chunks.iter().filter_map(OnceLock::get) {
            chunk.iter().for_each(|bucket| bucket.store(0, Relaxed));
        }
        self.sums.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_equals_the_plain_histogram_of_the_same_values() {
        let recorder = FineRecorder::default();
        let empty = || {
            Histogram::with_bits(FineRecorder::BITS)
                .unwrap()
                .with_squares()
        };
        let mut expected = empty();
        assert_eq!(recorder.snapshot(), expected);
        for i in 0..20_000_u64 {
            let value = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64) >> 16;
            recorder.record(value);
            expected.record(value);
        }
        assert_eq!(recorder.snapshot(), expected);
        recorder.reset();
        assert_eq!(recorder.snapshot(), empty());
        recorder.record(u64::MAX >> 1);
        assert_eq!(recorder.snapshot().max(), Some(u64::MAX >> 1));
    }

    #[test]
    fn memory_is_taken_for_the_powers_of_two_that_occur() {
        let recorder = FineRecorder::default();
        (10_000..40_000).for_each(|value| recorder.record(value));
        let taken = recorder.chunks.iter().filter_map(OnceLock::get).count();
        // 8192 to 65535.
        assert_eq!(taken, 3);
    }
}
