//! Runs over shared memory: what is printed, stored and found wrong.

use serde_json::Value as Json;

use crate::stage::Stage;
use crate::{beff, table};

const SMALL: &str = "-u 5 -l 5 --min-size 6 -m 8 --comm-type shm";

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

#[test]
fn one_rank_exchanges_with_itself_and_prints_the_peers_table() {
    let stage = Stage::new();
    let said = beff(&stage, &format!("--ranks 1 {SMALL}")).code(0);
    let rows = table(&said.out);
    let sizes: Vec<_> = rows
        .iter()
        .map(|r| (r[0].as_str(), r[1].as_str()))
        .collect();
    assert_eq!(sizes, [("64", "5"), ("128", "5"), ("256", "5")]);
    let mean = rows.iter().map(|r| number(&r[3])).sum::<f64>() / 3.0;
    let line = said
        .out
        .lines()
        .find(|l| l.starts_with("b_eff = "))
        .unwrap();
    let printed = number(line.split_whitespace().nth(2).unwrap());
    assert!((printed / mean - 1.0).abs() < 1e-4, "{said}");
    let said = said.out("MPI Ranks                               1\n");
    assert!(said.out.ends_with("Validation: SUCCESS!\n"), "{said}");
    assert_eq!(stage.list(), Vec::<String>::new());
}

#[test]
fn the_stored_json_follows_from_its_own_times() {
    let stage = Stage::new();
    let words = format!("--ranks 2 {SMALL} --dump-json out.json --validate full");
    beff(&stage, &words).code(0);
    assert_eq!(stage.list(), ["out.json"]);
    let json: Json = serde_json::from_str(&stage.read("out.json")).unwrap();
    assert_eq!(json["validated"], true);
    assert_eq!(json["errors"], serde_json::json!({}));
    let timings = json["timings"].as_object().unwrap();
    assert_eq!(timings.keys().collect::<Vec<_>>(), ["6", "7", "8"]);
    let mut sum = 0.0;
    for (exponent, entry) in timings {
        let ranks = entry["timings"].as_array().unwrap();
        assert_eq!(ranks.len(), 2);
        let best = |rank: &Json| {
            let values = rank["timings"].as_array().unwrap();
            assert_eq!(values.len(), 10);
            assert!(values.iter().all(|v| v["unit"] == "s"));
            let times = values.iter().map(|v| v["value"].as_f64().unwrap());
            times.fold(f64::INFINITY, f64::min)
        };
        let slowest = ranks.iter().map(best).fold(0.0, f64::max);
        assert_eq!(entry["maxMinCalculationTime"].as_f64(), Some(slowest));
        let size = 2f64.powi(exponent.parse().unwrap());
        let wanted = 2.0 * 2.0 * size * 5.0 / slowest;
        let printed = entry["maxCalcBW"].as_f64().unwrap();
        assert!((printed / wanted - 1.0).abs() < 1e-12, "{printed} {wanted}");
        sum += printed;
    }
    let b_eff = json["results"]["b_eff"]["value"].as_f64().unwrap();
    assert!((b_eff / (sum / 3.0) - 1.0).abs() < 1e-12);
    assert_eq!(json["weir"]["ranks"].as_array().unwrap().len(), 2);
    assert_eq!(json["weir"]["loopback"], false);
}

#[test]
fn json_in_the_peers_types_has_nothing_of_weir() {
    let stage = Stage::new();
    let words = format!("{SMALL} --format json --json-compat hpcc-1.3");
    let json: Json = serde_json::from_str(&beff(&stage, &words).code(0).out).unwrap();
    assert_eq!(json["settings"]["Loop Length"], 5);
    assert_eq!(json["settings"]["Message Sizes"], 2);
    assert_eq!(json["settings"]["Communication Type"], false);
    assert_eq!(json["settings"]["Kernel File"], false);
    assert_eq!(json.get("weir"), None);
    assert_eq!(
        json["mpi"],
        serde_json::json!({"version": 0, "subversion": 0})
    );
}

#[test]
fn three_ranks_come_to_an_end() {
    let stage = Stage::new();
    let said = beff(&stage, "--ranks 3 -u 64 -l 8 -m 10 --comm-type shm").code(0);
    assert_eq!(table(&said.out).len(), 11);
    said.out("Validation: SUCCESS!");
}

#[test]
fn ranks_can_be_processes_that_say_nothing_of_their_own() {
    let stage = Stage::new();
    let words = "--ranks 2 --spawn procs -u 16 -l 4 -m 12 -n 3 --comm-type tcp --quiet";
    if !crate::has(&stage, "tcp") {
        return crate::stage::skip("ranks as processes", "no transport tcp");
    }
    let said = beff(&stage, words).code(0);
    assert_eq!(said.out.matches("b_eff = ").count(), 1, "{said}");
    assert_eq!(table(&said.out).len(), 13);
}

#[test]
fn crossed_bounds_are_told_and_the_run_goes_on() {
    let stage = Stage::new();
    let said = beff(&stage, "-l 100 -u 10 -m 3 --comm-type shm").code(0).err(
        "WARNING: Loop Length: Minimum is bigger than maximum. Setting minimum to value of maximum.",
    );
    assert!(table(&said.out).iter().all(|r| r[1] == "10"), "{said}");
    let said = beff(&stage, "--min-size 9 -m 4 -u 9 -l 9 --comm-type shm").code(0).err(
        "WARNING: Message Sizes: Minimum is bigger than maximum. Setting minimum to value of maximum.",
    );
    let rows = table(&said.out);
    assert_eq!((rows.len(), rows[0][0].as_str()), (1, "16"), "{said}");
}

#[test]
fn the_library_path_is_stored_also_where_there_is_none() {
    let stage = Stage::new();
    let words = [
        "Network_intel",
        "-u",
        "2",
        "-l",
        "1",
        "-m",
        "2",
        "--dump-json",
        "o.json",
    ];
    for (value, wanted) in [(None, ""), (Some("/some/where"), "/some/where")] {
        let mut command = stage.peer(&words);
        match value {
            None => command.env_remove("LD_LIBRARY_PATH"),
            Some(path) => command.env("LD_LIBRARY_PATH", path),
        };
        crate::stage::said(command).code(0);
        let json: Json = serde_json::from_str(&stage.read("o.json")).unwrap();
        assert_eq!(json["environment"]["LD_LIBRARY_PATH"], wanted);
    }
}

#[test]
fn skipped_validation_is_no_failure() {
    let stage = Stage::new();
    let words = format!("{SMALL} --skip-validation --dump-json o.json");
    beff(&stage, &words).code(0).out("Validation: SKIPPED\n");
    let json: Json = serde_json::from_str(&stage.read("o.json")).unwrap();
    assert_eq!(json["validated"], false);
}

#[test]
fn a_flipped_byte_is_found_at_its_rank_and_size() {
    let stage = Stage::new();
    let words = format!("--ranks 2 {SMALL} --inject flip:rank=1,size=8,byte=3 --dump-json o.json");
    let said = beff(&stage, &words)
        .code(1)
        .err("Validation data invalid for message size 256 in 1 cases! (rank 1)\n")
        .err("ERROR: VALIDATION OF OUTPUT DATA FAILED!\n");
    assert!(!said.out.contains("SUCCESS!"), "{said}");
    let json: Json = serde_json::from_str(&stage.read("o.json")).unwrap();
    assert_eq!(json["errors"], serde_json::json!({"8": 1}));
    assert_eq!(json["validated"], false);
    assert_eq!(json["weir"]["inject"][0]["kind"], "flip");
}

#[test]
fn a_rank_that_stops_taking_part_is_named() {
    let stage = Stage::new();
    let words = format!(
        "--ranks 2 {SMALL} --inject stall:rank=1,size=7,after=2 --timeout 0.5 --dump-json o.json"
    );
    let said = beff(&stage, &words).code(1).err("rank 1").err("128 B");
    assert!(!said.out.contains("SUCCESS!"), "{said}");
    let json: Json = serde_json::from_str(&stage.read("o.json")).unwrap();
    assert_eq!(json["validated"], false);
    assert_eq!(json["weir"]["complete"], false);
}

#[test]
fn links_with_names_of_the_peer_are_this_door() {
    let stage = Stage::new();
    for name in ["Network_intel", "fnet"] {
        let words = [name, "-u", "2", "-l", "2", "-m", "3", "-n", "1"];
        let said = stage.peer_says(&words).code(0);
        assert_eq!(table(&said.out).len(), 4, "{said}");
    }
}

#[test]
fn a_plan_is_shown_and_not_run() {
    let stage = Stage::new();
    let said = beff(&stage, &format!("{SMALL} --show-plan")).code(0).calm();
    let plan = weir_schema::Plan::from_json(&said.out).unwrap();
    assert_eq!((plan.door.as_str(), plan.ranks.unwrap().count), ("beff", 1));
    stage.file("p.json", &said.out);
    stage.say(&["run", "p.json"]).code(0).out("b_eff");
    let said = stage.say(&["run", "--format=json", "p.json"]).code(0);
    let result = weir_schema::RunResult::from_json(&said.out).unwrap();
    let exchange = result.jobs().next().unwrap().exchange().unwrap();
    assert_eq!(exchange.sizes.len(), 3);
}
