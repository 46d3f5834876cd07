//! I/Os that fail, data that is wrong: how many of them a run may have; and what is said beside figures.

use serde_json::Value;

use crate::stage::{Said, Stage, has, peer, said, skip};
use crate::{after, kio, stage};

/// kio that may write no further than the first MiB of a file.
fn confined(stage: &Stage, words: &str) -> Said {
    let mut command = stage.command("prlimit");
    command.args(["--fsize=1048576", peer("kio"), "-d", "F", "--op", "write"]);
    command.args(["--ol", "1M", "--format", "json", "-s", "60"]);
    command.args(words.split_whitespace());
    said(command).code(1)
}

fn workers(said: &Said) -> Vec<Value> {
    let result: Value = serde_json::from_str(&said.out).unwrap();
    let jobs = result["groups"][0]["jobs"].as_array().unwrap().clone();
    let workers = jobs.iter().map(|job| job["outcome"]["workers"].as_array());
    workers.flatten().flatten().cloned().collect()
}

/// Failed I/Os of each worker.
fn failed(said: &Said) -> Vec<u64> {
    let of_kind = |kind: &Value| {
        let codes = kind["errors"].as_object().unwrap().values();
        codes.filter_map(Value::as_u64).sum::<u64>()
    };
    let workers = workers(said);
    let kinds = workers.iter().map(|w| w["kinds"].as_array().unwrap());
    kinds.map(|kinds| kinds.iter().map(of_kind).sum()).collect()
}

#[test]
fn a_run_ends_with_the_first_failure_too_many_of_all_threads() {
    if !has("prlimit") {
        return skip("kio errors", "no prlimit");
    }
    let stage = stage();
    let state = |said: &Said| workers(said)[0]["state"].as_str().unwrap().to_owned();
    let of_five = confined(&stage, "--engine sync --error-limit 5");
    assert_eq!(failed(&of_five), [5], "{of_five}");
    assert_eq!(state(&of_five), "failed");
    assert_eq!(failed(&confined(&stage, "--engine sync")), [1]);
    let counted = confined(&stage, "--engine sync --error-limit 0 --ios 20");
    assert_eq!(failed(&counted), [20]);
    assert_eq!(state(&counted), "done");
    // The limit is that of all threads: none of them goes on for its 60 seconds.
    for engine in ["sync", "uring --qd 4"] {
        let words = format!("--engine {engine} -t 2 --error-limit 100");
        let both = failed(&confined(&stage, &words));
        let all: u64 = both.iter().sum();
        // What was in flight when it was reached fails as well.
        assert!((100..=108).contains(&all), "{engine}: {both:?}");
    }
}

#[test]
fn bad_blocks_are_counted_up_to_the_limit() {
    let stage = stage();
    kio(&stage, "-d F --oh 1M --op write --data verify --verify").code(0);
    let mut bytes = stage.read_bytes("F");
    for block in [1, 7, 90, 91, 200] {
        bytes[block * 4096 + 600] ^= 1;
    }
    stage.file("F", bytes);
    let read = "-d F --oh 1M --op read --data verify --ios 256 --format kio";
    for (limit, message) in [
        ("", "verification"),
        ("--error-limit 3", "the first of 3 bad blocks"),
        ("--error-limit 0", "the first of 5 bad blocks"),
        ("--error-limit 9", "the first of 5 bad blocks"),
    ] {
        let said = kio(&stage, &format!("{read} {limit}")).code(1).err(message);
        assert!(said.err.contains("at offset 4096 "), "{said}");
        let is_first = !said.err.contains("the first of");
        assert_eq!(is_first, limit.is_empty(), "{said}");
    }
}

#[test]
fn flushes_alone_move_nothing_and_count() {
    let stage = stage();
    for engine in ["uring --qd 4", "aio", "sync"] {
        let words = format!("-d F --op flush --ios 40 -s 60 --format kio --engine {engine}");
        let said = kio(&stage, &words).code(0);
        let figure = |key| after(&said.out, "Results...", key);
        assert!((figure("completed") - 40.0).abs() < 0.5, "{said}");
        assert!(figure("iops") > 0.0 && figure("lat_usec") > 0.0, "{said}");
        assert!(figure("bw_MBps").abs() < f64::EPSILON, "{said}");
    }
    kio(&stage, "-d F --op flush --ios 5")
        .code(0)
        .out("thread 0   flush, io_uring")
        .out("5 ops");
    for flag in ["size 1M", "data zero", "fua", "thread-partition"] {
        let name = flag.split(' ').next().unwrap();
        kio(&stage, &format!("-d F --op flush --{flag}"))
            .code(2)
            .silent()
            .err(&format!("--{name} is about what is read or written"));
    }
}

#[test]
fn the_mix_that_was_achieved_and_a_depth_that_was_not_are_said() {
    let stage = stage();
    let mixed = "-d F --rm 50 --rb 30 --wb 10 --ios 2000 -s 60";
    kio(&stage, &format!("{mixed} --format kio"))
        .code(0)
        .out("\n# thread 0: reads ")
        .out(" % of I/Os (75.0 % asked)\n");
    kio(&stage, mixed)
        .code(0)
        .out(" % of operations (75.0 % asked)");
    // A pause of a millisecond after each read leaves little of the time to reads.
    kio(&stage, "-d F --rs 1000 --ios 200 -s 60 --format kio")
        .code(0)
        .out(" in flight of 1 (rate x latency)\n");
}

#[test]
fn threads_run_where_they_are_told_to() {
    let stage = stage();
    let cpus = std::fs::read_to_string("/sys/fs/cgroup/cpuset.cpus.effective");
    if cpus.is_ok_and(|cpus| !cpus.starts_with("0-") && !cpus.starts_with("0,")) {
        return skip("kio --cpus", "CPU 0 is not ours");
    }
    let placed = |words: &str| {
        let said = kio(
            &stage,
            &format!("-d F --ios 200 -s 60 --format json {words}"),
        );
        let said = said.code(0);
        let cpus = |worker: &Value| worker["cpu"]["last_cpu"].as_u64().unwrap();
        workers(&said).iter().map(cpus).collect::<Vec<_>>()
    };
    assert_eq!(placed("--cpus 0"), [0]);
    if std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) {
        assert_eq!(placed("--cpus 1,0"), [1, 0]);
        assert_eq!(placed("--cpus 0-1 -t 4"), [0, 1, 0, 1]);
    }
    assert_eq!(placed("--numa 0").len(), 1);
    assert_eq!(placed("--numa auto").len(), 1);
    kio(&stage, "-d F --cpus 9999").code(3).err("9999");
    kio(&stage, "-d F --numa 900").code(2).err("900");
    kio(&stage, "-d F --cpus 0 --numa 0")
        .code(2)
        .err("--numa acts only without `--cpus`");
    kio(&stage, "-d F --cpus x").code(2).err("0,2,4-7");
    kio(&stage, "-d F --numa x").code(2).err("--numa x");
}
