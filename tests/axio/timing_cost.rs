//! Cost of timing the stages: it is measured and printed, and the times are drawn. No figure of it
//! decides a test.

mod slow;

use rustix::process::Signal;

use super::stage::{Running, Stage, until};
use super::two_sides::{CONFIG, side};
use super::{example, stored, sum};

#[test]
fn a_report_has_a_bar_for_each_timed_stage_of_both_sides() {
    let stage = Stage::new();
    example(&stage, "scan", "duration=0.1").code(0);
    stage.say(&["report", "r.json", "-o", "r.html"]).code(0);
    let page = stage.read("r.html");
    for bar in ["client app_tx", "server app_rx"] {
        assert!(page.contains(bar), "{bar} is not there");
    }
}

#[test]
fn each_side_times_the_passes_that_its_own_words_name() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let timed = |test: u32, role: &str, which: &str| {
        let mut command = side(&stage, role, test, &[]);
        command.args(["--stage-timing", which]);
        if role == "--client" {
            command.args(["--store-result", "r.json"]);
        }
        Running::start(command)
    };
    for (test, server, client) in [(72, "off", "all"), (73, "1/2", "off")] {
        let running = timed(test, "--server", server);
        timed(test, "--client", client).end().code(0);
        running.end().code(0);
        let outcome = stored(&stage);
        for (side, which) in [("server", server), ("client", client)] {
            let passes = sum(&outcome, side, "timed_passes");
            assert_eq!(passes > 0, which != "off", "{side}: {which}");
        }
    }
}
