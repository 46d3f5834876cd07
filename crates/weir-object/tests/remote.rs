//! A store on targets: what travels, what comes back, what strangers can do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::wildcard_imports,
    clippy::too_many_lines,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

mod loopback;

use loopback::{FLIPS, code, remote};
use weir_object::disk::DiskStore;
use weir_object::mem::MemStore;
use weir_object::remote::*;
use weir_object::*;

const INTEGERS: ObjectId = ObjectId { hi: 2 << 56, lo: 1 };
const HASHED: ObjectId = ObjectId { hi: 0, lo: 2 };

#[expect(clippy::unnecessary_wraps, reason = "a target of echo has none")]
fn mem() -> Option<MemStore> {
    Some(MemStore::open(&PoolSpec::anonymous(256 << 20)).unwrap())
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    let byte = |at: usize| ((at * 7 + at / 251 + seed) % 255) as u8 + 1;
    (0..length).map(byte).collect()
}

fn at(container: ContainerId, object: ObjectId, dkey: &[u8]) -> KeyAt<'_> {
    KeyAt {
        container,
        object,
        dkey,
    }
}

const NONE: Conditions = Conditions::NONE;

/// Numbers of splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}

#[test]
fn requests_of_every_kind_are_read_as_they_were_written_and_as_nothing_where_they_are_cut() {
    let mut random = Random(5);
    for _ in 0..300 {
        let (dkey, akey, values) = (random.bytes(40), random.bytes(9), random.bytes(99));
        let container = ContainerId(random.below(9) as u32);
        let object = ObjectId {
            hi: random.below(u64::MAX),
            lo: random.below(u64::MAX),
        };
        let epoch = Epoch(random.below(u64::MAX));
        let extents: Vec<RecordExtent> = (0..random.below(5))
            .map(|_| RecordExtent {
                index: random.below(u64::MAX),
                count: random.below(u64::MAX),
            })
            .collect();
        let conditions = Conditions(random.below(256) as u32);
        let all = [
            Iod::single(&akey, random.below(u64::MAX)),
            Iod::array(b"", random.below(u64::MAX), &extents),
        ];
        let iods = || Descriptors::Given(&all[..random.0 as usize % 3]);
        let key = at(container, object, &dkey);
        let extent = RecordExtent { index: 1, count: 2 };
        let scopes = [
            PunchScope::Object,
            PunchScope::Dkey(&dkey),
            PunchScope::Akey(&dkey, &akey),
            PunchScope::Extent(&dkey, &akey, extent),
        ];
        let levels = [
            ListLevel::Objects,
            ListLevel::Dkeys(object),
            ListLevel::Akeys(object, &dkey),
            ListLevel::Visible(object, &dkey, &akey),
            ListLevel::Versions(object, &dkey, &akey),
        ];
        let values = Values(&values);
        let fetch = Request::Fetch {
            key,
            epoch,
            conditions,
            iods: iods(),
        };
        let update = Request::Update {
            key,
            epoch,
            conditions,
            iods: iods(),
            sum: ValueSum {
                kind: ValueSums::Xxh3,
                sum: random.below(9) as u32,
            },
            values,
        };
        let mut requests = vec![
            Request::Info {},
            Request::Container {
                uuid: [3; 16],
                mode: ContainerMode::OpenOrCreate,
            },
            fetch,
            Request::Query {
                container,
                object,
                what: KeyQuery::MAX,
                epoch,
                answer: QueryAnswer {
                    dkey: dkey.clone(),
                    akey: akey.clone(),
                    extent,
                },
            },
            Request::Snapshot {
                container,
                epoch,
                ends: true,
            },
            Request::Pass {
                container,
                range: EpochRange {
                    after: epoch,
                    upto: epoch,
                },
                discards: false,
            },
            Request::Collect {},
            Request::Scrub {},
            Request::Stats {},
            Request::Destroy { container },
        ];
        requests.extend(scopes.map(|scope| Request::Punch {
            container,
            object,
            scope,
            epoch,
            conditions,
        }));
        requests.extend(levels.map(|level| Request::List {
            container,
            level,
            epoch,
            from: ListPlace {
                next: 4,
                key: dkey.clone(),
            },
            skip: 5,
            most: 6,
        }));
        let read_again = |request: &Request<'_>| {
            let mut bytes = Vec::new();
            let operation = request.encode(&mut bytes);
            let read = Request::decode(operation, &bytes).unwrap();
            let mut again = Vec::new();
            assert_eq!(read.encode(&mut again), operation);
            assert_eq!(again, bytes, "{request:?}");
            (operation, bytes)
        };
        read_again(&update);
        for request in &requests {
            let (operation, bytes) = read_again(request);
            for cut in 0..bytes.len() {
                assert!(Request::decode(operation, &bytes[..cut]).is_err());
            }
            let longer = [&bytes[..], &[0]].concat();
            assert!(Request::decode(operation, &longer).is_err());
        }
    }
}

#[test]
fn values_that_change_on_their_way_are_refused_and_never_returned() {
    for length in [100, 100_000] {
        let mut store = remote(vec![mem()], 0, 0);
        let c = store.container([1; 16], ContainerMode::Create).unwrap();
        let (key, value) = (at(c, HASHED, b"d"), pattern(length, 3));
        let iods = [Iod::single(b"a", length as u64)];
        FLIPS.set(true);
        let changed = store.update(key, &iods, Epoch(5), NONE, &value);
        assert_eq!(code(changed), ObjectCode::Csum);
        FLIPS.set(false);
        let mut fetch = |epoch| {
            let mut data = vec![0; length];
            let done = store.fetch(key, &mut iods.clone(), Epoch(epoch), NONE, &mut data);
            done.map(|done| (done, data))
        };
        assert_eq!(fetch(9).unwrap().0, Ticket::Done(0), "nothing was stored");
        let _ = store.update(key, &iods, Epoch(5), NONE, &value).unwrap();
        let mut fetch = |epoch| {
            let mut data = vec![0; length];
            let done = store.fetch(key, &mut iods.clone(), Epoch(epoch), NONE, &mut data);
            done.map(|done| (done, data))
        };
        FLIPS.set(true);
        assert_eq!(code(fetch(9)), ObjectCode::Csum);
        FLIPS.set(false);
        assert_eq!(fetch(9).unwrap(), (Ticket::Done(length as u64), value));
    }
}

/// Requests of every kind, and changes to them.
fn garbage(random: &mut Random) -> (u16, Vec<u8>) {
    let container = ContainerId(0);
    let extents = [RecordExtent {
        index: random.below(30),
        count: random.below(30),
    }];
    let sizes = [0, 1, 5, 20_000, 1 << 20, 1 << 40, u64::MAX];
    let size = sizes[random.below(7) as usize];
    let iods = [Iod::single(b"a", size), Iod::array(b"b", size, &extents)];
    let iods = &iods[random.below(2) as usize..][..1];
    let (epoch, conditions) = (Epoch(random.below(4)), NONE);
    let object = if random.below(2) == 0 {
        HASHED
    } else {
        INTEGERS
    };
    let key = at(container, object, b"12345678");
    // In the request, or in the caller's memory.
    let length = size.min(20_000) * random.below(2);
    let values = vec![1; length as usize];
    let request = match random.below(9) {
        0 => Request::Update {
            key,
            epoch,
            conditions,
            iods: Descriptors::Given(iods),
            sum: ValueSum::default(),
            values: Values(&values),
        },
        1 | 2 => Request::Fetch {
            key,
            epoch: Epoch::LATEST,
            conditions,
            iods: Descriptors::Given(iods),
        },
        3 => Request::List {
            container,
            level: ListLevel::Versions(object, b"12345678", b"a"),
            epoch: Epoch::LATEST,
            from: ListPlace {
                next: random.below(3),
                key: Vec::new(),
            },
            skip: random.below(3) as u32,
            most: u32::MAX,
        },
        4 => Request::Punch {
            container,
            object,
            scope: PunchScope::Dkey(b"12345678"),
            epoch,
            conditions,
        },
        5 => Request::Query {
            container,
            object,
            what: KeyQuery(random.below(32) as u32),
            epoch: Epoch::LATEST,
            answer: QueryAnswer::default(),
        },
        6 => Request::Container {
            uuid: [random.below(3) as u8; 16],
            mode: ContainerMode::OpenOrCreate,
        },
        7 => Request::Scrub {},
        _ => Request::Pass {
            container,
            range: EpochRange {
                after: Epoch(0),
                upto: epoch,
            },
            discards: true,
        },
    };
    let mut bytes = Vec::new();
    let mut operation = request.encode(&mut bytes);
    for _ in 0..random.below(3) {
        let place = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(3) {
            0 => bytes.truncate(place),
            1 => bytes.insert(place, random.below(256) as u8),
            _ => operation = random.below(15) as u16,
        }
    }
    (operation, bytes)
}

#[test]
fn a_target_answers_every_request_of_a_stranger_and_holds_nothing_in_the_end() {
    let about = ServerInfo {
        targets: 1,
        pool: [0; 16],
        durability: Durability::None,
        sums: ValueSums::None,
    };
    for (seed, store) in [(1, mem()), (2, None)] {
        let most = 3 << 20;
        let mut target: Target<MemStore, u64> = Target::new(store, about, most);
        let mut random = Random(seed);
        let mut buffer = vec![0; BUFFERS.0 as usize];
        let (mut steps, mut good) = ([0; 6], 0);
        for handle in 0..40_000_u64 {
            let (operation, payload) = garbage(&mut random);
            let lengths = [
                None,
                None,
                Some(20_000),
                Some(1 << 20),
                Some(5),
                Some(u64::MAX),
            ];
            let bulk = lengths[random.below(6) as usize];
            macro_rules! call {
                () => {
                    TargetRequest {
                        operation,
                        payload: &payload,
                        bulk,
                        buffer: &mut buffer,
                        handle,
                    }
                };
            }
            let mut step = target.request(call!());
            loop {
                let is_last_part = target.parts().all(|part| {
                    part.from + part.length <= BUFFERS.0.into()
                        && part.to + part.length <= bulk.unwrap()
                });
                assert!(is_last_part);
                if random.below(8) == 0 {
                    target.dropped(handle);
                    break;
                }
                let number = match step {
                    Step::Reply(length) | Step::PushAndReply(length) => {
                        good += usize::from(Reply::decode(&buffer[..length]).unwrap().0.is_ok());
                        0
                    }
                    Step::Fail(_) => 1,
                    Step::Pull { from, length } => {
                        assert!(from + length <= bulk.unwrap() && length <= BUFFERS.0.into());
                        step = target.pulled(call!());
                        2
                    }
                    Step::Push => {
                        step = target.resumed(handle, &mut buffer);
                        3
                    }
                    Step::Later => {
                        let mut ready = Vec::new();
                        target.end_of_round(&mut ready);
                        assert_eq!(ready, [handle]);
                        step = target.resumed(handle, &mut buffer);
                        4
                    }
                };
                steps[number] += 1;
                if number < 2 {
                    break;
                }
            }
        }
        assert!(
            good > 1_000 && steps[0] > 10_000 && steps[2] > 10,
            "{good} {steps:?}"
        );
        // As much as may be held can be held again.
        let values = Iod::single(b"a", most);
        let mut bytes = Vec::new();
        let update = Request::Update {
            key: at(ContainerId(0), HASHED, b"d"),
            epoch: Epoch(0),
            conditions: NONE,
            iods: Descriptors::Given(&[values]),
            sum: ValueSum::default(),
            values: Values(&[]),
        };
        let operation = update.encode(&mut bytes);
        let step = target.request(TargetRequest {
            operation,
            payload: &bytes,
            bulk: Some(most),
            buffer: &mut buffer,
            handle: 1,
        });
        assert!(matches!(step, Step::Pull { .. }), "{step:?}");
    }
}

#[test]
fn values_of_every_length_and_their_holes_come_back() {
    for in_flight in [0, 3] {
        let mut store = remote(vec![mem(), mem()], in_flight, 0);
        let c = store.container([1; 16], ContainerMode::Create).unwrap();
        let done = |store: &mut RemoteStore<_>, ticket: Result<Ticket>| match ticket.unwrap() {
            Ticket::Done(bytes) => (0, bytes),
            Ticket::Waits(ticket) => {
                let mut ends = Vec::new();
                while ends.is_empty() {
                    store.poll(&mut ends, 1);
                }
                assert_eq!(ends[0].ticket, ticket);
                (ticket, ends[0].result.clone().unwrap())
            }
        };
        let lengths = [
            1,
            5_000,
            16 << 10,
            (16 << 10) + 1,
            90_000,
            1 << 20,
            (3 << 20) + 5,
        ];
        for (number, length) in (0_u64..).zip(lengths) {
            let (dkey, value) = (number.to_le_bytes(), pattern(length, number as usize));
            let key = at(c, INTEGERS, &dkey);
            let iods = [Iod::single(b"a", length as u64)];
            // The server's own time.
            let ticket = store.update(key, &iods, Epoch(0), NONE, &value);
            assert_eq!(done(&mut store, ticket).1, length as u64);
            let mut data = vec![0; length + 20_000];
            let mut iods = [Iod::single(b"a", length as u64 + 20_000)];
            let ticket = store.fetch(key, &mut iods, Epoch::LATEST, NONE, &mut data);
            let (ticket, found) = done(&mut store, ticket);
            assert_eq!(found, length as u64);
            if in_flight > 0 {
                assert_eq!(store.receive(ticket, &mut iods, &mut data), Ok(found));
                assert_eq!(
                    code(store.receive(ticket, &mut iods, &mut data)),
                    ObjectCode::NoHdl
                );
            }
            assert_eq!((iods[0].size, iods[0].found), (found, found));
            assert!(data[..length] == value && data[length..].iter().all(|byte| *byte == 0));
            if in_flight == 0 && length > 1 {
                // Too little room: the length comes back.
                let mut iods = [Iod::single(b"a", length as u64 - 1)];
                let short = store.fetch(key, &mut iods, Epoch::LATEST, NONE, &mut data);
                assert_eq!(code(short), ObjectCode::Rec2Big);
                assert_eq!(iods[0].size, length as u64);
            }
        }
        // Extents of 3-byte records with holes between them, more than one step has parts.
        for records in [40_u64, 40_000] {
            let dkey = (records + 100).to_le_bytes();
            let key = at(c, INTEGERS, &dkey);
            let each = records / 40;
            let mut expected = vec![0xee; (records * 3) as usize];
            for number in (0..40).step_by(2) {
                let extents = [RecordExtent {
                    index: number * each,
                    count: each,
                }];
                let value = pattern((each * 3) as usize, number as usize);
                let place = (number * each * 3) as usize;
                expected[place..place + value.len()].copy_from_slice(&value);
                let iods = [Iod::array(b"r", 3, &extents)];
                let ticket = store.update(key, &iods, Epoch(5), NONE, &value);
                let _ = done(&mut store, ticket);
            }
            let extents = [RecordExtent {
                index: 0,
                count: records,
            }];
            let mut data = vec![0xee; expected.len()];
            let mut iods = [Iod::array(b"r", 3, &extents)];
            let ticket = store.fetch(key, &mut iods, Epoch(5), NONE, &mut data);
            let (ticket, found) = done(&mut store, ticket);
            assert_eq!(found, records * 3 / 2);
            if in_flight > 0 {
                store.receive(ticket, &mut iods, &mut data).unwrap();
            }
            assert!(data == expected, "{records} records");
        }
        let long = Iod::single(b"a", LONGEST + 1);
        let data = vec![0; LONGEST as usize + 1];
        let refused = store.update(at(c, HASHED, b"d"), &[long], Epoch(1), NONE, &data);
        assert_eq!(code(refused), ObjectCode::Rec2Big);
        let counters = store.refresh().unwrap();
        assert_eq!(counters.updates, lengths.len() as u64 + 40);
        let short = u64::from(in_flight == 0) * (lengths.len() as u64 - 1);
        assert_eq!(counters.fetches, lengths.len() as u64 + 2 + short);
    }
}

/// Keys or low words of objects of a level, so many at once.
fn listed(
    store: &mut impl ObjectStore,
    c: ContainerId,
    level: ListLevel<'_>,
    most: usize,
) -> Vec<Vec<u8>> {
    let (mut all, mut anchor) = (Vec::new(), ListAnchor::default());
    while !anchor.done {
        let before = all.len();
        store
            .list(c, level, Epoch::LATEST, &mut anchor, &mut |entry| {
                all.push(match entry {
                    ListEntry::Key(key) => key.to_vec(),
                    ListEntry::Object(id) => id.lo.to_le_bytes().to_vec(),
                    other @ ListEntry::Version { .. } => panic!("{other:?}"),
                });
                all.len() - before < most
            })
            .unwrap();
        assert!(all.len() <= 10_000, "{level:?} has no end");
    }
    all
}

#[test]
fn several_targets_are_listed_and_asked_as_one() {
    let mut store = remote(vec![mem(), mem(), mem()], 0, 0);
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    for number in 0..500_u64 {
        let dkey = number.to_le_bytes();
        for object in [INTEGERS, ObjectId { lo: 9, ..INTEGERS }] {
            let iods = [Iod::single(b"a", 1), Iod::single(b"b", 1)];
            let key = at(c, object, &dkey);
            let _ = store
                .update(key, &iods, Epoch(number + 1), NONE, b"xy")
                .unwrap();
        }
    }
    for most in [1, 7, 8, 1000] {
        let mut dkeys = listed(&mut store, c, ListLevel::Dkeys(INTEGERS), most);
        dkeys.sort_unstable_by_key(|key| u64::from_le_bytes(key[..].try_into().unwrap()));
        let expected: Vec<_> = (0..500_u64).map(|n| n.to_le_bytes().to_vec()).collect();
        assert!(dkeys == expected, "{most} at once");
        let objects = listed(&mut store, c, ListLevel::Objects, most);
        assert_eq!(objects, [1_u64, 9].map(|lo| lo.to_le_bytes().to_vec()));
        let akeys = listed(
            &mut store,
            c,
            ListLevel::Akeys(INTEGERS, &3_u64.to_le_bytes()),
            most,
        );
        assert_eq!(akeys, [b"a", b"b"]);
    }
    for (what, wanted) in [(KeyQuery::MAX, 499), (KeyQuery::MIN, 0_u64)] {
        let mut answer = QueryAnswer::default();
        let what = what.with(KeyQuery::DKEY);
        store
            .query(c, INTEGERS, what, Epoch::LATEST, &mut answer)
            .unwrap();
        assert_eq!(answer.dkey, wanted.to_le_bytes());
    }
    let punch = PunchScope::Object;
    let other = ObjectId { lo: 77, ..INTEGERS };
    let missing = store.punch(c, other, punch, Epoch(900), Conditions::PUNCH);
    assert_eq!(code(missing), ObjectCode::NonExist);
    let _ = store
        .punch(c, INTEGERS, punch, Epoch(900), Conditions::PUNCH)
        .unwrap();
    assert_eq!(
        listed(&mut store, c, ListLevel::Dkeys(INTEGERS), 9).len(),
        0
    );
    let mut answer = QueryAnswer::default();
    let what = KeyQuery::MAX.with(KeyQuery::DKEY);
    let gone = store.query(c, INTEGERS, what, Epoch::LATEST, &mut answer);
    assert_eq!(code(gone), ObjectCode::NonExist);
    let range = EpochRange {
        after: Epoch(0),
        upto: Epoch(900),
    };
    assert_eq!(store.aggregate(c, range).unwrap().versions, 1_000 + 3);
}

#[test]
fn engines_that_go_by_keys_are_listed_on_from_every_place() {
    let dir = std::env::temp_dir().join(format!("weir_object_listed.{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let disk = |name: &str| {
        DiskStore::open(&PoolSpec {
            path: Some(dir.join(name)),
            durability: Durability::Power,
            // Files of tests lie in memory, where commits are quick.
            assume_persistent: true,
            ..PoolSpec::anonymous(16 << 20)
        })
        .unwrap()
    };
    let mut store = remote(vec![Some(disk("0")), Some(disk("1"))], 0, 0);
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    let akeys = [b"a", b"b", b"c"];
    for number in 0..40_u64 {
        let dkey = number.to_le_bytes();
        for object in [INTEGERS, HASHED] {
            let iods = akeys.map(|akey| Iod::single(akey, 1));
            let key = at(c, object, &dkey);
            let _ = store.update(key, &iods, Epoch(1), NONE, b"xyz").unwrap();
        }
    }
    for most in [1, 2, 3, 7, 1000] {
        for object in [INTEGERS, HASHED] {
            let mut dkeys = listed(&mut store, c, ListLevel::Dkeys(object), most);
            dkeys.sort_unstable_by_key(|key| u64::from_le_bytes(key[..].try_into().unwrap()));
            let expected: Vec<_> = (0..40_u64).map(|n| n.to_le_bytes().to_vec()).collect();
            assert!(dkeys == expected, "{most} at once");
            let below = ListLevel::Akeys(object, &expected[3]);
            assert_eq!(listed(&mut store, c, below, most), akeys);
        }
        let objects = listed(&mut store, c, ListLevel::Objects, most);
        assert_eq!(objects, [2_u64, 1].map(|lo| lo.to_le_bytes().to_vec()));
    }
    drop(store);
    // Places that the engine never gave: before, behind, and within what is listed.
    let mut own = disk("2");
    let c = own.container([1; 16], ContainerMode::Create).unwrap();
    for object in [INTEGERS, HASHED] {
        let key = at(c, object, b"12345678");
        let iods = [Iod::single(b"a", 1)];
        let _ = own.update(key, &iods, Epoch(1), NONE, b"x").unwrap();
        let scope = PunchScope::Object;
        let _ = own.punch(c, object, scope, Epoch(2), NONE).unwrap();
    }
    let about = ServerInfo {
        targets: 1,
        pool: [0; 16],
        durability: Durability::Power,
        sums: ValueSums::Xxh3,
    };
    let mut target = Target::new(Some(own), about, 0);
    let mut buffer = vec![0; BUFFERS.0 as usize];
    let mut object = [0; 20];
    object[4] = 2;
    object[19] = 1;
    let places = [
        &[][..],
        &[0],
        &[0; 64],
        &[0xff; 64],
        &object,
        &[&object[..], &[0, 0]].concat(),
        &[&object[..], &[0xff; 9]].concat(),
    ];
    for place in places {
        for level in [
            ListLevel::Objects,
            ListLevel::Dkeys(INTEGERS),
            ListLevel::Akeys(INTEGERS, b"12345678"),
        ] {
            let mut payload = Vec::new();
            let operation = Request::List {
                container: c,
                level,
                epoch: Epoch(1),
                from: ListPlace {
                    next: 0,
                    key: place.to_vec(),
                },
                skip: 0,
                most: 9,
            }
            .encode(&mut payload);
            let step = target.request(TargetRequest {
                operation,
                payload: &payload,
                bulk: None,
                buffer: &mut buffer,
                handle: 0,
            });
            let Step::Reply(length) = step else {
                panic!("{step:?}")
            };
            let (result, mut body) = Reply::decode(&buffer[..length]).unwrap();
            assert_eq!(result, Ok(()), "{level:?} from {place:?}");
            let most = if level == ListLevel::Objects { 2 } else { 1 };
            // Behind its end and its place: a number, and bytes by their length.
            let key = u32::from_le_bytes(body[9..13].try_into().unwrap()) as usize;
            body = &body[13 + key..];
            assert!(u32::from_le_bytes(body[..4].try_into().unwrap()) <= most);
            let no_key = [1, 0, 0, 0, 0];
            assert_ne!(
                body.get(4..9),
                Some(&no_key[..]),
                "{level:?} from {place:?}"
            );
        }
    }
    drop(target);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn keys_as_long_as_may_be_are_listed() {
    let mut store = remote(vec![mem()], 0, 0);
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    for number in 0..5 {
        let dkey = vec![b'a' + number; MAX_KEY];
        let iods = [Iod::single(b"a", 1)];
        let key = at(c, HASHED, &dkey);
        let _ = store.update(key, &iods, Epoch(1), NONE, b"x").unwrap();
    }
    let (mut all, mut anchor) = (Vec::new(), ListAnchor::default());
    let level = ListLevel::Dkeys(HASHED);
    store
        .list(c, level, Epoch(1), &mut anchor, &mut |entry| {
            let ListEntry::Key(key) = entry else { panic!() };
            assert_eq!(key.len(), MAX_KEY);
            all.push(key[0]);
            true
        })
        .unwrap();
    all.sort_unstable();
    assert_eq!((anchor.done, all), (true, b"abcde".to_vec()));
}

#[test]
fn clients_make_no_more_containers_than_a_pool_may_have() {
    let mut store = remote(vec![mem()], 0, 0);
    let uuid = |number: u64| {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&number.to_le_bytes());
        uuid
    };
    for number in 0..MOST_CONTAINERS {
        store
            .container(uuid(number), ContainerMode::Create)
            .unwrap();
    }
    let more = store.container(uuid(MOST_CONTAINERS), ContainerMode::Create);
    assert_eq!(code(more), ObjectCode::NoSpace);
    let more = store.container(uuid(MOST_CONTAINERS), ContainerMode::OpenOrCreate);
    assert_eq!(code(more), ObjectCode::NoSpace);
    let known = store.container(uuid(5), ContainerMode::Create);
    assert_eq!(code(known), ObjectCode::Exist);
    for mode in [ContainerMode::Open, ContainerMode::OpenOrCreate] {
        assert_eq!(store.container(uuid(5), mode), Ok(ContainerId(5)));
    }
    // One that is destroyed makes room.
    store.drop_container(ContainerId(5)).unwrap();
    let again = store.container(uuid(5), ContainerMode::Create);
    assert_eq!(
        code(store.container(uuid(5), ContainerMode::Create)),
        ObjectCode::Exist
    );
    let data = [1; 5];
    let iods = [Iod::single(b"a", 5)];
    let done = store.update(
        at(again.unwrap(), HASHED, b"d"),
        &iods,
        Epoch(1),
        NONE,
        &data,
    );
    assert_eq!(done, Ok(Ticket::Done(5)));
}

#[test]
fn a_snapshot_whose_epoch_the_server_chooses_sees_all_that_was_acknowledged() {
    let mut store = remote(vec![mem(), mem()], 0, 0);
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    // A client whose clock is ahead, one whose is behind, and one that lets the server choose.
    let ahead = u64::MAX / 2;
    for (number, epoch) in [(0, ahead), (1, 5), (2, 0), (3, ahead + 1)] {
        for key in 0..8_u8 {
            let object = ObjectId { hi: 0, lo: number };
            let iods = [Iod::single(b"a", 1)];
            let _ = store
                .update(at(c, object, &[key]), &iods, Epoch(epoch), NONE, b"x")
                .unwrap();
        }
    }
    let snapshot = store.snapshot(c, Epoch(0)).unwrap();
    let mut seen = 0;
    let visit = &mut |_: ListEntry<'_>| {
        seen += 1;
        true
    };
    let mut anchor = ListAnchor::default();
    store
        .list(c, ListLevel::Objects, snapshot, &mut anchor, visit)
        .unwrap();
    assert_eq!((seen, snapshot), (4, Epoch(ahead + 1)));
    // It is that of all targets, and nothing else is kept.
    for key in 0..8_u8 {
        let object = ObjectId { hi: 0, lo: 0 };
        let iods = [Iod::single(b"a", 1)];
        let _ = store
            .update(at(c, object, &[key]), &iods, Epoch::LATEST, NONE, b"y")
            .unwrap();
    }
    let all = EpochRange {
        after: Epoch(0),
        upto: Epoch::LATEST,
    };
    assert_eq!(store.aggregate(c, all).unwrap().versions, 0);
    store.drop_snapshot(c, snapshot).unwrap();
    assert_eq!(store.aggregate(c, all).unwrap().versions, 8);
}

#[test]
fn echo_answers_with_any_bytes_counts_and_stores_nothing() {
    let mut store = remote::<MemStore>(vec![None], 0, 0);
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    for length in [5, 50_000, 2 << 20] {
        let mut data = vec![1; length];
        let key = at(c, HASHED, b"d");
        let mut iods = [Iod::single(b"a", length as u64)];
        let done = Ok(Ticket::Done(length as u64));
        assert_eq!(store.update(key, &iods, Epoch(1), NONE, &data), done);
        assert_eq!(store.fetch(key, &mut iods, Epoch(1), NONE, &mut data), done);
        assert!(data.iter().all(|byte| *byte == 0x5a));
    }
    let counters = store.refresh().unwrap();
    let bytes = 5 + 50_000 + (2 << 20);
    let expected = Counters {
        updates: 3,
        fetches: 3,
        update_bytes: bytes,
        fetch_bytes: bytes,
    };
    assert_eq!(counters, expected);
    let range = EpochRange {
        after: Epoch(0),
        upto: Epoch(9),
    };
    assert_eq!(code(store.aggregate(c, range)), ObjectCode::NoSys);
}
