//! A server's greeting, and its account, for fuzz targets.
//!
//! In: bytes that a client sends; steps of a schedule. Out: a panic where a rule is broken.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use weir_schema::RpcPoll;

use super::pending::{PendingClient, Progressed};
use super::start::ServerShared;
use super::{NoMasters, RankSetup, ServerLimits, ServerSetup};
use crate::MemoryAccount;
use crate::account::Charge;
use crate::auth::{Token, proof};
use crate::links::assembly::Assemblies;
use crate::links::{LinkSide, PeerId};
use crate::wire::{Auth, FrameHeader, FrameKind, HEADER, RpcId};

/// Where the server listens, as clients have to call it.
pub const PLACE: &str = "127.0.0.1:1";

/// A server of one rank without threads.
pub struct GreetingServer(ServerShared);

impl GreetingServer {
    /// A server whose clients have to know this token.
    pub fn new(token: Option<Token>) -> Self {
        let rank = RankSetup {
            rank: 0,
            tags: 2,
            addresses: Vec::new(),
        };
        let setup = ServerSetup {
            group: "g".to_owned(),
            ranks: vec![rank],
            pollers: 1,
            cpus: Vec::new(),
            poll: RpcPoll::Busy,
            services: Box::new(|_, _| Vec::new()),
            domain: None,
            limits: ServerLimits::default(),
            token,
            masters: Arc::new(NoMasters),
            log: Box::new(|_| {}),
        };
        Self(ServerShared::new(setup, [0; 16]))
    }

    /// Takes a client's bytes in these pieces; true if it is in. With a `hello` the client proves in the end that
    /// it knows a token, as far as the server has answered that greeting.
    pub fn greet(&self, pieces: &[&[u8]], proves: Option<(&[u8], &Token)>) -> bool {
        let Ok((mut client, server)) = UnixStream::pair() else {
            return false;
        };
        let Ok(address) = format!("tcp://{PLACE}").parse() else {
            return false;
        };
        let Ok(mut pending) = PendingClient::new(server.into(), None, 0, 0, &address) else {
            return false;
        };
        let mut take = |client: &mut UnixStream, bytes: &[u8]| {
            // Who is sent away in mid-sentence sees an error.
            let _ = client.write_all(&bytes[..bytes.len().min(1 << 14)]);
            for _ in 0..5 {
                match pending.go_on(&self.0, |_, _| &[][..]) {
                    Progressed::Waiting => {}
                    Progressed::Refused(_) => return Some(false),
                    Progressed::Done(_) => return Some(true),
                }
            }
            None
        };
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            if let Some(end) = take(&mut client, piece) {
                return end;
            }
        }
        let Some((hello, token)) = proves else {
            return false;
        };
        let _ = client.set_nonblocking(true);
        let mut reply = vec![0; 1 << 16];
        let came = client.read(&mut reply).unwrap_or(0);
        let reply = reply[..came].get(HEADER..).unwrap_or_default();
        let mut body = Vec::new();
        let proof = proof(token, hello, reply, LinkSide::Client);
        Auth { proof }.encode(&mut body);
        take(&mut client, &framed(FrameKind::Auth, &body)) == Some(true)
    }
}

/// A frame of a handshake.
pub fn framed(kind: FrameKind, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&FrameHeader::plain(kind).encode(length, true)[..], body].concat()
}

/// Takes and gives as bytes say, of an account of so many bytes: it is never overdrawn, and has all back in the end.
pub fn account(most: u64, steps: &[u8]) {
    let account = MemoryAccount::new(most);
    let mut charges: Vec<Charge> = (0..4).map(|_| Charge::new(&account)).collect();
    let mut held = [0; 4];
    let mut taken = 0;
    let mut assemblies = Assemblies::new(&account);
    for step in steps.chunks_exact(4) {
        let (at, size) = (
            usize::from(step[1] & 3),
            u16::from_le_bytes([step[2], step[3]]),
        );
        let size = u64::from(size);
        let others: u64 = held.iter().sum::<u64>() + taken;
        match step[0] % 6 {
            0 => {
                let left = account.left();
                let is_taken = account.take(size);
                assert_eq!(is_taken, size <= left);
                taken += size * u64::from(is_taken);
            }
            1 => {
                let back = size.min(taken);
                account.give(back);
                taken -= back;
            }
            2 => {
                let left = account.left();
                let is_now = charges[at].is_now(size);
                assert_eq!(is_now, size <= held[at] || size - held[at] <= left);
                held[at] = if is_now { held[at].max(size) } else { held[at] };
            }
            3 => {
                charges[at].is_at_most(size);
                held[at] = held[at].min(size);
            }
            4 => {
                charges[at] = Charge::new(&account);
                held[at] = 0;
            }
            _ => assemble(&mut assemblies, step),
        }
        let now = held.iter().sum::<u64>() + taken;
        assert!(account.left() + now <= most, "{others} {step:?}");
    }
    drop((charges, assemblies));
    account.give(taken);
    assert_eq!(account.left(), most);
}

/// A fragment of a message, or the end of its connection.
fn assemble(assemblies: &mut Assemblies, step: &[u8]) {
    let peer = PeerId {
        index: u32::from(step[1] >> 2 & 3),
        generation: 1,
    };
    if step[1] >= 0xf0 {
        return assemblies.forget(peer);
    }
    let header = FrameHeader {
        flags: step[1] >> 4,
        rpc: RpcId {
            slot: u32::from(step[1] & 3),
            generation: 1,
        },
        ..FrameHeader::plain(FrameKind::Request)
    };
    let length = usize::from(step[3]) << 2;
    let mut body = vec![step[2]; length + 8];
    body[..8].copy_from_slice(&(u64::from(step[2]) << 4).to_le_bytes());
    if let Ok(Some(whole)) = assemblies.add(peer, &header, &body, 1 << 11) {
        assert!(whole.len() <= 1 << 11);
    }
}
