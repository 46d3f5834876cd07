//! Work of a self-test besides calling all endpoints at once: pairs one by one, a search for a
//! rate, several runs, samples, first calls, many connections; and its report about slow servers.

mod slow;

use rustix::process::Signal;
use serde_json::Value;

use crate::servers::{S1, Server, is_long, masters, self_test, split};
use crate::stage::{Running, Said, Stage, peer, said, until};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// A fast server of rank 0, and one of rank 1 that takes 200 µs for each RPC.
fn fast_and_slow(stage: &Stage) -> [Server; 2] {
    ["--rank 0", "--rank 1 --service-time const:200"].map(|words| Server::start(stage, words))
}

#[test]
fn in_a_matrix_an_endpoint_is_called_while_no_other_is() {
    let stage = Stage::new();
    let _servers = fast_and_slow(&stage);
    let words = "-e 0-1:0 -s 0 -i 4 -r 500 --matrix";
    let said = self_test(&stage, &format!("{words} --output json")).code(0);
    let master = &masters(&said)[0][0];
    assert_eq!(
        (&master["succeeded"], &master["not_sent"]),
        (&1000.into(), &0.into())
    );
    let turn = |rank: usize| number(&master["endpoints"][rank]["turn_ns"]);
    let slow = 500 * 200_000;
    assert!(turn(1) >= slow, "{master}");
    assert!(
        turn(0) > 0 && turn(0) + slow <= number(&master["duration_ns"]),
        "{master}"
    );
    self_test(&stage, words)
        .code(0)
        .out("+ Latency of each pair (us): who calls down, who is called across\n")
        .out("+ Throughput of each pair (RPCs/sec): who calls down");
}

#[test]
fn a_plan_of_a_matrix_is_reported_pair_by_pair() {
    let stage = Stage::new();
    let words = "self_test --transport null -e 0:0-1 -s 0 -r 100 --matrix --show-plan";
    stage.file("plan.json", stage.peer_says(&split(words)).code(0).out);
    let said = stage.say(&split("run plan.json --history off")).code(0);
    let said = said.out("  pair by pair ");
    let rows = said
        .out
        .lines()
        .filter(|line| line.trim_start().starts_with("to 0:"));
    let rows: Vec<&str> = rows.collect();
    // Each with its own rate.
    assert_eq!(rows.len(), 2, "{said}");
    assert!(rows.iter().all(|row| row.contains("ops/s")), "{said}");
    let words = "self_test --loopback -e 0:0 -s 0 -r 10 --first --show-plan";
    stage.file("first.json", stage.peer_says(&split(words)).code(0).out);
    let said = stage.say(&split("run first.json --history off")).code(0);
    said.out("first ").out(" to connect");
}

#[test]
fn in_a_matrix_masters_on_servers_call_one_after_another() {
    let stage = Stage::new();
    let _servers = fast_and_slow(&stage);
    let words = "-e 0-1:0 -m 0-1:0 -s b4k -r 50 --matrix --store-result r.json";
    let said = self_test(&stage, words).code(0);
    assert!(!said.out.contains("Aggregate"), "{said}");
    let table = said
        .out
        .split("+ Bandwidth of each pair (MB/sec)")
        .nth(1)
        .unwrap();
    let cells = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let rows: Vec<_> = table.lines().skip(1).take(3).map(cells).collect();
    assert_eq!(rows[0], ["+", "0:0", "1:0"]);
    for (row, name) in rows[1..].iter().zip(["0:0", "1:0"]) {
        assert_eq!(row[1], name);
        let figures = row[2..].iter().map(|cell| cell.parse::<f64>().unwrap());
        assert_eq!(figures.filter(|figure| *figure > 0.0).count(), 2, "{said}");
    }
    let stored: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let masters = &stored["groups"][0]["jobs"][0]["outcome"]["masters"];
    let span = |master: usize| {
        let ends = masters[master]["endpoints"].as_array().unwrap().iter();
        ends.map(|one| number(&one["turn_ns"])).sum::<u64>()
    };
    assert!(span(0) > 0 && span(1) > 0, "{masters}");
    stage
        .say(&["show", "r.json"])
        .code(0)
        .out("+ Bandwidth of each pair");
    let page = stage.say(&split("report r.json --format svg --plot pair-latency"));
    page.code(0).out("<svg");
}

#[test]
fn the_highest_rate_that_keeps_a_percentile_is_searched_for() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --service-time const:100");
    // A number of RPCs bounds each step, so that a busy machine finds a rate too: one of a few a second.
    let words = "-e 0:0 -s 0 --find-max p50<1s --repetitions-per-size 10 --store-result r.json";
    let said = self_test(&stage, words).code(0);
    let found = said.out.split("+ Found: ").nth(1);
    let found = found.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    // Nobody is faster than one RPC in 100 µs.
    let found = found.unwrap_or_else(|| panic!("{said}"));
    assert!(found > 0.0 && found <= 10_000.0, "{said}");
    assert_eq!(
        said.out.matches("Results for message size").count(),
        1,
        "{said}"
    );
    let stored: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let steps = stored["groups"].as_array().unwrap().len();
    assert!((3..=26).contains(&steps), "{said}");
    let jobs = stored["plan"]["groups"].as_array().unwrap();
    let rate = |group: &Value| {
        group["jobs"][0]["workload"]
            .to_string()
            .contains("open_loop")
    };
    assert_eq!(jobs.iter().filter(|group| rate(group)).count(), steps - 1);
    assert_eq!(stage.say(&["show", "r.json"]).code(0).out, said.out);
}

#[test]
fn a_limit_that_no_rate_keeps_is_a_failure() {
    let stage = Stage::new();
    let words = "self_test --transport null:// -e 0:0 -s 0 -i 1 --warmup 0 --find-max p50<1ns \
                 --repetitions-per-size 3 --history off";
    stage
        .peer_says(&split(words))
        .code(1)
        .out("+ None of these rates keeps it\n");
}

#[test]
fn a_rate_that_is_not_kept_fails_where_it_has_to_be() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --service-time const:1000");
    let words = "-e 0:0 -s 0 --rate 5000 --duration 300ms";
    self_test(&stage, words)
        .code(0)
        .out("\t+ The rate was not kept\n");
    self_test(&stage, &format!("{words} --strict=rate-not-reached")).code(1);
}

#[test]
fn several_runs_are_one_measurement() {
    let stage = Stage::new();
    let words = "selftest --transport null:// -e 0:0 -s 0 -r 1000 --warmup 0 --repeat 3 --format json \
                 --history off";
    let said = stage.say(&split(words)).code(0);
    let runs: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        runs["series"][0]["runs"].as_array().unwrap().len(),
        3,
        "{runs}"
    );
}

#[test]
fn samples_of_a_run_are_read_as_what_it_measured() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let words = "-e 0:0-1 -s i64 -i 4 -r 100 --samples s --output json";
    let measured = self_test(&stage, words).code(0);
    for masters in counted_alike(&stage, &measured) {
        assert_eq!(masters[0][0]["endpoints"][1]["succeeded"], 100);
        assert_eq!(masters[0][0]["samples"].as_array().unwrap().len(), 200);
    }
    let samples = stage.read("s");
    let first = samples.lines().nth(3).unwrap();
    assert!(first.ends_with(",0,0,0"), "{first}");
    // The end of a run that reaches nobody any more.
    stage
        .peer_says(&split("self_test --replay s"))
        .code(0)
        .out("RPC Failures: 0\n");
}

/// That a report of samples has the counts and latencies of the run, and its end; the masters of each.
fn counted_alike(stage: &Stage, measured: &Said) -> [Vec<Vec<Value>>; 2] {
    let again = stage.peer_says(&split("self_test --replay s --output json"));
    assert_eq!(again.code, measured.code, "{again}");
    let both = [masters(measured), masters(&again)];
    let counts = |master: &Value| {
        let fields = [
            "endpoint",
            "requested",
            "succeeded",
            "failed",
            "not_sent",
            "mismatches",
            "duration_ns",
            "figures",
            "latency",
            "samples",
        ];
        let ends = master["endpoints"].as_array().unwrap().iter();
        let ends =
            ends.filter(|one| one["succeeded"] != 0 || one["failed"] != serde_json::json!({}));
        let of_each = ["endpoint", "succeeded", "failed", "median_ns", "latency"];
        let ends = ends.map(|one| of_each.map(|field| one[field].clone()));
        (
            fields.map(|field| master[field].clone()),
            ends.collect::<Vec<_>>(),
        )
    };
    let all = |masters: &[Vec<Value>]| masters.iter().flatten().map(counts).collect::<Vec<_>>();
    assert_eq!(all(&both[0]), all(&both[1]));
    both
}

#[test]
fn a_report_of_samples_ends_as_the_run_that_stored_them() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --allow-master no");
    let words = "-e 0:0 -m 0:0 -s 0 -r 10 --samples s --output json";
    counted_alike(&stage, &self_test(&stage, words).code(3));
    let words = split("self_test --replay s");
    stage
        .peer_says(&words)
        .code(3)
        .out("Master Endpoint 0:0 FAILED: ")
        .out("-1001");
}

#[test]
fn samples_of_masters_on_servers_are_theirs() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--ranks 0-1");
    let words = "-e 0-1:0 -m 0-1:0 -s '(0 0) (i64 0)' -i 4 -r 25 --samples s --output json";
    let measured = self_test(&stage, words).code(0);
    let [measured, again] = counted_alike(&stage, &measured);
    assert_eq!((measured.len(), again.len()), (2, 2));
    for again in again.iter().flatten() {
        assert_eq!(again["endpoints"][1]["succeeded"], 25);
    }
    assert_eq!(stage.read("s").matches("# tuple ").count(), 4);
    // What they did at the same time was measured by none of them alone.
    let text = stage.peer_says(&split("self_test --replay s")).code(0);
    let text = text.out("Aggregate of 2 masters\n\t+ Samples do not say when");
    assert!(!text.out.contains("At work at the same time"), "{text}");
}

#[test]
fn a_matrix_of_samples_is_that_of_the_run() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--ranks 0-1");
    let words = "-e 0-1:0 -m 0-1:0 -s '(0 0) (i64 0)' -i 4 -r 25 --matrix --samples s";
    let measured = self_test(&stage, words).code(0);
    let again = stage.peer_says(&split("self_test --replay s")).code(0);
    let matrices = |said: &Said| -> Vec<String> {
        let lines = said.out.lines().filter(|line| line.starts_with("+ "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(matrices(&measured), matrices(&again));
    // A title, endpoints and two masters, twice for each pair of sizes.
    assert!(matrices(&again).len() >= 16, "{again}");
    assert!(!again.out.contains("Aggregate"), "{again}");
}

#[test]
fn the_first_rpc_has_a_time_of_its_own() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --tags 2 --service-time const:2000");
    let words = "-e 0:0-1 -s '(0 0) (b4k 0)' -r 5 --first";
    let said = self_test(&stage, &format!("{words} --output json")).code(0);
    for block in masters(&said) {
        assert_eq!(
            block[0]["succeeded"], 10,
            "the first is none of those that count"
        );
        for endpoint in block[0]["endpoints"].as_array().unwrap() {
            let first = &endpoint["first"];
            assert!(number(&first["connect_ns"]) > 0, "{first}");
            assert!(number(&first["rpc_ns"]) >= 2_000_000, "{first}");
        }
    }
    let text = self_test(&stage, words).code(0);
    assert_eq!(
        text.out
            .matches("\t+ First of 0:1 (us): connection ")
            .count(),
        2,
        "{text}"
    );
}

#[test]
fn f8_a_storm_of_connections_is_answered() {
    let wanted: u64 = if is_long() { 10_000 } else { 1000 };
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0");
    let before = server.descriptors();
    let said = self_test(&stage, &format!("-e 0:0 -s 0 --connect-storm {wanted}")).code(0);
    let made = said.out.split_once("\t+ Connections: ").unwrap().1;
    let made: Vec<u64> = made
        .lines()
        .next()
        .unwrap()
        .split(" of ")
        .map(|count| count.parse().unwrap())
        .collect();
    assert_eq!(made[0], made[1], "{said}");
    // Fewer only where this machine does not allow for more files, which is said.
    let note = format!("note: --connect-storm {wanted}: a process may have ");
    assert_eq!(made[0] < wanted, said.err.contains(&note), "{said}");
    said.out("\tRPC Failures: 0\n");
    until("all are gone", || server.descriptors() == before);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn every_one_of_many_connections_has_its_rpc() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let words = "-e 0:0-2 -s 0 --connect-storm 200";
    let all = self_test(&stage, words).code(0);
    all.out("\t+ Connections: 200 of 200\n")
        .out("\tRPC Failures: 0\n");
    let few = |soft: &str| -> Said {
        let mut command = stage.command("/bin/sh");
        command.args([
            "-c",
            &format!("ulimit -n {soft}; exec \"$0\" \"$@\""),
            peer("self_test"),
        ]);
        command.args(split(&format!("-u --path . {words}")));
        said(command)
    };
    few("164")
        .code(0)
        .err("note: --connect-storm 200: a process may have 164 files open here: 100 connections\n")
        .out("\t+ Connections: 100 of 100\n");
    // Only the soft limit is small: it is raised.
    few("-S 100").code(0).out("\t+ Connections: 200 of 200\n");
}

#[test]
fn a_server_that_stops_is_told_of_while_it_does() {
    let stage = Stage::new();
    let server = Server::start(&stage, S1);
    let words = "self_test -u --path . -e 0:2 -s 0 -r 1000000000 --stall-timeout 0.2";
    let running = Running::start(stage.peer(&split(words)));
    until("the test has begun", || running.catches_signals());
    server.works_for(10);
    server.signal(Signal::STOP);
    running.waits_for_err("no RPC has ended for 200");
    server.signal(Signal::CONT);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    assert_eq!(
        said.err.matches("no RPC has ended for 200").count(),
        1,
        "{said}"
    );
}

#[test]
fn an_endpoint_that_stands_out_is_named() {
    let stage = Stage::new();
    let _fast = Server::start(&stage, "--ranks 0-3");
    let _slow = Server::start(&stage, "--rank 4 --service-time const:20000");
    let words = "-e 0-4:0 -s 0 -i 1 -r 10";
    let said = self_test(&stage, words).code(0);
    let line = said
        .out
        .lines()
        .find(|line| line.contains("+ Slow endpoints (us): "));
    assert!(line.is_some_and(|line| line.contains("4:0 - ")), "{said}");
    let said = self_test(&stage, &format!("{words} --output json")).code(0);
    let master = &masters(&said)[0][0];
    assert_eq!(master["endpoints"][4]["is_slow"], true, "{master}");
}
