//! A network interface of this process' network namespace, asked of the kernel itself: `/sys` may be that of
//! another namespace.
//!
//! In: its name. Out: its number, whether it is up, the largest packet that it takes, its addresses. Not here:
//! the place of its card in the machine ([`crate::device`]).

#![expect(unsafe_code, reason = "ioctls of interfaces, which have no wrapper")]

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use rustix::net::netdevice::index_to_name_inlined;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use crate::error::SysError;

/// Facts about an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// Its number.
    pub index: u32,
    /// The largest packet that it takes, its Ethernet header not counted.
    pub mtu: u32,
    /// Its Ethernet address; zeros where it has none.
    pub hardware_address: [u8; 6],
    /// It is switched on.
    pub is_up: bool,
}

/// An address that an interface has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface.
    pub interface: String,
    /// The address.
    pub ip: IpAddr,
    /// Leading bits that the addresses of its network have in common.
    pub network_bits: u8,
}

impl InterfaceAddress {
    /// True if the address says by itself where it is: one of IPv6 for a link alone does not.
    pub fn is_whole(&self) -> bool {
        !matches!(self.ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
    }

    /// True if an address is of the same network.
    pub fn is_near(&self, there: IpAddr) -> bool {
        let bits = |ip| match ip {
            IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let alike = (bits(self.ip) ^ bits(there)).leading_zeros();
        self.ip.is_ipv4() == there.is_ipv4() && alike >= self.network_bits.into()
    }
}

/// A message of netlink that asks something.
const NLM_F_REQUEST: u16 = 1;

/// A name and what is asked and answered, as the kernel's `ifreq` has them.
#[repr(C)]
struct InterfaceRequest<T> {
    name: [u8; 16],
    answer: T,
}

/// The facts about the interface of this name.
///
/// # Errors
/// The kernel's: there is none.
pub fn facts(interface: &str) -> io::Result<InterfaceFacts> {
    // SAFETY: these calls write to the request alone.
    let ask = |what| unsafe { ask(interface, what, [0_usize; 3]) };
    let bytes = |what| ask(what).map(|[first, ..]| first.to_ne_bytes());
    let number = |what| {
        let [a, b, c, d, ..] = bytes(what)?;
        Ok::<_, io::Error>(u32::from_ne_bytes([a, b, c, d]))
    };
    let [low, high, ..] = bytes(libc::SIOCGIFFLAGS)?;
    // The address stands behind its kind.
    let [_, _, hardware_address @ ..] = bytes(libc::SIOCGIFHWADDR)?;
    Ok(InterfaceFacts {
        index: number(libc::SIOCGIFINDEX)?,
        mtu: number(libc::SIOCGIFMTU)?,
        hardware_address,
        is_up: i32::from(i16::from_ne_bytes([low, high])) & libc::IFF_UP != 0,
    })
}

/// The same, with a remedy in the error.
///
/// # Errors
/// [`SysError::Refused`] where there is none of this name.
pub fn find(interface: &str) -> Result<InterfaceFacts, SysError> {
    facts(interface).map_err(|source| SysError::Refused {
        what: format!("find interface {interface}"),
        source,
        remedy: Some("`ip link` lists those of this network namespace"),
    })
}

/// Asks the kernel something about an interface.
///
/// # Safety
/// The call writes to the request alone, or to memory that `question` leads to and that is free for it.
pub(crate) unsafe fn ask<T>(interface: &str, what: libc::Ioctl, question: T) -> io::Result<T> {
    const { assert!(size_of::<InterfaceRequest<T>>() == size_of::<libc::ifreq>()) };
    let mut request = InterfaceRequest {
        name: [0; 16],
        answer: question,
    };
    // The last byte stays zero.
    let name = request.name[..15].get_mut(..interface.len());
    let name = name.filter(|_| !interface.contains('\0'));
    let name = name.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
    name.copy_from_slice(interface.as_bytes());
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the request has the length and layout of an `ifreq`; the rest is the caller's word.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(request.answer)
}

/// The addresses of all interfaces, in the kernel's order.
///
/// # Errors
/// The kernel's.
pub fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let all = if_addrs::get_if_addrs()?.into_iter();
    let of = |one: if_addrs::Interface| InterfaceAddress {
        ip: one.ip(),
        network_bits: match one.addr {
            if_addrs::IfAddr::V4(address) => address.prefixlen,
            if_addrs::IfAddr::V6(address) => address.prefixlen,
        },
        interface: one.name,
    };
    Ok(all.map(of).collect())
}

/// The whole addresses that an interface has, those of the older kind first.
pub fn addresses_of(all: &[InterfaceAddress], interface: &str) -> Vec<InterfaceAddress> {
    let its = |one: &&InterfaceAddress| one.interface == interface && one.is_whole();
    let mut its: Vec<_> = all.iter().filter(its).cloned().collect();
    its.sort_by_key(|one| one.ip.is_ipv6());
    its
}

/// The interface that packets from one address to another leave by, as the kernel's routes say.
///
/// # Errors
/// The kernel's: there is no way there.
pub fn route(from: IpAddr, to: IpAddr) -> io::Result<String> {
    let bytes = |ip| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    // Number of the family and length of an address.
    let (family, long) = if to.is_ipv4() { (2_u8, 4_u8) } else { (10, 16) };
    let attribute = 4 + u16::from(long);
    // An `nlmsghdr`, an `rtmsg`, and its attributes: length and type in two bytes each, then the value.
    let mut request = u32::from(28 + 2 * attribute).to_ne_bytes().to_vec();
    request.extend(libc::RTM_GETROUTE.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([family, long * 8, long * 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for (kind, address) in [(libc::RTA_DST, to), (libc::RTA_SRC, from)] {
        request.extend(attribute.to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(bytes(address));
    }
    let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    send(&socket, &request, SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let answer = &answer[..length];
    let number = |at: usize| {
        let four = answer.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map_or(0, u32::from_ne_bytes)
    };
    if number(4) & 0xffff != u32::from(libc::RTM_NEWROUTE) {
        return Err(io::Error::from_raw_os_error(
            number(16).cast_signed().wrapping_neg(),
        ));
    }
    let mut at = 28;
    while at < length {
        let (bytes, kind) = (number(at) & 0xffff, number(at) >> 16);
        if kind == u32::from(libc::RTA_OIF) {
            return Ok(index_to_name_inlined(&socket, number(at + 4))?.to_string());
        }
        at += (bytes.max(4) as usize).next_multiple_of(4);
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// The one of these addresses that another is reached from: one of its network, else the first of its kind.
pub fn address_towards(own: &[InterfaceAddress], there: IpAddr) -> Option<IpAddr> {
    let near = own.iter().find(|own| own.is_near(there));
    let alike = || own.iter().find(|own| own.ip.is_ipv4() == there.is_ipv4());
    near.or_else(alike).map(|own| own.ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there_and_others_are_refused_by_name() {
        let lo = find("lo").unwrap();
        assert_eq!((lo.index, lo.hardware_address), (1, [0; 6]));
        assert!(lo.mtu >= 1280);
        for absent in ["weir-none", "a name that no interface can have", "lo\0"] {
            let why = find(absent).unwrap_err().to_string();
            assert!(why.contains(&format!("find interface {absent}")), "{why}");
            assert!(why.contains("`ip link`"), "{why}");
        }
    }

    #[test]
    fn an_interface_gives_its_whole_addresses_the_older_first_and_that_near_to_another() {
        let all = [
            ("lo", "127.0.0.1"),
            ("a", "fe80::1"),
            ("a", "fd00::1"),
            ("b", "fd00::2"),
            ("b", "10.0.0.2"),
            ("b", "10.0.1.3"),
            ("c", "fe80::2"),
        ];
        let all = all.map(|(interface, ip)| InterfaceAddress {
            interface: interface.to_owned(),
            ip: ip.parse().unwrap(),
            network_bits: 24,
        });
        let of = |name| {
            let found = addresses_of(&all, name).into_iter();
            found.map(|one| one.ip.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("a"), ["fd00::1"]);
        assert_eq!(of("b"), ["10.0.0.2", "10.0.1.3", "fd00::2"]);
        assert_eq!(of("c"), [""; 0]);
        let towards = |there: &str| {
            let own = address_towards(&addresses_of(&all, "b"), there.parse().unwrap());
            own.map(|ip| ip.to_string())
        };
        assert_eq!(towards("10.0.1.9").as_deref(), Some("10.0.1.3"));
        assert_eq!(towards("10.9.9.9").as_deref(), Some("10.0.0.2"));
        assert_eq!(towards("::1").as_deref(), Some("fd00::2"));
    }

    #[test]
    fn a_route_names_the_interface_that_packets_leave_by() {
        let ip = |text: &str| text.parse().unwrap();
        assert_eq!(route(ip("127.0.0.1"), ip("127.9.9.9")).unwrap(), "lo");
        // Nothing here has this address to send from.
        route(ip("192.0.2.1"), ip("127.0.0.1")).unwrap_err();
    }

    #[test]
    fn an_address_is_near_where_its_network_is_that_of_the_interface() {
        let lo = addresses().unwrap();
        let lo = lo.iter().find(|one| one.interface == "lo").unwrap();
        assert!(lo.is_near("127.9.9.9".parse().unwrap()), "{lo:?}");
        let is_near = |ip: &str, network_bits, there: &str| {
            let one = InterfaceAddress {
                interface: "a".to_owned(),
                ip: ip.parse().unwrap(),
                network_bits,
            };
            one.is_near(there.parse().unwrap())
        };
        assert!(is_near("10.1.2.3", 23, "10.1.3.9"));
        assert!(!is_near("10.1.2.3", 24, "10.1.3.9"));
        assert!(is_near("fd00::1", 64, "fd00::ffff:1"));
        assert!(!is_near("fd00::1", 112, "fd00::1:0:1"));
        assert!(!is_near("0.0.0.0", 0, "::1"));
        assert!(is_near("0.0.0.0", 0, "255.0.0.1"));
    }
}
