//! Counts of a result beside latencies: bytes on the wire, waits for credits, CPU use of servers,
//! and the messages about a wrong table.

use serde_json::Value;

use crate::servers::{S1, Server, masters, self_test, split};
use crate::stage::{Stage, said};

/// The only master of a self-test, by its JSON.
fn master(stage: &Stage, words: &str) -> Value {
    let said = self_test(stage, &format!("{words} --warmup 0 --output json"));
    masters(&said.code(0))[0][0].clone()
}

#[test]
fn a_result_has_the_bytes_on_the_wire_and_what_servers_used() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    // Long enough for the kernel to count time: it does so at its ticks.
    let master = master(&stage, "-e 0:0,2 -s 'i1000 i3000' -r 20000");
    let bytes = master["bytes_on_wire"].as_u64().unwrap();
    // With a header each way, and little else.
    let payloads = 40_000 * 4000;
    assert!(
        (payloads + 40_000 * 48..payloads + 40_000 * 200).contains(&bytes),
        "{bytes}"
    );
    assert_eq!(master["interface"]["name"], "lo");
    let servers = master["servers"].as_array().unwrap();
    let tags: Vec<_> = servers.iter().map(|one| &one["endpoint"]["tag"]).collect();
    assert_eq!(tags, [0, 2]);
    for one in servers {
        let time = |name: &str| one["cpu"][name].as_u64().unwrap();
        assert!(time("user_ns") + time("system_ns") > 0, "{one}");
    }
}

#[test]
fn over_shared_memory_there_is_no_wire_and_no_interface() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --tags 1 --transport shm://");
    let master = master(&stage, "-e 0:0 -s 'i1000 i3000' -r 250");
    for name in ["bytes_on_wire", "interface"] {
        assert!(
            master.get(name).is_none_or(Value::is_null),
            "{name}: {master}"
        );
    }
    assert_eq!(master["servers"].as_array().map(Vec::len), Some(1));
}

#[test]
fn waits_for_credits_are_no_latency_and_printed() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let limited = |words: &str| {
        let words = format!("self_test -u --path . -e 0:0-2 -s 0 -r 500 -i 16 {words}");
        let mut command = stage.peer(&split(&words));
        command.env("CRT_CREDIT_EP_CTX", "2");
        said(command).code(0)
    };
    let master = masters(&limited("--output json"))[0][0].clone();
    let in_flight = master["effective_in_flight"].as_f64().unwrap();
    assert!(in_flight <= 2.0, "{master}");
    assert!(master["credit_wait_ns"].as_u64().unwrap() > 0, "{master}");
    limited("").out("\t+ Waits for credits: ");
}

#[test]
fn a_table_that_says_another_size_is_used_and_warned_of() {
    let stage = Stage::new();
    let _server = Server::start(&stage, &format!("{S1} --table-format cart"));
    let table = "daos_server.attach_info_tmp";
    let text = stage.read(table);
    assert!(text.contains("size 1\n"), "{text}");
    stage.file(table, text.replace("size 1\n", "size 5\n"));
    let said = self_test(&stage, "-e 0:2 -s '(0 0) (i8 0)' -r 100").code(0);
    let warning = "warning: the table of group daos_server says 5 ranks and has 1\n";
    assert_eq!(said.err.matches(warning).count(), 1, "{said}");
}
