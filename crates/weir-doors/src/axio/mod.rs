//! `weir axio`, also reached by a link named `axio`: messages in packets through stages, with the
//! configuration files and the tables of the Axio emulator (older names `DPerf`, `PipeTune`).
//!
//! In: the words after `axio`, files by name ([`AxioEnvironment`]). Out: an [`Action`]; from a result the
//! texts of [`output`]. Spec: packet datapath, 1 to 4. Not here: what is done with a plan.

mod backend;
mod config;
mod flags;
mod handlers;
mod keys;
mod line_rate_table;
mod lone_stage;
mod look;
pub mod output;
mod peer_file;
mod plan;
mod rate_lines;
mod role;
mod search;
mod server;
mod source;
#[cfg(test)]
mod tests;
mod tools;
mod traffic;
mod values;
mod verify;
pub(crate) mod window;

use clap::Command;
use weir_schema::{Job, PacketPathWorkload, Plan, Workload};

pub use backend::list as backend_list;
pub use config::{AxioConfig, ConfigPlace, ConfigValue, WorkloadLine};
pub use flags::FLAGS;
pub use keys::{KEYS, Key, KeyState};
pub use search::{NetworkTest, SearchGoal, SearchWay, TrafficSearch};
pub use verify::{Findings, MachineFacts};

use self::look::{Look, look, notes_of};
use self::role::AxioRole;
use self::source::{all_right, configuration, source};
use crate::door::{Door, DoorLink};
use crate::flags::{Standing, command, nearest, refuse_result_files};
use crate::given::GivenFlags;
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    links: &[DoorLink::new("axio")],
    flags: FLAGS,
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
const VERBS: [&str; 8] = [
    "run",
    "verify",
    "show",
    "selftest",
    "tools",
    search::LOSS_RATES,
    search::NETWORK_TESTS,
    LINE_RATE,
];
const LINE_RATE: &str = "linerate";

/// Configurations of weir's own.
const EXAMPLES: [(&str, &str); 2] = [
    ("echo", include_str!("examples/echo.conf")),
    ("scan", include_str!("examples/scan.conf")),
];

/// The name by which `-c` means standard input.
pub const STANDARD_INPUT: &str = "-";

/// What command lines are read against.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct AxioEnvironment<'a> {
    /// The text of a file, or why there is none.
    pub file: &'a dyn Fn(&str) -> Result<String, String>,
    /// A variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// What the verifier looks at of the machine.
    pub machine: &'a dyn Fn() -> MachineFacts,
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
    /// Print which backends this machine has ([`backend_list`]).
    Backends,
    /// Measure what timing the stages costs, in runs of their own, and print it.
    SelfTest,
    /// A run.
    Run(Box<AxioRun>),
}

/// What is run, and how it is shown.
#[derive(Clone, Debug)]
pub struct AxioRun {
    /// One job.
    pub plan: Plan,
    /// The search whose trials are made of the plan, where there is one.
    pub search: Option<TrafficSearch>,
    /// How it is shown.
    pub options: AxioOptions,
    /// For standard error, before anything else.
    pub notes: Vec<String>,
    /// The file that gets the result.
    pub store: Option<String>,
    /// The history that keeps it, or `off`, where the words say so.
    pub history: Option<String>,
    /// The configuration that was read.
    pub config: Option<String>,
    /// The file that gets the report of the host.
    pub monitor: Option<String>,
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
    if verb == LINE_RATE {
        return line_rate_table::read(rest);
    }
    let matches = match parse(builder(), rest)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(print(page)),
    };
    let given = GivenFlags::of_matches(FLAGS, &matches);
    if let Some(action) = without_configuration(verb, &given)? {
        return Ok(action);
    }
    let search = search::of_words(verb, &given)?;
    let is_tool = verb == "tools";
    let only_looks =
        is_tool || verb == "verify" || verb == "show" || given.has("verify") || given.has("print");
    let Some((name, text)) = source(&given, environment)? else {
        return no_file(is_tool);
    };
    let (config, mut wrong) = configuration(&given, &name, &text)?;
    let stage = lone_stage::of_words(if only_looks { "verify" } else { verb }, &given, &config)?;
    let role = if only_looks || stage.is_some() {
        // What is only looked at needs none.
        Ok(AxioRole::Loopback)
    } else {
        AxioRole::of(&config, &given, environment)
    };
    // What is wrong with a value is said before that the role is missing.
    let read = plan::workload(&config, *role.as_ref().unwrap_or(&AxioRole::Loopback));
    // Of what is only looked at the verifier says it, in the words of the older one.
    if !only_looks {
        let is_right = read.is_ok() && wrong.is_empty();
        let role = role.as_ref().ok().copied();
        wrong.extend(verify::wrong_for_a_run(&config, role, is_right));
    }
    let mut asked = all_right(&name, wrong, read)?;
    role?;
    if verb == "show" {
        return Ok(print(config.lines()));
    }
    let asked_look = Look {
        given: &given,
        environment,
        config: &config,
        prints: given.has("print"),
        verifies: verb == "verify",
    };
    if tools::has_own(&given, is_tool)? {
        return tools::carry_out(&asked_look, &name);
    }
    if only_looks {
        return look(&asked_look);
    }
    asked.work.only_stage = stage;
    make_trouble(&given, &mut asked.work)?;
    let search = search.map(|search| search.over(&asked.work, asked.line));
    let search = search.transpose()?;
    let notes = notes_of_run(&asked_look, (&name, &asked), search.as_ref())?;
    let plan = plan::plan(&name, asked, command_of(words));
    run(&given, (plan, search), notes)
}

/// Flags of a form that nothing here is printed in.
fn refuse_idle_forms(verb: &str, given: &GivenFlags) -> Result<(), Refusal> {
    let looks = ["verify", "print"].into_iter().find(|flag| given.has(flag));
    let what = if given.is("backend", "list") {
        Some("--backend list".to_owned())
    } else if ["verify", "show", "selftest", "tools"].contains(&verb) {
        Some(format!("`weir axio {verb}`"))
    } else {
        looks.map(|flag| format!("--{flag}"))
    };
    match what.filter(|_| given.is("format", "json")) {
        Some(what) => Err(Refusal::usage(format!(
            "--format json: {what} prints text alone; leave it out"
        ))),
        None => Ok(()),
    }
}

/// What needs no configuration.
///
/// # Errors
/// Words that this build or this verb has no use for.
fn without_configuration(verb: &str, given: &GivenFlags) -> Result<Option<Action>, Refusal> {
    refuse_unavailable(given)?;
    refuse_idle_forms(verb, given)?;
    if given.is("backend", "list") {
        return Ok(Some(Action::Backends));
    }
    if verb == "selftest" {
        if let Some((flag, _)) = given.iter().next() {
            let why = "acts not with `selftest`, which measures a configuration of its own";
            return Err(Refusal::usage(format!("{} {why}", flag.spelling())));
        }
        return Ok(Some(Action::SelfTest));
    }
    if given.has("peer") && verb != "verify" && !given.has("verify") {
        return Err(Refusal::usage("--peer acts only with `verify` or -v"));
    }
    if verb == "tools" {
        tools::check_named(given)?;
    }
    let lists = tools::has_own(given, verb == "tools")? && given.has("list-packages");
    Ok(lists.then(tools::packages))
}

/// What is said before a run.
///
/// # Errors
/// What the verifier finds, and what would stop.
fn notes_of_run(
    asked_look: &Look<'_>,
    (name, asked): (&str, &plan::AxioWork),
    search: Option<&TrafficSearch>,
) -> Result<Vec<String>, Refusal> {
    let Look {
        given,
        config,
        environment,
        ..
    } = *asked_look;
    let found = verify::verify(config, &plan::tunable(config));
    if let Some(why) = found.broken {
        return Err(Refusal::usage(format!("{name}: {why}")));
    }
    let is_forced = given.has("force") || search.is_some();
    if let Some(why) = window::window_too_small(&asked.work).filter(|_| !is_forced) {
        let more = "\n  help: a larger inflight, smaller batches, or --force";
        return Err(Refusal::usage(format!("{name}: {why}{more}")));
    }
    let mut notes = found.warnings;
    notes.extend(notes_of(asked_look));
    notes.extend(lone_stage::note(&asked.work));
    if given.has("both") && given.is("format", "json") {
        notes.push("--both: without effect: the JSON has both sides".to_owned());
    }
    match search {
        Some(search) => notes.extend(search.notes(config)),
        None => notes.extend(idle_line_rate(config)),
    }
    let machine = (environment.machine)();
    notes.extend(verify::beyond_machine(config, asked, &machine));
    notes.extend(role::waiting_note(&asked.work));
    Ok(notes)
}

/// What is said where no file is named; by `tools` as the older ones do.
fn no_file(is_tool: bool) -> Result<Action, Refusal> {
    if is_tool {
        return Ok(tools::error(tools::NO_CONFIG));
    }
    let more = "\n  help: `weir axio --example echo` needs none";
    let why = lower_first(tools::NO_CONFIG);
    Err(Refusal::usage(format!("{why}{more}")))
}

/// A rate of the line of which nothing is a share.
fn idle_line_rate(config: &AxioConfig) -> Option<String> {
    let is_share = config.text("rate").is_some_and(|rate| rate.ends_with('%'));
    let is_idle = !is_share && config.text("line_rate").is_some();
    let place = config.place_of("line_rate");
    is_idle.then(|| format!("{place}: without effect: `rate` is no percentage"))
}

/// The words of the program that they are of.
fn command_of(words: &[String]) -> Vec<String> {
    let command = ["weir", "axio"].map(str::to_owned);
    command.into_iter().chain(words.iter().cloned()).collect()
}

fn run(
    given: &GivenFlags,
    (plan, search): (Plan, Option<TrafficSearch>),
    notes: Vec<String>,
) -> Result<Action, Refusal> {
    let text = |name| given.text(name).map(str::to_owned);
    let (store, history) = (text("store-result"), text("history"));
    let monitor = text("monitor");
    if given.has("show-plan") {
        refuse_result_files(store.as_deref(), history.as_deref())?;
        let first = search.as_ref().map(|search| search.first_plan(&plan));
        let text = first.unwrap_or(plan).to_json().map_err(Refusal::usage)?;
        return Ok(print(text + "\n"));
    }
    Ok(Action::Run(Box::new(AxioRun {
        plan,
        search,
        options: options(given),
        notes,
        store,
        history,
        config: text("config").filter(|file| file != STANDARD_INPUT),
        monitor,
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

/// The search that these words ask for, where they do.
///
/// # Errors
/// Words that are not understood.
pub fn read_search(words: &[String]) -> Result<Option<TrafficSearch>, Refusal> {
    let (verb, rest) = verb(words)?;
    match parse(builder(), rest)? {
        Parsed::Given(matches) => search::of_words(verb, &GivenFlags::of_matches(FLAGS, &matches)),
        Parsed::Print(_) => Ok(None),
    }
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

/// What flags have go wrong on purpose.
fn make_trouble(given: &GivenFlags, work: &mut PacketPathWorkload) -> Result<(), Refusal> {
    if let Some(percent) = given.text("inject-loss") {
        work.dropped_per_million = per_million(percent)?;
    }
    server::limit(given, work)
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
    plan.jobs().find_map(|(_, job)| work_of_job(job))
}

fn work_of_job(job: &Job) -> Option<&PacketPathWorkload> {
    match &job.workload {
        Workload::PacketPath(work) => Some(work.as_ref()),
        _ => None,
    }
}

/// The command that parses the words.
fn builder() -> Command {
    command("weir axio", FLAGS)
        .about("Messages in packets through stages of threads, as the Axio emulator")
        .after_help(HELP)
        .override_usage("weir axio [run|verify|show|selftest|tools|ndr|rfc2544|linerate] [OPTIONS]")
        .no_binary_name(true)
}
