//! Result of the guide "Add an engine".

use serde_json::Value;
use weir_schema::{Kind, RunResult, Stage};

use crate::stdout;

pub(crate) const PAGE: &str = "add-an-engine.md";
const EXAMPLE: &str = "examples/delay.fio";
/// Operations of the example: 256 of 2 ms each.
const OPERATIONS: u64 = 256;
/// A little less than 2 ms: two clocks are compared.
const SHORTEST_NS: u64 = 1_990_000;

/// `said`: by the lines that the page runs.
pub(crate) fn check(said: &[String]) {
    for word in ["1 passed", "delay_us"] {
        assert!(said.iter().any(|text| text.contains(word)), "{said:?}");
    }
    check_house_door();
    check_fio_door();
}

/// weir's own result has every operation, none shorter than the engine's delay.
fn check_house_door() {
    let text = stdout(&format!("target/debug/weir run --format json {EXAMPLE}"));
    let result = RunResult::from_json(&text).unwrap();
    assert!(result.complete);
    let job = result.jobs().next().unwrap();
    let reads = job.workers()[0].kind(Kind::Read).unwrap();
    assert_eq!(reads.operations, OPERATIONS);
    let fastest = reads.stage(Stage::Lat).unwrap().min().unwrap();
    assert!(fastest >= SHORTEST_NS, "{fastest} ns");
    assert_eq!(result.plan.jobs().next().unwrap().1.engine.name, "delay");
}

/// fio's JSON says the same.
fn check_fio_door() {
    let text = stdout(&format!(
        "target/debug/weir fio --output-format=json {EXAMPLE}"
    ));
    let json: Value = serde_json::from_str(&text).unwrap();
    let job = &json["jobs"][0];
    assert_eq!(job["error"], 0);
    assert_eq!(job["job options"]["ioengine"], "delay");
    assert_eq!(job["read"]["total_ios"], OPERATIONS);
    let fastest = job["read"]["lat_ns"]["min"].as_u64().unwrap();
    assert!(fastest >= SHORTEST_NS, "{fastest} ns");
}
