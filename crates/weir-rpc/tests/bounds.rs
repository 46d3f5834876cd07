//! Bounds of requests to the other side: lengths of payloads at a server, memory and credits at a client, whose
//! servers are made by hand here and say what they like.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

use weir_schema::{RpcEndpoint, RpcServiceTime};

use crate::testbed::raw::{bulk_session, greeted, header, open};
use crate::testbed::{client, client_setup, endpoints, gives_back, payload, run, server_setup};
use weir_rpc::client::{ClientSetup, RpcClient, ServerEndpoint};
use weir_rpc::links::stream::StreamLink;
use weir_rpc::server::RpcServer;
use weir_rpc::service::{NextStep, RpcService, ServiceCall, SessionShape};
use weir_rpc::transport::{Requested, RpcTransport};
use weir_rpc::wire::{
    ClientHello, FrameHeader, FrameKind, HEADER, HelloReply, MAX_FRAME, OpenReply, OpenRequest,
    PREAMBLE, PullRange, PushHead, RpcId,
};
use weir_rpc::{DerCode, RpcError};
use weir_schema::RpcPayloadKind::{Bulk, Empty, Inline};

/// The limit of the servers here, in bytes.
const LIMIT: u32 = 64 << 10;

fn limited() -> RpcServer {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.limits.max_message = u64::from(LIMIT);
    RpcServer::start(setup).unwrap()
}

fn attach(setup: ClientSetup) -> Result<RpcClient<StreamLink>, RpcError> {
    RpcClient::attach(StreamLink::new().unwrap(), setup)
}

#[test]
fn a_session_with_payloads_above_the_servers_limit_is_refused_with_both_numbers() {
    let server = limited();
    let memory = server.memory_left();
    let mut control = greeted(&server);
    for (send_size, reply_size) in [(LIMIT + 1, 0), (0, LIMIT + 1)] {
        let asked = OpenRequest {
            send_size,
            send_kind: Inline,
            reply_size,
            reply_kind: Inline,
            ..bulk_session()
        };
        let refused = open(&mut control, &asked).unwrap_err();
        assert_eq!(refused.code, DerCode::Overflow);
        for says in ["65537 bytes", "65536 bytes", "--max-msg"] {
            assert!(refused.message.contains(says), "{refused}");
        }
    }
    gives_back(&server, memory);
    // Bulk has no such limit, and payloads of just that length are fine.
    for (send, reply) in [
        ((Bulk, 1 << 20), (Empty, 0)),
        ((Inline, LIMIT), (Inline, LIMIT)),
    ] {
        let mut calls = client(client_setup(endpoints(&server, 1), payload(send, reply)));
        assert_eq!(run(&mut calls, 16, 1, 50).good, 50);
        calls.close().unwrap();
    }
}

#[test]
fn a_payload_above_the_servers_limit_ends_its_connection_whatever_it_belongs_to() {
    let server = limited();
    let mut control = greeted(&server);
    let request = header(FrameKind::Request);
    control.send(&request, &vec![0; LIMIT as usize]).unwrap();
    let (answer, _) = control.receive(Duration::from_secs(10)).unwrap().unwrap();
    assert_eq!(answer.kind, FrameKind::Response);
    control
        .send(&request, &vec![0; LIMIT as usize + 1])
        .unwrap();
    let (answer, words) = control.receive(Duration::from_secs(10)).unwrap().unwrap();
    assert_eq!(answer.kind, FrameKind::Error);
    assert_eq!(DerCode::from_status(answer.word), DerCode::Protocol);
    let words = String::from_utf8(words).unwrap();
    assert!(words.contains("longer than the server takes"), "{words}");
}

/// Its replies are longer than anybody asked for.
struct LongReplies;

impl RpcService for LongReplies {
    fn name(&self) -> &'static str {
        "long"
    }

    fn version(&self) -> u16 {
        1
    }

    fn open(&mut self, _: u32, _: &OpenRequest) -> Result<SessionShape, RpcError> {
        Ok(SessionShape {
            buffer_bytes: 2 * u64::from(LIMIT),
            fill: 7,
            longest_bulk: None,
        })
    }

    fn needs_buffer(&self, _: u16) -> bool {
        true
    }

    fn request(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        NextStep::Reply(u64::from(LIMIT) + u64::from(call.operation))
    }

    fn pulled(&mut self, _: &mut ServiceCall<'_>) -> NextStep {
        NextStep::Fail(DerCode::Invalid)
    }
}

#[test]
fn a_reply_above_the_servers_limit_fails_its_call_alone() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.limits.max_message = u64::from(LIMIT);
    setup.services = Box::new(|_, _| vec![Box::new(LongReplies)]);
    let server = RpcServer::start(setup).unwrap();
    let mut control = greeted(&server);
    let asked = OpenRequest {
        service: "long".to_owned(),
        reply_size: 10,
        reply_kind: Inline,
        buffers: 1,
        credits: 1,
        version: 1,
        ..OpenRequest::default()
    };
    let session = open(&mut control, &asked).unwrap().session;
    // The operation is what the reply has above the limit.
    for (operation, code, length) in [(1, Some(DerCode::Overflow), 0), (0, None, LIMIT as usize)] {
        let call = FrameHeader {
            word: operation,
            session,
            ..header(FrameKind::Request)
        };
        control.send(&call, &[]).unwrap();
        let (answer, body) = control.receive(Duration::from_secs(10)).unwrap().unwrap();
        assert_eq!(answer.kind, FrameKind::Response);
        assert_eq!(
            (answer.word, body.len()),
            (code.map_or(0, DerCode::to_status), length)
        );
    }
}

/// A server by hand.
struct HandServer {
    listener: TcpListener,
}

impl HandServer {
    /// With the setup of a client of it that has four calls of this kind out.
    fn new(payload: weir_rpc::client::CallPayload) -> (Self, ClientSetup) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let endpoint = ServerEndpoint {
            endpoint: RpcEndpoint { rank: 0, tag: 0 },
            address: address.parse().unwrap(),
            nonce: None,
        };
        let setup = ClientSetup {
            slots: 4,
            ..client_setup(vec![endpoint], payload)
        };
        (Self { listener }, setup)
    }

    /// Takes the next connection, with its handshake; payloads may be that long.
    fn greet(&self, max_message: u64) -> TcpStream {
        let (mut stream, _) = self.listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.read_exact(&mut [0; PREAMBLE]).unwrap();
        let (first, body) = frame(&mut stream).unwrap();
        assert_eq!(first.kind, FrameKind::Hello);
        let hello = ClientHello::decode(&body).unwrap();
        let reply = HelloReply {
            nonce: [1; 16],
            run: [1; 16],
            rank: hello.rank,
            tags: 1,
            features: hello.features,
            max_frame: MAX_FRAME,
            max_message,
            credits: 64,
            authenticate: false,
            transport: "tcp".to_owned(),
            address: Vec::new(),
        };
        let mut body = Vec::new();
        reply.encode(&mut body);
        send(&mut stream, &header(FrameKind::HelloAck), &body);
        stream
    }
}

/// The next frame; none at the end of the connection, or when nothing comes.
fn frame(stream: &mut TcpStream) -> Option<(FrameHeader, Vec<u8>)> {
    let mut bytes = [0; HEADER];
    stream.read_exact(&mut bytes).ok()?;
    let (header, length) = FrameHeader::decode(&bytes, true).unwrap();
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).unwrap();
    Some((header, body))
}

fn send(stream: &mut TcpStream, header: &FrameHeader, body: &[u8]) {
    let length = u32::try_from(body.len()).unwrap();
    let bytes = [&header.encode(length, true)[..], body].concat();
    stream.write_all(&bytes).unwrap();
}

/// The names of the next calls for which a frame of this kind comes.
fn next_of(stream: &mut TcpStream, kind: FrameKind, count: usize) -> Vec<RpcId> {
    let frames = std::iter::from_fn(|| frame(stream));
    let of_kind = frames.filter(|(header, _)| header.kind == kind);
    of_kind.take(count).map(|(header, _)| header.rpc).collect()
}

#[test]
fn a_client_asks_no_server_for_more_than_its_limit() {
    let (server, setup) = HandServer::new(payload((Inline, 101), (Empty, 0)));
    let hand = std::thread::spawn(move || frame(&mut server.greet(100)).is_none());
    let refused = attach(setup).map(|_| ()).unwrap_err();
    assert_eq!(refused.code, DerCode::Overflow);
    assert!(refused.message.contains("101 bytes"), "{refused}");
    assert!(hand.join().unwrap(), "it asked all the same");
}

#[test]
fn calls_that_were_given_up_have_their_credits_back_once() {
    let (server, setup) = HandServer::new(payload((Empty, 0), (Empty, 0)));
    let setup = ClientSetup {
        credits_per_rank: 2,
        timeout: Duration::from_millis(200),
        reconnect: Some(Duration::from_secs(20)),
        ..setup
    };
    let (sent, is_sent) = channel();
    let hand = std::thread::spawn(move || {
        let mut stream = server.greet(1 << 20);
        let given_up = next_of(&mut stream, FrameKind::Cancel, 2);
        for rpc in given_up {
            let late = FrameHeader {
                rpc,
                ..header(FrameKind::Response)
            };
            // Once more than it should.
            send(&mut stream, &late, &[]);
            send(&mut stream, &late, &[]);
        }
        drop(stream);
        let mut stream = server.greet(1 << 20);
        is_sent.recv().unwrap();
        let patience = Some(Duration::from_millis(100));
        stream.set_read_timeout(patience).unwrap();
        next_of(&mut stream, FrameKind::Request, 4).len()
    });
    let mut calls = attach(setup).unwrap();
    let begin = |calls: &mut RpcClient<StreamLink>| {
        for slot in 0..4 {
            assert_eq!(calls.request(0, slot), Requested::Queued);
        }
        calls.flush().unwrap();
    };
    begin(&mut calls);
    let mut ended = 0;
    while ended < 4 {
        ended += calls.poll(Some(50_000_000), 4, |_, _| {}).unwrap();
    }
    for is_up in [false, true] {
        while calls.is_up(0) != is_up {
            calls.poll(Some(1_000_000), 0, |_, _| {}).unwrap();
        }
    }
    assert_eq!(calls.counters().late_replies, 4);
    begin(&mut calls);
    sent.send(()).unwrap();
    assert_eq!(
        hand.join().unwrap(),
        2,
        "more than the rank has credits for"
    );
}

/// Grants what an OPEN asks for.
fn grant(stream: &mut TcpStream, asked: &FrameHeader, session: u32) {
    let granted = OpenReply {
        session,
        buffers: 1,
        credits: 4,
    };
    let mut body = Vec::new();
    granted.encode(&mut body);
    let opened = FrameHeader {
        rpc: asked.rpc,
        ..header(FrameKind::OpenAck)
    };
    send(stream, &opened, &body);
}

#[test]
fn a_session_that_opens_too_late_is_given_back_and_harms_no_other() {
    let (server, mut setup) = HandServer::new(payload((Inline, 10), (Empty, 0)));
    // The endpoint stands twice: a session each, on one connection.
    setup.endpoints.push(setup.endpoints[0].clone());
    setup.dial.within = Duration::from_millis(500);
    let hand = std::thread::spawn(move || {
        let mut stream = server.greet(1 << 20);
        let asked = [(); 2].map(|()| frame(&mut stream).unwrap().0);
        assert!(asked.iter().all(|one| one.kind == FrameKind::Open));
        grant(&mut stream, &asked[0], 5);
        let rpc = next_of(&mut stream, FrameKind::Request, 1)[0];
        // The second was given up before the first call.
        grant(&mut stream, &asked[1], 6);
        let done = FrameHeader {
            rpc,
            session: 5,
            ..header(FrameKind::Response)
        };
        send(&mut stream, &done, &[]);
        let frames = std::iter::from_fn(|| frame(&mut stream));
        let closed = frames.filter(|(header, _)| header.kind == FrameKind::Close);
        closed.take(2).map(|(header, _)| header.session).collect()
    });
    let mut calls = attach(setup).unwrap();
    assert_eq!((calls.is_up(0), calls.is_up(1)), (true, false));
    assert_eq!(run(&mut calls, 1, 1, 1).good, 1, "{:?}", calls.last_error());
    calls.close().unwrap();
    let closed: Vec<u32> = hand.join().unwrap();
    assert_eq!(closed, [5, 6]);
}

/// Opens a session, and answers its first call with this frame, for the slot so many behind that of the call.
fn reach_beyond(server: &HandServer, kind: FrameKind, behind: u32, body: &[u8]) {
    let mut stream = server.greet(1 << 20);
    let (asked, _) = frame(&mut stream).unwrap();
    assert_eq!(asked.kind, FrameKind::Open);
    grant(&mut stream, &asked, 5);
    let mut rpc = next_of(&mut stream, FrameKind::Request, 1)[0];
    rpc.slot += behind;
    let wrong = FrameHeader {
        rpc,
        session: 5,
        ..header(kind)
    };
    send(&mut stream, &wrong, body);
    // Until the client hangs up.
    while let Some((next, _)) = frame(&mut stream) {
        assert_ne!(next.kind, FrameKind::BulkData, "it sent what it was not to");
    }
}

#[test]
fn a_server_that_reaches_beyond_a_descriptor_loses_its_client() {
    let one = |offset: u64| [&PushHead { offset }.encode()[..], &[9; 11]].concat();
    let range = |offset, length| PullRange { offset, length }.encode().to_vec();
    let frames = [
        (
            FrameKind::BulkPush,
            0,
            one(990),
            "data outside their descriptor",
        ),
        (
            FrameKind::BulkPush,
            0,
            one(u64::MAX),
            "data outside their descriptor",
        ),
        (FrameKind::BulkPush, 9, one(0), "data for no call"),
        (
            FrameKind::BulkPull,
            0,
            range(0, 1001),
            "a pull outside its descriptor",
        ),
        (
            FrameKind::BulkPull,
            0,
            range(u64::MAX, 2),
            "a pull outside its descriptor",
        ),
        (FrameKind::BulkPull, 9, range(0, 1), "a pull for no call"),
    ];
    for (kind, beside, body, says) in frames {
        let (server, setup) = HandServer::new(payload((Bulk, 1000), (Bulk, 1000)));
        let hand = std::thread::spawn(move || reach_beyond(&server, kind, beside, &body));
        let mut calls = attach(setup).unwrap();
        let outcome = run(&mut calls, 1, 1, 1);
        assert_eq!(outcome.failed, [DerCode::Unreachable.result()], "{says}");
        let why = calls.last_error().unwrap();
        assert!(
            why.code == DerCode::Protocol && why.message.contains(says),
            "{why}"
        );
        hand.join().unwrap();
    }
}
