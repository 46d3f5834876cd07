//! A service as a store needs it: it answers in batches and in an order of its own, with parts and holes, values
//! longer than a buffer, and one state under all links.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weir_schema::{RpcPayloadKind, RpcServiceTime};

use crate::testbed::{client, client_setup, gives_back, payload, run, server_setup, skip};
use weir_rpc::client::ServerEndpoint;
use weir_rpc::client::channel::RpcChannel;
use weir_rpc::group::address::RpcAddress;
use weir_rpc::links::ofi::{FabricChoice, OfiLink, OfiSettings};
use weir_rpc::links::shm::RpcShmLink;
use weir_rpc::links::stream::StreamLink;
use weir_rpc::links::{Link, LinkSide};
use weir_rpc::server::{RpcServer, ServerLimits};
use weir_rpc::service::{
    CallHandle, MOST_PARTS, NextStep, PushPart, RpcService, ServiceCall, SessionShape, self_test,
};
use weir_rpc::transport::RpcTransport as _;
use weir_rpc::wire::OpenRequest;
use weir_rpc::{DerCode, RpcError};
use weir_run::{BulkMemory, BulkPart, BulkUse, ServiceChannel};
use weir_schema::{RpcEndpoint, RpcPoll};

/// Sets an extent: key and offset (u64 each), then the data, in the payload.
const UPDATE: u16 = 1;
/// The same with the data in the caller's memory.
const UPDATE_BULK: u16 = 2;
/// Reads a value into the caller's memory: its key. The answer is its length.
const FETCH: u16 = 3;
/// Is never answered.
const NEVER: u16 = 4;
/// Is answered at the end of the third round from now, whatever comes meanwhile.
const LATE: u16 = 5;

/// Bytes of a buffer, of which the first 8 are for the answer.
const BUFFER: u64 = 64 << 10;
const LONGEST: u64 = 2 << 20;

#[derive(Debug, Default)]
struct Notes {
    services: AtomicU32,
    batches: AtomicU32,
    dropped: AtomicU32,
    closed: AtomicU32,
    sessions: Mutex<Vec<u32>>,
}

/// A call between its steps.
#[derive(Clone, Debug, Default)]
struct Begun {
    operation: u16,
    key: u64,
    offset: u64,
    data: Vec<u8>,
    /// Of a fetch, parts of the value (offset, length) that are still to be pushed.
    left: Vec<(u64, usize)>,
}

/// Values as extents by offset, of one thread: nothing here is shared or locked.
struct Store {
    name: &'static str,
    notes: Arc<Notes>,
    /// Calls are answered once so many wait.
    batch: usize,
    values: HashMap<u64, BTreeMap<u64, Vec<u8>>>,
    begun: HashMap<CallHandle, Begun>,
    waiting: Vec<CallHandle>,
    /// Calls, and for how many rounds they wait.
    late: Vec<(CallHandle, u32)>,
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap()
}

/// Bytes that differ from place to place.
fn pattern(length: usize) -> Vec<u8> {
    let byte = |at: usize| u8::try_from((at * 7 + at / 251) % 256).unwrap();
    (0..length).map(byte).collect()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap())
}

impl Store {
    fn new(name: &'static str, notes: &Arc<Notes>, batch: usize) -> Self {
        notes.services.fetch_add(1, SeqCst);
        Self {
            name,
            notes: Arc::clone(notes),
            batch,
            values: HashMap::new(),
            begun: HashMap::new(),
            waiting: Vec::new(),
            late: Vec::new(),
        }
    }

    fn later(&mut self, handle: CallHandle, begun: Begun) -> NextStep {
        assert!(self.begun.insert(handle, begun).is_none());
        self.waiting.push(handle);
        NextStep::Later
    }

    /// Copies as much of a fetch's value as a buffer holds.
    fn push(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let begun = self.begun.get_mut(&call.handle).unwrap();
        let extents = &self.values[&begun.key];
        let mut from = 8;
        while let Some((to, length)) = begun.left.pop() {
            let room = call.buffer.len() - from;
            if room == 0 || call.parts.len() == MOST_PARTS {
                begun.left.push((to, length));
                return NextStep::PushParts;
            }
            let (at, data) = extents.range(..=to).next_back().unwrap();
            let data = &data[size(to - at)..][..length.min(room)];
            call.buffer[from..from + data.len()].copy_from_slice(data);
            call.parts.push(PushPart {
                from: from as u64,
                to,
                length: data.len() as u64,
            });
            from += data.len();
            if data.len() < length {
                begun
                    .left
                    .push((to + data.len() as u64, length - data.len()));
            }
        }
        let end = extents.last_key_value().unwrap();
        let size = end.0 + end.1.len() as u64;
        call.buffer[..8].copy_from_slice(&size.to_le_bytes());
        self.begun.remove(&call.handle);
        NextStep::PushPartsAndReply(8)
    }
}

impl RpcService for Store {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u16 {
        1
    }

    fn open(&mut self, session: u32, asked: &OpenRequest) -> Result<SessionShape, RpcError> {
        self.notes.sessions.lock().unwrap().push(session);
        Ok(SessionShape {
            buffer_bytes: u64::from(asked.reply_size),
            fill: 0,
            longest_bulk: Some(LONGEST),
        })
    }

    fn needs_buffer(&self, operation: u16) -> bool {
        matches!(operation, UPDATE_BULK | FETCH)
    }

    fn request(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let mut begun = Begun {
            operation: call.operation,
            ..Begun::default()
        };
        if call.operation < NEVER {
            begun.key = word(call.payload, 0);
        }
        match call.operation {
            UPDATE => {
                begun.offset = word(call.payload, 1);
                begun.data = call.payload[16..].to_vec();
            }
            UPDATE_BULK => {
                begun.offset = word(call.payload, 1);
                self.begun.insert(call.handle, begun);
                return NextStep::Pull(call.bulk.unwrap().min(call.buffer.len() as u64));
            }
            FETCH | NEVER => {}
            _ => {
                self.late.push((call.handle, 3));
                return NextStep::Later;
            }
        }
        self.later(call.handle, begun)
    }

    fn pulled(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let (all, room) = (call.bulk.unwrap(), call.buffer.len() as u64);
        let begun = self.begun.get_mut(&call.handle).unwrap();
        let length = room.min(all - begun.data.len() as u64);
        begun.data.extend(&call.buffer[..size(length)]);
        call.pull_from = begun.data.len() as u64;
        if call.pull_from < all {
            return NextStep::Pull(room.min(all - call.pull_from));
        }
        let begun = self.begun.remove(&call.handle).unwrap();
        self.later(call.handle, begun)
    }

    fn answers_later(&self) -> bool {
        true
    }

    fn end_of_round(&mut self, ready: &mut Vec<CallHandle>) -> bool {
        for (_, rounds) in &mut self.late {
            *rounds -= 1;
        }
        let due = self.late.extract_if(.., |(_, rounds)| *rounds == 0);
        ready.extend(due.map(|(call, _)| call));
        let holds = !self.late.is_empty();
        let begun = &mut self.begun;
        let never = |begun: &Begun| begun.operation == NEVER;
        self.waiting.retain(|handle| !never(&begun[handle]));
        if self.waiting.is_empty() || self.waiting.len() < self.batch {
            return holds;
        }
        self.notes.batches.fetch_add(1, SeqCst);
        for handle in &self.waiting {
            let Begun {
                operation,
                key,
                offset,
                ref mut data,
                ..
            } = *begun.get_mut(handle).unwrap();
            if operation != FETCH {
                let value = self.values.entry(key).or_default();
                value.insert(offset, std::mem::take(data));
            }
        }
        ready.extend(self.waiting.drain(..).rev());
        holds
    }

    fn resumed(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        if call.operation != FETCH {
            self.begun.remove(&call.handle);
            return NextStep::Reply(0);
        }
        let begun = self.begun.get_mut(&call.handle).unwrap();
        if !begun.left.is_empty() {
            return self.push(call);
        }
        let Some(extents) = self.values.get(&begun.key) else {
            self.begun.remove(&call.handle);
            return NextStep::Fail(DerCode::NotThere);
        };
        begun.left = extents.iter().map(|(&at, data)| (at, data.len())).collect();
        self.push(call)
    }

    fn dropped(&mut self, call: CallHandle) {
        self.notes.dropped.fetch_add(1, SeqCst);
        self.begun.remove(&call);
        self.waiting.retain(|&waiting| waiting != call);
    }

    fn closed(&mut self, _: u32) {
        self.notes.closed.fetch_add(1, SeqCst);
    }
}

/// A link that these tests go over.
trait TestedLink: Link {
    /// Where a server listens; none where the machine has no such link.
    fn address(test: &str) -> Option<RpcAddress>;
    fn make() -> Self;
}

impl TestedLink for StreamLink {
    fn address(_: &str) -> Option<RpcAddress> {
        Some("tcp://127.0.0.1:0".parse().unwrap())
    }

    fn make() -> Self {
        Self::new().unwrap()
    }
}

impl TestedLink for RpcShmLink {
    fn address(_: &str) -> Option<RpcAddress> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, SeqCst);
        let name = format!("weir-rpc-later-{}-{number}.sock", std::process::id());
        let place = std::env::temp_dir().join(name);
        Some(format!("shm://{}", place.display()).parse().unwrap())
    }

    fn make() -> Self {
        Self::new(LinkSide::Client).unwrap()
    }
}

const PROVIDER: &str = "tcp;ofi_rxm";

impl TestedLink for OfiLink<true> {
    fn address(test: &str) -> Option<RpcAddress> {
        let reason = match FabricChoice::on_loopback(PROVIDER).find() {
            Ok(offer) if offer.facts().has_remote_memory => {
                let address = format!("ofi+{PROVIDER}://127.0.0.1:0");
                return Some(address.parse().unwrap());
            }
            Ok(_) => "no remote memory here".to_owned(),
            Err(error) => error.to_string(),
        };
        skip(test, &format!("{PROVIDER}: {reason}"));
        None
    }

    fn make() -> Self {
        let offer = FabricChoice::on_loopback(PROVIDER).find().unwrap();
        Self::open(offer, OfiSettings::of(RpcPoll::Block)).unwrap()
    }
}

/// A server of one tag at these addresses, and its notes.
fn server(
    addresses: Vec<RpcAddress>,
    batch: usize,
    limits: ServerLimits,
) -> (RpcServer, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let mut setup = server_setup(1, RpcServiceTime::None);
    let kept = Arc::clone(&notes);
    setup.services = Box::new(move |_, _| {
        vec![
            Box::new(Store::new("store", &kept, batch)),
            Box::new(Store::new(self_test::NAME, &Arc::default(), batch)),
        ]
    });
    setup.ranks[0].addresses = addresses;
    setup.limits = limits;
    (RpcServer::start(setup).unwrap(), notes)
}

fn endpoint(server: &RpcServer, address: usize) -> ServerEndpoint {
    let (rank, address) = server.addresses()[address].clone();
    ServerEndpoint {
        endpoint: RpcEndpoint { rank, tag: 0 },
        address,
        nonce: Some(server.nonce()),
    }
}

fn channel<L: TestedLink>(server: &RpcServer, address: usize) -> RpcChannel<L> {
    let none = payload((RpcPayloadKind::Empty, 0), (RpcPayloadKind::Empty, 0));
    let endpoint = endpoint(server, address);
    let setup = client_setup(Vec::new(), none);
    let asked = OpenRequest {
        service: "store".to_owned(),
        version: 1,
        send_size: 16 << 10,
        reply_size: u32::try_from(BUFFER).unwrap(),
        buffers: 2,
        credits: 16,
        ..OpenRequest::default()
    };
    RpcChannel::open(L::make(), &setup.dial, &endpoint, &asked).unwrap()
}

type Answers = Vec<(u32, Result<Vec<u8>, i64>)>;

/// Waits for so many answers, in the order of their coming.
#[track_caller]
fn answers(channel: &mut impl ServiceChannel, count: usize) -> Answers {
    let mut all = Vec::new();
    let end = Instant::now() + Duration::from_secs(20);
    while all.len() < count {
        assert!(Instant::now() < end, "{} of {count} answers", all.len());
        let taken = channel.poll(Duration::from_millis(100), |slot, reply| {
            all.push((slot, reply.map(<[u8]>::to_vec)));
        });
        taken.unwrap();
    }
    all
}

fn update(key: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    [&key.to_le_bytes()[..], &offset.to_le_bytes(), data].concat()
}

fn whole(memory: BulkMemory, length: u64, access: BulkUse) -> BulkPart {
    BulkPart {
        memory,
        offset: 0,
        length,
        access,
    }
}

/// Waits until a note says so many.
#[track_caller]
fn until(note: &AtomicU32, count: u32) {
    let end = Instant::now() + Duration::from_secs(20);
    while note.load(SeqCst) != count {
        assert!(Instant::now() < end, "{note:?}, not {count}");
        std::thread::yield_now();
    }
}

fn stop(server: RpcServer) {
    let addresses = server.addresses().to_vec();
    server.stop().unwrap();
    for (_, address) in addresses.iter().filter(|(_, at)| at.scheme == "shm") {
        let _ = std::fs::remove_file(&address.place);
    }
}

/// Makes a test over every link that the machine has.
macro_rules! over_every_link {
    ($($name:ident: $body:ident;)*) => {$(
        #[test]
        fn $name() {
            fn over<L: TestedLink>() {
                if let Some(address) = L::address(stringify!($name)) {
                    $body::<L>(address);
                }
            }
            over::<StreamLink>();
            over::<RpcShmLink>();
            over::<OfiLink<true>>();
        }
    )*};
}

over_every_link! {
    a_batch_is_answered_at_once_and_in_the_order_of_its_service: answer_a_batch;
    a_reply_has_a_header_and_parts_and_leaves_holes_untouched: leave_holes;
    values_longer_than_a_buffer_move_in_pieces_up_to_the_limit: move_long_values;
    held_calls_are_dropped_with_their_connection: lose_held_calls;
    calls_that_are_held_too_long_time_out: hold_too_long;
    a_service_that_holds_calls_is_asked_again_though_nothing_comes: answer_late;
}

fn answer_a_batch<L: TestedLink>(address: RpcAddress) {
    let (server, notes) = server(vec![address], 10, ServerLimits::default());
    let mut channel = channel::<L>(&server, 0);
    for slot in 0..9 {
        channel
            .request(slot, UPDATE, &update(slot.into(), 0, b"v"), None)
            .unwrap();
    }
    let mut too_early = 0;
    let mut count = |_: u32, _: Result<&[u8], i64>| too_early += 1;
    channel.poll(Duration::from_millis(20), &mut count).unwrap();
    assert_eq!((too_early, notes.batches.load(SeqCst)), (0, 0));
    channel
        .request(9, UPDATE, &update(9, 0, b"v"), None)
        .unwrap();
    let expected: Answers = (0..10).rev().map(|slot| (slot, Ok(Vec::new()))).collect();
    assert_eq!(answers(&mut channel, 10), expected);
    assert_eq!(notes.batches.load(SeqCst), 1);
    assert_eq!(notes.dropped.load(SeqCst), 0);
    stop(server);
}

fn leave_holes<L: TestedLink>(address: RpcAddress) {
    let (server, _) = server(vec![address], 1, ServerLimits::default());
    let mut channel = channel::<L>(&server, 0);
    let memory = channel.register(8 << 10).unwrap();
    // More than one step pushes.
    let more = (0..2 * MOST_PARTS).map(|at| (300 + 10 * at, 5));
    let extents: Vec<(usize, usize)> = [(100, 50), (200, 1), (1000, 3000)]
        .into_iter()
        .chain(more)
        .collect();
    let mut expected = vec![0xee; 8 << 10];
    for (offset, length) in extents {
        let data = pattern(length);
        // The caller's part begins at byte 4096 of its memory.
        expected[4096 + offset..][..length].copy_from_slice(&data);
        channel
            .request(0, UPDATE, &update(7, offset as u64, &data), None)
            .unwrap();
        assert_eq!(answers(&mut channel, 1), [(0, Ok(Vec::new()))]);
    }
    channel.memory(memory).fill(0xee);
    let part = |length| {
        Some(BulkPart {
            memory,
            offset: 4096,
            length,
            access: BulkUse::Put,
        })
    };
    channel
        .request(3, FETCH, &7_u64.to_le_bytes(), part(4096))
        .unwrap();
    let size = 4000_u64.to_le_bytes().to_vec();
    assert_eq!(answers(&mut channel, 1), [(3, Ok(size))]);
    assert!(channel.memory(memory) == expected);
    // Nothing is written beyond what the caller gave.
    channel.memory(memory).fill(0xee);
    channel
        .request(3, FETCH, &7_u64.to_le_bytes(), part(3999))
        .unwrap();
    assert_eq!(answers(&mut channel, 1), [(3, Err(-1003))]);
    channel
        .request(3, FETCH, &8_u64.to_le_bytes(), part(100))
        .unwrap();
    assert_eq!(answers(&mut channel, 1), [(3, Err(-1005))]);
    assert!(channel.memory(memory).iter().all(|&byte| byte == 0xee));
    let more_than_there_is = channel.request(3, FETCH, &[7; 8], part(4097));
    assert!(more_than_there_is.is_err());
    stop(server);
}

fn move_long_values<L: TestedLink>(address: RpcAddress) {
    let (server, notes) = server(vec![address], 1, ServerLimits::default());
    let mut channel = channel::<L>(&server, 0);
    let memory = channel.register(4 << 20).unwrap();
    for (key, length) in (0_u64..).zip([1, BUFFER, BUFFER + 1, LONGEST - 3, LONGEST]) {
        let value = pattern(size(length));
        channel.memory(memory)[..value.len()].copy_from_slice(&value);
        let get = whole(memory, length, BulkUse::Get);
        channel
            .request(1, UPDATE_BULK, &update(key, 0, &[]), Some(get))
            .unwrap();
        assert_eq!(answers(&mut channel, 1), [(1, Ok(Vec::new()))], "{length}");
        channel.memory(memory).fill(0);
        let put = whole(memory, length, BulkUse::Put);
        channel
            .request(2, FETCH, &key.to_le_bytes(), Some(put))
            .unwrap();
        let reply = length.to_le_bytes().to_vec();
        assert_eq!(answers(&mut channel, 1), [(2, Ok(reply))], "{length}");
        assert!(channel.memory(memory)[..value.len()] == value, "{length}");
    }
    let batches = notes.batches.load(SeqCst);
    let longer = whole(memory, LONGEST + 1, BulkUse::Get);
    channel
        .request(1, UPDATE_BULK, &update(9, 0, &[]), Some(longer))
        .unwrap();
    assert_eq!(answers(&mut channel, 1), [(1, Err(-2013))]);
    assert_eq!(notes.batches.load(SeqCst), batches);
    stop(server);
}

fn lose_held_calls<L: TestedLink>(address: RpcAddress) {
    let (server, notes) = server(vec![address], 1, ServerLimits::default());
    let before = server.memory_left();
    let mut held = channel::<L>(&server, 0);
    for slot in 0..5 {
        held.request(slot, NEVER, &[1; 1000], None).unwrap();
    }
    held.request(5, UPDATE, &update(1, 0, b"one"), None)
        .unwrap();
    assert_eq!(answers(&mut held, 1), [(5, Ok(Vec::new()))]);
    assert_eq!(
        (notes.dropped.load(SeqCst), notes.closed.load(SeqCst)),
        (0, 0)
    );
    assert!(server.memory_left() <= before - 5000);
    drop(held);
    until(&notes.closed, 1);
    assert_eq!(notes.dropped.load(SeqCst), 5);
    gives_back(&server, before);
    stop(server);
}

fn hold_too_long<L: TestedLink>(address: RpcAddress) {
    let limits = ServerLimits {
        held: Duration::from_millis(60),
        ..ServerLimits::default()
    };
    let (server, notes) = server(vec![address], 1, limits);
    let mut channel = channel::<L>(&server, 0);
    channel.request(4, NEVER, &[], None).unwrap();
    assert_eq!(answers(&mut channel, 1), [(4, Err(-1011))]);
    assert_eq!(notes.dropped.load(SeqCst), 1);
    channel
        .request(4, UPDATE, &update(1, 0, b"one"), None)
        .unwrap();
    assert_eq!(answers(&mut channel, 1), [(4, Ok(Vec::new()))]);
    stop(server);
}

fn answer_late<L: TestedLink>(address: RpcAddress) {
    let (server, notes) = server(vec![address], 1, ServerLimits::default());
    let mut channel = channel::<L>(&server, 0);
    channel.request(0, LATE, &[], None).unwrap();
    channel.request(1, LATE, &[], None).unwrap();
    let mut slots: Vec<u32> = answers(&mut channel, 2)
        .into_iter()
        .map(|(slot, _)| slot)
        .collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1]);
    assert_eq!(notes.dropped.load(SeqCst), 0);
    stop(server);
}

#[test]
fn callers_over_different_links_reach_one_state_and_share_batches() {
    let test = "callers_over_different_links_reach_one_state_and_share_batches";
    let addresses = [StreamLink::address(test), RpcShmLink::address(test)];
    let (server, notes) = server(
        addresses.into_iter().flatten().collect(),
        2,
        ServerLimits::default(),
    );
    let mut tcp = channel::<StreamLink>(&server, 0);
    let mut shm = channel::<RpcShmLink>(&server, 1);
    let made = notes.services.load(SeqCst);
    assert_eq!(made, 1);
    let sessions = notes.sessions.lock().unwrap().clone();
    assert!(
        sessions.len() == 2 && sessions[0] != sessions[1],
        "{sessions:?}"
    );
    // Both have the same slot of their first session: neither is taken for the other.
    tcp.request(0, UPDATE, &update(1, 0, b"one"), None).unwrap();
    tcp.poll(Duration::ZERO, |_, _| {}).unwrap();
    shm.request(0, UPDATE, &update(2, 0, b"two"), None).unwrap();
    assert_eq!(answers(&mut shm, 1), [(0, Ok(Vec::new()))]);
    assert_eq!(answers(&mut tcp, 1), [(0, Ok(Vec::new()))]);
    assert_eq!(notes.batches.load(SeqCst), 1);
    let memories = [tcp.register(100).unwrap(), shm.register(100).unwrap()];
    tcp.request(
        0,
        FETCH,
        &2_u64.to_le_bytes(),
        Some(whole(memories[0], 100, BulkUse::Put)),
    )
    .unwrap();
    tcp.poll(Duration::ZERO, |_, _| {}).unwrap();
    shm.request(
        0,
        FETCH,
        &1_u64.to_le_bytes(),
        Some(whole(memories[1], 100, BulkUse::Put)),
    )
    .unwrap();
    let size = Ok(3_u64.to_le_bytes().to_vec());
    assert_eq!(answers(&mut shm, 1), [(0, size.clone())]);
    assert_eq!(answers(&mut tcp, 1), [(0, size)]);
    assert_eq!(&tcp.memory(memories[0])[..3], b"two");
    assert_eq!(&shm.memory(memories[1])[..3], b"one");
    stop(server);
}

#[test]
fn what_held_calls_bring_is_taken_from_the_memory_limit() {
    let limits = ServerLimits {
        memory: 1 << 20,
        ..ServerLimits::default()
    };
    let address = StreamLink::address("").unwrap();
    let (server, notes) = server(vec![address], 1, limits);
    let before = server.memory_left();
    let mut held = Vec::new();
    let mut refused = 0;
    while refused == 0 {
        assert!(held.len() < 10, "nothing is refused");
        let mut one = channel_without_buffers(&server);
        for slot in 0..15 {
            one.request(slot, NEVER, &[1; 16 << 10], None).unwrap();
        }
        // The answer to this one comes after all that were refused.
        one.request(15, UPDATE, &update(1, 0, b""), None).unwrap();
        let mut is_over = false;
        while !is_over {
            let taken = one.poll(Duration::from_secs(20), |slot, result| {
                is_over |= slot == 15;
                refused += u32::from(slot < 15);
                assert!(slot == 15 || result == Err(-1009), "{slot}: {result:?}");
            });
            assert!(taken.unwrap() > 0, "no answer for 20 s");
        }
        held.push(one);
    }
    assert!(server.memory_left() < 16 << 10);
    let dropped = notes.dropped.load(SeqCst);
    assert!(
        dropped >= refused,
        "the service keeps {refused} refused calls"
    );
    drop(held);
    gives_back(&server, before);
    stop(server);
}

fn channel_without_buffers(server: &RpcServer) -> RpcChannel<StreamLink> {
    let none = payload((RpcPayloadKind::Empty, 0), (RpcPayloadKind::Empty, 0));
    let setup = client_setup(Vec::new(), none);
    let asked = OpenRequest {
        service: "store".to_owned(),
        version: 1,
        send_size: 16 << 10,
        credits: 16,
        ..OpenRequest::default()
    };
    let endpoint = endpoint(server, 0);
    RpcChannel::open(StreamLink::make(), &setup.dial, &endpoint, &asked).unwrap()
}

#[test]
fn a_caller_that_waits_no_longer_frees_what_is_held_for_it() {
    let address = StreamLink::address("").unwrap();
    let (server, _) = server(vec![address], 1, ServerLimits::default());
    let before = server.memory_left();
    // The operation for these is one that the store never answers.
    let (send, reply) = (RpcPayloadKind::Inline, RpcPayloadKind::Bulk);
    assert_eq!(self_test::operation(send, reply), NEVER);
    let both = payload((send, 100), (reply, 100));
    let mut setup = client_setup(vec![endpoint(&server, 0)], both);
    setup.timeout = Duration::from_millis(50);
    let mut client = client(setup);
    let outcome = run(&mut client, 4, 1, 12);
    assert_eq!(outcome.failed, [-1011; 12]);
    client.close().unwrap();
    gives_back(&server, before);
    stop(server);
}
