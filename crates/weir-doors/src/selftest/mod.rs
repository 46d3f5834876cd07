//! `weir selftest`, also reached by a link named `self_test`: requests to servers and their replies, with
//! the words and the text of the `self_test` of `CaRT`.
//!
//! In: the words after `selftest`, what this machine says ([`SelfTestEnvironment`]), stored samples. Out:
//! an [`Action`]; from a result the texts of [`output`] and the exit code. Spec: RPC self-test, 1 to 5 and
//! 8.2. Not here: servers, transports, what is done with a plan.

mod argv;
mod cart;
mod contradictions;
mod endpoints;
mod exit;
mod flags;
mod further;
mod grammar;
mod head;
pub mod output;
mod plan;
mod rate_search;
mod rate_table;
mod rows;
mod sampled_result;
mod sampled_turns;
pub mod samples;
mod sizes;
mod surroundings;
mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use clap::Command;
use weir_schema::{EndpointSet, Plan, RankTags, RpcWorkload};
use weir_units::{Nanos, parse};

pub use exit::{exit_code, has_cart_codes, in_style_of};
pub use flags::FLAGS;
pub use rate_search::{RateGoal, RateSearch};
pub use sizes::MessagePair;
pub use surroundings::{LogLevel, LogSettings, TableDirectory, log_settings};
pub(crate) use surroundings::{UsedVariables, table_file};

use crate::door::{Door, DoorLink};
use crate::flags::{command, listing, refuse_result_files};
use crate::given::GivenFlags;
use crate::house::{Repeat, Run, RunFormat};
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    links: &[DoorLink::new("self_test")],
    flags: FLAGS,
    words: Some(builder),
    ..Door::new(
        "selftest",
        "[OPTIONS]",
        "RPCs to servers and their replies, as self_test of CaRT measures them",
    )
};

const USAGE_LINE: &str = "weir selftest [OPTIONS]";
const ABOUT: &str = "Requests to the endpoints of a group of servers, each with a reply: how many, how\n\
                     fast. The servers are those of `weir rpc serve`.";

/// Examples and exit codes, the end of the page.
pub const HELP: &str = include_str!("help.md");

/// What command lines are read against on this machine.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct SelfTestEnvironment<'a> {
    /// A variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Whether a path is that of a directory.
    pub is_directory: &'a dyn Fn(&str) -> bool,
    /// Whether a path is that of a file.
    pub has_file: &'a dyn Fn(&str) -> bool,
    /// Whether there is anything at a path, a file or something else.
    pub is_taken: &'a dyn Fn(&str) -> bool,
    /// The members of the group that a workload names, where an endpoint says `all`.
    pub members: &'a dyn Fn(&RpcWorkload) -> Result<Vec<RankTags>, String>,
    /// The words were given to a link with the older program's name.
    pub is_linked: bool,
    /// Of what is drawn, where no option says it.
    pub seed: u64,
    /// Files that a process may have open at most; any number where it is none.
    pub most_files: Option<u64>,
}

/// What the words ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// A run.
    Run(Box<SelfTestRun>),
    /// Several runs, as `weir run --repeat` has them.
    Repeat {
        /// What each of them is.
        run: Box<Run>,
        /// How many.
        repeat: Repeat,
        /// For standard error, before anything else.
        notes: Vec<String>,
    },
    /// The report of the samples in a file.
    Replay {
        /// The file.
        file: String,
        /// How it is shown.
        options: Box<SelfTestOptions>,
    },
}

/// What is run, and how it is shown.
#[derive(Clone, Debug)]
pub struct SelfTestRun {
    /// A group with one job for each pair of sizes.
    pub plan: Plan,
    /// How it is shown.
    pub options: SelfTestOptions,
    /// What is done with it.
    pub mode: SelfTestMode,
    /// For standard error, before anything else.
    pub notes: Vec<String>,
    /// The file that gets the result.
    pub store: Option<String>,
    /// The history that keeps it, or `off`, where the words say so.
    pub history: Option<String>,
    /// The file that gets every RPC.
    pub samples: Option<String>,
    /// When no RPC has ended for so long, that is said.
    pub stall: Nanos,
    /// The table of its group is there, or it needs none.
    pub finds_group: bool,
}

/// What is done with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTestMode {
    /// It is run.
    Run,
    /// What would be done is printed.
    DryRun,
    /// The plan is printed.
    ShowPlan,
}

/// How a result is shown.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct SelfTestOptions {
    /// What is printed.
    pub format: SelfTestFormat,
    /// Bandwidth in 10^6 bit/s.
    pub is_mbits: bool,
    /// Of latencies in the text.
    pub unit: TimeUnit,
    /// Further lines for these.
    pub percentiles: Vec<f64>,
    /// Further lines: transport, in flight, CPU.
    pub is_verbose: bool,
    /// A pace that is not kept fails the run.
    pub is_strict_rate: bool,
    /// The rate is searched for that keeps this.
    pub goal: Option<RateGoal>,
    /// A line of progress on standard error even where that is no terminal.
    pub has_progress: bool,
    /// What stands before the results.
    pub head: HeadFacts,
}

/// What the words did and did not say, for the lines before the results.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct HeadFacts {
    /// The sets of endpoints and masters in the order of the words.
    sets: Vec<EndpointSet>,
    /// `-u`.
    has_agent: bool,
    /// An alignment out of range.
    odd_align: Option<String>,
    has_group: bool,
    has_masters: bool,
    has_endpoints: bool,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTestFormat {
    /// As `self_test` prints it.
    Text,
    /// The whole result.
    Json,
    /// As `daos health net-test -j` prints it.
    CartJson,
    /// A row for each master, and for each of its endpoints.
    Csv,
    /// Metrics for a server that collects them.
    Prometheus,
}

/// The unit of latencies in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Whole microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// Microseconds, with decimals where the median is short.
    Auto,
}

/// The words after `selftest`.
///
/// # Errors
/// Words that are not understood (exit 2), a group that is not there (3).
pub fn read(words: &[String], environment: &SelfTestEnvironment<'_>) -> Result<Action, Refusal> {
    let taken = argv::parse(words)?;
    let given = &taken.given;
    if given.has("help") {
        return Ok(Action::Print(page()));
    }
    let options = options(given)?;
    if let Some(file) = given.text("replay") {
        refuse_with_replay(given)?;
        return Ok(Action::Replay {
            file: file.to_owned(),
            options: Box::new(options),
        });
    }
    let mode = match (given.has("dry-run"), given.has("show-plan")) {
        (_, true) => SelfTestMode::ShowPlan,
        (true, _) => SelfTestMode::DryRun,
        _ => SelfTestMode::Run,
    };
    let store = given.text("store-result").map(str::to_owned);
    let history = given.text("history").map(str::to_owned);
    if mode != SelfTestMode::Run {
        refuse_result_files(store.as_deref(), history.as_deref())?;
    }
    let command = ["weir", "selftest"].map(str::to_owned);
    let command = command.into_iter().chain(words.iter().cloned()).collect();
    let made = plan::of(given, command, environment)?;
    let has_table = refuse_absent_table(given, &made.plan, environment);
    let finds_group = has_table.is_ok();
    if mode == SelfTestMode::Run {
        has_table?;
    }
    let mut notes = taken.notes;
    notes.extend(made.notes);
    if let Some(runs) = plan::value(given, "repeat", |text| parse::whole(text, (2, 1000)))? {
        return repeated(given, made.plan, runs, notes);
    }
    Ok(Action::Run(Box::new(SelfTestRun {
        plan: made.plan,
        options,
        mode,
        notes,
        store,
        history,
        samples: given.text("samples").map(str::to_owned),
        stall: plan::value(given, "stall-timeout", parse::seconds)?.unwrap_or_default(),
        finds_group,
    })))
}

/// Several runs, whose report is that of `weir run`.
fn repeated(
    given: &GivenFlags,
    plan: Plan,
    runs: u64,
    notes: Vec<String>,
) -> Result<Action, Refusal> {
    let mut run = Run::of_plan(plan);
    run.options.format = match given.text("output") {
        Some("json") => RunFormat::Json,
        Some("csv") => RunFormat::Csv,
        Some(form @ ("json-cart" | "prom")) => {
            let why = "several runs are printed as text, json or csv";
            return Err(argv::refuse_named("output", form, why));
        }
        _ => RunFormat::Text,
    };
    let text = |name| given.text(name).map(str::to_owned);
    (run.store, run.history) = (text("store-result"), text("history"));
    let repeat = Repeat {
        runs: u32::try_from(runs).unwrap_or(u32::MAX),
        pause: Nanos::ZERO,
    };
    run.repeat = Some(repeat);
    Ok(Action::Repeat {
        run: Box::new(run),
        repeat,
        notes,
    })
}

/// How a stored result is shown by these words.
///
/// # Errors
/// Words that are not understood.
pub fn read_options(words: &[String]) -> Result<SelfTestOptions, Refusal> {
    options(&argv::parse(words)?.given)
}

fn options(given: &GivenFlags) -> Result<SelfTestOptions, Refusal> {
    let mut sets = Vec::new();
    for (flag, text) in given.iter() {
        if ["endpoint", "master-endpoint"].contains(&flag.name) {
            let wrong = |wrong: grammar::Wrong| argv::refuse(flag, text, &wrong.sentence(text));
            sets.push(endpoints::endpoint_set(text).map_err(wrong)?);
        }
    }
    Ok(SelfTestOptions {
        format: match given.text("output") {
            Some("json") => SelfTestFormat::Json,
            Some("json-cart") => SelfTestFormat::CartJson,
            Some("csv") => SelfTestFormat::Csv,
            Some("prom") => SelfTestFormat::Prometheus,
            _ => SelfTestFormat::Text,
        },
        is_mbits: given.has("Mbits"),
        unit: match given.text("time-unit") {
            Some("ns") => TimeUnit::Nanos,
            Some("auto") => TimeUnit::Auto,
            _ => TimeUnit::Micros,
        },
        percentiles: plan::value(given, "percentiles", parse::percentiles)?.unwrap_or_default(),
        is_verbose: given.has("verbose"),
        is_strict_rate: given.has("strict-rate"),
        goal: plan::value(given, "find-max", |text| {
            rate_search::goal(text, given.is("arrival", "poisson"))
        })?,
        has_progress: given.has("progress"),
        head: HeadFacts {
            sets,
            has_agent: given.has("use-daos-agent-env"),
            odd_align: plan::low_byte(given)?.and_then(Result::err),
            has_group: given.has("group-name"),
            has_masters: given.has("master-endpoint"),
            has_endpoints: given.has("endpoint"),
        },
    })
}

/// Samples say what was measured: only what chooses how they are shown goes with them.
fn refuse_with_replay(given: &GivenFlags) -> Result<(), Refusal> {
    let mut others = given
        .iter()
        .filter(|(flag, _)| !flag.prints && flag.name != "replay");
    match others.next() {
        None => Ok(()),
        Some((flag, value)) => Err(argv::refuse(
            flag,
            value,
            "with --replay nothing is measured; leave it out",
        )),
    }
}

/// A run without a table of its group ends before it begins, and says where one was looked for.
fn refuse_absent_table(
    given: &GivenFlags,
    plan: &Plan,
    environment: &SelfTestEnvironment<'_>,
) -> Result<(), Refusal> {
    let Some(work) = output::first_work(plan) else {
        return Ok(());
    };
    let Some(table) = &work.table else {
        return Ok(());
    };
    if (environment.has_file)(&table_file(table, &work.group)) {
        return Ok(());
    }
    let looked: Vec<String> = if given.has("path") {
        vec![table_file(table, &work.group)]
    } else {
        let has_agent = given.has("use-daos-agent-env");
        let places = surroundings::places(environment.variable, has_agent);
        let files = places.iter().map(|one| table_file(&one.path, &work.group));
        files.collect()
    };
    let named = looked.iter().map(|path| {
        if (environment.is_taken)(path) {
            format!("{path}, which is no regular file")
        } else {
            path.clone()
        }
    });
    let (group, named) = (&work.group, named.collect::<Vec<_>>().join(", "));
    let mut refusal = Refusal::lacks(format!(
        "no table of group `{group}` (looked for {named})\n  help: start a server with `weir rpc serve \
         --group {group}`, name servers with --target tcp://HOST:PORT, or let --loopback start one for \
         this run"
    ));
    if !given.has("use-daos-agent-env") && work.transport.is_none() {
        let provider = "Error: provider (D_PROVIDER) is not set\nExample: export \
                        D_PROVIDER='ofi+tcp'\n";
        refusal.message.push_str(provider);
    }
    Err(refusal)
}

/// The page of `--help`.
fn page() -> String {
    format!("{USAGE_LINE}\n\n{ABOUT}\n{}\n{HELP}", listing(FLAGS))
}

/// The words, which are parsed in the older program's own manner.
fn builder() -> Command {
    command("selftest", FLAGS)
        .about(ABOUT)
        .after_help(HELP)
        .override_usage(USAGE_LINE)
}
