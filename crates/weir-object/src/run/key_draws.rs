//! Draws of keys: which number comes next, by a distribution over as many keys as there are.
//!
//! In: a distribution, random streams, the number of keys at each draw, which may grow. Out: numbers below
//! it. The same seed gives the same numbers on every machine. Not here: what is done with a key.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places and ranks to 53 bits; casts saturate, and what is outside is clamped or drawn again"
)]

use weir_run::generate::Streams;
use weir_run::generate::rng::{Rng, SplitMix64, mix64};
use weir_schema::KeyDistribution;

/// Rounds of the bijection.
const ROUNDS: usize = 4;

/// Numbers of keys, drawn one by one.
#[derive(Debug)]
pub(super) struct KeyDraws {
    shape: KeyDistribution,
    random: Rng,
    ranks: Zipf,
    places: Bijection,
    /// Next number, where they are drawn in their order.
    next: u64,
}

impl KeyDraws {
    pub(super) fn new(shape: KeyDistribution, streams: Streams) -> Self {
        let theta = match shape {
            KeyDistribution::Zipf { theta } | KeyDistribution::Latest { theta } => theta,
            _ => 1.0,
        };
        Self {
            shape,
            random: streams.offsets(),
            ranks: Zipf::new(theta),
            places: Bijection::new(streams.placement()),
            next: 0,
        }
    }

    /// The next number below `keys`, which is above 0.
    pub(super) fn next(&mut self, keys: u64) -> u64 {
        match self.shape {
            KeyDistribution::Uniform => self.random.below(keys),
            KeyDistribution::Sequential => {
                let number = self.next % keys;
                self.next = number + 1;
                number
            }
            KeyDistribution::Zipf { .. } => {
                let rank = self.ranks.draw(keys, &mut self.random);
                self.places.place(rank, keys)
            }
            KeyDistribution::Latest { .. } => keys - 1 - self.ranks.draw(keys, &mut self.random),
            KeyDistribution::Hotspot {
                keys_percent,
                operations_percent,
            } => {
                let hot = (keys as f64 * keys_percent / 100.0) as u64;
                let hot = hot.clamp(1, keys);
                let is_hot = self.random.unit() * 100.0 < operations_percent;
                let rank = if is_hot || hot == keys {
                    self.random.below(hot)
                } else {
                    hot + self.random.below(keys - hot)
                };
                self.places.place(rank, keys)
            }
            KeyDistribution::Normal { sigma } => loop {
                // Box and Muller; 1 - u lies in (0, 1], whose logarithm is finite.
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.random.unit()));
                let turn = libm::cos(core::f64::consts::TAU * self.random.unit());
                let place = (0.5 + sigma * radius * turn) * keys as f64;
                if place >= 0.0 && (place as u64) < keys {
                    return place as u64;
                }
            },
        }
    }
}

/// Ranks of popularity: rank r, from 1, as often as r^-theta, by rejection and inversion (Hörmann and
/// Derflinger 1996), which is exact for any number of them.
#[derive(Debug)]
struct Zipf {
    theta: f64,
    /// Integral of r^-theta up to 1.5, less the first rank's share.
    first: f64,
    /// Distance of a rank from its place up to which no comparison is needed.
    near: f64,
    /// Number of ranks, and the integral up to its end.
    count: u64,
    last: f64,
}

impl Zipf {
    fn new(theta: f64) -> Self {
        let mut new = Self {
            theta,
            first: 0.0,
            near: 0.0,
            count: 0,
            last: 0.0,
        };
        new.first = new.integral(1.5) - 1.0;
        new.near = 2.0 - new.inverse(new.integral(2.5) - new.weight(2.0));
        new
    }

    /// A rank from 0, below `count`.
    fn draw(&mut self, count: u64, random: &mut Rng) -> u64 {
        if self.count != count {
            self.count = count;
            self.last = self.integral(count as f64 + 0.5);
        }
        loop {
            let area = self.last + random.unit() * (self.first - self.last);
            let place = self.inverse(area);
            let rank = ((place + 0.5) as u64).clamp(1, count);
            let at = rank as f64;
            if at - place <= self.near || area >= self.integral(at + 0.5) - self.weight(at) {
                return rank - 1;
            }
        }
    }

    fn weight(&self, rank: f64) -> f64 {
        libm::exp(-self.theta * libm::log(rank))
    }

    /// Integral of the weight from 1 on: (x^(1-theta) - 1) / (1-theta), or ln x where theta is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let power = (1.0 - self.theta) * log;
        if power.abs() < 1e-8 {
            return log * (1.0 + power / 2.0);
        }
        log * libm::expm1(power) / power
    }

    fn inverse(&self, area: f64) -> f64 {
        // Rounding may get below the end of the function's domain.
        let share = (area * (1.0 - self.theta)).max(-1.0);
        if share.abs() < 1e-8 {
            return libm::exp(area * (1.0 - share / 2.0));
        }
        libm::exp(area * libm::log1p(share) / share)
    }
}

/// A seeded bijection on the numbers below a count: a Feistel network on as many bits as it needs, walked until
/// the result is below the count. With a count that grows few places change, but for those when it passes a
/// power of two.
#[derive(Debug)]
struct Bijection {
    keys: [u64; ROUNDS],
}

impl Bijection {
    fn new(seed: u64) -> Self {
        let mut words = SplitMix64::new(seed);
        Self {
            keys: std::array::from_fn(|_| words.next_u64()),
        }
    }

    /// The place of a number below `count`.
    fn place(&self, number: u64, count: u64) -> u64 {
        let bits = u64::BITS - (count - 1).leading_zeros();
        let low = bits / 2;
        let (low_mask, high_mask) = ((1 << low) - 1, (1_u64 << (bits - low)) - 1);
        let mut at = number;
        loop {
            let (mut left, mut right) = (at >> low, at & low_mask);
            for pair in self.keys.chunks(2) {
                left ^= mix64(right ^ pair[0]) & high_mask;
                right ^= mix64(left ^ pair[1]) & low_mask;
            }
            at = (left << low) | right;
            if at < count {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(shape: KeyDistribution) -> KeyDraws {
        KeyDraws::new(shape, Streams::new(7, 0))
    }

    /// Draws of each of so many keys.
    fn counts(shape: KeyDistribution, keys: u64, number: u64) -> Vec<u64> {
        let mut draws = draws(shape);
        let mut counts = vec![0; usize::try_from(keys).unwrap()];
        for _ in 0..number {
            counts[usize::try_from(draws.next(keys)).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let places = Bijection::new(3);
        for count in (1..200).chain([1000, 4095, 4096, 4097]) {
            let mut seen = vec![false; count as usize];
            for number in 0..count {
                let place = places.place(number, count) as usize;
                assert!(!std::mem::replace(&mut seen[place], true), "{count}");
            }
        }
        for count in [u64::MAX, 1 << 63, (1 << 63) + 1] {
            assert!(places.place(count - 1, count) < count);
        }
    }

    /// Share of the top key over a number of keys, as a part of what its sum says.
    fn top(theta: f64, keys: u64, number: u64) -> f64 {
        let counts = counts(KeyDistribution::Zipf { theta }, keys, number);
        let sum: f64 = (1..=keys).map(|k| libm::pow(k as f64, -theta)).sum();
        *counts.iter().max().unwrap() as f64 * sum / number as f64
    }

    #[test]
    fn the_top_key_of_zipf_gets_its_share() {
        // The deviation of a share over so many draws is 0.3 % at the most.
        let mut cases = vec![
            (0.99, 1000, 1_000_000),
            (1.0, 1000, 1_000_000),
            (1.3, 50_000, 1_000_000),
        ];
        if std::env::var_os("WEIR_LONG").is_some() {
            cases.push((0.99, 1_000_000, 10_000_000));
        }
        for (theta, keys, number) in cases {
            let share = top(theta, keys, number);
            assert!((share - 1.0).abs() < 0.01, "{theta}: {share}");
        }
    }

    #[test]
    fn ranks_follow_the_power_down_to_the_last() {
        let (keys, number) = (10, 1_000_000);
        let mut zipf = Zipf::new(2.0);
        let mut random = Rng::new(1);
        let mut counts = [0_u64; 10];
        for _ in 0..number {
            counts[zipf.draw(keys, &mut random) as usize] += 1;
        }
        let sum: f64 = (1..=keys).map(|k| libm::pow(k as f64, -2.0)).sum();
        for (rank, count) in counts.iter().enumerate() {
            let expected = libm::pow(rank as f64 + 1.0, -2.0) / sum;
            let found = *count as f64 / f64::from(number);
            assert!((found / expected - 1.0).abs() < 0.05, "{rank}: {found}");
        }
    }

    #[test]
    fn other_distributions_have_their_shapes() {
        let hotspot = KeyDistribution::Hotspot {
            keys_percent: 10.0,
            operations_percent: 90.0,
        };
        let mut hot = counts(hotspot, 1000, 200_000);
        hot.sort_unstable();
        let top: u64 = hot[900..].iter().sum();
        assert!((178_000..182_000).contains(&top), "{top}");

        let normal = counts(KeyDistribution::Normal { sigma: 0.1 }, 1000, 200_000);
        let middle: u64 = normal[400..600].iter().sum();
        assert!((134_500..138_500).contains(&middle), "{middle}");

        let latest = counts(KeyDistribution::Latest { theta: 0.99 }, 1000, 10_000);
        assert_eq!(latest.iter().max(), latest.last());

        let mut sequence = draws(KeyDistribution::Sequential);
        let numbers: Vec<u64> = (0..5).map(|_| sequence.next(3)).collect();
        assert_eq!(numbers, [0, 1, 2, 0, 1]);

        let uniform = counts(KeyDistribution::Uniform, 100, 100_000);
        assert!(uniform.iter().all(|n| (850..1150).contains(n)));
    }
}
