//! Result of the guide "Add a workload": everything that a workload has for nothing.

use std::fs;
use std::io::Read;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::{Step, copy, root, stdout, steps};

pub(crate) const PAGE: &str = "add-a-workload.md";
const WEIR: &str = "target/debug/weir";
/// Longer than any test.
const ENDLESS: &str = "1000000000000";

/// `said`: by the lines that the page runs.
pub(crate) fn check(said: &[String]) {
    is_small();
    let [_, help, report, ranks, json] = said else {
        panic!("the guide runs five lines: {said:?}")
    };
    for flag in [
        "--block",
        "--operations",
        "--ranks",
        "--store-result",
        "--strict",
    ] {
        assert!(help.contains(flag), "{help}");
    }
    for line in [
        "copy and fill 64.0 KiB",
        "\n  copy ",
        "\n  fill ",
        "copy over fill",
        "\nmemory turns ",
        "\nmemory sum ",
    ] {
        assert!(report.contains(line), "{report}");
    }
    assert!(ranks.contains("on each of 2 ranks"), "{ranks}");
    assert!(ranks.contains("copy over fill"), "{ranks}");
    has_both_ranks(json);
    is_shown_as_it_was_printed(ranks);
    has_a_page_with_plots();
    is_refused_by_name();
    ends_at_a_signal_with_what_was_done();
}

/// The promise of the page: few lines, fewer files.
fn is_small() {
    let page = fs::read_to_string(root().join("docs/book/src").join(PAGE)).unwrap();
    let mut new = 0;
    let mut changed: Vec<(String, usize)> = Vec::new();
    let mut lines = 0;
    for (step, block) in steps(&page) {
        let length = block.lines().count();
        match step {
            Step::Create(_) => new += 1,
            Step::Append(_) => {}
            Step::Insert { path, .. } => match changed.iter_mut().find(|(p, _)| *p == path) {
                Some((_, lines)) => *lines += length,
                None => changed.push((path, length)),
            },
            Step::Run => continue,
        }
        lines += length;
    }
    assert!(
        lines <= 180 && new <= 3 && changed.len() <= 6,
        "{lines} {new}"
    );
    assert!(changed.iter().all(|(_, lines)| *lines <= 2), "{changed:?}");
}

/// The JSON of two ranks: every operation of both, by kind, and the workload's own figure.
fn has_both_ranks(json: &str) {
    let result: Value = serde_json::from_str(json).unwrap();
    assert_eq!(result["ranks"].as_array().unwrap().len(), 2);
    let job = &result["groups"][0]["jobs"][0];
    let counted = |phase: usize, name: &str| {
        let phase = &job["phases"][phase];
        assert_eq!(phase["name"], name);
        assert_eq!(phase["ranks"].as_array().unwrap().len(), 2);
        let kinds = &phase["measured"]["outcome"]["workers"][0]["kinds"];
        let kinds = kinds.as_array().unwrap().iter().map(|kind| {
            let name = kind["kind"].as_str().unwrap().to_owned();
            (name, kind["operations"].as_u64().unwrap())
        });
        kinds.collect::<Vec<_>>()
    };
    let turns = [("copy".to_owned(), 10_000), ("fill".to_owned(), 10_000)];
    assert_eq!(counted(0, "turns"), turns);
    assert_eq!(counted(1, "sum"), [("sum".to_owned(), 2)]);
    let metrics = job["metrics"].as_array().unwrap();
    let own = metrics.iter().find(|m| m["name"] == "copy over fill");
    assert!(own.unwrap()["value"].as_f64().unwrap() > 0.0);
}

fn is_shown_as_it_was_printed(live: &str) {
    assert_eq!(stdout(&format!("{WEIR} show target/memory.json")), live);
}

/// Its page has plots of both kinds, and the workload's own figure.
fn has_a_page_with_plots() {
    let page = stdout(&format!("{WEIR} report target/memory.json --format html"));
    for part in [
        "<figure data-name=\"distribution\"",
        "<figure data-name=\"cpu\"",
        "<td>memory turns · copy</td>",
        "<td>memory turns · fill</td>",
        "<td>memory sum</td>",
        "copy over fill",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// Impossible requests are refused before the run, by the name of the job or the flag.
fn is_refused_by_name() {
    let refused = |line: &str, why: &str| {
        let output = weir(line).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
    };
    refused("memory --block 0", "error: memory: a block has");
    refused("memory --blocks 1", "`--block`");
    let plan = stdout(&format!("{WEIR} memory --show-plan"));
    let path = copy().join("target/plan.json");
    fs::write(
        &path,
        plan.replacen("\"block_bytes\"", "\"passes\": 1, \"block_bytes\"", 1),
    )
    .unwrap();
    refused("run target/plan.json", "unknown field `passes`");
}

/// Progress while it runs; Ctrl-C ends it in order.
fn ends_at_a_signal_with_what_was_done() {
    let line = format!("memory --operations {ENDLESS} --progress json --format json");
    let mut running = weir(&line).spawn().unwrap();
    let mut progress = [0; 200];
    let seen = running
        .stderr
        .as_mut()
        .unwrap()
        .read(&mut progress)
        .unwrap();
    let progress = String::from_utf8_lossy(&progress[..seen]).into_owned();
    let process = running.id().to_string();
    let kill = Command::new("kill").args(["-INT", &process]).status();
    assert!(kill.unwrap().success());
    let Output { status, stdout, .. } = running.wait_with_output().unwrap();
    assert!(progress.starts_with('{'), "{progress}");
    assert_eq!(status.code(), Some(130));
    let result: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(result["complete"], false);
    let kinds =
        &result["groups"][0]["jobs"][0]["phases"][0]["measured"]["outcome"]["workers"][0]["kinds"];
    assert!(kinds[0]["operations"].as_u64().unwrap() > 0, "{kinds}");
}

fn weir(line: &str) -> Command {
    let mut command = Command::new(copy().join(WEIR));
    command
        .args(line.split_whitespace())
        .current_dir(copy())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
