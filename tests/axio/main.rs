//! `axio` by its name, as a user sees it: tables, the verifier, what is lost and what comes back, bad input.
//!
//! The acceptance cases of the packet data path, and where they are:
//!
//! | case | is in |
//! |---|---|
//! | 1, 2 the verifier's rules | `bad_input`, `configuration` |
//! | 3 `-p`, `-v`, no `-c`, a misspelt key | `bad_input` |
//! | 6, 7 loopback over rings; columns of the table | here |
//! | 8 sizes on a wire, MTU | `wire_sizes`, `xdp`, `two_sides` |
//! | 9 a window that is smaller than a batch | `bad_input` |
//! | 10 loss, a killed side, an interrupt | here, `two_sides`, `interrupts` |
//! | 11 two programs over shared memory and over `AF_XDP` | `backends`, `two_sides` |
//! | 12 backends that are not there | `backends`, `xdp` |
//! | 17 long answers by several workers; questions for addresses | here, `dpdk`; `copy_link` of `weir-datapath` |
//! | 19 more iterations than a byte holds; a value that is missing | `configuration`, `bad_input` |
//! | 20 what timing costs | `timing_cost` |
//! | 21 inflated messages | here; handlers of `weir-datapath` |
//! | 22 echoes; a packet at the wrong dispatcher | here |
//! | 4, 5, 13 diagnosis and host facts; 18 tuning | the tests of `weir diagnose`, `weir monitor`, `weir tune` |
//! | 14 to 16 rates, searches, mixes | the tests of traffic |
//!
//! A stage alone is in `one_stage`. What a pool does that runs out is in `pools`, what becomes of a side whose other side is in trouble in
//! `troubled_peers`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod backends;
mod bad_input;
mod configuration;
mod interrupts;
mod losses;
mod one_stage;
mod pools;
mod searches;
mod server_command;
mod slow;
#[path = "../stage/mod.rs"]
mod stage;
mod timing_cost;
mod tools;
mod traffic;
mod troubled_peers;
mod two_sides;

use serde_json::Value as Json;
use stage::{Said, Stage};

/// Workloads that send to each other in a ring of workspaces, as the sender's configuration of the seed.
const SEND: &str = "\
role : loopback
msg_handler : L_APP
kAppCoreNum : 4
kDispQueueNum : 4
workload : 1 : TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 0 : 0 : 0
workload : 2 : TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 1 : 1 : 1
workload : 3 : TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 2 : 2 : 2
workload : 4 : TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 3 : 3 : 3
iteration : 2
duration : 0.1
msg_timeout_ms : 20000
stall_timeout : 30
";

/// A run of one of weir's own configurations, with some values replaced.
fn example(stage: &Stage, name: &str, sets: &str) -> Said {
    // On a machine that does other things as well a thread may wait long for its turn.
    let patient = ["--set", "msg_timeout_ms=20000", "--set", "stall_timeout=30"];
    let mut words = vec!["axio", "--example", name, "--store-result", "r.json"];
    words.extend(patient);
    for set in sets.split_whitespace() {
        words.extend(["--set", set]);
    }
    stage.peer_says(&words)
}

/// The packet path of the stored result.
fn stored(stage: &Stage) -> Json {
    stored_as(stage, "r.json")
}

/// The same of a result in another file.
fn stored_as(stage: &Stage, file: &str) -> Json {
    let all: Json = serde_json::from_str(&stage.read(file)).unwrap();
    all["groups"][0]["jobs"][0]["outcome"].clone()
}

/// The sum of a figure over all threads of a side: `lost`, `application_rx.packets`.
fn sum(outcome: &Json, side: &str, path: &str) -> u64 {
    let iterations = outcome["iterations"].as_array().unwrap().iter();
    let threads = iterations.flat_map(|one| one["threads"].as_array().unwrap());
    let of = |thread: &Json| {
        let value = path.split('.').fold(thread, |at, name| &at[name]);
        value.as_u64().unwrap_or_else(|| panic!("{path}: {value}"))
    };
    threads.filter(|one| one["side"] == side).map(of).sum()
}

#[test]
fn the_example_prints_a_table_of_nine_rows_for_each_iteration() {
    let stage = Stage::new();
    let said = example(&stage, "echo", "duration=0.2").code(0);
    let dashes = "-".repeat(207);
    assert_eq!(said.out.matches(&dashes).count(), 6, "{said}");
    assert_eq!(said.out.matches("Perf Statistics").count(), 2, "{said}");
    let names = [
        "End-to-end",
        "app_tx",
        "app_rx",
        "disp_tx",
        "disp_rx",
        "nic_tx",
        "nic_rx",
    ];
    for name in names {
        let rows = said
            .out
            .lines()
            .filter(|line| line.starts_with(&format!("{name} ")));
        assert_eq!(rows.count(), 2, "{name}: {said}");
    }
    let row = said
        .out
        .lines()
        .find(|line| line.starts_with("app_rx"))
        .unwrap();
    // A receiver has no stalls: the shortest is what stands for none.
    assert_eq!(&row[100..108], "9999.000", "{row}");
    let header = said
        .out
        .lines()
        .find(|line| line.starts_with("Perf"))
        .unwrap();
    for (column, at) in [
        ("Thpl. (Mpps)", 20),
        ("Avg. [/P]", 40),
        ("Avg Coml. [/B]", 180),
    ] {
        assert_eq!(header.find(column), Some(at));
    }
    assert!(said.out.ends_with("idle: yield\n") || said.out.ends_with("idle: spin\n"));
    assert!(said.out.contains("\npool in use 0\n"), "{said}");
}

#[test]
fn a_stored_result_prints_the_same_tables_again() {
    let stage = Stage::new();
    let live = example(&stage, "scan", "duration=0.1").code(0);
    let again = stage.say(&["show", "r.json"]).code(0);
    assert_eq!(live.out, again.out);
    let both = stage.say(&["show", "r.json", "--both"]).code(0);
    assert_eq!(both.out.matches("Perf Statistics").count(), 4, "{both}");
    stage
        .say(&["show", "r.json", "--format", "json"])
        .code(0)
        .out("weir.result");
    stage
        .say(&["show", "r.json", "--as", "run"])
        .code(0)
        .out("packet rate");
}

#[test]
fn every_message_comes_back_and_every_buffer_comes_home_with_each_handler() {
    let sets = [
        "msg_handler=T_APP",
        "msg_handler=L_APP req_size=86 resp_size=86",
        "msg_handler=M_APP req_size=86 resp_size=86 new_buffers=1",
        "msg_handler=KV req_size=97 resp_size=97",
        "msg_handler=FS_WRITE req_size=16384 inflight=128",
        "msg_handler=FS_READ resp_size=102400 inflight=64 kAppRxMsgBatchSize=8",
        "msg_handler=FileDecompress req_size=2m inflight=4 kAppTxMsgBatchSize=2 kAppRxMsgBatchSize=2",
    ];
    for set in sets {
        let stage = Stage::new();
        let said = example(&stage, "scan", &format!("duration=0.2 {set}")).code(0);
        let outcome = stored(&stage);
        let both = |path: &str| sum(&outcome, "client", path) + sum(&outcome, "server", path);
        for none in ["lost", "late", "incomplete", "wrong", "strays", "misrouted"] {
            assert_eq!(both(none), 0, "{set}: {none}\n{said}");
        }
        assert_eq!(
            both("application_drops") + both("dispatch_drops"),
            0,
            "{set}\n{said}"
        );
        assert_eq!(outcome["buffers_in_use"], 0, "{set}\n{said}");
        let (sent, back) = (
            sum(&outcome, "client", "application_tx.packets"),
            sum(&outcome, "client", "application_rx.packets"),
        );
        assert!(sent > 0 && back > 0, "{set}: {sent} {back}\n{said}");
    }
}

#[test]
fn a_sink_answers_nothing_and_nothing_stops() {
    let stage = Stage::new();
    let said = example(&stage, "scan", "duration=0.1 msg_handler=Empty").code(0);
    let outcome = stored(&stage);
    // More than may be in flight: nobody waits for answers that do not come.
    assert!(
        sum(&outcome, "server", "application_rx.packets") > 2048,
        "{said}"
    );
    assert_eq!(
        sum(&outcome, "client", "application_rx.packets"),
        0,
        "{said}"
    );
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{said}");
    assert_eq!(outcome["buffers_in_use"], 0, "{said}");
}

#[test]
fn dispatchers_that_echo_leave_the_workers_idle() {
    let stage = Stage::new();
    let said = example(&stage, "echo", "duration=0.1").code(0);
    let outcome = stored(&stage);
    assert_eq!(
        sum(&outcome, "server", "application_rx.packets"),
        0,
        "{said}"
    );
    let sent = sum(&outcome, "server", "link_tx.packets");
    let received = sum(&outcome, "server", "dispatch_rx.packets");
    assert!(received > 0 && received - sent <= 2048, "{received} {sent}");
}

#[test]
fn four_workloads_keep_to_their_own_workspaces() {
    let stage = Stage::new();
    stage.file("send.conf", SEND);
    let words = ["axio", "-c", "send.conf", "--store-result", "r.json"];
    let said = stage.peer_says(&words).code(0);
    said.out("Total launched 8 threads!")
        .out("Workspace 3 is assigned to workload 4, dispatcher 3");
    let outcome = stored(&stage);
    for thread in outcome["iterations"][0]["threads"].as_array().unwrap() {
        assert!(
            thread["application_rx"]["packets"].as_u64().unwrap() > 0,
            "{thread}"
        );
        assert_eq!(thread["misrouted"], 0);
    }
    assert_eq!(outcome["buffers_in_use"], 0);
}

#[test]
fn a_packet_that_comes_to_the_wrong_dispatcher_is_handed_over_and_counted() {
    let stage = Stage::new();
    stage.file("send.conf", SEND);
    let crossed = "workload=2:TxApplication,TxDispatcher,RXDispatcher,RxApplication:0:1:1";
    let words = [
        "axio",
        "-c",
        "send.conf",
        "--set",
        crossed,
        "--store-result",
        "r.json",
    ];
    stage.peer_says(&words).code(0);
    let outcome = stored(&stage);
    assert!(sum(&outcome, "server", "misrouted") > 0);
    // Answers come to the wrong one as well.
    assert!(sum(&outcome, "client", "misrouted") > 0);
    assert_eq!(
        sum(&outcome, "client", "lost") + sum(&outcome, "server", "strays"),
        0
    );
    assert_eq!(outcome["buffers_in_use"], 0);
}

#[test]
fn one_message_of_another_stream_is_handed_over_once_and_answered() {
    let stage = Stage::new();
    let stream = "TxApplication,TxDispatcher,RXDispatcher,RxApplication";
    // The second one sends to the dispatcher of the first.
    let config = format!(
        "role : loopback\nmsg_handler : L_APP\nkAppCoreNum : 2\nkDispQueueNum : 2\n\
         workload : 1 : {stream} : 0 : 0 : 0\nworkload : 2 : {stream} : 0 : 1 : 1\n\
         rate : 10\niteration : 1\nduration : 0.2\nmsg_timeout_ms : 20000\nstall_timeout : 30\n"
    );
    stage.file("c.conf", config);
    let words = ["axio", "-c", "c.conf", "--store-result", "r.json"];
    let said = stage.peer_says(&words).code(0);
    let outcome = stored(&stage);
    let server = |path: &str| sum(&outcome, "server", path);
    assert_eq!(server("application_rx.packets"), 2, "{said}");
    assert_eq!(server("misrouted"), 1, "{said}");
    for thread in outcome["iterations"][0]["threads"].as_array().unwrap() {
        assert_eq!(thread["application_rx"]["packets"], 1, "{thread}");
    }
    assert_eq!(sum(&outcome, "client", "lost"), 0, "{said}");
}

#[test]
fn what_is_sent_comes_back_with_more_workspaces_than_cores_which_a_note_says() {
    let stage = Stage::new();
    stage.file("send.conf", SEND);
    let words = ["axio", "-c", "send.conf", "--store-result", "r.json"];
    let said = stage.peer_says(&words).code(0);
    assert_eq!(said.out.matches("Perf Statistics").count(), 2, "{said}");
    let cpus = std::thread::available_parallelism().unwrap().get();
    let note = format!("note: 8 workspaces share {cpus} CPUs: none has one of its own");
    assert_eq!(said.err.contains(&note), cpus < 8, "{said}");
    let outcome = stored(&stage);
    let [sent, back] = ["application_tx.packets", "application_rx.packets"]
        .map(|path| sum(&outcome, "client", path));
    // Of each of four workspaces a window may be under way when an iteration is over.
    let most = (sent / 100).max(2 * 1024 * 4);
    assert!(back > 0 && sent.abs_diff(back) <= most, "{sent} {back}");
    let both = |path: &str| sum(&outcome, "client", path) + sum(&outcome, "server", path);
    for none in ["lost", "application_drops", "dispatch_drops"] {
        assert_eq!(both(none), 0, "{none}: {said}");
    }
    said.out("\npool in use 0\n");
}

#[test]
fn several_workers_of_a_group_get_whole_messages() {
    let stage = Stage::new();
    let config = "role : loopback\nkAppCoreNum : 3\nkDispQueueNum : 1\n\
                  kAppRxMsgBatchSize : 4\nkAppTxMsgBatchSize : 4\nkDispTxBatchSize : 4\ninflight : 16\n\
                  workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0-2 : 0\n\
                  iteration : 1\nduration : 0.3\nmsg_timeout_ms : 20000\nstall_timeout : 30\n";
    stage.file("group.conf", config);
    // Answers of 51 packets, then requests of 9.
    for (handler, side, packets) in [("FS_READ", "client", 51), ("FS_WRITE", "server", 9)] {
        let set = format!("msg_handler={handler}");
        let words = ["axio", "-c", "group.conf", "--set", &set];
        let said = stage.peer_says(&[&words[..], &["--store-result", "r.json"]].concat());
        let said = said.code(0);
        let outcome = stored(&stage);
        for thread in outcome["iterations"][0]["threads"].as_array().unwrap() {
            let taken = thread["application_rx"]["packets"].as_u64().unwrap();
            assert!(taken > 0, "{said}");
            if thread["side"] == side {
                assert_eq!(taken % packets, 0, "{said}");
            }
        }
        assert_eq!(sum(&outcome, side, "incomplete"), 0, "{said}");
    }
}

#[test]
fn what_is_dropped_on_purpose_is_lost_and_the_run_goes_on() {
    let stage = Stage::new();
    let words = [
        "axio",
        "--example",
        "scan",
        "--inject-loss",
        "1%",
        "--store-result",
        "r.json",
        "--set",
        "duration=0.2",
        "--set",
        "msg_timeout_ms=200",
    ];
    let said = stage.peer_says(&words).code(0);
    let outcome = stored(&stage);
    let dropped = sum(&outcome, "client", "dropped_on_purpose");
    let lost = sum(&outcome, "client", "lost");
    assert!(dropped > 0, "{said}");
    // An answer that was given up and came after all is late, and was not dropped.
    let late = sum(&outcome, "client", "late");
    let lost = lost - late;
    // What is dropped while the last messages come back is not counted.
    assert!(lost.abs_diff(dropped) <= 64, "{lost} of {dropped}\n{said}");
    let sent = sum(&outcome, "client", "application_tx.packets");
    assert!(
        (sent / 200..sent / 50).contains(&dropped),
        "{dropped} of {sent}"
    );
    assert_eq!(outcome["buffers_in_use"], 0);
}

#[test]
fn a_run_in_which_nothing_comes_back_fails_and_says_so() {
    let stage = Stage::new();
    let words = [
        "axio",
        "--example",
        "scan",
        "--inject-loss",
        "99.9999",
        "--set",
        "duration=20",
        "--set",
        "stall_timeout=0.2",
        "--set",
        "msg_timeout_ms=10000",
        "--set",
        "inflight=32",
    ];
    stage.peer_says(&words).code(1).err("was answered for 200");
}

#[test]
fn untimed_passes_count_packets_all_the_same() {
    let stage = Stage::new();
    for (which, is_timed) in [("off", false), ("1/8", true), ("all", true)] {
        let set = format!("duration=0.1 stage_timing={which}");
        example(&stage, "scan", &set).code(0);
        let outcome = stored(&stage);
        assert!(sum(&outcome, "client", "application_rx.packets") > 0);
        let received = sum(&outcome, "client", "link_rx.packets");
        assert_eq!(received, sum(&outcome, "client", "dispatch_rx.packets"));
        let timed = sum(&outcome, "client", "application_rx.timed_packets");
        assert_eq!(timed > 0, is_timed, "{which}");
    }
}

#[test]
fn the_time_of_a_thread_is_accounted_for_by_its_stages() {
    let stage = Stage::new();
    example(&stage, "scan", "duration=0.5 iteration=1 idle=spin").code(0);
    let outcome = stored(&stage);
    let all = |path: &str| sum(&outcome, "client", path) + sum(&outcome, "server", path);
    let stages = [
        "application_tx",
        "application_rx",
        "dispatch_tx",
        "dispatch_rx",
    ];
    let busy: u64 = stages
        .iter()
        .map(|stage| all(&format!("{stage}.busy_ns")))
        .sum();
    let (known, timed) = (busy + all("idle_ns"), all("timed_ns"));
    assert!(
        known <= timed && known > timed / 20 * 19,
        "{known} of {timed}"
    );
}

#[test]
fn requests_of_16_kib_are_nine_packets() {
    let stage = Stage::new();
    let set = "duration=0.1 iteration=1 msg_handler=FS_WRITE req_size=16384 inflight=64 kAppTxMsgBatchSize=8";
    example(&stage, "scan", set).code(0);
    let outcome = stored(&stage);
    let sent = sum(&outcome, "client", "application_tx.packets");
    assert!(sent > 0 && sent.is_multiple_of(9), "{sent}");
}
