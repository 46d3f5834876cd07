//! Addresses and sockets: from an engine's settings to a connection.
//!
//! In: settings. Out: a [`NetSocket`] to the peer. Between both stands the common release of the
//! workers: a socket listens before it and meets its peer after it, so that two jobs that start
//! together always find each other. Not here: blocks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, listen, recv, recvfrom, send, sendto, socket_with, sockopt,
};
use weir_run::failure;
use weir_schema::{EngineChoice, Failure};

use crate::engine::calls;

/// The transports, by the word of the setting.
pub(super) const PROTOCOLS: &[&str] = &["tcp", "tcpv6", "udp", "udpv6", "unix"];
/// Connections that may wait to be accepted.
const WAITING: i32 = 10;
/// The largest payload of a datagram over IPv4.
const LARGEST_DATAGRAM: u64 = 65_507;
/// fio's datagram that opens a stream of datagrams: `link` and a number, in network order.
const OPEN: [u8; 8] = [0x6c, 0x69, 0x6e, 0x6b, 0, 0, 0, 0x98];
/// fio's datagram that ends one: the same word and another number, in the order of a
/// little-endian machine.
const CLOSE: [u8; 8] = [0x6b, 0x6e, 0x69, 0x6c, 0x89, 0, 0, 0];
/// Times that the end is said: a datagram may be lost, above all when the receiver is behind.
const FAREWELLS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Stream,
    Datagrams,
    Unix,
}

/// Socket options that the settings ask for.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub(super) struct SocketSettings {
    transport: Transport,
    is_v6: bool,
    /// The peer; without it any address of this machine is listened on.
    host: Option<String>,
    port: u16,
    listens: bool,
    sends: bool,
    no_delay: bool,
    interface: Option<Ipv4Addr>,
    ttl: Option<u32>,
    window: usize,
    segment: u32,
}

fn refused(message: impl Into<String>) -> Failure {
    failure("engine", Some(libc::EINVAL), message)
}

impl SocketSettings {
    /// Reads the settings of a clone.
    ///
    /// # Errors
    /// Settings that are missing or contradict each other.
    pub(super) fn read(choice: &EngineChoice, clone: u32, sends: bool) -> Result<Self, Failure> {
        let protocol = choice.text("protocol").unwrap_or("tcp");
        let number = |name| choice.number(name);
        let transport = match protocol {
            "udp" | "udpv6" => Transport::Datagrams,
            "unix" => Transport::Unix,
            _ => Transport::Stream,
        };
        let port = number("port").map(|port| port + i64::from(clone));
        let interface = choice.text("interface").map(str::parse).transpose();
        let settings = Self {
            transport,
            is_v6: protocol.ends_with("v6"),
            host: choice.text("host").map(str::to_owned),
            port: match port.map(u16::try_from).transpose() {
                Ok(port) => port.unwrap_or(0),
                Err(_) => return Err(refused("net: no port is left for this clone")),
            },
            listens: choice.flag("listen", false),
            sends,
            no_delay: choice.flag("no_delay", false),
            interface: interface
                .map_err(|_| refused("net: interface takes the interface's IPv4 address"))?,
            ttl: number("ttl").and_then(|n| n.try_into().ok()),
            window: number("window_bytes").map_or(0, |n| n.try_into().unwrap_or(0)),
            segment: number("segment_bytes").map_or(0, |n| n.try_into().unwrap_or(0)),
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), Failure> {
        let is_stream = self.transport == Transport::Stream;
        let needs_host = match self.transport {
            Transport::Stream => !self.listens,
            Transport::Datagrams => self.sends,
            Transport::Unix => true,
        };
        if needs_host && self.host.is_none() {
            let hint = match self.transport {
                Transport::Unix => "it is the path of the socket",
                Transport::Stream if !self.sends => "or did you forget to set listen?",
                _ => "where is the receiver?",
            };
            return Err(refused(format!("net: no hostname= is set ({hint})")));
        }
        if self.transport == Transport::Datagrams && self.listens {
            return Err(refused(
                "net: listen is for connections; a receiver of datagrams has its port without it",
            ));
        }
        if self.transport != Transport::Unix && self.port == 0 {
            return Err(refused("net: no port= is set"));
        }
        if !is_stream && (self.no_delay || self.segment > 0) {
            return Err(refused(
                "net: small segments at once and the size of segments are for TCP",
            ));
        }
        let multicasts = self.transport == Transport::Datagrams && self.multicast().is_some();
        if !multicasts && (self.interface.is_some() || self.ttl.is_some_and(|ttl| ttl > 1)) {
            return Err(refused(
                "net: interface and ttl are for UDP to an IPv4 multicast address",
            ));
        }
        Ok(())
    }

    /// Fails if blocks of this size cannot be sent.
    ///
    /// # Errors
    /// They do not fit into a datagram.
    pub(super) fn check_block(&self, bytes: u64) -> Result<(), Failure> {
        if self.transport == Transport::Datagrams && bytes > LARGEST_DATAGRAM {
            return Err(refused(format!(
                "net: a datagram holds {LARGEST_DATAGRAM} bytes, and a block has {bytes}"
            )));
        }
        Ok(())
    }

    /// The address in messages.
    pub(super) fn shown(&self) -> String {
        let host = self.host.as_deref().unwrap_or("*");
        match self.transport {
            Transport::Unix => host.to_owned(),
            _ => format!("{host}:{}", self.port),
        }
    }

    fn multicast(&self) -> Option<Ipv4Addr> {
        let address = self.host.as_deref()?.parse::<Ipv4Addr>().ok()?;
        address.is_multicast().then_some(address)
    }

    fn failed(&self, what: &str, errno: Errno) -> Failure {
        let shown = self.shown();
        let error = std::io::Error::from(errno);
        Failure {
            target: Some(shown.clone()),
            ..failure(
                "open",
                Some(errno.raw_os_error()),
                format!("{shown}: cannot {what}: {error}"),
            )
        }
    }

    /// Every address of this machine.
    fn anywhere(&self) -> SocketAddr {
        let ip = if self.is_v6 {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        };
        SocketAddr::new(ip, self.port)
    }

    fn peer(&self) -> Result<SocketAddr, Failure> {
        let host = self.host.as_deref().unwrap_or_default();
        let unknown = |why: String| {
            let message = format!("{}: the host is not known{why}", self.shown());
            failure("open", Some(libc::EHOSTUNREACH), message)
        };
        let found = (host, self.port).to_socket_addrs();
        let found = found.map_err(|error| unknown(format!(": {error}")))?;
        let mut of_family = found.filter(|address| address.is_ipv6() == self.is_v6);
        of_family
            .next()
            .ok_or_else(|| unknown(" by an address of this protocol".to_owned()))
    }

    fn socket(&self) -> Result<OwnedFd, Failure> {
        let family = match (self.transport, self.is_v6) {
            (Transport::Unix, _) => AddressFamily::UNIX,
            (_, true) => AddressFamily::INET6,
            (_, false) => AddressFamily::INET,
        };
        let kind = match self.transport {
            Transport::Datagrams => SocketType::DGRAM,
            _ => SocketType::STREAM,
        };
        let failed = |errno| self.failed("have a socket", errno);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(failed)?;
        self.tune(&socket)
            .map_err(|errno| self.failed("set an option of the socket", errno))?;
        Ok(socket)
    }

    fn tune(&self, socket: &OwnedFd) -> Result<(), Errno> {
        if self.window > 0 {
            sockopt::set_socket_send_buffer_size(socket, self.window)?;
            sockopt::set_socket_recv_buffer_size(socket, self.window)?;
        }
        if self.no_delay {
            sockopt::set_tcp_nodelay(socket, true)?;
        }
        if self.segment > 0 {
            calls::set_segment(socket, self.segment)?;
        }
        Ok(())
    }

    fn unix(&self) -> Result<SocketAddrUnix, Failure> {
        let path = self.host.as_deref().unwrap_or_default();
        SocketAddrUnix::new(path).map_err(|errno| self.failed("use it as a socket's path", errno))
    }

    /// Takes the port, before the common release.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn open(&self) -> Result<Opening, Failure> {
        let socket = self.socket()?;
        if self.transport == Transport::Datagrams {
            return self.open_datagrams(socket);
        }
        if !self.listens {
            return Ok(Opening::Caller(socket));
        }
        let taken = |errno| self.failed("listen on it", errno);
        if self.transport == Transport::Unix {
            bind(&socket, &self.unix()?).map_err(taken)?;
        } else {
            sockopt::set_socket_reuseaddr(&socket, true).map_err(taken)?;
            bind(&socket, &self.anywhere()).map_err(taken)?;
        }
        listen(&socket, WAITING).map_err(taken)?;
        Ok(Opening::Listener(socket))
    }

    /// Removes the path that was listened on.
    pub(super) fn tidy(&self) {
        if let (Transport::Unix, true, Some(path)) = (self.transport, self.listens, &self.host) {
            // Somebody else may have removed it.
            let _ = rustix::fs::unlink(path.as_str());
        }
    }

    fn open_datagrams(&self, socket: OwnedFd) -> Result<Opening, Failure> {
        let failed = |errno| self.failed("set its multicast up", errno);
        let interface = self.interface.unwrap_or(Ipv4Addr::UNSPECIFIED);
        if self.sends {
            if self.multicast().is_some() {
                sockopt::set_ip_multicast_ttl(&socket, self.ttl.unwrap_or(1)).map_err(failed)?;
                if self.interface.is_some() {
                    sockopt::set_ip_multicast_if(&socket, &interface).map_err(failed)?;
                }
            }
            return Ok(Opening::Sender(socket));
        }
        let taken = |errno| self.failed("bind its port", errno);
        // Several receivers of a multicast share the port.
        if self.multicast().is_some() {
            sockopt::set_socket_reuseaddr(&socket, true).map_err(taken)?;
        }
        bind(&socket, &self.anywhere()).map_err(taken)?;
        if let Some(group) = self.multicast() {
            sockopt::set_ip_add_membership(&socket, &group, &interface).map_err(failed)?;
        }
        Ok(Opening::Receiver(socket))
    }
}

/// A socket before it has met its peer.
#[derive(Debug)]
pub(super) enum Opening {
    Listener(OwnedFd),
    Caller(OwnedFd),
    Sender(OwnedFd),
    Receiver(OwnedFd),
}

impl Opening {
    /// Meets the peer, after the common release; `None` if the run ends first.
    ///
    /// # Errors
    /// Nobody is there.
    pub(super) fn meet(
        self,
        settings: &SocketSettings,
        stop: &AtomicU32,
    ) -> Result<Option<NetSocket>, Failure> {
        match self {
            Self::Listener(socket) => {
                let accepted = patiently(stop, || accept_with(&socket, SocketFlags::CLOEXEC));
                let accepted = accepted.transpose();
                let accepted = accepted.map_err(|e| settings.failed("accept a connection", e))?;
                Ok(accepted.map(NetSocket::Stream))
            }
            Self::Caller(socket) => {
                let called = if settings.transport == Transport::Unix {
                    connect(&socket, &settings.unix()?)
                } else {
                    connect(&socket, &settings.peer()?)
                };
                called.map_err(|errno| settings.failed("connect to it", errno))?;
                Ok(Some(NetSocket::Stream(socket)))
            }
            Self::Sender(socket) => {
                let peer = settings.peer()?;
                sendto(&socket, &OPEN, SendFlags::empty(), &peer)
                    .map_err(|errno| settings.failed("send to it", errno))?;
                Ok(Some(NetSocket::Datagrams(
                    socket,
                    SocketAddrAny::from(peer),
                )))
            }
            Self::Receiver(socket) => {
                let mut head = [0; OPEN.len()];
                let opened = patiently(stop, || {
                    loop {
                        let flags = RecvFlags::empty();
                        let (_, length, from) = recvfrom(&socket, &mut head, flags)?;
                        if let Some(from) = from.filter(|_| length == OPEN.len() && head == OPEN) {
                            return Ok(from);
                        }
                    }
                });
                let opened = opened.transpose();
                let opened = opened.map_err(|e| settings.failed("receive from it", e))?;
                Ok(opened.map(|from| NetSocket::Datagrams(socket, from)))
            }
        }
    }
}

/// Repeats an interrupted call; `None` once the run is to end.
fn patiently<T>(
    stop: &AtomicU32,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> Option<Result<T, Errno>> {
    loop {
        match call() {
            Err(Errno::INTR) if stop.load(Ordering::Relaxed) != 0 => return None,
            Err(Errno::INTR) => {}
            result => return Some(result),
        }
    }
}

/// Result of a receiving call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Bytes(usize),
    /// The peer is done.
    Closed,
}

/// A connection, or datagrams to or from one peer.
#[derive(Debug)]
pub(super) enum NetSocket {
    Stream(OwnedFd),
    Datagrams(OwnedFd, SocketAddrAny),
}

impl NetSocket {
    /// True if data sent over it arrives, or its loss is noticed.
    pub(super) fn is_connection(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    pub(super) fn send(&self, data: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Stream(socket) => send(socket, data, SendFlags::NOSIGNAL),
            Self::Datagrams(socket, peer) => sendto(socket, data, SendFlags::NOSIGNAL, peer),
        }
    }

    pub(super) fn receive(&self, into: &mut [u8]) -> Result<Received, Errno> {
        match self {
            Self::Stream(socket) => {
                let (bytes, _) = recv(socket, into, RecvFlags::WAITALL)?;
                Ok(match bytes {
                    0 => Received::Closed,
                    bytes => Received::Bytes(bytes),
                })
            }
            Self::Datagrams(socket, _) => {
                let room = into.len();
                let (bytes, length, _) = recvfrom(socket, &mut *into, RecvFlags::empty())?;
                if length == CLOSE.len() && into.starts_with(&CLOSE[..length.min(room)]) {
                    return Ok(Received::Closed);
                }
                Ok(Received::Bytes(bytes))
            }
        }
    }

    /// Says goodbye.
    pub(super) fn close(&self, settings: &SocketSettings) {
        if let Self::Datagrams(socket, peer) = self {
            let times = if settings.sends { FAREWELLS } else { 1 };
            for turn in 0..times {
                // A receiver that lags drops it: then the next one may find room.
                if turn > 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
                // Nobody may be there any more.
                let _ = sendto(socket, &CLOSE, SendFlags::NOSIGNAL, peer);
            }
        }
    }
}
