//! Sets of endpoints: the ranks and the tags that a few words name, and the list that they stand for.
//!
//! In: [`EndpointSet`]s and, where one says `all`, the ranks of the group. Out: how many endpoints
//! there are, without making them; the endpoints in order. No set stands for more than
//! [`MOST_ENDPOINTS`], however few words it has. Not here: the words.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use weir_units::JsonSchema;

/// Largest number of endpoints in a list.
pub const MOST_ENDPOINTS: u64 = 1 << 20;

/// A server's logical context.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct RpcEndpoint {
    /// Of the server in its group.
    pub rank: u32,
    /// Of the context in its server.
    pub tag: u32,
}

impl std::fmt::Display for RpcEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.rank, self.tag)
    }
}

/// Every tag of every rank of two lists, rank by rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointSet {
    /// The ranks.
    pub ranks: Members,
    /// The tags of each.
    pub tags: Members,
}

/// Numbers in order; what stands twice is there twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Members {
    /// First come all that there are.
    pub all: bool,
    /// Then these: first and last of each range.
    pub ranges: Vec<(u32, u32)>,
    /// None of these is among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<(u32, u32)>,
}

/// Tags of a rank of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankTags {
    /// Number of the rank.
    pub rank: u32,
    /// Number of its tags, from 0.
    pub tags: u32,
}

/// Reason that sets have no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EndpointError {
    /// They stand for too many.
    #[error("more than {MOST_ENDPOINTS} endpoints")]
    TooMany,
    /// One says `all`, and nobody knows how many there are.
    #[error("`all` needs a group whose members are known")]
    NoGroup,
}

impl Members {
    /// A single one.
    pub fn one(number: u32) -> Self {
        Self {
            ranges: vec![(number, number)],
            ..Self::default()
        }
    }

    /// Number of members among these, at most one more than [`MOST_ENDPOINTS`].
    fn count(&self, known: impl Iterator<Item = (u32, u32)>) -> u64 {
        let mut count = 0;
        for (first, last) in self.kept(known) {
            count += u64::from(last - first) + 1;
            if count > MOST_ENDPOINTS {
                return MOST_ENDPOINTS + 1;
            }
        }
        count
    }

    /// Number of members where those of the group need not be known.
    ///
    /// # Errors
    /// Too many; `all`.
    pub fn count_alone(&self) -> Result<u64, EndpointError> {
        if self.all {
            return Err(EndpointError::NoGroup);
        }
        within(self.count(std::iter::empty()))
    }

    /// Every one of them, of those that are known where all are meant.
    fn numbers(&self, known: impl Iterator<Item = (u32, u32)>) -> impl Iterator<Item = u32> {
        self.kept(known).flat_map(|(first, last)| first..=last)
    }

    /// The ranges without what is left out, in order and none empty.
    fn kept(&self, known: impl Iterator<Item = (u32, u32)>) -> impl Iterator<Item = (u32, u32)> {
        let except = self.except_once();
        let all = known.filter(|_| self.all);
        let ranges = all.chain(self.ranges.iter().copied());
        ranges.flat_map(move |range| Remaining::of(range, except.clone()))
    }

    /// The excluded ranges, sorted; ranges that touch are one.
    fn except_once(&self) -> std::rc::Rc<[(u32, u32)]> {
        let mut except: Vec<_> = self.except.clone();
        for (first, last) in &mut except {
            (*first, *last) = ((*first).min(*last), (*first).max(*last));
        }
        except.sort_unstable();
        let mut once: Vec<(u32, u32)> = Vec::new();
        for (first, last) in except {
            match once.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => once.push((first, last)),
            }
        }
        once.into()
    }
}

/// Rest of a range.
struct Remaining {
    next: Option<u32>,
    last: u32,
    except: std::rc::Rc<[(u32, u32)]>,
    /// The first of the exceptions that ends behind what was given out.
    at: usize,
}

impl Remaining {
    fn of(range: (u32, u32), except: std::rc::Rc<[(u32, u32)]>) -> Self {
        let (first, last) = (range.0.min(range.1), range.0.max(range.1));
        Self {
            next: Some(first),
            last,
            at: except.partition_point(|hole| hole.1 < first),
            except,
        }
    }
}

impl Iterator for Remaining {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        loop {
            let first = self.next.take().filter(|first| *first <= self.last)?;
            match self.except.get(self.at) {
                Some((hole, end)) if *hole <= self.last => {
                    self.at += 1;
                    self.next = end.checked_add(1);
                    if *hole > first {
                        return Some((first, hole - 1));
                    }
                }
                _ => return Some((first, self.last)),
            }
        }
    }
}

fn within(count: u64) -> Result<u64, EndpointError> {
    if count > MOST_ENDPOINTS {
        return Err(EndpointError::TooMany);
    }
    Ok(count)
}

impl EndpointSet {
    /// A single endpoint.
    pub fn one(endpoint: RpcEndpoint) -> Self {
        Self {
            ranks: Members::one(endpoint.rank),
            tags: Members::one(endpoint.tag),
        }
    }

    /// It says `all` of something.
    pub fn needs_group(&self) -> bool {
        self.ranks.all || self.tags.all
    }

    /// The ranks, with how many tags each has where that is known.
    fn ranks(&self, known: &[RankTags]) -> impl Iterator<Item = (u32, Option<u32>)> {
        let tags: std::collections::BTreeMap<u32, u32> =
            known.iter().map(|one| (one.rank, one.tags)).collect();
        let ranks = known.iter().map(|one| (one.rank, one.rank));
        let ranks: Vec<_> = ranks.collect();
        let ranks: Vec<u32> = self.ranks.numbers(ranks.into_iter()).collect();
        ranks
            .into_iter()
            .map(move |rank| (rank, tags.get(&rank).copied()))
    }

    fn count(&self, known: &[RankTags]) -> Result<u64, EndpointError> {
        let ranks = known.iter().map(|one| (one.rank, one.rank));
        let ranks = within(self.ranks.count(ranks))?;
        if !self.tags.all {
            let tags = self.tags.count(std::iter::empty());
            return within(ranks.saturating_mul(tags));
        }
        self.ranks(known).try_fold(0, |count, (_, tags)| {
            within(count + self.tags.count(range_of(tags)))
        })
    }
}

/// The tags of a rank; none of one that is not known.
fn range_of(tags: Option<u32>) -> impl Iterator<Item = (u32, u32)> {
    let last = tags.and_then(|tags| tags.checked_sub(1));
    last.map(|last| (0, last)).into_iter()
}

/// Number of endpoints.
///
/// # Errors
/// Too many; `all` where no member of the group is known.
pub fn count_endpoints(sets: &[EndpointSet], known: &[RankTags]) -> Result<u64, EndpointError> {
    if known.is_empty() && sets.iter().any(EndpointSet::needs_group) {
        return Err(EndpointError::NoGroup);
    }
    sets.iter()
        .try_fold(0, |count, set| within(count + set.count(known)?))
}

/// Every endpoint, set by set and rank by rank; duplicates are kept.
///
/// # Errors
/// As of [`count_endpoints`].
pub fn expand_endpoints(
    sets: &[EndpointSet],
    known: &[RankTags],
) -> Result<Vec<RpcEndpoint>, EndpointError> {
    let count = count_endpoints(sets, known)?;
    let mut all = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    for set in sets {
        let mut ranks = set.ranks(known).peekable();
        if ranks.peek().is_none() {
            continue;
        }
        // The same of every rank, unless each has its own.
        let same: Option<Vec<u32>> =
            (!set.tags.all).then(|| set.tags.numbers(std::iter::empty()).collect());
        for (rank, tags) in ranks {
            let endpoint = |tag| RpcEndpoint { rank, tag };
            match &same {
                Some(same) => all.extend(same.iter().copied().map(endpoint)),
                None if tags.is_none() && set.tags.ranges.is_empty() => {}
                None => all.extend(set.tags.numbers(range_of(tags)).map(endpoint)),
            }
        }
    }
    Ok(all)
}

/// Every endpoint once, by rank and tag.
///
/// # Errors
/// As of [`count_endpoints`].
pub fn expand_masters(
    sets: &[EndpointSet],
    known: &[RankTags],
) -> Result<Vec<RpcEndpoint>, EndpointError> {
    let mut all = expand_endpoints(sets, known)?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Puts endpoints into an order that the seed alone decides.
pub fn shuffle_endpoints(endpoints: &mut [RpcEndpoint], seed: u64) {
    let mut state = seed;
    // splitmix64
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    for last in (1..endpoints.len()).rev() {
        let wide = u128::from(next()) * (last as u128 + 1);
        endpoints.swap(last, usize::try_from(wide >> 64).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn members(ranges: &[(u32, u32)], except: &[(u32, u32)]) -> Members {
        Members {
            all: false,
            ranges: ranges.to_vec(),
            except: except.to_vec(),
        }
    }

    fn set(ranks: Members, tags: Members) -> EndpointSet {
        EndpointSet { ranks, tags }
    }

    fn texts(all: &[RpcEndpoint]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_order_is_rank_by_rank_and_duplicates_are_kept() {
        let sets = [set(
            members(&[(1, 3), (2, 2)], &[]),
            members(&[(0, 1)], &[]),
        )];
        let all = expand_endpoints(&sets, &[]).unwrap();
        assert_eq!(
            texts(&all),
            ["1:0", "1:1", "2:0", "2:1", "3:0", "3:1", "2:0", "2:1"]
        );
        let masters = expand_masters(&sets, &[]).unwrap();
        assert_eq!(texts(&masters), ["1:0", "1:1", "2:0", "2:1", "3:0", "3:1"]);
    }

    #[test]
    fn all_are_those_of_the_group_and_their_own_tags() {
        let all = Members {
            all: true,
            ..Members::default()
        };
        let but_tag_0 = Members {
            except: vec![(0, 0)],
            ..all.clone()
        };
        let known = [
            RankTags { rank: 2, tags: 3 },
            RankTags { rank: 5, tags: 1 },
            RankTags { rank: 9, tags: 2 },
        ];
        let sets = [set(all, but_tag_0)];
        let found = expand_endpoints(&sets, &known).unwrap();
        assert_eq!(texts(&found), ["2:1", "2:2", "9:1"]);
        assert_eq!(count_endpoints(&sets, &known), Ok(3));
        assert_eq!(count_endpoints(&sets, &[]), Err(EndpointError::NoGroup));
    }

    #[test]
    fn more_than_there_may_be_are_counted_without_being_made() {
        let whole = || members(&[(0, u32::MAX), (0, u32::MAX)], &[]);
        let sets = [set(whole(), whole())];
        assert_eq!(expand_endpoints(&sets, &[]), Err(EndpointError::TooMany));
        // All but two of the largest range there is.
        let ends = members(&[(0, u32::MAX)], &[(1, u32::MAX - 1)]);
        let sets = [set(ends, members(&[(0, 0)], &[]))];
        let found = expand_endpoints(&sets, &[]).unwrap();
        assert_eq!(texts(&found), ["0:0", "4294967295:0"]);
        let million = set(members(&[(0, 1023)], &[]), members(&[(0, 1023)], &[]));
        assert_eq!(
            count_endpoints(std::slice::from_ref(&million), &[]),
            Ok(1 << 20)
        );
        let one = EndpointSet::one(RpcEndpoint { rank: 0, tag: 0 });
        assert_eq!(
            count_endpoints(&[million, one], &[]),
            Err(EndpointError::TooMany)
        );
    }

    #[test]
    fn the_seed_alone_decides_the_order() {
        let sorted: Vec<RpcEndpoint> = (0..50).map(|rank| RpcEndpoint { rank, tag: 0 }).collect();
        let shuffled = |seed| {
            let mut all = sorted.clone();
            shuffle_endpoints(&mut all, seed);
            all
        };
        assert_eq!(shuffled(7), shuffled(7));
        assert_ne!(shuffled(7), shuffled(8));
        assert_ne!(shuffled(7), sorted);
        let mut again = shuffled(7);
        again.sort_unstable();
        assert_eq!(again, sorted);
    }

    fn any_members() -> impl Strategy<Value = Members> {
        let range = (0_u32..30, 0_u32..30);
        let ranges = || prop::collection::vec(range.clone(), 0..5);
        (any::<bool>(), ranges(), ranges()).prop_map(|(all, ranges, except)| Members {
            all,
            ranges,
            except,
        })
    }

    /// As a reader of the words would do it.
    fn naive(members: &Members, known: &[u32]) -> Vec<u32> {
        let all = known.iter().copied().filter(|_| members.all);
        let ranges = members.ranges.iter();
        let ranges = ranges.flat_map(|(a, b)| *a.min(b)..=*a.max(b));
        let is_out = |n: &u32| {
            let mut except = members.except.iter();
            except.any(|(a, b)| (a.min(b)..=a.max(b)).contains(&n))
        };
        all.chain(ranges).filter(|n| !is_out(n)).collect()
    }

    proptest! {
        #[test]
        fn a_list_is_that_of_two_loops(
            sets in prop::collection::vec((any_members(), any_members()), 0..4),
            tags in prop::collection::vec(0_u32..6, 1..6),
        ) {
            let known: Vec<RankTags> = tags.iter().zip(0..).map(|(tags, i)| RankTags {
                rank: 3 * i,
                tags: *tags,
            }).collect();
            let ranks: Vec<u32> = known.iter().map(|one| one.rank).collect();
            let mut expected = Vec::new();
            for (of_ranks, of_tags) in &sets {
                for rank in naive(of_ranks, &ranks) {
                    let tags = known.iter().find(|one| one.rank == rank).map_or(0, |one| one.tags);
                    let own: Vec<u32> = (0..tags).collect();
                    for tag in naive(of_tags, &own) {
                        expected.push(RpcEndpoint { rank, tag });
                    }
                }
            }
            let sets: Vec<_> = sets.into_iter().map(|(ranks, tags)| set(ranks, tags)).collect();
            prop_assert_eq!(count_endpoints(&sets, &known), Ok(expected.len() as u64));
            prop_assert_eq!(expand_endpoints(&sets, &known), Ok(expected));
        }
    }
}
