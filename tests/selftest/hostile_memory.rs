//! Memory of a server under peers that make it hold as much as they can: seen from outside, it stays within
//! its limit and a little, and a proper client goes on meanwhile.

mod slow;

use std::time::Duration;

use weir_rpc::client::{ControlStream, DialSetup, ServerEndpoint, open_control};
use weir_rpc::links::LinkGreeting;
use weir_rpc::wire::{
    BulkAccess, BulkDescriptor, BulkMode, BulkSegment, FrameHeader, FrameKind, OpenReply,
    OpenRequest, RpcId, flag,
};
use weir_schema::RpcEndpoint;
use weir_schema::RpcPayloadKind::{Bulk, Empty, Inline};

use crate::servers::{Server, self_test};
use crate::stage::{Stage, until};

/// Limit of the servers here, in KiB.
const LIMIT: u64 = 16 << 10;
/// Memory that a server may have beyond its limit and what it had at first, in KiB.
const BEYOND: u64 = 64 << 10;
/// Limit of a wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with the limit, and what it had at first.
fn limited(stage: &Stage) -> (Server, u64) {
    let server = Server::start(stage, "--rank 0 --mem-limit 16m");
    self_test(stage, "-e 0:0 -s 0 -r 10").code(0);
    let first = server.resident_kib();
    (server, first)
}

fn is_within((server, first): &(Server, u64)) {
    let peak = server.peak_kib();
    assert!(
        peak <= first + LIMIT + BEYOND,
        "{peak} KiB, {first} at first"
    );
}

fn connect(server: &Server) -> ControlStream {
    let setup = DialSetup {
        group: "daos_server".to_owned(),
        token: None,
        from: Vec::new(),
        within: PATIENCE,
    };
    let endpoint = ServerEndpoint {
        endpoint: RpcEndpoint { rank: 0, tag: 0 },
        address: server.address.parse().unwrap(),
        nonce: None,
    };
    let greeting = LinkGreeting::default();
    open_control(&setup, &endpoint, greeting, &|| false)
        .unwrap()
        .0
}

fn asked() -> OpenRequest {
    OpenRequest {
        service: weir_rpc::service::self_test::NAME.to_owned(),
        version: weir_rpc::service::self_test::VERSION,
        send_kind: Empty,
        buffers: 1,
        credits: 65_536,
        ..OpenRequest::default()
    }
}

/// The session, or nothing where it is refused.
fn open(control: &mut ControlStream, asked: &OpenRequest) -> Option<u32> {
    let mut body = Vec::new();
    asked.encode(&mut body);
    control
        .send(&FrameHeader::plain(FrameKind::Open), &body)
        .unwrap();
    loop {
        let (header, body) = control.receive(PATIENCE).unwrap().unwrap();
        if header.kind == FrameKind::OpenAck {
            let reply = (header.word == 0).then(|| OpenReply::decode(&body).unwrap());
            if reply.is_none() {
                println!("{}", String::from_utf8_lossy(&body));
            }
            return reply.map(|reply| reply.session);
        }
    }
}

fn call(session: u32, slot: u32, operation: u16) -> FrameHeader {
    FrameHeader {
        word: operation,
        session,
        rpc: RpcId {
            slot,
            generation: 1,
        },
        ..FrameHeader::plain(FrameKind::Request)
    }
}

/// A proper client's calls go on.
fn serves_others(stage: &Stage) {
    self_test(stage, "-e 0:0 -s '0 i100' -r 200")
        .code(0)
        .out("RPC Failures: 0\n");
}

#[test]
fn answers_that_nobody_reads_are_not_made() {
    let stage = Stage::new();
    let limited = limited(&stage);
    let reply = OpenRequest {
        reply_kind: Inline,
        reply_size: 8191,
        ..asked()
    };
    let mut silent: Vec<ControlStream> = (0..64).map(|_| connect(&limited.0)).collect();
    for control in &mut silent {
        let session = open(control, &reply).unwrap();
        let calls = (0..2000).map(|slot| call(session, slot, 1).encode(0, true));
        let bytes: Vec<u8> = calls.flatten().collect();
        control.send_raw(&bytes).unwrap();
    }
    serves_others(&stage);
    is_within(&limited);
    // Who reads gets all of them.
    let control = &mut silent[0];
    for _ in 0..2000 {
        let (header, body) = control.receive(PATIENCE).unwrap().unwrap();
        assert_eq!((header.kind, header.word), (FrameKind::Response, 0));
        assert_eq!(body.len(), 8191);
    }
}

#[test]
fn calls_that_wait_are_charged_and_end_in_pieces() {
    let stage = Stage::new();
    let limited = limited(&stage);
    let bulk = OpenRequest {
        send_kind: Bulk,
        send_size: 1 << 20,
        reply_kind: Empty,
        ..asked()
    };
    let part = BulkSegment {
        address: 0,
        length: 1 << 20,
        key: 0,
    };
    let mut body = Vec::new();
    BulkDescriptor::one(BulkMode::Frames, BulkAccess::READ, 0, part).encode(&mut body);
    let length = u32::try_from(body.len()).unwrap();
    let order = |_| {
        let mut control = connect(&limited.0);
        let session = open(&mut control, &bulk).unwrap();
        let calls = (0..65_000).flat_map(|slot| {
            let header = FrameHeader {
                flags: flag::BULK,
                ..call(session, slot, 6)
            };
            [&header.encode(length, true)[..], &body].concat()
        });
        control.send_raw(&calls.collect::<Vec<u8>>()).unwrap();
        control
    };
    let mut waiting: Vec<ControlStream> = (0..2).map(order).collect();
    // Some have no memory; the server has looked at most of them then.
    let mut refused = 0;
    while refused == 0 {
        let (header, _) = waiting[1].receive(PATIENCE).unwrap().unwrap();
        refused += u32::from(header.kind == FrameKind::Response && header.word != 0);
    }
    serves_others(&stage);
    is_within(&limited);
}

#[test]
fn tests_by_order_are_charged_with_their_buffers() {
    let stage = Stage::new();
    let limited = limited(&stage);
    let _other = Server::start(&stage, "--rank 1 --mem-limit 1g");
    let words = "-m 0:0 -e 1:0 -s b1048578 -i 400 -r 400";
    let refused = self_test(&stage, words).code(1);
    refused.out("of the server's memory limit");
    is_within(&limited);
}

#[test]
fn answers_over_shared_memory_wait_with_their_server() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0 --transport shm:// --mem-limit 128m");
    self_test(&stage, "-e 0:0 -s 0 -r 10").code(0);
    let first = server.resident_kib();
    let words = "-e 0:0 -s '0 i1000000' -i 120 -r 600 --timeout 60";
    self_test(&stage, words).code(0).out("RPC Failures: 0\n");
    let peak = server.peak_kib();
    assert!(
        peak <= first + (128 << 10) + BEYOND,
        "{peak} KiB, {first} at first"
    );
}
