//! Prints what one draw of each generator costs on this machine.
//!
//! `cargo run --release -p weir-block --example draw_cost`

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::hint::black_box;
use std::num::NonZeroU64;
use std::time::Instant;

use weir_block::generate::GenerateError;
use weir_block::generate::distribution::{Normal, OffsetDistribution, Pareto, Zipf, Zone, Zoned};
use weir_block::generate::lfsr::Lfsr;
use weir_block::generate::mix::{DataKind, KindMix};
use weir_block::generate::offsets::{
    Offsets, PartlyRandom, RunStyle, Sequential, SequentialRuns, Skewed, Uniform, UniformMapped,
};
use weir_block::generate::payload::{Payload, PayloadContent, PayloadRule};
use weir_block::generate::sizes::{SizeDraw, SizeRule};
use weir_run::generate::Streams;
use weir_run::generate::arrivals::{Arrivals, Even, Poisson, Rate};

const DRAWS: u32 = 4_000_000;
const STREAMS: Streams = Streams::new(1, 0);

/// Nanoseconds per call, the best of five rounds.
fn cost(draws: u32, mut draw: impl FnMut() -> u64) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..draws {
            black_box(draw());
        }
        let nanos = start.elapsed().as_secs_f64() * 1e9;
        best = best.min(nanos / f64::from(draws));
    }
    best
}

fn print(name: &str, nanos: f64) {
    println!("{name:<34} {nanos:7.2} ns/draw");
}

fn offsets(name: &str, mut offsets: impl Offsets) {
    let nanos = cost(DRAWS, || {
        offsets.next_block().unwrap_or_else(|| {
            offsets.restart();
            0
        })
    });
    print(name, nanos);
}

fn payload(name: &str, rule: PayloadRule) -> Result<(), GenerateError> {
    let mut payload = Payload::new(rule, STREAMS.payload())?;
    let mut buffer = vec![0; 4096];
    payload.fill(&mut buffer);
    let nanos = cost(DRAWS / 40, || {
        payload.prepare(&mut buffer);
        u64::from(black_box(&buffer)[0])
    });
    println!(
        "{name:<34} {nanos:7.1} ns/4 KiB {:6.2} GB/s",
        4096.0 / nanos
    );
    Ok(())
}

fn patterns() -> Result<(), GenerateError> {
    let small = NonZeroU64::MIN.saturating_add((1 << 20) - 1);
    let large = NonZeroU64::MIN.saturating_add((1 << 30) - 1);
    let run = NonZeroU64::MIN.saturating_add(7);
    offsets("sequential", Sequential::new(small));
    offsets("uniform", Uniform::new(small, STREAMS.offsets()));
    for (name, n) in [
        ("mapped, 2^20 blocks", small),
        ("mapped, 2^30 blocks", large),
    ] {
        offsets(name, UniformMapped::new(n, STREAMS.offsets())?);
    }
    offsets("register, 2^20 blocks", Lfsr::new(small, STREAMS.offsets()));
    let jumps = Uniform::new(small, STREAMS.offsets());
    let runs = SequentialRuns::new(jumps.clone(), small, run, RunStyle::Onwards);
    offsets("runs of 8", runs);
    let half = PartlyRandom::new(jumps, small, 50, STREAMS.jumps());
    offsets("half random", half);
    let zipf = Zipf::new(small, 1.2, 1, None)?;
    let pareto = Pareto::new(small, 0.2, 1, None)?;
    let normal = Normal::new(small, 5.0, None)?;
    let zones = [(60, 10), (40, 90)].map(|(accesses, length)| Zone { accesses, length });
    let zoned = Zoned::by_percent(small, &zones)?;
    for (name, distribution) in [
        ("zipf:1.2", OffsetDistribution::Zipf(zipf)),
        ("pareto:0.2", OffsetDistribution::Pareto(pareto)),
        ("normal:5", OffsetDistribution::Normal(normal)),
        ("zoned:60/10:40/90", OffsetDistribution::Zoned(zoned)),
    ] {
        offsets(name, Skewed::new(distribution, STREAMS.offsets()));
    }
    Ok(())
}

fn choices() -> Result<(), GenerateError> {
    let mut mix = KindMix::new([70, 30, 0], STREAMS.mix())?;
    print("mix 70/30", cost(DRAWS, || mix.next_kind() as u64));
    let range = SizeRule::Range {
        min_bytes: 4096,
        max_bytes: 65_536,
        unaligned: false,
    };
    let split = SizeRule::Split(vec![(512, 10), (4096, 60), (65_536, 30)]);
    let fixed = SizeRule::Fixed { bytes: 4096 };
    for (name, rule) in [
        ("fixed size", fixed),
        ("range of sizes", range),
        ("split of sizes", split),
    ] {
        let mut sizes = SizeDraw::new([rule.clone(), rule.clone(), rule], STREAMS.sizes())?;
        let choose = || {
            sizes
                .choose(DataKind::Read, black_box(1 << 30))
                .unwrap_or(0)
        };
        print(name, cost(DRAWS, choose));
    }
    let rate = Rate::Operations(NonZeroU64::MIN.saturating_add(123_456));
    for (name, mut arrivals) in [
        ("even arrivals", Arrivals::Even(Even::new(rate))),
        (
            "poisson arrivals",
            Arrivals::Poisson(Poisson::new(rate, STREAMS.arrivals())),
        ),
    ] {
        print(name, cost(DRAWS, || arrivals.next_start_ns(4096)));
    }
    Ok(())
}

fn main() -> Result<(), GenerateError> {
    patterns()?;
    choices()?;
    let scrambled = PayloadRule::default();
    let refilled = PayloadRule {
        refill: true,
        ..PayloadRule::default()
    };
    let compressible = PayloadRule {
        compress_percent: 50,
        content: PayloadContent::Random,
        ..PayloadRule::default()
    };
    payload("payload scrambled", scrambled)?;
    payload("payload refilled", refilled)?;
    payload("payload 50 % compressible", compressible)
}
