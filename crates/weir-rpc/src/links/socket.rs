//! Sockets: connecting and options.
//!
//! In: where to connect to and from, connected sockets. Out: sockets that are ready for calls. Not
//! here: what is said over them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use weir_sys::interface::{InterfaceAddress, address_towards};
use weir_sys::socket::{notice_silence, wait_ready};

use crate::RpcError;

/// However long something is waited for, it is looked so often whether that is to end.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Check that what is waited for is to be given up.
pub(crate) type IsOver<'a> = &'a (dyn Fn() -> bool + Sync);

/// Makes a socket one for calls: it never blocks, sends at once, and notices a dead peer.
pub(crate) fn prepare(socket: &OwnedFd) -> Result<(), RpcError> {
    let fail = |errno: Errno| RpcError::io("set up a connection")(errno.into());
    rustix::io::ioctl_fionbio(socket, true).map_err(fail)?;
    if sockopt::set_tcp_nodelay(socket, true).is_ok() {
        notice_silence(socket, Duration::from_secs(5)).map_err(fail)?;
    }
    Ok(())
}

/// Connects a stream of the network within a time, from the nearest of some addresses where there are any; given
/// up once `is_over`.
pub(crate) fn connect(
    to: SocketAddr,
    from: &[InterfaceAddress],
    within: Duration,
    is_over: IsOver<'_>,
) -> io::Result<OwnedFd> {
    let family = if to.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    if !from.is_empty() {
        let own = address_towards(from, to.ip()).ok_or_else(|| {
            let why = "the interface has no address of that kind";
            io::Error::new(io::ErrorKind::AddrNotAvailable, why)
        })?;
        net::bind(&socket, &SocketAddr::new(own, 0))?;
    }
    match net::connect(&socket, &to) {
        Ok(()) => return Ok(socket),
        Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let until = Instant::now() + within;
    let mut left = within;
    while !wait_ready(&mut [PollFd::new(&socket, PollFlags::OUT)], left.min(LOOK))? {
        if left.is_zero() || is_over() {
            return Err(Errno::TIMEDOUT.into());
        }
        left = until.saturating_duration_since(Instant::now());
    }
    sockopt::socket_error(&socket)??;
    Ok(socket)
}

/// Address of the other end, of a connection of the network.
pub(crate) fn far_end(socket: &OwnedFd) -> Option<SocketAddr> {
    let end = net::getpeername(socket).ok()??;
    SocketAddr::try_from(end).ok().map(canonical)
}

/// Address of this end, of a connection of the network.
pub(crate) fn near_end(socket: &OwnedFd) -> Option<SocketAddr> {
    let end = net::getsockname(socket).ok()?;
    SocketAddr::try_from(end).ok().map(canonical)
}

fn canonical(at: SocketAddr) -> SocketAddr {
    SocketAddr::new(at.ip().to_canonical(), at.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_connection_comes_from_the_address_that_it_shall_come_from() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let from = ["::1", "10.9.9.9", "127.0.0.77"].map(|ip| InterfaceAddress {
            interface: "lo".to_owned(),
            ip: ip.parse().unwrap(),
            network_bits: 8,
        });
        let within = Duration::from_secs(5);
        let _socket = connect(to, &from, within, &|| false).unwrap();
        assert_eq!(listener.accept().unwrap().1.ip(), from[2].ip);
        let error = connect(to, &from[..1], within, &|| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        drop(listener);
        let error = connect(to, &from, within, &|| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
