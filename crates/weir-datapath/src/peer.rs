//! The other side's run: what both agree on before packets flow, when they begin, when they end, what the
//! server counted.
//!
//! In: a plan of one side. Out: a connection over TCP, whose lines are JSON. The client calls, for half a
//! minute, so either may be started first. What comes is looked at before it is believed. Not here: packets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_run::failure;
use weir_schema::{Failure, PacketPathWorkload, PathIteration, PathSide};
use weir_sys::Signals;

/// The form of frames and lines.
const VERSION: u32 = 1;
/// How long a client calls.
const CALLING: Duration = Duration::from_secs(30);
/// Between calls, and between looks whether one has come.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the other side may take for an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// After this time without a sign of its host the other side is lost.
const SILENCE: Duration = Duration::from_secs(4);
/// The longest line.
const LONGEST: usize = 64 << 20;

/// What sides say to each other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PeerLine {
    /// Who it is.
    Hello(Box<Hello>),
    /// It does not go together with the other.
    Refused(String),
    /// Its threads wait for the beginning.
    Ready,
    /// Its threads make no packets any more.
    End,
    /// What the server counted.
    Counted(Vec<PathIteration>),
}

/// Who a side is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    version: u32,
    pub(crate) work: PacketPathWorkload,
    /// Of its interface, where it has one.
    pub(crate) hardware_address: Option<[u8; 6]>,
    link: String,
}

/// The connection to the other side.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: TcpStream,
    name: String,
    /// What came and is no line yet.
    begun: Vec<u8>,
}

/// What this side says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnSide<'a> {
    pub(crate) work: &'a PacketPathWorkload,
    pub(crate) side: PathSide,
    pub(crate) link: &'a str,
    pub(crate) hardware_address: Option<[u8; 6]>,
}

impl Peer {
    /// Meets the other side, which has to want the same; also what it said of itself.
    ///
    /// # Errors
    /// That nobody is there, or what does not go together.
    pub(crate) fn meet(own: OwnSide<'_>, signals: &Signals) -> Result<(Self, Hello), Failure> {
        let work = own.work;
        let server = Ipv4Addr::from(work.addresses[1]);
        let at = SocketAddr::from((server, work.management_port));
        let stream = match own.side {
            PathSide::Client => call(at, signals),
            PathSide::Server => answer(at, signals),
        }?;
        let mut peer = Self::of(stream).map_err(|why| lost("the other side", &why))?;
        peer.say(&PeerLine::Hello(Box::new(Hello {
            version: VERSION,
            work: work.clone(),
            hardware_address: own.hardware_address,
            link: own.link.to_owned(),
        })))?;
        let hello = match peer.wait(ANSWER, &|| signals.interrupted())? {
            Some(PeerLine::Hello(hello)) => *hello,
            Some(_) => {
                return Err(failure(
                    "peer",
                    None,
                    format!("{}: speaks otherwise", peer.name),
                ));
            }
            None => {
                return Err(failure(
                    "peer",
                    None,
                    format!("{}: says nothing", peer.name),
                ));
            }
        };
        if let Some(why) = disagreement(&own, &hello) {
            // The other side finds the same; whether it hears of this does not matter.
            let _ = peer.say(&PeerLine::Refused(why.clone()));
            return Err(failure("plan", None, format!("{}: {why}", peer.name)));
        }
        Ok((peer, hello))
    }

    fn of(stream: TcpStream) -> io::Result<Self> {
        let name = stream.peer_addr()?.to_string();
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let seconds = Duration::from_secs(1);
        rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
        rustix::net::sockopt::set_tcp_keepidle(&stream, seconds)?;
        rustix::net::sockopt::set_tcp_keepintvl(&stream, seconds)?;
        rustix::net::sockopt::set_tcp_keepcnt(&stream, 3)?;
        let silence = u32::try_from(SILENCE.as_millis()).unwrap_or(u32::MAX);
        rustix::net::sockopt::set_tcp_user_timeout(&stream, silence)?;
        Ok(Self {
            stream,
            name,
            begun: Vec::new(),
        })
    }

    /// Says a line, and waits until the kernel has it.
    ///
    /// # Errors
    /// The other side is gone.
    pub(crate) fn say(&mut self, line: &PeerLine) -> Result<(), Failure> {
        let text = serde_json::to_string(line);
        let mut text = text.map_err(|why| failure("peer", None, why.to_string()))?;
        text.push('\n');
        let start = Instant::now();
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(0) => return Err(lost(&self.name, &ErrorKind::WriteZero.into())),
                Ok(written) => left = &left[written..],
                Err(why) if is_passing(&why) && start.elapsed() < ANSWER => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(why) => return Err(lost(&self.name, &why)),
            }
        }
        Ok(())
    }

    /// A line, where one has come.
    ///
    /// # Errors
    /// The other side is gone, or says what is none.
    pub(crate) fn hear(&mut self) -> Result<Option<PeerLine>, Failure> {
        loop {
            if let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.begun.drain(..=end).collect();
                let line = serde_json::from_slice(&line);
                return line.map(Some).map_err(|why| {
                    failure(
                        "peer",
                        None,
                        format!("{}: speaks otherwise: {why}", self.name),
                    )
                });
            }
            if self.begun.len() > LONGEST {
                let why = format!("{}: a line of more than {LONGEST} bytes", self.name);
                return Err(failure("peer", None, why));
            }
            let mut piece = [0; 1 << 14];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(lost(&self.name, &ErrorKind::UnexpectedEof.into())),
                Ok(came) => self.begun.extend_from_slice(&piece[..came]),
                Err(why) if is_passing(&why) => return Ok(None),
                Err(why) => return Err(lost(&self.name, &why)),
            }
        }
    }

    /// Waits for a line; none when the time is over, or what is asked says to end.
    ///
    /// # Errors
    /// As [`Peer::hear`]; and that the other side refuses.
    pub(crate) fn wait(
        &mut self,
        patience: Duration,
        ends: &dyn Fn() -> bool,
    ) -> Result<Option<PeerLine>, Failure> {
        let start = Instant::now();
        loop {
            match self.hear()? {
                Some(PeerLine::Refused(why)) => {
                    return Err(failure("plan", None, format!("{}: {why}", self.name)));
                }
                Some(line) => return Ok(Some(line)),
                None if start.elapsed() > patience || ends() => return Ok(None),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Who it is, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

fn is_passing(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn lost(name: &str, why: &io::Error) -> Failure {
    failure("peer", why.raw_os_error(), format!("{name} is lost: {why}"))
}

/// What ends waiting for the other side.
fn interrupted() -> Failure {
    failure(
        "interrupted",
        None,
        "interrupted while waiting for the other side",
    )
}

fn call(at: SocketAddr, signals: &Signals) -> Result<TcpStream, Failure> {
    let start = Instant::now();
    loop {
        match TcpStream::connect_timeout(&at, Duration::from_secs(2)) {
            Ok(stream) => return Ok(stream),
            Err(_) if signals.interrupted() => return Err(interrupted()),
            Err(why) if start.elapsed() > CALLING => {
                let why = format!("no server at {at} within {CALLING:?}: {why}");
                return Err(failure("peer", None, why));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn answer(at: SocketAddr, signals: &Signals) -> Result<TcpStream, Failure> {
    let fault = |why: io::Error| {
        let why = format!("cannot wait for a client at {at}: {why}");
        failure("peer", None, why)
    };
    let listener = TcpListener::bind(at).map_err(fault)?;
    listener.set_nonblocking(true).map_err(fault)?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(_) if signals.interrupted() => return Err(interrupted()),
            Err(why) if is_passing(&why) => std::thread::sleep(PAUSE),
            Err(why) => return Err(fault(why)),
        }
    }
}

/// What does not go together: the first difference, as this side says it.
fn disagreement(own: &OwnSide<'_>, hello: &Hello) -> Option<String> {
    if hello.version != VERSION {
        return Some(format!(
            "its packets have form {}, those here {VERSION}",
            hello.version
        ));
    }
    if hello.work.side.is_none_or(|side| side == own.side) {
        return Some("it is the same side as this one".to_owned());
    }
    if hello.link != own.link {
        return Some(format!(
            "its link is `{}`, that here `{}`",
            hello.link, own.link
        ));
    }
    other_number(own.work, &hello.work)
        .or_else(|| other_stream(own.work, &hello.work))
        .or_else(|| other_address(own, hello))
}

/// A number that both have to have, and have not.
fn other_number(mine: &PacketPathWorkload, theirs: &PacketPathWorkload) -> Option<String> {
    type Number = (&'static str, fn(&PacketPathWorkload) -> u64);
    const NUMBERS: [Number; 9] = [
        ("request_bytes", |work| work.request_bytes.0),
        ("response_bytes", |work| work.whole_response().0),
        ("packet_bytes", |work| work.packet_bytes.into()),
        ("first_port", |work| work.first_port.into()),
        ("iterations", |work| work.iterations.into()),
        ("duration_ns", |work| work.duration_ns.0),
        ("messages_per_s", |work| work.messages_per_s),
        ("is_answered", |work| work.is_answered().into()),
        ("packet_handler", |work| work.packet_handler as u64),
    ];
    if mine.request_cycle != theirs.request_cycle {
        return Some("`request_cycle` there is not that here".to_owned());
    }
    let other = NUMBERS.iter().find(|(_, of)| of(mine) != of(theirs));
    other.map(|(name, of)| format!("`{name}` is {} there and {} here", of(theirs), of(mine)))
}

/// Streams that only one side has, or that lead nowhere.
fn other_stream(mine: &PacketPathWorkload, theirs: &PacketPathWorkload) -> Option<String> {
    let ids = |work: &PacketPathWorkload| {
        let mut all: Vec<u8> = work.streams.iter().map(|one| one.id).collect();
        all.sort_unstable();
        all
    };
    if ids(mine) != ids(theirs) {
        return Some(format!(
            "it has the streams {:?}, this side {:?}",
            ids(theirs),
            ids(mine)
        ));
    }
    let there = theirs.dispatchers();
    let mut peers = mine.streams.iter().flat_map(|stream| &stream.peers);
    let absent = peers.find(|peer| !there.contains(peer))?;
    Some(format!(
        "there is no dispatcher {absent} there, to which packets go"
    ))
}

/// Addresses that are not those of the other side.
fn other_address(own: &OwnSide<'_>, hello: &Hello) -> Option<String> {
    if own.work.addresses != hello.work.addresses {
        return Some("its addresses of client and server are not those of this side".to_owned());
    }
    let wanted = own.work.hardware_addresses[usize::from(own.side == PathSide::Client)];
    let is = hello.hardware_address?;
    let text = |one: [u8; 6]| one.map(|byte| format!("{byte:02x}")).join(":");
    (wanted != [0; 6] && is != wanted).then(|| {
        format!(
            "its interface has {}, and {} is asked for here",
            text(is),
            text(wanted)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Bytes;

    fn sides() -> [PacketPathWorkload; 2] {
        [PathSide::Client, PathSide::Server].map(|side| PacketPathWorkload {
            side: Some(side),
            ..PacketPathWorkload::default()
        })
    }

    fn said(own: &PacketPathWorkload, other: PacketPathWorkload) -> Option<String> {
        let own = OwnSide {
            work: own,
            side: PathSide::Client,
            link: "udp",
            hardware_address: None,
        };
        let hello = Hello {
            version: VERSION,
            work: other,
            hardware_address: Some([2, 0, 0, 0, 0, 2]),
            link: "udp".to_owned(),
        };
        disagreement(&own, &hello)
    }

    #[test]
    fn sides_that_want_something_else_are_refused_by_name() {
        let [client, server] = sides();
        assert_eq!(said(&client, server.clone()), None);
        assert!(said(&client, client.clone()).unwrap().contains("same side"));
        let other = PacketPathWorkload {
            request_bytes: Bytes(100),
            ..server.clone()
        };
        assert!(
            said(&client, other)
                .unwrap()
                .contains("`request_bytes` is 100 there")
        );
        let mut other = server.clone();
        other.streams[0].id = 3;
        assert!(said(&client, other).unwrap().contains("streams [3]"));
        let mut wrong = client.clone();
        wrong.hardware_addresses[1] = [9; 6];
        assert!(said(&wrong, server.clone()).unwrap().contains("09:09"));
        wrong.hardware_addresses[1] = [0; 6];
        assert_eq!(said(&wrong, server.clone()), None);
        wrong.streams[0].peers = vec![7];
        assert!(said(&wrong, server).unwrap().contains("no dispatcher 7"));
    }

    #[test]
    fn lines_arrive_whole_whatever_they_are_cut_into_and_nonsense_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut raw = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut peer = Peer::of(listener.accept().unwrap().0).unwrap();
        let never = || false;
        for byte in b"\"ready\"\n\"e" {
            raw.write_all(&[*byte]).unwrap();
        }
        let heard = peer.wait(ANSWER, &never).unwrap();
        assert!(matches!(heard, Some(PeerLine::Ready)), "{heard:?}");
        assert!(peer.wait(Duration::ZERO, &never).unwrap().is_none());
        raw.write_all(b"nd\"\n{\"counted\":3}\n").unwrap();
        let heard = peer.wait(ANSWER, &never).unwrap();
        assert!(matches!(heard, Some(PeerLine::End)), "{heard:?}");
        assert!(
            peer.wait(ANSWER, &never)
                .unwrap_err()
                .message
                .contains("speaks otherwise")
        );
        drop(raw);
        assert!(
            peer.wait(ANSWER, &never)
                .unwrap_err()
                .message
                .contains("is lost")
        );
    }
}
