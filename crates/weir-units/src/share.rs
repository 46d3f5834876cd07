//! Shares of a whole, in percent.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::number::{Grammar, Unit, real, three_digits};

/// A share in percent: 100 is the whole. `Display` is `71.3 %`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Percent(pub f64);

static PERCENT: Grammar = Grammar {
    quantity: "percentage",
    example: "25 %",
    units: &[Unit {
        name: "%",
        factor: 1,
    }],
    aliases: &[("percent", "%")],
    bare: false,
    ambiguous: |_, _| None,
};

impl Percent {
    /// A part of a whole; nothing when the whole is zero.
    pub fn of(part: u64, whole: u64) -> Option<Self> {
        (whole > 0).then(|| Self(100.0 * real(part) / real(whole)))
    }

    /// Text that parses back to the same value, for every finite value from zero up.
    pub fn exact(self) -> String {
        format!("{} %", self.0)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&(three_digits(self.0) + " %"))
    }
}

impl FromStr for Percent {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        PERCENT.real(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_print_and_parse() {
        assert_eq!(Percent(71.26).to_string(), "71.3 %");
        assert_eq!(Percent(100.0).to_string(), "100 %");
        assert_eq!(Percent::of(1, 8), Some(Percent(12.5)));
        assert_eq!(Percent::of(1, 0), None);
        assert_eq!("12.5%".parse(), Ok(Percent(12.5)));
        let message = "0.5".parse::<Percent>().unwrap_err().to_string();
        assert!(message.contains("lacks a unit"));
    }

    proptest::proptest! {
        #[test]
        fn an_exact_percentage_parses_back(share in 0.0..1e6) {
            proptest::prop_assert_eq!(Percent(share).exact().parse(), Ok(Percent(share)));
        }
    }
}
