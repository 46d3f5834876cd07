//! `weir run` as a user sees it: the first job, plans and reports, exit codes, bad input, trouble
//! in the middle of a run.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod bad_input;
#[cfg(feature = "tui")]
mod live;
mod mixed;
mod odd_plans;
mod ranks;
mod repeat;
mod slow;
#[path = "../stage/mod.rs"]
mod stage;
mod stopped;
mod sure;
mod targets;
mod trouble;
mod web;

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;

use stage::{Said, Stage, root, said};
use weir_report::{Flags, Style, Terminal};
use weir_schema::{Kind, RunResult, State};

#[cfg(not(feature = "tui"))]
#[test]
fn a_build_without_the_live_view_refuses_it_by_name() {
    let said = Stage::new().say(&["run", "--live", "j.fio"]).code(3);
    said.silent()
        .err("--live: this weir was built without the feature `tui`");
}

/// A job without a target: done at once, everywhere.
const SMALL: &str = "[a]\nioengine=null\nsize=1m\nrw=read\n\
                     [b]\nstonewall\nioengine=null\nsize=64k\nrw=write\nbs=16k\nnumjobs=2\n";

fn result(said: &Said) -> RunResult {
    RunResult::from_json(&said.out).unwrap_or_else(|e| panic!("{e}\n{said}"))
}

/// Kind, operations and bytes.
type Total = (Kind, u64, u64);

fn totals(result: &RunResult) -> Vec<(String, State, Vec<Total>)> {
    let kinds = |w: &weir_schema::WorkerResult| -> Vec<Total> {
        w.kinds
            .iter()
            .map(|k| (Kind::named(&k.kind).unwrap(), k.operations, k.bytes.0))
            .collect()
    };
    result
        .jobs()
        .map(|j| {
            (
                j.name.clone(),
                j.state,
                j.workers().iter().flat_map(kinds).collect(),
            )
        })
        .collect()
}

#[test]
fn names_of_a_plan_move_no_cursor_where_they_are_announced() {
    let stage = Stage::new();
    let file = stage.file("j.fio", "[one]\nfilename=data\nrw=read\nsize=64k\n");
    let plan = stage.say(&["run", "--show-plan", &file]).code(0).out;
    let plan = plan.replacen("\"one\"", "\"one\\u001b[2J\"", 1);
    assert!(plan.contains("u001b"), "{plan}");
    let file = stage.file("p.json", plan);
    let said = stage.say(&["run", &file]).code(0);
    said.err("one\\u{1b}[2J: Laying out IO file").out("one");
}

#[test]
fn the_first_job_shows_a_report_and_leaves_nothing_behind() {
    let stage = Stage::new();
    let example = root().join("examples/first.fio");
    let words = ["run", "--set", "runtime=150ms", example.to_str().unwrap()];
    let said = stage
        .say(&words)
        .code(0)
        .out("read 4 KiB random, psync, depth 1, 1 worker, closed loop")
        .out("read 4 KiB random, psync, depth 1, 4 workers, closed loop")
        .out("ops/s")
        .out("latency   p50 ");
    assert!(said.out.starts_with("weir "), "{said}");
    assert_eq!(said.err, "one: Laying out IO file (1 file / 64MiB)\n");
    assert_eq!(stage.list(), Vec::<String>::new());
}

#[test]
fn set_wins_over_the_file_for_all_jobs_or_for_one() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    let words = [
        "run",
        "--format=json",
        "--set",
        "bs=8k",
        "--set",
        "b:size=32k",
        &file,
    ];
    let result = result(&stage.say(&words).code(0).calm());
    assert_eq!(
        totals(&result),
        [
            ("a".into(), State::Done, vec![(Kind::Read, 128, 1 << 20)]),
            (
                "b".into(),
                State::Done,
                vec![(Kind::Write, 4, 32 << 10), (Kind::Write, 4, 32 << 10)]
            ),
        ]
    );
}

#[test]
fn json_is_one_valid_result_from_which_the_report_can_be_made_again() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    let words = [
        "run",
        "--format=json",
        "--output=r.txt",
        "--output=r.json",
        &file,
    ];
    let said = stage.say(&words).code(0).calm();
    let result = result(&said);
    assert!(result.complete);
    assert_eq!(weir_report::json(&result, false).unwrap(), said.out);
    assert_eq!(stage.read("r.json"), said.out);
    let utf8 = BTreeMap::from([("LC_ALL".to_owned(), "C.UTF-8".to_owned())]);
    let style = Style::detect(&Flags::default(), &utf8, Terminal::default());
    assert_eq!(weir_report::text(&result, &style), stage.read("r.txt"));
    assert_eq!(stage.list(), ["j.fio", "r.json", "r.txt"]);
}

#[test]
fn a_stored_plan_runs_like_the_file_it_came_from() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    let shown = stage.say(&["run", "--show-plan", &file]).code(0).calm();
    let plan = stage.file("plan.json", &shown.out);
    let direct = result(&stage.say(&["run", "--format=json", &file]).code(0));
    let stored = result(&stage.say(&["run", "--format=json", &plan]).code(0).calm());
    assert_eq!(totals(&direct), totals(&stored));
    assert_eq!(direct.plan.groups, stored.plan.groups);
    let again = stage.say(&["run", "--show-plan", &plan]).code(0);
    assert_eq!(again.out, shown.out);
}

#[test]
fn a_plan_that_is_no_plan_is_refused_with_its_place() {
    let stage = Stage::new();
    let shown = stage.file("j.fio", SMALL);
    let plan = stage.say(&["run", "--show-plan", &shown]).out;
    for (name, text, message) in [
        ("a.json", "{".to_owned(), "a.json:1"),
        (
            "b.json",
            plan.replace("weir.plan.v2", "weir.plan.v9"),
            "weir.plan.v9",
        ),
        ("c.json", plan.replace("\"clones\"", "\"clonse\""), "clonse"),
        ("d.json", String::new(), "d.json"),
    ] {
        stage.file(name, text);
        stage.say(&["run", name]).code(2).silent().err(message);
    }
    stage
        .say(&["run", "none.json"])
        .code(2)
        .silent()
        .err("none.json");
}

#[test]
fn a_reader_that_leaves_ends_the_printing_and_nothing_else() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    for format in ["text", "json"] {
        let mut command = stage.weir(&["run", "--format", format, &file]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
    }
}

#[test]
fn progress_and_notes_stay_off_standard_output() {
    let stage = Stage::new();
    let file = stage.file(
        "j.fio",
        "[a]\nioengine=null\nsize=1m\nrw=read\ntime_based\nruntime=600ms\n",
    );
    let words = ["run", "--format=json", "--progress=json", &file];
    let said = stage.say(&words).code(0);
    assert!(result(&said).complete);
    let lines: Vec<serde_json::Value> = said
        .err
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert!(!lines.is_empty());
    assert!(lines.iter().all(|l| l["job"] == "a" && l["t_ns"].is_u64()));
    stage
        .say(&["run", "--format=json", "--progress=none", &file])
        .code(0)
        .calm();
}

#[test]
fn colours_only_where_they_are_asked_for() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    // `say` refuses escape sequences in pipes; with --color=always they are wanted.
    let mut command = stage.weir(&["run", "--color=always", &file]);
    let output = command.output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("\x1b["));
    let mut command = stage.weir(&["run", &file]);
    command.env("CLICOLOR_FORCE", "0").env("TERM", "xterm");
    said(command).code(0);
}

#[test]
fn ascii_and_raw_mean_what_they_say() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    let plain = stage.say(&["run", "--ascii", &file]).code(0);
    assert!(plain.out.is_ascii(), "{plain}");
    let mut command = stage.weir(&["run", &file]);
    command.env("LC_ALL", "C");
    let by_locale = said(command).code(0);
    assert!(by_locale.out.is_ascii(), "{by_locale}");
    stage.say(&["run", "--raw", &file]).code(0).out("1048576");
    for width in ["40", "60", "100", "140"] {
        let said = stage.say(&["run", "--width", width, &file]).code(0);
        let widest = said.out.lines().map(|l| l.chars().count()).max();
        assert!(widest <= width.parse().ok(), "{said}");
    }
}

#[test]
fn strict_turns_warnings_into_exit_code_1() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    stage.say(&["run", &file]).code(0).out("! short-run");
    let said = stage.say(&["run", "--strict=short-run", &file]).code(1);
    said.err("error: --strict: short-run (a warning)");
    let said = stage.say(&["run", "--strict", &file]).code(1);
    said.err("error: --strict: ").err("short-run");
    stage.say(&["run", "--strict=log", &file]).code(0).calm();
}

#[test]
fn an_empty_value_is_not_the_same_as_none() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    for flag in ["--strict=", "--repeat="] {
        let said = stage.say(&["run", flag, &file]).code(2);
        said.err(&format!("{flag}: a value is missing"));
    }
}

#[test]
fn a_job_that_only_checks_is_called_one() {
    let stage = Stage::in_memory();
    let job = "[a]\nfilename=data\nsize=64k\nbs=4k\nrw=write\nverify=crc32c\nioengine=psync\n";
    let (writes, checks) = (
        stage.file("w.fio", job),
        stage.file("c.fio", format!("{job}verify_only=1\n")),
    );
    stage.say(&["run", &writes]).code(0).out("a   write 4 KiB");
    stage.say(&["run", &checks]).code(0).out("a   verify 4 KiB");
}

#[test]
fn a_log_in_the_place_of_a_target_is_refused_before_anything_is_touched() {
    let stage = Stage::in_memory();
    let job =
        "[a]\nfilename=x_bw.1.log\nsize=64k\nbs=4k\nrw=read\nwrite_bw_log=x\nioengine=psync\n";
    let file = stage.file("j.fio", job);
    let said = stage.say(&["run", &file]).code(2);
    said.err("x_bw.1.log: the job a works on this file");
    assert!(!std::path::Path::new(&stage.path("x_bw.1.log")).exists());
}

#[test]
fn a_job_file_may_come_from_standard_input() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SMALL);
    let mut command = stage.weir(&["run", "--format=json", "-"]);
    command.stdin(std::fs::File::open(&file).unwrap());
    let result = result(&said(command).code(0));
    assert_eq!(result.jobs().count(), 2);
}

#[test]
fn engines_and_help_are_printed_and_good() {
    let stage = Stage::new();
    for engine in ["null", "psync", "pvsync2", "io_uring", "libaio", "mmap"] {
        stage.say(&["engines"]).code(0).calm().out(engine);
    }
    let help = stage.say(&["run", "--help"]).code(0).calm();
    for flag in ["--set", "--format", "--output", "--show-plan", "--strict"] {
        assert!(help.out.contains(flag), "{help}");
    }
    stage
        .say(&["--version"])
        .code(0)
        .out(env!("CARGO_PKG_VERSION"));
    stage
        .say(&["run", "--calibrate"])
        .code(0)
        .out("ns per operation");
}
