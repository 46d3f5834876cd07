//! Do the printed 95 % intervals contain the truth? Five simulated devices whose true
//! throughput, mean and percentiles are known in closed form, a thousand runs of each.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "simulated latencies are far from the limits of their types"
)]

use std::thread;

use weir_stats::{Batch, BatchStore, Estimate, Histogram};
use weir_units::{Bytes, Nanos};

/// 3.2 s in 80 stretches, about 5,000 operations; the device with a memory forgets within 50 ms.
const STRETCH: Nanos = Nanos(40_000_000);
const STRETCHES: u32 = 80;
const RUNS: u64 = 1000;

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
    fn run(self, seed: u64) -> (BatchStore, Histogram) {
        let mut noise = Noise(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut slow = noise.normal();
        // The first operation is under way when measuring begins.
        let mut now = self.latency(&mut noise, &mut slow) * noise.uniform();
        let mut store = BatchStore::new(STRETCH, 1);
        let mut whole = Histogram::new();
        for stretch in 1..=STRETCHES {
            let end = f64::from(stretch) * STRETCH.as_secs_f64() * 1e9;
            let mut histogram = Histogram::new();
            while now < end {
                let latency = self.latency(&mut noise, &mut slow).round();
                now += latency;
                histogram.record(latency as u64);
            }
            whole.merge(&histogram).unwrap();
            let batch = Batch {
                stretches: 1,
                length_ns: STRETCH,
                operations: histogram.count(),
                bytes: Bytes(0),
                histogram,
            };
            store.push(batch).unwrap();
        }
        (store.for_estimates(), whole)
    }
}

/// Number of intervals of one figure that held the truth, and their width.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    held: u32,
    width: f64,
}

impl Tally {
    fn count(&mut self, estimate: &Estimate, truth: f64) {
        let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
        assert!(
            low <= estimate.value && estimate.value <= high,
            "{estimate:?}"
        );
        self.held += u32::from(low <= truth && truth <= high);
        self.width += (high - low) / truth / RUNS as f64;
    }

    /// In percent.
    fn coverage(self) -> f64 {
        100.0 * f64::from(self.held) / RUNS as f64
    }
}

const FIGURES: [&str; 4] = ["throughput", "p50", "p99", "mean"];

fn tallies(device: Device) -> [Tally; 4] {
    let mut tallies = [Tally::default(); 4];
    let truths = [
        1e9 / device.mean(),
        device.percentile(50.0),
        device.percentile(99.0),
        device.mean(),
    ];
    let seconds = STRETCH.as_secs_f64() * f64::from(STRETCHES);
    for run in 1..=RUNS {
        let (store, whole) = device.run(run);
        let percentiles = store.percentiles(&whole, &[50.0, 99.0]);
        let estimates = [
            store.operations_per_second(whole.count() as f64 / seconds),
            percentiles[0].1,
            percentiles[1].1,
            store.mean(whole.mean().unwrap()),
        ];
        for ((tally, estimate), truth) in tallies.iter_mut().zip(&estimates).zip(truths) {
            tally.count(estimate, truth);
        }
    }
    tallies
}

#[test]
fn intervals_contain_the_truth_in_91_percent_of_1000_runs_and_in_93_on_average() {
    let devices = [
        Device::Constant,
        Device::Exponential,
        Device::Bimodal,
        Device::Stalls { every: 50.0 },
        Device::Autocorrelated { memory: 75.0 },
    ];
    let found = thread::scope(|scope| {
        let all = devices.map(|device| scope.spawn(move || tallies(device)));
        all.map(|tallies| tallies.join().unwrap())
    });
    let mut coverages = Vec::new();
    for (device, tallies) in devices.iter().zip(found) {
        for (figure, tally) in FIGURES.iter().zip(tallies) {
            let (coverage, width) = (tally.coverage(), tally.width);
            println!("{device:?} {figure}: {coverage:.1} % hold the truth, mean width {width:.4}");
            assert!(coverage >= 91.0, "{device:?} {figure}: {coverage:.1} %");
            coverages.push(coverage);
        }
    }
    let mean = coverages.iter().sum::<f64>() / coverages.len() as f64;
    assert!(mean >= 93.0, "{mean:.1} %");
}
