//! `vos_perf` and `daos_perf` by their names, `weir vos-perf`, `weir daos-perf` and `weir obj` as a user sees
//! them.
//!
//! Which test has which acceptance case of object store performance (`doors`: `crates/weir-doors/src/object`):
//!
//! | case | test |
//! |---|---|
//! | 1 | doors `tests.rs`: `the_blocks_of_the_tuning_guide_come_out_to_the_letter` |
//! | 2 to 10, 16 | `case_2_…` and so on |
//! | 14 | `slow.rs`: `case_14_…` |
//! | 15 | `reached.rs`: `case_15_…` |
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "tests"
)]

mod mixes;
mod options;
mod pools;
mod reached;
mod slow;
#[path = "../stage/mod.rs"]
mod stage;

mod daos;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use stage::{Said, Stage, said};

/// Output of `vos_perf` in a directory in memory, its pools there.
fn vos_perf(stage: &Stage, words: &[&str]) -> Said {
    said(call(stage, words))
}

fn call(stage: &Stage, words: &[&str]) -> Command {
    stage.peer(&[&["vos_perf", "-D", "."], words].concat())
}

/// The figure of a line of the block of a test.
#[track_caller]
fn figure(said: &Said, test: &str, line: &str) -> f64 {
    let head = format!("{test} successfully completed:\n");
    let (_, block) = said
        .out
        .split_once(&head)
        .unwrap_or_else(|| panic!("{said}"));
    let start = format!("\t{line}");
    let line = block.lines().find(|one| one.starts_with(&start));
    let value = line
        .unwrap_or_else(|| panic!("{said}"))
        .split_once(':')
        .unwrap()
        .1;
    value.split_whitespace().next().unwrap().parse().unwrap()
}

/// Operations of a test: those that rate and duration of its block make, whose digits are few.
#[track_caller]
fn operations(said: &Said, test: &str) -> f64 {
    figure(said, test, "rate") * figure(said, test, "duration")
}

/// Two counts are one, but for the digits that the text has.
#[track_caller]
fn about(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 0.01,
        "{found}, not {expected}"
    );
}

/// The result of a run.
fn result(stage: &Stage, words: &[&str]) -> Value {
    let own = ["vos-perf", "-D", ".", "--format", "json"];
    let said = stage.say(&[&own, words].concat()).code(0);
    serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{why}: {said}"))
}

/// Iterations of tests on the first rank.
fn runs(result: &Value) -> &Vec<Value> {
    result["groups"][0]["jobs"][0]["outcome"]["ranks"][0]["runs"]
        .as_array()
        .unwrap()
}

/// A number of an iteration.
fn count(run: &Value, name: &str) -> u64 {
    run[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {run}"))
}

#[test]
fn case_2_the_seeds_line_prints_its_table_and_blocks_and_leaves_no_file() {
    let stage = &Stage::in_memory();
    let line = "-P 4G -d 20000 -a 1 -n 1 -s 4K -z -R";
    let mut words: Vec<&str> = line.split(' ').collect();
    words.push("U;p F;p");
    let said = vos_perf(stage, &words).code(0);
    let (table, rest) = said.out.split_once("Running test=UPDATE\n").unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[..3],
        ["Test :", "\tVOS (storage only)", "Pool :"],
        "{said}"
    );
    assert_eq!(lines[3].len(), "\t".len() + 36, "a UUID: {said}");
    assert_eq!(
        lines[4..],
        [
            "Parameters :",
            "\tpool size     : SCM: 4096 MB, NVMe: 0 MB",
            "\tcredits       : -1 (sync I/O for -ve)",
            "\tobj_per_cont  : 1 x 1 (procs)",
            "\tdkey_per_obj  : 20000 (buf)",
            "\takey_per_dkey : 1",
            "\trecx_per_akey : 1",
            "\tvalue type    : single",
            "\tstride size   : 4096",
            "\tzero copy     : yes",
            "\tVOS file      : ./vos0",
        ]
    );
    let tests: Vec<&str> = rest.lines().filter(|line| line.contains("test=")).collect();
    assert_eq!(
        tests,
        [
            "Completed test=UPDATE",
            "Running test=FETCH",
            "Completed test=FETCH"
        ]
    );
    for test in ["UPDATE", "FETCH"] {
        about(operations(&said, test), 20_000.0);
        let mib = figure(&said, test, "rate") * 4096.0 / 1_048_576.0;
        about(figure(&said, test, "bandwidth"), mib);
        about(
            figure(&said, test, "latency") * figure(&said, test, "rate"),
            1e6,
        );
    }
    assert_eq!(stage.list(), [] as [&str; 0]);
}

#[test]
fn case_3_rewritten_values_have_no_verification_and_extents_have_one() {
    let stage = &Stage::in_memory();
    let words = [
        "-R",
        "U;p F;p V",
        "-o",
        "5",
        "-d",
        "5",
        "-a",
        "5",
        "-n",
        "10",
        "-P",
        "64M",
    ];
    let single = vos_perf(stage, &words).code(0);
    about(operations(&single, "UPDATE"), 1250.0);
    assert!(
        single
            .out
            .ends_with("Verification is unsupported\nCompleted test=VERIFY\n"),
        "{single}"
    );
    let array = vos_perf(stage, &[&words[..], &["-A"]].concat()).code(0);
    assert!(!array.out.contains("unsupported"), "{array}");
    let result = result(stage, &[&words[..], &["-AR", "-G", "7"]].concat());
    let [update, fetch, verify] = &runs(&result)[..] else {
        panic!("{result}");
    };
    for run in [update, fetch, verify] {
        assert_eq!(count(run, "operations"), 1250);
    }
    assert_eq!((count(verify, "hits"), count(verify, "misses")), (1250, 0));
}

#[test]
fn case_4_parts_of_extents_are_written_and_verified_and_too_much_is_refused_first() {
    let stage = &Stage::in_memory();
    let words = ["-s", "1024k", "-A", "-R", "U U;o=4k;s=4k V"];
    let small = ["-d", "2", "-a", "2", "-n", "4", "-P", "64M"];
    vos_perf(stage, &[&small[..], &words].concat()).code(0);
    // The help text of the reference: 64 GiB in a pool of 2.
    let refused = vos_perf(stage, &words).code(2);
    assert!(refused.err.contains("NOSPACE"), "{refused}");
    assert!(!refused.out.contains("Running test="), "{refused}");
    assert_eq!(stage.list(), [] as [&str; 0]);
}

#[test]
fn case_4_damage_is_found_and_its_key_named() {
    let stage = &Stage::in_memory();
    let words = [
        "-d", "2", "-a", "1", "-n", "1", "-s", "64k", "-P", "64M", "-A", "-w", "-R", "U V",
    ];
    let mut command = call(stage, &words);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut answers = child.stdin.take().unwrap();
    answers.write_all(b"y\n").unwrap();
    let file = stage.path("vos0");
    // Of the value's bytes the last one that is not zero is damaged, once the prompt for V waits.
    let mut out = child.stdout.take().unwrap();
    let mut said = String::new();
    let mut byte = [0];
    while !said.ends_with("run test=VERIFY: ") {
        let read = std::io::Read::read(&mut out, &mut byte).unwrap();
        assert_eq!(read, 1, "{said}");
        said.push(char::from(byte[0]));
    }
    damage(Path::new(&file));
    answers.write_all(b"Y\n").unwrap();
    let ended = child.wait_with_output().unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{err}");
    assert!(err.contains("dkey=[7] 'blade-"), "{err}");
    assert!(
        err.contains("DER_CSUM") || err.contains("DER_MISMATCH"),
        "{err}"
    );
}

/// Flips a bit in the middle of the longest run of bytes that are not all zero.
fn damage(path: &Path) {
    let content = std::fs::read(path).unwrap();
    let page = 4096;
    let is_used = |at: &usize| {
        content[at * page..][..page]
            .iter()
            .filter(|b| **b != 0)
            .count()
            > page / 2
    };
    let used: Vec<usize> = (0..content.len() / page).filter(is_used).collect();
    let middle = used[used.len() / 2] * page + page / 2;
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[content[middle] ^ 1], middle as u64)
        .unwrap();
}

#[test]
fn case_5_a_query_finds_the_greatest_key_and_the_end_of_each_array() {
    let stage = &Stage::in_memory();
    let words = [
        "-i", "-I", "-A", "-d", "5", "-o", "5", "-n", "10", "-P", "64M", "-R", "U Q;p V",
    ];
    vos_perf(stage, &words)
        .code(0)
        .out("found     : 5 of 5, greatest dkey 5, last extent ends at 640\n");
    // Without its options it fails, and the others run.
    let lacking = ["-R", "U Q;p F", "-n", "1", "-P", "64M"];
    vos_perf(stage, &lacking)
        .code(1)
        .out("QUERY failed\nRunning test=FETCH\n")
        .err("Integer dkeys required for query test (-i)\n");
    let verb = [&["vos-perf", "-D", "."], &lacking[..]].concat();
    stage.say(&verb).code(1).err("Q fails: Integer dkeys");
    // Its failure is in the result.
    let said = stage.say(&[&verb[..], &["--format", "json"]].concat());
    let result: Value = serde_json::from_str(&said.code(1).out).unwrap();
    let job = &result["groups"][0]["jobs"][0];
    let last = job["phases"].as_array().unwrap().last().unwrap();
    assert_eq!(last["name"], "query");
    assert_eq!(
        (&job["state"], &last["measured"]["state"]),
        (&"failed".into(), &"failed".into()),
        "{last}"
    );
    let failure = &runs(&result).last().unwrap()["failure"];
    assert_eq!(
        failure["text"],
        "Integer dkeys required for query test (-i)"
    );
}

#[test]
fn keys_and_values_that_a_walk_visits_are_its_operations() {
    let stage = &Stage::in_memory();
    let words = [
        "-d", "3", "-a", "2", "-n", "4", "-A", "-P", "64M", "-R", "U I I;s",
    ];
    let result = result(stage, &words);
    let visited: Vec<u64> = runs(&result)[1..]
        .iter()
        .map(|run| count(run, "operations"))
        .collect();
    assert_eq!(visited, [3 + 3 * 2 + 3 * 2 * 4, 3]);
}

#[test]
fn case_6_an_extent_ends_within_its_stride() {
    let stage = &Stage::in_memory();
    let refused = vos_perf(stage, &["-s", "64", "-A", "-R", "U;o=32;s=64"]).code(2);
    assert_eq!(refused.out, "Invalid test parameters: ;o=32;s=64\n");
    assert!(
        refused
            .err
            .contains("offset + size crossed the stride boundary: 32/64/64\n")
    );
    assert_eq!(stage.list(), [] as [&str; 0]);
}

#[test]
fn case_7_an_unknown_code_is_skipped() {
    let stage = &Stage::in_memory();
    vos_perf(stage, &["-P", "64M", "-R", "X;p U;p"])
        .code(0)
        .out("Unknown test code=X\nRunning test=UPDATE\n")
        .out("Completed test=UPDATE\n")
        .err("unknown test code X\n");
}

#[test]
fn case_8_subsets_are_named_and_alone_counted() {
    let stage = &Stage::in_memory();
    let words = ["-P", "64M", "-d", "100", "-A", "-R", "U;D=10;n=1;p"];
    let said = vos_perf(stage, &words)
        .code(0)
        .out("(iteration=1, dkeys=10, recx=1)\n");
    about(operations(&said, "UPDATE"), 160.0);
    assert_eq!(count(&runs(&result(stage, &words))[0], "operations"), 160);
    // Of punches too, which the reference does not honour.
    let words = [
        "-P",
        "64M",
        "-d",
        "10",
        "-a",
        "1",
        "-n",
        "1",
        "-R",
        "U P;d;D=4 F",
    ];
    let result = result(stage, &words);
    let [_, punch, fetch] = &runs(&result)[..] else {
        panic!("{result}");
    };
    assert_eq!(count(punch, "operations"), 4);
    assert_eq!((count(fetch, "hits"), count(fetch, "misses")), (6, 4));
}

#[test]
fn case_9_counts_have_suffixes_and_refusals_the_peers_words() {
    let stage = &Stage::in_memory();
    let words = ["-P", "64M", "-d", "10k", "-a", "1", "-n", "1", "-R", "U"];
    vos_perf(stage, &words)
        .code(0)
        .out("\tdkey_per_obj  : 10240 (buf)\n");
    let zero = vos_perf(stage, &["-d", "0", "-R", "U"]).code(2).silent();
    assert!(zero.err.contains("Invalid arguments 0/16/16/\n"), "{zero}");
    assert!(zero.err.contains("--pool_scm"), "usage: {zero}");
    let none = vos_perf(stage, &[]).code(2);
    assert!(
        none.out.starts_with("Please provide command string\n"),
        "{none}"
    );
    assert!(none.out.contains("--pool_scm"), "usage: {none}");
    let unknown = vos_perf(stage, &["-q"]).code(2).silent();
    assert!(
        unknown
            .err
            .ends_with("invalid option -- 'q'\nUnknown option ?\n"),
        "{unknown}"
    );
    vos_perf(stage, &["--help"])
        .code(0)
        .calm()
        .out("--pool_scm");
    vos_perf(stage, &["-R", ""]).code(2);
    assert_eq!(stage.list(), [] as [&str; 0]);
}

#[test]
fn a_pool_that_cannot_be_made_is_told_without_a_table() {
    let stage = &Stage::in_memory();
    let run = ["-P", "64M", "-R", "U"];
    let missing = call(stage, &[&["-D", "none/below"], &run[..]].concat());
    said(missing).code(3).err("directory none/below: ").silent();
    std::fs::write(stage.path("vos0"), "mine").unwrap();
    let failed = vos_perf(stage, &run).code(2);
    assert!(
        failed
            .err
            .contains("Failed to initialize step=1, rc=-1004: DER_EXIST(-1004)"),
        "{failed}"
    );
    assert!(failed.err.contains("--pool UUID (-u)"), "{failed}");
    assert!(!failed.out.contains("Pool :"), "{failed}");
    assert_eq!(std::fs::read(stage.path("vos0")).unwrap(), b"mine");
}

#[test]
fn case_10_keys_are_named_as_the_peer_names_them() {
    let stage = &Stage::in_memory();
    let words = [
        "-P", "64M", "-d", "2", "-a", "2", "-n", "1", "-R", "U;v F;v",
    ];
    let said = vos_perf(stage, &words).code(0);
    let keys = |first: &str| {
        let lines = said.out.lines().filter(|line| line.starts_with(first));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        keys("Update dkey"),
        [
            "Update dkey=[7] 'blade-1' akey=[7] 'akey--3'",
            "Update dkey=[7] 'blade-1' akey=[7] 'akey--4'",
            "Update dkey=[7] 'blade-2' akey=[7] 'akey--3'",
            "Update dkey=[7] 'blade-2' akey=[7] 'akey--4'",
        ]
    );
    assert_eq!(keys("Fetch  dkey").len(), 4, "{said}");
}

#[test]
fn case_16_json_has_the_operations_their_time_and_a_histogram_of_each_kind() {
    let stage = &Stage::in_memory();
    let words = [
        "-P",
        "64M",
        "-d",
        "4000",
        "-a",
        "1",
        "-n",
        "1",
        "-R",
        "U;i=2;p F;p",
    ];
    let stored = stage.path("r.json");
    let said = vos_perf(stage, &[&words[..], &["--store-result", &stored]].concat()).code(0);
    let result: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let [first, second, fetch] = &runs(&result)[..] else {
        panic!("{result}");
    };
    let busy = |run| count(run, "busy_ns") as f64 / 1e9;
    about(
        figure(&said, "UPDATE", "duration") + 1e-6,
        busy(first) + busy(second) + 1e-6,
    );
    about(
        operations(&said, "FETCH"),
        count(fetch, "operations") as f64,
    );
    let job = &result["groups"][0]["jobs"][0];
    let phases = job["phases"].as_array().unwrap();
    for (phase, run) in phases.iter().zip(runs(&result)) {
        let kind = &phase["measured"]["outcome"]["workers"][0]["kinds"][0];
        let histogram = &kind["stages"][0]["histogram"];
        assert_eq!(count(histogram, "count"), count(run, "operations"));
    }
    let rank = &job["outcome"]["ranks"][0];
    assert!(rank["file_system"].is_string(), "{rank}");
    let named = |phase: &Value| (phase["name"].clone(), phase["repetition"].clone());
    let names: Vec<_> = phases.iter().map(named).collect();
    let expected = [("update", 0), ("update", 1), ("fetch", 0)];
    assert_eq!(
        names,
        expected.map(|(name, again)| (Value::from(name), Value::from(again)))
    );
    let again = stage.say(&["show", &stored]).code(0);
    assert_eq!(again.out, said.out);
}
