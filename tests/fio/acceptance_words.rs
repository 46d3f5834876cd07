//! Needs of job files' owners besides the card's files: the language, reports, rates and faults.

use std::fs;
use std::time::Instant;

use serde_json::Value;

use crate::acceptance::{card, example, fio, sizes_of, weir};
use crate::stage::{Said, Stage};
use crate::{entries, json};

#[test]
fn case_11_the_grammar_of_sizes_is_fios() {
    let sizes = |option: &str| {
        let text = format!("[a]\nioengine=null\nrw=randrw\nsize=1m\n{option}\n");
        sizes_of("case_11", &text).remove(0).1
    };
    assert_eq!(
        sizes("bs=4k,8k"),
        "(R) 4096B-4096B, (W) 8192B-8192B, (T) 8192B-8192B"
    );
    assert_eq!(
        sizes("bs=,8k"),
        "(R) 4096B-4096B, (W) 8192B-8192B, (T) 8192B-8192B"
    );
    assert_eq!(
        sizes("bs=4k-16k"),
        "(R) 4096B-4096B, (W) 16.0KiB-16.0KiB, (T) 16.0KiB-16.0KiB"
    );
    assert_eq!(
        sizes("bsrange=4k-16k,1k-2k"),
        "(R) 4096B-16.0KiB, (W) 1024B-2048B, (T) 1024B-2048B"
    );
    let stage = Stage::in_memory();
    for (size, bytes) in [("4kib", 4000), ("4ki", 4096), ("4k", 4096)] {
        let words = [
            "--name=a",
            "--ioengine=null",
            "--bs=8",
            &format!("--size={size}"),
            "--output-format=json",
        ];
        assert_eq!(entries(&json(&weir(&stage, &words).code(0)))[0].3[0], bytes);
    }
    let wrong = ["--name=a", "--direct=2", "--size=4k"];
    weir(&stage, &wrong)
        .code(1)
        .err("max value out of range: 2 (1 max)");
    if let Some(theirs) = fio(&stage, "case_11", &wrong) {
        theirs.code(1).err("max value out of range: 2 (1 max)");
    }
}

#[test]
fn case_12_a_global_section_counts_for_the_jobs_below_it() {
    let text = "[global]\nioengine=null\nsize=1m\nbs=8k\n[a]\n[global]\nbs=16k\n[b]\n[c]\nname=renamed\n[global2x]\nbs=32k\n[d]\n";
    let found = sizes_of("case_12", text);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(name, sizes)| (name.as_str(), sizes.split('-').next().unwrap()))
        .collect();
    let expected = [
        ("a", "(R) 8192B"),
        ("b", "(R) 16.0KiB"),
        ("renamed", "(R) 16.0KiB"),
        ("d", "(R) 32.0KiB"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn case_13_what_cannot_be_waited_for_is_told_and_nothing_runs() {
    let two = "[global]\nsize=64k\nrw=write\n[a]\n[a]\n";
    for (text, sentences) in [
        (
            "[a]\nsize=64k\nrw=write\nwait_for=a\n".to_owned(),
            &["a: a job cannot wait for itself (wait_for=a)."][..],
        ),
        (
            "[a]\nsize=64k\nrw=write\nwait_for=b\n".to_owned(),
            &["a: waitee job b unknown."],
        ),
        (
            format!("{two}[c]\nwait_for=a\n"),
            &[
                "c: multiple waitees a found,",
                "please avoid duplicates when using wait_for option.",
            ],
        ),
    ] {
        let stage = Stage::in_memory();
        stage.file("j.fio", &text);
        let mut ours = weir(&stage, &["j.fio"]).code(1);
        assert_eq!(stage.list(), ["j.fio"]);
        let mut theirs = fio(&stage, "case_13", &["j.fio"]).map(|said| said.code(1));
        for sentence in sentences {
            ours = ours.err(sentence);
            theirs = theirs.map(|said| said.err(sentence));
        }
    }
}

/// The keys of an object, in order.
fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

const OF_JOBS: &str = "jobname groupid error eta elapsed read write trim sync job_runtime usr_cpu \
    sys_cpu ctx majf minf iodepth_level iodepth_submit iodepth_complete latency_ns \
    latency_us latency_ms latency_depth latency_target latency_percentile latency_window";
const OF_KINDS: &str = "io_bytes io_kbytes bw_bytes bw iops runtime total_ios short_ios drop_ios slat_ns \
    clat_ns lat_ns bw_min bw_max bw_agg bw_mean bw_dev bw_samples iops_min iops_max \
    iops_mean iops_stddev iops_samples";

#[test]
fn case_14_json_stands_alone_and_has_every_key() {
    let stage = card();
    let file = example("xdma_4-ch_4-1M_write.fio");
    let words = ["--output-format=json", &file];
    let report = json(&weir(&stage, &words).code(0));
    let written: u64 = entries(&report).iter().map(|e| e.3[1]).sum();
    assert_eq!(written, 67_108_864);
    let top = [
        "fio version",
        "timestamp",
        "timestamp_ms",
        "time",
        "global options",
        "jobs",
    ];
    assert!(
        top.iter().all(|key| keys(&report).contains(key)),
        "{:?}",
        keys(&report)
    );
    for key in OF_JOBS.split(' ').chain(["job options"]) {
        assert!(!report["jobs"][0][key].is_null(), "{key}");
    }
    for key in OF_KINDS.split(' ') {
        assert!(!report["jobs"][0]["write"][key].is_null(), "write/{key}");
    }
    fs::remove_file(stage.path("ch_h2c_2")).unwrap();
    let report = json(&weir(&stage, &words).code(1));
    assert_eq!(entries(&report).iter().filter(|e| e.2 != 0).count(), 1);
}

#[test]
fn case_15_terse_lines_have_fios_fields() {
    let stage = Stage::in_memory();
    let job = [
        "--name=a",
        "--ioengine=null",
        "--size=1m",
        "--output-format=terse",
    ];
    for (version, fields) in [("2", 161), ("3", 121), ("4", 162), ("5", 180)] {
        let version = format!("--terse-version={version}");
        let words = [&job[..], &[&version]].concat();
        let count = |said: Said| {
            let line = said
                .code(0)
                .out
                .lines()
                .rfind(|l| l.contains(';'))
                .unwrap_or_default()
                .to_owned();
            line.split(';').count()
        };
        assert_eq!(count(weir(&stage, &words)), fields, "{version}");
        if let Some(theirs) = fio(&stage, "case_15", &words) {
            assert_eq!(count(theirs), fields, "fio {version}");
        }
    }
}

#[test]
fn case_16_a_paced_job_has_its_rate_and_its_log() {
    let stage = Stage::in_memory();
    let words = [
        "--name=p",
        "--filename=/dev/zero",
        "--size=1g",
        "--bs=4k",
        "--rw=read",
        "--rate=4m",
        "--runtime=2",
        "--time_based",
        "--write_bw_log=p",
        "--log_avg_msec=500",
        "--output-format=json",
    ];
    let report = json(&weir(&stage, &words).code(0));
    let operations = report["jobs"][0]["read"]["total_ios"].as_u64().unwrap();
    assert!((2028..=2068).contains(&operations), "{operations}");
    let log = stage.read("p_bw.1.log");
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(", ").collect()).collect();
    assert_eq!(lines.len(), 3, "{log}");
    for line in &lines {
        assert_eq!(line[2..], ["0", "0", "0"], "{log}");
    }
}

#[test]
fn case_17_bins_hold_every_operation_and_every_percentile() {
    let stage = Stage::in_memory();
    let words = [
        "--name=a",
        "--filename=/dev/zero",
        "--size=16m",
        "--bs=4k",
        "--output-format=json+",
    ];
    let report = json(&weir(&stage, &words).code(0));
    let latency = &report["jobs"][0]["read"]["clat_ns"];
    let bins = latency["bins"].as_object().unwrap();
    let sum: u64 = bins.values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(sum, 4096);
    assert_eq!(latency["N"], 4096);
    for (percent, value) in latency["percentile"].as_object().unwrap() {
        assert!(bins.contains_key(&value.to_string()), "{percent}: {value}");
    }
}

#[test]
fn case_18_variables_and_keywords_are_replaced() {
    let stage = Stage::in_memory();
    stage.file("j.fio", "[a]\nioengine=null\nsize=${SZ}\n");
    weir(&stage, &["j.fio"]).code(1).silent().err("SZ");
    let found = sizes_of("case_18", "[a]\nioengine=null\nsize=64k\nbs=2*$pagesize\n");
    assert!(found[0].1.starts_with("(R) 8192B-8192B"), "{found:?}");
}

#[test]
fn case_19_a_stalled_channel_is_ended_by_the_minimum_rate() {
    let stage = Stage::in_memory();
    let words = [
        "--name=down",
        "--ioengine=dma-emu",
        "--filename=/dev/xdma0_h2c_0",
        "--emu_dir=h2c",
        "--filesize=64m",
        "--size=16m",
        "--bs=1m",
        "--rw=write",
        "--ratemin=1m",
        "--emu_fault=stall@8m:600000",
    ];
    // The stall lasts ten minutes: only a watchdog that needs no completion ends it.
    let begin = Instant::now();
    let said = weir(&stage, &words)
        .code(1)
        .err("down: rate_min=1048576B/s not met, got");
    assert!(begin.elapsed().as_secs() < 60, "{said}");
}

#[test]
fn case_20_the_wrong_direction_is_named_with_its_device() {
    let stage = Stage::in_memory();
    let words = [
        "--name=down",
        "--ioengine=dma-emu",
        "--filename=/dev/xdma0_c2h_0",
        "--emu_dir=c2h",
        "--filesize=64m",
        "--size=16m",
        "--bs=1m",
        "--rw=write",
    ];
    weir(&stage, &words)
        .code(1)
        .err("/dev/xdma0_c2h_0")
        .err("wrong direction");
}
