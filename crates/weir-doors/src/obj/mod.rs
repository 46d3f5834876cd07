//! `weir obj VERB`: a server of pools for `weir daos-perf` to ask, and what is done with a pool's file.
//!
//! In: the words after `obj`. Out: an [`Action`], or a refusal with exit code 2. `weir obj run`, which measures,
//! is a door of its own (`obj_run`). Spec: object store
//! performance, 5.5. Not here: serving and pools, which are in `weir-object` and started by the program.

mod flags;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::{Arg, Command};
use flags::{VERBS, VerbRecord};
use weir_schema::ObjectDurability;
use weir_units::Bytes;

use crate::door::Door;
use crate::flags::{command, nearest};
use crate::given::GivenFlags;
use crate::house_words::{Parsed, one, parse};
use crate::refusal::Refusal;
use crate::rpc::{self, refuse_unavailable};
use crate::selftest::UsedVariables;

/// The door.
pub const DOOR: Door = Door {
    words: Some(words),
    ..Door::new(
        "obj",
        "VERB",
        "serve a store of versioned keys for weir daos-perf; look at, check, aggregate pools",
    )
};

/// The page of `weir obj --help`, without its verbs.
const HELP: &str = include_str!("help.md");

/// Action that the arguments of `weir obj` ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Serve.
    Serve(Box<ServeSettings>),
    /// Do something with a pool that exists.
    Pool(PoolCall),
}

/// Settings of a server of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeSettings {
    /// Directory of the pool's files, one for each target; without it the pool is in memory.
    pub directory: Option<PathBuf>,
    /// Size of the pool, all targets together.
    pub pool_bytes: Bytes,
    /// Targets, each with a part of the keys; without it one, or as many as a pool that exists has.
    pub targets: Option<u32>,
    /// UUID of a pool that exists and is served; without it a new one is made.
    pub pool: Option<String>,
    /// A new pool stays at the end.
    pub keep: bool,
    /// Fate that an acknowledged update survives; without it the best that the directory has.
    pub durability: Option<ObjectDurability>,
    /// Sums over stored values.
    pub sums: Sums,
    /// Addresses, limits, start and end.
    pub rpc: rpc::ServeSettings,
}

/// Sums over stored values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// None.
    None,
    /// CRC-32C.
    Crc32c,
    /// The lower half of XXH3.
    Xxh3,
}

/// Something done with a pool that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolCall {
    /// The task.
    pub task: PoolTask,
    /// Its file, or a directory with files of pools.
    pub path: PathBuf,
    /// Prints JSON.
    pub json: bool,
}

/// Task on a pool that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolTask {
    /// Show what it holds.
    Info,
    /// Compare every value with its sum.
    Check,
    /// Drop the versions that no reader sees any more, and free their space.
    Aggregate,
}

/// Reads the arguments after `obj`; `variable` reads the environment.
///
/// # Errors
/// An unknown verb, or arguments that it does not take.
pub fn read(
    words: &[String],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Action, Refusal> {
    let Some((name, rest)) = words.split_first() else {
        let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
        return Err(Refusal::usage(format!(
            "`weir obj` needs a word: {}, run\n  help: `weir obj --help` says more",
            names.join(", ")
        )));
    };
    if ["--help", "-h", "help"].contains(&name.as_str()) && rest.is_empty() {
        return Ok(Action::Print(page()));
    }
    let Some(verb) = VERBS.iter().find(|verb| verb.name == name) else {
        let names = VERBS.iter().map(|verb| verb.name);
        let near = nearest(name, names.chain(["run"]));
        let help = near.map_or_else(
            || "`weir obj --help` lists them".to_owned(),
            |near| format!("did you mean `weir obj {near}`?"),
        );
        return Err(Refusal::usage(format!(
            "no verb `{name}` of stores\n  help: {help}"
        )));
    };
    let matches = match parse(builder(verb), rest)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let given = GivenFlags::of_matches(verb.flags, &matches)?;
    refuse_unavailable(&given)?;
    if let Some(why) = given.refusal() {
        return Err(Refusal::usage(why));
    }
    match verb.task {
        None => served(&given, variable).map(|settings| Action::Serve(Box::new(settings))),
        Some(task) => Ok(Action::Pool(PoolCall {
            task,
            path: one(&matches, "path").unwrap_or_default().into(),
            json: given.is("format", "json"),
        })),
    }
}

/// The settings of a server.
fn served(
    given: &GivenFlags,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ServeSettings, Refusal> {
    let mut variables = UsedVariables::new(variable);
    let mut rpc = rpc::reached(given, &mut variables)?;
    variables.log()?;
    rpc.notes = variables.notes();
    rpc.serve.tags = given.number("targets");
    rpc.serve.allows_masters = false;
    let durability = given.text("durability").and_then(|word| {
        let mut levels = ObjectDurability::ALL.into_iter();
        levels.find(|level| level.name() == word)
    });
    if given.has("dir") && durability == Some(ObjectDurability::None) {
        let why = "what is in files survives the process; leave one of both out";
        return Err(Refusal::usage(format!(
            "--durability none with --dir: {why}"
        )));
    }
    Ok(ServeSettings {
        directory: given.text("dir").map(PathBuf::from),
        pool_bytes: given.size("size").unwrap_or(Bytes(2 << 30)),
        targets: given.has("targets").then(|| given.number("targets")),
        keep: given.has("keep"),
        pool: given.text("pool").map(str::to_ascii_lowercase),
        durability,
        sums: match given.text("csum") {
            Some("none") => Sums::None,
            Some("xxh3") => Sums::Xxh3,
            _ => Sums::Crc32c,
        },
        rpc,
    })
}

/// Command that parses the arguments of a verb.
fn builder(verb: &VerbRecord) -> Command {
    let built = command(&format!("weir obj {}", verb.name), verb.flags)
        .about(verb.about)
        .after_help(verb.help)
        .override_usage(format!("weir obj {}", verb.usage))
        .no_binary_name(true);
    if verb.task.is_none() {
        return built;
    }
    let path = Arg::new("path").value_name("FILE").required(true);
    built.arg(path.help("A pool's file, or a directory with files of pools"))
}

/// All verbs, for the manual and for completions.
fn words() -> Command {
    let verbs = VERBS.iter().map(|verb| builder(verb).name(verb.name));
    command("weir obj", &[])
        .about("A server of a store, and what is done with the files of pools")
        .override_usage("weir obj VERB [WORDS]...")
        .subcommand_help_heading("COMMANDS")
        .subcommands(verbs)
}

/// The page of `weir obj --help`, with its verbs.
fn page() -> String {
    let mut list = String::new();
    for verb in VERBS {
        push!(list, "  {:24}{}\n", verb.usage, verb.about);
    }
    HELP.replace("VERBS.\n", &list)
}
