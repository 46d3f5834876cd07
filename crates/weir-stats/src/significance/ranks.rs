//! Probability of ranks that lie at least so far apart, where nothing differs.
//!
//! In: differences of rounds, or figures of either side. Out: two-sided probabilities, exact for as
//! many values as anybody measures: the chances of all sums of ranks are added up. Ranks are doubled,
//! so that ties, which share the middle of their ranks, are whole numbers too. Beyond [`EXACT`] values
//! the sums are as good as normal.

use statrs::distribution::{ContinuousCDF, Normal};

/// Largest number of values a side with exact probabilities.
const EXACT: usize = 50;

/// Wilcoxon's signed-rank test: how likely it is that rounds differ so one-sidedly by chance.
/// Differences of zero say nothing; where all are, nothing differs. Nothing for no differences.
pub fn signed_rank(differences: &[f64]) -> Option<f64> {
    if differences.is_empty() || differences.iter().any(|d| d.is_nan()) {
        return None;
    }
    let others: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let sizes: Vec<f64> = others.iter().map(|d| d.abs()).collect();
    let ranks = doubled_ranks(&sizes);
    let is_up = others.iter().map(|d| *d > 0.0);
    let up: usize = ranks.iter().zip(is_up).filter(|r| r.1).map(|r| r.0).sum();
    let all: usize = ranks.iter().sum();
    let least = up.min(all - up);
    if ranks.len() > EXACT {
        let squares: f64 = ranks.iter().map(|r| (*r as f64).powi(2)).sum();
        return Some(normal(
            least as f64,
            all as f64 / 2.0,
            (squares / 4.0).sqrt(),
        ));
    }
    // Ways to each sum of the ranks that go up.
    let mut ways = vec![0.0; all + 1];
    ways[0] = 1.0;
    for rank in &ranks {
        for sum in (*rank..=all).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let total: f64 = ways.iter().sum();
    let beyond: f64 = ways[..=least].iter().sum();
    Some((2.0 * beyond / total).min(1.0))
}

/// Mann and Whitney's test: how likely it is that the figures of one side lie so far above those of
/// the other by chance. Nothing where a side has none.
pub fn rank_sum(a: &[f64], b: &[f64]) -> Option<f64> {
    let pooled = [a, b].concat();
    if a.is_empty() || b.is_empty() || pooled.iter().any(|v| v.is_nan()) {
        return None;
    }
    let ranks = doubled_ranks(&pooled);
    let found: usize = ranks[..a.len()].iter().sum();
    let all: usize = ranks.iter().sum();
    let (count, of_all) = (a.len(), pooled.len());
    if count.max(b.len()) > EXACT {
        let mean = all as f64 / of_all as f64;
        let squares = ranks.iter().map(|r| (*r as f64 - mean).powi(2));
        let variance = squares.sum::<f64>() / (of_all - 1) as f64;
        let spread = (variance * count as f64 * b.len() as f64 / of_all as f64).sqrt();
        let expected = mean * count as f64;
        let least = expected - (found as f64 - expected).abs();
        return Some(normal(least, expected, spread));
    }
    // Ways to choose so many of the ranks with this sum.
    let mut ways = vec![vec![0.0; all + 1]; count + 1];
    ways[0][0] = 1.0;
    for rank in &ranks {
        for chosen in (1..=count).rev() {
            let (fewer, same) = ways.split_at_mut(chosen);
            let (fewer, same) = (&fewer[chosen - 1], &mut same[0]);
            for sum in *rank..=all {
                same[sum] += fewer[sum - rank];
            }
        }
    }
    let ways = &ways[count];
    let total: f64 = ways.iter().sum();
    let below: f64 = ways[..=found].iter().sum();
    let above: f64 = ways[found..].iter().sum();
    Some((2.0 * below.min(above) / total).min(1.0))
}

/// Twice the chance of so little, where a sum of doubled ranks is normal. Such sums go in steps of two,
/// and half a step belongs to each.
fn normal(least: f64, mean: f64, spread: f64) -> f64 {
    if spread == 0.0 {
        return 1.0;
    }
    let below = Normal::standard().cdf((least + 1.0 - mean) / spread);
    (2.0 * below).min(1.0)
}

/// Twice the rank of each value, from the least; equal ones have the middle of their ranks.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|x, y| values[*x].total_cmp(&values[*y]));
    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let same = |index: &&usize| values[**index].total_cmp(&values[order[first]]).is_eq();
        let end = first + order[first..].iter().take_while(same).count();
        for index in &order[first..end] {
            // The ranks first + 1 to end, whose middle is (first + 1 + end) / 2.
            ranks[*index] = first + 1 + end;
        }
        first = end;
    }
    ranks
}

/// The least probability that [`signed_rank`] can give for so many rounds: all differ one way.
pub fn least_signed_rank(rounds: usize) -> f64 {
    let halves = i32::try_from(rounds).map_or(i32::MAX, |rounds| rounds - 1);
    0.5_f64.powi(halves).min(1.0)
}

/// The least probability that [`rank_sum`] can give for so many figures a side: all of one side lie
/// above all of the other.
pub fn least_rank_sum(a: usize, b: usize) -> f64 {
    let choices = (1..=a).map(|chosen| chosen as f64 / (b + chosen) as f64);
    (2.0 * choices.product::<f64>()).min(1.0)
}

/// Several probabilities taken together, after Holm: the chance that one of them or more is
/// so small by chance. In the order in which they came.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|x, y| probabilities[*x].total_cmp(&probabilities[*y]));
    let mut adjusted = vec![0.0; probabilities.len()];
    let mut least: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        let left = (probabilities.len() - place) as f64;
        least = least.max(left * probabilities[index]).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn near(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn rounds_that_all_go_one_way_have_two_ways_of_all() {
        for count in 1..=50 {
            let all: Vec<f64> = (1..=count).map(f64::from).collect();
            near(signed_rank(&all), 2.0_f64.powi(1 - count).min(1.0));
            let down: Vec<f64> = all.iter().map(|d| -d).collect();
            assert_eq!(signed_rank(&down), signed_rank(&all));
            near(signed_rank(&all), least_signed_rank(all.len()));
        }
    }

    #[test]
    fn signed_ranks_are_those_of_published_tables() {
        // Hollander and Wolfe, depression scores of nine patients, in thousandths: the lesser sum is 5, p 0.0391.
        let (x, y) = (
            [1830., 500., 1620., 2480., 1680., 1880., 1550., 3060., 1300.],
            [878., 647., 598., 2050., 1060., 1290., 1060., 3140., 1290.],
        );
        let differences: Vec<f64> = x.iter().zip(y).map(|(x, y)| x - y).collect();
        near(signed_rank(&differences), 0.039_062_5);
        // n = 10 and a lesser sum of 8: 2 · 25 of 1024.
        let signs = [1., 2., 3., 4., -8., 5., 6., 7., 9., 10.];
        near(signed_rank(&signs), 50.0 / 1024.0);
    }

    #[test]
    fn zeros_say_nothing_and_ties_share_their_ranks() {
        near(signed_rank(&[0.0, 0.0]), 1.0);
        assert_eq!(signed_rank(&[]), None);
        assert_eq!(signed_rank(&[f64::NAN, 1.0]), None);
        near(
            signed_rank(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            2.0 / 64.0,
        );
        // Ranks 1.5, 1.5, 3: of eight ways two have a lesser sum of 1.5 or less (0, 1.5, 1.5 … 6).
        near(signed_rank(&[1.0, -1.0, 2.0]), 2.0 * 3.0 / 8.0);
        assert_eq!(doubled_ranks(&[3.0, 1.0, 3.0, 2.0]), [7, 2, 7, 4]);
    }

    #[test]
    fn the_exact_chance_is_what_counting_all_signs_gives() {
        let sizes = [1.0, 2.0, 2.0, 3.5, 4.0, 4.0, 4.0, 7.0];
        let ranks = doubled_ranks(&sizes);
        let all: usize = ranks.iter().sum();
        let lesser = |signs: u32| {
            let up = ranks
                .iter()
                .enumerate()
                .filter(|(i, _)| signs >> i & 1 == 1);
            let up: usize = up.map(|(_, rank)| rank).sum();
            up.min(all - up)
        };
        for signs in 0..256 {
            let differences: Vec<f64> = (0..8)
                .map(|i| {
                    if signs >> i & 1 == 1 {
                        sizes[i]
                    } else {
                        -sizes[i]
                    }
                })
                .collect();
            let as_far = (0..256).filter(|other| lesser(*other) <= lesser(signs));
            near(
                signed_rank(&differences),
                (as_far.count() as f64 / 256.0).min(1.0),
            );
        }
    }

    #[test]
    fn rank_sums_are_those_of_published_tables() {
        // All of four above all of four: 2 of C(8, 4) = 70.
        near(rank_sum(&[1., 2., 3., 4.], &[5., 6., 7., 8.]), 2.0 / 70.0);
        near(rank_sum(&[5., 6., 7., 8.], &[1., 2., 3., 4.]), 2.0 / 70.0);
        // U = 1: two of the 70 ways on either side.
        near(rank_sum(&[1., 2., 3., 5.], &[4., 6., 7., 8.]), 4.0 / 70.0);
        near(rank_sum(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(rank_sum(&[], &[1.0]), None);
        // Hollander and Wolfe, permeability of membranes: U = 35 of 10 and 5, p 0.2544.
        let x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let y = [1.15, 0.88, 0.90, 0.74, 1.21];
        assert!((rank_sum(&x, &y).unwrap() - 0.2544).abs() < 5e-5);
    }

    #[test]
    fn the_least_rank_sum_is_that_of_sides_that_lie_apart() {
        let up = |from: i32, count: i32| (from..from + count).map(f64::from).collect::<Vec<_>>();
        for a in 1..8 {
            for b in 1..8 {
                let (below, above) = (up(0, a), up(a, b));
                near(
                    rank_sum(&below, &above),
                    least_rank_sum(below.len(), above.len()),
                );
            }
        }
    }

    #[test]
    fn many_values_come_close_to_what_exact_ones_would_be() {
        let mut random = Random::new(1);
        let mut draw = || random.below(1 << 30) as f64 / f64::from(1 << 30) - 0.45;
        let many: Vec<f64> = (0..51).map(|_| draw()).collect();
        let (exact, about) = (signed_rank(&many[..50]), signed_rank(&many));
        assert!(
            (exact.unwrap() - about.unwrap()).abs() < 0.1,
            "{exact:?} {about:?}"
        );
        let others: Vec<f64> = (0..50).map(|_| draw() + 0.1).collect();
        let (exact, about) = (rank_sum(&many[..50], &others), rank_sum(&many, &others));
        assert!(
            (exact.unwrap() - about.unwrap()).abs() < 0.1,
            "{exact:?} {about:?}"
        );
    }

    #[test]
    fn holm_multiplies_by_how_many_are_left() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            near(Some(found), expected);
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
