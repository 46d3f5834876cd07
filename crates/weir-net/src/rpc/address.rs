//! Addresses of servers, as `tcp://127.0.0.1:7000` or `shm:///run/weir/0.sock`.
//!
//! In: text. Out: a scheme, which names the link, and where the stream of the handshake goes. Not
//! here: connecting.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use super::{DerCode, RpcError};

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RpcAddress {
    /// `tcp`, `shm`, `ofi+…`: which link carries calls.
    pub scheme: String,
    /// What stands behind `://`.
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
