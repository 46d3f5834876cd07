//! Help of the fio door: the page, the options of jobs, the engines.
//!
//! In: records of flags and options, the catalogue of engines. Out: text in fio's layout.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};
use weir_jobfile::{OptionRecord, Scope, Support, ValueKind, find_option, option_records};
use weir_schema::catalogue::Catalogue;

use super::flags::FLAGS;
use super::output::FIO_VERSION;
use super::{DOOR, MEASURES};
use crate::args;
use crate::flags::{find, nearest};
use crate::house_words::files;
use crate::refusal::Refusal;

/// The page of `--help`.
pub(super) fn page() -> String {
    flags().render_help().to_string()
}

/// The flags of the door and of the house.
fn flags() -> Command {
    args::command(&DOOR, &MEASURES).override_usage("weir fio [options] [job options] <job file(s)>")
}

/// All arguments, which are read in the peer's own manner: flags, options of jobs, files.
pub(super) fn words() -> Command {
    let options = option_records().filter(|record| find(FLAGS, record.name).is_none());
    flags()
        .args(options.map(job_option))
        .arg(files().help("Job files"))
}

fn job_option(record: &'static OptionRecord) -> Arg {
    let arg = Arg::new(record.name)
        .long(record.name)
        .help(record.short)
        .help_heading("Options of jobs")
        .value_name("VALUE")
        .hide(matches!(record.support, Support::Refused { .. }));
    match record.value {
        ValueKind::Flag | ValueKind::OptionalText => arg.num_args(0..=1).require_equals(true),
        ValueKind::Words { words, .. } => {
            let words = words.iter().map(|(word, _)| *word);
            arg.value_parser(PossibleValuesParser::new(words))
        }
        _ => arg,
    }
}

pub(super) fn version(compat: bool) -> String {
    let own = env!("CARGO_PKG_VERSION");
    if compat {
        format!("{FIO_VERSION}\n")
    } else {
        format!("weir {own} (job language {FIO_VERSION})\n")
    }
}

/// An option of jobs, or the list of all.
pub(super) fn option(name: &str) -> Result<String, Refusal> {
    if name == "all" {
        return Ok(list(option_records().filter(|r| r.scope == Scope::Job)));
    }
    if let Some(record) = find_option(name) {
        return Ok(describe(record));
    }
    let known =
        option_records().flat_map(|r| [r.name].into_iter().chain(r.aliases.iter().copied()));
    let missing = format!("No such command: {name}");
    let near = nearest(name, known).and_then(find_option);
    let shown = near.map(|near| format!("{missing} - showing closest match\n{}", describe(near)));
    let why = || format!("--cmdhelp {name}: jobs have no such option");
    shown.ok_or_else(|| Refusal::usage(why()).by_peer(missing))
}

fn list<'a>(records: impl Iterator<Item = &'a OptionRecord>) -> String {
    let mut out = String::new();
    for record in records.filter(|r| !matches!(r.support, Support::Refused { .. })) {
        push!(out, "{:24}: {}\n", record.name, record.short);
    }
    out
}

fn describe(record: &OptionRecord) -> String {
    let mut out = format!("{:>20}: {}\n", record.name, record.short);
    for alias in record.aliases {
        line(&mut out, "alias", alias);
    }
    let kind = match record.value {
        ValueKind::Flag => "empty or boolean value ([0|1])",
        ValueKind::Bool => "boolean value (opt=1)",
        ValueKind::Integer { .. } | ValueKind::Signed { .. } | ValueKind::Triple { .. } => {
            "integer value (opt=100)"
        }
        ValueKind::Size { .. } => "string with postfix, or percent (opt=8k)",
        ValueKind::Duration { .. } => "string with time postfix (opt=10s)",
        ValueKind::Numbers { .. } => "list of floating point values separated by ':' (opt=5.9:7.8)",
        ValueKind::Words { .. } | ValueKind::Text | ValueKind::OptionalText => "string (opt=bla)",
    };
    line(&mut out, "type", kind);
    line(
        &mut out,
        "default",
        if record.default.is_empty() {
            "no default"
        } else {
            record.default
        },
    );
    bounds(&mut out, record);
    if !record.long.is_empty() {
        line(&mut out, "details", record.long);
    }
    if let Some(need) = record.needs {
        line(&mut out, "acts only", need.when);
    }
    match record.support {
        Support::Supported => {}
        Support::Meaningless(why) => line(&mut out, "no effect", why),
        Support::Refused { nearest } => line(&mut out, "refused", nearest),
    }
    if let Scope::Engines(engines) = record.scope {
        line(&mut out, "engines", &engines.join(", "));
    }
    out.push('\n');
    out
}

fn line(out: &mut String, label: &str, text: &str) {
    push!(out, "{label:>20}: {text}\n");
}

/// fio writes -1 for the largest number that it can keep.
fn largest(max: u64) -> String {
    if max >= u64::from(u32::MAX) {
        "-1".to_owned()
    } else {
        max.to_string()
    }
}

fn bounds(out: &mut String, record: &OptionRecord) {
    match record.value {
        ValueKind::Integer { min, max } | ValueKind::Triple { min, max } => {
            line(out, "range", &format!("min={min}, max={}", largest(max)));
        }
        ValueKind::Signed { min, max } => line(out, "range", &format!("min={min}, max={max}")),
        ValueKind::Bool => line(out, "range", "min=0, max=1"),
        ValueKind::Numbers { min, max, .. } => {
            line(out, "range", &format!("min={min:.6}, max={max:.6}"));
        }
        ValueKind::Words { words, .. } => {
            let mut label = "valid values";
            for (word, meaning) in words {
                push!(out, "{label:>20}: {word:10} {meaning}\n");
                label = "";
            }
        }
        _ => {}
    }
}

/// The engines, the options of one (`ENGINE`), or one option of it (`ENGINE,OPTION`).
pub(super) fn engine(catalogue: &Catalogue, words: &str) -> Result<String, Refusal> {
    if words.is_empty() {
        let names = catalogue.engines.iter().map(|e| format!("\t{}\n", e.name));
        return Ok(format!(
            "Available IO engines:\n{}",
            names.collect::<String>()
        ));
    }
    let (name, wanted) = words
        .split_once(',')
        .map_or((words, None), |(n, o)| (n, Some(o)));
    if catalogue.find(name).is_none() {
        let near = nearest(name, catalogue.engines.iter().map(|e| e.name));
        let hint = near.map_or(String::new(), |n| format!("\nDid you mean {n}?"));
        let peer = format!("fio: engine {name} not loadable\nIO engine {name} not found{hint}");
        let help = near.map_or(String::new(), |n| format!("\n  help: did you mean `{n}`?"));
        let why = format!("--enghelp {name}: there is no such engine{help}");
        return Err(Refusal::usage(why).by_peer(peer));
    }
    let belongs = |r: &&OptionRecord| matches!(r.scope, Scope::Engines(e) if e.contains(&name));
    if let Some(wanted) = wanted {
        return option_records()
            .filter(belongs)
            .find(|r| r.name == wanted || r.aliases.contains(&wanted))
            .map(describe)
            .ok_or_else(|| {
                let why = format!("IO engine {name} has no option {wanted}");
                Refusal::usage(&why).by_peer(why)
            });
    }
    let options = list(option_records().filter(belongs));
    Ok(if options.is_empty() {
        format!("IO engine {name} has no options\n")
    } else {
        options
    })
}
