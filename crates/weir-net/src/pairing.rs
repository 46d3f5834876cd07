//! Pairing of ranks.
//!
//! In: the rule, the number of ranks, a rank and a replication. Out: whom it sends to and whom it
//! receives from. In any rule and replication, who I send to receives from me.

use weir_schema::Pairing;

use crate::error::NetError;

/// The two ends of a rank's channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partners {
    /// Messages go to this rank.
    pub to: u32,
    /// Messages come from this rank.
    pub from: u32,
}

/// The rule that `auto` comes to among so many ranks; `ring` where the transport's channels all
/// exchange at the same time.
///
/// # Errors
/// Pairs of an odd number of ranks, which would wait for each other for ever.
pub fn resolve(rule: Pairing, ranks: u32, ring: bool) -> Result<Pairing, NetError> {
    if let Some(why) = rule.misfit(ranks) {
        return Err(NetError::Plan(format!("pairing `pairs`: {why}")));
    }
    let odd = ranks > 1 && !ranks.is_multiple_of(2);
    match rule {
        Pairing::Auto if odd || ring => Ok(Pairing::Ring),
        Pairing::Auto => Ok(Pairing::Pairs),
        given => Ok(given),
    }
}

/// The partners of a rank in one replication. Pairs take turns between the neighbours on both
/// sides; the ring turns round in odd replications.
pub fn partners(rule: Pairing, ranks: u32, rank: u32, replication: u32) -> Partners {
    let (n, p, i) = (
        u64::from(ranks.max(1)),
        u64::from(rank),
        u64::from(replication),
    );
    let at = |offset: u64| u32::try_from((p + offset) % n).unwrap_or(0);
    let (next, previous) = (at(1), at(n - 1));
    match rule {
        Pairing::Auto | Pairing::Pairs => {
            let to = at(n - 1 + 2 * ((p + i) % 2));
            Partners { to, from: to }
        }
        Pairing::Ring if i % 2 == 0 => Partners {
            to: next,
            from: previous,
        },
        Pairing::Ring => Partners {
            to: previous,
            from: next,
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn who_i_send_to_receives_from_me(ranks in 1u32..200, rank in 0u32..200, i in 0u32..64) {
            let rank = rank % ranks;
            for asked in [Pairing::Auto, Pairing::Ring, Pairing::Pairs] {
                let Ok(rule) = resolve(asked, ranks, false) else {
                    prop_assert!(asked == Pairing::Pairs && ranks % 2 == 1 && ranks > 1);
                    continue;
                };
                let mine = partners(rule, ranks, rank, i);
                prop_assert!(mine.to < ranks && mine.from < ranks);
                prop_assert_eq!(partners(rule, ranks, mine.to, i).from, rank);
                prop_assert_eq!(partners(rule, ranks, mine.from, i).to, rank);
                if ranks > 1 {
                    prop_assert_ne!(mine.to, rank);
                }
            }
        }
    }

    #[test]
    fn two_replications_of_pairs_touch_both_neighbours() {
        let of = |rank, i| partners(Pairing::Pairs, 6, rank, i).to;
        assert_eq!([of(0, 0), of(1, 0), of(2, 0), of(5, 0)], [5, 2, 1, 0]);
        assert_eq!([of(0, 1), of(1, 1), of(2, 1), of(5, 1)], [1, 0, 3, 4]);
    }

    #[test]
    fn pairs_of_three_are_refused_and_auto_takes_the_ring() {
        assert!(resolve(Pairing::Pairs, 3, false).is_err());
        assert_eq!(resolve(Pairing::Auto, 3, false).unwrap(), Pairing::Ring);
        assert_eq!(resolve(Pairing::Auto, 4, true).unwrap(), Pairing::Ring);
        assert_eq!(resolve(Pairing::Auto, 1, false).unwrap(), Pairing::Pairs);
    }
}
