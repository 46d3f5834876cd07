//! Every job file of `examples/fio` runs, and fio makes the same of it.

use std::collections::BTreeSet;
use std::fs;

use crate::beside::{Case, Kind, lay_card, no_fio};
use crate::generated::{Differing, differing, is_long};
use crate::stage::{Said, Stage, root, said, skip};

/// Files that run, with words that make them short.
const RUN: &[(&str, &[&str])] = &[
    ("async_engines.fio", &["--set=runtime=100ms"]),
    ("chain_wait_for.fio", &[]),
    ("chardev_offsets.fio", &[]),
    ("edma_4-ch_4-1M_write.fio", &[]),
    ("env_keywords_include.fio", &[]),
    ("globals_order.fio", &[]),
    ("grammar_values.fio", &["--set=rest:runtime=50ms"]),
    ("groups_stonewall.fio", &[]),
    ("metadata_engines.fio", &[]),
    ("mixed_and_distributions.fio", &[]),
    ("rates_and_logs.fio", &["--set=runtime=600ms"]),
    ("beside_the_io.fio", &[]),
    ("sync_engines.fio", &[]),
    ("verify_methods.fio", &[]),
    ("tcp_pair.fio", &[]),
    ("xdma_4-ch_4-1M_read.fio", &[]),
    ("xdma_4-ch_4-1M_verify.fio", &[]),
    ("xdma_4-ch_4-1M_write.fio", &[]),
    ("xdma_4-ch_4-X_read.fio", &[]),
    ("xdma_4-ch_4-X_write.fio", &[]),
    ("xdma_4-ch_4_var_write.fio", &[]),
];

/// Files that fio 3.33 cannot be compared on: its `cpuio` may miss the end of the others and stay
/// for ever, its `net` counts short receives as whole ones and may crash.
const BROKEN_IN_FIO: &[&str] = &["beside_the_io.fio", "tcp_pair.fio"];

fn card() -> Stage {
    let stage = Stage::new();
    lay_card(&stage);
    stage
}

fn run(stage: &Stage, called_as: &str, name: &str, words: &[&str]) -> Said {
    let file = root().join("examples/fio").join(name);
    let mut command = stage.called(&[called_as]);
    command.args(words).arg(file);
    command.env("DIR", stage.path("")).env("SZ", "2m");
    said(command)
}

#[test]
fn the_lists_name_every_job_file() {
    let listed: BTreeSet<&str> = RUN.iter().map(|e| e.0).collect();
    let found = fs::read_dir(root().join("examples/fio")).unwrap();
    let found: BTreeSet<String> = found
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n != "common.inc")
        .collect();
    assert_eq!(
        found.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        listed
    );
}

#[test]
fn files_that_this_version_knows_run() {
    for (name, words) in RUN {
        let stage = card();
        let house = run(&stage, "run", name, words);
        assert_eq!(house.code, Some(0), "{name}: {house}");
        assert!(!house.out.contains("FAILED"), "{name}: {house}");
        let peer = run(&stage, "fio", name, words);
        assert_eq!(peer.code, Some(0), "{name}: {peer}");
        assert!(peer.out.contains("(groupid=0, jobs="), "{name}: {peer}");
        assert_eq!(fs::metadata(stage.path("card")).unwrap().len(), 64 << 20);
    }
}

#[test]
fn the_four_channel_write_moves_each_quarter_of_the_card() {
    let stage = card();
    let said = run(&stage, "fio", "xdma_4-ch_4-1M_write.fio", &[]).code(0);
    for i in 1..=4 {
        assert!(
            said.out
                .contains(&format!("w{i}: (groupid=0, jobs=1): err= 0")),
            "{said}"
        );
    }
    assert_eq!(said.out.matches("total=0,16,0,0").count(), 4, "{said}");
    let last = said.out.lines().rfind(|l| l.starts_with("  WRITE: bw="));
    assert!(
        last.is_some_and(|l| l.contains("io=64.0MiB (67.1MB)")),
        "{said}"
    );
    let data = fs::read(stage.path("card")).unwrap();
    assert!(data.chunks(4096).all(|block| block.iter().any(|&b| b != 0)));
    let said = run(&stage, "fio", "xdma_4-ch_4-1M_read.fio", &[]).code(0);
    assert_eq!(said.out.matches("total=16,0,0,0").count(), 4, "{said}");
}

#[test]
fn the_sweep_has_one_entry_for_each_size() {
    let stage = card();
    let said = run(&stage, "fio", "xdma_4-ch_4-X_write.fio", &[]).code(0);
    let names = ["4KB", "8KB", "16KB", "32KB", "64KB", "256KB", "1MB", "2MB"];
    for (group, name) in names.iter().enumerate() {
        let head = format!("{name}: (groupid={group}, jobs=4): err= 0");
        assert_eq!(said.out.matches(&head).count(), 1, "{said}");
    }
    let totals: Vec<&str> = said
        .out
        .lines()
        .filter(|l| l.starts_with("  WRITE: bw="))
        .map(|l| l.split("io=").nth(1).unwrap().split(' ').next().unwrap())
        .collect();
    assert_eq!(totals[..2], ["16.0MiB", "16.0MiB"], "{said}");
}

#[test]
fn a_missing_channel_fails_its_worker_only() {
    let stage = card();
    fs::remove_file(stage.path("ch_h2c_2")).unwrap();
    let before = stage.list();
    let said = run(&stage, "fio", "xdma_4-ch_4-1M_write.fio", &[]).code(1);
    assert!(
        said.err
            .contains("fio: file creation disallowed by allow_file_create=0"),
        "{said}"
    );
    assert_eq!(said.out.matches("total=0,16,0,0").count(), 3, "{said}");
    assert_eq!(stage.list(), before);
}

#[test]
fn an_offset_into_a_device_without_a_size_reads_what_was_asked_for() {
    let stage = Stage::new();
    let words = [
        "--filename=/dev/zero",
        "--filesize=64m",
        "--size=16m",
        "--offset=48m",
    ];
    let mut all = vec!["fio", "--name=z", "--rw=read", "--bs=1m"];
    all.extend(words);
    stage.peer_says(&all).code(0).out("total=16,0,0,0");
}

#[test]
fn a_minimum_rate_that_is_not_met_fails_the_job() {
    let stage = Stage::new();
    let words = [
        "fio",
        "--name=w1",
        "--filename=/dev/zero",
        "--filesize=1g",
        "--size=1g",
        "--rw=read",
        "--bs=4k",
        "--thinktime=100000",
        "--ratemin=1m",
    ];
    let said = stage
        .peer_says(&words)
        .code(1)
        .out("err=5/")
        .out("Input/output error");
    assert!(
        said.err.contains("w1: ") && said.err.contains("1048576"),
        "{said}"
    );
}

#[test]
fn fio_and_weir_make_the_same_of_every_example() {
    if let Some(reason) = no_fio() {
        return skip("fio_and_weir_make_the_same_of_every_example", &reason);
    }
    let read = |name: &str| {
        let text = fs::read_to_string(root().join("examples/fio").join(name)).unwrap();
        if is_long() {
            return text;
        }
        // Jobs that go on for a time, one after the other.
        text.replace("runtime=2\n", "runtime=300ms\n")
            .replace("runtime=3\n", "runtime=1\n")
    };
    let case = |number: usize, name: &str| Case {
        seed: 0,
        number: number as u64,
        kind: Kind::Run,
        files: [name, "common.inc"]
            .map(|name| (name.to_owned(), read(name)))
            .to_vec(),
        words: vec![name.to_owned()],
    };
    let names = RUN
        .iter()
        .map(|entry| entry.0)
        .filter(|name| !BROKEN_IN_FIO.contains(name));
    let cases: Vec<Case> = names.enumerate().map(|(n, name)| case(n, name)).collect();
    let failed = differing(&cases);
    for Differing { case, found, .. } in &failed {
        println!("==== {}", case.words[0]);
        for difference in found {
            println!("{difference}");
        }
    }
    assert!(failed.is_empty());
}
