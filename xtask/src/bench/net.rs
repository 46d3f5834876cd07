//! Exchanges of messages beside the same loop in plain C, built here with each family's `mpicc`.
//!
//! weir by the name of its peer, the C program (`bench/net/exchange.c`) under the same
//! launcher, with as many exchanges; or the same loop inside of weir's own processes
//! (`bench/net/within.c`), a run of one after a run of the other. Each value is the best repetition of the slowest rank, as
//! nanoseconds of one exchange turned into exchanges per second. Not here: what an exchange is.

use std::sync::{Barrier, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::side::{self, text};
use super::table::Row;
use super::{Case, Metric, Target, child, in_turns};
use crate::ab::{self, Pairs};
use crate::cmd::Cmd;

/// Message sizes, as exponents, and the length of their loops; shorter where ranks that spin share
/// cores, see [`loops`].
const SIZES: [(u8, u32); 5] = [
    (3, 20_000),
    (10, 10_000),
    (12, 5_000),
    (16, 2_000),
    (20, 200),
];
/// Exchanges of the trial run that tells how long the loops may be.
const TRIAL: u32 = 8;
/// Seconds of one loop, at most about.
const LONGEST: f64 = 0.05;
/// Enough that the best one was not disturbed: two ranks on two CPUs suffer from whatever else runs.
const REPETITIONS: u32 = 20;
const REPLICATIONS: u32 = 2;
/// Peer whose command line weir takes here.
const PEER: &str = "Network_intel";
/// A large message.
const MIB: usize = 1 << 20;
/// Large messages of a loop beside a core's copies.
const COPIES: u8 = 200;

/// A family of MPI, by the names that Debian gives its programs.
#[derive(Clone, Copy)]
struct Family {
    name: &'static str,
    launcher: &'static str,
    flags: &'static [&'static str],
    compiler: &'static str,
}

const OPEN_MPI: Family = Family {
    name: "openmpi",
    launcher: "mpirun.openmpi",
    flags: &["--allow-run-as-root", "--oversubscribe"],
    compiler: "mpicc.openmpi",
};

const MPICH: Family = Family {
    name: "mpich",
    launcher: "mpirun.mpich",
    flags: &[],
    compiler: "mpicc.mpich",
};

pub(super) fn peer() -> Result<String> {
    let said = Cmd::new("mpirun.openmpi --version").read()?;
    let first = said.lines().next().unwrap_or_default().to_owned();
    let mpich = Cmd::new("mpichversion").read().unwrap_or_default();
    let second = mpich.lines().next().unwrap_or_default().trim().to_owned();
    Ok(format!("{first}; {second}"))
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("null".to_owned(), |_| null()),
        case("start".to_owned(), |_| start()),
        case("merge".to_owned(), |_| merge()),
    ];
    for family in [OPEN_MPI, MPICH] {
        for ranks in [2, 4] {
            for size in SIZES {
                let name = format!("mpi-{}-{ranks}-{}", family.name, bytes(size.0));
                cases.push(case(name.clone(), move |rounds| {
                    beside_c(
                        &name,
                        family,
                        ranks,
                        size,
                        "mpi",
                        Target::AtLeast(0.98),
                        rounds,
                    )
                }));
            }
        }
    }
    for family in [OPEN_MPI, MPICH] {
        for ranks in [2, 4] {
            for size in SIZES {
                let name = format!("within-{}-{ranks}-{}", family.name, bytes(size.0));
                cases.push(case(name.clone(), move |rounds| {
                    within(&name, family, ranks, size, rounds)
                }));
            }
        }
    }
    for ranks in [2, 4] {
        for size in SIZES {
            let name = format!("shm-{ranks}-{}", bytes(size.0));
            let target = match (ranks, size.0) {
                (2, 12 | 16) => Target::AtLeast(1.5),
                (2, 10 | 20) => Target::None,
                _ => Target::AtLeast(1.0),
            };
            cases.push(case(name.clone(), move |rounds| {
                beside_c(&name, OPEN_MPI, ranks, size, "shm", target, rounds)
            }));
        }
    }
    cases.push(case("shm-copy".to_owned(), beside_copy));
    cases
}

fn case(name: String, run: impl Fn(usize) -> Result<Vec<Row>> + 'static) -> Case {
    let run = Box::new(run);
    Case { name, run }
}

fn bytes(exponent: u8) -> String {
    match exponent {
        0..10 => format!("{}B", 1 << exponent),
        10..20 => format!("{}KiB", 1 << (exponent - 10)),
        _ => format!("{}MiB", 1 << (exponent - 20)),
    }
}

/// weir's exchanges per second beside those of the C loop.
fn beside_c(
    name: &str,
    family: Family,
    ranks: u32,
    (exponent, longest): (u8, u32),
    transport: &str,
    target: Target,
    rounds: usize,
) -> Result<Vec<Row>> {
    let program = built(family)?;
    let loops = trial(family, ranks, (exponent, longest))?;
    let counts = format!("{exponent} {loops} {REPETITIONS} {REPLICATIONS}");
    let peer = launched(family, ranks, &format!("{program} {counts}"));
    let of = |program: &str| {
        let words = weir(program, transport, exponent, loops)?;
        Ok::<_, anyhow::Error>(match transport {
            "mpi" => launched(family, ranks, &words),
            _ => split(&format!("{words} --ranks {ranks}")),
        })
    };
    let mine = of(&text(&side::weir())?)?;
    let peer = side::other().map_or(Ok(peer), of)?;
    println!("$ {}\n$ {}", mine.join(" "), peer.join(" "));
    let metric = Metric {
        name: "exchanges of the slowest rank",
        unit: "per second",
        target,
    };
    in_turns(
        name,
        &[metric],
        rounds,
        &mut || Ok(vec![of_weir(&mine, ranks, exponent)?]),
        &mut || match side::other() {
            Some(_) => Ok(vec![of_weir(&peer, ranks, exponent)?]),
            None => Ok(vec![1e9 / nanos_of_c(&peer)?]),
        },
    )
}

/// weir's exchanges per second beside those of the C loop in the same processes.
fn within(
    name: &str,
    family: Family,
    ranks: u32,
    (exponent, longest): (u8, u32),
    rounds: usize,
) -> Result<Vec<Row>> {
    let library = format!("{}/libwithin-{}.so", super::FOLDER, family.name);
    let flags = "-O2 -shared -fPIC";
    let source = "bench/net/within.c";
    Cmd::new(&format!(
        "{} {flags} -o {library} {source}",
        family.compiler
    ))
    .run()?;
    let loops = trial(family, ranks, (exponent, longest))?;
    let found = format!("{}/within.txt", super::FOLDER);
    let wish = format!(
        "env WEIR_MPI_LIB={library} WEIR_BENCH_LOOP={exponent},{loops},{REPETITIONS},{REPLICATIONS},{found}"
    );
    let argv = launched(
        family,
        ranks,
        &weir(&text(&side::weir())?, "mpi", exponent, loops)?,
    );
    let argv = [split(&wish), argv].concat();
    println!("$ {}", argv.join(" "));
    let metric = Metric {
        name: "exchanges of the slowest rank",
        unit: "per second",
        target: Target::AtLeast(0.98),
    };
    let mut pairs = Pairs {
        weir: Vec::new(),
        peer: Vec::new(),
    };
    for _ in 0..rounds {
        // What an earlier round left is not taken for this one's.
        let _ = std::fs::remove_file(&found);
        pairs.weir.push(of_weir(&argv, ranks, exponent)?);
        let nanos = std::fs::read_to_string(&found).context("the C loop left no time")?;
        pairs.peer.push(1e9 / nanos.trim().parse::<f64>()?);
    }
    Ok(vec![Row::of(name, &metric, &ab::compare(&pairs))])
}

/// The loop length, from a short run of the C program.
fn trial(family: Family, ranks: u32, (exponent, longest): (u8, u32)) -> Result<u32> {
    let argv = format!("{} {exponent} {TRIAL} 2 {REPLICATIONS}", built(family)?);
    Ok(loops(nanos_of_c(&launched(family, ranks, &argv))?, longest))
}

/// weir's words for the exchanges of one size.
fn weir(program: &str, transport: &str, exponent: u8, loops: u32) -> Result<String> {
    let program = side::named(PEER, program)?;
    Ok(format!(
        "{program} --comm-type {transport} -n {REPETITIONS} -r {REPLICATIONS} \
         -u {loops} -l {loops} --sizes {exponent} --dump-json - --quiet"
    ))
}

/// Nanoseconds of an exchange, as the C program prints them.
fn nanos_of_c(argv: &[String]) -> Result<f64> {
    let said = child::run(argv)?.stdout;
    said.trim().parse().with_context(|| said.clone())
}

/// Number of exchanges in a loop. Ranks that share a core and never yield need a turn of the
/// scheduler for each, a thousand times longer than with a core of their own.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates between its bounds"
)]
fn loops(nanos: f64, longest: u32) -> u32 {
    ((1e9 * LONGEST / nanos) as u32).clamp(TRIAL, longest)
}

fn split(argv: &str) -> Vec<String> {
    argv.split_whitespace().map(str::to_owned).collect()
}

fn launched(family: Family, ranks: u32, argv: &str) -> Vec<String> {
    let (launcher, flags) = (family.launcher, family.flags.join(" "));
    split(&format!("{launcher} {flags} -n {ranks} {argv}"))
}

/// The C program, built by the family's compiler.
fn built(family: Family) -> Result<String> {
    let program = format!("{}/exchange-{}", super::FOLDER, family.name);
    let compiler = family.compiler;
    Cmd::new(&format!("{compiler} -O2 -o {program} bench/net/exchange.c")).run()?;
    Ok(program)
}

/// Exchanges per second, from the time that weir's result has for its only size.
fn of_weir(argv: &[String], ranks: u32, exponent: u8) -> Result<f64> {
    let said = child::run(argv)?.stdout;
    let begin = said.find('{').context("no JSON on standard output")?;
    let result: Value = serde_json::from_str(&said[begin..])?;
    ensure!(result["validated"] == true, "not validated: {said}");
    let size = &result["timings"][exponent.to_string()];
    let rate = size["maxCalcBW"].as_f64().context("no `maxCalcBW`")?;
    // By its definition: ranks · replications · bytes · loops / time.
    let messages = rate / (1_u64 << exponent) as f64;
    Ok(messages / f64::from(ranks))
}

/// The loop without anything in it, in nanoseconds, beside its limit of 5.
fn null() -> Result<Vec<Row>> {
    let argv = format!("{} null 2 3", text(&side::built("examples/exchange_cost"))?);
    let nanos = printed(&split(&argv), 2)?;
    Ok(limited(
        "null",
        "time of an exchange of nothing",
        "ns, of at most 5",
        nanos,
        5.0,
    ))
}

/// From the start of the process to its end, without MPI, in milliseconds; the limit is 50.
fn start() -> Result<Vec<Row>> {
    let program = side::named(PEER, &text(&side::weir())?)?;
    let argv = split(&format!(
        "{program} --comm-type shm --ranks 1 -u 2 -l 1 -m 2"
    ));
    let wall = || Ok(1e3 * child::run(&argv)?.wall.as_secs_f64());
    let runs: Result<Vec<f64>> = (0..11).map(|_| wall()).collect();
    Ok(limited(
        "start",
        "wall time of a smallest run",
        "ms, of at most 50",
        ab::median(runs?),
        50.0,
    ))
}

/// Time that rank 0 spends on the results of 10,000 ranks, in seconds; the limit is 1.
fn merge() -> Result<Vec<Row>> {
    let argv = vec![text(&side::built("examples/merge_cost"))?];
    let said = child::run(&argv)?.stdout;
    let line = said
        .lines()
        .find(|line| line.starts_with("rank 0 ") && line.ends_with("ms"));
    let line = line.with_context(|| format!("no line of rank 0: {said}"))?;
    let millis = number(line)?;
    Ok(limited(
        "merge",
        "results of 10,000 ranks, at rank 0",
        "s, of at most 1",
        millis / 1e3,
        1.0,
    ))
}

fn limited(case: &str, name: &'static str, unit: &'static str, value: f64, limit: f64) -> Vec<Row> {
    let target = Target::AtMost(1.0);
    let metric = Metric { name, unit, target };
    vec![Row::counted(case, &metric, value, limit)]
}

/// The number in a column of the first line that a program prints.
fn printed(argv: &[String], column: usize) -> Result<f64> {
    let said = child::run(argv)?.stdout;
    let word = said.split_whitespace().nth(column);
    let word = word.with_context(|| format!("no column {column}: {said}"))?;
    word.parse().with_context(|| said.clone())
}

fn number(line: &str) -> Result<f64> {
    let mut words = line.split_whitespace().rev();
    let found = words.find_map(|word| word.parse().ok());
    found.with_context(|| format!("no number: {line}"))
}

/// weir's large messages beside one core that copies what the other core has just written.
fn beside_copy(rounds: usize) -> Result<Vec<Row>> {
    let program = side::named(PEER, &text(&side::weir())?)?;
    let argv = split(&format!(
        "{program} --comm-type shm --ranks 2 -n {REPETITIONS} -r {REPLICATIONS} \
         -u {COPIES} -l {COPIES} --sizes 20 --dump-json - --quiet"
    ));
    let metric = Metric {
        name: "1 MiB that the other core wrote",
        unit: "B/s",
        target: Target::AtLeast(0.9),
    };
    in_turns(
        "shm-copy",
        &[metric],
        rounds,
        &mut || Ok(vec![of_weir(&argv, 2, 20)? * MIB as f64]),
        &mut || Ok(vec![copied()]),
    )
}

/// Bytes per second of a core's copies: the best repetition of a loop's mean, as for exchanges.
fn copied() -> f64 {
    let (shared, turn) = (Mutex::new(vec![0_u8; MIB]), Barrier::new(2));
    let lock = || {
        shared
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    let rounds = || (0..REPETITIONS).flat_map(|_| 0..COPIES);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in rounds() {
                lock().fill(round);
                turn.wait();
                turn.wait();
            }
        });
        let mut own = vec![0_u8; MIB];
        let mut seconds = Vec::new();
        for _ in rounds() {
            turn.wait();
            let theirs = lock();
            let begun = Instant::now();
            own.copy_from_slice(std::hint::black_box(&theirs));
            seconds.push(begun.elapsed().as_secs_f64());
            drop(theirs);
            std::hint::black_box(&own);
            turn.wait();
        }
        let means = seconds
            .chunks(COPIES.into())
            .map(|loop_of| loop_of.iter().sum::<f64>() / f64::from(COPIES));
        MIB as f64 / means.fold(f64::INFINITY, f64::min)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_as_people_say_them() {
        assert_eq!(
            SIZES.map(|(e, _)| bytes(e)),
            ["8B", "1KiB", "4KiB", "64KiB", "1MiB"]
        );
    }

    #[test]
    fn slow_exchanges_have_short_loops() {
        assert_eq!(loops(200.0, 20_000), 20_000);
        assert_eq!(loops(1e6, 20_000), 50);
        assert_eq!(loops(1e9, 20_000), TRIAL);
    }

    #[test]
    fn the_last_number_of_a_line_is_read() {
        assert!((number("rank 0 spends 12.5 ms").unwrap() - 12.5).abs() < 1e-9);
        assert!(number("nothing").is_err());
    }
}
