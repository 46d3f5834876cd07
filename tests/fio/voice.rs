//! fio's command line by the verb: weir's report and exit codes, the flags of the house.

use std::process::Command;

use serde_json::Value;

use crate::stage::{Said, Stage, said};

const JOB: &[&str] = &["--name=a", "--ioengine=null", "--size=64k"];

fn by_verb(stage: &Stage, words: &[&str]) -> Said {
    stage.say(&[&["fio"], JOB, words].concat())
}

#[test]
fn by_the_verb_it_is_weirs_report_with_the_codes_of_the_house() {
    let stage = Stage::new();
    let report = by_verb(&stage, &[]).code(0).calm();
    report.out("weir 0.1.0  fio ").out("instrument  ");
    by_verb(&stage, &["--zork"]).code(2).err("--zork");
    let wrong = by_verb(&stage, &["--rw=wrte"]).code(2).silent();
    assert!(!wrong.err.contains("fio: failed parsing"), "{wrong}");
    let cannot = ["--ioengine=psync", "--allow_file_create=0"];
    by_verb(&stage, &cannot).code(2).silent().err("error: a: ");
    let full = ["--ioengine=psync", "--filename=/dev/full", "--rw=write"];
    by_verb(&stage, &full).code(1).out("No space left");
    let peer = by_verb(&stage, &["--voice=peer"]).code(0).calm();
    peer.out("a: (groupid=0, jobs=1): err= 0");
    by_verb(&stage, &["--voice=peer", "--rw=wrte"]).code(1);
    let idle = by_verb(&stage, &["--exit=unix", "--eta=always"]).code(0);
    idle.err("--exit has no effect").err("--eta has no effect");
}

#[test]
fn a_form_that_fios_own_flags_name_is_printed_by_the_verb_and_changes_no_code() {
    let stage = Stage::new();
    let json = by_verb(&stage, &["--output-format=json"]).code(0).calm();
    let report: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["jobs"][0]["error"], 0);
    by_verb(&stage, &["--minimal"]).code(0).out("3;weir-");
    let failing = [
        "--minimal",
        "--filename=/dev/full",
        "--ioengine=psync",
        "--rw=write",
        "--numjobs=3",
    ];
    by_verb(&stage, &failing).code(1);
    stage.peer_says(&[&["fio"], JOB, &failing].concat()).code(3);
    let both = by_verb(&stage, &["--minimal", "--format=json"]).code(2);
    both.silent()
        .err("--format json is a form of weir's report");
}

#[test]
fn the_file_of_output_holds_the_text_of_the_voice() {
    let stage = Stage::new();
    let to_file = ["--output=r", "--format=json"];
    by_verb(&stage, &to_file).code(0).silent().calm();
    let result: Value = serde_json::from_str(&stage.read("r")).unwrap();
    assert_eq!(result["plan"]["voice"], "weir");
    let both = ["--output=p", "--weir-output=r.json", "--voice=peer"];
    by_verb(&stage, &both).code(0).silent().calm();
    assert!(stage.read("p").contains("Run status group 0"));
    assert!(stage.read("r.json").contains("\"weir.result."));
    let same = ["--output=x.json", "--weir-output=x.json"];
    by_verb(&stage, &same).code(2).silent().err("x.json");
}

#[test]
fn the_house_repeats_checks_and_keeps_its_runs() {
    let stage = Stage::new();
    by_verb(&stage, &["--repeat=2"])
        .code(0)
        .out("between 2 runs");
    let words = ["fio", "--repeat", "2", "--minimal"];
    let twice = stage.peer_says(&[&words, JOB].concat()).code(0);
    assert_eq!(twice.out.matches("3;weir-").count(), 2, "{twice}");
    twice.err("between 2 runs");
    by_verb(&stage, &["--dry-run"])
        .code(0)
        .out("would run: a (null)");
    let keeping = |mut command: Command| {
        command.env_remove("WEIR_HISTORY");
        command.env("XDG_STATE_HOME", stage.path("state"));
        said(command).code(0)
    };
    let live = keeping(stage.weir(&[&["fio"], JOB].concat()));
    keeping(stage.peer(&[&["fio"], JOB].concat()));
    let again = keeping(stage.weir(&["show", "@-1"]));
    assert_eq!(again.out, live.out);
}

#[test]
fn a_trigger_ends_a_run_in_weirs_voice_too() {
    let stage = Stage::new();
    stage.file("now", "");
    let endless = ["--rate_iops=500", "--time_based", "--runtime=600"];
    let trigger = ["--trigger-file=now", "--trigger=echo pulled > mark"];
    let said = by_verb(&stage, &[&endless[..], &trigger].concat()).code(0);
    said.out("instrument  ");
    assert_eq!(stage.read("mark"), "pulled\n");
}
