//! Messages that are lost and messages that were never begun: every form of the report, comparisons and warnings
//! say so.

use crate::stage::Stage;
use crate::{Json, example};

/// A run that may lose messages, whose window those fill; its result is in this file.
fn run(stage: &Stage, file: &str, words: &[&str]) {
    let sets = ["iteration=1", "duration=0.4", "rate=20k", "inflight=64"];
    let mut all = vec!["axio", "--example", "echo", "--store-result", file];
    all.extend(sets.iter().flat_map(|set| ["--set", set]));
    stage.peer_says(&[&all[..], words].concat()).code(0);
}

#[test]
fn losses_are_in_every_form_of_the_report_in_comparisons_and_among_the_warnings() {
    let stage = Stage::new();
    run(&stage, "lossy", &["--inject-loss", "5%"]);
    run(&stage, "clean", &["--set", "inflight=0"]);
    let result: Json = serde_json::from_str(&stage.read("lossy")).unwrap();
    let metrics = result["groups"][0]["jobs"][0]["metrics"]
        .as_array()
        .unwrap();
    let value = |name: &str| {
        let found = metrics.iter().find(|metric| metric["name"] == name);
        found.and_then(|metric| metric["value"].as_f64()).unwrap()
    };
    assert!(value("loss") > 0.01, "{metrics:?}");
    assert!(value("begun of the rate") < 0.9, "{metrics:?}");
    let warnings = result["warnings"].as_array().unwrap().iter();
    let ids: Vec<&str> = warnings.map(|one| one["id"].as_str().unwrap()).collect();
    for id in ["generator-limited", "messages-lost"] {
        assert!(ids.contains(&id), "{ids:?}");
    }
    for form in ["text", "csv", "md", "html"] {
        let format = format!("--format={form}");
        let said = stage.say(&["report", &format, "lossy"]).code(0);
        for says in ["loss", "begun of the rate", "messages-lost"] {
            assert!(said.out.contains(says), "{form}: {says}: {}", said.out);
        }
    }
    let compared = stage.say(&["compare", "clean", "lossy"]);
    let rows = compared.out.lines().filter(|line| line.contains(" loss "));
    assert_eq!(rows.count(), 1, "{compared}");
}

#[test]
fn a_run_that_loses_nothing_says_that_it_lost_none() {
    let stage = Stage::new();
    example(&stage, "echo", "iteration=1 duration=0.1").code(0);
    let said = stage.say(&["report", "r.json"]).code(0);
    assert!(said.out.contains("  loss  "), "{said}");
    assert!(!said.out.contains("messages-lost"), "{said}");
}
