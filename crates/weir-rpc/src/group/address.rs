//! Addresses of servers, as `tcp://127.0.0.1:7000` or `shm:///run/weir/0.sock`.
//!
//! In: text. Out: a scheme, which names the link, and where the stream of the handshake goes. Not
//! here: connecting.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use weir_schema::RpcAddresses;

use crate::{DerCode, RpcError};

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RpcAddress {
    /// `tcp`, `shm`, `ofi+…`: which link carries calls.
    pub scheme: String,
    /// The part behind `://`.
    pub place: String,
}

/// Where the stream of the handshake goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamAddress {
    /// A socket of the network.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl RpcAddress {
    /// Resolves the place.
    ///
    /// # Errors
    /// There is no such host, or the port is missing.
    pub fn stream(&self) -> Result<StreamAddress, RpcError> {
        if self.scheme == "shm" {
            return Ok(StreamAddress::Unix(PathBuf::from(&self.place)));
        }
        let found = self.place.to_socket_addrs();
        let refuse =
            |why: String| RpcError::new(DerCode::Unreachable, format!("address `{self}`: {why}"));
        found
            .map_err(|error| refuse(error.to_string()))?
            .next()
            .map(StreamAddress::Tcp)
            .ok_or_else(|| refuse("the host has no address".to_owned()))
    }
}

impl RpcAddress {
    /// Checks that it has what a server needs to be reached by: a port, or a socket in the file system.
    ///
    /// # Errors
    /// The part that is missing.
    pub fn check_reachable(&self) -> Result<(), RpcError> {
        let refuse = |why: &str| {
            Err(RpcError::new(
                DerCode::Invalid,
                format!("address `{self}`: {why}"),
            ))
        };
        let text = self.place.rsplit_once(':').map(|(_, port)| port);
        let port = text.map(str::parse);
        let is_number = |text: &str| text.len() > 4 && text.bytes().all(|b| b.is_ascii_digit());
        match (self.scheme.as_str(), port) {
            ("shm", _) if self.place.is_empty() => {
                refuse("it has no socket, as in shm:///tmp/0.sock")
            }
            ("null" | "shm", _) | (_, Some(Ok(1_u16..))) => Ok(()),
            _ if text.is_some_and(is_number) => refuse("ports go from 1 to 65535"),
            _ => refuse("it has no port, as in tcp://host:7000"),
        }
    }

    /// The same with an address of this kind in place of a host's name.
    ///
    /// # Errors
    /// There is no such host, or it has no such address.
    pub fn of_kind(&self, kind: RpcAddresses) -> Result<Self, RpcError> {
        let (is_wanted, name): (fn(&SocketAddr) -> bool, _) = match kind {
            _ if self.scheme == "shm" => return Ok(self.clone()),
            RpcAddresses::Any => return Ok(self.clone()),
            RpcAddresses::Ipv4 => (SocketAddr::is_ipv4, "IPv4"),
            RpcAddresses::Ipv6 => (SocketAddr::is_ipv6, "IPv6"),
        };
        let refuse =
            |why: String| RpcError::new(DerCode::Unreachable, format!("address `{self}`: {why}"));
        let found = self.place.to_socket_addrs();
        let mut found = found.map_err(|error| refuse(error.to_string()))?;
        let own = found.find(is_wanted);
        let own = own.ok_or_else(|| refuse(format!("the host has no {name} address")))?;
        Ok(Self {
            place: own.to_string(),
            ..self.clone()
        })
    }
}

impl FromStr for RpcAddress {
    type Err = RpcError;

    fn from_str(text: &str) -> Result<Self, RpcError> {
        let known =
            |scheme: &str| matches!(scheme, "tcp" | "shm" | "null") || scheme.starts_with("ofi+");
        match text.split_once("://") {
            Some((scheme, place)) if known(scheme) => Ok(Self {
                scheme: scheme.to_owned(),
                place: place.to_owned(),
            }),
            Some((scheme, _)) => Err(RpcError::new(
                DerCode::Invalid,
                format!(
                    "address `{text}`: no transport is called `{scheme}` (tcp, shm, ofi+PROVIDER)"
                ),
            )),
            None => Err(RpcError::new(
                DerCode::Invalid,
                format!("address `{text}`: expected TRANSPORT://PLACE, as tcp://127.0.0.1:7000"),
            )),
        }
    }
}

impl fmt::Display for RpcAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_reached_by_a_port_or_a_socket() {
        let check = |text: &str| text.parse::<RpcAddress>().unwrap().check_reachable();
        for good in ["tcp://h:7", "tcp://[::1]:7", "shm:///s", "ofi+tcp://h:1"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "tcp://h",
            "tcp://[::1]",
            "tcp://h:0",
            "tcp://h:x",
            "shm://",
            "ofi+tcp://h",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_is_reached_by_an_address_of_the_kind_that_is_asked_for() {
        let at = |text: &str, kind| {
            let address: RpcAddress = text.parse().unwrap();
            let found = address.of_kind(kind);
            found.map_or_else(|why| why.to_string(), |address| address.to_string())
        };
        let (four, six) = (RpcAddresses::Ipv4, RpcAddresses::Ipv6);
        assert_eq!(at("tcp://localhost:7", four), "tcp://127.0.0.1:7");
        assert_eq!(at("tcp://[::1]:7", six), "tcp://[::1]:7");
        assert!(at("tcp://127.0.0.1:7", six).contains("no IPv6 address"));
        assert!(at("ofi+tcp://[::1]:7", four).contains("no IPv4 address"));
        assert_eq!(at("shm:///x", six), "shm:///x");
        let any = RpcAddresses::Any;
        assert_eq!(at("tcp://localhost:7", any), "tcp://localhost:7");
    }
}
