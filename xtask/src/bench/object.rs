//! Object store: the engine `mem` beside the figures of the tuning guide, beside copies from and into the same
//! mapping, and beside limits.
//!
//! The program's rates are those of `weir vos-perf` and `weir obj run`, a process each; parts are measured by the
//! example `mem_cost`, which prints both sides of a round. Pools lie in memory, below /dev/shm. The engine `disk` is
//! beside its library, by the example `disk_cost` on the disk of the bench's folder; `remote` is beside the self-test
//! and the engine alone. Not here: what a store is.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::rpc::{Cpus, Served, cpus, rate as calls_per_s};
use super::side::{self, text};
use super::table::Row;
use super::{Case, FOLDER, Metric, Target, callgrind, child, in_turns};
use crate::ab::{self, Pairs};

/// Updates and fetches per second of the tuning guide, 4 KiB.
const GUIDE: [f64; 2] = [80_335.11, 418_688.81];
const POOLS: &str = "/dev/shm";
/// Distribution keys of 4 KiB: 4 GiB.
const KEYS: &str = "1000000";
/// Small keys of a pool that is opened, as many as a machine of 24 GiB holds with what else it does.
const SMALL: &str = "10000000";

/// A figure that an example prints: name, title, unit, target.
type Part = (&'static str, &'static str, &'static str, Target);

const PARTS: [Part; 10] = [
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

const DISK_PARTS: [Part; 3] = [
    (
        "disk-flush",
        "an update that is waited for beside a write and a flush",
        "us",
        Target::AtMost(1.3),
    ),
    (
        "disk-redb-1",
        "the same beside a commit of the library",
        "us",
        Target::None,
    ),
    (
        "disk-redb-64",
        "an update of 64 in a commit beside the library",
        "us",
        Target::None,
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, run: fn(usize) -> Result<Vec<Row>>| Case {
        name: name.to_owned(),
        run: Box::new(run),
    };
    vec![
        case("program", program),
        case("parts", parts),
        case("disk", disk),
        case("disk-instructions", disk_instructions),
        case("remote-tcp", |rounds| remote(rounds, "tcp", 1.15, 0.0)),
        case("remote-shm", |rounds| remote(rounds, "shm", 1.0, 1000.0)),
    ]
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

/// Figures of the engine in memory.
fn parts(rounds: usize) -> Result<Vec<Row>> {
    let arguments = format!("mem_cost {POOLS} {KEYS} {SMALL} {rounds}");
    printed(&arguments, rounds, &PARTS)
}

/// Figures of the engine on the disk.
fn disk(rounds: usize) -> Result<Vec<Row>> {
    let arguments = format!("disk_cost {FOLDER} 2000 {rounds}");
    printed(&arguments, rounds, &DISK_PARTS)
}

/// Figures that an example prints.
fn printed(example: &str, rounds: usize, parts: &[Part]) -> Result<Vec<Row>> {
    let argv = example_argv(example)?;
    println!("$ {}", argv.join(" "));
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
    let row = |&(case, name, unit, target): &Part| {
        let pairs = found
            .get(case)
            .with_context(|| format!("no line of {case}: {said}"))?;
        ensure!(pairs.weir.len() == rounds, "{case}: a round is missing");
        let metric = Metric { name, unit, target };
        Ok(Row::of(case, &metric, &ab::compare(pairs)))
    };
    parts.iter().map(row).collect()
}

fn example_argv(example: &str) -> Result<Vec<String>> {
    let program = text(&side::built("examples"))?;
    let line = format!("{program}/{example}");
    Ok(line.split(' ').map(str::to_owned).collect())
}

/// User instructions of an update on the disk beside those of the library in a bare loop, by 1 and by 64 in a
/// commit: of the second half of the updates, so that the start does not count.
fn disk_instructions(_: usize) -> Result<Vec<Row>> {
    const HALF: usize = 2000;
    let of = |side: &str, batch: usize| -> Result<f64> {
        let count = |values: usize| -> Result<u64> {
            let argv = example_argv(&format!("disk_cost {POOLS} {values} {side} {batch}"))?;
            Ok(callgrind::instructions(&argv)?.1.iter().sum())
        };
        Ok(count(2 * HALF)?.saturating_sub(count(HALF)?) as f64 / HALF as f64)
    };
    let row = |(name, batch)| {
        let metric = Metric {
            name,
            unit: "per update",
            target: Target::AtMost(1.3),
        };
        let (weir, peer) = (of("engine", batch)?, of("redb", batch)?);
        Ok(Row::counted("disk-instructions", &metric, weir, peer))
    };
    [
        ("user instructions, each waited for", 1),
        ("user instructions, 64 in a commit", 64),
    ]
    .into_iter()
    .map(row)
    .collect()
}

/// Time of a call of `weir daos-perf` to a server at depth 1, beside the self-test of the same sizes and the engine
/// alone, and `more` nanoseconds. A server's pages are mapped in when they are written: so are the engine's here.
fn remote(rounds: usize, transport: &str, limit: f64, more: f64) -> Result<Vec<Row>> {
    const COUNTS: &str = "-d 20000 -a 1 -n 1 -s 4K --format json --history off -R";
    let weir = text(&side::weir())?;
    let Cpus { caller, answerer } = cpus();
    let store = Served::ready(transport, |place, _| {
        format!(
            "taskset -c {answerer} {weir} obj serve -D {POOLS} -P 4g --csum none --durability process --poll spin:10000 --listen {place}"
        )
    })?;
    let words = |line: String| -> Vec<String> {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        words.push("U F".to_owned());
        words
    };
    let called = words(format!(
        "taskset -c {caller} {weir} daos-perf --server {} {COUNTS}",
        store.address
    ));
    let alone = words(format!(
        "taskset -c {caller} {weir} vos-perf -D {POOLS} -P 1G --durability process --prefault none {COUNTS}"
    ));
    let plain = Served::start("", &weir, transport)?;
    let calls = [
        plain.caller(&weir, "-s i4096e0 -i 1")?,
        plain.caller(&weir, "-s e0i4096 -i 1")?,
    ];
    for argv in [&called, &alone, &calls[0], &calls[1]] {
        println!("$ {}", argv.join(" "));
    }
    let metrics = ["update", "fetch"].map(|name| Metric {
        name,
        unit: if more > 0.0 {
            "ns; the peer has 1000 more"
        } else {
            "ns"
        },
        target: Target::AtMost(limit),
    });
    let times = |argv: &[String]| -> Result<[f64; 2]> {
        let said = child::run(argv)?.stdout;
        Ok([1e9 / rate(&said, "update")?, 1e9 / rate(&said, "fetch")?])
    };
    in_turns(
        &format!("remote-{transport}"),
        &metrics,
        rounds,
        &mut || Ok(times(&called)?.to_vec()),
        &mut || {
            let engine = times(&alone)?;
            let sum = |way: usize| -> Result<f64> {
                Ok(engine[way] + 1e9 / calls_per_s(&calls[way])? + more)
            };
            Ok(vec![sum(0)?, sum(1)?])
        },
    )
}
