//! Slow tests: they take long.

use super::{Server, Stage, masters, number, self_test};

#[test]
fn a_client_that_only_waits_is_not_the_limit_however_it_waits() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --service-time const:300");
    for poll in ["busy", "block"] {
        let words = format!("-e 0:0 -s 0 -i 1 -r 1200 --warmup 0 --poll {poll}");
        let said = self_test(&stage, &format!("{words} --output json")).code(0);
        let master = &masters(&said)[0][0];
        // What else the machine does adds to it.
        assert!(number(&master["busy"]) < 0.9, "{poll}: {master}");
        assert_eq!(master["client_bound"], false, "{poll}");
    }
    let text = self_test(&stage, "-e 0:0 -s 0 -i 1 -r 1200 --warmup 0 --verbose").code(0);
    text.out("\t+ Client at work: ");
}
