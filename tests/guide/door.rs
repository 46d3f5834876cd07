//! Result of the guide "Add a door for a peer": the peer's text by its name, weir's report by the verb, and
//! all that the driver does, for nothing.

use std::fs;

use serde_json::Value;

use crate::{Step, copy, root, shell_fails, stdout, steps};

pub(crate) const PAGE: &str = "add-a-door.md";
const WEIR: &str = "target/debug/weir seekmark -f target/data -s 50";
const PEER: &str = "target/debug/seekmark -f target/data -s 50";

/// `said`: by the lines that the page runs.
pub(crate) fn check(said: &[String]) {
    is_small();
    let [_, _, _, peer, stored, shown, report, runs, dry, help] = said else {
        panic!("the guide runs ten lines: {said:?}")
    };
    let lines: Vec<&str> = peer.lines().collect();
    assert_eq!(
        lines[0],
        "2 threads, 1000 seeks each, 512 bytes, of target/data"
    );
    assert!(lines[1].starts_with("thread 0: 1000 seeks, "), "{peer}");
    assert!(lines[2].starts_with("thread 1: 1000 seeks, "), "{peer}");
    assert!(lines[3].contains("seeks/s, score "), "{peer}");
    assert!(stored.starts_with("total: ") && stored.lines().count() == 1);
    assert_eq!(shown, stored);
    assert!(
        report.contains("random read 512 B") || report.contains("read 512 B random"),
        "{report}"
    );
    assert!(runs.contains("2 runs"), "{runs}");
    assert!(!dry.contains("seeks/s"), "{dry}");
    for flag in ["-f FILE", "-D", "--live", "--web", "--repeat", "--voice"] {
        assert!(help.contains(flag), "{flag}: {help}");
    }
    has_all_of_the_house();
    is_refused_by_name();
}

/// The promise of the page: 300 lines, six lines of files that are there, none of them of the program.
fn is_small() {
    let page = fs::read_to_string(root().join("docs/book/src").join(PAGE)).unwrap();
    let (mut own, mut existing) = (0, 0);
    for (step, block) in steps(&page) {
        let length = block.lines().count();
        match step {
            Step::Create(_) | Step::Append(_) => own += length,
            Step::Insert { path, .. } => {
                assert!(!path.starts_with("crates/weir/"), "{path}");
                existing += length;
            }
            Step::Run => {}
        }
    }
    assert!(own <= 300 && existing <= 6, "{own} {existing}");
    let text = fs::read_to_string(copy().join("crates/weir-doors/src/seekmark.rs")).unwrap();
    assert!(text.matches("Flag::").count() >= 10, "ten flags");
}

/// Flags of the house act, in both voices.
fn has_all_of_the_house() {
    stdout(&format!(
        "{WEIR} --output target/seeks.html --output target/seeks.csv"
    ));
    let page = fs::read_to_string(copy().join("target/seeks.html")).unwrap();
    assert!(page.contains("<figure data-name=\"distribution\""));
    let rows = fs::read_to_string(copy().join("target/seeks.csv")).unwrap();
    assert_eq!(rows.lines().count(), 2, "{rows}");
    let both = stdout(&format!("{WEIR} --ranks 2 --format json"));
    let result: Value = serde_json::from_str(&both).unwrap();
    assert_eq!(result["ranks"].as_array().unwrap().len(), 2);
    let plan = stdout(&format!("{PEER} --show-plan"));
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["door"], "seekmark");
    assert_eq!(plan["voice"], "peer");
    let voice = stdout(&format!("{WEIR} --voice peer -q"));
    assert!(voice.starts_with("total: "), "{voice}");
    let metrics = copy().join("target/seeks.prom");
    stdout(&format!("{PEER} --metrics-file target/seeks.prom"));
    assert!(fs::read_to_string(metrics).unwrap().contains("weir_"));
}

/// Values and flags that are wrong are refused by the peer's name of the flag.
fn is_refused_by_name() {
    for (line, why) in [
        (format!("{PEER} -t 0"), "seekmark: -t 0: -t must be >= 1"),
        (
            format!("{PEER} -i 2 "),
            "-i 2: it takes a whole number from 512",
        ),
        (format!("{PEER} -d 4"), "-d acts only with `-a`"),
        (format!("{PEER} -z"), "no option `-z`"),
        (format!("{PEER} -m soon"), "it takes seconds"),
        (format!("{WEIR} --output target/data"), "target/data"),
        (
            "target/debug/seekmark".to_owned(),
            "seekmark: -f is missing",
        ),
        ("target/debug/weir seekmark -f none".to_owned(), "none"),
    ] {
        let said = shell_fails(&line);
        assert!(said.contains(why), "{line}: {said}");
    }
}
