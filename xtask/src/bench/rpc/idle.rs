//! Cost of connections that nobody talks on: memory of the server, and the rate of one that talks.
//!
//! Two servers on the same CPU, of which one has the idle connections of another process (the example
//! `idle_connections`); the same caller calls them in turns.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use super::served::{self, Served};
use super::{Case, split};
use crate::bench::side::{self, text};
use crate::bench::table::Row;
use crate::bench::{Metric, Target, in_turns};

/// Connections, as far as the limit of descriptors allows.
const CONNECTIONS: u64 = 10_000;
/// Descriptors of a process that are no connections.
const OTHERS: u64 = 100;
/// KiB that a connection may take.
const KIB_EACH: f64 = 10.0;
/// Calls of the caller.
const CALLS: &str = "-s 0 -i 16";

pub(super) fn case() -> Case {
    Case {
        name: "idle".to_owned(),
        run: Box::new(measure),
    }
}

fn measure(rounds: usize) -> Result<Vec<Row>> {
    let limit = hard_limit()?;
    let wanted = CONNECTIONS.min(limit.saturating_sub(OTHERS));
    let weir = text(&side::weir())?;
    // The soft limit is often a thousand.
    let raised = format!("prlimit --nofile={limit}:{limit}");
    let quiet = Served::start("", &weir, "tcp")?;
    let crowded = Served::start(&raised, &weir, "tcp")?;
    let before = crowded.resident()?;
    let idle = IdleConnections::connect(&format!(
        "{raised} {} {} {wanted}",
        text(&side::built("examples/idle_connections"))?,
        crowded.address
    ))?;
    let each = (crowded.resident()? - before) / 1024.0 / wanted as f64;
    println!("{wanted} idle connections");
    let memory = Metric {
        name: "memory of an idle connection",
        unit: "KiB, of at most 10",
        target: Target::AtMost(1.0),
    };
    let rate = Metric {
        name: "calls beside idle connections, beside a server without",
        unit: "per second",
        target: Target::AtLeast(0.9),
    };
    let mut rows = vec![Row::counted("idle", &memory, each, KIB_EACH)];
    let (mine, peer) = (crowded.caller(&weir, CALLS)?, quiet.caller(&weir, CALLS)?);
    println!("$ {}\n$ {}", mine.join(" "), peer.join(" "));
    rows.extend(in_turns(
        "idle",
        &[rate],
        rounds,
        &mut || Ok(vec![served::rate(&mine)?]),
        &mut || Ok(vec![served::rate(&peer)?]),
    )?);
    drop(idle);
    Ok(rows)
}

/// Number of descriptors that a process may have.
fn hard_limit() -> Result<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1));
    match hard {
        Some("unlimited") => Ok(CONNECTIONS + OTHERS),
        Some(number) => Ok(number.parse()?),
        None => Ok(1024),
    }
}

/// A process with idle connections, which ends with this value.
struct IdleConnections(Child);

impl IdleConnections {
    fn connect(argv: &str) -> Result<Self> {
        println!("$ {argv} &");
        let argv = split(argv);
        let (program, args) = argv.split_first().context("a command has a program")?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().context("no output")?;
        let idle = Self(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        anyhow::ensure!(line.trim() == "connected", "the crowd says `{line}`");
        Ok(idle)
    }
}

impl Drop for IdleConnections {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
