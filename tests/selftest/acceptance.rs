//! Acceptance cases that are about figures: they agree with each other, and with what cannot be otherwise.
//! Not here: how fast anything is, which depends on what else the machine does (`cargo xtask bench rpc`).

mod slow;

use serde_json::Value;

use crate::servers::{S1, Server, masters, self_test, split, values};
use crate::stage::{Said, Stage, skip, until};

fn only_master(said: &Said) -> Value {
    masters(said)[0][0].clone()
}

/// The mean of a histogram in nanoseconds.
fn mean(histogram: &Value) -> f64 {
    let histogram: weir_stats::Histogram = serde_json::from_value(histogram.clone()).unwrap();
    histogram.mean().unwrap()
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("a number: {of}"))
}

#[test]
fn a9_megabits_are_the_mebibytes_in_other_units() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let words = "-e 0:2 -s '0 b1048578' -r 50 --store-result r.json -b";
    let said = self_test(&stage, words).code(0);
    let mbits = values(&said, "RPC Bandwidth (Mbits/sec)")[0];
    let stored: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let master = &stored["groups"][0]["jobs"][0]["outcome"]["masters"][0];
    let seconds = number(&master["duration_ns"]) / 1e9;
    let mib = 50.0 * 1_048_578.0 / seconds / 1_048_576.0;
    assert!((mbits - mib * 8.388_608).abs() <= 0.01, "{mbits} {mib}");
}

#[test]
fn a10_buffers_end_in_the_byte_that_was_asked_for_and_carry_everything() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    for transport in ["tcp", "null"] {
        let words = "-e 0:2 --align 3 -s b4096 -r 200 --verify full --transport";
        let said = self_test(&stage, &format!("{words} {transport}")).code(0);
        said.out("  Buffer addresses end with:  3\n");
    }
}

#[test]
fn a11_without_variables_the_table_says_where_servers_are() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let mut command = stage.peer(&split("self_test --path . -e 0:2 -s 0 -r 100"));
    for name in [
        "D_PROVIDER",
        "D_INTERFACE",
        "OFI_INTERFACE",
        "CRT_PHY_ADDR_STR",
    ] {
        command.env_remove(name);
    }
    let said = crate::stage::said(command).code(0);
    said.out("Using attachment file ./daos_server.attach_info_tmp instead\n");
}

#[test]
fn a16_a_run_without_a_network_says_so() {
    let stage = Stage::new();
    let words =
        "self_test --transport null:// -e 0:0 -s 0 -i 16 -r 100000 --verbose --store-result r.json";
    let said = stage.peer_says(&split(words)).code(0);
    let said = said.out("\t+ Transport: null\n").out("\tRPC Failures: 0\n");
    let stored: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let master = &stored["groups"][0]["jobs"][0]["outcome"]["masters"][0];
    assert_eq!(
        (&master["transport"], &master["succeeded"]),
        (&"null".into(), &100_000.into())
    );
    // A block is printed while the run goes on. The clock is compared with the kernel's once more
    // before the result is stored, which moves durations by some parts in a million.
    let rate = 1e14 / number(&master["duration_ns"]);
    assert!(
        (values(&said, "RPC Throughput (RPCs/sec)")[0] - rate).abs() <= 1.0 + rate * 1e-3,
        "{rate}: {said}"
    );
}
