//! Messages of a self-test about its own figures: both latencies of an open loop, a client that was
//! the limit, other load on its CPUs, the rate of masters together; and the effect of variables.

mod slow;

use serde_json::Value;

use crate::servers::{S1, Server, masters, self_test, split};
use crate::stage::{Said, Stage, said, until};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn in_an_open_loop_both_latencies_are_printed() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --service-time const:1000");
    let words = "-e 0:0 -s 0 --duration 300ms --percentiles 50,99";
    let said = self_test(&stage, &format!("{words} --rate 5000")).code(0);
    let line = |label: &str| -> Vec<f64> {
        let found = said.out.lines().find_map(|line| line.strip_prefix(label));
        let figures = found
            .unwrap_or_else(|| panic!("{label}\n{said}"))
            .split(", ");
        let figure = |part: &str| part.rsplit_once(' ').unwrap().1.parse().unwrap();
        figures.map(figure).collect()
    };
    let latency = line("\t+ Latency, from when due (us): ");
    let service = line("\t+ Service, from when sent (us): ");
    assert_eq!((latency.len(), service.len()), (3, 3));
    // Five RPCs are due in the time of one: they wait before they are sent.
    for (due, sent) in latency.iter().zip(&service) {
        assert!(due > sent, "{said}");
    }
    let closed = self_test(&stage, "-e 0:0 -s 0 -r 100").code(0);
    assert!(!closed.out.contains("+ Service"), "{closed}");
}

#[test]
fn a_client_that_never_waits_is_the_limit() {
    let stage = Stage::new();
    let words = "self_test --transport null:// -e 0:0 -s 0 -i 16 -r 300000 --warmup 0";
    // Unless others had its CPU meanwhile.
    until("it has a CPU of its own", || {
        let said = stage.peer_says(&split(words)).code(0);
        said.out.contains("\t+ Client-bound: its threads worked ")
    });
    let words = format!("{words} --rate 100000000");
    let paced = stage.peer_says(&split(&words)).code(0);
    assert!(!paced.out.contains("Client-bound"), "{paced}");
}

#[test]
fn threads_that_share_cpus_are_warned_of_once() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let words = format!(
        "self_test --transport null:// -e 0:0 -s '(0 0) (i8 0)' --duration 600ms --threads {}",
        cpus + 1
    );
    let said = Stage::new().peer_says(&split(&words)).code(0);
    let warned = said
        .err
        .lines()
        .filter(|line| line.starts_with("warning: "));
    let shared: Vec<&str> = warned.filter(|line| line.contains("share")).collect();
    assert_eq!(shared.len(), 1, "{said}");
    assert!(!said.out.contains("warning"), "{said}");
    let one = words.replace(&format!("--threads {}", cpus + 1), "-r 1000 --verbose");
    let one = one.replace("--duration 600ms ", "");
    let said = Stage::new().peer_says(&split(&one)).code(0);
    said.out("+ Load average before the run: ");
}

#[test]
fn masters_are_added_up_over_the_time_in_which_all_were_at_work() {
    let stage = Stage::new();
    let _fast = Server::start(&stage, "--ranks 0-1");
    let _slow = Server::start(&stage, "--rank 2 --service-time const:200");
    let words = "-e 0-1:0 -m 0-1:0 -s 0 -i 4 -r 3000 --store-result r.json";
    let said = self_test(&stage, words).code(0);
    let said = said
        .out("Aggregate of 2 masters\n")
        .out("\t+ At work at the same time: ");
    let stored: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let masters = stored["groups"][0]["jobs"][0]["outcome"]["masters"]
        .as_array()
        .unwrap();
    let of = |master: &Value, part: &str| number(&master["span"][part]);
    for master in masters {
        let took = of(master, "end_ns") - of(master, "start_ns");
        assert!(
            (took - number(&master["duration_ns"])).abs() < 1.0,
            "{master}"
        );
    }
    let start = masters
        .iter()
        .map(|one| of(one, "start_ns"))
        .fold(0.0, f64::max);
    let end = masters
        .iter()
        .map(|one| of(one, "end_ns"))
        .fold(f64::MAX, f64::min);
    assert!(start < end, "{said}");
    let (_, block) = said.out.split_once("Aggregate of 2 masters").unwrap();
    let throughput = block.split_once("RPC Throughput (RPCs/sec): ").unwrap().1;
    let throughput: f64 = throughput.lines().next().unwrap().parse().unwrap();
    // All that was done, in no less than the common time.
    assert!(throughput > 0.0 && throughput <= 12_000.0 / ((end - start) / 1e9) + 1.0);
}

#[test]
fn every_rank_is_asked_first_unless_that_is_left_out() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0");
    let gone = Server::start(&stage, "--rank 1");
    gone.signal(rustix::process::Signal::KILL);
    assert_eq!(gone.wait(), None);
    let words = "self_test --path . -e 0:0 -s 0 -r 10";
    let attempt = |more: &str| stage.peer_says(&split(&format!("{words} {more}")));
    attempt("").code(3).err("rank 1").err("refused");
    attempt("-n").code(0);
    attempt("-u").code(0);
}

#[test]
fn a_link_with_the_older_programs_name_warms_up_briefly() {
    let stage = Stage::new();
    let words = ["--loopback", "-i", "4", "--show-plan"];
    let warmup = |said: Said| {
        let plan: Value = serde_json::from_str(&said.code(0).out).unwrap();
        plan["groups"][0]["jobs"][0]["workload"]["warmup"].clone()
    };
    let brief = serde_json::json!({"name": "requests", "count": 8});
    assert_eq!(warmup(crate::selftest(&stage, &words)), brief);
    let by_verb = stage.weir(&[&["selftest"], &words[..]].concat());
    assert_eq!(warmup(said(crate::quiet(by_verb)))["name"], "automatic");
}

#[test]
fn reading_the_parts_of_a_long_reply_is_work_of_the_client() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let words = "-e 0:0 -s '0 b512k' -i 1 -r 2000 --warmup 0 --poll block --output json";
    let said = self_test(&stage, words).code(0);
    let master = &masters(&said)[0][0];
    let cpu = number(&master["cpu"]["user_ns"]) + number(&master["cpu"]["system_ns"]);
    // Whoever sleeps between replies uses its CPU for nothing else.
    let share = cpu / number(&master["duration_ns"]);
    assert!(number(&master["busy"]) > share / 2.0, "{share} {master}");
}

/// A self-test with variables.
fn with(stage: &Stage, variables: &[(&str, &str)], words: &str) -> Said {
    let mut command = stage.peer(&split(&format!("self_test -u --path . {words}")));
    command.envs(variables.iter().copied());
    said(command)
}

#[test]
fn a_quota_limits_all_rpcs_of_a_thread() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let words = "-e 0:0-2 -s 0 -r 2000 -i 16 --warmup 0";
    let limited = with(
        &stage,
        &[("D_QUOTA_RPCS", "2")],
        &format!("{words} --output json"),
    );
    let limited = limited.code(0).err("D_QUOTA_RPCS=2");
    let master = masters(&limited)[0][0].clone();
    // The wait is no latency.
    assert!(number(&master["effective_in_flight"]) <= 2.0, "{master}");
    assert!(number(&master["credit_wait_ns"]) > 0.0, "{master}");
    let text = with(&stage, &[("D_QUOTA_RPCS", "2")], words).code(0);
    text.out("\t+ Effective in-flight: ")
        .out("\t+ Waits for credits: ");
    let free = with(&stage, &[("D_QUOTA_RPCS", "0")], words).code(0);
    assert!(!free.out.contains("Waits for credits"), "{free}");
}

#[test]
fn only_addresses_of_the_kind_that_is_asked_for_are_used() {
    let stage = Stage::new();
    let _server = Server::start(&stage, S1);
    let attempt = |kind: &str| with(&stage, &[("D_ADDR_FORMAT", kind)], "-e 0:2 -s 0 -r 10");
    attempt("ipv4").code(0).err("D_ADDR_FORMAT=ipv4");
    attempt("ipv6").code(3).err("no IPv6 address");
    attempt("unspec").code(0);
    attempt("x25")
        .code(2)
        .err("the variable D_ADDR_FORMAT=x25: it takes unspec, ipv4");
}

#[test]
fn a_log_has_what_was_said_as_far_as_its_mask_goes() {
    let stage = Stage::new();
    let _server = Server::start(&stage, "--rank 0 --table-format cart");
    let table = "daos_server.attach_info_tmp";
    stage.file(table, stage.read(table).replace("size 1\n", "size 5\n"));
    // A note, a warning and an error.
    let words = "-t -e 0:0 -s 0 -r 10 --store-result /dev/full";
    let logged = |mask: &str, file: &str| {
        let variables = [("D_LOG_FILE", file), ("D_LOG_MASK", mask)];
        let said = with(&stage, &variables, words).code(1);
        let log = stage.read(file);
        assert!(said.err.len() >= log.len());
        ["note: ", "warning: ", "/dev/full"].map(|part| log.contains(part))
    };
    assert_eq!(logged("DEBUG", "all"), [true, true, true]);
    assert_eq!(logged("WARN,RPC=DEBUG", "warnings"), [false, true, true]);
    assert_eq!(logged("ERR", "errors"), [false, false, true]);
    let variables = [("D_LOG_FILE", "/nonexistent/x")];
    with(&stage, &variables, words)
        .code(2)
        .err("the variable D_LOG_FILE: /nonexistent/x");
    with(&stage, &[("D_LOG_MASK", "x")], words)
        .code(2)
        .err("the variable D_LOG_MASK=x: it takes");
}
