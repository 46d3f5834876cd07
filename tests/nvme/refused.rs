//! Refusals, with their exit codes by the peer's name and by the verb.

use crate::stage::Stage;
use crate::{perf, stage};

/// Refused by both names, by the peer's with 1.
#[track_caller]
fn refused(stage: &Stage, words: &str, text: &str) {
    perf(stage, words).code(1).silent().err(text);
    let mut all = vec!["nvme-perf"];
    all.extend(words.split_whitespace());
    stage.say(&all).code(2).silent().err(text);
}

#[test]
fn options_that_are_missing_or_wrong_are_named() {
    let stage = stage();
    for (words, text) in [
        (
            "-o 4096 -w read -t 1 F",
            "missing -q (--io-depth) operand\n",
        ),
        (
            "-q 0 -o 4096 -w read -t 1 F",
            "missing -q (--io-depth) operand\n",
        ),
        ("-q 4 -o 4096 -w foo -t 1 F", "randrw"),
        (
            "-q 4 -o 4096 -w rw -t 1 F",
            "missing -M (--rwmixread) operand\n",
        ),
        ("-q 4 -o 4096 -w read -t 1 -d 3 F", "--number-ios"),
        ("-q 4 -o 4096 -w read -t 1 -d 100 -a 1 F", "--warmup-time"),
        ("-q 4 -o 4096 -w read -t 1 -A 96 F", "power of two"),
        ("-q 4 -o 4096 -w read -t 1 -O 6 F", "multiple of 4 bytes"),
        (
            "-q 4 -o 1000 -w read -t 1 F",
            "WARNING: IO size 1000 (-o) is not a multiple",
        ),
        (
            "-q 4 -o 128m -w read -t 1 F",
            "WARNING: IO size 134217728 (-o) is greater",
        ),
        (
            "-q 4 -o 4096 -w read -t 1 -H F",
            "--enable-tcp-hdgst is not available",
        ),
        (
            "-q 4 -o 4096 -w read -t 1 --iova-mode pa F",
            "--iova-mode is not available",
        ),
        ("-q 4 -o 4096 -w read -t 1 none", "none: No such file"),
        ("-q 4 -o 4096 -w read -t 1 .", ".: it is a directory"),
    ] {
        refused(&stage, words, text);
    }
    let missing = perf(&stage, "-o 4096 -w read -t 1 F").code(1);
    assert!(
        missing.err.contains("--io-depth=") || missing.err.contains("--io-depth <N>"),
        "{missing}"
    );
    assert_eq!(stage.list(), ["F"]);
}

#[test]
fn a_mask_with_cpus_that_are_not_there_names_those_that_are() {
    let stage = stage();
    // More than any machine has.
    let mask = format!("0x{}", "f".repeat(1024));
    let words = format!("-q 16 -o 4096 -w read -t 1 -c {mask} F");
    refused(&stage, &words, "there is no CPU ");
    refused(&stage, &words, "the CPUs here are 0");
}

#[test]
fn a_drive_that_is_not_there_is_exit_code_3_and_no_other_is_used() {
    let stage = stage();
    let line = "-q 4 -o 4096 -w read -t 1 --allowed-pci-addr 0000:ff:1f.7";
    perf(&stage, line)
        .code(3)
        .silent()
        .err("--allowed-pci-addr 0000:ff:1f.7");
    // Beside a file that is named it chooses nothing.
    perf(&stage, &format!("{line} --enable-vmd -d 100 F"))
        .code(0)
        .err("no other drive")
        .out("F from core  0");
}

#[test]
fn the_list_and_the_page_need_nothing_else() {
    let stage = stage();
    perf(&stage, "--list").code(0).calm();
    for help in ["-h", "--help", "-v", "--help-full"] {
        perf(&stage, help).code(0).calm().out("--core-mask");
    }
}
