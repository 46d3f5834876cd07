//! Calls over tcp on loopback: every way of carrying payloads, and what becomes of buffers.

use std::time::Duration;

use weir_schema::{RpcServiceTime, RpcVerify};
use weir_units::Nanos;

use crate::testbed::{client, client_setup, endpoints, gives_back, payload, run, server_setup};
use weir_rpc::client::{CallPayload, ClientSetup};
use weir_rpc::server::RpcServer;
use weir_rpc::service::self_test::SelfTestService;
use weir_rpc::service::{NextStep, RpcService, ServiceCall, SessionShape};
use weir_rpc::transport::RpcTransport;
use weir_rpc::wire::OpenRequest;
use weir_rpc::{DerCode, RpcError};
use weir_schema::RpcPayloadKind::{self, Bulk, Empty, Inline};

/// Makes calls of this kind and checks that all end well and that all memory is given back.
fn all_end_well(payload: CallPayload, calls: u64, change: impl Fn(&mut ClientSetup)) {
    let server = RpcServer::start(server_setup(3, RpcServiceTime::None)).unwrap();
    let memory = server.memory_left();
    let mut setup = client_setup(endpoints(&server, 3), payload);
    change(&mut setup);
    let slots = setup.slots;
    let mut client = client(setup);
    let outcome = run(&mut client, slots, 3, calls);
    assert_eq!(
        (outcome.good, outcome.failed),
        (calls, Vec::new()),
        "{payload:?}"
    );
    client.close().unwrap();
    gives_back(&server, memory);
    server.stop().unwrap();
}

fn every_pair(sizes: &[u32]) -> Vec<CallPayload> {
    let mut pairs = Vec::new();
    for send in [Empty, Inline, Bulk] {
        for reply in [Empty, Inline, Bulk] {
            for &size in sizes {
                let bytes = |kind: RpcPayloadKind, size| if kind == Empty { 0 } else { size };
                pairs.push(payload(
                    (send, bytes(send, size)),
                    (reply, bytes(reply, size + 7)),
                ));
            }
        }
    }
    pairs
}

#[test]
fn every_pair_of_kinds_carries_small_payloads_whole() {
    for payload in every_pair(&[1, 1000]) {
        all_end_well(payload, 500, |_| {});
    }
}

#[test]
fn every_pair_of_kinds_carries_long_payloads_whole() {
    for payload in every_pair(&[20_000, 1_048_578]) {
        all_end_well(payload, 40, |_| {});
    }
}

#[test]
fn payloads_that_take_several_frames_arrive_whole() {
    let size = 3_500_001;
    all_end_well(payload((Inline, size), (Inline, size + 1)), 30, |_| {});
    all_end_well(payload((Bulk, size), (Bulk, size - 1)), 30, |_| {});
}

#[test]
fn sums_are_as_good_as_bytes() {
    for payload in every_pair(&[1000, 70_000]) {
        all_end_well(payload, 100, |setup| setup.verify = RpcVerify::Checksum);
    }
}

#[test]
fn data_may_follow_their_request_unasked() {
    for size in [100, 1_048_578] {
        for reply in [(Empty, 0), (Inline, 99), (Bulk, size)] {
            all_end_well(payload((Bulk, size), reply), 60, |setup| setup.eager = true);
        }
    }
}

#[test]
fn calls_wait_for_buffers_and_say_so() {
    for eager in [false, true] {
        let server = RpcServer::start(server_setup(1, RpcServiceTime::None)).unwrap();
        let mut setup = client_setup(endpoints(&server, 1), payload((Bulk, 600_000), (Empty, 0)));
        setup.buffers = 1;
        setup.eager = eager;
        let mut client = client(setup);
        let outcome = run(&mut client, 16, 1, 100);
        assert_eq!(outcome.good, 100, "{outcome:?}");
        assert!(client.close().unwrap().buffer_waits > 0);
    }
}

#[test]
fn limits_of_the_client_make_calls_wait_and_lose_none() {
    for limit in 0..3 {
        let server = RpcServer::start(server_setup(2, RpcServiceTime::None)).unwrap();
        let mut setup = client_setup(endpoints(&server, 2), payload((Inline, 8), (Inline, 8)));
        match limit {
            0 => setup.credits = 2,
            1 => setup.credits_per_rank = 3,
            _ => setup.quota = 1,
        }
        let mut client = client(setup);
        assert_eq!(run(&mut client, 16, 2, 2000).good, 2000);
        assert!(client.counters().credit_waits > 0);
    }
}

#[test]
fn buffers_end_in_the_byte_that_was_asked_for() {
    all_end_well(payload((Bulk, 4096), (Bulk, 4096)), 50, |setup| {
        setup.low_byte = Some(3);
    });
}

#[test]
fn a_call_that_takes_too_long_times_out_and_its_late_answer_harms_nobody() {
    let busy = RpcServiceTime::Constant(Nanos::from_millis(30));
    let server = RpcServer::start(server_setup(1, busy)).unwrap();
    for kinds in [((Empty, 0), (Empty, 0)), ((Bulk, 300_000), (Bulk, 300_000))] {
        let mut setup = client_setup(endpoints(&server, 1), payload(kinds.0, kinds.1));
        setup.timeout = Duration::from_millis(10);
        setup.slots = 2;
        let mut client = client(setup);
        let outcome = run(&mut client, 2, 1, 12);
        assert!(
            outcome.failed.iter().all(|&code| code == -1011),
            "{outcome:?}"
        );
        assert!(outcome.failed.len() >= 6, "{outcome:?}");
    }
}

/// A server's memory or line is broken: a bit of each reply is another.
struct Damaging(SelfTestService);

impl Damaging {
    fn damaged(call: &mut ServiceCall<'_>, step: NextStep) -> NextStep {
        if matches!(step, NextStep::Reply(_) | NextStep::PushAndReply(_)) {
            call.buffer[0] ^= 1;
        }
        step
    }
}

impl RpcService for Damaging {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn version(&self) -> u16 {
        self.0.version()
    }

    fn open(&mut self, session: u32, asked: &OpenRequest) -> Result<SessionShape, RpcError> {
        self.0.open(session, asked)
    }

    fn needs_buffer(&self, operation: u16) -> bool {
        self.0.needs_buffer(operation)
    }

    fn request(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let step = self.0.request(call);
        Self::damaged(call, step)
    }

    fn pulled(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let step = self.0.pulled(call);
        Self::damaged(call, step)
    }
}

#[test]
fn a_reply_that_is_not_what_it_should_be_is_told() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.services = Box::new(|_, _| {
        let service = SelfTestService::new(RpcServiceTime::None, 1);
        vec![Box::new(Damaging(service))]
    });
    let server = RpcServer::start(setup).unwrap();
    for payload in every_pair(&[1000, 20_000]) {
        if payload.reply.kind == Empty {
            continue;
        }
        for (verify, slots, wrong) in [
            (RpcVerify::Full, 16, 40),
            (RpcVerify::Checksum, 16, 40),
            (RpcVerify::First, 2, 2),
            (RpcVerify::Off, 16, 0),
        ] {
            let mut setup = client_setup(endpoints(&server, 1), payload);
            setup.verify = verify;
            setup.slots = slots;
            let outcome = run(&mut client(setup), slots, 1, 40);
            assert_eq!(outcome.failed.len(), wrong, "{payload:?} {verify:?}");
            let mismatch = DerCode::Mismatch.result();
            assert!(outcome.failed.iter().all(|&code| code == mismatch));
        }
    }
}

#[test]
fn a_server_that_stops_lets_calls_end_and_takes_no_new_ones() {
    let busy = RpcServiceTime::Constant(Nanos::from_millis(2));
    let server = RpcServer::start(server_setup(1, busy)).unwrap();
    let mut client = client(client_setup(
        endpoints(&server, 1),
        payload((Empty, 0), (Empty, 0)),
    ));
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        server.stop().unwrap();
    });
    let outcome = run(&mut client, 16, 1, 100_000);
    stopper.join().unwrap();
    assert!(outcome.good > 0 && outcome.not_sent > 0, "{outcome:?}");
    assert_eq!(
        outcome.good + outcome.failed.len() as u64 + outcome.not_sent,
        100_000
    );
    assert!(outcome.failed.iter().all(|&code| code == -1006));
}
