//! Peers that vanish, stop, say nothing or talk nonsense, as processes: failures are counted by endpoint
//! and code, nothing hangs, and the next test is as good as the first.

mod slow;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Signal, getrlimit};
use serde_json::Value;
use weir_rpc::client::{ControlStream, DialSetup, ServerEndpoint, open_control};
use weir_rpc::links::LinkGreeting;
use weir_rpc::wire::{FrameHeader, FrameKind, MAJOR, MINOR, Preamble, RpcId};
use weir_rpc::{DerCode, RpcError};
use weir_schema::RpcEndpoint;

use crate::servers::{Server, is_long, masters, self_test, split};
use crate::stage::{Running, Stage, WEIR, until};

/// As often peers are killed in a row.
fn kills() -> u32 {
    if is_long() { 100 } else { 20 }
}

/// A self-test that goes on until something ends it.
pub(crate) fn endless(stage: &Stage, words: &str) -> Running {
    let words = format!("self_test -u --path . --output json -r 100000000 {words}");
    Running::start(stage.peer(&split(&words)))
}

pub(crate) fn count(of: &Value, what: &str) -> u64 {
    of[what]
        .as_u64()
        .unwrap_or_else(|| panic!("{what} of {of}"))
}

/// Does it over both at the same time: most of it is waiting.
fn over_both(test: impl Fn(&'static str) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        for transport in ["tcp", "shm"] {
            scope.spawn(move || test(transport));
        }
    });
}

/// Every RPC has succeeded, failed or was not sent.
pub(crate) fn adds_up(master: &Value) {
    let parts = ["succeeded", "failed", "not_sent"].map(|part| count(master, part));
    assert_eq!(parts.iter().sum::<u64>(), count(master, "requested"));
}

#[test]
fn f3_clients_that_are_killed_in_bulk_traffic_leave_nothing_behind() {
    for transport in ["tcp", "shm"] {
        let stage = Stage::new();
        // Room for the buffers of one client, and not of two.
        let serve = "--rank 0 --transport tcp://127.0.0.1:0,shm:// --mem-limit 20m";
        let server = Server::start(&stage, serve);
        let words = format!("-e 0:0 -s 'b1m b1m' --transport {transport}");
        let before = server.descriptors();
        for round in 0..kills() {
            let client = endless(&stage, &words);
            until("it has connected", || server.descriptors() > before);
            // Somewhere between its handshake and its traffic.
            std::thread::sleep(Duration::from_millis(u64::from(round % 5) * 12));
            client.signal(Signal::KILL);
            assert_eq!(client.end().code, None);
            until("its connection is closed", || {
                server.descriptors() == before
            });
        }
        self_test(&stage, &format!("{words} -r 50")).code(0);
        assert_eq!(server.end(), Some(0));
    }
}

#[test]
fn a_master_that_waited_for_another_has_the_whole_time_for_its_first_rpcs() {
    let stage = Stage::new();
    let servers = [0, 1].map(|rank| Server::start(&stage, &format!("--rank {rank}")));
    let alone = servers[1].descriptors();
    let words =
        "self_test -u --path . -e 0:0 -m 0-1:0 -s 0 -r 2000 --warmup 1s --timeout 1 --output json";
    let client = Running::start(stage.peer(&split(words)));
    until("it has been ordered", || servers[1].descriptors() > alone);
    std::thread::sleep(Duration::from_millis(300));
    servers[1].signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(2500));
    servers[1].signal(Signal::CONT);
    // What the other had out in its warm-up may have failed.
    let said = client.end();
    let master = &masters(&said)[0][0];
    assert_eq!(master["succeeded"], 2000, "{said}");
    assert_eq!(master["failed"], 0, "{said}");
}

#[test]
fn a_client_that_is_stopped_disturbs_nobody_and_goes_on_later() {
    over_both(|transport| {
        let stage = Stage::new();
        let server = Server::start(&stage, "--rank 0 --transport tcp://127.0.0.1:0,shm://");
        let alone = server.descriptors();
        let words = format!("-e 0:0 -s '(b100k b100k)' --transport {transport}");
        let test = format!("self_test -u --path . {words} -r 4000");
        let client = Running::start(stage.peer(&split(&test)));
        until("it has connected", || server.descriptors() > alone);
        server.works_for(3);
        client.signal(Signal::STOP);
        self_test(&stage, &format!("{words} -r 50")).code(0);
        client.signal(Signal::CONT);
        client.end().code(0).out("RPC Failures: 0\n");
    });
}

/// Bytes that mean nothing, of a seed; some begin as a client does.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let length = usize::try_from(next() % 20_000).unwrap();
    let mut bytes = Vec::new();
    let preamble = Preamble {
        major: MAJOR,
        minor: MINOR,
        flags: 0,
    };
    match seed % 5 {
        0 => {}
        1 => bytes.extend_from_slice(&preamble.encode()[..9]),
        2 => bytes.extend_from_slice(&preamble.encode()),
        kind => {
            let hello = FrameHeader::plain(FrameKind::Hello);
            let long = if kind == 3 { 300 } else { u32::MAX };
            bytes.extend_from_slice(&preamble.encode());
            bytes.extend_from_slice(&hello.encode(long, true));
        }
    }
    while bytes.len() < length {
        bytes.extend_from_slice(&next().to_le_bytes());
    }
    bytes
}

/// Says it to a server, which has to hang up.
fn spray(place: &str, bytes: &[u8]) {
    let mut stream = TcpStream::connect(place).unwrap();
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    // The server may have closed before all of it is out.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    if let Err(error) = stream.read_to_end(&mut Vec::new()) {
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "still open");
    }
}

#[test]
fn f4_noise_from_many_sides_harms_no_test_and_fills_no_log() {
    let stage = Stage::new();
    let mut command = stage.weir(&["rpc", "serve", "--path", ".", "--rank", "0"]);
    command.stderr(std::fs::File::create(stage.path("log")).unwrap());
    let server = Server::of(command);
    let before = server.descriptors();
    let place = server.address.strip_prefix("tcp://").unwrap();
    let (began, over) = (Instant::now(), AtomicBool::new(false));
    let sprayed = std::thread::scope(|scope| {
        let spray_until_over = |thread: u64| {
            let over = &over;
            scope.spawn(move || {
                let mut sent = 0;
                while !over.load(Ordering::Relaxed) {
                    spray(place, &noise(thread * 1_000_000 + sent));
                    sent += 1;
                }
                sent
            })
        };
        let threads: Vec<_> = (0..3).map(spray_until_over).collect();
        let words = "-e 0:0 -s '(0 0) (b70000 i300)' --duration 1s --verify full --output json";
        let said = self_test(&stage, words).code(0);
        over.store(true, Ordering::Relaxed);
        for block in masters(&said) {
            assert_eq!(count(&block[0], "failed"), 0);
        }
        let sent = threads.into_iter().map(|thread| thread.join().unwrap());
        sent.sum::<u64>()
    });
    until("all are gone", || server.descriptors() == before);
    let lines = stage.read("log").lines().count() as u64;
    assert!(sprayed > 10, "{sprayed}");
    assert!(
        (1..=began.elapsed().as_secs() + 1).contains(&lines),
        "{lines}"
    );
    assert_eq!(server.end(), Some(0));
}

/// A connection whose handshake is done.
pub(crate) fn connected(server: &Server) -> Result<ControlStream, RpcError> {
    let dial = DialSetup {
        group: "daos_server".to_owned(),
        token: None,
        within: Duration::from_secs(10),
        from: Vec::new(),
    };
    let endpoint = ServerEndpoint {
        endpoint: RpcEndpoint { rank: 0, tag: 0 },
        address: server.address.parse().unwrap(),
        nonce: None,
    };
    let opened = open_control(&dial, &endpoint, LinkGreeting::default(), &|| false);
    opened.map(|(control, _)| control)
}

/// One empty RPC, which is answered.
fn answers(control: &mut ControlStream) {
    let rpc = RpcId {
        slot: 0,
        generation: 1,
    };
    let header = FrameHeader {
        rpc,
        ..FrameHeader::plain(FrameKind::Request)
    };
    control.send(&header, &[]).unwrap();
    let (answer, _) = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    assert_eq!(
        (answer.kind, answer.rpc, answer.word),
        (FrameKind::Response, rpc, 0)
    );
}

#[test]
fn f8_idle_connections_take_little_memory_and_all_answer() {
    let wanted = if is_long() { 10_000 } else { 1000 };
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = wanted.min(limit.saturating_sub(200));
    println!("{connections} connections of {wanted} (limit of descriptors {limit})");
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0");
    // What the first ones need for good.
    let mut idle: Vec<_> = (0..20).map(|_| connected(&server).unwrap()).collect();
    let before = server.resident_kib();
    idle.extend((0..connections).map(|_| connected(&server).unwrap()));
    self_test(&stage, "-e 0:0 -s 0 -r 2000").code(0);
    idle.iter_mut().for_each(answers);
    let taken = server.resident_kib().saturating_sub(before);
    println!("{taken} KiB for {connections} connections");
    assert!(taken <= 10 * connections, "{taken} KiB for {connections}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn f8_without_descriptors_the_next_are_refused_and_the_others_unharmed() {
    let stage = Stage::new();
    let mut command = stage.command("sh");
    let serve = "ulimit -n 64; exec \"$0\" rpc serve --path . --rank 0";
    command.args(["-c", serve, WEIR]);
    command.stderr(std::fs::File::create(stage.path("log")).unwrap());
    let server = Server::of(command);
    let mut there = Vec::new();
    let refused = loop {
        match connected(&server) {
            Ok(control) => there.push(control),
            Err(refused) => break refused,
        }
    };
    assert!((10..64).contains(&there.len()), "{}", there.len());
    // At once, and not when its time is up.
    assert_eq!(refused.code, DerCode::Busy, "{refused}");
    assert!(refused.message.contains("ulimit -n"), "{refused}");
    there.iter_mut().for_each(answers);
    // The caller hears of it first.
    let is_said = || stage.read("log").contains("no descriptors left");
    until("the log says so", is_said);
    there.truncate(5);
    until("others find room", || connected(&server).is_ok());
    there.iter_mut().for_each(answers);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn rpcs_of_the_warm_up_that_are_never_answered_have_failed() {
    let stage = Stage::new();
    // Its first RPC takes ten seconds, and the others wait for it.
    let server = Server::start(&stage, "--rank 0 --service-time const:10000000");
    let test = "self_test --path . -e 0:0 -s 0 -i 4 -r 4 --timeout";
    let failed = stage.peer_says(&split(&format!("{test} 1"))).code(1);
    failed.out("\t+ Failures of 0:0: 4 -DER_TIMEDOUT (-1011)\n");
    drop(server);
    let server = Server::start(&stage, "--rank 0 --service-time const:10000000");
    let client = Running::start(stage.peer(&split(&format!("{test} 60"))));
    until("it has begun", || client.catches_signals());
    server.works_for(5);
    // Asks for the progress line.
    client.signal(Signal::USR1);
    client.signal(Signal::INT);
    let said = client.end().code(130);
    said.out("\t+ Failures of 0:0: 4 -DER_CANCELED (-1018)\n")
        .err(": warm-up\n");
}

#[test]
fn a_connection_that_is_lost_is_named_with_the_time_and_the_remedy() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0");
    let words = "self_test -u --path . -e 0:0 -s 0 --duration 100s";
    let client = Running::start(stage.peer(&split(words)));
    until("the test has begun", || client.catches_signals());
    server.works_for(10);
    server.signal(Signal::KILL);
    drop(server);
    let _again = Server::start(&stage, "--rank 0");
    let said = client.end().code(1);
    let said = said.out("\t+ Connection to 0:0 lost after ");
    let said =
        said.out(" failed with DER_UNREACH (--reconnect S looks for a server that comes back)\n");
    said.out(" s of 100 s\n");
}

#[test]
fn a_server_that_ends_in_order_is_named_though_it_was_the_only_one() {
    over_both(|transport| {
        let stage = Stage::new();
        let server = Server::start(&stage, "--rank 0 --transport tcp://127.0.0.1:0,shm://");
        let words =
            format!("self_test -u --path . -e 0:0 -s 0 --duration 100s --transport {transport}");
        let client = Running::start(stage.peer(&split(&words)));
        until("the test has begun", || client.catches_signals());
        server.works_for(10);
        server.signal(Signal::TERM);
        assert_eq!(server.wait(), Some(0));
        let said = client.end().code(1);
        let said = said.out("\t+ Connection to 0:0 lost after ");
        said.out(": the server is ending; ").out(" s of 100 s\n");
    });
}

#[test]
fn an_answer_behind_its_time_is_a_failure_however_it_is_waited_for() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --service-time const:30000");
    for poll in ["busy", "block"] {
        let words = format!(
            "self_test -u --path . -e 0:0 -s 0 -i 1 -r 20 --warmup 0 --timeout 0.02 --poll {poll} --output json"
        );
        let said = stage.peer_says(&split(&words)).code(1);
        let master = &masters(&said)[0][0];
        let endpoint = &master["endpoints"][0];
        assert_eq!(count(endpoint, "succeeded"), 0, "{poll}: {endpoint}");
        assert_eq!(
            count(&endpoint["failed"], "DER_TIMEDOUT"),
            20,
            "{poll}: {endpoint}"
        );
    }
}
