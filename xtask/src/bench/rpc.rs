//! Remote procedure calls beside what the machine gives a call with nothing around it: probes in C
//! (`bench/rpc/raw.c`), built here.
//!
//! weir's side is a part of it in an example: the ring between two threads, the link over shared
//! memory. Each value is calls per second of a run of some tenths of a second on two pinned CPUs.
//! Not here: what a call is.

use anyhow::{Context, Result};

use super::side::{self, text};
use super::{Case, FOLDER, Metric, Target, child, in_turns};
use crate::cmd::Cmd;

/// How long a probe calls, in seconds.
const SECONDS: &str = "0.3";
/// Large transfers in turn.
const BUFFERS: u32 = 16;

pub(super) fn peer() -> Result<String> {
    let said = Cmd::new("cc --version").read()?;
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for depth in [1, 16] {
        cases.push(case(
            &format!("ring-{depth}"),
            format!("ring_cost {depth}"),
            format!("ring {depth}"),
            Target::AtLeast(0.8),
        ));
    }
    // A link frames, looks at every connection and wakes sleepers; the ring does none of it.
    for (depth, target) in [(1, 0.5), (16, 0.17)] {
        cases.push(case(
            &format!("shm-link-{depth}"),
            format!("shm_link_cost calls {depth}"),
            format!("ring {depth}"),
            Target::AtLeast(target),
        ));
    }
    for way in ["get", "put"] {
        cases.push(case(
            &format!("shm-link-{way}-1MiB"),
            format!("shm_link_cost {way} {BUFFERS}"),
            format!("copy {BUFFERS}"),
            Target::AtLeast(0.9),
        ));
    }
    cases
}

/// An example of weir and its words beside a probe and its words; both get two CPUs behind them.
fn case(name: &str, example: String, probe: String, target: Target) -> Case {
    let name = name.to_owned();
    let of_case = name.clone();
    let run = move |rounds| {
        let (answerer, caller) = (side::cpu().saturating_sub(1), side::cpu());
        let example = text(&side::built(&format!("examples/{example}")))?;
        let mine = split(&format!("{example} {caller} {answerer}"));
        let (kind, in_flight) = probe.split_once(' ').context("a probe and its depth")?;
        let raw = raw_probe()?;
        let peer = split(&format!(
            "{raw} {kind} {caller} {answerer} {in_flight} {SECONDS}"
        ));
        println!("$ {}\n$ {}", mine.join(" "), peer.join(" "));
        let metric = Metric {
            name: "calls",
            unit: "per second",
            target,
        };
        in_turns(
            &of_case,
            &[metric],
            rounds,
            &mut || Ok(vec![rate(&mine)?]),
            &mut || Ok(vec![rate(&peer)?]),
        )
    };
    Case {
        name,
        run: Box::new(run),
    }
}

/// Builds the probes.
fn raw_probe() -> Result<String> {
    let program = format!("{FOLDER}/raw");
    Cmd::new(&format!("cc -O2 -Wall -o {program} bench/rpc/raw.c")).run()?;
    Ok(program)
}

fn split(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// The number that a program prints.
fn rate(words: &[String]) -> Result<f64> {
    let said = child::run(words)?.stdout;
    said.trim()
        .parse()
        .with_context(|| format!("no rate: {said}"))
}
