//! `weir tune --server-command`: a search whose servers a command starts, one for each trial.

use std::io::Write;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use super::stage::{Running, Said, Stage, WEIR, said, until};
use super::two_sides::{CONFIG, addresses};

/// Configurations of both sides.
fn stage(test: u32) -> Stage {
    let stage = Stage::new();
    let [client, server] = addresses(test);
    let config = CONFIG
        .replace("iteration : 2", "iteration : 1")
        .replace("duration : 0.2", "duration : 0.05");
    let side = |own: &str, other: &str| format!("{config}local_ip : {own}\nremote_ip : {other}\n");
    let own = side(&client, &server) + "kDispTxBatchSize : 8\n";
    stage.file("client", own);
    stage.file("server", side(&server, &client));
    stage
}

/// Both sides with iterations of 100 seconds, so that a trial lasts until something ends it.
fn lasting(test: u32) -> Stage {
    let stage = stage(test);
    for side in ["client", "server"] {
        let text = stage.read(side);
        stage.file(side, text.replace("duration : 0.05", "duration : 100"));
    }
    stage
}

/// Command that starts a server, which leaves its process in a file.
fn server() -> String {
    format!("echo $$ > pid; exec {WEIR} axio --server -c -")
}

/// A search whose servers this command starts.
fn search(stage: &Stage, command: &str, more: &str) -> Running {
    let words =
        "tune -c client --server-config server --vary kDispTxBatchSize=1,8 --server-command";
    let mut search = stage.weir(&words.split(' ').collect::<Vec<_>>());
    search.arg(command).args(more.split_whitespace());
    Running::start(search)
}

fn found(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.out).unwrap()
}

/// The process of the server, once it has left its number.
fn server_process(stage: &Stage) -> Pid {
    let mut process = None;
    until("the server has started", || {
        let text = std::fs::read_to_string(stage.path("pid")).unwrap_or_default();
        process = text.trim().parse().ok().and_then(Pid::from_raw);
        process.is_some() && text.ends_with('\n')
    });
    process.unwrap()
}

/// Waits until both sides of a trial are there.
fn until_both_run(search: &Running) {
    let is_client = |process: &Pid| {
        let file = format!("/proc/{}/cmdline", process.as_raw_nonzero());
        let words = std::fs::read(file).unwrap_or_default();
        words.windows(8).any(|part| part == b"--client")
    };
    until("the trial has its client", || {
        search.children().iter().any(is_client)
    });
}

/// Waits until a process has ended, be it that nobody has waited for it.
fn until_gone(process: Pid) {
    let file = format!("/proc/{}/cmdline", process.as_raw_nonzero());
    until("the server is gone", || {
        std::fs::read(&file).unwrap_or_default().is_empty()
    });
}

#[test]
fn a_search_starts_a_server_for_each_trial_and_leaves_a_configuration_for_each_side() {
    let stage = stage(60);
    let said = search(&stage, &server(), "-t 4 --format json")
        .end()
        .code(0);
    let report = found(&said);
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 4, "{report}");
    assert!(trials.iter().all(|one| one["value"].is_f64()), "{report}");
    assert_eq!(report["server_output"], "server.out", "{report}");
    until_gone(server_process(&stage));
    let kept = |name: &str| {
        let text = stage.read(name);
        let line = text.lines().find(|l| l.starts_with("kDispTxBatchSize"));
        line.map(str::to_owned)
    };
    assert!(kept("client.out").is_some() && kept("client.out") == kept("server.out"));
    for name in ["client.out", "server.out"] {
        stage.say(&["axio", "verify", "-c", name]).code(0);
    }
}

#[test]
fn a_command_that_ends_without_ready_fails_the_trial_with_what_it_said() {
    let stage = stage(61);
    for (command, says) in [
        (
            "echo 'error: no route' >&2; exit 7",
            "exit status: 7: error: no route",
        ),
        ("exec >&-; cat > input", "its output ended without READY"),
        ("true", "its output ended without READY"),
    ] {
        let said = search(&stage, command, "-t 3").end().code(1);
        said.err("the settings that it starts with fail: at the server: ")
            .err(says);
    }
    let text = stage.read("server");
    stage.file("server", text + "ring : many\n");
    let said = search(&stage, &server(), "-t 3").end().code(1);
    said.err("at the server: exit status: 2: error: -:")
        .err("`many`");
}

#[test]
fn a_command_that_never_says_ready_has_its_time() {
    let stage = stage(62);
    let said = search(&stage, "cat", "-t 3 --server-wait 0.1").end();
    said.code(1)
        .err("at the server: no READY within 0.1 s (--server-wait)")
        .err("weir axio --server -c -");
}

#[test]
fn a_server_ends_with_the_search_that_is_killed() {
    let stage = lasting(63);
    let search = search(&stage, &server(), "-t 3");
    until_both_run(&search);
    let server = server_process(&stage);
    search.signal(Signal::KILL);
    search.end();
    until_gone(server);
}

#[test]
fn a_server_that_is_killed_ends_its_trial() {
    let stage = lasting(64);
    let search = search(&stage, &server(), "-t 3");
    until_both_run(&search);
    kill_process(server_process(&stage), Signal::KILL).unwrap();
    search.end().code(1).err("at the server: signal: 9");
}

#[test]
fn layouts_are_tried_on_both_sides() {
    let stage = stage(67);
    for side in ["client", "server"] {
        let text = stage
            .read(side)
            .replace("kAppCoreNum : 1", "kAppCoreNum : 2")
            .replace(": 0 : 0 : 0\n", ": 0 : 0,1 : 0\n");
        stage.file(side, text);
    }
    let said = search(&stage, &server(), "--layouts -t 8 --format json").end();
    let report = found(&said.code(0));
    let trials = report["trials"].as_array().unwrap();
    let layout = &report["search"]["space"]["dimensions"][1];
    assert_eq!(layout["name"], "layout", "{report}");
    for number in 0..layout["values"].as_array().unwrap().len() {
        let is_tried = |one: &serde_json::Value| one["point"][1] == number && one["value"].is_f64();
        assert!(trials.iter().any(is_tried), "{number}: {report}");
    }
    let text = stage
        .read("server")
        .replace(": 0 : 0,1 : 0\n", ": 0 : 0,2 : 0\n");
    stage.file("server", text);
    let said = search(&stage, &server(), "--layouts -t 8").end().code(2);
    said.err("those of the client");
}

#[test]
fn words_that_start_no_server_are_refused() {
    let stage = stage(68);
    let command = "--server-command x";
    for (words, says) in [
        (
            "tune -c client --server-config server",
            "--server-config acts only with `--server-command`",
        ),
        ("tune -c client {}", "--server-config is missing"),
        ("tune -c client {} --server-config absent", "absent: "),
        (
            "tune -c client {} --server-config client.out",
            "--server-config",
        ),
        (
            "tune -c client {} --server-config server --server-wait 0",
            "--server-wait 0",
        ),
        (
            "tune {} --server-config server -c client --metric rate -- run {a=1,2}",
            "acts only without COMMAND",
        ),
    ] {
        let words = words.replace("{}", command);
        let words: Vec<&str> = words.split(' ').collect();
        stage.say(&words).code(2).err(says);
    }
}

#[test]
fn a_configuration_on_standard_input_ends_the_run_only_where_it_is_held_open() {
    let stage = stage(69);
    let text = stage.read("client") + "backend : ring\n";
    let text = text.replace("backend : udp\n", "");
    let run = |words: &[&str], text: &str| {
        let mut command = stage.peer(words);
        let (input, mut output) = std::io::pipe().unwrap();
        command.stdin(Stdio::from(input));
        output.write_all(text.as_bytes()).unwrap();
        drop(output);
        said(command)
    };
    run(&["axio", "--loopback", "-c", "-"], &text)
        .code(0)
        .out("End-to-end");
    run(&["axio", "verify", "-c", "-"], &text).code(0);
    let lasting = text.replace("duration : 0.05", "duration : 100") + "end\n";
    let mut command = stage.weir(&["axio", "--loopback", "-c", "-"]);
    let (input, mut output) = std::io::pipe().unwrap();
    command.stdin(Stdio::from(input));
    output.write_all(lasting.as_bytes()).unwrap();
    let held = Running::start(command);
    until("the run has begun", || held.catches_signals());
    drop(output);
    held.end().code(143);
}

/// Tests that take long.
mod slow {
    use super::*;

    #[test]
    fn a_server_that_hangs_is_killed_when_its_trial_has_failed() {
        let stage = lasting(65);
        let text = stage
            .read("client")
            .replace("stall_timeout : 30", "stall_timeout : 1");
        stage.file("client", text);
        let search = search(&stage, &server(), "-t 3");
        until_both_run(&search);
        // Signals reach it once it goes on, which it does not.
        kill_process(server_process(&stage), Signal::STOP).unwrap();
        search
            .end()
            .code(1)
            .err("at the server: it did not end within 5 s of its standard input and was killed");
        until_gone(server_process(&stage));
    }

    #[test]
    fn a_trial_whose_server_fails_is_one_that_failed() {
        let stage = stage(66);
        let take =
            "while read -r line; do echo \"$line\"; test \"$line\" = end && break; done > got";
        let fail = "grep -q 'kDispTxBatchSize : 1$' got && exit 5";
        let command = format!("{take}; {fail}; (cat got; cat) | {WEIR} axio --server -c -");
        let said = search(&stage, &command, "-t 5 --format json").end().code(0);
        let report = found(&said);
        let trials = report["trials"].as_array().unwrap();
        let failed = trials.iter().filter(|one| one["value"].is_null());
        let failures: Vec<_> = failed.map(|one| &one["failure"]).collect();
        assert_eq!(failures, ["at the server: exit status: 5"], "{report}");
        assert_eq!(report["kept"], "start", "{report}");
    }
}
