//! The number part of every quantity: its arithmetic, and printing three significant digits.
//!
//! In: a value with its table of units. Out: text. Not here: which units a quantity has (each has
//! its own file).

/// The arithmetic of a quantity that is a whole number of something.
macro_rules! whole_quantity {
    ($name:ident, $of:literal) => {
        impl $name {
            #[doc = concat!("The bare number of ", $of, ".")]
            pub const fn raw(self) -> u64 {
                self.0
            }

            /// The difference, unless it is negative.
            pub fn checked_sub(self, other: Self) -> Option<Self> {
                self.0.checked_sub(other.0).map(Self)
            }

            /// The sum, at most what fits.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The difference, at least zero.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// `times` as much, at most what fits.
            #[must_use]
            pub const fn saturating_mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(times))
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, Self::saturating_add)
            }
        }
    };
}
pub(crate) use whole_quantity;

/// The nearest floating-point value, for printing and for rates.
#[expect(
    clippy::cast_precision_loss,
    reason = "the nearest value is what is meant"
)]
pub(crate) fn real(value: u64) -> f64 {
    value as f64
}

/// The nearest whole number, clamped to the type's range; not-a-number gives 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts clamp, which is what is meant"
)]
pub(crate) fn nearest(value: f64) -> u64 {
    value.round() as u64
}

/// A value as text with three significant digits, in the first of the steps (smallest first)
/// where it needs at most `limit`. `whole`: the smallest step has no fractions.
pub(crate) fn scaled(value: f64, steps: &[(f64, &str)], limit: f64, whole: bool) -> String {
    let mut text = String::new();
    for (i, (factor, name)) in steps.iter().enumerate() {
        let scaled = value / factor;
        let is_last = i + 1 == steps.len();
        // Half a unit in the last printed place: what rounds up to the limit belongs to the
        // next step.
        if is_last || scaled.abs() < limit - 0.5 {
            let number = if whole && i == 0 {
                format!("{scaled:.0}")
            } else {
                three_digits(scaled)
            };
            text = if name.is_empty() {
                number
            } else {
                format!("{number} {name}")
            };
            break;
        }
    }
    text
}

/// Three significant digits with their zeros; zero itself is `0`, and a larger number keeps
/// all its digits before the point.
pub(crate) fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}").replace("-0", "0");
    }
    // The exponent after rounding: 9.996 prints as 10.0, not 10.00.
    let scientific = format!("{value:.2e}");
    let exponent: i32 = scientific
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    if exponent < -6 {
        return scientific;
    }
    let decimals = usize::try_from(2 - exponent).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// The value of a printed quantity: times in nanoseconds.
#[cfg(test)]
pub(crate) fn printed(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap();
    let factor = match unit {
        "ns" => 1.0,
        "µs" | "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3_600e9,
        "d" => 86_400e9,
        _ => {
            let steps = "kMGTPE".find(|c| unit.replace('K', "k").starts_with(c));
            let base: f64 = if unit.contains('i') { 1024.0 } else { 1000.0 };
            base.powf(steps.map_or(0.0, |step| real(step as u64) + 1.0))
        }
    };
    number.parse::<f64>().unwrap() * factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_keep_their_zeros() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (0.0625, "0.0625"),
            (0.001_234_5, "0.00123"),
            (1010.4, "1010"),
            (-47.13, "-47.1"),
            (1.0e-9, "1.00e-9"),
        ] {
            assert_eq!(three_digits(value), text);
        }
    }
}
