//! Random numbers: splitmix64 for seeding, xoshiro256++ for drawing.
//!
//! In: a 64-bit seed. Out: 64-bit words, bounded integers, reals in [0, 1).
//! Both algorithms are public domain (Vigna; Blackman and Vigna) and are
//! written out here because an upgrade of a library must never change a
//! sequence. Not for secrets.

/// The odd constant by which splitmix64 steps (2^64 divided by the golden ratio).
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of splitmix64: a bijection on 64-bit words that spreads
/// every input bit over the whole result.
#[inline(always)]
pub const fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// splitmix64: a counter seen through [`mix64`].
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Starts at `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next word.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix64(self.state)
    }
}

/// xoshiro256++: the generator behind every draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    s: [u64; 4],
}

impl Rng {
    /// Seeds the four words from splitmix64, as the authors advise.
    pub const fn new(seed: u64) -> Self {
        let mut seeder = SplitMix64::new(seed);
        Self {
            s: [
                seeder.next_u64(),
                seeder.next_u64(),
                seeder.next_u64(),
                seeder.next_u64(),
            ],
        }
    }

    /// The next word.
    #[inline(always)]
    pub const fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let word = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        word
    }

    /// An integer in [0, bound), by the high half of a product.
    ///
    /// No value is preferred by more than bound / 2^64, which no run can see;
    /// in return one draw is always one word. A bound of 0 gives 0.
    #[inline(always)]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// A real in [0, 1): the 2^53 equally spaced values.
    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in a double")]
    pub const fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_published_sequence() {
        let mut seeder = SplitMix64::new(1_477_776_061_723_855_037);
        let published = [
            1_985_237_415_132_408_290,
            2_979_275_885_539_914_483,
            13_511_426_838_097_143_398,
            8_488_337_342_461_049_707,
            15_141_737_807_933_549_159,
        ];
        for word in published {
            assert_eq!(seeder.next_u64(), word);
        }
    }

    #[test]
    fn xoshiro256_plus_plus_gives_the_published_sequence() {
        let mut rng = Rng { s: [1, 2, 3, 4] };
        let published = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
            14_011_001_112_246_962_877,
            12_406_186_145_184_390_807,
            15_849_039_046_786_891_736,
            10_450_023_813_501_588_000,
        ];
        for word in published {
            assert_eq!(rng.next_u64(), word);
        }
    }

    #[test]
    fn bounded_draws_stay_below_the_bound() {
        let mut rng = Rng::new(7);
        for bound in [1, 2, 3, 1000, u64::MAX] {
            for _ in 0..1000 {
                assert!(rng.below(bound) < bound);
            }
        }
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn reals_stay_in_the_half_open_unit_interval() {
        let mut rng = Rng::new(7);
        let mut sum = 0.0;
        for _ in 0..10_000 {
            let u = rng.unit();
            assert!((0.0..1.0).contains(&u));
            sum += u;
        }
        assert!((sum / 10_000.0 - 0.5).abs() < 0.02);
    }
}
