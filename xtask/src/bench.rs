//! Bench: weir beside a peer, in the same run, in turns.
//!
//! In: the name of a bench, the names of cases (none: all), the number of
//! rounds. Out: a table on the terminal; a whole run also puts it between its
//! markers in `bench/NAME.md`, with machine, date, revision, command and the
//! peer's version.
//! A bench is one file under `bench/` and one line in [`BENCHES`]: it returns
//! cases, and this file does the rest. Not here: the turns and the statistics
//! (`ab`). Nothing here decides whether a test passes.

#![expect(
    clippy::cast_precision_loss,
    reason = "counts become rates whose noise is far above 2^-53"
)]

mod bare;
mod callgrind;
mod card;
mod child;
mod datapath;
mod fio;
mod image;
mod kio;
mod machine;
mod net;
mod object;
mod results;
mod rpc;
mod same;
mod side;
mod startup;
mod table;
mod verify;

use std::fmt::Write as _;

use anyhow::{Context, Result, bail, ensure};

use crate::ab::{self, Measure};
use crate::cmd::Cmd;
use crate::packages;
use table::Row;

/// A named set of cases against one peer.
struct Bench {
    name: &'static str,
    what: &'static str,
    /// The peer's version.
    peer: fn() -> Result<String>,
    rounds: usize,
    /// Programs beside weir that it runs.
    examples: &'static [&'static str],
    cases: fn() -> Vec<Case>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "fio",
        what: "rates, CPU time, instructions, start and memory beside fio",
        peer: || Cmd::new("fio --version").read(),
        rounds: 8,
        examples: &["loop_cost"],
        cases: fio::cases,
    },
    Bench {
        name: "same",
        what: "weir beside itself: how often equal runs differ, in ROUNDS pairs",
        peer: side::version,
        rounds: 100,
        examples: &[],
        cases: same::cases,
    },
    Bench {
        name: "net",
        what: "exchanges of messages beside the same loop in C, over both families of MPI",
        peer: net::peer,
        rounds: 6,
        examples: &["exchange_cost", "merge_cost"],
        cases: net::cases,
    },
    Bench {
        name: "rpc",
        what: "remote procedure calls and their parts beside raw probes in C and over libfabric",
        peer: rpc::peer,
        rounds: 8,
        examples: &[
            "ring_cost",
            "shm_link_cost",
            "fabric_window",
            "idle_connections",
        ],
        cases: rpc::cases,
    },
    Bench {
        name: "datapath",
        what: "packets through stages beside bare rings and sockets in C, and beside DPDK's forwarder",
        peer: datapath::peer,
        rounds: 8,
        examples: &[],
        cases: datapath::cases,
    },
    Bench {
        name: "object",
        what: "the object store in memory beside the tuning guide's figures, beside copies and limits",
        peer: || {
            Ok(
                "the figures of DAOS's tuning guide, 4 KiB: 80,335 updates/s, 418,689 fetches/s"
                    .to_owned(),
            )
        },
        rounds: 5,
        examples: &["mem_cost", "disk_cost"],
        cases: object::cases,
    },
    Bench {
        name: "results",
        what: "showing, comparing and keeping results beside their limits; runs that are watched beside others",
        peer: side::version,
        rounds: 10,
        examples: &["results_cost"],
        cases: results::cases,
    },
    Bench {
        name: "kio",
        what: "instructions per I/O of the module and of weir's io_uring beside fio, in a guest",
        peer: || Cmd::new("fio --version").read(),
        rounds: 4,
        examples: &[],
        cases: kio::cases,
    },
];

/// One situation, measured on both sides; several rows if it has several metrics.
struct Case {
    name: String,
    run: Box<dyn Fn(usize) -> Result<Vec<Row>>>,
}

/// One value that a measurement returns.
#[derive(Clone, Copy)]
struct Metric {
    name: &'static str,
    unit: &'static str,
    target: Target,
}

/// Target of the ratio weir / peer.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// The figure is there to be read.
    None,
}

/// Where benches keep their files; not under the folder of the build, which
/// may lie on another file system.
const FOLDER: &str = "target/bench";

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
    let (other, rest) = beside(rest)?;
    let (wanted, rounds) = request(bench, &rest)?;
    packages::ensure("bench");
    prepare_folder()?;
    Cmd::new("cargo build --release -p weir").run()?;
    for example in bench.examples {
        Cmd::new("cargo build --release --workspace --example")
            .arg(example)
            .run()?;
    }
    let mut rows = Vec::new();
    for case in (bench.cases)() {
        if wanted.is_empty() || wanted.contains(&case.name) {
            println!("\n{}:", case.name);
            let of_case = (case.run)(rounds).with_context(|| case.name.clone())?;
            print!("{}", table::plain(&of_case));
            rows.extend(of_case);
        }
    }
    let facts = machine::facts(bench, rounds)?;
    let text = format!("{facts}\n{}", table::render(&rows));
    println!("\n{text}");
    if wanted.is_empty() && other.is_none() {
        table::write(&format!("bench/{}.md", bench.name), bench.name, &text)?;
    }
    Ok(())
}

/// `--beside PROGRAM`: the peer is another build of weir. The arguments without it.
fn beside(argv: &[String]) -> Result<(Option<String>, Vec<String>)> {
    let Some(at) = argv.iter().position(|word| word == "--beside") else {
        return Ok((None, argv.to_vec()));
    };
    let other = argv.get(at + 1).context("--beside needs another weir")?;
    Cmd::new(other).arg("--version").read()?;
    side::set_other(other);
    let rest = [&argv[..at], &argv[at + 2..]].concat();
    Ok((Some(other.clone()), rest))
}

/// The cases that are asked for (none: all), and the number of rounds.
fn request(bench: &Bench, argv: &[String]) -> Result<(Vec<String>, usize)> {
    let (mut wanted, mut rounds) = (Vec::new(), bench.rounds);
    for word in argv {
        if let Ok(number) = word.parse() {
            rounds = number;
        } else {
            wanted.push(word.clone());
        }
    }
    ensure!(rounds >= 4, "{rounds} rounds say nothing: 4 is the least");
    let cases: Vec<String> = (bench.cases)().into_iter().map(|case| case.name).collect();
    if let Some(unknown) = wanted.iter().find(|name| !cases.contains(name)) {
        bail!(
            "bench {} has no case `{unknown}`; it has {}",
            bench.name,
            cases.join(", ")
        );
    }
    Ok((wanted, rounds))
}

fn prepare_folder() -> Result<()> {
    std::fs::create_dir_all(FOLDER).context(FOLDER)
}

/// Both sides in turns: a row per metric.
fn in_turns(
    case: &str,
    metrics: &[Metric],
    rounds: usize,
    weir: &mut Measure<'_>,
    peer: &mut Measure<'_>,
) -> Result<Vec<Row>> {
    let pairs = ab::interleave(rounds, weir, peer)?;
    let rows = metrics.iter().zip(&pairs);
    Ok(rows
        .map(|(metric, pairs)| Row::of(case, metric, &ab::compare(pairs)))
        .collect())
}

fn list() -> String {
    let mut text =
        String::from("usage: cargo xtask bench NAME [CASE...] [ROUNDS] [--beside OTHER_WEIR]\n");
    for bench in BENCHES {
        let _ = writeln!(text, "  {:<6} {}", bench.name, bench.what);
        for case in (bench.cases)() {
            let _ = writeln!(text, "         {}", case.name);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_request_names_cases_and_rounds_in_any_order() {
        let fio = &BENCHES[0];
        assert_eq!(request(fio, &[]).unwrap(), (vec![], fio.rounds));
        let some = request(fio, &argv("null-1 12 start-64")).unwrap();
        assert_eq!(some, (argv("null-1 start-64"), 12));
    }

    #[test]
    fn an_unknown_case_is_refused_with_the_list() {
        let error = request(&BENCHES[0], &argv("null-2")).unwrap_err();
        assert!(error.to_string().contains("null-1, null-32"), "{error}");
        assert!(request(&BENCHES[0], &argv("null-1 3")).is_err());
    }

    #[test]
    fn every_bench_has_a_page_with_a_table_that_the_first_page_lists() {
        let first = include_str!("../../bench/README.md");
        for Bench { name, .. } in BENCHES {
            let page = format!("{}/../bench/{name}.md", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&page).unwrap();
            assert!(
                text.contains(&format!("<!-- bench:{name} begin -->")),
                "{page}"
            );
            assert!(first.contains(&format!("[{name}]({name}.md)")), "{name}");
        }
    }

    #[test]
    fn no_two_cases_of_a_bench_share_a_name() {
        for bench in BENCHES {
            let mut names: Vec<String> = (bench.cases)().into_iter().map(|c| c.name).collect();
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }
}
