//! Signals to runs that go on, or that wait for answers at their end.

use std::time::Duration;

use rustix::process::Signal;

use super::stage::{Running, Said, Stage, until};
use super::two_sides::{CONFIG, side};
use super::{stored, sum};

#[test]
fn an_interrupted_run_prints_what_it_has() {
    let stage = Stage::new();
    let words = [
        "axio",
        "--example",
        "scan",
        "--set",
        "duration=30",
        "--set",
        "stall_timeout=30",
    ];
    let running = Running::start(stage.peer(&words));
    running.works_for(10);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    said.out("End-to-end").out("pool in use 0");
}

#[test]
fn an_interrupt_ends_the_work_of_a_handler() {
    let stage = Stage::new();
    let sets = ["work_ns=1000000000", "duration=30", "stall_timeout=300"];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let words: Vec<&str> = ["axio", "--example", "scan"]
        .into_iter()
        .chain(sets)
        .collect();
    let running = Running::start(stage.peer(&words));
    let stat = format!("/proc/{}/stat", running.process().as_raw_nonzero());
    until("its threads have used 500 ms", || {
        let stat = std::fs::read_to_string(&stat).unwrap();
        let fields: Vec<&str> = stat.split_whitespace().collect();
        fields[13].parse::<u64>().unwrap() >= 50
    });
    running.signal(Signal::INT);
    let said = running.end().code(130);
    assert!(!said.err.contains("did not come back"), "{said}");
}

/// A run whose messages without an answer are lost only long after its end, and a signal while it waits for them.
fn interrupted_at_its_end(stage: &Stage, signal: Signal) -> Said {
    let sets = "duration=0.2 iteration=1 rate=100k msg_timeout_ms=20000 stall_timeout=30";
    let sets = sets.split_whitespace().flat_map(|set| ["--set", set]);
    let words = "axio --example echo --inject-loss 50% --store-result r.json";
    let words: Vec<&str> = words.split_whitespace().chain(sets).collect();
    let running = Running::start(stage.peer(&words));
    running.works_for(10);
    // A signal that comes before the end of its measurement says no less.
    std::thread::sleep(Duration::from_secs(1));
    running.signal(signal);
    running.end()
}

#[test]
fn a_signal_ends_the_wait_for_answers_and_what_has_none_is_lost() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let stage = Stage::new();
        let said = interrupted_at_its_end(&stage, signal).code(code);
        let said = said.out("End-to-end").out("pool in use 0");
        assert!(!said.err.contains("error: "), "{said}");
        let outcome = stored(&stage);
        assert!(sum(&outcome, "client", "lost") > 0, "{said}");
    }
}

#[test]
fn a_signal_to_a_client_whose_server_hangs_ends_it_with_its_own_tables() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let sets = ["duration=300", "iteration=1", "msg_timeout_ms=20000"];
    let server = Running::start(side(&stage, "--server", 50, &sets));
    let client = Running::start(side(&stage, "--client", 50, &sets));
    server.works_for(10);
    server.signal(Signal::STOP);
    client.signal(Signal::INT);
    let client = client.end().code(130);
    server.signal(Signal::KILL);
    server.end();
    let client = client.out("End-to-end");
    assert!(!client.err.contains("error: "), "{client}");
}

#[test]
fn what_was_answered_while_a_run_was_stopped_is_neither_lost_nor_missed() {
    let stage = Stage::new();
    let sets = "duration=4 iteration=1 msg_timeout_ms=1000 stall_timeout=1";
    let sets = sets.split_whitespace().flat_map(|set| ["--set", set]);
    let words: Vec<&str> = ["axio", "--example", "echo"]
        .into_iter()
        .chain(sets)
        .collect();
    let running = Running::start(stage.peer(&words));
    running.works_for(10);
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1500));
    running.signal(Signal::CONT);
    running
        .end()
        .code(0)
        .out("messages: lost 0, late 0, incomplete 0, wrong 0");
}
