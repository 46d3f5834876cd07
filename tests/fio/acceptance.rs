//! What job files of a DMA card and their owners rely on: one test for each case, fio beside where
//! a case says what fio does.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use serde_json::Value;

use crate::stage::{Said, Stage, has, root, said, skip};
use crate::{entries, json};

/// A directory in memory with an emulated card: one memory behind eight channels.
fn card() -> Stage {
    let stage = Stage::in_memory();
    stage.sparse("card", 64 << 20);
    for i in 0..4 {
        for way in ["h2c", "c2h"] {
            symlink("card", stage.path(&format!("ch_{way}_{i}"))).unwrap();
        }
    }
    stage
}

fn example(name: &str) -> String {
    let path = root().join("examples/fio").join(name);
    path.to_str().unwrap().to_owned()
}

fn start(stage: &Stage, tool: &str, words: &[&str]) -> Said {
    let mut command = match tool {
        "weir" => stage.weir(&["fio"]),
        other => stage.command(other),
    };
    command.args(words).env("DIR", ".");
    said(command)
}

fn weir(stage: &Stage, words: &[&str]) -> Said {
    start(stage, "weir", words)
}

/// What fio says to the same words, where there is one.
fn fio(stage: &Stage, case: &str, words: &[&str]) -> Option<Said> {
    if has("fio") {
        return Some(start(stage, "fio", words));
    }
    skip(case, "no fio");
    None
}

fn last_line<'a>(said: &'a Said, begins: &str) -> &'a str {
    said.out
        .lines()
        .rfind(|line| line.starts_with(begins))
        .unwrap_or_else(|| panic!("no `{begins}` in\n{said}"))
}

fn count(said: &Said, text: &str) -> usize {
    said.out.matches(text).count()
}

/// The name of each banner and the sizes it gives.
fn banners(said: &Said) -> Vec<(String, String)> {
    let sizes = |line: &str| {
        let (name, rest) = line.split_once(": (g=")?;
        let sizes = rest.split_once(", bs=")?.1.split_once(", ioengine=")?.0;
        Some((name.to_owned(), sizes.to_owned()))
    };
    said.out.lines().filter_map(sizes).collect()
}

/// weir's banners of a text, which fio prints as well.
fn sizes_of(case: &str, text: &str) -> Vec<(String, String)> {
    let stage = Stage::in_memory();
    stage.file("j.fio", text);
    let ours = banners(&weir(&stage, &["j.fio"]).code(0));
    if let Some(theirs) = fio(&stage, case, &["j.fio"]) {
        assert_eq!(ours, banners(&theirs), "{case}: {text}");
    }
    ours
}

#[test]
fn case_01_four_channels_are_written() {
    let stage = card();
    let said = weir(&stage, &[&example("xdma_4-ch_4-1M_write.fio")]).code(0);
    for i in 1..=4 {
        assert!(
            said.out
                .contains(&format!("w{i}: (groupid=0, jobs=1): err= 0")),
            "{said}"
        );
    }
    assert_eq!(count(&said, "total=0,16,0,0"), 4, "{said}");
    let line = last_line(&said, "  WRITE: bw=");
    assert!(line.contains("io=64.0MiB (67.1MB)"), "{line}");
}

#[test]
fn case_02_four_channels_are_read() {
    let stage = card();
    let said = weir(&stage, &[&example("xdma_4-ch_4-1M_read.fio")]).code(0);
    assert_eq!(count(&said, "total=16,0,0,0"), 4, "{said}");
    let line = last_line(&said, "   READ: bw=");
    assert!(line.contains("io=64.0MiB (67.1MB)"), "{line}");
}

/// Group and kinds of each line under `Run status group`.
fn group_lines(said: &Said) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for line in said.out.lines() {
        if let Some(rest) = line.strip_prefix("Run status group ") {
            let number = rest.split(' ').next().unwrap_or_default();
            groups.push((number.to_owned(), Vec::new()));
        } else if let Some((kind, _)) = line.trim_start().split_once(": bw=")
            && let Some((_, kinds)) = groups.last_mut()
        {
            kinds.push(kind.to_owned());
        }
    }
    groups
}

#[test]
fn case_03_a_verified_card_has_five_groups() {
    let file = example("xdma_4-ch_4-1M_verify.fio");
    let stage = card();
    let said = weir(&stage, &[&file]).code(0);
    let expected = [
        ("0", &["WRITE"][..]),
        ("1", &["READ", "WRITE"]),
        ("2", &["READ", "WRITE"]),
        ("3", &["READ", "WRITE"]),
        ("4", &["READ"]),
    ];
    let expected = expected.map(|(number, kinds)| {
        (
            number.to_owned(),
            kinds.iter().map(|&k| k.to_owned()).collect::<Vec<_>>(),
        )
    });
    assert_eq!(group_lines(&said), expected, "{said}");
    for i in 0..4 {
        for (name, group) in [(format!("fill-{i}"), i), (format!("check-{i}"), i + 1)] {
            assert!(
                said.out
                    .contains(&format!("{name}: (groupid={group}, jobs=1): err= 0")),
                "{said}"
            );
        }
    }
    let stage = card();
    if let Some(theirs) = fio(&stage, "case_03", &[&file]) {
        assert_eq!(group_lines(&theirs), expected);
    }
}

/// The checking half of the verify file, for a run of its own.
fn checks_alone() -> String {
    let text = fs::read_to_string(example("xdma_4-ch_4-1M_verify.fio")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("wait_for"));
    lines.collect::<Vec<_>>().join(
        "
",
    ) + "
"
}

fn damage(stage: &Stage, at: usize) {
    let mut data = fs::read(stage.path("card")).unwrap();
    for byte in &mut data[at..at + 4] {
        *byte = !*byte;
    }
    fs::write(stage.path("card"), data).unwrap();
}

const CHECKS: [&str; 4] = [
    "--section=check-0",
    "--section=check-1",
    "--section=check-2",
    "--section=check-3",
];

#[test]
fn case_04_damage_is_named_dumped_and_counted() {
    let stage = card();
    weir(&stage, &[&example("xdma_4-ch_4-1M_verify.fio")]).code(0);
    stage.file("checks.fio", checks_alone());
    let words = [&CHECKS[..], &["checks.fio"]].concat();
    damage(&stage, (2 << 20) + 5000);
    let said = weir(&stage, &words)
        .code(1)
        .err("xxhash: verify failed at file ")
        .err("ch_c2h_0 offset 2097152, length 1048576");
    assert!(
        said.out.contains("check-0: (groupid=0, jobs=1): err=84 ("),
        "{said}"
    );
    assert_eq!(count(&said, "total=3,0,0,0"), 1, "{said}");
    assert_eq!(count(&said, "total=16,0,0,0"), 3, "{said}");
    let dump = |which: &str| fs::read(stage.path(&format!("ch_c2h_0.2097152.{which}"))).unwrap();
    let (received, expected) = (dump("received"), dump("expected"));
    assert_eq!((received.len(), expected.len()), (1 << 20, 1 << 20));
    let differing: Vec<usize> = (0..1 << 20)
        .filter(|&i| received[i] != expected[i])
        .collect();
    assert_eq!(differing, [5000, 5001, 5002, 5003]);
    for quarter in 1..4 {
        damage(&stage, quarter * (16 << 20) + 5000);
    }
    weir(&stage, &words).code(4);
}

#[test]
fn case_05_the_sweep_has_one_entry_for_each_size() {
    let stage = card();
    let said = weir(&stage, &[&example("xdma_4-ch_4-X_write.fio")]).code(0);
    let names = ["4KB", "8KB", "16KB", "32KB", "64KB", "256KB", "1MB", "2MB"];
    for (group, name) in names.iter().enumerate() {
        let head = format!("{name}: (groupid={group}, jobs=4): err= 0");
        assert_eq!(count(&said, &head), 1, "{said}");
    }
    let lines = said.out.lines().filter(|l| l.starts_with("  WRITE: bw="));
    let moved: Vec<&str> = lines
        .map(|l| l.split("io=").nth(1).unwrap().split(' ').next().unwrap())
        .collect();
    let large = ["64.0MiB"; 5];
    assert_eq!(
        moved,
        [&["16.0MiB", "16.0MiB", "32.0MiB"][..], &large].concat(),
        "{said}"
    );
}

#[test]
fn case_06_showcmd_prints_words_that_run_the_same() {
    let stage = card();
    let file = example("xdma_4-ch_4-1M_write.fio");
    let shown = weir(&stage, &["--showcmd", &file]).code(0).out;
    let begin = "fio --allow_file_create=0 --ioengine=psync --mem=mmap --filesize=64m --bs=1m \
                 --rate_min=1m --name=w1 --size=16m --offset=0 --rw=write --filename=";
    assert!(shown.starts_with(begin), "{shown}");
    assert_eq!(shown.matches("--name=").count(), 4, "{shown}");
    assert_eq!(shown.lines().count(), 1, "{shown}");
    if let Some(theirs) = fio(&stage, "case_06", &["--showcmd", &file]) {
        assert_eq!(shown, theirs.out);
    }
    let words: Vec<&str> = shown.split_whitespace().skip(1).collect();
    let said = weir(&stage, &words).code(0);
    assert_eq!(count(&said, "total=0,16,0,0"), 4, "{said}");
}

#[test]
fn case_07_the_block_size_is_changed_where_the_file_leaves_it_open_or_by_set() {
    let sizes = |words: &[&str]| {
        let stage = card();
        let all = banners(&weir(&stage, words).code(0));
        assert_eq!(all.len(), 4);
        all.into_iter().map(|b| b.1).collect::<Vec<_>>().join(" ")
    };
    let (open, given) = (
        example("xdma_4-ch_4_var_write.fio"),
        example("xdma_4-ch_4-1M_write.fio"),
    );
    assert!(sizes(&["--blocksize=128k", &open]).contains("128KiB-128KiB"));
    assert!(sizes(&["--blocksize=128k", &given]).contains("1024KiB-1024KiB"));
    assert!(sizes(&["--set", "bs=128k", &given]).contains("128KiB-128KiB"));
}

#[test]
fn case_08_a_missing_channel_fails_its_worker_only() {
    let stage = card();
    fs::remove_file(stage.path("ch_h2c_2")).unwrap();
    let before = stage.list();
    let said = weir(&stage, &[&example("xdma_4-ch_4-1M_write.fio")])
        .code(1)
        .err("fio: file creation disallowed by allow_file_create=0");
    assert_eq!(count(&said, "total=0,16,0,0"), 3, "{said}");
    assert_eq!(count(&said, ": (groupid=0, jobs=1): err= 0"), 3, "{said}");
    assert_eq!(stage.list(), before);
}

#[test]
fn case_09_an_offset_into_a_device_without_a_size_is_read() {
    let stage = Stage::in_memory();
    let words = [
        "--name=z",
        "--filename=/dev/zero",
        "--filesize=64m",
        "--size=16m",
        "--offset=48m",
        "--rw=read",
        "--bs=1m",
    ];
    weir(&stage, &words).code(0).out("total=16,0,0,0");
    // The peer reads nothing and says that all is well.
    if let Some(theirs) = fio(&stage, "case_09", &words) {
        assert_eq!(count(&theirs.code(0), "total=16,0,0,0"), 0);
    }
}

#[test]
fn case_10_a_minimum_rate_that_is_not_met_ends_the_job() {
    let stage = Stage::in_memory();
    let words = [
        "--name=w1",
        "--filename=/dev/zero",
        "--filesize=1g",
        "--size=1g",
        "--rw=read",
        "--bs=4k",
        "--thinktime=100000",
        "--ratemin=1m",
    ];
    let begin = Instant::now();
    let said = weir(&stage, &words)
        .code(1)
        .out("err= 5")
        .out("Input/output error");
    // Nothing is judged within the first two seconds.
    assert!(begin.elapsed().as_secs() >= 2, "{said}");
    let (_, rest) = said
        .err
        .split_once("w1: rate_min=1048576B/s not met, got ")
        .unwrap_or_else(|| panic!("{said}"));
    let got: u64 = rest.split("B/s").next().unwrap().parse().unwrap();
    assert!((4096..=45_056).contains(&got), "{said}");
}

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
