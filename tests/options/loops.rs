//! Loops over files that are removed between them.

use super::stage::{Stage, skip};
use super::{calls, fio, has_all};

const THREE: [&str; 5] = [
    "--filename=f",
    "--bs=4k",
    "--size=16k",
    "--loops=3",
    "--unlink_each_loop=1",
];

/// Numbers of removals and creations of a name in the calls of a program.
fn renewed(calls: &str, name: &str) -> (usize, usize) {
    let about = |line: &&str| line.contains(&format!("\"{name}\"")) && !line.contains("ENOENT");
    let count = |what: &str| {
        calls
            .lines()
            .filter(about)
            .filter(|l| l.contains(what))
            .count()
    };
    (count("unlink"), count("O_CREAT"))
}

#[test]
fn files_are_removed_after_every_loop_but_the_last_as_in_fio() {
    if let Err(missing) = has_all(&["fio", "strace"]) {
        return skip("files_are_removed_after_every_loop_but_the_last", &missing);
    }
    for engine in ["psync", "libaio", "io_uring"] {
        let stage = Stage::new();
        let engine = format!("--ioengine={engine}");
        let words = [&THREE[..], &["--rw=write", "--iodepth=2", &engine]].concat();
        if fio(&stage, &words).err.contains("this machine lacks") {
            skip("files_are_removed_after_every_loop", &engine);
            continue;
        }
        std::fs::remove_file(stage.path("f")).unwrap();
        let traced = calls(&stage, "unlink,unlinkat,open,openat", &words).join("\n");
        // Made by the layout, then anew for the second and the third loop.
        assert_eq!(renewed(&traced, "f"), (2, 3), "{engine}");
        assert_eq!(std::fs::metadata(stage.path("f")).unwrap().len(), 16384);
        let mut theirs = stage.command("strace");
        theirs.args([
            "-f",
            "-q",
            "-e",
            "trace=unlink,unlinkat",
            "-o",
            "theirs",
            "fio",
        ]);
        theirs.args(["--name=a", "--output=report"]).args(&words);
        std::fs::remove_file(stage.path("f")).unwrap();
        super::said(theirs).code(0);
        assert_eq!(renewed(&stage.read("theirs"), "f").0, 2);
    }
}

#[test]
fn every_loop_over_new_files_does_the_whole_work() {
    let stage = Stage::new();
    let issued = |words: &[&str]| {
        let words = [&THREE[..], words, &["--output=report"]].concat();
        fio(&stage, &words).code(0);
        let report = stage.read("report");
        let line = report.lines().find(|l| l.contains("issued rwts")).unwrap();
        line.trim().split(' ').nth(2).unwrap().to_owned()
    };
    assert_eq!(issued(&["--rw=write"]), "total=0,12,0,0");
    assert_eq!(
        issued(&["--rw=randwrite", "--iodepth=4", "--ioengine=libaio"]),
        "total=0,12,0,0"
    );
    // Bounds are of each loop, as in fio.
    assert_eq!(issued(&["--rw=write", "--number_ios=3"]), "total=0,9,0,0");
    assert_eq!(issued(&["--rw=write", "--io_size=8k"]), "total=0,6,0,0");
    assert_eq!(
        issued(&["--rw=randwrite", "--verify=crc32c"]),
        "total=12,12,0,0"
    );
    assert_eq!(issued(&["--rw=write", "--loops=1"]), "total=0,4,0,0");
    let files = ["--ioengine=filecreate", "--filename=g0:g1", "--bs=8k"];
    assert_eq!(issued(&files), "total=6,0,0,0");
}

#[test]
fn loops_that_would_find_nothing_or_remove_what_others_use_are_refused() {
    let stage = Stage::new();
    for words in [
        &["--rw=read"][..],
        &["--rw=randrw"],
        &["--rw=write", "--numjobs=2"],
    ] {
        fio(&stage, &[&THREE[..], words].concat())
            .code(1)
            .err("`unlink_each_loop` removes the files between loops");
    }
    assert!(!stage.list().contains(&"f".to_owned()));
}
