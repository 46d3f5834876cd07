//! Calls over shared memory: every way of carrying payloads, busy and asleep.

mod slow;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_schema::{RpcPoll, RpcServiceTime, RpcVerify};
use weir_units::Nanos;

use crate::testbed::{client_setup, endpoints, gives_back, payload, run, run_with, server_setup};
use weir_rpc::client::{CallPayload, ClientSetup, RpcClient};
use weir_rpc::links::LinkSide;
use weir_rpc::links::shm::RpcShmLink;
use weir_rpc::server::RpcServer;
use weir_rpc::transport::RpcTransport;
use weir_schema::RpcPayloadKind::{self, Bulk, Empty, Inline};

/// A socket's path that nobody else has.
fn socket() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("weir-rpc-{}-{number}.sock", std::process::id());
    std::env::temp_dir().join(name)
}

/// A server of three tags whose pollers wait like this.
fn server(time: RpcServiceTime, poll: RpcPoll) -> (RpcServer, PathBuf) {
    let path = socket();
    let mut setup = server_setup(3, time);
    setup.poll = poll;
    setup.ranks[0].addresses = vec![format!("shm://{}", path.display()).parse().unwrap()];
    (RpcServer::start(setup).unwrap(), path)
}

fn client(setup: ClientSetup) -> RpcClient<RpcShmLink> {
    RpcClient::attach(RpcShmLink::new(LinkSide::Client).unwrap(), setup).unwrap()
}

const SPIN: RpcPoll = RpcPoll::Spin {
    for_ns: Nanos::from_micros(50),
};

/// Makes calls of this kind and checks that all end well and that all memory is given back.
fn all_end_well(payload: CallPayload, calls: u64, poll: RpcPoll, verify: RpcVerify) {
    let (server, path) = server(RpcServiceTime::None, poll);
    let memory = server.memory_left();
    let mut setup = client_setup(endpoints(&server, 3), payload);
    (setup.poll, setup.verify, setup.low_byte) = (poll, verify, Some(3));
    let mut client = client(setup);
    let outcome = run(&mut client, 16, 3, calls);
    let ended = (outcome.good, outcome.failed);
    assert_eq!(ended, (calls, Vec::new()), "{payload:?}");
    client.close().unwrap();
    gives_back(&server, memory);
    server.stop().unwrap();
    let _ = std::fs::remove_file(path);
}

fn every_pair(sizes: &[u32]) -> Vec<CallPayload> {
    let kinds = [Empty, Inline, Bulk];
    let bytes = |kind: RpcPayloadKind, size| if kind == Empty { 0 } else { size };
    let pair =
        |send, reply, size| payload((send, bytes(send, size)), (reply, bytes(reply, size + 7)));
    let of_kinds = |send| kinds.map(|reply| sizes.iter().map(move |&size| pair(send, reply, size)));
    kinds.into_iter().flat_map(of_kinds).flatten().collect()
}

#[test]
fn payloads_that_take_several_frames_arrive_whole_and_sums_are_as_good() {
    let size = 3_500_001;
    let inline = payload((Inline, size), (Inline, size + 1));
    all_end_well(inline, 30, SPIN, RpcVerify::Full);
    all_end_well(inline, 30, SPIN, RpcVerify::Checksum);
    let bulk = payload((Bulk, size), (Bulk, size - 1));
    all_end_well(bulk, 30, SPIN, RpcVerify::Checksum);
}

#[test]
fn copies_of_answers_are_taken_from_the_limit_with_their_session() {
    let (server, path) = server(RpcServiceTime::None, SPIN);
    let memory = server.memory_left();
    let size = 1 << 20;
    for (send, reply, buffers) in [
        ((Empty, 0), (Inline, size), 17),
        ((Bulk, size), (Inline, size), 32),
        ((Bulk, size), (Bulk, size), 16),
    ] {
        let setup = client_setup(endpoints(&server, 1), payload(send, reply));
        let client = client(setup);
        let taken = memory - server.memory_left();
        assert_eq!(taken >> 20, buffers, "{send:?} {reply:?}: {taken}");
        client.close().unwrap();
        gives_back(&server, memory);
    }
    server.stop().unwrap();
    let _ = std::fs::remove_file(path);
}

#[test]
fn sides_that_sleep_wake_each_other() {
    for payload in every_pair(&[100]) {
        all_end_well(payload, 200, RpcPoll::Block, RpcVerify::Full);
    }
}

#[test]
fn a_server_that_stops_is_lost_and_the_rest_is_not_sent() {
    let (server, path) = server(RpcServiceTime::None, SPIN);
    let setup = client_setup(endpoints(&server, 3), payload((Inline, 9), (Empty, 0)));
    let mut client = client(setup);
    let mut server = Some(server);
    let outcome = run_with(&mut client, 16, 3, 100_000, |_, ended| {
        if ended > 1_000
            && let Some(server) = server.take()
        {
            server.stop().unwrap();
        }
    });
    let failed = outcome.failed.len() as u64;
    assert!(
        outcome.not_sent > 0,
        "{} good, {failed} failed",
        outcome.good
    );
    assert_eq!(outcome.good + failed + outcome.not_sent, 100_000);
    assert!(
        outcome.failed.iter().all(|&code| code == -1006),
        "{:?}",
        outcome.failed
    );
    let _ = std::fs::remove_file(path);
}
