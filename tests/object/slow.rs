//! Slow tests: a server with all that is asked of it; several ranks on one, with and without a launcher.

use rustix::process::Signal;
use weir_object::mem::MemStore;
use weir_object::{Durability, ObjectStore as _, PoolMode, PoolSpec};

use crate::reached::{daos_perf, secret, serve};
use crate::stage::{Said, Stage, each_launcher, launch, said};

/// Each rank writes, reads, compares, and lists the objects of all.
const LINE: [&str; 13] = [
    "-C",
    "16",
    "-A",
    "-d",
    "16",
    "-a",
    "2",
    "-n",
    "4",
    "-s",
    "24k",
    "-R",
    "U;p F;p V O;p",
];

#[track_caller]
fn all_is_there(said: Said, ranks: u32) {
    let said = said
        .code(0)
        .out(&format!("\tobj_per_cont  : 1 x {ranks} (procs)\n"))
        .out(&format!("listed {ranks} objects\n"))
        .out("Completed test=OIT\n");
    for test in ["UPDATE", "FETCH", "VERIFY"] {
        assert!(
            said.out.contains(&format!("Completed test={test}\n")),
            "{said}"
        );
    }
}

#[test]
fn two_ranks_have_objects_of_their_own_on_a_server() {
    let stage = &Stage::in_memory();
    let socket = format!("shm://{}", stage.path("socket"));
    for listen in ["tcp://127.0.0.1:0", &socket] {
        let (server, address) = serve(stage, listen, &["--targets", "2", "-P", "256m"]);
        let words = [&["--ranks", "2", "--server", &address], &LINE[..]].concat();
        all_is_there(daos_perf(stage, &words), 2);
        server.signal(Signal::TERM);
        server.end().code(0);
    }
}

#[test]
fn four_ranks_of_a_launcher_have_objects_of_their_own_on_a_server() {
    each_launcher("daos_perf under a launcher", |stage, launcher| {
        let (server, address) = serve(stage, "tcp://127.0.0.1:0", &["-P", "256m"]);
        let own = ["daos-perf", "--voice", "peer", "--server", &address];
        let words = [&own[..], &LINE].concat();
        all_is_there(said(launch(stage, launcher, 4, &words)), 4);
        server.signal(Signal::TERM);
        server.end().code(0);
    });
}

#[test]
fn a_secret_is_asked_for_and_known() {
    let stage = &Stage::in_memory();
    secret(stage);
    let (server, address) = serve(stage, "tcp://127.0.0.1:0", &["--token-file", "secret"]);
    let words = ["--server", &address, "-d", "4", "-R", "U"];
    daos_perf(stage, &words).code(3).silent().err(&address);
    daos_perf(stage, &[&words[..], &["--token-file", "secret"]].concat()).code(0);
    server.signal(Signal::TERM);
    server.end().code(0);
}

#[test]
fn case_14_the_same_strings_run_against_a_server_and_as_echo() {
    let stage = &Stage::in_memory();
    let socket = format!("shm://{}", stage.path("socket"));
    for listen in ["tcp://127.0.0.1:0", &socket] {
        let (server, address) = serve(stage, listen, &["--targets", "2", "-P", "256m"]);
        for (kind, verified) in [("echo", "Verification is unsupported\n"), ("daos", "")] {
            let line = ["-C", "16", "-d", "32", "-A", "-R", "U;p F;i=5;p V"];
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
fn a_server_deletes_the_pool_that_it_made_and_keeps_the_one_that_was_there() {
    let stage = &Stage::in_memory();
    let words = ["-D", ".", "-P", "64m"];
    let (server, address) = serve(stage, "tcp://127.0.0.1:0", &words);
    let container = "0f0e0d0c-0b0a-4908-8706-050403020100";
    let line = ["-X", container, "-d", "10", "-R", "U;p"];
    let line_to = |address: &str| [&["--server", address], &line[..]].concat().join(" ");
    let run = |address: &str| {
        let words = line_to(address);
        daos_perf(stage, &words.split(' ').collect::<Vec<_>>())
    };
    run(&address).code(0);
    // A second server on the same files is refused.
    let again = [
        &["obj", "serve", "--listen", "tcp://127.0.0.1:0"],
        &words[..],
    ]
    .concat();
    stage.say(&again).code(2).err("obj0");
    // One that is killed leaves them, with all that it acknowledged.
    server.signal(Signal::KILL);
    server.end();
    let info = stage
        .say(&["obj", "info", "--format", "json", "obj0"])
        .code(0);
    let info: serde_json::Value = serde_json::from_str(&info.out).unwrap();
    assert_eq!(info["pools"][0]["containers"][0], container);
    let pool = info["pools"][0]["uuid"].as_str().unwrap();
    stage.say(&["obj", "check", "obj0"]).code(0);
    run(&address).code(3).err(&address);
    let (server, address) = serve(stage, "tcp://127.0.0.1:0", &["-D", ".", "--pool", pool]);
    run(&address).code(0);
    server.signal(Signal::TERM);
    server.end().code(0);
    // Its end leaves the index in the pool: the log is not read again.
    let store = MemStore::open(&PoolSpec {
        path: Some(stage.path("obj0").into()),
        mode: PoolMode::Open,
        durability: Durability::Process,
        ..PoolSpec::anonymous(0)
    });
    assert_eq!(store.unwrap().stats().recovered, 0);
    std::fs::remove_file(stage.path("obj0")).unwrap();
    let (server, address) = serve(stage, "tcp://127.0.0.1:0", &words);
    let long = [
        "--server", &address, "-s", "1g", "-d", "1", "-a", "1", "-n", "1", "-R", "U",
    ];
    daos_perf(stage, &long).code(2).silent().err("REC2BIG");
    server.signal(Signal::TERM);
    server.end().code(0);
    assert!(!stage.list().contains(&"obj0".to_owned()));
}
