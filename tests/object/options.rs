//! Options of `vos_perf` beyond the acceptance cases: each acts, or is refused by its name.

use std::io::Write as _;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::stage::{Running, Said, Stage, said, until};

/// Few values in a small pool of the stage.
const SMALL: [&str; 9] = ["vos_perf", "-P", "64M", "-d", "4", "-a", "1", "-n", "1"];

fn small(stage: &Stage, words: &[&str]) -> Command {
    stage.peer(&[&SMALL[..], words].concat())
}

fn vos_perf(stage: &Stage, words: &[&str]) -> Said {
    said(small(stage, words))
}

#[test]
fn the_end_of_standard_input_ends_a_run_that_asks() {
    let stage = &Stage::in_memory();
    let asks = "Type 'y|Y' to run test=UPDATE: ";
    let ended = vos_perf(stage, &["-D", ".", "-w", "-R", "U"]).code(2);
    assert!(ended.out.starts_with(asks), "{ended}");
    assert!(ended.err.contains("standard input ended"), "{ended}");
    assert_eq!(stage.list(), [] as [&str; 0]);
    // Every other character is asked about again.
    let mut command = small(stage, &["-D", ".", "-w", "-R", "U"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"nY\n").unwrap();
    let done = child.wait_with_output().unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(
        done.status.success() && out.matches(asks).count() == 2,
        "{out}"
    );
}

#[test]
fn a_signal_ends_a_run_that_asks() {
    let stage = &Stage::in_memory();
    let mut command = small(stage, &["-D", ".", "-w", "-R", "U"]);
    command.stdin(Stdio::piped());
    let running = Running::start(command);
    until("it catches signals", || running.catches_signals());
    running.signal(Signal::INT);
    let said = running.end().code(130);
    assert!(!said.out.contains("completed"), "{said}");
    assert_eq!(stage.list(), [] as [&str; 0]);
}

#[test]
fn without_times_of_operations_the_rate_is_that_of_the_phase() {
    let stage = &Stage::in_memory();
    let measured = |more: &[&str]| {
        let words = ["-P", "64M", "-d", "2000", "-a", "1", "-n", "1", "-R", "U;p"];
        crate::result(stage, &[&words[..], more].concat())
    };
    for (more, has) in [(&[][..], true), (&["--no-latency"], false)] {
        let result = measured(more);
        let phase = &result["groups"][0]["jobs"][0]["phases"][0]["measured"];
        let kind = &phase["outcome"]["workers"][0]["kinds"][0];
        assert_eq!(!kind["stages"].as_array().unwrap().is_empty(), has);
        let run = &crate::runs(&result)[0];
        assert_eq!(crate::count(run, "operation_ns") > 0, has, "{run}");
        let is_of_phase = run["busy_ns"] == kind["runtime_ns"];
        assert_eq!(is_of_phase, !has, "{run}");
    }
}

#[test]
fn an_operation_on_a_thread_of_its_own_is_named_in_the_table() {
    let stage = &Stage::in_memory();
    vos_perf(stage, &["-D", ".", "-x", "-R", "U;p V"])
        .code(0)
        .out("\tVOS (storage only running in ABT ULT)\n")
        .out("Completed test=VERIFY\n");
}

#[test]
fn a_directory_that_is_missing_is_named() {
    let stage = &Stage::in_memory();
    let missing = vos_perf(stage, &["-D", "pmem", "-R", "U"]).code(3);
    assert!(missing.err.contains("directory pmem: "), "{missing}");
    vos_perf(stage, &["-D", "./vos", "-R", "U"])
        .code(0)
        .out("\tVOS file      : ./vos0\n")
        .err("-D ./vos is no directory");
    assert_eq!(stage.list(), [] as [&str; 0]);
}
