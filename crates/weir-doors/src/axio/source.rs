//! Configuration that the arguments name, and its errors.
//!
//! In: arguments, files by name. Out: the configuration with the values that arguments override; or all its
//! errors at once. Not here: the grammar (`config`), what values mean (`plan`).

use super::config::{AxioConfig, Unknown};
use super::plan::NO_WORKLOAD;
use super::{EXAMPLES, STANDARD_INPUT};
use crate::examples;
use crate::given::GivenFlags;
use crate::machine::{Machine, NamedPath};
use crate::refusal::Refusal;

/// The longest configuration that is read.
pub(super) const LONGEST_CONFIG: u64 = 16 << 20;

/// Configurations of the sides of a run whose arguments name none, as the older emulator reads them.
const OF_SIDES: [(&str, &str); 2] = [
    ("server", "config/recv_config"),
    ("client", "config/send_config"),
];

/// The configuration that the arguments name, with its name; for a run that names none, that of its side.
pub(super) fn source(
    given: &GivenFlags,
    machine: &dyn Machine,
    is_run: bool,
) -> Result<Option<(String, String)>, Refusal> {
    match (given.text("config"), given.text("example")) {
        (Some(_), Some(_)) => Err(Refusal::usage(
            "--example: -c names a configuration already; leave one of them out",
        )),
        (Some(file), None) => named(file, machine).map(Some),
        (None, Some(name)) => {
            let (name, text) = examples::find(EXAMPLES, name)?;
            Ok(Some((name.to_owned(), text.to_owned())))
        }
        (None, None) if is_run => of_side(given, machine).transpose(),
        (None, None) => Ok(None),
    }
}

fn named(file: &str, machine: &dyn Machine) -> Result<(String, String), Refusal> {
    let text = match file {
        STANDARD_INPUT => machine.standard_input(LONGEST_CONFIG),
        file => machine.file(file, LONGEST_CONFIG),
    };
    let refused = |why| Refusal::usage(format!("Failed to open config file: {file}: {why}"));
    Ok((file.to_owned(), text.map_err(refused)?))
}

/// The configuration of the side that a flag or the variable names, if there is one.
fn of_side(given: &GivenFlags, machine: &dyn Machine) -> Option<Result<(String, String), Refusal>> {
    let node = machine.variable("AXIO_NODE");
    let side = |is: &dyn Fn(&str) -> bool| OF_SIDES.into_iter().find(|(side, _)| is(side));
    let by_flag = side(&|side| given.has(side));
    let (_, file) = by_flag.or_else(|| side(&|side| node.as_deref() == Some(side)))?;
    (machine.named_path(file) != NamedPath::Missing).then(|| named(file, machine))
}

/// The configuration with the values of arguments, and the errors in its lines.
pub(super) fn configuration(
    given: &GivenFlags,
    name: &str,
    text: &str,
) -> Result<(AxioConfig, Vec<String>), Refusal> {
    let unknown = if given.has("lenient") {
        Unknown::Skipped
    } else {
        Unknown::Refused
    };
    let (mut config, wrong) = AxioConfig::read_all(name, text, unknown);
    for (_, word) in given.iter().filter(|(flag, _)| flag.name == "set") {
        config.set(word).map_err(Refusal::usage)?;
    }
    for (flag, key) in [("stage-timing", "stage_timing"), ("backend", "backend")] {
        if let Some(value) = given.text(flag) {
            let set = config.set_by_flag(flag, key, value);
            set.map_err(Refusal::usage)?;
        }
    }
    Ok((config, wrong))
}

/// Returns the value, or all errors in lines and values at once.
pub(super) fn all_right<T>(
    name: &str,
    mut wrong: Vec<String>,
    read: Result<T, Vec<String>>,
) -> Result<T, Refusal> {
    let place = format!("{name}:");
    let found = match read {
        Ok(read) if wrong.is_empty() => return Ok(read),
        Ok(_) => Vec::new(),
        Err(found) => found,
    };
    // Of lines that could not be read it is not known what they would have said.
    let is_sure = |why: &String| wrong.is_empty() || why.starts_with(&place);
    let found: Vec<String> = found.into_iter().filter(is_sure).collect();
    wrong.extend(found.into_iter().map(|why| {
        if why == NO_WORKLOAD {
            let help = "`weir axio show --example echo` prints a whole configuration";
            format!("{place} {why}\n  help: {help}")
        } else {
            why
        }
    }));
    // What has no line comes last.
    wrong.sort_by_key(|why| line_of(why, &place).unwrap_or(usize::MAX));
    Err(Refusal::usage(wrong.join("\nerror: ")))
}

/// Line of a file that a message names.
fn line_of(why: &str, place: &str) -> Option<usize> {
    why.strip_prefix(place)?.split(':').next()?.parse().ok()
}
