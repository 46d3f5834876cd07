//! Tests of the door's output against the published numbers.

use serde_json::Value as Json;
use weir_schema::Outcome;
use weir_schema::sample::exchange_of;

use super::sample::{TABLE, result};
use super::*;

const WORDS: &str = "--comm-type file -u 5 -l 5 --min-size 6 -m 8 -n 2 ";

fn printed(words: &str) -> String {
    let (result, options) = result(words, TABLE);
    stdout(&result, &options).unwrap()
}

fn json(words: &str) -> Json {
    serde_json::from_str(&printed(words)).unwrap()
}

#[test]
fn text_is_laid_out_as_the_peers() {
    insta::assert_snapshot!(printed(WORDS));
}

#[test]
fn scripts_of_the_peer_find_the_table() {
    let text = printed(WORDS);
    let heads = ["MSize", "looplength", "time [s]", "B/s"];
    let (at, head) = text
        .lines()
        .enumerate()
        .find(|(_, l)| l.contains("looplength"))
        .unwrap();
    let fields = |line: &str| -> Vec<String> {
        let parts = line.trim().split("  ").map(str::trim);
        parts.filter(|p| !p.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(fields(head), heads);
    let rows: Vec<_> = text
        .lines()
        .skip(at + 1)
        .take_while(|l| !l.is_empty())
        .collect();
    assert_eq!(rows.len(), 3);
    for row in &rows {
        assert_eq!(fields(row).len(), 4, "{row}");
    }
    assert_eq!(fields(rows[0]), ["64", "5", "4.38310e-05", "1.46015e+07"]);
    assert!(
        text.contains("\n\nb_eff = 2.19354e+07 B/s     \n"),
        "{text}"
    );
    assert!(printed(&format!("{WORDS} --text-compat 1.2")).contains("            transfer   "));
}

#[test]
fn json_has_every_key_of_the_peer_with_its_type() {
    insta::assert_snapshot!(printed(&format!("{WORDS} --format json")));
}

#[test]
fn json_in_the_peers_types_is_the_published_example() {
    let json = json(&format!("{WORDS} --format json --json-compat hpcc-1.3"));
    let published: Json = serde_json::from_str(
        r#"{"Communication Type": false, "Kernel File": false, "Kernel Replications": 2,
            "Loop Length": 5, "MPI Ranks": 1, "Message Sizes": 2, "Repetitions": 2,
            "Test Mode": false}"#,
    )
    .unwrap();
    assert_eq!(json["settings"], published);
    let keys: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "config_time",
            "device",
            "environment",
            "errors",
            "execution_time",
            "git_commit",
            "mpi",
            "name",
            "results",
            "settings",
            "timings",
            "validated",
            "version"
        ]
    );
    assert_eq!(json["config_time"], "Wed Dec 14 08:39:42 UTC 2022");
    assert_eq!(json["environment"]["LD_LIBRARY_PATH"], "");
    let entry = &json["timings"]["6"]["timings"][0];
    assert_eq!(entry["looplength"], 5);
    assert_eq!(entry["messageSize"], 6);
    assert_eq!(entry.get("rank"), None);
    assert_eq!(entry["timings"][0]["unit"], "s");
}

#[test]
fn numbers_of_json_are_the_published_ones_to_the_last_digit() {
    let words = format!("{WORDS} --format json --json-compat hpcc-1.3 --sizes 6");
    let (result, options) = result(&words, &[&[64_772]]);
    let text = stdout(&result, &options).unwrap();
    assert!(text.contains("\"maxCalcBW\":9880812.696844315,"), "{text}");
    assert!(
        text.contains("\"maxMinCalculationTime\":6.4772e-05,"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn the_peers_list_of_ranks_ends_with_rank_0_and_weirs_does_not() {
    let ranks = |words: &str, own: bool| -> Vec<f64> {
        let (mut result, options) = result(&format!("{words} --ranks 3"), TABLE);
        let exchange = exchange_of(&mut result.groups[0].jobs[0]);
        for rank in &mut exchange.sizes[0].ranks {
            rank.times_ns = vec![weir_units::Nanos(u64::from(rank.rank + 1) * 1_000_000_000)];
        }
        let json: Json = serde_json::from_str(&stdout(&result, &options).unwrap()).unwrap();
        let list = json["timings"]["6"]["timings"].as_array().unwrap().clone();
        assert_eq!(list[0].get("rank").is_some(), own);
        list.iter()
            .map(|r| r["timings"][0]["value"].as_f64().unwrap())
            .collect()
    };
    let own = format!("{WORDS} --format json");
    assert_eq!(ranks(&own, true), [1.0, 2.0, 3.0]);
    assert_eq!(
        ranks(&format!("{own} --json-compat hpcc-1.3"), false),
        [2.0, 3.0, 1.0]
    );
}

#[test]
fn the_test_mode_prints_the_configuration_and_the_prediction() {
    let (mut result, options) = result("--test --model 520n", &[]);
    result.groups[0].jobs[0].outcome = Outcome::None;
    result.groups[0].jobs[0].state = weir_schema::State::NotStarted;
    let text = stdout(&result, &options).unwrap();
    assert!(text.contains("model b_eff = 3.88589e+09 B/s\n"), "{text}");
    assert!(text.contains("Device                                  TEST RUN: Not selected!\n"));
    assert!(text.contains("Loop Length                             256 - 65536\n"));
    assert!(text.contains("Message Sizes                           2^0 - 2^20 Bytes\n"));
    assert!(text.contains("Test Mode                               Yes\n"));
    assert!(text.ends_with("SUCCESSFULLY parsed input parameters!\n"));
    let options = BeffOptions {
        format: BeffFormat::Json,
        ..options
    };
    let json: Json = serde_json::from_str(&stdout(&result, &options).unwrap()).unwrap();
    assert_eq!(json["weir"]["plan"][18]["looplength"], 261);
    assert_eq!(json["settings"]["Test Mode"], true);
    assert_eq!(json["validated"], false);
}

#[test]
fn a_model_adds_columns_and_a_line() {
    let text = printed(&format!("{WORDS} --model 520n --line-rate 100G"));
    let head = text.lines().find(|l| l.contains("looplength")).unwrap();
    assert!(head.ends_with("model B/s                  ratio"), "{head}");
    let row = text.lines().find(|l| l.contains("4.38310e-05")).unwrap();
    assert!(row.ends_with("1.21581e+08                 0.1201"), "{row}");
    assert!(
        text.contains("model b_eff = 2.77010e+08 B/s ratio = 0.0792\n"),
        "{text}"
    );
    assert!(
        text.contains("line rate 100.00000 Gbit/s per rank: b_eff 0.18 %"),
        "{text}"
    );
    let fitted = printed(&format!("{WORDS} --model fit --simulate 8"));
    assert!(fitted.contains("model fit: latency "), "{fitted}");
    assert!(fitted.contains("simulated 8 ranks b_eff = "), "{fitted}");
}

#[test]
fn weirs_own_tables_say_more() {
    insta::assert_snapshot!(printed(&format!("{WORDS} --format table --model 520n")));
    insta::assert_snapshot!(printed(&format!("{WORDS} --format csv")));
    insta::assert_snapshot!(printed(&format!("{WORDS} --format md")));
}

#[test]
fn wrong_bytes_losses_and_skipped_checks_change_the_verdict() {
    let (mut bad, options) = result(WORDS, TABLE);
    let exchange = exchange_of(&mut bad.groups[0].jobs[0]);
    exchange.sizes[2].ranks[0].wrong_bytes = 1;
    assert!(!stdout(&bad, &options).unwrap().contains("SUCCESS!\n"));
    let message = crate::beff::complaints(&bad);
    let sentence = "Validation data invalid for message size 256 in 1 cases!";
    assert!(message.contains(sentence), "{message}");
    assert!(
        message.ends_with("ERROR: VALIDATION OF OUTPUT DATA FAILED!\n"),
        "{message}"
    );
    assert_eq!(crate::beff::exit_code(&bad), 1);
    let json: Json = serde_json::from_str(&dump(&bad, &options).unwrap()).unwrap();
    assert_eq!(json["errors"], serde_json::json!({"8": 1}));
    assert_eq!(json["validated"], false);

    let (mut lossy, options) = result(WORDS, TABLE);
    let exchange = exchange_of(&mut lossy.groups[0].jobs[0]);
    exchange.sizes[0].ranks[0].lost = Some(0);
    assert!(stdout(&lossy, &options).unwrap().contains("\nlost: 0\n"));
    assert_eq!(crate::beff::exit_code(&lossy), 0);
    let exchange = exchange_of(&mut lossy.groups[0].jobs[0]);
    exchange.sizes[0].ranks[0].lost = Some(7);
    assert!(stdout(&lossy, &options).unwrap().contains("\nlost: 7\n"));
    assert_eq!(crate::beff::exit_code(&lossy), 1);

    let skipped = printed(&format!("{WORDS} --skip-validation"));
    assert!(skipped.ends_with("Validation: SKIPPED\n"), "{skipped}");
}

#[test]
fn a_failed_run_says_why_in_json() {
    let (failed, options) = cut(0, failed);
    assert_eq!(stdout(&failed, &options).unwrap(), "");
    let json: Json = serde_json::from_str(&dump(&failed, &options).unwrap()).unwrap();
    assert_eq!(json["weir"]["failure"], "rank 1 has left");
    assert_eq!(
        (&json["validated"], &json["results"]),
        (&false.into(), &serde_json::json!({}))
    );
}

/// Result that ended early, after `sizes` of three sizes.
fn cut(sizes: usize, end: impl Fn(&mut RunResult)) -> (RunResult, BeffOptions) {
    let (mut cut, options) = result(WORDS, &TABLE[..sizes]);
    cut.complete = false;
    end(&mut cut);
    (cut, options)
}

fn interrupted(cut: &mut RunResult) {
    cut.groups[0].jobs[0].state = weir_schema::State::Stopped;
    cut.ended_by = Some(weir_schema::EndedBy { signal: 2 });
}

fn failed(cut: &mut RunResult) {
    let job = &mut cut.groups[0].jobs[0];
    job.state = weir_schema::State::Failed;
    job.failure = Some(weir_schema::Failure::new("exchange", "rank 1 has left"));
}

#[test]
fn a_run_that_ended_early_shows_the_sizes_that_were_done() {
    for (end, code, message) in [
        (
            interrupted as fn(&mut RunResult),
            130,
            "interrupted by SIGINT: 1 of 3 sizes were measured\n",
        ),
        (failed, 1, "error: rank 1 has left\n"),
    ] {
        let (cut, options) = cut(1, end);
        let text = stdout(&cut, &options).unwrap();
        assert!(text.contains("1.46015e+07\n"), "{text}");
        assert!(!text.contains("b_eff = "), "another mean: {text}");
        assert!(
            text.ends_with("INCOMPLETE: 1 of 3 sizes were measured\n"),
            "{text}"
        );
        assert_eq!(crate::beff::exit_code(&cut), code);
        assert_eq!(crate::beff::complaints(&cut), message);
        let json: Json = serde_json::from_str(&dump(&cut, &options).unwrap()).unwrap();
        assert_eq!(json["weir"]["complete"], false);
        assert_eq!(json["validated"], false);
        assert_eq!(json["results"], serde_json::json!({}));
        assert_eq!(json["timings"].as_object().unwrap().len(), 1);
    }
}

#[test]
fn without_a_size_nothing_is_printed_but_why() {
    let (cut, options) = cut(0, interrupted);
    assert_eq!(stdout(&cut, &options).unwrap(), "");
    assert_eq!(
        crate::beff::complaints(&cut),
        "interrupted by SIGINT before any size was measured\n"
    );
    assert_eq!(crate::beff::exit_code(&cut), 130);
}

#[test]
fn a_baseline_adds_columns_and_a_line() {
    let stored = |sizes: &str| {
        let (stored, options) = result(&format!("{WORDS} --sizes {sizes}"), &[&[87_662u64][..]; 3]);
        let text = dump(&stored, &options).unwrap();
        crate::beff::Baseline::read("o.json", &text).unwrap()
    };
    let beside = |sizes: &str, words: &str| {
        let (result, mut options) = result(&format!("{WORDS} {words}"), TABLE);
        options.baseline = Some(stored(sizes));
        stdout(&result, &options).unwrap()
    };
    let same = beside("6,7,8", "");
    let head = same.lines().find(|l| l.contains("looplength")).unwrap();
    assert!(
        head.ends_with("baseline B/s                  ratio"),
        "{head}"
    );
    let row = same.lines().find(|l| l.contains("4.38310e-05")).unwrap();
    assert!(row.ends_with("7.30077e+06                 2.0000"), "{row}");
    assert!(
        same.contains("\nbaseline b_eff = 1.70351e+07 B/s ratio = 1.2877\n"),
        "{same}"
    );
    let other = beside("6,9", "");
    let row = other.lines().find(|l| l.contains("7.07010e-05")).unwrap();
    assert!(row.ends_with("-                      -"), "{row}");
    assert!(
        other.contains("B/s ratio = 2.0000 (over 1 sizes that both have)\n"),
        "{other}"
    );
    let none = beside("3", "");
    assert!(none.contains("\nbaseline: no size in common\n"), "{none}");
    let json: Json = serde_json::from_str(&beside("6,9", "--format json")).unwrap();
    let beside_json = &json["weir"]["baseline"];
    assert_eq!(beside_json["file"], "o.json");
    assert_eq!(beside_json["common_sizes"], 1);
    assert_eq!(beside_json["sizes"]["6"]["ratio"], 2.0);
    assert_eq!(beside_json["sizes"]["7"], Json::Null);
    assert_eq!(beside_json["missing_here"], serde_json::json!([9]));
    let csv = beside("6,9", "--format csv --line-rate 1G");
    let lines: Vec<_> = csv.lines().collect();
    assert!(
        lines[0].ends_with(",baseline_bytes_per_s,baseline_ratio,line_rate_percent"),
        "{csv}"
    );
    let columns = lines[0].split(',').count();
    assert!(
        lines.iter().all(|l| l.split(',').count() == columns),
        "{csv}"
    );
    assert!(lines[2].contains(",,,"), "{csv}");
}

#[test]
fn what_differs_from_the_baseline_is_told() {
    let (stored, options) = result(&format!("{WORDS} --ranks 2 -r 3"), TABLE);
    let text = dump(&stored, &options).unwrap();
    let baseline = crate::beff::Baseline::read("o.json", &text).unwrap();
    let (here, _) = result("--comm-type shm -u 5 -l 5 --sizes 6", &TABLE[..1]);
    assert_eq!(
        baseline.differences(&here.plan),
        [
            "o.json: transport file, here shm",
            "o.json: ranks 2, here 1",
            "o.json: replications 3, here 2"
        ]
    );
    assert!(baseline.differences(&stored.plan).is_empty());
    let options = BeffOptions {
        hpcc_json: true,
        ..options
    };
    let text = dump(&stored, &options).unwrap();
    let plain = crate::beff::Baseline::read("o.json", &text).unwrap();
    assert_eq!(
        plain.differences(&here.plan),
        ["o.json: ranks 2, here 1", "o.json: replications 3, here 2"]
    );
}

#[test]
fn a_stored_result_prints_the_same_text_again() {
    let (result, options) = result(WORDS, TABLE);
    let stored = RunResult::from_json(&result.to_json().unwrap()).unwrap();
    assert_eq!(stdout(&stored, &options), stdout(&result, &options));
}
