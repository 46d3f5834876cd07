//! Cost of a call with client, server and sessions, and without a load generator around it: a
//! server with one poller on one CPU, a client on another, calls in a closed loop.
//!
//! `call_cost tcp|shm IN_FLIGHT REQUEST REPLY CALLER ANSWERER [SECONDS]`: calls a second. REQUEST and
//! REPLY are bytes, by bulk transfer from 64 KiB on.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a program that prints"
)]

use std::hint::spin_loop;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_rpc::client::{CallPayload, ClientSetup, DialSetup, RpcClient, ServerEndpoint};
use weir_rpc::links::shm::RpcShmLink;
use weir_rpc::links::stream::StreamLink;
use weir_rpc::links::{Link, LinkSide};
use weir_rpc::server::{NoMasters, RankSetup, RpcServer, ServerLimits, ServerSetup};
use weir_rpc::service::self_test::SelfTestService;
use weir_rpc::transport::{Requested, RpcTransport};
use weir_schema::{RpcEndpoint, RpcPayload, RpcPayloadKind, RpcPoll, RpcServiceTime, RpcVerify};
use weir_sys::CpuList;
use weir_sys::pin::set_affinity;

/// Payloads from here on are bulk transfers.
const BULK: u32 = 64 << 10;
/// Calls before the time begins, for each that is in flight.
const WARM_UP: u64 = 100;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|word| word.parse().ok());
    let (Some(scheme), Some(in_flight), Some(request), Some(reply), Some(caller), Some(answerer)) = (
        args.first(),
        number(1),
        number(2),
        number(3),
        number(4),
        number(5),
    ) else {
        panic!("call_cost tcp|shm IN_FLIGHT REQUEST REPLY CALLER ANSWERER [SECONDS]");
    };
    let seconds = args
        .get(6)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.3);
    let socket = std::env::temp_dir().join(format!("weir-call-cost-{}.sock", std::process::id()));
    let address = match scheme.as_str() {
        "shm" => format!("shm://{}", socket.display()),
        _ => "tcp://127.0.0.1:0".to_owned(),
    };
    let server = serve(&address, answerer);
    let cpus: CpuList = [caller].into_iter().collect();
    set_affinity(&cpus).expect("the CPU is there");
    let setup = setup(&server, in_flight, request, reply);
    let time = Duration::from_secs_f64(seconds);
    let rate = if scheme == "shm" {
        rate(
            RpcShmLink::new(LinkSide::Client).expect("a link"),
            setup,
            in_flight,
            time,
        )
    } else {
        rate(StreamLink::new().expect("a link"), setup, in_flight, time)
    };
    println!("{rate:.1}");
    server.stop().expect("stopped");
    let _ = std::fs::remove_file(socket);
}

fn serve(address: &str, answerer: u32) -> RpcServer {
    RpcServer::start(ServerSetup {
        group: "cost".to_owned(),
        ranks: vec![RankSetup {
            rank: 0,
            tags: 1,
            addresses: vec![address.parse().expect("an address")],
        }],
        pollers: 1,
        cpus: vec![answerer],
        poll: RpcPoll::Busy,
        services: Box::new(|_, _| vec![Box::new(SelfTestService::new(RpcServiceTime::None, 0))]),
        domain: None,
        limits: ServerLimits::default(),
        token: None,
        masters: Arc::new(NoMasters),
        log: Box::new(|_| {}),
    })
    .expect("a server")
}

fn setup(server: &RpcServer, in_flight: u32, request: u32, reply: u32) -> ClientSetup {
    let kind = |bytes| match bytes {
        0 => RpcPayloadKind::Empty,
        BULK.. => RpcPayloadKind::Bulk,
        _ => RpcPayloadKind::Inline,
    };
    let (rank, address) = server.addresses()[0].clone();
    ClientSetup {
        dial: DialSetup {
            group: "cost".to_owned(),
            token: None,
            from: Vec::new(),
            within: Duration::from_secs(10),
        },
        own_connections: false,
        endpoints: vec![ServerEndpoint {
            endpoint: RpcEndpoint { rank, tag: 0 },
            address,
            nonce: Some(server.nonce()),
        }],
        slots: in_flight,
        payload: CallPayload {
            request: RpcPayload {
                kind: kind(request),
                bytes: request,
            },
            reply: RpcPayload {
                kind: kind(reply),
                bytes: reply,
            },
        },
        buffers: in_flight,
        credits: in_flight,
        credits_per_rank: 0,
        quota: 0,
        verify: RpcVerify::Off,
        eager: false,
        timeout: Duration::from_secs(60),
        reconnect: None,
        low_byte: None,
        poll: RpcPoll::Busy,
    }
}

/// Calls a second.
fn rate<L: Link>(link: L, setup: ClientSetup, in_flight: u32, time: Duration) -> f64 {
    let mut client = RpcClient::attach(link, setup).expect("attached");
    let mut free: Vec<u32> = (0..in_flight).collect();
    let (mut done, mut begin, mut done_before) = (0_u64, Instant::now(), 0);
    let warm = WARM_UP * u64::from(in_flight);
    let mut rounds = 0_u32;
    loop {
        for slot in free.drain(..) {
            assert_eq!(client.request(0, slot), Requested::Queued);
        }
        client.flush().expect("sound");
        let ended = client.poll(Some(0), u32::MAX, |slot, result| {
            assert!(result >= 0, "a call failed: {result}");
            free.push(slot);
        });
        match ended.expect("sound") {
            0 => spin_loop(),
            ended => done += u64::from(ended),
        }
        if done_before == 0 && done >= warm {
            (begin, done_before) = (Instant::now(), done);
        }
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(64) && done_before > 0 && begin.elapsed() >= time {
            break;
        }
    }
    let rate = (done - done_before) as f64 / begin.elapsed().as_secs_f64();
    client.close().expect("closed");
    rate
}
