//! The list of endpoints that a master calls, and which of them are the same.

use weir_schema::{EndpointSet, RpcEndpoint};

/// Endpoints in the order in which they are called. One that stands twice has two entries, each with
/// a session of its own, and its figures once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallList {
    /// As they are called.
    pub entries: Vec<RpcEndpoint>,
    /// Each once, by rank and tag.
    pub distinct: Vec<RpcEndpoint>,
    /// The place among those, by entry.
    pub targets: Vec<u32>,
}

impl CallList {
    /// Of these, in this order.
    pub fn new(entries: Vec<RpcEndpoint>) -> Self {
        let mut distinct = entries.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let place = |entry| distinct.binary_search(entry).unwrap_or(0);
        let number = |entry| u32::try_from(place(entry)).unwrap_or(u32::MAX);
        let targets = entries.iter().map(number).collect();
        Self {
            entries,
            distinct,
            targets,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// The same as sets, one for each run of tags of one rank.
    pub fn sets(&self) -> Vec<EndpointSet> {
        let mut sets: Vec<EndpointSet> = Vec::new();
        let mut last: Option<RpcEndpoint> = None;
        for entry in &self.entries {
            let follows =
                last.is_some_and(|last| last.rank == entry.rank && last.tag + 1 == entry.tag);
            let tags = sets.last_mut().and_then(|set| set.tags.ranges.last_mut());
            match tags.filter(|_| follows) {
                Some(range) => range.1 = entry.tag,
                None => sets.push(EndpointSet::one(*entry)),
            }
            last = Some(*entry);
        }
        sets
    }

    /// True if nothing is called.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_twice_is_one_endpoint_with_two_entries() {
        let at = |rank, tag| RpcEndpoint { rank, tag };
        let list = CallList::new(vec![at(2, 0), at(1, 0), at(2, 0), at(1, 1)]);
        assert_eq!(list.distinct, [at(1, 0), at(1, 1), at(2, 0)]);
        assert_eq!(list.targets, [2, 0, 2, 1]);
    }

    #[test]
    fn a_list_comes_back_from_its_sets() {
        let at = |rank, tag| RpcEndpoint { rank, tag };
        let list = vec![
            at(0, 0),
            at(0, 1),
            at(0, 2),
            at(1, 2),
            at(1, 0),
            at(1, 0),
            at(1, 1),
        ];
        let sets = CallList::new(list.clone()).sets();
        assert_eq!(sets.len(), 4);
        assert_eq!(weir_schema::expand_endpoints(&sets, &[]).unwrap(), list);
    }
}
