//! Numbers as the report prints them: three significant digits with their unit, or whole
//! numbers in nanoseconds, bytes and operations when raw ones are asked for.
//!
//! In: quantities. Out: text. The printing itself is `weir-units`'; here is only what a report
//! adds: a column that shares one unit, an error beside its value, dates.

use weir_schema::{Metric, RunResult};
use weir_units::{Bytes, BytesPerSec, Count, Date, Iops, Nanos};

/// Steps of rates, largest first.
const STEPS: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];

/// Prints numbers in the way that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct NumberFormat {
    /// Whole numbers in nanoseconds, bytes and operations.
    pub raw: bool,
}

/// A unit that several rates share.
#[derive(Clone, Debug)]
pub(crate) struct RateUnit {
    factor: f64,
    /// `GB/s`, `k ops/s`.
    pub(crate) name: String,
    raw: bool,
}

impl NumberFormat {
    pub(crate) fn iops(self, rate: Iops) -> String {
        if self.raw {
            format!("{} ops/s", rate.raw())
        } else {
            rate.to_string()
        }
    }

    /// Operations per second without the words, `412 k`.
    pub(crate) fn iops_bare(self, rate: Iops) -> String {
        let text = self.iops(rate);
        text.trim_end_matches("ops/s").trim_end().to_owned()
    }

    pub(crate) fn bandwidth(self, rate: BytesPerSec) -> String {
        if self.raw {
            format!("{} B/s", rate.raw())
        } else {
            rate.to_string()
        }
    }

    pub(crate) fn time(self, time: Nanos) -> String {
        if self.raw {
            format!("{} ns", time.raw())
        } else {
            time.to_string()
        }
    }

    pub(crate) fn size(self, size: Bytes) -> String {
        if self.raw {
            format!("{} B", size.raw())
        } else {
            size.to_string()
        }
    }

    pub(crate) fn count(self, count: u64) -> String {
        if self.raw {
            count.to_string()
        } else {
            Count(count).to_string()
        }
    }

    /// A mean time with half its interval, in the same unit: `77.5 µs ± 0.5 µs`.
    pub(crate) fn mean(self, mean_ns: f64, half_ns: Option<f64>) -> String {
        let whole = |ns: f64| Nanos::from_secs_f64(ns / 1e9).unwrap_or_default();
        let mean = self.time(whole(mean_ns));
        let Some(half_ns) = half_ns else { return mean };
        let same_unit = mean.split_once(' ').and_then(|(number, unit)| {
            let factor = [("µs", 1e3), ("ms", 1e6), ("s", 1e9)]
                .iter()
                .find(|(n, _)| *n == unit)?
                .1;
            let digits = number
                .split_once('.')
                .map_or(0, |(_, fraction)| fraction.len());
            let half = format!("{:.digits$}", half_ns / factor);
            // What would round to nothing is better said in its own unit.
            half.contains(|c: char| c.is_ascii_digit() && c != '0')
                .then(|| format!("{half} {unit}"))
        });
        format!(
            "{mean} ± {}",
            same_unit.unwrap_or_else(|| self.time(whole(half_ns)))
        )
    }

    /// A headline figure with its unit.
    pub fn metric(self, metric: &Metric) -> String {
        match metric.unit.as_str() {
            Metric::BYTES_PER_S => self.bandwidth(BytesPerSec(metric.value)),
            Metric::OPS_PER_S => self.iops(Iops(metric.value)),
            Metric::SECONDS => match Nanos::from_secs_f64(metric.value) {
                Some(time) => self.time(time),
                None => format!("{} s", metric.value),
            },
            Metric::BYTES => self.size(bytes(metric.value)),
            unit => {
                let value = if self.raw {
                    metric.value.to_string()
                } else {
                    significant(metric.value, 3)
                };
                format!("{value} {unit}").trim_end().to_owned()
            }
        }
    }

    /// The unit in which the largest of some rates has one to three digits before the point.
    pub(crate) fn rate_unit(self, largest: f64, what: &str) -> RateUnit {
        let (factor, step) = if self.raw {
            (1.0, "")
        } else {
            let step = STEPS.iter().find(|(factor, _)| largest >= *factor * 0.9995);
            step.copied().unwrap_or((1.0, ""))
        };
        let blank = if step.is_empty() || what.starts_with('B') {
            ""
        } else {
            " "
        };
        RateUnit {
            factor,
            name: format!("{step}{blank}{what}"),
            raw: self.raw,
        }
    }
}

impl RateUnit {
    /// The number alone.
    pub(crate) fn print(&self, rate: f64) -> String {
        if self.raw {
            format!("{rate:.0}")
        } else {
            significant(rate / self.factor, 3)
        }
    }
}

/// The nearest whole number of bytes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the nearest number that fits"
)]
fn bytes(value: f64) -> Bytes {
    Bytes(value.round() as u64)
}

/// Number with this many significant digits, zeros kept; digits before the point are never dropped.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".into();
    }
    let places = |value: f64| {
        let mut places = digits - 1;
        let mut limit = 10.0;
        while value.abs() >= limit && places > 0 {
            places -= 1;
            limit *= 10.0;
        }
        let mut small = 1.0;
        while value.abs() < small && places < 12 {
            places += 1;
            small /= 10.0;
        }
        usize::try_from(places).unwrap_or(0)
    };
    // Once more for what rounds up to another digit.
    let rounded = format!("{value:.*}", places(value))
        .parse()
        .unwrap_or(value);
    format!("{value:.*}", places(rounded))
}

/// One decimal below ten: for shares and errors, where more would be noise.
pub(crate) fn brief(value: f64) -> String {
    if value.abs() >= 9.95 {
        format!("{value:.0}")
    } else if value.abs() >= 0.095 || value == 0.0 {
        format!("{value:.1}")
    } else {
        significant(value, 1)
    }
}

/// `2026-11-21 05:30:12 UTC`.
pub(crate) fn date(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let Date { year, month, day } = Date::of_unix_day(days.cast_signed());
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3_600,
        second / 60 % 60,
        second % 60,
    )
}

/// The program whose figures these are, with its version.
pub(crate) fn program(result: &RunResult) -> String {
    let own = || format!("weir {}", result.weir_version);
    let foreign = result.source.as_ref().map(|source| {
        let program = source.program.as_ref().unwrap_or(&source.format);
        format!("{program}, imported")
    });
    foreign.unwrap_or_else(own)
}

/// When it began; other programs may not say so.
pub(crate) fn start(result: &RunResult) -> Option<String> {
    let is_known = result.source.is_none() || result.started_unix_ns > 0;
    is_known.then(|| date(result.started_unix_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: NumberFormat = NumberFormat { raw: false };
    const RAW: NumberFormat = NumberFormat { raw: true };

    #[test]
    fn an_error_stands_in_the_unit_of_its_value() {
        assert_eq!(PLAIN.mean(77_512.0, Some(503.0)), "77.5 µs ± 0.5 µs");
        assert_eq!(PLAIN.mean(77_512.0, Some(12.0)), "77.5 µs ± 12 ns");
        assert_eq!(PLAIN.mean(412.0, Some(3.0)), "412 ns ± 3 ns");
        assert_eq!(
            PLAIN.mean(2_410_000.0, Some(131_000.0)),
            "2.41 ms ± 0.13 ms"
        );
        assert_eq!(PLAIN.mean(2_410_000.0, None), "2.41 ms");
        assert_eq!(RAW.mean(77_512.4, Some(503.4)), "77512 ns ± 503 ns");
    }

    #[test]
    fn rates_of_a_column_share_the_unit_of_the_largest() {
        let unit = PLAIN.rate_unit(3.47e9, "B/s");
        assert_eq!(unit.name, "GB/s");
        assert_eq!(unit.print(213.4e6), "0.213");
        assert_eq!(unit.print(3.44e9), "3.44");
        let unit = PLAIN.rate_unit(103_400.0, "ops/s");
        assert_eq!(unit.name, "k ops/s");
        assert_eq!(unit.print(103_400.0), "103");
        assert_eq!(unit.print(99_960.0), "100");
        assert_eq!(PLAIN.rate_unit(0.0, "B/s").name, "B/s");
        assert_eq!(PLAIN.rate_unit(999_600.0, "B/s").name, "MB/s");
        let unit = RAW.rate_unit(103_400.0, "ops/s");
        assert_eq!(
            (unit.name.as_str(), unit.print(103_400.0).as_str()),
            ("ops/s", "103400")
        );
    }

    #[test]
    fn significant_digits_survive_rounding_up() {
        assert_eq!(significant(9.996, 3), "10.0");
        assert_eq!(significant(0.009_996, 3), "0.0100");
        assert_eq!(significant(1234.5, 3), "1234");
        assert_eq!(significant(0.0, 3), "0");
    }

    #[test]
    fn shares_are_brief() {
        for (value, text) in [
            (0.61, "0.6"),
            (9.96, "10"),
            (71.2, "71"),
            (0.021, "0.02"),
            (0.0, "0.0"),
        ] {
            assert_eq!(brief(value), text);
        }
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_827_696_000_000_000), "2000-02-29 12:34:56 UTC");
        assert_eq!(date(1_795_239_012_000_000_000), "2026-11-21 05:30:12 UTC");
    }
}
