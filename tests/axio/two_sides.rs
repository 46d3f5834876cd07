//! Client and server as programs of their own: over UDP on this host, over frames between two.

mod slow;

use std::net::UdpSocket;
use std::process::Command;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::stage::{Running, Said, Stage, has, is_root, peer, root, said, skip, until};
use super::{stored, stored_as, sum};

/// A stream of one workspace on each side.
pub(super) const CONFIG: &str = "\
backend : udp
msg_handler : L_APP
kAppCoreNum : 1
kDispQueueNum : 1
workload : 1 : TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 0 : 0 : 0
inflight : 64
iteration : 2
duration : 0.2
msg_timeout_ms : 5000
stall_timeout : 30
";

/// Addresses of this host that no other test has, of client and server.
pub(super) fn addresses(test: u32) -> [String; 2] {
    let process = std::process::id();
    let address = |last| {
        let (high, low) = (1 + process % 200, process / 200 % 250);
        format!("127.{high}.{low}.{last}")
    };
    [address(2 * test + 1), address(2 * test + 2)]
}

/// A side, with its own address first.
pub(super) fn side(stage: &Stage, role: &str, test: u32, sets: &[&str]) -> Command {
    let [client, server] = addresses(test);
    let (own, other) = if role == "--client" {
        (client, server)
    } else {
        (server, client)
    };
    let words = [format!("local_ip={own}"), format!("remote_ip={other}")];
    let mut command = stage.peer(&["axio", role, "-c", "c.conf"]);
    for set in words.iter().map(String::as_str).chain(sets.iter().copied()) {
        command.args(["--set", set]);
    }
    command
}

#[test]
fn a_client_that_was_first_gets_its_answers_and_the_figures_of_its_server() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let mut client = side(&stage, "--client", 0, &[]);
    client.args(["--both", "--store-result", "r.json"]);
    let client = Running::start(client);
    until("it catches signals", || client.catches_signals());
    let mut server = side(&stage, "--server", 0, &[]);
    server.args(["--store-result", "s.json"]);
    let server = Running::start(server).end();
    let client = client.end();
    let server = server.code(0);
    let client = client.code(0);
    assert_eq!(client.out.matches("Perf Statistics").count(), 4, "{client}");
    assert_eq!(server.out.matches("Perf Statistics").count(), 2, "{server}");
    let note = "note: the server waits for its client at ";
    assert_eq!(server.err.matches(note).count(), 1, "{server}");
    let alone: serde_json::Value = serde_json::from_str(&stage.read("s.json")).unwrap();
    let rate = &alone["groups"][0]["jobs"][0]["metrics"][0];
    assert_eq!(rate["name"], "packet rate");
    assert!(rate["value"].as_f64().unwrap() > 0.0, "{rate}");
    let outcome = stored(&stage);
    let taken = sum(&outcome, "server", "application_rx.packets");
    let answered = sum(&outcome, "client", "application_rx.packets");
    // Their stretches of time are not the same, so that either may count more.
    assert!(answered > 0 && taken > 0, "{client}");
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{client}");
    assert_eq!(outcome["buffers_in_use"], 0, "{client}");
    // A socket does not tell how fast packets come.
    client
        .out("n/a")
        .out("packets that the kernel had no room for: 0");
}

#[test]
fn both_sides_in_one_process_reach_each_other_over_udp() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let mut command = side(&stage, "--loopback", 1, &[]);
    command.args(["--store-result", "r.json"]);
    let said = said(command).code(0);
    let outcome = stored(&stage);
    assert!(
        sum(&outcome, "client", "application_rx.packets") > 0,
        "{said}"
    );
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{said}");
    assert_eq!(outcome["buffers_in_use"], 0, "{said}");
}

#[test]
fn what_strangers_send_to_a_client_is_nobodys_and_no_answer() {
    let one_by_one = "kAppTxMsgBatchSize=1 kAppRxMsgBatchSize=1 kDispTxBatchSize=1";
    let many = format!("msg_handler=FS_READ inflight=2 {one_by_one}");
    for (test, load) in [
        (80, "inflight=64"),
        (81, "inflight=0 rate=1000"),
        (82, &many),
    ] {
        let stage = Stage::new();
        stage.file("c.conf", CONFIG);
        let sets: Vec<&str> = load.split(' ').collect();
        let mut command = side(&stage, "--loopback", test, &sets);
        command.args(["--store-result", "r.json"]);
        let [server, client] = addresses(test);
        let at = (client, 10_010);
        let (is_over, over) = mpsc::channel::<()>();
        let stranger = thread::spawn(move || {
            // One is at the server's address.
            let bind = |address: &str| UdpSocket::bind((address, 0)).unwrap();
            let sockets = [bind("127.0.0.1"), bind(&server)];
            // Of a stream that there is, one packet, any number; and bytes without an order.
            let own = |n: u32| [[1_u8; 8], (1_u64 | u64::from(n) << 32).to_le_bytes()].concat();
            let mut seed = 1_u32;
            for n in (0..).take_while(|_| over.try_recv() == Err(TryRecvError::Empty)) {
                let mut bytes = own(n);
                bytes.resize(64, 0);
                if n % 2 == 0 {
                    bytes.fill_with(|| {
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        seed.to_le_bytes()[3]
                    });
                }
                // Nobody listens before and after the run.
                let socket = &sockets[n as usize / 2 % 2];
                let _ = socket.send_to(&bytes, (at.0.as_str(), at.1));
                thread::sleep(Duration::from_micros(100));
            }
        });
        let said = said(command);
        drop(is_over);
        stranger.join().unwrap();
        let said = said.code(0);
        let outcome = stored(&stage);
        let client = |path: &str| sum(&outcome, "client", path);
        assert!(client("strays") > 10, "{load}: {said}");
        for none in ["late", "incomplete", "wrong"] {
            assert_eq!(client(none), 0, "{load}: {none}: {said}");
        }
        if load.contains("rate") {
            let whole = client("intended") - client("lost");
            assert_eq!(client("latency.count"), whole, "{said}");
        }
        assert_eq!(outcome["buffers_in_use"], 0, "{said}");
    }
}

#[test]
fn answers_of_many_packets_arrive_whole_over_udp() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let sets = [
        "msg_handler=FS_READ",
        "inflight=2",
        "kAppTxMsgBatchSize=1",
        "kAppRxMsgBatchSize=1",
        "kDispTxBatchSize=1",
    ];
    let mut command = side(&stage, "--loopback", 2, &sets);
    command.args(["--store-result", "r.json"]);
    let said = said(command).code(0);
    let outcome = stored(&stage);
    let packets = sum(&outcome, "client", "application_rx.packets");
    assert!(packets > 0 && packets.is_multiple_of(51), "{said}");
    assert_eq!(sum(&outcome, "client", "incomplete"), 0, "{said}");
}

#[test]
fn sides_that_want_different_things_both_say_so_and_run_nothing() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let server = Running::start(side(&stage, "--server", 3, &["req_size=200"]));
    let client = said(side(&stage, "--client", 3, &[])).code(2);
    client.err("`req_size` is 200 there and 86 here");
    let server = server.end().code(2);
    server.err("`req_size` is 86 there and 200 here");
}

#[test]
fn a_side_whose_other_side_is_killed_ends_with_what_it_has() {
    for (killed, test) in [("--client", 4), ("--server", 5)] {
        let stage = Stage::new();
        stage.file("c.conf", CONFIG);
        let long = ["duration=0.2", "iteration=1000"];
        let start = |role| {
            let mut command = side(&stage, role, test, &long);
            command.args(["--store-result", &format!("{role}.json")[2..]]);
            (role, Running::start(command))
        };
        let both = ["--client", "--server"].map(start);
        let [(_, gone), (_, left)] = if killed == "--client" {
            both
        } else {
            let [client, server] = both;
            [server, client]
        };
        gone.works_for(20);
        gone.signal(Signal::KILL);
        assert_eq!(gone.end().code, None, "it was killed");
        // The plan goes on for 200 s: it is the other side's end that ends this one.
        let (left, has_ended) = left.end_within(Duration::from_secs(30));
        assert!(has_ended, "{left}");
        let left = left.code(1).err("is lost").out("End-to-end");
        let own = if killed == "--client" {
            "server"
        } else {
            "client"
        };
        let outcome = stored_as(&stage, &format!("{own}.json"));
        let iterations = outcome["iterations"].as_array().unwrap().len();
        assert!((1..1000).contains(&iterations), "{iterations}: {left}");
        let tables = left.out.matches("Perf Statistics").count();
        assert_eq!(tables, iterations, "{left}");
        assert!(sum(&outcome, own, "application_rx.packets") > 0, "{left}");
    }
}

#[test]
fn a_rate_begins_as_many_messages_as_it_says_whatever_comes_back() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let sets = [
        "backend=ring",
        "rate=20000",
        "inflight=0",
        "iteration=1",
        "duration=0.5",
    ];
    let mut command = side(&stage, "--loopback", 6, &sets);
    command.args(["--store-result", "r.json"]);
    let said = said(command).code(0);
    let outcome = stored(&stage);
    let begun = sum(&outcome, "client", "application_tx.packets");
    let intended = sum(&outcome, "client", "intended");
    assert!(intended.abs_diff(10_000) <= 1, "{said}");
    assert!(begun <= intended, "{said}");
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{said}");
    let said = said.out("latency, open-loop (20000 messages/s, from their intended times)");
    said.out(&format!("rate: {begun} of {intended} messages were begun"));
}

#[test]
fn a_rate_that_the_window_does_not_allow_is_called_generator_limited() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let sets = [
        "backend=ring",
        "rate=1000000",
        "inflight=1",
        "work_ns=20000",
        "iteration=1",
    ];
    said(side(&stage, "--loopback", 7, &sets))
        .code(0)
        .out("messages were begun: generator-limited");
}

#[test]
fn links_that_cannot_be_had_are_refused_by_name() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let refused = |role: &str, set: &str, code: i32, why: &str| {
        said(side(&stage, role, 8, &[set])).code(code).err(why);
    };
    refused(
        "--client",
        "backend=ring",
        2,
        "the link `ring` is in memory of one run",
    );
    refused(
        "--loopback",
        "backend=packet:lo",
        2,
        "client and server are runs of their own",
    );
    refused(
        "--server",
        "backend=packet:weirabsent",
        3,
        "there is no interface weirabsent",
    );
    refused(
        "--server",
        "backend=packet:",
        2,
        "(valid: ring, shm:PATH, udp, packet:INTERFACE",
    );
    refused(
        "--server",
        "backend=xdp:lo,peer=weirB",
        2,
        "where client and server are in one run, and there alone",
    );
    refused(
        "--loopback",
        "local_ip=203.0.113.1",
        3,
        "this machine has no such address",
    );
    let both = ["axio", "--client", "--server", "-c", "c.conf"];
    stage
        .peer_says(&both)
        .code(2)
        .err("--client: --server says another role");
}

/// A server on the first host and its client on the second.
const HOSTS: &str = r#"
lab=$1
shift
printf 'a secret of both hosts\n' >token
chmod 600 token
side() {
    role=$1 own=$2 other=$3
    shift 3
    "$lab" rank "$0" "--$role" --token-file token -c c.conf --set "local_ip=10.77.0.$own" --set "remote_ip=10.77.0.$other" "$@"
}
export PMI_RANK=0
side server 1 2 "$@" >server 2>&1 &
server=$!
code=0
PMI_RANK=1 side client 2 1 "$@" --store-result r.json || code=$?
wait "$server" || code=8
exit $code
"#;

/// A client on the second host, and its server on the first once a call of the client's was refused.
const CLIENT_FIRST: &str = r#"
lab=$1
shift
printf 'a secret of both hosts\n' >token
chmod 600 token
side() {
    role=$1 own=$2 other=$3
    shift 3
    exec "$lab" rank "$0" "--$role" --token-file token -c c.conf --set "local_ip=10.77.0.$own" --set "remote_ip=10.77.0.$other" "$@"
}
(PMI_RANK=1; export PMI_RANK; side client 2 1 "$@" --store-result r.json) &
client=$!
refused() {
    PMI_RANK=1 "$lab" rank awk '/^Tcp: [0-9]/ { print $8 }' /proc/net/snmp
}
while [ "$(refused)" = 0 ] && kill -0 "$client"; do sleep 0.05; done
echo "refused before the server was there: $(refused)"
code=0
(PMI_RANK=0; export PMI_RANK; side server 1 2 "$@") >server 2>&1 || code=8
wait "$client" || code=$?
exit $code
"#;

/// Output of a server and its client over a wire; nothing where this machine cannot have two hosts.
fn between_hosts(stage: &Stage, wire: &str, sets: &[&str]) -> Option<Said> {
    on_hosts(stage, wire, HOSTS, sets)
}

/// Output of a script there.
fn on_hosts(stage: &Stage, wire: &str, script: &str, sets: &[&str]) -> Option<Said> {
    let no = |reason: &str| {
        skip(&format!("axio between two hosts, wire `{wire}`"), reason);
        None
    };
    if !is_root() {
        return no("network namespaces need root");
    }
    if let Some(missing) = ["ip", "cc"].iter().find(|program| !has(program)) {
        return no(&format!("no {missing}"));
    }
    let lab = root().join("lab/net");
    let lab = lab.to_str()?;
    let wired = |words: &[&str]| -> Command {
        let mut command = stage.command(lab);
        command.arg("run").args(wire.split_whitespace()).args(words);
        command
    };
    let trial = said(wired(&["true"]));
    // What the machine lacks; anything else is a failure.
    if trial.code == Some(3) {
        return no(trial.err.trim());
    }
    trial.code(0);
    stage.file("c.conf", CONFIG);
    let mut command = wired(&["sh", "-c", script, peer("axio"), lab]);
    for set in sets {
        command.args(["--set", set]);
    }
    Some(said(command))
}

/// Runs a script between two hosts over `AF_XDP`, where every message is to be answered.
fn over_queues(script: &str) -> Option<Said> {
    let stage = Stage::new();
    let sets = ["backend=xdp:weir0", "msg_timeout_ms=20000"];
    let said = on_hosts(&stage, "", script, &sets)?;
    // A kernel without AF_XDP; anything else is a failure.
    if said.err.contains("CONFIG_XDP_SOCKETS") {
        skip("axio between two hosts over AF_XDP", said.err.trim());
        return None;
    }
    let said = said.code(0);
    let outcome = stored(&stage);
    for side in ["client", "server"] {
        assert!(sum(&outcome, side, "application_rx.packets") > 0, "{said}");
    }
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{said}");
    assert_eq!(outcome["buffers_in_use"], 0, "{said}");
    Some(said)
}
