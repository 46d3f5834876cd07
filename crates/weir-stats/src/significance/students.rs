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

/// The ratio of paired rounds, from the logarithm of each round's. Nothing for fewer than two.
pub fn paired_t(logarithms: &[f64], alpha: f64) -> Option<RatioTest> {
    let found = MeanOfLogarithms::of(logarithms)?;
    test(found.mean, found.error, found.freedom, alpha)
}

/// The ratio of b to a, after Welch: either has an error of its own.
pub fn welch(a: MeanOfLogarithms, b: MeanOfLogarithms, alpha: f64) -> Option<RatioTest> {
    let (of_a, of_b) = (a.error.powi(2), b.error.powi(2));
    let variance = of_a + of_b;
    let freedom = if variance > 0.0 {
        variance.powi(2) / (of_a.powi(2) / a.freedom + of_b.powi(2) / b.freedom)
    } else {
        a.freedom + b.freedom
    };
    test(b.mean - a.mean, variance.sqrt(), freedom, alpha)
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
