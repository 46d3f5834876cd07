//! A line of a log: `time, value, kind, bytes, [offset,] priority`; a log of buckets has a count per
//! bucket instead of a value.
//!
//! In: a log's columns and a record. Out: a line. Not here: which records there are, and when.

use std::fmt::Write as _;

use weir_schema::{BLOCK_KINDS, Log, LogMeasure, LogRecord};
use weir_stats::Histogram;
use weir_units::{Bytes, Nanos};

/// Buckets of a histogram's line: 64 per power of two up to 17.2 s; what lies above counts to the
/// last.
const BUCKETS: usize = 1856;

/// Where the class of a priority stands in its number.
const CLASS_AT: u16 = 13;
/// The class whose operations go first.
const REAL_TIME: u16 = 1;

/// Writes the line of a record.
pub fn log_line(log: &Log, record: &LogRecord<'_>, out: &mut String) {
    let is_operation = record.operation.is_some();
    let value = match record.measure {
        // Bytes per nanosecond are 10^6 kilobytes per second.
        LogMeasure::Moved(bytes, over) if is_operation => {
            bytes.0.saturating_mul(1_000_000) / over.0.max(1)
        }
        LogMeasure::Moved(bytes, over) => per_second(bytes.0, over) / 1024,
        LogMeasure::Completed(..) if is_operation => 1,
        LogMeasure::Completed(operations, over) => per_second(operations, over),
        LogMeasure::Latency(nanos) => nanos.0,
        LogMeasure::Buckets {
            latencies,
            mean,
            coarseness,
        } => return buckets(record, latencies, mean, coarseness, out),
    };
    let (at_ms, kind) = (record.at_ms, number(record.kind));
    let operation = record.operation.unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = write!(out, "{at_ms}, {value}, {kind}, {}", operation.length.0);
    if log.offset {
        let _ = write!(out, ", {}", operation.offset);
    }
    let priority = operation.priority;
    let _ = if log.hex_priority {
        writeln!(out, ", 0x{priority:04x}")
    } else {
        writeln!(out, ", {}", u8::from(priority >> CLASS_AT == REAL_TIME))
    };
}

/// The number of a kind: reads 0, writes 1, trims 2.
fn number(kind: &str) -> usize {
    // Jobs with this door's logs have no other kinds.
    let place = BLOCK_KINDS.iter().position(|info| info.name == kind);
    place.unwrap_or_default()
}

/// Writes the counts of a histogram.
fn buckets(
    record: &LogRecord<'_>,
    latencies: &Histogram,
    mean: Bytes,
    coarseness: u8,
    out: &mut String,
) {
    let mut counts = [0_u64; BUCKETS];
    for bucket in latencies.buckets() {
        counts[bucket_index(bucket.low)] += bucket.count;
    }
    let (at_ms, kind) = (record.at_ms, number(record.kind));
    let _ = write!(out, "{at_ms}, {kind}, {}", mean.0);
    for joined in counts.chunks(1 << coarseness.min(6)) {
        let count: u64 = joined.iter().sum();
        let _ = write!(out, ", {count}");
    }
    out.push('\n');
}

/// The bucket of a latency: exact below 128, then 64 per power of two.
fn bucket_index(nanos: u64) -> usize {
    let octave = (nanos.max(64).ilog2() - 6) as usize;
    let within = usize::try_from(nanos >> octave).unwrap_or(usize::MAX);
    (octave * 64).saturating_add(within).min(BUCKETS - 1)
}

/// An amount over a time, per second.
fn per_second(amount: u64, over: Nanos) -> u64 {
    let rate = u128::from(amount) * 1_000_000_000 / u128::from(over.0.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_that_goes_first_is_told_by_itself_or_within_the_priority() {
        let line = |hex_priority, priority| {
            let log = Log {
                compressed: false,
                what: weir_schema::Logged::Lat,
                path: String::new(),
                window_ns: Nanos(0),
                maximum: false,
                offset: true,
                hex_priority,
                since_1970: false,
            };
            let record = LogRecord {
                at_ms: 7,
                kind: "write",
                operation: Some(weir_schema::LogOperation {
                    offset: 4096,
                    length: Bytes(512),
                    priority,
                }),
                measure: LogMeasure::Latency(Nanos(9)),
            };
            let mut out = String::new();
            log_line(&log, &record, &mut out);
            out
        };
        assert_eq!(line(false, 0x2004), "7, 9, 1, 512, 4096, 1\n");
        assert_eq!(line(false, 0x4003), "7, 9, 1, 512, 4096, 0\n");
        assert_eq!(line(true, 0x2004), "7, 9, 1, 512, 4096, 0x2004\n");
        assert_eq!(line(true, 0), "7, 9, 1, 512, 4096, 0x0000\n");
    }

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
