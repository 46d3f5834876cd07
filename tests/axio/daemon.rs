//! `axio --server --daemon` and `weir tune --daemon`: a search whose server is another program.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use super::stage::{Running, Said, Stage, said, until};
use super::two_sides::{CONFIG, addresses};

const MANAGEMENT_PORT: u16 = 20086;

/// Configurations of both sides and their token.
pub(super) fn stage(test: u32) -> Stage {
    let stage = Stage::new();
    let [client, server] = addresses(test);
    let config = CONFIG
        .replace("iteration : 2", "iteration : 1")
        .replace("duration : 0.2", "duration : 0.05");
    let side = |own: &str, other: &str| format!("{config}local_ip : {own}\nremote_ip : {other}\n");
    let own = side(&client, &server) + "kDispTxBatchSize : 8\n";
    stage.file("client", own);
    stage.file("server", side(&server, &client));
    token(&stage, "token", "secret\n");
    stage
}

fn token(stage: &Stage, name: &str, text: &str) {
    stage.file(name, text);
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(stage.path(name), mode).unwrap();
}

/// Both sides with iterations of 100 seconds, so that a trial lasts until something ends it.
pub(super) fn lasting(test: u32) -> Stage {
    let stage = stage(test);
    for side in ["client", "server"] {
        let text = stage
            .read(side)
            .replace("duration : 0.05", "duration : 100");
        stage.file(side, text);
    }
    stage
}

/// A daemon that listens.
pub(super) fn daemon(stage: &Stage, test: u32) -> Running {
    let words = "axio --server --daemon -c server --token-file token";
    let words: Vec<&str> = words.split(' ').collect();
    let daemon = Running::start(stage.peer(&words));
    until("the daemon listens", || {
        TcpStream::connect((addresses(test)[1].clone(), MANAGEMENT_PORT)).is_ok()
    });
    daemon
}

/// Waits until the server of a trial is there.
pub(super) fn until_a_trial_listens(test: u32) {
    let at = (addresses(test)[1].clone(), MANAGEMENT_PORT + 1);
    until("the trial listens", || TcpStream::connect(&at).is_ok());
}

pub(super) fn search<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let words = "tune -c client --daemon --token-file token --vary kDispTxBatchSize=1,8";
    words.split(' ').chain(more.iter().copied()).collect()
}

pub(super) fn ended(daemon: Running) -> Said {
    daemon.signal(Signal::TERM);
    daemon.end()
}

#[test]
fn a_search_runs_both_sides_and_leaves_a_configuration_for_each() {
    let stage = stage(60);
    let daemon = daemon(&stage, 60);
    for _ in 0..2 {
        let words = search(&["-t", "4", "--format", "json"]);
        let said = stage.say(&words).code(0);
        let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let trials = report["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 4, "{report}");
        assert!(trials.iter().all(|one| one["value"].is_f64()), "{report}");
        assert_eq!(report["server_output"], "server.out", "{report}");
    }
    let server = ended(daemon).code(0);
    assert_eq!(server.err.matches("begins").count(), 2, "{server}");
    let kept = |name: &str| {
        let text = stage.read(name);
        let line = text.lines().find(|l| l.starts_with("kDispTxBatchSize"));
        line.map(str::to_owned)
    };
    assert!(kept("client.out").is_some() && kept("client.out") == kept("server.out"));
    for name in ["client.out", "server.out"] {
        stage.peer_says(&["axio", "verify", "-c", name]).code(0);
    }
}

#[test]
fn another_token_is_refused_and_the_daemon_serves_the_next() {
    let stage = stage(61);
    let daemon = daemon(&stage, 61);
    token(&stage, "other", "guessed\n");
    let words: Vec<&str> = search(&["-t", "3"]);
    let wrong: Vec<&str> = words
        .iter()
        .map(|word| if *word == "token" { "other" } else { word })
        .collect();
    stage.say(&wrong).code(1).err("it has another token");
    stage.say(&words).code(0);
    let server = ended(daemon).code(0);
    server.err("was let go: it has another token");
}

#[test]
fn garbage_at_its_port_does_not_keep_a_daemon_from_its_work() {
    let stage = stage(62);
    let daemon = daemon(&stage, 62);
    let at = (addresses(62)[1].clone(), MANAGEMENT_PORT);
    for words in [
        &b"GET / HTTP/1.0\r\n\r\n"[..],
        b"{\"keep\":{}}\n",
        b"\xff\0\n",
    ] {
        let mut stranger = TcpStream::connect(&at).unwrap();
        let _ = stranger.write_all(words);
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    stage.say(&search(&["-t", "3"])).code(0);
    ended(daemon).code(0).err("it does not greet first");
}

#[test]
fn a_second_search_is_refused_and_one_that_is_killed_makes_room() {
    // Each trial lasts until the search is killed.
    let stage = lasting(63);
    let daemon = daemon(&stage, 63);
    let first = Running::start(stage.weir(&search(&["-t", "3"])));
    until_a_trial_listens(63);
    let second = stage.say(&search(&["-t", "3"])).code(1);
    second.err("the search from ").err(" is served");
    first.signal(Signal::KILL);
    first.end();
    // With other bounds nothing is run, which shows that it is served again.
    let words = "tune -c client --daemon --token-file token --vary flush_us=10,20 -t 3";
    stage.file("client", stage.read("client") + "flush_us : 10\n");
    let mut served = None;
    until("there is room", || {
        let next = said(stage.weir(&words.split(' ').collect::<Vec<_>>()));
        let is_served = next.err.contains("is no key that a search may set");
        served = is_served.then_some(next);
        is_served
    });
    served.unwrap().code(1).err("at the server: ");
    ended(daemon).code(0);
}

#[test]
fn a_search_whose_daemon_is_killed_in_a_trial_says_so() {
    let stage = lasting(64);
    let daemon = daemon(&stage, 64);
    let search = Running::start(stage.weir(&search(&["-t", "3"])));
    until_a_trial_listens(64);
    daemon.signal(Signal::KILL);
    daemon.end();
    let search = search.end().code(1);
    search
        .err("is lost")
        .err("with --trail the same command continues");
}

#[test]
fn words_that_no_daemon_can_act_on_are_refused_before_it_listens() {
    let stage = stage(65);
    for (words, says) in [
        ("axio --server --daemon -c server", "--token-file"),
        (
            "axio --client --daemon -c server --token-file token",
            "--client: a daemon",
        ),
        (
            "axio --server --daemon -c server --token-file token --set ring=64",
            "--set: a daemon",
        ),
        (
            "axio --daemon --loopback -c server --token-file token",
            "--loopback: a daemon",
        ),
        (
            "axio --server -c server --token-file token",
            "acts only with `--daemon`",
        ),
        ("tune -c client --daemon", "--token-file is missing"),
        (
            "tune --daemon --token-file token --metric rate -- run {a=1,2}",
            "--daemon acts only",
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        said(stage.called(&words)).code(2).err(says);
    }
    std::fs::set_permissions(stage.path("token"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let words = "axio --server --daemon -c server --token-file token";
    let words: Vec<&str> = words.split(' ').collect();
    stage
        .peer_says(&words)
        .code(2)
        .err("others may read it (chmod 600)");
    token(&stage, "token", "secret");
    stage
        .say(&search(&["-t", "3"]))
        .code(3)
        .err("no daemon at ");
}
