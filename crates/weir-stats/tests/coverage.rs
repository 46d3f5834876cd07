//! Do the printed 95 % intervals contain the truth? Five simulated devices whose true
//! throughput and percentiles are known in closed form, many runs of each.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "simulated latencies are far from the limits of their types"
)]

use weir_stats::{Batch, BatchStore, Estimate, Histogram, HistogramError, NoInterval};
use weir_units::{Bytes, Nanos};

const INTERVAL: Nanos = Nanos(100_000_000);

/// Numbers for the devices; elementary functions from `libm`, so that every machine sees the
/// same runs.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

/// A device that serves one operation after the other; latencies in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Device {
    Constant,
    Exponential,
    Bimodal,
    /// One operation in `every` waits 5 to 15 ms more.
    Stalls {
        every: f64,
    },
    /// Lognormal; its slow part forgets over `memory` operations.
    Autocorrelated {
        memory: f64,
    },
}

const BASE: f64 = 650_000.0;
const SIGMA: f64 = 0.3;

impl Device {
    fn latency(self, noise: &mut Noise, slow: &mut f64) -> f64 {
        match self {
            Self::Constant => BASE,
            Self::Exponential => 50_000.0 - 600_000.0 * libm::log(noise.uniform()),
            Self::Bimodal => {
                let mode = if noise.uniform() < 0.9 {
                    400_000.0
                } else {
                    2_000_000.0
                };
                mode * (0.8 + 0.4 * noise.uniform())
            }
            Self::Stalls { every } => {
                let stalls = noise.uniform() < 1.0 / every;
                let stall = if stalls {
                    5e6 + 1e7 * noise.uniform()
                } else {
                    0.0
                };
                500_000.0 * (0.8 + 0.4 * noise.uniform()) + stall
            }
            Self::Autocorrelated { memory } => {
                let keep = libm::exp(-1.0 / memory);
                *slow = keep * *slow + (1.0 - keep * keep).sqrt() * noise.normal();
                BASE * libm::exp(SIGMA * (*slow + noise.normal()))
            }
        }
    }

    fn mean(self) -> f64 {
        match self {
            Self::Constant => BASE,
            Self::Exponential => 650_000.0,
            Self::Bimodal => 0.9 * 400_000.0 + 0.1 * 2_000_000.0,
            Self::Stalls { every } => 500_000.0 + 1e7 / every,
            Self::Autocorrelated { .. } => BASE * libm::exp(SIGMA * SIGMA),
        }
    }

    /// The share of latencies up to `x`.
    fn share_up_to(self, x: f64) -> f64 {
        let ramp = |low: f64, high: f64| ((x - low) / (high - low)).clamp(0.0, 1.0);
        match self {
            Self::Constant => f64::from(u8::from(x >= BASE)),
            Self::Exponential => 1.0 - libm::exp(-(x - 50_000.0).max(0.0) / 600_000.0),
            Self::Bimodal => {
                0.9 * ramp(320_000.0, 480_000.0) + 0.1 * ramp(1_600_000.0, 2_400_000.0)
            }
            Self::Stalls { every } => {
                // A stall is ten times as wide as the rest; its edges hardly smear.
                let stalled = (0..1000)
                    .map(|i| {
                        let rest = 500_000.0 * (0.8 + 0.4 * (f64::from(i) + 0.5) / 1000.0);
                        ((x - rest - 5e6) / 1e7).clamp(0.0, 1.0) / 1000.0
                    })
                    .sum::<f64>();
                (1.0 - 1.0 / every) * ramp(400_000.0, 600_000.0) + stalled / every
            }
            Self::Autocorrelated { .. } => {
                0.5 * libm::erfc(-libm::log(x / BASE) / (SIGMA * 2.0_f64.sqrt()) / 2.0_f64.sqrt())
            }
        }
    }

    fn percentile(self, p: f64) -> f64 {
        let (mut low, mut high) = (1.0, 1e9);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.share_up_to(middle) < p / 100.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        high.round()
    }

    /// One run: the batches and the merged histogram.
    fn run(self, seed: u64, intervals: u32) -> Result<(BatchStore, Histogram), HistogramError> {
        let mut noise = Noise(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut slow = noise.normal();
        // The first operation is under way when measuring begins.
        let mut now = self.latency(&mut noise, &mut slow) * noise.uniform();
        let mut store = BatchStore::new(INTERVAL);
        let mut whole = Histogram::new();
        for interval in 1..=intervals {
            let end = f64::from(interval) * INTERVAL.as_secs_f64() * 1e9;
            let mut histogram = Histogram::new();
            loop {
                let latency = self.latency(&mut noise, &mut slow).round();
                now += latency;
                histogram.record(latency as u64);
                if now >= end {
                    break;
                }
            }
            whole.merge(&histogram)?;
            let batch = Batch {
                operations: histogram.count(),
                bytes: Bytes(0),
                histogram,
            };
            store.push(batch)?;
        }
        Ok((store, whole))
    }
}

/// How often the intervals of one figure held the truth.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    held: u32,
    printed: u32,
    marked: u32,
    width: f64,
}

impl Tally {
    fn count(&mut self, estimate: Option<&Estimate>, truth: f64) {
        let Some(estimate) = estimate else { return };
        if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
            self.printed += 1;
            self.held += u32::from(low <= truth && truth <= high);
            self.width += (high - low) / truth;
        } else {
            assert_eq!(estimate.absent, Some(NoInterval::Correlated));
            self.marked += 1;
        }
    }

    fn mean_width(&self) -> f64 {
        self.width / f64::from(self.printed.max(1))
    }

    fn coverage(&self) -> f64 {
        f64::from(self.held) / f64::from(self.printed.max(1))
    }
}

/// Throughput, p50, p99 and mean over `runs` runs.
fn tallies(device: Device, runs: u64, intervals: u32) -> Result<[Tally; 4], HistogramError> {
    let mut tallies = [Tally::default(); 4];
    let truths = [
        1e9 / device.mean(),
        device.percentile(50.0),
        device.percentile(99.0),
        device.mean(),
    ];
    for run in 0..runs {
        let (store, whole) = device.run(run + 1, intervals)?;
        let percentiles = store.percentiles(&whole, &[50.0, 99.0]);
        let estimates = [
            Some(store.operations_per_second()),
            Some(percentiles[0].1),
            Some(percentiles[1].1),
            store.mean(),
        ];
        for ((tally, estimate), truth) in tallies.iter_mut().zip(&estimates).zip(truths) {
            tally.count(estimate.as_ref(), truth);
        }
    }
    Ok(tallies)
}

#[test]
fn unmarked_intervals_contain_the_truth_in_at_least_93_percent_of_200_runs() {
    // 16 s of 100 ms intervals: 80 batches of 200 ms; the slow device forgets within 50 ms.
    let devices = [
        Device::Constant,
        Device::Exponential,
        Device::Bimodal,
        Device::Stalls { every: 50.0 },
        Device::Autocorrelated { memory: 75.0 },
    ];
    let mut short = Vec::new();
    for device in devices {
        let figures = ["throughput", "p50", "p99", "mean"];
        for (figure, tally) in figures.iter().zip(tallies(device, 200, 160).unwrap()) {
            let (coverage, width) = (100.0 * tally.coverage(), tally.mean_width());
            println!(
                "{device:?} {figure}: {coverage:.1} % of {} printed hold the truth, {} marked, \
                 mean width {width:.3} of it",
                tally.printed, tally.marked
            );
            if coverage < 93.0 || tally.printed < 100 {
                short.push(format!("{device:?} {figure}: {coverage:.1} %"));
            }
        }
    }
    assert!(short.is_empty(), "{short:?}");
}
