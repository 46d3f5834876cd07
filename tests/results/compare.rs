//! `weir compare`: stored results, job files in turns, commands; verdicts and exit codes.

use rustix::process::Signal;
use serde_json::Value as Json;
use weir_schema::{Interval, RunResult, RunSeries, Runs};

use crate::stage::{Running, Said, Stage, until};

/// Ends after a twentieth of a second.
pub(crate) const SHORT: &str = "[a]\nioengine=null\nrw=read\nsize=1m\nruntime=50ms\ntime_based\n";

/// One complete run of a job, to be copied.
pub(crate) fn one_run(stage: &Stage) -> RunResult {
    let file = stage.file("one.fio", SHORT);
    stage
        .say(&["run", "--store-result=one.json", &file])
        .code(0);
    RunResult::from_json(&stage.read("one.json")).unwrap()
}

/// The same run with all its headline figures so many times better, each known to 1 %.
fn faster(run: &RunResult, factor: f64) -> RunResult {
    let mut run = run.clone();
    for job in run.groups.iter_mut().flat_map(|group| &mut group.jobs) {
        for metric in &mut job.metrics {
            let is_rate = metric.unit.ends_with("/s");
            metric.value *= if is_rate { factor } else { 1.0 / factor };
            metric.interval = Some(Interval {
                low: 0.99 * metric.value,
                high: 1.01 * metric.value,
            });
        }
    }
    run
}

/// Stores ten rounds of two sides, the second this much faster; rounds differ by a few per mille.
pub(crate) fn store_rounds(stage: &Stage, name: &str, factor: f64) -> String {
    let run = one_run(stage);
    let noise = [0, 3, 1, 5, 2, 4, 6, 1, 3, 2];
    let rounds = |factor: f64, noise: &[u8]| -> Vec<RunResult> {
        let one = |noise: &u8| faster(&run, factor * (1.0 + f64::from(*noise) / 1000.0));
        noise.iter().map(one).collect()
    };
    let other: Vec<u8> = noise.iter().rev().copied().collect();
    store(stage, name, [rounds(1.0, &noise), rounds(factor, &other)])
}

/// Stores rounds of two sides that took turns.
pub(crate) fn store(stage: &Stage, name: &str, [old, new]: [Vec<RunResult>; 2]) -> String {
    let runs = Runs {
        schema: weir_schema::RUNS_SCHEMA.to_owned(),
        weir_version: "1".to_owned(),
        command: vec!["weir".to_owned()],
        asked: 10,
        pause_ns: weir_units::Nanos(0),
        complete: true,
        comparison: None,
        series: vec![RunSeries::new("old", old), RunSeries::new("new", new)],
    };
    stage.file(name, runs.to_json(false).unwrap())
}

pub(crate) fn json(said: &Said) -> Json {
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}\n{said}"))
}

pub(crate) fn verdict(comparison: &Json, metric: &str) -> String {
    let metrics = comparison["pairs"][0]["jobs"][0]["metrics"]
        .as_array()
        .unwrap();
    let found = metrics.iter().find(|m| m["name"] == metric);
    let found = found.unwrap_or_else(|| panic!("no {metric} in {comparison}"));
    found["verdict"]["name"].as_str().unwrap().to_owned()
}

#[test]
fn runs_that_took_turns_are_compared_by_round() {
    let stage = Stage::new();
    let file = store_rounds(&stage, "r.json", 0.9);
    let said = stage
        .say(&["compare", &file, "--metrics=rate,p50"])
        .code(0)
        .calm();
    let said = said
        .out("compare  old -> new   10 rounds ABBA")
        .out("metric")
        .out("worse")
        .out("new is worse in read rate: -");
    let rate = said.out.lines().find(|l| l.starts_with("  rate ")).unwrap();
    assert!(
        rate.contains("ops/s") && rate.contains(" … ") && rate.ends_with(" worse"),
        "{said}"
    );
    assert!(said.out.lines().all(|l| l.chars().count() <= 80), "{said}");
    let same = json(
        &stage
            .say(&["compare", &file, "--metrics=rate", "--format=json"])
            .code(0),
    );
    assert_eq!(same["schema"], "weir.comparison.v1");
    assert_eq!(verdict(&same, "rate"), "worse");
}

#[test]
fn a_condition_that_holds_is_exit_code_1_and_named() {
    let stage = Stage::new();
    let file = store_rounds(&stage, "r.json", 0.9);
    let with = |condition: &str, code| {
        let words = ["compare", &file, "--metrics=rate", "--fail-if", condition];
        stage.say(&words).code(code)
    };
    with("worse", 1).out("FAILED  worse holds for new (a, read rate)");
    with("rate<-5%", 1);
    with("a.rate<-5%", 1);
    with("unsure, rate<-5%", 1);
    with("rate>5%", 0);
    with("rate<-50%", 0);
    with("rate<1", 0);
    with("rate<1T", 1);
    with("p50>0.001ns", 1);
    with("errors,not-comparable,unsure", 0);
    with("rate<1ms", 2).err("`ops/s`");
    with("b.rate<-5%", 2).err("no job `b`");
    with("p98x>3%", 2).err("did you mean `p98`?").silent();
    let words = [
        "compare",
        &file,
        "--metrics=rate",
        "--fail-if=worse",
        "--format=junit",
    ];
    stage
        .say(&words)
        .code(1)
        .out("failures=\"1\"")
        .out("<failure message=\"worse: -");
}

#[test]
fn every_form_names_every_figure() {
    let stage = Stage::new();
    let file = store_rounds(&stage, "r.json", 1.0);
    let form = |form: &str| {
        stage
            .say(&["compare", &file, "--format", form])
            .code(0)
            .calm()
    };
    let csv = form("csv");
    let rows: Vec<&str> = csv.out.lines().collect();
    assert!(rows[0].starts_with("base,side,job,kind,metric,unit,a,b,ratio"));
    assert_eq!(rows.len(), 6, "{csv}");
    assert!(rows[1].starts_with("old,new,a,read,rate,ops/s,"), "{csv}");
    let columns = |row: &str| row.split(',').count();
    assert!(
        rows.iter().all(|row| columns(row) == columns(rows[0])),
        "{csv}"
    );
    form("md").out("| a | read rate |");
    form("junit").out("tests=\"5\" failures=\"0\"");
    let ascii = stage
        .say(&["compare", &file, "--ascii", "--width=60"])
        .code(0);
    assert!(ascii.out.is_ascii(), "{ascii}");
    let colour = stage
        .weir(&["compare", &file, "--color=always"])
        .output()
        .unwrap();
    assert!(colour.stdout.contains(&0x1b));
}

#[test]
fn single_runs_of_the_same_work_are_judged_by_their_own_intervals() {
    let stage = Stage::new();
    let run = one_run(&stage);
    let store = |name: &str, run: &RunResult| stage.file(name, run.to_json().unwrap());
    let a = store("a.json", &faster(&run, 1.0));
    let b = store("b.json", &faster(&run, 0.2));
    let words = ["compare", &a, &b, "--metrics=rate", "--fail-if=rate<-5%"];
    let said = stage.say(&words).code(0);
    let said = said.out("1 run each").err("--single-run-ok");
    let taken = [&words[..], &["--single-run-ok"]].concat();
    said.out("within one run each").out(" worse");
    stage.say(&taken).code(1);
    // Four runs a side of other files are compared without rounds.
    let several = |side: &str, factor: f64| -> Vec<String> {
        let mut run = faster(&run, factor);
        let stored = (0..4).map(|number| {
            run.started_unix_ns += 1;
            store(&format!("{side}{number}.json"), &run)
        });
        stored.collect()
    };
    let (a, b) = (several("a", 1.0), several("b", 0.2));
    let mut words = vec!["compare", "--metrics=rate", "--a"];
    words.extend(a.iter().map(String::as_str));
    words.push("--b");
    words.extend(b.iter().map(String::as_str));
    stage.say(&words).code(0).out("4 runs each").out(" worse");
}

#[test]
fn other_work_other_machines_and_cut_runs_are_told() {
    let stage = Stage::new();
    let run = one_run(&stage);
    let store = |name: &str, run: &RunResult| stage.file(name, run.to_json().unwrap());
    let a = store("a.json", &run);
    let mut other = run.clone();
    other.host.kernel = Some("0.0.1".to_owned());
    let b = store("b.json", &other);
    stage
        .say(&["compare", &a, &b])
        .code(0)
        .out("differs  kernel: ")
        .out(" -> 0.0.1");
    let file = stage.file(
        "large.fio",
        SHORT.replace("size=1m", "size=1m\nbs=64k\niodepth=2"),
    );
    stage
        .say(&["run", "--store-result=large.json", &file])
        .code(0);
    let words = ["compare", &a, "large.json", "--fail-if=not-comparable"];
    let said = stage.say(&words).code(1);
    said.out("not comparable: sizes.")
        .out("depth.queue_depth: 1 -> 2");
    let allowed = [&words[..], &["--allow-different"]].concat();
    let said = stage.say(&allowed).code(0);
    assert!(!said.out.contains("not comparable"), "{said}");
    let mut cut = run.clone();
    cut.complete = false;
    let c = store("c.json", &cut);
    stage
        .say(&["compare", &a, &c])
        .code(0)
        .out("c.json has no complete run");
}

#[test]
fn bad_operands_are_refused() {
    let stage = Stage::new();
    let run = one_run(&stage);
    let a = stage.file("a.json", run.to_json().unwrap());
    let rounds = store_rounds(&stage, "r.json", 1.0);
    stage
        .say(&["compare", &a])
        .code(2)
        .silent()
        .err("nothing beside it");
    stage
        .say(&["compare", &a, "none.json"])
        .code(2)
        .silent()
        .err("none.json");
    stage
        .say(&["compare", &a, &rounds])
        .code(2)
        .silent()
        .err("compare it alone");
    stage
        .say(&["compare", &a, &a, "--metrics=rat"])
        .code(2)
        .silent()
        .err("did you mean `rate`?");
    let text = run.to_json().unwrap();
    for cut in (0..text.len()).step_by(text.len() / 40 + 1) {
        let mut end = cut;
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let file = stage.file("cut.json", &text[..end]);
        stage.say(&["compare", &a, &file]).code(2).silent();
    }
}

#[test]
fn job_files_take_turns_and_what_is_stored_compares_alike() {
    let stage = Stage::new();
    let a = stage.file("a.fio", SHORT);
    let b = stage.file(
        "b.fio",
        SHORT.replace("[a]", "[a]\nthinktime=2ms\nthinktime_blocks=1"),
    );
    let words = [
        "compare",
        "--run",
        &a,
        &b,
        "--metrics=rate",
        "--rounds=6",
        "--settle=0",
        "--store-result=r.json",
        "--fail-if=worse",
    ];
    let said = stage.say(&words).code(1);
    let said = said
        .out("6 rounds ABBA")
        .out(" worse")
        .out("differs  pacing.");
    let stored = Runs::from_json(&stage.read("r.json")).unwrap();
    let started = |side: usize, run: usize| stored.series[side].runs[run].started_unix_ns;
    let order = [
        started(0, 0),
        started(1, 0),
        started(1, 1),
        started(0, 1),
        started(0, 2),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!((stored.asked, stored.complete), (6, true));
    assert_eq!(stored.command[..3], ["weir", "compare", "--run"]);
    let again = stage.say(&["compare", "r.json", "--metrics=rate"]).code(0);
    let rate = |said: &Said| {
        said.out
            .lines()
            .find(|l| l.starts_with("  rate "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(rate(&again), rate(&said));
}

#[test]
fn one_job_file_is_run_with_each_value() {
    let stage = Stage::new();
    let file = stage.file("j.fio", SHORT.replace("runtime=50ms", "runtime=20ms"));
    let words = [
        "compare",
        "--run",
        &file,
        "--vary",
        "bs=4k,64k,256k",
        "--metrics=bandwidth",
        "--rounds=8",
        "--settle=0",
        "--warmup=0",
        "--format=json",
    ];
    let comparison = json(&stage.say(&words).code(0));
    let sides = comparison["sides"].as_array().unwrap();
    let names: Vec<&str> = sides.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bs=4k", "bs=64k", "bs=256k"]);
    assert_eq!(comparison["pairs"].as_array().unwrap().len(), 2);
    assert_eq!(
        comparison["pairs"][1]["jobs"][0]["metrics"][0]["a_runs"]
            .as_array()
            .unwrap()
            .len(),
        8
    );
}

#[test]
fn rounds_that_could_never_say_yes_are_refused_before_anything_runs() {
    let stage = Stage::new();
    let text = SHORT.replace("[a]", "[a]\nexec_prerun=echo begun >> begun");
    let a = stage.file("a.fio", text);
    let refused = |words: &[&str]| {
        let said = stage
            .say(&[&["compare", "--run", &a, &a], words].concat())
            .code(2)
            .silent();
        assert!(!stage.list().contains(&"begun".to_owned()), "{said}");
        said
    };
    refused(&["--rounds=5"]).err("--rounds 8");
    refused(&["--fail-if=p98x>3%"]).err("did you mean `p98`?");
    refused(&["--metrics=rat"]).err("did you mean `rate`?");
    refused(&["--fail-if=nobody.p99>3%"]).err("no job `nobody`");
    refused(&["--store-result", &a]).err("what the plan is made from");
    refused(&["--set=nonsense=1"]).err("nonsense");
}

#[test]
fn commands_are_compared_by_what_they_use() {
    let stage = Stage::new();
    let words = [
        "compare",
        "--cmd",
        "true",
        "--cmd",
        "sleep 0.3",
        "--metrics=wall,rss",
        "--rounds=7",
        "--settle=0",
        "--prepare=echo x >> prepared",
        "--store-result=r.json",
    ];
    let said = stage.say(&words).code(0);
    said.out("7 rounds ABBA")
        .out(" worse")
        .out("sleep 0.3 is worse in wall");
    // A round to warm up and seven, two runs each.
    assert_eq!(stage.read("prepared").lines().count(), 16);
    let again = stage.say(&["compare", "r.json", "--metrics=wall"]).code(0);
    again.out("sleep 0.3 is worse in wall");
    // The memory is that of the commands, however much weir has.
    let stored = stage.read("r.json");
    let values = stored.split("\"name\":\"rss\"").skip(1).map(|rest| {
        let value = rest.split("\"value\":").nth(1)?;
        value.split([',', '}']).next()?.parse::<f64>().ok()
    });
    let most = values.flatten().fold(0.0, f64::max);
    assert!(most > 0.0 && most < 4.0 * 1024.0 * 1024.0, "{most}");
    stage.say(&["show", "r.json"]).code(0);
    let failing = [
        "compare",
        "--cmd",
        "true",
        "--cmd",
        "echo broken >&2; exit 3",
    ];
    stage
        .say(&failing)
        .code(1)
        .err("broken")
        .err("exit status: 3");
    let unprepared = ["compare", "--cmd=true", "--cmd=true", "--prepare=exit 4"];
    stage.say(&unprepared).code(1).err("--prepare");
}

#[test]
fn a_condition_that_must_be_confirmed_is_measured_again() {
    let stage = Stage::new();
    let words = [
        "compare",
        "--cmd",
        "true",
        "--cmd",
        // Memory, as times tell of other load as well.
        "echo x >> runs; head -c 30000000 /dev/zero | tail -c 30000000 > /dev/null",
        "--metrics=rss",
        "--rounds=6",
        "--settle=0",
        "--warmup=0",
        "--fail-if=worse",
        "--confirm",
    ];
    let said = stage.say(&words).code(1);
    said.out("confirmed in fresh rounds");
    assert_eq!(stage.read("runs").lines().count(), 12);
    // Large in the first rounds alone.
    let small = "echo x >> other; test $(wc -l < other) -gt 0";
    let once = "echo x >> seen; test $(wc -l < seen) -gt 6 || \
                head -c 30000000 /dev/zero | tail -c 30000000 > /dev/null";
    let words = [&["compare", "--cmd", small, "--cmd", once], &words[5..]].concat();
    stage
        .say(&words)
        .code(0)
        .out("not confirmed in fresh rounds");
}

#[test]
fn until_sure_ends_with_the_first_look_that_says_something() {
    let stage = Stage::new();
    let words = [
        "compare",
        "--cmd=true",
        "--cmd=sleep 0.3",
        "--until-sure",
        "--settle=0",
        "--metrics=wall",
        "--format=json",
    ];
    let comparison = json(&stage.say(&words).code(0));
    assert_eq!(comparison["sides"][0]["runs"], 10);
    assert_eq!(comparison["alpha"], 0.01);
}

#[test]
fn ctrl_c_reports_the_rounds_done() {
    let stage = Stage::new();
    let text = SHORT.replace("[a]", "[a]\nexec_prerun=echo begun >> begun");
    let a = stage.file("a.fio", text.replace("50ms", "200ms"));
    let words = [
        "compare",
        "--run",
        &a,
        &a,
        "--rounds=100",
        "--settle=0",
        "--warmup=0",
        "--store-result=r.json",
    ];
    let running = Running::start(stage.weir(&words));
    let begun = || std::fs::read_to_string(stage.path("begun")).unwrap_or_default();
    until("the sixth run begins", || begun().lines().count() >= 6);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    let said = said.out("compare  ").out("rounds ABBA");
    let stored = Runs::from_json(&stage.read("r.json")).unwrap();
    assert!(
        stored
            .series
            .iter()
            .all(|series| series.whole().count() >= 2),
        "{said}"
    );
}
