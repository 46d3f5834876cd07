//! Slow tests: over fabrics, and all lines once more over shared memory.

use super::*;

#[test]
fn the_seeds_lines_have_the_report_of_the_older_program_over_shared_memory() {
    let said = run_seed_lines("shm://");
    assert!(said[0].out.contains("\t+ Bulk path: shm\n"));
}

#[test]
fn the_seeds_lines_have_the_report_of_the_older_program_over_a_fabric() {
    if !has_fabric() {
        skip("the seed's lines over ofi+tcp", "no libfabric");
        return;
    }
    let said = run_seed_lines("ofi+tcp://127.0.0.1:0");
    assert!(said[0].out.contains("\t+ Bulk path: rma\n"), "{}", said[0]);
}

#[test]
fn a_fabric_leaves_signals_to_the_test_and_to_its_server() {
    if !has_fabric() {
        skip("signals beside a fabric", "no libfabric");
        return;
    }
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0 --transport ofi+tcp://127.0.0.1:0");
    let words = "self_test -u --path . -e 0:0 -s 0 -r 1000000000 --warmup 0";
    let running = Running::start(stage.peer(&split(words)));
    until("the test has begun", || running.catches_signals());
    server.works_for(20);
    running.signal(Signal::INT);
    running
        .end()
        .code(130)
        .out("+ Interrupted by signal 2: not all was measured\n");
    assert_eq!(server.end(), Some(0));
    let table = stage.read("daos_server.attach_info_tmp");
    assert!(!table.contains("ofi"), "{table}");
}

#[test]
fn the_seeds_lines_have_the_report_of_the_older_program_over_tcp() {
    let said = run_seed_lines("tcp://127.0.0.1:0");
    assert!(said[0].out.contains("\t+ Bulk path: emulated-rendezvous\n"));
    // Masters that work at the same time are added up.
    let cross = &said[5].out;
    assert_eq!(cross.matches("Aggregate of 44 masters\n").count(), 6);
    let stage = Stage::new();
    let help = stage.peer_says(&["self_test", "--help"]).code(0);
    help.out("--group-name").out("--message-sizes");
}
