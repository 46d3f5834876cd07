//! The verifier, and what is refused before anything runs.

use serde_json::json;

use super::stage::{Said, Stage};
use super::{Json, SEND, example};

/// A configuration with a line replaced, looked at with these words.
fn looked_at(from: &str, to: &str, words: &[&str]) -> Said {
    let stage = Stage::new();
    assert!(SEND.contains(from));
    stage.file("c.conf", SEND.replace(from, to));
    stage.peer_says(&[&["axio", "tools", "-c", "c.conf"], words].concat())
}

#[test]
fn the_verifier_says_which_rule_is_broken_in_the_words_of_the_older_one() {
    looked_at("k", "k", &["-v"])
        .code(0)
        .out("==========Tunable Parameter Verification Passed==========");
    let apps = "kAppCoreNum : 4";
    looked_at(apps, "kAppCoreNum : 5", &["-v"])
        .code(1)
        .err("Invalid configuration: kAppCoreNum should be 4");
    looked_at("kDispQueueNum : 4", "kDispQueueNum : 5", &["-v"])
        .code(1)
        .err("Invalid configuration: kDispQueueNum should be 4");
    let two = ": 0 : 0|5 : 0\n";
    looked_at(": 0 : 0 : 0\n", two, &["-v"])
        .code(1)
        .err("kAppCoreNum should be 5");
    looked_at(": 0 : 0 : 0\n", ": 0 : 0 : 0,5\n", &["-v"])
        .code(1)
        .err("Invalid configuration: each disp group should have only one core");
    let stage = Stage::new();
    let both = SEND
        .replace(": 0 : 0 : 0\n", two)
        .replace(apps, "kAppCoreNum : 5");
    stage.file("c.conf", both);
    stage
        .peer_says(&["axio", "tools", "-c", "c.conf", "-v"])
        .code(1)
        .err("Invalid configuration: disp group should be equal to app group");
}

#[test]
fn dispatchers_shared_by_workloads_count_twice_and_are_warned_of() {
    let stage = Stage::new();
    let shared = "kAppCoreNum : 6\nkDispQueueNum : 3\nrole : loopback\n\
        workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0,1|2,3 : 0|2\n\
        workload : 2 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 2 : 4,5 : 0\n";
    stage.file("c.conf", shared);
    let said = stage.peer_says(&["axio", "verify", "-c", "c.conf"]).code(0);
    said.err("dispatcher 0 serves workloads 1 and 2");
    stage
        .peer_says(&["axio", "verify", "-c", "c.conf", "--strict"])
        .code(1);
    for (from, to, why) in [
        (
            "kAppCoreNum : 6",
            "kAppCoreNum : 4",
            "kAppCoreNum should be 6",
        ),
        (
            "kDispQueueNum : 3",
            "kDispQueueNum : 2",
            "kDispQueueNum should be 3",
        ),
    ] {
        stage.file("d.conf", shared.replace(from, to));
        stage
            .peer_says(&["axio", "verify", "-c", "d.conf"])
            .code(1)
            .err(why);
    }
}

#[test]
fn the_tunable_numbers_are_printed_in_the_order_of_their_names_before_the_verdict() {
    let said = looked_at("k", "k", &["-p", "-v"]).code(0);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(
        lines[0],
        "==========Current Tunable Parameter Values:=========="
    );
    assert_eq!(lines[1], "kAppCoreNum: 4");
    assert!(lines[1..9].is_sorted(), "{said}");
    assert_eq!(lines.len(), 10, "{said}");
    let stage = Stage::new();
    let none = stage.peer_says(&["axio", "tools", "-p"]).code(1);
    none.err("[ERROR] Please specify the configuration file via -c");
}

/// Lines of a configuration, and what is said of them.
const WRONG_LINES: &[(&str, &str)] = &[
    (
        "kAppCoreNumm : 4",
        "c.conf:1: no key `kAppCoreNumm`; did you mean kAppCoreNum?",
    ),
    (
        "kAppCoreNum 4",
        "c.conf:1: `kAppCoreNum 4`: expected `key : value`",
    ),
    ("numa :", "c.conf:1: numa: a value is missing"),
    (
        "kDispTxBatchSize : 513",
        "c.conf:1: kDispTxBatchSize: Dispatcher TX batch size is too large: 513",
    ),
    (
        "kNICTxPostSize : 0",
        "c.conf:1: kNICTxPostSize: `0` (valid: 1 to 512)",
    ),
    (
        "iteration : 300\niteration : 3",
        "c.conf:2: iteration: it is there already, in line 1",
    ),
    (
        "local_mac : 1.2.3",
        "c.conf:1: local_mac: `1.2.3` (valid: six bytes)",
    ),
    (
        "rate : 0",
        "c.conf:1: rate: `0` (valid: messages per second, 1 to 1000000000, as 250000",
    ),
    (
        "backend : dpdk",
        "c.conf:1: backend: `dpdk` (valid: ring, shm:PATH, udp, packet:INTERFACE",
    ),
    (
        "workload : 1 : TxApplication, RXNICC : 0 : 0 : 0",
        "no phase `RXNICC` (valid: TxApplication,",
    ),
    (
        "workload : 1 : TxNIC : 0 : 3-1 : 0",
        "`3-1`: expected numbers from 0 to 15",
    ),
    (
        "workload : 1 : TxNIC : 0 : 0,1,0 : 0",
        "c.conf:1: workload: `0,1,0`: 0 is there twice",
    ),
    (
        "workload : 1 : TxNIC : 2,2 : 0 : 0",
        "c.conf:1: workload: `2,2`: 2 is there twice",
    ),
    (
        "msg_handler : FileDecompress\nreq_size : 22",
        "c.conf:2: req_size: `22`: 22 B has room for 6 bytes of payload; inflated data needs 16, a message of 32 B",
    ),
    (
        "workload : 16 : TxNIC : 0 : 0 : 0",
        "its number is not from 0 to 15",
    ),
    (
        "workload : 1 : TxNIC : 0 : 0 : 0\nworkload : 1 : TxNIC : 0 : 1 : 1",
        "c.conf:2: workload: 1 is there already, in line 1",
    ),
];

#[test]
fn bad_lines_are_refused_by_name_and_number_before_anything_runs() {
    let stage = Stage::new();
    for (text, why) in WRONG_LINES {
        stage.file("c.conf", text);
        stage.peer_says(&["axio", "-c", "c.conf"]).code(2).err(why);
    }
}

#[test]
fn all_that_is_wrong_is_said_in_the_order_of_lines() {
    let stage = Stage::new();
    let text = "inflight : x\nnuma\nduration : 0\n\
        workload : 1 : TxNIC : 0 : 0 : 0,1\nworkload : 1 : Tx : 0 : 0 : 0\n";
    stage.file("c.conf", text);
    let said = stage.peer_says(&["axio", "-c", "c.conf"]).code(2);
    let begins = |line: &str| line.chars().take(15).collect::<String>();
    let lines: Vec<String> = said.err.lines().map(begins).collect();
    let wanted = [1, 2, 3, 4, 5, 5].map(|line| format!("error: c.conf:{line}"));
    assert_eq!(lines, wanted, "{said}");
}

#[test]
fn forms_and_words_without_effect_are_refused_or_noted() {
    let stage = Stage::new();
    for (words, why) in [
        (
            &["--backend", "list", "--format", "json"][..],
            "--format has no effect with --backend list",
        ),
        (
            &["show", "--example", "echo", "--format", "json"],
            "--format has no effect with `weir axio show`",
        ),
        (&["show"], "please specify the configuration file via -c"),
        (&["verify"], "please specify the configuration file via -c"),
    ] {
        stage
            .peer_says(&[&["axio"], words].concat())
            .code(2)
            .err(why);
    }
    let idle =
        "work_ns=5 msg_handler=Empty pkt_handler=Echo mgmt_port=9 duration=0.1 role=loopback";
    let said = example(&stage, "scan", idle).code(0);
    said.err("work_ns: without effect: pkt_handler Echo")
        .err("msg_handler: without effect: pkt_handler Echo")
        .err("mgmt_port: without effect: both sides are in one process");
    let both = "axio --example scan --set duration=0.1 --set iteration=1 --both --format json";
    let both: Vec<&str> = both.split(' ').collect();
    stage
        .peer_says(&both)
        .code(0)
        .err("--both: without effect: the JSON has both sides");
}

#[test]
fn bad_words_are_refused_by_name_before_anything_runs() {
    let stage = Stage::new();
    for (words, why) in [
        (
            &["axio", "-c", "absent.conf"][..],
            "Failed to open config file: absent.conf",
        ),
        (&["axio"], "please specify the configuration file via -c"),
        (
            &["axio", "--example", "echo", "--inject-loss", "x"],
            "--inject-loss x: it takes percent",
        ),
        (&["axio", "verfy"], "did you mean `weir axio verify`?"),
        (
            &["axio", "-d", "log"],
            "--diagnose acts only with `weir axio tools`",
        ),
    ] {
        stage.peer_says(words).code(2).err(why);
    }
}

#[test]
fn what_cannot_flow_is_explained_before_the_run() {
    let stage = Stage::new();
    example(&stage, "scan", "inflight=16")
        .code(2)
        .err("inflight 16 is smaller than kAppTxMsgBatchSize 32 (client): the pipeline would stop");
    let small = "inflight=16 kAppTxMsgBatchSize=16";
    example(&stage, "scan", small)
        .code(2)
        .err("inflight 16 is smaller than kAppRxMsgBatchSize 32 (server): the pipeline would stop");
    let forced = [
        "axio",
        "--example",
        "scan",
        "--set",
        "inflight=16",
        "--set",
        "duration=0.1",
        "--force",
    ];
    stage.peer_says(&forced).code(0).out("End-to-end");
    let fits =
        "inflight=16 kAppTxMsgBatchSize=16 kAppRxMsgBatchSize=16 kDispTxBatchSize=16 duration=0.1";
    example(&stage, "scan", fits).code(0);
    example(&stage, "scan", "msg_handler=FileDecompress req_size=2m")
        .code(2)
        .err("Mempool size is too small: 32 messages of 1039 packets need 33248 buffers");
    let no_rx = "workload=1:TxApplication,TxDispatcher,RxApplication:0:0:0";
    example(&stage, "scan", no_rx)
        .code(2)
        .err("stream 1 has no stage `dispatch_rx`");
    example(
        &stage,
        "scan",
        "workload=1:TxApplication,TxDispatcher,RXDispatcher,RxApplication:5:0:0",
    )
    .code(2)
    .err("sends to 5, which is no dispatcher of the other side");
    example(&stage, "scan", "numa=77")
        .code(3)
        .err("there is no memory node 77");
}

#[test]
fn three_hundred_iterations_are_three_hundred() {
    let stage = Stage::new();
    let said = stage.peer_says(&[
        "axio",
        "--example",
        "echo",
        "--set",
        "iteration=300",
        "--show-plan",
    ]);
    said.code(0).out("\"iterations\": 300");
}

#[test]
fn a_plan_that_repeats_a_number_is_refused_by_its_stream() {
    let stage = Stage::new();
    stage.file("c.conf", SEND);
    let shown = stage
        .peer_says(&["axio", "-c", "c.conf", "--show-plan"])
        .code(0);
    for (place, value, why) in [
        ("/peers", json!([3, 0, 3]), "stream 1 sends to 3 twice"),
        ("/id", json!(2), "stream 2 is there twice"),
        (
            "/groups/0/threads",
            json!([0, 0]),
            "thread 0 makes messages of two groups",
        ),
    ] {
        let mut plan: Json = serde_json::from_str(&shown.out).unwrap();
        let place = format!("/groups/0/jobs/0/workload/streams/0{place}");
        *plan.pointer_mut(&place).unwrap() = value;
        stage.file("odd.json", plan.to_string());
        stage.say(&["run", "odd.json"]).code(2).err(why);
    }
}

#[test]
fn what_is_written_replaces_neither_the_configuration_nor_each_other() {
    let stage = Stage::in_memory();
    let config = "role : loopback\nkAppCoreNum : 1\nkDispQueueNum : 1\niteration : 1\nduration : 0.05\n\
                  workload : 0 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0\n";
    stage.file("c", config);
    for (words, says) in [
        (
            "--store-result c",
            "c: this file is where the result goes (--store-result), and the configuration too",
        ),
        (
            "--monitor ./c",
            "./c: this file is where --monitor goes, and the configuration too",
        ),
        (
            "--monitor m --store-result m",
            "m: this file is where the result goes (--store-result), and where --monitor goes too",
        ),
    ] {
        let words: Vec<&str> = ["axio", "-c", "c"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        stage.peer_says(&words).code(2).silent().err(says);
    }
    assert_eq!(stage.read("c"), config);
}

#[test]
fn a_configuration_without_a_word_in_it_is_refused_by_its_file() {
    let stage = Stage::new();
    stage.file("empty.conf", "");
    stage.file("words.conf", "# later\nrole : loopback\n");
    for file in ["empty.conf", "words.conf"] {
        for verb in [&["axio"][..], &["axio", "verify"], &["axio", "show"]] {
            let words = [verb, &["-c", file]].concat();
            let why = format!("error: {file}: there is no workload line");
            stage.peer_says(&words).code(2).err(&why);
        }
    }
    let why = "error: empty.conf: it is empty";
    stage.say(&["tune", "-c", "empty.conf"]).code(2).err(why);
}

#[test]
fn a_byte_order_mark_before_a_configuration_is_none_of_its_words() {
    let stage = Stage::new();
    stage.file("c.conf", format!("\u{feff}{SEND}"));
    stage.file("w.conf", "\u{feff}kAppCoreNumm : 4\n");
    stage.peer_says(&["axio", "verify", "-c", "c.conf"]).code(0);
    stage.peer_says(&["axio", "-c", "c.conf"]).code(0);
    let wrong = stage.peer_says(&["axio", "verify", "-c", "w.conf"]).code(2);
    wrong.err("w.conf:1: no key `kAppCoreNumm`; did you mean kAppCoreNum?");
    let words = "tune -c c.conf --vary kDispTxBatchSize=32,64 -t 3";
    stage.file("c.conf", format!("\u{feff}kDispTxBatchSize : 32\n{SEND}"));
    stage
        .say(&words.split(' ').collect::<Vec<_>>())
        .code(0)
        .out("kept: ");
    let kept = stage.read("c.conf.out");
    assert!(kept.starts_with("kDispTxBatchSize : "), "{kept}");
}

#[test]
fn passes_that_are_timed_are_named_by_their_flag_in_every_role() {
    let stage = Stage::new();
    stage.file("c.conf", SEND);
    let flag = ["--stage-timing", "some"];
    for role in ["--loopback", "--server", "--client"] {
        let words = ["axio", "-c", "c.conf", role, "--backend", "udp"];
        stage
            .peer_says(&[&words[..], &flag].concat())
            .code(2)
            .err("--stage-timing: `some` (valid: all, off, 1/N)");
    }
    for verb in ["ndr", "rfc2544", "verify", "show"] {
        stage
            .peer_says(&[&["axio", verb, "-c", "c.conf"], &flag[..]].concat())
            .code(2)
            .err("--stage-timing");
    }
    for verb in ["selftest", "linerate"] {
        let said = stage.peer_says(&[&["axio", verb], &flag[..]].concat());
        said.code(2).err("--stage-timing");
    }
    for (word, times) in [("all", true), ("1/4", true), ("off", false)] {
        let words = ["axio", "-c", "c.conf", "--stage-timing", word];
        let said = stage.peer_says(&[&words[..], &["--store-result", "r.json"]].concat());
        said.code(0);
        let timed = super::sum(&super::stored(&stage), "server", "timed_passes");
        assert_eq!(timed > 0, times, "{word}");
    }
}

#[test]
fn sides_over_udp_have_two_addresses() {
    let stage = Stage::new();
    stage.file("c.conf", SEND);
    for role in ["--loopback", "--server", "--client"] {
        let words = format!(
            "axio -c c.conf {role} --backend udp --set local_ip=127.0.0.9 --set remote_ip=127.0.0.9"
        );
        stage
            .peer_says(&words.split(' ').collect::<Vec<_>>())
            .code(2)
            .err("`local_ip` and `remote_ip` are both 127.0.0.9");
    }
    let words = "axio -c c.conf --backend udp --set local_ip=127.0.0.2";
    stage
        .peer_says(&words.split(' ').collect::<Vec<_>>())
        .code(2)
        .err("`local_ip` and `remote_ip` are both 127.0.0.2");
}

#[test]
fn the_tools_without_a_tool_name_those_that_there_are() {
    let stage = Stage::new();
    stage.file("c.conf", SEND);
    for words in [&["axio", "tools"][..], &["axio", "tools", "-c", "c.conf"]] {
        let said = stage.peer_says(words).code(2);
        let said = said.err("`weir axio tools` needs a tool");
        for tool in ["-v", "-p", "-d LOG -m REPORT", "-t N", "-i"] {
            assert!(said.err.contains(&format!("\n  {tool} ")), "{tool}: {said}");
        }
    }
}

#[test]
fn what_a_configuration_has_of_control_characters_is_spelt_out() {
    let stage = Stage::new();
    stage.file("c.conf", format!("{SEND}inflight : \u{1b}[31m10\n"));
    let said = stage.peer_says(&["axio", "-c", "c.conf"]).code(2);
    let said = said.err("\\u{1b}[31m10");
    assert!(!said.err.contains('\u{1b}'), "{said}");
}

#[test]
fn a_configuration_of_a_side_that_cannot_be_read_is_no_missing_one() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.path("config/send_config")).unwrap();
    stage
        .peer_says(&["axio", "--client"])
        .code(2)
        .err("Failed to open config file: config/send_config: Is a directory");
}
