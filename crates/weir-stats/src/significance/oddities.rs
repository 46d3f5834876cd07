//! Oddities of a series of rounds: a change over time, single rounds far from the others.
//!
//! In: a figure of each round, in order. Out: the change per round; which rounds. Not here: leaving
//! any out; what is odd is said and counted.

use super::ratio::median;

/// A round this many times the median distance from the median is far from the others: ten standard
/// deviations, where noise is normal.
const FAR: f64 = 14.83;

/// Change of a figure per round, after Theil and Sen: the median of the slopes between any two.
/// Nothing for fewer than two.
pub fn drift(values: &[f64]) -> Option<f64> {
    let mut slopes = Vec::with_capacity(values.len() * values.len() / 2);
    for (later, value) in values.iter().enumerate() {
        for (earlier, before) in values[..later].iter().enumerate() {
            slopes.push((value - before) / (later - earlier) as f64);
        }
    }
    median(&slopes)
}

/// The rounds, from 0, that lie far from all others.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let Some(middle) = median(values) else {
        return Vec::new();
    };
    let apart: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    let limit = FAR * median(&apart).unwrap_or(0.0);
    let far = apart
        .iter()
        .enumerate()
        .filter(|(_, apart)| **apart > limit);
    // Where most rounds are equal to the digit, any other would be far.
    far.filter(|_| limit > 0.0)
        .map(|(round, _)| round)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_the_median_slope_whatever_one_round_did() {
        let mut values: Vec<f64> = (0..10).map(|round| 3.0 + 0.5 * f64::from(round)).collect();
        assert!((drift(&values).unwrap() - 0.5).abs() < 1e-12);
        values[4] = 100.0;
        assert!((drift(&values).unwrap() - 0.5).abs() < 0.1);
        assert_eq!(drift(&[1.0, 4.0]), Some(3.0));
        assert_eq!(drift(&[1.0]), None);
    }

    #[test]
    fn a_round_far_from_all_others_is_named() {
        let mut values = vec![1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01];
        assert!(outliers(&values).is_empty());
        values.push(1.5);
        assert_eq!(outliers(&values), [7]);
        // 14.83 times the median distance of 0.01 is 0.1483.
        values[7] = 1.14;
        assert!(outliers(&values).is_empty());
        assert!(outliers(&[1.0, 1.0, 1.0, 2.0]).is_empty());
        assert!(outliers(&[]).is_empty());
    }
}
