//! A process that is killed loses nothing that it acknowledged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::precedence,
    clippy::decimal_bitwise_operands,
    clippy::manual_is_multiple_of,
    clippy::maybe_infinite_iter,
    clippy::many_single_char_names,
    clippy::needless_pass_by_value,
    clippy::wildcard_imports,
    clippy::print_stderr,
    clippy::too_many_lines,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use weir_object::disk::DiskStore;
use weir_object::mem::MemStore;
use weir_object::*;

const OBJECT: ObjectId = ObjectId { hi: 0, lo: 3 };
const KEYS: u64 = 200;
const CHILD: &str = "WEIR_OBJECT_KILL_CHILD";

/// The way in which an engine opens a pool.
type Open<S> = fn(&PoolSpec) -> Result<S>;

fn spec(path: &Path, mode: PoolMode) -> PoolSpec {
    let engine = path.extension().and_then(|engine| engine.to_str());
    let library = engine.and_then(library);
    let is_disk = library.is_some();
    PoolSpec {
        path: Some(path.to_owned()),
        mode,
        durability: if is_disk {
            Durability::Power
        } else {
            Durability::Process
        },
        // Files of tests may lie in memory.
        assume_persistent: is_disk,
        sums: ValueSums::Crc32c,
        library: library.unwrap_or_default(),
        ..PoolSpec::anonymous(256 << 20)
    }
}

/// The library of an engine on a disk.
fn library(engine: &str) -> Option<DiskLibrary> {
    match engine {
        "disk" => Some(DiskLibrary::Redb),
        "fjall" => Some(DiskLibrary::Fjall),
        "lmdb" => Some(DiskLibrary::Lmdb),
        _ => None,
    }
}

fn mix(number: u64) -> u64 {
    let x = number
        .wrapping_add(0x9E37_79B9_7F4A_7C15)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 29).wrapping_mul(0x94D0_49BB_1331_11EB) >> 7
}

fn value(key: u64, epoch: u64) -> Vec<u8> {
    let len = mix(key ^ epoch << 20) % 900 + 1;
    (0..len)
        .map(|at| mix(at / 8 + epoch * 131 + key) as u8)
        .collect()
}

/// Writes the value of an epoch to both attribute keys.
fn update(store: &mut impl ObjectStore, c: ContainerId, number: u64, epoch: u64) {
    let dkey = number.to_le_bytes();
    let key = KeyAt {
        container: c,
        object: OBJECT,
        dkey: &dkey,
    };
    let bytes = value(number, epoch);
    let iods = [b"a", b"b"].map(|akey| Iod::single(akey, bytes.len() as u64));
    let _ = store
        .update(key, &iods, Epoch(epoch), Conditions::NONE, &bytes.repeat(2))
        .unwrap();
}

/// The process that is killed: updates, aggregates and collects, and prints each acknowledgement.
#[test]
fn child_that_is_killed() {
    let Ok(given) = std::env::var(CHILD) else {
        return;
    };
    let mut given = given.splitn(3, '|');
    let [engine, from, path] = [(); 3].map(|()| given.next().unwrap());
    let from = from.parse().unwrap();
    if library(engine).is_some() {
        work_until_killed(DiskStore::open, Path::new(path), from);
    } else {
        work_until_killed(MemStore::open, Path::new(path), from);
    }
}

fn work_until_killed<S: ObjectStore>(open: Open<S>, path: &Path, from: u64) {
    // One write for each line: a kill between two would leave half a line.
    let mut out = std::io::stderr();
    out.write_all(b"begin\n").unwrap();
    let mut store = open(&spec(path, PoolMode::Open)).unwrap();
    let c = store.container([1; 16], ContainerMode::Open).unwrap();
    for epoch in from.. {
        let number = mix(epoch) % KEYS;
        if mix(epoch ^ 77) % 150 == 0 {
            // From here on older versions may be gone.
            out.write_all(format!("drop {epoch}\n").as_bytes()).unwrap();
            let range = EpochRange {
                after: Epoch(0),
                upto: Epoch(epoch),
            };
            store.aggregate(c, range).unwrap();
            store.collect().unwrap();
            // Another container comes and goes, or not quite.
            let mode = ContainerMode::OpenOrCreate;
            let other = store.container([2; 16], mode).unwrap();
            update(&mut store, other, number, epoch);
            store.drop_container(other).unwrap();
        }
        update(&mut store, c, number, epoch);
        out.write_all(format!("done {epoch}\n").as_bytes()).unwrap();
    }
}

/// Starts a child, kills it after some lines; the last epoch that it may have used.
fn round(given: &str, from: u64, lines: u64, acknowledged: &mut BTreeSet<(u64, u64)>) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_that_is_killed", "--exact", "--nocapture"])
        .env(CHILD, given)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut last, mut unexpected) = (from, Vec::new());
    let printed = BufReader::new(child.stderr.take().unwrap()).lines();
    for (number, line) in printed.enumerate() {
        let line = line.unwrap();
        match line.split_once(' ') {
            Some(("done", epoch)) => {
                last = epoch.parse().unwrap();
                acknowledged.insert((mix(last) % KEYS, last));
            }
            Some(("drop", upto)) => {
                last = upto.parse().unwrap();
                let all: Vec<_> = acknowledged.iter().copied().collect();
                // Only the newest of each key has to be there still.
                for pair in all.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
                    acknowledged.remove(&pair[0]);
                }
            }
            _ if line == "begin" => {}
            _ => unexpected.push(line),
        }
        if number as u64 == lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
    last
}

/// Sizes that a read at an epoch finds, unless both attribute keys have exactly the update's bytes.
fn difference(
    store: &mut impl ObjectStore,
    c: ContainerId,
    number: u64,
    at: u64,
) -> Option<[u64; 2]> {
    let dkey = number.to_le_bytes();
    let key = KeyAt {
        container: c,
        object: OBJECT,
        dkey: &dkey,
    };
    let mut data = [0; 2_000];
    let mut iods = [Iod::single(b"a", 1_000), Iod::single(b"b", 1_000)];
    let _ = store
        .fetch(key, &mut iods, Epoch(at), Conditions::NONE, &mut data)
        .unwrap();
    let wanted = value(number, at);
    let sizes = [iods[0].size, iods[1].size];
    let same = sizes == [wanted.len() as u64; 2]
        && data.starts_with(&wanted)
        && data[1_000..].starts_with(&wanted);
    (!same).then_some(sizes)
}

#[test]
fn an_older_update_of_the_same_length_is_not_taken_for_a_newer_one() {
    let mut store = MemStore::open(&PoolSpec::anonymous(64 << 20)).unwrap();
    let c = store.container([1; 16], ContainerMode::Create).unwrap();
    let older = value(0, 1);
    let newer = (2..).find(|&at| value(0, at).len() == older.len()).unwrap();
    update(&mut store, c, 0, 1);
    assert_eq!(difference(&mut store, c, 0, 1), None);
    let sizes = [older.len() as u64; 2];
    assert_eq!(difference(&mut store, c, 0, newer), Some(sizes));
}

/// A directory in memory, where there is one: a flush costs nothing there.
fn quick_dir() -> std::path::PathBuf {
    let memory = std::path::PathBuf::from("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}

/// Rounds by default, and where time does not matter.
fn rounds(usual: u64, long: u64) -> u64 {
    if std::env::var_os("WEIR_LONG").is_some() {
        long
    } else {
        usual
    }
}

#[test]
fn acknowledged_updates_of_mem_survive_kills_and_others_are_whole_or_absent() {
    kill("mem", MemStore::open, rounds(20, 1_000));
}

#[test]
fn acknowledged_updates_of_disk_survive_kills_and_others_are_whole_or_absent() {
    for (engine, usual) in [("disk", 10), ("fjall", 5), ("lmdb", 5)] {
        if library(engine).unwrap().lacks().is_none() {
            kill(engine, DiskStore::open, rounds(usual, 1_000));
        }
    }
}

fn kill<S: ObjectStore>(engine: &str, open: Open<S>, rounds: u64) {
    let name = format!("weir_object_kill.{}.{engine}", std::process::id());
    let path = quick_dir().join(name);
    let mut store = open(&spec(&path, PoolMode::Create)).unwrap();
    store.container([1; 16], ContainerMode::Create).unwrap();
    drop(store);
    let (mut acknowledged, mut epoch) = (BTreeSet::new(), 1);
    for round_number in 0..rounds {
        // Every fourth while the log is read, or soon after.
        let lines = if round_number % 4 == 3 {
            0
        } else {
            mix(round_number) % 400
        };
        let given = format!("{engine}|{epoch}|{}", path.display());
        epoch = round(&given, epoch, lines, &mut acknowledged) + 1;
        let mut store = open(&spec(&path, PoolMode::Open)).unwrap();
        assert!(!store.stats().log_damaged);
        assert_eq!(
            store.scrub(&mut |bad| panic!("{bad:?}")).unwrap() % 2,
            0,
            "both attribute keys or none"
        );
        let c = store.container([1; 16], ContainerMode::Open).unwrap();
        // An update that was not acknowledged may be there, and hide an older one from aggregation.
        for at in epoch - 1..=epoch {
            let number = mix(at) % KEYS;
            if difference(&mut store, c, number, at).is_none() {
                acknowledged.insert((number, at));
            }
        }
        for &(number, at) in &acknowledged {
            let different = difference(&mut store, c, number, at);
            assert_eq!(
                different, None,
                "round {round_number}: key {number} at {at}"
            );
        }
        // The update that was not acknowledged may be there: its epoch is not used again.
        epoch += 1;
        if round_number % 2 == 1 {
            // The next one is killed after it began with the index that was left.
            Box::new(store).close().unwrap();
        }
    }
    assert!(acknowledged.len() > 100);
    remove_pool(&path).unwrap();
}
