//! `weir rpc serve`: servers of a group, for `weir selftest` and others to ask.
//!
//! In: the words after `rpc`. Out: an [`Action`] with [`ServeSettings`]. Spec: RPC self-test, 8.1. Not
//! here: serving, which is in `weir-rpc` and started by the program.

mod flags;
mod settings;
#[cfg(test)]
mod tests;

use clap::Command;
use flags::FLAGS;
pub(crate) use flags::SHARED_FLAGS;
pub(crate) use settings::reached;
pub use settings::{ServeEnd, ServeSettings};
use weir_schema::RpcServe;

use crate::door::Door;
use crate::flags::{command, nearest};
use crate::given::GivenFlags;
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;
use crate::selftest::UsedVariables;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "rpc",
        "serve",
        "servers that answer RPCs, for weir selftest to ask",
    )
};

/// The end of the help text: examples, exit codes.
const HELP: &str = include_str!("help.md");

/// Verbs after `rpc`.
const VERBS: &[&str] = &["serve"];

/// Action that the arguments of `weir rpc` ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Serve.
    Serve(Box<ServeSettings>),
}

/// Reads the arguments after `rpc`; `variable` reads the environment.
///
/// # Errors
/// Words that are not understood, values out of range: exit code 2.
pub fn read(
    words: &[String],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Action, Refusal> {
    let help = ["--help".to_owned()];
    let words = match words.split_first() {
        Some((verb, rest)) if verb == "serve" => rest,
        Some((word, _)) if ["--help", "-h"].contains(&word.as_str()) => &help,
        Some((word, _)) => {
            let near = nearest(word, VERBS.iter().copied()).map_or_else(
                || "`weir rpc serve` is the only word there is".to_owned(),
                |near| format!("did you mean `weir rpc {near}`?"),
            );
            return Err(Refusal::usage(format!(
                "stray word `{word}`\n  help: {near}"
            )));
        }
        None => {
            let why = "`weir rpc` needs a word: serve\n  help: `weir rpc serve --help` says more";
            return Err(Refusal::usage(why));
        }
    };
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let given = GivenFlags::of_matches(FLAGS, &matches)?;
    refuse_unavailable(&given)?;
    if let Some(why) = given.refusal() {
        return Err(Refusal::usage(why));
    }
    let mut variables = UsedVariables::new(variable);
    let mut settings = settings::of(&given, &mut variables)?;
    variables.log()?;
    settings.notes = variables.notes();
    if given.has("dry-run") {
        return Ok(Action::Print(planned(&settings.serve)));
    }
    Ok(Action::Serve(Box::new(settings)))
}

/// # Errors
/// A flag that this build does not have.
pub(crate) fn refuse_unavailable(given: &GivenFlags) -> Result<(), Refusal> {
    let refused = given.iter().find_map(|(flag, _)| match flag.standing {
        crate::flags::Standing::Refused(why) => Some((flag, why)),
        _ => None,
    });
    refused.map_or(Ok(()), |(flag, why)| {
        Err(Refusal::usage(format!(
            "--{} is not available: {why}",
            flag.name
        )))
    })
}

/// The line of `--dry-run`.
fn planned(serve: &RpcServe) -> String {
    let ranks = match serve.ranks {
        None => "its launcher's rank, else the next free one".to_owned(),
        Some((first, last)) if first == last => format!("rank {first}"),
        Some((first, last)) => format!("ranks {first} to {last}"),
    };
    let plural = if serve.tags == 1 { "" } else { "s" };
    format!(
        "group {}: {ranks}, {} tag{plural} each, at {}\n",
        serve.group,
        serve.tags,
        serve.addresses.join(", ")
    )
}

/// Command that parses the arguments after `serve`.
fn builder() -> Command {
    command("weir rpc serve", FLAGS)
        .about("Servers that answer RPCs, for weir selftest to ask")
        .after_help(HELP)
        .override_usage("weir rpc serve [OPTIONS]")
        .no_binary_name(true)
        // Of two groups one would be served and nothing said of the other.
        .args_override_self(false)
}
