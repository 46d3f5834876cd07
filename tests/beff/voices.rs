//! By its verb the door prints the report of weir and has the flags of the house.

use serde_json::Value as Json;

use crate::stage::{Said, Stage};

const SMALL: &str = "-u 5 -l 5 -n 2 -m 3 --comm-type shm";

/// The door by its verb.
fn verb(stage: &Stage, words: &str) -> Said {
    let mut all = vec!["beff"];
    all.extend(words.split_whitespace());
    stage.say(&all)
}

#[test]
fn by_the_verb_the_report_of_weir_is_printed_and_files_of_either_are_written() {
    let stage = Stage::new();
    let words = format!("{SMALL} --dump-json peer.json --output own.json --store-result r.json");
    let said = verb(&stage, &words).code(0).out("b_eff");
    assert!(!said.out.contains("looplength"), "{said}");
    let json = |file: &str| -> Json { serde_json::from_str(&stage.read(file)).unwrap() };
    assert_eq!(json("peer.json")["validated"], true);
    assert_eq!(json("own.json")["plan"]["voice"], "weir");
    let again = stage.say(&["show", "r.json"]).code(0);
    assert!(!again.out.contains("looplength"), "{again}");
    for peers in [
        &["show", "r.json", "--voice", "peer"][..],
        &["show", "r.json", "--text-compat=1.3"],
    ] {
        stage.say(peers).code(0).out("looplength");
    }
}

#[test]
fn forms_of_the_peer_are_obeyed_by_the_verb() {
    let stage = Stage::new();
    let csv = format!("{SMALL} --format csv --output own.json");
    let rows = verb(&stage, &csv).code(0).out;
    assert_eq!(rows.lines().count(), 5, "{rows}");
    assert!(stage.read("own.json").contains("\"plan\""));
    let printed = verb(&stage, &format!("{SMALL} --dump-json -")).code(0).out;
    let json: Json = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["validated"], true);
    verb(&stage, &format!("{SMALL} --voice peer"))
        .code(0)
        .out("looplength");
}

#[test]
fn damage_has_the_exit_code_of_the_house() {
    let stage = Stage::new();
    let words = format!("{SMALL} --ranks 2 --inject flip:rank=1,size=3,byte=2");
    verb(&stage, &words).code(1);
}

#[test]
fn a_run_is_repeated_and_a_plan_is_checked_by_flags_of_the_house() {
    let stage = Stage::new();
    verb(
        &stage,
        &format!("{SMALL} --repeat 2 --store-result all.json"),
    )
    .code(0);
    let all: Json = serde_json::from_str(&stage.read("all.json")).unwrap();
    assert_eq!(all["series"][0]["runs"].as_array().unwrap().len(), 2);
    verb(&stage, &format!("{SMALL} --dry-run"))
        .code(0)
        .out("would run: b_eff (shm)\n");
    let wrong = "--comm-type tcp --iface nosuch9";
    for words in [wrong.to_owned(), format!("{wrong} --dry-run")] {
        let said = verb(&stage, &words).code(2).silent();
        said.err("transport `tcp`: `nosuch9` is neither an address");
    }
}
