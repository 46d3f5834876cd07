//! Writes the book's table of options, `docs/book/src/options.md`, from the option records.
//!
//! `cargo run -p weir-jobfile --example write_options`, after a change of a record; with
//! `-- --check` it writes nothing and exits with 1 if the page is not what the records say.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use weir_jobfile::{Category, OptionRecord, Scope, Support, ValueKind, option_records};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/book/src/options.md"
);
/// Larger bounds are none that anybody meets.
const LARGEST: u64 = u32::MAX as u64;
const REMEDY: &str = "cargo run -p weir-jobfile --example write_options";

const HEAD: &str = "# Options of jobs

This page is made from the records that parser and help are made from. `weir fio --cmdhelp=NAME`
prints the same for one option. Numbers take `k`, `m`, `g`, `t`; times take `us`, `ms`, `s`, `m`,
`h`, `d`.
";

const TOPICS: [(Category, &str); 9] = [
    (Category::Target, "Files, devices and the region used"),
    (Category::Pattern, "Order, kinds and sizes of operations"),
    (Category::Content, "What buffers hold"),
    (Category::Engine, "Engine, depth, memory, flushes"),
    (Category::Time, "Time, rates and pauses"),
    (Category::Report, "Groups, order, statistics, errors"),
    (Category::Verify, "Data verification"),
    (Category::Log, "Logs and traces"),
    (Category::Process, "Processes, CPUs, priorities"),
];

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => {
            writeln!(io::stderr(), "usage: write_options [--check]")?;
            return Ok(ExitCode::from(2));
        }
    };
    let page = page();
    if !check {
        std::fs::write(PAGE, page)?;
    } else if std::fs::read_to_string(PAGE).ok() != Some(page) {
        let message = "docs/book/src/options.md differs from the records; write it again";
        writeln!(io::stderr(), "{message}: {REMEDY}")?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn page() -> String {
    let mut out = HEAD.to_owned();
    let acts = |r: &&OptionRecord| r.support == Support::Supported;
    for (topic, title) in TOPICS {
        let records: Vec<_> = option_records()
            .filter(acts)
            .filter(|r| r.category == topic)
            .collect();
        if records.is_empty() {
            continue;
        }
        let _ = write!(
            out,
            "\n## {title}\n\n| option | takes | default | what it does |\n|---|---|---|---|\n"
        );
        for record in records {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                names(record),
                cell(&takes(record)),
                default(record),
                cell(&meaning(record))
            );
        }
    }
    out.push_str("\n## Accepted without meaning\n\n| option | why |\n|---|---|\n");
    for record in option_records() {
        if let Support::Meaningless(why) = record.support {
            let _ = writeln!(out, "| {} | {} |", names(record), cell(why));
        }
    }
    out.push_str("\n## Refused\n\n| option | what to use instead, or why not |\n|---|---|\n");
    for record in option_records() {
        if let Support::Refused { nearest } = record.support {
            let _ = writeln!(out, "| {} | {} |", names(record), cell(nearest));
        }
    }
    out
}

fn names(record: &OptionRecord) -> String {
    let all = std::iter::once(&record.name).chain(record.aliases);
    all.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// Bars would end a cell of the table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn default(record: &OptionRecord) -> String {
    if record.default.is_empty() {
        "–".to_owned()
    } else {
        format!("`{}`", cell(record.default))
    }
}

fn takes(record: &OptionRecord) -> String {
    let range = |min: u64, max: u64| match (min, max) {
        (0, LARGEST..) => String::new(),
        (_, LARGEST..) => format!(", at least {min}"),
        _ => format!(", {min} to {max}"),
    };
    match record.value {
        ValueKind::Flag => "switch".to_owned(),
        ValueKind::Bool => "0 or 1".to_owned(),
        ValueKind::Integer { min, max } => format!("number{}", range(min, max)),
        ValueKind::Signed { min, max } => format!("number, {min} to {max}"),
        ValueKind::Triple { min, max } => format!("`read,write,trim` numbers{}", range(min, max)),
        ValueKind::Size { .. } => "bytes or percent".to_owned(),
        ValueKind::Duration { .. } => "time".to_owned(),
        ValueKind::Words { words, .. } => {
            let words: Vec<String> = words.iter().map(|(w, _)| format!("`{w}`")).collect();
            words.join(" ")
        }
        ValueKind::Numbers { most, .. } => format!("up to {most} numbers, `:` between them"),
        ValueKind::Text => "text".to_owned(),
        ValueKind::OptionalText => "text, or nothing".to_owned(),
    }
}

fn meaning(record: &OptionRecord) -> String {
    let mut out = record.short.to_owned();
    if !record.long.is_empty() {
        let _ = write!(out, ". {}", record.long);
    }
    if let Some(need) = record.needs {
        let end = if out.ends_with('.') { "" } else { "." };
        let _ = write!(out, "{end} Acts only {}.", need.when);
    }
    if let Scope::Engines(engines) = record.scope {
        let _ = write!(out, " (engines {})", engines.join(", "));
    }
    out
}
