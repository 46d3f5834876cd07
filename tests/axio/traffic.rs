//! Traffic that is asked for: rates, sizes in turn, a server that pauses or takes no more than a rate.

use rustix::process::Signal;
use serde_json::Value as Json;

use super::stage::{Running, Said, Stage, until};
use super::{stored, sum};

/// A run whose server sends every packet back, with values and flags.
fn echo(stage: &Stage, sets: &str, flags: &[&str]) -> Said {
    stage.file("c.conf", CONFIG);
    let mut words = vec![
        "axio",
        "-c",
        "c.conf",
        "--loopback",
        "--store-result",
        "r.json",
    ];
    for set in [
        "msg_timeout_ms=20000",
        "stall_timeout=30",
        "pkt_handler=Echo",
    ] {
        words.extend(["--set", set]);
    }
    for set in sets.split_whitespace() {
        words.extend(["--set", set]);
    }
    words.extend(flags);
    stage.peer_says(&words)
}

/// The same without a size of requests.
const CONFIG: &str = "\
msg_handler : L_APP
kAppCoreNum : 1
kDispQueueNum : 1
workload : 1 : TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 0 : 0 : 0
iteration : 1
duration : 1
";

/// The figure behind a word of the line of latencies, in microseconds.
fn latency(said: &Said, word: &str) -> f64 {
    let line = said.out.lines().find(|line| line.starts_with("latency, "));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    let after = line.split(&format!("{word} ")).nth(1).unwrap();
    let digits = after.trim_end_matches(',').split([',', ' ']).next();
    digits.unwrap().parse().unwrap()
}

#[test]
fn a_pause_of_the_server_is_seen_by_every_message_that_was_intended_in_it() {
    let stage = Stage::new();
    let pause = ["--inject-pause", "10ms"];
    let said = echo(&stage, "rate=100k inflight=0 duration=2 pool=2048", &pause).code(0);
    let kind = "open-loop (100000 messages/s, from their intended times";
    assert!(said.out.contains(kind), "{said}");
    let outcome = stored(&stage);
    let intended = sum(&outcome, "client", "intended");
    assert!(intended.abs_diff(200_000) <= 200, "{intended}");
    let begun = sum(&outcome, "client", "application_tx.packets");
    assert!(begun <= intended, "{begun} of {intended}");
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{said}");
    // A machine that does other things adds to these; it cannot take away.
    assert!(latency(&said, "max") >= 9500.0, "{said}");
    assert!(latency(&said, "p99.9") >= 7500.0, "{said}");
    // A window stops with its server: what it did not send has no latency.
    // This pause is longer than what such a machine makes by itself, and than how late a client on it may send.
    let long = ["--inject-pause", "300ms"];
    let closed = echo(&stage, "inflight=32 duration=0.7", &long).code(0);
    let kind = "closed-loop (32 in flight per workspace)";
    assert!(closed.out.contains(kind), "{closed}");
    assert!(latency(&closed, "max") >= 150_000.0, "{closed}");
}

#[test]
fn of_a_rate_that_is_too_high_every_message_is_in_a_figure() {
    let stage = Stage::new();
    // One packet a message, and two.
    for size in [64, 3000] {
        let sets = format!("rate=100M inflight=0 duration=0.3 req_size={size} ring=64 nic_ring=64");
        let said = echo(&stage, &sets, &[]).code(0);
        let outcome = stored(&stage);
        let client = |path: &str| sum(&outcome, "client", path);
        assert_eq!(client("lost"), 0, "{said}");
        assert_eq!(client("application_drops"), 0, "{said}");
        let packets = u64::from(size > 2048) + 1;
        let begun = client("application_tx.packets") / packets;
        let answered = client("application_rx.packets") / packets;
        let after = client("answered_after_end");
        let both = format!("{begun} begun, {answered} answered, {after} after the end: {said}");
        assert!(after > 0 && begun == answered + after, "{both}");
        assert_eq!(client("latency.count"), begun, "{said}");
        let unbegun = client("intended") - begun;
        let says = format!("from their intended times, without {unbegun} never begun), us: ");
        said.out(&says).out(": generator-limited\n");
    }
}

#[test]
fn a_client_whose_messages_are_all_given_up_has_stalled() {
    let stage = Stage::new();
    // Between two windows of messages none is under way.
    let sets =
        "pkt_handler=Empty inflight=32 msg_timeout_ms=1 stall_timeout=1 duration=4 iteration=1";
    let said = echo(&stage, sets, &["--inject-pause", "1900ms"]).code(1);
    said.err("no message of client 0 was answered for 1.00 s");
}

#[test]
fn a_client_that_nothing_came_back_to_has_stalled_before_its_time_to_stall() {
    let stage = Stage::new();
    let sets = "inflight=32 msg_timeout_ms=300 duration=0.1 iteration=2";
    let said = echo(&stage, sets, &["--inject-loss", "99.9999"]).code(1);
    said.err("no message of client 0 was answered for 200 ms; 0 were answered before");
    // The window is smaller than a batch, and the flush is due later.
    let sets = "inflight=16 flush_us=1000000 msg_timeout_ms=10 duration=0.2 iteration=1";
    let said = echo(&stage, sets, &["--force"]).code(1);
    said.err("no message of client 0 was answered for 200 ms");
}

#[test]
fn the_longest_pause_between_passes_ends_with_its_iteration() {
    let stage = Stage::new();
    let sets = "loop_interval_ns=1e15 duration=0.1 iteration=3";
    let said = echo(&stage, sets, &[]).code(0);
    assert_eq!(said.out.matches("Perf Statistics").count(), 3, "{said}");
}

#[test]
fn a_signal_ends_the_longest_pause_between_passes() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let mut words = vec!["axio", "-c", "c.conf", "--loopback"];
    for set in ["loop_interval_ns=1e15", "duration=1000", "iteration=1"] {
        words.extend(["--set", set]);
    }
    let running = Running::start(stage.peer(&words));
    until("it catches signals", || running.catches_signals());
    // Both sides have made their first pass by then.
    std::thread::sleep(std::time::Duration::from_millis(500));
    running.signal(Signal::INT);
    let said = running.end().code(130);
    assert!(!said.err.contains("left behind"), "{said}");
}

#[test]
fn that_nothing_is_answered_is_said_below_a_table_without_packets() {
    let stage = Stage::new();
    let sets = "pkt_handler=Empty msg_handler=Empty duration=0.1";
    let said = echo(&stage, sets, &[]).code(0);
    said.out("End-to-end is 0: msg_handler Empty answers nothing (pkt_handler : Echo does)\n");
}

#[test]
fn twelve_thousand_frames_of_the_simple_mix_are_seven_four_and_one_of_each_twelve() {
    let stage = Stage::new();
    let said = echo(&stage, "imix=simple messages=12000 duration=1", &[]).code(0);
    let sizes = "frames of requests, with the frame check: 7000 of 64, 4000 of 594, 1000 of 1518\n";
    assert!(said.out.contains(sizes), "{said}");
    let outcome = stored(&stage);
    let sizes = &outcome["iterations"][0]["threads"][0]["request_sizes"];
    let counts: Vec<u64> = (0..3)
        .filter_map(|at| sizes[at]["messages"].as_u64())
        .collect();
    assert_eq!(counts, [7000, 4000, 1000]);
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{said}");
    assert_eq!(sum(&outcome, "client", "application_rx.packets"), 12_000);
    let again = stage.say(&["show", "r.json"]).code(0);
    assert_eq!(again.out, said.out);
    let letters = "imix=aab messages=300 duration=0.2 pkt_handler=Empty";
    echo(&stage, letters, &[])
        .code(0)
        .out("200 of 64, 100 of 128\n");
}

#[test]
fn a_sink_takes_its_rate_and_a_bucket_and_counts_what_it_drops() {
    let stage = Stage::new();
    let said = echo(
        &stage,
        "rate=400k inflight=0 duration=0.5 msg_timeout_ms=250 pool=2048",
        &["--sink-rate", "300k"],
    )
    .code(0);
    let outcome = stored(&stage);
    let begun = sum(&outcome, "client", "application_tx.packets");
    let dropped = sum(&outcome, "server", "sink_drops");
    assert!(begun > 0 && dropped > 0, "{said}");
    let lost = sum(&outcome, "client", "lost");
    // What was begun takes as long as its number, by the clock of the rate.
    // Fewer buffers than the ring to the dispatcher has slots: none is dropped there.
    let taken = begun - dropped;
    let may = begun * 3 / 4 + 64;
    // Parts of packets are cut off here and there.
    assert!(taken.abs_diff(may) <= 2, "{taken} of {may}: {said}");
    assert_eq!(dropped, lost, "{said}");
    said.out(&format!("packets that the sink did not take: {dropped}\n"));
}

#[test]
fn the_rate_of_a_line_is_looked_up() {
    let stage = Stage::new();
    let one = stage.peer_says(&["axio", "linerate", "10G", "64"]).code(0);
    assert_eq!(one.out, "14880952\n");
    let all = stage
        .peer_says(&["axio", "linerate", "10G", "--format", "json"])
        .code(0);
    let all: Json = serde_json::from_str(&all.out).unwrap();
    let per_s = |at: usize| all["frames"][at]["frames_per_s"].as_u64().unwrap();
    let known = [
        14_880_952, 8_445_946, 4_528_986, 2_349_624, 1_197_318, 961_538, 812_744,
    ];
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(per_s), known);
    let half = ["--set", "rate=50%", "--set", "line_rate=10G", "--show-plan"];
    let plan = stage.peer_says(&[&["axio", "--example", "echo"], &half[..]].concat());
    // The example's frames have 64 bytes and four of their check.
    plan.code(0).out("\"messages_per_s\": 7102273");
}

/// Values and flags that are refused, and what is said of them.
const REFUSED: &[(&str, &[&str], &str)] = &[
    ("rate=0", &[], "rate: `0` (valid: messages per second, 1 to"),
    ("rate=50%", &[], "line_rate, which is missing"),
    ("rate=101% line_rate=10G", &[], "rate: `101%` (valid:"),
    ("rate=1bps", &[], "these are 0.00 messages per second"),
    (
        "line_rate=fast",
        &[],
        "line_rate: `fast` (valid: bits per second",
    ),
    (
        "imix=simples",
        &[],
        "imix: `simples` (valid: simple, or letters",
    ),
    (
        "imix=aij",
        &[],
        "frames of 9000 bytes do not fit: mtu 2048 takes up to 2066",
    ),
    ("imix=aa req_size=22", &[], "req_size says another size"),
    ("messages=0", &[], "messages: `0` (valid: a number, from 1)"),
    (
        "",
        &["--sink-rate", "0"],
        "--sink-rate 0: expected packets per second",
    ),
    (
        "",
        &["--sink-rate", "1Gbps"],
        "--sink-rate 1Gbps: expected packets per second",
    ),
    (
        "",
        &["--inject-pause", "10"],
        "--inject-pause 10: expected a time with its unit",
    ),
    (
        "",
        &["--inject-pause", "2s"],
        "it is longer than half of the run",
    ),
];

#[test]
fn traffic_that_cannot_be_is_refused_before_anything_runs() {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    for (sets, flags, why) in REFUSED {
        let mut words = vec!["axio", "-c", "c.conf", "--loopback"];
        for set in sets.split_whitespace() {
            words.extend(["--set", set]);
        }
        words.extend(*flags);
        stage.peer_says(&words).code(2).err(why);
    }
    let keys = "msg_handler=KV";
    let words = [
        "axio",
        "-c",
        "c.conf",
        "--loopback",
        "--set",
        "imix=simple",
        "--set",
        keys,
    ];
    stage
        .peer_says(&words)
        .code(2)
        .err("the messages of this msg_handler have one size");
    let client = [
        "axio",
        "-c",
        "c.conf",
        "--client",
        "--set",
        "backend=udp",
        "--inject-pause",
        "1ms",
    ];
    stage
        .peer_says(&client)
        .code(2)
        .err("--inject-pause acts on the server");
}

#[test]
fn by_the_verb_the_report_has_the_time_of_each_stage() {
    let stage = Stage::new();
    let said = stage.say(&[
        "axio",
        "--example",
        "echo",
        "--set=duration=0.2",
        "--set=iteration=1",
        "--set=stall_timeout=30",
    ]);
    let said = said.code(0);
    let client = ["app_tx", "disp_tx", "disp_rx", "app_rx"].map(|stage| ("client", stage));
    // Its dispatcher answers.
    for (side, stage) in client.into_iter().chain([("server", "disp_rx")]) {
        assert!(
            said.out.contains(&format!("\n  {side}    {stage} ")),
            "{said}"
        );
    }
}
