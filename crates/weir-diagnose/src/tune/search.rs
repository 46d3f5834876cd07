//! Search for better settings: the ones to try next.
//!
//! In: the space, the goal, the result of every trial so far, with what each was found to be held back by. Out: a [`TuneStep`]. The search runs again
//! over all results each time, so that it depends on nothing else. It tries the start three times, which
//! gives the noise; then each other value of the settings without an order; then, setting by setting, two
//! values far from the present one and the top of the parabola through all three, the setting first that a trial
//! of the accepted point points at, and all that move together before the first of them. What a cycle over all
//! settings finds is accepted if the median of three trials gains more than 2 % and twice the noise. A
//! cycle without that ends the search: the best four points are tried again, the better half of them twice
//! as often. Not here: results and their noise (`outcomes`), parabolas (`line`).

use crate::tune::line::{Probe, before_failure, far_apart, top};
use crate::tune::outcomes::{LEAST_GAIN, MissingTrial, Outcomes, TuneResult};
use crate::tune::space::{TunePoint, TuneSpace};

/// Trials of a point before it is accepted.
const CONFIRMING_TRIALS: usize = 3;
/// Points that are tried again at the end.
const FINALISTS: usize = 4;
/// The most values of a setting that are tried in a cycle, those that fail aside.
const MOST_PROBES: usize = 4;

/// Goal of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TuneGoal {
    /// A higher figure is better.
    pub is_higher: bool,
    /// Decides in which order settings are tried.
    pub seed: u64,
}

/// Next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneStep {
    /// Try this.
    Trial(TunePoint),
    /// The search is over.
    End(TuneEnd),
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneEnd {
    /// The best point that is known.
    pub best: TunePoint,
    /// The median of its trials; nothing where the start failed.
    pub median: Option<f64>,
    /// The relative standard deviation of trials of one point.
    pub noise: f64,
}

/// The next trial, or the end.
pub fn next_step(space: &TuneSpace, goal: TuneGoal, results: &[impl TuneResult]) -> TuneStep {
    let mut search = Search::new(space, goal, results);
    match search.run() {
        Err(MissingTrial(point)) => TuneStep::Trial(point),
        Ok(()) => TuneStep::End(search.end()),
    }
}

/// The best that is known now, for a search that is ended before its time: the accepted point, or one
/// of fewer trials that gains more; runs in turns tell whether it is better for sure.
pub fn best_so_far(space: &TuneSpace, goal: TuneGoal, results: &[impl TuneResult]) -> TuneEnd {
    let mut search = Search::new(space, goal, results);
    let is_cut = search.run().is_err();
    if is_cut && let Some(best) = search.outcomes.best(1).pop() {
        let medians = [&best, &search.accepted].map(|point| search.outcomes.median(point));
        if search.outcomes.gain(medians[0], medians[1]) > LEAST_GAIN {
            search.accepted = best;
        }
    }
    search.end()
}

struct Search<'a> {
    space: &'a TuneSpace,
    outcomes: Outcomes,
    /// The accepted point.
    accepted: TunePoint,
    order: Vec<usize>,
    random: u64,
}

impl<'a> Search<'a> {
    fn new(space: &'a TuneSpace, goal: TuneGoal, results: &[impl TuneResult]) -> Self {
        Self {
            space,
            outcomes: Outcomes::new(results, goal),
            accepted: space.start(),
            order: (0..space.dimensions.len()).collect(),
            random: goal.seed,
        }
    }

    fn end(&self) -> TuneEnd {
        TuneEnd {
            best: self.accepted.clone(),
            median: self.outcomes.median(&self.accepted),
            noise: self.outcomes.noise(),
        }
    }

    fn run(&mut self) -> Result<(), MissingTrial> {
        let start = self.space.start();
        if self.outcomes.measured(&start, CONFIRMING_TRIALS)?.is_none() {
            return Ok(());
        }
        let mut is_first = true;
        loop {
            let candidate = self.cycle(is_first)?;
            is_first = false;
            if !self.accepts(&candidate)? {
                break;
            }
        }
        self.finalists()
    }

    /// True if a point is better for sure; it is the accepted one then.
    fn accepts(&mut self, candidate: &TunePoint) -> Result<bool, MissingTrial> {
        if *candidate == self.accepted {
            return Ok(false);
        }
        let found = self.outcomes.measured(candidate, CONFIRMING_TRIALS)?;
        let gain = self
            .outcomes
            .gain(found, self.outcomes.median(&self.accepted));
        let is_better = gain > self.outcomes.threshold();
        if is_better {
            self.accepted.clone_from(candidate);
        }
        Ok(is_better)
    }

    /// Tries every setting once; the point that this leads to.
    fn cycle(&mut self, is_first: bool) -> Result<TunePoint, MissingTrial> {
        self.shuffle();
        let mut point = self.accepted.clone();
        let mut order = self.order.clone();
        let named = self.outcomes.dimension(&self.accepted);
        order.sort_by_key(|dimension| Some(*dimension) != named);
        let is_line = |dimension: &&usize| self.space.dimensions[**dimension].is_ordered;
        let (lines, others): (Vec<&usize>, Vec<&usize>) = order.iter().partition(is_line);
        // Settings without an order come first: the others depend on them.
        for dimension in others {
            self.each_value(&mut point, *dimension, is_first)?;
        }
        let is_joint = |dimension: &&usize| self.space.dimensions[**dimension].is_joint;
        let mut joint: Vec<usize> = lines.iter().copied().filter(is_joint).copied().collect();
        for dimension in lines {
            if joint.len() > 1 && joint.contains(dimension) {
                self.line(&mut point, &std::mem::take(&mut joint), is_first)?;
            }
            self.line(&mut point, &[*dimension], is_first)?;
        }
        Ok(point)
    }

    fn each_value(
        &mut self,
        point: &mut TunePoint,
        dimension: usize,
        is_first: bool,
    ) -> Result<(), MissingTrial> {
        let mut others = point.clone();
        if is_first {
            for (value, of) in others.iter_mut().zip(&self.space.dimensions) {
                *value = of.comparing().unwrap_or(*value);
            }
        }
        let at = point[dimension];
        let mut probes = vec![self.probe(&others, &[dimension], at)?];
        for other in 0..self.space.dimensions[dimension].values.len() {
            if other != at {
                probes.push(self.probe(&others, &[dimension], other)?);
            }
        }
        self.move_to_best(point, &[dimension], &probes);
        Ok(())
    }

    /// Tries values of the first of these settings; the others move by as many steps.
    fn line(
        &mut self,
        point: &mut TunePoint,
        dimensions: &[usize],
        is_first: bool,
    ) -> Result<(), MissingTrial> {
        let Some(first) = dimensions.first() else {
            return Ok(());
        };
        let values = self.space.dimensions[*first].values.len();
        let at = point[*first];
        let mut probes = vec![self.probe(point, dimensions, at)?];
        let others = if is_first {
            far_apart(values, at)
        } else {
            [at.saturating_sub(1), (at + 1).min(values - 1)]
        };
        for other in others {
            if probes.iter().all(|one| one.at != other) {
                probes.push(self.probe(point, dimensions, other)?);
            }
        }
        let working = |probes: &[Probe]| probes.iter().filter(|p| p.goodness.is_finite()).count();
        while working(&probes) < MOST_PROBES {
            let next = top(&probes, values).or_else(|| before_failure(&probes));
            let Some(next) = next.filter(|next| probes.iter().all(|one| one.at != *next)) else {
                break;
            };
            probes.push(self.probe(point, dimensions, next)?);
        }
        self.move_to_best(point, dimensions, &probes);
        Ok(())
    }

    fn probe(
        &mut self,
        point: &TunePoint,
        dimensions: &[usize],
        at: usize,
    ) -> Result<Probe, MissingTrial> {
        let point = self.moved(point, dimensions, at);
        let value = self.outcomes.measured(&point, 1)?;
        let sign = if self.outcomes.goal.is_higher {
            1.0
        } else {
            -1.0
        };
        let goodness = match value {
            Some(value) if value > 0.0 => sign * value.ln(),
            _ => f64::NEG_INFINITY,
        };
        Ok(Probe { at, goodness })
    }

    /// The point with this value of the first of these settings, the others as many steps further, as far as
    /// they go.
    fn moved(&self, point: &TunePoint, dimensions: &[usize], at: usize) -> TunePoint {
        let mut moved = point.clone();
        let from = dimensions.first().map_or(at, |first| point[*first]);
        for dimension in dimensions {
            let last = self.space.dimensions[*dimension].values.len() - 1;
            moved[*dimension] = (point[*dimension] + at).saturating_sub(from).min(last);
        }
        moved
    }

    fn move_to_best(&self, point: &mut TunePoint, dimensions: &[usize], probes: &[Probe]) {
        let better = |a: &&Probe, b: &&Probe| a.goodness.total_cmp(&b.goodness);
        let present = probes.first().map_or(f64::NEG_INFINITY, |one| one.goodness);
        if let Some(best) = probes.iter().max_by(better)
            && best.goodness - present > self.outcomes.noise()
        {
            *point = self.moved(point, dimensions, best.at);
        }
    }

    /// Tries the best points again, the better half of them twice as often, until one is left.
    fn finalists(&mut self) -> Result<(), MissingTrial> {
        let mut left = self.outcomes.best(FINALISTS);
        let mut trials = CONFIRMING_TRIALS;
        while left.len() > 1 {
            for point in &left {
                self.outcomes.measured(point, trials)?;
            }
            let best = self.outcomes.best(usize::MAX);
            let rank = |point: &TunePoint| best.iter().position(|known| known == point);
            left.sort_by_key(rank);
            left.truncate(left.len().div_ceil(2));
            trials *= 2;
        }
        match left.pop() {
            Some(winner) if self.outcomes.trials(&winner) >= CONFIRMING_TRIALS => {
                self.accepts(&winner).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Another order for each cycle.
    fn shuffle(&mut self) {
        for end in (1..self.order.len()).rev() {
            let with = self.next_random() % (end as u64 + 1);
            self.order.swap(end, usize::try_from(with).unwrap_or(0));
        }
    }

    /// Steele, Lea and Flood's `SplitMix64`.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
