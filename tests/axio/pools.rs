//! Pools that run out while a run goes on: stages wait for buffers for a bounded time, rounds are counted and
//! explained, and nothing is lost.

use crate::stage::Stage;
use crate::{Json, example, stored, sum};

/// Settings of a run with few buffers, and the stage that lacks them.
struct Scarcity {
    sets: &'static str,
    /// Who finds too few of them.
    side: &'static str,
    /// Whose calls that may be at most.
    stage: &'static str,
}

#[test]
fn pools_that_run_out_are_waited_for_and_counted_and_what_helps_is_said() {
    for Scarcity {
        sets,
        side,
        stage: of,
    } in [
        // A window of sixteen times the client's buffers.
        Scarcity {
            sets: "pool=64 inflight=1024",
            side: "client",
            stage: "application_tx",
        },
        // An answer takes 51 of the server's.
        Scarcity {
            sets: "pool=64 msg_handler=FS_READ resp_size=102400 inflight=64 kAppRxMsgBatchSize=1",
            side: "server",
            stage: "application_rx",
        },
    ] {
        let stage = Stage::new();
        let said = example(&stage, "scan", &format!("duration=0.2 {sets}")).code(0);
        let outcome = stored(&stage);
        let rounds = sum(&outcome, side, "rounds_without_buffers");
        assert!(rounds > 0, "{said}");
        let polls = sum(&outcome, side, &format!("{of}.polls"));
        assert!(rounds <= polls, "{rounds} of {polls}: {said}");
        let [client, server] =
            ["client", "server"].map(|side| sum(&outcome, side, "rounds_without_buffers"));
        let line = format!(
            "rounds that found too few free buffers: client {client}, server {server} (each workspace has 64: \
             raise `pool`, or lower `inflight`)\n"
        );
        let said = said.out(&line).out("\npool in use 0\n");
        // More than both pools have: buffers were used again.
        assert!(
            sum(&outcome, "client", "application_rx.packets") > 128,
            "{said}"
        );
        let both = |path: &str| sum(&outcome, "client", path) + sum(&outcome, "server", path);
        for none in ["lost", "incomplete", "application_drops", "dispatch_drops"] {
            assert_eq!(both(none), 0, "{none}: {said}");
        }
        assert_eq!(outcome["buffers_in_use"], 0, "{said}");
    }
}

#[test]
fn pools_that_suffice_are_not_spoken_of() {
    let stage = Stage::new();
    let said = example(&stage, "scan", "duration=0.1").code(0);
    assert!(!said.out.contains("too few free buffers"), "{said}");
    assert_eq!(sum(&stored(&stage), "client", "rounds_without_buffers"), 0);
}

/// A configuration of one workload with these workspaces, which has sizes and window of its handler.
fn config(handler: &str, workspaces: u32) -> String {
    let apps: Vec<String> = (0..workspaces).map(|id| id.to_string()).collect();
    format!(
        "role : loopback\nmsg_handler : {handler}\nkAppCoreNum : {workspaces}\nkDispQueueNum : 1\n\
         iteration : 1\nduration : 0.3\nmsg_timeout_ms : 20000\nstall_timeout : 30\n\
         workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : {} : 0\n",
        apps.join(",")
    )
}

#[test]
fn the_default_window_is_what_a_ring_holds_of_the_messages_of_a_workload() {
    let stage = Stage::new();
    for (handler, workspaces, more, window) in [
        ("FS_READ", 1, "", 64),
        ("FS_WRITE", 1, "", 256),
        ("T_APP", 1, "", 1024),
        ("T_APP", 8, "", 1024),
        ("FS_READ", 2, "", 32),
        // A ring of eight times the slots, in pools that have as many buffers.
        ("FS_READ", 1, "ring=32768 pool=32768", 512),
        ("FS_READ", 1, "ring=32768", 128),
        // No less than a batch.
        ("FS_READ", 4, "", 32),
        ("FS_WRITE", 1, "kAppTxMsgBatchSize=400", 400),
        ("FS_READ", 1, "inflight=100", 100),
        ("FS_READ", 1, "pkt_handler=Echo", 1024),
        // Half of the frames that a device holds.
        (
            "T_APP",
            1,
            "backend=dpdk:net_af_packet0,iface=a+net_null0",
            256,
        ),
        (
            "T_APP",
            2,
            "backend=dpdk:net_af_packet0,framecnt=256+net_null0",
            64,
        ),
        ("T_APP", 1, "backend=dpdk:net_null0+net_null1", 1024),
    ] {
        stage.file("c.conf", config(handler, workspaces));
        let mut words = vec!["axio", "-c", "c.conf", "--show-plan"];
        for set in more.split_whitespace() {
            words.extend(["--set", set]);
        }
        let plan: Json = serde_json::from_str(&stage.peer_says(&words).code(0).out).unwrap();
        let work = &plan["groups"][0]["jobs"][0]["workload"];
        let found = work.as_object().unwrap().get("packet_path").unwrap_or(work);
        assert_eq!(found["in_flight"], window, "{handler} {workspaces} {more}");
    }
}

#[test]
fn the_default_window_loses_no_packet_of_long_messages() {
    for (handler, workspaces) in [
        ("FS_READ", 1),
        ("FS_READ", 2),
        ("FS_WRITE", 1),
        ("FS_WRITE", 4),
    ] {
        let stage = Stage::new();
        stage.file("c.conf", config(handler, workspaces));
        let said = stage.peer_says(&["axio", "-c", "c.conf", "--store-result", "r.json"]);
        let said = said.code(0);
        let outcome = stored(&stage);
        for none in ["lost", "incomplete", "application_drops", "dispatch_drops"] {
            let both = sum(&outcome, "client", none) + sum(&outcome, "server", none);
            assert_eq!(both, 0, "{handler}, {workspaces}: {none}\n{said}");
        }
    }
}
