//! Slow tests: they take long.

use super::*;

#[test]
fn a_client_survives_all_kills_of_its_server() {
    let stage = Stage::new();
    // The first one ends by itself, once the client has begun.
    let first = Server::start(&stage, "--rank 0 --exit-after 100");
    let alone = first.descriptors();
    let client = endless(&stage, "-e 0:0 -s 0 --reconnect 30");
    assert_eq!(first.wait(), Some(0));
    let mut server = Server::start(&stage, "--rank 0");
    for round in 0..kills() {
        until("the client is there", || server.descriptors() > alone);
        server.works_for(4 + u64::from(round % 5));
        server.signal(Signal::KILL);
        drop(server);
        server = Server::start(&stage, "--rank 0");
    }
    drop(server);
    let last = Server::start(&stage, "--rank 0 --exit-after 100");
    assert_eq!(last.wait(), Some(0));
    client.signal(Signal::INT);
    let said = client.end().code(130);
    let master = &masters(&said)[0][0];
    adds_up(master);
    let endpoint = &master["endpoints"][0];
    assert!(count(endpoint, "succeeded") >= 100, "{endpoint}");
    let failed = endpoint["failed"].as_object().unwrap();
    let codes: Vec<&String> = failed.keys().collect();
    assert_eq!(codes, ["DER_UNREACH"], "{endpoint}");
}

#[test]
fn a_master_that_is_killed_or_stopped_has_failed_and_nobody_waits_for_it() {
    for (signal, duration, why) in [
        (Signal::KILL, "100s", "the server closed the connection"),
        (Signal::STOP, "2s", "it says nothing any more"),
    ] {
        let stage = Stage::new();
        let master = Server::start(&stage, "--rank 0");
        let called = Server::start(&stage, "--rank 1");
        let form = if signal == Signal::KILL {
            "text"
        } else {
            "csv"
        };
        let words = "self_test -u --path . -e 1:0 -m 0:0 -s 0";
        let words = format!("{words} --duration {duration} --output {form}");
        let client = Running::start(stage.peer(&split(&words)));
        // The master calls it.
        called.works_for(5);
        master.signal(signal);
        let said = client.end().code(1);
        // Rows are of masters that have measured.
        let failed = format!("error: 0-EMPTY 0-EMPTY: master 0:0 failed: {why}");
        let said = match signal {
            Signal::KILL => said.out("Master Endpoint 0:0 FAILED: ").out(why),
            _ => said.out("send_bytes,").err(&failed),
        };
        assert!(!said.err.contains("did not come back"), "{said}");
    }
}

#[test]
fn sizes_behind_the_loss_of_a_server_are_measured_with_the_others() {
    for (signal, who) in [
        (Signal::KILL, ""),
        (Signal::TERM, ""),
        (Signal::TERM, "-m 0:0"),
    ] {
        let stage = Stage::new();
        let stays = Server::start(&stage, "--rank 0");
        let goes = Server::start(&stage, "--rank 1");
        let words = "self_test --path . -e 0-1:0 -s '(0 0) (0 i1)' --duration 2s --output json";
        let client = Running::start(stage.peer(&split(&format!("{words} {who}"))));
        goes.works_for(10);
        goes.signal(signal);
        let said = client.end().code(1);
        let sizes = masters(&said);
        assert_eq!(sizes.len(), 2, "{said}");
        let [other, lost] = [0, 1].map(|at| &sizes[1][0]["endpoints"][at]);
        assert!(count(other, "succeeded") > 0, "{other}");
        assert_eq!(other["failed"], serde_json::json!({}));
        assert_eq!(count(lost, "succeeded"), 0, "{lost}");
        assert_eq!(stays.end(), Some(0));
    }
}

#[test]
fn a_server_that_is_stopped_fails_its_own_rpcs_by_time_and_no_others() {
    over_both(|transport| {
        let stage = Stage::new();
        let serve = |rank| {
            let words = format!("--rank {rank} --transport tcp://127.0.0.1:0,shm://");
            Server::start(&stage, &words)
        };
        let servers = [serve(0), serve(1)];
        let alone = servers[0].descriptors();
        // Each endpoint has slots of its own, so that the other one goes on. The time of an RPC is longer
        // than a busy machine makes one wait, and over twice before those that are out are given up.
        let words = format!(
            "self_test -u --path . -e 0-1:0 -s 'i100 b9000' --spread per-endpoint --timeout 2 \
             --duration 3s --output json --transport {transport}"
        );
        let client = Running::start(stage.peer(&split(&words)));
        until("it has connected", || servers[0].descriptors() > alone);
        servers[0].works_for(5);
        servers[0].signal(Signal::STOP);
        let said = client.end().code(1);
        let master = &masters(&said)[0][0];
        adds_up(master);
        let [stopped, other] = [0, 1].map(|rank| &master["endpoints"][rank]);
        assert!(count(&stopped["failed"], "DER_TIMEDOUT") >= 8, "{stopped}");
        assert_eq!(stopped["failed"].as_object().unwrap().len(), 1, "{stopped}");
        assert_eq!(other["failed"], serde_json::json!({}));
        assert!(count(other, "succeeded") > 0, "{other}");
        servers[0].signal(Signal::CONT);
        let words = format!("-e 0-1:0 -s 0 -r 50 --transport {transport}");
        self_test(&stage, &words).code(0);
    });
}
