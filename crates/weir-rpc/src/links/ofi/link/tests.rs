//! Two links over each provider that every machine has, in one process and in two.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use super::peer::KEPT_FRAME;
use super::*;
use crate::account::FREE;
use crate::links::ofi::tests::offers;
use crate::links::ofi::{FabricChoice, FabricLibrary};
use crate::links::{Frame, LinkGreeting};
use crate::wire::{FrameKind, MAX_FRAME, PushHead, RpcId};

const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than a message of every provider, and no power of two.
const LONG: usize = 1_048_578;

/// A call of the handler.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Message(PeerId, FrameHeader, Vec<u8>),
    Placed(PeerId, FrameHeader, Vec<u8>, MemoryRange),
    Moved(PeerId, u64, Result<(), DerCode>),
    Lost(PeerId, DerCode),
}

#[derive(Debug, Default)]
struct Recorder {
    seen: Vec<Seen>,
    place: Option<MemoryRange>,
}

impl LinkHandler<OfiLink<true>> for Recorder {
    fn destination(&mut self, _: Frame<'_>, length: u64) -> Option<MemoryRange> {
        let place = self.place?;
        Some(MemoryRange { length, ..place })
    }

    fn placed(&mut self, _: &mut OfiLink<true>, frame: Frame<'_>, at: MemoryRange) {
        let seen = Seen::Placed(frame.peer, *frame.header, frame.body.to_vec(), at);
        self.seen.push(seen);
    }

    fn message(&mut self, _: &mut OfiLink<true>, peer: PeerId, header: &FrameHeader, body: &[u8]) {
        let seen = Seen::Message(peer, *header, body.to_vec());
        self.seen.push(seen);
    }

    fn moved(
        &mut self,
        _: &mut OfiLink<true>,
        peer: PeerId,
        token: u64,
        result: Result<(), RpcError>,
    ) {
        let result = result.map_err(|error| error.code);
        self.seen.push(Seen::Moved(peer, token, result));
    }

    fn lost(&mut self, _: &mut OfiLink<true>, peer: PeerId, why: RpcError) {
        self.seen.push(Seen::Lost(peer, why.code));
    }
}

/// A link, what it saw, and its peer once there is one.
struct End {
    link: OfiLink<true>,
    recorder: Recorder,
    peer: PeerId,
}

impl End {
    fn open(choice: &FabricChoice, waiting: RpcPoll) -> Self {
        let library = FabricLibrary::open().unwrap();
        let offer = FabricOffer::find(&library, choice).unwrap();
        let settings = OfiSettings {
            patience: Duration::from_secs(2),
            ..OfiSettings::of(waiting)
        };
        Self {
            link: OfiLink::open(offer, settings).unwrap(),
            recorder: Recorder::default(),
            peer: PeerId::default(),
        }
    }

    fn join(&mut self, side: LinkSide, stream: OwnedFd, address: Vec<u8>) {
        let greeting = LinkGreeting {
            address,
            passed: Vec::new(),
        };
        let new = NewPeer {
            side,
            stream,
            early: Vec::new(),
            max_frame: MAX_FRAME,
            features: 0,
            greeting,
        };
        self.peer = self.link.join(new).unwrap();
    }

    fn look(&mut self) -> u32 {
        self.link.flush().unwrap();
        self.link.poll(None, &mut self.recorder).unwrap()
    }

    fn send(&mut self, header: &FrameHeader, body: &[&[u8]]) -> Sent {
        self.link.send(self.peer, header, body)
    }

    /// The next call of its handler, while `other` works too.
    #[track_caller]
    fn next(&mut self, mut other: Option<&mut Self>) -> Seen {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            self.look();
            if let Some(other) = &mut other {
                other.look();
            }
            if !self.recorder.seen.is_empty() {
                return self.recorder.seen.remove(0);
            }
        }
        panic!("nothing within {PATIENCE:?}");
    }
}

/// A client and a server in this process.
fn pair(choice: &FabricChoice, waiting: RpcPoll) -> [End; 2] {
    let mut ends = [waiting; 2].map(|waiting| End::open(choice, waiting));
    meet(&mut ends);
    ends
}

fn meet([client, server]: &mut [End; 2]) {
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    for stream in [&one, &other] {
        stream.set_nonblocking(true).unwrap();
    }
    let of_server = server.link.greeting().unwrap().address;
    let of_client = client.link.greeting().unwrap().address;
    client.join(LinkSide::Client, one.into(), of_server);
    server.join(LinkSide::Server, other.into(), of_client);
}

/// The same, with a server that takes what it holds from an account of so many bytes.
fn limited_pair(choice: &FabricChoice, bytes: u64) -> ([End; 2], MemoryAccount) {
    let mut ends = [RpcPoll::Busy; 2].map(|waiting| End::open(choice, waiting));
    let account = MemoryAccount::new(bytes);
    ends[1].link.limit_memory(account.clone());
    meet(&mut ends);
    (ends, account)
}

/// Takes all that an account has left for the rest, and gives so much back.
fn exhaust_rest(account: &MemoryAccount, but: u64) {
    while account.take_rest(1 << 10) {}
    while account.take_rest(1) {}
    account.give_rest(but);
}

fn header(kind: FrameKind, slot: u32) -> FrameHeader {
    let rpc = RpcId {
        slot,
        generation: 7,
    };
    FrameHeader {
        rpc,
        ..FrameHeader::plain(kind)
    }
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 31 + at / 256 + seed).to_le_bytes()[0])
        .collect()
}

#[test]
fn frames_of_every_length_arrive_whole_and_in_order_on_both_sides() {
    for choice in offers("frames_of_every_length_arrive_whole_and_in_order_on_both_sides") {
        let [mut client, mut server] = pair(&choice, RpcPoll::Busy);
        let lengths = [0, 1, 16, 23, 4000, 16 << 10, (16 << 10) - 40, 100_000, LONG];
        for (slot, len) in (0_u32..).zip(lengths) {
            let body = pattern(len, slot as usize);
            let (first, others) = body.split_at(len / 3);
            let request = header(FrameKind::Request, slot);
            assert_eq!(client.send(&request, &[first, others]), Sent::Queued);
            assert_eq!(client.send(&request, &[]), Sent::Queued);
            let seen = server.next(Some(&mut client));
            assert!(
                seen == Seen::Message(server.peer, request, body.clone()),
                "{len}"
            );
            let seen = server.next(Some(&mut client));
            assert_eq!(seen, Seen::Message(server.peer, request, Vec::new()));
            let response = header(FrameKind::Response, slot);
            assert_eq!(server.send(&response, &[&body]), Sent::Queued);
            let seen = client.next(Some(&mut server));
            assert!(seen == Seen::Message(client.peer, response, body), "{len}");
        }
    }
}

#[test]
fn frames_that_are_no_calls_go_over_the_stream() {
    for choice in offers("frames_that_are_no_calls_go_over_the_stream") {
        let [mut client, mut server] = pair(&choice, RpcPoll::Busy);
        let open = header(FrameKind::Open, 1);
        assert_eq!(client.send(&open, &[b"session"]), Sent::Queued);
        let seen = server.next(Some(&mut client));
        assert_eq!(seen, Seen::Message(server.peer, open, b"session".to_vec()));
    }
}

#[test]
fn a_link_that_has_no_room_says_so_and_has_it_again_later() {
    for choice in offers("a_link_that_has_no_room_says_so_and_has_it_again_later") {
        let [mut client, mut server] = pair(&choice, RpcPoll::Busy);
        let body = pattern(100_000, 1);
        let request = header(FrameKind::Request, 0);
        let mut queued = 0;
        while client.send(&request, &[&body]) == Sent::Queued {
            queued += 1;
            assert!(queued < 1000, "somewhere there is an end");
        }
        for _ in 0..queued {
            let seen = server.next(Some(&mut client));
            assert!(seen == Seen::Message(server.peer, request, body.clone()));
        }
        assert_eq!(client.send(&request, &[&body]), Sent::Queued);
        let seen = server.next(Some(&mut client));
        assert!(seen == Seen::Message(server.peer, request, body));
    }
}

#[test]
fn answers_are_never_refused_and_keep_their_order() {
    for choice in offers("answers_are_never_refused_and_keep_their_order") {
        let [mut client, mut server] = pair(&choice, RpcPoll::Busy);
        let body = pattern(100_000, 1);
        for slot in 0..100 {
            let response = header(FrameKind::Response, slot);
            assert_eq!(server.send(&response, &[&body]), Sent::Queued);
        }
        let request = header(FrameKind::Request, 0);
        assert_eq!(server.send(&request, &[]), Sent::Full);
        for slot in 0..100 {
            let response = header(FrameKind::Response, slot);
            let seen = client.next(Some(&mut server));
            assert!(
                seen == Seen::Message(client.peer, response, body.clone()),
                "{slot}"
            );
        }
    }
}

#[test]
fn memory_is_read_and_written_by_the_server_and_a_response_comes_after_it() {
    let test = "memory_is_read_and_written_by_the_server_and_a_response_comes_after_it";
    for choice in offers(test) {
        let [mut client, mut server] = pair(&choice, RpcPoll::Busy);
        for (token, len) in (0_u64..).zip([1, 4096, 1 << 20, LONG]) {
            let theirs = client.link.allocate(len, Some(3)).unwrap();
            let own = server.link.allocate(len, None).unwrap();
            let whole = |region| MemoryRange {
                region,
                offset: 0,
                length: len as u64,
            };
            assert_eq!(client.link.bytes(theirs).as_ptr().addr() & 255, 3);
            let data = pattern(len, 5);
            client.link.bytes(theirs).copy_from_slice(&data);
            let access = BulkAccess::BOTH;
            let descriptor = client.link.describe(client.peer, whole(theirs), access);
            let peer = server.peer;
            let sent = server.link.move_memory(
                MoveDirection::Get,
                peer,
                (&descriptor, 0),
                whole(own),
                token,
            );
            assert_eq!(sent, Sent::Queued);
            let seen = server.next(Some(&mut client));
            assert_eq!(seen, Seen::Moved(peer, token, Ok(())));
            assert!(server.link.bytes(own) == data, "{choice:?} get {len}");
            server.link.bytes(own).fill(0x5B);
            let sent = server.link.move_memory(
                MoveDirection::Put,
                peer,
                (&descriptor, 0),
                whole(own),
                token + 100,
            );
            assert_eq!(sent, Sent::Queued);
            let seen = server.next(Some(&mut client));
            assert_eq!(seen, Seen::Moved(peer, token + 100, Ok(())));
            let response = header(FrameKind::Response, 9);
            assert_eq!(server.send(&response, &[]), Sent::Queued);
            let seen = client.next(Some(&mut server));
            assert_eq!(seen, Seen::Message(client.peer, response, Vec::new()));
            let bytes = client.link.bytes(theirs);
            assert!(
                bytes.iter().all(|byte| *byte == 0x5B),
                "{choice:?} put {len}"
            );
            client.link.release(theirs);
            server.link.release(own);
        }
    }
}

#[test]
fn many_moves_at_once_are_all_done() {
    for choice in offers("many_moves_at_once_are_all_done") {
        let [mut client, mut server] = pair(&choice, RpcPoll::Busy);
        let region = client.link.allocate(LONG, None).unwrap();
        let own = server.link.allocate(LONG, None).unwrap();
        let range = |region| MemoryRange {
            region,
            offset: 0,
            length: LONG as u64,
        };
        let descriptor = client
            .link
            .describe(client.peer, range(region), BulkAccess::READ);
        for token in 0..400 {
            let sent = server.link.move_memory(
                MoveDirection::Get,
                server.peer,
                (&descriptor, 0),
                range(own),
                token,
            );
            assert_eq!(sent, Sent::Queued);
        }
        let mut tokens: Vec<u64> = (0..400)
            .map(|_| match server.next(Some(&mut client)) {
                Seen::Moved(_, token, Ok(())) => token,
                other => panic!("{other:?}"),
            })
            .collect();
        tokens.sort_unstable();
        assert_eq!(tokens, (0..400).collect::<Vec<u64>>());
    }
}

#[test]
fn a_move_outside_of_what_was_described_fails_and_the_connection_lives() {
    let test = "a_move_outside_of_what_was_described_fails_and_the_connection_lives";
    for choice in offers(test) {
        let [mut client, mut server] = pair(&choice, RpcPoll::Busy);
        let theirs = client.link.allocate(100, None).unwrap();
        let own = server.link.allocate(100, None).unwrap();
        let range = |region, length| MemoryRange {
            region,
            offset: 0,
            length,
        };
        let access = BulkAccess::READ;
        let descriptor = client.link.describe(client.peer, range(theirs, 50), access);
        let peer = server.peer;
        let wrong = Seen::Moved(peer, 1, Err(DerCode::Protocol));
        server.link.move_memory(
            MoveDirection::Get,
            peer,
            (&descriptor, 0),
            range(own, 51),
            1,
        );
        assert_eq!(server.next(Some(&mut client)), wrong);
        server.link.move_memory(
            MoveDirection::Put,
            peer,
            (&descriptor, 0),
            range(own, 10),
            1,
        );
        assert_eq!(server.next(Some(&mut client)), wrong);
        // Beyond the own memory.
        server.link.release(own);
        server.link.move_memory(
            MoveDirection::Get,
            peer,
            (&descriptor, 0),
            range(own, 50),
            1,
        );
        assert_eq!(server.next(Some(&mut client)), wrong);
        let own = server.link.allocate(100, None).unwrap();
        server.link.move_memory(
            MoveDirection::Get,
            peer,
            (&descriptor, 0),
            range(own, 50),
            2,
        );
        let right = Seen::Moved(peer, 2, Ok(()));
        assert_eq!(server.next(Some(&mut client)), right);
    }
}

#[test]
fn bulk_data_in_frames_are_placed_where_the_handler_says() {
    for choice in offers("bulk_data_in_frames_are_placed_where_the_handler_says") {
        let [mut client, mut server] = pair(&choice, RpcPoll::Busy);
        for len in [100_000, 200_000] {
            let own = server.link.allocate(len, None).unwrap();
            server.recorder.place = Some(MemoryRange {
                region: own,
                offset: 0,
                length: 0,
            });
            let theirs = client.link.allocate(len + 1, None).unwrap();
            let data = pattern(len, 3);
            client.link.bytes(theirs)[1..].copy_from_slice(&data);
            let from = MemoryRange {
                region: theirs,
                offset: 1,
                length: len as u64,
            };
            let head = [9; PushHead::LENGTH];
            let push = header(FrameKind::BulkData, 4);
            let sent = client.link.send_memory(client.peer, &push, &head, from);
            assert_eq!(sent, Sent::Queued);
            let place = MemoryRange {
                region: own,
                offset: 0,
                length: len as u64,
            };
            let seen = server.next(Some(&mut client));
            assert_eq!(seen, Seen::Placed(server.peer, push, head.to_vec(), place));
            assert!(server.link.bytes(own) == data);
            server.recorder.place = None;
        }
    }
}

#[test]
fn a_wait_ends_when_a_message_comes_or_its_time_is_over() {
    for choice in offers("a_wait_ends_when_a_message_comes_or_its_time_is_over") {
        let [mut client, mut server] = pair(&choice, RpcPoll::Block);
        let wait = Some(Duration::from_millis(30));
        let request = header(FrameKind::Request, 0);
        for _ in 0..3 {
            assert_eq!(client.send(&request, &[b"wake"]), Sent::Queued);
            let start = Instant::now();
            while server.recorder.seen.is_empty() && start.elapsed() < PATIENCE {
                client.look();
                server.link.poll(wait, &mut server.recorder).unwrap();
            }
            let seen = server.recorder.seen.remove(0);
            assert_eq!(seen, Seen::Message(server.peer, request, b"wake".to_vec()));
        }
        let start = Instant::now();
        assert_eq!(server.link.poll(wait, &mut server.recorder).unwrap(), 0);
        assert!(start.elapsed() >= Duration::from_millis(30));
        // A waker ends a wait that is far longer.
        server.link.waker().wake();
        let long = Some(Duration::from_secs(3600));
        assert_ne!(server.link.poll(long, &mut server.recorder).unwrap(), 0);
    }
}

#[test]
fn messages_from_nobody_are_counted_and_a_number_left_out_breaks_off() {
    let test = "messages_from_nobody_are_counted_and_a_number_left_out_breaks_off";
    for choice in offers(test) {
        let [mut client, mut server] = pair(&choice, RpcPoll::Busy);
        let mut message = vec![0; MARKED];
        message[..8].copy_from_slice(&(client.link.pending_mark ^ 1).to_le_bytes());
        let mut recorder = Recorder::default();
        for wrong in [&message[..], &[], &message[..MARKED - 1]] {
            server.link.take_message(wrong, &mut recorder);
        }
        assert_eq!(server.link.strays(), 3);
        message[..8].copy_from_slice(&client.link.pending_mark.to_le_bytes());
        message[8] = 1;
        server.link.take_message(&message, &mut recorder);
        let seen = server.next(Some(&mut client));
        assert_eq!(seen, Seen::Lost(server.peer, DerCode::Protocol));
        assert!(recorder.seen.is_empty());
    }
}

#[test]
fn a_message_before_the_handshake_is_done_here_is_kept() {
    for choice in offers("a_message_before_the_handshake_is_done_here_is_kept") {
        let [mut client, mut server] =
            [RpcPoll::Busy; 2].map(|waiting| End::open(&choice, waiting));
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        let of_server = server.link.greeting().unwrap().address;
        let of_client = client.link.greeting().unwrap().address;
        client.join(LinkSide::Client, one.into(), of_server);
        let request = header(FrameKind::Request, 0);
        assert_eq!(client.send(&request, &[b"early"]), Sent::Queued);
        let start = Instant::now();
        while server.link.strays() == 0 && start.elapsed() < PATIENCE {
            client.look();
            server.look();
        }
        assert!(server.recorder.seen.is_empty());
        server.join(LinkSide::Server, other.into(), of_client);
        let seen = server.next(Some(&mut client));
        assert_eq!(seen, Seen::Message(server.peer, request, b"early".to_vec()));
        assert_eq!(server.link.strays(), 0);
    }
}

#[test]
fn a_long_frame_of_which_a_part_has_come_is_charged() {
    let length = LONG as u64;
    for choice in offers("a_long_frame_of_which_a_part_has_come_is_charged") {
        let ([client, mut server], account) = limited_pair(&choice, 2 * length);
        let mark = client.link.pending_mark.to_le_bytes();
        let frame = header(FrameKind::Request, 0).encode(u32::try_from(LONG).unwrap(), false);
        let part = vec![1; 1000];
        let begun = |number: u64| [&mark[..], &number.to_le_bytes(), &frame, &part].concat();
        let mut recorder = Recorder::default();
        server.link.take_message(&begun(0), &mut recorder);
        let taken = 2 * length - account.left();
        assert!((length - FREE..2 * length).contains(&taken), "{taken}");
        let rest = [&mark[..], &1_u64.to_le_bytes(), &vec![1; LONG - 1000]].concat();
        server.link.take_message(&rest, &mut recorder);
        assert_eq!(recorder.seen.len(), 1);
        assert_eq!(account.left(), 2 * length);
        assert!(account.take(2 * length - 100_000));
        server.link.take_message(&begun(2), &mut recorder);
        let seen = server.next(None);
        assert_eq!(seen, Seen::Lost(server.peer, DerCode::NoMemory));
        assert_eq!(account.left(), 100_000);
    }
}

#[test]
fn answers_that_a_peer_does_not_take_are_charged() {
    for choice in offers("answers_that_a_peer_does_not_take_are_charged") {
        let ([mut client, mut server], account) = limited_pair(&choice, 1 << 20);
        let long = pattern(100_000, 1);
        let response = header(FrameKind::Response, 0);
        let mut sent = 0;
        while !server.link.is_congested(server.peer) {
            assert_eq!(server.send(&response, &[&long]), Sent::Queued);
            sent += 1;
        }
        exhaust_rest(&account, 1 << 10);
        let most = (FREE + (1 << 10)) / KEPT_FRAME;
        for _ in 1..most {
            assert_eq!(server.send(&response, &[]), Sent::Queued);
        }
        assert!(!account.take_rest(100), "it is charged");
        for _ in 1..sent + most {
            client.next(Some(&mut server));
        }
        assert!(account.take_rest(1 << 10), "it has all back");
        while server.send(&response, &[&long]) == Sent::Queued {
            sent += 1;
            assert!(sent < 10_000, "somewhere there is an end");
        }
        let seen = server.next(None);
        assert_eq!(seen, Seen::Lost(server.peer, DerCode::NoMemory));
    }
}

#[test]
fn messages_of_strangers_are_kept_as_far_as_there_is_memory() {
    for choice in offers("messages_of_strangers_are_kept_as_far_as_there_is_memory") {
        let ([_, mut server], account) = limited_pair(&choice, 1 << 20);
        exhaust_rest(&account, 1500);
        let message = [7; 1000];
        for strays in 1..=2 {
            let mut recorder = Recorder::default();
            server.link.take_message(&message, &mut recorder);
            assert_eq!(
                (server.link.strays(), server.link.strangers.len()),
                (strays, 1)
            );
        }
        assert!(account.take_rest(500) && !account.take_rest(1));
    }
}

#[test]
fn a_greeting_of_another_kind_of_fabric_is_refused() {
    for choice in offers("a_greeting_of_another_kind_of_fabric_is_refused") {
        let mut end = End::open(&choice, RpcPoll::Busy);
        let mut greeting = end.link.greeting().unwrap().address;
        greeting[0] ^= 0x40;
        // Who has no address orders tests, and has no data.
        for (address, is_good) in [(greeting, false), (Vec::new(), true), (vec![1; 12], false)] {
            let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
            let new = NewPeer {
                side: LinkSide::Server,
                stream: stream.into(),
                early: Vec::new(),
                max_frame: MAX_FRAME,
                features: 0,
                greeting: LinkGreeting {
                    address,
                    passed: Vec::new(),
                },
            };
            assert_eq!(end.link.join(new).is_ok(), is_good);
        }
    }
}

// Two processes.

/// Names the provider for the test below when it is run as a process of its own.
const PROVIDER: &str = "WEIR_TEST_FABRIC_PROVIDER";

/// Not a test: the other process, a server that answers requests with their bodies, and gets from
/// each client for ever what its first request describes.
#[test]
#[ignore = "the other process of the tests here, which start it"]
fn the_other_process_of_these_tests() {
    let Ok(provider) = std::env::var(PROVIDER) else {
        return;
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    let (stream, _) = listener.accept().unwrap();
    let mut end = End::open(&FabricChoice::on_loopback(&provider), RpcPoll::Busy);
    shake_hands(&mut end, LinkSide::Server, stream);
    let own = end.link.allocate(LONG, None).unwrap();
    let mut described = None;
    loop {
        end.look();
        for seen in std::mem::take(&mut end.recorder.seen) {
            match seen {
                Seen::Message(_, request, body) if request.rpc.slot == 0 => {
                    let mut body = crate::wire::WireReader::new(&body);
                    described = Some(BulkDescriptor::decode(&mut body).unwrap());
                    get(&mut end, described.as_ref(), own);
                }
                Seen::Message(_, request, body) => {
                    let response = header(FrameKind::Response, request.rpc.slot);
                    end.send(&response, &[&body]);
                }
                Seen::Moved(..) => get(&mut end, described.as_ref(), own),
                Seen::Placed(..) | Seen::Lost(..) => return,
            }
        }
    }
}

fn get(end: &mut End, from: Option<&BulkDescriptor>, own: RegionId) {
    let into = MemoryRange {
        region: own,
        offset: 0,
        length: LONG as u64,
    };
    end.link
        .move_memory(MoveDirection::Get, end.peer, (from.unwrap(), 0), into, 0);
}

/// Exchanges greetings through a stream, which becomes the control plane.
fn shake_hands(end: &mut End, side: LinkSide, mut stream: TcpStream) {
    let own = end.link.greeting().unwrap().address;
    stream
        .write_all(&[u8::try_from(own.len()).unwrap()])
        .unwrap();
    stream.write_all(&own).unwrap();
    let mut len = [0];
    stream.read_exact(&mut len).unwrap();
    let mut address = vec![0; len[0].into()];
    stream.read_exact(&mut address).unwrap();
    stream.set_nonblocking(true).unwrap();
    end.join(side, stream.into(), address);
}

struct OtherProcess(Child);

impl Drop for OtherProcess {
    /// It ends by itself when it is left alone; a provider then takes its files away.
    fn drop(&mut self) {
        let start = Instant::now();
        while self.0.try_wait().is_ok_and(|ended| ended.is_none()) && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the other process, and a link to it.
fn with_other_process(choice: &FabricChoice) -> (OtherProcess, End) {
    let provider = choice.provider.as_deref().unwrap();
    let (_, module) = module_path!().split_once("::").unwrap();
    let name = format!("{module}::the_other_process_of_these_tests");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--ignored", "--nocapture"])
        .env(PROVIDER, provider)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = OtherProcess(child);
    let out = BufReader::new(child.0.stdout.take().unwrap());
    let port = out.lines().find_map(|line| {
        let line = line.unwrap();
        let (_, port) = line.split_once("port ")?;
        port.trim().parse::<u16>().ok()
    });
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port.unwrap())).unwrap();
    let mut end = End::open(choice, RpcPoll::Busy);
    shake_hands(&mut end, LinkSide::Client, stream);
    (child, end)
}

#[test]
fn two_processes_exchange_frames() {
    for choice in offers("two_processes_exchange_frames") {
        let (_other, mut end) = with_other_process(&choice);
        for (slot, len) in (1_u32..).zip([0, 100, 5000, 100_000, LONG]) {
            let body = pattern(len, 1);
            let request = header(FrameKind::Request, slot);
            assert_eq!(end.send(&request, &[&body]), Sent::Queued);
            let response = header(FrameKind::Response, slot);
            let seen = end.next(None);
            assert!(seen == Seen::Message(end.peer, response, body), "{len}");
        }
    }
}

#[test]
fn a_killed_peer_is_lost_amid_requests_and_moves() {
    for choice in offers("a_killed_peer_is_lost_amid_requests_and_moves") {
        let (mut other, mut end) = with_other_process(&choice);
        if end.link.facts().can_hang() {
            // In the provider, where no deadline of this thread counts.
            continue;
        }
        let region = end.link.allocate(LONG, None).unwrap();
        let range = MemoryRange {
            region,
            offset: 0,
            length: LONG as u64,
        };
        let descriptor = end.link.describe(end.peer, range, BulkAccess::READ);
        let mut body = Vec::new();
        descriptor.encode(&mut body);
        end.send(&header(FrameKind::Request, 0), &[&body]);
        end.send(&header(FrameKind::Request, 1), &[b"there?"]);
        assert!(matches!(end.next(None), Seen::Message(..)));
        other.0.kill().unwrap();
        let start = Instant::now();
        let mut sent = Sent::Queued;
        let lost = loop {
            if sent != Sent::Gone {
                sent = end.send(&header(FrameKind::Request, 2), &[b"still there?"]);
            }
            end.look();
            let lost = end
                .recorder
                .seen
                .iter()
                .any(|seen| matches!(seen, Seen::Lost(..)));
            if lost || start.elapsed() > PATIENCE {
                break lost;
            }
        };
        assert!(lost, "{choice:?}");
        let request = header(FrameKind::Request, 3);
        assert_eq!(end.send(&request, &[]), Sent::Gone);
        end.link.release(region);
    }
}
