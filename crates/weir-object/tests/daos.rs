//! The engine `daos` on a stub of libdaos, which ends the process where it was used in a wrong way or something of
//! it was left.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::many_single_char_names,
    clippy::needless_pass_by_value,
    clippy::precedence,
    clippy::decimal_bitwise_operands,
    clippy::manual_is_multiple_of,
    clippy::too_many_lines,
    reason = "tests"
)]

#[allow(dead_code, reason = "the oracle uses the rest of it")]
mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use model::{Change, Model, Place, Random, What, akey, dkey, is_array, object};

use weir_object::daos::{DaosPool, DaosStore};
use weir_object::*;

const OBJECT: ObjectId = ObjectId { hi: 2 << 56, lo: 7 };

/// The stub, which cargo builds with the tests.
fn stub() -> String {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    let stub: PathBuf = profile.join("examples/libdaos_stub.so");
    stub.to_str().unwrap().to_owned()
}

fn pool(name: &str, in_flight: u32) -> DaosPool {
    DaosPool {
        in_flight,
        library: Some(stub()),
        ..DaosPool::new(name)
    }
}

fn opened(in_flight: u32) -> (DaosStore, ContainerId) {
    let mut store = DaosStore::open(&pool("tank", in_flight)).unwrap();
    let container = store.container([0; 16], ContainerMode::Create).unwrap();
    (store, container)
}

fn key(container: ContainerId, dkey: &[u8]) -> KeyAt<'_> {
    KeyAt {
        container,
        object: OBJECT,
        dkey,
    }
}

fn put(store: &mut DaosStore, c: ContainerId, dkey: u64, akey: &[u8], value: &[u8]) -> Ticket {
    let (dkey, none) = (dkey.to_le_bytes(), Conditions::NONE);
    let iods = [Iod::single(akey, value.len() as u64)];
    store
        .update(key(c, &dkey), &iods, Epoch::LATEST, none, value)
        .unwrap()
}

fn get(
    store: &mut DaosStore,
    c: ContainerId,
    (dkey, akey): (u64, &[u8]),
    epoch: Epoch,
) -> Result<Vec<u8>> {
    let (dkey, none) = (dkey.to_le_bytes(), Conditions::NONE);
    let (mut data, mut iods) = (vec![0xEE; 64], [Iod::single(akey, 64)]);
    let Ticket::Done(found) = store.fetch(key(c, &dkey), &mut iods, epoch, none, &mut data)? else {
        panic!("it waits");
    };
    assert_eq!(found, iods[0].size);
    data.truncate(usize::try_from(found).unwrap());
    Ok(data)
}

fn keys(store: &mut DaosStore, c: ContainerId, level: ListLevel<'_>, epoch: Epoch) -> Vec<Vec<u8>> {
    let (mut found, mut anchor) = (Vec::new(), ListAnchor::default());
    while !anchor.done {
        let visit = &mut |entry: ListEntry<'_>| {
            match entry {
                ListEntry::Key(key) => found.push(key.to_vec()),
                ListEntry::Object(object) => found.push(object.lo.to_be_bytes().to_vec()),
                ListEntry::Version { .. } => panic!("{entry:?}"),
            }
            found.len() % 3 != 0
        };
        store.list(c, level, epoch, &mut anchor, visit).unwrap();
    }
    found.sort();
    found
}

#[test]
fn a_snapshot_keeps_what_updates_and_punches_change_afterwards() {
    let (mut store, c) = opened(1);
    for dkey in 1..=10 {
        for akey in [b"a", b"b"] {
            let _ = put(
                &mut store,
                c,
                dkey,
                akey,
                &[u8::try_from(dkey).unwrap(); 20],
            );
        }
    }
    let then = store.snapshot(c, Epoch::LATEST).unwrap();
    let _ = put(&mut store, c, 1, b"a", b"later");
    let scopes = [
        PunchScope::Dkey(&[2, 0, 0, 0, 0, 0, 0, 0]),
        PunchScope::Akey(&[3, 0, 0, 0, 0, 0, 0, 0], b"a"),
    ];
    for scope in scopes {
        let _ = store
            .punch(c, OBJECT, scope, Epoch::LATEST, Conditions::NONE)
            .unwrap();
    }
    let now = Epoch::LATEST;
    assert_eq!(get(&mut store, c, (1, b"a"), now).unwrap(), b"later");
    assert_eq!(get(&mut store, c, (1, b"a"), then).unwrap(), [1; 20]);
    assert_eq!(get(&mut store, c, (2, b"b"), now).unwrap(), b"");
    assert_eq!(get(&mut store, c, (2, b"b"), then).unwrap(), [2; 20]);
    assert_eq!(get(&mut store, c, (3, b"a"), now).unwrap(), b"");
    assert_eq!(get(&mut store, c, (3, b"b"), now).unwrap(), [3; 20]);
    assert_eq!(keys(&mut store, c, ListLevel::Dkeys(OBJECT), now).len(), 9);
    assert_eq!(
        keys(&mut store, c, ListLevel::Dkeys(OBJECT), then).len(),
        10
    );
    let third = 3_u64.to_le_bytes();
    let level = ListLevel::Akeys(OBJECT, &third);
    assert_eq!(keys(&mut store, c, level, now), [b"b"]);
    assert_eq!(keys(&mut store, c, level, then), [b"a", b"b"]);
    let mut answer = QueryAnswer::default();
    let greatest = KeyQuery::MAX.with(KeyQuery::DKEY);
    store.query(c, OBJECT, greatest, now, &mut answer).unwrap();
    assert_eq!(answer.dkey, 10_u64.to_le_bytes());
    let freed = store.aggregate(
        c,
        EpochRange {
            after: Epoch(0),
            upto: now,
        },
    );
    assert_eq!(freed.unwrap(), FreedVersions::default());
    assert_eq!(get(&mut store, c, (2, b"b"), then).unwrap(), [2; 20]);
    store.drop_snapshot(c, then).unwrap();
    let gone = get(&mut store, c, (2, b"b"), then).unwrap_err();
    assert_eq!(gone.code, ObjectCode::NoSys);
    let _ = store
        .punch(c, OBJECT, PunchScope::Object, now, Conditions::NONE)
        .unwrap();
    assert!(keys(&mut store, c, ListLevel::Dkeys(OBJECT), now).is_empty());
    let mut rank = weir_schema::ObjectRank::default();
    store.describe(c, &mut rank);
    store.drop_container(c).unwrap();
    assert_eq!(store.drop_container(c).unwrap_err().code, ObjectCode::NoHdl);
    let named = uuid_of(&rank.container).unwrap();
    let gone = store.container(named, ContainerMode::Open).unwrap_err();
    assert_eq!(gone.code, ObjectCode::NonExist);
    Box::new(store).close().unwrap();
}

#[test]
fn objects_are_listed_by_the_names_that_they_were_given() {
    let (mut store, c) = opened(1);
    let dkey = 1_u64.to_le_bytes();
    for lo in 1..=30 {
        let object = ObjectId { hi: 0, lo };
        let at = KeyAt {
            object,
            ..key(c, &dkey)
        };
        let (iods, none) = ([Iod::single(b"a", 4)], Conditions::NONE);
        let _ = store
            .update(at, &iods, Epoch::LATEST, none, b"four")
            .unwrap();
    }
    let all: Vec<Vec<u8>> = (1..=30_u64).map(|lo| lo.to_be_bytes().to_vec()).collect();
    assert_eq!(keys(&mut store, c, ListLevel::Objects, Epoch::LATEST), all);
    let then = store.snapshot(c, Epoch::LATEST).unwrap();
    assert_eq!(keys(&mut store, c, ListLevel::Objects, then), all);
    // One that is not brought to its end is closed with the store.
    let first = &mut |_: ListEntry<'_>| false;
    let mut anchor = ListAnchor::default();
    store
        .list(c, ListLevel::Objects, then, &mut anchor, first)
        .unwrap();
    assert!(!anchor.done);
    Box::new(store).close().unwrap();
}

#[test]
fn holes_of_an_array_are_not_counted_and_stay_as_they_were() {
    let (mut store, c) = opened(1);
    let dkey = 1_u64.to_le_bytes();
    let (at, now, none) = (key(c, &dkey), Epoch::LATEST, Conditions::NONE);
    let written: Vec<RecordExtent> = (0..40)
        .map(|n| RecordExtent {
            index: 4 * n,
            count: 2,
        })
        .collect();
    let data: Vec<u8> = (0..160).collect();
    let iods = [Iod::array(b"a", 2, &written), Iod::single(b"s", 0)];
    let empty = store.update(at, &iods, now, none, &data).unwrap_err();
    assert_eq!(empty.code, ObjectCode::Inval);
    assert_eq!(
        store.update(at, &iods[..1], now, none, &data),
        Ok(Ticket::Done(160))
    );
    let hole = RecordExtent { index: 4, count: 1 };
    let scope = PunchScope::Extent(&dkey, b"a", hole);
    assert_eq!(
        store.punch(c, OBJECT, scope, now, none),
        Ok(Ticket::Done(0))
    );
    let whole = [RecordExtent {
        index: 0,
        count: 160,
    }];
    let mut iods = [Iod::array(b"a", 2, &whole), Iod::single(b"absent", 16)];
    let mut read = [0xEE; 336];
    let found = store.fetch(at, &mut iods, now, none, &mut read);
    // More ranges than a fetch has room for at first.
    assert_eq!(found, Ok(Ticket::Done(158)));
    assert_eq!(
        [iods[0].found, iods[0].size, iods[1].found, iods[1].size],
        [158, 2, 0, 0]
    );
    for record in 0..160 {
        let bytes = &read[2 * record..2 * record + 2];
        let number = u8::try_from(record / 4 * 4 + record % 4 * 2).unwrap();
        if record % 4 < 2 && record != 4 {
            assert_eq!(bytes, [number, number + 1], "record {record}");
        } else {
            assert_eq!(bytes, [0xEE; 2], "record {record}");
        }
    }
    assert!(read[320..].iter().all(|byte| *byte == 0xEE));
    Box::new(store).close().unwrap();
}

#[test]
fn more_operations_than_the_queue_has_room_for_are_refused_and_the_rest_ends_with_the_store() {
    let (mut store, c) = opened(16);
    let (mut begun, mut ended) = (0, Vec::new());
    let (iods, none) = ([Iod::single(b"a", 1)], Conditions::NONE);
    let refused = loop {
        let dkey = 99_u64.to_le_bytes();
        match store.update(key(c, &dkey), &iods, Epoch::LATEST, none, b"x") {
            Ok(ticket) => assert!(matches!(ticket, Ticket::Waits(_))),
            Err(why) => break why,
        }
        begun += 1;
    };
    assert_eq!((begun, refused.code), (16, ObjectCode::Busy));
    while ended.is_empty() {
        store.poll(&mut ended, 1);
    }
    assert!(ended.iter().all(|end| end.result == Ok(1)));
    let (mut data, mut iods) = ([0; 1], [Iod::single(b"a", 1)]);
    let update = store.receive(ended[0].ticket, &mut iods, &mut data);
    assert_eq!(update.unwrap_err().code, ObjectCode::NoHdl);
    Box::new(store).close().unwrap();
}

#[test]
fn what_libdaos_refuses_and_what_it_lacks_is_said_by_its_code() {
    let absent = DaosStore::open(&pool("absent", 1)).unwrap_err();
    assert_eq!(absent.code, ObjectCode::NonExist);
    let denied = DaosStore::open(&pool("denied", 16)).unwrap_err();
    assert_eq!(denied.code, ObjectCode::NoPerm);
    let (mut store, c) = opened(1);
    let none = store.container([9; 16], ContainerMode::Open).unwrap_err();
    assert_eq!(none.code, ObjectCode::NonExist);
    let own = store
        .container([9; 16], ContainerMode::OpenOrCreate)
        .unwrap();
    assert_ne!(own, c);
    let long = [b'x'; 65];
    let _ = put(&mut store, c, 1, b"a", &long);
    let (dkey, none) = (1_u64.to_le_bytes(), Conditions::NONE);
    let (mut data, mut iods) = ([0; 64], [Iod::single(b"a", 64)]);
    let fetched = store.fetch(key(c, &dkey), &mut iods, Epoch::LATEST, none, &mut data);
    assert_eq!(fetched.unwrap_err().code, ObjectCode::Rec2Big);
    assert_eq!(iods[0].size, 65);
    let there = Conditions::DKEY_INSERT;
    let iods = [Iod::single(b"a", 1)];
    let again = store.update(key(c, &dkey), &iods, Epoch::LATEST, there, b"x");
    assert_eq!(again.unwrap_err().code, ObjectCode::Exist);
    let at_an_epoch = store.update(key(c, &dkey), &iods, Epoch(5), none, b"x");
    assert_eq!(at_an_epoch.unwrap_err().code, ObjectCode::NoSys);
    let range = EpochRange {
        after: Epoch(0),
        upto: Epoch::LATEST,
    };
    assert_eq!(store.discard(c, range).unwrap_err().code, ObjectCode::NoSys);
    Box::new(store).close().unwrap();
}

#[test]
fn a_library_that_is_missing_or_another_one_is_named() {
    let open = |library: &str| {
        let library = Some(library.to_owned());
        let pool = DaosPool {
            library,
            ..DaosPool::new("tank")
        };
        DaosStore::open(&pool).unwrap_err().message.into_owned()
    };
    let missing = open("/nowhere/libdaos.so");
    assert!(
        missing.starts_with("libdaos not found (searched /nowhere/libdaos.so"),
        "{missing}"
    );
    let other = open("libc.so.6");
    assert!(other.contains("lacks daos_init"), "{other}");
}

/// Record size and records of arrays, as the model has them.
const RECORD: u64 = 3;
const RECORDS: u64 = 40;

/// An operation in flight: what it finds, where it is a fetch.
struct Flying {
    place: Place,
    extent: RecordExtent,
    /// Bytes of the buffer, and how many of them were found.
    wanted: Option<(Vec<u8>, u64)>,
}

/// A store beside a model, whose epochs the test counts.
struct Oracle {
    store: DaosStore,
    c: ContainerId,
    model: Model,
    random: Random,
    clock: u64,
    /// Epochs of the store and of the model.
    snapshots: Vec<(Epoch, u64)>,
    flying: BTreeMap<u64, Flying>,
}

impl Oracle {
    fn step(&mut self) {
        let place = [3, 4, 4].map(|most| self.random.below(most));
        let place = (place[0], place[1], place[2]);
        match self.random.below(100) {
            0..35 => self.update(place),
            35..40 => self.punch(place),
            40 => self.keys(place.0),
            41 if self.random.below(4) == 0 => self.snapshots(),
            _ => self.fetch(place),
        }
    }

    /// Waits for some operations in flight, and compares what they found.
    fn some(&mut self) {
        let mut ended = Vec::new();
        self.store.poll(&mut ended, 1);
        for end in ended {
            let Flying {
                place,
                extent,
                wanted,
            } = self.flying.remove(&end.ticket).unwrap();
            let moved = end.result.unwrap();
            let Some((bytes, found)) = wanted else {
                continue;
            };
            let mut data = vec![0xEE; bytes.len()];
            let (akey, extents) = (akey(place.2), [extent]);
            let mut iods = [iod(place, &akey, &extents, bytes.len())];
            let received = self.store.receive(end.ticket, &mut iods, &mut data);
            assert_eq!((received, moved, iods[0].found), (Ok(found), found, found));
            assert_eq!(data, bytes, "{place:?}, {extent:?}");
            let again = self.store.receive(end.ticket, &mut iods, &mut data);
            assert_eq!(again.unwrap_err().code, ObjectCode::NoHdl);
        }
    }

    /// Operations on one place at a time have no order, and there are 16 at the most.
    fn make_way(&mut self, place: Place) {
        while self.flying.len() >= 16 || self.flying.values().any(|one| one.place == place) {
            self.some();
        }
    }

    fn drain(&mut self) {
        while !self.flying.is_empty() {
            self.some();
        }
    }

    fn change(&mut self, place: Place, what: What) {
        self.clock += 1;
        let epoch = self.clock;
        self.model
            .akeys
            .entry(place)
            .or_default()
            .push(Change { epoch, what });
    }

    fn update(&mut self, place: Place) {
        self.make_way(place);
        let extent = RecordExtent {
            index: self.random.below(RECORDS - 10),
            count: self.random.below(10) + 1,
        };
        let len = if is_array(place) {
            extent.count * RECORD
        } else {
            self.random.below(200) + 1
        };
        let data: Vec<u8> = (0..len).map(|_| self.random.below(256) as u8).collect();
        let (dkey, akey, extents) = (dkey(place.1), akey(place.2), [extent]);
        let iods = [iod(place, &akey, &extents, data.len())];
        let at = KeyAt {
            container: self.c,
            object: object(place.0),
            dkey: &dkey,
        };
        let (now, none) = (Epoch::LATEST, Conditions::NONE);
        let ticket = self.store.update(at, &iods, now, none, &data).unwrap();
        match ticket {
            Ticket::Done(bytes) => assert_eq!(bytes, len),
            Ticket::Waits(ticket) => {
                let wanted = None;
                let flying = Flying {
                    place,
                    extent,
                    wanted,
                };
                assert!(self.flying.insert(ticket, flying).is_none());
            }
        }
        let what = if is_array(place) {
            What::Extent(extent.index, data)
        } else {
            What::Single(data)
        };
        self.change(place, what);
    }

    fn fetch(&mut self, place: Place) {
        self.make_way(place);
        let some = self.random.below(2 * self.snapshots.len() as u64 + 2) as usize;
        let latest = (Epoch::LATEST, self.clock);
        let (epoch, read) = self.snapshots.get(some).copied().unwrap_or(latest);
        let extent = RecordExtent {
            index: self.random.below(RECORDS - 10),
            count: self.random.below(20) + 1,
        };
        let (bytes, found) = self.expected(place, extent, read);
        self.model.compared += u64::from(found > 0);
        let mut data = vec![0xEE; bytes.len()];
        let (dkey, akey, extents) = (dkey(place.1), akey(place.2), [extent]);
        let mut iods = [iod(place, &akey, &extents, data.len())];
        let at = KeyAt {
            container: self.c,
            object: object(place.0),
            dkey: &dkey,
        };
        let none = Conditions::NONE;
        let ticket = self
            .store
            .fetch(at, &mut iods, epoch, none, &mut data)
            .unwrap();
        match ticket {
            Ticket::Done(moved) => {
                assert_eq!((moved, iods[0].found), (found, found), "{place:?}");
                assert_eq!(data, bytes, "{place:?}, {extent:?}");
            }
            Ticket::Waits(ticket) => {
                let wanted = Some((bytes, found));
                let flying = Flying {
                    place,
                    extent,
                    wanted,
                };
                assert!(self.flying.insert(ticket, flying).is_none());
            }
        }
    }

    /// Buffer behind a fetch by the model, and the bytes that it finds.
    fn expected(&self, place: Place, extent: RecordExtent, read: u64) -> (Vec<u8>, u64) {
        if !is_array(place) {
            let mut bytes = vec![0xEE; 256];
            let found = self.model.single(place, read).unwrap_or_default();
            bytes[..found.len()].copy_from_slice(found);
            return (bytes, found.len() as u64);
        }
        let (mut bytes, mut found) = (Vec::new(), 0);
        for record in extent.index..extent.index + extent.count {
            let known = self.model.akeys.contains_key(&place);
            let seen = known
                .then(|| self.model.record(place, record, read))
                .flatten();
            found += seen.map_or(0, |_| RECORD);
            bytes.extend_from_slice(seen.unwrap_or(&[0xEE; RECORD as usize]));
        }
        (bytes, found)
    }

    fn punch(&mut self, place: Place) {
        self.drain();
        let (dkey, akey) = (dkey(place.1), akey(place.2));
        let start = self.random.below(RECORDS - 10);
        let extent = RecordExtent {
            index: start,
            count: 10,
        };
        let kind = self.random.below(6);
        let scope = match kind {
            0 => PunchScope::Object,
            1 => PunchScope::Dkey(&dkey),
            2 | 3 if is_array(place) => PunchScope::Extent(&dkey, &akey, extent),
            _ => PunchScope::Akey(&dkey, &akey),
        };
        let (now, none) = (Epoch::LATEST, Conditions::NONE);
        let punched = self.store.punch(self.c, object(place.0), scope, now, none);
        assert_eq!(punched, Ok(Ticket::Done(0)));
        match scope {
            PunchScope::Object => {
                self.clock += 1;
                let punches = self.model.object_punches.entry((place.0, 0));
                punches.or_default().push(self.clock);
            }
            PunchScope::Dkey(_) => {
                self.clock += 1;
                let punches = self.model.dkey_punches.entry((place.0, place.1));
                punches.or_default().push(self.clock);
            }
            PunchScope::Akey(..) => self.change(place, What::Hole(0, u64::MAX)),
            PunchScope::Extent(..) => self.change(place, What::Hole(start, start + 10)),
        }
    }

    fn keys(&mut self, number: u64) {
        self.drain();
        let some = self.random.below(self.snapshots.len() as u64 + 1) as usize;
        let latest = (Epoch::LATEST, self.clock);
        let (epoch, read) = self.snapshots.get(some).copied().unwrap_or(latest);
        let id = object(number);
        let exists = |d, a| self.model.exists((number, d, a), read);
        let dkeys: Vec<u64> = (0..4).filter(|d| (0..4).any(|a| exists(*d, a))).collect();
        let akeys: Vec<Vec<u8>> = (0..4).filter(|a| exists(0, *a)).map(akey).collect();
        let sorted: BTreeSet<Vec<u8>> = dkeys.iter().map(|d| dkey(*d)).collect();
        let listed = keys(&mut self.store, self.c, ListLevel::Dkeys(id), epoch);
        assert_eq!(listed, sorted.into_iter().collect::<Vec<_>>());
        let first = dkey(0);
        let level = ListLevel::Akeys(id, &first);
        assert_eq!(keys(&mut self.store, self.c, level, epoch), akeys);
        let (what, mut answer) = (KeyQuery::MAX.with(KeyQuery::DKEY), QueryAnswer::default());
        let found = self.store.query(self.c, id, what, epoch, &mut answer);
        match (number % 3, dkeys.last()) {
            (1, Some(greatest)) => assert_eq!((found, answer.dkey), (Ok(()), dkey(*greatest))),
            (1, None) => assert_eq!(found.unwrap_err().code, ObjectCode::NonExist),
            _ => assert_eq!(found.unwrap_err().code, ObjectCode::Inval),
        }
    }

    fn snapshots(&mut self) {
        self.drain();
        self.clock += 1;
        if self.snapshots.len() < 3 {
            let epoch = self.store.snapshot(self.c, Epoch::LATEST).unwrap();
            self.snapshots.push((epoch, self.clock));
            self.model.snapshots.push(self.clock);
            return;
        }
        let place = self.random.below(3) as usize;
        let (epoch, read) = self.snapshots.remove(place);
        self.model.snapshots.retain(|kept| *kept != read);
        self.store.drop_snapshot(self.c, epoch).unwrap();
        let range = EpochRange {
            after: Epoch(0),
            upto: Epoch::LATEST,
        };
        let _ = self.store.aggregate(self.c, range).unwrap();
        self.model.pass(true, 0, self.clock);
    }
}

fn iod<'a>(place: Place, akey: &'a [u8], extents: &'a [RecordExtent], len: usize) -> Iod<'a> {
    if is_array(place) {
        Iod::array(akey, RECORD, extents)
    } else {
        Iod::single(akey, len as u64)
    }
}

#[test]
fn random_operations_one_at_a_time_and_sixteen_in_flight_give_what_the_model_gives() {
    let is_long = std::env::var_os("WEIR_LONG").is_some();
    let operations = if is_long { 500_000 } else { 50_000 };
    for in_flight in [1, 16] {
        let (store, c) = opened(in_flight);
        let mut oracle = Oracle {
            store,
            c,
            model: Model::default(),
            random: Random(in_flight.into()),
            clock: 0,
            snapshots: Vec::new(),
            flying: BTreeMap::new(),
        };
        let mut most = 0;
        for _ in 0..operations {
            oracle.step();
            most = most.max(oracle.flying.len());
        }
        oracle.drain();
        assert_eq!(most, if in_flight == 1 { 0 } else { 16 });
        assert!(oracle.model.compared > operations / 10);
        Box::new(oracle.store).close().unwrap();
    }
}
