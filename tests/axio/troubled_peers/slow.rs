//! Slow tests: they take long.

use super::*;

#[test]
fn a_server_whose_client_is_stopped_says_so_and_fails() {
    let stage = stage();
    let sets = ["duration=4", "iteration=1", "msg_timeout_ms=200"];
    let server = Running::start(side(&stage, "--server", 45, &sets));
    let client = Running::start(side(&stage, "--client", 45, &sets));
    client.works_for(5);
    client.signal(Signal::STOP);
    let server = server.end().code(1);
    client.signal(Signal::KILL);
    client.end();
    server
        .out("End-to-end")
        .err("was to end by now and does not say so: it hangs, or is stopped");
}
