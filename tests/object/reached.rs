//! `daos_perf` by its name and `weir daos-perf`: the store on servers.

use crate::stage::{Said, Stage, said};

/// Output of `daos_perf` where nothing names a server.
fn daos_perf(stage: &Stage, words: &[&str]) -> Said {
    let mut command = stage.peer(&[&["daos_perf"], words].concat());
    command.env_remove("WEIR_OBJ_SERVER");
    said(command)
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
