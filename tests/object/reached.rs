//! `daos_perf` by its name and `weir daos-perf`: the store on servers.

use rustix::process::Signal;

use crate::stage::{Running, Said, Stage, said, until};

/// Output of `daos_perf` where nothing names a server.
pub(crate) fn daos_perf(stage: &Stage, words: &[&str]) -> Said {
    let mut command = stage.peer(&[&["daos_perf"], words].concat());
    command.env_remove("WEIR_OBJ_SERVER");
    said(command)
}

/// The file `secret`, as both sides take it.
pub(crate) fn secret(stage: &Stage) {
    let path = stage.file("secret", "a secret of more than sixteen bytes\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, mode).unwrap();
}

/// A server of a store that listens at an address, and the one by which it is reached.
pub(crate) fn serve(stage: &Stage, listen: &str, words: &[&str]) -> (Running, String) {
    let (weir, words) = (env!("CARGO_BIN_EXE_weir"), words.join(" "));
    let line = format!("exec {weir} obj serve --listen {listen} {words} > ready");
    if stage.list().iter().any(|name| name == "ready") {
        std::fs::remove_file(stage.path("ready")).unwrap();
    }
    let mut command = stage.command("sh");
    command.args(["-c", &line]);
    let server = Running::start(command);
    let address = || {
        let is_there = stage.list().iter().any(|name| name == "ready");
        let said = is_there.then(|| stage.read("ready"))?;
        let address = said.strip_prefix("READY ")?.strip_suffix('\n')?;
        Some(address.to_owned())
    };
    until("it serves", || address().is_some());
    (server, address().unwrap())
}

#[test]
fn what_a_run_made_on_a_server_is_gone_and_a_pool_has_the_targets_that_it_has() {
    let stage = &Stage::in_memory();
    let words = ["-D", ".", "-P", "64m", "--targets", "2", "--keep"];
    let (server, address) = serve(stage, "tcp://127.0.0.1:0", &words);
    let line = |more: &[&str]| {
        let all = [&["--server", &address, "-A", "-n", "1"], more].concat();
        daos_perf(stage, &all)
    };
    // Each rank lists what the other one wrote too.
    let two = line(&["--ranks", "2", "-d", "1", "-a", "1", "-R", "U O;p"]).code(0);
    assert_eq!(two.out.matches("listed 2 objects\n").count(), 2, "{two}");
    let other = ["-u", "4a3a3a3a-3a3a-3a3a-3a3a-3a3a3a3a3a3a", "-R", "F"];
    line(&other).code(2).err("rc=-1031").err("another pool");
    server.signal(Signal::TERM);
    server.end().code(0);
    let info = || {
        let said = stage.say(&["obj", "info", "--format", "json", "."]).code(0);
        serde_json::from_str::<serde_json::Value>(&said.out).unwrap()["pools"].clone()
    };
    let pools = info();
    for pool in [&pools[0], &pools[1]] {
        assert_eq!(pool["containers"], serde_json::json!([]), "{pools}");
        assert_eq!(pool["versions"], 0, "{pools}");
    }
    let uuid = pools[0]["uuid"].as_str().unwrap();
    let named = ["-D", ".", "--pool", uuid];
    let serve_again = ["obj", "serve", "--listen", "tcp://127.0.0.1:0"];
    let fewer = [&serve_again, &named[..], &["--targets", "1"]].concat();
    let said = stage.say(&fewer).code(2).err("--targets 1: pool ");
    assert!(said.err.contains(" has 2;"), "{said}");
    let (server, address) = serve(stage, "tcp://127.0.0.1:0", &named);
    let keeps = "0f0e0d0c-0b0a-4908-8706-050403020100";
    let words = ["-X", keeps, "-d", "64", "-a", "1", "-n", "1", "-R", "U"];
    daos_perf(stage, &[&["--server", &address], &words[..]].concat()).code(0);
    server.signal(Signal::TERM);
    server.end().code(0);
    for pool in info().as_array().unwrap() {
        assert_eq!(pool["containers"][0], keeps);
        assert!(pool["versions"].as_u64().unwrap() > 0, "{pool}");
    }
}

#[test]
fn a_mix_on_a_server_knows_its_secret_and_its_address_by_the_environment() {
    let stage = &Stage::in_memory();
    secret(stage);
    let words = ["-P", "64m", "--token-file", "secret"];
    let (server, address) = serve(stage, "tcp://127.0.0.1:0", &words);
    let run = |more: &[&str]| {
        let words = [
            "obj", "run", "--engine", "remote", "--preset", "ycsb-c", "--keys", "100", "--ops",
            "500",
        ];
        let mut command = stage.weir(&[&words[..], more].concat());
        command.env("WEIR_OBJ_SERVER", &address);
        said(command)
    };
    run(&["--token-file", "secret"]).code(0);
    run(&[]).code(3).out("(--token-file)");
    server.signal(Signal::TERM);
    server.end().code(0);
}

#[test]
fn a_server_that_is_not_there_is_named_once() {
    let stage = &Stage::in_memory();
    let said = daos_perf(stage, &["--server", "tcp://127.0.0.1:1", "-R", "U"]).code(3);
    assert_eq!(said.err.matches("127.0.0.1:1").count(), 1, "{said}");
    assert!(said.err.contains("rc=-2001: DER_IO(-2001): "), "{said}");
}

#[test]
fn case_15_a_class_that_is_none_and_a_library_that_is_missing() {
    let stage = &Stage::in_memory();
    let none = daos_perf(stage, &["-c", "NOPE", "-R", "U"])
        .code(2)
        .silent();
    assert!(
        none.err.starts_with("Unknown object class: NOPE\n"),
        "{none}"
    );
    assert!(none.err.contains("--credits"), "usage: {none}");
    daos_perf(stage, &["--engine", "daos", "-u", "tank", "-R", "U"])
        .code(3)
        .silent()
        .err("libdaos");
    daos_perf(stage, &["-R", "U"])
        .code(3)
        .silent()
        .err("WEIR_OBJ_SERVER")
        .err("libdaos not found");
}

#[test]
fn the_store_of_this_process_is_the_one_of_the_other_program() {
    let stage = &Stage::in_memory();
    let line = [
        "-T", "vos", "-f", "./vos", "-P", "64M", "-d", "10", "-A", "-R", "U;p V",
    ];
    daos_perf(stage, &line)
        .code(0)
        .out("\tVOS (storage only)\n")
        .out("\tVOS file      : ./vos0\n")
        .out("Completed test=VERIFY\n");
    assert_eq!(stage.list(), [] as [&str; 0]);
}

#[test]
fn help_has_the_options_of_the_peer_and_junk_is_refused_by_name() {
    let stage = &Stage::in_memory();
    for option in ["--type", "--credits", "--class", "--pool_scm", "--server"] {
        daos_perf(stage, &["--help"]).code(0).calm().out(option);
    }
    let none = daos_perf(stage, &[]).code(2);
    assert!(
        none.out.starts_with("Please provide command string\n"),
        "{none}"
    );
    daos_perf(stage, &["-C", "abc", "-R", "U"])
        .code(2)
        .err("--credits abc");
    let unknown = daos_perf(stage, &["-q"]).code(2);
    assert!(
        unknown
            .err
            .ends_with("daos_perf: invalid option -- 'q'\nUnknown option ?\n"),
        "{unknown}"
    );
}
