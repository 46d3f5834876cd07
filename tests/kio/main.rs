//! kio by its name, as a user sees it: the words, files and texts of kio.py, from user space. What the
//! kernel module does is seen in the lab's virtual machines.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod devices;
mod failures;
mod files;
mod module;
mod refused;
#[path = "../stage/mod.rs"]
mod stage;

use rustix::process::Signal;
use stage::{Running, Said, Stage, said};

/// Bytes of the target.
const TARGET: u64 = 64 << 20;

/// A folder with a target of random bytes, as far as they are looked at.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.file("F", vec![7_u8; usize::try_from(TARGET).unwrap()]);
    stage
}

/// kio on `uring` with these words.
fn kio(stage: &Stage, words: &str) -> Said {
    let mut all = vec!["kio", "--engine", "uring"];
    all.extend(words.split_whitespace());
    said(in_peace(stage, &all))
}

/// weir with these words, whatever the surroundings of the test say of devices.
fn in_peace(stage: &Stage, words: &[&str]) -> std::process::Command {
    let mut command = stage.peer(words);
    command.env_remove("WEIR_KIO_DEVICE");
    command
}

/// The value behind a key, the first one after a line.
#[track_caller]
fn after(text: &str, line: &str, key: &str) -> f64 {
    let (_, rest) = text
        .split_once(line)
        .unwrap_or_else(|| panic!("no `{line}` in\n{text}"));
    let at = |line: &str| {
        let value = line.trim_start_matches(['-', ' ']).strip_prefix(key)?;
        value.strip_prefix(": ")?.trim().parse().ok()
    };
    rest.lines()
        .find_map(at)
        .unwrap_or_else(|| panic!("no `{key}` behind `{line}` in\n{text}"))
}

/// The six figures of the summary, in their order.
#[track_caller]
fn summary(text: &str) -> [f64; 6] {
    let begin = text.find("-   bw_MBps: ").unwrap();
    let rest = &text[begin..];
    let keys: Vec<&str> = rest
        .lines()
        .take(6)
        .map(|line| {
            assert!(
                line.starts_with("-   ") || line.starts_with("    "),
                "{line}"
            );
            line[4..].split(':').next().unwrap()
        })
        .collect();
    let expected = [
        "bw_MBps",
        "clat_usec",
        "completed",
        "iops",
        "lat_usec",
        "slat_usec",
    ];
    assert_eq!(keys, expected, "{text}");
    expected.map(|key| after(rest, "", key))
}

#[test]
fn the_first_example_prints_the_sections_and_figures_of_the_other_program() {
    let stage = stage();
    let said = kio(
        &stage,
        "--device F --num-threads 1 --runtime 1 --block-size 4096 --offset-stride 4096 \
         --queue-depth 10 --offset-random 1 --read-mix-percent 100 --offset-high 4294967295 \
         --read-burst 100 --read-mix-percent 100 --format kio",
    )
    .code(0)
    .err("clipped to 67108864")
    .out("# engine: user/io_uring (kernel module not loaded; includes the system-call boundary)\n")
    .out("KIO version weir-")
    .out("        offset_high: 67108864\n");
    let dashes = "-".repeat(62);
    for name in ["Current config", "Running", "Results"] {
        assert!(
            said.out.contains(&format!("{dashes}\n{name}...\n")),
            "{said}"
        );
    }
    let [bandwidth, clat, completed, iops, lat, slat] = summary(&said.out);
    assert!(completed > 0.0 && iops > 0.0 && slat > 0.0 && clat > 0.0);
    assert!((lat - slat - clat).abs() <= 0.002, "{said}");
    let expected = iops * 4096.0 / 1e6;
    assert!((bandwidth / expected - 1.0).abs() < 0.001, "{said}");
    assert!(said.out.contains("-   0:\n        bw_MBps: "), "{said}");
}

#[test]
fn several_threads_add_up_and_the_older_summary_divides_by_their_square() {
    let stage = stage();
    let words = "-d F --num-threads 2 --runtime 1 --queue-depth 4 --offset-random 1 --format kio";
    let said = kio(&stage, words).code(0);
    let [_, _, completed, iops, ..] = summary(&said.out);
    let (_, results) = said.out.split_once("Results...").unwrap();
    let of = |thread: &str, key| after(results, &format!("\n{thread}:\n"), key);
    let threads = ["-   0", "    1"];
    let sum = |key| threads.map(|thread| of(thread, key)).iter().sum::<f64>();
    assert!((completed - sum("completed")).abs() < 0.5, "{said}");
    assert!((iops - sum("iops")).abs() <= 2.0, "{said}");

    stage
        .peer_says(&[
            "kio",
            "--store-result",
            "r.json",
            "-d",
            "F",
            "-t",
            "2",
            "-s",
            "1",
        ])
        .code(0);
    let shown = |words: &[&str]| {
        let all = [&["show", "r.json", "--as", "kio", "--format", "kio"], words].concat();
        summary(&stage.say(&all).code(0).out)
    };
    let (total, legacy) = (shown(&[]), shown(&["--legacy-summary"]));
    assert!(
        (legacy[3] / total[3] - 0.25).abs() < 0.0025,
        "{legacy:?} {total:?}"
    );
    assert!(
        (legacy[0] / total[0] - 0.5).abs() < 0.001,
        "{legacy:?} {total:?}"
    );
    assert!((legacy[2] - total[2]).abs() < 0.5);
}

#[test]
fn values_out_of_range_name_the_option_and_the_range() {
    let stage = stage();
    for (words, named, range) in [
        ("--num-threads x", "--num-threads x", "0 to 1024"),
        (
            "--offset-high 0x10q",
            "--offset-high 0x10q",
            "0 to 9223372036854775807",
        ),
        (
            "--read-mix-percent 101",
            "--read-mix-percent 101",
            "0 to 100",
        ),
        ("--queue-depth 0", "--queue-depth 0", "1 to 1024"),
        ("--burst-fin 2", "--burst-finish 2", "0 to 1"),
        ("--seed foo", "--seed foo", "1 to 9223372036854775807"),
        ("--seed -1", "--seed", "1 to 9223372036854775807"),
        ("--ramp 3x", "--ramp 3x", "0 to 3600"),
        (
            "--ramp 99999999999999",
            "--ramp 99999999999999",
            "0 to 3600",
        ),
        ("--interval abc", "--interval abc", "1 to 3600000"),
        ("--batch abc", "--batch abc", "1 to 1024"),
        ("--repeat 1", "--repeat 1", "2 to 1000"),
    ] {
        kio(&stage, &format!("--device F {words}"))
            .code(2)
            .silent()
            .err(named)
            .err(range);
    }
    assert_eq!(stage.list(), ["F"]);
}

#[test]
fn a_pause_after_each_read_bounds_the_rate() {
    let stage = stage();
    let words = "-d F --read-sleep-usec 1000 --queue-depth 1 --runtime 2 --format kio";
    let [_, _, completed, ..] = summary(&kio(&stage, words).code(0).out);
    // At most one in a millisecond; how many fewer is this machine's matter.
    assert!((1.0..=2001.0).contains(&completed), "{completed}");
}

#[test]
fn bursts_of_unlike_length_read_more_than_the_mix_says() {
    let stage = stage();
    let words = "-d F --read-mix-percent 50 --read-burst 30 --write-burst 10 --ios 20000 \
                 --queue-depth 32 --runtime 60 --format json";
    let said = kio(&stage, words).code(0);
    let result: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let kinds = &result["groups"][0]["jobs"][0]["outcome"]["workers"][0]["kinds"];
    let of = |n: usize| kinds[n]["operations"].as_f64().unwrap();
    assert!((of(0) + of(1) - 20_000.0).abs() < 0.5);
    let share = of(0) / 20_000.0;
    assert!((share - 0.75).abs() < 0.04, "{share}");
}

#[test]
fn a_burst_waits_for_the_one_before_where_it_is_asked_to() {
    let stage = stage();
    let words = |finish: u32| {
        format!(
            "-d F --burst-finish {finish} --read-burst 4 --write-burst 4 --queue-depth 16 \
             --read-mix-percent 50 --ios 4000 --runtime 60 --format json"
        )
    };
    let deepest = |finish| {
        let said = kio(&stage, &words(finish)).code(0);
        let result: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let worker = &result["groups"][0]["jobs"][0]["outcome"]["workers"][0];
        let by_depth = worker["depth"]["in_flight"].as_array().unwrap();
        // Depths of 1, 2, 4, 8, 16 and more.
        by_depth
            .iter()
            .rposition(|n| n.as_u64() != Some(0))
            .unwrap()
    };
    assert_eq!(deepest(1), 2, "no more than a burst of 4 is in flight");
    assert!(deepest(0) > 2);
}

#[test]
fn a_fixed_seed_gives_the_same_offsets_again_and_another_one_others() {
    let stage = stage();
    let traced = |words: &str| {
        let all = format!(
            "-d F --offset-random 1 --read-mix-percent 60 --ios 200 --trace-offsets 100 {words}"
        );
        let said = kio(&stage, &all).code(0);
        let lines = said.out.lines().filter(|line| line.starts_with("trace "));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        assert_eq!(lines.len(), 100, "{said}");
        lines
    };
    let first = traced("--seed 9");
    assert_eq!(first, traced("--seed 9"));
    assert_ne!(first, traced("--seed 10"));
    assert!(first[0].starts_with("trace 0 "), "{}", first[0]);
}

#[test]
fn the_link_lists_every_option_of_the_other_program() {
    let stage = Stage::new();
    let said = stage.peer_says(&["kio.py", "-h"]).code(0);
    for option in [
        "--num-threads",
        "--runtime",
        "--label",
        "--block-size",
        "--bs",
        "--burst-delay",
        "--bd",
        "--burst-finish",
        "--bf",
        "--offset-low",
        "--ol",
        "--offset-high",
        "--oh",
        "--offset-random",
        "--or",
        "--offset-stride",
        "--os",
        "--queue-depth",
        "--qd",
        "--read-mix-percent",
        "--rm",
        "--read-burst",
        "--rb",
        "--write-burst",
        "--wb",
        "--read-sleep-usec",
        "--rs",
        "--write-sleep-usec",
        "--ws",
        "--generate-config",
        "--config",
        "--output-csv",
        "--output-yaml",
        "--help",
        "--examples",
        "--version",
    ] {
        assert!(said.out.contains(option), "no {option} in {said}");
    }
}

#[test]
fn the_links_choose_what_is_printed() {
    let stage = stage();
    let by = |name: &str| {
        let words = [name, "-d", "F", "-s", "1", "--engine", "sync"];
        stage.peer_says(&words).code(0)
    };
    by("kio.py").out("-   bw_MBps: ");
    by("kio").out("thread 0").out("engine: user/psync");
}

#[test]
fn by_the_verb_it_is_weirs_report_with_files_repeats_and_dry_runs() {
    let stage = stage();
    let by_verb = |words: &str| {
        let all = format!("kio --engine uring -d F {words}");
        let all: Vec<&str> = all.split_whitespace().collect();
        let mut command = stage.weir(&all);
        command.env_remove("WEIR_KIO_DEVICE");
        said(command)
    };
    let said = by_verb("--ios 200 --output x.json -o r.csv").code(0);
    let said = said.out("thread 0").calm();
    assert!(!said.out.contains("engine: user/"), "{said}");
    assert_eq!(stage.read("r.csv").lines().count(), 2);
    let result: serde_json::Value = serde_json::from_str(&stage.read("x.json")).unwrap();
    assert_eq!(result["plan"]["voice"], "weir");
    by_verb("--ios 200 --repeat 2")
        .code(0)
        .out("between 2 runs")
        .calm();
    by_verb("--ios 200 --dry-run")
        .code(0)
        .out("would run: thread 0 (io_uring), read F\n");
    // A form of the other program's is printed by the verb too, and again of what was stored.
    let said = by_verb("--ios 200 --format kio --store-result s.json").code(0);
    summary(&said.out);
    assert_eq!(stage.say(&["show", "s.json"]).code(0).out, said.out);
    by_verb("--ios 200 --voice peer").code(0).out("Results...");
    by_verb("--ios 200 --weir-format csv")
        .code(0)
        .out("thread 0,");
}

#[test]
fn by_the_name_of_the_other_program_the_house_writes_and_repeats_too() {
    let stage = stage();
    let said = kio(&stage, "-d F --ios 200 --format kio --output x.json").code(0);
    summary(&said.out);
    let result: serde_json::Value = serde_json::from_str(&stage.read("x.json")).unwrap();
    assert_eq!(result["plan"]["voice"], "peer");
    let said = kio(&stage, "-d F --ios 200 --format kio --repeat 2").code(0);
    assert_eq!(said.out.matches("Results...").count(), 2, "{said}");
    said.err("between 2 runs");
}

#[test]
fn a_signal_ends_the_run_and_still_prints_it() {
    let stage = stage();
    let words = [
        "kio", "--engine", "uring", "-d", "F", "-s", "60", "--format", "kio",
    ];
    let running = Running::start(in_peace(&stage, &words));
    stage::until("weir to catch signals", || running.catches_signals());
    running.works_for(10);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    summary(&said.out);
}
