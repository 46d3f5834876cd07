//! Batches: a run of unknown length in bounded memory, and its figures with intervals.
//!
//! In: what was done in each interval of the run (after the ramp), with the interval's
//! histogram. Out: throughput, mean and percentiles as [`Estimate`]s. Whenever more than 80
//! batches are held, neighbours are joined and the batches are twice as long from then on: any
//! run past the first 80 intervals keeps between 40 and 80.

use weir_units::{Bytes, Nanos};

use crate::bootstrap::Resampler;
use crate::estimate::{Estimate, MeanError, NoInterval};
use crate::histogram::{Histogram, HistogramError};
use crate::series::Series;
use crate::warmup::{self, WarmupTest};

/// More than this many batches are joined in pairs.
const MOST_BATCHES: usize = 80;

/// What was done in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Completed.
    pub operations: u64,
    /// Moved.
    pub bytes: Bytes,
    /// Of the latencies, or of another value per operation.
    pub histogram: Histogram,
}

impl Batch {
    fn join(&mut self, next: &Self) -> Result<(), HistogramError> {
        self.histogram.merge(&next.histogram)?;
        self.operations = self.operations.saturating_add(next.operations);
        self.bytes = self.bytes.saturating_add(next.bytes);
        Ok(())
    }
}

/// The batches of one kind of operation, over all its workers.
#[derive(Clone, Debug)]
pub struct BatchStore {
    interval: Nanos,
    /// Intervals in a whole batch.
    per_batch: u64,
    batches: Vec<Batch>,
    /// The batch that is being filled, and its intervals so far.
    current: Batch,
    filled: u64,
}

impl BatchStore {
    /// For intervals of this length.
    pub fn new(interval: Nanos) -> Self {
        Self {
            interval,
            per_batch: 1,
            batches: Vec::new(),
            current: Batch::default(),
            filled: 0,
        }
    }

    /// Adds the next whole interval. Leave out a partial one: its rate counts as much as any
    /// other's.
    ///
    /// # Errors
    /// If its histogram's precision is not that of the others.
    pub fn push(&mut self, interval: Batch) -> Result<(), HistogramError> {
        if self.filled == 0 {
            self.current = interval;
        } else {
            self.current.join(&interval)?;
        }
        self.filled += 1;
        if self.filled < self.per_batch {
            return Ok(());
        }
        self.batches.push(std::mem::take(&mut self.current));
        self.filled = 0;
        if self.batches.len() > MOST_BATCHES {
            self.join_neighbours()?;
        }
        Ok(())
    }

    fn join_neighbours(&mut self) -> Result<(), HistogramError> {
        let mut joined: Vec<Batch> = Vec::with_capacity(MOST_BATCHES);
        for (i, batch) in self.batches.drain(..).enumerate() {
            match joined.last_mut() {
                Some(first) if i % 2 == 1 => first.join(&batch)?,
                _ => joined.push(batch),
            }
        }
        // The odd one out is the first half of the next batch.
        if let Some(odd) = joined.pop() {
            self.current = odd;
            self.filled = self.per_batch;
        }
        self.batches = joined;
        self.per_batch = self.per_batch.saturating_mul(2);
        Ok(())
    }

    /// From the whole intervals of a series, without latencies: for rates alone.
    pub fn of_series(series: &Series) -> Self {
        let mut store = Self::new(series.interval());
        let whole = series.len() - usize::from(series.ends_partial());
        for point in series.points().take(whole) {
            // Histograms that hold nothing have one precision, so adding cannot fail.
            let _ = store.push(Batch {
                operations: point.operations,
                bytes: point.bytes,
                histogram: Histogram::default(),
            });
        }
        store
    }

    /// The whole batches, in order.
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// How long each of them is.
    pub fn length(&self) -> Nanos {
        self.interval.saturating_mul(self.per_batch)
    }

    /// Operations per second.
    pub fn operations_per_second(&self) -> Estimate {
        self.rate(|batch| batch.operations)
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self) -> Estimate {
        self.rate(|batch| batch.bytes.0)
    }

    /// The mean rate of operations with its standard error, for comparing two runs.
    ///
    /// # Errors
    /// Why there is no standard error.
    pub fn rate_error(&self) -> Result<MeanError, NoInterval> {
        MeanError::of_batches(&self.rates(|batch| batch.operations))
    }

    fn rates(&self, count: impl Fn(&Batch) -> u64) -> Vec<f64> {
        let seconds = self.length().as_secs_f64();
        self.batches
            .iter()
            .map(|batch| count(batch) as f64 / seconds)
            .collect()
    }

    fn rate(&self, count: impl Fn(&Batch) -> u64) -> Estimate {
        let rates = self.rates(&count);
        let seconds = self.length().as_secs_f64() * rates.len() as f64;
        let total: u64 = self.batches.iter().map(&count).fold(0, u64::saturating_add);
        let value = if rates.is_empty() {
            0.0
        } else {
            total as f64 / seconds
        };
        let operations = self
            .batches
            .iter()
            .map(|b| b.operations)
            .fold(0, u64::saturating_add);
        // One operation more or less falls inside by chance of where the ends lie.
        let grain = if operations == 0 {
            0.0
        } else {
            value / operations as f64
        };
        match MeanError::of_batches(&rates) {
            Ok(mean) => {
                let half = mean.half_width() + grain;
                Estimate::within(value, (value - half).max(0.0), value + half)
            }
            Err(absent) => Estimate::without(value, absent),
        }
    }

    /// The mean of the recorded values. Batches with more operations weigh more; nothing when
    /// nothing was recorded.
    pub fn mean(&self) -> Option<Estimate> {
        let count: u64 = self.batches.iter().map(|b| b.histogram.count()).sum();
        let sum: u128 = self.batches.iter().map(|b| b.histogram.sum()).sum();
        if count == 0 {
            return None;
        }
        let value = sum as f64 / count as f64;
        // A ratio of two sums: its error is that of sum − value · count over the mean count.
        let per_batch = count as f64 / self.batches.len() as f64;
        let excess = |h: &Histogram| (h.sum() as f64 - value * h.count() as f64) / per_batch;
        let values: Vec<f64> = self.batches.iter().map(|b| excess(&b.histogram)).collect();
        Some(match MeanError::of_batches(&values) {
            Ok(mean) => {
                let half = mean.half_width();
                Estimate::within(value, (value - half).max(0.0), value + half)
            }
            Err(absent) => Estimate::without(value, absent),
        })
    }

    /// Percentiles of `whole`, the histogram of everything that was recorded, with intervals
    /// from the batches. A percentile that `whole` does not have is left out.
    pub fn percentiles(&self, whole: &Histogram, wanted: &[f64]) -> Vec<(f64, Estimate)> {
        let histograms: Vec<&Histogram> = self.batches.iter().map(|b| &b.histogram).collect();
        let resampler = Resampler::new(whole, &histograms);
        let estimates = wanted.iter().map(|p| Some((*p, resampler.percentile(*p)?)));
        estimates.flatten().collect()
    }

    /// Whether the start of the run fits the rest.
    ///
    /// # Errors
    /// If there are too few batches to tell.
    pub fn steadiness(&self) -> Result<WarmupTest, NoInterval> {
        warmup::test(&self.rates(|batch| batch.operations), self.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(operations: u64) -> Batch {
        let mut histogram = Histogram::new();
        histogram.record_n(1000 + operations, operations);
        Batch {
            operations,
            bytes: Bytes(operations * 4096),
            histogram,
        }
    }

    fn store(intervals: impl IntoIterator<Item = u64>) -> BatchStore {
        let mut store = BatchStore::new(Nanos::from_millis(100));
        for operations in intervals {
            store.push(interval(operations)).unwrap();
        }
        store
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_lost() {
        for (count, batches, intervals_each) in [
            (80, 80, 1),
            (81, 40, 2),
            (160, 80, 2),
            (162, 40, 4),
            (1000, 62, 16),
        ] {
            let store = store((0..count).map(|i| i + 1));
            assert_eq!(store.batches().len(), batches, "{count}");
            assert_eq!(store.length(), Nanos::from_millis(100 * intervals_each));
            let whole = batches as u64 * intervals_each;
            let operations: u64 = store.batches().iter().map(|b| b.operations).sum();
            assert_eq!(operations, whole * (whole + 1) / 2);
            let held: u64 = store.batches().iter().map(|b| b.histogram.count()).sum();
            assert_eq!(held, operations);
            let left: u64 = (whole + 1..=count).sum();
            assert_eq!(store.current.operations, left);
        }
    }

    #[test]
    fn rates_are_counts_over_time() {
        let store = store((0..40).map(|i| 99 + 2 * (i % 2)));
        let rate = store.operations_per_second();
        assert!((rate.value - 1000.0).abs() < 1e-9);
        // Batches of 990 and 1010 alternate: error √(4000 / 39 / 40), t(39) = 2.0227, and one
        // operation in 4 s.
        let half = 2.0227 * (4000.0_f64 / 39.0 / 40.0).sqrt() + 0.25;
        assert!((rate.half_width().unwrap() - half).abs() < 1e-3);
        assert!((store.bytes_per_second().value - 4_096_000.0).abs() < 1e-6);
        assert!((store.rate_error().unwrap().mean - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn the_mean_weighs_operations_and_holds_its_value() {
        let mean = store((0..40).map(|i| 100 + 10 * (i % 2))).mean().unwrap();
        let exact = (100.0 * 1100.0 + 110.0 * 1110.0) / 210.0;
        assert!((mean.value - exact).abs() < 1e-9);
        assert!(mean.low.unwrap() < exact && mean.high.unwrap() > exact);
        assert_eq!(store([]).mean(), None);
        assert_eq!(store([0; 30]).mean(), None);
    }

    #[test]
    fn a_series_gives_the_rates_that_its_intervals_gave() {
        let counts = || (0..200).map(|i| 99 + 2 * (i % 2));
        let mut series = Series::new(Nanos::from_millis(100));
        for operations in counts() {
            series.push(operations, Bytes(operations * 4096)).unwrap();
        }
        series
            .finish(Nanos::from_millis(7), 1, Bytes(4096))
            .unwrap();
        let (direct, through) = (store(counts()), BatchStore::of_series(&series));
        assert_eq!(
            direct.operations_per_second(),
            through.operations_per_second()
        );
        assert_eq!(direct.bytes_per_second(), through.bytes_per_second());
        assert_eq!(through.mean(), None);
    }

    #[test]
    fn a_short_run_prints_its_figures_without_intervals() {
        let store = store([100; 19]);
        let rate = store.operations_per_second();
        assert_eq!(
            (rate.value.round(), rate.absent),
            (1000.0, Some(NoInterval::ShortRun))
        );
        let mut whole = Histogram::new();
        whole.record_n(1100, 1900);
        let percentiles = store.percentiles(&whole, &[50.0, 99.9, 101.0]);
        assert_eq!(percentiles.len(), 2);
        assert_eq!(
            percentiles[0].1,
            Estimate::without(1100.0, NoInterval::ShortRun)
        );
        assert_eq!(
            percentiles[1].1,
            Estimate::without(1100.0, NoInterval::FewSamples)
        );
    }

    #[test]
    fn a_run_without_any_operation_is_no_panic() {
        let rate = store([0; 40]).operations_per_second();
        assert_eq!(rate, Estimate::within(0.0, 0.0, 0.0));
        assert_eq!(
            store([]).operations_per_second().absent,
            Some(NoInterval::ShortRun)
        );
        let mut whole = Histogram::new();
        whole.record_n(5, 100);
        for intervals in [vec![], vec![0; 40], [vec![0; 39], vec![7]].concat()] {
            let percentiles = store(intervals).percentiles(&whole, &[50.0]);
            assert!(percentiles[0].1.value > 0.0);
        }
    }

    #[test]
    fn the_same_run_gives_the_same_interval() {
        let store = store((0..60_u64).map(|i| 100 + i * 7 % 13));
        let mut whole = Histogram::new();
        for batch in store.batches() {
            whole.merge(&batch.histogram).unwrap();
        }
        let twice = [0, 1].map(|_| store.percentiles(&whole, &[50.0, 90.0]));
        assert_eq!(twice[0], twice[1]);
        let p50 = twice[0][0].1;
        assert!(p50.low.unwrap() <= p50.value && p50.value <= p50.high.unwrap());
    }
}
