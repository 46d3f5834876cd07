//! `self_test` by its name and `weir rpc serve` as a user sees them. Here what reaches nobody: words, what is
//! printed of a plan, the report of stored samples; RPCs in the other files.
//!
//! Which test has which acceptance case of the RPC self-test (`doors`: `crates/weir-doors/src/selftest`, `net`:
//! `crates/weir-rpc`; their timing alone with `cargo xtask test --all --long`, since other programs run meanwhile):
//!
//! | case | test |
//! |---|---|
//! | A1 to A4, A8, A13, A18, A19 | `end_to_end::a1_…` and so on; the seed's lines on tcp, shm and ofi: `seed_lines` |
//! | A5, A6 | doors `sizes::tests::what_the_reference_reads_is_read_alike`, `suffixes_count_in_steps_of_1024` |
//! | A7 | doors `tests/refused.rs`; `-a 256` doors `tests/text.rs`: `the_order_that_is_drawn_and_an_odd_alignment_are_told` |
//! | A9, A11, A14 to A16 | `acceptance::a9_…` and so on; the rates of A16: `cargo xtask bench rpc` |
//! | A10 | `acceptance::a10_…`, rpc `tests/buffers.rs` |
//! | A12 | later, with the form of `net-test` |
//! | A17 | doors `tests/text.rs`: `the_golden_example_is_printed_to_the_letter`, `rpcs_that_failed_or_were_not_sent_…`, `a_run_of_which_nothing_came_back_has_the_short_form` |
//! | F1, F2, F14, F15 | `end_to_end::f1_…` and so on |
//! | F3, F4 | `faults::f3_…`, `f4_…`; rpc `tests/hostile.rs`: `other_languages_are_hung_up_on_while_calls_go_on` |
//! | F5 | rpc `tests/hostile.rs`: `a_frame_that_breaks_a_rule_…`, `a_session_belongs_…`, `data_outside_…`; rpc `tests/bounds.rs`; `tests/allocations.rs`: nothing above 64 KiB |
//! | F6 | rpc `tests/hostile.rs`: `a_call_that_is_cut_anywhere_…`, `a_call_that_pauses_anywhere_…`, `half_a_frame_…` |
//! | F7, F12, F16 | `refusals::f7_…` and so on |
//! | F8 | `faults::f8_…`, `load::f8_…`; 10,000 connections with `--long` |
//! | F9 | `refusals::f9_…`, `serving::f9_…`; certificates later, with TLS |
//! | F10, F11 | `serving::f10_…`, `f11_…`; `refusals::f11_…` |
//! | F13 | `two_hosts::f13_…`; on any machine rpc `src/links/simulated/tests.rs` |
//! | N-1 to N-5 | `interfaces::n_1_…` and so on; rpc `src/interface/choice/tests.rs` |
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod acceptance;
mod bulk;
mod counts;
mod cut_short;
mod end_to_end;
mod faults;
mod hostile_memory;
mod limits;
mod load;
mod messages;
mod refusals;
mod seed_lines;
mod servers;
mod serving;
mod slow;
#[path = "../stage/mod.rs"]
mod stage;
mod voices;
mod words;

use std::process::Command;

use stage::{Said, Stage, said};

/// Eight RPCs of 10.5 to 84 µs, to two endpoints in turn.
const GOLDEN: &str = "\
# weir-selftest-samples 1
# tuple send=0:EMPTY reply=1048578:BULK_PUT inflight=16 master=1:0 duration_ns=4000000
latency_ns,rank,tag,code
10500,0,2,0
21000,1,2,0
31500,0,2,0
42000,1,2,0
52500,0,2,0
63000,1,2,0
73500,0,2,0
84000,1,2,0
";

/// The variables that the door reads.
const VARIABLES: &[&str] = &[
    "WEIR_GROUP_DIR",
    "WEIR_COMPAT_EXIT",
    "CRT_ATTACH_INFO_PATH",
    "CRT_TIMEOUT",
    "D_PROVIDER",
    "CRT_PHY_ADDR_STR",
    "CRT_CTX_NUM",
    "CRT_CREDIT_EP_CTX",
    "D_QUOTA_RPCS",
    "D_ADDR_FORMAT",
    "D_LOG_FILE",
    "D_LOG_MASK",
    "D_PORT",
    "D_DOMAIN",
    "OFI_DOMAIN",
    "D_INTERFACE",
    "OFI_INTERFACE",
    "XDG_RUNTIME_DIR",
];

/// A call of a program in a folder, whatever the surroundings of the test say.
fn quiet(mut command: Command) -> Command {
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command
}

fn selftest(stage: &Stage, words: &[&str]) -> Said {
    let words = [&["self_test"], words].concat();
    said(quiet(stage.peer(&words)))
}

#[test]
fn the_command_lines_that_users_know_are_understood() {
    let stage = &Stage::new();
    // Somebody may serve the usual group on this machine.
    let common = servers::split("-u --group-name daos_server --path . --dry-run");
    for (words, lines) in [
        (
            &[
                "--endpoint",
                "0:2",
                "--message-size",
                "(0 b1048578)",
                "--max-inflight-rpcs",
                "16",
                "--repetitions",
                "100000",
            ] as &[&str],
            &[
                "[(0-EMPTY 1048578-BULK_PUT)]",
                "Repetitions per size:       100000",
                "Max in-flight RPCs:          16",
            ] as &[&str],
        ),
        (
            &[
                "--endpoint",
                "0:2",
                "--message-size",
                "(0 0) (b1048578 0) (0 b1048578)",
            ],
            &["[(0-EMPTY 0-EMPTY), (1048578-BULK_GET 0-EMPTY), (0-EMPTY 1048578-BULK_PUT)]"],
        ),
        (
            &[
                "--endpoint",
                "0-3:0",
                "--master-endpoint",
                "0-3:0-1",
                "--message-sizes",
                "b1048576,b1048576 0,0 b1048576,i2048,i2048 0,0 i2048",
                "--repetitions",
                "100",
            ],
            &[
                "# endpoints:                4",
                "Repetitions per size:       400",
                "(2048-IOV 2048-IOV), (2048-IOV 0-EMPTY)",
            ],
        ),
    ] {
        let words = [&common[..], words].concat();
        let said = selftest(stage, &words).code(0);
        for line in lines {
            assert!(said.out.contains(line), "{line}\n{}", said.out);
        }
        assert!(!said.out.contains("Invalid"), "{}", said.out);
    }
}

#[test]
fn stored_samples_are_reported_and_the_report_is_read_as_that_of_the_older_program() {
    let stage = &Stage::new();
    stage.file("s", GOLDEN);
    let report = selftest(stage, &["--replay", "s"]).code(0).calm();
    assert!(
        report.out.contains("\tRPC Bandwidth (MB/sec): 2000.00\n"),
        "{}",
        report.out
    );
    assert!(
        report.out.contains("\t\tStd Dev: 24.06\n"),
        "{}",
        report.out
    );
    let mbits = selftest(stage, &["--replay", "s", "-b"]).code(0);
    assert!(
        mbits.out.contains("(Mbits/sec): 16777.25\n"),
        "{}",
        mbits.out
    );
    stage.file("report.txt", &report.out);
    let read = stage
        .say(&["show", "report.txt", "--from", "self-test"])
        .code(0);
    assert!(read.out.contains("from 1:0"), "{}", read.out);
    // weir's own JSON, and that of the older program.
    let own = selftest(stage, &["--replay", "s", "--output", "json"]).code(0);
    let own: serde_json::Value = serde_json::from_str(&own.out).unwrap();
    assert_eq!(
        own["groups"][0]["jobs"][0]["outcome"]["masters"][0]["succeeded"],
        8
    );
    let cart = selftest(stage, &["--replay", "s", "--output", "json-cart"]).code(0);
    stage.file("cart.json", &cart.out);
    stage
        .say(&["show", "cart.json", "--from", "self-test"])
        .code(0)
        .out("from 1:0");
}

#[test]
fn failures_are_the_exit_code_in_either_style() {
    let stage = &Stage::new();
    stage.file("s", GOLDEN.replace("84000,1,2,0", "84000,1,2,-1011"));
    let report = selftest(stage, &["--replay", "s"]).code(1);
    assert!(
        report.out.contains("\t\t\t1: -DER_TIMEDOUT (-1011)\n"),
        "{}",
        report.out
    );
    stage.file("all", GOLDEN.replace(",2,0", ",2,-1006"));
    let none = selftest(stage, &["--replay", "all"]).code(1);
    stage.file("all.txt", &none.out);
    stage
        .say(&["show", "all.txt", "--from", "self-test"])
        .code(0);
    let in_cart = |words: &[&str]| {
        let words = [&["self_test"], words].concat();
        let mut command = quiet(stage.peer(&words));
        command.env("WEIR_COMPAT_EXIT", "cart");
        said(command)
    };
    in_cart(&["--replay", "s"]).code(13);
    in_cart(&["--bogus"]).code(21);
    in_cart(&["-u", "-g", "no_such_group"]).code(18);
}

#[test]
fn words_that_cannot_be_meant_are_refused_in_one_line() {
    let stage = &Stage::new();
    for (words, says) in [
        (&["-s", "10.5"] as &[&str], "--message-sizes 10.5: "),
        (&["-e", "0:2:5"], "--endpoint 0:2:5: "),
        (
            &["--m", "1"],
            "--message-sizes, --master-endpoint, --max-inflight-rpcs",
        ),
        (&["--bogus"], "no option `--bogus`"),
        (
            &["--net-test"],
            "--net-test: this build does not have that form",
        ),
        (&["--replay", "none"], "--replay none: "),
        (
            &["--loopback", "--samples", "s", "--repeat", "2"],
            "--samples s: it is one file for several runs; leave out --repeat or this",
        ),
        (&["--target", "shm://"], "it needs the socket of a server"),
        (
            &["--target", "tcp://127.0.0.1:0"],
            "nobody is reached at port 0",
        ),
    ] {
        let refused = selftest(stage, words).code(2).err(says);
        assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
        assert_eq!(refused.out, "");
    }
    let noted = selftest(stage, &["-u", "-t", "-n", "--dry-run", "--path", "."]).code(0);
    assert_eq!(noted.err, "note: --singleton: ignored, has no meaning\n");
    // Somebody may serve the usual group on this machine.
    selftest(stage, &["-u", "-g", "no_such_group"])
        .code(3)
        .err("no table of group `no_such_group`");
}

#[test]
fn a_server_says_what_it_would_serve() {
    let stage = &Stage::new();
    let words = [
        "rpc",
        "serve",
        "--layout",
        "daos,targets=16,helpers=4",
        "--rank",
        "1",
        "--dry-run",
    ];
    let planned = stage.say(&words).code(0);
    assert_eq!(
        planned.out,
        "group daos_server: rank 1, 22 tags each, at tcp://127.0.0.1:0\n"
    );
    stage
        .say(&["rpc", "serve", "--group", "../x"])
        .code(2)
        .err("--group ../x: ");
}
