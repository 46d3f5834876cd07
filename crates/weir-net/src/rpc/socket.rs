//! Sockets: their options, and descriptors that travel over them.
//!
//! In: connected sockets. Out: the same, ready for calls. Not here: what is said over them.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg, sockopt,
};

use super::RpcError;

/// Descriptors that a message may carry.
const PASSED: usize = 4;

/// Makes a socket one for calls: it never blocks, sends at once, and notices a dead peer.
pub(super) fn prepare(socket: &OwnedFd) -> Result<(), RpcError> {
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

/// How long the kernel tries to get data through before a connection counts as lost.
pub(super) fn set_user_timeout(socket: &OwnedFd, timeout: Duration) {
    let millis = u32::try_from(timeout.as_millis())
        .unwrap_or(u32::MAX)
        .max(1);
    // Sockets of the file system have no such thing.
    let _ = sockopt::set_tcp_user_timeout(socket, millis);
}

/// Reads bytes and the descriptors that come with them.
pub(super) fn receive_with_descriptors(
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
pub(super) fn send_with_descriptors(
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
