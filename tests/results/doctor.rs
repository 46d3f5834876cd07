//! `weir doctor`: a line a check, and nothing changed.

use serde_json::Value as Json;

use crate::stage::Stage;

const IDS: [&str; 23] = [
    "governor",
    "cstates",
    "clock",
    "steal",
    "load",
    "smt",
    "numa",
    "irq",
    "pcie",
    "nvme",
    "queue",
    "fs",
    "never-written",
    "limits",
    "uring",
    "hugepages",
    "cgroup",
    "net",
    "libs",
    "libfabric",
    "libdaos",
    "kmod",
    "perf",
];

#[test]
fn every_check_has_a_line_in_order() {
    let stage = Stage::new();
    let said = stage.say(&["doctor"]).code(0).calm();
    let mut ids: Vec<&str> = Vec::new();
    for line in said.out.lines() {
        let (status, rest) = line.split_at(4);
        assert!(["ok  ", "warn", "FAIL", "n/a "].contains(&status), "{line}");
        let id = rest.split_whitespace().next().unwrap();
        let found = rest.trim_start().strip_prefix(id).unwrap().trim();
        assert!(!found.is_empty(), "{line}");
        let needs_more = ["warn", "FAIL"].contains(&status);
        assert!(
            !needs_more || (found.contains('(') && found.contains("; ")),
            "{line}"
        );
        if ids.last() != Some(&id) {
            ids.push(id);
        }
    }
    assert_eq!(ids, IDS);
    assert!(stage.list().is_empty(), "it made {:?}", stage.list());
}

#[test]
fn what_goes_without_the_kernel_module_is_said() {
    if std::path::Path::new("/sys/module/kio").exists() {
        return;
    }
    let said = Stage::new().say(&["doctor"]).code(0);
    let line = said.out.lines().find(|line| line.contains(" kmod "));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    assert!(
        line.contains("`weir kio` measures from user space"),
        "{line}"
    );
}

#[test]
fn words_that_it_does_not_have_are_refused() {
    let stage = Stage::new();
    stage
        .say(&["doctor", "--strct"])
        .code(2)
        .silent()
        .err("did you mean `--strict`?");
}

/// Tests that take long.
mod slow {
    use super::*;

    #[test]
    fn a_target_that_would_be_measured_wrong_fails_where_it_is_asked_to() {
        let stage = Stage::new();
        stage.sparse("holes", 1 << 20);
        let say = |words: &[&str]| stage.say(&[&["doctor", "holes"], words].concat());
        let document: Json = serde_json::from_str(&say(&["--json"]).code(0).out).unwrap();
        assert_eq!(document["schema"], "weir.doctor.v1");
        let findings = document["findings"].as_array().unwrap();
        let written = findings
            .iter()
            .find(|f| f["id"] == "never-written")
            .unwrap();
        assert_eq!(written["status"], "FAIL", "{written}");
        assert!(
            written["found"]
                .as_str()
                .unwrap()
                .contains("0 % was written")
        );
        assert!(
            written["remedy"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        say(&["--strict"]).code(1).out("FAIL  never-written");
        stage
            .say(&["doctor", "--strict", "nothing"])
            .code(1)
            .out("FAIL  fs");
    }

    #[test]
    fn ci_says_for_each_figure_from_which_change_on_it_is_told() {
        let stage = Stage::new();
        let text = "[a]\nioengine=null\nrw=read\nsize=1m\nruntime=20ms\ntime_based\n";
        let text = text.replace("[a]", "[a]\nexec_prerun=echo begun >> begun");
        stage.file("own.fio", text);
        let said = stage.say(&["doctor", "--ci", "--target", "own.fio", "--json"]);
        let document: Json = serde_json::from_str(&said.code(0).out).unwrap();
        let rows = document["changes"].as_array().unwrap();
        let of = |target: &str| -> Vec<&Json> {
            rows.iter().filter(|row| row["target"] == target).collect()
        };
        for target in ["null engine", "own.fio"] {
            let names: Vec<&str> = of(target)
                .iter()
                .map(|row| row["metric"].as_str().unwrap())
                .collect();
            assert_eq!(names.len(), 5, "{document}");
            assert_eq!(names[0], "read rate");
        }
        for row in rows {
            let number = |key: &str| row[key].as_f64().unwrap();
            let limits = ["half_width", "threshold", "grain"].map(number);
            let largest = limits.into_iter().fold(0.0, f64::max);
            assert!((number("smallest_change") - largest).abs() < 1e-12, "{row}");
            assert_eq!(row["rounds"], 10);
        }
        // A round to warm up and ten, each with both sides.
        assert_eq!(stage.read("begun").lines().count(), 22);
    }
}
