//! pareto:h — share h of the blocks gets share 1 − h of the accesses, and so on
//! within that share.
//!
//! In: n and h in (0, 1). Out: block indices. With u uniform in [0, 1):
//! rank = floor((n − 1)·u^(ln h / ln(1 − h))).

use core::num::NonZeroU64;

use weir_run::generate::rng::Rng;

use super::checked_center;
use crate::generate::{GenerateError, Permutation};

/// The pareto (self-similar) distribution over the blocks of a region.
#[derive(Debug, Clone)]
pub struct Pareto {
    last: f64,
    exponent: f64,
    place: Permutation,
}

impl Pareto {
    /// `placement` seeds the places of the ranks; `center` puts the first there.
    ///
    /// # Errors
    /// [`GenerateError::ParetoInput`] and [`GenerateError::Center`].
    #[expect(clippy::cast_precision_loss, reason = "real numbers by definition")]
    pub fn new(
        blocks: NonZeroU64,
        h: f64,
        placement: u64,
        center: Option<f64>,
    ) -> Result<Self, GenerateError> {
        let inside = h > 0.0 && h < 1.0;
        if !inside {
            return Err(GenerateError::ParetoInput(h));
        }
        Ok(Self {
            last: (blocks.get() - 1) as f64,
            exponent: libm::log(h) / libm::log(1.0 - h),
            place: Permutation::new(blocks, placement, checked_center(center)?),
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
        reason = "floor by definition; clamped where the cast of n - 1 rounded up"
    )]
    pub fn rank(&self, u: f64) -> u64 {
        let rank = (self.last * libm::pow(u, self.exponent)) as u64;
        rank.min(self.place.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_stay_in_the_region_at_both_ends_of_the_unit_interval() {
        let last = 1.0 - f64::EPSILON / 2.0;
        for n in [1, 2, 3, 1000, 1 << 40, u64::MAX] {
            for h in [1e-9, 0.2, 0.5, 0.8, 1.0 - 1e-9] {
                let pareto = Pareto::new(NonZeroU64::new(n).unwrap(), h, 1, None).unwrap();
                for u in [0.0, 1e-9, 0.5, 0.999, last] {
                    assert!(pareto.rank(u) < n, "n {n} h {h} u {u}");
                }
            }
        }
    }

    #[test]
    fn an_h_outside_the_open_unit_interval_is_refused() {
        let n = NonZeroU64::new(10).unwrap();
        for h in [0.0, 1.0, -0.1, 7.0, f64::NAN] {
            let refused = Pareto::new(n, h, 1, None).unwrap_err();
            assert!(matches!(refused, GenerateError::ParetoInput(_)));
        }
    }
}
