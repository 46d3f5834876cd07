//! Mean of a series and its interval, from within the series: neighbours that resemble each other
//! carry less information than their number suggests.
//!
//! In: one value per stretch of equal length, in order of time. Out: the mean and half the width
//! of its 95 % interval. Not here: forming the stretches (`batch`), percentiles
//! (`percentile_interval`).
//!
//! The variance of a mean is the power of the series at its lowest frequencies. It is estimated
//! twice, and the larger one counts: from the lowest six cosine coefficients of the series
//! itself, and from the lowest eight of what is left of it without each value's correlation with
//! the one before, extrapolated with that correlation. The first suits any course but looks no
//! further than the run; the second sees beyond it, if one step of memory explains the series.

use std::f64::consts::PI;
use std::sync::LazyLock;

use crate::estimate::{NoInterval, t95};

/// Fewer stretches than this give no interval.
const LEAST: usize = 10;
/// More values than this are joined in pairs, as often as it takes.
pub(crate) const MOST: usize = 80;
/// The extrapolation divides by one less the correlation.
const MOST_CORRELATION: f64 = 0.97;
/// Cosine coefficients that the variance is taken from: of the differences, and of the values.
const COEFFICIENTS: [u32; 2] = [8, 6];
/// Student's t with as many degrees of freedom.
static T: LazyLock<[f64; 2]> = LazyLock::new(|| COEFFICIENTS.map(|n| t95(f64::from(n))));

/// The mean of a series, with how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesMean {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % interval.
    pub half_width: f64,
    /// The correlation of each value with the one before, 0 to 0.97.
    pub correlation: f64,
    /// Values that it was judged by, 10 to 80.
    pub count: usize,
}

impl SeriesMean {
    /// From one value per stretch of equal length, in order of time.
    ///
    /// # Errors
    /// With fewer than 10 values.
    pub fn of(values: &[f64]) -> Result<Self, NoInterval> {
        if values.len() < LEAST {
            return Err(NoInterval::ShortRun);
        }
        let (values, _) = fold(values);
        let mean = mean(&values);
        let off: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let correlation = correlation(&off);
        let steps: Vec<f64> = off.windows(2).map(|w| w[1] - correlation * w[0]).collect();
        let power = [
            low_power(&steps, COEFFICIENTS[0]) / (1.0 - correlation).powi(2),
            low_power(&off, COEFFICIENTS[1]),
        ];
        let half = |i: usize| T[i] * (power[i] / values.len() as f64).sqrt();
        Ok(Self {
            mean,
            half_width: half(0).max(half(1)),
            correlation,
            count: values.len(),
        })
    }

    /// True if the series changes so slowly that it is worth less than about 20 of its memories:
    /// the interval holds for this run, and says little about another one.
    pub fn is_slow(&self) -> bool {
        self.correlation > (-20.0 / self.count as f64).exp()
    }
}

/// At most 80 means of 1, 2, 4 … neighbours each, and of how many; values that fill none are left
/// out.
pub(crate) fn fold(values: &[f64]) -> (Vec<f64>, usize) {
    let mut each = 1;
    while values.len() / each > MOST {
        each *= 2;
    }
    (values.chunks_exact(each).map(mean).collect(), each)
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The correlation of each deviation with the one before. A short series shows less of it than
/// there is, hence what is added.
fn correlation(off: &[f64]) -> f64 {
    let squares: f64 = off.iter().map(|d| d * d).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let products: f64 = off.windows(2).map(|w| w[0] * w[1]).sum();
    let shown = products / squares;
    (shown + (1.0 + 3.0 * shown) / off.len() as f64).clamp(0.0, MOST_CORRELATION)
}

/// The mean square of the lowest cosine coefficients.
fn low_power(values: &[f64], coefficients: u32) -> f64 {
    let count = values.len() as f64;
    let square = |number: u32| {
        let step = PI * f64::from(number) / count;
        // Each cosine from the two before it; what that loses in 80 steps is nothing.
        let (mut last, mut cosine) = ((step / 2.0).cos(), (step / 2.0).cos());
        let twice = 2.0 * step.cos();
        let mut sum = 0.0;
        for value in values {
            sum += value * cosine;
            (last, cosine) = (cosine, twice * cosine - last);
        }
        2.0 / count * sum * sum
    };
    (1..=coefficients).map(square).sum::<f64>() / f64::from(coefficients)
}

/// The square of the standard error that the mean of these would have if they were independent.
pub(crate) fn plain_variance(values: &[f64]) -> f64 {
    let (mean, count) = (mean(values), values.len() as f64);
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    squares / (count - 1.0) / count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of an independent implementation: values, mean, half width, correlation, count.
    fn figures() -> Vec<(Vec<f64>, f64, f64, f64, usize)> {
        let of = |count: u32, f: &dyn Fn(u32) -> u32| (0..count).map(|i| f64::from(f(i))).collect();
        vec![
            (
                of(20, &|i| 1 + i % 2),
                1.5,
                0.066_421_960_960_783_15,
                0.0,
                20,
            ),
            (
                of(50, &|i| i * i % 17),
                8.14,
                3.185_537_697_530_819,
                0.337_808_639_587_362_85,
                50,
            ),
            (
                of(200, &|i| i / 10 % 3 * 5 + i * 7 % 11),
                9.735,
                0.777_208_118_826_069_4,
                0.384_738_079_061_973_55,
                50,
            ),
            (of(40, &|i| i), 19.5, 11.527_320_760_206_342, 0.97, 40),
            (
                of(10, &|i| i * 3 % 7),
                3.0,
                1.688_044_898_091_164_4,
                0.0,
                10,
            ),
            (
                of(1000, &|i| i * i / 50 % 97),
                46.659_274_193_548_384,
                5.354_343_196_559_994,
                0.388_089_484_200_171_25,
                62,
            ),
            (
                of(83, &|i| i / 8 % 2 * 9 + i % 3),
                5.378_048_780_487_805,
                0.985_743_665_843_495_4,
                0.552_059_875_774_198_2,
                41,
            ),
        ]
    }

    #[test]
    fn means_and_half_widths_are_those_of_an_independent_implementation() {
        for (values, mean, half, correlation, count) in figures() {
            let found = SeriesMean::of(&values).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-7 * b.abs();
            assert!(near(found.mean, mean), "{found:?} {mean}");
            assert!(near(found.half_width, half), "{found:?} {half}");
            assert!(
                near(found.correlation, correlation),
                "{found:?} {correlation}"
            );
            assert_eq!(found.count, count);
        }
    }

    #[test]
    fn nine_values_are_too_few_and_ten_are_not() {
        assert_eq!(SeriesMean::of(&[1.0; 9]), Err(NoInterval::ShortRun));
        let constant = SeriesMean::of(&[1.0; 10]).unwrap();
        assert!(constant.half_width.abs() < 1e-12 && !constant.is_slow());
    }

    #[test]
    fn a_course_in_one_direction_is_slow_and_noise_is_not() {
        let decline: Vec<f64> = (0..60).map(|i| 1000.0 - 10.0 * f64::from(i)).collect();
        assert!(SeriesMean::of(&decline).unwrap().is_slow());
        let jitter: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 11)).collect();
        assert!(!SeriesMean::of(&jitter).unwrap().is_slow());
    }
}
