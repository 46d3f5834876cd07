//! Simulated comparisons with fixed seeds: how often chance is taken for a change, and how often a
//! change is found.

use weir_schema::sample;
use weir_schema::{JobResult, Metric, RunResult};

use crate::{Comparison, Condition, Rule, Side, Sides, Verdict, compare, held};

/// Normal noise: the sum of twelve uniform numbers is as good.
struct Noise(u64);

impl Noise {
    fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// A figure that differs by 2 % from run to run.
    fn about(&mut self, value: f64) -> f64 {
        value * (0.02 * self.normal()).exp()
    }
}

/// A run with five figures: a rate, three times and a cost, each with its own noise.
fn run(noise: &mut Noise, speed: f64) -> RunResult {
    let mut job = JobResult::not_started("a");
    let mut time = |name: &str, value: f64| Metric::low(name, "s", noise.about(value / speed));
    let times = [
        time("p50", 70e-6),
        time("p99", 130e-6),
        time("p99.9", 220e-6),
        time("cost", 1e-6),
    ];
    job.metrics = vec![Metric::high("rate", "ops/s", noise.about(4e5 * speed))];
    job.metrics.extend(times);
    sample::run(vec![vec![(sample::block_job("a"), job)]])
}

/// Rounds of two sides; `speed` says how fast side 0 or 1 is at the place that it has in time.
fn rounds(
    noise: &mut Noise,
    count: usize,
    in_turns: bool,
    speed: impl Fn(usize, usize) -> f64,
) -> Sides {
    let place = |side: usize, round: usize| match (in_turns, round % 2) {
        (true, 0) => 2 * round + side,
        (true, _) => 2 * round + 1 - side,
        (false, _) => count * side + round,
    };
    let sides = [0, 1].map(|side| Side {
        name: ["a", "b"][side].to_owned(),
        runs: (0..count)
            .map(|round| run(noise, speed(side, place(side, round))))
            .collect(),
    });
    Sides {
        sides: sides.to_vec(),
        in_turns: true,
        is_varied: true,
    }
}

fn comparison(sides: &Sides) -> Comparison {
    let rule = Rule {
        threshold: Some(0.02),
        ..Rule::default()
    };
    compare(sides, &rule).unwrap()
}

fn verdict(comparison: &Comparison) -> &Verdict {
    &comparison.pairs[0].jobs[0].metrics[0].verdict
}

fn fails(comparison: &Comparison) -> bool {
    let worse = [Condition::read("worse").unwrap()];
    !held(&worse, comparison, false).unwrap().is_empty()
}

#[test]
fn equal_sides_fail_at_most_five_times_in_a_hundred() {
    let mut noise = Noise(8);
    let failed = (0..100).filter(|_| fails(&comparison(&rounds(&mut noise, 10, true, |_, _| 1.0))));
    let failed = failed.count();
    assert!(failed <= 5, "{failed} of 100");
}

#[test]
fn four_per_cent_slower_is_found_in_twenty_rounds() {
    let mut noise = Noise(9);
    let slower = |side, _| if side == 1 { 0.96 } else { 1.0 };
    let found = (0..100).filter(|_| {
        let comparison = comparison(&rounds(&mut noise, 20, true, slower));
        fails(&comparison) && *verdict(&comparison) == Verdict::Worse
    });
    let found = found.count();
    assert!(found >= 95, "{found} of 100");
}

#[test]
fn drift_is_no_difference_in_turns_and_one_where_the_one_follows_the_other() {
    let mut noise = Noise(10);
    let drift = |_, place| 1.01_f64.powf(f64::from(u16::try_from(place).unwrap()));
    let mut called = |in_turns| {
        let all = (0..50).filter(|_| {
            let comparison = comparison(&rounds(&mut noise, 10, in_turns, drift));
            matches!(verdict(&comparison), Verdict::Better | Verdict::Worse)
        });
        all.count()
    };
    let (turns, blocks) = (called(true), called(false));
    assert!(turns <= 1, "{turns} of 50 in turns");
    assert_eq!(blocks, 50, "one after the other");
}
