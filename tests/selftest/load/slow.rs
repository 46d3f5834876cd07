//! Slow tests: they take long.

use super::{Server, Stage, counted_alike, number, self_test};

#[test]
fn rpcs_that_failed_in_the_warm_up_are_among_the_samples() {
    let stage = Stage::new();
    // Nobody waits long enough for rank 1, so that the first RPC to it fails: in the warm-up.
    let serve = ["--rank 0", "--rank 1 --service-time const:2000000"];
    let _servers = serve.map(|words| Server::start(&stage, words));
    let words = "-e 0-1:0 -s '(0 0) (i64 0)' -i 2 -r 2 --timeout 1 --samples s --output json";
    let measured = self_test(&stage, words).code(1);
    let [measured, _] = counted_alike(&stage, &measured);
    let failed: Vec<u64> = measured
        .iter()
        .map(|one| number(&one[0]["failed"]))
        .collect();
    assert!(failed.iter().all(|count| *count > 0), "{failed:?}");
    let rows = stage
        .read("s")
        .lines()
        .filter(|line| line.ends_with(",-1011"))
        .count();
    assert_eq!(rows as u64, failed.iter().sum::<u64>());
}
