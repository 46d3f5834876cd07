//! Plans on the engine `daos`: without a library, and with a stub of it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::stage::{Said, Stage, said, skip};
use super::{count, runs};

const LIBRARY: &str = "WEIR_DAOS_LIB";

/// A plan of tests on a pool of DAOS.
fn plan(stage: &Stage, commands: &str, with: &Value) -> String {
    let words = "vos-perf -D . -P 64M -o 2 -d 20 -a 2 -n 3 -s 256 -A --show-plan -R";
    let words: Vec<&str> = words.split(' ').chain([commands]).collect();
    let shown = stage.say(&words).code(0);
    let mut plan: Value = serde_json::from_str(&shown.out).unwrap();
    let work = &mut plan["groups"][0]["jobs"][0]["workload"];
    work["engine"] = json!("daos");
    work["pool"] = json!("tank");
    for (name, value) in with.as_object().unwrap() {
        work[name] = value.clone();
    }
    stage.file("plan.json", plan.to_string())
}

fn run(stage: &Stage, plan: &str, library: &str) -> Said {
    let mut command: Command = stage.weir(&["run", plan, "--format", "json"]);
    command.env(LIBRARY, library);
    said(command)
}

#[test]
fn case_15_a_job_on_daos_without_its_library_ends_with_code_3_and_names_it() {
    let stage = &Stage::new();
    let plan = plan(stage, "U;p", &json!({}));
    run(stage, &plan, "/nowhere/libdaos.so")
        .code(3)
        .err("libdaos not found (searched /nowhere/libdaos.so");
}

#[test]
fn what_daos_does_not_do_is_refused_by_name() {
    let stage = &Stage::new();
    let refused = |commands, with, why| {
        let plan = plan(stage, commands, &with);
        run(stage, &plan, "/nowhere/libdaos.so").code(2).err(why);
    };
    refused("U", json!({"pool": null}), "daos makes no pools");
    refused("U", json!({"zero_copy": true}), "no values in place");
    refused("U I", json!({}), "I is there on mem");
    refused("U D", json!({}), "D is there on mem");
    refused("U G", json!({}), "G is there on mem");
}

#[test]
fn tests_run_on_a_library_that_stands_in_for_libdaos() {
    let stage = &Stage::new();
    let weir = PathBuf::from(env!("CARGO_BIN_EXE_weir"));
    let stub = weir.with_file_name("examples").join("libdaos_stub.so");
    let Some(stub) = stub.to_str().filter(|_| stub.exists()) else {
        let name = "tests on a stub of libdaos";
        skip(
            name,
            "cargo build -p weir-object --example daos_stub makes it",
        );
        return;
    };
    let plan = plan(stage, "U;p F;p V P;d F A", &json!({}));
    let ran = run(stage, &plan, stub).code(0);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    let rank = &result["groups"][0]["jobs"][0]["outcome"]["ranks"][0];
    assert_eq!(rank["library"], stub, "{ran}");
    assert_eq!(rank["pool"], "tank", "{ran}");
    assert_eq!(rank["durability"], "power", "{ran}");
    let [update, fetch, verify, punch, after, _] = &runs(&result)[..] else {
        panic!("{ran}");
    };
    for run in [update, fetch, verify] {
        assert_eq!(
            (count(run, "operations"), count(run, "hits")),
            (240, 240),
            "{ran}"
        );
    }
    assert_eq!(count(punch, "operations"), 40, "{ran}");
    assert_eq!(count(after, "misses"), 240, "{ran}");
}
