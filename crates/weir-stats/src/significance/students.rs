//! The ratio of few runs, by Student's t of their logarithms.
//!
//! In: logarithms of figures, or what a run says of its own error. Out: the ratio with its interval and
//! how likely it is by chance. Resampling and ranks say nothing about fewer than four runs or six
//! rounds; these assume that logarithms are normal instead.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::estimate::Estimate;

/// A ratio, and how likely one so far from 1 is by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioTest {
    /// The ratio with its interval.
    pub ratio: Estimate,
    /// The two-sided probability.
    pub p: f64,
}

/// The mean of logarithms, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanOfLogarithms {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
}

impl MeanOfLogarithms {
    /// Of several; nothing for fewer than two.
    pub fn of(logarithms: &[f64]) -> Option<Self> {
        let count = logarithms.len() as f64;
        let freedom = count - 1.0;
        let mean = logarithms.iter().sum::<f64>() / count;
        let squares: f64 = logarithms.iter().map(|l| (l - mean).powi(2)).sum();
        (logarithms.len() > 1).then(|| Self {
            mean,
            error: (squares / freedom / count).sqrt(),
            freedom,
        })
    }
}

/// Distance by chance between the logarithms of two runs, as other runs show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunsApart {
    /// The variance of their difference.
    pub variance: f64,
    /// Its degrees of freedom.
    pub freedom: f64,
}

impl RunsApart {
    /// From the standard deviation of either side's runs, the fewer of which are so many. They may be
    /// the same runs, so that the freedom of one side alone counts.
    pub fn of(a: f64, b: f64, runs: u32) -> Option<Self> {
        (runs > 1).then(|| Self {
            variance: a.powi(2) + b.powi(2),
            freedom: f64::from(runs - 1),
        })
    }
}

/// The ratio of paired rounds, from the logarithm of each round's. Nothing for fewer than two.
pub fn paired_t(logarithms: &[f64], alpha: f64) -> Option<RatioTest> {
    let found = MeanOfLogarithms::of(logarithms)?;
    test(found.mean, found.error, found.freedom, alpha)
}

/// The ratio of b to a, after Welch: either has an error of its own.
pub fn welch(a: MeanOfLogarithms, b: MeanOfLogarithms, alpha: f64) -> Option<RatioTest> {
    of_variances(b.mean - a.mean, &[own(a), own(b)], alpha)
}

/// The same of one run each, which say how sure they are of themselves, while runs lie apart as
/// [`RunsApart`] says.
pub fn welch_of_runs(
    a: MeanOfLogarithms,
    b: MeanOfLogarithms,
    apart: RunsApart,
    alpha: f64,
) -> Option<RatioTest> {
    let between = (apart.variance, apart.freedom);
    of_variances(b.mean - a.mean, &[own(a), own(b), between], alpha)
}

/// Variance of a mean by itself, and its degrees of freedom.
fn own(mean: MeanOfLogarithms) -> (f64, f64) {
    (mean.error.powi(2), mean.freedom)
}

/// A difference whose variance is the sum of these, each with its degrees of freedom.
fn of_variances(difference: f64, parts: &[(f64, f64)], alpha: f64) -> Option<RatioTest> {
    let variance: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let freedom = if variance > 0.0 {
        let squares = parts.iter().map(|(part, freedom)| part.powi(2) / freedom);
        variance.powi(2) / squares.sum::<f64>()
    } else {
        parts.iter().map(|(_, freedom)| freedom).sum()
    };
    test(difference, variance.sqrt(), freedom, alpha)
}

fn test(mean: f64, error: f64, freedom: f64, alpha: f64) -> Option<RatioTest> {
    let students = StudentsT::new(0.0, 1.0, freedom).ok()?;
    if !mean.is_finite() || !error.is_finite() {
        return None;
    }
    let half = students.inverse_cdf(1.0 - alpha / 2.0) * error;
    // Without any error equal figures are equal, and any others differ.
    let apart = if mean == 0.0 {
        0.0
    } else {
        (mean / error).abs()
    };
    let p = 2.0 * students.cdf(-apart);
    let ratio = Estimate::within(mean.exp(), (mean - half).exp(), (mean + half).exp());
    Some(RatioTest { ratio, p })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-4, "{found} {expected}");
    }

    #[test]
    fn students_own_data_on_sleep_has_its_published_t() {
        // Student 1908, extra hours of sleep: paired t = −4.0621, 9 degrees, p 0.002833; the mean
        // of the differences is −1.58 with the interval −2.4599 to −0.7001.
        let differences = [-1.2, -2.4, -1.3, -1.3, 0.0, -1.0, -1.8, -0.8, -4.6, -1.4];
        let found = paired_t(&differences, 0.05).unwrap();
        near(found.p, 0.002_833);
        near(found.ratio.value.ln(), -1.58);
        near(found.ratio.low.unwrap().ln(), -2.459_886);
        near(found.ratio.high.unwrap().ln(), -0.700_114);
        // Welch: t = −1.8608, 17.776 degrees, p 0.07939, interval −3.3655 to 0.2055.
        let a = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let b = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let [a, b] = [a, b].map(|side| MeanOfLogarithms::of(&side).unwrap());
        let found = welch(b, a, 0.05).unwrap();
        near(found.p, 0.079_394);
        near(found.ratio.low.unwrap().ln(), -3.365_483);
        near(found.ratio.high.unwrap().ln(), 0.205_483);
    }

    #[test]
    fn what_differs_from_run_to_run_widens_the_interval_of_single_runs() {
        let run = |value: f64| MeanOfLogarithms {
            mean: value.ln(),
            error: 0.003,
            freedom: 8.0,
        };
        // Of five runs with the deviation 0.04: 2·0.003² + 2·0.04² is 0.003218, the freedom
        // 0.003218² / (2·(9e-6)²/8 + 0.0032²/4) = 4.045, and t(0.975) of that 2.7644.
        let apart = RunsApart::of(0.04, 0.04, 5).unwrap();
        let found = welch_of_runs(run(100.0), run(104.0), apart, 0.05).unwrap();
        let half = (found.ratio.high.unwrap() / found.ratio.low.unwrap()).ln() / 2.0;
        assert!(
            (half / 0.003_218_f64.sqrt() - 2.7644).abs() < 2e-3,
            "{half}"
        );
        assert!(found.p > 0.4, "{found:?}");
        let alone = welch(run(100.0), run(104.0), 0.05).unwrap();
        assert!(alone.p < 0.001, "{alone:?}");
        assert_eq!(RunsApart::of(0.04, 0.04, 1), None);
    }

    #[test]
    fn equal_figures_are_equal_for_sure() {
        let same = paired_t(&[0.0, 0.0, 0.0], 0.05).unwrap();
        assert_eq!(
            (same.ratio.low, same.ratio.high, same.p),
            (Some(1.0), Some(1.0), 1.0)
        );
        assert!(paired_t(&[0.1, 0.1], 0.05).unwrap().p < 1e-9);
        assert_eq!(paired_t(&[0.1], 0.05), None);
        assert_eq!(paired_t(&[f64::NAN, 1.0], 0.05), None);
    }
}
