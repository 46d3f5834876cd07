//! fio by its name, as a user of fio sees it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod acceptance;
mod acceptance_words;
mod card;
mod dma;
mod engines;
mod line;
mod logs;
mod notes;
mod reports;
#[path = "../stage/mod.rs"]
mod stage;
mod steer;
mod verify;
mod verify_plans;
mod voice;

use std::os::unix::fs::symlink;

use serde_json::Value;
use stage::{Said, Stage, masked, root, said};

const GROUPS: &str = "[global]
ioengine=null
rw=read
bs=64k
size=1m
[load]
numjobs=2
[check]
wait_for=load
rw=write
new_group
[after]
stonewall
rw=randrw
";

/// The text with everything masked that differs from run to run: numbers with their units, dates,
/// and the lines whose number depends on speed.
fn shape(text: &str) -> String {
    let varies = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with('|')
            && !line.starts_with("lat (nsec)  ")
            && !line.starts_with("lat (usec)  ")
            && !line.starts_with("lat (msec)  ")
    };
    let mut out = String::new();
    for line in text.lines().filter(varies) {
        let line = line
            .replace("nsec", "T")
            .replace("usec", "T")
            .replace("msec", "T");
        let line = match line.split_once(": pid=") {
            Some((head, _)) => format!("{head}: pid=# DATE"),
            None => line,
        };
        let mut after_number = false;
        for c in masked(&line).chars() {
            after_number &= c.is_alphabetic() || "%/".contains(c);
            if !after_number {
                out.push(c);
            }
            after_number |= c == '#';
        }
        out.push('\n');
    }
    while out.contains("  ") {
        out = out.replace("  ", " ");
    }
    out.replace("= #", "=#")
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}\n{said}"))
}

/// Name, group, error and bytes of each entry.
fn entries(report: &Value) -> Vec<(String, u64, u64, [u64; 3])> {
    let entry = |job: &Value| {
        let bytes = |kind: &str| job[kind]["io_bytes"].as_u64().unwrap();
        (
            job["jobname"].as_str().unwrap().to_owned(),
            job["groupid"].as_u64().unwrap(),
            job["error"].as_u64().unwrap(),
            [bytes("read"), bytes("write"), bytes("trim")],
        )
    };
    report["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(entry)
        .collect()
}

const MIB: u64 = 1 << 20;

#[test]
fn groups_waits_and_barriers_come_out_as_entries_in_file_order() {
    let stage = Stage::new();
    stage.file("j.fio", GROUPS);
    let words = [
        "fio",
        "--output-format=json",
        "--store-result=r.json",
        "j.fio",
    ];
    let report = json(&stage.peer_says(&words).code(0));
    let entries = entries(&report);
    let names: Vec<_> = entries.iter().map(|e| (e.0.as_str(), e.1)).collect();
    assert_eq!(
        names,
        [("load", 0), ("load", 0), ("check", 1), ("after", 2)]
    );
    assert_eq!(entries[0].3, [MIB, 0, 0]);
    assert_eq!(entries[2].3, [0, MIB, 0]);
    let [read, write, trim] = entries[3].3;
    assert_eq!((read + write, trim), (MIB, 0));
    // `check` began when both of `load` had ended, `after` when `check` had.
    let stored: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let groups = stored["groups"].as_array().unwrap().iter();
    let jobs: Vec<&Value> = groups.flat_map(|g| g["jobs"].as_array().unwrap()).collect();
    let spans: Vec<_> = jobs.iter().map(|job| span_of(job)).collect();
    assert_eq!(spans.len(), 3, "{stored:#}");
    assert!(spans.windows(2).all(|p| p[0].1 <= p[1].0), "{spans:?}");
}

/// When a job began and ended.
fn span_of(job: &Value) -> (u64, u64) {
    let at = |end: &str| job["span"][end].as_u64().unwrap();
    (at("start_ns"), at("end_ns"))
}

#[test]
fn the_normal_report_has_fios_lines_in_fios_order() {
    let stage = Stage::new();
    stage.file("j.fio", GROUPS);
    let said = stage.peer_says(&["fio", "j.fio"]).code(0).calm();
    insta::assert_snapshot!(shape(&said.out));
}

#[test]
fn a_grouped_report_has_one_entry_for_each_group() {
    let stage = Stage::new();
    stage.file(
        "j.fio",
        GROUPS.replace("size=1m", "size=1m\ngroup_reporting"),
    );
    let said = stage
        .peer_says(&["fio", "--compat-banner", "j.fio"])
        .code(0)
        .calm();
    insta::assert_snapshot!(shape(&said.out));
}

#[test]
fn parse_only_prints_nothing_and_runs_nothing() {
    let stage = Stage::new();
    stage.file("j.fio", "[w]\nfilename=data\nrw=write\nsize=1m\n");
    stage
        .peer_says(&["fio", "--parse-only", "j.fio"])
        .code(0)
        .silent()
        .calm();
    assert_eq!(stage.list(), ["j.fio"]);
    stage.file("bad.fio", "[w]\nrw=wrte\n");
    stage
        .peer_says(&["fio", "--parse-only", "bad.fio"])
        .code(1)
        .silent()
        .err("bad.fio:2:4")
        .err("fio: failed parsing rw=wrte")
        .err("fio: job w dropped");
}

#[test]
fn showcmd_prints_words_that_give_the_same_run() {
    let stage = Stage::new();
    stage.file("j.fio", GROUPS);
    let shown = stage
        .peer_says(&["fio", "--showcmd", "j.fio"])
        .code(0)
        .calm()
        .out;
    assert!(
        shown.starts_with(
            "fio --ioengine=null --rw=read --bs=64k --size=1m --name=load --numjobs=2 --name=check "
        ),
        "{shown}"
    );
    let direct = json(
        &stage
            .peer_says(&["fio", "--output-format=json", "j.fio"])
            .code(0),
    );
    let words = shown.split_whitespace().chain(["--output-format=json"]);
    let again = json(&stage.peer_says(&words.collect::<Vec<_>>()).code(0));
    assert_eq!(entries(&again), entries(&direct));
}

#[test]
fn a_link_named_fio_is_the_fio_door() {
    let stage = Stage::new();
    stage
        .peer_says(&[
            "fio",
            "--name=a",
            "--ioengine=null",
            "--size=1m",
            "--rw=randread",
        ])
        .code(0)
        .out("a: (groupid=0, jobs=1): err= 0");
    stage
        .peer_says(&["fio", "--version"])
        .code(0)
        .out("(job language fio-3.33)");
}

#[test]
fn sections_are_picked_by_name() {
    let stage = Stage::new();
    stage.file("j.fio", GROUPS);
    let words = ["fio", "--section=after", "--output-format=json", "j.fio"];
    let entries = entries(&json(&stage.peer_says(&words).code(0)));
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].0, "after");
    stage
        .peer_says(&["fio", "--section=check", "j.fio"])
        .code(1)
        .silent()
        .err("check: waitee job load unknown.");
    stage
        .peer_says(&["fio", "--section=global", "j.fio"])
        .code(1)
        .err("fio: can't use global as only section");
    stage
        .peer_says(&["fio", "--section=nobody", "j.fio"])
        .code(1)
        .err("No job(s) defined");
}

#[test]
fn wait_for_errors_have_fios_sentences() {
    let stage = Stage::new();
    let two = "[global]\nioengine=null\nsize=1m\n[a]\n[a]\n";
    for (text, sentence) in [
        (
            "[a]\nioengine=null\nsize=1m\nwait_for=a\n",
            "a: a job cannot wait for itself (wait_for=a).",
        ),
        (
            "[a]\nioengine=null\nsize=1m\nwait_for=b\n",
            "a: waitee job b unknown.",
        ),
        (
            &format!("{two}[c]\nwait_for=a\n"),
            "c: multiple waitees a found,",
        ),
    ] {
        stage.file("j.fio", text);
        stage
            .peer_says(&["fio", "j.fio"])
            .code(1)
            .silent()
            .err(sentence);
        stage.say(&["run", "j.fio"]).code(2).silent().err("j.fio");
    }
}

#[test]
fn readonly_refuses_with_fios_sentences() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nfilename=data\nsize=64k\nrw=write\n");
    stage
        .peer_says(&["fio", "--readonly", "j.fio"])
        .code(1)
        .silent()
        .err("fio: job <a> has write or trim bit set, but fio is in read-only mode")
        .err("fio: failed parsing rw=write")
        .err("fio: job a dropped");
    assert_eq!(stage.list(), ["j.fio"]);
}

#[test]
fn output_goes_to_the_file_and_only_there() {
    let stage = Stage::new();
    stage.file("j.fio", GROUPS);
    stage
        .peer_says(&["fio", "--output=r.txt", "j.fio"])
        .code(0)
        .silent()
        .calm();
    let normal = stage.peer_says(&["fio", "j.fio"]).code(0).out;
    assert_eq!(shape(&stage.read("r.txt")), shape(&normal));
    let words = ["fio", "--output=r.json", "--output-format=json", "j.fio"];
    stage.peer_says(&words).code(0).silent().calm();
    let report: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    assert_eq!(report["jobs"].as_array().unwrap().len(), 4);
    stage
        .peer_says(&["fio", "--output=none/r", "j.fio"])
        .code(1)
        .silent()
        .err("none/r");
    assert_eq!(stage.list(), ["j.fio", "r.json", "r.txt"]);
}

#[test]
fn the_exit_status_is_the_number_of_failed_jobs() {
    let stage = Stage::new();
    stage.file("there", vec![1; 64 << 10]);
    let text = "[global]\nallow_file_create=0\nsize=64k\nrw=read\n\
                [gone1]\nfilename=gone1\n[here]\nfilename=there\n[gone2]\nfilename=gone2\n";
    stage.file("j.fio", text);
    let said = stage
        .peer_says(&["fio", "--output-format=json", "j.fio"])
        .code(2);
    assert_eq!(
        said.err
            .matches("fio: file creation disallowed by allow_file_create=0")
            .count(),
        2,
        "{said}"
    );
    let report = json(&said);
    let here = entries(&report)
        .into_iter()
        .find(|e| e.0 == "here")
        .unwrap();
    assert_eq!((here.2, here.3), (0, [64 << 10, 0, 0]));
    stage.peer_says(&["fio", "--exit=unix", "j.fio"]).code(1);
    assert_eq!(stage.list(), ["j.fio", "there"]);
}

#[test]
fn an_end_of_a_device_in_mid_run_is_fios_error_5() {
    let stage = Stage::new();
    // A character device that says "no more data" at once.
    stage.file(
        "j.fio",
        "[a]\nfilename=/dev/null\nfilesize=1m\nsize=1m\nrw=read\n",
    );
    let said = stage
        .peer_says(&["fio", "j.fio"])
        .code(1)
        .out("err=5/")
        .out("err= 5");
    assert!(said.out.contains("Input/output error"), "{said}");
    stage.say(&["run", "j.fio"]).code(1).out("no more data");
}

#[test]
fn options_before_the_file_are_defaults_under_it_and_set_wins() {
    let stage = Stage::new();
    let examples = root().join("examples/fio");
    let var = examples.join("xdma_4-ch_4_var_write.fio");
    let fixed = examples.join("xdma_4-ch_4-1M_write.fio");
    stage.sparse("card", 64 << 20);
    for i in 0..4 {
        symlink("card", stage.path(&format!("ch_h2c_{i}"))).unwrap();
    }
    let banner = |words: &[&str]| {
        let mut command = stage.peer(&["fio"]);
        command.args(words).env("DIR", stage.path(""));
        said(command).code(0).out
    };
    let (var, fixed) = (var.to_str().unwrap(), fixed.to_str().unwrap());
    assert_eq!(
        banner(&["--blocksize=128k", var])
            .matches("bs=(R) 128KiB-128KiB")
            .count(),
        4
    );
    assert_eq!(
        banner(&["--blocksize=128k", fixed])
            .matches("bs=(R) 1024KiB-1024KiB")
            .count(),
        4
    );
    assert_eq!(
        banner(&["--set", "bs=128k", fixed])
            .matches("bs=(R) 128KiB-128KiB")
            .count(),
        4
    );
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nioengine=null\nsize=${SZ}\nbs=2*$pagesize\n");
    stage
        .peer_says(&["fio", "j.fio"])
        .code(1)
        .silent()
        .err("SZ")
        .err("fio: failed parsing size=${SZ}");
    let mut command = stage.peer(&["fio", "j.fio"]);
    command.env("SZ", "1m");
    said(command).code(0).out("bs=(R) 8192B-8192B");
}

#[test]
fn what_fio_has_and_this_version_lacks_is_refused_by_name() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nioengine=null\nsize=1m\n");
    for flag in ["--server", "--client=h"] {
        let name = flag.split('=').next().unwrap();
        stage
            .peer_says(&["fio", flag, "j.fio"])
            .code(1)
            .silent()
            .err(name);
    }
    stage
        .peer_says(&["fio", "--blksz=1", "j.fio"])
        .code(1)
        .silent()
        .err("fio: unrecognized option '--blksz=1'");
    stage
        .peer_says(&["fio", "none.fio"])
        .code(1)
        .silent()
        .err("none.fio");
    stage.peer_says(&["fio"]).code(1).err("No job(s) defined");
}

#[test]
fn engine_and_option_help_are_fios() {
    let stage = Stage::new();
    stage
        .peer_says(&["fio", "--enghelp"])
        .code(0)
        .out("Available IO engines:")
        .out("psync");
    stage
        .peer_says(&["fio", "--enghelp=null"])
        .code(0)
        .out("IO engine null has no options");
    stage.peer_says(&["fio", "--cmdhelp=bs"]).code(0).out("bs");
    stage.peer_says(&["fio", "--help"]).code(0).out("--showcmd");
}
