//! Self-tests against servers: in this process, in others, over no network at all.

mod slow;

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::servers::{S1, Server, masters, self_test, split, values};
use crate::stage::{Running, Said, Stage, until};

#[test]
fn a_self_test_without_a_network_counts_every_rpc() {
    let stage = Stage::new();
    let words = "self_test --transport null:// --endpoint 0-1:0-2 --endpoint 1-2:0 --message-sizes 0 \
                 --repetitions-per-size 5000 --max-inflight-rpcs 16 --warmup 0 --output json";
    let said = stage.peer_says(&split(words)).code(0);
    let masters = &masters(&said)[0];
    assert_eq!(masters.len(), 1);
    let master = &masters[0];
    assert_eq!(master["endpoint"]["rank"], 3);
    assert_eq!(master["transport"], "null");
    // 1:0 stands twice.
    let succeeded = |one: &serde_json::Value| one["succeeded"].as_u64().unwrap();
    let each: Vec<_> = master["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(succeeded)
        .collect();
    assert_eq!(each, [5000, 5000, 5000, 10_000, 5000, 5000, 5000]);
    assert_eq!(succeeded(master), 40_000);
    assert_eq!(master["not_sent"], 0);
}

#[test]
fn a1_the_first_line_of_the_seed_reads_a_mebibyte() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let said = self_test(
        &stage,
        "--group-name daos_server --endpoint 0:2 --message-size '(0 b1048578)' \
         --max-inflight-rpcs 16 --repetitions 1000",
    );
    let said = said
        .code(0)
        .out("  Message sizes:              [(0-EMPTY 1048578-BULK_PUT)]\n")
        .out("  Repetitions per size:       1000\n")
        .out("  Max in-flight RPCs:          16\n")
        .out(&format!("Master Endpoint 1:0\n{}\n", "-".repeat(19)))
        .out("\tRPC Failures: 0\n")
        .out("\t\t0:2 - ");
    let bandwidth = values(&said, "RPC Bandwidth (MB/sec)")[0];
    let throughput = values(&said, "RPC Throughput (RPCs/sec)")[0];
    let expected = throughput * 1_048_578.0 / 1_048_576.0;
    assert!(
        (bandwidth - expected).abs() <= 0.51,
        "{bandwidth} {expected}"
    );
}

#[test]
fn a2_three_pairs_of_sizes_have_three_blocks_in_their_order() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let said = self_test(
        &stage,
        "--endpoint 0:2 --message-size '(0 0) (b1048578 0) (0 b1048578)' \
         --max-inflight-rpcs 16 --repetitions 200",
    );
    let said = said.code(0);
    let titles = said
        .out
        .lines()
        .filter(|line| line.starts_with("Results for"));
    let titles: Vec<_> = titles.collect();
    assert_eq!(
        titles,
        [
            "Results for message size (0-EMPTY 0-EMPTY) (max_inflight_rpcs = 16):",
            "Results for message size (1048578-BULK_GET 0-EMPTY) (max_inflight_rpcs = 16):",
            "Results for message size (0-EMPTY 1048578-BULK_PUT) (max_inflight_rpcs = 16):",
        ]
    );
    assert_eq!(values(&said, "RPC Failures"), [0.0; 3]);
    assert!(!said.out.contains("Invalid message sizes tuple"));
}

/// Every endpoint of four ranks calls every rank.
fn cross_servers(stage: &Stage) {
    let said = self_test(
        stage,
        "--endpoint 0-3:0 --master-endpoint 0-3:0-1 \
         --message-sizes 'b1048576,b1048576 0,0 b1048576,i2048,i2048 0,0 i2048' \
         --max-inflight-rpcs 16 --repetitions 25",
    );
    let said = said.code(0).out("  Repetitions per size:       100\n");
    let blocks: Vec<_> = said.out.split(&"#".repeat(50)).skip(1).collect();
    assert_eq!(blocks.len(), 6, "{said}");
    for block in blocks {
        let masters = block
            .lines()
            .filter_map(|line| line.strip_prefix("Master Endpoint "));
        let masters: Vec<_> = masters.collect();
        assert_eq!(
            masters,
            ["0:0", "0:1", "1:0", "1:1", "2:0", "2:1", "3:0", "3:1"]
        );
        for rank in 0..4 {
            assert_eq!(
                block.matches(&format!("\t\t{rank}:0 - ")).count(),
                8,
                "{block}"
            );
        }
        assert_eq!(block.matches("RPC Failures: 0").count(), 8, "{block}");
    }
}

#[test]
fn a4_an_endpoint_that_stands_twice_gets_twice_the_rpcs() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--ranks 0-3 --tags 2");
    let words = "--endpoint 1-3,2:0-1 --message-sizes 0 --repetitions 300";
    let text = self_test(&stage, words).code(0);
    let text = text.out("Adding endpoints:\n  ranks: 1-3,2 (# ranks = 4)\n");
    // Whatever else is said of those that stand out by their latency.
    let listed = |line: &&str| line.starts_with("\t\t") && line.contains(" - ");
    assert_eq!(text.out.lines().filter(listed).count(), 6, "{text}");
    let said = self_test(&stage, &format!("{words} --output json")).code(0);
    let master = &masters(&said)[0][0];
    let of = |one: &serde_json::Value| {
        let at = &one["endpoint"];
        let count = one["succeeded"].as_u64().unwrap();
        (
            at["rank"].as_u64().unwrap(),
            at["tag"].as_u64().unwrap(),
            count,
        )
    };
    let each: Vec<_> = master["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(of)
        .collect();
    let expected = [
        (1, 0, 300),
        (1, 1, 300),
        (2, 0, 600),
        (2, 1, 600),
        (3, 0, 300),
        (3, 1, 300),
    ];
    assert_eq!(each, expected);
}

#[test]
fn a8_more_in_flight_than_repetitions_is_as_many() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let said = self_test(&stage, "-e 0:2 -s 0 -i 64 -r 3").code(0);
    said.out("  Max in-flight RPCs:          3\n");
}

#[test]
fn a13_a_stopped_server_shows_in_the_latency_from_intended_starts() {
    let stage = Stage::new();
    let server = Server::start(&stage, S1);
    let words = "self_test --path . -e 0:2 -s 0 --rate 10000 -r 30000 --warmup 0 --output json";
    let running = Running::start(stage.peer(&split(words)));
    server.works_for(5);
    server.signal(Signal::STOP);
    // The calls of this time are due while nobody answers: 4,000, and more where the machine is busy.
    std::thread::sleep(Duration::from_millis(400));
    server.signal(Signal::CONT);
    // To its end, so that all of them have been answered.
    let said = running.end().code(0);
    let master = &masters(&said)[0][0];
    let longest = |of: &str| master[of]["max"].as_u64().unwrap();
    assert!(longest("latency") >= 390_000_000, "{master}");
    // The calls that were due meanwhile are late; only those that were out took that long.
    let late = above(&master["latency"], 20_000_000);
    assert!(late >= 3000, "{late}");
    let served = above(&master["service"], 150_000_000);
    assert!(served >= 1 && 20 * served <= late, "{served} of {late}");
}

/// Number of values above `ns` nanoseconds.
fn above(histogram: &serde_json::Value, ns: u64) -> u64 {
    let histogram: weir_stats::Histogram = serde_json::from_value(histogram.clone()).unwrap();
    let late = histogram.buckets().filter(|bucket| bucket.low > ns);
    late.map(|bucket| bucket.count).sum()
}

#[test]
fn a19_requests_wait_for_buffers_of_a_slow_server_and_none_is_lost() {
    let stage = Stage::new();
    let _fast = [0, 1].map(|rank| Server::start(&stage, &format!("--rank {rank}")));
    let _slow = Server::start(&stage, "--rank 2 --service-time const:1000");
    let words = "-e 0-2:0 -i 16 -s b65536 -r 200 --output json";
    let said = self_test(&stage, words).code(0);
    let master = &masters(&said)[0][0];
    assert_eq!(master["succeeded"], 600);
    assert_eq!(master["failed"], 0);
    assert!(master["buffer_waits"].as_u64().unwrap() > 0, "{master}");
}

/// Time that a test goes on after its only server is killed, and its output.
fn after_a_kill(transport: &str) -> (Duration, Said) {
    let stage = Stage::new();
    let server = Server::start(&stage, &format!("{S1} --transport {transport}"));
    let words = "self_test -u --path . -e 0:2 -s 0 -r 1000000000 --warmup 0 --store-result r.json";
    let running = Running::start(stage.peer(&split(words)));
    until("the test has begun", || running.catches_signals());
    server.works_for(5);
    server.signal(Signal::KILL);
    let killed = Instant::now();
    let said = running.end().code(1);
    let took = killed.elapsed();
    let stored: serde_json::Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let master = &stored["groups"][0]["jobs"][0]["outcome"]["masters"][0];
    let [done, failed, left] =
        ["succeeded", "failed", "not_sent"].map(|part| master[part].as_u64().unwrap());
    assert_eq!(done + failed + left, 1_000_000_000, "{master}");
    assert!(
        done > 0 && (1..=16).contains(&failed) && left > 0,
        "{master}"
    );
    (took, said)
}

#[test]
fn f1_a_killed_server_ends_the_test_within_a_second_with_what_was_measured() {
    for transport in ["tcp://127.0.0.1:0", "shm://"] {
        // Unless this machine has too much to do just then.
        until("the end comes within a second", || {
            let (took, said) = after_a_kill(transport);
            let said = said.out("-DER_UNREACH (-1006)\n").out("\t+ Not sent: ");
            assert!(!said.out.contains("0:0 -"), "{said}");
            took < Duration::from_secs(1)
        });
    }
}

/// Four servers of which one is so slow that RPCs are out to it whenever it is killed.
fn third_is_slow(stage: &Stage) -> Vec<Server> {
    let start = |rank| {
        let busy = if rank == 2 { 100_000 } else { 100 };
        Server::start(stage, &format!("--rank {rank} --service-time const:{busy}"))
    };
    (0..4).map(start).collect()
}

#[test]
fn f2_one_of_four_servers_is_killed_and_the_others_go_on() {
    let stage = Stage::new();
    let servers = third_is_slow(&stage);
    let words =
        "self_test -u --path . -e 0-3:0 -s 0 --duration 2s --warmup 0 --store-result r.json";
    let running = Running::start(stage.peer(&split(words)));
    until("the test has begun", || running.catches_signals());
    servers[2].works_for(5);
    servers[2].signal(Signal::KILL);
    let said = running.end().code(1);
    let stored: serde_json::Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let master = &stored["groups"][0]["jobs"][0]["outcome"]["masters"][0];
    let of = |rank: usize| &master["endpoints"][rank];
    let lost = of(2)["failed"]["DER_UNREACH"].as_u64().unwrap();
    assert!((1..=16).contains(&lost), "{lost}");
    let sent = lost + of(2)["succeeded"].as_u64().unwrap();
    // Below the line of that rank.
    let lines = said.out.split_once("\t\t2:0 - ").unwrap().1;
    let lines: Vec<&str> = lines.lines().skip(1).take(3).collect();
    let failures = format!("\t\t\tFailures: {lost}/{sent}");
    let code = format!("\t\t\t{lost}: -DER_UNREACH (-1006)");
    assert_eq!(lines[..2], [failures, code], "{said}");
    assert!(lines[2].starts_with("\t\t3:0 - "), "{said}");
    let counts = [0, 1, 3].map(|rank| of(rank)["succeeded"].as_u64().unwrap());
    assert!(
        counts
            .iter()
            .all(|count| *count > of(2)["succeeded"].as_u64().unwrap())
    );
    assert!(
        [0, 1, 3]
            .iter()
            .all(|rank| of(*rank)["failed"] == serde_json::json!({}))
    );
}

#[test]
fn f2_one_of_four_servers_comes_back_and_takes_load_again() {
    let stage = Stage::new();
    let mut servers = third_is_slow(&stage);
    let words = "self_test -u --path . -e 0-3:0 -s 0 -r 200000000 --reconnect 10 --output json";
    let running = Running::start(stage.peer(&split(words)));
    until("the test has begun", || running.catches_signals());
    servers[2].works_for(5);
    let killed = servers.remove(2);
    killed.signal(Signal::KILL);
    assert_eq!(killed.wait(), None);
    // It ends by itself once it has answered.
    let again = Server::start(&stage, "--rank 2 --exit-after 100");
    assert_eq!(again.wait(), Some(0));
    running.signal(Signal::INT);
    let said = running.end().code(130);
    let master = &masters(&said)[0][0];
    let of = |rank: usize| &master["endpoints"][rank];
    assert!(
        of(2)["failed"]["DER_UNREACH"].as_u64().unwrap() >= 1,
        "{master}"
    );
    for rank in [0, 1, 3] {
        assert_eq!(of(rank)["failed"], serde_json::json!({}));
    }
}

#[test]
fn f2_the_only_server_comes_back_and_takes_load_again() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0 --service-time const:100000");
    let words = "self_test -u --path . -e 0:0 -s 0 -r 200000000 --reconnect 30 --output json";
    let running = Running::start(stage.peer(&split(words)));
    until("the test has begun", || running.catches_signals());
    server.works_for(5);
    server.signal(Signal::KILL);
    drop(server);
    // It ends by itself once it has answered.
    let again = Server::start(&stage, "--rank 0 --exit-after 100");
    assert_eq!(again.wait(), Some(0));
    running.signal(Signal::INT);
    let said = running.end();
    let master = &masters(&said)[0][0];
    assert!(master["failed"].as_u64().unwrap() >= 1, "{master}");
}

#[test]
fn calls_over_shared_memory_arrive_whole() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --tags 2 --transport shm://");
    let words = "-e 0:0-1 -s '(0 0) (b70000 i300) (i300 b1048578)' -r 200 --verify full";
    let said = self_test(&stage, words).code(0).out("\t+ Bulk path: shm\n");
    assert_eq!(values(&said, "RPC Failures"), [0.0; 3]);
}

#[test]
fn f15_a_missing_library_of_fabrics_is_named_and_other_transports_work() {
    let stage = Stage::new();
    let without = |words: &str| {
        let mut command = stage.called(&split(words));
        command.env("WEIR_LIBFABRIC", "/nonexistent/libfabric.so");
        crate::stage::said(command)
    };
    for words in [
        "self_test --loopback=1 --transport ofi+tcp -e 0:0 -s 0 -r 10",
        "rpc serve --path . --transport ofi+tcp://lo",
    ] {
        let said = without(words)
            .code(3)
            .err("libfabric not found (looked for ")
            .err("/nonexistent/libfabric.so");
        assert_eq!(said.err.lines().count(), 1, "{said}");
    }
    for transport in ["tcp", "shm"] {
        let words = format!("self_test --loopback=1 --transport {transport} -e 0:0 -s 0 -r 10");
        without(&words).code(0).out("RPC Failures: 0\n");
    }
}

#[test]
fn f14_an_interrupted_test_reports_what_it_measured() {
    let stage = Stage::new();
    let server = Server::start(&stage, S1);
    for (signal, number, code) in [(Signal::INT, 2, 130), (Signal::TERM, 15, 143)] {
        let words = "self_test -u --path . -e 0:2 -s 0 -r 1000000000 --warmup 0";
        let running = Running::start(stage.peer(&split(words)));
        until("the test has begun", || running.catches_signals());
        server.works_for(10);
        running.signal(signal);
        let said = running
            .end()
            .code(code)
            .out("RPC Throughput (RPCs/sec): ")
            .out("\t+ Not sent: ")
            .out(&format!(
                "+ Interrupted by signal {number}: not all was measured\n"
            ));
        assert!(values(&said, "RPC Throughput (RPCs/sec)")[0] > 0.0);
    }
}

#[test]
fn f14_an_interrupted_test_reports_what_masters_on_servers_measured() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--ranks 0-1");
    let alone = server.descriptors();
    let words = "self_test -u --path . -e 0-1:0 -m 0-1:0 -s 0 -r 100000000";
    let running = Running::start(stage.peer(&split(words)));
    // Two orders, and the calls of two masters to two ranks each: four sockets with both of their ends.
    until("the test runs", || server.descriptors() >= alone + 10);
    server.works_for(20);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    assert!(!said.out.contains("FAILED"), "{said}");
    assert_eq!(values(&said, "RPC Failures"), [0.0; 2]);
    let throughput = values(&said, "RPC Throughput (RPCs/sec)");
    assert!(
        throughput.len() == 2 && throughput.iter().all(|rate| *rate > 0.0),
        "{said}"
    );
}

#[test]
fn a_server_of_the_runs_own_answers() {
    let stage = Stage::new();
    let words = "self_test --loopback=4 -e 0:0-3 -s '(0 0) (i100 b70000)' -r 200";
    let said = stage.peer_says(&split(words)).code(0);
    assert_eq!(values(&said, "RPC Failures"), [0.0; 2]);
}
