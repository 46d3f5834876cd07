//! Acceptance cases that are about figures: they agree with each other, and with what cannot be otherwise.
//! Not here: how fast anything is, which depends on what else the machine does (`cargo xtask bench rpc`).

use serde_json::Value;

use crate::servers::{S1, Server, masters, self_test, split, values};
use crate::stage::{Stage, skip, until};

fn only_master(said: &crate::stage::Said) -> Value {
    masters(said)[0][0].clone()
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
fn a14_a_servers_time_is_in_each_latency_and_nothing_else_is() {
    for transport in ["tcp", "shm"] {
        // Both sides spin: one server at a time, or there are more of them than CPUs.
        let of = |serve: &str, tests: &[&str]| -> Vec<Value> {
            let stage = Stage::new();
            let addresses = "--transport tcp://127.0.0.1:0,shm://";
            let _server =
                Server::start(&stage, &format!("--rank 0 {addresses} --poll busy {serve}"));
            let run = |test: &&str| {
                let words = format!(
                    "-e 0:0 -s 0 --poll busy --warmup 100 --output json --transport {transport} {test}"
                );
                only_master(&self_test(&stage, &words).code(0))
            };
            tests.iter().map(run).collect()
        };
        let median = |master: &Value| number(&master["figures"]["median_ns"]);
        let is_as_long_as_it_should = || {
            let base = if crate::servers::is_long() {
                median(&of("", &["-i 1 -r 2000"])[0])
            } else {
                0.0
            };
            let busy = of(
                "--service-time const:100",
                &["-i 1 -r 1000", "-i 8 -r 4000"],
            );
            let [one, many] = [&busy[0], &busy[1]];
            // Whatever else the machine does, this holds.
            assert!(number(&one["latency"]["min"]) >= 100_000.0, "{one}");
            let throughput = 4000.0 / (number(&many["duration_ns"]) / 1e9);
            assert!(throughput <= 10_000.0, "{throughput}");
            let in_flight = number(&many["effective_in_flight"]);
            assert!((in_flight - 8.0).abs() <= 0.03 * 8.0, "{in_flight}");
            // The rest of a latency is what it is without that time, and others wait in it.
            let rest = median(one) - 100_000.0;
            let alone = 1e9 / median(one);
            println!("{transport}: base {base} rest {rest} throughput {throughput}");
            (rest - base).abs() <= 10_000.0_f64.max(base) && throughput >= 0.9 * alone
        };
        let is_so = is_as_long_as_it_should();
        // Without CPUs of its own, as beside other tests, no latency is known before.
        if crate::servers::is_long() {
            let what = format!("{transport} has the CPUs for itself");
            until(&what, || is_so || is_as_long_as_it_should());
        }
    }
}

#[test]
fn a15_rate_times_latency_is_what_is_in_flight() {
    for transport in ["tcp", "shm", "ofi+tcp", "ofi+shm"] {
        let stage = Stage::new();
        let words = "self_test --loopback=1 -e 0:0 -s 0 -i 16 -r 100000 --output json --transport";
        let mut words = split(words);
        words.push(transport);
        let mut said = stage.peer_says(&words);
        if said.err.contains("libfabric not found") {
            skip(
                &format!("a15_rate_times_latency over {transport}"),
                "no libfabric",
            );
            continue;
        }
        // A run takes a few hundredths of a second, of which others may take their share.
        let mut tries = Vec::new();
        loop {
            let master = only_master(&said.code(0));
            let in_flight = number(&master["effective_in_flight"]);
            tries.push(in_flight);
            if (in_flight - 16.0).abs() <= 0.02 * 16.0 {
                break;
            }
            assert!(tries.len() < 5, "{transport}: {tries:?}");
            said = stage.peer_says(&words);
        }
    }
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
    // The clock behind the text is finer than the whole nanoseconds that are stored.
    let duration = number(&master["duration_ns"]);
    let rate = 1e14 / duration;
    assert!(
        (values(&said, "RPC Throughput (RPCs/sec)")[0] - rate).abs() <= 1.0 + rate / duration,
        "{rate}: {said}"
    );
}
