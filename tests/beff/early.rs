//! Runs that end before their time, by a rank that fails or by a signal: what was measured before
//! is kept.

mod slow;

use rustix::process::Signal;
use serde_json::Value as Json;

use crate::slow::launchers::under;
use crate::stage::ranks::{RankProcesses, rank_of};
use crate::stage::{Running, Said, Stage, catches_signals, each_launcher, said, skip, until};
use crate::{beff, has, table};

/// A size of 2^12 bytes that is over soon, then one of 2^6 bytes that is not.
pub(crate) const LONG: &str = "--sizes 12,6 -o 6 -d 1 -u 4000000000 -l 4 -n 2 --dump-json o.json";

/// One size of two: its row, the verdict, the stored result.
#[track_caller]
pub(crate) fn has_one_of_two(stage: &Stage, said: &Said) {
    let rows = table(&said.out);
    assert_eq!((rows.len(), rows[0][0].as_str()), (1, "4096"), "{said}");
    // A launcher that has ended a rank may say so below.
    let message = |line: &&str| *line == "INCOMPLETE: 1 of 2 sizes were measured";
    assert_eq!(said.out.lines().filter(message).count(), 1, "{said}");
    let json: Json = serde_json::from_str(&stage.read("o.json")).unwrap();
    assert_eq!(json["weir"]["complete"], false);
    assert_eq!(json["validated"], false);
    assert_eq!(json["results"], serde_json::json!({}));
    let sizes: Vec<_> = json["timings"].as_object().unwrap().keys().collect();
    assert_eq!(sizes, ["12"]);
}

/// A run over channel files in `D`, which is at its second size.
pub(crate) fn at_the_second_size(stage: &Stage, words: &str) -> Running {
    std::fs::create_dir(stage.path("D")).unwrap();
    let words =
        format!("Network_intel --comm-type file --channel-dir D --keep-channels {words} {LONG}");
    let words: Vec<_> = words.split_whitespace().collect();
    let running = Running::start(stage.peer(&words));
    let channel = stage.path("D/rank0/kernel_output_ch0");
    until("messages of the second size are on their way", || {
        let mut byte = [0];
        let file = std::fs::File::open(&channel);
        let read = file.and_then(|mut file| std::io::Read::read(&mut file, &mut byte));
        read.is_ok_and(|n| n == 1) && byte == [6]
    });
    running
}

#[test]
fn a_rank_that_fails_leaves_the_sizes_before() {
    for (words, message) in [
        (
            "--comm-type shm --inject stall:rank=1,size=6,after=2",
            "stalled on purpose",
        ),
        (
            "--comm-type tcp --inject die:rank=1,size=6,after=2",
            "rank 1",
        ),
        (
            "--comm-type udp --spawn procs --inject die:rank=1,size=6,after=2",
            "rank 1",
        ),
    ] {
        let stage = Stage::new();
        let said = beff(&stage, &format!("--ranks 2 {words} {LONG} --timeout 1"))
            .code(1)
            .err(message)
            .err("messages of 64 B");
        has_one_of_two(&stage, &said);
    }
}

#[test]
fn a_signal_leaves_the_sizes_before() {
    for spawn in ["threads", "procs"] {
        let stage = Stage::new();
        if !has(&stage, "file") {
            return skip("an interrupt", "no transport file");
        }
        let running = at_the_second_size(&stage, &format!("--ranks 2 --spawn {spawn}"));
        running.signal(Signal::INT);
        let said = running
            .end()
            .code(130)
            .err("interrupted by SIGINT: 1 of 2 sizes were measured\n");
        has_one_of_two(&stage, &said);
    }
}

#[test]
fn a_signal_to_another_rank_ends_all() {
    let stage = Stage::new();
    if !has(&stage, "file") {
        return skip("an interrupted rank", "no transport file");
    }
    // Nobody waits for the time-out.
    let running = at_the_second_size(&stage, "--ranks 3 --spawn procs --timeout 3600");
    rustix::process::kill_process(running.children()[1], Signal::TERM).unwrap();
    let said = running
        .end()
        .code(143)
        .err("interrupted by SIGTERM: 1 of 2 sizes were measured\n");
    has_one_of_two(&stage, &said);
}

#[test]
fn a_rank_that_is_killed_leaves_the_sizes_before() {
    let stage = Stage::new();
    if !has(&stage, "file") {
        return skip("a killed rank", "no transport file");
    }
    // Nobody waits for the time-out.
    let running = at_the_second_size(&stage, "--ranks 3 --spawn procs --timeout 3600");
    let [rank, _] = running.children()[..] else {
        panic!("two processes beside rank 0");
    };
    rustix::process::kill_process(rank, Signal::KILL).unwrap();
    let said = running
        .end()
        .code(1)
        .err("error: rank 0, messages of 64 B")
        .err("rank 1 is gone: its process ")
        .err(" was ended by signal 9\n");
    has_one_of_two(&stage, &said);
}

#[test]
fn a_signal_before_the_first_size_is_told_in_a_line() {
    let stage = Stage::new();
    if !has(&stage, "file") {
        return skip("an interrupt", "no transport file");
    }
    std::fs::create_dir(stage.path("D")).unwrap();
    let words = "Network_intel --comm-type file --channel-dir D --keep-channels --sizes 6,7 -u 16 -l 16 -n 1000000 \
                 --dump-json o.json";
    let words: Vec<_> = words.split_whitespace().collect();
    let running = Running::start(stage.peer(&words));
    let channel = stage.path("D/kernel_output_ch0");
    until("messages are on their way", || {
        std::fs::metadata(&channel).is_ok_and(|m| m.len() > 0)
    });
    running.signal(Signal::INT);
    let said = running.end().code(130).silent();
    let message = "interrupted by SIGINT before any size was measured\n";
    assert_eq!(said.err, message, "{said}");
    let json: Json = serde_json::from_str(&stage.read("o.json")).unwrap();
    assert_eq!(json["weir"]["complete"], false);
    assert_eq!(json["timings"], serde_json::json!({}));
}

#[test]
fn sizes_that_the_time_did_not_reach_are_told() {
    let stage = Stage::new();
    let said = beff(&stage, "--ranks 2 -n 2 -u 4 -l 4 -m 2 --max-time 0.000001")
        .code(0)
        .err("1 of 3 sizes")
        .out("INCOMPLETE: 1 of 3 sizes were measured");
    assert!(
        !said.out.contains("b_eff") && !said.out.contains("SUCCESS"),
        "{said}"
    );
}

#[test]
fn a_warm_up_ends_with_the_time() {
    let stage = Stage::new();
    for spawn in ["threads", "procs"] {
        let words = "--ranks 2 -n 1 -u 1 -l 1 -m 2 --warmup 4000000000 --max-time 0.2";
        beff(&stage, &format!("{words} --spawn {spawn}"))
            .code(0)
            .err("1 of 3 sizes")
            .err(" of 4000000000 exchanges warmed up for messages of 1 B");
    }
    let all = "--ranks 2 -n 1 -u 1 -l 1 -m 2 --warmup 3 --max-time 1000";
    let said = beff(&stage, all).code(0);
    assert!(!said.err.contains("warmed up"), "{said}");
}

#[test]
fn a_rank_that_stands_still_in_the_warm_up_is_noticed() {
    let stage = Stage::new();
    let words =
        "Network_intel --ranks 2 --spawn procs --timeout 1 --warmup 4000000000 -u 1 -l 1 -m 2";
    let words: Vec<_> = words.split_whitespace().collect();
    let ranks = RankProcesses::of(Running::start(stage.peer(&words)), 2);
    let said = ranks.end_without(1).code(1);
    said.err("rank 1 does not answer");
}

#[test]
fn a_signal_ends_the_wait_for_a_reader_of_the_result() {
    let stage = Stage::new();
    let mut command = stage.command("mkfifo");
    command.arg("pipe");
    said(command).code(0);
    let words = "Network_intel --ranks 2 -u 8 -l 8 -m 4 -n 2 --dump-json pipe";
    let running = Running::start(stage.peer(&words.split(' ').collect::<Vec<_>>()));
    // The first may still find it measuring.
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(700));
        running.signal(Signal::TERM);
    }
    running.end().code(143).silent();
}
