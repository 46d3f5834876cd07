//! Samples of runs that are cut short, and what cannot be written: what is lost is said with its name.

use std::fs::File;
use std::io::Read;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::Value;

use crate::servers::{Server, masters, split};
use crate::stage::{Running, Said, Stage, said, until};
use crate::{quiet, selftest};

fn interrupted(stage: &Stage, words: &str) -> Running {
    let running = Running::start(quiet(stage.peer(&split(words))));
    until("the test has begun", || running.catches_signals());
    running
}

#[test]
fn samples_that_were_never_sent_are_one_line() {
    let stage = &Stage::new();
    let words =
        "self_test --loopback=1 -e 0:0 -s 0 -i 2 -r 900000000 --warmup 0 --samples s --history off";
    let running = interrupted(stage, words);
    running.works_for(20);
    running.signal(Signal::INT);
    running.end().code(130);
    let samples = stage.read("s");
    let unsent = samples.lines().filter(|line| line.contains("unsent"));
    let unsent: Vec<&str> = unsent.collect();
    assert!(
        unsent.len() == 1 && unsent[0].starts_with(",,,unsent:"),
        "{unsent:?}"
    );
    assert!(samples.ends_with(&format!("{}\n# exit=130\n", unsent[0])));
    let again = selftest(stage, &["--replay", "s", "--output", "json"]).code(130);
    let master = masters(&again)[0][0].clone();
    assert_eq!(master["requested"], 900_000_000, "{master}");
    let text = format!(",,,unsent:{}", master["not_sent"]);
    assert_eq!(unsent[0], text);
    assert!(master["succeeded"].as_u64() > Some(0) && master["endpoints"] != Value::Null);
}

#[test]
fn a_signal_while_samples_are_written_names_their_file() {
    let stage = &Stage::new();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, stage.path("pipe"), FileType::Fifo, mode, 0).unwrap();
    // It holds less than there will be.
    let mut pipe = File::options()
        .read(true)
        .write(true)
        .open(stage.path("pipe"))
        .unwrap();
    let words = "self_test --loopback=1 -e 0:0 -s 0 -r 50000 --samples pipe --history off";
    let running = interrupted(stage, words);
    pipe.read_exact(&mut [0; 9]).unwrap();
    running.signal(Signal::INT);
    running
        .end()
        .code(130)
        .err("error: pipe: a signal came before it was written, and it is not stored\n  help: ");
}

#[test]
fn a_log_that_cannot_be_written_is_told_once_and_its_variables_are_named() {
    let stage = &Stage::new();
    let with = |file: &str| -> Said {
        let words = "self_test --transport null -e 0:0 -s 0 -r 100 -i 2 --threads 4 --history off";
        let mut command = quiet(stage.peer(&split(words)));
        command.env("D_LOG_FILE", file).env("D_LOG_MASK", "NOTE");
        said(command)
    };
    let full = with("/dev/full").code(0);
    let loss = "warning: D_LOG_FILE: /dev/full: No space left on device";
    assert_eq!(full.err.matches(loss).count(), 1, "{full}");
    let used = "note: from the environment: D_LOG_FILE=/dev/full D_LOG_MASK=NOTE\n";
    assert!(full.err.contains(used), "{full}");
    let good = with("log").code(0);
    assert!(!good.err.contains("D_LOG_FILE: "), "{good}");
    let said = "note: --threads 4: there are 2 RPCs at once";
    assert!(stage.read("log").contains(said), "{good}");
}

#[test]
fn a_token_file_that_is_a_directory_and_a_group_without_servers_are_called_so() {
    let stage = &Stage::new();
    let words = ["--loopback", "-e", "0:0", "--token-file", "."];
    selftest(stage, &words)
        .code(3)
        .err("token file .: it is a directory; name the file");
    stage.file(
        "daos_server.attach_info_tmp",
        "name daos_server\nsize 0\nall\n",
    );
    let words = ["-u", "--path", ".", "-e", "0:0"];
    selftest(stage, &words).code(3).err(
        "no server of group daos_server is in its table\n  help: start one with `weir rpc serve",
    );
}

#[test]
fn a_stall_of_masters_says_how_many_rpcs_each_may_have_out() {
    let stage = &Stage::new();
    let _master = Server::start(stage, "--rank 0");
    let called = Server::start(stage, "--rank 1");
    let words = "self_test -u --path . -e 1:0 -m 0:0 -s 0 -i 4 -r 100000000 --stall-timeout 0.2 --history off";
    let note = "no RPC of the masters has ended for 200";
    let running = interrupted(stage, words);
    called.works_for(20);
    called.signal(Signal::STOP);
    running.waits_for_err(note);
    called.signal(Signal::CONT);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    assert!(
        said.err
            .contains("; each has up to 4 out, and RPCs fail after 60.0 s"),
        "{said}"
    );
}
