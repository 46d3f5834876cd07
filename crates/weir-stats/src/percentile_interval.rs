//! Interval of a percentile, from the error of the share of values up to it.
//!
//! In: the merged histogram and those of the batches. Out: the percentile with an interval whose
//! ends are edges of buckets, within minimum and maximum.
//!
//! Per batch, the count up to the percentile's bucket is held against what the share of the whole
//! makes of the batch's count; the mean of these differences is sure within ± h, and the interval
//! goes from the percentile at p − h to that at p + h. The few values beyond a high percentile show
//! too faintly how batches depend on each other. Tails follow the mean, so that the dependence of
//! the batches' means counts as well: h is at least as many plain standard errors.

use crate::bucket::index_of;
use crate::estimate::{Estimate, NoInterval};
use crate::histogram::Histogram;
use crate::series_mean::{SeriesMean, mean, plain_variance};

/// Everything that the percentiles of one run share.
pub(crate) struct PercentileIntervals<'a> {
    whole: &'a Histogram,
    batches: Vec<&'a Histogram>,
    /// Values per batch, on average.
    per_batch: f64,
    /// Half the width of the mean's interval, in plain standard errors.
    widening: Result<f64, NoInterval>,
}

impl<'a> PercentileIntervals<'a> {
    /// `usable` says whether the batches' values are those of their time.
    pub(crate) fn new(
        whole: &'a Histogram,
        batches: Vec<&'a Histogram>,
        usable: Result<(), NoInterval>,
    ) -> Self {
        let counts: Vec<f64> = batches.iter().map(|b| b.count() as f64).collect();
        let per_batch = if counts.is_empty() {
            0.0
        } else {
            mean(&counts)
        };
        let latencies = excess(whole.mean().unwrap_or(0.0), &batches, per_batch);
        let latencies_mean = SeriesMean::of(&latencies).and_then(|mean| usable.map(|()| mean));
        let widening = latencies_mean.map(|mean| {
            let plain = plain_variance(&latencies).sqrt();
            if plain > 0.0 {
                mean.half_width / plain
            } else {
                0.0
            }
        });
        Self {
            whole,
            batches,
            per_batch,
            widening,
        }
    }

    /// The p-th percentile of the whole, with its interval or the reason why there is none.
    pub(crate) fn percentile(&self, p: f64) -> Option<Estimate> {
        let value = self.whole.percentile(p)?;
        Some(match self.share_error(value) {
            Ok(half) => {
                let edges = |p: f64| self.whole.percentile_edges(p.clamp(0.0, 100.0));
                let (low, _) = edges(p - 100.0 * half)?;
                let (_, high) = edges(p + 100.0 * half)?;
                Estimate::within(value as f64, low as f64, high as f64)
            }
            Err(absent) => Estimate::without(value as f64, absent),
        })
    }

    /// By how much the share of values up to this one may be off.
    fn share_error(&self, value: u64) -> Result<f64, NoInterval> {
        let widening = self.widening?;
        if self.per_batch <= 0.0 {
            return Err(NoInterval::ShortRun);
        }
        let last = index_of(self.whole.bits(), value);
        let up_to = |histogram: &Histogram| histogram.count_up_to(last) as f64;
        let share = up_to(self.whole) / self.whole.count() as f64;
        let of_batch = |b: &&Histogram| (up_to(b) - share * b.count() as f64) / self.per_batch;
        let shares: Vec<f64> = self.batches.iter().map(of_batch).collect();
        let half = SeriesMean::of(&shares)?.half_width;
        Ok(half.max(widening * plain_variance(&shares).sqrt()))
    }
}

/// Excess of each batch over the mean, per value of an average batch: the mean of a ratio of two
/// sums errs like the mean of these.
pub(crate) fn excess(mean: f64, batches: &[&Histogram], per_batch: f64) -> Vec<f64> {
    let of = |h: &&Histogram| (h.sum() as f64 - mean * h.count() as f64) / per_batch.max(1.0);
    batches.iter().map(of).collect()
}
