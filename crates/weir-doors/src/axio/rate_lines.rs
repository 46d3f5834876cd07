//! Lines on the rate that was kept and on the latency of answers.
//!
//! In: what was measured. Out: a line each, or nothing where there is nothing to say. Not here: tables.

use weir_schema::{PacketPathOutcome, PacketPathWorkload, PathSide, PathThread};

use super::output::{latency, percentile_us, quotient};

/// Line that compares the messages begun with those that the rate asked for.
pub(super) fn rate_line(done: &PacketPathOutcome, work: &PacketPathWorkload) -> String {
    let intended = done.sum(PathSide::Client, |one| one.intended);
    if intended == 0 {
        return String::new();
    }
    let begun = begun(done, work);
    let late = if begun < intended / 100 * 99 {
        ": generator-limited"
    } else {
        ""
    };
    format!("rate: {begun} of {intended} messages were begun{late}\n")
}

fn begun(done: &PacketPathOutcome, work: &PacketPathWorkload) -> u64 {
    let packets = u64::from(work.packets(work.request_bytes).max(1));
    done.sum(PathSide::Client, |one| one.application_tx.packets) / packets
}

/// Line on messages that the rate asked for and that have no latency. They were the slowest.
fn without_latency(done: &PacketPathOutcome, work: &PacketPathWorkload) -> String {
    let client = |of: fn(&PathThread) -> u64| done.sum(PathSide::Client, of);
    let unbegun = client(|one| one.intended).saturating_sub(begun(done, work));
    let counts = [(unbegun, "never begun"), (client(|one| one.lost), "lost")];
    let named = counts.iter().filter(|(count, _)| *count > 0);
    let named: Vec<String> = named
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if named.is_empty() {
        return String::new();
    }
    format!(", without {}", named.join(" and "))
}

pub(super) fn latency_line(
    threads: &[&PathThread],
    done: &PacketPathOutcome,
    work: &PacketPathWorkload,
) -> String {
    let all = latency(threads);
    if all.is_empty() {
        return String::new();
    }
    let at = |percent: f64| percentile_us(&all, percent);
    let longest = all.max().map_or(0.0, |max| quotient(max, 1000));
    let load = match (work.messages_per_s, work.in_flight) {
        (0, 0) => "closed-loop (any number in flight)".to_owned(),
        (0, n) => format!("closed-loop ({n} in flight per workspace)"),
        (rate, _) => {
            let without = without_latency(done, work);
            format!("open-loop ({rate} messages/s, from their intended times{without})")
        }
    };
    format!(
        "latency, {load}, us: p50 {:.2}, p90 {:.2}, p99 {:.2}, p99.9 {:.2}, p99.99 {:.2}, max {longest:.2}\n",
        at(50.0),
        at(90.0),
        at(99.0),
        at(99.9),
        at(99.99)
    )
}
