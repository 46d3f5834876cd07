//! The search beside random search and a sweep, on noisy functions whose best point is known.
//!
//! A trial gives the rate of a path whose costs add up: each setting costs more the further it is from its
//! best value, and trials of one point differ by 1 %. What counts is how many trials it takes until the
//! point that a strategy holds for the best is truly within 5 % of the best.

use super::*;

const SETTINGS: usize = 6;
const VALUES: usize = 10;
const NOISE: f64 = 0.01;
const NEAR: f64 = 0.95;
const MOST: usize = 2000;

/// Knuth's generator is enough here.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, limit: usize) -> usize {
        let limits = 0..limit;
        let draw = self.next();
        limits
            .rev()
            .find(|at| *at as f64 <= draw * limit as f64)
            .unwrap_or(0)
    }
}

struct NoisyPath {
    best: TunePoint,
    costs: Vec<f64>,
    random: Random,
}

impl NoisyPath {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(2_654_435_761) | 1);
        for _ in 0..8 {
            random.next();
        }
        Self {
            best: (0..SETTINGS).map(|_| random.below(VALUES)).collect(),
            costs: (0..SETTINGS).map(|_| 0.05 + 0.3 * random.next()).collect(),
            random,
        }
    }

    /// The true rate of a point; 1 at the best.
    fn rate(&self, point: &[usize]) -> f64 {
        let both = point.iter().zip(&self.best).zip(&self.costs);
        let costs = both.map(|((at, best), cost)| {
            let far = *at as f64 - *best as f64;
            cost * ((far / 2.0).cosh() - 1.0)
        });
        1.0 / (1.0 + costs.sum::<f64>())
    }

    fn trial(&mut self, point: &[usize]) -> f64 {
        let sum: f64 = (0..12).map(|_| self.random.next()).sum();
        self.rate(point) * (1.0 + NOISE * (sum - 6.0))
    }
}

fn space(values: usize) -> TuneSpace {
    let dimension = |at: usize| TuneDimension {
        name: format!("s{at}"),
        values: (0..values).map(|n| (1_u64 << n).to_string()).collect(),
        is_ordered: true,
        start: 0,
        compared_at: None,
        is_joint: false,
    };
    TuneSpace {
        dimensions: (0..SETTINGS).map(dimension).collect(),
    }
}

const fn goal(seed: u64) -> TuneGoal {
    TuneGoal {
        is_higher: true,
        seed,
    }
}

/// Trials until the accepted point is near the best; those of the whole search, and its end.
fn search(path: &mut NoisyPath, seed: u64) -> (usize, usize, TunePoint) {
    let space = space(VALUES);
    let mut results = Vec::new();
    let mut near = MOST;
    loop {
        let known = best_so_far(&space, goal(seed), &results).best;
        if near == MOST && path.rate(&known) >= NEAR {
            near = results.len();
        }
        match next_step(&space, goal(seed), &results) {
            TuneStep::Trial(point) => results.push(Some(path.trial(&point))),
            TuneStep::End(end) => return (near, results.len(), end.best),
        }
    }
}

fn random_search(path: &mut NoisyPath, seed: u64) -> usize {
    let mut random = Random(seed | 1);
    let mut held = (vec![0; SETTINGS], f64::NEG_INFINITY);
    for trial in 0..MOST {
        if path.rate(&held.0) >= NEAR {
            return trial;
        }
        let point: TunePoint = (0..SETTINGS).map(|_| random.below(VALUES)).collect();
        let rate = path.trial(&point);
        if rate > held.1 {
            held = (point, rate);
        }
    }
    MOST
}

/// All values of one setting after the other, a trial each, over and over.
fn sweep(path: &mut NoisyPath) -> usize {
    let mut held = vec![0; SETTINGS];
    let mut trials = 0;
    while trials < MOST {
        for setting in 0..SETTINGS {
            let mut best = (held[setting], f64::NEG_INFINITY);
            for value in 0..VALUES {
                held[setting] = value;
                trials += 1;
                let rate = path.trial(&held);
                if rate > best.1 {
                    best = (value, rate);
                }
            }
            held[setting] = best.0;
            if path.rate(&held) >= NEAR {
                return trials;
            }
        }
    }
    MOST
}

fn median(mut all: Vec<usize>) -> usize {
    all.sort_unstable();
    all[all.len() / 2]
}

#[test]
fn it_comes_near_the_best_in_half_of_the_trials_of_random_search_and_of_a_sweep() {
    const SEEDS: u64 = 31;
    let of = |strategy: fn(u64) -> usize| median((0..SEEDS).map(strategy).collect());
    let tuned = of(|seed| search(&mut NoisyPath::new(seed), seed).0);
    let swept = of(|seed| sweep(&mut NoisyPath::new(seed)));
    let drawn = of(|seed| random_search(&mut NoisyPath::new(seed), seed));
    println!("trials: search {tuned}, sweep {swept}, random {drawn}");
    assert!(2 * tuned <= swept, "{tuned} {swept}");
    assert!(2 * tuned <= drawn, "{tuned} {drawn}");
    let near = (0..SEEDS).filter(|seed| {
        let mut path = NoisyPath::new(*seed);
        let (_, _, end) = search(&mut path, *seed);
        path.rate(&end) >= NEAR
    });
    let near = near.count();
    assert!(near >= 28, "{near} of {SEEDS}");
}

#[test]
fn twenty_trials_from_the_smallest_values_gain_a_third() {
    let space = space(VALUES);
    for seed in 0..31 {
        let mut path = NoisyPath::new(seed);
        let mut results = Vec::new();
        while results.len() < 20
            && let TuneStep::Trial(point) = next_step(&space, goal(seed), &results)
        {
            results.push(Some(path.trial(&point)));
        }
        let best = best_so_far(&space, goal(seed), &results).best;
        let gain = path.rate(&best) / path.rate(&space.start());
        assert!(gain >= 1.3, "seed {seed}: {gain}");
    }
}

#[test]
fn the_setting_that_a_trial_points_at_is_tried_first() {
    let space = space(VALUES);
    for named in 0..SETTINGS {
        let trials = vec![
            TrailTrial {
                point: space.start(),
                value: Some(1.0),
                dimension: Some(named),
                failure: None,
            };
            3
        ];
        let TuneStep::Trial(next) = next_step(&space, goal(1), &trials) else {
            panic!("the search goes on")
        };
        let varied: Vec<usize> = (0..SETTINGS).filter(|at| next[*at] > 0).collect();
        assert_eq!(varied, [named]);
    }
}

#[test]
fn where_settings_change_nothing_the_start_is_kept() {
    let space = space(4);
    let mut kept = 0;
    for seed in 0..40 {
        let mut random = Random(seed * 7919 + 1);
        let mut results = Vec::new();
        let end = loop {
            match next_step(&space, goal(seed), &results) {
                TuneStep::End(end) => break end,
                TuneStep::Trial(_) => {
                    let sum: f64 = (0..12).map(|_| random.next()).sum();
                    results.push(Some(100.0 + 3.0 * (sum - 6.0)));
                }
            }
        };
        kept += usize::from(end.best == space.start());
    }
    // Where chance wins, the start and the best still run in turns.
    assert!(kept >= 32, "{kept} of 40");
}

#[test]
fn a_search_goes_on_where_it_stood_and_another_seed_goes_another_way() {
    let mut path = NoisyPath::new(3);
    let space = space(VALUES);
    let mut results = Vec::new();
    let mut asked = Vec::new();
    while let TuneStep::Trial(point) = next_step(&space, goal(5), &results) {
        results.push(Some(path.trial(&point)));
        asked.push(point);
    }
    for cut in [0, 1, 7, results.len() - 1] {
        let next = next_step(&space, goal(5), &results[..cut]);
        assert_eq!(next, TuneStep::Trial(asked[cut].clone()));
    }
    let others: Vec<TuneStep> = (0..results.len())
        .map(|cut| next_step(&space, goal(6), &results[..cut]))
        .collect();
    assert!(
        others
            .iter()
            .zip(&asked)
            .any(|(other, point)| *other != TuneStep::Trial(point.clone()))
    );
}

#[test]
fn a_start_that_fails_ends_the_search_and_other_failures_do_not() {
    let space = space(VALUES);
    match next_step(&space, goal(1), &[None, Some(1.0), None]) {
        TuneStep::End(end) => assert_eq!((end.best, end.median), (space.start(), None)),
        other @ TuneStep::Trial(_) => panic!("{other:?}"),
    }
    let mut results = Vec::new();
    let end = loop {
        match next_step(&space, goal(1), &results) {
            TuneStep::End(end) => break end,
            // Beyond the fourth value nothing runs.
            TuneStep::Trial(point) if point.iter().any(|at| *at > 3) => results.push(None),
            TuneStep::Trial(point) => {
                results.push(Some(point.iter().map(|at| *at as f64 + 1.0).product()));
            }
        }
    };
    assert!(end.best.iter().all(|at| *at <= 3), "{:?}", end.best);
    assert!(end.median.unwrap() > 1.0, "{end:?}");
}

#[test]
fn settings_without_an_order_are_all_tried() {
    let space = TuneSpace {
        dimensions: vec![TuneDimension::read("way", "a,b,c,d").unwrap()],
    };
    let mut results = Vec::new();
    let end = loop {
        match next_step(
            &space,
            TuneGoal {
                is_higher: false,
                seed: 1,
            },
            &results,
        ) {
            TuneStep::End(end) => break end,
            TuneStep::Trial(point) => results.push(Some([5.0, 4.0, 1.0, 9.0][point[0]])),
        }
    };
    assert_eq!(end.best, [2]);
}

/// The end of a search in which nothing is left to chance.
fn exact_end(space: &TuneSpace, rate: impl Fn(&[usize]) -> f64) -> TunePoint {
    let mut results = Vec::new();
    loop {
        match next_step(space, goal(1), &results) {
            TuneStep::End(end) => return end.best,
            TuneStep::Trial(point) => results.push(Some(rate(&point))),
        }
    }
}

/// Batches that hand over in turn: the smallest counts, so that one of them alone gains nothing.
#[test]
fn settings_that_only_gain_together_move_together() {
    let least = |point: &[usize]| 1.0 + point.iter().copied().min().unwrap_or(0) as f64;
    let with = |is_joint: bool| {
        let mut space = space(VALUES);
        space.dimensions.truncate(3);
        for dimension in &mut space.dimensions {
            dimension.is_joint = is_joint;
        }
        exact_end(&space, least)
    };
    assert_eq!(with(true), [VALUES - 1; 3]);
    assert_eq!(with(false), [0; 3]);
}

/// A layout that is worse with small batches, with which the search begins, and better with larger ones.
#[test]
fn settings_without_an_order_are_compared_where_the_others_are_fit_for_it() {
    let rate = |point: &[usize]| match point {
        [0, batch] => 10.0 + *batch as f64,
        [_, batch] => 3.0 * (*batch as f64 + 1.0),
        _ => 0.0,
    };
    let with = |compared_at: Option<&str>| {
        let mut space = space(VALUES);
        space.dimensions.truncate(2);
        space.dimensions[0] = TuneDimension::read("layout", "a,b").unwrap();
        space.dimensions[1].compared_at = compared_at.map(str::to_owned);
        exact_end(&space, rate)
    };
    assert_eq!(with(Some("32")), [1, VALUES - 1]);
    // A value that is none of them is none to compare at.
    assert_eq!(with(Some("33")), with(None));
}
