//! Addresses of peers: what a greeting says, and which of them an endpoint knows.
//!
//! In: greetings, peers that join and leave. Out: numbers in the endpoint's table. An address that
//! several connections share is entered once. One that is still used by operations of a peer that
//! left stays until those are done: a provider need not survive its removal.

use crate::RpcError;
use crate::links::PeerId;
use crate::links::ofi::endpoint::{FabricEndpoint, FabricPeer};

/// Bytes of a greeting before the address.
const HEAD: usize = 12;

/// Greeting of a side: the kind of its address, a mark for this connection, the address.
pub(super) fn greeting(format: u32, mark: u64, address: &[u8]) -> Vec<u8> {
    [&format.to_le_bytes()[..], &mark.to_le_bytes(), address].concat()
}

/// The parts of the other side's greeting.
pub(super) fn of_greeting(greeting: &[u8]) -> Result<(u32, u64, &[u8]), RpcError> {
    let parts = greeting
        .split_first_chunk::<4>()
        .and_then(|(format, rest)| {
            let (mark, address) = rest.split_first_chunk::<8>()?;
            let (format, mark) = (u32::from_le_bytes(*format), u64::from_le_bytes(*mark));
            (!address.is_empty()).then_some((format, mark, address))
        });
    parts.ok_or_else(|| {
        RpcError::protocol(format!(
            "the other side said no address of a fabric (needed are more than {HEAD} bytes, \
             there are {})",
            greeting.len()
        ))
    })
}

/// An address that is in use.
#[derive(Debug)]
struct AddressEntry {
    address: Vec<u8>,
    number: FabricPeer,
    uses: u32,
}

/// A peer that left while operations were in flight.
#[derive(Debug)]
struct Departed {
    peer: PeerId,
    number: FabricPeer,
    in_flight: u32,
}

/// The addresses of an endpoint.
#[derive(Debug, Default)]
pub(super) struct AddressBook {
    entries: Vec<AddressEntry>,
    departed: Vec<Departed>,
}

impl AddressBook {
    /// The number of an address, from now on in use once more.
    pub(super) fn enter(
        &mut self,
        endpoint: &mut FabricEndpoint,
        address: &[u8],
    ) -> Result<FabricPeer, RpcError> {
        let mut entries = self.entries.iter_mut();
        if let Some(entry) = entries.find(|entry| entry.address == address) {
            entry.uses += 1;
            return Ok(entry.number);
        }
        let number = endpoint.insert(address)?;
        self.entries.push(AddressEntry {
            address: address.to_vec(),
            number,
            uses: 1,
        });
        Ok(number)
    }

    /// A peer leaves, with so many operations in flight.
    pub(super) fn leave(
        &mut self,
        endpoint: &mut FabricEndpoint,
        peer: PeerId,
        number: FabricPeer,
        in_flight: u32,
    ) {
        if in_flight == 0 {
            return self.drop_use(endpoint, number);
        }
        self.departed.push(Departed {
            peer,
            number,
            in_flight,
        });
    }

    /// An operation of a peer that left is done.
    pub(super) fn done(&mut self, endpoint: &mut FabricEndpoint, peer: PeerId) {
        let Some(at) = self.departed.iter().position(|gone| gone.peer == peer) else {
            return;
        };
        self.departed[at].in_flight -= 1;
        if self.departed[at].in_flight == 0 {
            let gone = self.departed.swap_remove(at);
            self.drop_use(endpoint, gone.number);
        }
    }

    fn drop_use(&mut self, endpoint: &mut FabricEndpoint, number: FabricPeer) {
        let at = self.entries.iter().position(|entry| entry.number == number);
        let Some(at) = at else { return };
        self.entries[at].uses -= 1;
        if self.entries[at].uses == 0 {
            self.entries.swap_remove(at);
            endpoint.remove(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_comes_back_in_its_parts_and_a_cut_one_is_refused() {
        let whole = greeting(7, 0x0102_0304_0506_0708, b"there");
        let parts = of_greeting(&whole).unwrap();
        assert_eq!(parts, (7, 0x0102_0304_0506_0708, &b"there"[..]));
        for end in 0..=HEAD {
            assert!(of_greeting(&whole[..end]).is_err());
        }
    }
}
