//! `weir axio`, also reached by a link named `axio`: messages in packets through stages, with the
//! configuration files and the tables of the Axio emulator (older names `DPerf`, `PipeTune`).
//!
//! In: the words after `axio`, files by name ([`AxioEnvironment`]). Out: an [`Action`]; from a result the
//! texts of [`output`]. Spec: packet datapath, 1 to 4. Not here: what is done with a plan.

mod backend;
mod config;
mod flags;
mod keys;
pub mod output;
mod plan;
mod role;
#[cfg(test)]
mod tests;
mod tools;
mod verify;

use clap::Command;
use weir_schema::{PacketPathWorkload, PathSide, Plan, Workload};

pub use config::{AxioConfig, ConfigPlace, ConfigValue, WorkloadLine};
pub use flags::FLAGS;
pub use keys::{KEYS, Key, KeyState};
pub use verify::Findings;

use self::role::AxioRole;
use crate::door::{Door, DoorLink};
use crate::flags::{Standing, command, nearest, refuse_result_files};
use crate::given::GivenFlags;
use crate::house_words::{Parsed, parse};
use crate::refusal::{Refusal, USAGE};

/// The door.
pub const DOOR: Door = Door {
    links: &[DoorLink::new("axio")],
    printing: FLAGS,
    words: Some(builder),
    ..Door::new(
        "axio",
        "[OPTIONS]",
        "messages in packets through stages of threads, as the Axio emulator",
    )
};

/// Examples, keys and exit codes, the end of the page.
pub const HELP: &str = include_str!("help.md");

/// Words that may stand first.
const VERBS: [&str; 3] = ["run", "verify", "tools"];

/// Configurations of weir's own.
const EXAMPLES: [(&str, &str); 2] = [
    ("echo", include_str!("examples/echo.conf")),
    ("scan", include_str!("examples/scan.conf")),
];

/// What command lines are read against.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct AxioEnvironment<'a> {
    /// The text of a file, or why there is none.
    pub file: &'a dyn Fn(&str) -> Result<String, String>,
    /// A variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// What the words ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this, and exit with this code.
    Print {
        /// On standard output.
        out: String,
        /// On standard error.
        err: String,
        /// The exit code.
        code: u8,
    },
    /// Print this, then what another door does with its words.
    Elsewhere {
        /// On standard output.
        out: String,
        /// On standard error.
        err: String,
        /// The other door.
        verb: &'static str,
        /// Its words.
        words: Vec<String>,
    },
    /// A run.
    Run(Box<AxioRun>),
}

/// What is run, and how it is shown.
#[derive(Clone, Debug)]
pub struct AxioRun {
    /// One job.
    pub plan: Plan,
    /// How it is shown.
    pub options: AxioOptions,
    /// For standard error, before anything else.
    pub notes: Vec<String>,
    /// The file that gets the result.
    pub store: Option<String>,
    /// The history that keeps it, or `off`, where the words say so.
    pub history: Option<String>,
}

/// How a result is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AxioOptions {
    /// The whole result in place of tables.
    pub is_json: bool,
    /// The tables of the server too.
    pub has_server: bool,
}

/// The words after `axio`.
///
/// # Errors
/// Words or a configuration that cannot be used: exit 2.
pub fn read(words: &[String], environment: &AxioEnvironment<'_>) -> Result<Action, Refusal> {
    let (verb, rest) = verb(words)?;
    let matches = match parse(builder(), rest)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(print(page)),
    };
    let given = GivenFlags::of_matches(FLAGS, &matches);
    refuse_unavailable(&given)?;
    let is_tool = verb == "tools";
    if tools::has_own(&given, is_tool)? && given.has("list-packages") {
        return Ok(tools::packages());
    }
    let only_looks = is_tool || verb == "verify" || given.has("verify") || given.has("print");
    let Some((name, text)) = source(&given, environment)? else {
        return no_file(only_looks);
    };
    let refused = |wrong: Vec<String>| {
        let lines = wrong.iter().map(|why| format!("error: {why}\n"));
        Refusal::new(USAGE, lines.collect::<String>())
    };
    let mut config = AxioConfig::read(&name, &text).map_err(refused)?;
    for (_, word) in given.iter().filter(|(flag, _)| flag.name == "set") {
        config.set(word).map_err(Refusal::usage)?;
    }
    if let Some(which) = given.text("stage-timing") {
        config
            .set(&format!("stage_timing={which}"))
            .map_err(Refusal::usage)?;
    }
    let role = if only_looks {
        // What is only looked at needs none.
        Ok(AxioRole::Loopback)
    } else {
        AxioRole::of(&config, &given, environment)
    };
    // What is wrong with a value is said before that the role is missing.
    let supposed = role.as_ref().map_or(AxioRole::Loopback, |role| *role);
    let mut asked = plan::workload(&config, supposed).map_err(refused)?;
    role?;
    if tools::has_own(&given, is_tool)? {
        return Ok(tools::carry_out(&given, &name, &config));
    }
    if only_looks {
        return Ok(look(&config, given.has("print"), verb == "verify", &given));
    }
    if let Some(percent) = given.text("inject-loss") {
        asked.work.dropped_per_million = per_million(percent)?;
    }
    let found = verify::verify(&config, &plan::tunable(&config));
    if let Some(why) = found.broken {
        return Err(Refusal::usage(format!("{name}: {why}")));
    }
    if let Some(why) = plan::window_too_small(&asked.work).filter(|_| !given.has("force")) {
        let more = "\n  help: a larger inflight, smaller batches, or --force";
        return Err(Refusal::usage(format!("{name}: {why}{more}")));
    }
    let mut notes = found.warnings;
    notes.extend(notes_of(&config));
    notes.extend(waiting_note(&asked.work));
    run(&given, words, (name, asked), notes)
}

/// What is said where no file is named: by a verb that only looks, as the older tools do.
fn no_file(only_looks: bool) -> Result<Action, Refusal> {
    if only_looks {
        return Ok(tools::error(tools::NO_CONFIG));
    }
    let more = "\n  help: `weir axio --example echo` needs none";
    let why = lower_first(tools::NO_CONFIG);
    Err(Refusal::usage(format!("{why}{more}")))
}

/// What is waited for before anything is seen.
fn waiting_note(work: &PacketPathWorkload) -> Option<String> {
    let server = std::net::Ipv4Addr::from(work.addresses[1]);
    let at = format!("{server}:{}", work.management_port);
    let side = work.side.filter(|_| work.management_port > 0);
    side.map(|side| match side {
        PathSide::Server => format!("the server waits for its client at {at}"),
        PathSide::Client => format!("the client calls its server at {at}"),
    })
}

fn run(
    given: &GivenFlags,
    words: &[String],
    (name, asked): (String, plan::AxioWork),
    notes: Vec<String>,
) -> Result<Action, Refusal> {
    let command = ["weir", "axio"].map(str::to_owned);
    let command = command.into_iter().chain(words.iter().cloned()).collect();
    let plan = plan::plan(&name, asked, command);
    let text = |name| given.text(name).map(str::to_owned);
    let (store, history) = (text("store-result"), text("history"));
    if given.has("show-plan") {
        refuse_result_files(store.as_deref(), history.as_deref())?;
        return Ok(print(plan.to_json().map_err(Refusal::usage)? + "\n"));
    }
    Ok(Action::Run(Box::new(AxioRun {
        plan,
        options: options(given),
        notes,
        store,
        history,
    })))
}

/// How a stored result is shown by these words.
///
/// # Errors
/// Words that are not understood.
pub fn read_options(words: &[String]) -> Result<AxioOptions, Refusal> {
    let (_, rest) = verb(words)?;
    Ok(match parse(builder(), rest)? {
        Parsed::Given(matches) => options(&GivenFlags::of_matches(FLAGS, &matches)),
        Parsed::Print(_) => AxioOptions::default(),
    })
}

fn options(given: &GivenFlags) -> AxioOptions {
    AxioOptions {
        is_json: given.is("format", "json"),
        has_server: given.has("both"),
    }
}

fn print(out: String) -> Action {
    Action::Print {
        out,
        err: String::new(),
        code: 0,
    }
}

/// The first word, where it is a verb, and the rest.
fn verb(words: &[String]) -> Result<(&'static str, &[String]), Refusal> {
    let Some((first, rest)) = words.split_first() else {
        return Ok(("run", words));
    };
    if first.starts_with('-') {
        return Ok(("run", words));
    }
    if let Some(verb) = VERBS.iter().find(|verb| *verb == first) {
        return Ok((verb, rest));
    }
    let near = nearest(first, VERBS.iter().copied()).map_or_else(String::new, |near| {
        format!("\n  help: did you mean `weir axio {near}`?")
    });
    Err(Refusal::usage(format!(
        "no word `{first}` of `weir axio` (there are {}){near}",
        VERBS.join(", ")
    )))
}

fn refuse_unavailable(given: &GivenFlags) -> Result<(), Refusal> {
    if let Some(why) = given.refusal() {
        return Err(Refusal::usage(why));
    }
    let refused = given.iter().find_map(|(flag, _)| match flag.standing {
        Standing::Refused(why) => Some((flag, why)),
        _ => None,
    });
    refused.map_or(Ok(()), |(flag, why)| {
        Err(Refusal::usage(format!("{}: {why}", flag.spelling())))
    })
}

/// The configuration that the words name, by its name.
fn source(
    given: &GivenFlags,
    environment: &AxioEnvironment<'_>,
) -> Result<Option<(String, String)>, Refusal> {
    match (given.text("config"), given.text("example")) {
        (Some(_), Some(_)) => Err(Refusal::usage(
            "--example: -c names a configuration already; leave one of them out",
        )),
        (Some(file), None) => {
            let text = (environment.file)(file);
            let text = text.map_err(|why| {
                Refusal::usage(format!("Failed to open config file: {file}: {why}"))
            })?;
            Ok(Some((file.to_owned(), text)))
        }
        (None, Some(name)) => {
            let found = EXAMPLES.iter().find(|(known, _)| *known == name);
            Ok(found.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())))
        }
        (None, None) => Ok(None),
    }
}

/// `-v` and `-p`.
fn look(config: &AxioConfig, prints: bool, verifies: bool, given: &GivenFlags) -> Action {
    let numbers = plan::tunable(config);
    let mut out = String::new();
    if prints {
        out += &plan::tunable_lines(&numbers);
    }
    let (mut err, mut code) = (String::new(), 0);
    for note in notes_of(config) {
        push!(err, "note: {note}\n");
    }
    if verifies || given.has("verify") {
        let found = verify::verify(config, &numbers);
        for warning in &found.warnings {
            push!(err, "warning: {warning}\n");
            code = code.max(u8::from(given.has("strict")));
        }
        if let Some(why) = found.broken {
            push!(err, "{why}\n");
            code = 1;
        } else {
            push!(out, "{}\n", verify::PASSED);
        }
    }
    Action::Print { out, err, code }
}

/// What the configuration says that has nothing to act on, and what was read otherwise than written.
fn notes_of(config: &AxioConfig) -> Vec<String> {
    let idle = KEYS.iter().filter_map(|key| match key.state {
        KeyState::WithoutEffect(why) => {
            let value = config.values.get(key.name)?;
            Some(format!(
                "{}: {}: without effect: {why}",
                value.place, key.name
            ))
        }
        _ => None,
    });
    config.notes.iter().cloned().chain(idle).collect()
}

/// A share of a hundred as one of a million.
fn per_million(text: &str) -> Result<u32, Refusal> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|n| (0.0001..100.0).contains(n));
    let number = number.ok_or_else(|| {
        Refusal::usage(format!(
            "--inject-loss {text}: expected percent, from 0.0001 to 99"
        ))
    })?;
    format!("{:.0}", number * 1e4)
        .parse()
        .map_err(Refusal::usage)
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The packet path of a plan, where it has one.
pub fn work_of(plan: &Plan) -> Option<&PacketPathWorkload> {
    plan.jobs().find_map(|(_, job)| match &job.workload {
        Workload::PacketPath(work) => Some(work.as_ref()),
        _ => None,
    })
}

/// The command that parses the words.
fn builder() -> Command {
    command("weir axio", FLAGS)
        .about("Messages in packets through stages of threads, as the Axio emulator")
        .after_help(HELP)
        .override_usage("weir axio [run|verify|tools] [OPTIONS]")
        .no_binary_name(true)
}
