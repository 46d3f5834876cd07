//! `weir net` as a user sees it: HPCC's lines, ranks of every kind, bad input.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod slow;
#[path = "../stage/mod.rs"]
mod stage;

use rustix::process::{Signal, kill_process};

use stage::{Running, Said, Stage, each_launcher, launch, said, skip, until};

/// The names of the summary, in HPCC's order.
const KEYS: [&str; 10] = [
    "MaxPingPongLatency_usec",
    "RandomlyOrderedRingLatency_usec",
    "MinPingPongBandwidth_GBytes",
    "NaturallyOrderedRingBandwidth_GBytes",
    "RandomlyOrderedRingBandwidth_GBytes",
    "MinPingPongLatency_usec",
    "AvgPingPongLatency_usec",
    "MaxPingPongBandwidth_GBytes",
    "AvgPingPongBandwidth_GBytes",
    "NaturallyOrderedRingLatency_usec",
];

fn lat_bw(stage: &Stage, words: &str) -> Said {
    let mut all = vec!["net", "lat-bw", "--voice", "peer"];
    all.extend(words.split_whitespace());
    stage.say(&all)
}

/// One section with all its lines.
#[track_caller]
fn is_section(said: &Said) {
    let out = said.out.trim_end();
    assert!(
        out.starts_with("Begin of LatencyBandwidth section."),
        "{said}"
    );
    assert!(out.ends_with("End of LatencyBandwidth section."), "{said}");
    let pairs: Vec<_> = out.lines().filter(|l| !l.contains(' ')).collect();
    let pairs: Vec<_> = pairs.iter().filter_map(|l| l.split_once('=')).collect();
    let keys: Vec<_> = pairs.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, KEYS, "{said}");
    let value = |key: &str| -> f64 {
        let pair = pairs.iter().find(|(k, _)| *k == key).unwrap();
        pair.1.parse().unwrap()
    };
    assert!(KEYS.iter().all(|key| value(key) > 0.0), "{said}");
    assert!(value(KEYS[5]) <= value(KEYS[6]) && value(KEYS[6]) <= value(KEYS[0]));
    assert!(value(KEYS[2]) <= value(KEYS[8]) && value(KEYS[8]) <= value(KEYS[7]));
}

#[test]
fn two_ranks_print_hpccs_section() {
    let stage = Stage::new();
    let said = lat_bw(&stage, "--ranks 2").code(0);
    is_section(&said);
    assert_eq!(stage.list(), Vec::<String>::new());
}

#[test]
fn three_processes_print_it_once() {
    let stage = Stage::new();
    is_section(&lat_bw(&stage, "--ranks 3 --spawn procs").code(0));
}

#[test]
fn a_process_that_is_killed_ends_the_others_and_is_named() {
    let stage = Stage::new();
    let words = "net lat-bw --ranks 3 --spawn procs --min-time 3600 --timeout 3600";
    let words: Vec<_> = words.split_whitespace().collect();
    let running = Running::start(stage.weir(&words));
    until("rank 0 has begun", || running.catches_signals());
    kill_process(running.children()[1], Signal::KILL).unwrap();
    running
        .end()
        .code(1)
        .err("rank 2 is gone: its process ")
        .err(" was ended by signal 9\n");
}

#[test]
fn json_has_the_permutations_of_its_seed() {
    let stage = Stage::new();
    let rings = |seed: u32| {
        let words = format!("--ranks 4 --format json --seed {seed}");
        let said = lat_bw(&stage, &words).code(0);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert!(
            KEYS.iter().all(|key| json[key].as_f64().is_some()),
            "{said}"
        );
        let job = &json["weir"]["groups"][0]["jobs"][0];
        let done = job["outcome"].clone();
        assert_eq!(done["wrong_bytes"], 0);
        assert_eq!(done["latency"]["pairs"].as_array().unwrap().len(), 12);
        let rings = done["latency"]["random"].as_array().unwrap().clone();
        assert_eq!(rings.len(), 30);
        assert_eq!(done["bandwidth"]["random"].as_array().unwrap().len(), 10);
        let order = |ring: &serde_json::Value| ring["order"].clone();
        rings.iter().map(order).collect::<Vec<_>>()
    };
    let first = rings(3);
    assert_eq!(first, rings(3));
    assert_ne!(first, rings(4));
}

/// weir net lat-bw with these words on so many ranks of a launcher.
fn under(stage: &Stage, launcher: &[&str], ranks: u32, words: &[&str]) -> Said {
    said(launch(
        stage,
        launcher,
        ranks,
        &[&["net", "lat-bw", "--voice", "peer"], words].concat(),
    ))
}

#[test]
fn ranks_have_a_cpu_each_without_being_asked() {
    let allowed = weir_sys::pin::affinity().unwrap();
    if allowed.len() < 2 {
        return skip("a CPU for each of two ranks", "one processor alone");
    }
    let said = lat_bw(&Stage::new(), "--ranks 2 --format json").code(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let done = &json["weir"]["groups"][0]["jobs"][0]["outcome"];
    let cpu = |rank: usize| done["ranks"][rank]["cpu"].as_u64();
    assert!(cpu(0).is_some() && cpu(1).is_some(), "{said}");
    assert_ne!(cpu(0), cpu(1), "{said}");
}

#[test]
fn wrong_words_are_refused_before_anything_happens() {
    let stage = Stage::new();
    for (words, message) in [
        ("net", "`weir net` needs a test (there is lat-bw)"),
        ("net lat", "no test `lat` of the network (there is lat-bw)"),
        ("net osu bw", "`weir net osu` is not in this build"),
        ("net beff-full", "`weir net beff-full` is not in this build"),
        (
            "net lat-bw --ranks 1",
            "it takes a whole number from 2 to 1024",
        ),
        (
            "net lat-bw --min-time 0",
            "--min-time 0: it takes seconds above 0",
        ),
        (
            "net lat-bw --comm-type tcp",
            "`tcp` carries no messages between any two ranks (mpi, shm do)",
        ),
        (
            "net lat-bw --comm-type nosuch",
            "--comm-type nosuch: there is no such transport",
        ),
        ("net lat-bw stray", "stray"),
        ("net lat-bw --seed=", "--seed needs N, which is empty"),
        (
            "net lat-bw --timeout inf",
            "--timeout inf: it takes seconds",
        ),
    ] {
        let words: Vec<_> = words.split(' ').collect();
        stage.say(&words).code(2).silent().err(message);
    }
}

#[test]
fn a_plan_is_shown_and_runs_from_a_file() {
    let stage = Stage::new();
    let shown = lat_bw(&stage, "--show-plan --seed 5").code(0).calm();
    let file = stage.file("plan.json", &shown.out);
    let said = stage.say(&["run", "--format=json", &file]).code(0);
    let result = weir_schema::RunResult::from_json(&said.out).unwrap();
    let job = result.jobs().next().unwrap();
    let figures = weir_schema::latency_bandwidth_figures(job.latency_bandwidth().unwrap());
    assert!(figures.is_some(), "{said}");
}

#[test]
fn a_matrix_has_a_cell_for_each_pair_of_ranks() {
    let stage = Stage::new();
    let words = "--ranks 3 --pin none --matrix";
    let said = lat_bw(&stage, words).code(0);
    for (title, unit) in [("Latency", "usec"), ("Bandwidth", "MB/s")] {
        let title =
            format!("{title} of each pair ({unit}): who calls down, who is called across\n");
        let table = said
            .out
            .split(&title)
            .nth(1)
            .unwrap_or_else(|| panic!("{said}"));
        let rows: Vec<Vec<&str>> = table
            .lines()
            .take(4)
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0], ["0", "1", "2"]);
        for (rank, row) in rows[1..].iter().enumerate() {
            assert_eq!(row[0], rank.to_string());
            for (other, cell) in row[1..].iter().enumerate() {
                let figure = cell.parse::<f64>().ok();
                assert_eq!(
                    figure.is_some_and(|figure| figure > 0.0),
                    rank != other,
                    "{said}"
                );
            }
        }
    }
    let plan = lat_bw(&stage, &format!("{words} --show-plan")).code(0);
    plan.out("\"matrix\": true");
}

#[test]
fn the_page_of_the_test_is_printed() {
    let stage = Stage::new();
    lat_bw(&stage, "--help")
        .code(0)
        .calm()
        .out("--min-time <S>");
    stage.say(&["help", "net"]).code(0).calm().out("lat-bw");
}
