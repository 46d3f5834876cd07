//! Slow tests: a thousand peers at once.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;
use weir_rpc::wire::{
    ClientHello, FrameHeader, FrameKind, HEADER, MAX_FRAME, OpenReply, OpenRequest, PREAMBLE,
    Preamble, features, flag,
};
use weir_schema::RpcPayloadKind::Inline;

use super::*;
use crate::faults::{adds_up, count, endless};
use crate::servers::masters;

/// Peers at once.
const PEERS: u32 = 1024;
/// Length that some of them announce.
const GIGABYTE: u32 = 1 << 30;

/// The first bytes of a proper client.
fn opening(place: &str) -> Vec<u8> {
    let hello = ClientHello {
        nonce: [7; 16],
        rank: 0,
        tag: 0,
        features: features::ALL,
        max_frame: MAX_FRAME,
        process: 1,
        boot: 0,
        group: "daos_server".to_owned(),
        transports: "tcp".to_owned(),
        address: Vec::new(),
        called: place.to_owned(),
    };
    let mut body = Vec::new();
    hello.encode(&mut body);
    let preamble = Preamble {
        major: 1,
        minor: 0,
        flags: 0,
    };
    let length = u32::try_from(body.len()).unwrap();
    let header = FrameHeader::plain(FrameKind::Hello).encode(length, true);
    [&preamble.encode()[..], &header, &body].concat()
}

/// Bytes that follow from a number, and no language.
fn noise(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// Sends as much as goes out at once: nobody waits for a server that reads no more.
fn pour(mut stream: &TcpStream, bytes: &[u8]) {
    stream.set_nonblocking(true).unwrap();
    let mut rest = bytes;
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(sent) => rest = &rest[sent..],
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            // The server takes no more for now, or has hung up.
            Err(_) => return,
        }
    }
}

/// A frame's bytes, whose body may be another than it says.
fn frame(header: &FrameHeader, length: u32, body: &[u8]) -> Vec<u8> {
    [&header.encode(length, true)[..], body].concat()
}

/// The next frame of a stream that waits.
fn read_frame(mut stream: &TcpStream) -> (FrameHeader, Vec<u8>) {
    let mut head = [0; HEADER];
    stream.read_exact(&mut head).unwrap();
    let (header, length) = FrameHeader::decode(&head, true).unwrap();
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).unwrap();
    (header, body)
}

/// A connection whose handshake was in order, and its session, where that is granted.
fn greeted(place: &str, opening: &[u8]) -> (TcpStream, u32) {
    let mut stream = TcpStream::connect(place).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let reply = OpenRequest {
        reply_kind: Inline,
        reply_size: 8191,
        ..asked()
    };
    let mut body = Vec::new();
    reply.encode(&mut body);
    let length = u32::try_from(body.len()).unwrap();
    let open = frame(&FrameHeader::plain(FrameKind::Open), length, &body);
    stream.write_all(&[opening, &open].concat()).unwrap();
    let opened = loop {
        let (header, body) = read_frame(&stream);
        if header.kind == FrameKind::OpenAck {
            break (header.word == 0).then_some(body);
        }
    };
    let session = opened.map_or(0, |body| OpenReply::decode(&body).unwrap().session);
    (stream, session)
}

/// A hostile peer of a kind that follows from its number; it stays as long as what is returned.
fn hostile(place: &str, opening: &[u8], number: u32) -> TcpStream {
    let at = number as usize;
    let raw = |bytes: &[u8]| {
        let stream = TcpStream::connect(place).unwrap();
        pour(&stream, bytes);
        stream
    };
    // The kernel holds what the server does not take, for a thousand of them.
    let data = vec![0; 600_000];
    let part = |kind, flags| FrameHeader {
        flags,
        ..FrameHeader::plain(kind)
    };
    let after_greeting = |bytes: &dyn Fn(u32) -> Vec<u8>| {
        let (stream, session) = greeted(place, opening);
        pour(&stream, &bytes(session));
        stream
    };
    match number % 10 {
        0 => raw(&[]),
        1 => raw(&noise(number, 5000)),
        2 => raw(&opening[..at % opening.len()]),
        3 => {
            let mut mutated = opening.to_vec();
            mutated[at % opening.len()] ^= 1 << (number % 8);
            raw(&mutated)
        }
        4 => {
            let announced = FrameHeader::plain(FrameKind::Hello);
            raw(&[
                &opening[..PREAMBLE],
                &frame(&announced, GIGABYTE, &data[..60_000]),
            ]
            .concat())
        }
        5 => after_greeting(&|session| frame(&call(session, 0, 1), GIGABYTE, &data[..60_000])),
        6 => after_greeting(&|_| {
            let body = [&u64::from(GIGABYTE).to_le_bytes()[..], &data[..50_000]].concat();
            frame(&part(FrameKind::Request, flag::MORE), 50_008, &body)
        }),
        // All but the end of a long body, of a long frame.
        7 => after_greeting(&|_| {
            let order = part(FrameKind::Start, flag::MORE);
            let body = [&(60_u64 << 20).to_le_bytes()[..], &data[..60_000]].concat();
            frame(&order, 60_008, &body)
        }),
        8 => after_greeting(&|_| frame(&part(FrameKind::Start, 0), MAX_FRAME, &data)),
        // Answers that it never reads.
        _ => after_greeting(&|session| {
            let calls = (0..2000).map(|slot| frame(&call(session, slot, 1), 0, &[]));
            calls.flatten().collect()
        }),
    }
}

#[test]
fn a_thousand_hostile_peers_harm_no_call_and_leave_nothing() {
    weir_sys::limits::raise_open_files();
    let stage = Stage::new();
    let limited = limited(&stage);
    let server = &limited.0;
    let alone = server.descriptors();
    let client = endless(&stage, "-e 0:0 -s 'i100 i100' -i 4");
    until("the client calls", || server.descriptors() > alone);
    let place = server.address.strip_prefix("tcp://").unwrap();
    let opening = opening(place);
    let all = (0..PEERS).map(|number| hostile(place, &opening, number));
    let all: Vec<TcpStream> = all.collect();
    serves_others(&stage);
    is_within(&limited);
    drop(all);
    client.signal(Signal::INT);
    let said = client.end().code(130);
    let master = &masters(&said)[0][0];
    adds_up(master);
    let endpoint = &master["endpoints"][0];
    assert!(count(endpoint, "succeeded") > 0, "{endpoint}");
    assert_eq!(endpoint["failed"].as_object().unwrap().len(), 0, "{said}");
    until("all that they held comes back", || {
        server.descriptors() == alone
    });
    serves_others(&stage);
    is_within(&limited);
}

#[test]
fn buffers_are_charged_with_the_pages_that_they_take() {
    let stage = Stage::new();
    let limited = limited(&stage);
    let mut control = connect(&limited.0);
    let tiny = OpenRequest {
        reply_kind: Inline,
        reply_size: 1,
        buffers: 400_000,
        ..asked()
    };
    assert_eq!(open(&mut control, &tiny), None);
    let some = OpenRequest {
        buffers: 40_000,
        ..tiny
    };
    assert!(open(&mut control, &some).is_some());
    serves_others(&stage);
    // Longer than half of a huge page by a byte.
    let mut long = connect(&limited.0);
    let each = OpenRequest {
        reply_kind: Bulk,
        reply_size: (1 << 20) + 1,
        ..asked()
    };
    drop(control);
    let mut sessions = 0;
    until("memory comes back", || {
        sessions += u32::from(open(&mut long, &each).is_some());
        sessions >= 8
    });
    while open(&mut long, &each).is_some() {
        sessions += 1;
    }
    assert!(sessions <= 16, "{sessions}");
    is_within(&limited);
}
