//! Comparing many rounds of two: is the difference more than chance?
//!
//! In: figures of paired rounds. Out: a ratio with its 95 % interval. Not here: the verdict in words,
//! and how many rounds to run.

use crate::estimate::Estimate;
use crate::random::Random;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
