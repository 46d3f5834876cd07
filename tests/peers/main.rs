//! Beside fio itself on this machine, and every job file of `examples/fio`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod allowed;
mod beside;
mod differ;
mod engines;
mod examples;
mod founding;
mod generate;
mod generated;
mod grammar;
mod left;
mod logs;
mod missed;
mod narrow;
mod order;
mod planted;
mod random;
mod reasons;
mod sections;
#[path = "../stage/mod.rs"]
mod stage;
mod stricter;
mod verify;

use std::collections::BTreeSet;

use serde_json::Value;
use stage::{Stage, has, said, skip};

/// Every path of keys in a document; members of lists are one.
fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                paths(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(members) => {
            for value in members {
                paths(value, &format!("{at}/[]"), found);
            }
        }
        _ => {
            found.insert(at.to_owned());
        }
    }
}

fn all_paths(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    paths(value, "", &mut found);
    found
}

const JOB: &str = "[global]
ioengine=null
size=1m
description=as fio says it
[mixed]
rw=randrw
bs=4k
[deep]
stonewall
rw=randread
iodepth=4
";

#[test]
fn json_has_every_key_of_fios_and_more_only_under_one() {
    if !has("fio") {
        return skip("json_has_every_key_of_fios", "no fio");
    }
    let stage = Stage::new();
    stage.file("j.fio", JOB);
    let mut command = stage.command("fio");
    command.args(["--output-format=json", "j.fio"]);
    let theirs = said(command).code(0);
    // fio prints notes before its document.
    let document = theirs.out.find('{').unwrap();
    let theirs: Value = serde_json::from_str(&theirs.out[document..]).unwrap();
    let ours = stage
        .peer_says(&["fio", "--output-format=json", "j.fio"])
        .code(0);
    let ours: Value = serde_json::from_str(&ours.out).unwrap();
    let (their_keys, our_keys) = (all_paths(&theirs), all_paths(&ours));
    let missing: Vec<_> = their_keys.difference(&our_keys).collect();
    assert_eq!(
        missing,
        Vec::<&String>::new(),
        "fio's keys that are missing"
    );
    // fio 3.33 leaves options out that stand without a value.
    let own = |key: &&String| !key.starts_with("/weir/") && !key.ends_with("/stonewall");
    let extra: Vec<_> = our_keys.difference(&their_keys).filter(own).collect();
    assert_eq!(extra, Vec::<&String>::new(), "keys that fio does not have");
    for (ours, theirs) in ["/jobs/0", "/jobs/1"]
        .map(|p| (ours.pointer(p), theirs.pointer(p)))
        .map(|(o, t)| (o.unwrap(), t.unwrap()))
    {
        for key in ["jobname", "groupid", "error", "desc"] {
            assert_eq!(ours[key], theirs[key], "{key}");
        }
        for (key, value) in theirs["job options"].as_object().unwrap() {
            assert_eq!(&ours["job options"][key], value, "{key}");
        }
        let total = |job: &Value| {
            ["read", "write"]
                .map(|k| job[k]["io_bytes"].as_u64().unwrap())
                .iter()
                .sum::<u64>()
        };
        assert_eq!(total(ours), total(theirs));
    }
}

#[test]
fn the_normal_report_has_fios_kinds_of_lines_in_fios_order() {
    if !has("fio") {
        return skip("the_normal_report_has_fios_kinds_of_lines", "no fio");
    }
    let stage = Stage::new();
    stage.file("j.fio", JOB);
    let mut command = stage.command("fio");
    command.arg("j.fio");
    let theirs = kinds(&said(command).code(0).out);
    let ours = kinds(
        &stage
            .peer_says(&["fio", "--compat-banner", "j.fio"])
            .code(0)
            .out,
    );
    assert_eq!(ours, theirs);
}

/// The word each line begins with; lines whose number depends on speed and notes, which weir
/// prints on standard error, are left out.
fn kinds(text: &str) -> Vec<String> {
    let varying = ["|", "lat (", "bw (", "iops ", "note:"];
    text.lines()
        .map(str::trim_start)
        .filter(|l| !varying.iter().any(|v| l.starts_with(v)))
        .map(|l| l.split(['=', ':', '(']).next().unwrap().trim().to_owned())
        .map(|l| {
            if l.starts_with("Starting") {
                l.replace("processes", "threads")
            } else {
                l
            }
        })
        .collect()
}
