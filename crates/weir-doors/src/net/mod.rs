//! `weir net TEST`: tests of the network between ranks. The test there is, `lat-bw`, measures what
//! the latency and bandwidth part of HPCC measures and prints its lines.
//!
//! In: the words after `weir net`. Out: an [`Action`]; from a result the texts of [`output`].
//! Spec: effective bandwidth, 9.

mod exit;
mod flags;
pub mod output;
mod plan;
#[cfg(test)]
mod tests;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{Plan, RunResult, Spawn};

pub use exit::{complaints, exit_code};
pub use flags::FLAGS;
pub use output::NetFormat;

use crate::door::{Door, DoorPath, DoorRequest, Printed};
use crate::flags::{Flag, command, nearest, refuse_result_files};
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    path: Some(DoorPath {
        read: request,
        print,
    }),
    printing: FLAGS,
    words: Some(words),
    ..Door::new(
        "net",
        "TEST",
        "latency and bandwidth of messages between ranks: lat-bw, as HPCC",
    )
};

/// Tests of this build.
const TESTS: &[&str] = &["lat-bw"];
/// Tests that are known by name.
const ABSENT: &[&str] = &["osu", "beff-full"];

/// The end of the help text: what is measured, examples, exit codes.
pub const HELP: &str = include_str!("help.md");

/// What the words ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// A run.
    Run(Box<NetRun>),
}

/// What is run, and how it is shown.
#[derive(Clone, Debug)]
pub struct NetRun {
    /// Ranks and one job.
    pub plan: Plan,
    /// How it is shown.
    pub format: NetFormat,
    /// The file that gets the result.
    pub store: Option<String>,
    /// The history that keeps it, or `off`, where the command line says so.
    pub history: Option<String>,
}

/// The words after `net`. `launcher`: ranks that an MPI launcher started; none without one.
/// `transports`: those of this build.
///
/// # Errors
/// No test, one that is not there, words that are not understood: exit 2.
pub fn read(
    words: &[String],
    launcher: Option<u32>,
    transports: &TransportCatalogue,
) -> Result<Action, Refusal> {
    let list = TESTS.join(", ");
    match words.split_first() {
        None => Err(Refusal::usage(format!(
            "`weir net` needs a test (there is {list})"
        ))),
        Some((test, rest)) if test == "lat-bw" => lat_bw(rest, words, launcher, transports),
        Some((word, _)) if word == "--help" || word == "-h" => Ok(Action::Print(page())),
        Some((test, _)) if ABSENT.contains(&test.as_str()) => Err(Refusal::usage(format!(
            "`weir net {test}` is not in this build (there is {list})"
        ))),
        Some((test, _)) => {
            let near = nearest(test, TESTS.iter().copied());
            let hint = near.map_or_else(String::new, |near| {
                format!("\n  help: did you mean `weir net {near}`?")
            });
            Err(Refusal::usage(format!(
                "no test `{test}` of the network (there is {list}){hint}"
            )))
        }
    }
}

/// The same for whoever carries it out.
fn request(
    words: &[String],
    launcher: Option<u32>,
    transports: &TransportCatalogue,
) -> Result<DoorRequest, Refusal> {
    Ok(match read(words, launcher, transports)? {
        Action::Print(text) => DoorRequest::Print(text),
        Action::Run(run) => DoorRequest::Measure {
            plan: Box::new(run.plan),
            store: run.store,
            history: run.history,
        },
    })
}

/// What is printed of a result. Words that `weir show` is given name no test.
fn print(
    result: &RunResult,
    words: &[String],
    transports: &TransportCatalogue,
) -> Result<Printed, Refusal> {
    let launcher = result.plan.ranks.filter(|r| r.spawn == Spawn::Launcher);
    let test = [TESTS[0].to_owned()];
    let names_none = words.first().is_none_or(|word| word.starts_with('-'));
    let test: &[String] = if names_none { &test } else { &[] };
    let words = [test, words].concat();
    let format = match read(&words, launcher.map(|ranks| ranks.count), transports)? {
        Action::Run(run) => run.format,
        Action::Print(_) => NetFormat::Text,
    };
    Ok(Printed {
        out: output::stdout(result, format).unwrap_or_default(),
        err: complaints(result),
        code: exit_code(result),
    })
}

/// The page of `weir net --help`.
fn page() -> String {
    "weir net TEST [OPTIONS]\n\nTests of the network between ranks:\n\
     \x20 lat-bw   latency and bandwidth of pairs and rings, as HPCC measures them\n\n\
     For more, weir net lat-bw --help\n\n\
     Examples:\n\
     \x20   weir net lat-bw\n\
     \x20   weir net lat-bw --ranks 4 --spawn procs\n\
     \x20   mpirun -n 4 weir net lat-bw\n\n\
     Exit codes: 0 good; 1 wrong bytes, or the run failed; 2 usage error, nothing was\n\
     touched; 3 this machine lacks something, which is named; 130, 143 interrupted.\n"
        .to_owned()
}

fn lat_bw(
    rest: &[String],
    words: &[String],
    launcher: Option<u32>,
    transports: &TransportCatalogue,
) -> Result<Action, Refusal> {
    // `weir show` lets further words follow those of the run: the last ones hold.
    let builder = builder().args_override_self(true);
    let matches = match parse(builder, rest)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let empty = |flag: &&Flag| flag.value.is_some() && word(&matches, flag.name) == Some("");
    if let Some(flag) = FLAGS.iter().find(empty) {
        let (name, what) = (flag.spelling(), flag.value.unwrap_or_default());
        return Err(Refusal::usage(format!(
            "{name} needs {what}, which is empty"
        )));
    }
    let format = match word(&matches, "format") {
        Some("json") => NetFormat::Json,
        _ => NetFormat::Text,
    };
    let plan = plan::of(&matches, words, launcher, transports).map_err(Refusal::usage)?;
    let (store, history) = (word(&matches, "store-result"), word(&matches, "history"));
    if matches.get_flag("show-plan") {
        refuse_result_files(store, history)?;
        let text = plan.to_json().map_err(Refusal::usage)?;
        return Ok(Action::Print(text + "\n"));
    }
    Ok(Action::Run(Box::new(NetRun {
        plan,
        format,
        store: store.map(str::to_owned),
        history: history.map(str::to_owned),
    })))
}

/// The command that parses the words.
pub fn builder() -> Command {
    command("weir net lat-bw", FLAGS)
        .about("Latency and bandwidth between ranks, as HPCC measures them")
        .after_help(HELP)
        .override_usage("weir net lat-bw [OPTIONS]")
        .no_binary_name(true)
}

/// The words after `net`, the test among them.
fn words() -> Command {
    let test = Arg::new("test").value_name("TEST").help("The test");
    builder().arg(test.value_parser(PossibleValuesParser::new(TESTS)))
}

fn word<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}
