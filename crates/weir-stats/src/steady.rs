//! Was the run warm when measuring began? The first tenth against the remainder.
//!
//! In: one rate per batch of equal length, in order of time. Out: both means, whether they
//! differ by more than chance allows, and the ramp that would have been enough.

use weir_units::Nanos;

use crate::estimate::{LEAST_BATCHES, NoInterval, about_mean, lag1, t95};

/// The first tenth of a run against the remainder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Mean of the first tenth of the batches.
    pub first_tenth: f64,
    /// Mean of the others.
    pub remainder: f64,
    /// By how much the two may differ by chance (95 %), from how the remainder varies.
    pub allowed: f64,
    /// The ramp after which the rest of the run would have been steady; nothing if no ramp up
    /// to half the run would do.
    pub enough_ramp: Option<Nanos>,
}

impl Steadiness {
    /// Whether the two means differ by no more than chance allows.
    pub fn is_steady(&self) -> bool {
        (self.first_tenth - self.remainder).abs() <= self.allowed
    }
}

/// Compares the first tenth of the batches, each `length` long, with the remainder.
pub fn test(rates: &[f64], length: Nanos) -> Result<Steadiness, NoInterval> {
    if rates.len() < LEAST_BATCHES {
        return Err(NoInterval::ShortRun);
    }
    let mut result = compare(rates);
    let half = rates.len() / 2;
    result.enough_ramp = (0..=half)
        .find(|dropped| compare(&rates[*dropped..]).is_steady())
        .map(|dropped| length.saturating_mul(dropped as u64));
    Ok(result)
}

/// At least ten batches are needed, so that both parts have some.
fn compare(rates: &[f64]) -> Steadiness {
    let (first, rest) = rates.split_at(rates.len() / 10);
    let (first_tenth, _) = about_mean(first);
    let (remainder, squares) = about_mean(rest);
    let (n, m) = (first.len() as f64, rest.len() as f64);
    // Batches that depend on each other are worth fewer independent ones.
    let correlation = lag1(rest).clamp(0.0, 0.9);
    let worth = (1.0 - correlation) / (1.0 + correlation);
    let variance = squares / (m - 1.0) * (1.0 / n + 1.0 / m) / worth;
    let freedom = (m * worth - 1.0).max(1.0);
    Steadiness {
        first_tenth,
        remainder,
        allowed: variance.sqrt() * t95(freedom),
        enough_ramp: None,
    }
}
