//! Two sides of a link, in one process and in two, well-behaved and hostile.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::frames::SLOTS;
use super::polling::{ALWAYS_BUSY, IDLE_ROUNDS};
use super::*;
use crate::wire::{MAX_FRAME, RpcId, WireReader};

/// Keeps what comes.
#[derive(Default)]
struct KeptFrames {
    frames: Vec<(FrameHeader, Vec<u8>)>,
    moves: Vec<(u64, Result<(), RpcError>)>,
    lost: Vec<(PeerId, RpcError)>,
}

impl LinkHandler<RpcShmLink> for KeptFrames {
    fn message(&mut self, _: &mut RpcShmLink, _: PeerId, header: &FrameHeader, body: &[u8]) {
        self.frames.push((*header, body.to_vec()));
    }

    fn moved(&mut self, _: &mut RpcShmLink, _: PeerId, token: u64, result: Result<(), RpcError>) {
        self.moves.push((token, result));
    }

    fn lost(&mut self, _: &mut RpcShmLink, peer: PeerId, why: RpcError) {
        self.lost.push((peer, why));
    }
}

fn new_peer(side: LinkSide, stream: OwnedFd, greeting: LinkGreeting) -> NewPeer {
    NewPeer {
        side,
        stream,
        early: Vec::new(),
        max_frame: MAX_FRAME,
        features: 0,
        greeting,
    }
}

fn stream_pair() -> (OwnedFd, OwnedFd) {
    let (one, other) = UnixStream::pair().unwrap();
    for stream in [&one, &other] {
        stream.set_nonblocking(true).unwrap();
    }
    (one.into(), other.into())
}

struct Connected {
    client: RpcShmLink,
    server: RpcShmLink,
    /// The other side, as each side names it.
    to_server: PeerId,
    to_client: PeerId,
    /// The memory of the connection, as somebody hostile has it.
    memory: Arc<SharedMemory>,
}

fn connected() -> Connected {
    let mut client = RpcShmLink::new(LinkSide::Client).unwrap();
    let mut server = RpcShmLink::new(LinkSide::Server).unwrap();
    let (one, other) = stream_pair();
    let greeting = client.greeting().unwrap();
    let memory = segment::open(&greeting.passed[0]).unwrap();
    let to_client = server
        .join(new_peer(LinkSide::Server, other, greeting))
        .unwrap();
    let of_server = server.greeting().unwrap();
    let to_server = client
        .join(new_peer(LinkSide::Client, one, of_server))
        .unwrap();
    Connected {
        client,
        server,
        to_server,
        to_client,
        memory,
    }
}

fn request(slot: u32) -> FrameHeader {
    FrameHeader {
        rpc: RpcId {
            slot,
            generation: 1,
        },
        ..FrameHeader::plain(FrameKind::Request)
    }
}

const LONG: Option<Duration> = Some(Duration::from_secs(20));

/// Polls until something was handed on.
fn poll(link: &mut RpcShmLink) -> KeptFrames {
    let (mut kept, begin) = (KeptFrames::default(), Instant::now());
    while link.poll(LONG, &mut kept).unwrap() == 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "nothing comes");
    }
    kept
}

#[test]
fn calls_go_by_ring_and_orders_by_socket_both_ways() {
    let mut c = connected();
    let long = vec![5; 600_000];
    for (kind, body) in [
        (FrameKind::Request, &b""[..]),
        (FrameKind::Request, &[3; 1_000]),
        (FrameKind::Request, &long),
        (FrameKind::Ping, &[1; 8]),
    ] {
        let header = FrameHeader::plain(kind);
        assert_eq!(c.client.send(c.to_server, &header, &[body]), Sent::Queued);
        c.client.flush().unwrap();
        assert_eq!(poll(&mut c.server).frames, [(header, body.to_vec())]);
        assert_eq!(c.server.send(c.to_client, &header, &[body]), Sent::Queued);
        c.server.flush().unwrap();
        assert_eq!(poll(&mut c.client).frames, [(header, body.to_vec())]);
    }
}

#[test]
fn a_server_moves_memory_of_a_client_both_ways() {
    let mut c = connected();
    let region = c.client.allocate(2_000_000, Some(7)).unwrap();
    c.client.bytes(region)[500_000..1_500_000].fill(9);
    let range = MemoryRange {
        region,
        offset: 500_000,
        length: 1_000_000,
    };
    let theirs = c.client.describe(c.to_server, range, BulkAccess::BOTH);
    let own = c.server.allocate(1_000_000, None).unwrap();
    let into = MemoryRange {
        region: own,
        offset: 0,
        length: 1_000_000,
    };
    assert_eq!(
        c.server
            .move_memory(MoveDirection::Get, c.to_client, (&theirs, 0), into, 1),
        Sent::Queued
    );
    assert_eq!(poll(&mut c.server).moves, [(1, Ok(()))]);
    assert!(c.server.bytes(own).iter().all(|&byte| byte == 9));
    c.server.bytes(own)[..10].fill(1);
    let from = MemoryRange { length: 10, ..into };
    assert_eq!(
        c.server
            .move_memory(MoveDirection::Put, c.to_client, (&theirs, 999_990), from, 2),
        Sent::Queued
    );
    let beyond = c
        .server
        .move_memory(MoveDirection::Put, c.to_client, (&theirs, 999_991), from, 3);
    assert_eq!(beyond, Sent::Queued, "its failure is told");
    let moves = poll(&mut c.server).moves;
    assert_eq!(moves[0], (2, Ok(())));
    assert!(moves[1].0 == 3 && moves[1].1.is_err(), "{moves:?}");
    assert_eq!(
        c.client.bytes(region)[1_499_989..1_500_001],
        [9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]
    );
}

#[test]
fn what_is_more_than_fits_waits_for_the_reader() {
    let mut c = connected();
    let mut queued = 0;
    while c.client.send(c.to_server, &request(queued), &[&[1; 40]]) == Sent::Queued {
        queued += 1;
    }
    assert_eq!(queued, SLOTS);
    c.client.flush().unwrap();
    let mut kept = KeptFrames::default();
    while kept.frames.len() < queued as usize {
        assert!(c.server.poll(LONG, &mut kept).unwrap() > 0);
    }
    let slots: Vec<u32> = kept
        .frames
        .iter()
        .map(|(header, _)| header.rpc.slot)
        .collect();
    assert_eq!(slots, (0..queued).collect::<Vec<_>>());
    assert_eq!(c.client.send(c.to_server, &request(0), &[]), Sent::Queued);
}

#[test]
fn what_was_sent_before_a_close_arrives_before_the_loss() {
    let mut c = connected();
    assert_eq!(c.client.send(c.to_server, &request(4), &[]), Sent::Queued);
    c.client.close(c.to_server);
    assert_eq!(c.client.send(c.to_server, &request(5), &[]), Sent::Gone);
    let mut kept = KeptFrames::default();
    while kept.lost.is_empty() {
        assert!(c.server.poll(LONG, &mut kept).unwrap() > 0);
    }
    assert_eq!(kept.frames.len(), 1);
    assert_eq!(kept.lost[0].0, c.to_client);
    assert_eq!(c.server.send(c.to_client, &request(5), &[]), Sent::Gone);
}

#[test]
fn rings_that_are_silent_for_long_are_left_alone_until_their_bell_rings() {
    let mut server = RpcShmLink::new(LinkSide::Server).unwrap();
    let mut clients = Vec::new();
    for _ in 0..ALWAYS_BUSY + 3 {
        let mut client = RpcShmLink::new(LinkSide::Client).unwrap();
        let (one, other) = stream_pair();
        let greeting = client.greeting().unwrap();
        server
            .join(new_peer(LinkSide::Server, other, greeting))
            .unwrap();
        let greeting = LinkGreeting::default();
        let peer = client
            .join(new_peer(LinkSide::Client, one, greeting))
            .unwrap();
        clients.push((client, peer));
    }
    let mut kept = KeptFrames::default();
    for _ in 0..=IDLE_ROUNDS {
        assert_eq!(server.poll(None, &mut kept).unwrap(), 0);
    }
    assert_eq!(server.busy.len(), ALWAYS_BUSY);
    for (number, (client, peer)) in (0..).zip(&mut clients) {
        assert_eq!(client.send(*peer, &request(number), &[]), Sent::Queued);
        client.flush().unwrap();
    }
    while kept.frames.len() < clients.len() {
        server.poll(LONG, &mut kept).unwrap();
    }
    assert_eq!(server.busy.len(), clients.len());
}

#[test]
fn whoever_scribbles_over_a_ring_is_lost_and_nobody_else() {
    // The words of both rings: how far the client is, how far the server has read, and back.
    for (offset, value) in [(0, u32::MAX), (0, SLOTS + 1), (0, 1)] {
        let mut c = connected();
        c.memory
            .word(offset)
            .store(value, std::sync::atomic::Ordering::Release);
        let kept = poll(&mut c.server);
        let [(peer, why)] = &kept.lost[..] else {
            panic!("{value}: {:?}", kept.lost)
        };
        assert_eq!((*peer, why.code), (c.to_client, DerCode::Protocol));
        assert_eq!(poll(&mut c.client).lost[0].0, c.to_server);
    }
    let mut c = connected();
    c.memory
        .word(128)
        .store(77, std::sync::atomic::Ordering::Release);
    let body = vec![0; 10_000];
    let sent = c.client.send(c.to_server, &request(0), &[&body]);
    assert_eq!(sent, Sent::Gone);
    assert_eq!(poll(&mut c.client).lost[0].1.code, DerCode::Protocol);
}

#[test]
fn a_frame_on_the_wrong_plane_ends_the_connection() {
    let mut c = connected();
    let sent = c.client.control.send(c.to_server, &request(0), &[]);
    assert_eq!(sent, Sent::Queued);
    c.client.flush().unwrap();
    assert_eq!(poll(&mut c.server).lost[0].1.code, DerCode::Protocol);
    let mut c = connected();
    let header = FrameHeader::plain(FrameKind::Open);
    assert_eq!(c.client.queue(c.to_server, &header, &[]), Sent::Queued);
    c.client.flush().unwrap();
    assert_eq!(poll(&mut c.server).lost[0].1.code, DerCode::Protocol);
}

#[test]
fn a_greeting_with_half_of_the_memory_or_memory_that_can_be_cut_is_refused() {
    let mut server = RpcShmLink::new(LinkSide::Server).unwrap();
    let mut client = RpcShmLink::new(LinkSide::Client).unwrap();
    let mut refusal = |greeting| {
        let (_one, other) = stream_pair();
        let error = server
            .join(new_peer(LinkSide::Server, other, greeting))
            .unwrap_err();
        assert_eq!(error.code, DerCode::Protocol);
        error.message.into_owned()
    };
    let mut greeting = client.greeting().unwrap();
    greeting.passed.pop();
    assert!(refusal(greeting).contains("passed one descriptor"));
    let mut greeting = client.greeting().unwrap();
    greeting.passed[0] = std::fs::File::open("/dev/null").unwrap().into();
    assert!(refusal(greeting).contains("can be cut"));
}

#[test]
fn whoever_shares_no_memory_gives_orders_and_makes_no_calls() {
    let mut server = RpcShmLink::new(LinkSide::Server).unwrap();
    let mut plain = StreamLink::new().unwrap();
    let (one, other) = stream_pair();
    let greeting = LinkGreeting::default;
    let peer = server
        .join(new_peer(LinkSide::Server, other, greeting()))
        .unwrap();
    let to_server = plain
        .join(new_peer(LinkSide::Client, one, greeting()))
        .unwrap();
    let order = FrameHeader::plain(FrameKind::Start);
    assert_eq!(plain.send(to_server, &order, &[b"now"]), Sent::Queued);
    plain.flush().unwrap();
    assert_eq!(poll(&mut server).frames, [(order, b"now".to_vec())]);
    assert_eq!(plain.send(to_server, &request(0), &[]), Sent::Queued);
    plain.flush().unwrap();
    let kept = poll(&mut server);
    assert_eq!(
        (kept.lost[0].0, kept.lost[0].1.code),
        (peer, DerCode::Protocol)
    );
}

/// Set where the test's own program is started again as the server.
const SERVER: &str = "WEIR_RPC_SHM_TEST_SERVER";

/// Answers calls until the client is gone: with the body, and where the body is a descriptor with its
/// memory counted up by one.
struct Answering {
    own: RegionId,
    gone: bool,
}

impl LinkHandler<RpcShmLink> for Answering {
    fn message(&mut self, link: &mut RpcShmLink, peer: PeerId, header: &FrameHeader, body: &[u8]) {
        let answer = FrameHeader {
            kind: FrameKind::Response,
            ..*header
        };
        if header.word == 1 {
            let descriptor = BulkDescriptor::decode(&mut WireReader::new(body)).unwrap();
            let own = MemoryRange {
                region: self.own,
                offset: 0,
                length: descriptor.length,
            };
            assert_eq!(
                link.move_memory(MoveDirection::Get, peer, (&descriptor, 0), own, 0),
                Sent::Queued
            );
            for byte in link.bytes(self.own) {
                *byte = byte.wrapping_add(1);
            }
            assert_eq!(
                link.move_memory(MoveDirection::Put, peer, (&descriptor, 0), own, 0),
                Sent::Queued
            );
        }
        assert_eq!(link.send(peer, &answer, &[body]), Sent::Queued);
    }

    fn moved(&mut self, _: &mut RpcShmLink, _: PeerId, _: u64, result: Result<(), RpcError>) {
        result.unwrap();
    }

    fn lost(&mut self, _: &mut RpcShmLink, _: PeerId, _: RpcError) {
        self.gone = true;
    }
}

/// The other process: its end of the socket is its standard input.
fn serve(paths: &str) {
    let open = |path: &str| {
        let file = std::fs::File::options().read(true).write(true).open(path);
        OwnedFd::from(file.unwrap())
    };
    let greeting = LinkGreeting {
        passed: paths.split(',').map(open).collect(),
        ..LinkGreeting::default()
    };
    let stream = std::io::stdin();
    let stream = rustix::io::dup(&stream).unwrap();
    let mut link = RpcShmLink::new(LinkSide::Server).unwrap();
    let own = link.allocate(1 << 20, None).unwrap();
    link.join(new_peer(LinkSide::Server, stream, greeting))
        .unwrap();
    let mut handler = Answering { own, gone: false };
    while !handler.gone {
        link.poll(LONG, &mut handler).unwrap();
        link.flush().unwrap();
    }
}

fn start_server(test: &str) -> (RpcShmLink, PeerId, Child) {
    let mut client = RpcShmLink::new(LinkSide::Client).unwrap();
    let greeting = client.greeting().unwrap();
    let path = |file: &OwnedFd| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let paths: Vec<String> = greeting.passed.iter().map(path).collect();
    let (one, other) = stream_pair();
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}")])
        .env(SERVER, paths.join(","))
        .stdin(other)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let peer = client
        .join(new_peer(LinkSide::Client, one, LinkGreeting::default()))
        .unwrap();
    // Its first answer says that it has opened what was passed.
    assert_eq!(client.send(peer, &request(0), &[]), Sent::Queued);
    client.flush().unwrap();
    let kept = poll(&mut client);
    if kept.frames.is_empty() {
        let _ = child.kill();
        panic!("{:?}", kept.lost);
    }
    (client, peer, child)
}

#[test]
fn two_processes_call_each_other_and_share_memory() {
    if let Ok(paths) = std::env::var(SERVER) {
        return serve(&paths);
    }
    let (mut client, peer, mut child) =
        start_server("two_processes_call_each_other_and_share_memory");
    let body: Vec<u8> = (0..5_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut sent, mut kept) = (0, KeptFrames::default());
    let calls = 3_000;
    while kept.frames.len() < calls as usize {
        let ended = u32::try_from(kept.frames.len()).unwrap();
        while sent < calls && sent - ended < 16 {
            let length = (sent as usize * 37) % body.len();
            assert_eq!(
                client.send(peer, &request(sent), &[&body[..length]]),
                Sent::Queued
            );
            sent += 1;
        }
        client.flush().unwrap();
        client.poll(LONG, &mut kept).unwrap();
        assert!(kept.lost.is_empty(), "{:?}", kept.lost);
    }
    for (number, (header, got)) in (0..).zip(&kept.frames) {
        assert_eq!(header.rpc.slot, number);
        assert_eq!(got[..], body[..(number as usize * 37) % body.len()]);
    }
    let region = client.allocate(1 << 20, None).unwrap();
    client.bytes(region).fill(41);
    let range = MemoryRange {
        region,
        offset: 0,
        length: 1 << 20,
    };
    let descriptor = client.describe(peer, range, BulkAccess::BOTH);
    let mut body = Vec::new();
    descriptor.encode(&mut body);
    let header = FrameHeader {
        word: 1,
        ..request(9)
    };
    assert_eq!(client.send(peer, &header, &[&body]), Sent::Queued);
    client.flush().unwrap();
    assert_eq!(poll(&mut client).frames.len(), 1);
    assert!(client.bytes(region).iter().all(|&byte| byte == 42));
    client.close(peer);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_server_that_is_killed_is_lost_while_the_client_sleeps() {
    if let Ok(paths) = std::env::var(SERVER) {
        return serve(&paths);
    }
    let (mut client, peer, mut child) =
        start_server("a_server_that_is_killed_is_lost_while_the_client_sleeps");
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = poll(&mut client);
    assert_eq!(kept.lost.len(), 1);
    assert_eq!(
        (kept.lost[0].0, kept.lost[0].1.code),
        (peer, DerCode::Unreachable)
    );
    assert_eq!(client.send(peer, &request(1), &[]), Sent::Gone);
}
