//! Operations and bytes per fixed interval, aligned to a common start.
//!
//! In: what was done in each interval, in order; the last may be partial. Out: the series
//! itself, sums of several over the same instants. Not here: latencies per interval
//! ([`crate::BatchStore`]).

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, BytesPerSec, Iops, JsonSchema, Nanos};

/// Operations and bytes of each interval, from the common start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Series {
    interval: Nanos,
    /// The length of the last interval, if it is a partial one.
    partial: Option<Nanos>,
    operations: Vec<u64>,
    bytes: Vec<u64>,
}

/// One interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesPoint {
    /// Since the common start.
    pub start: Nanos,
    /// The interval, or less at the end.
    pub length: Nanos,
    /// Completed.
    pub operations: u64,
    /// Moved.
    pub bytes: Bytes,
}

impl SeriesPoint {
    /// Operations per second; nothing in no time.
    pub fn iops(&self) -> Option<Iops> {
        Iops::of(self.operations, self.length)
    }

    /// Bytes per second; nothing in no time.
    pub fn bandwidth(&self) -> Option<BytesPerSec> {
        BytesPerSec::of(self.bytes, self.length)
    }
}

/// Reason that a series cannot be extended, combined or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// The last interval was partial; nothing can follow it.
    #[error("the series ended with a partial interval; nothing can follow")]
    Ended,
    /// A partial interval that is empty or as long as a whole one.
    #[error("a partial interval must be longer than 0 and shorter than the interval")]
    NotPartial,
    /// Two interval lengths.
    #[error("series of different intervals, {} ns and {} ns, cannot be added", .0.raw(), .1.raw())]
    IntervalDiffers(Nanos, Nanos),
    /// A stored series that none could have produced.
    #[error("not a series: {0}")]
    Invalid(&'static str),
}

impl Series {
    /// An empty series.
    pub fn new(interval: Nanos) -> Self {
        Self {
            interval: interval.max(Nanos(1)),
            partial: None,
            operations: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Appends a whole interval.
    ///
    /// # Errors
    /// After a partial interval.
    pub fn push(&mut self, operations: u64, bytes: Bytes) -> Result<(), SeriesError> {
        if self.partial.is_some() {
            return Err(SeriesError::Ended);
        }
        self.operations.push(operations);
        self.bytes.push(bytes.0);
        Ok(())
    }

    /// Appends the last, partial interval.
    ///
    /// # Errors
    /// If it is not shorter than the interval, or the series has ended already.
    pub fn finish(
        &mut self,
        length: Nanos,
        operations: u64,
        bytes: Bytes,
    ) -> Result<(), SeriesError> {
        if length == Nanos::ZERO || length >= self.interval {
            return Err(SeriesError::NotPartial);
        }
        self.push(operations, bytes)?;
        self.partial = Some(length);
        Ok(())
    }

    /// Takes what came to be known after the end, so long after the start, into the interval of the end:
    /// nothing was done later.
    pub fn end_at(&mut self, end: Nanos, operations: u64, bytes: Bytes) {
        let last = end.0.saturating_sub(1) / self.interval.0.max(1);
        let last = usize::try_from(last).unwrap_or(usize::MAX);
        for (counts, late) in [
            (&mut self.operations, operations),
            (&mut self.bytes, bytes.0),
        ] {
            let Some((in_time, after)) = counts.split_at_mut_checked(last.saturating_add(1)) else {
                continue;
            };
            let moved = after.iter_mut().map(std::mem::take);
            if let Some(count) = in_time.last_mut() {
                *count = moved.fold(count.saturating_add(late), u64::saturating_add);
            }
        }
    }

    /// Adds what `other` did in the same intervals. The sum lasts as long as the longer one:
    /// a member that ended early did nothing more.
    ///
    /// # Errors
    /// If the intervals differ in length.
    pub fn add(&mut self, other: &Self) -> Result<(), SeriesError> {
        if self.interval != other.interval {
            return Err(SeriesError::IntervalDiffers(self.interval, other.interval));
        }
        let longer = if other.length() > self.length() {
            other
        } else {
            &*self
        };
        self.partial = longer.partial;
        add_all(&mut self.operations, &other.operations);
        add_all(&mut self.bytes, &other.bytes);
        Ok(())
    }

    /// The same with so many intervals in one.
    #[must_use]
    pub fn coarser(&self, factor: usize) -> Self {
        let factor = factor.max(1);
        let sums = |each: &[u64]| each.chunks(factor).map(|some| some.iter().sum()).collect();
        let interval = self.interval.saturating_mul(factor as u64);
        let rest = self.len() % factor;
        let is_whole = rest == 0 && self.partial.is_none();
        let before = self.len()
            - if rest == 0 {
                factor.min(self.len())
            } else {
                rest
            };
        let last = self.length().0 - self.interval.saturating_mul(before as u64).0;
        Self {
            interval,
            partial: (!is_whole && !self.is_empty()).then_some(Nanos(last)),
            operations: sums(&self.operations),
            bytes: sums(&self.bytes),
        }
    }

    /// The interval's length.
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    /// From the common start to the end of the last interval.
    pub fn length(&self) -> Nanos {
        let whole = self.len() - usize::from(self.partial.is_some());
        let whole = self.interval.saturating_mul(whole as u64);
        whole.saturating_add(self.partial.unwrap_or(Nanos::ZERO))
    }

    /// Number of intervals, a partial one included.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// True if there are no intervals.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// True if the last interval is partial.
    pub fn ends_partial(&self) -> bool {
        self.partial.is_some()
    }

    /// All intervals, in order; the last may be shorter.
    pub fn points(&self) -> impl ExactSizeIterator<Item = SeriesPoint> + '_ {
        (0..self.len()).map(|i| {
            let is_last = i + 1 == self.len();
            SeriesPoint {
                start: self.interval.saturating_mul(i as u64),
                length: self.partial.filter(|_| is_last).unwrap_or(self.interval),
                operations: self.operations[i],
                bytes: Bytes(self.bytes[i]),
            }
        })
    }
}

fn add_all(sums: &mut Vec<u64>, more: &[u64]) {
    if sums.len() < more.len() {
        sums.resize(more.len(), 0);
    }
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// Operations and bytes per interval, from the common start.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Series")]
struct Wire {
    /// The length of each interval.
    interval_ns: Nanos,
    /// The length of the last interval, if it is a partial one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_ns: Option<Nanos>,
    /// Completed in each interval.
    operations: Vec<u64>,
    /// Moved in each interval.
    bytes: Vec<u64>,
}

impl From<Series> for Wire {
    fn from(series: Series) -> Self {
        Self {
            interval_ns: series.interval,
            last_ns: series.partial,
            operations: series.operations,
            bytes: series.bytes,
        }
    }
}

impl TryFrom<Wire> for Series {
    type Error = SeriesError;

    fn try_from(wire: Wire) -> Result<Self, SeriesError> {
        if wire.interval_ns == Nanos::ZERO {
            return Err(SeriesError::Invalid("the interval is 0"));
        }
        if wire.operations.len() != wire.bytes.len() {
            return Err(SeriesError::Invalid(
                "operations and bytes differ in length",
            ));
        }
        if wire
            .last_ns
            .is_some_and(|l| l == Nanos::ZERO || l >= wire.interval_ns)
        {
            return Err(SeriesError::NotPartial);
        }
        if wire.last_ns.is_some() && wire.operations.is_empty() {
            return Err(SeriesError::Invalid(
                "a partial interval without any interval",
            ));
        }
        Ok(Self {
            interval: wire.interval_ns,
            partial: wire.last_ns,
            operations: wire.operations,
            bytes: wire.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[u64], last: Option<u64>) -> Series {
        let mut series = Series::new(Nanos(100));
        for (i, operations) in points.iter().enumerate() {
            let bytes = Bytes(operations * 4096);
            match last.filter(|_| i + 1 == points.len()) {
                Some(length) => series.finish(Nanos(length), *operations, bytes).unwrap(),
                None => series.push(*operations, bytes).unwrap(),
            }
        }
        series
    }

    #[test]
    fn a_coarser_series_has_the_same_sums_and_the_same_length() {
        for whole in 0..9_u64 {
            for partial in [false, true] {
                let mut fine = Series::new(Nanos(100));
                for at in 0..whole {
                    fine.push(at, Bytes(at * 10)).unwrap();
                }
                if partial {
                    fine.finish(Nanos(30), 7, Bytes(70)).unwrap();
                }
                let coarse = fine.coarser(4);
                assert_eq!(coarse.length(), fine.length(), "{whole} {partial}");
                assert_eq!(coarse.interval(), Nanos(400));
                assert_eq!(coarse.len(), fine.len().div_ceil(4));
                let sum = |series: &Series| series.points().map(|p| p.operations).sum::<u64>();
                assert_eq!(sum(&coarse), sum(&fine));
                assert_eq!(
                    coarse.ends_partial(),
                    !coarse.length().0.is_multiple_of(400)
                );
                assert_eq!(fine.coarser(1), fine);
            }
        }
    }

    #[test]
    fn a_sum_lasts_as_long_as_its_longest_member() {
        let mut sum = series(&[1, 2, 3], Some(40));
        sum.add(&series(&[10, 20], Some(70))).unwrap();
        assert_eq!(sum, series(&[11, 22, 3], Some(40)));
        let mut sum = series(&[1, 2], Some(40));
        sum.add(&series(&[10, 20], None)).unwrap();
        assert_eq!(sum, series(&[11, 22], None));
        let mut sum = Series::new(Nanos(100));
        sum.add(&series(&[5], Some(10))).unwrap();
        assert_eq!(sum, series(&[5], Some(10)));
    }

    #[test]
    fn points_know_their_place_and_length() {
        let series = series(&[1, 2], Some(40));
        let points: Vec<SeriesPoint> = series.points().collect();
        assert_eq!((points[1].start, points[1].length), (Nanos(100), Nanos(40)));
        assert_eq!(points[0].iops(), Some(Iops(1e7)));
        assert_eq!(series.length(), Nanos(140));
        assert!(series.ends_partial());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut ended = series(&[1], Some(40));
        assert_eq!(ended.push(1, Bytes(1)), Err(SeriesError::Ended));
        assert_eq!(
            ended.finish(Nanos(100), 1, Bytes(1)),
            Err(SeriesError::NotPartial)
        );
        let differs = ended.add(&Series::new(Nanos(50))).unwrap_err().to_string();
        assert_eq!(
            differs,
            "series of different intervals, 100 ns and 50 ns, cannot be added"
        );
        for text in [
            r#"{"interval_ns":0,"operations":[],"bytes":[]}"#,
            r#"{"interval_ns":5,"operations":[1],"bytes":[]}"#,
            r#"{"interval_ns":5,"last_ns":5,"operations":[1],"bytes":[1]}"#,
            r#"{"interval_ns":5,"last_ns":2,"operations":[],"bytes":[]}"#,
        ] {
            assert!(serde_json::from_str::<Series>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_stored_series_reads_back() {
        let series = series(&[1, 2], Some(40));
        let text = serde_json::to_string(&series).unwrap();
        assert_eq!(
            text,
            r#"{"interval_ns":100,"last_ns":40,"operations":[1,2],"bytes":[4096,8192]}"#
        );
        assert_eq!(serde_json::from_str::<Series>(&text).unwrap(), series);
    }
}
