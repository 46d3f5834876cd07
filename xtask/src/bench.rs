//! Bench: weir beside a peer, in the same run, in turns.
//!
//! In: the name of a bench, and the number of rounds. Out: a table on the
//! terminal and, between its markers, in `bench/README.md`, with machine,
//! date, revision, command and the peer's version.
//! A bench is one file under `bench/` and one line in [`BENCHES`]: it returns
//! cases, and this file does the rest. Not here: the turns and the statistics
//! (`ab`). Nothing here decides whether a test passes.

mod machine;
mod startup;
mod table;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::ab::{self, Measure};
use crate::cmd::Cmd;
use crate::packages;

/// A named set of cases against one peer.
struct Bench {
    name: &'static str,
    what: &'static str,
    /// Prints the peer's version.
    peer: &'static str,
    cases: fn() -> Result<Vec<Case>>,
}

const BENCHES: &[Bench] = &[Bench {
    name: "startup",
    what: "how long an empty start takes, beside fio",
    peer: "fio --version",
    cases: startup::cases,
}];

/// One situation in which both sides are measured.
struct Case {
    name: &'static str,
    metrics: Vec<Metric>,
    weir: Box<Measure<'static>>,
    peer: Box<Measure<'static>>,
}

/// One value that a measurement returns.
#[derive(Clone)]
struct Metric {
    name: &'static str,
    unit: &'static str,
    target: Target,
}

/// What the ratio weir / peer is to be.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    AtMost(f64),
}

const ROUNDS: usize = 10;

/// The verb.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let [name, rest @ ..] = args else {
        print!("{}", list());
        return Ok(());
    };
    let bench = BENCHES
        .iter()
        .find(|bench| bench.name == name)
        .with_context(|| format!("no bench `{name}`\n{}", list()))?;
    let rounds = match rest {
        [] => ROUNDS,
        [rounds] => rounds.parse().context("ROUNDS is a whole number")?,
        _ => bail!("usage: cargo xtask bench {name} [ROUNDS]"),
    };
    if rounds < 4 {
        bail!("{rounds} rounds say nothing: 4 is the least");
    }
    packages::ensure("bench");
    Cmd::new("cargo build --release -p weir").run()?;
    let mut rows = Vec::new();
    for mut case in (bench.cases)()? {
        println!("{}: {rounds} rounds", case.name);
        let pairs = ab::interleave(rounds, &mut *case.weir, &mut *case.peer)?;
        for (metric, pairs) in case.metrics.iter().zip(&pairs) {
            rows.push(table::row(case.name, metric, &ab::compare(pairs)));
        }
    }
    let text = format!(
        "{}\n{}",
        machine::facts(bench, rounds)?,
        table::render(&rows)
    );
    println!("\n{text}");
    table::write("bench/README.md", bench.name, &text)
}

/// The binary that `cargo build --release -p weir` made.
fn weir() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    PathBuf::from(target).join("release/weir")
}

fn list() -> String {
    let mut text = String::from("usage: cargo xtask bench NAME [ROUNDS]\n");
    for bench in BENCHES {
        let _ = writeln!(text, "  {:<12} {}", bench.name, bench.what);
    }
    text
}
