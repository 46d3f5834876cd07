//! Predicted time of an exchange: latency and width of a channel, or a line through measured times.
//!
//! In: a [`Model`], sizes, ranks, measured figures where the model is fitted. Out: a
//! [`Prediction`]. Spec: effective bandwidth, 7.

#![expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]

use crate::exchange::Model;
use crate::exchange_figures::{SizeFigures, mean};

/// Prediction of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Ranks it is for.
    pub ranks: u32,
    /// Exponent and bytes per second of all ranks, per size.
    pub sizes: Vec<(u8, f64)>,
    /// Mean over the sizes, bytes per second of all ranks.
    pub effective_bytes_per_s: f64,
    /// The fitted line, where the model was fitted.
    pub fit: Option<Fit>,
}

impl Prediction {
    /// Of a message of two to this power, bytes per second of all ranks.
    pub fn of(&self, exponent: u8) -> Option<f64> {
        let found = self.sizes.iter().find(|(e, _)| *e == exponent);
        found.map(|(_, bytes_per_s)| *bytes_per_s)
    }
}

/// `t = latency + bytes / bandwidth`, per message of one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Of an empty message, in seconds.
    pub latency_s: f64,
    /// Of endless messages, bytes per second; absent where time does not grow with size.
    pub bytes_per_s: Option<f64>,
    /// Share of the relative variation of times that the line explains; 1 is all.
    pub r_squared: f64,
}

impl Fit {
    /// The size that comes to half the bandwidth, in bytes.
    pub fn half_bandwidth_bytes(&self) -> Option<f64> {
        self.bytes_per_s.map(|b| b * self.latency_s)
    }

    fn time_s(&self, bytes: f64) -> f64 {
        self.latency_s + self.bytes_per_s.map_or(0.0, |b| bytes / b)
    }
}

impl Model {
    /// Prediction for `ranks` ranks at these exponents. `measured` is what a fitted model is
    /// fitted to. Absent without sizes, or where there is nothing to fit.
    pub fn predict(
        self,
        exponents: &[u8],
        ranks: u32,
        measured: &[SizeFigures],
    ) -> Option<Prediction> {
        let fit = match self {
            Self::Fit => Some(fit(measured)?),
            Self::Channel { .. } => None,
        };
        let one = |exponent: u8| {
            let bytes = 2f64.powi(i32::from(exponent));
            let alone = fit.map_or_else(
                || self.channel_bytes_per_s(bytes),
                |line| bytes / line.time_s(bytes),
            );
            (exponent, f64::from(ranks) * alone)
        };
        let sizes: Vec<_> = exponents.iter().copied().map(one).collect();
        Some(Prediction {
            ranks,
            effective_bytes_per_s: mean(sizes.iter().map(|s| s.1))?,
            sizes,
            fit,
        })
    }

    /// Of one rank; of both directions where they go on at the same time.
    fn channel_bytes_per_s(self, bytes: f64) -> f64 {
        let Self::Channel {
            channels,
            width_bytes,
            frequency_hz,
            latency_s,
            duplex,
        } = self
        else {
            return f64::NAN;
        };
        let cycles = (bytes / (f64::from(channels) * f64::from(width_bytes))).ceil();
        let directions = if duplex { 2.0 } else { 1.0 };
        directions * bytes / (cycles / frequency_hz + latency_s)
    }
}

/// Least squares in relative error: of `1 = latency·x + y/bandwidth` with `x = 1/t`, `y = L/t`.
/// A latency or a growth below zero has no meaning; the other is then fitted alone.
fn fit(measured: &[SizeFigures]) -> Option<Fit> {
    let points: Vec<(f64, f64)> = measured
        .iter()
        .map(|f| (f.message_bytes() as f64, f.usec_per_message / 1e6))
        .filter(|(_, t)| t.is_finite() && *t > 0.0)
        .map(|(bytes, t)| (1.0 / t, bytes / t))
        .collect();
    if points.is_empty() {
        return None;
    }
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| f(*x, *y)).sum::<f64>();
    let (x, y) = (sum(&|x, _| x), sum(&|_, y| y));
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    let determinant = xx * yy - xy * xy;
    let (mut latency_s, mut per_byte) = if points.len() > 1 && determinant > 0.0 {
        (
            (x * yy - y * xy) / determinant,
            (y * xx - x * xy) / determinant,
        )
    } else {
        (x / xx, 0.0)
    };
    if per_byte < 0.0 {
        (latency_s, per_byte) = (x / xx, 0.0);
    } else if latency_s < 0.0 {
        (latency_s, per_byte) = (0.0, y / yy);
    }
    let left = sum(&|x, y| (1.0 - latency_s * x - per_byte * y).powi(2));
    let constant = x / xx;
    let whole = sum(&|x, _| (1.0 - constant * x).powi(2));
    Some(Fit {
        latency_s,
        bytes_per_s: (per_byte > 0.0).then(|| 1.0 / per_byte),
        r_squared: if whole > 0.0 { 1.0 - left / whole } else { 1.0 },
    })
}

#[cfg(test)]
#[allow(
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    reason = "exact by construction"
)]
mod tests {
    use super::*;

    const BOARD: Model = Model::Channel {
        channels: 2,
        width_bytes: 32,
        frequency_hz: 156.25e6,
        latency_s: 520e-9,
        duplex: false,
    };

    fn close(found: f64, published: f64) {
        assert!(
            (found / published - 1.0).abs() < 1e-4,
            "{found:e} {published:e}"
        );
    }

    #[test]
    fn the_board_comes_to_its_published_numbers() {
        let all: Vec<u8> = (0..=20).collect();
        let board = BOARD.predict(&all, 1, &[]).unwrap();
        close(board.of(0).unwrap(), 1.8997e6);
        close(board.of(6).unwrap(), 1.2158e8);
        close(board.of(12).unwrap(), 4.4062e9);
        close(board.of(20).unwrap(), 9.9507e9);
        close(board.effective_bytes_per_s, 3.88589e9);
        let published: Vec<u8> = (0..=12).chain(14..=21).collect();
        let sparse = BOARD.predict(&published, 1, &[]).unwrap();
        close(sparse.effective_bytes_per_s, 4.06961e9);
        let eight = BOARD.predict(&published, 8, &[]).unwrap();
        close(eight.effective_bytes_per_s, 8.0 * 4.06961e9);
    }

    #[test]
    fn both_directions_at_once_are_twice_as_fast() {
        let Model::Channel {
            channels,
            width_bytes,
            frequency_hz,
            latency_s,
            ..
        } = BOARD
        else {
            panic!("a channel")
        };
        let duplex = Model::Channel {
            channels,
            width_bytes,
            frequency_hz,
            latency_s,
            duplex: true,
        };
        let sizes: Vec<u8> = (0..=12).chain(14..=21).collect();
        let found = duplex.predict(&sizes, 1, &[]).unwrap();
        close(found.effective_bytes_per_s, 8.1392e9);
    }

    fn at(exponent: u8, seconds_per_message: f64) -> SizeFigures {
        SizeFigures {
            exponent,
            loop_length: 1,
            bytes: 0.0,
            time_s: seconds_per_message,
            bytes_per_s: 0.0,
            min_max_time_s: 0.0,
            max_max_time_s: 0.0,
            mean_bytes_per_s: 0.0,
            p50_s: 0.0,
            p95_s: 0.0,
            deviation_s: None,
            cov: None,
            usec_per_message: seconds_per_message * 1e6,
        }
    }

    #[test]
    fn a_line_is_found_again() {
        let line = |e: u8| at(e, 1e-6 + 2f64.powi(i32::from(e)) / 5e9);
        let measured: Vec<_> = (0..=20).map(line).collect();
        let found = Model::Fit.predict(&[0, 20], 4, &measured).unwrap();
        let fit = found.fit.unwrap();
        close(fit.latency_s, 1e-6);
        close(fit.bytes_per_s.unwrap(), 5e9);
        close(fit.half_bandwidth_bytes().unwrap(), 5000.0);
        close(fit.r_squared, 1.0);
        close(
            found.of(20).unwrap(),
            4.0 * 1_048_576.0 / (1e-6 + 1_048_576.0 / 5e9),
        );
    }

    #[test]
    fn times_that_do_not_grow_have_no_bandwidth_and_pure_growth_no_latency() {
        let falling = [at(0, 2e-6), at(10, 1e-6)];
        let fit = Model::Fit.predict(&[0], 1, &falling).unwrap().fit.unwrap();
        assert_eq!(fit.bytes_per_s, None);
        assert!(fit.latency_s > 1e-6 && fit.latency_s < 2e-6);
        let steep = [at(0, 1e-9), at(1, 4e-9)];
        let fit = Model::Fit.predict(&[0], 1, &steep).unwrap().fit.unwrap();
        assert_eq!(fit.latency_s, 0.0);
        assert!(fit.bytes_per_s.is_some());
        assert_eq!(Model::Fit.predict(&[0], 1, &[]), None);
        assert_eq!(BOARD.predict(&[], 1, &[]), None);
    }
}
