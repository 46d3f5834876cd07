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
use crate::steady::{self, Steadiness};

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
        let operations: u64 = self.batches.iter().map(|b| b.operations).sum();
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
    pub fn steadiness(&self) -> Result<Steadiness, NoInterval> {
        steady::test(&self.rates(|batch| batch.operations), self.length())
    }
}
