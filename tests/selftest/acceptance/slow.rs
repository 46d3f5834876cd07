//! Slow tests: figures of long runs, over fabrics too.

use super::{Said, Server, Stage, Value, mean, number, only_master, self_test, skip, split, until};

#[test]
fn a14_a_servers_time_is_in_each_latency_and_nothing_else_is() {
    for transport in ["tcp", "shm"] {
        // Both sides spin: one server at a time, or there are more of them than CPUs.
        let of = |serve: &str, tests: &[&str]| -> Vec<Value> {
            let stage = Stage::new();
            let addresses = "--transport tcp://127.0.0.1:0,shm://";
            let _server =
                Server::start(&stage, &format!("--rank 0 {addresses} --poll busy {serve}"));
            let run = |test: &&str| {
                let words = format!(
                    "-e 0:0 -s 0 --poll busy --warmup 100 --output json --transport {transport} {test}"
                );
                only_master(&self_test(&stage, &words).code(0))
            };
            tests.iter().map(run).collect()
        };
        let median = |master: &Value| number(&master["figures"]["median_ns"]);
        let is_as_long_as_it_should = || {
            let base = if crate::servers::is_long() {
                median(&of("", &["-i 1 -r 2000"])[0])
            } else {
                0.0
            };
            let busy = of(
                "--service-time const:100",
                &["-i 1 -r 1000", "-i 8 -r 4000"],
            );
            let [one, many] = [&busy[0], &busy[1]];
            // Whatever else the machine does, this holds.
            assert!(number(&one["latency"]["min"]) >= 100_000.0, "{one}");
            let throughput = 4000.0 / (number(&many["duration_ns"]) / 1e9);
            assert!(throughput <= 10_000.0, "{throughput}");
            let in_flight = number(&many["effective_in_flight"]);
            assert!((in_flight - 8.0).abs() <= 0.03 * 8.0, "{in_flight}");
            // The rest of a latency is what it is without that time, and others wait in it.
            let rest = median(one) - 100_000.0;
            let alone = 1e9 / median(one);
            println!("{transport}: base {base} rest {rest} throughput {throughput}");
            (rest - base).abs() <= 10_000.0_f64.max(base) && throughput >= 0.9 * alone
        };
        let is_so = is_as_long_as_it_should();
        // Without CPUs of its own, as beside other tests, no latency is known before.
        if crate::servers::is_long() {
            let what = format!("{transport} has the CPUs for itself");
            until(&what, || is_so || is_as_long_as_it_should());
        }
    }
}

#[test]
fn a15_rate_times_latency_is_what_is_in_flight() {
    for transport in ["tcp", "shm", "ofi+tcp", "ofi+shm"] {
        let stage = Stage::new();
        let words = "self_test --loopback=1 -e 0:0 -s 0 -i 16 -r 100000 --output json --transport";
        let mut words = split(words);
        words.push(transport);
        let said = stage.peer_says(&words);
        if said.err.contains("libfabric not found") {
            skip(
                &format!("a15_rate_times_latency over {transport}"),
                "no libfabric",
            );
            continue;
        }
        // Each call is counted from its sending to its end, so the product is an identity. It is the limit
        // where the program has the CPUs for itself.
        let try_once = |said: &Said| {
            let master = only_master(said);
            let in_flight = number(&master["effective_in_flight"]);
            let rate = number(&master["succeeded"]) / number(&master["duration_ns"]);
            let product = rate * mean(&master["latency"]);
            assert!(
                (product - in_flight).abs() <= 0.02 * in_flight,
                "{product} {master}"
            );
            assert!(
                (1.0..=16.001).contains(&in_flight),
                "{transport}: {in_flight}"
            );
            (in_flight - 16.0).abs() <= 0.02 * 16.0
        };
        if !try_once(&said.code(0)) && crate::servers::is_long() {
            let what = format!("{transport} has the CPUs for itself");
            until(&what, || try_once(&stage.peer_says(&words).code(0)));
        }
    }
}
