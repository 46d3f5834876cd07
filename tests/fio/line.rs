//! The command line as fio reads it: short names, switches; kinds reported apart and together.

use crate::stage::{Said, Stage};
use crate::{entries, json};

fn said(words: &[&str]) -> Said {
    let job = ["--name=a", "--ioengine=null", "--size=64k"];
    Stage::new().peer_says(&[&["fio"], words, &job].concat())
}

#[test]
fn names_may_be_cut_where_no_other_begins_alike() {
    let report = json(&said(&["--output-f=json", "--ioen=null", "--group_r"]).code(0));
    assert_eq!(entries(&report).len(), 1);
    said(&["--versio"]).code(0).out("weir");
    let short = ["fio", "--na=b", "--ioengin", "null", "--siz=4k", "--outp=r"];
    Stage::new()
        .peer_says(&short)
        .code(1)
        .err("option '--outp=r' is ambiguous; possibilities: '--output' '--output-format'");
    let words = &["fio", "--na=b", "--ioengin", "null", "--siz=4k"];
    Stage::new().peer_says(words).code(0).out("b: (groupid=0");
    said(&["--stat=1"]).code(1).err("is ambiguous");
    // What only weir has is written out, and leaves the names of fio as short as they were.
    said(&["--showc"]).code(0).out("fio --name=a");
    said(&["--show-p"]).code(1).err("unrecognized option");
}

#[test]
fn a_switch_takes_no_value() {
    for value in ["1", "0", "x"] {
        said(&[&format!("--readonly={value}")])
            .code(1)
            .err("option '--readonly' doesn't allow an argument");
    }
    said(&["--readonly"]).code(0);
}

#[test]
fn debug_words_are_taken_and_those_without_messages_noted_in_json() {
    said(&["--debug=process,file"]).code(0).calm();
    let noted = said(&["--debug=process,nothing", "--output-format=json"])
        .code(0)
        .calm();
    let notes = json(&noted)["weir"]["notes"].to_string();
    assert!(notes.contains("--debug=process has no effect"), "{notes}");
    assert!(notes.contains("there is no word `nothing`"), "{notes}");
    said(&["--debug=parse"])
        .code(0)
        .out("handle_option=size, ptr=");
    said(&["--debug=help"]).code(0).out("zbd,all\n");
    let options = [
        "fio",
        "--parse-only",
        "--debug=parse",
        "--ss=iops:10",
        "--ss_dur=10s",
    ];
    crate::stage::Stage::new()
        .peer_says(&options)
        .code(0)
        .out("set steady state IOPS threshold to 10.000000\n");
}

#[test]
fn notes_go_to_standard_error_on_a_terminal_alone_and_into_json() {
    let noted = said(&["--thread", "--output-format=json"]).code(0).calm();
    let why = "`thread` has no effect: workers are always threads";
    assert_eq!(json(&noted)["weir"]["notes"], serde_json::json!([why]));
    said(&["--thread", "--warnings-fatal"]).code(1).err(why);
}

#[test]
fn kinds_are_reported_apart_and_together() {
    let words = ["--rw=randrw", "--unified_rw_reporting=both"];
    let text = said(&words).code(0).out;
    for line in [
        "  read: IOPS=",
        "  write: IOPS=",
        "  mixed: IOPS=",
        "   READ: bw=",
        "  MIXED: bw=",
    ] {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
    let report = json(&said(&[&words[..], &["--output-format=json"]].concat()).code(0));
    let count = |kind: &str| report["jobs"][0][kind]["total_ios"].as_u64().unwrap();
    assert_eq!(count("read") + count("write"), 16);
    assert_eq!(count("mixed"), 16);
    for (version, fields) in [("2", 202), ("3", 171), ("4", 212), ("5", 236)] {
        let terse = ["--minimal", &format!("--terse-version={version}")[..]].map(str::to_owned);
        let terse: Vec<&str> = terse.iter().map(String::as_str).collect();
        let line = said(&[&words[..], &terse].concat()).code(0).out;
        // fio's number of fields of a line with a disk; an engine without a target has none.
        let disk = if version == "2" { 0 } else { 9 };
        assert_eq!(line.trim_end().split(';').count(), fields - disk, "{line}");
    }
}
