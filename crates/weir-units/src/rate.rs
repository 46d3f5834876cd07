//! Rates: operations and bytes per second, printed in steps of 1000.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

use crate::number::{nearest, real, scaled};
use crate::size::rate_text;
use crate::{Bytes, Nanos};

/// Operations per second; `Display` is `412 k ops/s`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Iops(pub f64);

/// Bytes per second; `Display` is `1.69 GB/s`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct BytesPerSec(pub f64);

impl Iops {
    /// Counted operations over measured time; nothing when no time passed.
    pub fn of(operations: u64, time: Nanos) -> Option<Self> {
        (time.0 > 0).then(|| Self(real(operations) / time.as_secs_f64()))
    }

    /// The nearest bare number of operations per second.
    pub fn raw(self) -> u64 {
        nearest(self.0)
    }
}

impl BytesPerSec {
    /// Counted bytes over measured time; nothing when no time passed.
    pub fn of(bytes: Bytes, time: Nanos) -> Option<Self> {
        (time.0 > 0).then(|| Self(real(bytes.0) / time.as_secs_f64()))
    }

    /// Prints with binary units: `1.57 GiB/s`.
    pub const fn binary(self) -> BinaryRate {
        BinaryRate(self)
    }

    /// The nearest bare number of bytes per second.
    pub fn raw(self) -> u64 {
        nearest(self.0)
    }
}

impl fmt::Display for Iops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: [(f64, &str); 4] = [
            (1.0, "ops/s"),
            (1e3, "k ops/s"),
            (1e6, "M ops/s"),
            (1e9, "G ops/s"),
        ];
        f.pad(&scaled(self.0, &STEPS, 1000.0, false))
    }
}

impl fmt::Display for BytesPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&rate_text(self.0, false))
    }
}

/// A byte rate printed with binary units; made by [`BytesPerSec::binary`].
#[derive(Clone, Copy, Debug)]
pub struct BinaryRate(BytesPerSec);

impl fmt::Display for BinaryRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&rate_text(self.0.0, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::printed;

    #[test]
    fn rates_print_three_digits_in_steps_of_1000() {
        assert_eq!(Iops(412_345.0).to_string(), "412 k ops/s");
        assert_eq!(Iops(999_600.0).to_string(), "1.00 M ops/s");
        assert_eq!(Iops(12.0).to_string(), "12.0 ops/s");
        assert_eq!(Iops(0.0).to_string(), "0 ops/s");
        assert_eq!(Iops(0.25).to_string(), "0.250 ops/s");
        assert_eq!(BytesPerSec(1.69e9).to_string(), "1.69 GB/s");
        assert_eq!(BytesPerSec(1.69e9).binary().to_string(), "1.57 GiB/s");
        assert_eq!(Iops(412_345.6).raw(), 412_346);
    }

    #[test]
    fn rates_come_from_counts_over_time() {
        assert_eq!(Iops::of(500, Nanos::from_millis(250)), Some(Iops(2_000.0)));
        assert_eq!(Iops::of(500, Nanos::ZERO), None);
        assert_eq!(
            BytesPerSec::of(Bytes::MIB, Nanos::from_secs(2)),
            Some(BytesPerSec(524_288.0))
        );
    }

    proptest::proptest! {
        #[test]
        fn a_printed_rate_is_within_half_a_percent(rate in 0.01..1e18) {
            let bytes = BytesPerSec(rate);
            for text in [Iops(rate).to_string(), bytes.to_string(), bytes.binary().to_string()] {
                proptest::prop_assert!((printed(&text) - rate).abs() <= rate * 0.005_001);
            }
        }
    }
}
