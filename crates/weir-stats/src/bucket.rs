//! The layout of the log-linear buckets: which value falls where, and what a bucket spans.
//!
//! With `bits` precision bits, values below `2^(bits + 1)` have a bucket each; above, every
//! power of two is cut into `2^bits` equal buckets. The whole `u64` range is covered. With 6
//! bits the edges are those of fio's latency histograms, which end at 17.2 s.

/// The precision of every histogram that nobody asked to be finer or coarser: 64 buckets per
/// power of two, an error of at most 1/128 of the value.
pub const DEFAULT_BITS: u8 = 6;
/// The coarsest precision.
pub const MIN_BITS: u8 = 4;
/// The finest precision.
pub const MAX_BITS: u8 = 10;

/// Number of buckets that cover the `u64` range: 3,776 with 6 bits.
pub(crate) const fn bucket_count(bits: u8) -> usize {
    (65 - bits as usize) << bits
}

/// The bucket of a value.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a part of the hot path")]
pub(crate) const fn index_of(bits: u8, value: u64) -> usize {
    let bits = bits as u32;
    // The octave counted from the first that is cut; 0 as well for what lies below it.
    let octave = (63 - bits) - (value | (1 << bits)).leading_zeros();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "below 2^(bits + 1) after the shift"
    )]
    let within = (value >> octave) as usize;
    ((octave as usize) << bits) + within
}

/// The smallest value of a bucket.
pub(crate) const fn low_of(bits: u8, index: usize) -> u64 {
    let per_octave = 1_usize << bits;
    if index < per_octave {
        return index as u64;
    }
    let octave = (index >> bits) - 1;
    ((index & (per_octave - 1)) + per_octave) as u64 * (1 << octave)
}

/// Number of values that a bucket spans, less one.
const fn span_of(bits: u8, index: usize) -> u64 {
    let octave = (index >> bits).saturating_sub(1);
    (1 << octave) - 1
}

/// The largest value of a bucket.
pub(crate) const fn high_of(bits: u8, index: usize) -> u64 {
    low_of(bits, index) + span_of(bits, index)
}

/// The value that a bucket stands for: its middle, rounded up, as fio has it.
pub(crate) const fn middle_of(bits: u8, index: usize) -> u64 {
    low_of(bits, index) + span_of(bits, index).div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_bits_give_3776_buckets_with_the_prescribed_index() {
        assert_eq!(bucket_count(6), 3776);
        for value in [128_u64, 129, 255, 256, 1000, 74_200, 1 << 40, u64::MAX] {
            let e = u64::from(value.ilog2()) - 6;
            let expected = (e + 1) * 64 + (value >> e) - 64;
            assert_eq!(index_of(6, value) as u64, expected, "{value}");
        }
        assert_eq!(index_of(6, u64::MAX), 3775);
        assert_eq!(high_of(6, 3775), u64::MAX);
    }

    #[test]
    fn values_below_128_have_a_bucket_each() {
        for value in 0..128 {
            let index = index_of(6, value);
            assert_eq!(index as u64, value);
            assert_eq!(
                (low_of(6, index), middle_of(6, index), high_of(6, index)),
                (value, value, value)
            );
        }
    }

    #[test]
    fn buckets_join_without_gap_or_overlap_at_every_precision() {
        for bits in MIN_BITS..=MAX_BITS {
            for index in 0..bucket_count(bits) {
                assert_eq!(index_of(bits, low_of(bits, index)), index);
                assert_eq!(index_of(bits, high_of(bits, index)), index);
                if index > 0 {
                    assert_eq!(low_of(bits, index), high_of(bits, index - 1) + 1);
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn the_middle_is_off_by_at_most_half_a_step(value: u64, shift in 0_u32..64, bits in MIN_BITS..=MAX_BITS) {
            let value = value >> shift;
            let index = index_of(bits, value);
            let off = middle_of(bits, index).abs_diff(value);
            proptest::prop_assert!(u128::from(off) << (bits + 1) <= u128::from(value));
        }
    }
}
