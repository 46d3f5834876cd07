//! Predictions, tables of weir's own, devices: what needs no exchange, and what is set beside one.

use serde_json::Value as Json;

use crate::beff;
use crate::stage::Stage;

fn model(text: &str) -> f64 {
    let line = text.lines().find(|l| l.starts_with("model b_eff = "));
    let word = line.and_then(|l| l.split_whitespace().nth(3));
    word.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[test]
fn the_board_is_predicted_without_a_run() {
    let stage = Stage::new();
    let found = model(&beff(&stage, "--ranks 1 --model 520n --test").code(0).out);
    assert!((found / 3.88589e9 - 1.0).abs() < 1e-4, "{found}");
    let sizes = "0,1,2,3,4,5,6,7,8,9,10,11,12,14,15,16,17,18,19,20,21";
    let words = format!("--ranks 1 --model 520n --test --sizes {sizes}");
    let found = model(&beff(&stage, &words).code(0).out);
    assert!((found / 4.06961e9 - 1.0).abs() < 1e-4, "{found}");
    let eight = beff(&stage, "--model 520n --simulate 8 --format json").code(0);
    let json: Json = serde_json::from_str(&eight.out).unwrap();
    let simulated = &json["weir"]["model"]["simulated"];
    assert_eq!(simulated["ranks"], 8);
    let found = simulated["b_eff"].as_f64().unwrap();
    assert!((found / (8.0 * 3.88589e9) - 1.0).abs() < 1e-4, "{found}");
}

#[test]
fn the_test_mode_lists_the_loops_and_runs_nothing() {
    let stage = Stage::new();
    let json: Json =
        serde_json::from_str(&beff(&stage, "--test --format json").code(0).out).unwrap();
    let plan = json["weir"]["plan"].as_array().unwrap();
    let loops: Vec<u64> = plan
        .iter()
        .map(|s| s["looplength"].as_u64().unwrap())
        .collect();
    let mut wanted = vec![65536; 12];
    wanted.extend([56211, 46886, 37561, 28236, 18911, 9586, 261, 256, 256]);
    assert_eq!(loops, wanted);
    assert_eq!(json["timings"], serde_json::json!({}));
    beff(&stage, "--test")
        .code(0)
        .out("TEST MODE ENABLED: SKIP DATA GENERATION, EXECUTION, AND VALIDATION!\n")
        .out("SUCCESSFULLY parsed input parameters!\n");
}

#[test]
fn devices_go_by_rank_unless_one_is_named() {
    let stage = Stage::new();
    let fake = "--ranks 3 --comm-type ocl-pcie --test --fake-devices 2";
    let devices = |words: &str| -> Vec<String> {
        let said = beff(&stage, words).code(0);
        let lines = said.out.lines().filter(|l| l.starts_with("Device of rank"));
        lines
            .filter_map(|l| l.split_whitespace().last())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(devices(fake), ["0", "1", "0"]);
    assert_eq!(devices(&format!("{fake} --device 1")), ["1", "1", "1"]);
    beff(&stage, &format!("{fake} --device 5"))
        .code(2)
        .silent()
        .err("Invalid device index specified: 5/1");
}

#[test]
fn a_model_is_fitted_to_what_was_measured() {
    let stage = Stage::new();
    let words = "--comm-type shm -u 20 -l 20 -m 12 -n 3 --model fit --simulate 16";
    let said = beff(&stage, words)
        .code(0)
        .out("model fit: latency ")
        .out("simulated 16 ranks b_eff = ");
    let predicted = model(&said.out);
    let line = said
        .out
        .lines()
        .find(|l| l.starts_with("simulated 16"))
        .unwrap();
    let simulated: f64 = line.split_whitespace().nth(5).unwrap().parse().unwrap();
    assert!(
        (simulated / (16.0 * predicted) - 1.0).abs() < 1e-4,
        "{said}"
    );
}

#[test]
fn weirs_own_tables_have_a_row_per_size() {
    let stage = Stage::new();
    let small = "--comm-type shm -u 5 -l 5 -m 3 -n 2 --format";
    let csv = beff(&stage, &format!("{small} csv")).code(0).out;
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let columns = |line: &str| line.split(',').count();
    assert!(csv.lines().all(|l| columns(l) == 10), "{csv}");
    let markdown = beff(&stage, &format!("{small} md --line-rate 1G")).code(0);
    let rows = markdown.out.lines().filter(|l| l.starts_with('|')).count();
    assert_eq!(rows, 6, "{markdown}");
    markdown.out("line rate 1.00000 Gbit/s per rank: b_eff ");
    let own = beff(&stage, &format!("{small} table")).code(0);
    own.out("usec/msg")
        .out("rank 0: ")
        .out("validation: good\n");
}
