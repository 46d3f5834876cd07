//! Figures from the times of an exchange: bandwidth per size, effective bandwidth, their spread,
//! and warnings about conditions that spoil them.
//!
//! In: an [`ExchangeResult`]. Out: [`SizeFigures`] and [`Warning`]s. Pure: every renderer comes
//! to the same numbers. Spec: effective bandwidth, 1.4.

#![expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]

use std::collections::BTreeSet;

use weir_units::Nanos;

use crate::exchange::{ExchangeResult, SizeResult, Transfer};
use crate::warning::Warning;

/// A deviation beyond this part of the mean is noise.
const NOISY: f64 = 0.10;
/// A timed run shorter than so many barriers is mostly barrier.
const BARRIERS: u64 = 20;

/// The figures of one message size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeFigures {
    /// Two to this power are the bytes of a message.
    pub exponent: u8,
    /// Exchanges per timed run.
    pub loop_length: u64,
    /// Bytes that all ranks sent in one timed run.
    pub bytes: f64,
    /// The slowest rank's own best time, in seconds (the peer's `maxMinCalculationTime`).
    pub time_s: f64,
    /// Bytes over that time, per second (the peer's `maxCalcBW`).
    pub bytes_per_s: f64,
    /// The best repetition by its slowest rank, in seconds. Never shorter than `time_s`, which
    /// mixes repetitions.
    pub min_max_time_s: f64,
    /// The worst repetition by its slowest rank, in seconds.
    pub max_max_time_s: f64,
    /// Bytes over the mean repetition, per second.
    pub mean_bytes_per_s: f64,
    /// Median of the repetitions, in seconds.
    pub p50_s: f64,
    /// 95th percentile of the repetitions (nearest rank), in seconds.
    pub p95_s: f64,
    /// Standard deviation of the repetitions (n - 1), in seconds; absent for one.
    pub deviation_s: Option<f64>,
    /// Deviation over mean; absent for one repetition.
    pub cov: Option<f64>,
    /// Microseconds per message of one rank, at `time_s`.
    pub usec_per_message: f64,
}

impl SizeFigures {
    /// Bytes of a message.
    pub fn message_bytes(&self) -> u64 {
        1 << self.exponent
    }

    /// The repetitions differ too much.
    pub fn is_noisy(&self) -> bool {
        self.cov.is_some_and(|cov| cov > NOISY)
    }
}

/// Figures of one size over `replications` channels; absent where a rank has no times.
pub fn size_figures(size: &SizeResult, replications: u32) -> Option<SizeFigures> {
    let repetitions = size.ranks.iter().map(|r| r.times_ns.len()).min()?;
    if repetitions == 0 {
        return None;
    }
    let best = |times: &[Nanos]| times.iter().copied().min();
    let slowest_best = size.ranks.iter().filter_map(|r| best(&r.times_ns)).max()?;
    let mut all = repetitions_s(size);
    all.sort_by(f64::total_cmp);
    let messages = f64::from(replications) * size.loop_length as f64;
    let bytes = size.ranks.len() as f64 * messages * 2f64.powi(i32::from(size.exponent));
    let time_s = slowest_best.as_secs_f64();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let deviation_s = deviation(&all, mean);
    Some(SizeFigures {
        exponent: size.exponent,
        loop_length: size.loop_length,
        bytes,
        time_s,
        bytes_per_s: bytes / time_s,
        min_max_time_s: *all.first()?,
        max_max_time_s: *all.last()?,
        mean_bytes_per_s: bytes / mean,
        p50_s: nearest_rank(&all, 0.50)?,
        p95_s: nearest_rank(&all, 0.95)?,
        deviation_s,
        cov: deviation_s.map(|d| d / mean),
        usec_per_message: time_s * 1e6 / messages,
    })
}

/// Seconds that each repetition took its slowest rank.
pub(crate) fn repetitions_s(size: &SizeResult) -> Vec<f64> {
    let repetitions = size.ranks.iter().map(|r| r.times_ns.len()).min();
    let slowest = |i: usize| size.ranks.iter().filter_map(|r| r.times_ns.get(i)).max();
    (0..repetitions.unwrap_or(0))
        .filter_map(|i| slowest(i).map(|t| t.as_secs_f64()))
        .collect()
}

fn deviation(values: &[f64], mean: f64) -> Option<f64> {
    let below = values.len().checked_sub(1).filter(|n| *n > 0)?;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / below as f64).sqrt())
}

fn nearest_rank(sorted: &[f64], share: f64) -> Option<f64> {
    let index = (1..=sorted.len()).find(|n| *n as f64 >= share * sorted.len() as f64)?;
    sorted.get(index - 1).copied()
}

/// Figures of every size that was exchanged and has any, in order.
pub fn exchange_figures(result: &ExchangeResult, replications: u32) -> Vec<SizeFigures> {
    figures_of(result, replications, None)
}

/// The same of what was done in place of exchanges.
pub fn transfer_figures(
    result: &ExchangeResult,
    replications: u32,
    transfer: Transfer,
) -> Vec<SizeFigures> {
    figures_of(result, replications, Some(transfer))
}

fn figures_of(
    result: &ExchangeResult,
    replications: u32,
    transfer: Option<Transfer>,
) -> Vec<SizeFigures> {
    let sizes = result.sizes.iter().filter(|s| s.transfer == transfer);
    sizes
        .filter_map(|s| size_figures(s, replications))
        .collect()
}

/// The effective bandwidth: the mean over the sizes that were run; absent for none.
pub fn effective_bytes_per_s(figures: &[SizeFigures]) -> Option<f64> {
    mean(figures.iter().map(|f| f.bytes_per_s))
}

/// The arithmetic mean; absent for none.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, n), v| (sum + v, n + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Warnings about conditions that spoil the numbers of an exchange.
pub fn exchange_warnings(result: &ExchangeResult, replications: u32, job: &str) -> Vec<Warning> {
    let sizes = result.sizes.iter();
    let figures: Vec<_> = sizes
        .filter_map(|s| size_figures(s, replications))
        .collect();
    let names = |some: &dyn Fn(&SizeFigures) -> bool| {
        let found = figures.iter().filter(|f| some(f));
        // A size once, though several parts have it.
        let sizes: BTreeSet<_> = found.map(SizeFigures::message_bytes).collect();
        let list: Vec<_> = sizes.iter().map(ToString::to_string).collect();
        (!list.is_empty()).then(|| list.join(", "))
    };
    let warning = |id: &str, cause: String| Warning::new(id, Some(job), cause);
    let mut out = Vec::new();
    if let Some(list) = names(&SizeFigures::is_noisy) {
        out.push(warning(
            "exchange-noisy",
            format!("repetitions differ by more than 10 % of their mean at {list} bytes"),
        ));
    }
    let barrier = result.barrier_ns.unwrap_or_default();
    let floor = Nanos(barrier.0.saturating_mul(BARRIERS)).as_secs_f64();
    if let Some(list) = names(&|f| f.time_s < floor) {
        out.push(warning(
            "exchange-short",
            format!("timed runs are shorter than {BARRIERS} barriers at {list} bytes"),
        ));
    }
    if figures.iter().any(|f| !f.bytes_per_s.is_finite()) {
        out.push(warning(
            "exchange-no-time",
            "a timed run took no time that the clock can tell".to_owned(),
        ));
    }
    out
}

#[cfg(test)]
#[allow(
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    reason = "exact by construction"
)]
mod tests {
    use super::*;
    use crate::exchange::{Method, RankTimes};

    fn size(exponent: u8, loop_length: u64, ranks: &[&[u64]]) -> SizeResult {
        let times = |(rank, times): (usize, &&[u64])| RankTimes {
            rank: rank as u32,
            times_ns: times.iter().copied().map(Nanos).collect(),
            ..RankTimes::default()
        };
        SizeResult {
            exponent,
            loop_length,
            warmup: 0,
            method: Method::Sendrecv,
            transfer: None,
            ranks: ranks.iter().enumerate().map(times).collect(),
        }
    }

    #[test]
    fn one_rank_of_the_published_table_comes_to_its_numbers() {
        let row = size_figures(&size(6, 5, &[&[43_831, 50_000]]), 2).unwrap();
        assert_eq!(format!("{:.5e}", row.bytes_per_s), "1.46015e7");
        let json = size_figures(&size(6, 5, &[&[90_000, 64_772]]), 2).unwrap();
        assert_eq!(json.bytes_per_s.to_string(), "9880812.696844315");
        let rows = [1.46015e7, 1.81044e7, 3.31002e7];
        let mean = mean(rows.into_iter()).unwrap();
        assert_eq!(format!("{mean:.5e}"), "2.19354e7");
    }

    #[test]
    fn the_headline_mixes_repetitions_and_the_rest_does_not() {
        let two = size_figures(&size(0, 10, &[&[100, 300], &[400, 200]]), 1).unwrap();
        assert_eq!(two.bytes, 20.0);
        assert_eq!(two.time_s, 200e-9);
        assert_eq!(two.min_max_time_s, 300e-9);
        assert_eq!(two.max_max_time_s, 400e-9);
        assert!((two.mean_bytes_per_s - 20.0 / 350e-9).abs() < 1.0);
        assert_eq!((two.p50_s, two.p95_s), (300e-9, 400e-9));
        assert!((two.cov.unwrap() - 0.2020).abs() < 1e-4, "{two:?}");
        assert!(two.is_noisy());
    }

    #[test]
    fn one_repetition_has_no_deviation_and_none_has_no_figures() {
        let one = size_figures(&size(3, 1, &[&[80]]), 2).unwrap();
        assert_eq!((one.cov, one.deviation_s), (None, None));
        assert!(!one.is_noisy());
        assert_eq!(size_figures(&size(3, 1, &[&[]]), 2), None);
        assert_eq!(size_figures(&size(3, 1, &[]), 2), None);
    }

    #[test]
    fn noise_and_barriers_are_told_with_the_sizes_they_concern() {
        let result = ExchangeResult {
            sizes: vec![
                size(0, 1, &[&[100, 200]]),
                size(1, 1, &[&[20_000, 20_100]]),
                size(2, 1, &[&[0, 0]]),
                // Another part of the same size.
                size(0, 1, &[&[100, 200]]),
            ],
            barrier_ns: Some(Nanos(1000)),
            ..ExchangeResult::default()
        };
        let ids = |r: &ExchangeResult| {
            let all = exchange_warnings(r, 1, "j").into_iter();
            all.map(|w| (w.id, w.cause)).collect::<Vec<_>>()
        };
        let raised = ids(&result);
        assert_eq!(raised.len(), 3, "{raised:?}");
        assert!(raised[0].0 == "exchange-noisy" && raised[0].1.ends_with("at 1 bytes"));
        assert!(raised[1].0 == "exchange-short" && raised[1].1.ends_with("at 1, 4 bytes"));
        assert_eq!(raised[2].0, "exchange-no-time");
    }
}
