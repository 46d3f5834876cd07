//! Plain counts: things counted, and the limit of operations in flight.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

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
}
