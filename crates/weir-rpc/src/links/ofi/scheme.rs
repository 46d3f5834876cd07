//! Fabrics by the addresses of servers: `ofi+PROVIDER://HOST:PORT`.
//!
//! In: an address, how a thread looks for work. Out: an offer of the provider on the interface that
//! the address is of, and how a link uses it. Not here: the stream that goes to HOST and PORT.

use std::net::{IpAddr, SocketAddr};

use super::library::FabricLibrary;
use super::offer::{FabricChoice, FabricOffer};
use crate::group::address::{RpcAddress, StreamAddress};
use crate::{DerCode, RpcError};

/// Beginning of the scheme of such an address.
pub const SCHEME: &str = "ofi+";

impl FabricChoice {
    /// The provider of an address, on an interface: that of `own`, else the one that the address
    /// itself is of, where it is of this machine for sure.
    ///
    /// # Errors
    /// The address is of another scheme, or there is no such host.
    pub fn of_address(address: &RpcAddress, own: Option<IpAddr>) -> Result<Self, RpcError> {
        let provider = address.scheme.strip_prefix(SCHEME);
        let provider = provider
            .filter(|provider| !provider.is_empty())
            .ok_or_else(|| {
                let text = format!("address `{address}` names no provider of a fabric");
                RpcError::new(DerCode::Invalid, text)
            })?;
        let node = match address.stream()? {
            StreamAddress::Tcp(there) => own.or_else(|| loopback(there)),
            StreamAddress::Unix(_) => own,
        };
        // Shared memory has addresses of its own.
        let has_addresses = provider != "shm";
        Ok(Self {
            provider: Some(provider.to_owned()),
            node: node.filter(|_| has_addresses).map(|node| node.to_string()),
            domain: None,
        })
    }

    /// Offer of its provider.
    ///
    /// # Errors
    /// There is no libfabric, or it has no such provider.
    pub fn find(&self) -> Result<FabricOffer, RpcError> {
        Ok(FabricOffer::find(&FabricLibrary::open()?, self)?)
    }
}

fn loopback(address: SocketAddr) -> Option<IpAddr> {
    Some(address.ip()).filter(IpAddr::is_loopback)
}

/// The address that a server listens on, where it is of one interface.
pub(crate) fn listening(address: &RpcAddress) -> Option<IpAddr> {
    match address.stream() {
        Ok(StreamAddress::Tcp(there)) => Some(there.ip()).filter(|ip| !ip.is_unspecified()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_provider_and_on_loopback_the_interface() {
        let of = |text: &str, own: Option<&str>| {
            let own = own.map(|own| own.parse().unwrap());
            FabricChoice::of_address(&text.parse().unwrap(), own).unwrap()
        };
        let choice = of("ofi+tcp;ofi_rxm://127.0.0.1:7000", None);
        assert_eq!(choice, FabricChoice::on_loopback("tcp;ofi_rxm"));
        assert_eq!(
            of("ofi+shm://127.0.0.1:1", None),
            FabricChoice::on_loopback("shm")
        );
        assert_eq!(of("ofi+tcp://192.0.2.1:1", None).node, None);
        let node = of("ofi+tcp://192.0.2.1:1", Some("192.0.2.9")).node;
        assert_eq!(node.as_deref(), Some("192.0.2.9"));
        for wrong in ["tcp://127.0.0.1:1", "ofi+://127.0.0.1:1"] {
            assert!(FabricChoice::of_address(&wrong.parse().unwrap(), None).is_err());
        }
    }

    #[test]
    fn a_server_that_listens_everywhere_is_on_no_interface_of_its_own() {
        assert_eq!(listening(&"ofi+tcp://0.0.0.0:7000".parse().unwrap()), None);
        let one = listening(&"ofi+tcp://127.0.0.1:7000".parse().unwrap());
        assert_eq!(one, Some("127.0.0.1".parse().unwrap()));
    }
}
