//! Pairs and rings that are measured, and the length of a loop: all pure.
//!
//! Every rank comes to the same. Spec: effective bandwidth, 9.

use weir_run::generate::rng::Rng;
use weir_units::Nanos;

use crate::transport::messages::Neighbours;

/// The clock is taken to tell apart no less than this, and no more.
const FINEST: Nanos = Nanos(1_000);
const COARSEST: Nanos = Nanos(10_000_000);
/// A loop is at least so many ticks long.
const TICKS: u64 = 10;
/// At least so many ranks are clients and servers of pairs.
const FEWEST: u64 = 5;
/// HPCC 1.5 plans no more pairs than this, however fast they are.
const MOST_PAIRS: u64 = 200_000;

/// A tick of the clock, for the shortest loop.
pub(super) fn tick(of_clock: Nanos) -> Nanos {
    of_clock.clamp(FINEST, COARSEST)
}

/// The shortest loop that counts.
pub(super) fn shortest(tick: Nanos, asked: Option<Nanos>) -> Nanos {
    Nanos(tick.raw() * TICKS).max(asked.unwrap_or_default())
}

/// The next loop length after one that took less than it has to. Where a time is asked for that is far
/// away, one that comes near it.
pub(super) fn longer(loop_length: u64, took: Nanos, asked: Option<Nanos>) -> u64 {
    let half_more = loop_length.saturating_add((loop_length / 2).max(1));
    let tenths = |asked: Nanos| u128::from(asked.raw()) * 11 * u128::from(loop_length);
    let needed = asked.map_or(0, |asked| {
        tenths(asked) / 10 / u128::from(took.raw().max(1))
    });
    // A first loop is slower than those that follow: the way there is gone in two steps or three.
    half_more.max(u64::try_from(needed).unwrap_or(half_more))
}

/// Number of ranks that may be clients, and as many servers, within a time, where one pair takes
/// `pair`.
pub(super) fn pings(limit: Nanos, pair: Nanos) -> u64 {
    let pairs = (limit.raw() / pair.raw().max(1)).min(MOST_PAIRS);
    pairs.isqrt().max(FEWEST)
}

/// One rank in so many takes part in pairs: 1, or 3 and then primes, so that ranks of all places
/// of a node are among them.
pub(super) fn stride(ranks: u32, pings: u64) -> u32 {
    // trunc(ranks / pings + 0.9), in whole numbers.
    let (n, pings) = (u64::from(ranks), pings.max(1));
    let wanted = (n * 10 + pings * 9) / (pings * 10);
    let mut stride = u32::try_from(wanted).unwrap_or(ranks);
    match stride {
        0 | 1 => 1,
        2 | 3 => 3,
        _ => {
            while !is_prime(stride) && stride <= ranks / 3 {
                stride += 1;
            }
            stride
        }
    }
}

fn is_prime(number: u32) -> bool {
    let mut divisors = (2..=number.isqrt()).filter(|d| number.is_multiple_of(*d));
    number > 1 && divisors.next().is_none()
}

/// Client and server of every pair, in order.
pub(super) fn pairs(ranks: u32, stride: u32) -> Vec<(u32, u32)> {
    let part = || (0..ranks).step_by(stride as usize);
    part()
        .flat_map(|client| part().map(move |server| (client, server)))
        .filter(|(client, server)| client != server)
        .collect()
}

/// A random order of the ranks; each is as likely as any other.
pub(super) fn shuffled(ranks: u32, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ranks).collect();
    for last in (1..order.len()).rev() {
        let other = rng.below(last as u64 + 1);
        order.swap(last, usize::try_from(other).unwrap_or(last));
    }
    order
}

/// The ranks beside one in an order.
pub(super) fn beside(order: &[u32], rank: u32) -> Neighbours {
    let at = order.iter().position(|r| *r == rank).unwrap_or(0);
    let n = order.len();
    Neighbours {
        left: order[(at + n - 1) % n],
        right: order[(at + 1) % n],
    }
}

/// Time of a pair with all its measurements: the untimed iterations count too.
pub(super) fn cost(best: Nanos, loop_length: u64, measurements: u32) -> Nanos {
    let loops = u128::from(loop_length);
    let all = u128::from(best.raw()) * (loops + 1) * u128::from(measurements) / loops.max(1);
    Nanos(u64::try_from(all).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn loops_that_the_clock_is_too_coarse_for_grow_by_half() {
        let grown = [1, 2, 3, 8, 12].map(|length| longer(length, Nanos(1), None));
        assert_eq!(grown, [2, 3, 4, 12, 18]);
        let asked = Some(Nanos(1_000_000));
        assert_eq!(longer(8, Nanos(4_000), asked), 2_200);
        assert_eq!(longer(8, Nanos(999_999), asked), 12);
        assert_eq!(longer(8, Nanos(0), Some(Nanos(u64::MAX))), 12);
        assert_eq!(tick(Nanos(1)), Nanos(1_000));
        assert_eq!(tick(Nanos(5_000)), Nanos(5_000));
        assert_eq!(tick(Nanos::from_secs(1)), Nanos(10_000_000));
        assert_eq!(shortest(Nanos(1_000), None), Nanos(10_000));
        assert_eq!(
            shortest(Nanos(1_000), Some(Nanos::from_secs(1))),
            Nanos::from_secs(1)
        );
        assert_eq!(shortest(Nanos(1_000), Some(Nanos(1))), Nanos(10_000));
    }

    #[test]
    fn the_time_bounds_the_pairs_but_five_ranks_are_always_tried() {
        // 2 * 1 us * (8 + 1) * 5 = 90 us: 10 s have room for 333 ranks squared.
        let pair = cost(Nanos(16_000), 8, 5);
        assert_eq!(pair, Nanos(90_000));
        assert_eq!(pings(Nanos::from_secs(10), pair), 333);
        assert_eq!(pings(Nanos::from_secs(10), Nanos::from_secs(1)), 5);
        assert_eq!(pings(Nanos(0), pair), 5);
        assert_eq!(pings(Nanos::from_secs(10), Nanos(34_675)), 447);
    }

    #[test]
    fn strides_are_1_3_or_the_next_prime() {
        let of = |ranks| stride(ranks, 5);
        // n / 5 + 0.9, truncated: 1, 1, 2, 3, 4, 10, 20.
        assert_eq!([2, 5, 6, 11, 16, 46, 96].map(of), [1, 1, 3, 3, 5, 11, 23]);
        assert_eq!(stride(1_000, 1_000), 1);
        assert_eq!(stride(1_000, 100), 11);
    }

    proptest! {
        #[test]
        fn pairs_are_of_two_different_ranks_each_once(ranks in 2_u32..300, pings in FEWEST..60) {
            let stride = stride(ranks, pings);
            let all = pairs(ranks, stride);
            prop_assert!(!all.is_empty());
            let set: BTreeSet<_> = all.iter().copied().collect();
            prop_assert_eq!(set.len(), all.len());
            for (client, server) in all {
                prop_assert!(client != server && client < ranks && server < ranks);
                prop_assert!(client % stride == 0 && server % stride == 0);
                prop_assert!(set.contains(&(server, client)));
            }
        }

        #[test]
        fn a_ring_has_every_rank_once_and_neighbours_know_each_other(
            ranks in 2_u32..200, seed in any::<u64>(),
        ) {
            let order = shuffled(ranks, &mut Rng::new(seed));
            prop_assert_eq!(&order, &shuffled(ranks, &mut Rng::new(seed)));
            let set: BTreeSet<_> = order.iter().copied().collect();
            prop_assert_eq!(set, (0..ranks).collect());
            for rank in 0..ranks {
                prop_assert_eq!(beside(&order, beside(&order, rank).right).left, rank);
            }
        }
    }

    #[test]
    fn all_orders_are_equally_likely() {
        // 24 orders of 4 ranks, 240 000 draws: 10 000 each, and a deviation of 98.
        let mut rng = Rng::new(1);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..240_000 {
            *seen.entry(shuffled(4, &mut rng)).or_insert(0_i32) += 1;
        }
        assert_eq!(seen.len(), 24);
        assert!(seen.values().all(|n| (n - 10_000).abs() < 500), "{seen:?}");
    }
}
