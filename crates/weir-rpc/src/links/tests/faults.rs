//! Properties that hold whatever a network does: every call ends once, memory comes back, credits are kept.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;

use weir_schema::{RpcEndpoint, RpcPayload, RpcPayloadKind, RpcPoll, RpcServiceTime, RpcVerify};

use super::{Faults, SimulatedLink, SimulatedNet};
use crate::client::{CallPayload, ClientSetup, DialSetup, RpcClient, ServerEndpoint};
use crate::links::{LinkGreeting, LinkSide, NewPeer};
use crate::server::SimulatedServer;
use crate::service::self_test::SelfTestService;
use crate::transport::{Requested, RpcTransport};
use crate::wire::HelloReply;

const ENDPOINTS: u32 = 3;
const SLOTS: u32 = 8;
/// A time-out that never comes: longer than any case may take.
const PATIENT_US: u64 = 1_000_000_000;

/// One run by chance.
#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    faults: Faults,
    payload: CallPayload,
    calls: u64,
    credits: u32,
    buffers: u32,
    eager: bool,
    timeout_us: u64,
}

fn kinds() -> impl Strategy<Value = (RpcPayloadKind, u32)> {
    prop_oneof![
        Just((RpcPayloadKind::Empty, 0)),
        (1..5000_u32).prop_map(|size| (RpcPayloadKind::Inline, size)),
        (1..900_000_u32).prop_map(|size| (RpcPayloadKind::Bulk, size)),
    ]
}

fn chance(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..most]
}

fn case() -> impl Strategy<Value = Case> {
    let faults = (chance(0.1), chance(0.1), chance(0.2), chance(0.0005));
    let numbers = (
        1..150_u64,
        1..10_u32,
        1..10_u32,
        any::<bool>(),
        300..20_000_u64,
    );
    (any::<u64>(), faults, kinds(), kinds(), numbers).prop_map(
        |(seed, (drop, duplicate, reorder, kill), send, reply, numbers)| {
            let (calls, credits, buffers, eager, timeout_us) = numbers;
            // Without a time-out nothing comes back that was lost on the way, nor data that overtake the
            // request that they belong to, nor the buffer of a request that came a second time.
            let patient = seed % 2 == 0;
            let (drop, duplicate, kill) = if patient {
                (0.0, 0.0, 10.0 * kill)
            } else {
                (drop, duplicate, kill)
            };
            let reorder = if patient && eager { 0.0 } else { reorder };
            let timeout_us = if patient { PATIENT_US } else { timeout_us };
            let faults = Faults {
                drop,
                duplicate,
                reorder,
                kill,
            };
            let payload = CallPayload {
                request: RpcPayload {
                    kind: send.0,
                    bytes: send.1,
                },
                reply: RpcPayload {
                    kind: reply.0,
                    bytes: reply.1,
                },
            };
            Case {
                seed,
                faults,
                payload,
                calls,
                credits,
                buffers,
                eager,
                timeout_us,
            }
        },
    )
}

/// For calls of this kind to so many tags.
pub(super) fn setup_of(tags: u32, payload: CallPayload) -> ClientSetup {
    let endpoint = |tag| ServerEndpoint {
        endpoint: RpcEndpoint { rank: 0, tag },
        address: "tcp://127.0.0.1:1".parse().unwrap(),
        nonce: None,
    };
    ClientSetup {
        dial: DialSetup {
            group: "g".to_owned(),
            token: None,
            from: Vec::new(),
            within: Duration::from_secs(10),
        },
        own_connections: false,
        endpoints: (0..tags).map(endpoint).collect(),
        slots: SLOTS,
        payload,
        buffers: 1,
        credits: 1,
        credits_per_rank: 0,
        quota: 0,
        verify: RpcVerify::Full,
        eager: false,
        timeout: Duration::from_micros(PATIENT_US),
        reconnect: None,
        low_byte: None,
        poll: RpcPoll::Busy,
    }
}

fn setup(case: &Case) -> ClientSetup {
    ClientSetup {
        buffers: case.buffers,
        credits: case.credits,
        eager: case.eager,
        timeout: Duration::from_micros(case.timeout_us),
        ..setup_of(ENDPOINTS, case.payload)
    }
}

pub(super) fn dummy() -> NewPeer {
    NewPeer {
        side: LinkSide::Client,
        stream: std::fs::File::open("/dev/null").unwrap().into(),
        early: Vec::new(),
        max_frame: 1 << 16,
        features: 0,
        greeting: LinkGreeting::default(),
    }
}

pub(super) fn reply() -> HelloReply {
    HelloReply {
        nonce: [0; 16],
        run: [0; 16],
        rank: 0,
        tags: ENDPOINTS,
        features: 0,
        max_frame: 1 << 16,
        max_message: 1 << 30,
        credits: 100,
        authenticate: false,
        transport: "simulated".to_owned(),
        address: Vec::new(),
    }
}

/// Good, failed and not sent calls.
fn drive(
    client: &mut RpcClient<SimulatedLink>,
    net: &RefCell<SimulatedNet>,
    calls: u64,
) -> (u64, Vec<i64>, u64) {
    let (mut good, mut failed, mut not_sent) = (0, Vec::new(), 0);
    let mut busy = [false; SLOTS as usize];
    let (mut asked, mut turn) = (0, 0);
    while good + (failed.len() as u64) + not_sent < calls {
        for slot in 0..SLOTS {
            if busy[slot as usize] || asked == calls {
                continue;
            }
            let up = (0..ENDPOINTS)
                .map(|i| (turn + i) % ENDPOINTS)
                .find(|&e| client.is_up(e));
            let Some(endpoint) = up else {
                not_sent += calls - asked;
                asked = calls;
                break;
            };
            turn = endpoint + 1;
            assert_eq!(client.request(endpoint, slot), Requested::Queued);
            busy[slot as usize] = true;
            asked += 1;
        }
        let ended = |slot: u32, result: i64| {
            assert!(
                std::mem::take(&mut busy[slot as usize]),
                "slot {slot} ended twice"
            );
            if result >= 0 {
                good += 1;
            } else {
                failed.push(result);
            }
        };
        client.poll(Some(0), SLOTS, ended).unwrap();
        // All calls in turn, each until its time is over, take three seconds.
        assert!(net.borrow().now_ns < 60_000_000_000, "a call never ends");
    }
    (good, failed, not_sent)
}

fn holds(case: &Case) {
    let net = SimulatedNet::new(case.seed, case.faults);
    let service = |_, _| -> Vec<Box<dyn crate::service::RpcService>> {
        vec![Box::new(SelfTestService::new(RpcServiceTime::None, 1))]
    };
    let link = SimulatedLink::new(&net, LinkSide::Server);
    let regions = Rc::clone(&link.regions);
    let server = Rc::new(RefCell::new(SimulatedServer::new(
        link, ENDPOINTS, &service,
    )));
    let mut link = SimulatedLink::new(&net, LinkSide::Client);
    let serving = Rc::clone(&server);
    link.meanwhile = Some(Box::new(move || serving.borrow_mut().round()));
    let joining = Rc::clone(&server);
    let time = Rc::clone(&net);
    let attached = RpcClient::attach_with(
        link,
        setup(case),
        Box::new(move || time.borrow().now_ns),
        |_, endpoint| {
            joining.borrow_mut().join(dummy(), endpoint.endpoint.tag);
            Ok((dummy(), reply()))
        },
        &|| false,
    );
    if let Ok(mut client) = attached {
        let (good, failed, not_sent) = drive(&mut client, &net, case.calls);
        assert_eq!(good + failed.len() as u64 + not_sent, case.calls);
        let faults = case.faults;
        if case.timeout_us == PATIENT_US {
            // Calls at a connection that is closed end with it, and no other way.
            assert!(!failed.contains(&-1011), "{failed:?}");
        }
        if faults.drop + faults.duplicate + faults.reorder + faults.kill == 0.0 {
            let slow = failed.iter().all(|&code| code == -1011);
            assert!(slow, "a network without faults: {failed:?}");
        }
        if faults.duplicate + faults.reorder + faults.drop == 0.0 {
            assert_eq!(server.borrow().protocol_errors(), 0);
        }
        client.close().unwrap();
    }
    for _ in 0..100 {
        net.borrow_mut().step();
        server.borrow_mut().round();
    }
    assert_eq!(*regions.borrow(), 0, "buffers of the server");
    assert_eq!(server.borrow().memory_taken(), 0);
}

/// Buffers of a session that a round makes or gives back.
const PIECE: i64 = 256;

#[test]
fn a_session_with_many_buffers_opens_and_ends_in_pieces() {
    let none = Faults {
        drop: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        kill: 0.0,
    };
    let net = SimulatedNet::new(1, none);
    let service = |_, _| -> Vec<Box<dyn crate::service::RpcService>> {
        vec![Box::new(SelfTestService::new(RpcServiceTime::None, 1))]
    };
    let link = SimulatedLink::new(&net, LinkSide::Server);
    let regions = Rc::clone(&link.regions);
    let server = Rc::new(RefCell::new(SimulatedServer::new(link, 1, &service)));
    let pieces = Rc::new(RefCell::new(Vec::new()));
    let round = {
        let (server, pieces) = (Rc::clone(&server), Rc::clone(&pieces));
        move || {
            let before = *regions.borrow();
            server.borrow_mut().round();
            let piece = *regions.borrow() - before;
            assert!(piece.abs() <= PIECE, "{piece} in a round");
            if piece != 0 {
                pieces.borrow_mut().push(piece);
            }
        }
    };
    let mut link = SimulatedLink::new(&net, LinkSide::Client);
    link.meanwhile = Some(Box::new(round.clone()));
    let of = |kind, bytes| RpcPayload { kind, bytes };
    let payload = CallPayload {
        request: of(RpcPayloadKind::Bulk, 100),
        reply: of(RpcPayloadKind::Empty, 0),
    };
    let setup = ClientSetup {
        buffers: 1000,
        ..setup_of(1, payload)
    };
    let (joining, time) = (Rc::clone(&server), Rc::clone(&net));
    let client = RpcClient::attach_with(
        link,
        setup,
        Box::new(move || time.borrow().now_ns),
        |_, endpoint| {
            joining.borrow_mut().join(dummy(), endpoint.endpoint.tag);
            Ok((dummy(), reply()))
        },
        &|| false,
    );
    client.unwrap().close().unwrap();
    for _ in 0..100 {
        net.borrow_mut().step();
        round();
    }
    let made = [PIECE, PIECE, PIECE, 232];
    let ended = made.map(|piece| -piece);
    assert_eq!(*pieces.borrow(), [made, ended].concat());
    assert_eq!(server.borrow().memory_taken(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_call_ends_once_and_all_memory_comes_back(case in case()) {
        holds(&case);
    }
}
