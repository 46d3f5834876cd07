//! Transfer of bulk data, and the report about payloads: each path that a transport has, and those
//! that it has not; a payload that arrives with another byte; the cost of checking.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use weir_rpc::wire::{FrameHeader, FrameKind, HEADER};

use crate::servers::{S1, Server, masters, self_test, split, values};
use crate::stage::{Said, Stage, skip};

/// A self-test of a server of its own.
fn over(transport: &str, words: &str) -> Said {
    let words = format!(
        "self_test --loopback=1 -e 0:0 -s 'b70000 b70000' -r 40 --warmup 0 --transport {transport} {words}"
    );
    Stage::new().peer_says(&split(&words))
}

#[test]
fn bulk_data_move_as_they_are_asked_to_or_the_nearest_way_is_named() {
    let (rendezvous, eager) = ("emulated-rendezvous", "emulated-eager");
    for (transport, ways, nearest) in [
        (
            "tcp",
            &[
                ("auto", rendezvous),
                ("rendezvous", rendezvous),
                ("eager", eager),
            ] as &[_],
            "rendezvous",
        ),
        ("shm", &[("auto", "shm"), ("rma", "shm")], "rma"),
        ("ofi+tcp", &[("auto", "rma"), ("rma", "rma")], "rma"),
    ] {
        for mode in ["auto", "rma", "rendezvous", "eager"] {
            let said = over(transport, &format!("--bulk-mode {mode}"));
            if said.err.contains("libfabric not found") {
                skip("bulk modes of ofi+tcp", "no libfabric");
                break;
            }
            if let Some((_, path)) = ways.iter().find(|(own, _)| *own == mode) {
                let said = said.code(0).out(&format!("\t+ Bulk path: {path}\n"));
                assert_eq!(values(&said, "RPC Failures"), [0.0]);
                continue;
            }
            said.code(2).err(&format!(
                "bulk mode {mode}: transport {transport} does not have it; the nearest that it has is \
                 {nearest}"
            ));
        }
    }
    let words = "self_test --transport null -e 0:0 -s b70000 --bulk-mode rma";
    let null = Stage::new().peer_says(&split(words)).code(2);
    null.err("bulk mode rma: transport null does not have it");
}

#[test]
fn eager_data_need_no_frame_that_asks_for_them() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let bytes = |mode: &str| {
        let words =
            format!("-e 0:2 -s 'b100 0' -r 1000 --warmup 0 --output json --bulk-mode {mode}");
        let said = self_test(&stage, &words).code(0);
        masters(&said)[0][0]["bytes_on_wire"].as_u64().unwrap()
    };
    let (asked, eager) = (bytes("rendezvous"), bytes("eager"));
    // A frame's header at least for each.
    assert!(asked >= eager + 1000 * HEADER as u64, "{asked} {eager}");
}

/// Passes on what comes from a server, but for one byte of one of its long answers.
fn pass_on_with_damage(mut from: TcpStream, mut to: TcpStream, damaged: usize) {
    let mut answers = 0;
    loop {
        let mut header = [0; HEADER];
        if from.read_exact(&mut header).is_err() {
            break;
        }
        let (frame, length) = FrameHeader::decode(&header, true).unwrap();
        let mut body = vec![0; length as usize];
        from.read_exact(&mut body).unwrap();
        if frame.kind == FrameKind::Response && length >= 1000 {
            answers += 1;
            if answers == damaged {
                body[777] ^= 0x10;
            }
        }
        if to
            .write_all(&header)
            .and_then(|()| to.write_all(&body))
            .is_err()
        {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Where a client reaches a server whose answers are damaged on the way.
fn damaging(server: &Server, damaged: usize) -> String {
    let there = server.address.strip_prefix("tcp://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&there).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            thread::spawn(move || pass_on_with_damage(server, client, damaged));
        }
    });
    place
}

#[test]
fn a_payload_that_arrives_with_another_byte_is_a_wrong_payload() {
    let stage = Stage::new();
    let server = Server::start(&stage, S1);
    let place = damaging(&server, 50);
    for verify in ["full", "crc"] {
        let words = format!(
            "self_test -u --target {place} -e 0:2 -s 'i4000 i4000' -i 4 -r 100 --warmup 0 --verify {verify}"
        );
        stage
            .peer_says(&split(&words))
            .code(1)
            .out("\tRPC Failures: 1\n")
            .out("\t\t\tFailures: 1/100\n")
            .out("\t\t\t1: -DER_")
            .out("\t+ Wrong payloads: 1\n");
    }
    // Nobody looks.
    let words = format!(
        "self_test -u --target {place} -e 0:2 -s 'i4000 i4000' -i 4 -r 100 --warmup 0 --verify off"
    );
    stage.peer_says(&split(&words)).code(0);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn what_checking_payloads_takes_is_reported() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let words = "-e 0:2 -s 'b100000 b100000' -r 50 --warmup 0";
    for (verify, checked) in [("full", 50), ("crc", 50), ("off", 0)] {
        let words = format!("{words} --verify {verify}");
        let said = self_test(&stage, &format!("{words} --output json")).code(0);
        let master = &masters(&said)[0][0];
        assert_eq!(master["verified"], checked, "{master}");
        // 10 MB cannot be looked through in no time.
        let took = master["verify_ns"].as_u64().unwrap();
        assert_eq!(took > 50_000, checked > 0, "{master}");
        let text = self_test(&stage, &words).code(0);
        let line = "\t+ Payloads checked: 50; checking took the client ";
        assert_eq!(text.out.contains(line), checked > 0, "{text}");
    }
}

#[test]
fn a_provider_that_can_hang_is_warned_of() {
    let said = over("ofi+shm", "");
    if said.err.contains("libfabric not found") {
        skip("a warning of a provider", "no libfabric");
        return;
    }
    let said = said.code(0);
    said.err("warning: a peer of the fabric provider shm that is killed can stop this process\n");
    assert_eq!(over("shm", "").code(0).err.matches("fabric").count(), 0);
}
