//! Sizes in bytes: printed with binary units, read in both bases.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::number::{Grammar, Unit, real, scaled, whole_quantity};

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

const fn unit(name: &'static str, factor: u64) -> Unit {
    Unit { name, factor }
}

pub(crate) static BYTES: Grammar = Grammar {
    quantity: "size",
    example: "4 KiB or 1.5 GB",
    units: &[
        unit("B", 1),
        unit("KiB", 1 << 10),
        unit("MiB", 1 << 20),
        unit("GiB", 1 << 30),
        unit("TiB", 1 << 40),
        unit("PiB", 1 << 50),
        unit("EiB", 1 << 60),
        unit("kB", 1_000),
        unit("MB", 1_000_000),
        unit("GB", 1_000_000_000),
        unit("TB", 1_000_000_000_000),
        unit("PB", 1_000_000_000_000_000),
        unit("EB", 1_000_000_000_000_000_000),
    ],
    aliases: &[("bytes", "B"), ("byte", "B")],
    bare: true,
    ambiguous: |number, unit| ambiguous_prefix(number, unit, ""),
};

/// `k`, `K`, `KB`, `m`, `mb` …: the base, or bits or bytes, would have to be guessed.
pub(crate) fn ambiguous_prefix(
    number: &str,
    unit: &str,
    suffix: &str,
) -> Option<(&'static str, String)> {
    let unit = unit.strip_suffix(suffix).unwrap_or(unit);
    let mut letters = unit.chars();
    let prefix = letters.next()?.to_ascii_uppercase();
    let decimal = if prefix == 'K' { 'k' } else { prefix };
    if !"KMGTPE".contains(prefix) || !matches!(letters.as_str(), "" | "b" | "B" | "i" | "ib" | "iB")
    {
        return None;
    }
    let remedy = format!("{number} {prefix}iB{suffix} or {number} {decimal}B{suffix}");
    Some(("it may count in steps of 1000 or of 1024", remedy))
}

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

    /// Text that parses back to the same value, in the largest binary unit that divides it:
    /// `4 KiB`, `4097 B`.
    pub fn exact(self) -> String {
        BYTES.exact(self.0, BYTES.units[..7].iter())
    }

    /// Whether it is a whole number of `blocks`; no multiple of zero but zero.
    pub const fn is_multiple_of(self, block: Self) -> bool {
        self.0.is_multiple_of(block.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(real(self.0), &BINARY, 1024.0, true))
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        BYTES.whole(text).map(Self)
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

    #[test]
    fn sizes_are_read_in_both_bases() {
        for (text, bytes) in [
            ("4 KiB", 4096),
            ("4kB", 4000),
            ("1.5 GiB", 1_610_612_736),
            ("1.5 GB", 1_500_000_000),
            ("0.1 KiB", 102),
            ("4096", 4096),
            (" 512 B ", 512),
            ("1 byte", 1),
            ("16 EiB", 0),
            ("18446744073709551615 B", u64::MAX),
        ] {
            match text.parse::<Bytes>() {
                Ok(size) => assert_eq!(size, Bytes(bytes), "{text}"),
                Err(error) => assert!(matches!(error, ParseError::TooLarge { .. }), "{text}"),
            }
        }
    }

    #[test]
    fn an_ambiguous_size_is_refused_with_both_spellings() {
        let message = |text: &str| text.parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(
            message("4k"),
            "`4k` is ambiguous: it may count in steps of 1000 or of 1024; write 4 KiB or 4 kB"
        );
        assert!(message("1.5 G").ends_with("write 1.5 GiB or 1.5 GB"));
        assert!(message("4KB").ends_with("write 4 KiB or 4 kB"));
        assert!(message("4 mb").ends_with("write 4 MiB or 4 MB"));
        assert!(message("4 kib").ends_with("write 4 KiB or 4 kB"));
    }

    #[test]
    fn a_bad_size_says_what_and_what_to_write() {
        let message = |text: &str| text.parse::<Bytes>().unwrap_err().to_string();
        assert!(message("").contains("write for example 4 KiB"));
        assert!(message("-4 KiB").contains("no sign"));
        assert!(message("1.2.3 B").contains("at most one point"));
        assert!(message("4.").contains("not a size"));
        assert!(message("4 parsec").contains("`parsec` is no unit of a size"));
        assert!(message("1.5 B").contains("write 2 B"));
        assert!(message("0.0001 KiB").contains("write 1 B"));
        assert!(message("99999999999999999999").contains("too large"));
    }

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
        fn an_exact_size_parses_back(bytes: u64, shift in 0_u32..64) {
            let size = Bytes(bytes >> shift);
            proptest::prop_assert_eq!(size.exact().parse::<Bytes>(), Ok(size));
            let round = Bytes((bytes >> shift) << shift);
            proptest::prop_assert_eq!(round.exact().parse::<Bytes>(), Ok(round));
        }

        #[test]
        fn a_printed_size_is_within_half_a_percent(bytes: u64) {
            let read: Bytes = Bytes(bytes).to_string().parse().or_else(|_| "15.99 EiB".parse())?;
            proptest::prop_assert!(real(read.0.abs_diff(bytes)) <= real(bytes) * 0.005 + 0.5);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            let _ = text.parse::<Bytes>();
        }
    }
}
