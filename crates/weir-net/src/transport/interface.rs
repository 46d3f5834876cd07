//! Address of sockets, as a user gives it: an address, or the network interface that has one.
//!
//! In: a word. Out: an address of this machine. A name means what it means on the rank's own
//! machine, so that one name does for ranks of several.

use std::net::IpAddr;

use weir_sys::interface;

/// An address, or a name to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressOrInterface<'a> {
    Address(IpAddr),
    Interface(&'a str),
}

/// The kernel's limit, its final zero left out.
const LONGEST_NAME: usize = 15;

impl<'a> AddressOrInterface<'a> {
    /// Parses a word as an address or an interface. Nothing is looked up: the interface may be
    /// another machine's.
    pub(super) fn read(word: &'a str) -> Result<Self, String> {
        if let Ok(address) = word.parse() {
            return Ok(Self::Address(address));
        }
        let forbidden = |c: char| c.is_whitespace() || c.is_control() || "/:".contains(c);
        if word.is_empty() || word.len() > LONGEST_NAME || word.contains(forbidden) {
            return Err(format!(
                "`{word}` is neither an address (such as 127.0.0.1 or ::1) nor the name of a \
                 network interface"
            ));
        }
        Ok(Self::Interface(word))
    }

    /// The address on this machine.
    pub(super) fn address(self) -> Result<IpAddr, String> {
        match self {
            Self::Address(address) => Ok(address),
            Self::Interface(name) => {
                let all = interface::addresses()
                    .map_err(|error| format!("cannot list the network interfaces: {error}"))?;
                let first = interface::addresses_of(&all, name).into_iter().next();
                first.map(|one| one.ip).ok_or_else(|| {
                    let known = all.iter().filter(|one| one.is_whole());
                    let known = known.map(|one| format!("{} {}", one.interface, one.ip));
                    let known: Vec<_> = known.collect();
                    format!(
                        "`{name}` is neither an address nor a network interface with one (there are {})",
                        known.join(", ")
                    )
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_addresses_or_names() {
        let lo = AddressOrInterface::Address("127.0.0.1".parse().unwrap());
        assert_eq!(AddressOrInterface::read("127.0.0.1"), Ok(lo));
        assert_eq!(
            AddressOrInterface::read("eth0.5"),
            Ok(AddressOrInterface::Interface("eth0.5"))
        );
        for wrong in ["", "a/b", "a b", "::g", "sixteen-letters-"] {
            let why = AddressOrInterface::read(wrong).unwrap_err();
            assert!(why.contains(&format!("`{wrong}` is neither")), "{why}");
        }
    }

    #[test]
    fn this_machine_knows_itself() {
        let lo = AddressOrInterface::read("lo").unwrap().address();
        assert!(lo.is_ok_and(|address| address.is_loopback()));
        let why = AddressOrInterface::Interface("weir-none").address();
        let why = why.unwrap_err();
        assert!(
            why.contains("(there are ") && why.contains("lo 127.0.0.1"),
            "{why}"
        );
    }
}
