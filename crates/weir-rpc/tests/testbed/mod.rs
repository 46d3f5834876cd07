//! A server in this process, and clients of it.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "in tests"
)]

pub(crate) mod raw;

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_rpc::client::{CallPayload, ClientSetup, DialSetup, RpcClient, ServerEndpoint};
use weir_rpc::links::stream::StreamLink;
use weir_rpc::server::{NoMasters, RankSetup, RpcServer, ServerLimits, ServerSetup};
use weir_rpc::service::self_test::SelfTestService;
use weir_rpc::transport::{Requested, RpcTransport};
use weir_schema::{RpcEndpoint, RpcPayload, RpcPayloadKind, RpcPoll, RpcServiceTime, RpcVerify};
use weir_units::Nanos;

/// A server's setup on loopback: rank 0 with so many tags.
pub(crate) fn server_setup(tags: u32, time: RpcServiceTime) -> ServerSetup {
    ServerSetup {
        group: "test".to_owned(),
        ranks: vec![RankSetup {
            rank: 0,
            tags,
            addresses: vec!["tcp://127.0.0.1:0".parse().unwrap()],
        }],
        pollers: 1,
        cpus: Vec::new(),
        poll: RpcPoll::Spin {
            for_ns: Nanos::from_micros(50),
        },
        services: Box::new(move |_, tag| {
            vec![Box::new(SelfTestService::new(time, u64::from(tag)))]
        }),
        domain: None,
        limits: ServerLimits::default(),
        token: None,
        masters: Arc::new(NoMasters),
        log: Box::new(|_| {}),
    }
}

/// Waits until a server has all its memory: what a connection holds is given back with its end.
#[track_caller]
pub(crate) fn gives_back(server: &RpcServer, memory: u64) {
    let end = Instant::now() + Duration::from_secs(10);
    while server.memory_left() != memory {
        assert!(
            Instant::now() < end,
            "{} of {memory} bytes",
            server.memory_left()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The endpoints of all tags of rank 0.
pub(crate) fn endpoints(server: &RpcServer, tags: u32) -> Vec<ServerEndpoint> {
    let (rank, address) = server.addresses()[0].clone();
    let endpoint = |tag| ServerEndpoint {
        endpoint: RpcEndpoint { rank, tag },
        address: address.clone(),
        nonce: Some(server.nonce()),
    };
    (0..tags).map(endpoint).collect()
}

pub(crate) fn payload(send: (RpcPayloadKind, u32), reply: (RpcPayloadKind, u32)) -> CallPayload {
    CallPayload {
        request: RpcPayload {
            kind: send.0,
            bytes: send.1,
        },
        reply: RpcPayload {
            kind: reply.0,
            bytes: reply.1,
        },
    }
}

pub(crate) fn client_setup(endpoints: Vec<ServerEndpoint>, payload: CallPayload) -> ClientSetup {
    ClientSetup {
        dial: DialSetup {
            group: "test".to_owned(),
            token: None,
            from: Vec::new(),
            within: Duration::from_secs(10),
        },
        own_connections: false,
        endpoints,
        slots: 16,
        payload,
        buffers: 16,
        credits: 16,
        credits_per_rank: 0,
        quota: 0,
        verify: RpcVerify::Full,
        eager: false,
        timeout: Duration::from_secs(60),
        reconnect: None,
        low_byte: None,
        poll: RpcPoll::Spin {
            for_ns: Nanos::from_micros(50),
        },
    }
}

pub(crate) fn client(setup: ClientSetup) -> RpcClient<StreamLink> {
    RpcClient::attach(StreamLink::new().unwrap(), setup).unwrap()
}

/// Results of calls.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) good: u64,
    pub(crate) failed: Vec<i64>,
    pub(crate) not_sent: u64,
}

/// Keeps all slots busy, endpoint by endpoint in turn, until so many calls have ended.
pub(crate) fn run<T: RpcTransport>(
    client: &mut T,
    slots: u32,
    endpoints: u32,
    calls: u64,
) -> Outcome {
    run_with(client, slots, endpoints, calls, |_, _| {})
}

/// The same; `between` is called after each poll with the number of calls that have ended.
pub(crate) fn run_with<T: RpcTransport>(
    client: &mut T,
    slots: u32,
    endpoints: u32,
    calls: u64,
    mut between: impl FnMut(&mut T, u64),
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut free: Vec<u32> = (0..slots).collect();
    let (mut asked, mut turn) = (0, 0);
    while outcome.good + (outcome.failed.len() as u64) + outcome.not_sent < calls {
        while asked < calls
            && let Some(slot) = free.pop()
        {
            let up = (0..endpoints)
                .map(|i| (turn + i) % endpoints)
                .find(|&e| client.is_up(e));
            let Some(endpoint) = up else {
                free.push(slot);
                outcome.not_sent += calls - asked;
                asked = calls;
                break;
            };
            turn = endpoint + 1;
            asked += 1;
            assert_eq!(client.request(endpoint, slot), Requested::Queued);
        }
        client.flush().unwrap();
        let timeout = Some(20_000_000_000);
        let mut busy = vec![true; slots as usize];
        for &slot in &free {
            busy[slot as usize] = false;
        }
        let waits = busy.contains(&true);
        let got = client
            .poll(
                timeout.filter(|_| waits).or(Some(0)),
                u32::MAX,
                |slot, result| {
                    assert!(busy[slot as usize], "slot {slot} ended twice");
                    busy[slot as usize] = false;
                    free.push(slot);
                    if result >= 0 {
                        outcome.good += 1;
                    } else {
                        outcome.failed.push(result);
                    }
                },
            )
            .unwrap();
        assert!(got > 0 || !waits, "no answer for 20 s: {outcome:?}");
        between(client, outcome.good + outcome.failed.len() as u64);
    }
    outcome
}

/// Says that a test could not be made here, and why.
pub(crate) fn skip(test: &str, reason: &str) {
    println!("SKIPPED: {test}: {reason}");
    if let Ok(path) = std::env::var("WEIR_SKIP_LOG") {
        let log = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        let _ = log.and_then(|mut log| writeln!(log, "{test}: {reason}"));
    }
}
