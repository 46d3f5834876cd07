//! The engine `daos` on a stub of libdaos, which ends the process where it was used in a wrong way or something of
//! it was left.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;

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
    store.close().unwrap();
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
    store.close().unwrap();
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
    store.close().unwrap();
}

/// Value of an operation's number, of any length.
fn value(number: u64) -> Vec<u8> {
    let len = 1 + usize::try_from(number * 37 % 60).unwrap();
    number.to_le_bytes().repeat(8)[..len].to_vec()
}

#[test]
fn sixteen_operations_in_flight_end_in_any_order_and_each_with_its_own_bytes() {
    let (mut store, c) = opened(16);
    let (mut model, mut flying) = (BTreeMap::new(), BTreeMap::new());
    let (mut random, mut most, mut ended) = (1_u64, 0, Vec::new());
    for number in 0..20_000 {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let dkey = (random >> 33) % 40;
        let is_update = (random >> 50) % 2 == 0;
        // Operations on one key at a time have no order.
        while flying.len() == 16 || flying.values().any(|(at, _)| *at == dkey) {
            assert!(store.poll(&mut ended, 1) > 0);
            for end in ended.drain(..) {
                let (dkey, wanted): (u64, Option<Vec<u8>>) = flying.remove(&end.ticket).unwrap();
                if let Some(wanted) = wanted {
                    let (mut data, mut iods) = ([0xEE; 64], [Iod::single(b"a", 64)]);
                    let found = store.receive(end.ticket, &mut iods, &mut data);
                    assert_eq!(found, Ok(wanted.len() as u64), "dkey {dkey}");
                    assert_eq!(end.result, found);
                    assert_eq!(data[..wanted.len()], wanted);
                    assert!(data[wanted.len()..].iter().all(|byte| *byte == 0xEE));
                    let again = store.receive(end.ticket, &mut iods, &mut data);
                    assert_eq!(again.unwrap_err().code, ObjectCode::NoHdl);
                } else {
                    assert!(end.result.is_ok());
                }
            }
        }
        let (ticket, wanted) = if is_update {
            model.insert(dkey, value(number));
            (put(&mut store, c, dkey, b"a", &value(number)), None)
        } else {
            let (dkey, none) = (dkey.to_le_bytes(), Conditions::NONE);
            let (mut data, mut iods) = ([0; 64], [Iod::single(b"a", 64)]);
            let at = key(c, &dkey);
            let begun = store
                .fetch(at, &mut iods, Epoch::LATEST, none, &mut data)
                .unwrap();
            let wanted = model.get(&u64::from_le_bytes(dkey)).cloned();
            (begun, Some(wanted.unwrap_or_default()))
        };
        let Ticket::Waits(ticket) = ticket else {
            panic!("{ticket:?}")
        };
        flying.insert(ticket, (dkey, wanted));
        most = most.max(flying.len());
    }
    assert_eq!(most, 16);
    let dkey = 99_u64.to_le_bytes();
    while let Ok(ticket) = store.update(
        key(c, &dkey),
        &[Iod::single(b"a", 1)],
        Epoch::LATEST,
        Conditions::NONE,
        b"x",
    ) {
        assert!(matches!(ticket, Ticket::Waits(_)));
    }
    // Those in flight end with the store.
    store.close().unwrap();
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
    store.close().unwrap();
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
