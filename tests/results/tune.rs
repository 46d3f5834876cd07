//! `weir tune`, from a command to the settings that are kept.

mod slow;

use crate::stage::{Said, Stage, WEIR, has, lacks_mounts, said, skip};

/// A job whose rate is what its limit says: the limits lie far apart, so that a busy machine changes no
/// order.
const JOB: &str = "[a]\nioengine=null\nsize=64m\nrw=write\nbs=4k\nnumber_ios=20\n";
/// The same as a configuration of which a key varies.
const CONFIG: &str = "; a job\n[a]\nioengine=null\nsize=64m\nrw=write\n\
                      rate_iops=100\nnumber_ios=20\n";
const VARIED: &str = "--set=rate_iops={limit=100..1600*4}";

fn stage() -> Stage {
    let stage = Stage::in_memory();
    stage.file("a.fio", JOB);
    stage
}

fn tune(stage: &Stage, flags: &[&str], command: &[&str]) -> Said {
    let has_metric = flags.contains(&"--metric");
    let metric: &[&str] = if has_metric {
        &[]
    } else {
        &["--metric", "rate"]
    };
    let words = [&["tune"], metric, flags, &["--"], command].concat();
    stage.say(&words)
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_better_value_is_found_and_kept_and_every_trial_is_listed() {
    let stage = stage();
    let flags = ["-o", "best", "--trail", "t.jsonl", "--format", "json"];
    let said = tune(&stage, &flags, &["run", VARIED, "a.fio"]).code(0);
    let report = json(&said.out);
    assert_eq!(report["schema"], "weir.tune-report.v1");
    assert_eq!(report["best"], serde_json::json!([["limit", "1600"]]));
    assert_eq!(
        (&report["kept"], &report["end"]),
        (&"best".into(), &"settled".into())
    );
    let metric = &report["comparison"]["pairs"][0]["jobs"][0]["metrics"][0];
    assert_eq!(metric["verdict"]["name"], "better");
    assert_eq!(metric["a_runs"].as_array().unwrap().len(), 6);
    let best = stage.read("best");
    assert_eq!(best, "weir run --set=rate_iops=1600 a.fio\n");
    let trail = stage.read("t.jsonl");
    let trials: Vec<serde_json::Value> = trail.lines().skip(1).map(json).collect();
    assert_eq!(report["trials"].as_array().unwrap(), &trials);
    // The start has its three trials, and 1600 of its own.
    assert!(trials.len() >= 6, "{trail}");
    assert_eq!(json(trail.lines().next().unwrap())["unit"], "ops/s");
}

#[test]
fn keys_of_a_configuration_vary_and_the_file_that_wins_keeps_all_else() {
    let stage = stage();
    stage.file("job.fio", CONFIG);
    let flags = ["-c", "job.fio", "--vary", "rate_iops=400..1600*4"];
    let said = tune(&stage, &flags, &["run", "{config}"]).code(0);
    said.out("kept: rate_iops=1600").out("written: job.fio.out");
    let kept = CONFIG.replace("rate_iops=100", "rate_iops=1600");
    assert_eq!(
        (stage.read("job.fio.out"), stage.read("job.fio")),
        (kept, CONFIG.to_owned())
    );
}

#[test]
fn settings_that_change_nothing_leave_the_start() {
    let stage = stage();
    stage.file("job.fio", CONFIG);
    let said = tune(
        &stage,
        &["-o", "kept"],
        &["run", "--set=description={d=x,y}", "job.fio"],
    );
    said.code(0).out("kept: the settings it started with");
    assert_eq!(stage.read("kept"), "weir run --set=description=x job.fio\n");
}

#[test]
fn values_that_do_not_work_are_listed_with_the_reason_and_the_search_goes_on() {
    let stage = stage();
    let command = ["run", "--set=rate_iops={limit=100,1600,-1,400}", "a.fio"];
    let said = tune(&stage, &["--format", "json"], &command).code(0);
    let report = json(&said.out);
    assert_eq!(report["best"][0][1], "1600");
    let trials = report["trials"].as_array().unwrap();
    let failed = trials
        .iter()
        .find(|trial| trial["value"].is_null())
        .unwrap();
    assert_eq!(failed["point"], serde_json::json!([2]));
    assert!(
        failed["failure"].as_str().unwrap().contains("rate_iops"),
        "{failed}"
    );
}

#[test]
fn a_search_that_cannot_begin_says_why_and_writes_nothing() {
    let stage = stage();
    stage.file("job.fio", CONFIG);
    let before = stage.list();
    let good = ["run", VARIED, "a.fio"];
    for (flags, command, code, says) in [
        (
            &["--metric", "raet"][..],
            &good[..],
            2,
            "did you mean `rate`?",
        ),
        (&["--job", "b"], &good, 2, "--job: no job is called `b`"),
        (&[], &["run", VARIED, "none.fio"], 2, "none.fio"),
        (
            &["-c", "job.fio", "--vary", "rate_iop=1,2"],
            &["run", "{config}"],
            2,
            "did you mean `rate_iops`?",
        ),
        (
            &["-c", "none", "--vary", "a=1,2"],
            &["run", "{config}"],
            2,
            "none: No such file",
        ),
        (
            &["-o", "t", "--trail", "t"],
            &good,
            2,
            "--trail t: that is the file of --output",
        ),
        (&["-o", "no/such/folder"], &good, 2, "cannot be written"),
    ] {
        let said = tune(&stage, flags, command).silent();
        assert_eq!(said.code, Some(code), "{said}");
        said.err(says);
    }
    assert_eq!(stage.list(), before);
}

#[test]
fn a_signal_ends_the_search_and_the_trail_has_every_trial() {
    let stage = stage();
    let words = [
        &[
            "tune", "--metric", "rate", "--trail", "t.jsonl", "-o", "best", "--",
        ][..],
        &["run", "--set=rate_iops={limit=20..90+1}", "a.fio"],
    ]
    .concat();
    let running = crate::stage::Running::start(stage.weir(&words));
    let is_there = || stage.list().contains(&"t.jsonl".to_owned());
    while !(is_there() && stage.read("t.jsonl").lines().count() > 1) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running.signal(rustix::process::Signal::INT);
    let said = running.end().code(130).out("interrupted");
    said.out("nothing is kept");
    let trail = stage.read("t.jsonl");
    assert!(trail.ends_with('\n') && trail.lines().all(|line| json(line).is_object()));
    assert!(!stage.list().contains(&"best".to_owned()));
}

/// One workspace with everything in batches of one, and a key that weir does not act on.
const PATH: &str = "# one core\ndevice_name : mlx5_0\nrole : loopback\nkAppCoreNum : 1\nkDispQueueNum : 1\n\
    kAppTxMsgBatchSize : 1\nkDispTxBatchSize : 1\niteration : 1\nduration : 0.05\n\
    workload : 0 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0\n";

/// Two workspaces, of which one dispatches; every batch is one.
const SLOW_PATH: &str = "role : loopback\nkAppCoreNum : 1\nkDispQueueNum : 1\nkAppTxMsgBatchSize : 1\n\
    kAppRxMsgBatchSize : 1\nkDispTxBatchSize : 1\nkDispRxBatchSize : 1\nkNICTxPostSize : 1\nkNICRxPostSize : 1\n\
    iteration : 1\nduration : 0.05\n\
    workload : 0 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 1 : 0 : 1\n";

#[test]
fn layouts_of_a_loopback_are_tried_and_what_is_kept_is_better_for_sure() {
    let stage = stage();
    stage.file("c", SLOW_PATH);
    let words = ["tune", "-c", "c", "-t", "12", "--format", "json"];
    let report = json(&stage.say(&words).code(0).out);
    let layouts = &report["search"]["space"]["dimensions"][0];
    assert_eq!(
        layouts["values"],
        serde_json::json!(["given", "combined", "combined-of-1"])
    );
    let tried = report["trials"].as_array().unwrap();
    // Behind the start, all three with batches of 32.
    let compared: Vec<_> = tried[3..6].iter().map(|trial| &trial["point"]).collect();
    for (at, point) in compared.iter().enumerate() {
        assert_eq!(point[0], at, "{report}");
        assert_eq!(&point.as_array().unwrap()[1..7], [4; 6], "{report}");
    }
    // Whether something was better depends on what else this machine does; nothing else is kept.
    let metric = &report["comparison"]["pairs"][0]["jobs"][0]["metrics"][0];
    let is_better = metric["verdict"]["name"] == "better";
    assert_eq!(report["kept"] == "best", is_better, "{report}");
    assert!(
        !is_better || metric["ratio"]["low"].as_f64() > Some(1.0),
        "{report}"
    );
    stage.say(&["axio", "tools", "-c", "c.out", "-v"]).code(0);
    stage.say(&["axio", "-c", "c.out"]).code(0);
}

#[test]
fn other_figures_have_to_keep_their_limits() {
    let stage = stage();
    let kept = tune(
        &stage,
        &["--slo", "write rate=50"],
        &["run", VARIED, "a.fio"],
    )
    .code(0);
    kept.out("kept: limit=1600");
    let never = ["run", VARIED, "a.fio"];
    let said = tune(&stage, &["--slo", "write rate=1G"], &never).code(1);
    said.err("the settings that it starts with fail: --slo write rate=1G: ")
        .err(" ops/s is below it");
    tune(&stage, &["--slo", "loss=0"], &never)
        .code(2)
        .err("--slo: ");
    tune(&stage, &["--slo", "wrte rate=1"], &never)
        .code(2)
        .err("--slo: ");
    let path = ["--objective", "p99"];
    tune(&stage, &path, &never)
        .code(2)
        .err("--objective acts only without COMMAND and --metric");
    stage.say(&["tune"]).code(2).err("COMMAND is missing");
    // Before the first trial, which this configuration does not even allow.
    stage.file("c", "no_key : 1\n");
    let early = ["tune", "-c", "c", "--slo", "foo=1"];
    stage.say(&early).code(2).err("no figure `foo`");
    stage.file("odd", "no_key : 1\n");
    stage
        .say(&["tune", "-c", "odd"])
        .code(2)
        .err("error: odd:1: no key `no_key`");
}

/// A file system of one page, which is used already; then a search.
const FULL: &str = "\
mount -t tmpfs -o size=4k none full
echo used > full/used
exec \"$@\"
";

#[test]
fn two_searches_at_once_share_no_trail() {
    let stage = stage();
    let words = [
        &["tune", "--metric", "rate", "--trail", "t.jsonl", "--"][..],
        &["run", "--set=rate_iops={limit=20..90+1}", "a.fio"],
    ]
    .concat();
    let running = crate::stage::Running::start(stage.weir(&words));
    let is_there = || stage.list().contains(&"t.jsonl".to_owned());
    while !(is_there() && stage.read("t.jsonl").lines().count() > 1) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let second = stage.say(&words).code(2).silent();
    second.err("--trail t.jsonl: another search writes it\n  help: wait for it");
    running.signal(rustix::process::Signal::INT);
    running.end().code(130);
    // A search that is cut short compares the best that it has seen with the start.
    let flags = ["-t", "4", "--format", "json"];
    let cut = tune(&stage, &flags, &["run", VARIED, "a.fio"]).code(0);
    assert!(json(&cut.out)["comparison"].is_object(), "{cut}");
}

#[test]
fn a_path_that_answers_nothing_is_not_searched() {
    let stage = stage();
    let none = "\nmsg_handler : Empty\npkt_handler : Empty\n";
    let kept = PATH.lines().filter(|line| !line.contains("_handler"));
    let kept: Vec<&str> = kept.collect();
    stage.file("path.conf", kept.join("\n") + none);
    let said = stage.say(&["tune", "-c", "path.conf", "-t", "3"]).code(2);
    said.err("path.conf: a search compares what comes back: msg_handler Empty answers nothing");
}

#[test]
fn a_limit_without_its_unit_is_refused_before_the_first_trial() {
    let stage = stage();
    stage.file("path.conf", PATH);
    for (limit, says) in [
        (
            "p99=50",
            "--slo p99=50: a time has a unit\n  help: p99=50us",
        ),
        ("message p50=0.5", "help: message p50=0.5us"),
        ("loss=1ms", "`ms` is no unit of it"),
        ("packet rate=5us", "`us` is no unit of it"),
        ("p99=5k", "`k` is no unit of it"),
    ] {
        let said = stage.say(&["tune", "-c", "path.conf", "--slo", limit]);
        said.code(2).err(says);
    }
    let said = tune(
        &stage,
        &["--metric", "rate", "--slo", "read p99=50"],
        &["run", VARIED, "a.fio"],
    );
    said.code(2)
        .err("--slo read p99=50: a time has a unit\n  help: read p99=50us");
}

#[test]
fn a_folder_for_temporary_files_that_is_not_there_is_named() {
    let stage = stage();
    stage.file("path.conf", PATH);
    stage.file("file", "");
    for (folder, why) in [
        ("/nowhere/at/all", "No such file"),
        ("file", "Not a directory"),
    ] {
        for words in [
            &["tune", "-c", "path.conf"][..],
            &["run", "--repeat=2", "a.fio"],
            &["compare", "--cmd", "run a.fio", "--cmd", "run a.fio"],
        ] {
            let mut command = stage.weir(words);
            command.env("TMPDIR", folder);
            said(command).code(3).err(&format!(
                "cannot make a folder in {folder}, which TMPDIR names: {why}"
            ));
        }
    }
}
