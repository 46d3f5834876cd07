//! Greetings of both sides, for a fuzz target.
//!
//! In: what the other side says. Out: whether it is in.

use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use weir_schema::{PacketPathWorkload, PathSide};
use weir_sys::Signals;
use weir_sys::token::{GuessLimit, Token};

use super::callers::{Caller, Desk};
use super::{OwnSide, PathPeer};

fn work(side: PathSide, server: SocketAddr) -> PacketPathWorkload {
    let SocketAddr::V4(at) = server else {
        return PacketPathWorkload::default();
    };
    PacketPathWorkload {
        side: Some(side),
        management_port: at.port(),
        addresses: [[127, 0, 0, 1], at.ip().octets()],
        ..PacketPathWorkload::default()
    }
}

fn side(work: &PacketPathWorkload) -> OwnSide<'_> {
    OwnSide {
        work,
        side: work.side.unwrap_or_default(),
        link: "udp",
        hardware_address: None,
    }
}

/// The greeting of a side as it is sent: of a client with the address that it has called.
pub fn greeting(server: SocketAddr, token: Option<&Token>, called: Option<SocketAddr>) -> Vec<u8> {
    let is_client = called.is_some();
    let of = if is_client {
        PathSide::Client
    } else {
        PathSide::Server
    };
    let work = work(of, server);
    side(&work).hello(called, token).unwrap_or_default()
}

/// A server that meets one caller.
pub struct MeetingServer<'a> {
    work: PacketPathWorkload,
    token: Option<&'a Token>,
    caller: Caller,
}

impl<'a> MeetingServer<'a> {
    /// Meets who has called; none where it is gone already.
    pub fn new(stream: TcpStream, token: Option<&'a Token>) -> Option<Self> {
        let work = work(PathSide::Server, stream.local_addr().ok()?);
        let caller = Caller {
            peer: PathPeer::of(stream).ok()?,
            since: Instant::now(),
            greeted: None,
        };
        Some(Self {
            work,
            token,
            caller,
        })
    }

    /// Hears what has come; whether the caller is its client by now, or none.
    pub fn hear(&mut self) -> Option<bool> {
        let own = side(&self.work);
        let mut desk = Desk {
            own: &own,
            token: self.token,
            guesses: GuessLimit::default(),
        };
        match desk.progress(&mut self.caller) {
            Ok(None) => None,
            Ok(Some(_)) => Some(true),
            Err(_) => Some(false),
        }
    }
}

/// Calls a server, whatever that is; true if it is one that knows the token, or wants none like this side.
pub fn is_server(at: SocketAddr, token: Option<&Token>) -> bool {
    let work = work(PathSide::Client, at);
    PathPeer::greet(&side(&work), token, &Signals::default()).is_ok()
}
