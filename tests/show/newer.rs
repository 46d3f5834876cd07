//! Results of a newer weir: what this one does not know is left out, and a door that has nothing to
//! print of what is left says so, or leaves it to weir's report.

use serde_json::{Value as Json, json};

use crate::stage::{Stage, said};

/// A result of each door that has an output of its own, as a newer weir could have made it of work
/// that this one does not know.
const DOORS: [&str; 3] = [
    "fio --name=a --ioengine=null --size=64k",
    "Network_intel --comm-type shm --ranks 2 -n 2 -u 8 -l 8 -m 4",
    "net lat-bw --voice peer --comm-type shm --min-time 0.0001",
];

/// Measures by these words.
fn measured(stage: &Stage, words: &str) -> Json {
    let mut words: Vec<_> = words.split(' ').collect();
    words.extend(["--store-result", "r.json"]);
    said(stage.called(&words)).code(0);
    serde_json::from_str(&stage.read("r.json")).unwrap()
}

fn jobs(groups: &mut Json) -> impl Iterator<Item = &mut Json> {
    let groups = groups.as_array_mut().unwrap().iter_mut();
    groups.flat_map(|group| group["jobs"].as_array_mut().unwrap())
}

/// The same of other work, by a newer weir.
fn of_other_work(mut result: Json) -> Json {
    result["schema"] = "weir.result.v3".into();
    for job in jobs(&mut result["groups"]) {
        job["outcome"] = json!({"kind": "rpc"});
    }
    for job in jobs(&mut result["plan"]["groups"]) {
        job["workload"] = json!({"kind": "rpc"});
    }
    result
}

#[test]
fn weirs_report_stands_in_where_the_own_door_has_nothing_to_print() {
    let stage = Stage::new();
    for words in DOORS {
        let newer = of_other_work(measured(&stage, words));
        stage.file("newer.json", newer.to_string());
        stage
            .say(&["show", "newer.json"])
            .code(0)
            .out("rpc")
            .err("was made by a newer weir")
            .err("its own door cannot print it here: this is weir's report");
    }
}

#[test]
fn a_door_that_is_asked_for_and_has_nothing_to_print_is_refused() {
    let stage = Stage::new();
    for (door, words) in [("fio", DOORS[1]), ("beff", DOORS[2]), ("net", DOORS[0])] {
        let newer = of_other_work(measured(&stage, words));
        stage.file("newer.json", newer.to_string());
        for file in ["newer.json", "r.json"] {
            let why = format!("{file}: there is nothing in it that `{door}` prints");
            let said = stage.say(&["show", file, "--as", door]);
            said.code(2).silent().err(&why).err("--as run");
        }
    }
}

#[test]
fn unknown_fields_are_left_out_of_a_result_and_refused_in_a_plan() {
    let stage = Stage::new();
    let mut result = measured(&stage, DOORS[0]);
    let own = stage.say(&["show", "r.json"]).code(0).out;
    let kind = &mut result["groups"][0]["jobs"][0]["outcome"]["workers"][0]["kinds"][0];
    kind["stages"][0]["histogram"]["later"] = 1.into();
    kind["series"]["later"] = 1.into();
    result["plan"]["groups"][0]["jobs"][0]["later"] = 1.into();
    stage.file("more.json", result.to_string());
    let said = stage.say(&["show", "more.json"]).code(0).calm();
    assert_eq!(said.out, own);
    let plan = stage.file("plan.json", result["plan"].to_string());
    let said = stage.say(&["run", &plan]).code(2).silent();
    said.err("unknown field `later`");
}

#[test]
fn an_unknown_word_of_a_newer_result_is_left_out_where_it_may_be_absent() {
    let stage = Stage::new();
    let mut result = measured(&stage, DOORS[0]);
    result["plan"]["groups"][0]["jobs"][0]["end"]["exit_all"] = "asleep".into();
    stage.file("same.json", result.to_string());
    let said = stage.say(&["show", "same.json"]).code(2).silent();
    said.err("unknown variant `asleep`");
    result["schema"] = "weir.result.v3".into();
    stage.file("newer.json", result.to_string());
    stage.say(&["show", "newer.json"]).code(0).out("Run status");
    result["groups"][0]["jobs"][0]["state"] = "asleep".into();
    stage.file("newer.json", result.to_string());
    let said = stage.say(&["show", "newer.json"]).code(2).silent();
    said.err("made by a newer weir")
        .err("unknown variant `asleep`");
}
