//! Slow tests: several ranks on one server, with and without a launcher.

use rustix::process::Signal;

use crate::reached::{daos_perf, serve};
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
    let secret = stage.file("secret", "a secret of more than sixteen bytes\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secret, mode).unwrap();
    let (server, address) = serve(stage, "tcp://127.0.0.1:0", &["--token-file", "secret"]);
    let words = ["--server", &address, "-d", "4", "-R", "U"];
    daos_perf(stage, &words).code(3).silent().err(&address);
    daos_perf(stage, &[&words[..], &["--token-file", "secret"]].concat()).code(0);
    server.signal(Signal::TERM);
    server.end().code(0);
}
