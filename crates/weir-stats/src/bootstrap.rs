//! How sure a percentile is: the batches' histograms are drawn again and again with
//! replacement, and the percentile of each drawing is taken.
//!
//! In: the merged histogram and those of the batches. Out: the percentile with an interval
//! whose ends are the outer edges of the buckets they fall in, within minimum and maximum.
//! Few batches, and batches that depend on each other, widen the distance of the ends from the
//! value: by t(k/f − 1) · √(f · k / (k − 1)) / 1.96 for k batches whose dependence enlarges the
//! variance f-fold. What varies a percentile is the share of values up to it; its dependence
//! counts (and can mark the result), and so does that of the batches' means, because the few
//! values beyond a high percentile show a dependence too faintly.
//!
//! Cumulative counts over the buckets that are used are laid out once, so that one percentile
//! of one drawing is a binary search of short dot products.

use crate::bucket::{high_of, index_of, low_of};
use crate::estimate::{Dependence, Estimate, NoInterval, t95};
use crate::histogram::Histogram;
use crate::percentile::rank;
use crate::random::Random;

const RESAMPLES: usize = 1000;
const SEED: u64 = 0x5EED;

/// Everything that the percentiles of one run share.
pub(crate) struct Resampler<'a> {
    whole: &'a Histogram,
    /// Indices of the buckets that any batch uses.
    used: Vec<usize>,
    batches: usize,
    /// For each used bucket, a row of each batch's count up to and including it.
    cumulative: Vec<u64>,
    /// Of the batches' means.
    dependence: Result<Dependence, NoInterval>,
}

impl<'a> Resampler<'a> {
    pub(crate) fn new(whole: &'a Histogram, batches: &[&Histogram]) -> Self {
        let indices = batches.iter().flat_map(|batch| batch.indexed());
        let mut used: Vec<usize> = indices.map(|(index, _)| index).collect();
        used.sort_unstable();
        used.dedup();
        let mut cumulative = vec![0; used.len() * batches.len()];
        for (column, batch) in batches.iter().enumerate() {
            let mut reached = 0;
            let mut own = batch.indexed().peekable();
            for (row, index) in used.iter().enumerate() {
                if let Some((_, count)) = own.next_if(|(i, _)| i == index) {
                    reached += count;
                }
                cumulative[row * batches.len() + column] = reached;
            }
        }
        let means: Vec<f64> = batches.iter().filter_map(|batch| batch.mean()).collect();
        Self {
            whole,
            used,
            batches: batches.len(),
            cumulative,
            dependence: Dependence::of(&means),
        }
    }

    /// The p-th percentile of the whole, with its interval or the reason why there is none.
    pub(crate) fn percentile(&self, p: f64) -> Option<Estimate> {
        let value = self.whole.percentile(p)?;
        Some(match self.interval(p, value) {
            Ok((low, high)) => Estimate::within(value as f64, low, high),
            Err(absent) => Estimate::without(value as f64, absent),
        })
    }

    fn interval(&self, p: f64, value: u64) -> Result<(f64, f64), NoInterval> {
        if self.whole.few_samples(p) {
            return Err(NoInterval::FewSamples);
        }
        let dependence = self.dependence_of_shares(value)?.or(self.dependence?);
        let (first, last) = self.resample(p);
        let bits = self.whole.bits();
        let k = self.batches as f64;
        let widen = t95(dependence.freedom(self.batches))
            * (dependence.inflation * k / (k - 1.0)).sqrt()
            / 1.96;
        let middle = value as f64;
        let (min, max) = (self.whole.min(), self.whole.max());
        let ends = [low_of(bits, first), high_of(bits, last)].map(|end| {
            let widened = middle + widen * (end as f64 - middle);
            widened.clamp(min.unwrap_or(value) as f64, max.unwrap_or(value) as f64)
        });
        // The drawings may all lie on one side of a whole that has more than its batches.
        let (low, high) = self.whole.percentile_edges(p).unwrap_or((value, value));
        Ok((ends[0].min(low as f64), ends[1].max(high as f64)))
    }

    /// Of the batches' shares of values up to `value`.
    fn dependence_of_shares(&self, value: u64) -> Result<Dependence, NoInterval> {
        let index = index_of(self.whole.bits(), value);
        let rows = self.used.partition_point(|used| *used <= index);
        if rows == 0 {
            return Err(NoInterval::ShortRun);
        }
        let totals = self.row(self.used.len() - 1).iter();
        let parts = self.row(rows - 1).iter().zip(totals);
        let shares = parts.filter(|(_, total)| **total > 0);
        let shares: Vec<f64> = shares
            .map(|(part, total)| *part as f64 / *total as f64)
            .collect();
        Dependence::of(&shares)
    }

    fn row(&self, row: usize) -> &[u64] {
        &self.cumulative[row * self.batches..][..self.batches]
    }

    /// How many values up to and including the row's bucket a drawing has. Wraps rather than
    /// panics for counts that no run can reach.
    fn weighted(&self, row: usize, weights: &[u64]) -> u64 {
        let products = self
            .row(row)
            .iter()
            .zip(weights)
            .map(|(c, w)| c.wrapping_mul(*w));
        products.fold(0, u64::wrapping_add)
    }

    /// Bucket indices at the 2.5 % and 97.5 % ends of the drawings.
    fn resample(&self, p: f64) -> (usize, usize) {
        let mut random = Random::new(SEED);
        let mut weights = vec![0_u64; self.batches];
        let mut found = Vec::with_capacity(RESAMPLES);
        let rows = self.used.len();
        for _ in 0..RESAMPLES {
            weights.fill(0);
            for _ in 0..self.batches {
                weights[random.below(self.batches)] += 1;
            }
            let total = self.weighted(rows - 1, &weights);
            if let Some(rank) = rank(p, total) {
                found.push(first_row(rows, |row| self.weighted(row, &weights) >= rank));
            }
        }
        found.sort_unstable();
        let tail = found.len() / 40;
        let row_at = |at: usize| found.get(at).map_or(0, |row| self.used[*row]);
        (
            row_at(tail.saturating_sub(1)),
            row_at(found.len().saturating_sub(tail.max(1))),
        )
    }
}

/// The first row that satisfies a condition which, once true, stays true.
fn first_row(rows: usize, reached: impl Fn(usize) -> bool) -> usize {
    let (mut below, mut at) = (0, rows - 1);
    while below < at {
        let middle = usize::midpoint(below, at);
        if reached(middle) {
            at = middle;
        } else {
            below = middle + 1;
        }
    }
    at
}
