//! Help that ships: pages of the manual, completions of shells.

mod slow;

use std::process::{Command, Stdio};

use crate::stage::{Stage, has, skip};

/// The verbs of `weir --help`.
fn verbs(stage: &Stage) -> Vec<String> {
    let page = stage.say(&["--help"]).code(0).out;
    let (_, list) = page.split_once("Usage: weir VERB").unwrap();
    let list = list.lines().skip(2).take_while(|line| !line.is_empty());
    // A long call has its purpose on the next line.
    let calls = list.filter(|line| !line.starts_with("   "));
    let verbs = calls.filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<String> = verbs.filter(|v| *v != "help").map(str::to_owned).collect();
    assert!(verbs.len() > 5, "{page}");
    verbs
}

/// Long options that a page of help lists: their lines are indented less than what is said of them.
fn flags(page: &str) -> Vec<String> {
    let is_option = |line: &&str| {
        let text = line.trim_start();
        text.starts_with('-') && line.len() - text.len() <= 6
    };
    let lines = page.lines().filter(is_option);
    let words = lines.flat_map(|line| line.trim().split([' ', ',', '=', '[']).take(4));
    let is_flag = |word: &&str| word.starts_with("--") && word.len() > 3;
    let mut all: Vec<String> = words.filter(is_flag).map(str::to_owned).collect();
    all.dedup();
    all
}

/// True if a flag stands in a text, and not only a longer one that begins like it.
fn names(text: &str, flag: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut after = text
        .match_indices(flag)
        .map(|(at, _)| &text[at + flag.len()..]);
    after.any(|rest| !rest.starts_with(goes_on))
}

#[test]
fn every_flag_of_every_verb_is_on_its_page_and_among_the_completions() {
    let stage = Stage::new();
    let script = stage.say(&["completions", "bash"]).code(0).calm().out;
    for verb in verbs(&stage) {
        let help = stage.say(&[&verb, "--help"]).code(0).calm().out;
        let page = stage.say(&["man", &verb]).code(0).calm().out;
        // A dash is written so on pages.
        let page = page.replace("\\-", "-");
        for flag in flags(&help) {
            assert!(names(&page, &flag), "weir {verb} {flag}:\n{page}");
            assert!(names(&script, &flag), "weir {verb} {flag}");
        }
    }
}

#[test]
fn pages_replace_those_of_an_older_weir_and_unwritable_places_are_refused() {
    let stage = Stage::new();
    for _ in 0..2 {
        stage.say(&["man", "--all", "m"]).code(0).calm();
    }
    assert!(stage.read("m/weir-run.1").contains("weir-run"));
    stage.file("no", "");
    stage
        .say(&["man", "--all", "no"])
        .code(2)
        .silent()
        .err("no");
    stage
        .say(&["man", "rnu"])
        .code(2)
        .silent()
        .err("did you mean `weir man run`?");
    stage
        .say(&["completions", "csh"])
        .code(2)
        .silent()
        .err("bash, zsh, fish");
}
