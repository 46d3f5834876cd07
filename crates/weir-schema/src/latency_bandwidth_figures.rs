//! Figures from the times of ping-pongs and rings: a latency each, and bandwidths.
//!
//! In: a [`LatencyBandwidthResult`]. Out: [`LatencyBandwidthFigures`], or nothing where a run
//! ended early. Pure: every renderer comes to the same numbers. Spec: effective bandwidth, 9.

#![expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]

use weir_units::Nanos;

use crate::latency_bandwidth::{LatencyBandwidthResult, MessageTestResult, PairResult, RingResult};
use crate::warning::Warning;

/// Two times of one measurement are alike if the longer is at most so many times the shorter.
const ALIKE: f64 = 1.1;

/// Of the short messages' latencies and the long messages' bandwidths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyBandwidthFigures {
    /// Seconds that a short message takes between the ranks of a pair.
    pub pair_latency_s: PairRange,
    /// Bytes per second of the long messages of a pair.
    pub pair_bytes_per_s: PairRange,
    /// Seconds that each short message takes in the ring by rank.
    pub natural_latency_s: f64,
    /// The same in random rings, the geometric mean.
    pub random_latency_s: f64,
    /// Bytes per second that each rank sends in the ring by rank.
    pub natural_bytes_per_s: f64,
    /// The same in random rings, the geometric mean.
    pub random_bytes_per_s: f64,
}

/// Of all pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairRange {
    /// Least.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Greatest.
    pub max: f64,
}

impl PairRange {
    /// Range of values; `None` without any.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        let count = Some(values.len()).filter(|n| *n > 0)? as f64;
        Some(Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean: values.iter().sum::<f64>() / count,
            max: values.iter().copied().fold(0.0, f64::max),
        })
    }
}

/// The figures of a result that is whole.
pub fn latency_bandwidth_figures(
    result: &LatencyBandwidthResult,
) -> Option<LatencyBandwidthFigures> {
    let (short, long) = (&result.latency, &result.bandwidth);
    let bytes = long.bytes.0 as f64;
    Some(LatencyBandwidthFigures {
        pair_latency_s: PairRange::of(pair_latencies(short)?.into_iter())?,
        pair_bytes_per_s: PairRange::of(pair_latencies(long)?.into_iter().map(|s| bytes / s))?,
        natural_latency_s: short.natural.as_ref()?.latency_s()?,
        random_latency_s: random(short)?,
        natural_bytes_per_s: bytes / long.natural.as_ref()?.latency_s()?,
        random_bytes_per_s: bytes / random(long)?,
    })
}

fn pair_latencies(test: &MessageTestResult) -> Option<Vec<f64>> {
    test.pairs.iter().map(PairResult::latency_s).collect()
}

/// The geometric mean of the latencies. That of the bandwidths follows from it.
fn random(test: &MessageTestResult) -> Option<f64> {
    let logarithms: Option<Vec<f64>> = test
        .random
        .iter()
        .map(|ring| ring.latency_s().map(f64::ln))
        .collect();
    let logarithms = logarithms.filter(|all| !all.is_empty())?;
    Some((logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

/// Seconds per message, of which an iteration has two.
fn per_message<'a>(times: impl IntoIterator<Item = &'a Nanos>, loop_length: u64) -> Option<f64> {
    let best = times.into_iter().map(|time| time.raw()).min()?;
    (best > 0 && loop_length > 0).then(|| best as f64 / 1e9 / (2.0 * loop_length as f64))
}

/// True if the best measurement, which counts, stands alone: no other is like it.
fn is_lone(mut times: Vec<Nanos>) -> bool {
    times.sort_unstable();
    match times[..] {
        [best, second, ..] => second.raw() as f64 > best.raw() as f64 * ALIKE,
        _ => false,
    }
}

/// True if the best stands alone for more than half of the pairs or rings.
fn is_noisy(measured: impl Iterator<Item = Vec<Nanos>>) -> bool {
    let lone: Vec<bool> = measured.map(is_lone).collect();
    lone.iter().filter(|lone| **lone).count() * 2 > lone.len()
}

/// Warnings about conditions that spoil the figures.
pub fn latency_bandwidth_warnings(result: &LatencyBandwidthResult, job: &str) -> Vec<Warning> {
    let of_ring = |ring: &RingResult| [ring.sendrecv_ns.clone(), ring.nonblocking_ns.clone()];
    let of_test = |test: &MessageTestResult, what: &str| {
        let pairs = test.pairs.iter().map(|pair| pair.times_ns.clone());
        let natural = test.natural.iter().flat_map(of_ring);
        let random = test.random.iter().flat_map(of_ring);
        let noisy = [
            ("pairs", is_noisy(pairs)),
            ("the natural ring", is_noisy(natural)),
            ("random rings", is_noisy(random)),
        ];
        let noisy = noisy.iter().filter(|(_, noisy)| *noisy);
        noisy
            .map(|(where_to, _)| format!("{what} of {where_to}"))
            .collect::<Vec<_>>()
    };
    let mut noisy = of_test(&result.latency, "latency");
    noisy.extend(of_test(&result.bandwidth, "bandwidth"));
    if noisy.is_empty() {
        return Vec::new();
    }
    let cause = format!(
        "the best measurement stands alone, no other within 10 %: {}",
        noisy.join(", ")
    );
    let remedy = "pin the ranks, leave CPUs to them, ask for a minimum time of loops";
    vec![Warning::new("exchange-noisy", Some(job), cause).with_remedy(remedy)]
}

impl PairResult {
    /// Seconds that a message takes from one rank to the other, in the best measurement.
    pub fn latency_s(&self) -> Option<f64> {
        per_message(&self.times_ns, self.loop_length)
    }
}

impl RingResult {
    /// Seconds per message of a rank, in the best measurement of the better method.
    pub fn latency_s(&self) -> Option<f64> {
        let both = self.sendrecv_ns.iter().chain(&self.nonblocking_ns);
        per_message(both, self.loop_length)
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Bytes;

    use super::*;

    fn pair(client: u32, times: &[u64]) -> PairResult {
        PairResult {
            client,
            server: 1 - client,
            loop_length: 5,
            times_ns: times.iter().map(|t| Nanos(*t)).collect(),
        }
    }

    fn ring(sendrecv: u64, nonblocking: u64) -> RingResult {
        RingResult {
            order: vec![0, 1],
            loop_length: 10,
            sendrecv_ns: vec![Nanos(sendrecv), Nanos(sendrecv + 7)],
            nonblocking_ns: vec![Nanos(nonblocking + 9), Nanos(nonblocking)],
        }
    }

    #[test]
    fn a_best_measurement_that_stands_alone_is_told() {
        let noisy = |result: &LatencyBandwidthResult| {
            let raised = latency_bandwidth_warnings(result, "j");
            let cause = raised.first().map(|warning| warning.cause.clone());
            cause.unwrap_or_default()
        };
        let mut result = whole();
        for test in [&mut result.latency, &mut result.bandwidth] {
            test.pairs = vec![pair(0, &[1000, 1100, 9000]), pair(1, &[2000, 2000])];
        }
        assert_eq!(noisy(&result), "");
        // One of two is not most of them.
        result.latency.pairs[0].times_ns[1] = Nanos(1101);
        assert_eq!(noisy(&result), "");
        result.latency.pairs[1].times_ns[1] = Nanos(3000);
        assert!(noisy(&result).ends_with("10 %: latency of pairs"));
        for ring in &mut result.bandwidth.random {
            ring.sendrecv_ns[1] = Nanos(u64::MAX);
            ring.nonblocking_ns[0] = Nanos(u64::MAX);
        }
        let raised = noisy(&result);
        assert!(
            raised.ends_with("latency of pairs, bandwidth of random rings"),
            "{raised}"
        );
    }

    fn whole() -> LatencyBandwidthResult {
        let test = |bytes, pairs, rings: [RingResult; 3]| {
            let [natural, a, b] = rings;
            MessageTestResult {
                bytes: Bytes(bytes),
                stride: Some(1),
                pairs,
                natural: Some(natural),
                random: vec![a, b],
            }
        };
        LatencyBandwidthResult {
            latency: test(
                8,
                vec![pair(0, &[3_000, 2_000]), pair(1, &[4_000, 5_000])],
                [ring(6_000, 8_000), ring(2_000, 9_000), ring(9_000, 8_000)],
            ),
            bandwidth: test(
                1_000,
                vec![pair(0, &[10_000]), pair(1, &[5_000])],
                [
                    ring(20_000, 30_000),
                    ring(20_000, 40_000),
                    ring(5_000, 9_000),
                ],
            ),
            ..LatencyBandwidthResult::default()
        }
    }

    fn near(value: f64, wanted: f64) {
        assert!((value / wanted - 1.0).abs() < 1e-12, "{value} {wanted}");
    }

    #[test]
    fn the_best_measurement_counts_and_an_iteration_has_two_messages() {
        let figures = latency_bandwidth_figures(&whole()).unwrap();
        near(figures.pair_latency_s.min, 200e-9);
        near(figures.pair_latency_s.mean, 300e-9);
        near(figures.pair_latency_s.max, 400e-9);
        near(figures.pair_bytes_per_s.min, 1e9);
        near(figures.pair_bytes_per_s.max, 2e9);
        near(figures.natural_latency_s, 300e-9);
        // The geometric mean of 100 ns and 400 ns.
        near(figures.random_latency_s, 200e-9);
        near(figures.natural_bytes_per_s, 1e9);
        // Of 1 GB/s and 4 GB/s.
        near(figures.random_bytes_per_s, 2e9);
    }

    #[test]
    fn a_run_that_ended_early_has_no_figures() {
        let mut early = whole();
        early.bandwidth.natural = None;
        assert_eq!(latency_bandwidth_figures(&early), None);
        let mut early = whole();
        early.latency.random.clear();
        assert_eq!(latency_bandwidth_figures(&early), None);
        let mut early = whole();
        early.latency.pairs.clear();
        assert_eq!(latency_bandwidth_figures(&early), None);
    }
}
