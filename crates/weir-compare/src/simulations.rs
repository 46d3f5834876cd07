//! Simulated comparisons with fixed seeds: how often chance is taken for a change, and how often a
//! change is found.

use weir_schema::sample;
use weir_schema::{Better, Interval, JobResult, Metric, RunResult};
use weir_stats::Moments;

use crate::{Comparison, Condition, FigureSpread, Rule, Side, Sides, Verdict, compare, held};

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
        spreads: Vec::new(),
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
fn half_the_speed_is_found_by_any_number_of_runs_beside_any_number_of_figures() {
    let mut noise = Noise(13);
    for (count, others) in (2..16).flat_map(|count| [1, 2, 7].map(|others| (count, others))) {
        for in_turns in [true, false] {
            let mut sides = rounds(&mut noise, count, in_turns, |side, _| [1.0, 0.5][side]);
            sides.in_turns = in_turns;
            for other in 1..others {
                let mut side = sides.sides[1].clone();
                side.name = format!("b{other}");
                sides.sides.push(side);
            }
            let found = comparison(&sides);
            // Two runs leave one degree of freedom: what they establish is luck.
            assert!(
                count == 2 || fails(&found) && *verdict(&found) == Verdict::Worse,
                "{count} runs, {others} sides, in turns {in_turns}: {found:?}"
            );
        }
    }
}

#[test]
fn few_runs_of_equal_sides_fail_at_most_five_times_in_a_hundred() {
    let mut noise = Noise(14);
    for count in 3..6 {
        let failed = (0..100).filter(|_| {
            let mut sides = rounds(&mut noise, count, false, |_, _| 1.0);
            sides.in_turns = false;
            fails(&comparison(&sides))
        });
        let failed = failed.count();
        assert!(failed <= 5, "{failed} of 100 with {count} runs a side");
    }
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

/// Runs that differ by 3 % from each other while each is sure of itself within 0.3 %.
fn jumping(noise: &mut Noise, speed: f64) -> RunResult {
    let mut job = JobResult::not_started("a");
    let mut metric = |name: &str, unit: &str, value: f64| {
        let value = value * (0.03 * noise.normal()).exp();
        // What a run says of itself is an interval of 2.3 standard errors to either side.
        let half = 0.003 * 2.306 * value;
        let interval = Some(Interval {
            low: value - half,
            high: value + half,
        });
        Metric {
            interval,
            ..Metric::low(name, unit, value)
        }
    };
    let [p50, p99, tail, cost] = [70e-6, 130e-6, 220e-6, 1e-6].map(|value| value / speed);
    job.metrics = vec![
        Metric {
            better: Better::Higher,
            ..metric("rate", "ops/s", 4e5 * speed)
        },
        metric("p50", "s", p50),
        metric("p99", "s", p99),
        metric("p99.9", "s", tail),
        metric("cost", "s", cost),
    ];
    sample::run(vec![vec![(sample::block_job("a"), job)]])
}

/// The standard deviation of the logarithm of each figure over runs.
fn spreads(runs: &[RunResult]) -> Vec<FigureSpread> {
    let of = |name: &str| {
        let values = runs.iter().flat_map(|run| {
            let metrics = run.jobs().flat_map(|job| &job.metrics);
            metrics.filter(|metric| metric.name == name)
        });
        let mut logarithms = Moments::default();
        logarithms.extend(values.map(|metric| metric.value.ln()));
        FigureSpread {
            job: 0,
            kind: None,
            name: name.to_owned(),
            deviation: logarithms.deviation().unwrap(),
            runs: u32::try_from(logarithms.count).unwrap(),
        }
    };
    ["rate", "p50", "p99", "p99.9", "cost"].map(of).to_vec()
}

/// One run a side, the second this much as fast, after so many runs that the history knows.
fn single_runs(noise: &mut Noise, known: usize, speed: f64) -> Comparison {
    let history: Vec<RunResult> = (0..known).map(|_| jumping(noise, 1.0)).collect();
    let mut side = |name: &str, speed: f64| Side {
        name: name.to_owned(),
        runs: vec![jumping(noise, speed)],
        spreads: if known > 0 {
            spreads(&history)
        } else {
            Vec::new()
        },
    };
    comparison(&Sides {
        sides: vec![side("a", 1.0), side("b", speed)],
        in_turns: false,
        is_varied: true,
    })
}

fn is_called(comparison: &Comparison) -> bool {
    let jobs = comparison.pairs.iter().flat_map(|pair| &pair.jobs);
    let mut verdicts = jobs.flat_map(|job| &job.metrics).map(|m| &m.verdict);
    verdicts.any(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse))
}

#[test]
fn single_runs_are_no_more_different_than_runs_of_the_history_are() {
    let mut noise = Noise(11);
    let mut rates = |known: usize, speed: f64| {
        let all: Vec<Comparison> = (0..1000)
            .map(|_| single_runs(&mut noise, known, speed))
            .collect();
        let called = all.iter().filter(|c| is_called(c)).count();
        (called, all.iter().filter(|c| fails(c)).count())
    };
    let (alone, _) = rates(0, 1.0);
    assert!(alone >= 900, "{alone} of 1000 without history");
    for known in [5, 20] {
        // To either side in as many as alpha says, and a twentieth more by chance at this number.
        let (called, failed) = rates(known, 1.0);
        assert!(called <= 65 && failed <= 50, "{called}, {failed} of 1000");
    }
    // A change well beyond what runs differ by is seen all the same.
    let (_, large) = rates(20, 0.8);
    assert!(large >= 950, "{large} of 1000");
}

#[test]
fn single_runs_satisfy_conditions_where_the_history_knows_how_runs_differ() {
    let mut noise = Noise(12);
    let worse = [Condition::read("worse").unwrap()];
    let holds = |comparison: &Comparison, is_single_run_enough| {
        let held = held(&worse, comparison, is_single_run_enough).unwrap();
        !held.is_empty()
    };
    let alone = single_runs(&mut noise, 0, 0.7);
    assert!(!holds(&alone, false) && holds(&alone, true));
    assert!(holds(&single_runs(&mut noise, 12, 0.7), false));
}
