//! Single frames at a server: calls that are given up, payloads that are wrong, tests that are
//! ordered, its own end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod rpc;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rpc::raw::{PATIENCE, bulk_call, bulk_session, described, greeted, header, next, open};
use rpc::server_setup;
use weir_net::rpc::client::ControlStream;
use weir_net::rpc::self_test::ServiceTime;
use weir_net::rpc::server::{MasterOrder, RpcServer, TestControl, TestMasters};
use weir_net::rpc::wire::{BulkAccess, FrameHeader, FrameKind, OpenRequest, PayloadKind, flag};
use weir_net::rpc::{DerCode, RpcError};

fn start() -> RpcServer {
    RpcServer::start(server_setup(1, ServiceTime::None)).unwrap()
}

/// The status of the next answer, whatever else comes before.
fn status(control: &mut ControlStream) -> DerCode {
    loop {
        let (header, _) = next(control);
        if header.kind == FrameKind::Response {
            return DerCode::from_status(header.word);
        }
    }
}

#[test]
fn a_call_that_is_given_up_is_answered_and_its_credit_is_free() {
    let server = start();
    let mut control = greeted(&server);
    let session = open(&mut control, &bulk_session()).unwrap().session;
    for _ in 0..3 {
        let call = bulk_call(session, 0);
        let body = described(1 << 20, BulkAccess::READ);
        control.send(&call, &body).unwrap();
        assert_eq!(next(&mut control).0.kind, FrameKind::BulkPull);
        let cancel = FrameHeader {
            rpc: call.rpc,
            session,
            ..header(FrameKind::Cancel)
        };
        control.send(&cancel, &[]).unwrap();
        assert_eq!(status(&mut control), DerCode::Canceled);
    }
}

#[test]
fn a_request_whose_bytes_are_not_those_of_its_call_is_answered_as_such() {
    let server = start();
    let mut control = greeted(&server);
    let asked = OpenRequest {
        send_size: 10,
        send_kind: PayloadKind::Inline,
        ..bulk_session()
    };
    let session = open(&mut control, &asked).unwrap().session;
    let call = |flags| FrameHeader {
        word: 2,
        flags,
        ..bulk_call(session, 0)
    };
    control.send(&call(0), &[0; 10]).unwrap();
    let answer = next(&mut control).0;
    assert_eq!((answer.kind, answer.word), (FrameKind::Response, 0));
    // By its pattern; by its sum.
    control.send(&call(flag::PATTERN), &[0; 10]).unwrap();
    assert_eq!(status(&mut control), DerCode::Mismatch);
    let with_sum = [&[1; 4][..], &[0; 10]].concat();
    control.send(&call(flag::CHECKSUM), &with_sum).unwrap();
    assert_eq!(status(&mut control), DerCode::Mismatch);
    // Data that follow their request.
    let session = open(&mut control, &bulk_session()).unwrap().session;
    let call = bulk_call(session, 0);
    let flags = call.flags | flag::PATTERN | flag::EAGER;
    let body = described(1 << 20, BulkAccess::READ);
    control.send(&FrameHeader { flags, ..call }, &body).unwrap();
    let data = FrameHeader {
        rpc: call.rpc,
        session,
        ..header(FrameKind::BulkData)
    };
    for piece in 0..4_u64 {
        let offset = (piece << 18).to_le_bytes();
        let body = [&offset[..], &vec![0; 1 << 18]].concat();
        control.send(&data, &body).unwrap();
    }
    assert_eq!(status(&mut control), DerCode::Mismatch);
}

#[test]
fn a_server_that_leaves_says_so_before_it_hangs_up() {
    let server = start();
    let mut control = greeted(&server);
    // Its handshake is over a little earlier than it is served.
    control.send(&header(FrameKind::Ping), &[0; 8]).unwrap();
    assert_eq!(next(&mut control).0.kind, FrameKind::Pong);
    let stopping = std::thread::spawn(move || server.stop());
    assert_eq!(next(&mut control).0.kind, FrameKind::GoAway);
    assert_eq!(
        control.receive(PATIENCE).unwrap_err().code,
        DerCode::Unreachable
    );
    stopping.join().unwrap().unwrap();
}

/// Takes all orders, and runs nothing.
#[derive(Default)]
struct Taken(Mutex<Vec<TestControl>>);

impl TestMasters for Taken {
    fn start(&self, _: MasterOrder) -> Result<TestControl, RpcError> {
        let control = TestControl::default();
        self.0.lock().unwrap().push(control.clone());
        Ok(control)
    }
}

#[test]
fn a_test_is_asked_to_end_by_who_ordered_it_and_by_its_loss() {
    let taken = Arc::new(Taken::default());
    let mut setup = server_setup(1, ServiceTime::None);
    setup.masters = Arc::clone(&taken) as Arc<dyn TestMasters>;
    let server = RpcServer::start(setup).unwrap();
    let until = |number: usize, asked: u32| {
        let end = Instant::now() + PATIENCE;
        loop {
            let all = taken.0.lock().unwrap();
            if all
                .get(number)
                .is_some_and(|one| one.end_sign().load(Relaxed) == asked)
            {
                return;
            }
            drop(all);
            assert!(Instant::now() < end, "test {number}, {asked}");
            std::thread::yield_now();
        }
    };
    let controls = [greeted(&server), greeted(&server)];
    for (number, control) in controls.iter().enumerate() {
        control
            .send(&header(FrameKind::Start), b"an order")
            .unwrap();
        until(number, 0);
    }
    let [first, second] = controls;
    first.send(&header(FrameKind::Stop), &[]).unwrap();
    until(0, 1);
    until(1, 0);
    drop(second);
    until(1, 1);
}
