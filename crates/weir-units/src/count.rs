//! Plain counts: things counted, and the limit of operations in flight.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::number::{real, scaled};

/// A number of things, for printing: `12.4 M`, or all digits below 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: [(f64, &str); 7] = [
            (1.0, ""),
            (1e3, "k"),
            (1e6, "M"),
            (1e9, "G"),
            (1e12, "T"),
            (1e15, "P"),
            (1e18, "E"),
        ];
        f.pad(&scaled(real(self.0), &STEPS, 1000.0, true))
    }
}

/// The limit of operations in flight.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct QueueDepth(pub u32);

impl fmt::Display for QueueDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for QueueDepth {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let quantity = "queue depth";
        if text.is_empty() {
            return Err(ParseError::Empty {
                quantity,
                example: "32",
            });
        }
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseError::NotANumber {
                text: text.into(),
                quantity,
                example: "32",
            });
        }
        match text.parse() {
            Ok(0) => Err(ParseError::TooSmall {
                text: text.into(),
                quantity,
                limit: "1".into(),
            }),
            Ok(depth) => Ok(Self(depth)),
            Err(_) => Err(ParseError::TooLarge {
                text: text.into(),
                quantity,
                limit: u32::MAX.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_print_three_digits() {
        assert_eq!(Count(12_400_000).to_string(), "12.4 M");
        assert_eq!(Count(999).to_string(), "999");
        assert_eq!(Count(999_600).to_string(), "1.00 M");
        assert_eq!(Count(0).to_string(), "0");
    }

    #[test]
    fn a_queue_depth_is_at_least_one() {
        assert_eq!("32".parse(), Ok(QueueDepth(32)));
        assert_eq!(QueueDepth(32).to_string(), "32");
        let message = |text: &str| text.parse::<QueueDepth>().unwrap_err().to_string();
        assert_eq!(
            message("0"),
            "`0` is too small for a queue depth; the smallest is 1"
        );
        assert!(message("1e3").contains("not a queue depth"));
        assert!(message("4294967296").contains("the largest is 4294967295"));
        assert!(message(" ").contains("empty"));
    }
}
