//! Results of other programs, as weir's own.

mod slow;

use std::fs;

use serde_json::Value as Json;

use crate::stage::{Stage, has, root, skip};

/// A fixture of the crate that reads them.
fn fixture(name: &str) -> String {
    fs::read_to_string(root().join("crates/weir-import/fixtures").join(name)).unwrap()
}

#[test]
fn a_result_of_another_program_is_shown_as_it_is_and_as_it_was_stored() {
    let stage = Stage::new();
    stage.file("fio.json", fixture("fio-plus.json"));
    let shown = stage.say(&["show", "fio.json"]).code(0).calm();
    let shown = shown.out("fio-3.33, imported  fio.json").out("p99.9");
    assert!(
        !shown.out.contains("machine") && !shown.out.contains("clock"),
        "{shown}"
    );
    stage
        .say(&["import", "fio.json", "-o", "r.json"])
        .code(0)
        .silent();
    let again = stage.say(&["show", "r.json"]).code(0);
    assert_eq!(again.out, shown.out);
    let printed = stage.say(&["import", "fio", "fio.json"]).code(0);
    assert_eq!(printed.out, stage.read("r.json"));
    let stored: Json = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(stored["source"]["format"], "fio");
    let json = stage.say(&["show", "fio.json", "--format", "json"]).code(0);
    assert_eq!(json.out, printed.out);
}

#[test]
fn each_format_is_shown_by_its_file_alone() {
    let stage = Stage::new();
    for (name, says) in [
        ("fio-points.txt", "read p99 "),
        ("hyperfine.json", "12.5 ms"),
        ("hpcc-fpga.json", "bandwidth at 1024 B"),
        ("ior.txt", "write bandwidth"),
        ("mdtest.txt", "45.0 k ops/s"),
        ("io500.txt", "[INVALID]"),
        ("spdk.txt", "100 k ops/s"),
        ("vos-perf.txt", "262 k ops/s"),
        ("self-test.txt", "2.10 GB/s"),
        ("kio.yaml", "299 MB/s"),
    ] {
        stage.file(name, fixture(name));
        stage.say(&["show", name]).code(0).calm().out(says);
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_file_and_line() {
    let stage = Stage::new();
    let whole = fixture("ior.txt");
    let cut = whole.len() - 30;
    stage.file("ior.txt", &whole[..cut]);
    let lines = whole[..cut].lines().count();
    stage
        .say(&["show", "ior.txt"])
        .code(2)
        .silent()
        .err(&format!("error: ior.txt:{lines}: the text ends too early"));
    stage.file("fio.json", fixture("fio-plus.json"));
    let wrong = stage.say(&["show", "--from", "ior", "fio.json"]).code(2);
    wrong
        .silent()
        .err("error: fio.json:")
        .err("help: it was read as IOR");
    stage
        .say(&["show", "--from=foi", "fio.json"])
        .code(2)
        .err("did you mean `fio`?");
    stage.say(&["import", "none.json"]).code(2).err("none.json");
    let other = stage.say(&["show", "fio.json", "--as", "fio"]).code(2);
    other.silent().err("another program measured it");
}

#[test]
fn what_is_no_result_is_named_with_what_to_do() {
    let stage = Stage::new();
    stage.file("text", "hello\n");
    stage.file("bytes", b"\x7fELF\xff\xfe");
    stage.file("empty.json", "{}");
    stage.file("q.fio", "[a]\nioengine=null\nrw=read\nsize=4k\n");
    let plan = stage.say(&["run", "--show-plan", "q.fio"]).code(0).out;
    stage.file("plan.json", plan);
    for verb in ["import", "show", "report"] {
        let refused = |file: &str| stage.say(&[verb, file]).code(2).silent();
        refused("text")
            .err("error: text: it is no stored result")
            .err("fio, hyperfine, ")
            .err("`weir import csv text --column");
        refused("bytes")
            .err("error: bytes: it is no text")
            .err("fio, hyperfine, ");
        refused("empty.json").err("has no `schema`");
        refused("q.fio")
            .err("it is no stored result; a job file?")
            .err("`weir compare --run`");
        refused("plan.json")
            .err("it is a stored plan, no result")
            .err("`weir run --store-result r.json plan.json`");
    }
    for (words, why, help) in [
        ("import fioo text", "hlog, csv;", "did you mean `fio`?"),
        ("show --from csv text", "`weir import csv FILE", "alone"),
        ("import hyperfine bytes", "no text", "wanted is hyperfine"),
        ("import csv text --column a=b", "text:1: ", "read as CSV"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        stage.say(&words).code(2).silent().err(why).err(help);
    }
    stage.file("fio.json", fixture("fio-plus.json"));
    let wrong = stage.say(&["import", "hyperfine", "fio.json"]).code(2);
    wrong
        .err("it was read as hyperfine, --export-json; it seems to be `fio`: ")
        .silent();
}

#[test]
fn columns_of_any_csv_are_figures() {
    let stage = Stage::new();
    stage.file("f.csv", "t,ops,lat\n1,100,5\n2,300,7\n");
    let words = [
        "import",
        "csv",
        "f.csv",
        "--column",
        "rate=ops:ops/s",
        "--column=mean=lat:us",
    ];
    let said = stage.say(&[&words[..], &["-o", "r.json"]].concat());
    said.code(0).calm().silent();
    let shown = stage.say(&["show", "r.json"]).code(0).calm();
    shown
        .out("csv, imported  f.csv")
        .out("200 ops/s")
        .out("6.00 µs");
    let refused = stage.say(&["import", "csv", "f.csv", "--column", "rate=opps"]);
    refused
        .code(2)
        .silent()
        .err("f.csv:1: no column is called `opps`");
}

#[test]
fn an_import_neither_replaces_its_file_nor_takes_a_result_of_weir() {
    let stage = Stage::new();
    let text = fixture("hyperfine.json");
    stage.file("h.json", &text);
    stage
        .say(&["import", "h.json", "-o", "./h.json"])
        .code(2)
        .err("would be lost");
    assert_eq!(stage.read("h.json"), text);
    stage.say(&["import", "h.json", "-o", "r.json"]).code(0);
    let again = stage.say(&["import", "hyperfine", "r.json"]).code(2);
    again.silent().err("r.json");
}
