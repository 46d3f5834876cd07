//! Recorded patterns: written by weir and by fio, carried out by both.

use super::stage::{Stage, said, skip};
use super::{done, fio, fios, has_all};

const MIXED: [&str; 5] = [
    "--filename=f0:f1",
    "--rw=randrw",
    "--bsrange=4k-16k",
    "--size=256k",
    "--fsync=8",
];

const PAUSE: &str = "fio version 3 iolog
0 f add
0 f open
5 f read 0 4096
200005 f read 4096 4096
200005 f close
";

/// The operations of a pattern: file, action, offset, length.
fn operations(stage: &Stage, log: &str) -> Vec<String> {
    let text = stage.read(log);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("fio version 3 iolog"));
    let rest = |line: &str| {
        let rest = line.split_once(' ').unwrap().1;
        // fio gives a flush the offset of what came before it.
        match rest.split_once(" sync ") {
            Some((file, _)) => format!("{file} sync 0 0"),
            None => rest.to_owned(),
        }
    };
    let is_operation = |line: &String| {
        let action = line.split(' ').nth(1).unwrap();
        !["add", "open", "close"].contains(&action)
    };
    lines.map(rest).filter(is_operation).collect()
}

#[test]
fn a_pattern_that_weir_wrote_gives_the_same_operations_again() {
    let stage = Stage::new();
    fio(&stage, &[&MIXED[..], &["--write_iolog=one.log"]].concat()).code(0);
    let first = operations(&stage, "one.log");
    assert!(first.len() > 20, "{first:?}");
    assert!(first.iter().any(|op| op.ends_with("sync 0 0")));
    let again = [
        "--read_iolog=one.log",
        "--write_iolog=two.log",
        "--replay_no_stall=1",
    ];
    for engine in ["psync", "libaio"] {
        let engine = format!("--ioengine={engine}");
        fio(&stage, &[&again[..], &[&engine, "--iodepth=4"]].concat()).code(0);
        assert_eq!(operations(&stage, "two.log"), first, "{engine}");
    }
}

#[test]
fn patterns_are_carried_out_across_both_programs() {
    if let Err(missing) = has_all(&["fio"]) {
        return skip("patterns_are_carried_out_across_both_programs", &missing);
    }
    // fio's pattern by weir.
    let stage = Stage::new();
    fios(&stage, &MIXED);
    let theirs = operations(&stage, "fios.log");
    let words = [
        "--read_iolog=fios.log",
        "--write_iolog=ours.log",
        "--replay_no_stall=1",
    ];
    fio(&stage, &words).code(0);
    assert_eq!(operations(&stage, "ours.log"), theirs);
    // weir's pattern by fio.
    let stage = Stage::new();
    fio(&stage, &[&MIXED[..], &["--write_iolog=ours.log"]].concat()).code(0);
    let ours = operations(&stage, "ours.log");
    let mut command = stage.command("fio");
    command.args(["--name=a", "--read_iolog=ours.log", "--replay_no_stall=1"]);
    command.args([
        "--write_iolog=theirs.log",
        "--output=report",
        "--output-format=json",
    ]);
    said(command).code(0);
    let report = stage.read("report");
    // fio prints notes before its document.
    let document = &report[report.find('{').unwrap()..];
    let report: serde_json::Value = serde_json::from_str(document).unwrap();
    let job = &report["jobs"][0];
    let moved = |kind: &str| -> u64 {
        let of_kind = ours.iter().filter(|op| op.split(' ').nth(1) == Some(kind));
        of_kind
            .map(|op| op.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    };
    for kind in ["read", "write"] {
        assert_eq!(
            job[kind]["io_bytes"].as_u64().unwrap(),
            moved(kind),
            "{kind}"
        );
    }
}

#[test]
fn recorded_pauses_are_kept_unless_told_otherwise() {
    let stage = Stage::new();
    stage.file("f", [1; 8192]);
    stage.file("p", PAUSE);
    let begun_ms = |words: &[&str]| {
        done(&stage, &[&["--read_iolog=p"], words].concat());
        let trace = stage.read("t.csv");
        let second = trace.lines().nth(2).unwrap();
        second.split(',').nth(5).unwrap().parse::<u64>().unwrap() / 1_000_000
    };
    assert!(begun_ms(&[]) >= 200);
    stage.file("p", PAUSE.replace("200005", "30000005"));
    let faster = begun_ms(&["--replay_time_scale=100000"]);
    assert!((30..30_000).contains(&faster), "{faster} ms");
    assert!(begun_ms(&["--replay_no_stall=1"]) < 30_000);
}

#[test]
fn recorded_places_and_files_change_as_asked() {
    let stage = Stage::new();
    stage.file("g", vec![1; 65536]);
    stage.file("p", "fio version 2 iolog\nf add\nf open\nf read 9216 4096\nf write 4096 4096\nf trim 0 4096\nf close\n");
    let words = [
        "--read_iolog=p",
        "--replay_redirect=g",
        "--replay_scale=2",
        "--replay_align=1k",
        "--replay_skip=trim",
        "--write_iolog=out",
    ];
    fio(&stage, &words).code(0);
    assert_eq!(
        operations(&stage, "out"),
        ["g read 4096 4096", "g write 2048 4096"]
    );
    assert!(!stage.list().contains(&"f".to_owned()));
}

#[test]
fn a_missing_file_of_a_pattern_is_laid_out_as_far_as_it_is_read() {
    let stage = Stage::new();
    stage.file(
        "p",
        "fio version 2 iolog\nf add\nf open\nf read 8192 4096\nf close\n",
    );
    fio(&stage, &["--read_iolog=p"]).code(0);
    assert_eq!(std::fs::metadata(stage.path("f")).unwrap().len(), 12288);
    stage
        .peer_says(&["fio", "--name=a", "--read_iolog=p", "--allow_file_create=0"])
        .code(0);
    std::fs::remove_file(stage.path("f")).unwrap();
    stage
        .peer_says(&["fio", "--name=a", "--read_iolog=p", "--allow_file_create=0"])
        .code(1);
}

#[test]
fn a_pattern_that_cannot_be_read_is_refused_with_its_line_and_nothing_is_touched() {
    let stage = Stage::new();
    for (text, message) in [
        (
            "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf blah 0 1\n",
            "line 5",
        ),
        ("fio version 2 iolog\nf write 0 4096\n", "line 2"),
        ("fio version 1 iolog\n", "version 1"),
        ("\x07tae and more", "blktrace"),
        ("", "line 1"),
    ] {
        stage.file("p", text);
        stage
            .peer_says(&["fio", "--name=a", "--read_iolog=p"])
            .code(1)
            .err(message);
        assert!(!stage.list().contains(&"f".to_owned()), "{text:?}");
    }
    stage
        .peer_says(&["fio", "--name=a", "--read_iolog=missing"])
        .code(1)
        .err("missing");
    stage.file("p", "fio version 2 iolog\nf add\nf write 0 4096\n");
    stage
        .peer_says(&["fio", "--name=a", "--read_iolog=p", "--readonly"])
        .code(1);
    assert!(!stage.list().contains(&"f".to_owned()));
    stage
        .peer_says(&[
            "fio",
            "--name=a",
            "--rw=write",
            "--size=4k",
            "--write_iolog=no/such",
        ])
        .code(1);
}

#[test]
fn a_pattern_is_carried_out_alike_whole_and_in_pieces() {
    let stage = Stage::new();
    let many = ["--bs=512", "--size=2m", "--rw=randrw", "--filename=f0:f1"];
    fio(&stage, &[&many[..], &["--write_iolog=one.log"]].concat()).code(0);
    let first = operations(&stage, "one.log");
    // More than is read at once.
    assert!(stage.read("one.log").len() > 1 << 16);
    for (chunked, depth) in [("0", "1"), ("1", "1"), ("1", "8")] {
        let words = [
            "--read_iolog=one.log",
            "--write_iolog=two.log",
            "--ioengine=libaio",
            "--replay_no_stall=1",
            &format!("--read_iolog_chunked={chunked}"),
            &format!("--iodepth={depth}"),
        ];
        fio(&stage, &words).code(0);
        assert_eq!(operations(&stage, "two.log"), first, "{chunked} {depth}");
    }
    stage.file("p", PAUSE);
    stage.file("f", [1; 8192]);
    done(&stage, &["--read_iolog=p", "--read_iolog_chunked=1"]);
    let trace = stage.read("t.csv");
    let issued = |line: usize| -> u64 {
        let line = trace.lines().nth(line).unwrap();
        line.split(',').nth(5).unwrap().parse().unwrap()
    };
    assert!(issued(2) >= 200_000_000, "{trace}");
    fio(
        &stage,
        &["--read_iolog=/dev/null", "--read_iolog_chunked=1"],
    )
    .code(1)
    .err("only a file can be read in pieces");
}

#[test]
fn a_pattern_that_reads_behind_the_end_of_a_file_fails_and_leaves_the_file_as_long_as_it_is() {
    let stage = Stage::new();
    let read = "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf read 32768 4096\nf close\n";
    stage.file("p", read);
    stage.file(
        "mixed",
        read.replace("f close", "f write 40960 4096\nf close"),
    );
    for (pattern, length) in [("p", 16384), ("mixed", 16384), ("p", 0)] {
        stage.file("f", vec![1; length]);
        let pattern = format!("--read_iolog={pattern}");
        for chunked in ["--read_iolog_chunked=0", "--read_iolog_chunked=1"] {
            let words = [&pattern[..], chunked];
            fio(&stage, &words).code(1).err("no more data");
        }
        let left = std::fs::metadata(stage.path("f")).unwrap().len();
        assert_eq!(left, length as u64, "{pattern}");
    }
}

#[test]
fn flushes_of_a_pattern_are_counted_without_a_latency() {
    const FLUSHES: &str = "fio version 2 iolog
f add
f open
f write 0 4096
f sync 0 0
f write 4096 4096
f datasync 0 0
f close
";
    let stage = Stage::new();
    stage.file("p", FLUSHES);
    let words = ["--name=a", "--read_iolog=p", "--output-format=json"];
    let counts = |report: super::Said| {
        let json = report.out.find('{').map_or("", |at| &report.out[at..]);
        let report: serde_json::Value = serde_json::from_str(json).unwrap();
        let job = &report["jobs"][0];
        let number = |of: &serde_json::Value| of.as_u64().unwrap();
        let [writes, flushes] = ["write", "sync"].map(|kind| number(&job[kind]["total_ios"]));
        (writes, flushes, number(&job["sync"]["lat_ns"]["N"]))
    };
    let ours = stage.peer_says(&[&["fio"], &words[..]].concat()).code(0);
    assert_eq!(counts(ours), (2, 2, 0));
    if let Err(missing) = has_all(&["fio"]) {
        return skip("flushes_of_a_pattern_are_counted", &missing);
    }
    let mut command = stage.command("fio");
    command.args(words);
    // fio does not count a flush of data alone.
    assert_eq!(counts(said(command).code(0)), (2, 1, 2));
}
