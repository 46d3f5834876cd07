//! Percentiles, defined once: the first bucket whose cumulative count reaches p per cent of
//! all, its middle reported, within the exact minimum and maximum.
//!
//! In: a histogram and p. Out: the value, the edges of its bucket, whether too few samples lie
//! beyond it. fio's rule differs in three places and has its own function. Not here: how sure
//! a percentile is (`bootstrap`).

use crate::bucket::{DEFAULT_BITS, high_of, index_of, low_of, middle_of};
use crate::histogram::Histogram;

/// A percentile with fewer samples than this beyond it is marked.
const FEW: u64 = 10;

impl Histogram {
    /// The p-th percentile: the middle of the first bucket whose cumulative count reaches
    /// ceil(p/100 · count), within minimum and maximum; 0 is the minimum, 100 the maximum.
    /// Nothing when empty or when p is outside 0–100. Nine decimals of p count.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let index = self.percentile_index(p)?;
        if p <= 0.0 {
            return self.min();
        }
        if p >= 100.0 {
            return self.max();
        }
        Some(middle_of(self.bits(), index).clamp(self.min()?, self.max()?))
    }

    /// The smallest and the largest value that the p-th percentile can have: the edges of its
    /// bucket, within minimum and maximum.
    pub fn percentile_edges(&self, p: f64) -> Option<(u64, u64)> {
        let index = self.percentile_index(p)?;
        let (min, max) = (self.min()?, self.max()?);
        Some(match p {
            _ if p <= 0.0 => (min, min),
            _ if p >= 100.0 => (max, max),
            _ => (
                low_of(self.bits(), index).clamp(min, max),
                high_of(self.bits(), index).clamp(min, max),
            ),
        })
    }

    /// Whether fewer than 10 samples lie beyond the p-th percentile, on its far side from the
    /// median.
    pub fn few_samples(&self, p: f64) -> bool {
        let Some(rank) = rank(p, self.count()) else {
            return true;
        };
        let beyond = if p < 50.0 {
            rank.saturating_sub(1)
        } else {
            self.count() - rank
        };
        beyond < FEW
    }

    /// The p-th percentile as fio 3.33 computes it: the product p/100 · count in x87 extended
    /// precision, the plain middle without regard to minimum and maximum, 0 for p = 0, and
    /// everything from 17.2 s up in the last of 1,856 buckets. Nothing unless the precision
    /// is 6 bits.
    pub fn fio_percentile(&self, p: f64) -> Option<u64> {
        const LAST: usize = 29 * 64 - 1;
        if self.bits() != DEFAULT_BITS || self.is_empty() || !(0.0..=100.0).contains(&p) {
            return None;
        }
        let rank = fio_rank(p, self.count());
        let index = if rank == 0 {
            0
        } else {
            self.index_of_rank(rank)?
        };
        Some(middle_of(DEFAULT_BITS, index.min(LAST)))
    }

    /// The share of values up to and including the bucket of `value`, 0 to 1; nothing when
    /// empty.
    pub fn share_up_to(&self, value: u64) -> Option<f64> {
        let last = index_of(self.bits(), value);
        let reached: u64 = self
            .indexed()
            .take_while(|(i, _)| *i <= last)
            .map(|(_, c)| c)
            .sum();
        (!self.is_empty()).then(|| reached as f64 / self.count() as f64)
    }

    fn percentile_index(&self, p: f64) -> Option<usize> {
        self.index_of_rank(rank(p, self.count())?)
    }

    /// The first bucket whose cumulative count reaches `rank`.
    fn index_of_rank(&self, rank: u64) -> Option<usize> {
        let mut reached = 0;
        for (index, count) in self.indexed() {
            reached += count;
            if reached >= rank {
                return Some(index);
            }
        }
        None
    }
}

/// ceil(p/100 · count), at least 1. Computed with integers from p's nine decimals, because in
/// binary floating point 99.9 % of 1000 would be a little more than 999.
pub(crate) fn rank(p: f64, count: u64) -> Option<u64> {
    if count == 0 || !(0.0..=100.0).contains(&p) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 10^11 after the check above"
    )]
    let billionths = (p * 1e9).round() as u64;
    let rank = (u128::from(billionths) * u128::from(count)).div_ceil(100_000_000_000);
    Some(u64::try_from(rank).unwrap_or(count).clamp(1, count))
}

/// The least whole number that is at least `(long double) p / 100.0 * count`, with both
/// operations rounded to the 64-bit significand that x86 has for `long double`.
fn fio_rank(p: f64, count: u64) -> u64 {
    let bits = p.to_bits();
    let biased = i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    if biased == 0 {
        return 0; // zero, or less than any count can show
    }
    let significand = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let scaled = significand << 70;
    let (quotient, up) = round_to_64(scaled / 100, scaled % 100 != 0);
    let (product, up_again) = round_to_64(u128::from(quotient) * u128::from(count), false);
    let exponent = biased - 1075 - 70 + up + up_again;
    let product = u128::from(product);
    // The product is at most 2^64, so the exponent is at most 1.
    if exponent >= 0 {
        return u64::try_from(product << exponent.min(1)).unwrap_or(u64::MAX);
    }
    let shift = exponent.unsigned_abs();
    if shift >= 127 {
        return 1;
    }
    u64::try_from(product.div_ceil(1 << shift)).unwrap_or(u64::MAX)
}

/// Rounds to 64 significant bits, to nearest, ties to even; returns the power of two taken
/// out. `more`: something not zero lies below the last bit.
fn round_to_64(value: u128, more: bool) -> (u64, i32) {
    let excess = 64_u32.saturating_sub(value.leading_zeros());
    if excess == 0 {
        return (u64::try_from(value).unwrap_or(u64::MAX), 0);
    }
    let kept = value >> excess;
    let rest = value & ((1 << excess) - 1);
    let half = 1 << (excess - 1);
    let round_up = rest > half || rest == half && (more || kept & 1 == 1);
    let rounded = kept + u128::from(round_up);
    let power = i32::try_from(excess).unwrap_or(0);
    match u64::try_from(rounded) {
        Ok(rounded) => (rounded, power),
        Err(_) => (1 << 63, power + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(value);
        }
        histogram
    }

    #[test]
    fn percentiles_of_1_to_100_are_as_by_hand() {
        let histogram = of(1..=100);
        for (p, value) in [
            (0.0, 1),
            (1.0, 1),
            (1.1, 2),
            (50.0, 50),
            (99.0, 99),
            (99.9, 100),
            (100.0, 100),
        ] {
            assert_eq!(histogram.percentile(p), Some(value), "{p}");
            assert_eq!(histogram.percentile_edges(p), Some((value, value)), "{p}");
        }
        for p in [-0.1, 100.1, f64::NAN] {
            assert_eq!(histogram.percentile(p), None);
        }
        assert_eq!(Histogram::new().percentile(50.0), None);
    }

    #[test]
    fn the_99_9th_of_1000_is_the_999th() {
        assert_eq!(rank(99.9, 1000), Some(999));
        assert_eq!(rank(99.9, u64::MAX), Some(18_428_297_329_635_842_064));
        assert_eq!(rank(0.0, 1000), Some(1));
    }

    #[test]
    fn a_percentile_stays_within_minimum_and_maximum() {
        let histogram = of([1001, 1002]);
        assert_eq!(histogram.percentile(50.0), Some(1002));
        assert_eq!(histogram.percentile_edges(50.0), Some((1001, 1002)));
        assert_eq!(of([1000]).percentile(50.0), Some(1000));
    }

    #[test]
    fn fewer_than_ten_samples_beyond_are_marked_on_both_sides() {
        let histogram = of(0..1000);
        assert!(!histogram.few_samples(99.0));
        assert!(histogram.few_samples(99.1));
        assert!(!histogram.few_samples(1.1));
        assert!(histogram.few_samples(1.0));
        assert!(Histogram::new().few_samples(50.0));
    }

    #[test]
    fn the_share_up_to_a_value_counts_its_bucket() {
        let share = of([1, 2, 1000, 1001]).share_up_to(1000);
        assert_eq!(share, Some(1.0));
        assert_eq!(of([1, 2, 1000, 1001]).share_up_to(999), Some(0.5));
    }

    /// Made by a C program with `long double` on x86-64.
    #[test]
    fn fio_ranks_are_those_of_x87_arithmetic() {
        for (p, count, rank) in [
            (0.1, 1_000, 2),
            (12.3, 10_000, 1_231),
            (50.0, 7, 4),
            (90.0, 18_446_744_073_709_551_615, 16_602_069_666_338_596_453),
            (99.0, 100, 99),
            (99.0, 18_446_744_073_709_551_615, 18_262_276_632_972_456_099),
            (99.5, 4_999, 4_975),
            (99.9, 1_000, 1_000),
            (99.9, 10_000, 9_991),
            (99.95, 10_000, 9_996),
            (
                99.99,
                18_446_744_073_709_551_615,
                18_444_899_399_302_179_716,
            ),
            (
                100.0,
                18_446_744_073_709_551_615,
                18_446_744_073_709_551_615,
            ),
            (33.3, 18_446_744_073_709_551_615, 6_142_765_776_545_280_164),
            (1e-07, 1, 1),
            (1e-07, 1_000_000_000_000, 1_000),
            (99.999, 1_000_000_000_000, 999_990_000_000),
        ] {
            assert_eq!(fio_rank(p, count), rank, "{p} of {count}");
        }
        assert_eq!(fio_rank(0.0, 5), 0);
    }

    #[test]
    fn fio_percentiles_differ_at_zero_at_the_edges_and_beyond_17_s() {
        let histogram = of([1001, 1002, 60_000_000_000]);
        assert_eq!(histogram.fio_percentile(0.0), Some(0));
        assert_eq!(histogram.fio_percentile(50.0), Some(1004));
        assert_eq!(histogram.fio_percentile(100.0), Some(17_112_760_320));
        assert_eq!(of(1..=1000).fio_percentile(99.9), Some(1004));
        assert_eq!(Histogram::new().fio_percentile(50.0), None);
    }

    proptest! {
        #[test]
        fn percentiles_are_monotone_and_close_to_the_sorted_sample(
            mut values in proptest::collection::vec((any::<u64>(), 0_u32..64), 1..80)
                .prop_map(|v| v.into_iter().map(|(v, s)| v >> s).collect::<Vec<u64>>()),
            ps in proptest::collection::vec(0.0..=100.0, 1..8),
        ) {
            values.sort_unstable();
            let histogram = of(values.iter().copied());
            let mut ps = ps;
            ps.sort_unstable_by(f64::total_cmp);
            let mut before = 0;
            for p in ps {
                let value = histogram.percentile(p).unwrap();
                prop_assert!(value >= before);
                before = value;
                let rank = usize::try_from(rank(p, histogram.count()).unwrap()).unwrap();
                let exact = values[rank - 1];
                prop_assert!(u128::from(value.abs_diff(exact)) * 128 <= u128::from(exact));
                let (low, high) = histogram.percentile_edges(p).unwrap();
                prop_assert!(low <= exact && exact <= high && low <= value && value <= high);
            }
        }
    }
}
