//! `weir compare` and the history: how runs differ, rounds that are kept under a label.

use std::process::Command;

use serde_json::Value as Json;
use weir_schema::{Interval, RunResult};

use crate::stage::{Said, Stage, said};

const JOB: &str = "[a]\nioengine=null\nrw=read\nsize=1m\nruntime=20ms\ntime_based\n";

/// weir with a history of its own.
fn weir(stage: &Stage, words: &[&str]) -> Command {
    let mut command = stage.weir(words);
    command.env("WEIR_HISTORY", stage.path("history.db"));
    command
}

fn say(stage: &Stage, words: &[&str]) -> Said {
    said(weir(stage, words))
}

/// A stage with a job file and one result of it, which is not in its history.
fn stage_with_run() -> (Stage, RunResult) {
    let stage = Stage::in_memory();
    let file = stage.file("a.fio", JOB);
    stage
        .say(&["run", "--store-result=one.json", &file])
        .code(0);
    let run = RunResult::from_json(&stage.read("one.json")).unwrap();
    (stage, run)
}

/// The same run with all its figures so many times better, each sure of itself within 0.3 %, so many
/// seconds later.
fn like(run: &RunResult, factor: f64, later_s: u64) -> RunResult {
    let mut run = run.clone();
    run.started_unix_ns += later_s * 1_000_000_000;
    run.warnings.clear();
    for job in run.groups.iter_mut().flat_map(|group| &mut group.jobs) {
        for metric in &mut job.metrics {
            let is_rate = metric.unit.ends_with("/s");
            metric.value *= if is_rate { factor } else { 1.0 / factor };
            metric.interval = Some(Interval {
                low: 0.997 * metric.value,
                high: 1.003 * metric.value,
            });
        }
    }
    run
}

/// Keeps runs of these factors.
fn keep(stage: &Stage, run: &RunResult, factors: &[f64]) {
    for (number, factor) in (1..).zip(factors) {
        let name = format!("kept{number}.json");
        let file = stage.file(&name, like(run, *factor, number).to_json().unwrap());
        say(stage, &["history", "import", &file]).code(0);
    }
}

fn rate(said: &Said) -> Json {
    let comparison: Json = serde_json::from_str(&said.out).unwrap();
    comparison["pairs"][0]["jobs"][0]["metrics"][0].clone()
}

#[test]
fn single_runs_are_judged_by_how_runs_of_the_history_differ() {
    let (stage, run) = stage_with_run();
    let a = stage.file("a.json", like(&run, 1.0, 100).to_json().unwrap());
    let b = stage.file("b.json", like(&run, 0.94, 101).to_json().unwrap());
    let c = stage.file("c.json", like(&run, 0.5, 102).to_json().unwrap());
    let judged = |other: &str| {
        let words = ["compare", &a, other, "--metrics=rate", "--format=json"];
        rate(&say(&stage, &words).code(0))
    };
    assert_eq!(judged(&b)["method"], "within_runs");
    assert_eq!(judged(&b)["verdict"]["name"], "worse");
    // Four other runs are too few to say how runs differ.
    keep(&stage, &run, &[1.03, 0.97, 1.04, 0.98]);
    assert_eq!(judged(&b)["method"], "within_runs");
    keep(&stage, &run, &[0.96, 1.01]);
    let found = judged(&b);
    assert_eq!(found["method"], "spread_of_runs", "{found}");
    assert_eq!(found["verdict"]["name"], "unsure", "{found}");
    assert_eq!(found["run_spread"]["runs"], 6, "{found}");
    // Logarithms of the six: a standard deviation of 0.0331.
    let spread = found["run_spread"]["a"].as_f64().unwrap();
    assert!((spread - 0.0331).abs() < 2e-4, "{found}");
    assert_eq!(judged(&c)["verdict"]["name"], "worse");
    let words = ["compare", &a, &c, "--metrics=rate", "--fail-if=rate<-5%"];
    let said = say(&stage, &words).code(1).calm();
    said.out("standard deviation over 6 other runs of the history: read rate");
    // Without history it is as if there had never been other runs.
    stage.say(&words).code(0).err("--single-run-ok");
}

#[test]
fn runs_that_are_compared_do_not_say_how_runs_differ() {
    let (stage, run) = stage_with_run();
    keep(&stage, &run, &[1.0, 1.001, 0.999, 1.0, 1.001, 0.999, 0.8]);
    let words = ["compare", "@-2", "@-1", "--metrics=rate", "--format=json"];
    let found = rate(&say(&stage, &words).code(0));
    assert_eq!(found["run_spread"]["runs"], 5, "{found}");
    assert_eq!(found["verdict"]["name"], "worse", "{found}");
}

#[test]
fn rounds_that_are_saved_under_a_label_compare_alike_later() {
    let stage = Stage::in_memory();
    let a = stage.file("a.fio", JOB);
    let b = stage.file(
        "b.fio",
        JOB.replace("[a]", "[a]\nthinktime=2ms\nthinktime_blocks=1"),
    );
    let rounds = ["--metrics=rate", "--rounds=6", "--settle=0", "--save=v 1"];
    let words = [&["compare", "--run", &a, &b], &rounds[..]].concat();
    let table = |said: &Said| {
        let lines = said.out.lines().filter(|line| line.starts_with("  rate "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let live = say(&stage, &words).code(0);
    let again = say(&stage, &["compare", "label:v 1", "--metrics=rate"]).code(0);
    let again = again.out("compare  a.fio -> b.fio   6 rounds ABBA");
    assert_eq!((table(&again), table(&again).len()), (table(&live), 1));
    let list = say(&stage, &["history", "list", "--json", "--label=v 1"]).code(0);
    let list: Json = serde_json::from_str(&list.out).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 2, "{list}");
    // One plan beside itself, and commands, which have none, stay two sides.
    let words = [
        &["compare", "--run", &a, &a],
        &rounds[..3],
        &["--save=same"],
    ]
    .concat();
    say(&stage, &words).code(0);
    say(&stage, &["compare", "label:same", "--metrics=rate"])
        .code(0)
        .out("6 rounds ABBA");
    let words = [
        "compare",
        "--cmd=true",
        "--cmd=sleep 0.2",
        "--metrics=wall",
        "--rounds=6",
        "--settle=0",
        "--save=commands",
    ];
    say(&stage, &words).code(0);
    say(&stage, &["compare", "label:commands", "--metrics=wall"])
        .code(0)
        .out("compare  true -> sleep 0.2   6 rounds ABBA")
        .out("sleep 0.2 is worse in wall");
}

#[test]
fn nothing_is_run_that_could_not_be_saved() {
    let stage = Stage::in_memory();
    let words = ["compare", "--cmd=echo x >> ran", "--cmd=true"];
    let refused = |more: &[&str], says: &str| {
        stage
            .say(&[&words, more].concat())
            .code(2)
            .silent()
            .err(says);
    };
    refused(&["--save=x"], "there is no history");
    refused(&["--save="], "--save");
    let said = stage.say(&["compare", "a.json", "b.json", "--save=x"]);
    said.code(2).err("--save acts only with");
    assert!(!stage.list().contains(&"ran".to_owned()));
}
