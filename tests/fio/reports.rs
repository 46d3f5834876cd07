//! Reports of the fio door in every format, while it runs and when things go wrong.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::stage::{Stage, said};

#[test]
fn several_formats_stand_in_one_stream_in_fios_order() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nioengine=null\nsize=1m\n");
    let said = stage
        .peer_says(&["fio", "--output-format=normal,json,terse", "j.fio"])
        .code(0)
        .calm();
    let place = |text: &str| {
        said.out
            .find(text)
            .unwrap_or_else(|| panic!("{text}\n{said}"))
    };
    let places = [
        "Starting 1 thread",
        "\n3;weir-",
        "\n{\n",
        "\n}\n\na: (groupid=0",
        "Run status",
    ];
    assert!(places.map(place).is_sorted(), "{said}");
    let minimal = stage
        .peer_says(&["fio", "--minimal", "j.fio"])
        .code(0)
        .calm();
    assert_eq!(minimal.out.lines().count(), 1, "{minimal}");
    let fields = |n: &str| {
        let version = format!("--terse-version={n}");
        let said = stage
            .peer_says(&["fio", "--minimal", &version, "j.fio"])
            .code(0);
        said.out.trim_end().split(';').count()
    };
    assert_eq!(["2", "3", "4", "5"].map(fields), [161, 121, 162, 180]);
    let appended = stage.peer_says(&["fio", "--append-terse", "j.fio"]).code(0);
    assert!(appended.out.contains("\n3;weir-") && appended.out.contains("Run status"));
    stage
        .peer_says(&["fio", "--terse-version=9", "j.fio"])
        .code(1)
        .silent()
        .err("fio: bad terse version format");
}

/// A job that runs until it is told to end.
const ENDLESS: &str =
    "[a]\nioengine=null\nsize=1t\nrw=randrw\nrate_iops=500\ntime_based\nruntime=60\n";

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))
}

#[test]
fn reports_at_intervals_are_json_lines_of_which_the_last_is_whole() {
    let stage = Stage::new();
    stage.file(
        "j.fio",
        "[a]\nioengine=null\nsize=1t\nrate_iops=1000\ntime_based\nruntime=1\n",
    );
    let words = [
        "fio",
        "--status-interval=200ms",
        "--output-format=json",
        "j.fio",
    ];
    let said = stage.peer_says(&words).code(0).calm();
    let lines: Vec<Value> = said.out.lines().map(parsed).collect();
    let (last, partial) = lines.split_last().unwrap();
    assert!(partial.len() >= 2, "{said}");
    assert!(partial.iter().all(|d| d["weir"]["partial"] == true));
    assert!(last["weir"].get("partial").is_none() && last["weir"]["complete"] == true);
    let done = |d: &Value| d["jobs"][0]["read"]["total_ios"].as_u64().unwrap();
    assert!(lines.is_sorted_by_key(done) && done(last) > 0, "{said}");
    let refused = stage
        .peer_says(&["fio", "--status-interval=0", "j.fio"])
        .code(1);
    refused.silent().err("fio: status interval too small");
}

#[test]
fn a_signal_and_a_file_ask_for_a_report_and_a_signal_ends_with_the_last() {
    let stage = Stage::new();
    stage.file("j.fio", ENDLESS);
    let mut command = stage.peer(&["fio", "--output-format=json", "j.fio"]);
    command
        .env("TMPDIR", stage.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The file is an order from before the start as well.
    let request = stage.file("fio-dump-status", "");
    let first = parsed(&lines.next().unwrap().unwrap());
    assert!(!std::path::Path::new(&request).exists());
    signal(rustix::process::Signal::USR1);
    let second = parsed(&lines.next().unwrap().unwrap());
    for partial in [&first, &second] {
        assert_eq!(partial["weir"]["partial"], true);
        assert_eq!(partial["jobs"][0]["error"], 0);
    }
    signal(rustix::process::Signal::INT);
    let last = parsed(&lines.next().unwrap().unwrap());
    assert_eq!(last["weir"]["ended_by_signal"], 2);
    assert_eq!(child.wait().unwrap().code(), Some(128));
}

#[test]
fn a_report_file_holds_every_report_while_it_runs() {
    let stage = Stage::new();
    stage.file(
        "j.fio",
        "[a]\nioengine=null\nsize=1t\nrate_iops=1000\ntime_based\nruntime=1\n",
    );
    let words = [
        "fio",
        "--status-interval=300ms",
        "--compat",
        "--output-format=json",
        "--output=r",
        "j.fio",
    ];
    stage.peer_says(&words).code(0).silent().calm();
    let text = stage.read("r");
    let documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    assert!(documents.map(Result::unwrap).count() >= 3);
    assert!(text.lines().count() > 300, "pretty as fio's");
}

#[test]
fn errors_after_which_a_job_goes_on_are_printed_if_asked_for() {
    let stage = Stage::new();
    let words = |dump| {
        [
            "fio",
            "--name=a",
            "--rw=write",
            "--filename=/dev/full",
            "--size=8k",
            "--ignore_error=,ENOSPC",
            dump,
        ]
    };
    let line = |offset: u32| {
        format!(
            "fio: io_u error on file /dev/full: No space left on device: write offset={offset}, \
             buflen=4096\n"
        )
    };
    let said = stage.peer_says(&words("--error_dump=1"));
    said.err(&line(0)).err(&line(4096));
    let said = stage.peer_says(&words("--error_dump=0"));
    assert!(!said.err.contains("io_u error on"), "{said}");
}

#[test]
fn json_is_whole_whatever_happens() {
    let stage = Stage::new();
    stage.file("fails.fio", "[missing]\nfilename=none\nrw=read\nsize=64k\nallow_file_create=0\n[full]\nfilename=/dev/full\nrw=write\nsize=64k\n[good]\nioengine=null\nsize=64k\n");
    let said = stage
        .peer_says(&["fio", "--output-format=json", "fails.fio"])
        .code(2);
    let report = parsed(&said.out);
    let errors: Vec<_> = report["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|j| j["error"].as_i64().unwrap())
        .collect();
    assert_eq!(errors[1..], [28, 0], "{said}");
    said.err("fio: pid=")
        .err("func=io_u error, error=No space left on device");
    let name = "--name=q\"uo\\te\u{1}\u{7f}\t\u{e9};";
    let words = [
        "--ioengine=null",
        "--size=4k",
        "--description=a\"b\\c\u{1b}",
    ];
    let with = |format| {
        let all = [&["fio", format, name], &words[..]].concat();
        stage.peer_says(&all).code(0)
    };
    let report = parsed(&with("--output-format=json").out);
    assert_eq!(
        report["jobs"][0]["jobname"],
        name.strip_prefix("--name=").unwrap()
    );
    assert_eq!(report["jobs"][0]["desc"], "a\"b\\c\u{1b}");
    assert_eq!(with("--minimal").out.lines().count(), 1);
    stage.file("bytes.fio", b"[b\xff\xfe]\nioengine=null\nsize=4k\n");
    let said = stage.peer_says(&["fio", "--output-format=json", "bytes.fio"]);
    assert!(
        said.out.is_empty() || parsed(&said.out).is_object(),
        "{said}"
    );
}

#[test]
fn jobs_below_their_minimum_and_operations_above_their_maximum_are_told_as_fio_tells_them() {
    let stage = Stage::new();
    let slow = "ioengine=null\nsize=1g\nbs=4k\nthinktime=100000\nruntime=10\ntime_based\n";
    stage.file(
        "slow.fio",
        format!("[w1]\n{slow}rate_min=1m\n[w2]\n{slow}rate_iops_min=100\n"),
    );
    let said = stage.peer_says(&["fio", "slow.fio"]).code(2);
    said.err("w1: rate_min=1048576B/s not met, got ")
        .err("w2: rate_iops_min=100 not met, got ")
        .out("err=5/file:-, func=check_min_rate, error=Input/output error");
    stage.file(
        "late.fio",
        "[a]\nfilename=/dev/zero\nfilesize=64m\nsize=64m\nbs=32m\nmax_latency=1us\n",
    );
    stage
        .peer_says(&["fio", "late.fio"])
        .code(1)
        .err("nsec exceeds specified max (1000 nsec): /dev/zero read 0 33554432")
        .out("err=110/file:/dev/zero, func=max latency exceeded, error=Connection timed out");
}

#[test]
fn failed_operations_are_counted_where_the_job_goes_on() {
    let stage = Stage::new();
    stage.file(
        "j.fio",
        "[a]\nfilename=/dev/full\nrw=write\nsize=64k\nignore_error=,ENOSPC\n",
    );
    stage
        .peer_says(&["fio", "j.fio"])
        .out("     errors    : total=16, first_error=28/<No space left on device>");
    let json = parsed(
        &stage
            .peer_says(&["fio", "--output-format=json", "j.fio"])
            .out,
    );
    assert_eq!(
        (
            &json["jobs"][0]["total_err"],
            &json["jobs"][0]["first_error"]
        ),
        (&16.into(), &28.into())
    );
    let terse = stage.peer_says(&["fio", "--minimal", "j.fio"]).out;
    assert!(terse.ends_with(";16;28\n"), "{terse}");
}

#[test]
fn a_trigger_ends_the_run_in_order_and_then_runs_its_command() {
    let stage = Stage::new();
    stage.file("j.fio", ENDLESS);
    stage.file("now", "");
    let words = [
        "fio",
        "--trigger-file=now",
        "--trigger=test ! -e now && echo pulled > mark",
        "--idle-prof=percpu",
        "--output-format=normal,json",
        "j.fio",
    ];
    let said = stage.peer_says(&words).code(0);
    assert_eq!(stage.read("mark"), "pulled\n", "{said}");
    let (json, text) = said.out.split_once("\n}\n").unwrap();
    let json = &json[json.find("\n{\n").unwrap()..];
    let document = parsed(&(json.to_owned() + "\n}"));
    assert_eq!(document["weir"]["ended_by_signal"], Value::Null);
    assert!(document["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
    let idle = &document["cpu_idleness"];
    let system = idle["system"].as_f64().unwrap();
    assert!((0.0..=100.0).contains(&system), "{idle}");
    assert!(idle["cpu-0"].is_f64() && idle["unit_mean"].as_f64() > Some(0.0));
    assert!(text.contains(&format!(
        "\nCPU idleness:\n  system: {system:.2}%\n  percpu: "
    )));
}

#[test]
fn a_job_that_cannot_start_or_is_interrupted_at_once_leaves_valid_json() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nfilename=none/there\nallow_file_create=0\n");
    let said = stage
        .peer_says(&["fio", "--output-format=json", "j.fio"])
        .code(1);
    let document = parsed(&said.out);
    assert_ne!(document["jobs"][0]["error"], 0);
    assert!(document["weir"]["plan"]["groups"].is_array());
}

#[test]
fn a_report_that_standard_output_does_not_take_is_told_once_and_fails_the_run() {
    let stage = Stage::new();
    let mut command = stage.command("sh");
    let words = "exec \"$0\" --name=a --ioengine=null --size=64k >/dev/full";
    command.args(["-c", words, crate::stage::peer("fio")]);
    let message = said(command).code(1).silent().err;
    assert_eq!(
        message
            .matches("error: standard output: No space left")
            .count(),
        1,
        "{message}"
    );
}

#[test]
fn thousands_of_files_that_lack_the_same_are_told_in_a_few_lines() {
    let stage = Stage::new();
    let words = "fio --name=a --ioengine=filecreate --nrfiles=5000 --filesize=4k \
                 --filename_format=none/$filenum";
    let words: Vec<&str> = words.split_whitespace().collect();
    let message = stage
        .peer_says(&words)
        .code(1)
        .err("4997 more failures of this kind")
        .err;
    assert!(message.lines().count() < 10, "{message}");
}
