//! Error rates of the steadiness test: steady runs called unsteady, and runs with a cold start that
//! are found.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "what is simulated is far from the limits of its types"
)]

use weir_stats::warmup;
use weir_units::Nanos;

const RUNS: u64 = 1000;

/// Normal noise with a memory of so many stretches, about 100 with a deviation of 20.
fn noise(seed: u64, count: usize, memory: f64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from(u32::try_from((z ^ (z >> 31)) >> 32).unwrap()) / f64::from(u32::MAX)
    };
    // The sum of twelve is normal enough, and the same on every machine.
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let keep = if memory > 0.0 {
        libm::exp(-1.0 / memory)
    } else {
        0.0
    };
    let mut slow = normal();
    let mut next = || {
        slow = keep * slow + (1.0 - keep * keep).sqrt() * normal();
        100.0 + 20.0 * slow
    };
    (0..count).map(|_| next()).collect()
}

fn is_steady(rates: &[f64]) -> bool {
    warmup::test(rates, Nanos::from_millis(100))
        .unwrap()
        .is_steady()
}

/// In percent of a thousand runs.
fn alarms(run: impl Fn(u64) -> Vec<f64>) -> f64 {
    let alarms = (1..=RUNS).filter(|seed| !is_steady(&run(*seed))).count();
    f64::from(u32::try_from(alarms).unwrap()) / 10.0
}

#[test]
fn a_steady_run_raises_a_false_alarm_in_at_most_5_percent_however_slow_it_is() {
    for count in [20, 45, 80, 300] {
        for memory in [0.0, 0.5, 2.0, 8.0, 32.0, 128.0] {
            let share = alarms(|seed| noise(seed, count, memory));
            println!("{count} stretches, memory {memory}: {share:.1} %");
            assert!(
                share <= 5.0,
                "{count} stretches, memory {memory}: {share:.1} %"
            );
        }
    }
}

#[test]
fn a_cold_start_is_found_with_a_ramp_that_is_enough() {
    // A third slower at first, warm within a tenth of the run.
    let cold = |seed| {
        let mut rates = noise(seed, 80, 0.5);
        rates[..8].iter_mut().for_each(|rate| *rate -= 60.0);
        rates
    };
    let share = alarms(cold);
    assert!(share >= 95.0, "{share:.1} %");
    let ramps = (1..=RUNS).filter_map(|seed| {
        let test = warmup::test(&cold(seed), Nanos::from_millis(100)).unwrap();
        test.enough_ramp.filter(|_| !test.is_steady())
    });
    let mut ramps: Vec<Nanos> = ramps.collect();
    ramps.sort_unstable();
    let median = ramps[ramps.len() / 2];
    assert!((500..=800).contains(&(median.0 / 1_000_000)), "{median}");
}
