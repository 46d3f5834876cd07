//! The group that a job calls: where each of its ranks listens.
//!
//! In: a job's words on that, a server of the run's own. Out: addresses by rank. Not here: the file
//! (`table`), connecting.

pub mod address;
pub(crate) mod boot;
pub(crate) mod dead_sockets;
pub(crate) mod held_rank;
pub mod known_groups;
pub mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use weir_run::failure;
use weir_schema::{Failure, RankTags, RpcAddresses, RpcEndpoint, RpcWorkload};

use crate::RpcError;
use crate::client;
use crate::group::address::RpcAddress;
use crate::group::table::{GroupMember, GroupTable, rank_tags};

/// Where the ranks of a group listen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RpcGroup {
    /// Its name.
    pub name: String,
    /// By rank.
    pub members: BTreeMap<u32, GroupMember>,
    /// The directory of its table, where it has one.
    pub directory: Option<PathBuf>,
    /// The size that its table says it has, where that is wrong.
    pub said_size: Option<u64>,
}

impl RpcGroup {
    /// As a job's words say: fixed addresses, or the table of the group.
    ///
    /// # Errors
    /// The table cannot be read, an address makes no sense.
    pub fn of(work: &RpcWorkload, directory: &Path) -> Result<Self, Failure> {
        let mut group = Self::named(work, directory)?;
        let members = group.members.values_mut();
        for address in members.flat_map(|member| &mut member.addresses) {
            let of_kind = address.of_kind(work.addresses);
            *address = of_kind.map_err(|why| failure("missing", None, why.to_string()))?;
        }
        Ok(group)
    }

    fn named(work: &RpcWorkload, directory: &Path) -> Result<Self, Failure> {
        if !work.targets.is_empty() {
            let addresses = work.targets.iter().map(|target| target.parse());
            let addresses: Result<Vec<RpcAddress>, RpcError> = addresses.collect();
            let addresses = addresses.map_err(|why| failure("plan", None, why.to_string()))?;
            return Ok(Self::at(&work.group, (0..).zip(addresses)));
        }
        let Some(table) = &work.table else {
            return Ok(Self::at(&work.group, std::iter::empty()));
        };
        let directory = directory.join(table);
        let table = GroupTable::read(&directory, &work.group);
        let table = table.map_err(|why| failure("missing", None, why.to_string()))?;
        Ok(Self {
            name: work.group.clone(),
            members: table.members,
            directory: Some(directory),
            said_size: table.said_size,
        })
    }

    /// Ranks that listen at these addresses.
    pub fn at(name: &str, ranks: impl IntoIterator<Item = (u32, RpcAddress)>) -> Self {
        let mut members: BTreeMap<u32, GroupMember> = BTreeMap::new();
        for (rank, address) in ranks {
            members.entry(rank).or_default().addresses.push(address);
        }
        Self {
            name: name.to_owned(),
            members,
            ..Self::default()
        }
    }

    /// Ranks and how many tags each has.
    pub fn ranks(&self) -> Vec<RankTags> {
        rank_tags(&self.members)
    }

    /// Scheme of the first address of the lowest rank.
    pub fn first_scheme(&self) -> Option<&str> {
        let first = self.members.values().next()?;
        Some(&first.addresses.first()?.scheme)
    }

    /// Number of these endpoints that are on a machine.
    pub fn count_on(&self, node: &str, endpoints: &[RpcEndpoint]) -> usize {
        let is_there = |one: &&RpcEndpoint| {
            let member = self.members.get(&one.rank);
            member.is_some_and(|member| member.is_on(node))
        };
        endpoints.iter().filter(is_there).count()
    }

    /// Whom to connect to for an endpoint, over a transport.
    ///
    /// # Errors
    /// The group has no such rank, or it does not listen for this transport.
    pub fn endpoint(
        &self,
        of: RpcEndpoint,
        scheme: &str,
    ) -> Result<client::ServerEndpoint, Failure> {
        let missing = |why: String| Err(failure("missing", None, why));
        let Some(member) = self.members.get(&of.rank) else {
            let name = &self.name;
            return missing(if self.members.is_empty() {
                format!(
                    "no server of group {name} is in its table\n  help: start one with `weir rpc serve \
                     --group {name}`, or let --loopback start one for this run"
                )
            } else {
                format!("group {name} has no rank {}", of.rank)
            });
        };
        if member.tags.is_some_and(|tags| of.tag >= tags) {
            let tags = member.tags.unwrap_or_default();
            return missing(format!(
                "rank {} has {tags} tags, and no tag {}",
                of.rank, of.tag
            ));
        }
        let listens = |address: &&RpcAddress| address.scheme == scheme;
        let Some(address) = member.addresses.iter().find(listens) else {
            let there: Vec<_> = member.addresses.iter().map(ToString::to_string).collect();
            return missing(format!(
                "rank {} does not listen for {scheme} (it does at {})",
                of.rank,
                there.join(", ")
            ));
        };
        Ok(client::ServerEndpoint {
            endpoint: of,
            address: address.clone(),
            nonce: member.nonce.as_deref().and_then(nonce_of),
        })
    }

    /// Where an endpoint listens by now, as far as the table says.
    pub fn look_again(
        directory: &Path,
        name: &str,
        of: &client::ServerEndpoint,
        kind: RpcAddresses,
    ) -> Option<client::ServerEndpoint> {
        let table = GroupTable::read(directory, name).ok()?;
        let group = Self {
            name: name.to_owned(),
            members: table.members,
            ..Self::default()
        };
        let found = group.endpoint(of.endpoint, &of.address.scheme).ok()?;
        Some(client::ServerEndpoint {
            address: found.address.of_kind(kind).ok()?,
            ..found
        })
    }
}

/// The bytes of a run's mark, as tables have it.
pub(crate) fn nonce_of(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    if text.len() != 2 * bytes.len() || !text.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// A run's mark, as tables have it.
pub fn nonce_text(nonce: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(nonce))
}

/// Number of servers that these members are of: those without a mark count as one.
pub(crate) fn count_servers<'a>(members: impl Iterator<Item = &'a GroupMember>) -> usize {
    let marks = members.map(|member| member.nonce.as_deref());
    marks.collect::<BTreeSet<_>>().len()
}

/// Name of this machine in tables.
pub(crate) fn node_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    name.replace(char::is_whitespace, "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_tags_and_transports_that_are_not_there_are_named() {
        let address = |text: &str| text.parse::<RpcAddress>().unwrap();
        let mut group = RpcGroup::at("g", [(0, address("tcp://a:1")), (2, address("tcp://b:1"))]);
        group.members.get_mut(&2).unwrap().tags = Some(2);
        let why = |rank, tag, scheme| {
            let found = group.endpoint(RpcEndpoint { rank, tag }, scheme);
            found.map_or_else(|f| f.message, |one| one.address.to_string())
        };
        assert_eq!(why(2, 1, "tcp"), "tcp://b:1");
        assert_eq!(why(1, 0, "tcp"), "group g has no rank 1");
        let none = RpcGroup::at("g", []).endpoint(RpcEndpoint { rank: 0, tag: 0 }, "tcp");
        let none = none.unwrap_err().message;
        assert!(
            none.starts_with("no server of group g is in its table\n  help: start one"),
            "{none}"
        );
        assert_eq!(why(2, 2, "tcp"), "rank 2 has 2 tags, and no tag 2");
        assert!(why(0, 0, "shm").contains("not listen for shm (it does at tcp://a:1)"));
        assert_eq!(group.first_scheme(), Some("tcp"));
    }

    #[test]
    fn a_mark_comes_back_from_its_text() {
        let mark: [u8; 16] = std::array::from_fn(|place| u8::try_from(place * 16).unwrap());
        assert_eq!(nonce_of(&nonce_text(mark)), Some(mark));
        assert_eq!(nonce_of("0f"), None);
    }
}
