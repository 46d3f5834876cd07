//! Object store: the engine `mem` beside the figures of the tuning guide, beside copies from and into the same
//! mapping, and beside limits.
//!
//! The program's rates are those of `weir vos-perf` and `weir obj run`, a process each; parts are measured by the
//! example `mem_cost`, which prints both sides of a round. Pools lie in memory, below /dev/shm. Not here: what a
//! store is.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::side::{self, text};
use super::table::Row;
use super::{Case, Metric, Target, child, in_turns};
use crate::ab::{self, Pairs};

/// Updates and fetches per second of the tuning guide, 4 KiB.
const GUIDE: [f64; 2] = [80_335.11, 418_688.81];
const POOLS: &str = "/dev/shm";
/// Distribution keys of 4 KiB: 4 GiB.
const KEYS: &str = "1000000";
/// Small keys of a pool that is opened, as many as a machine of 24 GiB holds with what else it does.
const SMALL: &str = "10000000";

/// Figures that the example prints: name, title, unit, target.
const PARTS: [(&str, &str, &str, Target); 10] = [
    (
        "update-power",
        "updates with power's instructions",
        "per second",
        Target::AtLeast(5.0),
    ),
    (
        "update-copy",
        "update beside a copy into the mapping",
        "ns",
        Target::AtMost(4.0),
    ),
    (
        "fetch-order-copy",
        "fetch in key order beside a copy",
        "ns",
        Target::None,
    ),
    (
        "fetch-random-copy",
        "fetch in random order beside such a copy",
        "ns",
        Target::AtMost(1.6),
    ),
    (
        "fetch-batched-copy",
        "the same, by eight at once",
        "ns",
        Target::None,
    ),
    (
        "memory",
        "bytes taken beside bytes stored, 4 KiB values",
        "bytes",
        Target::AtMost(1.1),
    ),
    (
        "update-1MiB",
        "updates of 1 MiB beside copies",
        "MiB/s",
        Target::AtLeast(0.8),
    ),
    (
        "fetch-1MiB",
        "fetches of 1 MiB beside copies",
        "MiB/s",
        Target::AtLeast(0.8),
    ),
    (
        "open-after-close",
        "opening 10 M values of 128 B after a clean end",
        "s, of at most 2",
        Target::AtMost(1.0),
    ),
    (
        "open-after-kill",
        "the same after a kill",
        "s, of at most 8",
        Target::AtMost(1.0),
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, run: fn(usize) -> Result<Vec<Row>>| Case {
        name: name.to_owned(),
        run: Box::new(run),
    };
    vec![case("program", program), case("parts", parts)]
}

/// Rates of the program beside the guide.
fn program(rounds: usize) -> Result<Vec<Row>> {
    let metric = |name, limit| Metric {
        name,
        unit: "per second",
        target: Target::AtLeast(limit),
    };
    let metrics = [
        metric("updates at process", 8.0),
        metric("fetches in key order", 2.0),
        metric("fetches in random order", 1.25),
    ];
    let weir = text(&side::weir())?;
    let walk = format!(
        "{weir} vos-perf -D {POOLS} -P 6G -d {KEYS} -a 1 -n 1 -s 4K --durability process --format json --history off -R"
    );
    let mut walk: Vec<String> = walk.split(' ').map(str::to_owned).collect();
    walk.push("U F".to_owned());
    let mix = format!(
        "{weir} obj run -D {POOLS} -P 6G --keys {KEYS} --ops {KEYS} --mix fetch=1 --dist uniform --durability process --format json --history off"
    );
    let mix: Vec<String> = mix.split(' ').map(str::to_owned).collect();
    for argv in [&walk, &mix] {
        println!("$ {}", argv.join(" "));
    }
    in_turns(
        "program",
        &metrics,
        rounds,
        &mut || {
            let (walked, mixed) = (child::run(&walk)?.stdout, child::run(&mix)?.stdout);
            Ok(vec![
                rate(&walked, "update")?,
                rate(&walked, "fetch")?,
                rate(&mixed, "mix")?,
            ])
        },
        &mut || Ok(vec![GUIDE[0], GUIDE[1], GUIDE[1]]),
    )
}

/// Operations per second of a test, by the time in its calls.
fn rate(said: &str, test: &str) -> Result<f64> {
    let result: Value = serde_json::from_str(said)?;
    let runs = &result["groups"][0]["jobs"][0]["outcome"]["ranks"][0]["runs"];
    let mut runs = runs.as_array().context("no tests")?.iter();
    let run = runs
        .find(|run| run["name"] == test)
        .context("no such test")?;
    let number = |name: &str| {
        run[name]
            .as_f64()
            .with_context(|| format!("{test}: no {name}"))
    };
    Ok(number("operations")? * 1e9 / number("busy_ns")?)
}

/// Figures of the example.
fn parts(rounds: usize) -> Result<Vec<Row>> {
    let program = text(&side::built("examples/mem_cost"))?;
    let line = format!("{program} {POOLS} {KEYS} {SMALL} {rounds}");
    println!("$ {line}");
    let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let said = child::run(&argv)?.stdout;
    let mut found: BTreeMap<&str, Pairs> = BTreeMap::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, weir, peer] = words[..] else {
            continue;
        };
        let empty = || Pairs {
            weir: Vec::new(),
            peer: Vec::new(),
        };
        let pairs = found.entry(name).or_insert_with(empty);
        pairs.weir.push(weir.parse()?);
        pairs.peer.push(peer.parse()?);
    }
    let row = |(case, name, unit, target): (&str, &'static str, &'static str, Target)| {
        let pairs = found
            .get(case)
            .with_context(|| format!("no line of {case}: {said}"))?;
        ensure!(pairs.weir.len() == rounds, "{case}: a round is missing");
        let metric = Metric { name, unit, target };
        Ok(Row::of(case, &metric, &ab::compare(pairs)))
    };
    PARTS.into_iter().map(row).collect()
}
