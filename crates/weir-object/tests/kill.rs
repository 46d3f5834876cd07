//! A process that is killed loses nothing that it acknowledged.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use weir_object::mem::MemStore;
use weir_object::*;

const OBJECT: ObjectId = ObjectId { hi: 0, lo: 3 };
const KEYS: u64 = 200;
const CHILD: &str = "WEIR_OBJECT_KILL_CHILD";

fn spec(path: &Path, mode: PoolMode) -> PoolSpec {
    PoolSpec {
        path: Some(path.to_owned()),
        mode,
        durability: Durability::Process,
        sums: ValueSums::Crc32c,
        ..PoolSpec::anonymous(64 << 20)
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

/// The process that is killed: updates, aggregates and collects, and prints each acknowledgement.
#[test]
fn child_that_is_killed() {
    let Ok(given) = std::env::var(CHILD) else {
        return;
    };
    let (path, from) = given.split_once('|').unwrap();
    // One write for each line: a kill between two would leave half a line.
    let mut out = std::io::stderr();
    out.write_all(b"begin\n").unwrap();
    let mut store = MemStore::open(&spec(Path::new(path), PoolMode::Open)).unwrap();
    let c = store.container([1; 16], ContainerMode::Open).unwrap();
    let from: u64 = from.parse().unwrap();
    for epoch in from.. {
        let number = mix(epoch) % KEYS;
        let dkey = number.to_le_bytes();
        let key = KeyAt {
            container: c,
            object: OBJECT,
            dkey: &dkey,
        };
        if mix(epoch ^ 77) % 150 == 0 {
            // From here on older versions may be gone.
            out.write_all(format!("drop {epoch}\n").as_bytes()).unwrap();
            store
                .aggregate(
                    c,
                    EpochRange {
                        after: Epoch(0),
                        upto: Epoch(epoch),
                    },
                )
                .unwrap();
            store.collect().unwrap();
        }
        let bytes = value(number, epoch);
        let iods = [
            Iod::single(b"a", bytes.len() as u64),
            Iod::single(b"b", bytes.len() as u64),
        ];
        let both = [&bytes[..], &bytes[..]].concat();
        let _ = store
            .update(key, &iods, Epoch(epoch), Conditions::NONE, &both)
            .unwrap();
        out.write_all(format!("done {epoch}\n").as_bytes()).unwrap();
    }
}

/// Starts a child, kills it after some lines; the last epoch that it may have used.
fn round(path: &Path, from: u64, lines: u64, acknowledged: &mut BTreeMap<(u64, u64), bool>) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_that_is_killed", "--exact", "--nocapture"])
        .env(CHILD, format!("{}|{from}", path.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut last = from;
    let printed = BufReader::new(child.stderr.take().unwrap()).lines();
    for (number, line) in printed.enumerate() {
        let line = line.unwrap();
        match line.split_once(' ') {
            Some(("done", epoch)) => {
                last = epoch.parse().unwrap();
                acknowledged.insert((mix(last) % KEYS, last), true);
            }
            Some(("drop", upto)) => {
                last = upto.parse().unwrap();
                let all: Vec<_> = acknowledged.keys().copied().collect();
                // Only the newest of each key has to be there still.
                for pair in all.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
                    acknowledged.remove(&pair[0]);
                }
            }
            _ => assert_eq!(line, "begin"),
        }
        if number as u64 == lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    last
}

#[test]
fn acknowledged_updates_survive_kills_and_others_are_whole_or_absent() {
    let path = std::env::temp_dir().join(format!("weir_object_kill.{}", std::process::id()));
    let mut store = MemStore::open(&spec(&path, PoolMode::Create)).unwrap();
    store.container([1; 16], ContainerMode::Create).unwrap();
    drop(store);
    let rounds = if std::env::var_os("WEIR_LONG").is_some() {
        1_000
    } else {
        20
    };
    let (mut acknowledged, mut epoch) = (BTreeMap::new(), 1);
    for number in 0..rounds {
        // Every fourth while the log is read, or soon after.
        let lines = if number % 4 == 3 {
            0
        } else {
            mix(number) % 400
        };
        epoch = round(&path, epoch, lines, &mut acknowledged) + 1;
        let mut store = MemStore::open(&spec(&path, PoolMode::Open)).unwrap();
        assert!(!store.stats().log_damaged);
        assert_eq!(
            store.scrub(&mut |bad| panic!("{bad:?}")).unwrap() % 2,
            0,
            "both attribute keys or none"
        );
        let c = store.container([1; 16], ContainerMode::Open).unwrap();
        // An update that was not acknowledged may be there, and hide an older one from aggregation.
        for at in epoch - 1..=epoch {
            let dkey = (mix(at) % KEYS).to_le_bytes();
            let mut iods = [Iod::single(b"a", 0)];
            let key = KeyAt { container: c, object: OBJECT, dkey: &dkey };
            let _ = store.fetch(key, &mut iods, Epoch(at), Conditions::NONE, &mut []).unwrap();
            if iods[0].size == value(mix(at) % KEYS, at).len() as u64 {
                acknowledged.insert((mix(at) % KEYS, at), true);
            }
        }
        for &(number, at) in acknowledged.keys() {
            let mut data = vec![0; 2_000];
            let mut iods = [Iod::single(b"a", 1_000), Iod::single(b"b", 1_000)];
            let dkey = number.to_le_bytes();
            let key = KeyAt {
                container: c,
                object: OBJECT,
                dkey: &dkey,
            };
            let _ = store
                .fetch(key, &mut iods, Epoch(at), Conditions::NONE, &mut data)
                .unwrap();
            let wanted = value(number, at);
            assert_eq!(iods[1].size, wanted.len() as u64, "key {number} at {at}");
            assert_eq!(&data[1_000..1_000 + wanted.len()], wanted);
        }
        // The update that was not acknowledged may be there: its epoch is not used again.
        epoch += 1;
    }
    assert!(acknowledged.len() > 100);
    std::fs::remove_file(&path).unwrap();
}
