//! Writes before the measurement, and its end at a steady rate.

use std::fs;

use serde_json::Value;

use crate::stage::Stage;
use crate::{perf, rows};

#[test]
fn a_file_is_written_whole_before_it_is_read_and_that_is_no_row() {
    let stage = Stage::new();
    // An end that no large write fits, and that reads of 4 KiB reach.
    let bytes = (2 << 20) + 12_288;
    stage.file("F", vec![0_u8; bytes]);
    let line =
        "-q 4 -o 4096 -w read -t 60 -d 100 --precondition seq:1x,rand:2x --store-result r.json F";
    let said = perf(&stage, line)
        .code(0)
        .err("written whole, 1 x in order, then 2 x at random");
    let names: Vec<String> = rows(&said).into_iter().map(|row| row.name).collect();
    assert_eq!(names, ["F from core  0", "Total"], "{said}");
    let content = fs::read(stage.path("F")).unwrap();
    assert!(
        content
            .chunks(512)
            .all(|sector| sector.iter().any(|byte| *byte != 0))
    );
    let result: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let written = |group: usize| -> u64 {
        let jobs = result["groups"][group]["jobs"].as_array().unwrap().iter();
        jobs.map(|job| {
            job["outcome"]["workers"][0]["kinds"][0]["bytes"]
                .as_u64()
                .unwrap()
        })
        .sum()
    };
    assert_eq!((written(0), written(1)), (bytes as u64, 2 * bytes as u64));
    assert_eq!(result["groups"].as_array().unwrap().len(), 3);
    let shown = stage.say(&["show", "r.json"]).code(0);
    assert!(!shown.out.contains("precondition"), "{shown}");
}

#[test]
fn a_run_ends_once_its_rate_is_steady() {
    let stage = Stage::new();
    stage.file("F", vec![7_u8; 4 << 20]);
    let line = "-q 1 -o 4096 -w randread -t 3600 --rate 100 --steady-state iops:100%:2 --store-result r.json F";
    perf(&stage, line)
        .code(0)
        .err("The rate was steady at the end of the run");
    let result: Value = serde_json::from_str(&stage.read("r.json")).unwrap();
    let worker = &result["groups"][0]["jobs"][0]["outcome"]["workers"][0];
    assert_eq!(worker["steadiness"]["attained"], true);
    let short = "-q 1 -o 4096 -w randread -t 0.1 --steady-state iops:3% F";
    perf(&stage, short)
        .code(0)
        .err("The rate was not steady at the end of the run");
}

#[test]
fn a_file_has_no_temperature_to_end_at() {
    let stage = Stage::new();
    stage.file("F", vec![7_u8; 4 << 20]);
    perf(&stage, "-q 1 -o 4096 -w read -t 60 --max-temp 70 F")
        .code(3)
        .silent()
        .err("--max-temp: F has no temperature");
}
