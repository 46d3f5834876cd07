//! Forms of configurations, and checks before a run.

use super::SEND;
use super::stage::{Said, Stage};

/// Output of `axio verify` for a configuration.
fn verified(config: &str, words: &[&str]) -> Said {
    let stage = Stage::new();
    stage.file("c.conf", config);
    stage.peer_says(&[&["axio", "verify", "-c", "c.conf"], words].concat())
}

#[test]
fn a_configuration_that_is_shown_says_the_same() {
    let stage = Stage::new();
    stage.file("send.conf", SEND);
    let shown = stage
        .peer_says(&["axio", "show", "-c", "send.conf"])
        .code(0);
    stage.file("again.conf", &shown.out);
    let again = stage
        .peer_says(&["axio", "show", "-c", "again.conf"])
        .code(0);
    assert_eq!(again.out, shown.out);
    let verify = |name: &str| stage.peer_says(&["axio", "verify", "-c", name]).code(0);
    assert_eq!(verify("send.conf").out, verify("again.conf").out);
}

#[test]
fn lines_and_values_that_are_wrong_are_said_in_one_pass() {
    let stage = Stage::new();
    stage.file("c.conf", "kAppCoreNumm : 4\nnuma :\ninflight : x\nphase\n");
    let said = stage.peer_says(&["axio", "-c", "c.conf"]).code(2);
    for line in [
        "c.conf:1: no key",
        "c.conf:2: numa:",
        "c.conf:3: inflight:",
        "c.conf:4: `phase`",
    ] {
        assert!(said.err.contains(line), "{line}: {said}");
    }
    // Of what could not be read nothing is said that might not be so.
    assert!(!said.err.contains("no workload line"), "{said}");
}

#[test]
fn keys_that_there_are_not_are_left_out_on_request() {
    let config = format!("{SEND}kCoffee : 3\n");
    verified(&config, &[]).code(2).err("no key `kCoffee`");
    let said = verified(&config, &["--lenient"]).code(0);
    said.err("note: c.conf:13: no key `kCoffee`; it is left out")
        .out("Passed");
}

#[test]
fn tabs_carriage_returns_and_comments_behind_values_are_read() {
    let config = SEND
        .replace(" : ", "\t:\t")
        .replace('\n', "\t # so\r\n")
        .replace("TxNIC,RXNIC", "txnic, RXNIC");
    let said = verified(&config, &[]).code(0).out("Passed");
    said.err("workload: `txnic` is read as TxNIC");
}

#[test]
fn what_the_older_verifier_leaves_to_its_users_is_warned_of_and_strict_makes_it_a_failure() {
    for (from, to, what) in [
        (
            "role : loopback",
            "role : loopback\ninflight : 16",
            "inflight 16 is smaller than kAppTxMsgBatchSize 32 (client): the pipeline would stop",
        ),
        (
            "TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 0",
            "TxApplication,TxDispatcher,RxApplication : 0",
            "workload 1 has no RXDispatcher, without which nothing flows",
        ),
        (
            "role : loopback",
            "role : loopback\nnuma : 77",
            "c.conf:2: numa: this machine has no node 77 (it has 0",
        ),
        (
            "role : loopback",
            "role : loopback\nhugepages : 1G\npool : 1048576",
            "c.conf:2: hugepages: the pools need ",
        ),
        (
            ": 1 : 1 : 1\n",
            ": 0 : 1 : 0\n",
            "dispatcher 0 serves workloads 1 and 2",
        ),
    ] {
        let config = SEND.replacen(from, to, 1);
        assert_ne!(config, SEND);
        verified(&config, &[]).code(0).out("Passed").err(what);
        verified(&config, &["--strict"]).code(1).err(what);
    }
    let twice = SEND.replace(": 0 : 0 : 0\n", ": 0 : 0|5 : 0|0\n");
    let twice = twice.replace("Num : 4", "Num : 5");
    verified(&twice, &[])
        .code(1)
        .err("Invalid configuration: workload 1 has dispatcher 0 twice: each serves one group");
}

#[test]
fn the_configuration_of_the_other_side_has_to_fit() {
    let stage = Stage::new();
    let client = SEND.replace(
        "role : loopback",
        "role : client\nbackend : udp\nlocal_ip : 10.0.0.1",
    );
    let server = client
        .replace("role : client", "role : server")
        .replace("local_ip", "remote_ip");
    stage.file("client", &client);
    let peer = [
        "axio", "verify", "-c", "client", "--peer", "server", "--strict",
    ];
    stage.file("server", &server);
    // Whether each workspace has a CPU is another matter.
    let said = stage.peer_says(&peer);
    assert!(!said.err.contains("server"), "{said}");
    let server = server
        .replace("10.0.0.1", "10.0.0.9")
        .replace(" : 3 : 3\n", " : 7 : 7\n");
    stage.file("server", server);
    stage
        .peer_says(&peer)
        .code(1)
        .err("local_ip is 10.0.0.1 here, and remote_ip 10.0.0.9 in server")
        .err("workload 4 of here sends to 3, which is no dispatcher of server");
    let lax = ["axio", "verify", "-c", "client", "--peer", "server"];
    stage
        .peer_says(&lax)
        .code(1)
        .err("error: local_ip is 10.0.0.1 here");
    stage.file("none", "# nothing");
    let none = ["axio", "verify", "-c", "client", "--peer", "none"];
    stage
        .peer_says(&none)
        .code(2)
        .err("there is no workload line");
    let absent = ["axio", "verify", "-c", "client", "--peer", "absent"];
    stage.peer_says(&absent).code(2).err("absent: ");
    let idle = ["axio", "-c", "client", "--peer", "server"];
    stage.peer_says(&idle).code(2).err("--peer acts only with");
}

#[test]
fn a_loopback_that_sends_to_a_dispatcher_which_is_not_there_is_refused_by_its_line() {
    let stage = Stage::new();
    let odd = SEND.replace(" : 0 : 0 : 0\n", " : 5 : 0 : 0\n");
    stage.file("c.conf", &odd);
    let why = "error: c.conf:5: workload 1 sends to 5, which is no dispatcher of the other side\n";
    let looks: [&[&str]; 3] = [
        &["axio", "verify", "-c", "c.conf"],
        &["axio", "-c", "c.conf", "-v"],
        &["axio", "tools", "-c", "c.conf", "-v"],
    ];
    for words in looks {
        let said = stage.peer_says(words).code(1).err(why);
        assert!(!said.out.contains("Passed"), "{said}");
    }
    stage.peer_says(&["axio", "-c", "c.conf"]).code(2).err(why);
    // Whose other side is another file's may send there.
    stage.file("c.conf", odd.replace("loopback", "client\nbackend : udp"));
    stage.peer_says(looks[0]).code(0);
}

#[test]
fn more_iterations_than_a_byte_holds_are_as_many() {
    let stage = Stage::new();
    let config = SEND.replace("iteration : 2", "iteration : 300");
    stage.file("c.conf", config);
    let shown = stage
        .peer_says(&["axio", "-c", "c.conf", "--show-plan"])
        .code(0);
    shown.out("\"iterations\": 300");
}
