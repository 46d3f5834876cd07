//! Remote procedure calls beside what the machine gives a call with nothing around it: probes in C
//! (`bench/rpc/raw.c`), built here, and over libfabric (`rpc/fabric`).
//!
//! weir's side is its parts in examples (the ring between two threads, the link over shared memory),
//! then `weir selftest` and `weir rpc serve` as users run them, each on a CPU of its own. Each value
//! is calls per second of a run of some tenths of a second. Not here: what a call is.

mod fabric;
mod idle;
mod served;

use anyhow::{Context, Result};

pub(super) use self::served::{Served, rate};
use super::side::{self, text};
use super::table::Row;
use super::{Case, FOLDER, Metric, Target, child, in_turns};
use crate::ab;
use crate::cmd::Cmd;

/// Length of a probe's calls, in seconds.
const SECONDS: &str = "0.3";
/// Large transfers in turn.
const BUFFERS: u32 = 16;
/// A large payload in bytes.
const MIB: u32 = 1 << 20;
/// Nanoseconds that a call may take without a network, with clock and histogram.
const NULL_LIMIT: f64 = 33.0;

/// Two CPUs, one for each side of a call.
#[derive(Clone, Copy)]
pub(super) struct Cpus {
    pub(super) caller: usize,
    pub(super) answerer: usize,
}

/// Rate of calls, by weir or by a probe.
type Rate = Box<dyn FnMut() -> Result<f64>>;

pub(super) fn peer() -> Result<String> {
    let said = Cmd::new("cc --version").read()?;
    let compiler = said.lines().next().unwrap_or_default().to_owned();
    Ok(format!("{compiler}; {}", fabric::version()?))
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = parts();
    for (depth, target) in [(1, 1.0 / 1.15), (16, 0.5), (64, 0.35)] {
        let probe = format!("tcp {depth}");
        cases.push(served(
            &format!("tcp-{depth}"),
            "tcp",
            depth,
            "0",
            probe,
            target,
        ));
    }
    for (depth, target) in [(1, 0.5), (16, 0.17)] {
        let probe = format!("ring {depth}");
        cases.push(served(
            &format!("shm-{depth}"),
            "shm",
            depth,
            "0",
            probe,
            target,
        ));
    }
    for (name, target) in [("tcp", 0.85), ("shm", 0.9)] {
        for (direction, sizes) in [("get", format!("b{MIB}e0")), ("put", format!("0b{MIB}"))] {
            let probe = match name {
                "tcp" => format!("tcp {BUFFERS} {MIB}"),
                _ => format!("copy {BUFFERS}"),
            };
            let case = format!("{name}-{direction}-1MiB");
            cases.push(served(&case, name, BUFFERS, &sizes, probe, target));
        }
    }
    cases.extend(fabric::cases());
    cases.push(Case {
        name: "null".to_owned(),
        run: Box::new(null),
    });
    cases.push(idle::case());
    cases
}

/// Parts of a call in examples, beside the same probes.
fn parts() -> Vec<Case> {
    let mut cases = Vec::new();
    for depth in [1, 16] {
        let example = format!("ring_cost {depth}");
        cases.push(part(
            &format!("ring-{depth}"),
            example,
            format!("ring {depth}"),
            0.8,
        ));
    }
    // A link frames, looks at every connection and wakes sleepers; the ring does none of it.
    for (depth, target) in [(1, 0.5), (16, 0.17)] {
        let example = format!("shm_link_cost calls {depth}");
        let name = format!("shm-link-{depth}");
        cases.push(part(&name, example, format!("ring {depth}"), target));
    }
    for direction in ["get", "put"] {
        let example = format!("shm_link_cost {direction} {BUFFERS}");
        let name = format!("shm-link-{direction}-1MiB");
        cases.push(part(&name, example, format!("copy {BUFFERS}"), 0.9));
    }
    cases
}

pub(super) fn cpus() -> Cpus {
    Cpus {
        caller: side::cpu(),
        answerer: side::cpu().saturating_sub(1),
    }
}

/// An example of weir beside a probe; both get two CPUs.
fn part(name: &str, example: String, probe: String, target: f64) -> Case {
    let mine = move || {
        let program = text(&side::built(&format!("examples/{example}")))?;
        let Cpus { caller, answerer } = cpus();
        Ok(printing(&format!("{program} {caller} {answerer}")))
    };
    beside(name, target, mine, move || raw(&probe))
}

/// `weir selftest` of a server beside a probe, or beside the same of another build of weir.
fn served(
    name: &str,
    transport: &'static str,
    depth: u32,
    sizes: &str,
    probe: String,
    target: f64,
) -> Case {
    let calls = format!("-s {sizes} -i {depth}");
    let own = calls.clone();
    let mine = move || Served::calling(&text(&side::weir())?, transport, &own);
    beside(name, target, mine, move || match side::other() {
        Some(other) => Served::calling(other, transport, &calls),
        None => raw(&probe),
    })
}

/// Two sides of which each is made ready once and then measured in turns.
fn beside(
    name: &str,
    target: f64,
    mine: impl Fn() -> Result<Rate> + 'static,
    peer: impl Fn() -> Result<Rate> + 'static,
) -> Case {
    let of_case = name.to_owned();
    let run = move |rounds| {
        let (mut mine, mut peer) = (mine()?, peer()?);
        let metric = Metric {
            name: "calls",
            unit: "per second",
            target: Target::AtLeast(target),
        };
        in_turns(
            &of_case,
            &[metric],
            rounds,
            &mut || Ok(vec![mine()?]),
            &mut || Ok(vec![peer()?]),
        )
    };
    Case {
        name: name.to_owned(),
        run: Box::new(run),
    }
}

/// A probe in C by its kind, calls in flight and what else it takes.
fn raw(probe: &str) -> Result<Rate> {
    let program = format!("{FOLDER}/raw");
    Cmd::new(&format!("cc -O2 -Wall -o {program} bench/rpc/raw.c")).run()?;
    let (kind, rest) = probe.split_once(' ').context("a probe and its depth")?;
    let (depth, reply) = rest.split_once(' ').unwrap_or((rest, ""));
    let Cpus { caller, answerer } = cpus();
    Ok(printing(&format!(
        "{program} {kind} {caller} {answerer} {depth} {SECONDS} {reply}"
    )))
}

/// Time of the loop itself for a call that goes nowhere, beside its limit.
fn null(rounds: usize) -> Result<Vec<Row>> {
    let weir = text(&side::weir())?;
    let argv = split(&served::caller(&weir, "--transport null -s 0 -i 16")?);
    println!("$ {}", argv.join(" "));
    let times: Result<Vec<f64>> = (0..rounds).map(|_| Ok(1e9 / rate(&argv)?)).collect();
    let metric = Metric {
        name: "time of a call that goes nowhere",
        unit: "ns, of at most 33",
        target: Target::AtMost(1.0),
    };
    Ok(vec![Row::counted(
        "null",
        &metric,
        ab::median(times?),
        NULL_LIMIT,
    )])
}

fn split(argv: &str) -> Vec<String> {
    argv.split_whitespace().map(str::to_owned).collect()
}

/// A program that prints a rate.
fn printing(argv: &str) -> Rate {
    let argv = split(argv);
    println!("$ {}", argv.join(" "));
    Box::new(move || {
        let said = child::run(&argv)?.stdout;
        let number = said.trim().parse();
        number.with_context(|| format!("no rate: {said}"))
    })
}
