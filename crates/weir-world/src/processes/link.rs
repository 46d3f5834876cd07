//! One direction between two processes: a stream that begins with the sender's rank and then
//! carries messages, each behind its length.
//!
//! In: bytes and a deadline. Out: whole messages; what has come of a late one is kept. Numbers
//! are little endian. The names of the sockets are open to everybody on the machine, so that
//! only processes of the same user are talked to; and no memory is taken for bytes that a length
//! promises, only for those that came.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, send, socket_with,
};
use weir_sys::socket::{is_passing, wait_ready};

use crate::WorldError;
use crate::deadline::Deadline;

/// Memory taken at once for a message.
const PIECE: usize = 1 << 20;
/// Pause before another look whether a listener has room.
const NAP: Duration = Duration::from_millis(1);

/// Address on which a rank listens: a name that is no file.
fn address(world: &str, rank: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{world}/{rank}"))
}

/// Listens as `rank`, with room for a connection from every rank.
pub(super) fn listen(world: &str, rank: u32, size: u32) -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&address(world, rank)?)?;
    rustix::net::listen(&listener, i32::try_from(size).unwrap_or(i32::MAX))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// True if this is the listener of that rank.
pub(super) fn is_listener(listener: &UnixListener, world: &str, rank: u32) -> bool {
    let name = listener.local_addr();
    name.is_ok_and(|a| a.as_abstract_name() == Some(format!("{world}/{rank}").as_bytes()))
}

/// True if the other end belongs to the user of this process.
fn is_same_user(stream: &UnixStream) -> bool {
    let other = rustix::net::sockopt::socket_peercred(stream);
    other.is_ok_and(|other| other.uid == rustix::process::geteuid())
}

/// Reason that a message did not go out.
#[derive(Debug)]
pub(super) enum SendError {
    /// The wait was over.
    Wait(WorldError),
    /// The stream is broken, or never came to be.
    Broken,
}

impl From<io::Error> for SendError {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// A stream to the listener of a rank, from which nothing ever waits.
fn connect(world: &str, to: u32, deadline: &mut Deadline<'_>) -> Result<UnixStream, SendError> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let stream = stream.map_err(io::Error::from)?;
    let name = format!("{world}/{to}");
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(io::Error::from)?;
    loop {
        match rustix::net::connect(&stream, &address) {
            Ok(()) => return Ok(stream.into()),
            Err(Errno::INTR) => {}
            // As many wait as it has room for. Nothing tells when there is room again.
            Err(Errno::AGAIN) => {
                let left = deadline.left().map_err(SendError::Wait)?;
                std::thread::sleep(left.min(NAP));
            }
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
    }
}

/// Sending end of a link to another rank.
#[derive(Debug)]
pub(super) struct Outlet {
    stream: UnixStream,
}

impl Outlet {
    /// Connects rank `from` to rank `to`.
    ///
    /// # Errors
    /// The wait was over before that one had room for a connection; or it is refused, because it has
    /// ended.
    pub(super) fn connect(
        world: &str,
        from: u32,
        to: u32,
        deadline: &mut Deadline<'_>,
    ) -> Result<Self, SendError> {
        let stream = connect(world, to, deadline)?;
        if !is_same_user(&stream) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied).into());
        }
        let outlet = Self { stream };
        outlet.write(&from.to_le_bytes(), deadline)?;
        Ok(outlet)
    }

    /// Sends a message. After an error the stream is of no use any more.
    ///
    /// # Errors
    /// The wait was over, or what a broken stream gives.
    pub(super) fn send(&self, bytes: &[u8], wait: &mut Deadline<'_>) -> Result<(), SendError> {
        let length = bytes.len() as u64;
        self.write(&length.to_le_bytes(), wait)?;
        self.write(bytes, wait)
    }

    fn write(&self, mut bytes: &[u8], deadline: &mut Deadline<'_>) -> Result<(), SendError> {
        while !bytes.is_empty() {
            match send(&self.stream, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let left = deadline.left().map_err(SendError::Wait)?;
                    let mut waited = [PollFd::new(&self.stream, PollFlags::OUT)];
                    wait_ready(&mut waited, left).map_err(io::Error::from)?;
                }
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
        }
        Ok(())
    }

    /// True if the other end was closed.
    pub(super) fn is_closed(&self) -> bool {
        let mut asked = [PollFd::new(&self.stream, PollFlags::empty())];
        let asked_now = wait_ready(&mut asked, Duration::ZERO);
        let gone = PollFlags::HUP | PollFlags::ERR;
        asked_now.is_err() || asked[0].revents().intersects(gone)
    }
}

impl AsFd for Outlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Result of a read from a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamRead {
    /// A whole message.
    Message(Vec<u8>),
    /// Not all of it yet.
    Early,
    /// The stream ended, between messages.
    Ended,
    /// It ended within one.
    Torn,
}

/// Receiving end of a link from another rank.
#[derive(Debug)]
pub(super) struct Inlet {
    stream: UnixStream,
    /// The sender, once its greeting came.
    pub(super) from: Option<u32>,
    /// Bytes received of the next number and message.
    come: Vec<u8>,
}

impl Inlet {
    /// The next connection that waits; connections of other users are closed.
    pub(super) fn accept(listener: &UnixListener) -> Option<Self> {
        loop {
            let (stream, _) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            if is_same_user(&stream) && stream.set_nonblocking(true).is_ok() {
                return Some(Self {
                    stream,
                    from: None,
                    come: Vec::new(),
                });
            }
        }
    }

    /// Learns who sends; `false` when that will never come.
    pub(super) fn introduce(&mut self) -> bool {
        match self.fill(4) {
            Ok(true) => {
                let rank = self.come.drain(..).collect::<Vec<_>>();
                self.from = rank.try_into().ok().map(u32::from_le_bytes);
                true
            }
            Ok(false) => true,
            Err(_) => false,
        }
    }

    /// The next message, as far as it has come.
    pub(super) fn take(&mut self) -> StreamRead {
        let outcome = self.fill(8).and_then(|is_full| {
            let length = self.come.first_chunk().copied().map(u64::from_le_bytes);
            match length.filter(|_| is_full) {
                Some(length) => {
                    let end = usize::try_from(length).unwrap_or(usize::MAX);
                    self.fill(end.saturating_add(8))
                }
                None => Ok(false),
            }
        });
        match outcome {
            Ok(true) => {
                let bytes = self.come.split_off(8);
                self.come.clear();
                StreamRead::Message(bytes)
            }
            Ok(false) => StreamRead::Early,
            Err(_) if self.come.is_empty() => StreamRead::Ended,
            Err(_) => StreamRead::Torn,
        }
    }

    /// Reads until `end` bytes have come in all; whether they have.
    fn fill(&mut self, end: usize) -> io::Result<bool> {
        while self.come.len() < end {
            let had = self.come.len();
            self.come.resize(end.min(had + PIECE), 0);
            let read = self.stream.read(&mut self.come[had..]);
            self.come
                .truncate(had + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if is_passing(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl AsFd for Inlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Instant;

    use super::*;

    /// An inlet and the raw end that feeds it.
    fn pair() -> (UnixStream, Inlet) {
        let (raw, stream) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        let inlet = Inlet {
            stream,
            from: None,
            come: Vec::new(),
        };
        (raw, inlet)
    }

    fn framed(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u64).to_le_bytes(), bytes].concat()
    }

    #[test]
    fn a_message_that_comes_byte_by_byte_is_whole_in_the_end() {
        let (mut raw, mut inlet) = pair();
        let sent = [framed(b"one"), framed(b""), framed(b"three")].concat();
        let mut taken = Vec::new();
        for byte in sent {
            raw.write_all(&[byte]).unwrap();
            match inlet.take() {
                StreamRead::Early => {}
                StreamRead::Message(bytes) => taken.push(bytes),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(taken, [&b"one"[..], b"", b"three"]);
        drop(raw);
        assert_eq!(inlet.take(), StreamRead::Ended);
    }

    #[test]
    fn an_end_within_a_length_or_a_message_is_told() {
        for cut in [1, 7, 8, 10] {
            let (mut raw, mut inlet) = pair();
            raw.write_all(&framed(b"torn")[..cut]).unwrap();
            drop(raw);
            assert_eq!(inlet.take(), StreamRead::Torn, "after {cut} bytes");
        }
    }

    #[test]
    fn a_length_that_lies_takes_no_memory() {
        let (mut raw, mut inlet) = pair();
        raw.write_all(&u64::MAX.to_le_bytes()).unwrap();
        raw.write_all(b"and little more").unwrap();
        assert_eq!(inlet.take(), StreamRead::Early);
        assert!(inlet.come.capacity() <= 2 * PIECE + 64);
    }

    #[test]
    fn a_stranger_tells_its_rank_or_goes() {
        let (mut raw, mut inlet) = pair();
        raw.write_all(&[7, 0]).unwrap();
        assert!(inlet.introduce());
        assert_eq!(inlet.from, None);
        raw.write_all(&[0, 0]).unwrap();
        raw.write_all(&framed(b"hello")).unwrap();
        assert!(inlet.introduce());
        assert_eq!(inlet.from, Some(7));
        assert_eq!(inlet.take(), StreamRead::Message(b"hello".to_vec()));
        let (raw, mut silent) = pair();
        drop(raw);
        assert!(!silent.introduce());
    }

    #[test]
    fn a_message_that_nobody_takes_is_late_and_one_without_a_listener_refused() {
        let world = format!("weir-test-{}", std::process::id());
        let listener = listen(&world, 1, 2).unwrap();
        assert!(is_listener(&listener, &world, 1));
        assert!(!is_listener(&listener, &world, 0));
        let soon = || Deadline::new(1, Instant::now() + Duration::from_millis(20), None);
        let outlet = Outlet::connect(&world, 0, 1, &mut soon()).unwrap();
        let mut soon_late = soon();
        let late = outlet
            .send(&vec![0; 8 * PIECE], &mut soon_late)
            .unwrap_err();
        assert!(matches!(late, SendError::Wait(WorldError::Late { .. })));
        assert!(!outlet.is_closed());
        drop(listener);
        assert!(outlet.is_closed());
        let refused = Outlet::connect(&world, 0, 1, &mut soon()).unwrap_err();
        assert!(matches!(refused, SendError::Broken), "{refused:?}");
    }

    #[test]
    fn a_connection_for_which_there_is_no_room_is_late() {
        let world = format!("weir-full-{}", std::process::id());
        let _listener = listen(&world, 1, 2).unwrap();
        let connect = || {
            let soon = Instant::now() + Duration::from_millis(20);
            Outlet::connect(&world, 0, 1, &mut Deadline::new(1, soon, None))
        };
        let (connected, refused): (Vec<_>, Vec<_>) =
            (0..6).map(|_| connect()).partition(Result::is_ok);
        assert!(!connected.is_empty() && !refused.is_empty());
        for error in refused {
            let error = error.unwrap_err();
            assert!(
                matches!(error, SendError::Wait(WorldError::Late { .. })),
                "{error:?}"
            );
        }
    }
}
