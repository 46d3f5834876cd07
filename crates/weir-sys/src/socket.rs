//! Sockets over which processes meet: paths of the file system, descriptors that travel, the wait for the
//! other side and the notice of its loss.
//!
//! In: sockets, paths, times. Out: listeners, descriptors, whether something is ready. Not here: what is said
//! over them, and who may come.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, socket_with, sockopt,
};

/// Descriptors that a message may carry.
const PASSED: usize = 4;

/// A listener at a path of the file system that waits for nobody. The path goes with it.
#[derive(Debug)]
pub struct PathListener {
    listener: UnixListener,
    path: PathBuf,
}

impl PathListener {
    /// Listens at a path, in place of a socket that nobody listens on.
    ///
    /// # Errors
    /// The kernel's; where somebody listens, the path is taken.
    pub fn bind(path: PathBuf) -> io::Result<Self> {
        remove_dead(&path);
        let listener = UnixListener::bind(&path)?;
        let this = Self { listener, path };
        this.set_nonblocking(true)?;
        Ok(this)
    }
}

impl Deref for PathListener {
    type Target = UnixListener;

    fn deref(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for PathListener {
    fn drop(&mut self) {
        // Somebody else may have replaced it already.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes a socket that nobody listens on, as one that was killed leaves it; whether it is gone now.
pub fn remove_dead(path: &Path) -> bool {
    is_dead(path) && std::fs::remove_file(path).is_ok()
}

/// True if this is a socket, and nobody listens on it.
fn is_dead(path: &Path) -> bool {
    let facts = std::fs::symlink_metadata(path);
    if !facts.is_ok_and(|facts| facts.file_type().is_socket()) {
        return false;
    }
    // Whoever listens and takes nothing would let a connect wait.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let (Ok(socket), Ok(address)) = (socket, SocketAddrUnix::new(path)) else {
        return false;
    };
    connect(&socket, &address) == Err(Errno::CONNREFUSED)
}

/// Waits so long until one of these is ready; false at the end of the time and after a signal.
///
/// # Errors
/// The kernel's.
pub fn wait_ready(waited: &mut [PollFd<'_>], within: Duration) -> Result<bool, Errno> {
    let limit = Timespec::try_from(within).ok();
    match poll(waited, limit.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// True if a call did nothing and may do so another time.
pub fn is_passing(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The kernel asks a silent peer of TCP after so long whether it is there, and gives it up after three
/// questions, one a second.
///
/// # Errors
/// It is no socket of TCP.
pub fn notice_silence(socket: impl AsFd, after: Duration) -> Result<(), Errno> {
    let socket = socket.as_fd();
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, after)?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(socket, 3)
}

/// Sets the time for which the kernel tries to get data through before a connection counts as lost.
pub fn set_user_timeout(socket: impl AsFd, timeout: Duration) {
    let millis = u32::try_from(timeout.as_millis())
        .unwrap_or(u32::MAX)
        .max(1);
    // Sockets of the file system have no such thing.
    let _ = sockopt::set_tcp_user_timeout(socket, millis);
}

/// Reads bytes that are there and the descriptors that come with them.
///
/// # Errors
/// The kernel's.
pub fn receive_with_descriptors(
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
///
/// # Errors
/// The kernel's.
pub fn send_with_descriptors(
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
    sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use rustix::event::PollFlags;

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("weir-socket-{}-{name}", std::process::id()))
    }

    /// Leaves a socket as a server does that was killed. It was never listened on: a process that another
    /// test starts may have a listener a moment longer.
    fn leave_dead(path: &Path) {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    }

    #[test]
    fn a_path_is_listened_on_once_and_goes_with_its_listener() {
        let path = path("path");
        leave_dead(&path);
        let listener = PathListener::bind(path.clone()).unwrap();
        let taken = PathListener::bind(path.clone()).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        assert!(!remove_dead(&path));
        // Those that only looked whether somebody listens.
        while let Ok(caller) = listener.accept() {
            drop(caller);
        }
        assert!(is_passing(&listener.accept().unwrap_err()));
        drop(listener);
        assert!(!path.exists());
        std::fs::write(&path, "mine").unwrap();
        assert!(!remove_dead(&path));
        PathListener::bind(path.clone()).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn descriptors_travel_with_bytes_and_are_waited_for() {
        let (here, there) = UnixStream::pair().unwrap();
        let is_there = |within| {
            let mut waited = [PollFd::new(&there, PollFlags::IN)];
            wait_ready(&mut waited, within).unwrap()
        };
        assert!(!is_there(Duration::ZERO));
        let (mut sends, receives) = UnixStream::pair().unwrap();
        send_with_descriptors(&here, b"x", &[receives.into()]).unwrap();
        assert!(is_there(Duration::MAX));
        let (mut byte, mut passed) = ([0], Vec::new());
        let came = receive_with_descriptors(&there, &mut byte, &mut passed);
        assert_eq!((came, &byte), (Ok(1), b"x"));
        sends.write_all(b"by it").unwrap();
        let mut text = [0; 5];
        let mut receives = UnixStream::from(passed.remove(0));
        receives.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"by it");
        let nothing = receive_with_descriptors(&there, &mut byte, &mut passed);
        assert_eq!((nothing, passed.len()), (Err(Errno::AGAIN), 0));
    }
}
