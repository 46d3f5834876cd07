//! Mean and deviation of samples that are not kept, by Welford's recurrence.
//!
//! In: samples, or the moments of other samples to merge (the parallel formula of Chan et
//! al.). Out: mean, sample deviation, minimum, maximum. Merging is exact up to
//! rounding, so its order may show in the last digits.

use serde::{Deserialize, Serialize};
use weir_units::JsonSchema;

/// Count, mean, squares about the mean, minimum and maximum of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Their mean; 0 without samples.
    pub mean: f64,
    /// The sum of (sample − mean)².
    pub squares_about_mean: f64,
    /// The smallest; 0 without samples.
    pub min: f64,
    /// The largest; 0 without samples.
    pub max: f64,
}

impl Moments {
    /// Counts one sample.
    pub fn push(&mut self, sample: f64) {
        self.merge(&Self {
            count: 1,
            mean: sample,
            squares_about_mean: 0.0,
            min: sample,
            max: sample,
        });
    }

    /// Counts everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.count = self.count.saturating_add(other.count);
        self.mean += apart * m / (n + m);
        self.squares_about_mean += other.squares_about_mean + apart * apart * n * m / (n + m);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Sample variance (divided by n − 1); nothing below two samples.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares_about_mean / (self.count - 1) as f64)
    }

    /// Sample standard deviation; nothing below two samples.
    pub fn deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }
}

impl Extend<f64> for Moments {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, samples: I) {
        samples.into_iter().for_each(|sample| self.push(sample));
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        let mut moments = Self::default();
        moments.extend(samples);
        moments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_small_sample_are_as_by_hand() {
        let moments: Moments = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
            .into_iter()
            .collect();
        assert_eq!((moments.count, moments.min, moments.max), (8, 2.0, 9.0));
        assert!((moments.mean - 5.0).abs() < 1e-12);
        assert!((moments.variance().unwrap() - 32.0 / 7.0).abs() < 1e-12);
        assert_eq!(Moments::default().variance(), None);
        assert_eq!([1.0].into_iter().collect::<Moments>().deviation(), None);
    }

    proptest::proptest! {
        #[test]
        fn merging_parts_equals_taking_all(samples: Vec<i32>, cut in 0_usize..50) {
            let cut = cut.min(samples.len());
            let of = |part: &[i32]| part.iter().map(|s| f64::from(*s)).collect::<Moments>();
            let (mut ab, b) = (of(&samples[..cut]), of(&samples[cut..]));
            ab.merge(&b);
            let all = of(&samples);
            proptest::prop_assert_eq!((ab.count, ab.min, ab.max), (all.count, all.min, all.max));
            proptest::prop_assert!((ab.mean - all.mean).abs() <= 1e-3);
            let scale = 1e-9 * all.squares_about_mean + 1e-6;
            proptest::prop_assert!((ab.squares_about_mean - all.squares_about_mean).abs() <= scale);
        }
    }
}
