//! The page cache is dropped before every pass over a file, as often as fio drops it.

use crate::stage::{Stage, has, peer, skip};
use crate::{fio, has_all, traced};

/// Blocks of 4 KiB of a file.
const BLOCKS: u64 = 16;

/// Number of times that a program drops the cache of files, and number of its reads and writes.
#[track_caller]
fn drops(program: &[&str], words: &[&str]) -> (u64, u64) {
    let stage = Stage::new();
    // They are there, so that what a layout drops does not count.
    for name in ["f", "g"] {
        stage.file(name, vec![1_u8; 64 << 10]);
    }
    let plain = ["--name=a", "--bs=4k", "--size=64k"];
    let output = ["--output=report", "--output-format=json"];
    // fio adds up what several options name.
    let is_named = words.iter().any(|word| word.starts_with("--filename"));
    let file = if is_named { &[][..] } else { &["--filename=f"] };
    let words = [program, &plain, file, &output, words].concat();
    let calls = traced(&stage, "fadvise64", &words);
    let report = stage.read("report");
    let report = &report[report.find('{').unwrap()..];
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    let done = |kind: &str| report["jobs"][0][kind]["total_ios"].as_u64().unwrap();
    let dropped = calls.iter().filter(|call| call.contains("DONTNEED"));
    (dropped.map(|_| 1).sum(), done("read") + done("write"))
}

/// weir drops the cache so often, and fio does too if it is here.
#[track_caller]
fn agree(words: &[&str], expected: u64) {
    let (ours, _) = drops(&[peer("fio")], words);
    assert_eq!(ours, expected, "{words:?}");
    if has("fio") {
        assert_eq!(drops(&["fio"], words).0, expected, "fio {words:?}");
    }
}

/// True if calls can be traced; prints a note if not, and if there is no fio to compare with.
fn is_possible(name: &str) -> bool {
    if let Err(missing) = has_all(&["strace"]) {
        skip(name, &missing);
        return false;
    }
    if !has("fio") {
        skip(name, "no fio to compare with");
    }
    true
}

#[test]
fn the_cache_is_dropped_before_every_loop_as_in_fio() {
    if !is_possible("the_cache_is_dropped_before_every_loop_as_in_fio") {
        return;
    }
    for rw in ["read", "randread", "write", "randwrite", "randrw"] {
        let rw = format!("--rw={rw}");
        agree(&[&rw], 1);
        agree(&[&rw, "--loops=3"], 3);
    }
    for (words, expected) in [
        (&["--rw=read", "--io_size=256k"][..], 4),
        (&["--rw=randread", "--io_size=256k"], 4),
        (&["--rw=read", "--offset=16k", "--size=32k", "--loops=3"], 3),
        (
            &["--rw=randread", "--random_generator=lfsr", "--loops=3"],
            3,
        ),
        (&["--rw=read", "--bssplit=4k/50:8k/50", "--loops=3"], 3),
        (
            &["--rw=read", "--filename=f:g", "--size=128k", "--loops=3"],
            6,
        ),
        (
            &[
                "--rw=randread",
                "--filename=f:g",
                "--size=128k",
                "--loops=3",
            ],
            6,
        ),
        (&["--rw=read", "--direct=1", "--loops=3"], 3),
        (&["--rw=write", "--unlink_each_loop=1", "--loops=3"], 3),
    ] {
        agree(words, expected);
    }
}

#[test]
fn a_cache_that_is_wanted_is_kept() {
    if !is_possible("a_cache_that_is_wanted_is_kept") {
        return;
    }
    agree(&["--rw=randread", "--loops=3", "--invalidate=0"], 0);
    agree(&["--rw=randread", "--loops=3", "--pre_read=1"], 0);
    agree(&["--rw=randwrite", "--verify=crc32c", "--invalidate=0"], 0);
}

#[test]
fn offsets_without_memory_have_no_passes() {
    if !is_possible("offsets_without_memory_have_no_passes") {
        return;
    }
    agree(&["--rw=randread", "--loops=3", "--norandommap"], 1);
    agree(&["--rw=randread", "--io_size=256k", "--norandommap"], 1);
    let zipf = "--random_distribution=zipf:1.2";
    agree(&["--rw=randread", "--loops=3", zipf], 1);
}

#[test]
fn every_engine_drops_the_cache_before_every_loop() {
    let name = "every_engine_drops_the_cache_before_every_loop";
    if !is_possible(name) {
        return;
    }
    for (engine, depth) in [
        ("sync", 1),
        // fio's ends after one loop at depths above 1.
        ("vsync", 1),
        ("pvsync", 1),
        ("pvsync2", 1),
        ("mmap", 1),
        ("splice", 1),
        ("libaio", 4),
        ("io_uring", 4),
        ("posixaio", 4),
    ] {
        let engine = format!("--ioengine={engine}");
        let depth = format!("--iodepth={depth}");
        let probe = fio(&Stage::new(), &[&engine, "--size=4k"]);
        if probe.err.contains("this machine lacks") {
            skip(name, &engine);
            continue;
        }
        agree(&["--rw=randread", "--loops=3", &depth, &engine], 3);
    }
}

#[test]
fn a_mapping_lets_its_pages_go_between_loops_and_keeps_them_until_the_time_is_up() {
    let name = "a_mapping_lets_its_pages_go_between_loops_and_keeps_them_until_the_time_is_up";
    if let Err(missing) = has_all(&["strace"]) {
        return skip(name, &missing);
    }
    // fio maps anew for each loop, and goes on with its mapping in a job of so much time.
    for (words, expected) in [
        (&["--loops=3"][..], 2),
        (&["--time_based", "--runtime=100ms"], 0),
        (&["--loops=3", "--invalidate=0"], 0),
    ] {
        let stage = Stage::new();
        stage.file("f", vec![1_u8; 64 << 10]);
        let job = ["--name=a", "--filename=f", "--rw=read", "--ioengine=mmap"];
        let words = [&[peer("fio")], &job[..], &["--output=report"], words].concat();
        let calls = traced(&stage, "madvise", &words);
        let of_file = |call: &&String| call.contains(", 65536, MADV_DONTNEED");
        assert_eq!(calls.iter().filter(of_file).count(), expected, "{words:?}");
    }
}

#[test]
fn what_was_written_is_not_read_back_from_the_cache_as_in_fio() {
    if !is_possible("what_was_written_is_not_read_back_from_the_cache_as_in_fio") {
        return;
    }
    for (words, expected) in [
        (&["--rw=write"][..], 2),
        (&["--rw=randwrite"], 2),
        (&["--rw=write", "--loops=3"], 6),
        (&["--rw=randwrite", "--verify_backlog=4"], 2),
        (&["--rw=randwrite", "--do_verify=0"], 1),
    ] {
        agree(&[words, &["--verify=crc32c"]].concat(), expected);
    }
}

#[test]
fn the_cache_is_dropped_on_every_pass_until_the_time_is_up_as_in_fio() {
    if !is_possible("the_cache_is_dropped_on_every_pass_until_the_time_is_up_as_in_fio") {
        return;
    }
    let programs = [&[peer("fio")][..], &["fio"]];
    let programs = if has("fio") {
        &programs[..]
    } else {
        &programs[..1]
    };
    for program in programs {
        for rw in ["read", "randread", "randwrite"] {
            let rw = format!("--rw={rw}");
            let timed = [&rw, "--time_based", "--runtime=300ms"];
            let (dropped, done) = drops(program, &timed);
            let passes = done / BLOCKS;
            // The last pass may have been ended before its first operation.
            assert!(
                (passes..=passes + 1).contains(&dropped) && passes > 1,
                "{program:?} {timed:?}: {dropped} for {done} operations"
            );
            let direct = [&timed[..], &["--direct=1"]].concat();
            assert_eq!(drops(program, &direct).0, 1, "{program:?} {direct:?}");
        }
        let timed = ["--rw=randread", "--time_based", "--runtime=300ms"];
        let mapless = [&timed[..], &["--norandommap"]].concat();
        assert_eq!(drops(program, &mapless).0, 1, "{program:?} {mapless:?}");
    }
}
