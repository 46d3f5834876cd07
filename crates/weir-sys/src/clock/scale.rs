//! Length of a tick: one multiply and one shift.
//!
//! In: a slope measured between two anchors. Out: nanoseconds for a span of ticks. Not here:
//! absolute times, which go piecewise between anchors ([`super::timeline`]).

use std::sync::atomic::{AtomicU64, Ordering};
use weir_units::Nanos;

/// Nanoseconds per tick as a fixed-point number with 32 binary places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Nanoseconds per tick, times 2^32.
    pub mul: u64,
}

impl Scale {
    /// Binary places of [`Scale::mul`].
    pub const SHIFT: u32 = 32;

    /// A tick is a nanosecond.
    pub const IDENTITY: Self = Self {
        mul: 1 << Self::SHIFT,
    };

    /// The slope of a line that rises by `nanos` over `ticks`; `None` if either is zero or the
    /// slope does not fit.
    pub fn from_slope(ticks: u64, nanos: Nanos) -> Option<Self> {
        let mul = (u128::from(nanos.0) << Self::SHIFT).checked_div(u128::from(ticks))?;
        let mul = u64::try_from(mul).ok()?;
        (mul > 0).then_some(Self { mul })
    }

    /// Length of a span of ticks, in nanoseconds. Exact for every span where a tick is at
    /// most a nanosecond, and for centuries where it is longer.
    ///
    /// The result is a bare number because it goes straight into a histogram's index.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "64 bits of nanoseconds are 584 years"
    )]
    pub fn to_nanos(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.mul)) >> Self::SHIFT) as u64
    }

    /// Number of ticks in a span of time, rounded up, so that a deadline is never early.
    pub fn to_ticks(&self, span: Nanos) -> u64 {
        let ticks = (u128::from(span.0) << Self::SHIFT).div_ceil(u128::from(self.mul.max(1)));
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// Ticks per second.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a frequency is printed, not added up"
    )]
    pub fn frequency_hz(&self) -> f64 {
        1e9 * (Self::IDENTITY.mul as f64) / (self.mul.max(1) as f64)
    }
}

/// The scale of the moment, written by the sampler at each anchor and read by workers.
///
/// Relaxed on both sides: the value stands alone, and either of two neighbours will do.
#[derive(Debug)]
pub struct SharedScale(AtomicU64);

impl SharedScale {
    /// Starts with a scale.
    pub fn new(scale: Scale) -> Self {
        Self(AtomicU64::new(scale.mul))
    }

    /// The latest scale.
    #[inline]
    pub fn load(&self) -> Scale {
        Scale {
            mul: self.0.load(Ordering::Relaxed),
        }
    }

    /// Publishes a new scale.
    pub fn store(&self, scale: Scale) {
        self.0.store(scale.mul, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_identity_scale_keeps_every_duration() {
        for ticks in [0, 1, 127, 1 << 32, u64::MAX] {
            assert_eq!(Scale::IDENTITY.to_nanos(ticks), ticks);
            assert_eq!(Scale::IDENTITY.to_ticks(Nanos(ticks)), ticks);
        }
    }

    #[test]
    fn a_2_5_ghz_counter_needs_five_ticks_for_two_nanoseconds() {
        let scale = Scale::from_slope(2_500_000_000, Nanos(1_000_000_000)).unwrap();
        assert_eq!(scale.to_nanos(2_500_001), 1_000_000);
        assert!((scale.frequency_hz() - 2.5e9).abs() < 10.0);
    }

    #[test]
    fn a_slope_without_extent_is_none() {
        assert_eq!(Scale::from_slope(0, Nanos(5)), None);
        assert_eq!(Scale::from_slope(5, Nanos(0)), None);
        assert_eq!(Scale::from_slope(1, Nanos(u64::MAX)), None);
    }

    proptest! {
        #[test]
        fn a_deadline_in_ticks_is_never_early(mhz in 1u64..6_000, span in 0u64..1 << 50) {
            let scale = Scale::from_slope(mhz * 1_000_000, Nanos(1_000_000_000)).unwrap();
            let back = scale.to_nanos(scale.to_ticks(Nanos(span)));
            prop_assert!(back >= span && back - span <= 1_000 / mhz + 1);
        }
    }
}
