//! Groups, masters and streams that are not as they should be: each is named, with the exit code that
//! belongs to it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_rpc::wire::{PREAMBLE, PreambleReply};

use crate::servers::{S1, Server, masters, self_test, split};
use crate::stage::{Running, Stage, WEIR, has, is_root, peer, said, skip, until};

const TABLE: &str = "daos_server.attach_info_tmp";

#[test]
fn f7_a_server_of_another_version_is_refused_with_both_versions() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; PREAMBLE]).unwrap();
        let reply = PreambleReply {
            major: 2,
            minor: 3,
            reason: 1,
        };
        stream.write_all(&reply.encode()).unwrap();
    });
    let words = format!("self_test --target tcp://{place} -e 0:0 -s 0 -r 10");
    let said = Stage::new().peer_says(&split(&words)).code(3);
    said.err("version mismatch: local 1.0, remote 2.3");
    server.join().unwrap();
}

#[test]
fn f11_an_endpoint_that_runs_a_test_is_busy_until_whoever_ordered_it_is_gone() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--ranks 0-1 --tags 2");
    let alone = server.descriptors();
    let words = "-e 0:0 --master-endpoint 1:0 -s 0 -r 100000000";
    let words = format!("self_test -u --path . {words}");
    let first = Running::start(stage.peer(&split(&words)));
    // The order, and the calls of the master to its own process: a socket and its two ends.
    until("the test runs", || server.descriptors() >= alone + 3);
    let order = |master| {
        let words = format!("-e 0:0 --master-endpoint {master} -s 0 -r 10");
        self_test(&stage, &words)
    };
    let busy = order("1:0").code(1);
    let busy = busy.out("Master Endpoint 1:0 FAILED: ").out("-1012");
    assert!(!busy.out.contains("RPC Throughput"), "{busy}");
    // Another tag of the same rank is free.
    order("1:1").code(0).out("Master Endpoint 1:1\n");
    first.signal(Signal::KILL);
    assert_eq!(first.end().code, None);
    until("the endpoint is free", || order("1:0").code == Some(0));
    order("7:0").code(3).err("no rank 7");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn f12_a_table_that_makes_no_sense_is_named_with_its_line() {
    let stage = Stage::new();
    let attempt = || self_test(&stage, "-e 0:0 -s 0 -r 10").code(3);
    attempt().err("no table of group `daos_server`");
    let member = "0 tcp://127.0.0.1:1";
    let head = "name daos_server\nsize 1\nall\n";
    for (text, line, why) in [
        (String::new(), 1, "empty"),
        ("name other\nsize 1\n".to_owned(), 1, "group `other`"),
        (format!("{head}{member}\n{member}\n"), 5, "twice"),
        (format!("{head}# a note\n{member} junk\n"), 5, "no field"),
        (format!("{head}zero tcp://127.0.0.1:1\n"), 4, "no rank"),
        (format!("{head}0 tcp://127.0.0.1\n"), 4, "no port"),
    ] {
        stage.file(TABLE, text);
        let refused = attempt().err(&format!("{TABLE}:{line}: ")).err(why);
        assert!(!refused.out.contains("RPC Throughput"), "{refused}");
    }
    let path = stage.file(TABLE, format!("{head}{member}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o646)).unwrap();
    attempt().err(TABLE).err("chmod o-w");
}

#[test]
fn f12_a_table_that_others_may_not_read_says_what_lets_them() {
    if !is_root() || !has("setpriv") {
        return skip("a table of another user", "not root, or no setpriv");
    }
    let stage = Stage::public();
    let program = stage.path("self_test");
    std::fs::copy(WEIR, &program).unwrap();
    let _server = Server::start(&stage, "--rank 0");
    let mut command = stage.command("setpriv");
    command.args(["--reuid=64986", "--regid=64986", "--clear-groups", &program]);
    command.args(split("-u --path . -e 0:0 -s 0 -r 10"));
    said(command)
        .code(3)
        .err("Permission denied")
        .err("`weir rpc serve --public` lets everyone read it");
}

#[test]
fn f12_a_table_that_another_user_has_laid_is_believed_where_its_directory_was_named() {
    if !is_root() {
        return skip("a table that another user has laid", "not root");
    }
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0");
    let attempt = |words: &str| {
        let mut command = stage.peer(&split(&format!("self_test -u {words} -e 0:0 -s 0 -r 10")));
        command.env("WEIR_GROUP_DIR", stage.path("."));
        said(command)
    };
    attempt("").code(0);
    std::os::unix::fs::chown(stage.path(TABLE), Some(64_986), None).unwrap();
    let refused = attempt("").code(3).err("this table is another user's");
    refused.err("--path names the directory");
    attempt("--path .").code(0);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn f12_an_entry_of_a_server_that_is_gone_is_noticed_and_replaced() {
    let stage = Stage::new();
    let server = Server::start(&stage, S1);
    server.signal(Signal::KILL);
    assert_eq!(server.wait(), None);
    let attempt = || self_test(&stage, "-e 0:2 -s 0 -r 10");
    // Unless this machine has too much to do just then.
    until("it is noticed within a second", || {
        let began = Instant::now();
        attempt().code(3).err("refused");
        began.elapsed() < Duration::from_secs(1)
    });
    // Another run of a server at the very same address.
    let server = Server::start(&stage, S1);
    let table = stage.read(TABLE);
    let (before, nonce) = table.split_once("nonce=").unwrap();
    let other = if nonce.starts_with('0') { "1" } else { "0" };
    stage.file(TABLE, format!("{before}nonce={other}{}", &nonce[1..]));
    attempt().code(3).err("stale");
    stage.file(TABLE, table);
    attempt().code(0);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn f16_what_cannot_be_printed_is_told_and_the_run_finishes() {
    let stage = Stage::new();
    let server = Server::start(&stage, S1);
    let shell = |line: &str, program: &str| {
        let mut command = stage.command("sh");
        command.args(["-c", line, program]);
        said(command)
    };
    let test = "exec \"$0\" -u --path . -e 0:2 -s 0 -r 100 --store-result r.json";
    for (line, why) in [
        (format!("{test} >/dev/full"), "No space left"),
        (format!("{test} >&-"), "standard output is closed"),
    ] {
        let _ = std::fs::remove_file(stage.path("r.json"));
        let lost = shell(&line, peer("self_test")).code(1).err(why);
        assert_eq!(lost.err.matches("standard output").count(), 1, "{lost}");
        let stored = serde_json::from_str(&stage.read("r.json")).unwrap();
        let stored: serde_json::Value = stored;
        assert!(stored.to_string().contains("\"succeeded\":100"), "{stored}");
    }
    for option in ["--store-result", "--samples"] {
        let full = self_test(&stage, &format!("-e 0:2 -s 0 -r 100 {option} /dev/full"));
        let full = full.code(1).err("/dev/full").err("No space left");
        full.out("RPC Failures: 0\n");
    }
    assert_eq!(server.end(), Some(0));
    // A server that cannot say that it is ready serves all the same.
    let serve = "exec \"$0\" rpc serve --path . --rank 5 --exit-after idle:0.1 >&-";
    shell(serve, WEIR).code(1).err("standard output is closed");
}

#[test]
fn f16_a_reader_that_has_seen_enough_ends_no_test() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let mut command = stage.command("sh");
    let line = "\"$0\" -u --path . -e 0:2 -s 0 -r 100 --store-result r.json | true";
    command.args(["-c", line, peer("self_test")]);
    said(command).code(0);
    assert!(stage.read("r.json").contains("rpc"));
}

#[test]
fn a_server_that_takes_no_orders_says_so_of_each_master() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--ranks 0-1 --allow-master no");
    let words = "-e 0:0 --master-endpoint 0-1:0 -s 0 -r 10";
    let refused = self_test(&stage, words).code(3);
    let refused = refused.out("Master Endpoint 0:0 FAILED: ");
    let refused = refused.out("Master Endpoint 1:0 FAILED: ").out("-1001");
    assert!(!refused.out.contains("RPC Throughput"), "{refused}");
    let said = self_test(&stage, &format!("{words} --output json"));
    let all = masters(&said.code(3));
    assert_eq!(all[0].len(), 2);
    assert!(all[0].iter().all(|one| one["succeeded"] == 0), "{all:?}");
    // What is for programs has no blocks that say it.
    for form in ["csv", "json", "prom"] {
        let said = self_test(&stage, &format!("{words} --output {form}")).code(3);
        let said = said.err("error: 0-EMPTY 0-EMPTY: master 0:0 failed: ");
        said.err("error: 0-EMPTY 0-EMPTY: master 1:0 failed: ");
    }
}

#[test]
fn f9_whoever_does_not_know_the_token_is_sent_away() {
    let stage = Stage::new();
    for (name, token) in [
        ("right", "sixteen letters!"),
        ("wrong", "sixteen letters?"),
        ("short", "fifteen letters"),
    ] {
        let path = stage.file(name, token);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let _server = Server::start(&stage, "--rank 0 --token-file right");
    let attempt = |words: &str| self_test(&stage, &format!("-e 0:0 -s 0 -r 10 {words}"));
    attempt("--token-file right").code(0);
    for wrong in ["", "--token-file wrong"] {
        let refused = attempt(wrong).code(3).err("authentication failed");
        refused.out("\t+ Not sent: 10\n");
    }
    let short = attempt("--token-file short").code(3);
    short.err("15 bytes; a token has at least 16");
    // A secret that others may read is none.
    let path = stage.file("open", "sixteen letters!");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    attempt("--token-file open")
        .code(3)
        .err("others may read it");
}
