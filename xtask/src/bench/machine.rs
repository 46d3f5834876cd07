//! Facts that a figure needs beside it: place, time, machine and command.

use std::fs::read_to_string;

use anyhow::Result;

use super::{Bench, side};
use crate::cmd::Cmd;

/// The lines above a table.
pub(super) fn facts(bench: &Bench, rounds: usize) -> Result<String> {
    let date = Cmd::new("date -u +%F").read()?;
    let revision = Cmd::new("git describe --always --dirty").read();
    let peer = match side::other() {
        Some(other) => format!("{other}, another weir"),
        None => (bench.peer)()?,
    };
    let kernel = first_line("/proc/sys/kernel/osrelease");
    let clock = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let cpus = std::thread::available_parallelism()?;
    Ok(format!(
        "- machine: {}, {cpus} CPUs, Linux {kernel}, clock {clock}\n\
         - date: {}, revision {}\n\
         - peer: {}\n\
         - command: `cargo xtask bench {} {rounds}`\n",
        cpu_model(),
        date.trim(),
        revision.as_deref().unwrap_or("unknown").trim(),
        peer.trim(),
        bench.name,
    ))
}

fn cpu_model() -> String {
    let facts = read_to_string("/proc/cpuinfo").unwrap_or_default();
    facts
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown CPU".to_owned(), |(_, model)| model.to_owned())
}

fn first_line(path: &str) -> String {
    read_to_string(path).map_or("unknown".to_owned(), |text| text.trim().to_owned())
}
