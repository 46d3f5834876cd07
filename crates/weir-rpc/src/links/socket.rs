//! Sockets: their options, and descriptors that travel over them.
//!
//! In: where to connect to and from, connected sockets. Out: sockets that are ready for calls. Not
//! here: what is said over them.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, sockopt,
};

use crate::RpcError;

/// Descriptors that a message may carry.
const PASSED: usize = 4;
/// However long something is waited for, it is looked so often whether that is to end.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Check that what is waited for is to be given up.
pub(crate) type IsOver<'a> = &'a (dyn Fn() -> bool + Sync);

/// Makes a socket one for calls: it never blocks, sends at once, and notices a dead peer.
pub(crate) fn prepare(socket: &OwnedFd) -> Result<(), RpcError> {
    let fail = |errno: Errno| RpcError::io("set up a connection")(errno.into());
    rustix::io::ioctl_fionbio(socket, true).map_err(fail)?;
    if sockopt::set_tcp_nodelay(socket, true).is_ok() {
        sockopt::set_socket_keepalive(socket, true).map_err(fail)?;
        sockopt::set_tcp_keepidle(socket, Duration::from_secs(5)).map_err(fail)?;
        sockopt::set_tcp_keepintvl(socket, Duration::from_secs(1)).map_err(fail)?;
        sockopt::set_tcp_keepcnt(socket, 3).map_err(fail)?;
    }
    Ok(())
}

/// Connects a stream of the network within a time, from one of these addresses where there are some; given
/// up once `is_over`.
pub(crate) fn connect(
    to: SocketAddr,
    from: &[IpAddr],
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
        let own = from.iter().find(|own| own.is_ipv4() == to.is_ipv4());
        let own = own.ok_or_else(|| {
            let why = "the interface has no address of that kind";
            io::Error::new(io::ErrorKind::AddrNotAvailable, why)
        })?;
        net::bind(&socket, &SocketAddr::new(*own, 0))?;
    }
    match net::connect(&socket, &to) {
        Ok(()) => return Ok(socket),
        Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let look = Timespec::try_from(left.min(LOOK)).map_err(|_| Errno::INVAL)?;
        let mut watched = [PollFd::new(&socket, PollFlags::OUT)];
        match poll(&mut watched, Some(&look)) {
            Ok(0) if left.is_zero() || is_over() => return Err(Errno::TIMEDOUT.into()),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    sockopt::socket_error(&socket)??;
    Ok(socket)
}

/// Sets the time for which the kernel tries to get data through before a connection counts as lost.
pub(crate) fn set_user_timeout(socket: &OwnedFd, timeout: Duration) {
    let millis = u32::try_from(timeout.as_millis())
        .unwrap_or(u32::MAX)
        .max(1);
    // Sockets of the file system have no such thing.
    let _ = sockopt::set_tcp_user_timeout(socket, millis);
}

/// Reads bytes and the descriptors that come with them.
pub(crate) fn receive_with_descriptors(
    socket: impl AsFd,
    bytes: &mut [u8],
    passed: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let came = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            let room = PASSED.saturating_sub(passed.len());
            passed.extend(descriptors.take(room));
        }
    }
    Ok(came.bytes)
}

/// Writes bytes and descriptors with them.
pub(crate) fn send_with_descriptors(
    socket: impl AsFd,
    bytes: &[u8],
    passed: &[OwnedFd],
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let borrowed: Vec<_> = passed.iter().take(PASSED).map(AsFd::as_fd).collect();
    if !borrowed.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&borrowed));
    }
    let pieces = [std::io::IoSlice::new(bytes)];
    sendmsg(socket, &pieces, &mut control, SendFlags::NOSIGNAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_connection_comes_from_the_address_that_it_shall_come_from() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let from = ["::1", "127.0.0.77"].map(|ip| ip.parse().unwrap());
        let within = Duration::from_secs(5);
        let _socket = connect(to, &from, within, &|| false).unwrap();
        assert_eq!(listener.accept().unwrap().1.ip(), from[1]);
        let error = connect(to, &from[..1], within, &|| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        drop(listener);
        let error = connect(to, &from, within, &|| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
