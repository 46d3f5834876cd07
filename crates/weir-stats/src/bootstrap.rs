//! How sure a percentile is: the batches' histograms are drawn again and again with
//! replacement, and the percentile of each drawing is taken.
//!
//! In: the merged histogram and those of the batches. Out: the percentile with an interval
//! whose ends are the outer edges of the buckets they fall in, within minimum and maximum.
//! Cumulative counts over the buckets that are used are laid out once, so that one percentile
//! of one drawing is a binary search of short dot products.

use crate::bucket::{high_of, index_of, low_of};
use crate::estimate::{Estimate, LEAST_BATCHES, MOST_CORRELATION, NoInterval, lag1, t95};
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
    /// Cumulative counts of the batches, for batches as they are, joined in pairs, in fours …
    levels: Vec<Cumulative>,
}

/// For each used bucket, each batch's count up to and including it.
struct Cumulative {
    batches: usize,
    /// Bucket by bucket, a row of batches each.
    counts: Vec<u64>,
}

impl Cumulative {
    fn new(used: &[usize], histograms: &[&Histogram]) -> Self {
        let batches = histograms.len();
        let mut counts = vec![0; used.len() * batches];
        for (batch, histogram) in histograms.iter().enumerate() {
            let mut reached = 0;
            let mut own = histogram.indexed().peekable();
            for (row, index) in used.iter().enumerate() {
                if let Some((_, count)) = own.next_if(|(i, _)| i == index) {
                    reached += count;
                }
                counts[row * batches + batch] = reached;
            }
        }
        Self { batches, counts }
    }

    fn joined(&self) -> Self {
        let rows = self.counts.chunks_exact(self.batches.max(1));
        let pairs = rows.flat_map(|row| row.chunks_exact(2).map(|pair| pair[0] + pair[1]));
        Self {
            counts: pairs.collect(),
            batches: self.batches / 2,
        }
    }

    fn row(&self, row: usize) -> &[u64] {
        &self.counts[row * self.batches..][..self.batches]
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

    fn rows(&self) -> usize {
        self.counts.len() / self.batches.max(1)
    }
}

impl<'a> Resampler<'a> {
    pub(crate) fn new(whole: &'a Histogram, histograms: &[&Histogram]) -> Self {
        let mut used: Vec<usize> = histograms
            .iter()
            .flat_map(|h| h.indexed())
            .map(|(i, _)| i)
            .collect();
        used.sort_unstable();
        used.dedup();
        let mut levels = vec![Cumulative::new(&used, histograms)];
        while let Some(last) = levels.last()
            && last.batches >= 2 * LEAST_BATCHES
        {
            levels.push(last.joined());
        }
        Self {
            whole,
            used,
            levels,
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
        let level = self.independent(value)?;
        let (first, last) = self.resample(level, p);
        let bits = self.whole.bits();
        let (low, high) = (low_of(bits, first) as f64, high_of(bits, last) as f64);
        let k = level.batches as f64;
        let widen = t95(k - 1.0) * (k / (k - 1.0)).sqrt() / 1.96;
        let middle = value as f64;
        let edges = self.whole.percentile_edges(p).unwrap_or((value, value));
        let low = (middle - widen * (middle - low)).min(edges.0 as f64);
        let high = (middle + widen * (high - middle)).max(edges.1 as f64);
        let min = self.whole.min().unwrap_or(value) as f64;
        let max = self.whole.max().unwrap_or(value) as f64;
        Ok((low.clamp(min, max), high.clamp(min, max)))
    }

    /// The shortest batches whose shares of values up to `value` do not correlate: what makes
    /// a percentile vary is this share.
    fn independent(&self, value: u64) -> Result<&Cumulative, NoInterval> {
        let index = index_of(self.whole.bits(), value);
        let rows = self.used.partition_point(|used| *used <= index);
        for level in &self.levels {
            if level.batches < LEAST_BATCHES {
                return Err(NoInterval::ShortRun);
            }
            if level.rows() == 0 || rows == 0 {
                return Err(NoInterval::FewSamples);
            }
            let totals = level.row(level.rows() - 1).iter();
            let reached = level.row(rows - 1).iter();
            let shares: Vec<f64> = reached
                .zip(totals)
                .filter(|(_, total)| **total > 0)
                .map(|(reached, total)| *reached as f64 / *total as f64)
                .collect();
            if lag1(&shares) <= MOST_CORRELATION {
                return Ok(level);
            }
        }
        Err(NoInterval::Correlated)
    }

    /// Bucket indices at the 2.5 % and 97.5 % ends of the drawings.
    fn resample(&self, level: &Cumulative, p: f64) -> (usize, usize) {
        let mut random = Random::new(SEED);
        let mut weights = vec![0_u64; level.batches];
        let mut found = Vec::with_capacity(RESAMPLES);
        let rows = level.rows();
        for _ in 0..RESAMPLES {
            weights.fill(0);
            for _ in 0..level.batches {
                weights[random.below(level.batches)] += 1;
            }
            let total = level.weighted(rows - 1, &weights);
            if let Some(rank) = rank(p, total) {
                found.push(first_row(rows, |row| level.weighted(row, &weights) >= rank));
            }
        }
        found.sort_unstable();
        let tail = found.len() / 40;
        let row_at = |at: usize| found.get(at).map_or(0, |row| self.used[*row]);
        (
            row_at(tail.saturating_sub(1)),
            row_at(found.len() - tail.max(1)),
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
