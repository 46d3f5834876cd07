//! Slow tests: they take long.

use super::*;

#[test]
fn a3_masters_on_servers_of_one_process_call_all_servers() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--ranks 0-3 --tags 2");
    cross_servers(&stage);
}

#[test]
fn a3_masters_on_servers_of_four_processes_call_all_servers() {
    let stage = Stage::new();
    let start = |rank| Server::start(&stage, &format!("--rank {rank} --tags 2"));
    let _servers: Vec<_> = (0..4).map(start).collect();
    cross_servers(&stage);
}

#[test]
fn a18_each_pair_of_sizes_has_its_own_duration() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let words = "-e 0:2 -s '(0 0) (0 b1048578)' -r 1000 --output json";
    let said = self_test(&stage, words).code(0);
    let blocks = masters(&said);
    let times: Vec<_> = blocks
        .iter()
        .map(|masters| masters[0]["duration_ns"].as_u64().unwrap())
        .collect();
    assert_ne!(times[0], times[1]);
    let cart = self_test(&stage, &words.replace("json", "json-cart")).code(0);
    let cart: serde_json::Value = serde_json::from_str(&cart.out).unwrap();
    for block in cart["response"]["results"].as_array().unwrap() {
        let done = block["rpc_count_per_second"].as_f64().unwrap();
        let done = done * block["duration"].as_f64().unwrap() / 1e9;
        assert!((done - 1000.0).abs() < 1e-6, "{block}");
    }
    for (masters, time) in blocks.iter().zip(&times) {
        let span = &masters[0]["span"];
        let end = span["end_ns"].as_u64().unwrap() - span["start_ns"].as_u64().unwrap();
        assert_eq!((end, masters[0]["succeeded"].as_u64()), (*time, Some(1000)));
    }
}
