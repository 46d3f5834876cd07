//! Making a connection: preamble, HELLO, proof of the token.
//!
//! In: whom to call, and who calls. Out: a connection whose handshake is done, or why there is
//! none. It blocks, at most for the time given: no thread calls it while it measures.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use weir_schema::RpcEndpoint;
use weir_sys::interface::InterfaceAddress;

use super::control::ControlStream;
use crate::auth::{Token, nonce, proof, same};
use crate::group::address::RpcAddress;
use crate::group::boot::boot;
use crate::links::socket::IsOver;
use crate::links::{LinkGreeting, LinkSide, NewPeer};
use crate::wire::{
    Auth, ClientHello, FrameHeader, FrameKind, HelloReply, MAJOR, MAX_FRAME, MINOR, Preamble,
    features,
};
use crate::{DerCode, RpcError};

/// Whom to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEndpoint {
    /// Its rank in the group, and its tag.
    pub endpoint: RpcEndpoint,
    /// Where the rank listens.
    pub address: RpcAddress,
    /// The run of the server that is meant, where that is known.
    pub nonce: Option<[u8; 16]>,
}

/// Setup that all connections of a client share.
#[derive(Clone, Debug)]
pub struct DialSetup {
    /// The group that the servers have to be of.
    pub group: String,
    /// Proof that this client is allowed.
    pub token: Option<Token>,
    /// Addresses of this machine that connections come from; empty: as the kernel has it.
    pub from: Vec<InterfaceAddress>,
    /// Limit of connecting and the handshake.
    pub within: Duration,
}

/// Connects and makes the handshake for calls; given up once `is_over`.
///
/// # Errors
/// Nobody listens, the version is another, group, rank or tag are not there, the token is wrong.
pub fn dial(
    setup: &DialSetup,
    endpoint: &ServerEndpoint,
    greeting: LinkGreeting,
    is_over: IsOver<'_>,
) -> Result<(NewPeer, HelloReply), RpcError> {
    let (control, reply) = open_control(setup, endpoint, greeting, is_over)?;
    let (stream, early) = control.into_parts();
    let peer = NewPeer {
        side: LinkSide::Client,
        stream,
        early,
        max_frame: reply.max_frame,
        features: reply.features,
        greeting: LinkGreeting {
            address: reply.address.clone(),
            passed: Vec::new(),
        },
    };
    Ok((peer, reply))
}

/// Result of a connection that was tried on a thread of its own, by its number.
pub(super) type Dialled = (u32, Result<(NewPeer, HelloReply), RpcError>);

/// The same on a thread of its own; none where it cannot be started.
pub(super) fn dial_aside(
    setup: DialSetup,
    connection: u32,
    endpoint: ServerEndpoint,
    greeting: LinkGreeting,
) -> Option<Receiver<Dialled>> {
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("weir-reconnect".to_owned());
    let run = move || {
        // Nobody may be waiting any more.
        let _ = sender.send((connection, dial(&setup, &endpoint, greeting, &|| false)));
    };
    thread.spawn(run).ok().map(|_| receiver)
}

/// Connects and makes the handshake, for a stream with blocking calls; given up once `is_over`.
///
/// # Errors
/// As [`dial`].
pub fn open_control(
    setup: &DialSetup,
    endpoint: &ServerEndpoint,
    greeting: LinkGreeting,
    is_over: IsOver<'_>,
) -> Result<(ControlStream, HelloReply), RpcError> {
    let to = endpoint.endpoint;
    let named = |error: RpcError| RpcError {
        message: format!(
            "rank {} tag {} at {}: {}",
            to.rank, to.tag, endpoint.address, error.message
        )
        .into(),
        ..error
    };
    shake_hands(setup, endpoint, greeting, is_over).map_err(named)
}

fn shake_hands(
    setup: &DialSetup,
    endpoint: &ServerEndpoint,
    greeting: LinkGreeting,
    is_over: IsOver<'_>,
) -> Result<(ControlStream, HelloReply), RpcError> {
    let until = Instant::now() + setup.within;
    let mut control =
        ControlStream::connect(&endpoint.address, &setup.from, setup.within, is_over)?;
    let hello = ClientHello {
        nonce: nonce().map_err(RpcError::io("a number for the greeting"))?,
        called: control.called(&endpoint.address),
        group: setup.group.clone(),
        rank: endpoint.endpoint.rank,
        tag: endpoint.endpoint.tag,
        transports: endpoint.address.scheme.clone(),
        features: features::ALL,
        max_frame: MAX_FRAME,
        process: std::process::id(),
        boot: boot(),
        address: greeting.address,
    };
    let preamble = Preamble {
        major: MAJOR,
        minor: MINOR,
        flags: 0,
    };
    let mut hello_body = Vec::new();
    hello.encode(&mut hello_body);
    let length = u32::try_from(hello_body.len()).unwrap_or(u32::MAX);
    let mut first = preamble.encode().to_vec();
    first.extend_from_slice(&FrameHeader::plain(FrameKind::Hello).encode(length, true));
    first.extend_from_slice(&hello_body);
    let written = control.write(&first, &greeting.passed);
    // A full server answers without reading: its reply is read before a failed write counts.
    let body = expect(&mut control, FrameKind::HelloAck, (until, is_over))?;
    written?;
    let reply = HelloReply::decode(&body)?;
    if endpoint.nonce.is_some_and(|known| known != reply.run) {
        return Err(RpcError::new(
            DerCode::Unreachable,
            "another server listens there than the group table says (a stale entry?)",
        ));
    }
    let token = setup.token.as_ref();
    let greetings = (&hello_body[..], &body[..]);
    authenticate(
        &mut control,
        (token, reply.authenticate),
        greetings,
        (until, is_over),
    )?;
    control.set_max_frame(reply.max_frame);
    Ok((control, reply))
}

fn authenticate(
    control: &mut ControlStream,
    tokens: (Option<&Token>, bool),
    (hello, reply): (&[u8], &[u8]),
    patience: (Instant, IsOver<'_>),
) -> Result<(), RpcError> {
    let failed = |why| {
        RpcError::new(
            DerCode::NoPermission,
            format!("authentication failed: {why}"),
        )
    };
    let token = match tokens {
        (None, false) => return Ok(()),
        (None, true) => {
            return Err(failed(
                "the server asks for a token, and no file of one was named (--token-file)",
            ));
        }
        (Some(_), false) => return Err(failed("the server does not know any token")),
        (Some(token), true) => token,
    };
    let own = proof(token, hello, reply, LinkSide::Client);
    let mut body = Vec::new();
    Auth { proof: own }.encode(&mut body);
    control.send(&FrameHeader::plain(FrameKind::Auth), &body)?;
    let theirs = Auth::decode(&expect(control, FrameKind::Auth, patience)?)?;
    let right = proof(token, hello, reply, LinkSide::Server);
    if same(&right, &theirs.proof) {
        Ok(())
    } else {
        Err(failed("the server has another token"))
    }
}

fn expect(
    control: &mut ControlStream,
    kind: FrameKind,
    (until, is_over): (Instant, IsOver<'_>),
) -> Result<Vec<u8>, RpcError> {
    let left = until.saturating_duration_since(Instant::now());
    match control.receive_unless(left, is_over)? {
        Some((header, body)) if header.kind == kind => Ok(body),
        Some((header, body)) if header.kind == FrameKind::Error => {
            Err(RpcError::said(header.word, &body))
        }
        Some(_) => Err(RpcError::protocol("the server answered something else")),
        None => Err(RpcError::new(
            DerCode::TimedOut,
            "the server did not answer in time",
        )),
    }
}
