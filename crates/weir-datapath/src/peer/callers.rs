//! Who calls a server that waits for its client: that client, or somebody else, who is sent away.
//!
//! In: connections. Out: the first whose greeting is that of a client, which has proved that it knows the token
//! where there is one; a note of each that is none. A connection that says nothing is let go after a while, and
//! does not keep the others waiting. There are 64 at once at the most, with 64 KiB each to greet.

use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use weir_run::{JobContext, failure};
use weir_schema::{Announcement, Failure, PacketPathWorkload};
use weir_sys::socket::is_passing;
use weir_sys::token::{GuessLimit, Protocol, ProvingSide, Token, same};

use super::{Hello, OwnSide, PAUSE, PathPeer, PeerLine, interrupted, server_address};

/// Time that a greeting may take.
const GREETING: Duration = Duration::from_secs(5);
/// Bytes of a proof, as a line.
const LONGEST_PROOF: usize = 1 << 10;
/// Connections that may be about to greet.
const MOST_CALLERS: usize = 64;
/// Time after which one makes room for others, where there are too many.
const SILENT: Duration = Duration::from_millis(500);

/// Opens the port at which a client calls.
///
/// # Errors
/// The machine has no such address, or somebody else has the port.
pub(crate) fn listen(work: &PacketPathWorkload) -> Result<TcpListener, Failure> {
    let at = server_address(work);
    let listener = TcpListener::bind(at).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|why| {
        let remedy = match why.kind() {
            ErrorKind::AddrNotAvailable => {
                "; `local_ip` of a server is an address of its machine (`ip address` lists them)"
            }
            ErrorKind::AddrInUse => {
                "; another program has that port: name another `mgmt_port`, the same on both sides"
            }
            ErrorKind::PermissionDenied => {
                "; ports below 1024 need root, or CAP_NET_BIND_SERVICE: name another `mgmt_port`"
            }
            _ => "",
        };
        failure(
            "missing",
            why.raw_os_error(),
            format!("cannot wait for a client at {at}: {why}{remedy}"),
        )
    })
}

/// A connection that is about to greet, or to prove that it knows the token.
pub(super) struct Caller {
    pub(super) peer: PathPeer,
    pub(super) since: Instant,
    /// Its greeting, and both greetings as bytes, of which proofs are.
    pub(super) greeted: Option<(Box<Hello>, [Vec<u8>; 2])>,
}

/// Waits for a client's greeting, and answers it.
pub(super) fn await_client(
    listener: &TcpListener,
    own: &OwnSide<'_>,
    token: Option<&Token>,
    context: &JobContext<'_>,
) -> Result<(PathPeer, Hello), Failure> {
    if let Ok(address) = listener.local_addr() {
        let address = address.to_string();
        (context.announce)(&Announcement::Listening { address });
    }
    let mut desk = Desk {
        own,
        token,
        guesses: GuessLimit::default(),
    };
    let mut callers: Vec<Caller> = Vec::new();
    loop {
        if context.signals.interrupted() {
            return Err(interrupted());
        }
        let mut still = Vec::new();
        for mut caller in callers.drain(..) {
            let why = match desk.progress(&mut caller) {
                Ok(Some(hello)) => return Ok((caller.peer, *hello)),
                Ok(None) if caller.since.elapsed() < GREETING => {
                    still.push(caller);
                    continue;
                }
                Ok(None) => format!("no greeting within {GREETING:?}"),
                Err(why) => why,
            };
            sent_away(context, caller.peer.name, why);
        }
        callers = still;
        while callers.len() < MOST_CALLERS || callers[0].since.elapsed() > SILENT {
            let Some(stream) = next_caller(listener)? else {
                break;
            };
            if callers.len() >= MOST_CALLERS {
                let why = "silent, and others wait".to_owned();
                sent_away(context, callers.remove(0).peer.name, why);
            }
            // One that is gone already is nobody.
            if let Ok(peer) = PathPeer::of(stream) {
                callers.push(Caller {
                    peer,
                    since: Instant::now(),
                    greeted: None,
                });
            }
        }
        std::thread::sleep(PAUSE);
    }
}

fn sent_away(context: &JobContext<'_>, address: String, why: String) {
    (context.announce)(&Announcement::Stranger {
        address,
        awaited: "client of weir axio".to_owned(),
        why,
    });
}

/// The server, as callers meet it.
pub(super) struct Desk<'a> {
    pub(super) own: &'a OwnSide<'a>,
    pub(super) token: Option<&'a Token>,
    pub(super) guesses: GuessLimit,
}

impl Desk<'_> {
    /// Hears what a caller says next; its greeting, once nothing more has to come.
    ///
    /// # Errors
    /// Why it is no client.
    pub(super) fn progress(&mut self, caller: &mut Caller) -> Result<Option<Box<Hello>>, String> {
        let reason = |peer: &PathPeer, why: &Failure| {
            let own = why.message.strip_prefix(&peer.name);
            let why = own.unwrap_or(&why.message);
            let why = why.strip_prefix(" is lost").unwrap_or(why);
            why.trim_start_matches([':', ' ']).to_owned()
        };
        let peer = &mut caller.peer;
        let heard = peer.lines.hear_text().map_err(|why| reason(peer, &why))?;
        let Some(text) = heard else {
            return Ok(None);
        };
        let (text, line) = peer.meaning(text).map_err(|why| reason(peer, &why))?;
        let hello = match (line, caller.greeted.take()) {
            (PeerLine::Hello(hello), None) => {
                self.check_called(peer, &hello)?;
                let reply = self.own.hello(None, self.token);
                let reply = reply.map_err(|why| why.message)?;
                peer.lines
                    .say_text(&reply)
                    .map_err(|why| reason(peer, &why))?;
                if self.token.is_none() && hello.authenticate {
                    return Err("it asks for a token, and this server has none".to_owned());
                }
                if self.token.is_some() {
                    peer.lines.allow(LONGEST_PROOF);
                    caller.greeted = Some((hello, [text, reply]));
                    return Ok(None);
                }
                hello
            }
            (PeerLine::Proof(proof), Some((hello, greetings))) => {
                self.check(peer, &proof, &greetings)?;
                hello
            }
            (_, None) => return Err("it does not greet first".to_owned()),
            (_, Some(_)) => return Err("it does not prove that it knows the token".to_owned()),
        };
        peer.lines.allow(super::LONGEST);
        Ok(Some(hello))
    }

    /// # Errors
    /// It knows another token, or has tried too many.
    fn check(
        &mut self,
        peer: &mut PathPeer,
        proof: &[u8; 32],
        [hello, reply]: &[Vec<u8>; 2],
    ) -> Result<(), String> {
        let Some(token) = self.token else {
            return Ok(());
        };
        let from = peer.lines.ends().map_err(|why| why.to_string())?[1].ip();
        let of = |side| token.proof(Protocol::PacketPath, [hello, reply], side);
        let why = if !self.guesses.may_try(from, Instant::now()) {
            "too many wrong tokens, try again later"
        } else if same(proof, &of(ProvingSide::Client)) {
            let own = PeerLine::Proof(of(ProvingSide::Server));
            return peer.say(&own).map_err(|why| why.message);
        } else {
            self.guesses.wrong(from, Instant::now());
            "this is another token than the server's"
        };
        // Whether it hears of this does not matter here.
        let _ = peer.say(&PeerLine::Refused(why.to_owned()));
        Err(why.to_owned())
    }

    /// # Errors
    /// The client has called another address, from which somebody may have passed its greeting on.
    fn check_called(&self, peer: &mut PathPeer, hello: &Hello) -> Result<(), String> {
        let own = peer.lines.ends().map_err(|why| why.to_string())?[0];
        if self.token.is_none() || hello.called == Some(own) {
            return Ok(());
        }
        let why = "with a token no other program may stand between client and server";
        // Whether it hears of this does not matter here.
        let _ = peer.say(&PeerLine::Refused(why.to_owned()));
        Err("its greeting was for another address".to_owned())
    }
}

/// Who has called since, if somebody has.
///
/// # Errors
/// Nobody can call any more.
fn next_caller(listener: &TcpListener) -> Result<Option<TcpStream>, Failure> {
    match listener.accept() {
        Ok((stream, _)) => Ok(Some(stream)),
        Err(why) if is_passing(&why) || has_left(&why) => Ok(None),
        Err(why) => {
            let why = format!("cannot wait for a client: {why}");
            Err(failure("peer", None, why))
        }
    }
}

/// True if a caller was gone before it was answered.
fn has_left(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::SocketAddr;

    use weir_schema::PathSide;

    use super::super::lines;
    use super::*;

    /// The end of a caller that sends these lines, each once the one before is answered.
    fn met(
        desk: &mut Desk<'_>,
        listener: &TcpListener,
        lines: &mut dyn Iterator<Item = Vec<u8>>,
        replies: &mut Vec<Vec<u8>>,
    ) -> Result<(), String> {
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut answers = BufReader::new(stream.try_clone().unwrap());
        let mut caller = Caller {
            peer: PathPeer::of(listener.accept().unwrap().0).unwrap(),
            since: Instant::now(),
            greeted: None,
        };
        for line in lines {
            (&stream).write_all(&line).unwrap();
            let before = caller.greeted.is_some();
            let met = loop {
                let progress = desk.progress(&mut caller)?;
                if progress.is_some() || caller.greeted.is_some() != before {
                    break progress;
                }
            };
            let mut reply = Vec::new();
            answers.read_until(b'\n', &mut reply).unwrap();
            replies.push(reply);
            if met.is_some() {
                return Ok(());
            }
        }
        Err("it says no more".to_owned())
    }

    /// A side of a run over this port.
    fn work(side: PathSide, at: SocketAddr) -> PacketPathWorkload {
        PacketPathWorkload {
            side: Some(side),
            management_port: at.port(),
            ..PacketPathWorkload::default()
        }
    }

    fn side(work: &PacketPathWorkload) -> OwnSide<'_> {
        OwnSide {
            work,
            side: PathSide::Client,
            link: "udp",
            hardware_address: None,
        }
    }

    fn proof(token: &Token, hello: &[u8], reply: &[u8]) -> Vec<u8> {
        let proof = token.proof(Protocol::PacketPath, [hello, reply], ProvingSide::Client);
        lines::text(&PeerLine::Proof(proof)).unwrap()
    }

    #[test]
    fn a_proof_is_of_its_connection_alone_and_guesses_are_limited() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let token = Token::new(b"sixteen letters!".to_vec());
        let [client, server] = [PathSide::Client, PathSide::Server].map(|side| work(side, at));
        let own = side(&server);
        let mut desk = Desk {
            own: &own,
            token: Some(&token),
            guesses: GuessLimit::default(),
        };
        let hello = side(&client).hello(Some(at), Some(&token)).unwrap();
        let mut replies = Vec::new();
        let greeted = met(
            &mut desk,
            &listener,
            &mut [hello.clone()].into_iter(),
            &mut replies,
        );
        assert_eq!(greeted.unwrap_err(), "it says no more");
        let recorded = proof(&token, &hello, &replies[0]);
        let end = |desk: &mut Desk<'_>, lines: &[&[u8]]| {
            let mut lines = lines.iter().map(|line| line.to_vec());
            met(desk, &listener, &mut lines, &mut Vec::new()).unwrap_err()
        };
        // The same bytes once more: the server's number is another one.
        let replayed = end(&mut desk, &[&hello, &recorded]);
        assert!(replayed.contains("another token"), "{replayed}");
        let elsewhere = Some("127.0.0.9:1".parse().unwrap());
        let passed_on = side(&client).hello(elsewhere, Some(&token)).unwrap();
        let passed_on = end(&mut desk, &[&passed_on]);
        assert!(passed_on.contains("another address"), "{passed_on}");
        // All of a time that is not over when this is looked at.
        let later = Instant::now() + Duration::from_secs(3600);
        (0..10).for_each(|_| desk.guesses.wrong(at.ip(), later));
        let guessed = end(&mut desk, &[&hello, &recorded]);
        assert!(guessed.contains("too many wrong tokens"), "{guessed}");
    }
}
