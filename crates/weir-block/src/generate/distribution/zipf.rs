//! zipf:θ — the rank r is wanted about r^−θ as often as the first.
//!
//! In: n and θ (positive, not 1). Out: block indices. With u uniform in [0, 1):
//! α = 1/(1−θ), ζn = Σ i^−θ over i = 1..min(n, 10^7), ζ2 = 1 + 2^−θ,
//! η = (1 − (2/n)^(1−θ)) / (1 − ζ2/ζn), z = u·ζn;
//! rank 1 if z < 1, rank 2 if z < ζ2, else 1 + floor(n·(η·u − η + 1)^α)
//! (Gray et al. 1994, as fio has it). Ranks above 2 follow an integral in place
//! of the sum, so that the third is a little less likely than 3^−θ says.

use core::num::NonZeroU64;

use weir_run::generate::rng::Rng;

use super::checked_center;
use crate::generate::{GenerateError, Permutation};

/// Terms of ζn at most: part of the definition.
const MOST_TERMS: u64 = 10_000_000;
/// Terms summed one by one; the rest of the sum is exact to rounding without.
const PLAIN_TERMS: u64 = 10_000;

/// The zipf distribution over the blocks of a region.
#[derive(Debug, Clone)]
pub struct Zipf {
    blocks: u64,
    n: f64,
    alpha: f64,
    zeta_n: f64,
    zeta_2: f64,
    eta: f64,
    place: Permutation,
}

impl Zipf {
    /// `placement` seeds the places of the ranks; `center` puts the first there.
    ///
    /// # Errors
    /// [`GenerateError::ZipfTheta`] and [`GenerateError::Center`].
    #[expect(clippy::cast_precision_loss, reason = "real numbers by definition")]
    pub fn new(
        blocks: NonZeroU64,
        theta: f64,
        placement: u64,
        center: Option<f64>,
    ) -> Result<Self, GenerateError> {
        let regular = theta.is_finite() && theta > 0.0 && (theta - 1.0).abs() > f64::EPSILON;
        if !regular {
            return Err(GenerateError::ZipfTheta(theta));
        }
        let place = Permutation::new(blocks, placement, checked_center(center)?);
        let n = blocks.get() as f64;
        let zeta_n = zeta(blocks.get().min(MOST_TERMS), theta);
        let zeta_2 = 1.0 + libm::pow(2.0, -theta);
        Ok(Self {
            blocks: blocks.get(),
            n,
            alpha: 1.0 / (1.0 - theta),
            zeta_n,
            zeta_2,
            eta: (1.0 - libm::pow(2.0 / n, 1.0 - theta)) / (1.0 - zeta_2 / zeta_n),
            place,
        })
    }

    /// The next block.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        self.place.block(self.rank(rng.unit()))
    }

    /// The rank (from 0) that belongs to `u` in [0, 1).
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "floor by definition; the cast saturates and the result is clamped"
    )]
    pub fn rank(&self, u: f64) -> u64 {
        let z = u * self.zeta_n;
        if z < 1.0 {
            return 0;
        }
        // With one block or two no draw gets beyond; the clamp holds against
        // rounding at the very end of the sum.
        if z < self.zeta_2 {
            return 1.min(self.blocks - 1);
        }
        let share = libm::pow(self.eta * u - self.eta + 1.0, self.alpha);
        ((self.n * share) as u64).min(self.blocks - 1)
    }
}

/// Σ i^−θ for i = 1..=terms: plainly at first, then by Euler and Maclaurin's
/// formula, whose first term left out is below 10^−15 of the sum here.
#[expect(clippy::cast_precision_loss, reason = "real numbers by definition")]
fn zeta(terms: u64, theta: f64) -> f64 {
    let plain = terms.min(PLAIN_TERMS);
    // Smallest terms first: they would be lost against a large sum.
    let head = (1..=plain)
        .rev()
        .fold(0.0, |sum, i| sum + libm::pow(i as f64, -theta));
    if terms == plain {
        return head;
    }
    let (a, b) = (plain as f64, terms as f64);
    let value = |x: f64| libm::pow(x, -theta);
    // By expm1, since the plain difference loses its digits when theta is near 1.
    let integral = value(a) * a * libm::expm1((1.0 - theta) * libm::log(b / a)) / (1.0 - theta);
    let slope = |x: f64| -theta * libm::pow(x, -theta - 1.0);
    let third = |x: f64| -theta * (theta + 1.0) * (theta + 2.0) * libm::pow(x, -theta - 3.0);
    head + integral + (value(b) - value(a)) / 2.0 + (slope(b) - slope(a)) / 12.0
        - (third(b) - third(a)) / 720.0
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small numbers are exact")]
mod tests {
    use super::*;

    #[test]
    fn the_shortened_sum_equals_the_plain_one() {
        for (terms, theta) in [
            (9_999, 0.5),
            (10_001, 1.2),
            (1_000_000, 0.4),
            (1_000_000, 1.1),
            (10_000_000, 1.2),
            (100_000, 0.999_999),
            (100_000, 1.0 + 1e-12),
            (100_000, 8.0),
        ] {
            let plain = (1..=terms)
                .rev()
                .fold(0.0, |sum, i| sum + libm::pow(i as f64, -theta));
            let error = (zeta(terms, theta) / plain - 1.0).abs();
            assert!(error < 1e-9, "{terms} terms, theta {theta}: {error:e}");
        }
    }

    #[test]
    fn ranks_stay_in_the_region_at_both_ends_of_the_unit_interval() {
        let last = 1.0 - f64::EPSILON / 2.0;
        for n in [1, 2, 3, 4, 1000, 1 << 40, u64::MAX] {
            for theta in [0.01, 0.5, 0.99, 1.01, 1.2, 5.0, 100.0] {
                let zipf = Zipf::new(NonZeroU64::new(n).unwrap(), theta, 1, None).unwrap();
                for u in [0.0, 1e-9, 0.25, 0.5, 0.75, 0.999, last] {
                    assert!(zipf.rank(u) < n, "n {n} theta {theta} u {u}");
                }
            }
        }
    }

    #[test]
    fn a_theta_of_one_or_none_is_refused() {
        let n = NonZeroU64::new(10).unwrap();
        for theta in [1.0, 0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused = Zipf::new(n, theta, 1, None).unwrap_err();
            assert!(matches!(refused, GenerateError::ZipfTheta(_)));
        }
        let refused = Zipf::new(n, 1.2, 1, Some(1.5)).unwrap_err();
        assert_eq!(refused, GenerateError::Center(1.5));
    }
}
