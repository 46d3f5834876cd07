//! Addresses of sockets: which of this machine's, and what the ranks tell each other.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use weir_schema::EngineChoice;
use weir_schema::catalogue::{SettingInfo, SettingKind};

use super::Setup;
use super::interface::AddressOrInterface;
use crate::error::Halt;

/// Setting of the address that sockets are bound to.
pub(super) const INTERFACE: SettingInfo = SettingInfo {
    name: "interface",
    value: SettingKind::Checked(check),
    default: "127.0.0.1",
    help: "own address that sockets are bound to, or the network interface that has it; `RANK=WHERE,...` where ranks differ",
};

fn check(text: &str) -> Result<(), String> {
    Places::read(text).map(|_| ())
}

/// Places by rank; without a rank, of all of them.
struct Places<'a>(Vec<(Option<u32>, AddressOrInterface<'a>)>);

impl<'a> Places<'a> {
    /// `WHERE`, or `RANK=WHERE,...` with every rank once.
    fn read(text: &'a str) -> Result<Self, String> {
        let mut all: Vec<(Option<u32>, AddressOrInterface<'a>)> = Vec::new();
        for part in text.split(',') {
            let (whose, place) = match part.split_once('=') {
                None => (None, part),
                Some((whose, place)) => match whose.trim().parse::<u32>() {
                    Ok(whose) => (Some(whose), place),
                    Err(_) => return Err(format!("`{whose}` is no rank")),
                },
            };
            let place = AddressOrInterface::read(place.trim())?;
            let is_same = |(other, _): &(Option<u32>, _)| *other == whose;
            if let (Some(rank), true) = (whose, all.iter().any(is_same)) {
                return Err(format!("rank {rank} stands twice in `{text}`"));
            }
            all.push((whose, place));
        }
        if all.len() > 1 && all.iter().any(|(whose, _)| whose.is_none()) {
            let expected = "one WHERE for all ranks, or RANK=WHERE for each";
            return Err(format!("`{text}` mixes places: expected {expected}"));
        }
        Ok(Self(all))
    }

    fn of(&self, rank: u32) -> Result<AddressOrInterface<'a>, String> {
        let is_its = |(whose, _): &&(Option<u32>, _)| whose.is_none_or(|whose| whose == rank);
        let found = self.0.iter().find(is_its).map(|(_, place)| *place);
        found.ok_or_else(|| format!("there is no place for rank {rank}"))
    }

    /// Refuses places for other ranks than there are, and ranks without one.
    fn fit(&self, ranks: u32) -> Result<(), String> {
        let beyond = self
            .0
            .iter()
            .find_map(|(whose, _)| whose.filter(|w| *w >= ranks));
        if let Some(rank) = beyond {
            let last = ranks.saturating_sub(1);
            return Err(format!(
                "there is no rank {rank}: the ranks are 0 to {last}"
            ));
        }
        (0..ranks).try_for_each(|rank| self.of(rank).map(|_| ()))
    }
}

/// Error that the settings alone show, where each rank has so many ports.
pub(super) fn fit(engine: &EngineChoice, ranks: u32, ports: u32) -> Result<(), String> {
    if let Some(text) = engine.text(INTERFACE.name) {
        let fit = Places::read(text).and_then(|places| places.fit(ranks));
        fit.map_err(|why| format!("`{}` {text}: {why}", INTERFACE.name))?;
    }
    let first = engine.number("port").unwrap_or(0);
    let ports = i64::from(ranks) * i64::from(ports);
    if first != 0 && first + ports - 1 > i64::from(u16::MAX) {
        return Err(format!(
            "`port` {first}: {ranks} ranks need {ports} ports from there on, and the last one is {}",
            u16::MAX
        ));
    }
    Ok(())
}

/// Error that this machine shows, where all ranks are on it.
pub(super) fn here(engine: &EngineChoice, ranks: u32) -> Result<(), String> {
    let Some(text) = engine.text(INTERFACE.name) else {
        return Ok(());
    };
    let places = Places::read(text)?;
    let used = places
        .0
        .iter()
        .filter(|(whose, _)| whose.is_none_or(|rank| rank < ranks));
    for (_, place) in used {
        let address = place.address()?;
        UdpSocket::bind((address, 0))
            .map_err(|error| format!("`{address}` is no address of this machine ({error})"))?;
    }
    Ok(())
}

/// Address of this rank's socket: the port that is set plus its rank, or any.
pub(super) fn own(setup: &Setup<'_>, port: &str) -> Result<SocketAddr, Halt> {
    let rank = setup.comm.rank();
    let address = match setup.engine.text(INTERFACE.name) {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => Places::read(text)
            .and_then(|places| places.of(rank))
            .and_then(AddressOrInterface::address)
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
        let index = setup.comm.rank() as usize * setup.partners.len() + replication;
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

/// Address that another rank sent.
pub(super) fn parse(bytes: &[u8]) -> Result<SocketAddr, Halt> {
    let text = String::from_utf8_lossy(bytes);
    text.parse()
        .map_err(|_| Halt::Garbled(format!("`{text}` is no address of a socket")))
}

/// A number that only the ranks of this run know: rank 0's choice.
pub(super) fn token(setup: &Setup<'_>) -> Result<u64, Halt> {
    let drawn = weir_sys::token::number();
    let mine = if setup.comm.rank() == 0 { drawn } else { 0 };
    Ok(setup.comm.agree(mine, setup.watchdog)?)
}

#[cfg(test)]
mod tests {
    use weir_schema::Setting;

    use super::*;

    #[test]
    fn a_rank_finds_its_address() {
        let address = |text: &str| AddressOrInterface::Address(text.parse().unwrap());
        let of = |text, rank| Places::read(text).and_then(|places| places.of(rank));
        assert_eq!(of("10.0.0.1", 3), Ok(address("10.0.0.1")));
        assert_eq!(of("0=10.0.0.1,1=::1", 1), Ok(address("::1")));
        assert_eq!(
            of("0=eth1, 1=eth0", 1),
            Ok(AddressOrInterface::Interface("eth0"))
        );
        assert!(of("0=10.0.0.1", 1).unwrap_err().contains("rank 1"));
        assert!(of("x=10.0.0.1", 1).unwrap_err().contains("no rank"));
        assert!(
            check("0=lo,1=a/b")
                .unwrap_err()
                .contains("neither an address")
        );
    }

    #[test]
    fn every_rank_has_one_place_and_there_is_none_without_a_rank() {
        let fit = |text| Places::read(text).and_then(|places| places.fit(2));
        for good in ["lo", "0=lo,1=lo", "1=lo,0=::1"] {
            assert_eq!(fit(good), Ok(()), "{good}");
        }
        for (wrong, expected) in [
            ("0=lo", "no place for rank 1"),
            ("0=lo,1=lo,2=lo", "there is no rank 2: the ranks are 0 to 1"),
            ("0=lo,0=eth0", "rank 0 stands twice"),
            ("lo,1=eth0", "mixes places"),
            ("lo,eth0", "mixes places"),
        ] {
            let why = fit(wrong).unwrap_err();
            assert!(why.contains(expected), "{wrong}: {why}");
        }
    }

    #[test]
    fn ports_end_with_the_last_one() {
        let engine = |port| EngineChoice::with("", &[("port", Setting::Number(port))]);
        assert_eq!(fit(&engine(65534), 2, 1), Ok(()));
        assert_eq!(fit(&engine(65532), 2, 2), Ok(()));
        assert_eq!(fit(&engine(0), 1000, 64), Ok(()));
        let why = fit(&engine(65535), 2, 1).unwrap_err();
        assert!(why.contains("2 ranks need 2 ports"), "{why}");
        assert!(fit(&engine(65533), 2, 2).is_err());
    }
}
