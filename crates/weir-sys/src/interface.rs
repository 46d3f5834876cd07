//! A network interface of this process' network namespace, asked of the kernel itself: `/sys` may be that of
//! another namespace.
//!
//! In: its name. Out: its number, whether it is up, the largest packet that it takes.

#![expect(unsafe_code, reason = "ioctls of interfaces, which have no wrapper")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::error::SysError;

/// A name and an answer, as the kernel's `ifreq` has them.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; 16],
    answer: [u8; 24],
}

/// The number of an interface.
///
/// # Errors
/// [`SysError::Refused`] where there is none of this name.
pub fn index(interface: &str) -> Result<u32, SysError> {
    let socket = any_socket().map_err(|error| refused(interface, error))?;
    let index = netdevice::name_to_index(socket, interface);
    index.map_err(|error| refused(interface, error.into()))
}

/// The largest packet that it takes, its Ethernet header not counted.
///
/// # Errors
/// As [`index`].
pub fn mtu(interface: &str) -> Result<u32, SysError> {
    let [a, b, c, d, ..] = ask(interface, libc::SIOCGIFMTU)?;
    Ok(u32::from_ne_bytes([a, b, c, d]))
}

/// True if the interface is up.
///
/// # Errors
/// As [`index`].
pub fn is_up(interface: &str) -> Result<bool, SysError> {
    let [a, b, ..] = ask(interface, libc::SIOCGIFFLAGS)?;
    Ok(i32::from(i16::from_ne_bytes([a, b])) & libc::IFF_UP != 0)
}

fn ask(interface: &str, what: libc::Ioctl) -> Result<[u8; 24], SysError> {
    let mut request = InterfaceRequest {
        name: [0; 16],
        answer: [0; 24],
    };
    // The last byte stays zero.
    let Some(name) = request.name[..15].get_mut(..interface.len()) else {
        let error = io::Error::from_raw_os_error(libc::ENODEV);
        return Err(refused(interface, error));
    };
    name.copy_from_slice(interface.as_bytes());
    let socket = any_socket().map_err(|error| refused(interface, error))?;
    // SAFETY: the request has the length and layout of an `ifreq`, and both calls write to it alone.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) };
    if result < 0 {
        return Err(refused(interface, io::Error::last_os_error()));
    }
    Ok(request.answer)
}

fn any_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        flags,
        None,
    )?)
}

fn refused(interface: &str, source: io::Error) -> SysError {
    SysError::Refused {
        what: format!("find interface {interface}"),
        source,
        remedy: Some("`ip link` lists those of this network namespace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there_and_others_are_refused_by_name() {
        assert_eq!(size_of::<InterfaceRequest>(), size_of::<libc::ifreq>());
        assert_eq!(index("lo").unwrap(), 1);
        assert!(mtu("lo").unwrap() >= 1280);
        is_up("lo").unwrap();
        for absent in ["weir-none", "a name that no interface can have"] {
            for why in [
                index(absent).unwrap_err(),
                mtu(absent).unwrap_err(),
                is_up(absent).unwrap_err(),
            ] {
                let why = why.to_string();
                assert!(why.contains(&format!("find interface {absent}")), "{why}");
                assert!(why.contains("`ip link`"), "{why}");
            }
        }
    }
}
