//! Where the calls of this process leave the machine: an interface, its addresses, a fabric's domain.
//!
//! In: what a job asks for, the transport, the addresses of its group. Out: a [`LocalInterface`]. The
//! machine is looked at once per process, with the CPUs that it was started with. Not here: which of
//! several interfaces it is (`interface_choice`), connecting.

use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::sync::OnceLock;

use weir_schema::{RpcInterface, RpcWorkload};
use weir_sys::device::NetworkInterface;
use weir_sys::interface::{self, InterfaceAddress, addresses, addresses_of};
use weir_sys::topology::Topology;
use weir_sys::{CpuList, pin};

use crate::group::RpcGroup;
use crate::group::address::StreamAddress;
use crate::interface::choice::{
    InterfaceChoice, InterfaceChoiceFacts, choose_interface, interfaces_of_this_machine,
    named_interface, next_turn,
};
use crate::{DerCode, RpcError};

/// Any port does to ask for a route: nothing is sent.
const ANY_PORT: u16 = 9;

/// Where the calls of a process come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalInterface {
    /// Addresses that connections come from; empty: as the kernel has it.
    pub addresses: Vec<InterfaceAddress>,
    /// The domain of the fabric that was asked for.
    pub domain: Option<String>,
    /// The interface and who uses it; nothing where data takes none.
    pub interface: Option<RpcInterface>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl LocalInterface {
    /// For the calls of a job over a transport to its group.
    ///
    /// # Errors
    /// The job names an interface that there is not, or one without an address.
    pub fn of(work: &RpcWorkload, scheme: &str, group: &RpcGroup) -> Result<Self, RpcError> {
        let asked = work.interface.as_deref();
        if let Some(name) = asked {
            named_interface(interfaces_of_this_machine(), name)?;
        }
        let mut this = Self::default();
        this.take_domain(work, scheme);
        if ["null", "shm", "ofi+shm"].contains(&scheme) {
            this.notes.extend(asked.map(|name| {
                format!("interface {name} has no effect: {scheme} uses no network interface")
            }));
            return Ok(this);
        }
        let there = beyond_loopback(group, scheme);
        if asked.is_none() && there.is_none() {
            this.interface = Some(report(&of_loopback()));
            return Ok(this);
        }
        let known = addresses().unwrap_or_default();
        let near = there.map_or_else(Vec::new, |there| reaching(&known, there));
        let supports = |one: &NetworkInterface| near.contains(&one.name);
        let turn = |node| turn(group.directory.as_deref(), node);
        let choice = choose_interface(&facts(), asked, supports, turn)?;
        this.addresses = addresses_of(&known, &choice.name);
        if asked.is_some() && this.addresses.is_empty() {
            let name = &choice.name;
            let why = format!("network interface {name} has no address to connect from");
            return Err(RpcError::new(DerCode::NotThere, why));
        }
        if choice.note.is_some() && asked.is_none() && choice.name == "lo" {
            // The kernel finds the way to a server on this machine.
            this.addresses.clear();
        }
        this.notes.extend(choice.note.clone());
        this.notes.extend(asked.and_then(|_| far_away(&choice)));
        this.notes
            .extend(there.and_then(|there| this.leaves_elsewhere(&choice.name, there)));
        this.interface = Some(report(&choice));
        Ok(this)
    }

    fn take_domain(&mut self, work: &RpcWorkload, scheme: &str) {
        match &work.domain {
            Some(domain) if !scheme.starts_with(crate::links::ofi::SCHEME) => {
                let note = format!("domain {domain} has no effect: {scheme} is no fabric");
                self.notes.push(note);
            }
            domain => self.domain.clone_from(domain),
        }
    }

    /// Note about data that leave by another interface than the one that is used.
    fn leaves_elsewhere(&self, name: &str, there: IpAddr) -> Option<String> {
        let used = interface::route(self.address_towards(there)?, there).ok()?;
        (used != name).then(|| {
            format!(
                "interface {name} gives the source address alone: the routes of this machine send to \
                 {there} by {used}; `ip rule` or a network of its own for each card changes that"
            )
        })
    }

    /// The address that connections to this one come from; `None`: as the kernel has it.
    pub fn address_towards(&self, there: IpAddr) -> Option<IpAddr> {
        interface::address_towards(&self.addresses, there)
    }
}

/// An address of an interface of this machine, of the older kind where it has one.
///
/// # Errors
/// There is no such interface, or it has no address.
pub fn address_of_interface(name: &str) -> Result<IpAddr, RpcError> {
    named_interface(interfaces_of_this_machine(), name)?;
    let its = addresses_of(&addresses().unwrap_or_default(), name);
    its.first().map(|one| one.ip).ok_or_else(|| {
        let why = format!("network interface {name} has no address");
        RpcError::new(DerCode::NotThere, why)
    })
}

/// The address of this kind by which others reach this machine: that of an interface which was asked for, or
/// of one that is near; none where only the loopback has one.
///
/// # Errors
/// There is no interface of that name.
pub fn reachable_address(asked: Option<&str>, is_ipv4: bool) -> Result<Option<IpAddr>, RpcError> {
    let known = addresses().unwrap_or_default();
    let address = |name: &str| {
        let mut all = addresses_of(&known, name).into_iter().map(|one| one.ip);
        all.find(|ip| ip.is_ipv4() == is_ipv4)
    };
    let has_address = |one: &NetworkInterface| address(&one.name).is_some();
    let choice = choose_interface(&facts(), asked, has_address, |_| 0)?;
    Ok(address(&choice.name).filter(|ip| !ip.is_loopback()))
}

/// The CPUs that this process was started with: asked for the first time before any thread is pinned.
pub fn process_cpus() -> &'static CpuList {
    static CPUS: OnceLock<CpuList> = OnceLock::new();
    CPUS.get_or_init(|| pin::affinity().unwrap_or_default())
}

fn facts() -> InterfaceChoiceFacts<'static> {
    InterfaceChoiceFacts {
        interfaces: interfaces_of_this_machine(),
        topology: Topology::of_this_machine(),
        cpus: process_cpus(),
    }
}

/// The first address of a group that is beyond the loopback.
fn beyond_loopback(group: &RpcGroup, scheme: &str) -> Option<IpAddr> {
    let all = group.members.values().flat_map(|member| &member.addresses);
    let fitting = all.filter(|address| address.scheme == scheme);
    let mut places = fitting.filter_map(|address| match address.stream() {
        Ok(StreamAddress::Tcp(there)) => Some(there.ip()),
        _ => None,
    });
    places.find(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// The interfaces whose networks an address is of; else the one that the kernel would send by.
fn reaching(known: &[InterfaceAddress], there: IpAddr) -> Vec<String> {
    let names = |is_wanted: &dyn Fn(&&InterfaceAddress) -> bool| {
        let wanted = known.iter().filter(is_wanted);
        wanted.map(|one| one.interface.clone()).collect::<Vec<_>>()
    };
    let near = names(&|one| one.is_near(there));
    if !near.is_empty() {
        return near;
    }
    route_towards(there).map_or_else(Vec::new, |own| names(&|one| one.ip == own))
}

/// The address that the kernel would send from.
fn route_towards(there: IpAddr) -> Option<IpAddr> {
    let any = if there.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((there, ANY_PORT)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Whose turn it is among the processes of a group's machine, taken once.
fn turn(directory: Option<&Path>, node: Option<u32>) -> u64 {
    static TURN: OnceLock<u64> = OnceLock::new();
    // Where nothing counts, processes that begin together still differ.
    let own = u64::from(std::process::id());
    let counted = || directory.and_then(|directory| next_turn(directory, node).ok());
    *TURN.get_or_init(|| counted().unwrap_or(own))
}

fn of_loopback() -> InterfaceChoice {
    let nothing = choose_interface(&facts(), None, |_| false, |_| 0);
    InterfaceChoice {
        note: None,
        ..nothing.unwrap_or_default()
    }
}

fn report(choice: &InterfaceChoice) -> RpcInterface {
    RpcInterface {
        name: choice.name.clone(),
        node: (choice.name != "lo").then_some(choice.node),
        client_cpus: choice.process_cpus.to_string(),
        client_node: choice.process_node,
    }
}

/// Note about an interface that was asked for and is not near.
fn far_away(choice: &InterfaceChoice) -> Option<String> {
    let process = choice.process_node.filter(|node| *node != choice.node)?;
    let (name, node) = (&choice.name, choice.node);
    (name != "lo").then(|| {
        format!(
            "interface {name} is near to node {node}, the CPUs of this process to node {process}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::address::RpcAddress;

    fn group_at(address: &str) -> RpcGroup {
        RpcGroup::at("g", [(0, address.parse::<RpcAddress>().unwrap())])
    }

    fn of(interface: Option<&str>, address: &str) -> Result<LocalInterface, RpcError> {
        let work = RpcWorkload {
            interface: interface.map(str::to_owned),
            domain: Some("mlx5_0".to_owned()),
            ..RpcWorkload::default()
        };
        let group = group_at(address);
        LocalInterface::of(&work, group.first_scheme().unwrap(), &group)
    }

    #[test]
    fn a_server_on_the_loopback_is_reached_over_it_without_a_word() {
        let local = of(None, "tcp://127.0.0.1:1").unwrap();
        assert_eq!(local.addresses, []);
        assert_eq!(local.interface.unwrap().name, "lo");
        let about_domain = "domain mlx5_0 has no effect: tcp is no fabric";
        assert_eq!(local.notes, [about_domain]);
    }

    #[test]
    fn an_interface_that_is_asked_for_gives_its_addresses() {
        let local = of(Some("lo"), "ofi+tcp://127.0.0.1:1").unwrap();
        let there = "127.0.0.9".parse().unwrap();
        assert_eq!(local.address_towards(there), "127.0.0.1".parse().ok());
        assert_eq!(local.domain.as_deref(), Some("mlx5_0"));
        for address in ["tcp://127.0.0.1:1", "shm:///x"] {
            let error = of(Some("nosuch0"), address).unwrap_err();
            assert_eq!(error.code, DerCode::NotThere);
            assert!(error.message.contains("`nosuch0` (there are "), "{error}");
        }
    }

    #[test]
    fn what_has_no_effect_is_said() {
        let local = of(Some("lo"), "shm:///x").unwrap();
        assert_eq!(local.interface, None);
        let notes = local.notes.join("\n");
        let about_interface = "interface lo has no effect: shm uses no network interface";
        assert!(notes.contains(about_interface), "{notes}");
    }

    #[test]
    fn an_address_is_reached_by_the_interfaces_of_its_network() {
        let known = addresses().unwrap();
        let there = "127.9.9.9".parse().unwrap();
        assert_eq!(reaching(&known, there), ["lo"]);
        assert_eq!(route_towards(there).map(|ip| ip.is_loopback()), Some(true));
    }
}
