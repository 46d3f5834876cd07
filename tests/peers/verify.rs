//! Verified data beside fio: either tool checks what the other has written.

use std::fmt::Write as _;

use crate::stage::{Said, Stage, has, said, skip};

const METHODS: &[&str] = &[
    "md5",
    "crc64",
    "crc32",
    "crc32c",
    "crc32c-intel",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern",
    "null",
];

/// A job for each method, each with a file of its own; those of several shapes too.
fn jobs(rw: &str) -> String {
    let mut text = format!(
        "[global]\nbs=16k\nsize=128k\nrw={rw}\nrandrepeat=1\nverify_pattern=0xdeadbe%o\"weir\"\n"
    );
    let write = if rw == "write" { "do_verify=0\n" } else { "" };
    for method in METHODS {
        let _ = write!(
            text,
            "[{method}]\nverify={method}\nfilename={method}\n{write}"
        );
    }
    for (name, more) in [
        ("interval", "verify=crc32c\nverify_interval=4k\n"),
        ("header_at", "verify=xxhash\nverify_offset=512\n"),
        ("small", "verify=md5\nbs=512\n"),
    ] {
        let _ = write!(text, "[{name}]\n{more}filename={name}\n{write}");
    }
    text
}

fn fio(stage: &Stage, file: &str) -> Said {
    let mut command = stage.command("fio");
    command.args(["--verify_state_save=0", file]);
    said(command)
}

#[test]
fn either_tool_checks_what_the_other_has_written() {
    if !has("fio") {
        return skip("either_tool_checks_what_the_other_has_written", "no fio");
    }
    let weir = ["fio", "--verify_compat=fio-3.33"];
    let stage = Stage::new();
    stage.file("write.fio", jobs("write"));
    stage.file("read.fio", jobs("read"));
    fio(&stage, "write.fio").code(0);
    stage
        .peer_says(&[&weir[..], &["read.fio"]].concat())
        .code(0);
    stage
        .peer_says(&[&weir[..], &["write.fio"]].concat())
        .code(0);
    let theirs = fio(&stage, "read.fio").code(0);
    assert!(!theirs.err.contains("verify"), "{theirs}");
    // And both find damage in it.
    for method in METHODS
        .iter()
        .filter(|m| !["null", "sha512", "meta"].contains(m))
    {
        let mut data = std::fs::read(stage.path(method)).unwrap();
        data[40_000] ^= 4;
        std::fs::write(stage.path(method), data).unwrap();
    }
    let damaged = METHODS.len() - 3;
    let ours = stage.peer_says(&[&weir[..], &["read.fio"]].concat());
    let theirs = fio(&stage, "read.fio");
    let failed = |said: &Said| said.out.matches("err=84 (").count();
    assert_eq!(failed(&ours), damaged, "{ours}");
    assert_eq!(failed(&theirs), damaged, "{theirs}");
    assert_eq!((ours.code, theirs.code), (Some(15), Some(15)));
}
