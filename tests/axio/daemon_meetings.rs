//! A daemon or a search that meets a side of a single run, and trials of a daemon that end otherwise than by themselves.

use std::net::TcpStream;

use rustix::process::{Signal, kill_process};

use super::daemon::{daemon, ended, lasting, search, stage, until_a_trial_listens};
use super::stage::{Running, Said, Stage, said, until};
use super::two_sides::addresses;

const MANAGEMENT_PORT: u16 = 20086;

/// A side of a single run, to its end.
fn side(stage: &Stage, role: &str, config: &str) -> Said {
    said(stage.peer(&["axio", role, "-c", config]))
}

#[test]
fn a_daemon_and_a_client_of_a_single_run_hear_what_the_other_is() {
    let stage = stage(66);
    let daemon = daemon(&stage, 66);
    side(&stage, "--client", "client")
        .code(2)
        .err("a daemon of weir axio")
        .err("start `weir axio --server` there without `--daemon`");
    stage.say(&search(&["-t", "3"])).code(0);
    ended(daemon)
        .code(0)
        .err("was let go: it is a client of a single run");
}

#[test]
fn a_search_and_a_server_of_a_single_run_hear_what_the_other_is() {
    let stage = stage(67);
    let server = Running::start(stage.peer(&["axio", "--server", "-c", "server"]));
    until("the server listens", || {
        TcpStream::connect((addresses(67)[1].clone(), MANAGEMENT_PORT)).is_ok()
    });
    stage
        .say(&search(&["-t", "3"]))
        .code(3)
        .err("no daemon at ")
        .err("it is the server of a single run")
        .err("start it with `--daemon`");
    side(&stage, "--client", "client").code(0);
    server
        .end()
        .code(0)
        .err("it is a search of `weir tune --daemon`");
}

#[test]
fn a_daemon_that_is_asked_to_end_finishes_its_trial_first() {
    let stage = stage(68);
    for side in ["client", "server"] {
        let text = stage.read(side).replace("duration : 0.05", "duration : 2");
        stage.file(side, text);
    }
    let daemon = daemon(&stage, 68);
    let search = Running::start(stage.weir(&search(&["-t", "3", "--trail", "trail"])));
    until_a_trial_listens(68);
    until("the trial has its client", || {
        !search.children().is_empty() && !daemon.children().is_empty()
    });
    daemon.signal(Signal::TERM);
    daemon.end().code(0);
    search.end().code(1).err("the daemon was ended");
    let trail = stage.read("trail");
    let trials: Vec<&str> = trail.lines().filter(|l| l.contains("\"value\"")).collect();
    assert_eq!(trials.len(), 1, "{trail}");
    assert!(!trials[0].contains("\"value\":null"), "{trail}");
}

#[test]
fn a_search_over_a_daemon_tries_layouts_on_both_sides() {
    let stage = stage(69);
    for side in ["client", "server"] {
        let text = stage
            .read(side)
            .replace("kAppCoreNum : 1", "kAppCoreNum : 2")
            .replace(": 0 : 0 : 0\n", ": 0 : 0,1 : 0\n");
        stage.file(side, text);
    }
    let daemon = daemon(&stage, 69);
    let words = "tune -c client --daemon --token-file token --vary kDispTxBatchSize=8,32 --layouts \
                 -t 8 --format json";
    let said = stage.say(&words.split_whitespace().collect::<Vec<_>>());
    let said = said.code(0);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let trials = report["trials"].as_array().unwrap();
    let layout = &report["search"]["space"]["dimensions"][1];
    assert_eq!(layout["name"], "layout", "{report}");
    for number in 0..layout["values"].as_array().unwrap().len() {
        let is_tried = |one: &serde_json::Value| one["point"][1] == number && one["value"].is_f64();
        assert!(trials.iter().any(is_tried), "{number}: {report}");
    }
    ended(daemon).code(0);
    for name in ["client.out", "server.out"] {
        stage.peer_says(&["axio", "verify", "-c", name]).code(0);
    }
}

#[test]
fn a_server_of_a_trial_that_hangs_is_killed_and_the_trial_has_failed_by_that() {
    let stage = lasting(70);
    let text = stage
        .read("client")
        .replace("stall_timeout : 30", "stall_timeout : 1");
    stage.file("client", text);
    let daemon = daemon(&stage, 70);
    let search = Running::start(stage.weir(&search(&["-t", "3"])));
    until_a_trial_listens(70);
    let server = daemon.children()[0];
    until("the trial has its client", || !search.children().is_empty());
    // Signals reach it once it goes on, which it does not.
    kill_process(server, Signal::STOP).unwrap();
    search
        .end()
        .code(1)
        .err("at the server: ")
        .err("it did not end within 5 s of SIGTERM and was killed");
    ended(daemon).code(0);
}

#[test]
fn a_client_of_a_trial_that_hangs_is_killed_once_its_daemon_is_lost() {
    let stage = lasting(71);
    let daemon = daemon(&stage, 71);
    let search = Running::start(stage.weir(&search(&["-t", "3"])));
    until_a_trial_listens(71);
    until("the trial has its client", || !search.children().is_empty());
    kill_process(search.children()[0], Signal::STOP).unwrap();
    daemon.signal(Signal::KILL);
    daemon.end();
    search.end().code(1).err("is lost");
}
