//! Shares of a whole, in percent.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

use crate::number::three_digits;

/// A share in percent: 100 is the whole. `Display` is `71.3 %`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&(three_digits(self.0) + " %"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_print_three_digits() {
        assert_eq!(Percent(71.26).to_string(), "71.3 %");
        assert_eq!(Percent(100.0).to_string(), "100 %");
    }
}
