//! Pools on files: the model's own examples, bad input, corruption.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::precedence,
    clippy::decimal_bitwise_operands,
    clippy::manual_is_multiple_of,
    clippy::maybe_infinite_iter,
    clippy::type_complexity,
    clippy::many_single_char_names,
    clippy::needless_pass_by_value,
    clippy::wildcard_imports,
    clippy::print_stderr,
    clippy::too_many_lines,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

use std::path::PathBuf;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd};
use weir_object::disk::DiskStore;
use weir_object::mem::{CHUNK, MemStore};
use weir_object::*;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir_object_{name}.{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn spec(&self, mode: PoolMode) -> PoolSpec {
        PoolSpec {
            path: Some(self.0.join("vos0")),
            uuid: Some([9; 16]),
            mode,
            durability: Durability::Process,
            sums: ValueSums::Crc32c,
            ..PoolSpec::anonymous(16 << 20)
        }
    }
}

impl Dir {
    fn disk(&self, mode: PoolMode) -> PoolSpec {
        self.over(DiskLibrary::Redb, mode)
    }

    fn over(&self, library: DiskLibrary, mode: PoolMode) -> PoolSpec {
        PoolSpec {
            library,
            bytes: 256 << 20,
            durability: Durability::Power,
            // Where files of tests lie in memory.
            assume_persistent: true,
            ..self.spec(mode)
        }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Libraries that this build has.
fn libraries() -> impl Iterator<Item = DiskLibrary> {
    let all = [DiskLibrary::Redb, DiskLibrary::Fjall, DiskLibrary::Lmdb];
    all.into_iter().filter(|library| library.lacks().is_none())
}

const OBJECT: ObjectId = ObjectId { hi: 0, lo: 1 };

fn key(container: ContainerId) -> KeyAt<'static> {
    KeyAt {
        container,
        object: OBJECT,
        dkey: b"d",
    }
}

fn put(store: &mut impl ObjectStore, c: ContainerId, epoch: u64, value: &[u8]) -> Result<Ticket> {
    store.update(
        key(c),
        &[Iod::single(b"a", value.len() as u64)],
        Epoch(epoch),
        Conditions::NONE,
        value,
    )
}

fn get(store: &mut impl ObjectStore, c: ContainerId, epoch: u64) -> Result<Vec<u8>> {
    let mut data = vec![0; 64];
    let mut iods = [Iod::single(b"a", 64)];
    let Ticket::Done(len) =
        store.fetch(key(c), &mut iods, Epoch(epoch), Conditions::NONE, &mut data)?
    else {
        panic!("inline")
    };
    data.truncate(usize::try_from(len).unwrap());
    Ok(data)
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> ObjectCode {
    result.unwrap_err().code
}

#[test]
fn epochs_punches_aggregation_and_snapshots_of_a_single_value() {
    let dir = Dir::new("epochs");
    for snapshot in [false, true] {
        let mut store = MemStore::open(&dir.spec(PoolMode::Create)).unwrap();
        let c = store.container([1; 16], ContainerMode::Create).unwrap();
        let _ = put(&mut store, c, 40, b"c").unwrap();
        let _ = put(&mut store, c, 10, b"a").unwrap();
        let _ = store
            .punch(
                c,
                OBJECT,
                PunchScope::Akey(b"d", b"a"),
                Epoch(30),
                Conditions::NONE,
            )
            .unwrap();
        let _ = put(&mut store, c, 20, b"b").unwrap();
        for (epoch, value) in [(9, ""), (15, "a"), (25, "b"), (35, ""), (40, "c")] {
            assert_eq!(
                get(&mut store, c, epoch).unwrap(),
                value.as_bytes(),
                "at {epoch}"
            );
        }
        let mut iods = [Iod::single(b"a", 64)];
        let absent = store.fetch(
            key(c),
            &mut iods,
            Epoch(9),
            Conditions::AKEY_FETCH,
            &mut [0; 64],
        );
        assert_eq!(code(absent), ObjectCode::NonExist);
        if snapshot {
            store.snapshot(c, Epoch(25)).unwrap();
        }
        let freed = store
            .aggregate(
                c,
                EpochRange {
                    after: Epoch(0),
                    upto: Epoch(40),
                },
            )
            .unwrap();
        let values = |store: &mut MemStore| {
            let mut count = 0;
            let level = ListLevel::Versions(OBJECT, b"d", b"a");
            let visit = &mut |entry: ListEntry<'_>| {
                count += u32::from(matches!(entry, ListEntry::Version { punch: false, .. }));
                true
            };
            store
                .list(c, level, Epoch::LATEST, &mut ListAnchor::default(), visit)
                .unwrap();
            count
        };
        let left = if snapshot { 2 } else { 1 };
        assert_eq!((values(&mut store), freed.visited), (left, 4));
        // The same after reading the log again, and after writing it anew.
        for collected in [false, true] {
            if collected {
                assert!(store.collect().unwrap() > 0);
            }
            Box::new(store).close().unwrap();
            store = MemStore::open(&dir.spec(PoolMode::Open)).unwrap();
            assert_eq!(values(&mut store), left);
            assert_eq!(get(&mut store, c, 40).unwrap(), b"c");
            assert_eq!(
                get(&mut store, c, 25).unwrap(),
                if snapshot { &b"b"[..] } else { b"" }
            );
        }
        drop(store);
        std::fs::remove_file(dir.0.join("vos0")).unwrap();
    }
}

#[test]
fn extents_are_visible_by_epoch_whatever_the_order_of_their_arrival() {
    let dir = Dir::new("extents");
    for reverse in [false, true] {
        extents(
            MemStore::open(&PoolSpec::anonymous(16 << 20)).unwrap(),
            reverse,
        );
        for library in libraries() {
            let spec = dir.over(library, PoolMode::Create);
            extents(DiskStore::open(&spec).unwrap(), reverse);
            remove_pool(&dir.0.join("vos0")).unwrap();
        }
    }
}

fn extents(mut store: impl ObjectStore, reverse: bool) {
    let writes = [
        (0, 100, 1_u8),
        (300, 100, 2),
        (400, 100, 3),
        (500, 100, 8),
        (600, 100, 9),
    ];
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    let hole = PunchScope::Extent(
        b"d",
        b"a",
        RecordExtent {
            index: 30,
            count: 30,
        },
    );
    let mut steps: Vec<_> = writes.to_vec();
    if reverse {
        let _ = store
            .punch(c, OBJECT, hole, Epoch(10), Conditions::NONE)
            .unwrap();
        steps.reverse();
    }
    for (index, count, epoch) in steps {
        let extents = [RecordExtent { index, count }];
        let iods = [Iod::array(b"a", 1, &extents)];
        let _ = store
            .update(
                key(c),
                &iods,
                Epoch(u64::from(epoch)),
                Conditions::NONE,
                &[epoch; 100],
            )
            .unwrap();
    }
    if !reverse {
        let _ = store
            .punch(c, OBJECT, hole, Epoch(10), Conditions::NONE)
            .unwrap();
    }
    let mut read = |epoch: u64| {
        let mut data = [0xEE; 700];
        let extents = [RecordExtent {
            index: 0,
            count: 700,
        }];
        let mut iods = [Iod::array(b"a", 1, &extents)];
        let _ = store
            .fetch(key(c), &mut iods, Epoch(epoch), Conditions::NONE, &mut data)
            .unwrap();
        (data, iods[0].found)
    };
    let (at_9, found) = read(9);
    assert_eq!(
        (&at_9[..100], &at_9[100..300], found),
        (&[1; 100][..], &[0xEE; 200][..], 500)
    );
    assert_eq!((at_9[399], at_9[499], at_9[599], at_9[699]), (2, 3, 8, 9));
    let (at_10, found) = read(10);
    assert_eq!(
        (&at_10[..30], &at_10[30..60], &at_10[60..100]),
        (&[1; 30][..], &[0xEE; 30][..], &[1; 40][..])
    );
    assert_eq!(found, 470);
}

#[test]
fn a_pool_is_free_once_it_is_closed_whoever_has_its_file_open() {
    // As a process has that another thread is starting.
    fn held(path: &std::path::Path) -> std::os::fd::OwnedFd {
        let own = rustix::process::getpid();
        let process = rustix::process::pidfd_open(own, PidfdFlags::empty()).unwrap();
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        let is_pool =
            |entry: &std::fs::DirEntry| std::fs::read_link(entry.path()).is_ok_and(|to| to == path);
        let entry = open.map(|entry| entry.unwrap()).find(is_pool).unwrap();
        let number = entry.file_name().to_str().unwrap().parse().unwrap();
        pidfd_getfd(process, number, PidfdGetfdFlags::empty()).unwrap()
    }
    fn closed_and_opened<S: ObjectStore>(open: fn(&PoolSpec) -> Result<S>, spec: PoolSpec) {
        let store = open(&spec).unwrap();
        let held = held(spec.path.as_ref().unwrap());
        drop(store);
        let again = PoolSpec {
            mode: PoolMode::Open,
            ..spec
        };
        let store = open(&again).unwrap();
        assert_eq!(open(&again).err().unwrap().code, ObjectCode::Busy);
        drop((store, held));
    }
    let dir = Dir::new("held");
    closed_and_opened(MemStore::open, dir.spec(PoolMode::Create));
    for library in libraries() {
        let dir = Dir::new("held_disk");
        closed_and_opened(DiskStore::open, dir.over(library, PoolMode::Create));
    }
}

#[test]
fn a_destroyed_container_is_gone_for_good_and_its_number_too() {
    let dir = Dir::new("destroyed");
    destroyed(&dir.spec(PoolMode::Create), MemStore::open);
    std::fs::remove_file(dir.0.join("vos0")).unwrap();
    for library in libraries() {
        destroyed(&dir.over(library, PoolMode::Create), DiskStore::open);
        remove_pool(&dir.0.join("vos0")).unwrap();
    }
}

fn destroyed<S: ObjectStore>(spec: &PoolSpec, open: fn(&PoolSpec) -> Result<S>) {
    let mut store = open(spec).unwrap();
    let kept = store.container([1; 16], ContainerMode::Create).unwrap();
    let gone = store.container([2; 16], ContainerMode::Create).unwrap();
    for (c, epoch) in [(kept, 5), (gone, 7)] {
        let _ = put(&mut store, c, epoch, b"bytes").unwrap();
    }
    store.snapshot(gone, Epoch(9)).unwrap();
    store.drop_container(gone).unwrap();
    let is_gone = |store: &mut S| {
        assert_eq!((store.stats().containers, store.stats().versions), (1, 1));
        assert_eq!(code(put(store, gone, 8, b"x")), ObjectCode::NoHdl);
        assert_eq!(code(store.drop_container(gone)), ObjectCode::NoHdl);
        let open = store.container([2; 16], ContainerMode::Open);
        assert_eq!(code(open), ObjectCode::NonExist);
        assert_eq!(get(store, kept, 9).unwrap(), b"bytes");
    };
    is_gone(&mut store);
    // The same after reading the pool again, and after writing its log anew.
    for collects in [false, true, false] {
        if collects {
            store.collect().unwrap();
        }
        Box::new(store).close().unwrap();
        let spec = PoolSpec {
            mode: PoolMode::Open,
            ..spec.clone()
        };
        store = open(&spec).unwrap();
        is_gone(&mut store);
    }
    let again = store.container([2; 16], ContainerMode::Create).unwrap();
    assert!(again != gone && again != kept, "{again:?}");
    assert_eq!(get(&mut store, again, 9).unwrap(), b"");
    store.drop_container(again).unwrap();
    Box::new(store).close().unwrap();
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    bad_input(MemStore::open(&PoolSpec::anonymous(16 << 20)).unwrap());
    for library in libraries() {
        let dir = Dir::new("bad_input");
        bad_input(DiskStore::open(&dir.over(library, PoolMode::Create)).unwrap());
    }
}

fn bad_input(mut store: impl ObjectStore) {
    assert_eq!(
        code(put(&mut store, ContainerId(0), 1, b"x")),
        ObjectCode::NoHdl
    );
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    assert_eq!(
        code(store.container([1; 16], ContainerMode::Create)),
        ObjectCode::Exist
    );
    assert_eq!(
        code(store.container([2; 16], ContainerMode::Open)),
        ObjectCode::NonExist
    );
    let versions = store.stats().versions;
    assert_eq!(code(put(&mut store, c, 0, b"x")), ObjectCode::Inval);
    assert_eq!(code(put(&mut store, c, u64::MAX, b"x")), ObjectCode::Inval);
    assert_eq!(code(put(&mut store, c, 1, b"")), ObjectCode::Inval);
    let long = vec![1; MAX_KEY + 1];
    let integer = ObjectId { hi: 2 << 56, lo: 1 };
    let lexical = ObjectId { hi: 5 << 56, lo: 1 };
    for (object, dkey) in [
        (OBJECT, &long[..]),
        (OBJECT, b""),
        (integer, b"1234567"),
        (lexical, &long[..81]),
    ] {
        let key = KeyAt {
            container: c,
            object,
            dkey,
        };
        let done = store.update(
            key,
            &[Iod::single(b"a", 1)],
            Epoch(1),
            Conditions::NONE,
            b"x",
        );
        assert_eq!(code(done), ObjectCode::Inval);
        let done = store.punch(
            c,
            object,
            PunchScope::Akey(dkey, b"a"),
            Epoch(1),
            Conditions::NONE,
        );
        assert_eq!(code(done), ObjectCode::Inval);
    }
    let extent = |index, count| [RecordExtent { index, count }];
    for extents in [
        extent(0, 0),
        extent(MAX_RECORDS, 1),
        extent(u64::MAX, 2),
        extent(1, u64::MAX),
    ] {
        for size in [1, 1 << 31, u64::MAX] {
            let mut iods = [Iod::array(b"a", size, &extents)];
            assert_eq!(
                code(store.update(key(c), &iods, Epoch(1), Conditions::NONE, b"x")),
                ObjectCode::Inval
            );
            assert_eq!(
                code(store.fetch(key(c), &mut iods, Epoch(1), Conditions::NONE, &mut [0])),
                ObjectCode::Inval
            );
        }
    }
    let one = Iod::single(b"a", 1);
    let many = vec![one; MAX_IODS + 1];
    for iods in [
        &[][..],
        &[one, one],
        &many,
        &[Iod::single(b"a", MAX_VALUE + 1)],
        &[Iod::single(b"a", 2)],
    ] {
        assert_eq!(
            code(store.update(key(c), iods, Epoch(1), Conditions::NONE, b"x")),
            ObjectCode::Inval
        );
    }
    let two = [
        RecordExtent { index: 5, count: 5 },
        RecordExtent { index: 0, count: 6 },
    ];
    let iods = [Iod::array(b"a", 1, &two)];
    assert_eq!(
        code(store.update(key(c), &iods, Epoch(1), Conditions::NONE, &[0; 11])),
        ObjectCode::Inval
    );
    assert_eq!(store.stats().versions, versions);
    let _ = put(&mut store, c, 5, b"x").unwrap();
    assert_eq!(code(put(&mut store, c, 5, b"y")), ObjectCode::Exist);
    let punch = store.punch(
        c,
        OBJECT,
        PunchScope::Akey(b"d", b"a"),
        Epoch(5),
        Conditions::NONE,
    );
    assert_eq!(code(punch), ObjectCode::Inval);
    let missing = store.punch(
        c,
        OBJECT,
        PunchScope::Dkey(b"e"),
        Epoch(6),
        Conditions::PUNCH,
    );
    assert_eq!(code(missing), ObjectCode::NonExist);
    assert_eq!(
        code(store.aggregate(
            c,
            EpochRange {
                after: Epoch(3),
                upto: Epoch(3)
            }
        )),
        ObjectCode::Inval
    );
    assert_eq!(get(&mut store, c, 5).unwrap(), b"x");
}

#[test]
fn a_full_pool_says_so_and_goes_on_after_space_was_freed() {
    let mut store = MemStore::open(&PoolSpec::anonymous(24 << 20)).unwrap();
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    let big = vec![7; 3 << 20];
    let (mut epoch, mut done) = (0, Ok(Ticket::Done(0)));
    while done.is_ok() {
        epoch += 1;
        done = put(&mut store, c, epoch, &big);
    }
    assert_eq!(code(done), ObjectCode::NoSpace);
    assert!(epoch > 3);
    store
        .aggregate(
            c,
            EpochRange {
                after: Epoch(0),
                upto: Epoch(epoch),
            },
        )
        .unwrap();
    assert!(
        put(&mut store, c, epoch, &big).is_ok(),
        "space of dropped versions is collected by itself"
    );
    let iod = Iod::single(b"z", 100);
    let reserved = store.reserve(key(c), &iod).unwrap();
    store.reserved(&reserved).fill(3);
    assert_eq!(
        store.publish(key(c), &iod, Epoch(9), Conditions::AKEY_INSERT, reserved),
        Ok(Ticket::Done(100))
    );
    let used = store.stats().value_bytes;
    let reserved = store.reserve(key(c), &iod).unwrap();
    assert_eq!(
        code(store.publish(key(c), &iod, Epoch(10), Conditions::AKEY_INSERT, reserved)),
        ObjectCode::Exist
    );
    assert_eq!(
        store.stats().value_bytes,
        used,
        "a failed publication gives its space back"
    );
}

#[test]
fn files_that_are_no_pool_of_this_kind_are_refused_and_left_alone() {
    let dir = Dir::new("files");
    let (create, open) = (dir.spec(PoolMode::Create), dir.spec(PoolMode::Open));
    let path = dir.0.join("vos0");
    assert_eq!(code(MemStore::open(&open)), ObjectCode::NonExist);
    let nowhere = PoolSpec {
        path: Some(dir.0.join("no/vos0")),
        ..create.clone()
    };
    assert_eq!(code(MemStore::open(&nowhere)), ObjectCode::NonExist);
    for bytes in [1 << 10, 4 << 20] {
        assert_eq!(
            code(MemStore::open(&PoolSpec {
                bytes,
                ..create.clone()
            })),
            ObjectCode::NoSpace
        );
        assert!(!path.exists(), "what could not be made is not left behind");
    }
    let plan = PoolSpec {
        prefault: Prefault::Plan(1 << 30),
        ..create.clone()
    };
    assert_eq!(code(MemStore::open(&plan)), ObjectCode::NoSpace);
    let power = PoolSpec {
        durability: Durability::Power,
        ..create.clone()
    };
    assert_eq!(code(MemStore::open(&power)), ObjectCode::NoSys);
    let mut store = MemStore::open(&create).unwrap();
    assert_eq!(code(MemStore::open(&create)), ObjectCode::Exist);
    assert_eq!(code(MemStore::open(&open)), ObjectCode::Busy);
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    let _ = put(&mut store, c, 1, b"kept").unwrap();
    drop(store);
    let stranger = PoolSpec {
        uuid: Some([8; 16]),
        ..open.clone()
    };
    assert_eq!(code(MemStore::open(&stranger)), ObjectCode::Mismatch);
    let whole = std::fs::read(&path).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let error = MemStore::open(&open).unwrap_err();
        assert!(
            std::fs::read(&path).unwrap() == bytes,
            "{error}: the file is untouched"
        );
        error
    };
    let places = [0, 4_096];
    let cases: [(&dyn Fn(&mut Vec<u8>), ObjectCode, &str); 5] = [
        (&|bytes| bytes.clear(), ObjectCode::Io, "cut short"),
        (
            &|bytes| bytes.truncate(8 << 20),
            ObjectCode::Io,
            "cut short",
        ),
        (
            &|bytes| places.iter().for_each(|&at| bytes[at] ^= 1),
            ObjectCode::Inval,
            "no pool",
        ),
        (
            &|bytes| places.iter().for_each(|&at| bytes[at + 8] += 1),
            ObjectCode::NoSys,
            "newer",
        ),
        (
            &|bytes| places.iter().for_each(|&at| bytes[at + 40] ^= 1),
            ObjectCode::Io,
            "superblock is damaged",
        ),
    ];
    for (change, code, words) in cases {
        let error = changed(change);
        assert_eq!(error.code, code);
        assert!(error.message.contains(words), "{error}");
    }
    std::fs::write(&path, &whole).unwrap();
    let mut store = MemStore::open(&open).unwrap();
    assert_eq!(get(&mut store, c, 1).unwrap(), b"kept");
}

#[test]
fn a_clean_end_leaves_the_index_for_the_next_open_alone() {
    let dir = Dir::new("image");
    let path = dir.0.join("vos0");
    let mut store = MemStore::open(&dir.spec(PoolMode::Create)).unwrap();
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    for epoch in 1..=20 {
        let _ = put(&mut store, c, epoch, &[7; 60]).unwrap();
    }
    let used = store.stats();
    Box::new(store).close().unwrap();
    let left = std::fs::read(&path).unwrap();
    let open = || MemStore::open(&dir.spec(PoolMode::Open)).unwrap();
    let mut store = open();
    let facts = |of: &StoreStats| (of.akeys, of.versions, of.value_bytes, of.free_bytes);
    assert_eq!(
        (store.stats().recovered, facts(&store.stats())),
        (0, facts(&used))
    );
    let _ = put(&mut store, c, 21, b"later").unwrap();
    // As after a kill: the index that was left is of a log that ended before.
    drop(store);
    let mut store = open();
    assert_eq!(store.stats().recovered, 22);
    assert_eq!(get(&mut store, c, 21).unwrap(), b"later");
    drop(store);
    // A line of it that is another one: the log is read.
    let image = left.chunks(64).rposition(|line| line != [0; 64]).unwrap() * 64;
    for at in [8_320, 8_330, image] {
        let mut bytes = left.clone();
        bytes[at] ^= 4;
        std::fs::write(&path, bytes).unwrap();
        let mut store = open();
        assert_eq!(
            (store.stats().recovered, facts(&store.stats())),
            (21, facts(&used))
        );
        assert_eq!(get(&mut store, c, 20).unwrap(), [7; 60]);
    }
}

#[test]
fn damage_is_found_and_named_and_never_returned_as_data() {
    let dir = Dir::new("damage");
    let path = dir.0.join("vos0");
    let mut store = MemStore::open(&dir.spec(PoolMode::Create)).unwrap();
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    for epoch in 1..=20 {
        let _ = put(&mut store, c, epoch, &[u8::try_from(epoch).unwrap(); 60]).unwrap();
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let value = whole
        .windows(60)
        .position(|bytes| bytes == [7; 60])
        .unwrap();
    let open_with = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, bytes).unwrap();
        MemStore::open(&dir.spec(PoolMode::Open)).unwrap()
    };
    let mut store = open_with(value + 30);
    assert_eq!(code(get(&mut store, c, 7)), ObjectCode::Csum);
    assert_eq!(get(&mut store, c, 8).unwrap(), [8; 60]);
    let mut bad = Vec::new();
    assert_eq!(
        store.scrub(&mut |damaged| bad.push(damaged.epoch)).unwrap(),
        20
    );
    assert_eq!(bad, [Epoch(7)]);
    drop(store);
    // The log is the first chunk behind the superblock: the container's record, then the updates.
    let first = usize::try_from(CHUNK).unwrap();
    let record = |number: usize| first + 128 + (number - 1) * 128;
    for number in [1, 10, 19] {
        let mut store = open_with(record(number) + 17);
        assert!(store.stats().log_damaged);
        assert_eq!(store.stats().versions, number as u64 - 1);
        assert_eq!(code(put(&mut store, c, 50, b"x")), ObjectCode::NoPerm);
        let last = get(&mut store, c, 30).unwrap();
        assert_eq!(
            last,
            vec![u8::try_from(number - 1).unwrap(); if number == 1 { 0 } else { 60 }]
        );
    }
}

#[test]
fn disk_refuses_what_it_lacks_and_leaves_foreign_files_alone() {
    let dir = Dir::new("disk_files");
    let (create, open) = (dir.disk(PoolMode::Create), dir.disk(PoolMode::Open));
    let path = dir.0.join("vos0");
    assert_eq!(code(DiskStore::open(&open)), ObjectCode::NonExist);
    for (durability, assume_persistent) in [(Durability::None, true), (Durability::Process, true)] {
        let refused = DiskStore::open(&PoolSpec {
            durability,
            assume_persistent,
            ..create.clone()
        });
        let why = refused.unwrap_err();
        assert_eq!(why.code, ObjectCode::NoSys);
        assert!(why.message.contains("power alone"), "{why}");
    }
    let in_memory = PoolSpec {
        path: Some(PathBuf::from("/dev/shm/weir_object_disk_in_memory")),
        assume_persistent: false,
        ..create.clone()
    };
    if PathBuf::from("/dev/shm").is_dir() {
        let why = DiskStore::open(&in_memory).unwrap_err();
        assert!(why.message.contains("in memory"), "{why}");
        assert!(!in_memory.path.unwrap().exists(), "nothing is left behind");
    }
    let small = PoolSpec {
        bytes: 1 << 10,
        ..create.clone()
    };
    assert_eq!(code(DiskStore::open(&small)), ObjectCode::NoSpace);
    assert!(!path.exists(), "what could not be made is not left behind");
    let mut store = DiskStore::open(&create).unwrap();
    assert_eq!(code(DiskStore::open(&create)), ObjectCode::Exist);
    assert_eq!(code(DiskStore::open(&open)), ObjectCode::Busy);
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    let _ = put(&mut store, c, 1, b"kept").unwrap();
    assert_eq!(
        code(store.reserve(key(c), &Iod::single(b"a", 1))),
        ObjectCode::NoSys
    );
    drop(store);
    let stranger = PoolSpec {
        uuid: Some([8; 16]),
        ..open.clone()
    };
    assert_eq!(code(DiskStore::open(&stranger)), ObjectCode::Mismatch);
    let whole = std::fs::read(&path).unwrap();
    let cases: [(&dyn Fn(&mut Vec<u8>), ObjectCode, &str); 4] = [
        (&|bytes| bytes.clear(), ObjectCode::Io, "cut short"),
        (&|bytes| bytes[0] ^= 1, ObjectCode::Inval, "no pool"),
        (&|bytes| bytes[8] += 1, ObjectCode::NoSys, "newer"),
        (&|bytes| bytes[40] ^= 1, ObjectCode::Io, "damaged"),
    ];
    for (change, code, words) in cases {
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let error = DiskStore::open(&open).unwrap_err();
        assert!(std::fs::read(&path).unwrap() == bytes, "{error}");
        assert_eq!(error.code, code);
        assert!(error.message.contains(words), "{error}");
    }
    std::fs::write(&path, &whole).unwrap();
    let mut store = DiskStore::open(&open).unwrap();
    assert_eq!(get(&mut store, c, 1).unwrap(), b"kept");
}

#[test]
fn disk_never_returns_damage_as_data() {
    let dir = Dir::new("disk_damage");
    let path = dir.0.join("vos0");
    let mut store = DiskStore::open(&dir.disk(PoolMode::Create)).unwrap();
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    for epoch in 1..=20 {
        let _ = put(&mut store, c, epoch, &[u8::try_from(epoch).unwrap(); 60]).unwrap();
    }
    Box::new(store).close().unwrap();
    let whole = std::fs::read(&path).unwrap();
    // Pages of earlier commits have the value too.
    let places = whole.windows(60).enumerate();
    let places = places.filter(|(_, bytes)| *bytes == [7; 60]);
    let mut bytes = whole.clone();
    places.for_each(|(at, _)| bytes[at + 30] ^= 0x10);
    std::fs::write(&path, bytes).unwrap();
    let mut store = DiskStore::open(&dir.disk(PoolMode::Open)).unwrap();
    assert_eq!(code(get(&mut store, c, 7)), ObjectCode::Csum);
    assert_eq!(get(&mut store, c, 8).unwrap(), [8; 60]);
    let mut bad = Vec::new();
    let checked = store.scrub(&mut |damaged| bad.push(damaged.epoch)).unwrap();
    assert_eq!((checked, bad), (20, vec![Epoch(7)]));
    drop(store);
    // Any other part of the file: an error, or the value that was written.
    let mut refused = 0;
    for at in (0..whole.len()).step_by(whole.len() / 150) {
        let mut bytes = whole.clone();
        let end = (at + 300).min(bytes.len());
        bytes[at..end].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(&path, &bytes).unwrap();
        let Ok(mut store) = DiskStore::open(&dir.disk(PoolMode::Open)) else {
            refused += 1;
            continue;
        };
        let Ok(c) = store.container([1; 16], ContainerMode::Open) else {
            continue;
        };
        for epoch in 1..=20 {
            // Where the library lost entries, an older version is the newest that is left.
            if let Ok(value) = get(&mut store, c, epoch) {
                let written = value.first().copied().unwrap_or(0);
                assert!(u64::from(written) <= epoch && value == vec![written; value.len()]);
            }
        }
    }
    assert!(refused > 5, "much of the file is in use");
}

#[test]
fn a_pool_goes_with_its_own_directory_and_no_other() {
    let dir = Dir::new("removed");
    let (file, directory) = (dir.0.join("vos0"), dir.0.join("vos0.d"));
    for library in libraries() {
        drop(DiskStore::open(&dir.over(library, PoolMode::Create)).unwrap());
        remove_pool(&file).unwrap();
        assert!(!file.exists() && !directory.exists(), "{library:?}");
    }
    std::fs::create_dir(&directory).unwrap();
    drop(MemStore::open(&dir.spec(PoolMode::Create)).unwrap());
    remove_pool(&file).unwrap();
    assert!(!file.exists() && directory.is_dir());
    for library in libraries().filter(|library| *library != DiskLibrary::Redb) {
        let refused = DiskStore::open(&dir.over(library, PoolMode::Create));
        assert_eq!(code(refused), ObjectCode::Exist);
        assert!(!file.exists() && directory.is_dir());
    }
}

#[test]
fn a_full_disk_pool_can_be_read_and_goes_on_when_it_is_opened_again() {
    let cases = libraries().flat_map(|library| [(library, false), (library, true)]);
    for (library, group_commit) in cases {
        let dir = Dir::new(&format!("full_{library:?}_{group_commit}"));
        let (bytes, len) = match library {
            DiskLibrary::Fjall => (256 << 20, 1 << 20),
            DiskLibrary::Redb | DiskLibrary::Lmdb => (8 << 20, 100 << 10),
        };
        let mut spec = PoolSpec {
            bytes,
            group_commit,
            ..dir.over(library, PoolMode::Create)
        };
        let mut store = DiskStore::open(&spec).unwrap();
        let c = store.container([1; 16], ContainerMode::Create).unwrap();
        let big = vec![7; 1 << 20];
        let mut ended = Vec::new();
        let mut epoch = 0;
        let why = loop {
            epoch += 1;
            if let Err(why) = put(&mut store, c, epoch, &big[..len]) {
                break why;
            }
            store.poll(&mut ended, 1);
            if let Some(Err(why)) = ended.pop().map(|end| end.result) {
                break why;
            }
        };
        assert_eq!(why.code, ObjectCode::NoSpace, "{why}");
        assert!(epoch > 10);
        let size = |store: &mut DiskStore, epoch| {
            let mut iods = [Iod::single(b"a", 0)];
            let _ = store
                .fetch(key(c), &mut iods, Epoch(epoch), Conditions::NONE, &mut [])
                .unwrap();
            iods[0].size
        };
        assert_eq!(size(&mut store, epoch), len as u64);
        let why = put(&mut store, c, 1_000, b"x").unwrap_err();
        assert_eq!(why.code, ObjectCode::NoPerm);
        assert!(why.message.contains("needs more"), "{why}");
        Box::new(store).close().unwrap();
        spec.mode = PoolMode::Open;
        let mut store = DiskStore::open(&spec).unwrap();
        assert_eq!(size(&mut store, epoch - 1), len as u64);
        let range = EpochRange {
            after: Epoch(0),
            upto: Epoch(epoch),
        };
        assert!(store.aggregate(c, range).unwrap().versions > 5);
        let freed = store.collect().unwrap();
        if library == DiskLibrary::Fjall {
            // It gives space back when its threads have merged its files often enough.
            continue;
        }
        // A file of LMDB does not get shorter.
        assert!(freed > 0 || library == DiskLibrary::Lmdb);
        let again = put(&mut store, c, 1_000, &big[..len]);
        assert!(again.is_ok(), "{library:?}: {again:?}, {freed} freed");
        assert_eq!(store.poll(&mut ended, 1), usize::from(group_commit));
        assert_eq!(size(&mut store, Epoch::LATEST.0), len as u64);
    }
}

#[test]
fn a_pool_of_the_planned_bytes_has_room_for_small_values() {
    for (values, size) in [(300_000_u64, 64_usize), (20_000, 4096)] {
        let bytes = weir_object::mem::footprint(values, size as u64, 64);
        let mut store = MemStore::open(&PoolSpec::anonymous(bytes)).unwrap();
        let container = store.container([1; 16], ContainerMode::Create).unwrap();
        let data = vec![7; size];
        for number in 0..values {
            let dkey = number.to_le_bytes();
            let at = KeyAt {
                dkey: &dkey,
                ..key(container)
            };
            let iods = [Iod::single(b"a", size as u64)];
            let done = store.update(at, &iods, Epoch(number + 1), Conditions::NONE, &data);
            assert_eq!(done, Ok(Ticket::Done(size as u64)), "{number} of {values}");
        }
    }
}
