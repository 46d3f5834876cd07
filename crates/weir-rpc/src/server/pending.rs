//! A connection in its handshake, at the server.
//!
//! In: what a client sends, byte by byte if it likes. Out: a connection for a poller, or why not.
//! Nothing here waits.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use weir_sys::socket::{receive_with_descriptors, set_user_timeout};

use super::connections::SourceAddress;
use super::inbox::Arrival;
use super::start::{RankSetup, ServerShared};
use crate::auth::{Token, nonce, proof, same};
use crate::group::address::RpcAddress;
use crate::group::boot::boot;
use crate::links::socket;
use crate::links::{LinkGreeting, LinkSide, NewPeer};
use crate::wire::{
    Auth, ClientHello, FrameHeader, FrameKind, HEADER, HelloReply, MAJOR, MAX_FRAME, MINOR,
    PREAMBLE, Preamble, PreambleReply, features,
};
use crate::{DerCode, RpcError};

/// Longest frame of a handshake.
const LONGEST: usize = 4096;

enum HandshakeStage {
    Preamble,
    Hello,
    /// The server waits for the proof.
    Proof(Box<Accepted>),
}

/// Settlement by HELLO.
pub(super) struct Accepted {
    tag: usize,
    hello: ClientHello,
    reply: HelloReply,
    /// Both greetings as bytes, of which proofs are.
    greetings: [Vec<u8>; 2],
}

impl Accepted {
    fn proof(&self, token: &Token, side: LinkSide) -> [u8; 32] {
        let [hello, reply] = &self.greetings;
        proof(token, hello, reply, side)
    }
}

/// Progress of a handshake.
pub(super) enum Progressed {
    /// More has to come.
    Waiting,
    /// It is over. The reason is for the log.
    Refused(&'static str),
    /// The connection can be handed over.
    Done(Box<Accepted>),
}

/// A connection in its handshake.
pub(super) struct PendingClient {
    stream: OwnedFd,
    source: SourceAddress,
    since: Instant,
    input: Vec<u8>,
    stage: HandshakeStage,
    link: usize,
    rank: u32,
    scheme: String,
    /// Where the listener is, behind the scheme.
    place: String,
    passed: Vec<OwnedFd>,
}

impl PendingClient {
    pub(super) fn new(
        stream: OwnedFd,
        source: SourceAddress,
        link: usize,
        rank: u32,
        address: &RpcAddress,
    ) -> Result<Self, RpcError> {
        socket::prepare(&stream)?;
        Ok(Self {
            stream,
            source,
            since: Instant::now(),
            input: Vec::new(),
            stage: HandshakeStage::Preamble,
            link,
            rank,
            scheme: address.scheme.clone(),
            place: address.place.clone(),
            passed: Vec::new(),
        })
    }

    pub(super) fn source(&self) -> SourceAddress {
        self.source
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Moment at which it came.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    pub(super) fn is_late(&self, shared: &ServerShared) -> bool {
        self.since.elapsed() > shared.setup.limits.handshake
    }

    /// Reads what there is and answers it. `address_of` gives the address of a tag's link.
    pub(super) fn go_on<'a>(
        &mut self,
        shared: &ServerShared,
        address_of: impl Fn(usize, usize) -> &'a [u8],
    ) -> Progressed {
        let mut bytes = [0; LONGEST];
        // No more than the handshake needs, so that little has to be handed over.
        let room = LONGEST.saturating_sub(self.input.len());
        let came = if self.scheme == "shm" {
            receive_with_descriptors(&self.stream, &mut bytes[..room], &mut self.passed)
        } else {
            recv(self.fd(), &mut bytes[..room], RecvFlags::DONTWAIT).map(|(_, came)| came)
        };
        match came {
            Ok(0) => return Progressed::Refused("a client left in its handshake"),
            Ok(came) => self.input.extend_from_slice(&bytes[..came]),
            Err(Errno::AGAIN | Errno::INTR) => return Progressed::Waiting,
            Err(_) => return Progressed::Refused("a client was lost in its handshake"),
        }
        loop {
            let before = self.input.len();
            let done = match self.stage {
                HandshakeStage::Preamble => self.preamble(shared),
                HandshakeStage::Hello | HandshakeStage::Proof(_) => self.frame(shared, &address_of),
            };
            match done {
                Progressed::Waiting if self.input.len() < before => {}
                done => return done,
            }
        }
    }

    fn preamble(&mut self, shared: &ServerShared) -> Progressed {
        let Some(bytes) = self.input.first_chunk::<PREAMBLE>() else {
            return Progressed::Waiting;
        };
        let Ok(preamble) = Preamble::decode(bytes) else {
            shared.counters.bad_preambles.fetch_add(1, Relaxed);
            return Progressed::Refused("a client spoke another language");
        };
        if preamble.major != MAJOR {
            let reply = PreambleReply {
                major: MAJOR,
                minor: MINOR,
                reason: 1,
            };
            write(&self.stream, &reply.encode());
            return Progressed::Refused("a client had another version");
        }
        self.input.drain(..PREAMBLE);
        self.stage = HandshakeStage::Hello;
        Progressed::Waiting
    }

    fn frame<'a>(
        &mut self,
        shared: &ServerShared,
        address_of: &impl Fn(usize, usize) -> &'a [u8],
    ) -> Progressed {
        let Some(bytes) = self.input.first_chunk::<HEADER>() else {
            return Progressed::Waiting;
        };
        let (header, length) = match FrameHeader::decode(bytes, true) {
            Ok((header, length)) if length as usize <= LONGEST - HEADER => {
                (header, length as usize)
            }
            _ => return Progressed::Refused("a client sent a broken handshake"),
        };
        if self.input.len() < HEADER + length {
            return Progressed::Waiting;
        }
        let body: Vec<u8> = self.input.drain(..HEADER + length).skip(HEADER).collect();
        let stage = std::mem::replace(&mut self.stage, HandshakeStage::Hello);
        match (stage, header.kind) {
            (HandshakeStage::Hello, FrameKind::Hello) => {
                match self.hello(shared, &body, address_of) {
                    Ok(accepted) => self.accept(shared, Box::new(accepted)),
                    Err(error) => {
                        self.refuse(shared, &error, "a client asked for what is not here")
                    }
                }
            }
            (HandshakeStage::Proof(accepted), FrameKind::Auth) => {
                // Others of this address may have tried since its HELLO.
                if !shared.connections.may_prove(self.source) {
                    return self.refuse_guess(shared);
                }
                if !is_proof(shared, &accepted, &body) {
                    shared.connections.wrong_proof(self.source);
                    let error = RpcError::new(DerCode::NoPermission, "authentication failed");
                    return self.refuse(shared, &error, "authentication failed");
                }
                self.prove(shared, &accepted);
                Progressed::Done(accepted)
            }
            _ => Progressed::Refused("a client sent something else than a handshake"),
        }
    }

    fn hello<'a>(
        &self,
        shared: &ServerShared,
        body: &[u8],
        address_of: &impl Fn(usize, usize) -> &'a [u8],
    ) -> Result<Accepted, RpcError> {
        let hello = ClientHello::decode(body)?;
        let missing = |what: String| Err(RpcError::new(DerCode::NotThere, what));
        if hello.group != shared.setup.group {
            return missing(format!(
                "this is group `{}`, not `{}`",
                shared.setup.group, hello.group
            ));
        }
        let rank = shared.setup.ranks.iter().find(|one| one.rank == hello.rank);
        let Some(&RankSetup { tags, .. }) = rank else {
            return missing(format!(
                "there is no rank {} here, but {}",
                hello.rank, self.rank
            ));
        };
        let Some(tag) = shared.tag_number(hello.rank, hello.tag) else {
            return missing(format!(
                "rank {} has tags 0 to {}, not {}",
                hello.rank,
                tags.saturating_sub(1),
                hello.tag
            ));
        };
        if !hello.transports.split(',').any(|name| name == self.scheme) {
            return missing(format!("this address is one of {}", self.scheme));
        }
        if self.scheme == "shm" && hello.boot != boot() {
            return missing("shared memory does not reach another machine".to_owned());
        }
        if shared.setup.token.is_some() {
            self.check_called(&hello)?;
        }
        let reply = HelloReply {
            nonce: nonce().map_err(RpcError::io("a number for the greeting"))?,
            run: shared.run,
            rank: hello.rank,
            tags,
            features: hello.features & features::ALL,
            max_frame: hello.max_frame.min(MAX_FRAME),
            max_message: shared.setup.limits.max_message,
            credits: shared.setup.limits.credits,
            authenticate: shared.setup.token.is_some(),
            transport: self.scheme.clone(),
            address: address_of(tag, self.link).to_vec(),
        };
        let mut said = Vec::new();
        reply.encode(&mut said);
        Ok(Accepted {
            tag,
            hello,
            reply,
            greetings: [body.to_vec(), said],
        })
    }

    /// # Errors
    /// The client has called another address, from which somebody may have passed its greeting on.
    fn check_called(&self, hello: &ClientHello) -> Result<(), RpcError> {
        let own = socket::near_end(&self.stream).map(|at| at.to_string());
        let own = own.as_ref().unwrap_or(&self.place);
        if *own == hello.called {
            return Ok(());
        }
        let why = format!(
            "you have called {}, and this server was reached at {own}: with a token no other program may \
             stand between",
            hello.called
        );
        Err(RpcError::new(DerCode::NoPermission, why))
    }

    fn accept(&mut self, shared: &ServerShared, accepted: Box<Accepted>) -> Progressed {
        if accepted.reply.authenticate && !shared.connections.may_prove(self.source) {
            return self.refuse_guess(shared);
        }
        write_frame(&self.stream, FrameKind::HelloAck, 0, &accepted.greetings[1]);
        if accepted.reply.authenticate {
            self.stage = HandshakeStage::Proof(accepted);
            return Progressed::Waiting;
        }
        Progressed::Done(accepted)
    }

    /// The client wants to know as well whom it talks to.
    fn prove(&self, shared: &ServerShared, accepted: &Accepted) {
        if let Some(token) = &shared.setup.token {
            let own = accepted.proof(token, LinkSide::Server);
            let mut body = Vec::new();
            Auth { proof: own }.encode(&mut body);
            write_frame(&self.stream, FrameKind::Auth, 0, &body);
        }
    }

    /// The connection for a poller; its tag is the number over all ranks. Who takes nothing of what is
    /// sent for as long as half a frame may lie is gone, even where no end of it can be seen.
    pub(super) fn hand_over(self, accepted: Accepted, half_frame: Duration) -> Arrival {
        set_user_timeout(&self.stream, half_frame);
        let peer = NewPeer {
            side: LinkSide::Server,
            stream: self.stream,
            early: self.input,
            max_frame: accepted.reply.max_frame,
            features: accepted.reply.features,
            greeting: LinkGreeting {
                address: accepted.hello.address,
                passed: self.passed,
            },
        };
        Arrival {
            link: self.link,
            peer,
            tag: accepted.tag,
            source: self.source,
        }
    }

    fn refuse_guess(&self, shared: &ServerShared) -> Progressed {
        let error = RpcError::new(DerCode::Busy, "too many wrong proofs, try again later");
        self.refuse(shared, &error, "too many wrong proofs")
    }

    fn refuse(&self, shared: &ServerShared, error: &RpcError, why: &'static str) -> Progressed {
        shared.counters.refused.fetch_add(1, Relaxed);
        write_error(&self.stream, error);
        Progressed::Refused(why)
    }
}

/// Sends a client the reason why it cannot stay.
pub(super) fn write_error(stream: &OwnedFd, error: &RpcError) {
    let body = error.message.as_bytes();
    write_frame(stream, FrameKind::Error, error.code.to_status(), body);
}

fn write_frame(stream: &OwnedFd, kind: FrameKind, word: u16, body: &[u8]) {
    let header = FrameHeader::plain(kind).with_word(word);
    let length = u32::try_from(body.len()).unwrap_or(0);
    let mut frame = header.encode(length, true).to_vec();
    frame.extend_from_slice(body);
    write(stream, &frame);
}

/// An empty socket takes the few bytes of a handshake; where it does not, the client is lost.
fn write(stream: &OwnedFd, bytes: &[u8]) {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = send(stream, bytes, flags);
}

fn is_proof(shared: &ServerShared, accepted: &Accepted, body: &[u8]) -> bool {
    let (Some(token), Ok(auth)) = (&shared.setup.token, Auth::decode(body)) else {
        return false;
    };
    same(&accepted.proof(token, LinkSide::Client), &auth.proof)
}
