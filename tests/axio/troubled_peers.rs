//! Two sides of which one is in trouble: strangers that call, what a machine lacks, a side that hangs.

mod slow;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::Signal;

use super::stage::{Running, Said, Stage, is_root, said, skip, until};
use super::two_sides::{CONFIG, addresses, side};

const MANAGEMENT_PORT: u16 = 20086;

/// A stage with the configuration of both sides.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    stage
}

/// A side, to its end.
fn side_said(stage: &Stage, role: &str, test: u32, sets: &[&str]) -> Said {
    said(side(stage, role, test, sets))
}

/// Calls the server of a test once it is there.
fn call(test: u32) -> TcpStream {
    let at = (addresses(test)[1].clone(), MANAGEMENT_PORT);
    let mut called = None;
    until("the server answers calls", || {
        called = TcpStream::connect(&at).ok();
        called.is_some()
    });
    called.unwrap()
}

#[test]
fn strangers_are_sent_away_and_the_client_is_served_beside_one_that_is_silent() {
    let stage = stage();
    let server = Running::start(side(&stage, "--server", 40, &[]));
    let silent = call(40);
    let long = vec![b'x'; 3 << 20];
    let strange: [&[u8]; 5] = [
        b"GET / HTTP/1.0\r\n\r\n",
        b"{}\n",
        b"\"ready\"\n",
        b"\xff\0\x01\n",
        &long,
    ];
    for words in strange {
        let mut stranger = call(40);
        // What is sent away in mid-sentence sees an error here and below.
        let _ = stranger.write_all(words);
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    drop(call(40));
    side_said(&stage, "--client", 40, &[]).code(0);
    drop(silent);
    let server = server.end().code(0);
    let notes = server.err.matches(" is no client of weir axio: ").count();
    // The one that closes at once may be a stranger still when the client comes.
    assert!((5..=6).contains(&notes), "{notes}: {server}");
    server
        .err("speaks otherwise: expected value")
        .err("it does not greet first")
        .err("a line of more than 65536 bytes");
}

#[test]
fn both_sides_prove_that_they_know_the_token() {
    let stage = stage();
    for (name, token) in [("right", "sixteen letters!"), ("wrong", "sixteen letters?")] {
        let path = stage.file(name, token);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let with = |role: &str, more: &[&str]| {
        let mut side = side(&stage, role, 58, &[]);
        side.args(more);
        side
    };
    let server = Running::start(with("--server", &["--token-file", "right"]));
    for (client, why) in [
        (&[][..], "it asks for a token"),
        (
            &["--token-file", "wrong"],
            "this is another token than the server's",
        ),
    ] {
        said(with("--client", client)).code(3).err(why);
    }
    said(with("--client", &["--token-file", "right"])).code(0);
    server.end().code(0).err("this is another token");
    let server = Running::start(with("--server", &[]));
    let unsure = said(with("--client", &["--token-file", "right"])).code(3);
    unsure.err("it asks for no token");
    said(with("--client", &[])).code(0);
    server.end().code(0);
}

#[test]
fn listening_beyond_this_machine_without_a_token_has_to_be_asked_for() {
    let stage = stage();
    let with = |more: &[&str]| {
        let mut side = side(&stage, "--server", 59, &["local_ip=203.0.113.1"]);
        side.args(more);
        said(side)
    };
    with(&[])
        .code(2)
        .err("203.0.113.1: whoever reaches it")
        .err("--open-to-anyone");
    with(&["--open-to-anyone"])
        .code(3)
        .err("`ip address` lists them");
    let both = with(&["--open-to-anyone", "--token-file", "c.conf"]).code(2);
    both.err("--open-to-anyone acts only without `--token-file`");
    // Before anything is listened at, in a dry run too.
    with(&["--token-file", "nowhere", "--dry-run"])
        .code(2)
        .err("token file nowhere: No such file");
    let idle = stage.peer_says(&[
        "axio",
        "--loopback",
        "-c",
        "c.conf",
        "--token-file",
        "c.conf",
    ]);
    idle.code(2)
        .err("--token-file acts only where one run calls another");
}

#[test]
fn a_caller_that_says_nothing_is_let_go() {
    let stage = stage();
    let server = Running::start(side(&stage, "--server", 41, &[]));
    let mut silent = call(41);
    silent
        .set_read_timeout(Some(Duration::from_secs(40)))
        .unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0, "it is closed");
    side_said(&stage, "--client", 41, &[]).code(0);
    server.end().code(0).err("no greeting within");
}

#[test]
fn a_side_that_lacks_something_says_so_before_it_waits() {
    let stage = stage();
    let [client, server] = addresses(42);
    let _taken = [
        UdpSocket::bind((client, 10010)).unwrap(),
        UdpSocket::bind((server, 10010)).unwrap(),
    ];
    for role in ["--server", "--client"] {
        for (set, why) in [
            ("backend=udp", "another program has that port"),
            ("backend=xdp:weirabsent", "weirabsent"),
            ("backend=xdp:lo,queue=99", ""),
            ("local_ip=203.0.113.1", "`ip address` lists them"),
        ] {
            // That of a server is another test's, as it listens beyond this machine.
            if role == "--server" && set.starts_with("local_ip") {
                continue;
            }
            side_said(&stage, role, 42, &[set]).code(3).err(why);
        }
    }
}

#[test]
fn a_port_of_management_that_somebody_has_is_refused_with_the_key_to_change() {
    let stage = stage();
    let server = addresses(43)[1].clone();
    let _taken = TcpListener::bind((server, MANAGEMENT_PORT)).unwrap();
    side_said(&stage, "--server", 43, &[])
        .code(3)
        .err("name another `mgmt_port`");
}

#[test]
fn a_side_without_the_pages_that_it_asks_for_says_so_before_it_waits() {
    let stage = stage();
    let free = "/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages";
    if std::fs::read_to_string(free).is_ok_and(|free| free.trim() != "0") {
        skip("a side without its pages says so", "it has them here");
        return;
    }
    for role in ["--server", "--client"] {
        let said = side_said(&stage, role, 44, &["hugepages=1G"]).code(3);
        said.err("pages");
    }
}

#[test]
fn a_server_whose_client_shows_no_sign_of_life_does_not_wait_for_its_end() {
    let stage = stage();
    let sets = ["duration=300", "iteration=1", "stall_timeout=3"];
    let server = Running::start(side(&stage, "--server", 49, &sets));
    let client = Running::start(side(&stage, "--client", 49, &sets));
    client.works_for(10);
    client.signal(Signal::STOP);
    let server = server.end().code(1);
    client.signal(Signal::KILL);
    client.end();
    server
        .out("End-to-end")
        .err("shows no sign of life for 3.00 s: it hangs, or is stopped");
}

#[test]
fn a_client_whose_server_is_stopped_waits_for_its_figures_as_long_as_for_an_answer() {
    let stage = stage();
    // Without answers no client stalls.
    let sets = [
        "duration=1",
        "iteration=1",
        "msg_handler=Empty",
        "stall_timeout=3",
        "msg_timeout_ms=200",
    ];
    let server = Running::start(side(&stage, "--server", 46, &sets));
    let client = Running::start(side(&stage, "--client", 46, &sets));
    server.works_for(10);
    server.signal(Signal::STOP);
    let client = client.end().code(1);
    // Once it goes on it finds out that nobody waits for what it counted.
    server.signal(Signal::CONT);
    server.end().code(1).out("End-to-end").err("is lost");
    client
        .out("End-to-end")
        .err("does not say within 3s what it counted: it hangs, or is stopped");
}

#[test]
fn an_ethernet_address_that_is_another_is_refused_by_both_in_their_own_words() {
    if !is_root() {
        skip("another Ethernet address", "frames need root");
        return;
    }
    let stage = stage();
    let server = Running::start(side(&stage, "--server", 47, &["backend=packet:lo"]));
    let sets = ["backend=packet:lo", "remote_mac=02:00:00:00:00:09"];
    let client = side_said(&stage, "--client", 47, &sets).code(2);
    let server = server.end().code(2);
    let client = client.err("its interface has 00:");
    let client = client.err("02:00:00:00:00:09 is asked for here");
    for side in [&client, &server] {
        assert!(!side.out.contains("lost"), "{side}");
    }
    server.err("it asks for an interface with 02:00:00:00:00:09, and the one here has 00:");
}

#[test]
fn loss_on_purpose_at_a_server_is_refused() {
    let stage = stage();
    let mut server = side(&stage, "--server", 48, &[]);
    server.args(["--inject-loss", "1%"]);
    said(server).code(2).err("--inject-loss acts on the client");
}
