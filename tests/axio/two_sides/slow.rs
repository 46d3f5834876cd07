//! Slow tests: two hosts over a wire.

use super::{CLIENT_FIRST, HOSTS, Stage, between_hosts, over_queues, stored, sum};

#[test]
fn frames_between_two_hosts_are_answered() {
    let stage = Stage::new();
    let Some(said) = between_hosts(&stage, "", &["backend=packet:weir0"]) else {
        return;
    };
    let said = said.code(0);
    let outcome = stored(&stage);
    assert!(
        sum(&outcome, "client", "application_rx.packets") > 0,
        "{said}"
    );
    assert!(
        sum(&outcome, "server", "application_rx.packets") > 0,
        "{said}"
    );
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{said}");
    assert_eq!(outcome["buffers_in_use"], 0, "{said}");
}

#[test]
fn packets_between_two_hosts_are_answered_over_queues_of_their_interfaces() {
    over_queues(HOSTS);
}

#[test]
fn a_client_over_queues_that_was_first_waits_for_its_server() {
    let Some(said) = over_queues(CLIENT_FIRST) else {
        return;
    };
    let calls = said.out.lines().find_map(|line| {
        let calls = line.strip_prefix("refused before the server was there: ")?;
        calls.parse::<u64>().ok()
    });
    assert!(calls.is_some_and(|calls| calls > 0), "{said}");
}

#[test]
fn a_message_that_is_longer_than_the_wire_takes_is_refused_with_both_lengths() {
    let stage = Stage::new();
    let sets = [
        "backend=packet:weir0",
        "msg_handler=FS_WRITE",
        "kDispTxBatchSize=1",
    ];
    let Some(said) = between_hosts(&stage, "", &sets) else {
        return;
    };
    assert_eq!(said.code, Some(8), "the server refuses it too: {said}");
    said.err("packets of 2048 bytes")
        .err("takes 1500 (its MTU)");
}

#[test]
fn a_wire_that_loses_frames_loses_messages_and_the_run_goes_on() {
    let stage = Stage::new();
    let sets = ["backend=packet:weir0", "msg_timeout_ms=100", "duration=0.5"];
    let Some(said) = between_hosts(&stage, "--loss 5", &sets) else {
        return;
    };
    let said = said.code(0);
    let outcome = stored(&stage);
    assert!(sum(&outcome, "client", "lost") > 0, "{said}");
    assert!(
        sum(&outcome, "client", "application_rx.packets") > 0,
        "{said}"
    );
}
