//! Searches over rates on a sink whose rate is known: what they find, what they say, what they refuse.

mod slow;

use rustix::process::Signal;
use serde_json::Value as Json;

use super::stage::{Running, Said, Stage, until};

/// Short trials.
const SHORT: [&str; 2] = ["--trial-time", "0.2"];
/// Long enough for answers on a machine that does other things.
const PATIENT: [&str; 2] = ["--residual", "0.3"];

/// A search over the example that sends everything back, into a sink. Its rate is one that a machine with other
/// things to do can keep, with few buffers to lay out for each trial.
fn search(stage: &Stage, verb: &str, words: &[&str]) -> Said {
    let all = [
        verb,
        "--example",
        "echo",
        "--set",
        "pool=2048",
        "--sink-rate",
        "30k",
    ];
    stage.peer_says(&[&["axio"][..], &all, &SHORT, &PATIENT, words].concat())
}

/// A metric of a stored search, from whichever trial it came.
fn metric(stage: &Stage, name: &str) -> f64 {
    let all: Json = serde_json::from_str(&stage.read("r.json")).unwrap();
    let groups = all["groups"].as_array().unwrap().iter();
    let metrics = groups.flat_map(|group| group["jobs"][0]["metrics"].as_array().unwrap());
    let mut found = metrics.filter(|metric| metric["name"] == name);
    let value = found.next().unwrap_or_else(|| panic!("{name}: {all}"))["value"].as_f64();
    assert!(found.next().is_none(), "{name} is there twice");
    value.unwrap()
}

/// Number of threads of a program.
fn threads(running: &Running) -> usize {
    let tasks = format!("/proc/{}/task", running.process().as_raw_nonzero());
    std::fs::read_dir(tasks).unwrap().count()
}

#[test]
fn a_search_that_is_interrupted_between_two_trials_begins_no_other() {
    let stage = Stage::new();
    let words = [
        "axio",
        "ndr",
        "--example",
        "echo",
        "--trial-time",
        "0.3",
        "--rest",
        "600",
        "--progress",
        "json",
        "--store-result",
        "r.json",
    ];
    let running = Running::start(stage.peer(&words));
    running.waits_for_err("as fast as possible");
    // The thread of the search, and the one that takes signals.
    until("it rests after its trial", || threads(&running) == 2);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    said.out("NDR (no loss): not known, the search was interrupted");
    let stored: Json = serde_json::from_str(&stage.read("r.json")).unwrap();
    assert_eq!(stored["complete"], false);
    assert_eq!(stored["groups"].as_array().unwrap().len(), 1);
}

#[test]
fn an_interrupted_search_prints_the_trials_that_it_has() {
    let stage = Stage::new();
    let words = [
        "axio",
        "ndr",
        "--example",
        "echo",
        "--sink-rate",
        "300k",
        "--trial-time",
        "30",
        "--store-result",
        "r.json",
    ];
    let running = Running::start(stage.peer(&words));
    running.works_for(10);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    assert!(
        said.out
            .contains("NDR (no loss): not known, the search was interrupted"),
        "{said}"
    );
    let stored: Json = serde_json::from_str(&stage.read("r.json")).unwrap();
    assert_eq!(stored["complete"], false);
}

/// Words of searches that are refused, and what is said of them.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["ndr", "--precision", "0"],
        "--precision 0: it takes percent from 0.01 to 50",
    ),
    (&["ndr", "--loss", "x"], "--loss x: it takes percent"),
    (
        &["ndr", "--trial-time", "0"],
        "--trial-time 0: it takes seconds from 0.001",
    ),
    (
        &["ndr", "--frames", "64"],
        "--frames acts only with `weir axio rfc2544`",
    ),
    (
        &["run", "--search", "mlr"],
        "--search acts only with `weir axio ndr` and `weir axio rfc2544`",
    ),
    (&["ndr", "--search", "fast"], "--search"),
    (
        &["rfc2544", "--frames", "63"],
        "--frames 63: `63`: expected bytes with the frame check, from 64",
    ),
    (
        &["rfc2544", "--frames", "64,9000"],
        "--frames: 9000 bytes do not fit: mtu 2048 takes up to 2066",
    ),
    (
        &["rfc2544", "--tests", "speed"],
        "--tests speed: `speed`: expected throughput, latency",
    ),
    (
        &["rfc2544", "--repeats", "0"],
        "--repeats 0: it takes a whole number from 1 to 1000",
    ),
    (&["ndr", "--both"], "--both: a search prints no tables"),
    (
        &["ndr", "--inject-pause", "1ms"],
        "--inject-pause: the trials of a search are alike",
    ),
    (
        &["ndr", "--client"],
        "needs both sides in this program (role : loopback)",
    ),
    (
        &[
            "ndr",
            "--set",
            "msg_handler=Empty",
            "--set",
            "pkt_handler=Empty",
        ],
        "msg_handler Empty answers nothing",
    ),
    (
        &[
            "rfc2544",
            "--set",
            "msg_handler=KV",
            "--set",
            "pkt_handler=Empty",
            "--set",
            "req_size=97",
            "--set",
            "resp_size=97",
        ],
        "the messages of this msg_handler have one size",
    ),
];

#[test]
fn a_search_that_cannot_be_is_refused_before_anything_runs() {
    let stage = Stage::new();
    for (words, why) in REFUSED {
        let (verb, rest) = words.split_first().unwrap();
        let example = ["--example", "echo"];
        stage
            .peer_says(&[&["axio", verb][..], &example[..], rest].concat())
            .code(2)
            .err(why);
    }
    let shown = [
        "axio",
        "ndr",
        "--example",
        "echo",
        "--set",
        "rate=5",
        "--show-plan",
    ];
    let plan: Json = serde_json::from_str(&stage.peer_says(&shown).code(0).out).unwrap();
    let work = &plan["groups"][0]["jobs"][0]["workload"];
    assert_eq!(
        (&work["in_flight"], &work["messages_per_s"]),
        (&0.into(), &0.into()),
        "{work}"
    );
}
