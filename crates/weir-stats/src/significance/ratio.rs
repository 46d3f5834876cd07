//! The ratio of two medians, with its interval by resampling.
//!
//! In: a figure of each round of both sides, or of each run of either. Out: the ratio with its
//! interval. What is drawn is counted by its rank, so that a median is a walk over counts and nothing
//! is sorted twice.

use crate::estimate::Estimate;
use crate::random::Random;

const RESAMPLES: usize = 10_000;
const SEED: u64 = 0x5EED;

/// median(b) / median(a) with a percentile bootstrap over rounds, of the level 1 − `alpha`. `rounds`
/// holds (a, b) of the same round; pairs stay together, so that what both suffered cancels. Nothing
/// without rounds or where a median of a is not above zero.
pub fn ratio_of_medians(rounds: &[(f64, f64)], alpha: f64) -> Option<Estimate> {
    let mut a = Resample::of(rounds.iter().map(|round| round.0))?;
    let mut b = Resample::of(rounds.iter().map(|round| round.1))?;
    let mut random = Random::new(SEED);
    interval(a.whole(), b.whole(), alpha, || {
        a.clear();
        b.clear();
        for _ in 0..rounds.len() {
            let drawn = random.below(rounds.len());
            a.add(drawn);
            b.add(drawn);
        }
        (a.median(), b.median())
    })
}

/// The same where nothing pairs a figure of one side with one of the other: either side is drawn for
/// itself.
pub fn ratio_of_unpaired(a: &[f64], b: &[f64], alpha: f64) -> Option<Estimate> {
    let mut of_a = Resample::of(a.iter().copied())?;
    let mut of_b = Resample::of(b.iter().copied())?;
    let mut random = Random::new(SEED);
    interval(of_a.whole(), of_b.whole(), alpha, || {
        (of_a.draw(&mut random), of_b.draw(&mut random))
    })
}

/// The ratio of two figures, and what lies between the tails of that of resampled ones.
fn interval(
    a: f64,
    b: f64,
    alpha: f64,
    mut resampled: impl FnMut() -> (f64, f64),
) -> Option<Estimate> {
    let ratio = |(a, b): (f64, f64)| (a > 0.0).then(|| b / a);
    let value = ratio((a, b))?;
    let mut ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        ratios.push(ratio(resampled())?);
    }
    let tail = tail(alpha);
    let (_, low, above) = ratios.select_nth_unstable_by(tail - 1, f64::total_cmp);
    let low = *low;
    let (_, high, _) = above.select_nth_unstable_by(RESAMPLES - 2 * tail, f64::total_cmp);
    Some(Estimate::within(value, low, *high))
}

/// Number of resampled figures at or beyond either end.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within 1 and half of what is resampled"
)]
fn tail(alpha: f64) -> usize {
    let tail = (RESAMPLES as f64 * alpha / 2.0).round();
    tail.clamp(1.0, RESAMPLES as f64 / 2.0 - 1.0) as usize
}

/// Values by rank, and how often each was drawn.
struct Resample {
    sorted: Vec<f64>,
    rank_of: Vec<usize>,
    drawn: Vec<u32>,
}

impl Resample {
    /// Nothing for no values.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut by_rank: Vec<(usize, f64)> = values.enumerate().collect();
        by_rank.sort_by(|x, y| x.1.total_cmp(&y.1));
        let mut rank_of = vec![0; by_rank.len()];
        for (rank, (index, _)) in by_rank.iter().enumerate() {
            rank_of[*index] = rank;
        }
        (!by_rank.is_empty()).then(|| Self {
            drawn: vec![1; by_rank.len()],
            sorted: by_rank.into_iter().map(|(_, value)| value).collect(),
            rank_of,
        })
    }

    /// The median of the values themselves.
    fn whole(&self) -> f64 {
        middle_of(&self.sorted)
    }

    fn clear(&mut self) {
        self.drawn.fill(0);
    }

    /// Draws the value of this index.
    fn add(&mut self, index: usize) {
        self.drawn[self.rank_of[index]] += 1;
    }

    /// Draws as many as there are; their median.
    fn draw(&mut self, random: &mut Random) -> f64 {
        self.clear();
        for _ in 0..self.sorted.len() {
            self.add(random.below(self.sorted.len()));
        }
        self.median()
    }

    /// The median of what was drawn, which is as many as there are values.
    fn median(&self) -> f64 {
        let count = self.sorted.len();
        let (first, second) = ((count - 1) / 2, count / 2);
        let mut reached = 0;
        let mut lower = None;
        for (value, drawn) in self.sorted.iter().zip(&self.drawn) {
            reached += *drawn as usize;
            if lower.is_none() && reached > first {
                lower = Some(*value);
            }
            if let Some(lower) = lower.filter(|_| reached > second) {
                return f64::midpoint(lower, *value);
            }
        }
        lower.unwrap_or(f64::NAN)
    }
}

/// The middle value, or the middle between the two middle ones. Nothing for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| middle_of(&sorted))
}

/// Of values in order, at least one.
fn middle_of(sorted: &[f64]) -> f64 {
    let count = sorted.len();
    f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_in_every_round_give_a_narrow_interval() {
        // The rounds drift by a factor of two, their ratio does not.
        let rounds: Vec<(f64, f64)> = (10..20)
            .map(|r| (f64::from(r), f64::from(r) * 1.1))
            .collect();
        let ratio = ratio_of_medians(&rounds, 0.05).unwrap();
        assert!((ratio.value - 1.1).abs() < 1e-12);
        assert!(ratio.low.unwrap() > 1.0999 && ratio.high.unwrap() < 1.1001);
        assert_eq!(ratio_of_medians(&[], 0.05), None);
        assert_eq!(ratio_of_medians(&[(0.0, 1.0)], 0.05), None);
        // What is not paired does not cancel.
        let (a, b): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
        let loose = ratio_of_unpaired(&a, &b, 0.05).unwrap();
        assert!((loose.value - 1.1).abs() < 1e-12);
        assert!(loose.low.unwrap() < 1.0 && loose.high.unwrap() > 1.2);
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
        let ratio = ratio_of_medians(&rounds, 0.05).unwrap();
        assert!(ratio.low.unwrap() <= 1.0 && ratio.high.unwrap() >= 1.0);
        let surer = ratio_of_medians(&rounds, 0.01).unwrap();
        assert!(surer.low <= ratio.low && surer.high >= ratio.high);
    }

    /// The median of n uniform numbers, resampled: its percentile interval has a known form. With
    /// a = 1 throughout, that of the ratio is that of b's order statistics, whose chances are binomial.
    #[test]
    fn the_interval_of_a_median_is_that_of_its_order_statistics() {
        let rounds: Vec<(f64, f64)> = (1..=11).map(|b| (1.0, f64::from(b))).collect();
        let ratio = ratio_of_medians(&rounds, 0.05).unwrap();
        // P(median ≤ k) = P(Binomial(11, k/11) ≥ 6): 0.0072 for 2, 0.0512 for 3, 0.9488 for 8,
        // 0.9928 for 9.
        let found = (ratio.value, ratio.low.unwrap(), ratio.high.unwrap());
        assert_eq!(found, (6.0, 3.0, 9.0));
    }

    #[test]
    fn a_resampled_median_is_that_of_the_values_drawn() {
        let mut few = Resample::of([5.0, 1.0, 3.0, 9.0].into_iter()).unwrap();
        assert_eq!(Some(few.whole()), Some(4.0));
        for (drawn, expected) in [
            ([0, 0, 0, 0], 5.0),
            ([1, 1, 2, 3], 2.0),
            ([1, 3, 3, 3], 9.0),
            ([1, 1, 3, 3], 5.0),
        ] {
            few.clear();
            for index in drawn {
                few.add(index);
            }
            assert_eq!(Some(few.median()), Some(expected), "{drawn:?}");
        }
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }
}
