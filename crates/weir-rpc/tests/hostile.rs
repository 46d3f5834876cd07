//! Peers that are broken or mean: each loses its own connection, and nobody else notices.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use weir_schema::RpcServiceTime;

use crate::testbed::raw::{bulk_call, bulk_session, described, greeted, header, next, open};
use crate::testbed::{client, client_setup, endpoints, gives_back, payload, run, server_setup};
use weir_rpc::DerCode;
use weir_rpc::auth::{Token, proof};
use weir_rpc::client::{ControlStream, RpcClient};
use weir_rpc::links::LinkSide;
use weir_rpc::links::stream::StreamLink;
use weir_rpc::server::RpcServer;
use weir_rpc::transport::RpcTransport;
use weir_rpc::wire::{
    BulkAccess, ClientHello, FrameHeader, FrameKind, HEADER, HelloReply, MAX_FRAME, MIN_FRAME,
    OpenReply, OpenRequest, PREAMBLE, Preamble, PreambleReply, features,
};
use weir_schema::RpcPayloadKind::{Bulk, Empty, Inline};

fn start() -> RpcServer {
    RpcServer::start(server_setup(1, RpcServiceTime::None)).unwrap()
}

fn raw(server: &RpcServer) -> TcpStream {
    let stream = TcpStream::connect(&server.addresses()[0].1.place).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream
}

/// Reads until the server closes.
fn closes(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset is as good as an end.
    if let Err(error) = stream.read_to_end(&mut rest) {
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "still open");
    }
}

/// The server says that the protocol was broken, and closes.
fn is_refused(control: &mut ControlStream) {
    let until = Instant::now() + Duration::from_secs(10);
    let mut is_said = false;
    while Instant::now() < until {
        match control.receive(Duration::from_millis(100)) {
            Ok(Some((header, _))) if header.kind == FrameKind::Error => {
                assert_eq!(DerCode::from_status(header.word), DerCode::Protocol);
                is_said = true;
            }
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.code, DerCode::Unreachable);
                assert!(is_said, "it closed without a word");
                return;
            }
        }
    }
    panic!("the connection is still open");
}

fn still_serves(server: &RpcServer) {
    let mut client = client(client_setup(
        endpoints(server, 1),
        payload((Bulk, 5000), (Inline, 10)),
    ));
    assert_eq!(run(&mut client, 16, 1, 100).good, 100);
    client.close().unwrap();
}

#[test]
fn other_languages_are_hung_up_on_while_calls_go_on() {
    let server = start();
    let mut calling = client(client_setup(
        endpoints(&server, 1),
        payload((Inline, 9), (Empty, 0)),
    ));
    let noise: Vec<u8> = (0..1 << 20_u32)
        .map(|i: u32| i.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let openings: [&[u8]; 4] = [
        &noise,
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03xxxxxxx",
    ];
    for opening in openings {
        let mut stream = raw(&server);
        // The server may close before it has read everything.
        let _ = stream.write_all(opening);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        closes(&mut stream);
        assert_eq!(run(&mut calling, 16, 1, 500).good, 500);
    }
    assert!(server.counters().bad_preambles.load(Relaxed) >= 3);
}

#[test]
fn who_does_not_finish_a_handshake_makes_room_for_others() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.limits.handshake = Duration::from_millis(300);
    setup.limits.pending = 8;
    let server = RpcServer::start(setup).unwrap();
    let preamble = Preamble {
        major: 1,
        minor: 0,
        flags: 0,
    };
    let opening = [
        &preamble.encode()[..],
        &header(FrameKind::Hello).encode(100, true),
        b"half",
    ]
    .concat();
    // More than may be in their handshake at once, each silent from another byte on.
    let mut silent: Vec<_> = (0..=opening.len()).map(|_| raw(&server)).collect();
    for (length, stream) in silent.iter_mut().enumerate() {
        stream.write_all(&opening[..length]).unwrap();
    }
    still_serves(&server);
    silent.iter_mut().for_each(closes);
    until("connections end", || {
        server.counters().connections.load(Relaxed) == 0
    });
}

#[test]
fn another_version_is_told_ours() {
    let server = start();
    let mut stream = raw(&server);
    let preamble = Preamble {
        major: 2,
        minor: 3,
        flags: 0,
    };
    stream.write_all(&preamble.encode()).unwrap();
    let mut answer = [0; PREAMBLE];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer[8..14], &[1, 0, 0, 0, 1, 0]);
    closes(&mut stream);
}

#[test]
fn a_client_names_both_versions_where_they_do_not_fit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let reply = PreambleReply {
            major: 2,
            minor: 3,
            reason: 1,
        };
        stream.read_exact(&mut [0; PREAMBLE]).unwrap();
        stream.write_all(&reply.encode()).unwrap();
    });
    let real = start();
    let mut setup = client_setup(endpoints(&real, 1), payload((Empty, 0), (Empty, 0)));
    setup.endpoints[0].address = format!("tcp://{address}").parse().unwrap();
    let error = RpcClient::attach(StreamLink::new().unwrap(), setup)
        .map(|_| ())
        .unwrap_err();
    assert!(
        error
            .message
            .contains("version mismatch: local 1.0, remote 2.3"),
        "{error}"
    );
    server.join().unwrap();
}

#[test]
fn a_frame_that_breaks_a_rule_ends_its_connection() {
    let server = start();
    let memory = server.memory_left();
    let good = header(FrameKind::Ping).encode(8, true);
    let mut too_long = header(FrameKind::Request).encode(u32::MAX, true);
    let mut bad_sum = good;
    bad_sum[20] ^= 1;
    let mut unknown = good;
    unknown[4] = 0x77;
    for frame in [&mut too_long, &mut bad_sum, &mut unknown] {
        let mut control = greeted(&server);
        control.send_raw(frame).unwrap();
        is_refused(&mut control);
    }
    for kind in [
        FrameKind::Hello,
        FrameKind::Response,
        FrameKind::BulkPush,
        FrameKind::OpenAck,
    ] {
        let mut control = greeted(&server);
        control.send(&header(kind), &[]).unwrap();
        is_refused(&mut control);
    }
    gives_back(&server, memory);
    still_serves(&server);
}

#[test]
fn a_session_belongs_to_its_connection_and_its_credits_are_kept() {
    let server = start();
    let mut owner = greeted(&server);
    let session = open(&mut owner, &bulk_session()).unwrap().session;
    let mut thief = greeted(&server);
    let body = described(1 << 20, BulkAccess::READ);
    thief.send(&bulk_call(session, 0), &body).unwrap();
    is_refused(&mut thief);
    // One credit: the second call while the first waits for its data is one too many.
    owner.send(&bulk_call(session, 0), &body).unwrap();
    owner.send(&bulk_call(session, 1), &body).unwrap();
    is_refused(&mut owner);
    still_serves(&server);
}

#[test]
fn data_outside_their_descriptor_and_payloads_beyond_the_session_are_refused() {
    let server = start();
    let mut control = greeted(&server);
    let session = open(&mut control, &bulk_session()).unwrap().session;
    let call = bulk_call(session, 0);
    let body = described(1 << 20, BulkAccess::READ);
    control.send(&call, &body).unwrap();
    let mut data = ((1_u64 << 20) - 1).to_le_bytes().to_vec();
    data.extend_from_slice(b"two");
    control
        .send(
            &FrameHeader {
                session,
                rpc: call.rpc,
                ..header(FrameKind::BulkData)
            },
            &data,
        )
        .unwrap();
    is_refused(&mut control);
    let mut control = greeted(&server);
    let asked = OpenRequest {
        send_size: 10,
        send_kind: Inline,
        ..bulk_session()
    };
    let session = open(&mut control, &asked).unwrap().session;
    let call = FrameHeader {
        word: 2,
        flags: 0,
        ..bulk_call(session, 0)
    };
    control.send(&call, &[0; 11]).unwrap();
    is_refused(&mut control);
}

#[test]
fn a_descriptor_that_is_too_small_fails_its_call_alone() {
    let server = start();
    let mut control = greeted(&server);
    let session = open(&mut control, &bulk_session()).unwrap().session;
    for access in [BulkAccess::READ, BulkAccess::WRITE] {
        let body = described(100, access);
        control.send(&bulk_call(session, 0), &body).unwrap();
        let (answer, _) = next(&mut control);
        assert_eq!(answer.kind, FrameKind::Response);
        assert_eq!(DerCode::from_status(answer.word), DerCode::Invalid);
    }
}

#[test]
fn a_session_that_asks_for_the_world_gets_no_memory() {
    let server = start();
    let mut control = greeted(&server);
    let asked = OpenRequest {
        send_size: u32::MAX,
        buffers: 65_536,
        ..bulk_session()
    };
    let before = server.memory_left();
    assert_eq!(
        open(&mut control, &asked).unwrap_err().code,
        DerCode::NoMemory
    );
    assert_eq!(server.memory_left(), before);
    let asked = OpenRequest {
        service: "nothing".to_owned(),
        ..bulk_session()
    };
    let refused = open(&mut control, &asked).unwrap_err();
    assert_eq!(refused.code, DerCode::NoService);
    assert!(refused.message.contains("selftest"), "{refused}");
}

#[test]
fn closing_a_session_twice_is_answered_twice_and_gives_back_its_memory() {
    let server = start();
    let before = server.memory_left();
    let mut control = greeted(&server);
    let session = open(&mut control, &bulk_session()).unwrap().session;
    assert!(server.memory_left() < before);
    for _ in 0..2 {
        control
            .send(
                &FrameHeader {
                    session,
                    ..header(FrameKind::Close)
                },
                &[],
            )
            .unwrap();
        let (answer, _) = next(&mut control);
        assert_eq!(
            (answer.kind, answer.session),
            (FrameKind::CloseAck, session)
        );
    }
    assert_eq!(server.memory_left(), before);
}

/// The bytes of a call of such a session.
fn bulk_frame(session: u32) -> Vec<u8> {
    let body = described(1 << 20, BulkAccess::READ);
    let call = bulk_call(session, 0);
    let length = u32::try_from(body.len()).unwrap();
    [&call.encode(length, true)[..], &body].concat()
}

/// Waits until a condition holds.
fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_call_that_is_cut_anywhere_frees_its_session() {
    let server = start();
    let memory = server.memory_left();
    let whole = bulk_frame(1).len();
    for end in 0..=whole {
        let mut control = greeted(&server);
        let session = open(&mut control, &bulk_session()).unwrap().session;
        control.send_raw(&bulk_frame(session)[..end]).unwrap();
        drop(control);
    }
    until("memory comes back", || server.memory_left() == memory);
    until("connections end", || {
        server.counters().connections.load(Relaxed) == 0
    });
    still_serves(&server);
}

#[test]
fn a_call_that_pauses_anywhere_loses_its_connection_and_its_session() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.limits.half_frame = Duration::from_millis(200);
    let server = RpcServer::start(setup).unwrap();
    let memory = server.memory_left();
    let mut idle = greeted(&server);
    let session = open(&mut idle, &bulk_session()).unwrap().session;
    let whole = bulk_frame(session);
    let mut paused: Vec<_> = (1..whole.len())
        .map(|end| {
            let mut control = greeted(&server);
            let session = open(&mut control, &bulk_session()).unwrap().session;
            control.send_raw(&bulk_frame(session)[..end]).unwrap();
            control
        })
        .collect();
    paused.iter_mut().for_each(is_refused);
    until("only the idle one is left", || {
        server.counters().sessions.load(Relaxed) == 1
    });
    // Its session is there, and asks for its data.
    idle.send_raw(&whole).unwrap();
    let (pull, _) = idle.receive(Duration::from_secs(10)).unwrap().unwrap();
    assert_eq!((pull.kind, pull.session), (FrameKind::BulkPull, session));
    drop(idle);
    until("memory comes back", || server.memory_left() == memory);
    still_serves(&server);
}

#[test]
fn half_a_frame_that_lies_too_long_ends_its_connection() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.limits.half_frame = Duration::from_millis(200);
    let server = RpcServer::start(setup).unwrap();
    let mut idle = greeted(&server);
    let mut control = greeted(&server);
    let mut long = greeted(&server);
    control
        .send_raw(&header(FrameKind::Ping).encode(8, true)[..10])
        .unwrap();
    long.send_raw(&header(FrameKind::Start).encode(100_000, true))
        .unwrap();
    long.send_raw(&vec![0; 50_000]).unwrap();
    is_refused(&mut control);
    is_refused(&mut long);
    // One that says nothing at all may stay.
    idle.send(&header(FrameKind::Ping), &[0; 8]).unwrap();
    assert_eq!(next(&mut idle).0.kind, FrameKind::Pong);
}

#[test]
fn whoever_does_not_know_the_token_stays_outside() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.token = Some(Token::new(b"one secret of ours".to_vec()));
    let server = RpcServer::start(setup).unwrap();
    let attach = |token: Option<&[u8]>| {
        let mut setup = client_setup(endpoints(&server, 1), payload((Empty, 0), (Empty, 0)));
        setup.dial.token = token.map(|token| Token::new(token.to_vec()));
        RpcClient::attach(StreamLink::new().unwrap(), setup).map(|_| ())
    };
    assert_eq!(attach(Some(b"one secret of ours")), Ok(()));
    // The first gives up by itself; the proof of the second is wrong to the server.
    for (wrong, refused) in [(None, 0), (Some(&b"two"[..]), 1)] {
        let error = attach(wrong).unwrap_err();
        assert_eq!(error.code, DerCode::NoPermission);
        assert!(error.message.contains("authentication failed"), "{error}");
        assert_eq!(server.counters().refused.load(Relaxed), refused);
    }
}

/// A frame of a handshake as bytes.
fn frame(kind: FrameKind, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    [&header(kind).encode(length, true)[..], body].concat()
}

/// The next frame of a raw stream.
fn read_frame(stream: &mut TcpStream) -> (FrameHeader, Vec<u8>) {
    let mut head = [0; HEADER];
    stream.read_exact(&mut head).unwrap();
    let (header, length) = FrameHeader::decode(&head, true).unwrap();
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).unwrap();
    (header, body)
}

/// Preamble and HELLO of a client that has called this address; the body of the HELLO alone.
fn opening(called: &str) -> (Vec<u8>, Vec<u8>) {
    let hello = ClientHello {
        nonce: [7; 16],
        rank: 0,
        tag: 0,
        features: features::ALL,
        max_frame: MAX_FRAME,
        process: 1,
        boot: 0,
        group: "test".to_owned(),
        transports: "tcp".to_owned(),
        address: Vec::new(),
        called: called.to_owned(),
    };
    let mut body = Vec::new();
    hello.encode(&mut body);
    let preamble = Preamble {
        major: 1,
        minor: 0,
        flags: 0,
    };
    let bytes = [&preamble.encode()[..], &frame(FrameKind::Hello, &body)].concat();
    (bytes, body)
}

#[test]
fn a_handshake_that_was_recorded_opens_nothing() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    let token = Token::new(b"one secret of ours".to_vec());
    setup.token = Some(token.clone());
    let server = RpcServer::start(setup).unwrap();
    let (opening, hello) = opening(&server.addresses()[0].1.place);
    let mut known = raw(&server);
    known.write_all(&opening).unwrap();
    let (header, reply) = read_frame(&mut known);
    assert_eq!(header.kind, FrameKind::HelloAck);
    let answer = frame(
        FrameKind::Auth,
        &proof(&token, &hello, &reply, LinkSide::Client),
    );
    known.write_all(&answer).unwrap();
    assert_eq!(read_frame(&mut known).0.kind, FrameKind::Auth);
    let mut again = raw(&server);
    again.write_all(&[opening, answer].concat()).unwrap();
    let (header, second) = read_frame(&mut again);
    assert_eq!(header.kind, FrameKind::HelloAck);
    let nonces = [reply, second].map(|body| HelloReply::decode(&body).unwrap().nonce);
    assert_ne!(nonces[0], nonces[1]);
    let (header, _) = read_frame(&mut again);
    assert_eq!(header.kind, FrameKind::Error);
    assert_eq!(DerCode::from_status(header.word), DerCode::NoPermission);
    closes(&mut again);
}

#[test]
fn a_greeting_that_another_program_passes_on_gets_no_answer_to_prove() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.token = Some(Token::new(b"one secret of ours".to_vec()));
    let server = RpcServer::start(setup).unwrap();
    let mut between = raw(&server);
    between.write_all(&opening("127.0.0.1:9").0).unwrap();
    let (header, why) = read_frame(&mut between);
    assert_eq!(header.kind, FrameKind::Error);
    assert_eq!(DerCode::from_status(header.word), DerCode::NoPermission);
    let why = String::from_utf8(why).unwrap();
    assert!(why.contains("127.0.0.1:9"), "{why}");
    closes(&mut between);
}

#[test]
fn whoever_connects_and_says_nothing_keeps_nobody_out() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.limits.handshake = Duration::from_secs(3600);
    setup.limits.pending = 8;
    let server = RpcServer::start(setup).unwrap();
    let mut silent: Vec<_> = (0..8).map(|_| raw(&server)).collect();
    still_serves(&server);
    closes(&mut silent[0]);
}

#[test]
fn bulk_data_come_in_frames_no_longer_than_agreed() {
    let server = start();
    let mut stream = raw(&server);
    let (mut bytes, _) = opening(&server.addresses()[0].1.place);
    // The field is behind nonce, rank, tag and features.
    let at = PREAMBLE + HEADER + 16 + 4 + 4 + 8;
    bytes[at..at + 4].copy_from_slice(&MIN_FRAME.to_le_bytes());
    stream.write_all(&bytes).unwrap();
    let (_, reply) = read_frame(&mut stream);
    assert_eq!(HelloReply::decode(&reply).unwrap().max_frame, MIN_FRAME);
    let asked = OpenRequest {
        send_kind: Empty,
        send_size: 0,
        reply_kind: Bulk,
        reply_size: 100_000,
        ..bulk_session()
    };
    let mut body = Vec::new();
    asked.encode(&mut body);
    stream.write_all(&frame(FrameKind::Open, &body)).unwrap();
    let opened = loop {
        let (header, body) = read_frame(&mut stream);
        if header.kind == FrameKind::OpenAck {
            break OpenReply::decode(&body).unwrap();
        }
    };
    let body = described(100_000, BulkAccess::WRITE);
    let length = u32::try_from(body.len()).unwrap();
    let call = bulk_call(opened.session, 0).encode(length, true);
    stream.write_all(&[&call[..], &body].concat()).unwrap();
    let mut came = 0;
    while came < 100_000 {
        let (header, body) = read_frame(&mut stream);
        assert!(body.len() <= MIN_FRAME as usize, "{}", body.len());
        if header.kind == FrameKind::BulkPush {
            came += body.len() - 8;
        }
    }
}

#[test]
fn what_is_not_there_is_named() {
    let server = start();
    let attempt = |change: &dyn Fn(&mut weir_rpc::client::ClientSetup)| {
        let mut setup = client_setup(endpoints(&server, 1), payload((Empty, 0), (Empty, 0)));
        change(&mut setup);
        let refused = RpcClient::attach(StreamLink::new().unwrap(), setup).map(|_| ());
        refused.unwrap_err()
    };
    let group = attempt(&|setup| setup.dial.group = "other".to_owned());
    assert_eq!(group.code, DerCode::NotThere);
    assert!(group.message.contains("`other`"), "{group}");
    let tag = attempt(&|setup| setup.endpoints[0].endpoint.tag = 7);
    assert!(
        tag.code == DerCode::NotThere && tag.message.contains("tag"),
        "{tag}"
    );
    let stale = attempt(&|setup| setup.endpoints[0].nonce = Some([7; 16]));
    assert!(stale.message.contains("stale"), "{stale}");
}

#[test]
fn a_limit_of_connections_refuses_the_next_and_recovers() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.limits.connections = 2;
    let server = RpcServer::start(setup).unwrap();
    let (first, second) = (greeted(&server), greeted(&server));
    closes(&mut raw(&server));
    // At once, and not when the time for its handshake is up.
    assert_eq!(server.counters().refused.load(Relaxed), 1);
    let served = || server.counters().connections.load(Relaxed);
    until("both are served", || served() == 2);
    drop(first);
    until("a place is free", || served() == 1);
    drop(greeted(&server));
    drop(second);
}
