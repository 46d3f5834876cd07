//! Meeting of ranks over streams: each proves to the other that it knows the number of the run, and whose
//! stream it is.
//!
//! In: a listener, the addresses of others, the number. Out: streams to them and from them, by replication. A
//! stranger who connects is turned away, and keeps nobody waiting.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use weir_sys::socket::is_passing;
use weir_sys::token::{Protocol, ProvingSide, Token, nonce, same};

use super::super::Setup;
use super::fail;
use crate::error::Halt;

/// Bytes of a greeting: a number never the same twice, sender, replication.
pub(crate) const HELLO: usize = 32;
/// Bytes of its answer: a number never the same twice, the proof of who answers.
const REPLY: usize = 16 + PROOF;
const PROOF: usize = 32;
/// Time that a stream has to greet and to prove itself.
const GREETING: Duration = Duration::from_secs(2);
/// Time after which a stream makes room for others, where there are too many.
const SILENT: Duration = Duration::from_millis(500);
/// Streams besides those of the ranks that may be about to greet.
const MOST_STRANGERS: usize = 64;

/// A stream whose ends have not proved yet who they are.
pub(crate) struct Greeting {
    pub(crate) stream: TcpStream,
    since: Instant,
    /// The greeting of the end that called; nothing until it has come.
    hello: Vec<u8>,
    /// The number of the end that was called.
    nonce: [u8; 16],
    /// Bytes that came and are not read yet.
    heard: Vec<u8>,
}

impl Greeting {
    pub(crate) fn new(stream: TcpStream, hello: Vec<u8>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            since: Instant::now(),
            hello,
            nonce: nonce()?,
            heard: Vec::new(),
        })
    }

    /// The next bytes of the other end, once all of them are there.
    fn hear<const BYTES: usize>(&mut self) -> io::Result<Option<[u8; BYTES]>> {
        let mut piece = [0; BYTES];
        match self.stream.read(&mut piece[self.heard.len()..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(came) => {
                let first = self.heard.len();
                self.heard.extend_from_slice(&piece[first..first + came]);
            }
            Err(error) if is_passing(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let whole = self.heard.first_chunk::<BYTES>().copied();
        if whole.is_some() {
            self.heard.clear();
        }
        Ok(whole)
    }

    fn proof(&self, token: &Token, nonce: &[u8], side: ProvingSide) -> [u8; PROOF] {
        token.proof(Protocol::Ranks, [&self.hello, nonce], side)
    }

    /// Of the end that called: true once the other one has proved itself, and was answered.
    pub(crate) fn answered(&mut self, token: &Token) -> io::Result<bool> {
        let Some(reply) = self.hear::<REPLY>()? else {
            return Ok(false);
        };
        let Some((nonce, proof)) = reply.split_first_chunk::<16>() else {
            return Ok(false);
        };
        let right = self.proof(token, nonce, ProvingSide::Server);
        if proof.first_chunk().is_none_or(|proof| !same(proof, &right)) {
            let why = "who listens there is no rank of this run";
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let own = self.proof(token, nonce, ProvingSide::Client);
        self.stream.write_all(&own)?;
        Ok(true)
    }

    /// Of the end that was called: true once the other one has proved itself.
    pub(crate) fn called(&mut self, token: &Token) -> io::Result<bool> {
        if self.hello.is_empty() {
            let Some(hello) = self.hear::<HELLO>()? else {
                return Ok(false);
            };
            self.hello = hello.to_vec();
            let own = self.proof(token, &self.nonce, ProvingSide::Server);
            self.stream.write_all(&[&self.nonce[..], &own].concat())?;
        }
        let Some(proof) = self.hear::<PROOF>()? else {
            return Ok(false);
        };
        if same(&proof, &self.proof(token, &self.nonce, ProvingSide::Client)) {
            return Ok(true);
        }
        Err(ErrorKind::PermissionDenied.into())
    }
}

/// A greeting: whose stream it is.
fn hello(sender: u32, replication: usize) -> io::Result<Vec<u8>> {
    let whose = [u64::from(sender), replication as u64].map(u64::to_le_bytes);
    Ok([&nonce()?[..], &whose[0], &whose[1]].concat())
}

/// The action tried, with a question where the answer may lie in the network.
fn connecting(address: SocketAddr, error: &io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(number) if number == Errno::MFILE.raw_os_error() => "",
        _ => " (is its address reachable?)",
    };
    format!("connect to another rank at {address}{hint}")
}

/// The streams to other ranks, which listen already, by replication.
fn call(theirs: &[SocketAddr], setup: &Setup<'_>) -> Result<Vec<Greeting>, Halt> {
    let limit = setup.watchdog.limit().max(Duration::from_millis(1));
    let connect = |(replication, address): (usize, &SocketAddr)| {
        let mut stream = TcpStream::connect_timeout(address, limit)
            .map_err(|error| fail(connecting(*address, &error))(error))?;
        let greeted = hello(setup.comm.rank(), replication).and_then(|hello| {
            stream.write_all(&hello)?;
            Greeting::new(stream, hello)
        });
        greeted.map_err(fail("greet"))
    };
    theirs.iter().enumerate().map(connect).collect()
}

/// Streams to other ranks and from others, by replication.
///
/// # Errors
/// A rank cannot be reached, or is none of this run; the watchdog's time is over.
pub(super) fn meet(
    listener: &TcpListener,
    theirs: &[SocketAddr],
    number: u64,
    setup: &Setup<'_>,
) -> Result<[Vec<TcpStream>; 2], Halt> {
    // The kernel completes connections before they are accepted, so that all may connect
    // first. Where one could not, nobody waits for its streams, and all listen until all know.
    let mut out = setup.comm.together(call(theirs, setup), setup.watchdog)?;
    let token = Token::new(number.to_le_bytes().to_vec());
    let nonblocking = listener.set_nonblocking(true);
    nonblocking.map_err(fail("listen without waiting"))?;
    let mut answered: Vec<bool> = vec![false; out.len()];
    let mut found: Vec<Option<TcpStream>> = setup.partners.iter().map(|_| None).collect();
    let mut callers: Vec<Greeting> = Vec::new();
    while answered.contains(&false) || found.iter().any(Option::is_none) {
        setup.watchdog.check()?;
        for (greeting, is_answered) in out.iter_mut().zip(&mut answered) {
            if !*is_answered {
                let met = greeting.answered(&token);
                *is_answered = met.map_err(fail("meet another rank"))?;
            }
        }
        let most = MOST_STRANGERS + found.len();
        if callers.len() >= most && callers[0].since.elapsed() > SILENT {
            callers.remove(0);
        }
        while callers.len() < most {
            match listener.accept() {
                Ok((stream, _)) => callers.extend(Greeting::new(stream, Vec::new()).ok()),
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(fail("accept a stream")(error)),
            }
        }
        let mut still = Vec::new();
        for mut caller in callers.drain(..) {
            match caller.called(&token) {
                Ok(true) => keep(caller, &mut found, setup),
                Ok(false) if caller.since.elapsed() < GREETING => still.push(caller),
                // A stranger.
                Ok(false) | Err(_) => {}
            }
        }
        callers = still;
        std::thread::sleep(Duration::from_millis(1));
    }
    let out = out.into_iter().map(|greeting| greeting.stream).collect();
    Ok([out, found.into_iter().flatten().collect()])
}

/// Keeps a stream at the place of its replication, where it comes from the rank of that.
fn keep(caller: Greeting, found: &mut [Option<TcpStream>], setup: &Setup<'_>) {
    let whose = |of: (usize, u32)| [of.1.into(), of.0 as u64].map(u64::to_le_bytes).concat();
    let senders = setup.partners.iter().map(|partners| partners.from);
    let place = (0..)
        .zip(senders)
        .position(|of| caller.hello[16..] == whose(of));
    if let Some(place) = place {
        found[place] = Some(caller.stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a stream, of which one has called.
    fn pair(listener: &TcpListener, hello: &[u8]) -> [Greeting; 2] {
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.write_all(hello).unwrap();
        let other = listener.accept().unwrap().0;
        let called = Greeting::new(other, Vec::new()).unwrap();
        [Greeting::new(stream, hello.to_vec()).unwrap(), called]
    }

    /// The first that both ends have to say of each other: that both know the token, or why not.
    fn end([out, into]: &mut [Greeting; 2], tokens: [&Token; 2]) -> io::Result<()> {
        let mut met = [false; 2];
        while met != [true; 2] {
            met[0] = met[0] || out.answered(tokens[0])?;
            met[1] = met[1] || into.called(tokens[1])?;
        }
        Ok(())
    }

    #[test]
    fn both_ends_prove_that_they_are_of_this_run_for_each_stream_anew() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let token = Token::new(b"of this run".to_vec());
        let hello = hello(3, 1).unwrap();
        let mut both = pair(&listener, &hello);
        end(&mut both, [&token, &token]).unwrap();
        assert_eq!(both[1].hello, hello);
        let said = both[0].proof(&token, &both[1].nonce, ProvingSide::Client);
        // Who answers with another number, and who calls with one.
        let other = Token::new(b"of another run".to_vec());
        let refused = end(&mut pair(&listener, &hello), [&token, &other]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        let [mut out, mut into] = pair(&listener, &hello);
        out.stream.write_all(&[7; PROOF]).unwrap();
        // The bytes of a stream that was good once.
        let [mut again, mut into_again] = pair(&listener, &hello);
        again.stream.write_all(&said).unwrap();
        for into in [&mut into, &mut into_again] {
            let refused = loop {
                match into.called(&token) {
                    Ok(true) => panic!("a stranger is in"),
                    Ok(false) => {}
                    Err(error) => break error,
                }
            };
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        }
    }
}
