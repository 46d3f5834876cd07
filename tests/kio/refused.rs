//! Refusals and notes before anything is touched.

use std::io::{Seek, SeekFrom, Write};

use crate::stage::{Stage, is_root, skip};
use crate::{kio, stage};

/// Bytes that no random data begins with.
fn hold_a_file_system(stage: &Stage) {
    let mut file = std::fs::File::options()
        .write(true)
        .open(stage.path("F"))
        .unwrap();
    file.seek(SeekFrom::Start(1080)).unwrap();
    file.write_all(&[0x53, 0xef]).unwrap();
}

#[test]
fn a_file_that_holds_a_file_system_is_written_by_force_alone() {
    let stage = stage();
    hold_a_file_system(&stage);
    for words in ["--op write", "--op trim", "--read-mix-percent 50"] {
        kio(&stage, &format!("-d F --ios 10 {words}"))
            .code(2)
            .silent()
            .err("an ext file system")
            .err("--force");
    }
    kio(&stage, "-d F --ios 10").code(0);
    kio(&stage, "-d F --ios 10 --op write --force").code(0);
}

#[test]
fn more_buffers_than_memory_are_refused_before_the_run() {
    let stage = Stage::new();
    stage.sparse("F", 1 << 30);
    let said = kio(
        &stage,
        "-d F --block-size 16M --num-threads 64 --queue-depth 1024 --ios 1",
    );
    said.code(3)
        .silent()
        .err("of buffers at a time")
        .err("of memory are available");
}

#[test]
fn less_than_an_operation_and_a_target_named_twice_are_refused() {
    let stage = stage();
    kio(&stage, "-d F --size 1")
        .code(2)
        .silent()
        .err("4096 bytes");
    kio(&stage, "-d F --size 10000 --format kio")
        .code(0)
        .err("note: --size 10000 is no multiple of 4096: 8192 bytes are done");
    kio(&stage, "-d F --ios 10 --sweep queue_depth=1,1")
        .code(2)
        .silent()
        .err("--sweep queue_depth=1,1: 1 stands there twice");
    kio(&stage, "-d F -d F --ios 10")
        .code(2)
        .silent()
        .err("--num-threads");
}

#[test]
fn settings_of_threads_that_are_not_run_are_noted() {
    let stage = stage();
    stage.file(
        "c.conf",
        "threads: {0: {queue_depth: 4}, 1: {queue_depth: 8}, 5: {queue_depth: 2}}",
    );
    kio(&stage, "-d F --ios 10 -c c.conf")
        .code(0)
        .err("thread 1, 5 have no effect: num_threads is 1");
    kio(&stage, "-d F --ios 10 -c c.conf -t 6").code(0).calm();
    kio(&stage, "-d F --ios 10 -c c.conf --sweep num_threads=1,6")
        .code(0)
        .calm();
}

#[test]
fn a_dry_run_says_what_would_be_done_and_refuses_what_the_run_would() {
    let stage = stage();
    kio(&stage, "-d F --read-mix-percent 50 --dry-run")
        .code(0)
        .out("would read and write F with io_uring\n");
    hold_a_file_system(&stage);
    kio(&stage, "-d F --op write --dry-run").code(2).silent();
    kio(&stage, "-d F --op write -o none/r.csv --force --dry-run")
        .code(2)
        .silent();
    if is_root() {
        return skip("kio dry run", "root may read every file");
    }
    let readers = std::os::unix::fs::PermissionsExt::from_mode(0o200);
    std::fs::set_permissions(stage.path("F"), readers).unwrap();
    kio(&stage, "-d F --dry-run").code(2).silent().err("F");
}

#[test]
fn runs_are_repeated_and_shown_as_one() {
    let stage = stage();
    kio(&stage, "-d F --ios 200 --repeat 2 --store-result r.json")
        .code(0)
        .out("engine: user/io_uring")
        .err("between 2 runs");
    stage.say(&["show", "r.json"]).code(0).out("between 2 runs");
    kio(&stage, "-d F --ios 200 --repeat 2 -o r.csv")
        .code(2)
        .silent()
        .err("--output-csv");
}
