//! Pools that run out while a run goes on: stages wait for buffers for a bounded time, rounds are counted and
//! explained, and nothing is lost.

use crate::stage::Stage;
use crate::{example, stored, sum};

/// What a run of few buffers is about.
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
