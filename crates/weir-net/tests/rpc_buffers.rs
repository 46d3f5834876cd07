//! Placement of buffers: the low byte of their addresses at both ends, over every link; the number
//! of RPCs at once that a server allows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod rpc;

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rpc::{client, client_setup, endpoints, payload, run, server_setup, skip};
use weir_net::rpc::client::{ClientSetup, RpcClient};
use weir_net::rpc::link::{Link, LinkSide};
use weir_net::rpc::ofi::{FabricChoice, OfiLink, OfiSettings};
use weir_net::rpc::self_test::{SelfTestService, ServiceTime};
use weir_net::rpc::server::RpcServer;
use weir_net::rpc::service::{NextStep, RpcService, ServiceCall, SessionShape};
use weir_net::rpc::shm::ShmLink;
use weir_net::rpc::stream::StreamLink;
use weir_net::rpc::transport::RpcTransport;
use weir_net::rpc::wire::{OpenRequest, PayloadKind};
use weir_net::rpc::{DerCode, RpcError};

/// Low bytes of the addresses of buffers.
type LowBytes = Arc<Mutex<Vec<usize>>>;

/// The self-test, with a note of where each call's buffer lies.
struct NotingService {
    test: SelfTestService,
    seen: LowBytes,
}

impl NotingService {
    fn note(&self, call: &ServiceCall<'_>) {
        let at = call.buffer.as_ptr().addr();
        self.seen.lock().unwrap().push(at & 0xff);
    }
}

impl RpcService for NotingService {
    fn name(&self) -> &'static str {
        self.test.name()
    }

    fn version(&self) -> u16 {
        self.test.version()
    }

    fn open(&mut self, session: u32, asked: &OpenRequest) -> Result<SessionShape, RpcError> {
        self.test.open(session, asked)
    }

    fn needs_buffer(&self, operation: u16) -> bool {
        self.test.needs_buffer(operation)
    }

    fn request(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        self.note(call);
        self.test.request(call)
    }

    fn pulled(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        self.note(call);
        self.test.pulled(call)
    }
}

/// Makes calls to a server at this address; both ends shall have buffers that end in 3.
fn both_ends<L: Link>(address: &str, link: impl Fn() -> L) {
    let seen = LowBytes::default();
    let mut setup = server_setup(1, ServiceTime::None);
    setup.ranks[0].addresses = vec![address.parse().unwrap()];
    let noted = Arc::clone(&seen);
    setup.services = Box::new(move |_, _| {
        vec![Box::new(NotingService {
            test: SelfTestService::new(ServiceTime::None, 1),
            seen: Arc::clone(&noted),
        })]
    });
    let server = RpcServer::start(setup).unwrap();
    let bulk = payload((PayloadKind::Bulk, 4096), (PayloadKind::Bulk, 5000));
    let setup = ClientSetup {
        low_byte: Some(3),
        ..client_setup(endpoints(&server, 1), bulk)
    };
    let mut client = RpcClient::attach(link(), setup).unwrap();
    assert_eq!(run(&mut client, 16, 1, 200).good, 200, "{address}");
    client.close().unwrap();
    server.stop().unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.len() >= 200, "{address}");
    assert!(seen.iter().all(|low| *low == 3), "{address}: {seen:?}");
    // What a client does for each of its slots.
    let mut link = link();
    for bytes in [1, 4096, 100_001] {
        let region = link.allocate(bytes, Some(3)).unwrap();
        assert_eq!(link.bytes(region).len(), bytes, "{address}");
        assert_eq!(link.bytes(region).as_ptr().addr() & 0xff, 3, "{address}");
    }
}

#[test]
fn a10_buffers_at_both_ends_have_the_low_byte_that_was_asked_for() {
    both_ends("tcp://127.0.0.1:0", || StreamLink::new().unwrap());
    let name = format!("weir-rpc-buffers-{}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    both_ends(&format!("shm://{}", path.display()), || {
        ShmLink::new(LinkSide::Client).unwrap()
    });
    let _ = std::fs::remove_file(path);
    let choice = FabricChoice::on_loopback("tcp;ofi_rxm");
    if let Err(why) = choice.find() {
        skip("buffers of fabrics", &why.to_string());
        return;
    }
    let poll = server_setup(1, ServiceTime::None).poll;
    both_ends("ofi+tcp;ofi_rxm://127.0.0.1:0", || {
        OfiLink::<true>::open(choice.find().unwrap(), OfiSettings::of(poll)).unwrap()
    });
}

#[test]
fn a_server_that_allows_fewer_rpcs_at_once_is_noticed() {
    let mut setup = server_setup(1, ServiceTime::None);
    setup.limits.credits = 4;
    let server = RpcServer::start(setup).unwrap();
    let inline = payload((PayloadKind::Inline, 100), (PayloadKind::Inline, 100));
    for (wanted, fewer) in [(16, Some(4)), (4, None)] {
        let setup = ClientSetup {
            credits: wanted,
            ..client_setup(endpoints(&server, 1), inline)
        };
        let mut client = client(setup);
        assert_eq!(run(&mut client, 16, 1, 200).good, 200);
        assert_eq!(client.counters().fewer_credits, fewer);
        client.close().unwrap();
    }
    server.stop().unwrap();
}

#[test]
fn taking_memory_is_given_up_when_it_is_to_end_and_the_servers_is_given_back() {
    let server = RpcServer::start(server_setup(1, ServiceTime::None)).unwrap();
    let memory = server.memory_left();
    let bulk = payload((PayloadKind::Bulk, 4096), (PayloadKind::Bulk, 4096));
    let setup = client_setup(endpoints(&server, 1), bulk);
    let looks = AtomicU32::new(0);
    // The first looks are before its session is there.
    let is_over = || looks.fetch_add(1, Relaxed) == 14;
    let given_up = RpcClient::attach_unless(StreamLink::new().unwrap(), setup, &is_over);
    let why = given_up.map(|_| ()).unwrap_err();
    assert_eq!(
        (why.code, looks.load(Relaxed)),
        (DerCode::Canceled, 15),
        "{why}"
    );
    let until = Instant::now() + Duration::from_secs(10);
    while server.memory_left() != memory {
        assert!(Instant::now() < until, "the server keeps its buffers");
        std::thread::yield_now();
    }
    server.stop().unwrap();
}
