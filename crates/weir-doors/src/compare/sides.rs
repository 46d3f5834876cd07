//! Sides of a comparison: stored results, job files in turns, commands in turns.
//!
//! In: the arguments. Out: the sides by name, the base first; what is run is what `weir run` would read.
//! Not here: how rounds go on.

use clap::ArgMatches;

use super::{Rounds, all, one, rounds};
use crate::given::GivenFlags;
use crate::house::{self, ProgressStyle, Run};
use crate::refusal::Refusal;
use crate::run::read_run;

/// Source of the sides.
#[derive(Clone, Debug)]
pub enum CompareInput {
    /// Stored results.
    Stored(Vec<StoredSide>),
    /// Runs in turns.
    Rounds {
        /// Number of rounds, and the steps around each run.
        rounds: Rounds,
        /// Jobs or commands.
        of: RoundsOf,
        /// Arguments of the command line.
        command: Vec<String>,
        /// The file that gets the results.
        store: Option<String>,
        /// The label that they are kept under in the history.
        save: Option<String>,
        /// Display of progress.
        progress: ProgressStyle,
    },
}

/// A side of stored results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSide {
    /// Name of the side.
    pub name: String,
    /// Operands that name its results.
    pub operands: Vec<String>,
}

/// Jobs or commands that take turns.
#[derive(Clone, Debug)]
pub enum RoundsOf {
    /// Job files or plans, by name.
    Plans(Vec<(String, Box<Run>)>),
    /// Shell commands, by name.
    Commands(Vec<(String, String)>),
}

pub(super) fn read(
    given: &GivenFlags,
    matches: &ArgMatches,
    words: &[String],
) -> Result<CompareInput, Refusal> {
    let operands = all(matches, "operand");
    let commands = all(matches, "cmd");
    let is_run = matches.get_flag("run");
    let (a, b) = (all(matches, "a"), all(matches, "b"));
    let has_sides = !(a.is_empty() && b.is_empty());
    let sources = [
        ("--run", is_run),
        ("--cmd", !commands.is_empty()),
        ("--a and --b", has_sides),
    ];
    let named: Vec<&str> = sources.iter().filter(|s| s.1).map(|s| s.0).collect();
    if let [first, second, ..] = named[..] {
        return Err(Refusal::usage(format!(
            "{first} and {second} say twice what is compared; leave one of them out"
        )));
    }
    if let Some(stray) = operands.first().filter(|_| !named.is_empty() && !is_run) {
        return Err(Refusal::usage(format!(
            "`{stray}`: {} say what is compared; leave it out",
            named.join("")
        )));
    }
    let of = if is_run {
        RoundsOf::Plans(plans(matches, &operands)?)
    } else if commands.is_empty() {
        return stored(operands, a, b).map(CompareInput::Stored);
    } else {
        refuse_one(&commands, "--cmd", "another --cmd")?;
        RoundsOf::Commands(numbered(&commands).into_iter().zip(commands).collect())
    };
    let command = ["weir", "compare"].into_iter().map(str::to_owned);
    Ok(CompareInput::Rounds {
        rounds: rounds(given, matches)?,
        of,
        command: command.chain(words.iter().cloned()).collect(),
        store: one(matches, "store-result").map(str::to_owned),
        save: one(matches, "save").map(str::to_owned),
        progress: house::progress(given),
    })
}

fn refuse_one(all: &[String], what: &str, other: &str) -> Result<(), Refusal> {
    let [alone] = all else {
        return Ok(());
    };
    Err(Refusal::usage(format!(
        "{what} `{alone}` has nothing beside it\n  help: name what it is compared with: {other}"
    )))
}

fn stored(
    operands: Vec<String>,
    a: Vec<String>,
    b: Vec<String>,
) -> Result<Vec<StoredSide>, Refusal> {
    if !operands.is_empty() {
        let names = names_of(&operands);
        let sides = names
            .into_iter()
            .zip(operands)
            .map(|(name, operand)| StoredSide {
                name,
                operands: vec![operand],
            });
        return Ok(sides.collect());
    }
    match (a.is_empty(), b.is_empty()) {
        (true, true) => Err(Refusal::usage(
            "`weir compare` needs two stored results, or --run and two job files\n  help: \
             `weir compare --run a.fio b.fio`, `weir compare --help` says more",
        )),
        (true, false) => Err(Refusal::usage(
            "--b: the base is missing\n  help: --a FILE…",
        )),
        (false, true) => Err(Refusal::usage(
            "--a: the other side is missing\n  help: --b FILE…",
        )),
        (false, false) => {
            let side = |name: &str, operands: Vec<String>| StoredSide {
                name: match &operands[..] {
                    [one] => names_of(std::slice::from_ref(one)).concat(),
                    _ => name.to_owned(),
                },
                operands,
            };
            Ok(vec![side("A", a), side("B", b)])
        }
    }
}

/// Each file, or one file with each value, as `weir run` would read it.
fn plans(matches: &ArgMatches, files: &[String]) -> Result<Vec<(String, Box<Run>)>, Refusal> {
    let values = one(matches, "vary").map(varied).transpose()?;
    let sides: Vec<(String, Vec<String>)> = match (values, files) {
        (_, []) => return Err(Refusal::usage("--run: no job file given")),
        (None, _) => {
            refuse_one(files, "--run", "another job file, or --vary KEY=V1,V2")?;
            let names = names_of(files).into_iter();
            names
                .zip(files)
                .map(|(name, file)| (name, vec![file.clone()]))
                .collect()
        }
        (Some(settings), [file]) => {
            let words = |setting: &String| vec![format!("--set={setting}"), file.clone()];
            settings.iter().map(|s| (s.clone(), words(s))).collect()
        }
        (Some(_), [_, second, ..]) => {
            return Err(Refusal::usage(format!(
                "--vary: it is one job file that is run with each value; leave `{second}` out"
            )));
        }
    };
    let mut shared: Vec<String> = Vec::new();
    for (flag, values) in [
        ("set", all(matches, "set")),
        ("ranks", all(matches, "ranks")),
        ("progress", all(matches, "progress")),
    ] {
        shared.extend(values.iter().map(|value| format!("--{flag}={value}")));
    }
    let read = |(name, own): (String, Vec<String>)| {
        let run = read_run(&[shared.clone(), own].concat())?;
        Ok((name, Box::new(run)))
    };
    sides.into_iter().map(read).collect()
}

/// `KEY=V1,V2` as `KEY=V1` and `KEY=V2`.
fn varied(text: &str) -> Result<Vec<String>, Refusal> {
    let wrong = || {
        Refusal::usage(format!(
            "--vary {text}: expected [SECTION:]KEY=V1,V2 with two values or more, all different"
        ))
    };
    let (key, list) = text.split_once('=').ok_or_else(wrong)?;
    let values: Vec<&str> = list.split(',').map(str::trim).collect();
    let is_odd = |(at, value): (usize, &&str)| value.is_empty() || values[..at].contains(value);
    if key.is_empty() || values.len() < 2 || values.iter().enumerate().any(is_odd) {
        return Err(wrong());
    }
    Ok(values
        .iter()
        .map(|value| format!("{key}={value}"))
        .collect())
}

/// Unique names of sides: the second `x` is `x (2)`.
fn numbered(names: &[String]) -> Vec<String> {
    let name = |(at, name): (usize, &String)| {
        let before = names[..at].iter().filter(|other| *other == name).count();
        match before {
            0 => name.clone(),
            before => format!("{name} ({})", before + 1),
        }
    };
    names.iter().enumerate().map(name).collect()
}

/// Names of files, without their folders where they are unique without them.
fn names_of(files: &[String]) -> Vec<String> {
    let last = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
    let short: Vec<String> = files.iter().map(last).collect();
    let is_new = |(at, name): (usize, &String)| !name.is_empty() && !short[..at].contains(name);
    if short.iter().enumerate().all(is_new) {
        return short;
    }
    numbered(files)
}
