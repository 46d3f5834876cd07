//! Flushes of ranges, and operations that wait for others.

use super::stage::{Stage, skip};
use super::{calls, fio, has_all, traced};

#[test]
fn ranges_are_flushed_as_fio_flushes_them() {
    if let Err(missing) = has_all(&["strace"]) {
        return skip("ranges_are_flushed_as_fio_flushes_them", &missing);
    }
    for (engine, depth) in [("psync", "1"), ("libaio", "4")] {
        let stage = Stage::new();
        let words = [
            "--rw=write",
            "--bs=4k",
            "--size=64k",
            &format!("--ioengine={engine}"),
            &format!("--iodepth={depth}"),
            "--sync_file_range=wait_before,write:8",
        ];
        let calls = calls(&stage, "sync_file_range", &words);
        let flags = "SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE) = 0";
        let ranges: Vec<_> = calls
            .iter()
            .map(|c| c.split_once(", ").map_or("", |(_, rest)| rest))
            .collect();
        // After the last write nothing follows that a flush would come before.
        let expected = [format!("0, 32768, {flags}")];
        assert_eq!(ranges, expected, "{engine}: {calls:?}");
    }
}

#[test]
fn flushed_ranges_count_as_syncs_and_not_as_bytes() {
    let stage = Stage::new();
    for engine in ["psync", "libaio", "io_uring"] {
        let words = [
            "fio",
            "--name=a",
            "--rw=write",
            "--size=64k",
            "--sync_file_range=write,wait_after:4",
            "--output-format=json",
            &format!("--ioengine={engine}"),
        ];
        let report = stage.peer_says(&words);
        if report.err.contains("this machine lacks") {
            skip("flushed_ranges_count_as_syncs", &format!("no {engine}"));
            continue;
        }
        let report: serde_json::Value = serde_json::from_str(&report.code(0).out).unwrap();
        let job = &report["jobs"][0];
        assert_eq!(job["write"]["io_bytes"], 65536);
        assert_eq!(job["sync"]["total_ios"], 3, "{engine}");
    }
}

const ENDS: [&str; 6] = [
    "--rw=write",
    "--bs=4k",
    "--size=64k",
    "--fallocate=none",
    "--create_fsync=0",
    "--end_fsync=1",
];

#[test]
fn what_every_pass_wrote_is_flushed_at_its_end_as_in_fio() {
    if let Err(missing) = has_all(&["fio", "strace"]) {
        return skip("what_every_pass_wrote_is_flushed_at_its_end", &missing);
    }
    for (words, flushes) in [
        ("--loops=1", 1),
        ("--loops=3", 3),
        ("--io_size=150k", 3),
        ("--loops=2 --io_size=150k", 3),
        ("--loops=2 --nrfiles=2", 4),
        ("--loops=3 --ioengine=libaio --iodepth=4", 3),
        ("--loops=3 --rw=read", 0),
        ("--loops=3 --number_ios=20 --rw=randwrite", 3),
    ] {
        let words: Vec<&str> = ENDS.into_iter().chain(words.split(' ')).collect();
        for program in [&["fio"][..], &[super::stage::peer("fio")]] {
            let stage = Stage::new();
            let command = [program, &["--name=a"], &words[..]].concat();
            let calls = traced(&stage, "fsync", &command);
            assert_eq!(calls.len(), flushes, "{command:?}");
        }
    }
}

#[test]
fn a_flush_at_the_end_counts_as_time_of_the_job() {
    if let Err(missing) = has_all(&["fio", "strace"]) {
        return skip("a_flush_at_the_end_counts_as_time_of_the_job", &missing);
    }
    for program in [&["fio"][..], &[super::stage::peer("fio")]] {
        let stage = Stage::new();
        // The tracer keeps the call waiting.
        let slow = [
            "-f",
            "-q",
            "-o",
            "calls",
            "-e",
            "inject=fsync:delay_enter=300000",
        ];
        let mut command = stage.command("strace");
        command.args(slow).args(program).arg("--name=a").args(ENDS);
        command.arg("--output-format=json");
        let report = super::said(command).code(0);
        let json = report.out.find('{').map_or("", |at| &report.out[at..]);
        let report: serde_json::Value = serde_json::from_str(json).unwrap();
        let write = &report["jobs"][0]["write"];
        assert!(
            write["runtime"].as_u64().unwrap() >= 300,
            "{program:?} {write}"
        );
        assert!(write["bw"].as_u64().unwrap() <= 64 * 1000 / 300, "{write}");
    }
}

#[test]
fn a_log_goes_on_after_the_first_pass_that_is_flushed() {
    let stage = Stage::new();
    let words = [
        "--rw=write",
        "--bs=4k",
        "--size=40k",
        "--loops=5",
        "--rate_iops=100",
        "--write_iops_log=l",
        "--log_avg_msec=50",
    ];
    for flush in ["--end_fsync=0", "--end_fsync=1"] {
        fio(&stage, &[&words[..], &[flush]].concat()).code(0);
        // 50 operations at intervals of 10 ms, each pass with the first at once.
        let lines = stage.read("l_iops.1.log").lines().count();
        assert!(lines >= 6, "{flush}: {lines}");
    }
}

#[test]
fn words_of_sync_file_range_are_checked() {
    let stage = Stage::new();
    for bad in ["sometimes:4", "write:x"] {
        fio(
            &stage,
            &[
                "--rw=write",
                "--size=4k",
                &format!("--sync_file_range={bad}"),
            ],
        )
        .code(1);
    }
}

#[test]
fn overlapping_operations_wait_for_each_other() {
    let stage = Stage::new();
    for (serial, engine) in [("0", "libaio"), ("1", "libaio"), ("1", "io_uring")] {
        // All operations are on the same block.
        let words = [
            "fio",
            "--name=a",
            "--rw=randwrite",
            "--norandommap",
            "--bs=4k",
            "--size=4k",
            "--io_size=256k",
            "--iodepth=8",
            "--iodepth_batch=8",
            "--output-format=json",
            &format!("--ioengine={engine}"),
            &format!("--serialize_overlap={serial}"),
        ];
        let said = stage.peer_says(&words);
        if said.err.contains("this machine lacks") {
            skip("overlapping_operations_wait", &format!("no {engine}"));
            continue;
        }
        let report: serde_json::Value = serde_json::from_str(&said.code(0).out).unwrap();
        let job = &report["jobs"][0];
        assert_eq!(job["write"]["total_ios"], 64);
        let alone = job["iodepth_level"]["1"].as_f64().unwrap();
        assert_eq!(
            alone > 99.0,
            serial == "1",
            "{engine}: {}",
            job["iodepth_level"]
        );
    }
}

#[test]
fn an_offloaded_job_counts_latency_from_intended_starts() {
    let stage = Stage::new();
    let words = ["--rw=write", "--size=40k", "--rate_iops=1000"];
    let plan = |mode: &str| {
        let words = [&["fio", "--name=a", "--show-plan"], &words[..], &[mode]].concat();
        let said = stage.peer_says(&words).code(0);
        let plan: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        plan["groups"][0]["jobs"][0]["workload"]["load"]["pacing"]["schedule"]["open_loop"].clone()
    };
    assert_eq!(plan("--io_submit_mode=offload"), true);
    assert_eq!(plan("--io_submit_mode=inline"), false);
    let deep = [
        "--ioengine=psync",
        "--iodepth=4",
        "--io_submit_mode=offload",
    ];
    fio(&stage, &[&words[..], &deep].concat())
        .code(1)
        .err("one operation at a time");
}
