//! Percentiles as fio 3.33 computes them.
//!
//! In: a histogram and p. Out: the value that fio prints. It differs from the house's rule in three
//! places: how the rank is rounded, the plain middle of a bucket without regard to minimum and
//! maximum, and a last bucket at 17.2 s. Not here: which percentiles are printed (`latency`).

use weir_stats::{DEFAULT_BITS, Histogram};

/// The middle of the last of 1,856 buckets, which holds everything from 17.2 s up.
const LAST: u64 = 17_112_760_320;

/// The p-th percentile: the product p/100 · count in x87 extended precision; 0 for p = 0. Nothing
/// unless the precision is 6 bits.
pub(super) fn percentile(histogram: &Histogram, p: f64) -> Option<u64> {
    if histogram.bits() != DEFAULT_BITS || histogram.is_empty() || !(0.0..=100.0).contains(&p) {
        return None;
    }
    let rank = fio_rank(p, histogram.count());
    if rank == 0 {
        return Some(0);
    }
    let mut reached = 0;
    let bucket = histogram.buckets().find(|bucket| {
        reached += bucket.count;
        reached >= rank
    })?;
    Some(bucket.middle.min(LAST))
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
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(value);
        }
        histogram
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
        assert_eq!(percentile(&histogram, 0.0), Some(0));
        assert_eq!(percentile(&histogram, 50.0), Some(1004));
        assert_eq!(percentile(&histogram, 100.0), Some(17_112_760_320));
        assert_eq!(percentile(&of(1..=1000), 99.9), Some(1004));
        assert_eq!(percentile(&Histogram::new(), 50.0), None);
    }
}
