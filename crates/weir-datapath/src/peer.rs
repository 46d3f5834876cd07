//! The other side's run: what both agree on before packets flow, when they begin, when they end, what the
//! server counted.
//!
//! In: a plan of one side. Out: a connection over TCP, whose lines are JSON. The client calls, for half a
//! minute, so either may be started first. What comes is looked at before it is believed. Not here: packets;
//! who else calls (`callers`).

use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_run::{JobContext, failure};
use weir_schema::json::in_text;
use weir_schema::{Failure, PacketPathWorkload, PathCallers, PathIteration, PathSide};
use weir_sys::Signals;
use weir_sys::token::{Protocol, ProvingSide, Token, nonce, same};

use crate::verbs::VerbsFacts;

/// The form of frames and lines.
pub(crate) const VERSION: u32 = 4;
/// Time for which a client calls.
const CALLING: Duration = Duration::from_secs(30);
/// Between calls, and between looks whether one has come.
const PAUSE: Duration = Duration::from_millis(20);
/// Time that the other side may take for an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Bytes of the longest line but that of a server's counts: of greetings, of reasons.
const LONGEST: usize = 64 << 10;
/// Bytes of a server's counts of one iteration, and of all of them.
const LONGEST_COUNTS: [usize; 2] = [128 << 10, 64 << 20];

mod callers;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod lines;
pub(crate) use callers::listen;
use lines::{LineStream, lost};

/// Line that one side sends to the other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PeerLine {
    /// Who it is.
    Hello(Box<Hello>),
    /// That it knows the token.
    Proof([u8; 32]),
    /// It does not go together with the other: why, as the other would say it.
    Refused(String),
    /// It cannot run: why.
    Failed(String),
    /// Queue pairs of its link.
    Link(Box<VerbsFacts>),
    /// It has all that it needs.
    Prepared,
    /// Its threads wait for the beginning.
    Ready,
    /// It goes on: a client says so now and then, as a server may have nothing else to know that by.
    Alive,
    /// Its threads make no packets any more.
    End,
    /// Counts of the server.
    Counted(#[serde(with = "in_text")] Vec<PathIteration>),
}

/// Who a side is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    version: u32,
    /// Never the same twice.
    nonce: [u8; 16],
    /// Of a client: the address that it has called.
    called: Option<SocketAddr>,
    /// A proof has to follow.
    authenticate: bool,
    #[serde(with = "in_text")]
    pub(crate) work: PacketPathWorkload,
    /// Of its interface, where it has one.
    pub(crate) hardware_address: Option<[u8; 6]>,
    link: String,
}

/// The connection to the other side.
#[derive(Debug)]
pub(crate) struct PathPeer {
    lines: LineStream,
    name: String,
}

/// Facts that this side sends of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnSide<'a> {
    pub(crate) work: &'a PacketPathWorkload,
    pub(crate) side: PathSide,
    pub(crate) link: &'a str,
    pub(crate) hardware_address: Option<[u8; 6]>,
}

impl OwnSide<'_> {
    /// Its greeting, as it is sent.
    fn hello(&self, called: Option<SocketAddr>, token: Option<&Token>) -> Result<Vec<u8>, Failure> {
        let number = nonce().map_err(|why| failure("peer", None, why.to_string()))?;
        lines::text(&PeerLine::Hello(Box::new(Hello {
            version: VERSION,
            nonce: number,
            called,
            authenticate: token.is_some(),
            work: PacketPathWorkload {
                callers: PathCallers::ThisMachine,
                ..self.work.clone()
            },
            hardware_address: self.hardware_address,
            link: self.link.to_owned(),
        })))
    }
}

impl PathPeer {
    /// Meets the other side, which has to want the same; also what it said of itself.
    ///
    /// # Errors
    /// That nobody is there, or what does not go together.
    pub(crate) fn meet(
        own: OwnSide<'_>,
        listener: Option<&TcpListener>,
        context: &JobContext<'_>,
    ) -> Result<(Self, Hello), Failure> {
        let token = match &own.work.callers {
            PathCallers::Token(file) => Token::read(Path::new(file)).map(Some),
            PathCallers::ThisMachine | PathCallers::Anyone => Ok(None),
        };
        let token = token.map_err(|why| failure("authentication", None, why.to_string()))?;
        let (mut peer, other) = match listener {
            Some(listener) => callers::await_client(listener, &own, token.as_ref(), context)?,
            None => Self::greet(&own, token.as_ref(), context.signals)?,
        };
        if let Some([here, there]) = disagreement(&own, &other) {
            // Whether it hears of this does not matter here.
            let _ = peer.say(&PeerLine::Refused(there));
            return Err(failure("plan", None, format!("{}: {here}", peer.name)));
        }
        if own.side == PathSide::Client {
            let [each, most] = LONGEST_COUNTS;
            let counts = each.saturating_mul(own.work.iterations as usize);
            peer.lines.allow(LONGEST + counts.min(most));
        }
        Ok((peer, other))
    }

    /// Calls the server and greets it.
    fn greet(
        own: &OwnSide<'_>,
        token: Option<&Token>,
        signals: &Signals,
    ) -> Result<(Self, Hello), Failure> {
        let at = server_address(own.work);
        let stream = call(at, signals)?;
        let mut peer = Self::of(stream).map_err(|why| lost("the other side", &why))?;
        let hello = own.hello(Some(at), token)?;
        peer.lines.say_text(&hello)?;
        let deny = |peer: &Self, why: &str| {
            let why = format!("{}: {why}", peer.name);
            Err(failure("authentication", None, why))
        };
        let ends = || signals.interrupted();
        let denied = |why: Failure| failure("authentication", None, why.message);
        let why = match peer.wait_text(ANSWER, &ends)? {
            Some((reply, PeerLine::Hello(other))) => match (token, other.authenticate) {
                (None, false) => return Ok((peer, *other)),
                (None, true) => return deny(&peer, "it asks for a token"),
                (Some(_), false) => {
                    return deny(&peer, "it asks for no token");
                }
                (Some(token), true) => {
                    let proof = |side| token.proof(Protocol::PacketPath, [&hello, &reply], side);
                    peer.say(&PeerLine::Proof(proof(ProvingSide::Client)))?;
                    match peer.wait(ANSWER, &ends).map_err(denied)? {
                        Some(PeerLine::Proof(its)) if same(&its, &proof(ProvingSide::Server)) => {
                            return Ok((peer, *other));
                        }
                        _ => return deny(&peer, "it does not know the token"),
                    }
                }
            },
            Some(_) => "speaks otherwise",
            None => "says nothing",
        };
        Err(failure("peer", None, format!("{}: {why}", peer.name)))
    }

    /// Says to the other side what it needs to know of this one's link, and waits for the same of the other's; none
    /// when it says something else.
    ///
    /// # Errors
    /// The other side is gone, or cannot run.
    pub(crate) fn exchange(
        &mut self,
        own: VerbsFacts,
        signals: &Signals,
    ) -> Result<Option<VerbsFacts>, Failure> {
        self.say(&PeerLine::Link(Box::new(own)))?;
        match self.wait(ANSWER, &|| signals.interrupted())? {
            Some(PeerLine::Link(its)) => Ok(Some(*its)),
            None if signals.interrupted() => Err(interrupted()),
            _ => Ok(None),
        }
    }

    /// Says whether this side has what it needs, and waits until the other has.
    ///
    /// # Errors
    /// The part that this side lacks, or the other.
    pub(crate) fn prepare_both<T>(
        &mut self,
        own: Result<T, Failure>,
        signals: &Signals,
    ) -> Result<T, Failure> {
        let line = match &own {
            Ok(_) => PeerLine::Prepared,
            Err(why) => PeerLine::Failed(why.message.clone()),
        };
        // One that is gone may have said why before.
        let _ = self.say(&line);
        let own = own?;
        match self.wait(ANSWER, &|| signals.interrupted())? {
            Some(PeerLine::Prepared) => Ok(own),
            None if signals.interrupted() => Err(interrupted()),
            _ => {
                let why = format!("{} does not become ready", self.name);
                Err(failure("peer", None, why))
            }
        }
    }

    /// Waits for a line; none when the time is over, or what is asked says to end.
    ///
    /// # Errors
    /// As [`PathPeer::hear`]; and that the other side refuses.
    pub(crate) fn wait(
        &mut self,
        patience: Duration,
        ends: &dyn Fn() -> bool,
    ) -> Result<Option<PeerLine>, Failure> {
        Ok(self.wait_text(patience, ends)?.map(|(_, line)| line))
    }

    /// The same, with the bytes of the line.
    fn wait_text(
        &mut self,
        patience: Duration,
        ends: &dyn Fn() -> bool,
    ) -> Result<Option<(Vec<u8>, PeerLine)>, Failure> {
        let start = Instant::now();
        loop {
            let heard = self.lines.hear_text()?;
            match heard.map(|text| self.meaning(text)).transpose()? {
                Some((_, PeerLine::Refused(why))) => {
                    return Err(failure("plan", None, format!("{}: {why}", self.name)));
                }
                Some((_, PeerLine::Failed(why))) => {
                    let why = format!("{} cannot run: {why}", self.name);
                    return Err(failure("peer", None, why));
                }
                Some(line) => return Ok(Some(line)),
                None if start.elapsed() > patience || ends() => return Ok(None),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn meaning(&self, text: Vec<u8>) -> Result<(Vec<u8>, PeerLine), Failure> {
        match serde_json::from_slice(&text) {
            Ok(line) => Ok((text, line)),
            Err(why) => {
                let why = format!("{}: speaks otherwise: {why}", self.name);
                Err(failure("peer", None, why))
            }
        }
    }

    fn of(stream: TcpStream) -> io::Result<Self> {
        let lines = LineStream::of(stream, LONGEST)?;
        let name = lines.name().to_owned();
        Ok(Self { lines, name })
    }

    /// Says a line, and waits until the kernel has it.
    ///
    /// # Errors
    /// The other side is gone.
    pub(crate) fn say(&mut self, line: &PeerLine) -> Result<(), Failure> {
        self.lines.say(line)
    }

    /// A line, where one has come.
    ///
    /// # Errors
    /// The other side is gone, or says what is none.
    pub(crate) fn hear(&mut self) -> Result<Option<PeerLine>, Failure> {
        let heard = self.lines.hear_text()?;
        let heard = heard.map(|text| self.meaning(text)).transpose()?;
        Ok(heard.map(|(_, line)| line))
    }

    /// Who it is, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Failure of a signal while the other side is waited for.
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

/// Where the server is called.
fn server_address(work: &PacketPathWorkload) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from(work.addresses[1]), work.management_port))
}

/// The first difference that keeps two sides from going together, as this side says it, and as the other would.
fn disagreement(own: &OwnSide<'_>, hello: &Hello) -> Option<[String; 2]> {
    let differs = |name: &str, there: &dyn Display, here: &dyn Display| {
        Some([
            format!("{name} {there}, that here {here}"),
            format!("{name} {here}, that here {there}"),
        ])
    };
    let alike = |why: &str| Some([why.to_owned(), why.to_owned()]);
    if hello.version != VERSION {
        return differs("its packets have form", &hello.version, &VERSION);
    }
    if hello.work.side.is_none_or(|side| side == own.side) {
        return alike("it is the same side as this one");
    }
    if hello.link != own.link {
        let quoted = |link: &str| format!("`{link}`");
        return differs("its link is", &quoted(&hello.link), &quoted(own.link));
    }
    if own.work.request_cycle != hello.work.request_cycle {
        return alike("`imix` there is not that here");
    }
    if own.work.addresses != hello.work.addresses {
        return alike("its addresses of client and server are not those of this side");
    }
    let (mine, theirs) = (own.work.queue_slots, hello.work.queue_slots);
    // Places in the memory are counted by the slots of each queue.
    if own.link == "shm" && mine != theirs {
        let said = |there, here| format!("`nic_ring` is {there} there and {here} here");
        return Some([said(theirs, mine), said(mine, theirs)]);
    }
    other_number(own.work, &hello.work)
        .or_else(|| other_stream(own.work, &hello.work))
        .or_else(|| other_address(own, hello))
}

/// The first number that both have to have alike, and have not, by its key in configurations.
fn other_number(mine: &PacketPathWorkload, theirs: &PacketPathWorkload) -> Option<[String; 2]> {
    type Number = (&'static str, fn(&PacketPathWorkload) -> String);
    const NUMBERS: [Number; 9] = [
        ("req_size", |work| work.request_bytes.0.to_string()),
        ("resp_size", |work| work.whole_response().0.to_string()),
        ("mtu", |work| work.packet_bytes.to_string()),
        ("udp_port_base", |work| work.first_port.to_string()),
        ("iteration", |work| work.iterations.to_string()),
        ("duration", |work| work.duration_ns.to_string()),
        ("rate", |work| work.messages_per_s.to_string()),
        ("pkt_handler", |work| format!("{:?}", work.packet_handler)),
        ("msg_handler", |work| {
            let answers = ["one that answers nothing", "one that answers"];
            answers[usize::from(work.is_answered())].to_owned()
        }),
    ];
    let (name, of) = NUMBERS.iter().find(|(_, of)| of(mine) != of(theirs))?;
    let said = |there, here| format!("`{name}` is {} there and {} here", of(there), of(here));
    Some([said(theirs, mine), said(mine, theirs)])
}

/// Streams that only one side has, or that lead nowhere.
fn other_stream(mine: &PacketPathWorkload, theirs: &PacketPathWorkload) -> Option<[String; 2]> {
    let ids = |work: &PacketPathWorkload| {
        let mut all: Vec<u8> = work.streams.iter().map(|one| one.id).collect();
        all.sort_unstable();
        all
    };
    if ids(mine) != ids(theirs) {
        let said = |there, here| {
            let (there, here) = (ids(there), ids(here));
            format!("it has the workloads {there:?}, this side {here:?}")
        };
        return Some([said(theirs, mine), said(mine, theirs)]);
    }
    let there = theirs.dispatchers();
    let mut peers = mine.streams.iter().flat_map(|stream| &stream.peers);
    let absent = peers.find(|peer| !there.contains(peer))?;
    Some([
        format!("there is no dispatcher {absent} there, to which packets go"),
        format!("its packets go to dispatcher {absent}, which is not here"),
    ])
}

/// An Ethernet address that is not that of the other side.
fn other_address(own: &OwnSide<'_>, hello: &Hello) -> Option<[String; 2]> {
    let wanted = own.work.hardware_addresses[usize::from(own.side == PathSide::Client)];
    let is = hello.hardware_address?;
    let text = |one: [u8; 6]| one.map(|byte| format!("{byte:02x}")).join(":");
    (wanted != [0; 6] && is != wanted).then(|| {
        let (is, wanted) = (text(is), text(wanted));
        [
            format!("its interface has {is}, and {wanted} is asked for here"),
            format!("it asks for an interface with {wanted}, and the one here has {is}"),
        ]
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use weir_schema::{MOST_PATH_THREADS, PacketStream, PathThread};
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
            nonce: [0; 16],
            called: None,
            authenticate: false,
            work: other,
            hardware_address: Some([2, 0, 0, 0, 0, 2]),
            link: "udp".to_owned(),
        };
        disagreement(&own, &hello).map(|[here, _]| here)
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
                .contains("`req_size` is 100 there")
        );
        let mut other = server.clone();
        other.streams[0].id = 3;
        assert!(said(&client, other).unwrap().contains("workloads [3]"));
        let mut wrong = client.clone();
        wrong.hardware_addresses[1] = [9; 6];
        assert!(said(&wrong, server.clone()).unwrap().contains("09:09"));
        wrong.hardware_addresses[1] = [0; 6];
        assert_eq!(said(&wrong, server.clone()), None);
        wrong.streams[0].peers = vec![7];
        assert!(said(&wrong, server).unwrap().contains("no dispatcher 7"));
    }

    /// Bytes of a line if each of its numbers were the longest there is.
    fn longest(line: &PeerLine) -> usize {
        let text = String::from_utf8(lines::text(line).unwrap()).unwrap();
        let numbers = text.split(|c: char| !c.is_ascii_digit());
        let numbers = numbers.filter(|digits| !digits.is_empty()).count();
        text.len() + 20 * (numbers + text.matches("null").count())
    }

    #[test]
    fn the_longest_greeting_and_counts_of_all_threads_fit_into_their_lines() {
        let [mut client, _] = sides();
        client.request_cycle = vec![Bytes(2_097_152); 4096];
        let threads = MOST_PATH_THREADS;
        client.streams = (0..threads)
            .map(|id| PacketStream {
                id,
                peers: (0..threads).collect(),
                ..PacketStream::default()
            })
            .collect();
        let own = OwnSide {
            work: &client,
            side: PathSide::Client,
            link: "udp",
            hardware_address: Some([2; 6]),
        };
        let hello = own.hello(Some(server_address(&client)), None).unwrap();
        assert!(hello.len() < LONGEST, "{}", hello.len());
        let thread = PathThread {
            side: PathSide::Server,
            ..PathThread::default()
        };
        let iteration = PathIteration {
            threads: vec![thread; usize::from(threads)],
        };
        let counts = longest(&PeerLine::Counted(vec![iteration]));
        assert!(counts < LONGEST_COUNTS[0], "{counts}");
    }

    #[test]
    fn lines_arrive_whole_whatever_they_are_cut_into_and_nonsense_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut raw = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut peer = PathPeer::of(listener.accept().unwrap().0).unwrap();
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
