//! `weir obj info`, `check` and `aggregate` on files of pools.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use serde_json::Value;
use weir_object::mem::MemStore;
use weir_object::{
    Conditions, ContainerMode, Durability, Epoch, Iod, KeyAt, ObjectId, ObjectStore as _, PoolMode,
    PoolSpec, StoreUuid, ValueSums,
};

use crate::stage::Stage;

const POOL: StoreUuid = [0x3a; 16];
const POOL_TEXT: &str = "3a3a3a3a-3a3a-3a3a-3a3a-3a3a3a3a3a3a";
const BYTES: usize = 4096;

/// The contents of a value.
fn content(dkey: u64, version: u64) -> Vec<u8> {
    vec![u8::try_from(16 * dkey + version).unwrap(); BYTES]
}

/// A pool with three keys, each written twice; it is open until it is dropped.
fn pool(stage: &Stage, name: &str, sums: ValueSums) -> MemStore {
    let mut store = MemStore::open(&PoolSpec {
        path: Some(stage.path(name).into()),
        uuid: Some(POOL),
        mode: PoolMode::Create,
        durability: Durability::Process,
        sums,
        ..PoolSpec::anonymous(64 << 20)
    })
    .unwrap();
    let container = store.container([7; 16], ContainerMode::Create).unwrap();
    for (epoch, version) in [(10, 1), (20, 2)] {
        for dkey in 1..=3 {
            let name = format!("blade-{dkey}");
            let key = KeyAt {
                container,
                object: ObjectId { hi: 1, lo: 2 },
                dkey: name.as_bytes(),
            };
            let iods = [Iod::single(b"akey--4", BYTES as u64)];
            let value = content(dkey, version);
            let none = Conditions::NONE;
            let _ = store
                .update(key, &iods, Epoch(epoch), none, &value)
                .unwrap();
        }
    }
    store
}

/// Flips a bit of the newest value of the second key.
fn damage(stage: &Stage, name: &str) {
    let all = stage.read_bytes(name);
    let wanted = content(2, 2);
    let found = all.windows(BYTES).position(|window| window == wanted);
    let file = OpenOptions::new().write(true).open(stage.path(name));
    let place = found.unwrap() as u64 + 100;
    let byte = [wanted[0] ^ 1];
    file.unwrap().write_all_at(&byte, place).unwrap();
}

fn json(stage: &Stage, words: &[&str], code: i32) -> Value {
    let said = stage
        .say(&[words, &["--format", "json"]].concat())
        .code(code);
    let all: Value = serde_json::from_str(&said.out).unwrap();
    all["pools"][0].clone()
}

#[test]
fn what_a_pool_holds_is_shown() {
    let stage = Stage::in_memory();
    Box::new(pool(&stage, "obj0", ValueSums::Crc32c))
        .close()
        .unwrap();
    stage.file("other", "no pool");
    let said = stage.say(&["obj", "info", "."]).code(0).calm();
    for line in [
        "./obj0\n",
        &format!("  uuid              {POOL_TEXT}\n"),
        "  durability        process\n",
        "  containers        07070707-0707-0707-0707-070707070707\n",
        "  versions          6\n",
        "  sums              crc32c\n",
    ] {
        assert!(said.out.contains(line), "{line}: {said}");
    }
    let info = json(&stage, &["obj", "info", "obj0"], 0);
    assert_eq!(info["uuid"], POOL_TEXT);
    assert_eq!(info["bytes"], 64 << 20);
    assert_eq!((&info["objects"], &info["akeys"]), (&1.into(), &3.into()));
}

#[test]
fn a_flipped_byte_is_found_and_its_value_named() {
    let stage = Stage::in_memory();
    Box::new(pool(&stage, "obj0", ValueSums::Crc32c))
        .close()
        .unwrap();
    stage
        .say(&["obj", "check", "obj0"])
        .code(0)
        .out("  values with sums  6\n  damaged           none\n");
    damage(&stage, "obj0");
    let name = "object 1.2, dkey 'blade-2', akey 'akey--4', epoch 20";
    stage.say(&["obj", "check", "obj0"]).code(1).out(name);
    let checked = json(&stage, &["obj", "check", "obj0"], 1);
    assert_eq!(checked["damaged"], serde_json::json!([name]));
    Box::new(pool(&stage, "obj1", ValueSums::None))
        .close()
        .unwrap();
    damage(&stage, "obj1");
    stage
        .say(&["obj", "check", "obj1"])
        .code(0)
        .out("the pool has no sums");
    // Of several the worst counts.
    stage.say(&["obj", "check", "."]).code(1).out("./obj1\n");
}

#[test]
fn versions_that_nobody_sees_are_dropped_once() {
    let stage = Stage::in_memory();
    Box::new(pool(&stage, "obj0", ValueSums::Crc32c))
        .close()
        .unwrap();
    let words = ["obj", "aggregate", "obj0"];
    let freed = json(&stage, &words, 0);
    let bytes = 3 * BYTES as u64;
    assert_eq!(freed["freed_versions"], 3);
    assert!(freed["freed_bytes"].as_u64().unwrap() >= bytes, "{freed}");
    assert!(freed["usable_bytes"].as_u64().unwrap() >= bytes, "{freed}");
    assert_eq!(json(&stage, &words, 0)["freed_versions"], 0);
    let left = json(&stage, &["obj", "info", "obj0"], 0);
    assert_eq!(left["versions"], 3);
    stage.say(&["obj", "check", "obj0"]).code(0);
}

#[test]
fn pools_that_cannot_be_had_are_told_by_code_place_or_request() {
    let stage = Stage::in_memory();
    let perf = |words: &[&str], code: i32, rc: &str| {
        let all = [&["vos_perf", "-D", "."], words].concat();
        let said = crate::stage::said(stage.peer(&all)).code(code);
        let line = format!("Failed to initialize step=1, rc={rc}: ");
        assert!(said.err.starts_with(&line), "{said}");
    };
    let open = pool(&stage, "vos0", ValueSums::None);
    let foreign = "4a3a3a3a-3a3a-3a3a-3a3a-3a3a3a3a3a3a";
    perf(&["-u", POOL_TEXT, "-R", "F"], 3, "-1012");
    Box::new(open).close().unwrap();
    perf(&["-u", foreign, "-R", "F"], 2, "-1031");
    std::fs::remove_file(stage.path("vos0")).unwrap();
    let small = ["-d", "1", "-a", "1", "-n", "1", "-R"];
    let with = |words: &[&'static str]| [&small[..], words].concat();
    perf(&with(&["F", "-P", "1M"]), 2, "-1007");
    perf(&with(&["U", "--durability", "power"]), 3, "-1010");
    perf(&with(&["U", "--engine", "disk"]), 3, "-1010");
    stage
        .say(&["obj", "serve", "--dir", ".", "--durability", "power"])
        .code(3)
        .err("DER_NOSYS(-1010)");
    assert_eq!(stage.list(), [] as [&str; 0]);
}

#[test]
fn what_is_no_pool_is_told_apart_and_stays_as_it_is() {
    let stage = Stage::in_memory();
    let open = pool(&stage, "busy", ValueSums::None);
    Box::new(pool(&stage, "whole", ValueSums::None))
        .close()
        .unwrap();
    let whole = stage.read_bytes("whole");
    let mut newer = whole.clone();
    for place in [0, 4096] {
        newer[place + 8] = 9;
    }
    stage.file("newer", newer);
    stage.file("short", &whole[..32 << 20]);
    stage.file("stub", &whole[..8192]);
    stage.file("empty", "");
    stage.file("text", "a text\n".repeat(1 << 20));
    std::fs::create_dir(stage.path("none")).unwrap();
    for (file, code, why) in [
        ("absent", 3, "No such file"),
        ("empty", 2, "the file is empty"),
        ("text", 2, "the file is no pool of weir"),
        ("short", 2, "cut short"),
        ("stub", 2, "cut short"),
        ("newer", 2, "newer weir"),
        ("busy", 2, "another process uses it"),
        ("none", 2, "no pool of weir is in this directory"),
    ] {
        let is_file = !["absent", "none", "busy"].contains(&file);
        let before = is_file.then(|| stage.read_bytes(file));
        for word in ["info", "check", "aggregate"] {
            let said = stage.say(&["obj", word, file]).code(code).silent();
            assert!(said.err.contains(why) && said.err.contains(file), "{said}");
        }
        assert!(
            before.is_none_or(|before| before == stage.read_bytes(file)),
            "{file}"
        );
    }
    Box::new(open).close().unwrap();
    let names = [
        "busy", "empty", "newer", "none", "short", "stub", "text", "whole",
    ];
    assert_eq!(stage.list(), names);
}
