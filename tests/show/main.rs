//! `weir show`: what was printed live and what a stored result prints are the same bytes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod every_door;
mod fixtures;
mod newer;
#[path = "../stage/mod.rs"]
mod stage;
mod words;

use serde_json::Value as Json;
use stage::{Said, Stage, said};

const JOBS: &str = "\
[global]
ioengine=null
size=1m
bs=4k
[a]
rw=randrw
[b]
stonewall
rw=write
iodepth=4
";

/// Runs these words with `--store-result`, and shows the result again.
fn twice(stage: &Stage, words: &[&str]) -> (Said, Said) {
    let stored = [words, &["--store-result", "r.json"]].concat();
    let live = said(stage.called(&stored)).code(0);
    let again = stage.say(&["show", "r.json"]).code(0);
    (live, again)
}

/// Asserts that `weir show` prints the same again. The stored arguments of the door hold these too:
/// they stand last.
#[track_caller]
fn is_same(words: &[&str]) {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    let (live, again) = twice(&stage, words);
    assert!(!live.out.is_empty(), "{live}");
    assert_eq!(live.out, again.out);
}

#[test]
fn fios_reports_are_printed_again_byte_for_byte() {
    for formats in ["normal", "json", "json+", "terse", "normal,json"] {
        let format = format!("--output-format={formats}");
        is_same(&["fio", &format, "j.fio"]);
    }
    is_same(&["fio", "--minimal", "j.fio"]);
}

#[test]
fn weirs_own_reports_are_printed_again_byte_for_byte() {
    for words in [
        &["--raw"][..],
        &["--format=json"],
        &["--ascii", "--width=60"],
    ] {
        is_same(&[&["run"], words, &["j.fio"]].concat());
    }
}

#[test]
fn tables_of_effective_bandwidth_are_printed_again_byte_for_byte() {
    for format in ["text", "table", "json", "csv", "md"] {
        let words = format!("Network_intel --ranks 2 -n 2 -u 8 -l 8 -m 4 --format {format}");
        is_same(&words.split(' ').collect::<Vec<_>>());
    }
}

#[test]
fn latency_and_bandwidth_are_printed_again_byte_for_byte() {
    for format in ["text", "json"] {
        let words = format!("net lat-bw --min-time 0.0001 --format {format}");
        is_same(&words.split(' ').collect::<Vec<_>>());
    }
}

#[test]
fn another_door_prints_a_result_as_well() {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    twice(&stage, &["run", "j.fio"]);
    let words = ["show", "r.json", "--as", "fio", "--output-format=json"];
    let fio: Json = serde_json::from_str(&stage.say(&words).code(0).out).unwrap();
    assert_eq!(fio["jobs"].as_array().unwrap().len(), 2);
    let words = ["show", "r.json", "--as", "run", "--format", "json"];
    let own: Json = serde_json::from_str(&stage.say(&words).code(0).out).unwrap();
    assert_eq!(own["complete"], true);
}

#[test]
fn an_exchange_is_found_wherever_it_stands_among_the_jobs() {
    let stage = Stage::new();
    let plan_of = |words: &str| -> Json {
        let said = stage.say(&words.split(' ').collect::<Vec<_>>()).code(0);
        serde_json::from_str(&said.out).unwrap()
    };
    stage.file("j.fio", "[before]\nioengine=null\nsize=64k\n");
    let mut plan = plan_of("run --show-plan j.fio");
    let exchange = plan_of("beff --comm-type shm --ranks 1 -n 2 -u 8 -l 8 -m 4 --show-plan");
    let groups = plan["groups"].as_array_mut().unwrap();
    groups.push(exchange["groups"][0].clone());
    groups[1]["jobs"][0]["start"]["barrier"] = true.into();
    stage.file("p.json", plan.to_string());
    twice(&stage, &["run", "p.json"]);
    stage
        .say(&["show", "r.json", "--as", "beff"])
        .code(0)
        .out("b_eff = ")
        .out("Validation: SUCCESS!");
}

#[test]
fn a_result_is_refused_a_place_where_words_measure_nothing() {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    for (words, code) in [
        ("fio --showcmd j.fio", 1),
        ("fio --parse-only j.fio", 1),
        ("Network_intel --comm-type shm --ranks 1 --test", 2),
    ] {
        let words = format!("{words} --store-result x");
        let words: Vec<_> = words.split(' ').collect();
        let said = said(stage.called(&words)).code(code).silent();
        said.err("--store-result has no effect with --");
        assert_eq!(stage.list(), ["j.fio"], "{words:?}");
    }
}

#[test]
fn what_is_no_result_is_refused_by_name() {
    let stage = Stage::new();
    stage.file("no.json", "{}");
    stage
        .say(&["show", "no.json"])
        .code(2)
        .silent()
        .err("no.json");
    stage
        .say(&["show", "absent.json"])
        .code(2)
        .err("error: absent.json: No such file");
    stage.say(&["show"]).code(2).err("--store-result");
    stage.file("j.fio", JOBS);
    stage
        .say(&["run", "--store-result", "none/r.json", "j.fio"])
        .code(2)
        .silent()
        .err("--store-result");
}
