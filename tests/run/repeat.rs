//! `--repeat`: several runs, each anew; what they say together; what is kept of them.

mod slow;

use rustix::process::{Pid, Signal, kill_process};
use weir_schema::Runs;

use crate::stage::ranks::is_left;
use crate::stage::{Running, Said, Stage, each_launcher, launch, said, until};

/// Ends after a tenth of a second.
const SHORT: &str = "[a]\nioengine=null\nrw=read\nsize=1m\nruntime=100ms\ntime_based\n";

fn runs(said: &Said) -> Runs {
    Runs::from_json(&said.out).unwrap_or_else(|e| panic!("{e}\n{said}"))
}

#[test]
fn the_headline_is_between_runs_and_each_run_is_another_process() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SHORT);
    let words = ["run", "--repeat", "3", "--store-result=r.json", &file];
    let said = stage.say(&words).code(0).calm();
    let rate = said
        .out
        .lines()
        .find(|line| line.starts_with("  rate "))
        .unwrap();
    assert!(
        rate.contains(" % between 3 runs (") && rate.contains(" … "),
        "{said}"
    );
    assert!(said.out.contains("  pooled    p50 "), "{said}");
    let stored = Runs::from_json(&stage.read("r.json")).unwrap();
    assert_eq!((stored.asked, stored.complete), (3, true));
    let [series] = &stored.series[..] else {
        panic!("one plan: {stored:?}")
    };
    let thread = |run: &weir_schema::RunResult| run.jobs().next()?.workers()[0].thread_id;
    let mut threads: Vec<_> = series.runs.iter().map(thread).collect();
    threads.dedup();
    assert_eq!(threads.len(), 3, "{threads:?}");
    let rate = &series.jobs[0].figures[0];
    assert_eq!((rate.name.as_str(), rate.between.runs), ("read rate", 3));
    // The command line is the one that was given, and the plan can be run again.
    assert_eq!(stored.command[1..4], ["run", "--repeat", "3"]);
    assert_eq!(series.runs[0].plan.command, stored.command);
    assert_eq!(stage.list(), ["j.fio", "r.json"]);
    let again = stage.say(&["show", "r.json"]).code(0).calm();
    assert_eq!(again.out, said.out);
    let refused = stage
        .say(&["show", "r.json", "--as", "fio"])
        .code(2)
        .silent();
    refused.err("several runs");
}

#[test]
fn kinds_reported_as_one_have_their_interval() {
    let stage = Stage::new();
    let text = SHORT.replace("rw=read", "rw=randrw\nunified_rw_reporting=mixed");
    let file = stage.file("j.fio", text.replace("100ms", "300ms"));
    let said = stage.say(&["run", &file]).code(0);
    let has = |what: &str, sure: &str| {
        let mut lines = said.out.lines();
        assert!(
            lines.any(|line| line.contains(what) && line.contains(sure)),
            "{said}"
        );
    };
    has("  rate ", " % in this run");
    has(" mean ", " ± ");
    let ranks = stage.say(&["run", "--ranks=2", &file]).code(0);
    ranks.out(" % in this run");
    let several = stage.say(&["run", "--repeat=2", &file]).code(0);
    several.out(", within a run");
}

#[test]
fn files_that_weir_lays_out_are_made_again_where_the_plan_changes_them() {
    let stage = Stage::new();
    let job = |mix: &str| format!("[a]\nfilename=f\nrw={mix}\nsize=64k\nio_size=64k\n");
    let laid_out = |said: &Said| said.err.matches("Laying out IO file").count();
    for (mix, times) in [("randrw", 3), ("randread", 1)] {
        let file = stage.file("j.fio", job(mix));
        let said = stage.say(&["run", "--repeat=3", &file]).code(0);
        assert_eq!(laid_out(&said), times, "{mix}: {said}");
        std::fs::remove_file(stage.path("f")).unwrap();
    }
    // What was there before stays, whatever is written to it.
    stage.file("f", vec![1; 64 << 10]);
    let inode = || {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(stage.path("f")).unwrap().ino()
    };
    let before = inode();
    let file = stage.file("j.fio", job("randrw"));
    let said = stage.say(&["run", "--repeat=2", &file]).code(0);
    assert_eq!((laid_out(&said), inode()), (0, before));
}

#[test]
fn plans_take_turns() {
    let stage = Stage::new();
    let files = ["a.fio", "b.fio"].map(|name| stage.file(name, SHORT));
    let words = ["run", "--repeat=2", "--format=json", &files[0], &files[1]];
    let runs = runs(&stage.say(&words).code(0).calm());
    let started = |series: usize, run: usize| runs.series[series].runs[run].started_unix_ns;
    let order = [started(0, 0), started(1, 0), started(1, 1), started(0, 1)];
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(
        [&runs.series[0].name, &runs.series[1].name],
        ["a.fio", "b.fio"]
    );
}

#[test]
fn between_two_runs_there_is_the_pause_that_was_asked_for() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SHORT);
    let words = ["run", "--repeat=2", "--pause=0.7", "--format=json", &file];
    let runs = runs(&stage.say(&words).code(0).calm());
    assert_eq!(runs.pause_ns, weir_units::Nanos(700_000_000));
    let started = |run: usize| runs.series[0].runs[run].started_unix_ns;
    // A run and the pause.
    let apart = started(1).saturating_sub(started(0));
    assert!(apart >= 800_000_000, "{apart} ns");
}

#[test]
fn ctrl_c_reports_the_runs_done() {
    let stage = Stage::new();
    let text = SHORT.replace("[a]", "[a]\nexec_prerun=echo begun >> begun");
    let text = text.replace("100ms", "300ms");
    let file = stage.file("j.fio", text);
    let words = ["run", "--repeat=100", "--store-result=r.json", &file];
    let running = Running::start(stage.weir(&words));
    let begun = || std::fs::read_to_string(stage.path("begun")).unwrap_or_default();
    until("the third run begins", || begun().lines().count() >= 3);
    running.signal(Signal::INT);
    let said = running
        .end()
        .code(130)
        .out("INCOMPLETE")
        .out("of 100 runs)");
    let stored = Runs::from_json(&stage.read("r.json")).unwrap();
    assert!(
        !stored.complete && stored.series[0].whole().count() >= 2,
        "{said}"
    );
}

#[test]
fn a_signal_ends_the_run_that_goes_on() {
    let stage = Stage::new();
    let text = SHORT.replace("[a]", "[a]\nexec_prerun=touch begun");
    let file = stage.file("j.fio", text.replace("100ms", "30s"));
    let words = ["run", "--repeat=2", "--store-result=r.json", &file];
    let running = Running::start(stage.weir(&words));
    until("the first run begins", || {
        std::fs::exists(stage.path("begun")).unwrap()
    });
    running.signal(Signal::TERM);
    let said = running.end().code(143);
    let stored = Runs::from_json(&stage.read("r.json")).unwrap();
    let [run] = &stored.series[0].runs[..] else {
        panic!("one run: {said}")
    };
    assert!(!run.complete, "{said}");
}

#[test]
fn what_no_run_can_do_is_refused_once() {
    let stage = Stage::new();
    let file = stage.file(
        "j.fio",
        "[a]\nioengine=null\nrw=read\nsize=1m\nno_such_option=1\n",
    );
    let said = stage.say(&["run", "--repeat=3", &file]).code(2).silent();
    assert_eq!(said.err.matches("error[").count(), 1, "{said}");
    let file = stage.file("j.fio", "[a]\nfilename=nowhere/f\nrw=read\nsize=1m\n");
    let said = stage.say(&["run", "--repeat=3", &file]).silent();
    assert!(said.code != Some(0) && !said.err.is_empty(), "{said}");
    assert_eq!(said.err.matches("nowhere/f").count(), 1, "{said}");
    said.err("run 1 of 3 ended with exit code 2 and without a result");
}

/// A run that goes on until it is ended: its process, and the one that started it.
fn endless(stage: &Stage) -> (Running, Pid) {
    let text = SHORT.replace("[a]", "[a]\nexec_prerun=touch begun");
    let file = stage.file("j.fio", text.replace("100ms", "100s"));
    let running = Running::start(stage.weir(&["run", "--repeat=3", "--progress=none", &file]));
    until("the first run begins", || {
        std::fs::exists(stage.path("begun")).unwrap()
    });
    let run = running.children()[0];
    (running, run)
}

#[test]
fn a_run_that_is_killed_is_told() {
    let stage = Stage::new();
    let (running, run) = endless(&stage);
    kill_process(run, Signal::KILL).unwrap();
    let said = running.end().code(1);
    said.err("error: --repeat: run 1 of 3 was ended by signal 9\n");
}

#[test]
fn a_run_ends_with_the_process_that_started_it() {
    let stage = Stage::new();
    let (running, run) = endless(&stage);
    running.signal(Signal::KILL);
    until("the run has ended", || !is_left(run));
    running.end();
}

#[test]
fn a_failure_in_one_run_makes_the_exit_code() {
    let stage = Stage::new();
    let file = stage.file(
        "j.fio",
        "[a]\nfilename=/dev/full\nrw=write\nbs=4k\nsize=4k\n",
    );
    let said = stage.say(&["run", "--repeat=2", &file]).code(1);
    said.out("FAILED    run 2: ");
}
