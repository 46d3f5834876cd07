//! The history: what is kept, how it is found again, what happens where it cannot be written.

mod slow;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value as Json;

use crate::stage::{Said, Stage, WEIR, is_root, said, skip};

const JOB: &str = "[a]\nioengine=null\nrw=read\nsize=1m\n";

/// weir with a history of its own.
fn weir(stage: &Stage, words: &[&str]) -> Command {
    with_history(stage, stage.weir(words))
}

fn with_history(stage: &Stage, mut command: Command) -> Command {
    command
        .env_remove("WEIR_HISTORY")
        .env("XDG_STATE_HOME", stage.path("state"));
    command
}

fn say(stage: &Stage, words: &[&str]) -> Said {
    said(weir(stage, words))
}

fn kept(stage: &Stage) -> Vec<Json> {
    let list = say(stage, &["history", "list", "--json", "--limit", "all"]).code(0);
    serde_json::from_str(&list.out).unwrap()
}

fn stage_with_runs(runs: usize) -> Stage {
    let stage = Stage::in_memory();
    stage.file("a.fio", JOB);
    for _ in 0..runs {
        say(&stage, &["run", "a.fio"]).code(0).calm();
    }
    stage
}

#[test]
fn a_run_is_kept_and_shown_again_byte_for_byte() {
    let stage = stage_with_runs(0);
    let live = say(&stage, &["run", "a.fio"]).code(0).calm();
    let line = live.out.lines().last().unwrap();
    assert!(line.starts_with("result      "), "{live}");
    let short = line.rsplit(' ').next().unwrap();
    for name in [short, &short[..8], &short.to_lowercase(), "@-1"] {
        let again = say(&stage, &["show", name]).code(0).calm();
        assert_eq!(again.out, live.out);
    }
    let narrow = say(&stage, &["show", short, "--width", "60"]).code(0);
    assert!(narrow.out.lines().all(|line| line.chars().count() <= 60));
    let mode = |name: &str| fs::metadata(stage.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("state/weir"), 0o700);
    assert_eq!(mode("state/weir/history.db"), 0o600);
    // The reader closed the stream, and the run is kept all the same.
    let words = "\"$0\" run a.fio | head -1";
    let mut piped = stage.command("sh");
    piped.args(["-c", words, WEIR]);
    piped
        .env_remove("WEIR_HISTORY")
        .env("XDG_STATE_HOME", stage.path("state"));
    said(piped).code(0);
    assert_eq!(kept(&stage).len(), 2);
}

#[test]
fn house_verbs_keep_their_runs_and_doors_of_peers_where_they_are_told_to() {
    let stage = stage_with_runs(1);
    say(&stage, &["run", "--history=off", "a.fio"]).code(0);
    said(with_history(&stage, stage.peer(&["fio", "a.fio"]))).code(0);
    say(&stage, &["net", "lat-bw", "--min-time", "0.0001"]).code(0);
    assert_eq!(kept(&stage).len(), 2);
    let fio = || {
        let mut fio = with_history(&stage, stage.peer(&["fio", "a.fio"]));
        fio.env("WEIR_HISTORY", stage.path("state/weir/history.db"));
        fio
    };
    let live = said(fio()).code(0).calm();
    let verbs: Vec<String> = kept(&stage)
        .iter()
        .map(|run| run["verb"].to_string())
        .collect();
    assert_eq!(verbs, ["\"fio\"", "\"net\"", "\"run\""]);
    assert_eq!(say(&stage, &["show", "@-1"]).code(0).out, live.out);
    let other = say(&stage, &["run", "--history", "other.db", "a.fio"]).code(0);
    let words: Vec<&str> = other.out.split_whitespace().collect();
    let hint = "in history; again: WEIR_HISTORY=other.db weir show ";
    assert!(words.join(" ").contains(hint), "{other}");
    assert_eq!(kept(&stage).len(), 3);
    for words in [
        &["run", "--show-plan", "--history=x", "a.fio"][..],
        &["run", "--calibrate", "--history=x"],
    ] {
        say(&stage, words).code(2).silent().err("--history");
    }
}

#[test]
fn repeated_runs_are_one_entry() {
    let stage = stage_with_runs(0);
    let live = say(&stage, &["run", "--repeat=2", "a.fio"]).code(0);
    assert_eq!(kept(&stage).len(), 1);
    assert_eq!(say(&stage, &["show", "@-1"]).code(0).out, live.out);
    stage.file("b.fio", JOB.replace("read", "write"));
    let live = say(&stage, &["run", "--repeat=2", "a.fio", "b.fio"]).code(0);
    assert_eq!(kept(&stage).len(), 3);
    assert_eq!(
        live.out.matches(" in history; again: ").count(),
        2,
        "{live}"
    );
}

#[test]
fn a_failed_run_is_kept_with_its_exit_code() {
    let stage = stage_with_runs(1);
    say(
        &stage,
        &["run", "--strict", "--set", "runtime=10ms", "a.fio"],
    )
    .code(1);
    let runs = kept(&stage);
    assert_eq!(
        (&runs[0]["exit_code"], &runs[1]["exit_code"]),
        (&1.into(), &0.into())
    );
    say(&stage, &["history"]).code(0).out("(failed)");
}

#[test]
fn labels_tags_notes_and_baselines_name_runs() {
    let stage = stage_with_runs(3);
    let of = |words: &[&str]| say(&stage, &[&["history"], words].concat()).code(0);
    of(&["label", "@-1", "nightly"]);
    of(&["label", "@-2", "nightly"]);
    of(&["tag", "@-1", "disk=x", "keep"]);
    of(&["note", "@-3", "the", "first"]);
    of(&["baseline", "set", "@-2"]);
    let runs = kept(&stage);
    assert_eq!(
        runs[0]["tags"],
        serde_json::json!({"disk": "x", "keep": ""})
    );
    assert_eq!(runs[2]["note"], "the first");
    let several = say(&stage, &["show", "label:nightly", "--format", "json"]).code(0);
    let several: Json = serde_json::from_str(&several.out).unwrap();
    assert_eq!(several["series"][0]["runs"].as_array().unwrap().len(), 2);
    let id = |words: &[&str]| -> Json {
        let said = say(&stage, &[words, &["--format", "json"]].concat()).code(0);
        serde_json::from_str::<Json>(&said.out).unwrap()["history"]["id"].take()
    };
    assert_eq!(id(&["show", "baseline"]), runs[1]["id"]);
    of(&["list", "--tag", "disk=x", "--label", "nightly"]).out("label:nightly  disk=x  keep");
    of(&["list", "--label", "none"]).silent();
    let base = runs[1]["id"].as_str().unwrap();
    say(&stage, &["history", "rm", base])
        .code(2)
        .err("is a baseline");
    of(&["baseline", "clear"]);
    of(&["rm", base]);
    of(&["tag", "@-1", "--remove", "keep"]);
    of(&["label", "@-1", "--clear"]);
    let runs = kept(&stage);
    assert_eq!((runs.len(), &runs[0]["label"]), (2, &Json::Null));
    of(&["check"]).out("2 runs, no fault");
    // A file of the same name wins.
    fs::write(stage.path("baseline"), "{}").unwrap();
    say(&stage, &["show", "baseline"]).code(2).err("baseline:");
}

#[test]
fn what_names_no_run_is_refused_with_a_remedy() {
    let stage = stage_with_runs(0);
    say(&stage, &["history"]).code(0).silent().err("no run yet");
    say(&stage, &["history", "trend"])
        .code(2)
        .err("there is no history yet");
    say(&stage, &["show", "@-1"])
        .code(2)
        .err("the history has no run yet");
    say(&stage, &["run", "a.fio"]).code(0);
    say(&stage, &["show", "@-2"])
        .code(2)
        .err("no run `@-2`")
        .err("`weir history` lists");
    say(&stage, &["show", "01ABCDEF"])
        .code(2)
        .err("no run `01ABCDEF`")
        .err("no file of this name");
    say(&stage, &["show", "label:x"])
        .code(2)
        .err("no run `label:x`");
    for words in [&["show", "01A"][..], &["history", "tag", "01A", "k"]] {
        let said = say(&stage, words).code(2).silent();
        said.err("too short").err("at least 4 characters");
    }
    say(&stage, &["history", "trend", "read p98"])
        .code(2)
        .err("did you mean `read p9");
    say(&stage, &["history", "trend", "--plan", "nosuch"])
        .code(2)
        .err("history.db: no plan `nosuch`")
        .err("`weir history` lists the runs");
    say(&stage, &["history", "rm"])
        .code(2)
        .err("RUN is missing");
    let mut off = weir(&stage, &["history"]);
    off.env("WEIR_HISTORY", "off");
    said(off).code(2).err("there is no history");
    fs::write(
        stage.path("text.db"),
        "no database at all, only some text in a file",
    )
    .unwrap();
    say(&stage, &["history", "list", "--history", "text.db"])
        .code(2)
        .err("is no history of weir");
}

#[test]
fn runs_go_to_files_and_come_back() {
    let stage = stage_with_runs(2);
    let of = |words: &[&str]| say(&stage, &[&["history"], words].concat()).code(0);
    of(&["label", "@-1", "x"]);
    of(&["tag", "@-1", "k=v"]);
    of(&["export", "--output", "runs.jsonl"]);
    of(&["export", "--format", "db", "--output", "copy.db"]);
    let csv = of(&["export", "--format", "csv"]).out;
    assert!(csv.starts_with("run_id,time_utc,label,plan,"), "{csv}");
    assert!(
        csv.lines()
            .skip(1)
            .all(|line| line.split(',').count() == 19),
        "{csv}"
    );
    of(&["import", "runs.jsonl"]).out("0 runs added, 2 are there already");
    for (from, to) in [("runs.jsonl", "one.db"), ("copy.db", "two.db")] {
        of(&["import", from, "--history", to]).out("2 runs added");
        let of_other = of(&["list", "--json", "--limit", "all", "--history", to]).out;
        let other: Vec<Json> = serde_json::from_str(&of_other).unwrap();
        assert_eq!(other, kept(&stage), "{to}");
    }
    let live = say(
        &stage,
        &["run", "--store-result=r.json", "--history=off", "a.fio"],
    )
    .code(0);
    of(&["import", "r.json"]).out("1 run added\n");
    let newest = kept(&stage);
    assert!(newest.iter().any(|run| run["source"] == "r.json"), "{live}");
    fs::write(stage.path("cut.jsonl"), &stage.read("runs.jsonl")[..900]).unwrap();
    say(&stage, &["history", "import", "cut.jsonl"])
        .code(2)
        .err("line 1: ");
}

/// A history with runs whose rates are these.
fn with_rates(stage: &Stage, rates: &[f64]) {
    let _ = fs::remove_dir_all(stage.path("state"));
    say(stage, &["run", "a.fio"]).code(0);
    say(stage, &["history", "export", "--output", "one.jsonl"]).code(0);
    fs::remove_dir_all(stage.path("state")).unwrap();
    let line: Json = serde_json::from_str(&stage.read("one.jsonl")).unwrap();
    let mut lines = String::new();
    for (at, rate) in rates.iter().enumerate() {
        let mut line = line.clone();
        line["id"] = format!("01AAAAAAAA00000000000000{:02}", 10 + at).into();
        line["exit_code"] = 0.into();
        let result = &mut line["result"];
        result["warnings"] = Json::Array(Vec::new());
        result["started_unix_ns"] =
            (1_790_000_000_000_000_000 + 86_400_000_000_000 * at as u64).into();
        if at >= 30 {
            result["host"]["kernel"] = "9.9".into();
        }
        let metrics = result["groups"][0]["jobs"][0]["metrics"]
            .as_array_mut()
            .unwrap();
        let rated = metrics
            .iter_mut()
            .find(|metric| metric["name"] == "read rate");
        rated.unwrap()["value"] = (*rate).into();
        lines += &(line.to_string() + "\n");
    }
    stage.file("many.jsonl", lines);
    say(stage, &["history", "import", "many.jsonl"]).code(0);
}

/// Values that lie around 1, as evenly as numbers of a fixed sequence do.
fn noise(at: usize) -> f64 {
    let step = u32::try_from((at * 7919 + 13) % 101).unwrap();
    1.0 + (f64::from(step) / 101.0 - 0.5) * 0.03
}

#[test]
fn a_trend_names_the_run_at_which_a_figure_changed() {
    let stage = stage_with_runs(0);
    let level = |at: usize| if at < 30 { 1e6 } else { 0.95e6 };
    let rates: Vec<f64> = (0..40).map(|at| level(at) * noise(at)).collect();
    with_rates(&stage, &rates);
    let said = say(&stage, &["history", "trend", "rate", "--json"]).code(0);
    let trends: Json = serde_json::from_str(&said.out).unwrap();
    let changes = trends[0]["changes"].as_array().unwrap();
    let [change] = &changes[..] else {
        panic!("{said}")
    };
    assert_eq!(change["run"], trends[0]["runs"][30]["id"]);
    let text = say(&stage, &["history", "trend"]).code(0);
    let text = text
        .out("since 01AAAAAAAA")
        .out(", 10 runs, worse")
        .out("kernel ");
    text.out("-> 9.9");
    // The neighbours of the change stay, whatever is pruned.
    let words = ["history", "prune", "--keep", "1", "--metrics-too"];
    say(&stage, &words).code(0).out("37 runs removed, 2 spared");
    let left: Vec<String> = kept(&stage)
        .iter()
        .map(|run| run["id"].to_string())
        .collect();
    assert_eq!(left.len(), 3);
    let odd: Vec<f64> = (0..40)
        .map(|at| if at == 25 { 0.7e6 } else { 1e6 * noise(at) })
        .collect();
    with_rates(&stage, &odd);
    say(&stage, &["history", "trend", "read rate"])
        .code(0)
        .out("no change in 40 runs");
}

#[test]
fn a_run_of_a_new_level_says_so() {
    let stage = stage_with_runs(0);
    let rates: Vec<f64> = (0..20).map(|at| 1e12 * noise(at)).collect();
    with_rates(&stage, &rates);
    // A run that was disturbed does not count.
    let message = (0..30).find_map(|_| {
        let said = say(&stage, &["run", "a.fio"]).code(0);
        said.err.contains("note: ").then_some(said)
    });
    let message = message.unwrap();
    // As soon as three runs say so, at the latest where the tenth does.
    let is_early = (3..=10).any(|runs| message.err.contains(&format!(" ({runs} runs)")));
    assert!(is_early, "{message}");
    message.err("note: a: read rate -").err(" % since run 01");
    let mut fio = with_history(&stage, stage.peer(&["fio", "a.fio"]));
    fio.env("WEIR_HISTORY", stage.path("state/weir/history.db"));
    said(fio).code(0).calm();
}

#[test]
fn pruned_results_leave_their_figures() {
    let stage = stage_with_runs(3);
    let dry = ["history", "prune", "--keep", "1", "--dry-run"];
    say(&stage, &dry).code(0).out("2 results would be removed");
    say(&stage, &dry[..4]).code(0).out("2 results removed");
    assert_eq!(kept(&stage).len(), 3);
    say(&stage, &["show", "@-1"]).code(0);
    say(&stage, &["show", "@-2"]).code(2).err("was pruned");
    say(&stage, &["history", "export", "--format", "csv"])
        .code(0)
        .calm();
    say(&stage, &["history", "export"])
        .code(0)
        .err("2 runs are left out");
    say(&stage, &["history", "check"]).code(0);
}

#[test]
fn where_nothing_can_be_written_the_run_is_as_good() {
    let stage = stage_with_runs(0);
    // A directory cannot be where a file is.
    stage.file("state", "");
    let said = say(&stage, &["run", "a.fio"]).code(0);
    let said = said.err("warning: the history does not have this run: ");
    assert!(!said.out.contains(" in history; "), "{said}");
    let file = stage
        .list()
        .into_iter()
        .find(|name| name.starts_with("weir-"))
        .unwrap();
    say(&stage, &["show", &file]).code(0);
    fs::remove_file(stage.path("state")).unwrap();
    // Nor is a history what only looks like one.
    fs::create_dir_all(stage.path("state/weir")).unwrap();
    stage.file("state/weir/history.db", "text".repeat(1000));
    say(&stage, &["run", "a.fio"])
        .code(0)
        .err("is no history of weir");
    assert_eq!(stage.read("state/weir/history.db"), "text".repeat(1000));
}

#[test]
fn a_result_that_goes_nowhere_is_lost_for_a_reason_that_is_told() {
    let stage = stage_with_runs(0);
    stage.file("state", "");
    // Nothing can be made there, and nobody has a right that would change it.
    let mut run = weir(&stage, &["run", &stage.path("a.fio")]);
    run.current_dir("/proc");
    let said = said(run).code(0);
    let lost = "and the result cannot be written to a file either: weir-";
    let said = said.err(lost);
    assert!(!said.err.contains("no room"), "{said}");
}

#[test]
fn a_history_of_a_newer_weir_is_only_read() {
    let stage = stage_with_runs(1);
    let path = stage.path("state/weir/history.db");
    // Nothing is left in the log then.
    say(&stage, &["history", "check"]).code(0);
    // The version stands in bytes 60 to 63 of the file.
    let mut bytes = fs::read(&path).unwrap();
    bytes[63] = 99;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(kept(&stage).len(), 1);
    say(&stage, &["show", "@-1"]).code(0);
    say(&stage, &["history", "label", "@-1", "x"])
        .code(3)
        .err("by a newer weir (version 99");
    let run = say(&stage, &["run", "a.fio"]).code(0);
    run.err("warning: ").err("by a newer weir");
    assert_eq!(kept(&stage).len(), 1);
}

#[test]
fn no_report_replaces_a_history() {
    let stage = stage_with_runs(1);
    let file = stage.path("state/weir/history.db");
    let file = file.as_str();
    let before = kept(&stage);
    let job = stage.file("j.fio", "[a]\nioengine=null\nsize=64k\n");
    let result = stage.file("x.csv", "a,b\n1,2\n");
    for words in [
        &["history", "export", "--output", file][..],
        &["history", "export", "--format=csv", "--output", file],
        &["history", "export", "--format=db", "--output", file],
        &["run", "--store-result", file, &job],
        &["import", "csv", &result, "--column", "a=b", "-o", file],
    ] {
        let said = say(&stage, words);
        assert!(
            [
                "it is a database",
                "is there already",
                "this file is the history"
            ]
            .iter()
            .any(|why| said.err.contains(why)),
            "{words:?}: {said}"
        );
        assert_ne!(said.code, Some(0), "{words:?}");
    }
    assert_eq!(kept(&stage), before);
    say(&stage, &["history", "check"]).code(0);
}
