//! Axes: units, nice ticks, and their text.
//!
//! In: the range of the values and their unit. Out: ticks with text. A linear axis has one unit with
//! one prefix for all its ticks, which its title names; on a logarithmic one each tick has its own.

use weir_units::{Bytes, BytesPerSec, Iops, Nanos};

use super::{count, whole};
use crate::number_format::significant;

/// An axis of fewer nines has a tick at the half.
const ROOM_FOR_HALF: f64 = 5.5;
/// Approximate number of ticks of an axis.
const TICKS: f64 = 6.0;

/// Axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlotAxis {
    /// Name, without the unit.
    pub(crate) name: String,
    pub(crate) unit: AxisUnit,
    pub(crate) scale: AxisScale,
    /// Least and greatest value that is shown.
    pub(crate) range: (f64, f64),
}

/// The unit of an axis' values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AxisUnit {
    Seconds,
    OpsPerSecond,
    BytesPerSecond,
    Bytes,
    /// Of values −log10(1 − p), as the share p.
    Nines,
    Percent,
    /// Any other; empty for a plain number.
    Other(String),
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AxisScale {
    Linear,
    Log,
}

/// A value with its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisTick {
    pub(crate) at: f64,
    pub(crate) text: String,
}

impl AxisUnit {
    /// The word that the data of the page's script has for it.
    pub(crate) fn word(&self) -> &str {
        match self {
            Self::Seconds => "s",
            Self::OpsPerSecond => "ops/s",
            Self::BytesPerSecond => "B/s",
            Self::Bytes => "B",
            Self::Nines => "nines",
            Self::Percent => "%",
            Self::Other(unit) => unit,
        }
    }

    /// The unit of a headline figure.
    pub(crate) fn of_metric(unit: &str) -> Self {
        match unit {
            "s" => Self::Seconds,
            "ops/s" => Self::OpsPerSecond,
            "B/s" => Self::BytesPerSecond,
            "B" => Self::Bytes,
            "%" => Self::Percent,
            other => Self::Other(other.to_owned()),
        }
    }

    /// A value with its unit, three digits of it.
    pub(crate) fn print(&self, value: f64) -> String {
        match self {
            Self::Seconds => Nanos::from_secs_f64(value)
                .map_or_else(|| format!("{value} s"), |time| time.to_string()),
            Self::OpsPerSecond => Iops(value).to_string(),
            Self::BytesPerSecond => BytesPerSec(value).to_string(),
            Self::Bytes => Bytes(whole(value.round()) as u64).to_string(),
            Self::Nines => nines(value),
            Self::Percent => format!("{} %", significant(value, 3)),
            Self::Other(unit) => format!("{} {unit}", significant(value, 3))
                .trim_end()
                .to_owned(),
        }
    }

    /// The prefix for values up to this one, and what it stands for.
    fn prefix(&self, most: f64) -> (f64, &'static str) {
        const SMALL: [(f64, &str); 4] = [(1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")];
        const LARGE: [(f64, &str); 5] =
            [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
        const BINARY: [(f64, &str); 4] = [
            (1_073_741_824.0, "Gi"),
            (1_048_576.0, "Mi"),
            (1024.0, "Ki"),
            (1.0, ""),
        ];
        let steps: &[(f64, &'static str)] = match self {
            Self::Seconds => &SMALL,
            Self::Bytes => &BINARY,
            Self::Nines | Self::Percent => &[(1.0, "")],
            Self::OpsPerSecond | Self::BytesPerSecond | Self::Other(_) => &LARGE,
        };
        let fits = steps.iter().find(|(factor, _)| most >= *factor * 0.9995);
        fits.or(steps.last()).copied().unwrap_or((1.0, ""))
    }

    /// The unit with a prefix: `k ops/s`, `GB/s`, `µs`.
    fn with(&self, prefix: &str) -> String {
        let word = match self {
            Self::Nines => "percentile",
            other => other.word(),
        };
        let gap = if prefix.is_empty() || !matches!(self, Self::OpsPerSecond) {
            ""
        } else {
            " "
        };
        format!("{prefix}{gap}{word}")
    }
}

/// `99.9 %` of 3.
fn nines(value: f64) -> String {
    let beyond = 10f64.powf(-value) * 100.0;
    let digits = whole((value - 2.0 - 1e-9).ceil().clamp(0.0, 12.0));
    format!("{:.digits$} %", 100.0 - beyond)
}

impl PlotAxis {
    /// From 0, or from as far below as values are, to a little above the greatest.
    pub(crate) fn linear(name: &str, unit: AxisUnit, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = bounds(values).unwrap_or((0.0, 1.0));
        let high = if high > 0.0 { high } else { 1.0 };
        Self {
            name: name.to_owned(),
            unit,
            scale: AxisScale::Linear,
            range: (low.min(0.0), high),
        }
    }

    /// Over values above 0.
    pub(crate) fn log(name: &str, unit: AxisUnit, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = bounds(values.filter(|v| *v > 0.0)).unwrap_or((1.0, 10.0));
        // One value alone still needs a width.
        let (low, high) = if high / low < 1.5 {
            (low / 1.5, high * 1.5)
        } else {
            (low, high)
        };
        Self {
            name: name.to_owned(),
            unit,
            scale: AxisScale::Log,
            range: (low, high),
        }
    }

    /// The same with room above the greatest value.
    #[must_use]
    pub(crate) fn with_room(mut self) -> Self {
        match self.scale {
            AxisScale::Linear => self.range.1 *= 1.08,
            AxisScale::Log => self.range.1 *= 1.25,
        }
        self
    }

    /// Place of a value between 0 and 1; nothing where a logarithmic axis has no place for it.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let (low, high) = self.range;
        let at = match self.scale {
            AxisScale::Linear => (value - low) / (high - low),
            AxisScale::Log if value > 0.0 => (value / low).ln() / (high / low).ln(),
            AxisScale::Log => return None,
        };
        at.is_finite().then_some(at)
    }

    /// Its name with the unit of its ticks.
    pub(crate) fn title(&self) -> String {
        let unit = match self.scale {
            AxisScale::Log => String::new(),
            AxisScale::Linear => self.unit.with(self.unit.prefix(self.range.1).1),
        };
        if unit.is_empty() {
            self.name.clone()
        } else if self.name.is_empty() {
            unit
        } else {
            format!("{} ({unit})", self.name)
        }
    }

    /// Its ticks, in order.
    pub(crate) fn ticks(&self) -> Vec<AxisTick> {
        match (self.scale, &self.unit) {
            (_, AxisUnit::Nines) => self.nines(),
            (AxisScale::Linear, _) => self.linear_ticks(),
            (AxisScale::Log, AxisUnit::Bytes) => self.log_ticks(2.0, &[1.0]),
            (AxisScale::Log, AxisUnit::Other(_)) if self.range.1 / self.range.0 < 5000.0 => {
                self.log_ticks(2.0, &[1.0])
            }
            (AxisScale::Log, _) if self.range.1 / self.range.0 < 300.0 => {
                self.log_ticks(10.0, &[1.0, 2.0, 5.0])
            }
            (AxisScale::Log, _) => self.log_ticks(10.0, &[1.0]),
        }
    }

    fn linear_ticks(&self) -> Vec<AxisTick> {
        let (low, high) = self.range;
        let factor = self.unit.prefix(high).0;
        let step = nice((high - low) / factor / TICKS);
        let digits = whole((-step.log10().floor()).clamp(0.0, 12.0));
        let first = (low / factor / step).ceil();
        let most = whole((high / factor / step + 1e-9).floor() - first);
        let ticks = (0..=most.min(20)).map(|i| {
            let value = (first + count(i)) * step;
            AxisTick {
                at: value * factor,
                text: format!("{value:.digits$}"),
            }
        });
        ticks.collect()
    }

    /// Powers of a base, with these multiples of each.
    fn log_ticks(&self, base: f64, multiples: &[f64]) -> Vec<AxisTick> {
        let (low, high) = self.range;
        let (first, last) = (low.log(base).floor(), high.log(base).ceil());
        let powers = whole(last - first).min(400);
        let powers = (0..=powers).map(|i| base.powf(first + count(i)));
        let all = powers.flat_map(|power| multiples.iter().map(move |m| power * m));
        let inside = all.filter(|at| *at >= low * 0.999 && *at <= high * 1.001);
        let inside: Vec<f64> = inside.collect();
        let every = inside.len().div_ceil(9).max(1);
        let kept = inside.into_iter().step_by(every);
        kept.map(|at| AxisTick {
            at,
            text: self.short(at),
        })
        .collect()
    }

    /// A value with a prefix of its own and no digit too many.
    fn short(&self, value: f64) -> String {
        let (factor, prefix) = self.unit.prefix(value);
        let number = significant(value / factor, 3);
        let number = match number.split_once('.') {
            Some((_, _)) => number.trim_end_matches('0').trim_end_matches('.'),
            None => &number,
        };
        format!("{number} {}", self.unit.with(prefix))
            .trim_end()
            .to_owned()
    }

    fn nines(&self) -> Vec<AxisTick> {
        let halves = [(0.0, "0"), (-0.5f64.log10(), "50")];
        let halves = halves.map(|(at, text)| (at, text.to_owned()));
        let rest = (1..=whole(self.range.1)).map(|i| (count(i), nines(count(i))));
        let rest = rest.map(|(at, text)| (at, text.trim_end_matches(" %").to_owned()));
        let all = halves.into_iter().chain(rest);
        // Where there are many nines, the half has no room above 0.
        let has_room = |at: f64| at <= 0.0 || at >= 1.0 || self.range.1 < ROOM_FOR_HALF;
        all.filter(|(at, _)| *at <= self.range.1 && has_room(*at))
            .map(|(at, text)| AxisTick { at, text })
            .collect()
    }
}

/// The next of 1, 2, 5, 10 … that is at least this.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let multiples = [1.0, 2.0, 5.0, 10.0];
    let fits = multiples.iter().find(|m| *m * power >= step * 0.999);
    fits.unwrap_or(&10.0) * power
}

fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values = values.filter(|v| v.is_finite());
    values.fold(None, |bounds, v| match bounds {
        None => Some((v, v)),
        Some((low, high)) => Some((v.min(low), v.max(high))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &PlotAxis) -> Vec<String> {
        axis.ticks().into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn a_linear_axis_has_round_numbers_in_one_unit() {
        let values = [398_000.0, 419_000.0].into_iter();
        let axis = PlotAxis::linear("rate", AxisUnit::OpsPerSecond, values).with_room();
        assert_eq!(axis.title(), "rate (k ops/s)");
        assert_eq!(texts(&axis), ["0", "100", "200", "300", "400"]);
        let axis = PlotAxis::linear("time", AxisUnit::Seconds, [0.0, 0.25].into_iter());
        assert_eq!(axis.title(), "time (ms)");
        assert_eq!(texts(&axis), ["0", "50", "100", "150", "200", "250"]);
        let axis = PlotAxis::linear("x", AxisUnit::Other(String::new()), [0.3].into_iter());
        assert_eq!(
            texts(&axis),
            ["0.00", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30"]
        );
    }

    #[test]
    fn ticks_of_a_logarithmic_axis_have_units_of_their_own() {
        let axis = PlotAxis::log("latency", AxisUnit::Seconds, [51e-6, 2.4e-3].into_iter());
        assert_eq!(texts(&axis), ["100 µs", "200 µs", "500 µs", "1 ms", "2 ms"]);
        let axis = PlotAxis::log("latency", AxisUnit::Seconds, [0.8e-6, 1.2].into_iter());
        assert_eq!(
            texts(&axis),
            ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"]
        );
        let axis = PlotAxis::log("size", AxisUnit::Bytes, [1.0, 1_048_576.0].into_iter());
        assert_eq!(
            texts(&axis),
            ["1 B", "8 B", "64 B", "512 B", "4 KiB", "32 KiB", "256 KiB"]
        );
    }

    #[test]
    fn percentiles_are_spread_by_their_nines() {
        let axis = PlotAxis::linear("p", AxisUnit::Nines, [4.5].into_iter());
        assert_eq!(texts(&axis), ["0", "50", "90", "99", "99.9", "99.99"]);
        assert_eq!(axis.title(), "p (percentile)");
    }

    #[test]
    fn an_axis_of_one_value_has_a_width() {
        for value in [0.0, 1e-9, 7.0, 1e15] {
            let linear = PlotAxis::linear("", AxisUnit::Seconds, [value].into_iter());
            assert!(linear.range.0 < linear.range.1 && !linear.ticks().is_empty());
            let log = PlotAxis::log("", AxisUnit::Seconds, [value].into_iter());
            assert!(log.range.0 < log.range.1 && log.place(value.max(1e-9)).is_some());
        }
        assert_eq!(
            PlotAxis::log("", AxisUnit::Bytes, [].into_iter()).place(0.0),
            None
        );
    }
}
