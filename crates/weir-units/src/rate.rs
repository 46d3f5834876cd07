//! Rates: operations and bytes per second, printed in steps of 1000.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number::{Grammar, Unit, nearest, real, scaled};
use crate::size::{ambiguous_prefix, rate_text};
use crate::{Bytes, Nanos, ParseError};

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

const fn unit(name: &'static str, factor: u64) -> Unit {
    Unit { name, factor }
}

static OPERATIONS: Grammar = Grammar {
    quantity: "rate of operations",
    example: "500 ops/s or 1.5 M ops/s",
    units: &[
        unit("ops/s", 1),
        unit("k ops/s", 1_000),
        unit("M ops/s", 1_000_000),
        unit("G ops/s", 1_000_000_000),
    ],
    aliases: &[
        ("op/s", "ops/s"),
        ("iops", "ops/s"),
        ("IOPS", "ops/s"),
        ("kops/s", "k ops/s"),
        ("Mops/s", "M ops/s"),
        ("Gops/s", "G ops/s"),
        ("kIOPS", "k ops/s"),
        ("MIOPS", "M ops/s"),
    ],
    bare: false,
    ambiguous: |_, _| None,
};

static BYTE_RATE: Grammar = Grammar {
    quantity: "byte rate",
    example: "500 MB/s or 1.5 GiB/s",
    units: &[
        unit("B/s", 1),
        unit("kB/s", 1_000),
        unit("MB/s", 1_000_000),
        unit("GB/s", 1_000_000_000),
        unit("TB/s", 1_000_000_000_000),
        unit("PB/s", 1_000_000_000_000_000),
        unit("EB/s", 1_000_000_000_000_000_000),
        unit("KiB/s", 1 << 10),
        unit("MiB/s", 1 << 20),
        unit("GiB/s", 1 << 30),
        unit("TiB/s", 1 << 40),
        unit("PiB/s", 1 << 50),
        unit("EiB/s", 1 << 60),
    ],
    aliases: &[],
    bare: false,
    ambiguous: |number, unit| ambiguous_prefix(number, unit, "/s"),
};

impl Iops {
    /// Counted operations over measured time; nothing when no time passed.
    pub fn of(operations: u64, time: Nanos) -> Option<Self> {
        (time.0 > 0).then(|| Self(real(operations) / time.as_secs_f64()))
    }

    /// Text that parses back to the same value, for every finite value from zero up.
    pub fn exact(self) -> String {
        format!("{} ops/s", self.0)
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

    /// Text that parses back to the same value, for every finite value from zero up.
    pub fn exact(self) -> String {
        format!("{} B/s", self.0)
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

impl FromStr for Iops {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        OPERATIONS.real(text).map(Self)
    }
}

impl FromStr for BytesPerSec {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        BYTE_RATE.real(text).map(Self)
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

    #[test]
    fn rates_are_read_with_their_units() {
        assert_eq!("412 k ops/s".parse(), Ok(Iops(412_000.0)));
        assert_eq!("1.5 Mops/s".parse(), Ok(Iops(1_500_000.0)));
        assert_eq!("500 iops".parse(), Ok(Iops(500.0)));
        assert_eq!("1.5GiB/s".parse(), Ok(BytesPerSec(1_610_612_736.0)));
        let message = |text: &str| text.parse::<BytesPerSec>().unwrap_err().to_string();
        assert!(message("500 M").ends_with("write 500 MiB/s or 500 MB/s"));
        assert!(message("500 MB").ends_with("write 500 MiB/s or 500 MB/s"));
        assert!(message("500").contains("lacks a unit"));
        assert!(
            "1k".parse::<Iops>()
                .unwrap_err()
                .to_string()
                .contains("k ops/s")
        );
        let long = format!("1{} B/s", "0".repeat(400));
        assert!(message(&long).contains("too large"));
    }

    proptest::proptest! {
        #[test]
        fn an_exact_rate_parses_back(rate in 0.0..f64::MAX, small in 0.0..1e12) {
            for rate in [rate, small] {
                proptest::prop_assert_eq!(Iops(rate).exact().parse::<Iops>(), Ok(Iops(rate)));
                let bytes = BytesPerSec(rate);
                proptest::prop_assert_eq!(bytes.exact().parse::<BytesPerSec>(), Ok(bytes));
            }
        }

        #[test]
        fn a_printed_rate_is_within_half_a_percent(rate in 0.01..1e18) {
            let ops: Iops = Iops(rate).to_string().parse()?;
            let bytes: BytesPerSec = BytesPerSec(rate).to_string().parse()?;
            let binary: BytesPerSec = BytesPerSec(rate).binary().to_string().parse()?;
            for read in [ops.0, bytes.0, binary.0] {
                proptest::prop_assert!((read - rate).abs() <= rate * 0.005_001);
            }
        }
    }
}
