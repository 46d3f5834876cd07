//! Addresses of sockets: which of this machine's, and what the ranks tell each other.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_schema::catalogue::{SettingInfo, SettingKind};

use super::Setup;
use super::interface::Place;
use crate::error::Halt;

/// Where sockets are bound.
pub(super) const INTERFACE: SettingInfo = SettingInfo {
    name: "interface",
    value: SettingKind::Checked(check),
    default: "127.0.0.1",
    help: "own address that sockets are bound to, or the network interface that has it; `RANK=WHERE,...` where ranks differ",
};

fn check(text: &str) -> Result<(), String> {
    of_rank(text, None).map(|_| ())
}

/// The place of a rank in `WHERE` or `RANK=WHERE,...`; of all, the first is as good.
fn of_rank(text: &str, rank: Option<u32>) -> Result<Place<'_>, String> {
    let mut found = None;
    for part in text.split(',') {
        let (whose, place) = match part.split_once('=') {
            None => (None, part),
            Some((whose, place)) => match whose.trim().parse::<u32>() {
                Ok(whose) => (Some(whose), place),
                Err(_) => return Err(format!("`{whose}` is no rank")),
            },
        };
        let place = Place::read(place.trim())?;
        if found.is_none() && (whose.is_none() || rank.is_none() || whose == rank) {
            found = Some(place);
        }
    }
    found.ok_or_else(|| format!("`{text}` has no place for rank {}", rank.unwrap_or(0)))
}

/// Where this rank's socket is bound: the port that is set plus its rank, or any.
pub(super) fn own(setup: &Setup<'_>, port: &str) -> Result<SocketAddr, Halt> {
    let rank = setup.circle.rank();
    let address = match setup.engine.text(INTERFACE.name) {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => of_rank(text, Some(rank))
            .and_then(Place::address)
            .map_err(Halt::Garbled)?,
    };
    let first = setup.engine.number(port).unwrap_or(0);
    let port = match first {
        0 => Ok(0),
        first => u16::try_from(first + i64::from(rank)),
    };
    let port = port.map_err(|_| {
        Halt::Garbled(format!(
            "port {first} plus rank {rank} is beyond the last, 65535"
        ))
    })?;
    Ok(SocketAddr::new(address, port))
}

/// The same for one of several channels of a rank.
pub(super) fn own_channel(setup: &Setup<'_>, replication: usize) -> Result<SocketAddr, Halt> {
    let mut address = own(setup, "")?;
    let first = setup.engine.number("port").unwrap_or(0);
    if first != 0 {
        let index = setup.circle.rank() as usize * setup.partners.len() + replication;
        let port = i64::try_from(index).map(|index| first.saturating_add(index));
        let port = port.ok().and_then(|port| u16::try_from(port).ok());
        address.set_port(port.ok_or_else(|| {
            Halt::Garbled(format!(
                "port {first} plus {index} channels is beyond the last, 65535"
            ))
        })?);
    }
    Ok(address)
}

/// What another rank said.
pub(super) fn parse(bytes: &[u8]) -> Result<SocketAddr, Halt> {
    let text = String::from_utf8_lossy(bytes);
    text.parse()
        .map_err(|_| Halt::Garbled(format!("`{text}` is no address of a socket")))
}

/// A number that only the ranks of this run know: rank 0's choice. Guards against strangers and
/// leftovers, not against who listens on the wire.
pub(super) fn token(setup: &Setup<'_>) -> Result<u64, Halt> {
    let drawn = RandomState::new().build_hasher().finish();
    let mine = if setup.circle.rank() == 0 { drawn } else { 0 };
    setup.circle.agree(mine, setup.watch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_finds_its_address() {
        let address = |text: &str| Place::Address(text.parse().unwrap());
        let of = |text, rank| of_rank(text, Some(rank));
        assert_eq!(of("10.0.0.1", 3), Ok(address("10.0.0.1")));
        assert_eq!(of("0=10.0.0.1,1=::1", 1), Ok(address("::1")));
        assert_eq!(of("0=eth1, 1=eth0", 1), Ok(Place::Interface("eth0")));
        assert!(of("0=10.0.0.1", 1).unwrap_err().contains("rank 1"));
        assert!(of("x=10.0.0.1", 1).unwrap_err().contains("no rank"));
        assert!(
            check("0=lo,1=a/b")
                .unwrap_err()
                .contains("neither an address")
        );
    }
}
