//! Whose text is printed: weir's by the verb, the peer's by its name and where its own options ask for a form.

use crate::servers::split;
use crate::stage::{Said, Stage, said};
use crate::{GOLDEN, quiet, selftest};

const SHORT: &str = "--transport null -e 0:0 -s 0 -r 1000 --warmup 0";

fn by_verb(stage: &Stage, words: &str) -> Said {
    let words = split(words);
    said(quiet(stage.weir(&[&["selftest"], &words[..]].concat())))
}

#[test]
fn by_its_verb_it_is_weirs_report_and_kept() {
    let stage = &Stage::new();
    let words = format!("{SHORT} --store-result r.json --weir-output r.md --history h.db");
    let report = by_verb(stage, &words).code(0).out("from 1:0");
    assert!(!report.out.contains("Self Test"), "{report}");
    assert!(stage.read("r.md").contains("0-EMPTY 0-EMPTY"));
    let listed = stage.say(&split("history list --history h.db")).code(0);
    listed.out("selftest");
    stage.say(&["show", "r.json"]).code(0).out("from 1:0");
    let peers = stage.say(&split("show r.json --voice peer")).code(0);
    peers
        .out("Self Test Parameters:\n")
        .out("Master Endpoint 1:0\n");
    // A form of the peer's is printed in either voice.
    let rows = by_verb(stage, &format!("{SHORT} --output csv --history off")).code(0);
    rows.out("send_bytes,send_kind,");
    let text = by_verb(stage, &format!("{SHORT} --voice peer --history off")).code(0);
    text.out("Self Test Parameters:\n")
        .out("\tRPC Failures: 0\n");
}

#[test]
fn several_runs_and_a_dry_run_are_those_of_the_house() {
    let stage = &Stage::new();
    by_verb(stage, &format!("{SHORT} --dry-run"))
        .code(0)
        .out("would run: 0-EMPTY 0-EMPTY (");
    let words = format!("{SHORT} --repeat 2 --history off");
    let report = by_verb(stage, &words).code(0);
    assert!(!report.out.contains("Self Test"), "{report}");
    let peers = selftest(stage, &split(&words)).code(0);
    assert_eq!(peers.out.matches("Master Endpoint 1:0\n").count(), 2);
    // The summary of both.
    peers.err("2 runs");
}

#[test]
fn by_its_verb_exit_codes_are_weirs() {
    let stage = &Stage::new();
    let words = format!("{SHORT} --history off --find-max 'p50<1ns'").replace("1000", "10");
    let none = by_verb(stage, &words).code(1);
    none.out("per second\n").out("rpc failures  0\n");
    let kept = by_verb(stage, &words.replace("1ns", "1s"));
    kept.code(0).out("highest rate  ");
    stage.file("s", GOLDEN.to_owned() + "# exit=3\n");
    by_verb(stage, "--replay s").code(3).out("from 1:0");
    let cart = |name: &str| {
        let mut command = match name {
            "self_test" => quiet(stage.peer(&[name, "--bogus"])),
            verb => quiet(stage.weir(&[verb, "--bogus"])),
        };
        command.env("WEIR_COMPAT_EXIT", "cart");
        said(command)
    };
    cart("self_test").code(21);
    cart("selftest").code(2);
}
