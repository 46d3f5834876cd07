//! normal:σ — Gaussian around a centre.
//!
//! In: n, σ in percent of n, the centre as a share of n (the middle by
//! default). Out: block indices. Draws that fall outside the region are drawn
//! again, so that the density inside keeps its shape. A true Gaussian by the
//! polar method of Box, Muller and Marsaglia (fio adds twelve uniform numbers
//! and scatters the result by a hash; here near blocks stay near).

use core::num::NonZeroU64;

use weir_run::generate::rng::Rng;

use super::checked_center;
use crate::generate::GenerateError;

/// The widest deviation: beyond, the region is as good as uniform, and draws
/// outside become the rule.
const MOST_PERCENT: f64 = 100.0;

/// The normal distribution over the blocks of a region.
#[derive(Debug, Clone)]
pub struct Normal {
    n: f64,
    center: f64,
    deviation: f64,
    last: u64,
}

impl Normal {
    /// `deviation_percent` is σ in percent of the region.
    ///
    /// # Errors
    /// [`GenerateError::NormalDeviation`] and [`GenerateError::Center`].
    #[expect(clippy::cast_precision_loss, reason = "real numbers by definition")]
    pub fn new(
        blocks: NonZeroU64,
        deviation_percent: f64,
        center: Option<f64>,
    ) -> Result<Self, GenerateError> {
        if !(0.0..=MOST_PERCENT).contains(&deviation_percent) {
            return Err(GenerateError::NormalDeviation(deviation_percent));
        }
        let n = blocks.get() as f64;
        Ok(Self {
            n,
            center: checked_center(center)?.unwrap_or(0.5) * n,
            deviation: deviation_percent / 100.0 * n,
            last: blocks.get() - 1,
        })
    }

    /// The next block.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "inside the region by the test before, but for the rounding of n"
    )]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        if self.deviation == 0.0 {
            return (self.center as u64).min(self.last);
        }
        loop {
            let place = self.center + self.deviation * gauss(rng);
            if place >= 0.0 && place < self.n {
                return (place as u64).min(self.last);
            }
        }
    }
}

/// One standard Gaussian number. The polar method yields two; the second is
/// not kept, so that a draw depends on the stream alone.
#[inline]
fn gauss(rng: &mut Rng) -> f64 {
    loop {
        let x = 2.0 * rng.unit() - 1.0;
        let y = 2.0 * rng.unit() - 1.0;
        let s = x * x + y * y;
        if s > 0.0 && s < 1.0 {
            return x * libm::sqrt(-2.0 * libm::log(s) / s);
        }
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small numbers are exact")]
mod tests {
    use super::*;

    fn normal(n: u64, percent: f64, center: Option<f64>) -> Normal {
        Normal::new(NonZeroU64::new(n).unwrap(), percent, center).unwrap()
    }

    #[test]
    fn mean_and_deviation_are_those_asked_for() {
        let (normal, mut rng) = (normal(1_000_000, 5.0, Some(0.4)), Rng::new(3));
        let draws: Vec<f64> = (0..100_000).map(|_| normal.draw(&mut rng) as f64).collect();
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        assert!((mean - 400_000.0).abs() < 800.0, "{mean}");
        assert!(
            (variance.sqrt() - 50_000.0).abs() < 500.0,
            "{}",
            variance.sqrt()
        );
    }

    #[test]
    fn the_tails_are_those_of_a_gaussian() {
        let (normal, mut rng) = (normal(1_000_000, 10.0, None), Rng::new(4));
        let mut beyond = [0_u32; 3];
        for _ in 0..400_000 {
            let z = (normal.draw(&mut rng) as f64 - 500_000.0).abs() / 100_000.0;
            for (count, limit) in beyond.iter_mut().zip([1.0, 2.0, 3.0]) {
                *count += u32::from(z > limit);
            }
        }
        for (count, truth) in beyond.into_iter().zip([0.317_31, 0.045_50, 0.002_70]) {
            let expected = truth * 400_000.0;
            assert!((f64::from(count) - expected).abs() < 5.0 * expected.sqrt());
        }
    }

    #[test]
    fn draws_stay_inside_even_around_an_end() {
        for (n, percent, center) in [
            (1, 50.0, 0.0),
            (3, 100.0, 1.0),
            (10, 0.0, 1.0),
            (7, 1e-9, 1.0),
        ] {
            let (normal, mut rng) = (normal(n, percent, Some(center)), Rng::new(5));
            assert!((0..1000).all(|_| normal.draw(&mut rng) < n));
        }
    }

    #[test]
    fn a_deviation_that_is_no_percentage_is_refused() {
        for percent in [-1.0, 100.1, f64::NAN] {
            let refused = Normal::new(NonZeroU64::MIN, percent, None).unwrap_err();
            assert!(matches!(refused, GenerateError::NormalDeviation(_)));
        }
    }
}
