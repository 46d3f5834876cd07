//! Sizes in bytes: printed with binary units, or with decimal ones.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

use crate::number::{real, scaled, whole_quantity};

/// A number of bytes: a size, a length or an offset.
///
/// `Display` has three significant digits and binary units, `47.1 GiB`; whole below 1024 of
/// a unit, `1010 KiB`.
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
pub struct Bytes(pub u64);

const BINARY: [(f64, &str); 7] = [
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_125_899_906_842_624.0, "PiB"),
    (1_152_921_504_606_846_976.0, "EiB"),
];

const DECIMAL: [(f64, &str); 7] = [
    (1.0, "B"),
    (1e3, "kB"),
    (1e6, "MB"),
    (1e9, "GB"),
    (1e12, "TB"),
    (1e15, "PB"),
    (1e18, "EB"),
];

whole_quantity!(Bytes, "bytes");

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// 2^10 bytes.
    pub const KIB: Self = Self(1 << 10);
    /// 2^20 bytes.
    pub const MIB: Self = Self(1 << 20);
    /// 2^30 bytes.
    pub const GIB: Self = Self(1 << 30);

    /// Prints with decimal units: `3.84 TB`.
    pub const fn decimal(self) -> DecimalSize {
        DecimalSize(self)
    }

    /// All of it, in the largest binary unit that divides it: `4 KiB`, `4097 B`.
    pub fn exact(self) -> String {
        // Each unit has ten bits more than the one before; 0 has none.
        let step = self.0.trailing_zeros() % u64::BITS / 10;
        let (_, name) = BINARY[step as usize];
        format!("{} {name}", self.0 >> (10 * step))
    }

    /// True if it is a whole number of `blocks`; no multiple of zero but zero.
    pub const fn is_multiple_of(self, block: Self) -> bool {
        self.0.is_multiple_of(block.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(real(self.0), &BINARY, 1024.0, true))
    }
}

/// A size printed with decimal units; made by [`Bytes::decimal`].
#[derive(Clone, Copy, Debug)]
pub struct DecimalSize(Bytes);

impl fmt::Display for DecimalSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(real(self.0.0), &DECIMAL, 1000.0, true))
    }
}

/// Bytes per second as text, in either base.
pub(crate) fn rate_text(bytes_per_s: f64, binary: bool) -> String {
    let (steps, limit) = if binary {
        (&BINARY, 1024.0)
    } else {
        (&DECIMAL, 1000.0)
    };
    scaled(bytes_per_s, steps, limit, false) + "/s"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::printed;

    #[test]
    fn sizes_print_three_digits_in_binary_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (4096, "4.00 KiB"),
            (1010 << 10, "1010 KiB"),
            ((1024 << 10) - 1, "1.00 MiB"),
            (50_573_239_910, "47.1 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(Bytes(3_840_755_982_336).decimal().to_string(), "3.84 TB");
        assert_eq!(Bytes(999_600).decimal().to_string(), "1.00 MB");
        assert_eq!(format!("[{:>9}]", Bytes(4096)), "[ 4.00 KiB]");
    }

    #[test]
    fn exact_uses_the_largest_unit_that_divides() {
        assert_eq!(Bytes(4096).exact(), "4 KiB");
        assert_eq!(Bytes(4097).exact(), "4097 B");
        assert_eq!(Bytes(0).exact(), "0 B");
        assert_eq!(Bytes(1 << 30).exact(), "1 GiB");
    }

    proptest::proptest! {
        #[test]
        fn an_exact_size_is_the_size(bytes: u64, shift in 0_u32..64) {
            for size in [bytes >> shift, (bytes >> shift) << shift] {
                let text = Bytes(size).exact();
                let (number, unit) = text.split_once(' ').unwrap_or_default();
                let at = BINARY.iter().position(|(_, name)| *name == unit);
                let shift = 10 * at.unwrap_or(usize::MAX);
                let number: u64 = number.parse()?;
                proptest::prop_assert_eq!(number << shift, size);
                proptest::prop_assert!(shift == 60 || size == 0 || !number.is_multiple_of(1024));
            }
        }

        #[test]
        fn a_printed_size_is_within_half_a_percent(bytes: u64) {
            let (read, bytes) = (printed(&Bytes(bytes).to_string()), real(bytes));
            proptest::prop_assert!((read - bytes).abs() <= bytes * 0.005 + 0.5);
        }
    }
}
