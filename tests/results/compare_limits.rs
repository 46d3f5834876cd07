//! `weir compare`: what counts as a run and what a condition says, signals, the progress of rounds.

use rustix::process::Signal;
use weir_schema::Metric;

use crate::compare::{SHORT, one_run, store, store_rounds};
use crate::stage::{Running, Stage, WEIR, has, skip, until};

#[test]
fn one_run_counts_once() {
    let stage = Stage::new();
    let run = one_run(&stage);
    let mut other = run.clone();
    other.started_unix_ns += 1;
    stage.file("copy.json", run.to_json().unwrap());
    stage.file("other.json", other.to_json().unwrap());
    let compare = |second: &str| {
        let sides = ["-a", "one.json", "-a", second, "-b", "other.json"];
        stage.say(&[&["compare"], &sides[..]].concat())
    };
    compare("copy.json")
        .code(2)
        .err("one.json and copy.json are one run");
    compare("other.json").code(0);
}

#[test]
fn a_condition_is_told_by_its_own_words_and_what_nothing_can_meet_is_said() {
    let stage = Stage::new();
    let rounds = store_rounds(&stage, "rounds.json", 0.9);
    let said = stage.say(&["compare", &rounds, "--fail-if=read rate<-5%,unsure"]);
    let said = said.code(1).out("read rate<-5% holds for new");
    assert!(!said.out.contains("unsure holds"), "{said}");
    one_run(&stage);
    let larger = stage.file("larger.fio", SHORT.replace("size=1m", "size=1m\nbs=64k"));
    stage
        .say(&["run", "--store-result=larger.json", &larger])
        .code(0);
    let compare = |condition: &str| {
        let words = ["compare", "one.json", "larger.json", "--single-run-ok"];
        stage.say(&[&words[..], &[condition]].concat())
    };
    compare("--fail-if=worse").code(2).err(
        "--fail-if worse: no figure of larger.json can be compared: sizes.size.read.bytes differs",
    );
    let said = compare("--fail-if=worse,not-comparable").code(1);
    assert!(!said.err.contains("cannot be compared"), "{said}");
}

#[test]
fn losses_that_begin_are_worse_and_beyond_every_share() {
    let stage = Stage::new();
    let run = one_run(&stage);
    let losing = |share: f64| {
        let mut run = run.clone();
        let loss = Metric::low("loss", "", share);
        run.groups[0].jobs[0].metrics.push(loss);
        run
    };
    let sides = [0.0, 0.05].map(|share| vec![losing(share); 10]);
    let rounds = store(&stage, "rounds.json", sides.clone());
    stage
        .say(&["compare", &rounds, "--fail-if=loss>1%"])
        .code(1)
        .out("loss>1% holds for new");
    stage
        .say(&["compare", &rounds, "--metrics=loss"])
        .out("new is worse in loss: it was 0.");
    let rounds = store(&stage, "healed.json", sides.map(|_| vec![losing(0.0); 10]));
    stage
        .say(&["compare", &rounds, "--fail-if=loss>1%"])
        .code(0);
}

#[test]
fn a_condition_that_no_comparable_figure_is_left_of_ends_with_2() {
    let stage = Stage::new();
    let job = |name: &str| SHORT.replace("[a]", &format!("[{name}]"));
    let two = stage.file("two.fio", job("ja") + &job("jb"));
    let three = stage.file("three.fio", job("jx") + &job("jy") + &job("jz"));
    for (file, stored) in [(&two, "two.json"), (&three, "three.json")] {
        let store = format!("--store-result={stored}");
        stage.say(&["run", &store, file]).code(0);
    }
    let compare = |condition: &str| {
        let words = ["compare", "two.json", "three.json", "--single-run-ok"];
        stage.say(&[&words[..], &["--fail-if", condition]].concat())
    };
    let why = "no figure of three.json can be compared: 2 and 3 jobs of other names";
    for condition in ["p99>1%", "worse", "p99>1%,worse", "unsure", "rate<1"] {
        let said = compare(condition).code(2).err(why);
        assert_eq!(said.err.matches("error:").count(), 1, "{said}");
    }
    compare("worse,not-comparable").code(1);
    compare("errors").code(0);
}

#[test]
fn a_signal_ends_what_a_command_has_started() {
    let stage = Stage::new();
    let command = "--cmd=sh -c 'echo $$ > sleeper; exec sleep 300'; true";
    let words = ["compare", command, "--cmd=true", "--settle=0", "--warmup=0"];
    let running = Running::start(stage.weir(&words));
    let sleeper = || std::fs::read_to_string(stage.path("sleeper")).unwrap_or_default();
    until("the command runs", || sleeper().ends_with('\n'));
    running.signal(Signal::TERM);
    running.end().code(143);
    let status = format!("/proc/{}", sleeper().trim());
    until("it is gone", || !std::path::Path::new(&status).exists());
}

#[test]
fn job_files_show_how_far_all_rounds_are() {
    let stage = Stage::new();
    stage.file("a.fio", SHORT.replace("50ms", "400ms"));
    if !has("script") {
        return skip("the progress of rounds", "no script");
    }
    let rounds = "--rounds=6 --metrics=rate --settle=0 --warmup=0";
    let mut command = stage.command("script");
    let line = format!("{WEIR} compare --run a.fio a.fio {rounds} > out");
    command
        .args(["-qefc", &line, "screen"])
        .env("TERM", "xterm");
    assert!(command.output().unwrap().status.success());
    let screen = stage.read("screen");
    assert!(
        screen.contains("round 3 of 6") && screen.contains(" eta 0:0"),
        "{screen:?}"
    );
}

#[test]
fn what_cannot_be_compared_is_said_once_however_often_rounds_are_measured() {
    let stage = Stage::new();
    let both = SHORT.replace("[a]", "[a]\nstonewall") + &SHORT.replace("[a]", "[b]\nstonewall");
    let paused = "[b]\nthinktime=2ms\nthinktime_blocks=1";
    let other = both
        .replacen("rw=read", "rw=write", 1)
        .replace("[b]", paused);
    let (a, b) = (stage.file("a.fio", &both), stage.file("b.fio", &other));
    let rounds = "--metrics=rate --rounds=8 --settle=0 --warmup=0 --fail-if=worse --confirm";
    let rounds: Vec<&str> = rounds.split(' ').collect();
    let said = stage
        .say(&[&["compare", "--run", &a, &b], &rounds[..]].concat())
        .code(1)
        .out("confirmed in fresh rounds");
    let warned = said.err.matches("cannot be compared").count();
    assert_eq!(warned, 1, "{said}");
}
