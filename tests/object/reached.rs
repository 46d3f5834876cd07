//! `daos_perf` by its name and `weir daos-perf`: the store on servers.

use rustix::process::Signal;

use crate::stage::{Running, Said, Stage, said, until};

/// Output of `daos_perf` where nothing names a server.
pub(crate) fn daos_perf(stage: &Stage, words: &[&str]) -> Said {
    let mut command = stage.peer(&[&["daos_perf"], words].concat());
    command.env_remove("WEIR_OBJ_SERVER");
    said(command)
}

/// A server of a store that listens at an address, and the one by which it is reached.
pub(crate) fn serve(stage: &Stage, listen: &str, words: &[&str]) -> (Running, String) {
    let (weir, words) = (env!("CARGO_BIN_EXE_weir"), words.join(" "));
    let line = format!("exec {weir} obj serve --listen {listen} {words} > ready");
    // That of an earlier one says nothing.
    let _ = std::fs::remove_file(stage.path("ready"));
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
fn case_14_the_same_strings_run_against_a_server_and_as_echo() {
    let stage = &Stage::in_memory();
    let socket = format!("shm://{}", stage.path("socket"));
    for listen in ["tcp://127.0.0.1:0", &socket] {
        let (server, address) = serve(stage, listen, &["--targets", "2", "-P", "256m"]);
        for (kind, verified) in [("echo", "Verification is unsupported\n"), ("daos", "")] {
            let line = ["-C", "16", "-A", "-R", "U;p F;i=5;p V"];
            let words = [&["--server", &address, "-T", kind], &line[..]].concat();
            let said = daos_perf(stage, &words).code(0);
            assert!(said.out.contains("Completed test=VERIFY\n"), "{said}");
            assert_eq!(
                said.out.contains("Verification is unsupported\n"),
                !verified.is_empty(),
                "{said}"
            );
            assert!(said.out.contains("(iteration=5)"), "{said}");
        }
        // Sizes past what travels within a request, and every test of the program.
        let words = [
            "--server",
            &address,
            "-C",
            "4",
            "-d",
            "3",
            "-a",
            "2",
            "-n",
            "2",
            "-A",
            "-s",
            "300k",
            "-R",
            "U F;o=1k;s=70k V O;p",
        ];
        daos_perf(stage, &words).code(0).out("listed 1 objects");
        server.signal(Signal::TERM);
        server.end();
    }
}

#[test]
fn a_server_keeps_its_files_and_one_that_is_gone_is_said() {
    let stage = &Stage::in_memory();
    let words = ["-D", ".", "-P", "64m", "--csum", "crc32c"];
    let (server, address) = serve(stage, "tcp://127.0.0.1:0", &words);
    let container = "0f0e0d0c-0b0a-4908-8706-050403020100";
    let line = ["--server", &address, "-X", container, "-d", "10", "-R", "U"];
    daos_perf(stage, &line).code(0);
    // A second one on the same files is refused.
    let again = [
        &["obj", "serve", "--listen", "tcp://127.0.0.1:0"],
        &words[..],
    ]
    .concat();
    stage.say(&again).code(3).err("obj0");
    server.signal(Signal::TERM);
    server.end();
    stage.say(&["obj", "info", "obj0"]).code(0).out(container);
    stage.say(&["obj", "check", "obj0"]).code(0);
    daos_perf(stage, &line).code(3).silent().err(&address);
    let zero = [
        "--server", &address, "-P", "1g", "-s", "1g", "-d", "1", "-a", "1", "-n", "1", "-R", "U",
    ];
    daos_perf(stage, &zero).code(2).silent().err("REC2BIG");
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
