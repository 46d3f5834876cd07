//! The number part of every quantity: reading decimals without rounding errors, and printing
//! three significant digits.
//!
//! In: text, or a value with its table of units. Out: a value, or text. Not here: which units
//! a quantity has (each has its own file).

use crate::ParseError;

/// The arithmetic of a quantity that is a whole number of something.
macro_rules! whole_quantity {
    ($name:ident, $of:literal) => {
        impl $name {
            #[doc = concat!("The bare number of ", $of, ".")]
            pub const fn raw(self) -> u64 {
                self.0
            }

            /// The sum, unless it does not fit.
            pub fn checked_add(self, other: Self) -> Option<Self> {
                self.0.checked_add(other.0).map(Self)
            }

            /// The difference, unless it is negative.
            pub fn checked_sub(self, other: Self) -> Option<Self> {
                self.0.checked_sub(other.0).map(Self)
            }

            /// `times` as much, unless it does not fit.
            pub fn checked_mul(self, times: u64) -> Option<Self> {
                self.0.checked_mul(times).map(Self)
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

/// One unit: its spelling and how many of the smallest part it holds.
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) factor: u64,
}

/// A quantity's units and the words its messages need.
pub(crate) struct Grammar {
    pub(crate) quantity: &'static str,
    pub(crate) example: &'static str,
    /// Smallest first; the first one's factor is 1.
    pub(crate) units: &'static [Unit],
    /// Spellings that are read but never printed: (as written, the unit's name).
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    /// A bare number counts in the first unit.
    pub(crate) bare: bool,
    /// Finds units that people read in two ways: (reason, remedy for the number).
    pub(crate) ambiguous: fn(number: &str, unit: &str) -> Option<(&'static str, String)>,
}

/// A text split into its number and its unit, both checked.
pub(crate) struct Parts<'a> {
    text: &'a str,
    number: &'a str,
    unit: &'static Unit,
}

impl Grammar {
    /// Splits and checks a text.
    pub(crate) fn split<'a>(&'static self, text: &'a str) -> Result<Parts<'a>, ParseError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ParseError::Empty {
                quantity: self.quantity,
                example: self.example,
            });
        }
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let points = number.bytes().filter(|b| *b == b'.').count();
        if points > 1 || !number.starts_with(|c: char| c.is_ascii_digit()) || number.ends_with('.')
        {
            return Err(ParseError::NotANumber {
                text: text.into(),
                quantity: self.quantity,
                example: self.example,
            });
        }
        let unit = self.unit(text, number, rest.trim_start())?;
        Ok(Parts { text, number, unit })
    }

    fn unit(
        &'static self,
        text: &str,
        number: &str,
        name: &str,
    ) -> Result<&'static Unit, ParseError> {
        if name.is_empty() && self.bare {
            return Ok(&self.units[0]);
        }
        let name_of_alias = self.aliases.iter().find(|(alias, _)| *alias == name);
        let canonical = name_of_alias.map_or(name, |(_, canonical)| canonical);
        if let Some(unit) = self.units.iter().find(|unit| unit.name == canonical) {
            return Ok(unit);
        }
        if let Some((reason, remedy)) = (self.ambiguous)(number, name) {
            return Err(ParseError::Ambiguous {
                text: text.into(),
                reason,
                remedy,
            });
        }
        let known = self.known();
        Err(if name.is_empty() {
            ParseError::MissingUnit {
                number: number.into(),
                quantity: self.quantity,
                known,
                example: self.example,
            }
        } else {
            ParseError::UnknownUnit {
                unit: name.into(),
                quantity: self.quantity,
                known,
                example: self.example,
            }
        })
    }

    fn known(&self) -> String {
        let names: Vec<&str> = self.units.iter().map(|unit| unit.name).collect();
        names.join(", ")
    }

    /// Reads a whole number of smallest parts; what a decimal leaves over is rounded to the
    /// nearest, except that a fraction of the smallest part itself, or a value that would
    /// round to nothing, is refused.
    pub(crate) fn whole(&'static self, text: &str) -> Result<u64, ParseError> {
        let parts = self.split(text)?;
        let (digits, fraction) = parts.number.split_once('.').unwrap_or((parts.number, ""));
        let fraction = fraction.trim_end_matches('0');
        let too_large = || ParseError::TooLarge {
            text: parts.text.into(),
            quantity: self.quantity,
            limit: format!("{} {}", u64::MAX, self.units[0].name),
        };
        let integer: u64 = digits.parse().map_err(|_| too_large())?;
        let factor = parts.unit.factor;
        let rest = fraction_of(fraction, factor);
        let value = integer
            .checked_mul(factor)
            .and_then(|v| v.checked_add(rest))
            .ok_or_else(too_large)?;
        if !fraction.is_empty() && (factor == 1 || value == 0) {
            return Err(ParseError::NotWhole {
                text: parts.text.into(),
                quantity: self.quantity,
                smallest: self.units[0].name,
                remedy: format!("{} {}", value.max(1), self.units[0].name),
            });
        }
        Ok(value)
    }

    /// Reads a number with a fraction.
    pub(crate) fn real(&'static self, text: &str) -> Result<f64, ParseError> {
        let parts = self.split(text)?;
        let value = parts.number.parse::<f64>().unwrap_or(f64::INFINITY) * real(parts.unit.factor);
        if value.is_finite() {
            return Ok(value);
        }
        Err(ParseError::TooLarge {
            text: parts.text.into(),
            quantity: self.quantity,
            limit: format!("1.79e308 {}", self.units[0].name),
        })
    }

    /// The largest unit that divides the value, so that the text is exact and short.
    pub(crate) fn exact(&self, value: u64, units: impl Iterator<Item = &'static Unit>) -> String {
        let mut best = &self.units[0];
        for unit in units {
            if value != 0 && unit.factor > best.factor && value.is_multiple_of(unit.factor) {
                best = unit;
            }
        }
        format!("{} {}", value / best.factor, best.name)
    }
}

/// `0.digits` of a unit in smallest parts, to the nearest. Eighteen digits are below one part
/// of every unit up to 10^18; more cannot change the result by more than one part.
fn fraction_of(digits: &str, factor: u64) -> u64 {
    let mut numerator: u128 = 0;
    let mut denominator: u128 = 1;
    for digit in digits.bytes().take(18) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    let parts = (numerator * u128::from(factor) + denominator / 2) / denominator;
    u64::try_from(parts).unwrap_or(u64::MAX)
}

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

    #[test]
    fn fractions_of_large_units_are_exact() {
        assert_eq!(fraction_of("5", 1 << 60), 1 << 59);
        assert_eq!(fraction_of("000000001", 1_000_000_000), 1);
        assert_eq!(fraction_of("1", 1024), 102);
        assert_eq!(fraction_of("999999999999999999", 1 << 60), (1 << 60) - 1);
    }
}
