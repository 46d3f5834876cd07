//! `spdk_nvme_perf` by its name and `weir nvme-perf`, as a user sees them, on files and loop devices.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod devices;
mod prepare;
mod refused;
#[path = "../stage/mod.rs"]
mod stage;

use rustix::process::Signal;
use serde_json::Value;
use stage::{Running, Said, Stage, has, peer, said, skip};

const PEER: &str = "spdk_nvme_perf";
/// Bytes of the target.
const TARGET: usize = 4 << 20;

/// A folder with a target.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.file("F", vec![7_u8; TARGET]);
    stage
}

/// The peer with these words.
#[track_caller]
fn perf(stage: &Stage, words: &str) -> Said {
    let mut all = vec![PEER];
    all.extend(words.split_whitespace());
    stage.peer_says(&all)
}

/// True if two workers have a CPU each here.
fn has_two_cpus(test: &str) -> bool {
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus < 2 {
        skip(test, "one CPU");
    }
    cpus >= 2
}

/// A row of the table.
#[derive(Debug)]
struct Row {
    name: String,
    /// IOPS, MiB/s, average, least and greatest latency.
    figures: Vec<f64>,
}

/// Rows behind the head, the total last.
#[track_caller]
fn rows(said: &Said) -> Vec<Row> {
    let (_, table) = said.out.split_once("Device Information").unwrap();
    let of = |line: &str| {
        let (name, figures) = line.rsplit_once(": ")?;
        let figures = figures.split_whitespace().map(str::parse);
        Some(Row {
            name: name.trim_end().to_owned(),
            figures: figures.collect::<Result<_, _>>().ok()?,
        })
    };
    let lines = table.lines().skip(1).take_while(|line| !line.is_empty());
    lines.filter_map(of).collect()
}

/// Operations of each worker in a stored result, all kinds together.
fn operations(stage: &Stage, file: &str) -> Vec<u64> {
    workers(stage, file)
        .iter()
        .map(|worker| {
            let kinds = worker["kinds"].as_array().unwrap().iter();
            kinds.map(|kind| kind["operations"].as_u64().unwrap()).sum()
        })
        .collect()
}

fn workers(stage: &Stage, file: &str) -> Vec<Value> {
    let result: Value = serde_json::from_str(&stage.read(file)).unwrap();
    let jobs = result["groups"][0]["jobs"].as_array().unwrap();
    let workers = jobs.iter().map(|job| job["outcome"]["workers"].as_array());
    workers.flatten().flatten().cloned().collect()
}

#[test]
fn the_lines_of_the_guide_print_a_row_for_the_core_and_the_total() {
    let stage = stage();
    for size in [1_048_576_u32, 4096] {
        let said = perf(&stage, &format!("-q 16 -o {size} -w read -c 0x1 -t 0.3 F"))
            .code(0)
            .out("Initializing NVMe Controllers\nAssociating F with lcore 0\n")
            .out("Initialization complete. Launching workers.\n")
            .err("note: 0.3 s are measured");
        let rows = rows(&said);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["F from core  0", "Total"], "{said}");
        for Row { figures, .. } in &rows {
            let [iops, mib, average, min, max] = figures[..] else {
                panic!("{said}")
            };
            let expected = iops * f64::from(size) / 1_048_576.0;
            let rounding = 0.005 + 0.005 * f64::from(size) / 1_048_576.0;
            assert!((mib - expected).abs() <= rounding + 1e-6, "{said}");
            assert!(0.0 < min && min <= average && average <= max, "{said}");
        }
    }
}

#[test]
fn two_cores_add_up_and_have_halves_of_the_target() {
    if !has_two_cpus("nvme-perf on two cores") {
        return;
    }
    let stage = stage();
    let said = perf(&stage, "-q 4 -o 4k -w read -t 0.3 -c 0x3 F").code(0);
    let rows = rows(&said);
    let [first, second, total] = rows.as_slice() else {
        panic!("{said}")
    };
    assert_eq!(first.name, "F from core  0");
    assert_eq!(second.name, "F from core  1");
    let sum = first.figures[0] + second.figures[0];
    assert!((total.figures[0] - sum).abs() <= 0.02, "{said}");

    // Each of 1024 blocks is written once, or half of them twice.
    let blocks = TARGET / 4096;
    for (layout, untouched) in [("split", 0), ("shared", blocks / 2)] {
        let stage = Stage::new();
        stage.file("F", vec![0_u8; TARGET]);
        let words = format!("-q 4 -o 4k -w write -t 60 -c 0x3 -d 50% --seq-layout {layout} F");
        perf(&stage, &words).code(0);
        let content = stage.read_bytes("F");
        let zero = content
            .chunks(4096)
            .filter(|block| block.iter().all(|b| *b == 0));
        assert_eq!(zero.count(), untouched, "{layout}");
    }
}

#[test]
fn a_number_of_operations_ends_the_run_at_exactly_that() {
    let stage = stage();
    for (count, done) in [("1000", 1000), ("50%", 512), ("200%", 2048)] {
        let words = format!("-q 8 -o 4096 -w randread -t 3600 -d {count} --store-result r.json F");
        let said = perf(&stage, &words).code(0);
        assert_eq!(operations(&stage, "r.json"), [done], "{said}");
        let line =
            format!("number_ios for namespace F set to {done} ({count} of namespace size)\n");
        assert_eq!(said.out.contains(&line), count.ends_with('%'), "{said}");
    }
}

#[test]
fn latencies_are_cuts_and_buckets_of_all_operations() {
    let stage = stage();
    let said = perf(
        &stage,
        "-q 4 -o 4096 -w randread -t 3600 -d 1000 -LL --store-result r.json F",
    )
    .code(0);
    let cuts: Vec<f64> = said
        .out
        .lines()
        .filter_map(|line| {
            line.split_once("% : ")?
                .1
                .strip_suffix("us")?
                .trim()
                .parse()
                .ok()
        })
        .collect();
    assert_eq!(cuts.len(), 15, "{said}");
    assert!(cuts.is_sorted(), "{said}");
    let buckets = said.out.lines().filter_map(|line| {
        let (range, count) = line.split_once("%  (")?;
        let percent = range.rsplit_once(": ")?.1.trim().parse::<f64>().ok()?;
        Some((
            percent,
            count.strip_suffix(')')?.trim().parse::<u64>().ok()?,
        ))
    });
    let buckets: Vec<(f64, u64)> = buckets.collect();
    assert_eq!(
        buckets.iter().map(|(_, count)| count).sum::<u64>(),
        1000,
        "{said}"
    );
    assert_eq!(
        buckets.last().map(|(percent, _)| *percent),
        Some(100.0),
        "{said}"
    );
    // A stored result prints the same again, with less or more of it.
    let (_, table) = said.out.split_once("workers.\n").unwrap();
    let shown = stage.say(&["show", "r.json"]).code(0);
    assert_eq!(shown.out, table);
    // By the verb the words are the same and the report is weir's.
    let mut words = vec!["nvme-perf", "-L"];
    words.extend("-q 4 -o 4096 -w randread -t 3600 -d 1000 F".split(' '));
    let report = stage.say(&words).code(0).out("F from core 0");
    assert!(!report.out.contains("Device Information"), "{report}");
    words.push("--voice=peer");
    let once = stage.say(&words).code(0).out("Summary latency data for F");
    assert!(!once.out.contains("Latency histogram"), "{once}");
}

#[test]
fn nothing_of_the_warm_up_is_counted() {
    let stage = stage();
    perf(
        &stage,
        "-q 4 -o 4096 -w randread -t 0.2 -a 0.5 --store-result r.json F",
    )
    .code(0)
    .err("0.2 s are measured")
    .err("0.5 s of warm-up before");
    let workers = workers(&stage, "r.json");
    let start = workers[0]["span"]["start_ns"].as_u64().unwrap();
    // The clock's own rounding apart.
    assert!(start >= 499_999_000, "{start}");
    let kind = &workers[0]["kinds"][0];
    let counted: u64 = kind["stages"][0]["histogram"]["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket[1].as_u64().unwrap())
        .sum();
    assert_eq!(Some(counted), kind["operations"].as_u64());
}

#[test]
fn writes_change_a_file_and_reads_do_not() {
    let stage = stage();
    let before = stage.read_bytes("F");
    for pattern in ["read", "randread"] {
        perf(&stage, &format!("-q 4 -o 4k -w {pattern} -t 60 -d 100% F")).code(0);
        assert!(stage.read_bytes("F") == before, "{pattern}");
    }
    perf(&stage, "-q 4 -o 4k -w randrw -M 50 -t 60 -d 100% --fua F")
        .code(0)
        .err("what the targets hold is overwritten");
    assert!(stage.read_bytes("F") != before);
    assert_eq!(stage.list(), ["F"]);
}

#[test]
fn an_interrupt_ends_the_run_with_its_table() {
    let stage = stage();
    let mut command = stage.command(peer(PEER));
    command.args("-q 4 -o 4096 -w randread -t 3600 F".split(' '));
    let running = Running::start(command);
    running.works_for(5);
    running.signal(Signal::INT);
    let said = running.end().code(0);
    let rows = rows(&said);
    assert_eq!(rows.len(), 2, "{said}");
    assert!(rows[1].figures[0] > 0.0, "{said}");
}

#[test]
fn operations_that_fail_are_counted_apart_and_the_run_goes_on() {
    if !has("prlimit") {
        return skip("nvme-perf errors", "no prlimit");
    }
    let stage = stage();
    let confined = |words: &str| {
        let mut command = stage.command("prlimit");
        command.args(["--fsize=2097152", peer(PEER)]);
        command.args("-q 1 -o 4096 -w write -t 3600 -d 1024 --store-result r.json".split(' '));
        command.args(words.split_whitespace()).arg("F");
        said(command)
            .code(1)
            .err("spdk_nvme_perf: errors occurred\n")
    };
    let all = confined("").err("Write completed with error (errno=27)\n");
    assert!(!all.err.contains("suppressed"), "{all}");
    let kind = workers(&stage, "r.json")[0]["kinds"][0].clone();
    assert_eq!(kind["issued"].as_u64(), Some(1024), "{kind}");
    assert_eq!(kind["operations"].as_u64(), Some(512), "{kind}");
    confined("-Q 10").err("Message suppressed 9 times: Write completed with error (errno=27)\n");
}

#[test]
fn several_files_are_dealt_to_the_cores_in_turn() {
    let stage = stage();
    stage.file("G", vec![7_u8; TARGET]);
    let said = perf(&stage, "-q 2 -o 4096 -w randread -t 3600 -d 100 -c 0x1 F G").code(0);
    let names: Vec<String> = rows(&said).into_iter().map(|row| row.name).collect();
    assert_eq!(
        names,
        ["F from core  0", "G from core  0", "Total"],
        "{said}"
    );
}
