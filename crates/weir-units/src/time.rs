//! Spans of time in nanoseconds, `ns` to `d`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

use crate::number::{nearest, real, scaled, whole_quantity};

/// A span of time in nanoseconds.
///
/// `Display` has three significant digits, `74.2 µs`; the alternate form `{:#}` writes `us`
/// for terminals without the Greek letter.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

const STEPS: [(f64, &str); 7] = [
    (1.0, "ns"),
    (1e3, "µs"),
    (1e6, "ms"),
    (1e9, "s"),
    (60e9, "min"),
    (3_600e9, "h"),
    (86_400e9, "d"),
];

whole_quantity!(Nanos, "nanoseconds");

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// One millisecond.
    pub const MILLISECOND: Self = Self(1_000_000);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// Whole seconds, at most what fits.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Whole milliseconds, at most what fits.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Whole microseconds, at most what fits.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The nearest nanosecond; nothing for what is negative, not a number or too long.
    pub fn from_secs_f64(seconds: f64) -> Option<Self> {
        let nanos = seconds * 1e9;
        (0.0..18_446_744_073_709_551_616.0)
            .contains(&nanos)
            .then(|| Self(nearest(nanos)))
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        real(self.0) / 1e9
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = scaled(real(self.0), &STEPS, 1000.0, true);
        if f.alternate() {
            f.pad(&text.replace('µ', "u"))
        } else {
            f.pad(&text)
        }
    }
}

/// Spans beyond 584 years are cut to that.
impl From<Duration> for Nanos {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::printed;

    #[test]
    fn times_print_three_digits_and_carry_to_the_next_unit() {
        for (nanos, text) in [
            (0, "0 ns"),
            (7, "7 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (74_230, "74.2 µs"),
            (999_400, "999 µs"),
            (999_600, "1.00 ms"),
            (30_000_000_000, "30.0 s"),
            (999_400_000_000, "999 s"),
            (1_000_000_000_000, "16.7 min"),
            (7_200_000_000_000, "120 min"),
            (360_000_000_000_000, "100 h"),
        ] {
            assert_eq!(Nanos(nanos).to_string(), text);
        }
        assert_eq!(format!("{:#}", Nanos(74_230)), "74.2 us");
        assert_eq!(format!("{:#>9}|", Nanos(74_230)), "##74.2 µs|");
    }

    #[test]
    fn seconds_convert_both_ways() {
        assert_eq!(Nanos::from_secs_f64(1.5), Some(Nanos(1_500_000_000)));
        assert_eq!(Nanos::from_secs_f64(-1.0), None);
        assert_eq!(Nanos::from_secs_f64(f64::NAN), None);
        assert_eq!(Nanos::from_secs_f64(1e12), None);
        assert!((Nanos(250_000_000).as_secs_f64() - 0.25).abs() < 1e-15);
        assert_eq!(Nanos::from(Duration::MAX), Nanos(u64::MAX));
        assert_eq!(Duration::from(Nanos::SECOND), Duration::from_secs(1));
    }

    proptest::proptest! {
        #[test]
        fn a_printed_time_is_within_half_a_percent(nanos in 0..u64::MAX / 2) {
            for text in [Nanos(nanos).to_string(), format!("{:#}", Nanos(nanos))] {
                let (read, nanos) = (printed(&text), real(nanos));
                proptest::prop_assert!((read - nanos).abs() <= nanos * 0.005 + 0.5);
            }
        }
    }
}
