//! Under which conditions it was measured: machine, clock, instrument, devices, plan; and what the
//! words of the page mean.

use weir_schema::{ClockSource, DeviceFacts, DiskCounters, RunResult};
use weir_units::{Bytes, Nanos};

use super::table::{list, table};
use crate::figures::NUMBERS;
use crate::number_format::{program, significant, start};
use crate::plot::PlottedRun;
use crate::plot::escaped;

/// Targets and disks that are listed.
const LISTED: usize = 100;

/// Definitions of the page's words.
const DEFINITIONS: [(&str, &str); 7] = [
    (
        "rate",
        "operations completed over the time from the first worker's start to the last one's end, ramp excluded",
    ),
    (
        "±",
        "half the 95 % interval of the rate, from how it changed within this run alone",
    ),
    (
        "latency",
        "from just before an operation is handed to the engine until its completion is seen",
    ),
    (
        "response",
        "from when the plan wanted an operation to start until its completion is seen",
    ),
    (
        "p99",
        "99 % of the operations took at most so long; ~ marks a percentile with fewer than 10 operations beyond it",
    ),
    (
        "stall",
        "nothing completed for a second or more in which at least ten operations were to be expected",
    ),
    (
        "knee",
        "the smallest value of the parameter with 95 % of the best rate",
    ),
];

/// All of them; the plans with at most so many bytes.
pub(super) fn sections(runs: &[PlottedRun<'_>], plan_bytes: usize) -> String {
    let mut out = String::new();
    for run in runs {
        let of = if runs.len() > 1 {
            format!(" of {}", escaped(run.label))
        } else {
            String::new()
        };
        push!(out, "<section><h2>Machine{of}</h2>");
        out += &machine(run.result);
        out += &devices(run.result);
        out += "</section>\n";
        out += &plan(run.result, &of, plan_bytes / runs.len());
    }
    out += "<section><h2>What the words mean</h2>";
    out += &list(&DEFINITIONS.map(|(word, meaning)| (word, Some(meaning.to_owned()))));
    out + "</section>\n"
}

fn machine(result: &RunResult) -> String {
    let (host, clock) = (&result.host, &result.clock);
    let source = match clock.source {
        ClockSource::Tsc => "tsc",
        ClockSource::Cntvct => "cntvct",
        ClockSource::Monotonic => "monotonic",
        ClockSource::Simulated => "simulated",
    };
    // Of what other programs measured it is not known, and commands do not ask for it.
    let is_own = result.source.is_none() && !clock.reason.is_empty();
    let residual = clock.residual_ns.map(|ns| {
        let ppm = clock
            .residual_ppm
            .map_or_else(String::new, |ppm| format!(", {} ppm", significant(ppm, 2)));
        format!("{} ns{ppm} at worst", significant(ns, 2))
    });
    let instrument = &result.instrument;
    let own = instrument
        .ns_per_op
        .map(|ns| format!("{} ns per operation", significant(ns, 3)));
    let own = own.or_else(|| {
        instrument
            .absent
            .as_ref()
            .map(|why| format!("not measured: {why}"))
    });
    list(&[
        ("started", start(result)),
        ("host", host.hostname.clone()),
        ("processor", host.cpu_model.clone()),
        ("processors", host.cpus.map(|n| n.to_string())),
        ("memory", host.memory_bytes.map(|b| b.to_string())),
        ("NUMA nodes", host.numa_nodes.map(|n| n.to_string())),
        ("load average", host.load_average.map(|n| n.to_string())),
        ("system", host.os.clone()),
        ("kernel", host.kernel.clone()),
        ("governor", host.governor.clone()),
        (
            "clock",
            is_own.then(|| format!("{source} ({})", clock.reason)),
        ),
        (
            "clock read",
            is_own.then(|| format!("{} ns", significant(clock.read_ns, 2))),
        ),
        ("clock residual", residual),
        ("instrument", own),
        (
            "peak memory",
            instrument.peak_memory_bytes.map(|b| b.to_string()),
        ),
        ("program", Some(program(result))),
        ("command", Some(result.plan.command.join(" "))),
    ])
}

fn devices(result: &RunResult) -> String {
    let mut out = String::new();
    let rows: Vec<Vec<String>> = result
        .host
        .devices
        .iter()
        .take(LISTED)
        .map(device)
        .collect();
    if !rows.is_empty() {
        let head = [
            "target",
            "kind",
            "size",
            "file system",
            "device",
            "model",
            "scheduler",
        ];
        out += &table(&head.map(str::to_owned), &rows);
    }
    let rows: Vec<Vec<String>> = result.disks.iter().take(LISTED).map(disk).collect();
    if !rows.is_empty() {
        let head = ["disk", "reads", "read", "writes", "written", "busy"];
        out += &table(&head.map(str::to_owned), &rows);
    }
    let more = [result.host.devices.len(), result.disks.len()];
    let more: usize = more.iter().map(|n| n.saturating_sub(LISTED)).sum();
    if more > 0 {
        push!(
            out,
            "<p class=\"warn\">And {more} more, which the stored result has.</p>"
        );
    }
    out
}

fn device(facts: &DeviceFacts) -> Vec<String> {
    let text = |of: &Option<String>| of.clone().unwrap_or_default();
    vec![
        facts.target.clone(),
        facts.kind.clone(),
        facts
            .size_bytes
            .map_or_else(String::new, |b: Bytes| b.to_string()),
        text(&facts.file_system),
        text(&facts.device),
        text(&facts.model),
        text(&facts.scheduler),
    ]
}

fn disk(disk: &DiskCounters) -> Vec<String> {
    let busy = |part: Nanos, of: Nanos| {
        let share = part.as_secs_f64() / of.as_secs_f64();
        if share.is_finite() {
            format!("{:.0} %", 100.0 * share)
        } else {
            String::new()
        }
    };
    vec![
        disk.device.clone(),
        NUMBERS.count(disk.read_operations),
        NUMBERS.size(disk.read_bytes),
        NUMBERS.count(disk.write_operations),
        NUMBERS.size(disk.write_bytes),
        busy(disk.busy_ns, disk.elapsed_ns),
    ]
}

/// The whole plan, where it is short enough.
fn plan(result: &RunResult, of: &str, most: usize) -> String {
    let text = result.plan.to_json().unwrap_or_default();
    let text = if text.len() > most {
        format!(
            "It is {} long; the stored result has it.",
            Bytes(text.len() as u64)
        )
    } else {
        text
    };
    format!(
        "<section><details><summary><h2>Plan{of}</h2></summary><pre>{}</pre></details></section>\n",
        text.lines().map(escaped).collect::<Vec<_>>().join("\n")
    )
}
