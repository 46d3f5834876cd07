//! The trials so far: how good each point of the space is, and how much trials of one point differ.
//!
//! In: the results, in the order of the trials, each with the setting that it points at, if any. Out:
//! medians, gains, the noise. Not here: which trial comes next.

use std::cmp::Ordering;

use crate::tune::search::TuneGoal;
use crate::tune::space::TunePoint;
use crate::tune::trail::TrailTrial;

/// A change below this is none, however quiet the trials are.
pub(super) const LEAST_GAIN: f64 = 0.02;

/// Result of a trial, for the search.
pub trait TuneResult {
    /// The figure; nothing where it failed.
    fn value(&self) -> Option<f64>;

    /// The dimension that holds this point back, by its place, where something points at one.
    fn dimension(&self) -> Option<usize> {
        None
    }
}

impl TuneResult for Option<f64> {
    fn value(&self) -> Option<f64> {
        *self
    }
}

impl TuneResult for TrailTrial {
    fn value(&self) -> Option<f64> {
        self.value
    }

    fn dimension(&self) -> Option<usize> {
        self.dimension
    }
}

/// The trials of a point.
#[derive(Clone, Debug)]
struct PointTrials {
    point: TunePoint,
    /// Nothing where a trial failed.
    values: Vec<Option<f64>>,
    /// Of the last trial that points at one.
    dimension: Option<usize>,
}

/// A point that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct TestedPoint {
    /// The point.
    pub point: TunePoint,
    /// The median of its trials; nothing where most of them failed.
    pub median: Option<f64>,
    /// Number of trials of the point.
    pub trials: usize,
    /// The first reason of a trial of it that failed.
    pub failure: Option<String>,
}

/// All points that were tried, the best first, those without a median last.
pub fn tested_points(goal: TuneGoal, trials: &[TrailTrial]) -> Vec<TestedPoint> {
    let mut points: Vec<(PointTrials, Option<String>)> = Vec::new();
    for trial in trials {
        let known = points.iter_mut().find(|(p, _)| p.point == trial.point);
        if let Some((point, failure)) = known {
            point.values.push(trial.value);
            *failure = failure.take().or_else(|| trial.failure.clone());
        } else {
            let point = PointTrials {
                point: trial.point.clone(),
                values: vec![trial.value],
                dimension: trial.dimension,
            };
            points.push((point, trial.failure.clone()));
        }
    }
    let mut tested: Vec<TestedPoint> = points
        .into_iter()
        .map(|(point, failure)| TestedPoint {
            median: goal.median(&point.values),
            trials: point.values.len(),
            point: point.point,
            failure,
        })
        .collect();
    tested.sort_by(|a, b| match (a.median, b.median) {
        (Some(a), Some(b)) => goal.better_first(a, b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    tested
}

impl TuneGoal {
    fn better_first(self, a: f64, b: f64) -> Ordering {
        if self.is_higher {
            b.total_cmp(&a)
        } else {
            a.total_cmp(&b)
        }
    }

    /// The median of trials of one point, a failed one being worse than any other; nothing where most
    /// failed.
    fn median(self, values: &[Option<f64>]) -> Option<f64> {
        let mut good: Vec<f64> = values.iter().flatten().copied().collect();
        if good.len() * 2 <= values.len() {
            return None;
        }
        good.sort_by(|a, b| self.better_first(*b, *a));
        // From worse to better, behind those that failed.
        let failed = values.len() - good.len();
        let at = |rank: usize| good[rank.saturating_sub(failed)];
        let middle = values.len() / 2;
        Some(if values.len() % 2 == 1 {
            at(middle)
        } else {
            f64::midpoint(at(middle - 1), at(middle))
        })
    }
}

/// Results that a search takes one by one, in the order in which it asks for trials.
pub(super) struct Outcomes {
    results: Vec<(Option<f64>, Option<usize>)>,
    asked: usize,
    tried: Vec<PointTrials>,
    pub(super) goal: TuneGoal,
}

/// The next trial, which has no result yet.
#[derive(Debug)]
pub(super) struct MissingTrial(pub(super) TunePoint);

impl Outcomes {
    pub(super) fn new(results: &[impl TuneResult], goal: TuneGoal) -> Self {
        let results = results.iter().map(|one| (one.value(), one.dimension()));
        Self {
            results: results.collect(),
            asked: 0,
            tried: Vec::new(),
            goal,
        }
    }

    /// Asks for so many trials of a point, earlier ones included, and gives their median: nothing where
    /// most of them failed.
    pub(super) fn measured(
        &mut self,
        point: &TunePoint,
        trials: usize,
    ) -> Result<Option<f64>, MissingTrial> {
        while self.trials(point) < trials {
            let Some((value, dimension)) = self.results.get(self.asked).copied() else {
                return Err(MissingTrial(point.clone()));
            };
            self.asked += 1;
            let value = value.filter(|value| value.is_finite());
            match self.tried.iter_mut().find(|tried| tried.point == *point) {
                Some(tried) => {
                    tried.values.push(value);
                    tried.dimension = dimension.or(tried.dimension);
                }
                None => self.tried.push(PointTrials {
                    point: point.clone(),
                    values: vec![value],
                    dimension,
                }),
            }
        }
        Ok(self.median(point))
    }

    pub(super) fn trials(&self, point: &TunePoint) -> usize {
        let tried = self.tried.iter().find(|tried| tried.point == *point);
        tried.map_or(0, |tried| tried.values.len())
    }

    /// The dimension that holds a point back, where a trial of it points at one.
    pub(super) fn dimension(&self, point: &TunePoint) -> Option<usize> {
        let tried = self.tried.iter().find(|tried| tried.point == *point)?;
        tried.dimension
    }

    /// The median of the trials of a point.
    pub(super) fn median(&self, point: &TunePoint) -> Option<f64> {
        let tried = self.tried.iter().find(|tried| tried.point == *point)?;
        self.goal.median(&tried.values)
    }

    /// Gain of a value over another, as a share of that one.
    pub(super) fn gain(&self, value: Option<f64>, over: Option<f64>) -> f64 {
        let sign = if self.goal.is_higher { 1.0 } else { -1.0 };
        match (value, over) {
            (None, None) => 0.0,
            (None, _) => f64::NEG_INFINITY,
            (_, None) => f64::INFINITY,
            (Some(value), Some(over)) if value.total_cmp(&over).is_eq() => 0.0,
            // Nothing is a share of nothing: any change is all.
            (Some(value), Some(0.0)) => sign * value.signum() * f64::INFINITY,
            (Some(value), Some(over)) => sign * (value - over) / over.abs(),
        }
    }

    /// The relative standard deviation of trials of one point, over all points with several.
    pub(super) fn noise(&self) -> f64 {
        let (mut squares, mut freedom) = (0.0, 0.0);
        for tried in &self.tried {
            let good: Vec<f64> = tried.values.iter().flatten().copied().collect();
            let mean = good.iter().sum::<f64>() / good.len() as f64;
            if good.len() < 2 || mean == 0.0 {
                continue;
            }
            squares += good
                .iter()
                .map(|v| ((v - mean) / mean).powi(2))
                .sum::<f64>();
            freedom += good.len() as f64 - 1.0;
        }
        if freedom > 0.0 {
            (squares / freedom).sqrt()
        } else {
            0.0
        }
    }

    /// A smaller gain is none.
    pub(super) fn threshold(&self) -> f64 {
        LEAST_GAIN.max(2.0 * self.noise())
    }

    /// The best points by their medians, the best first.
    pub(super) fn best(&self, most: usize) -> Vec<TunePoint> {
        let mut ranked: Vec<(&TunePoint, f64)> = self
            .tried
            .iter()
            .filter_map(|tried| Some((&tried.point, self.goal.median(&tried.values)?)))
            .collect();
        ranked.sort_by(|(_, a), (_, b)| self.goal.better_first(*a, *b));
        let points = ranked.into_iter().map(|(point, _)| point.clone());
        points.take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[Option<f64>], is_higher: bool) -> (Option<f64>, f64) {
        let goal = TuneGoal { is_higher, seed: 1 };
        let mut outcomes = Outcomes::new(values, goal);
        let median = outcomes.measured(&vec![0], values.len()).ok().flatten();
        (median, outcomes.noise())
    }

    #[test]
    fn a_failed_trial_is_worse_than_any_value() {
        assert_eq!(of(&[Some(1.0), Some(3.0), Some(2.0)], true).0, Some(2.0));
        assert_eq!(of(&[Some(1.0), Some(3.0), None], true).0, Some(1.0));
        assert_eq!(of(&[Some(1.0), Some(3.0), None], false).0, Some(3.0));
        assert_eq!(of(&[Some(1.0), None, None], true).0, None);
        assert_eq!(of(&[Some(1.0), None], true).0, None);
        assert_eq!(of(&[Some(1.0), Some(2.0)], true).0, Some(1.5));
        assert_eq!(of(&[Some(f64::NAN)], true).0, None);
    }

    #[test]
    fn points_are_listed_from_the_best_to_those_that_failed() {
        let trial = |at: usize, value: Option<f64>| TrailTrial {
            point: vec![at],
            value,
            dimension: None,
            failure: value.is_none().then(|| format!("reason {at}")),
        };
        let trials = [
            trial(0, Some(5.0)),
            trial(1, None),
            trial(2, Some(3.0)),
            trial(0, Some(7.0)),
        ];
        let goal = |is_higher| TuneGoal { is_higher, seed: 1 };
        let order = |is_higher| {
            let tested = tested_points(goal(is_higher), &trials);
            tested.iter().map(|t| t.point[0]).collect::<Vec<_>>()
        };
        assert_eq!(order(true), [0, 2, 1]);
        assert_eq!(order(false), [2, 0, 1]);
        let tested = tested_points(goal(true), &trials);
        assert_eq!((tested[0].median, tested[0].trials), (Some(6.0), 2));
        assert_eq!(tested[2].failure.as_deref(), Some("reason 1"));
    }

    #[test]
    fn noise_is_relative_and_a_gain_goes_the_right_way() {
        let (_, noise) = of(&[Some(99.0), Some(101.0)], true);
        assert!((noise - 2.0_f64.sqrt() / 100.0).abs() < 1e-9, "{noise}");
        let outcomes = Outcomes::new(
            &[] as &[Option<f64>],
            TuneGoal {
                is_higher: false,
                seed: 1,
            },
        );
        assert!((outcomes.gain(Some(0.9), Some(1.0)) - 0.1).abs() < 1e-9);
        assert!(outcomes.gain(Some(0.1), Some(0.0)).is_sign_negative());
        assert!(outcomes.gain(None, Some(1.0)) < -1.0);
        assert!(outcomes.gain(Some(1.0), None) > 1.0);
    }
}
