//! Was the run warm when measuring began? The first tenth against the remainder.
//!
//! In: operations per second of each batch of equal length, in order of time. Out: both means,
//! whether they differ by more than chance allows, and the ramp that would have been enough.
//! Chance is judged by how the remainder scatters about its own trend: a steady decline is a
//! difference, not chance.

use weir_units::Nanos;

use crate::estimate::{LEAST_BATCHES, NoInterval, about_mean, lag1, t95};

/// The first tenth of a run against the remainder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmupTest {
    /// Mean of the first tenth of the batches.
    pub first_tenth: f64,
    /// Mean of the others.
    pub remainder: f64,
    /// By how much the two may differ by chance (95 %), from how the remainder scatters.
    pub allowed: f64,
    /// The ramp after which the rest of the run would have been steady; nothing if no ramp up
    /// to half the run would do.
    pub enough_ramp: Option<Nanos>,
}

impl WarmupTest {
    /// Whether the two means differ by no more than chance allows.
    pub fn is_steady(&self) -> bool {
        (self.first_tenth - self.remainder).abs() <= self.allowed
    }
}

/// Compares the first tenth of the batches, each `length` long, with the remainder; `rates` are
/// operations per second.
///
/// # Errors
/// With fewer than 20 batches.
pub fn test(rates: &[f64], length: Nanos) -> Result<WarmupTest, NoInterval> {
    if rates.len() < LEAST_BATCHES {
        return Err(NoInterval::ShortRun);
    }
    let mut result = compare(rates, length);
    let half = rates.len() / 2;
    result.enough_ramp = (0..=half)
        .find(|dropped| compare(&rates[*dropped..], length).is_steady())
        .map(|dropped| length.saturating_mul(dropped as u64));
    Ok(result)
}

/// At least ten batches are needed, so that both parts have some.
fn compare(rates: &[f64], length: Nanos) -> WarmupTest {
    let (first, rest) = rates.split_at(rates.len() / 10);
    let (first_tenth, _) = about_mean(first);
    let (remainder, _) = about_mean(rest);
    let (n, m) = (first.len() as f64, rest.len() as f64);
    let scatter = about_line(rest);
    // Batches that depend on each other are worth fewer independent ones.
    let correlation = lag1(&scatter).clamp(0.0, 0.9);
    let worth = (1.0 - correlation) / (1.0 + correlation);
    let squares: f64 = scatter.iter().map(|s| s * s).sum();
    let variance = squares / (m - 2.0) * (1.0 / n + 1.0 / m) / worth;
    let freedom = (m * worth - 2.0).max(1.0);
    // One operation more or less falls into the first tenth by chance of where it ends.
    let grain = 1.0 / (n * length.as_secs_f64());
    WarmupTest {
        first_tenth,
        remainder,
        allowed: variance.sqrt() * t95(freedom) + grain,
        enough_ramp: None,
    }
}

/// What is left of the values after the straight line that fits them best.
fn about_line(values: &[f64]) -> Vec<f64> {
    let (mean, _) = about_mean(values);
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let places = || (0..values.len()).map(|i| i as f64 - middle);
    let along: f64 = places()
        .zip(values)
        .map(|(place, v)| place * (v - mean))
        .sum();
    let slope = along / places().map(|place| place * place).sum::<f64>();
    let rest = places()
        .zip(values)
        .map(|(place, v)| v - mean - slope * place);
    rest.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 with a small deterministic jitter, lower by `cold` for the first `batches`.
    fn run(cold: f64, batches: u32) -> Vec<f64> {
        let jitter = |i: u32| f64::from(i * 7 % 11) - 5.0;
        (0..60)
            .map(|i| 1000.0 + jitter(i) - if i < batches { cold } else { 0.0 })
            .collect()
    }

    #[test]
    fn a_steady_run_needs_no_ramp() {
        let steady = test(&run(0.0, 0), Nanos::from_millis(100)).unwrap();
        assert!(steady.is_steady());
        assert_eq!(steady.enough_ramp, Some(Nanos::ZERO));
        let constant = test(&[5.0; 20], Nanos::from_millis(100)).unwrap();
        assert!(constant.is_steady());
    }

    #[test]
    fn a_cold_start_is_found_with_the_ramp_that_would_do() {
        let cold = test(&run(300.0, 4), Nanos::from_millis(100)).unwrap();
        assert!(!cold.is_steady());
        assert!(cold.first_tenth < cold.remainder);
        assert_eq!(cold.enough_ramp, Some(Nanos::from_millis(400)));
    }

    #[test]
    fn a_steady_decline_has_no_ramp_that_would_do() {
        let decline: Vec<f64> = (0..60).map(|i| 1000.0 - 10.0 * f64::from(i)).collect();
        let result = test(&decline, Nanos::from_millis(100)).unwrap();
        assert!(!result.is_steady());
        assert_eq!(result.enough_ramp, None);
        assert_eq!(test(&[1.0; 19], Nanos::SECOND), Err(NoInterval::ShortRun));
    }
}
