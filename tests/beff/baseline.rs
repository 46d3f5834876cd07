//! A result beside one that was stored before.

use serde_json::Value as Json;

use crate::beff;
use crate::stage::Stage;

const SMALL: &str = "-u 5 -l 5 -n 2 --comm-type shm";

#[test]
fn a_stored_result_is_set_beside_the_new_one() {
    let stage = Stage::new();
    beff(
        &stage,
        &format!("{SMALL} --sizes 3,4,9 --dump-json old.json"),
    )
    .code(0);
    let words = format!("{SMALL} --sizes 3,4,5 --baseline old.json --dump-json new.json");
    let said = beff(&stage, &words)
        .code(0)
        .out("baseline B/s                  ratio\n")
        .out(" (over 2 sizes that both have)\n");
    let rows: Vec<_> = said
        .out
        .lines()
        .skip_while(|l| !l.contains("looplength"))
        .collect();
    let last: Vec<_> = rows[3].split_whitespace().collect();
    assert_eq!(last[0], "32");
    assert_eq!(last[4..], ["-", "-"], "{said}");
    let number = |json: &Json| json.as_f64().unwrap();
    let old: Json = serde_json::from_str(&stage.read("old.json")).unwrap();
    let new: Json = serde_json::from_str(&stage.read("new.json")).unwrap();
    let beside = &new["weir"]["baseline"];
    let (there, here) = (
        &old["timings"]["3"]["maxCalcBW"],
        &new["timings"]["3"]["maxCalcBW"],
    );
    assert_eq!(&beside["sizes"]["3"]["maxCalcBW"], there);
    let ratio = number(&beside["sizes"]["3"]["ratio"]);
    assert!((ratio / (number(here) / number(there)) - 1.0).abs() < 1e-12);
    assert_eq!(beside["missing_here"], serde_json::json!([9]));
    assert_eq!(beside["common_sizes"], 2);
    assert_eq!(beside["differences"], serde_json::json!([]));
}

#[test]
fn the_peers_json_is_enough_and_what_differs_is_told() {
    let stage = Stage::new();
    let words = format!("{SMALL} --ranks 2 --sizes 3 --dump-json o.json --json-compat hpcc-1.3");
    beff(&stage, &words).code(0);
    beff(&stage, &format!("{SMALL} -r 1 --sizes 3 --baseline o.json"))
        .code(0)
        .err("note: o.json: ranks 2, here 1\n")
        .err("note: o.json: replications 2, here 1\n")
        .out("\nbaseline b_eff = ");
}

#[test]
fn what_is_no_stored_result_is_refused_before_the_run() {
    let stage = Stage::new();
    stage.file("text", "b_eff = 3");
    stage.file("plan.json", beff(&stage, "--show-plan").code(0).out);
    stage.file(
        "late.json",
        r#"{"weir": {"schema": "weir.beff.v9"}, "timings": {}}"#,
    );
    for (file, message) in [
        ("gone.json", "No such file"),
        (".", "directory"),
        ("text", "it is not JSON"),
        ("plan.json", "it has no `timings`"),
        (
            "late.json",
            "its schema is weir.beff.v9; expected weir.beff.v1",
        ),
        ("/dev/zero", "it is longer than"),
    ] {
        beff(
            &stage,
            &format!("{SMALL} --baseline {file} --dump-json o.json"),
        )
        .code(2)
        .silent()
        .err(&format!("error: --baseline {file}: "))
        .err(message);
    }
    assert!(!stage.list().contains(&"o.json".to_owned()));
}
