//! The thread that accepts connections and makes handshakes.
//!
//! In: bound addresses. Out: connections, each handed to the poller of its tag. Strangers are sent
//! away here, and cost a poller nothing. Not here: the words of a handshake (`pending`).

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use weir_sys::socket::{PathListener, wait_ready};

use super::connections::SourceAddress;
use super::inbox::{PollerInbox, PollerOrder};
use super::pending::{PendingClient, Progressed, write_error};
use super::start::ServerShared;
use crate::group::address::{RpcAddress, StreamAddress};
use crate::{DerCode, RpcError};

/// Longest sleep, so that the end is seen.
const LOOK: Duration = Duration::from_millis(20);
/// Connections that are accepted before those in their handshake are looked at.
const BURST: u32 = 64;
/// Time after which a handshake makes room for others, where there are too many.
const SILENT: Duration = Duration::from_millis(500);
/// Pause without accepting after descriptors ran out.
const PAUSE: Duration = Duration::from_millis(10);

enum Listening {
    Tcp(TcpListener),
    Unix(PathListener),
}

/// A bound address.
pub(super) struct BoundListener {
    listening: Listening,
    pub(super) rank: u32,
    /// With the port that it got.
    pub(super) address: RpcAddress,
    /// Number of the link that carries calls.
    link: usize,
}

impl BoundListener {
    pub(super) fn bind(rank: u32, address: &RpcAddress, link: usize) -> Result<Self, RpcError> {
        let fail = || RpcError::io(format!("listen on {address}"));
        let mut address = address.clone();
        let listening = match address.stream()? {
            StreamAddress::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted).map_err(fail())?;
                listener.set_nonblocking(true).map_err(fail())?;
                let port = listener.local_addr().map_err(fail())?.port();
                let host = address.place.rsplit_once(':');
                let host = host.map_or("127.0.0.1", |(host, _)| host);
                address.place = format!("{host}:{port}");
                // The standard library asks for a queue of 128; many clients may come at once.
                let _ = rustix::net::listen(&listener, 4096);
                Listening::Tcp(listener)
            }
            StreamAddress::Unix(path) => Listening::Unix(PathListener::bind(path).map_err(fail())?),
        };
        Ok(Self {
            listening,
            rank,
            address,
            link,
        })
    }

    fn accept(&self) -> std::io::Result<(OwnedFd, SourceAddress)> {
        match &self.listening {
            Listening::Tcp(listener) => {
                let (stream, from) = listener.accept()?;
                Ok((stream.into(), source_of(from)))
            }
            Listening::Unix(listener) => Ok((listener.accept()?.0.into(), None)),
        }
    }

    fn fd(&self) -> rustix::fd::BorrowedFd<'_> {
        match &self.listening {
            Listening::Tcp(listener) => listener.as_fd(),
            Listening::Unix(listener) => listener.as_fd(),
        }
    }
}

/// This machine has no limit of its own.
fn source_of(from: SocketAddr) -> SourceAddress {
    let address = from.ip().to_canonical();
    (!address.is_loopback()).then_some(address)
}

/// State of the listening thread.
struct ListenerState<'a> {
    shared: &'a Arc<ServerShared>,
    bound: Vec<BoundListener>,
    inboxes: &'a [Arc<PollerInbox>],
    /// The address of each poller's links.
    addresses: &'a [Vec<Vec<u8>>],
    pending: Vec<PendingClient>,
    /// Given up to refuse a connection when there are no more descriptors.
    spare: Option<OwnedFd>,
    paused_until: Option<Instant>,
    last_log: Option<Instant>,
}

/// Accepts until the server closes. The spare descriptor is taken before anybody can come.
pub(super) fn run_listener(
    shared: &Arc<ServerShared>,
    bound: Vec<BoundListener>,
    inboxes: &[Arc<PollerInbox>],
    addresses: &[Vec<Vec<u8>>],
    spare: Option<OwnedFd>,
) {
    let mut state = ListenerState {
        shared,
        bound,
        inboxes,
        addresses,
        pending: Vec::new(),
        spare,
        paused_until: None,
        last_log: None,
    };
    while !shared.closing.load(Relaxed) {
        state.wait();
        state.accept_all();
        state.go_on();
    }
}

/// A descriptor to give up.
pub(super) fn spare() -> Option<OwnedFd> {
    std::fs::File::open("/dev/null").ok().map(OwnedFd::from)
}

impl ListenerState<'_> {
    fn wait(&self) {
        let accepting = !self.is_paused() && self.has_room();
        let listening = self.bound.iter().filter(|_| accepting);
        let listening = listening.map(BoundListener::fd);
        let talking = self.pending.iter().map(PendingClient::fd);
        let mut fds: Vec<_> = listening
            .chain(talking)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        // An interruption is a reason to look like any other.
        let _ = wait_ready(&mut fds, LOOK);
    }

    fn is_paused(&self) -> bool {
        let until = self.paused_until;
        until.is_some_and(|until| Instant::now() < until)
    }

    fn accept_all(&mut self) {
        if self.is_paused() {
            return;
        }
        self.paused_until = None;
        for at in 0..self.bound.len() {
            for _ in 0..BURST {
                if !self.has_room() {
                    return;
                }
                match self.bound[at].accept() {
                    Ok((stream, source)) => self.enter(at, stream, source),
                    Err(error) if is_exhaustion(&error) => return self.refuse_one(at),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
    }

    fn enter(&mut self, at: usize, stream: OwnedFd, source: SourceAddress) {
        let (connections, setup) = (&self.shared.connections, &self.shared.setup);
        if let Err(why) = connections.enter(source, &setup.limits) {
            return self.turn_away(&stream, &why.to_string());
        }
        if let Some(oldest) = self.oldest() {
            self.drop_pending(oldest);
        }
        let BoundListener {
            link,
            rank,
            ref address,
            ..
        } = self.bound[at];
        match PendingClient::new(stream, source, link, rank, address) {
            Ok(client) => self.pending.push(client),
            Err(_) => self.shared.connections.leave(source),
        }
    }

    /// The oldest handshake, where as many are under way as may be.
    fn oldest(&self) -> Option<usize> {
        let is_full = self.pending.len() >= self.shared.setup.limits.pending as usize;
        let oldest = || (0..self.pending.len()).min_by_key(|&at| self.pending[at].since());
        is_full.then(oldest).flatten()
    }

    /// True if one more handshake may begin: there is room, or the oldest one has been silent for long. Whoever
    /// connects and says nothing keeps nobody out.
    fn has_room(&self) -> bool {
        let oldest = self.oldest();
        oldest.is_none_or(|at| self.pending[at].since().elapsed() >= SILENT)
    }

    /// Without a descriptor left a connection cannot even be closed. The spare one makes room for
    /// that.
    fn refuse_one(&mut self, at: usize) {
        self.spare = None;
        if let Ok((stream, _)) = self.bound[at].accept() {
            let why = "this server has no descriptors left for connections (see its `ulimit -n`)";
            self.turn_away(&stream, why);
        }
        self.spare = spare();
        self.paused_until = Some(Instant::now() + PAUSE);
    }

    /// Sends whoever has connected the reason why it cannot stay: a server without room is not one that is gone.
    fn turn_away(&mut self, stream: &OwnedFd, why: &str) {
        self.shared.counters.refused.fetch_add(1, Relaxed);
        write_error(stream, &RpcError::new(DerCode::Busy, why.to_owned()));
        self.log(&format!("a client was turned away: {why}"));
    }

    fn go_on(&mut self) {
        let mut at = 0;
        while at < self.pending.len() {
            let addresses = self.addresses;
            let count = self.inboxes.len();
            let address_of = |tag: usize, link: usize| &addresses[tag % count][link][..];
            match self.pending[at].go_on(self.shared, address_of) {
                Progressed::Waiting if !self.pending[at].is_late(self.shared) => at += 1,
                Progressed::Waiting => self.drop_pending(at),
                Progressed::Refused(why) => {
                    self.drop_pending(at);
                    self.log(why);
                }
                Progressed::Done(accepted) => {
                    let client = self.pending.swap_remove(at);
                    let half_frame = self.shared.setup.limits.half_frame;
                    let mut arrival = client.hand_over(*accepted, half_frame);
                    let poller = arrival.tag % count;
                    arrival.tag /= count;
                    self.inboxes[poller].post(PollerOrder::Join(Box::new(arrival)));
                }
            }
        }
    }

    fn drop_pending(&mut self, at: usize) {
        let client = self.pending.swap_remove(at);
        self.shared.connections.leave(client.source());
    }

    fn log(&mut self, line: &str) {
        if self
            .last_log
            .is_none_or(|last| last.elapsed() >= Duration::from_secs(1))
        {
            self.last_log = Some(Instant::now());
            (self.shared.setup.log)(line);
        }
    }
}

fn is_exhaustion(error: &std::io::Error) -> bool {
    let number = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| number == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_in_both_families() {
        for local in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert_eq!(source_of(local.parse().unwrap()), None, "{local}");
        }
        let other = SocketAddr::from(([192, 0, 2, 1], 1));
        assert_eq!(source_of(other), Some(other.ip()));
    }
}
