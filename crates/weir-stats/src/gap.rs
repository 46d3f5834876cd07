//! Largest gap between two distributions.
//!
//! In: two histograms. Out: the greatest difference of their cumulative shares, and the value at which
//! it is. Not here: whether it is more than chance.

use crate::histogram::{Bucket, Histogram};

/// The largest gap between two distributions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// That share more of the one than of the other lies at or below the value.
    pub share: f64,
    /// The value.
    pub value: u64,
}

impl Gap {
    /// The largest gap between these; nothing where one of them is empty.
    pub fn between(a: &Histogram, b: &Histogram) -> Option<Self> {
        if a.is_empty() || b.is_empty() {
            return None;
        }
        // Steps of the one go up, those of the other down. A bucket's values are all reached at its
        // upper edge, which holds for histograms of unlike precision too.
        let steps = |of: &Histogram, sign: f64| {
            let one = sign / of.count() as f64;
            let step = |bucket: Bucket| (bucket.high, one * bucket.count as f64);
            of.buckets().map(step).collect::<Vec<_>>()
        };
        let mut all = [steps(a, 1.0), steps(b, -1.0)].concat();
        all.sort_by_key(|(value, _)| *value);
        let mut apart: f64 = 0.0;
        let mut found = Self {
            share: 0.0,
            value: all.first()?.0,
        };
        for same in all.chunk_by(|x, y| x.0 == y.0) {
            apart += same.iter().map(|(_, step)| step).sum::<f64>();
            if apart.abs() > found.share + 1e-12 {
                found = Self {
                    share: apart.abs(),
                    value: same[0].0,
                };
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        for (value, count) in values {
            histogram.record_n(*value, *count);
        }
        histogram
    }

    #[test]
    fn the_gap_is_where_most_of_one_is_below_and_of_the_other_is_not() {
        let a = of(&[(10, 50), (20, 40), (100, 10)]);
        let b = of(&[(10, 100), (20, 20), (100, 80)]);
        // Up to 10: 0.5 of both; up to 20: 0.9 and 0.6.
        let gap = Gap::between(&a, &b).unwrap();
        assert!((gap.share - 0.3).abs() < 1e-9, "{gap:?}");
        assert_eq!(gap.value, 20);
        assert_eq!(Gap::between(&b, &a), Some(gap));
        let none = Gap::between(&a, &a).unwrap();
        assert!(none.share.abs() < 1e-9);
        assert_eq!(Gap::between(&a, &Histogram::new()), None);
    }

    #[test]
    fn disjoint_distributions_lie_wholly_apart() {
        let coarse = {
            let mut histogram = Histogram::with_bits(4).unwrap();
            histogram.record_n(1000, 7);
            histogram
        };
        let gap = Gap::between(&coarse, &of(&[(5000, 3)])).unwrap();
        assert!((gap.share - 1.0).abs() < 1e-9);
        assert!((1000..5000).contains(&gap.value), "{gap:?}");
    }
}
