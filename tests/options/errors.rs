//! Errors after which a job goes on, and those that end it.

use super::stage::{Said, Stage, peer, said, skip};
use super::{fio, has_all};

/// The error of the only entry, and what was counted; fio's columns.
fn error_of(said: &Said) -> (u64, Option<u64>) {
    // fio's messages may stand around the document.
    let start = said.out.find("{\n").unwrap_or_default();
    let mut documents = serde_json::Deserializer::from_str(&said.out[start..]).into_iter();
    let report: serde_json::Value = documents.next().unwrap().unwrap();
    let job = &report["jobs"][0];
    (job["error"].as_u64().unwrap(), job["total_err"].as_u64())
}

#[test]
fn a_full_device_ends_a_job_that_goes_on_after_errors() {
    let stage = Stage::new();
    for after in ["none", "read", "write", "io", "verify", "all"] {
        let words = [
            "fio",
            "--name=a",
            "--filename=/dev/full",
            "--rw=write",
            "--size=16k",
            "--output-format=json",
            &format!("--continue_on_error={after}"),
        ];
        let ended = stage.peer_says(&words).code(1);
        assert_eq!(error_of(&ended).0, 28, "{after}");
    }
    let ignoring = [
        "--filename=/dev/full",
        "--rw=write",
        "--size=16k",
        "--ignore_error=,ENOSPC",
    ];
    fio(&stage, &ignoring).code(0);
    assert!(
        stage
            .read("report")
            .contains("errors    : total=4, first_error=28")
    );
}

#[test]
fn jobs_go_on_after_the_errors_after_which_fio_goes_on() {
    if let Err(missing) = has_all(&["fio", "strace"]) {
        return skip(
            "jobs_go_on_after_the_errors_after_which_fio_goes_on",
            &missing,
        );
    }
    for (error, words) in [
        ("EIO", &["--continue_on_error=write"][..]),
        ("EIO", &["--continue_on_error=all"]),
        ("EIO", &["--continue_on_error=read"]),
        ("EIO", &["--ignore_error=,EIO"]),
        ("EIO", &["--ignore_error=,EBUSY"]),
        (
            "EIO",
            &["--continue_on_error=write", "--ignore_error=,EBUSY"],
        ),
        ("EINVAL", &["--continue_on_error=write"]),
        (
            "EINVAL",
            &["--continue_on_error=write", "--ignore_error=,EINVAL"],
        ),
    ] {
        let outcome = |tool: &[&str]| {
            let stage = Stage::new();
            let mut command = stage.command("strace");
            let inject = format!("inject=pwrite64:error={error}:when=3");
            command
                .args(["-f", "-q", "-o", "calls", "-e", &inject])
                .args(tool);
            command.args([
                "--name=a",
                "--filename=f",
                "--rw=write",
                "--bs=4k",
                "--size=16k",
            ]);
            command.args([
                "--ioengine=psync",
                "--fallocate=none",
                "--output-format=json",
            ]);
            command.args(words);
            let said = said(command);
            (said.code, error_of(&said).0)
        };
        assert_eq!(
            outcome(&[peer("fio")]),
            outcome(&["fio"]),
            "{error} {words:?}"
        );
    }
}

#[test]
fn a_file_that_may_not_grow_further_is_an_error_of_the_write() {
    let stage = Stage::new();
    let mut command = stage.command("prlimit");
    command.args(["--fsize=16384", peer("fio"), "--name=a", "--filename=f"]);
    command.args(["--rw=write", "--bs=4k", "--size=64k", "--fallocate=none"]);
    // What was written before counts, and so does the report.
    let said = said(command).code(1).out("err=27 (").out("File too large");
    assert!(said.out.contains("io=16.0KiB"), "{said}");
}

#[test]
fn so_many_failed_jobs_as_no_exit_status_holds_are_failure_all_the_same() {
    let job = [
        "--name=a",
        "--filename=/dev/full",
        "--rw=write",
        "--size=4k",
        "--thread",
    ];
    for (failed, theirs, ours) in [
        ("--numjobs=3", 3, 3),
        ("--numjobs=125", 125, 125),
        ("--numjobs=256", 0, 125),
    ] {
        let stage = Stage::new();
        fio(&stage, &[&job[1..], &[failed]].concat()).code(ours);
        if super::stage::has("fio") {
            let mut command = stage.command("fio");
            command.args(job).arg(failed);
            super::said(command).code(theirs);
        }
    }
}
