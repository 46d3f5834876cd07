//! Notes about options without effect: on a terminal, and in the JSON.

use crate::stage::{Said, Stage, has, peer, said, skip};
use crate::{entries, json};

const JOB: &[&str] = &["--name=a", "--ioengine=null", "--size=64k"];

fn notes(said: &Said) -> Vec<String> {
    let notes = &json(said)["weir"]["notes"];
    let notes = notes.as_array().into_iter().flatten();
    notes
        .map(|note| note.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn programs_read_of_idle_options_and_flags_in_the_json_alone() {
    let idle = [
        "--rate_process=poisson",
        "--thread",
        "--verifysort=1",
        "--max-jobs=4",
        "--trigger=true",
        "--output-format=json",
    ];
    let said = Stage::new().peer_says(&[&["fio"], JOB, &idle].concat());
    let said = said.code(0).calm();
    assert_eq!(
        notes(&said),
        [
            "--max-jobs has no effect: the number of jobs is not limited",
            "--trigger has no effect: it acts only with `--trigger-file` or `--trigger-timeout`",
            "`thread` has no effect: workers are always threads",
            "`verifysort` has no effect: fio 3.33 has dropped it too",
            "`rate_process` has no effect in a: it acts only with `rate` or `rate_iops`",
        ]
    );
    let acting = [
        "--rate_process=poisson",
        "--rate=100m",
        "--output-format=json",
    ];
    let said = Stage::new().peer_says(&[&["fio"], JOB, &acting].concat());
    assert_eq!(notes(&said.code(0).calm()), Vec::<String>::new());
}

#[test]
fn on_a_terminal_a_line_says_it() {
    if !has("script") {
        return skip("notes on a terminal", "no script");
    }
    let stage = Stage::new();
    let mut command = stage.command("script");
    let words = [&[peer("fio")], JOB, &["--rate_process=poisson"]]
        .concat()
        .join(" ");
    command.args(["-qec", &format!("{words} --eta=never"), "/dev/null"]);
    said(command)
        .code(0)
        .out("note: `rate_process` has no effect in a: it acts only with `rate` or `rate_iops`");
}

#[test]
fn notes_that_are_fatal_are_told_everywhere() {
    let words = ["--warnings-fatal", "--rate_process=poisson"];
    let said = Stage::new().peer_says(&[&["fio"], JOB, &words].concat());
    said.code(1)
        .silent()
        .err("note: `rate_process` has no effect");
}

#[test]
fn weir_run_notes_it_always() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nioengine=null\nsize=64k\nlatency_window=1s\n");
    for words in [&["run", "j.fio"][..], &["run", "--format=json", "j.fio"]] {
        stage
            .say(words)
            .code(0)
            .err("note: `latency_window` has no effect in a: it acts only with `latency_target`");
    }
}

/// The disks that a report has counters of.
fn disks(words: &[&str]) -> usize {
    let file = [
        "--name=a",
        "--filename=f",
        "--size=64k",
        "--output-format=json",
    ];
    let said = Stage::new().peer_says(&[&["fio"], &file[..], words].concat());
    let report = json(&said.code(0));
    assert_eq!(entries(&report).len(), 1);
    report["disk_util"].as_array().map_or(0, Vec::len)
}

#[test]
fn disks_are_left_out_where_they_are_not_wanted() {
    if disks(&[]) == 0 {
        return skip("disk_util", "the test's directory lies on no disk");
    }
    assert_eq!(disks(&["--disk_util=0"]), 0);
    assert!(disks(&["--disk_util=1"]) > 0);
}

#[test]
fn letters_stand_for_help_and_version() {
    Stage::new()
        .peer_says(&["fio", "-h"])
        .code(0)
        .out("--showcmd");
    Stage::new().peer_says(&["fio", "-v"]).code(0).out("weir ");
}
