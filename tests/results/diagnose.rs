//! `weir diagnose`, from files to lines and exit codes.

use crate::stage::Stage;

const TABLE: &str = include_str!("diagnose/seed-table.txt");
const WORKSPACES: &str = include_str!("diagnose/seed-workspaces.txt");
const REPORT: &str = include_str!("diagnose/seed-report.rpt");
const CONFIG: &str = include_str!("diagnose/seed.config");

fn stage() -> Stage {
    let stage = Stage::new();
    stage.file("axio.log", format!("{WORKSPACES}{TABLE}").repeat(30));
    stage.file("report.rpt", REPORT);
    stage.file("recv_config", CONFIG);
    stage
}

#[test]
fn the_example_of_the_reference_is_diagnosed_and_nothing_is_written() {
    let stage = stage();
    let before = stage.list();
    let said = stage
        .say(&[
            "diagnose",
            "axio.log",
            "report.rpt",
            "-c",
            "recv_config",
            "-p",
        ])
        .code(0);
    let begin = "[INFO] Diagnosing the contention point for local......\n\
                 ==========Performance Statistics==========\n\
                 [DEBUG] End-to-end Throughput: 20.188\n\
                 [DEBUG] Completion time: [0.0, 0.021, 0.015, 0.027, 0.008, 0]\n\
                 [DEBUG] Stall time: [0.0, 0.0, 0.008, 0.014]\n\
                 [DEBUG] IO Read Miss Rate: 0.0\n\
                 [DEBUG] IO Write Miss Rate: 0.89\n\
                 [DEBUG] LLC Read Miss Rate: 0.11\n\
                 [DEBUG] LLC Write Miss Rate: 0.1\n\
                 [INFO] The most critical pipe phase is: disp_rx\n\
                 [INFO] The completion time < stall time. Contention point is C1.\n\
                 [WEIR] verdict: C1, cause not found";
    assert!(said.out.starts_with(begin), "{}", said.out);
    assert_eq!(stage.list(), before);
}

#[test]
fn json_has_every_rule_and_null_with_a_reason_for_what_is_not_there() {
    let stage = stage();
    let said = stage
        .say(&["diagnose", "axio.log", "--table", "3", "--format", "json"])
        .code(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(json["schema"], "weir.diagnosis.v1");
    assert_eq!((&json["table"], &json["tables"]), (&3.into(), &30.into()));
    assert_eq!(json["critical"], "disp_rx");
    assert_eq!(json["io_write_miss"]["value"], serde_json::Value::Null);
    let reason = &json["io_write_miss"]["unavailable"];
    assert_eq!(reason, "nothing says which socket counts");
    assert_eq!(json["rules"].as_array().unwrap().len(), 18);
}

#[test]
fn a_file_that_cannot_be_read_is_refused_with_its_line_and_a_remedy() {
    let stage = stage();
    stage.file("odd.rpt", REPORT.replace("0.89", "much"));
    stage.file("empty.log", "");
    stage.file("odd_config", CONFIG.replace("numa : 1", "numa :"));
    for (words, says) in [
        (
            &["axio.log", "odd.rpt"][..],
            "odd.rpt:20: IO Write Miss Rate: `much` is no number",
        ),
        (&["empty.log"], "empty.log:1: no whole table"),
        (&["none.log"], "none.log: No such file"),
        (&["report.rpt"], "report.rpt:39: no whole table"),
        (&["axio.log", "axio.log"], "axio.log:1: `[Workspace 0]"),
        (
            &["axio.log", "-c", "odd_config"],
            "odd_config:13: numa: a value is missing",
        ),
        (
            &["axio.log", "--perf", "report.rpt"],
            "no counter of perf stat",
        ),
        (
            &["axio.log", "--pcie", "report.rpt"],
            "no counts of pcm-pcie",
        ),
        (
            &["axio.log", "--memory", "report.rpt"],
            "no memory node of pcm-memory",
        ),
    ] {
        let words: Vec<&str> = ["diagnose"]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        let said = stage.say(&words).code(2).err(says);
        assert!(said.out.is_empty(), "{words:?}");
    }
}

#[test]
fn a_stored_result_is_diagnosed_on_both_sides_by_what_its_log_does_not_say() {
    let stage = Stage::new();
    let words = "axio --example echo --set duration=0.1 --store-result r.json";
    let words: Vec<&str> = words.split(' ').collect();
    let log = stage.peer_says(&words).code(0).out;
    stage.file("axio.log", log);
    let both = stage.say(&["diagnose", "r.json", "-p"]).code(0).out;
    let titles: Vec<&str> = both
        .lines()
        .filter(|line| line.starts_with("[INFO] Diagnosing"))
        .collect();
    assert_eq!(
        titles,
        [
            "[INFO] Diagnosing the contention point for local......",
            "[INFO] Diagnosing the contention point for remote......"
        ]
    );
    assert!(
        !both.contains("-0.0") && !both.contains("D1 no traffic: no packets"),
        "{both}"
    );
    let local = both.split("for remote").next().unwrap();
    // All of these are in the result and not in the log.
    for id in ["D4", "D7", "D8", "D9", "D17"] {
        let begin = format!("[WEIR] {id} ");
        let mut lines = local.lines().filter(|line| line.starts_with(&begin));
        assert!(lines.all(|line| !line.contains("not evaluated")), "{both}");
    }
    let json = |operand: &str| -> serde_json::Value {
        let said = stage
            .say(&["diagnose", operand, "--format", "json"])
            .code(0);
        serde_json::from_str(&said.out).unwrap()
    };
    let (result, log) = (json("r.json"), json("axio.log"));
    assert_eq!(
        (&result[0]["side"], &result[1]["side"]),
        (&"local".into(), &"remote".into())
    );
    assert_eq!(log["side"], "local");
    // Only where there are several has each the name of its job.
    assert!(
        !both.contains("==Job ") && result[0].get("job").is_none(),
        "{both}"
    );
    assert_eq!(result[0]["table"], log["table"]);
    let times = |of: &serde_json::Value| -> Vec<f64> {
        let all = of["completion_us"].as_array().unwrap().iter();
        all.map(|time| time["value"].as_f64().unwrap()).collect()
    };
    for (one, other) in times(&result[0]).into_iter().zip(times(&log)) {
        // Three decimals, of which half a unit is not a number of this form.
        assert!((one - other).abs() < 0.000_500_1, "{result}{log}");
    }
}

/// A stored result of these jobs, `r.json`: two packet paths, and others after them.
fn result_of_two_paths(stage: &Stage, others: &[serde_json::Value]) {
    let plan = |words: &str| -> serde_json::Value {
        let all = format!(
            "axio --example echo --set duration=0.1 --set msg_timeout_ms=20000 --show-plan {words}"
        );
        let words: Vec<&str> = all.split_whitespace().collect();
        serde_json::from_str(&stage.say(&words).code(0).out).unwrap()
    };
    let mut whole = plan("");
    let mut second = plan("--set iteration=3")["groups"][0]["jobs"][0].clone();
    whole["groups"][0]["jobs"][0]["name"] = "first".into();
    second["name"] = "second".into();
    for mut job in [&[second], others].concat() {
        // It begins when the one before is over.
        job["start"]["barrier"] = true.into();
        let group = serde_json::json!({ "jobs": [job] });
        whole["groups"].as_array_mut().unwrap().push(group);
    }
    stage.file("p.json", whole.to_string());
    let words = ["run", "p.json", "--store-result", "r.json"];
    stage.say(&words).code(0);
}

#[test]
fn each_path_of_a_result_is_diagnosed_under_the_name_of_its_job() {
    let stage = Stage::new();
    result_of_two_paths(&stage, &[]);
    let said = stage.say(&["diagnose", "r.json"]).code(0);
    let heads: Vec<&str> = said
        .out
        .lines()
        .filter(|line| line.starts_with("===") || line.starts_with("[INFO] Diagnosing"))
        .collect();
    let sides = ["local", "remote"]
        .map(|side| format!("[INFO] Diagnosing the contention point for {side}......"));
    let wanted = ["first", "second"].map(|job| {
        let head = format!("==========Job {job}==========");
        [head, sides[0].clone(), sides[1].clone()]
    });
    assert_eq!(heads, wanted.concat(), "{said}");
    assert!(!said.err.contains("note"), "{said}");
    let json = stage
        .say(&["diagnose", "r.json", "--format", "json"])
        .code(0);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let all = json.as_array().unwrap().iter();
    let of = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap().to_owned();
    let names: Vec<[String; 2]> = all.map(|one| [of(one, "job"), of(one, "side")]).collect();
    let wanted = ["first", "second"].map(|job| [[job, "local"], [job, "remote"]]);
    assert_eq!(names, wanted.concat());
    let tables = [0, 1, 2, 3].map(|at| json[at]["tables"].as_u64().unwrap());
    assert_eq!(tables, [2, 2, 3, 3]);
    stage.file("report.rpt", REPORT);
    let words = ["diagnose", "r.json", "report.rpt", "--socket", "0"];
    let note = "note: what was recorded of the host is of all packet paths of the run together";
    let said = stage.say(&words).code(0);
    assert_eq!(said.out.matches(note).count(), 2, "{said}");
}

#[test]
fn a_path_that_says_nothing_is_left_out_with_a_note_beside_others() {
    let stage = Stage::new();
    let alone = "axio --example scan --stage disp_tx --set duration=0.1 --show-plan";
    let alone: Vec<&str> = alone.split(' ').collect();
    let alone: serde_json::Value = serde_json::from_str(&stage.say(&alone).code(0).out).unwrap();
    let mut alone = alone["groups"][0]["jobs"][0].clone();
    alone["name"] = "alone".into();
    result_of_two_paths(&stage, &[alone]);
    let said = stage.say(&["diagnose", "r.json"]).code(0);
    assert_eq!(said.out.matches("==========Job ").count(), 2, "{said}");
    said.err("note: r.json: job `alone` is left out: it is of one stage alone");
}

#[test]
fn a_result_knows_its_frames_and_one_without_a_packet_path_is_refused() {
    let stage = Stage::new();
    let words = "axio --example echo --set duration=0.1 --store-result r.json";
    let words: Vec<&str> = words.split(' ').collect();
    stage.file("axio.log", stage.peer_says(&words).code(0).out);
    let linked = stage.say(&["diagnose", "r.json", "--link", "1G"]).code(0);
    // Of the other side alone, which does not know what its link can carry.
    let open = linked.out.matches("D3 line rate: not evaluated").count();
    assert_eq!(open, 1, "{}", linked.out);
    stage
        .say(&["diagnose", "axio.log", "--link", "1G"])
        .code(2)
        .err("--link acts only with `--frame`");
    stage.file("j.fio", "[a]\nioengine=null\nsize=1m\nrw=write\n");
    stage
        .say(&["run", "--store-result", "other.json", "j.fio"])
        .code(0);
    stage
        .say(&["diagnose", "other.json"])
        .code(2)
        .err("other.json: it is a result without a packet path");
    stage.file("half.json", &stage.read("r.json")[..900]);
    stage
        .say(&["diagnose", "half.json"])
        .code(2)
        .err("half.json");
}

#[test]
fn files_that_are_none_are_refused_whatever_they_hold() {
    let stage = Stage::new();
    stage.file("zeros", "\0".repeat(5000));
    stage.file("bytes", b"\xff\xfe\x00[Workspace \x80".as_slice());
    stage.file("empty", "");
    stage.file("braces", "{}");
    stage.file("axio.log", format!("{WORKSPACES}{TABLE}"));
    for file in ["zeros", "bytes", "empty", "braces", ".", "/dev/null"] {
        stage.say(&["diagnose", file]).code(2).err(file);
        for flag in ["--perf", "--pcie", "--memory", "-c"] {
            let said = stage.say(&["diagnose", "axio.log", flag, file]);
            let is_empty_config = flag == "-c" && ["empty", "/dev/null"].contains(&file);
            if is_empty_config {
                said.code(0);
            } else {
                said.code(2).err(file);
            }
        }
    }
}

#[test]
fn figures_below_zero_are_refused_with_their_line() {
    let stage = stage();
    let first = TABLE
        .lines()
        .position(|line| line.starts_with("disp_rx"))
        .unwrap();
    let row = TABLE.lines().nth(first).unwrap();
    let cell = row.split_whitespace().nth(2).unwrap();
    stage.file(
        "odd.log",
        TABLE.replace(row, &row.replacen(cell, &format!("-{cell}"), 1)),
    );
    stage.say(&["diagnose", "odd.log"]).code(2).err(&format!(
        "odd.log:{}: disp_rx: `-{cell}` is below 0",
        first + 1
    ));
    stage.file(
        "odd.log",
        format!("{}{TABLE}", WORKSPACES.replace("tx drop: ", "tx drop: -1")),
    );
    stage
        .say(&["diagnose", "odd.log"])
        .code(2)
        .err("is below 0");
    stage.file("odd.rpt", REPORT.replace("0.89", "-0.89"));
    stage
        .say(&["diagnose", "axio.log", "odd.rpt"])
        .code(2)
        .err("odd.rpt:20: IO Write Miss Rate: `-0.89` is below 0");
}

#[test]
fn a_job_of_a_result_is_diagnosed_by_its_name_alone() {
    let stage = Stage::new();
    result_of_two_paths(&stage, &[]);
    for name in ["first", "second"] {
        let said = stage.say(&["diagnose", "r.json", "--job", name]).code(0);
        assert_eq!(said.out.matches("==========Job ").count(), 1, "{said}");
        said.out(&format!("==========Job {name}=========="));
        let words = ["diagnose", "r.json", "--job", name, "--format", "json"];
        let json: serde_json::Value = serde_json::from_str(&stage.say(&words).code(0).out).unwrap();
        let jobs = json.as_array().unwrap().iter().map(|one| &one["job"]);
        assert_eq!(jobs.collect::<Vec<_>>(), [name, name]);
    }
    stage
        .say(&["diagnose", "r.json", "--job", "frist"])
        .code(2)
        .err("--job: no packet path is called `frist`\n  help: did you mean `first`?");
    stage.file("axio.log", TABLE);
    stage
        .say(&["diagnose", "axio.log", "--job", "first"])
        .code(2)
        .err("--job acts only with a stored result");
}

#[test]
fn a_byte_order_mark_before_a_result_or_a_log_is_no_part_of_it() {
    let stage = stage();
    let words = "axio --example echo --set duration=0.1 --store-result r.json";
    stage.say(&words.split(' ').collect::<Vec<_>>()).code(0);
    stage.file("marked.json", format!("\u{feff}{}", stage.read("r.json")));
    let log = stage.read("axio.log");
    stage.file("marked.log", format!("\u{feff}{log}"));
    stage.file("marked.rpt", format!("\u{feff}{REPORT}"));
    stage.file("marked_config", format!("\u{feff}{CONFIG}"));
    for (verb, plain, marked) in [
        ("show", &["r.json"][..], &["marked.json"][..]),
        ("diagnose", &["r.json"], &["marked.json"]),
        (
            "diagnose",
            &["axio.log", "report.rpt", "-c", "recv_config"],
            &["marked.log", "marked.rpt", "-c", "marked_config"],
        ),
    ] {
        let of = |files: &[&str]| stage.say(&[&[verb], files].concat()).code(0).out;
        assert_eq!(of(plain), of(marked), "{verb}");
    }
}

#[test]
fn tables_of_the_server_are_none_of_the_clients() {
    let stage = stage();
    let server = format!("\nServer\n{}", TABLE.replace("20.188", "99.999"));
    stage.file("both.log", format!("{TABLE}{server}").repeat(4));
    // The table in the middle of all would be one of the server.
    let said = stage.say(&["diagnose", "both.log", "-p"]).code(0);
    said.out("End-to-end Throughput: 20.188\n")
        .out("4 tables of the server are left out");
    // Where nothing else is there it is the server's own log.
    stage.file("server.log", server);
    let said = stage.say(&["diagnose", "server.log", "-p"]).code(0);
    said.out("End-to-end Throughput: 99.999\n");
}

#[test]
fn a_table_that_the_log_has_not_is_refused() {
    let stage = stage();
    let words = ["diagnose", "axio.log", "--table", "31"];
    stage
        .say(&words)
        .code(2)
        .err("error: --table 31: axio.log has 30 tables\n");
}
