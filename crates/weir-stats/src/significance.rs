//! Comparing two runs, or many rounds of two: is the difference more than chance?
//!
//! In: figures of paired rounds, means of two runs, or two merged histograms. Out: a ratio or
//! a difference with its 95 % interval, the largest gap of two distributions. Not here: the
//! verdict in words, and how many rounds to run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::histogram::Histogram;
use crate::random::Random;
use crate::series_mean::SeriesMean;

const RESAMPLES: usize = 10_000;
const SEED: u64 = 0x5EED;

/// median(b) / median(a) with a percentile bootstrap over rounds. `rounds` holds (a, b) of the
/// same round; pairs stay together, so that what both suffered cancels. Nothing without rounds
/// or where a median of a is not above zero.
pub fn ratio_of_medians(rounds: &[(f64, f64)]) -> Option<Estimate> {
    let ratio_of = |drawn: &mut Vec<(f64, f64)>| {
        let b = median(drawn, |round| round.1);
        let a = median(drawn, |round| round.0);
        (a > 0.0).then(|| b / a)
    };
    if rounds.is_empty() {
        return None;
    }
    let mut drawn = rounds.to_vec();
    let ratio = ratio_of(&mut drawn)?;
    let mut random = Random::new(SEED);
    let mut ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for slot in &mut drawn {
            *slot = rounds[random.below(rounds.len())];
        }
        ratios.push(ratio_of(&mut drawn)?);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    Some(Estimate::within(
        ratio,
        ratios[tail - 1],
        ratios[RESAMPLES - tail],
    ))
}

fn median(rounds: &mut [(f64, f64)], of: impl Fn(&(f64, f64)) -> f64) -> f64 {
    rounds.sort_unstable_by(|x, y| of(x).total_cmp(&of(y)));
    let middle = rounds.len() / 2;
    if rounds.len() % 2 == 1 {
        of(&rounds[middle])
    } else {
        f64::midpoint(of(&rounds[middle - 1]), of(&rounds[middle]))
    }
}

/// b − a of the means of two single runs. Chance within the runs only: what differs from run to
/// run is not in it.
pub fn difference(a: &SeriesMean, b: &SeriesMean) -> Estimate {
    let (value, half) = (b.mean - a.mean, a.half_width.hypot(b.half_width));
    Estimate::within(value, value - half, value + half)
}

/// Where two distributions are furthest apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The largest difference of the shares up to a value, 0 to 1.
    pub gap: f64,
    /// The value.
    pub at: u64,
    /// Whether the first distribution is ahead there: it has more values up to `at`.
    pub first_is_lower: bool,
}

/// The largest gap of two distribution functions, over the edges of their buckets. Nothing if
/// one is empty or their precision differs.
pub fn largest_gap(a: &Histogram, b: &Histogram) -> Option<Gap> {
    if a.is_empty() || b.is_empty() || a.bits() != b.bits() {
        return None;
    }
    let mut steps: Vec<(u64, u64, u64)> = a.buckets().map(|s| (s.high, s.count, 0)).collect();
    steps.extend(b.buckets().map(|s| (s.high, 0, s.count)));
    steps.sort_unstable();
    let (mut in_a, mut in_b) = (0, 0);
    let mut largest = Gap {
        gap: 0.0,
        at: steps.first()?.0,
        first_is_lower: false,
    };
    for (i, (high, more_a, more_b)) in steps.iter().enumerate() {
        in_a += more_a;
        in_b += more_b;
        let more_follow = steps.get(i + 1).is_some_and(|next| next.0 == *high);
        let apart = in_a as f64 / a.count() as f64 - in_b as f64 / b.count() as f64;
        if !more_follow && apart.abs() > largest.gap {
            largest = Gap {
                gap: apart.abs(),
                at: *high,
                first_is_lower: apart > 0.0,
            };
        }
    }
    Some(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    #[test]
    fn equal_ratios_in_every_round_give_a_narrow_interval() {
        // The rounds drift by a factor of two, their ratio does not.
        let rounds: Vec<(f64, f64)> = (10..20)
            .map(|r| (f64::from(r), f64::from(r) * 1.1))
            .collect();
        let ratio = ratio_of_medians(&rounds).unwrap();
        assert!((ratio.value - 1.1).abs() < 1e-12);
        assert!(ratio.low.unwrap() > 1.0999 && ratio.high.unwrap() < 1.1001);
        assert_eq!(ratio_of_medians(&[]), None);
        assert_eq!(ratio_of_medians(&[(0.0, 1.0)]), None);
    }

    #[test]
    fn noise_without_difference_includes_one() {
        let rounds = [
            (10.0, 11.0),
            (11.0, 10.0),
            (9.0, 10.0),
            (10.0, 9.0),
            (10.5, 10.0),
            (10.0, 10.5),
        ];
        let ratio = ratio_of_medians(&rounds).unwrap();
        assert!(ratio.low.unwrap() <= 1.0 && ratio.high.unwrap() >= 1.0);
    }

    #[test]
    fn the_errors_of_two_means_add_up_as_the_sides_of_a_right_angle() {
        let of = |mean, half_width| SeriesMean {
            mean,
            half_width,
            correlation: 0.0,
            count: 80,
        };
        let apart = difference(&of(100.0, 3.0), &of(110.0, 4.0));
        assert_eq!(apart, Estimate::within(10.0, 5.0, 15.0));
    }

    #[test]
    fn the_largest_gap_is_found_with_its_place() {
        let gap = largest_gap(&histogram(&[1, 2, 3, 4]), &histogram(&[3, 4, 5, 6])).unwrap();
        assert_eq!(
            gap,
            Gap {
                gap: 0.5,
                at: 2,
                first_is_lower: true
            }
        );
        let same = histogram(&[5, 5, 9]);
        assert!(largest_gap(&same, &same).unwrap().gap < 1e-12);
        assert_eq!(largest_gap(&same, &Histogram::new()), None);
    }
}
