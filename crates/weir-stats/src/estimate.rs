//! A figure with its 95 % interval, or the reason why there is none.
//!
//! In: one value per batch of equal length. Out: the mean with Student's t interval, if the
//! batches are many enough and do not depend on each other. Not here: forming the batches
//! (`batch`), percentiles (`bootstrap`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewer batches than this give no interval.
pub(crate) const LEAST_BATCHES: usize = 20;
/// Neighbouring batches that correlate more than this are joined, or the result is marked.
pub(crate) const MOST_CORRELATION: f64 = 0.2;

/// A figure and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Why there is no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<NoInterval>,
}

/// Why a figure has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoInterval {
    /// Fewer than 20 batches: the run was too short.
    ShortRun,
    /// Neighbouring batches depend on each other, however long: the run was too short for how
    /// slowly the target changes.
    Correlated,
    /// Fewer than 10 samples lie beyond the percentile.
    FewSamples,
}

impl Estimate {
    /// A figure with an interval.
    pub fn within(value: f64, low: f64, high: f64) -> Self {
        Self {
            value,
            low: Some(low),
            high: Some(high),
            absent: None,
        }
    }

    /// A figure without one.
    pub fn without(value: f64, absent: NoInterval) -> Self {
        Self {
            value,
            low: None,
            high: None,
            absent: Some(absent),
        }
    }

    /// Half the interval's width: what `±` prints.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

/// The mean of batches with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanError {
    /// Mean over the batches.
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
    /// Degrees of freedom of the standard error.
    pub freedom: f64,
}

impl MeanError {
    /// From one value per batch of equal length, in order of time; batches that correlate are
    /// joined in pairs while at least 20 remain.
    pub fn of_batches(values: &[f64]) -> Result<Self, NoInterval> {
        let joined = decorrelate(values)?;
        let n = joined.len() as f64;
        let (mean, squares) = about_mean(&joined);
        Ok(Self {
            mean,
            error: (squares / (n - 1.0) / n).sqrt(),
            freedom: n - 1.0,
        })
    }

    /// Half the width of the 95 % interval.
    pub fn half_width(&self) -> f64 {
        self.error * t95(self.freedom)
    }
}

/// Joins neighbours in pairs until the batches no longer correlate.
fn decorrelate(values: &[f64]) -> Result<Vec<f64>, NoInterval> {
    let mut values = values.to_vec();
    loop {
        if values.len() < LEAST_BATCHES {
            return Err(NoInterval::ShortRun);
        }
        if lag1(&values) <= MOST_CORRELATION {
            return Ok(values);
        }
        if values.len() < 2 * LEAST_BATCHES {
            return Err(NoInterval::Correlated);
        }
        values = values
            .chunks_exact(2)
            .map(|pair| f64::midpoint(pair[0], pair[1]))
            .collect();
    }
}

/// Mean, and sum of squares about it.
pub(crate) fn about_mean(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|v| (v - mean) * (v - mean)).sum())
}

/// Correlation of each value with the next; 0 where nothing varies.
pub(crate) fn lag1(values: &[f64]) -> f64 {
    let (mean, squares) = about_mean(values);
    let products: f64 = values
        .windows(2)
        .map(|w| (w[0] - mean) * (w[1] - mean))
        .sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}

/// How many standard errors reach to either side of a 95 % interval.
pub(crate) fn t95(freedom: f64) -> f64 {
    // Without a degree of freedom nothing is known.
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_agrees_with_the_published_table() {
        for (freedom, t) in [
            (1.0, 12.706),
            (9.0, 2.262),
            (19.0, 2.093),
            (39.0, 2.023),
            (79.0, 1.990),
        ] {
            assert!(
                (t95(freedom) - t).abs() < 5e-4,
                "{freedom}: {}",
                t95(freedom)
            );
        }
        assert!(t95(0.0).is_infinite());
    }

    #[test]
    fn the_lag_one_correlation_is_as_by_hand() {
        // Deviations −1.5 −0.5 0.5 1.5: products 0.75 − 0.25 + 0.75 over squares 5.
        assert!((lag1(&[1.0, 2.0, 3.0, 4.0]) - 0.25).abs() < 1e-12);
        assert!(lag1(&[7.0; 30]).abs() < 1e-12);
    }
}
