//! The benchmark of effective bandwidth by its own name, as a user sees it: tables, JSON, models, devices,
//! bad input, faults, self test.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "tests"
)]

mod bad_input;
mod baseline;
mod early;
mod models;
mod placement;
mod runs;
mod slow;
#[path = "../stage/mod.rs"]
mod stage;
mod stopped;
mod transports;
mod voices;

use stage::{Said, Stage};

/// The benchmark with these words.
fn beff(stage: &Stage, words: &str) -> Said {
    let mut all = vec!["Network_intel"];
    all.extend(words.split_whitespace());
    stage.peer_says(&all)
}

/// True if this build and machine have a transport.
fn has(stage: &Stage, transport: &str) -> bool {
    let page = beff(stage, "--list-comm").code(0).out;
    let line = page
        .lines()
        .find(|l| l.split(' ').next() == Some(transport));
    line.is_some_and(|l| l.ends_with(" available"))
}

/// The fields of each row of the table, found as the peer's script finds it.
fn table(text: &str) -> Vec<Vec<String>> {
    let fields = |line: &str| -> Vec<String> {
        let parts = line.trim().split("  ").map(str::trim);
        parts.filter(|p| !p.is_empty()).map(str::to_owned).collect()
    };
    let heads = ["MSize", "looplength", "time [s]", "B/s"];
    let rows = text.lines().skip_while(|l| fields(l) != heads).skip(1);
    let rows: Vec<_> = rows.take_while(|l| !l.is_empty()).map(fields).collect();
    assert!(rows.iter().all(|r| r.len() == 4), "{rows:?}");
    rows
}
