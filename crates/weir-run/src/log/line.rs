//! A line of a log: `time, value, kind, bytes, [offset,] priority`.
//!
//! In: a log's columns, an instant and a value. Out: text in its file. Not here: which values,
//! and when.

use weir_schema::Log;
use weir_stats::Histogram;
use weir_units::Nanos;

use super::file::LogFile;

/// Buckets of a histogram's line: 64 per power of two up to 17.2 s; what lies above counts to the
/// last.
const BUCKETS: usize = 1856;

/// What a line tells beside its value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamp {
    /// Milliseconds since the log's zero.
    pub(super) at_ms: u64,
    /// 0 read, 1 write, 2 trim.
    pub(super) kind: usize,
    /// Bytes of the operation; 0 for a window.
    pub(super) length: u64,
    pub(super) offset: u64,
}

/// Writes a value.
pub(super) fn value(file: &mut LogFile, log: &Log, stamp: Stamp, value: u64) {
    let Stamp {
        at_ms,
        kind,
        length,
        offset,
    } = stamp;
    file.write(format_args!("{at_ms}, {value}, {kind}, {length}"));
    if log.offset {
        file.write(format_args!(", {offset}"));
    }
    let priority = if log.hex_priority { "0x0000" } else { "0" };
    file.write(format_args!(", {priority}\n"));
}

/// Writes the counts of a histogram.
pub(super) fn buckets(file: &mut LogFile, stamp: Stamp, histogram: &Histogram, coarseness: u8) {
    let mut counts = [0_u64; BUCKETS];
    for bucket in histogram.buckets() {
        counts[bucket_index(bucket.low)] += bucket.count;
    }
    let Stamp {
        at_ms,
        kind,
        length,
        ..
    } = stamp;
    file.write(format_args!("{at_ms}, {kind}, {length}"));
    for joined in counts.chunks(1 << coarseness.min(6)) {
        let count: u64 = joined.iter().sum();
        file.write(format_args!(", {count}"));
    }
    file.write(format_args!("\n"));
}

/// The bucket of a latency: exact below 128, then 64 per power of two.
fn bucket_index(nanos: u64) -> usize {
    let octave = (nanos.max(64).ilog2() - 6) as usize;
    let within = usize::try_from(nanos >> octave).unwrap_or(usize::MAX);
    (octave * 64).saturating_add(within).min(BUCKETS - 1)
}

/// An amount over a time, per second.
pub(crate) fn per_second(amount: u64, over: Nanos) -> u64 {
    let rate = u128::from(amount) * 1_000_000_000 / u128::from(over.0.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact_below_128_and_end_at_17_seconds() {
        let indices = [0, 63, 64, 127, 128, 129, 130, 255, 256, u64::MAX].map(bucket_index);
        assert_eq!(indices, [0, 63, 64, 127, 128, 128, 129, 191, 192, 1855]);
        assert_eq!(bucket_index((1 << 34) - 1), 1855);
        assert_eq!(bucket_index(1 << 33), 1792);
    }

    #[test]
    fn a_rate_is_rounded_down_and_never_divided_by_zero() {
        assert_eq!(per_second(3, Nanos(2_000_000_000)), 1);
        assert_eq!(per_second(1, Nanos(0)), 1_000_000_000);
    }
}
