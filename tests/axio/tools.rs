//! The tools of the older emulator, by their own commands and words.

mod slow;

use std::process::Command;

use crate::stage::{Said, Stage, WEIR, has, root, said, skip};

const TABLE: &str = include_str!("../results/diagnose/seed-table.txt");
const WORKSPACES: &str = include_str!("../results/diagnose/seed-workspaces.txt");
const REPORT: &str = include_str!("../results/diagnose/seed-report.rpt");

const BATCHES: [&str; 6] = [
    "kAppTxMsgBatchSize",
    "kAppRxMsgBatchSize",
    "kDispTxBatchSize",
    "kDispRxBatchSize",
    "kNICTxPostSize",
    "kNICRxPostSize",
];

/// A core with everything in batches of one, and the name of a device.
fn config() -> String {
    let batches = BATCHES.map(|key| format!("{key} : 1\n")).concat();
    format!(
        "# one core\n{batches}device_name : mlx5_0\nkAppCoreNum : 1\nkDispQueueNum : 1\n\
         numa : 1\niteration : 30\nduration : 0.1\n\
         workload : 0 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0\n"
    )
}

fn stage() -> Stage {
    let stage = Stage::new();
    stage.file("axio.log", format!("{WORKSPACES}{TABLE}").repeat(30));
    stage.file("report.rpt", REPORT);
    stage.file("c", config());
    stage
}

/// A script of those that stand for the older tools, with this build.
fn script(stage: &Stage, name: &str, words: &[&str]) -> Said {
    let mut command = Command::new(root().join("share/axio").join(name));
    command.args(words).env("WEIR", WEIR);
    command.current_dir(stage.path("."));
    said(command)
}

#[test]
fn the_script_of_the_tools_verifies_prints_and_diagnoses() {
    if !has("python3") {
        return skip("share/axio/toolchain/main.py", "no python3");
    }
    let stage = stage();
    let before = stage.list();
    let name = "toolchain/main.py";
    let words = ["-c", "c", "-p", "-v", "-d", "axio.log", "-m", "report.rpt"];
    let all = script(&stage, name, &words).code(0).out;
    let begin = "==========Tunable Parameter Verification Passed==========\n\
                 [INFO] Diagnosing the contention point for local......\n\
                 ==========Performance Statistics==========\n\
                 [DEBUG] End-to-end Throughput: 20.188\n";
    assert!(all.starts_with(begin), "{all}");
    let end = "[INFO] The most critical pipe phase is: disp_rx\n\
               [INFO] The completion time < stall time. Contention point is C1.\n";
    assert!(all.contains(end), "{all}");
    let none = script(&stage, name, &["-d", "axio.log"]).code(1);
    assert!(
        none.err
            .contains("[ERROR] Please specify the configuration file via -c")
    );
    let none = script(&stage, name, &["-c", "c", "-d", "axio.log"]).code(1);
    assert!(
        none.err
            .contains("[ERROR] Please specify the metric file via -m")
    );
    let packages = script(&stage, name, &["-i"]).code(0);
    assert!(packages.out.contains("libdpdk-dev"), "{}", packages.out);
    assert_eq!(stage.list(), before);
}

#[test]
fn the_log_of_a_server_that_echoes_has_traffic() {
    let stage = Stage::new();
    let set = ["--set", "duration=0.2", "--set", "msg_timeout_ms=20000"];
    let words = [&["axio", "--example", "echo", "--both"][..], &set].concat();
    let log = stage.peer_says(&words).code(0).out;
    let parts = log.split("Server\n").skip(1);
    let tables: Vec<&str> = parts.filter_map(|part| part.split("\n\n").next()).collect();
    let of_server = tables.join("\n");
    let rates = |name: &str| -> Vec<String> {
        let rows = of_server.lines().filter(|line| line.starts_with(name));
        rows.map(|row| row.split_whitespace().nth(1).unwrap().to_owned())
            .collect()
    };
    // It sends back itself, so that nothing comes from its workspaces.
    assert_eq!(rates("End-to-end"), rates("nic_tx"), "{log}");
    assert_eq!(rates("disp_tx"), ["0.000"; 2], "{log}");
    stage.file("server.log", &of_server);
    let said = stage.say(&["diagnose", "server.log"]).code(0);
    assert!(!said.out.contains("D1 "), "{said}");
}

#[test]
fn the_script_of_the_monitor_writes_its_report_and_refuses_what_has_no_effect() {
    let stage = Stage::new();
    let copy = stage.path("record-host-metrics.sh");
    let original = root().join("share/axio/scripts/host-metric/record-host-metrics.sh");
    std::fs::copy(original, &copy).unwrap();
    let run = |words: &[&str]| {
        let mut command = stage.command(&copy);
        command.args(words).env("WEIR", WEIR).env("dur", "0.05");
        said(command)
    };
    run(&[]).code(0);
    let report = stage.read("reports/report.rpt");
    for section in ["begin all measurement", "Socket 0", "llc performance"] {
        assert!(report.contains(&format!("-{section}-")), "{report}");
    }
    let refused = run(&["-P"]).code(2);
    assert!(refused.err.contains("no option -P"), "{}", refused.err);
    assert!(
        run(&["--dur", "none"])
            .code(2)
            .err
            .contains("--duration none")
    );
}

/// Counts and workloads alone, as the older tool's own file.
const SPACE: &str = "kAppCoreNum : 2\nkDispQueueNum : 2\niteration : 1\nduration : 0.05\n\
    workload : 1 : TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 0 : 0 : 0\n\
    workload : 2 : TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 1 : 1 : 1\n";

#[test]
fn each_iteration_of_the_search_shows_its_configuration_and_leaves_its_log() {
    let stage = Stage::new();
    stage.file("c", SPACE);
    let said = stage.peer_says(&["axio", "tools", "-c", "c", "-p", "-v", "-t", "2"]);
    let said = said.code(0);
    for says in ["Current iteration: 0=", "Current iteration: 1="] {
        assert_eq!(said.out.matches(says).count(), 1, "{said}");
    }
    // Once before the search as well.
    for says in ["kAppTxMsgBatchSize: ", "Parameter Verification Passed"] {
        assert_eq!(said.out.matches(says).count(), 3, "{said}");
    }
    for number in 0..2 {
        let log = stage.read(&format!("tmp/axio-emulator_iter_{number}.log"));
        assert!(log.contains("Perf Statistics"), "{log}");
        assert_eq!(log, stage.read(&format!("tmp/axio_iter_{number}.log")));
    }
    let found = stage.read("c.out");
    assert!(found.contains("kNICRxPostSize : "), "{found}");
    assert_eq!(stage.read("c"), SPACE);
    // Without an iteration there is what it began with.
    stage
        .peer_says(&["axio", "tools", "-c", "c", "-t", "0"])
        .code(0);
    assert!(stage.read("c.out").contains("kNICRxPostSize : 32"));
}

#[test]
fn a_search_whose_log_cannot_be_written_ends() {
    let stage = Stage::new();
    stage.file("c", SPACE);
    std::fs::create_dir(stage.path("tmp")).unwrap();
    std::os::unix::fs::symlink("/dev/full", stage.path("tmp/axio_iter_1.log")).unwrap();
    let said = stage.peer_says(&["axio", "tools", "-c", "c", "-t", "5"]);
    assert_ne!(said.code, Some(0), "{said}");
    let said = said.err("the trial's log: ").err("No space left on device");
    assert!(!said.out.contains("Current iteration: 2="), "{said}");
}

#[test]
fn a_search_at_the_servers_side_says_where_to_search() {
    let stage = Stage::new();
    let receiver = SPACE.replace("TxApplication,", "");
    let server = format!("role : server\n{SPACE}");
    for (file, text) in [("r", receiver), ("s", server)] {
        stage.file(file, text);
        for words in [
            &["axio", "tools", "-c", file, "-t", "5"][..],
            &["tune", "-c", file],
        ] {
            let said = stage.say(words).code(2);
            said.err("this is a server's side")
                .err("tune from the client");
        }
    }
    // The first of several errors is what is wrong.
    stage.file(
        "w",
        SPACE.replace("iteration", "inflight : 16\nreq_size : 99999999\niteration"),
    );
    let said = stage.say(&["tune", "-c", "w", "-t", "3"]);
    assert!(!said.err.contains("more failures of this kind"), "{said}");
}

#[test]
fn words_of_the_tools_are_refused_elsewhere() {
    let stage = stage();
    let said = stage
        .peer_says(&["axio", "-c", "c", "--loopback", "-t", "5"])
        .code(2);
    assert!(
        said.err.contains("--tune acts only with `weir axio tools`"),
        "{}",
        said.err
    );
    let words = ["axio", "tools", "-c", "c", "-t", "5", "-m", "report.rpt"];
    assert!(
        stage
            .peer_says(&words)
            .code(1)
            .err
            .contains("leave out -d and -m")
    );
}
