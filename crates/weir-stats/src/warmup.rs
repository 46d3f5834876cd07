//! Was the run warm when measuring began? The first tenth against the remainder.
//!
//! In: operations per second of stretches of equal length, in order of time. Out: both means,
//! whether they differ by more than chance allows, and the ramp that would have been enough.
//! Chance is judged by how sure the mean of the remainder is (`series_mean`), so that a rate that
//! wanders slowly raises no alarm. A steady decline is such a rate, not a cold start.

use weir_units::Nanos;

use crate::estimate::NoInterval;
use crate::series_mean::{SeriesMean, fold, mean};

/// With fewer, a tenth is hardly one.
const LEAST: usize = 20;

/// The first tenth of a run against the remainder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmupTest {
    /// Mean of the first tenth.
    pub first_tenth: f64,
    /// Mean of the others.
    pub remainder: f64,
    /// By how much the two may differ by chance (95 %).
    pub allowed: f64,
    /// The ramp after which the rest of the run would have been steady; nothing if no ramp up
    /// to half the run would do.
    pub enough_ramp: Option<Nanos>,
}

impl WarmupTest {
    /// True if the two means differ by no more than chance allows.
    pub fn is_steady(&self) -> bool {
        (self.first_tenth - self.remainder).abs() <= self.allowed
    }
}

/// Compares the first tenth of the stretches, each `length` long, with the remainder; `rates` are
/// operations per second.
///
/// # Errors
/// With fewer than 20 stretches.
pub fn test(rates: &[f64], length: Nanos) -> Result<WarmupTest, NoInterval> {
    if rates.len() < LEAST {
        return Err(NoInterval::ShortRun);
    }
    let (rates, each) = fold(rates);
    let length = length.saturating_mul(each as u64);
    let mut result = compare(&rates, length)?;
    for dropped in 0..=rates.len() / 2 {
        // Less than this cannot be judged any more.
        let Ok(rest) = compare(&rates[dropped..], length) else {
            break;
        };
        if rest.is_steady() {
            result.enough_ramp = Some(length.saturating_mul(dropped as u64));
            break;
        }
    }
    Ok(result)
}

fn compare(rates: &[f64], length: Nanos) -> Result<WarmupTest, NoInterval> {
    let (first, rest) = rates.split_at(rates.len() / 10);
    let remainder = SeriesMean::of(rest)?;
    // The error of a mean shrinks with the root of how long it is taken over.
    let widening = (rest.len() as f64 / first.len() as f64 + 1.0).sqrt();
    // One operation more or less falls into the first tenth by chance of where it ends.
    let grain = 1.0 / (first.len() as f64 * length.as_secs_f64());
    Ok(WarmupTest {
        first_tenth: mean(first),
        remainder: remainder.mean,
        allowed: remainder.half_width * widening + grain,
        enough_ramp: None,
    })
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
    fn the_ramp_of_a_long_run_counts_in_its_own_time() {
        // 300 intervals are judged as 75 of four; the start is 8 of them.
        let mut rates = run(300.0, 8);
        (0..4).for_each(|_| rates.extend(run(0.0, 0)));
        let cold = test(&rates, Nanos::from_millis(100)).unwrap();
        assert!(!cold.is_steady());
        assert_eq!(cold.enough_ramp, Some(Nanos::from_millis(800)));
    }

    #[test]
    fn a_steady_decline_is_slow_and_no_cold_start() {
        let decline: Vec<f64> = (0..60).map(|i| 1000.0 - 10.0 * f64::from(i)).collect();
        assert!(test(&decline, Nanos::from_millis(100)).unwrap().is_steady());
        assert_eq!(test(&[1.0; 19], Nanos::SECOND), Err(NoInterval::ShortRun));
    }
}
