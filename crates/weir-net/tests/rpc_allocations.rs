//! Test that a peer's announcement takes no memory before its data has come (F5): the largest
//! allocation of a process that serves while peers announce data that they never send.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod rpc;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rpc::raw::{bulk_session, greeted, header, open};
use rpc::{client, client_setup, endpoints, payload, run, server_setup};
use weir_net::rpc::client::ControlStream;
use weir_net::rpc::self_test::ServiceTime;
use weir_net::rpc::server::RpcServer;
use weir_net::rpc::transport::RpcTransport;
use weir_net::rpc::wire::PayloadKind::{Bulk, Empty, Inline};
use weir_net::rpc::wire::{FrameHeader, FrameKind, MAX_FRAME, OpenRequest, Preamble, flag};

/// The largest allocation of any thread since it was 0, in bytes.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which notes the largest.
struct Noting;

// SAFETY: every call is handed to the system's allocator unchanged; the note is an atomic number that needs
// no allocation of its own.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Relaxed);
        // SAFETY: this trait asks of its callers what `System` asks: a layout that is not empty.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller names a pointer of `alloc` above, which is one of `System`, and its layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

/// Limit that no announcement may exceed.
const MOST: usize = 64 << 10;

/// A header that announces so many bytes, and the first of them.
fn beginning(kind: FrameKind, flags: u8, length: u32, first: &[u8]) -> Vec<u8> {
    let header = FrameHeader {
        flags,
        ..header(kind)
    };
    [&header.encode(length, true)[..], first].concat()
}

/// Answers calls of another client, whatever came before.
fn serves(server: &RpcServer) {
    let both = payload((Inline, 100), (Empty, 0));
    let mut calls = client(client_setup(endpoints(server, 1), both));
    assert_eq!(run(&mut calls, 4, 1, 50).good, 50);
    calls.close().unwrap();
}

/// A session that asks for more than there is.
fn asks_for_the_world(server: &RpcServer) {
    let mut peer = greeted(server);
    let world = OpenRequest {
        send_size: u32::MAX,
        reply_size: u32::MAX,
        reply_kind: Bulk,
        buffers: u32::MAX,
        credits: u32::MAX,
        ..bulk_session()
    };
    assert!(open(&mut peer, &world).is_err());
}

/// A stranger whose first frame has no end.
fn announces_in_its_greeting(server: &RpcServer) {
    let place = &server.addresses()[0].1.place;
    let mut stranger = TcpStream::connect(place).unwrap();
    stranger
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let preamble = Preamble {
        major: 1,
        minor: 0,
        flags: 0,
    };
    let hello = beginning(FrameKind::Hello, 0, u32::MAX, &[]);
    stranger
        .write_all(&[&preamble.encode()[..], &hello].concat())
        .unwrap();
    let _ = stranger.read_to_end(&mut Vec::new());
}

#[test]
fn f5_what_a_peer_announces_makes_nothing_above_64_kib_be_allocated() {
    let server = RpcServer::start(server_setup(1, ServiceTime::None)).unwrap();
    serves(&server);
    let fragment = |total: u64| [&total.to_le_bytes()[..], &[7; 100]].concat();
    let begin = |kind, flags, length, first: &[u8]| {
        let peer = greeted(&server);
        LARGEST.store(0, Relaxed);
        peer.send_raw(&beginning(kind, flags, length, first))
            .unwrap();
        // Both are handled by one thread, in turns.
        serves(&server);
        serves(&server);
        let largest = LARGEST.load(Relaxed);
        assert!(
            largest > 0 && largest <= MOST,
            "{kind:?} {flags} {length}: {largest} bytes"
        );
        peer
    };
    let request = FrameKind::Request;
    let mut peers: Vec<ControlStream> = Vec::new();
    for kind in [
        request,
        FrameKind::Start,
        FrameKind::Open,
        FrameKind::BulkData,
    ] {
        for length in [MAX_FRAME, MAX_FRAME + 1, u32::MAX] {
            for first in [&[][..], &[9; 100]] {
                peers.push(begin(kind, 0, length, first));
            }
        }
    }
    for kind in [request, FrameKind::Start] {
        for total in [1 << 20, 16 << 20, 60 << 20, u64::MAX] {
            let first = fragment(total);
            let length = u32::try_from(first.len()).unwrap();
            peers.push(begin(kind, flag::MORE, length, &first));
        }
    }
    LARGEST.store(0, Relaxed);
    asks_for_the_world(&server);
    announces_in_its_greeting(&server);
    assert!(LARGEST.load(Relaxed) <= MOST);
}
