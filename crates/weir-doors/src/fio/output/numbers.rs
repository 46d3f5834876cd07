//! fio's numbers: a scaled figure of at most so many digits, and the unit of a latency line.
//!
//! In: integers and floats in base units. Out: text as fio 3.33 prints it. Not here: which
//! figure stands where.

/// Unit of a scaled figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FigureUnit {
    /// Nothing: `32.0k`.
    None,
    /// Bytes.
    Byte,
    /// Bytes per second.
    BytePerSec,
    /// Bits per second; the figure is given in bytes.
    BitPerSec,
}

impl FigureUnit {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Byte => "B",
            Self::BytePerSec => "B/s",
            Self::BitPerSec => "bit/s",
        }
    }
}

/// Steps of a scaled figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// 1024, `KiB`.
    Binary,
    /// 1000, `kB`.
    Decimal,
}

impl Base {
    const fn step(self) -> u64 {
        match self {
            Self::Binary => 1024,
            Self::Decimal => 1000,
        }
    }

    const fn prefixes(self) -> [&'static str; 7] {
        match self {
            Self::Binary => ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"],
            Self::Decimal => ["", "k", "M", "G", "T", "P", "E"],
        }
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Binary => Self::Decimal,
            Self::Decimal => Self::Binary,
        }
    }
}

/// A figure of at most `digits` digits, divided until its integer part fits; what room is left
/// holds decimals.
pub(super) fn scaled(figure: u64, digits: usize, base: Base, unit: FigureUnit) -> String {
    scaled_from(figure, 0, digits, base, unit)
}

/// The same for a figure that counts in KiB or kB, and is never printed finer.
pub(super) fn scaled_from_kilo(figure: u64, digits: usize, base: Base, unit: FigureUnit) -> String {
    scaled_from(figure, 1, digits, base, unit)
}

fn scaled_from(figure: u64, power: usize, digits: usize, base: Base, unit: FigureUnit) -> String {
    let mut whole = u128::from(figure) * if unit == FigureUnit::BitPerSec { 8 } else { 1 };
    let step = u128::from(base.step());
    let mut rest = None;
    let mut power = power;
    while length(whole) > digits && power + 1 < base.prefixes().len() {
        rest = Some(whole % step);
        whole /= step;
        power += 1;
    }
    let tail = format!("{}{}", base.prefixes()[power], unit.name());
    let Some(rest) = rest else {
        return format!("{whole}{tail}");
    };
    match digits.saturating_sub(length(whole)) {
        0 | 1 => format!("{}{tail}", whole + u128::from(rest >= step / 2)),
        room => with_decimals(whole, rest, step, room - 1) + &tail,
    }
}

/// Decimals that round up to a whole carry into the integer: 99.99 becomes `100.0`.
#[expect(clippy::cast_precision_loss, reason = "the remainder is below 1024")]
fn with_decimals(whole: u128, rest: u128, step: u128, places: usize) -> String {
    let text = format!("{:.places$}", rest as f64 / step as f64);
    let carried = whole + u128::from(text.starts_with('1'));
    format!("{carried}{}", &text[1..])
}

fn length(figure: u128) -> usize {
    figure.checked_ilog10().unwrap_or(0) as usize + 1
}

/// A latency unit: its name and its nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LatencyUnit {
    pub(super) name: &'static str,
    pub(super) ns: u64,
    /// Number of times that 1000 was divided out.
    pub(super) steps: u32,
}

const NSEC: LatencyUnit = LatencyUnit {
    name: "nsec",
    ns: 1,
    steps: 0,
};
const USEC: LatencyUnit = LatencyUnit {
    name: "usec",
    ns: 1000,
    steps: 1,
};
const MSEC: LatencyUnit = LatencyUnit {
    name: "msec",
    ns: 1_000_000,
    steps: 2,
};

/// The unit that a line with this minimum and maximum is printed in.
pub(super) const fn latency_unit(min: u64, max: u64) -> LatencyUnit {
    if min > 2_000_000 && max > 99_999_999 {
        MSEC
    } else if min > 2000 && max > 99_999 {
        USEC
    } else {
        NSEC
    }
}

/// The same for a line that prints a deviation, which has to be large enough too.
pub(super) fn latency_unit_with_deviation(min: u64, max: u64, deviation: f64) -> LatencyUnit {
    match latency_unit(min, max) {
        MSEC if deviation > 1_000_000.0 => MSEC,
        MSEC | USEC if deviation > 1000.0 => USEC,
        _ => NSEC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(figure: u64) -> String {
        scaled(figure, 4, Base::Binary, FigureUnit::Byte)
    }

    #[test]
    fn sizes_print_as_fio_prints_them() {
        for (figure, text) in [
            (0, "0B"),
            (4096, "4096B"),
            (11_254, "11.0KiB"),
            (16_384, "16.0KiB"),
            (1 << 20, "1024KiB"),
            (8 << 20, "8192KiB"),
            (1 << 30, "1024MiB"),
            (64 << 30, "64.0GiB"),
            (u64::MAX, "16.0EiB"),
        ] {
            assert_eq!(bytes(figure), text);
        }
        let decimal = |n| scaled(n, 4, Base::Decimal, FigureUnit::Byte);
        assert_eq!(decimal(8 << 20), "8389kB");
        assert_eq!(decimal(64 << 30), "68.7GB");
        assert_eq!(
            scaled(1_048_576_000, 6, Base::Decimal, FigureUnit::BytePerSec),
            "1048.6MB/s"
        );
        assert_eq!(
            scaled(1_048_576_000, 6, Base::Binary, FigureUnit::BytePerSec),
            "1000.0MiB/s"
        );
    }

    #[test]
    fn counts_and_bits_print_as_fio_prints_them() {
        let count = |n| scaled(n, 4, Base::Decimal, FigureUnit::None);
        assert_eq!(count(533), "533");
        assert_eq!(count(1_441_000), "1441k");
        assert_eq!(count(32_000), "32.0k");
        assert_eq!(count(2_048_000), "2048k");
        assert_eq!(
            scaled(2_048_000, 6, Base::Decimal, FigureUnit::None),
            "2048.0k"
        );
        assert_eq!(
            scaled(1_048_576_000, 4, Base::Decimal, FigureUnit::BitPerSec),
            "8389Mbit/s"
        );
        assert_eq!(
            scaled(1_048_576_000, 4, Base::Binary, FigureUnit::BitPerSec),
            "8000Mibit/s"
        );
    }

    #[test]
    fn decimals_that_round_up_carry_into_the_integer() {
        assert_eq!(bytes(10 * 1024 + 1014), "11.0KiB");
        assert_eq!(bytes(u64::from(99_999_u32)), "97.7KiB");
    }

    #[test]
    fn a_latency_line_changes_its_unit_where_fio_does() {
        assert_eq!(latency_unit(2000, 100_000).name, "nsec");
        assert_eq!(latency_unit(2001, 99_999).name, "nsec");
        assert_eq!(latency_unit(2001, 100_000).name, "usec");
        assert_eq!(latency_unit(2_000_001, 100_000_000).name, "msec");
        assert_eq!(
            latency_unit_with_deviation(3_000_000, 200_000_000, 900.0).name,
            "nsec"
        );
        assert_eq!(
            latency_unit_with_deviation(3_000_000, 200_000_000, 2000.0).name,
            "usec"
        );
        assert_eq!(
            latency_unit_with_deviation(3_000_000, 200_000_000, 2e6).name,
            "msec"
        );
    }
}
