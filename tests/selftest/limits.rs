//! Limits of servers and of machines are named where they are met; what servers leave that were killed.

use std::fs;

use rustix::process::Signal;

use crate::faults::connected;
use crate::servers::{Server, self_test, split};
use crate::serving::{serve, table};
use crate::stage::{Stage, skip, until};

#[test]
fn a_server_without_room_for_connections_is_none_that_is_gone() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0 --max-conns 1");
    let before = table(&stage);
    let only = connected(&server).unwrap();
    serve(&stage, "--rank 0").code(3).err(&server.address);
    assert_eq!(table(&stage), before);
    let refused = self_test(&stage, "-e 0:0 -s 0 -r 10").code(3);
    refused
        .err("as many connections as it may: 1")
        .err("--max-conns");
    drop(only);
    until("there is room again", || connected(&server).is_ok());
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_limit_that_sessions_or_connections_meet_is_named() {
    let stage = Stage::new();
    let storm = |sizes: &str| {
        let words = format!("-e 0:0 -s '{sizes}' --connect-storm 40");
        self_test(&stage, &words).code(1)
    };
    let server = Server::start(&stage, "--rank 0 --mem-limit 8m");
    let said = storm("b1m 0").out("\t\t\t32: -DER_NOMEM (-1009)\n");
    let said =
        said.out("\t+ Refused: 32, the first of 0:0: buffers for a session take 1048576 bytes");
    said.out("and 0 bytes are left").out("--mem-limit");
    drop(server);
    let server = Server::start(&stage, "--rank 0 --max-sessions 10");
    let said = storm("i10 0").out("\t\t\t30: -DER_NOMEM (-1009)\n");
    said.out("this server has 10, as many as it may")
        .out("--max-sessions");
    drop(server);
    let _server = Server::start(&stage, "--rank 0 --max-conns 10");
    let said = storm("0 0").out("\t\t\t30: -DER_BUSY (-1012)\n");
    said.out("\t+ Connections: 10 of 40\n")
        .out("as many connections as it may: 10")
        .out("--max-conns");
}

#[test]
fn memory_that_is_not_there_is_refused_before_any_of_it_is_touched() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0");
    let refused = self_test(&stage, "-e 0:0 -s 'b2g 0' -r 100").code(3);
    refused
        .err("take 34359738368 bytes (16 of 2147483648 bytes)")
        .err("--mem-limit");
    drop(server);
    // Requests in line need no memory of their server.
    let _server = Server::start(&stage, "--rank 0 --max-msg 1g --mem-limit 1000g");
    let own = self_test(&stage, "-e 0:0 -s 'i1000m 0' -i 1000000 -r 1000000").code(3);
    own.err("1000000 RPCs at once, each with a buffer of 1048576000 bytes, take ");
    let servers = self_test(&stage, "-e 0:0 -s 'b4000m 0' -i 200 -r 200").code(3);
    servers.err("the server's buffers for a session take 838860800000 bytes");
}

#[test]
fn so_many_at_once_that_there_is_no_memory_for_them_are_refused() {
    let facts = fs::read_to_string("/proc/meminfo").unwrap();
    let line = facts.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    if kib.parse::<u64>().unwrap() >= 256 << 20 {
        return skip("so many RPCs at once", "this machine has memory for them");
    }
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0");
    for to in ["--transport null", "-u --path .", "-u --path . -m 0:0"] {
        let words = "-e 0:0 -s 0 -i 1073741824 -r 1073741824 --duration 1 --history off";
        let refused = stage
            .peer_says(&split(&format!("self_test {words} {to}")))
            .code(3);
        refused.err("1073741824 RPCs at once take 274877906944 bytes, and that machine has ");
    }
}

#[test]
fn a_thread_without_an_rpc_at_once_has_none_to_send() {
    let stage = Stage::new();
    let words = "self_test --transport null -e 0:0 -s 0 --threads 4 -i 2 -r 1000 --history off";
    let said = stage
        .peer_says(&split(words))
        .code(0)
        .out("RPC Failures: 0\n");
    let said = said
        .err("note: --threads 4: there are 2 RPCs at once, and no thread without one of them\n");
    assert!(!said.out.contains("Not sent"), "{said}");
    // A plan may have more of them.
    let plan = stage.peer_says(&split(
        &format!("{words} --show-plan").replace("--history off", ""),
    ));
    let plan = plan.code(0).out.replace("\"clones\": 2", "\"clones\": 4");
    stage.file("plan.json", &plan);
    let run = "run --history off --format json plan.json";
    let result: serde_json::Value =
        serde_json::from_str(&stage.say(&split(run)).code(0).out).unwrap();
    let master = &result["groups"][0]["jobs"][0]["outcome"]["masters"][0];
    assert_eq!(
        (&master["succeeded"], &master["not_sent"]),
        (&1000.into(), &0.into())
    );
    assert_eq!(result["plan"]["groups"][0]["jobs"][0]["clones"], 4);
}

#[test]
fn sockets_of_servers_that_were_killed_are_removed_and_that_is_said() {
    let stage = Stage::new();
    let sockets = || {
        let entries = fs::read_dir(stage.path(".")).unwrap().flatten();
        let is_socket =
            |entry: &fs::DirEntry| entry.path().extension().is_some_and(|end| end == "sock");
        entries.filter(is_socket).count()
    };
    let server = Server::start(&stage, "--rank 0 --transport shm://");
    server.signal(Signal::KILL);
    assert_eq!(server.wait(), None);
    assert_eq!(sockets(), 1);
    let lives = Server::start(&stage, "--rank 1 --transport shm://");
    assert_eq!(sockets(), 2);
    let said = serve(&stage, "--rank 0").code(0);
    said.err("note: removed ")
        .err(".sock: who listened there is gone");
    assert_eq!(sockets(), 1);
    // One that somebody listens on stays, whoever names it.
    let taken = serve(&stage, &format!("--rank 2 --transport {}", lives.address)).code(3);
    taken.err("in use");
    self_test(&stage, "-e 1:0 -s 0 -r 10").code(0);
    assert_eq!(lives.end(), Some(0));
    assert_eq!(sockets(), 0);
}

#[test]
fn calls_that_wait_for_room_do_not_stop_those_that_are_out() {
    let stage = Stage::new();
    // More data than sockets and queues take, both ways: seconds, were payloads made again at each try.
    let words = "self_test --loopback=1 --transport tcp -e 0:0 -s i15m -i 8 -r 24 --timeout 10";
    let said = stage.peer_says(&split(words)).code(0);
    said.out("\tRPC Failures: 0\n");
}
