//! Cost of a call over the shared-memory link, without client, server and sessions: two threads,
//! each on a CPU of its own. Beside it stand the ring alone (`ring_cost` of weir-sys) and the probes
//! of `bench/rpc/raw.c`.
//!
//! Without arguments, on CPUs 0 and 1: calls a second with empty request and reply, at depth 1 and 16;
//! and how fast a server gets and puts 1 MiB, 16 buffers in turn, beside copies over as much memory.
//! With `calls DEPTH CALLER ANSWERER`, or `get|put 16 CPU CPU`: calls (transfers) a second, once.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a program that prints"
)]

use std::hint::{black_box, spin_loop};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::time::Instant;

use weir_rpc::RpcError;
use weir_rpc::links::shm::RpcShmLink;
use weir_rpc::links::{
    Link, LinkGreeting, LinkHandler, LinkSide, MemoryRange, MoveDirection, NewPeer, PeerId, Sent,
};
use weir_rpc::wire::{BulkAccess, BulkDescriptor, FrameHeader, FrameKind, MAX_FRAME};
use weir_sys::CpuList;
use weir_sys::buffer::{AlignedBuf, Backing, BufferSpec};
use weir_sys::pin::set_affinity;
use weir_units::Bytes;

const ROUNDS: usize = 7;
const MIB: usize = 1 << 20;
const BUFFERS: usize = 16;

/// Answers each call at once, or counts the answers.
struct Ends {
    answers: bool,
    calls: u64,
    is_gone: bool,
}

impl LinkHandler<RpcShmLink> for Ends {
    #[inline]
    fn message(&mut self, link: &mut RpcShmLink, peer: PeerId, header: &FrameHeader, body: &[u8]) {
        self.calls += 1;
        if self.answers {
            let answer = FrameHeader {
                kind: FrameKind::Response,
                ..*header
            };
            assert_eq!(link.send(peer, &answer, &[body]), Sent::Queued);
        }
    }

    fn moved(&mut self, _: &mut RpcShmLink, _: PeerId, _: u64, result: Result<(), RpcError>) {
        result.expect("moved");
        self.calls += 1;
    }

    fn lost(&mut self, _: &mut RpcShmLink, _: PeerId, _: RpcError) {
        self.is_gone = true;
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [what, depth, caller, answerer] = &args[..] {
        let number = |word: &String| -> u32 { word.parse().expect("a number") };
        let depth = number(depth);
        pin(number(caller));
        let ns = match what.as_str() {
            "calls" => calls_ns(depth.into(), calls(depth), number(answerer)),
            direction => bulk_ns(direction == "get"),
        };
        println!("{:.1}", 1e9 / ns);
        return;
    }
    pin(0);
    for depth in [1, 16] {
        let ns = median(|| calls_ns(depth.into(), calls(depth), 1));
        println!("calls   depth {depth:2}: {ns:7.1} ns, {:6.2} M/s", 1e3 / ns);
    }
    let copies = median(copies_ns);
    let (gets, puts) = (median(|| bulk_ns(true)), median(|| bulk_ns(false)));
    for (name, ns) in [("copies", copies), ("gets", gets), ("puts", puts)] {
        let rate = MIB as f64 / ns * 1e9 / f64::from(1 << 30);
        println!(
            "{name:7} of 1 MiB: {rate:5.2} GiB/s, {:.2} of copies",
            copies / ns
        );
    }
}

fn calls(depth: u32) -> u64 {
    if depth == 1 { 500_000 } else { 5_000_000 }
}

fn median(mut round: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn new_peer(side: LinkSide, stream: UnixStream, greeting: LinkGreeting) -> NewPeer {
    stream.set_nonblocking(true).expect("a socket");
    NewPeer {
        side,
        stream: OwnedFd::from(stream),
        early: Vec::new(),
        max_frame: MAX_FRAME,
        features: 0,
        greeting,
    }
}

/// A client that has joined, and what its server joins with.
fn client() -> (RpcShmLink, PeerId, NewPeer) {
    let mut client = RpcShmLink::new(LinkSide::Client).expect("a link");
    let (one, other) = UnixStream::pair().expect("sockets");
    let greeting = client.greeting().expect("memory");
    let for_server = new_peer(LinkSide::Server, other, greeting);
    let for_client = new_peer(LinkSide::Client, one, LinkGreeting::default());
    let peer = client.join(for_client).expect("joined");
    (client, peer, for_server)
}

fn server(client: NewPeer) -> (RpcShmLink, PeerId) {
    let mut server = RpcShmLink::new(LinkSide::Server).expect("a link");
    let peer = server.join(client).expect("joined");
    (server, peer)
}

/// Nanoseconds a call.
fn calls_ns(depth: u64, calls: u64, answerer: u32) -> f64 {
    let (mut client, peer, for_server) = client();
    // A thread begins where its parent is pinned, and has to get away from there.
    let both_pinned = Barrier::new(2);
    let met = || both_pinned.wait();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pin(answerer);
            let (mut server, _) = server(for_server);
            met();
            let mut ends = Ends {
                answers: true,
                calls: 0,
                is_gone: false,
            };
            while !ends.is_gone {
                if server.poll(None, &mut ends).expect("sound") == 0 {
                    spin_loop();
                } else {
                    server.flush().expect("sound");
                }
            }
        });
        met();
        let mut ends = Ends {
            answers: false,
            calls: 0,
            is_gone: false,
        };
        let header = FrameHeader::plain(FrameKind::Request);
        let (mut sent, begin) = (0, Instant::now());
        while ends.calls < calls {
            while sent < calls && sent - ends.calls < depth {
                assert_eq!(client.send(peer, &header, &[]), Sent::Queued);
                sent += 1;
            }
            client.flush().expect("sound");
            if client.poll(None, &mut ends).expect("sound") == 0 {
                spin_loop();
            }
        }
        let ns = begin.elapsed().as_nanos() as f64 / calls as f64;
        client.close(peer);
        ns
    })
}

/// Nanoseconds of a copy of 1 MiB, from one of so many buffers to one of as many others.
fn copies_ns() -> f64 {
    let spec = BufferSpec {
        backing: Backing::Transparent,
        ..BufferSpec::private(Bytes((BUFFERS * MIB) as u64))
    };
    let mut buffers = [0, 1].map(|_| AlignedBuf::new(&spec).expect("memory"));
    let [from, to] = &mut buffers;
    from.as_mut_slice().fill(1);
    to.as_mut_slice().fill(2);
    timed(|buffer| {
        let at = buffer * MIB;
        to.slot_mut(at, MIB).copy_from_slice(from.slot(at, MIB));
        black_box(to.as_ptr());
    })
}

/// The same by a server, from or to a client's memory.
fn bulk_ns(gets: bool) -> f64 {
    let (mut client, to_server, for_server) = client();
    let (mut server, to_client) = server(for_server);
    let theirs = client.allocate(BUFFERS * MIB, None).expect("memory");
    let own = server.allocate(BUFFERS * MIB, None).expect("memory");
    client.bytes(theirs).fill(1);
    server.bytes(own).fill(2);
    let range = |region, buffer| MemoryRange {
        region,
        offset: (buffer * MIB) as u64,
        length: MIB as u64,
    };
    let descriptors: Vec<BulkDescriptor> = (0..BUFFERS)
        .map(|buffer| client.describe(to_server, range(theirs, buffer), BulkAccess::BOTH))
        .collect();
    let mut ends = Ends {
        answers: false,
        calls: 0,
        is_gone: false,
    };
    timed(|buffer| {
        let (there, here) = (&descriptors[buffer], range(own, buffer));
        let sent = if gets {
            server.move_memory(MoveDirection::Get, to_client, (there, 0), here, 0)
        } else {
            server.move_memory(MoveDirection::Put, to_client, (there, 0), here, 0)
        };
        assert_eq!(sent, Sent::Queued);
        server.poll(None, &mut ends).expect("sound");
    })
}

/// Nanoseconds of what is done with each buffer in turn.
fn timed(mut move_one: impl FnMut(usize)) -> f64 {
    const PASSES: usize = 50;
    (0..BUFFERS).for_each(&mut move_one);
    let begin = Instant::now();
    for _ in 0..PASSES {
        (0..BUFFERS).for_each(&mut move_one);
    }
    begin.elapsed().as_nanos() as f64 / (PASSES * BUFFERS) as f64
}

fn pin(cpu: u32) {
    let cpus: CpuList = [cpu].into_iter().collect();
    set_affinity(&cpus).expect("the CPU is there");
}
