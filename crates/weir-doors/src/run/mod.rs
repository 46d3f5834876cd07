//! The house door: `weir run [flags] FILE…`, job files or one stored plan.
//!
//! In: the words after `run`. Out: an [`Action`], or a [`Refusal`] with exit code 2. Options of
//! jobs are changed with `--set`; job words of their own belong to `weir fio`.

mod flags;
mod live;
mod options;
mod plan;
mod repeat;
mod stored_plan;
mod strict;
#[cfg(test)]
mod tests;
mod web;
mod workload_door;

use clap::{Arg, ArgMatches, Command, ValueHint};
use weir_jobfile::{CompileRequest, Dialect, JobSource};
use weir_schema::{Plan, TargetsPerRank};
use weir_units::{Nanos, Percent, parse};

pub use flags::FLAGS;
pub use live::Live;
use options::options;
pub(crate) use options::{options_of_text, progress, width};
pub use plan::exit_code;
pub use repeat::{Repeat, begin_anew};
pub use stored_plan::check_stored;
pub use strict::Strict;
pub use web::Web;
pub(crate) use workload_door::workload_builder;
pub use workload_door::{read_workload, read_workload_options};

use crate::flags::{command, refuse_result_files};
use crate::given::GivenFlags;
use crate::house_words::{self, Parsed};
use crate::refusal::Refusal;

/// The house door.
pub const DOOR: crate::Door = crate::Door {
    printing: FLAGS,
    words: Some(builder),
    ..crate::Door::new(
        "run",
        "FILE…",
        "run job files or a stored plan, report what was measured",
    )
};

/// The end of the help text: examples, exit codes.
pub const HELP: &str = include_str!("help.md");

/// Processes of one machine that talk to each other.
const MOST_RANKS: u32 = 1024;

/// What the words ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Run something, or show its plan.
    Run(Box<Run>),
    /// Measure the instrument's own cost, then stop.
    Calibrate,
}

/// What is run, and how it is shown.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where the plan comes from.
    pub input: Input,
    /// Print the plan instead of running it.
    pub show_plan: bool,
    /// Processes on this machine, where the command line says how many.
    pub ranks: Option<u32>,
    /// What ranks do with the targets.
    pub targets: TargetsPerRank,
    /// How long a rank may be silent, where the command line says so.
    pub timeout: Option<Nanos>,
    /// Several runs of each plan.
    pub repeat: Option<Repeat>,
    /// The file that gets the result.
    pub store: Option<String>,
    /// The history that keeps it, or `off`, where the command line says so.
    pub history: Option<String>,
    /// How it is shown.
    pub options: RunOptions,
}

/// Where the plan comes from.
#[derive(Clone, Debug)]
pub enum Input {
    /// The words themselves.
    Made(Box<Plan>),
    /// Job files.
    Jobs(CompileRequest),
    /// A stored plan.
    Plan {
        /// Its file.
        path: String,
        /// Refuse every write, whatever the plan says.
        read_only: bool,
        /// The words that ask for it.
        command: Vec<String>,
    },
}

impl Input {
    /// An input for each file, which several job files make one plan of together.
    pub fn each_file(&self) -> Vec<Self> {
        let Self::Jobs(request) = self else {
            return vec![self.clone()];
        };
        let alone = |source: &JobSource| {
            Self::Jobs(CompileRequest {
                sources: vec![source.clone()],
                ..request.clone()
            })
        };
        request.sources.iter().map(alone).collect()
    }
}

impl Run {
    /// A plan that another door has made.
    pub(crate) fn of_plan(plan: Plan) -> Result<Self, Refusal> {
        Ok(Self {
            input: Input::Made(Box::new(plan)),
            show_plan: false,
            ranks: None,
            targets: TargetsPerRank::default(),
            timeout: None,
            repeat: None,
            store: None,
            history: None,
            options: read_options(&[])?,
        })
    }

    /// The words that ask for it.
    pub fn command(&self) -> &[String] {
        match &self.input {
            Input::Made(plan) => &plan.command,
            Input::Jobs(request) => &request.command,
            Input::Plan { command, .. } => command,
        }
    }
}

/// How a run is measured and shown.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct RunOptions {
    /// What stands on standard output.
    pub format: RunFormat,
    /// Files that get the report as well.
    pub outputs: Vec<Output>,
    /// Rows are added to those that a file has.
    pub append: bool,
    /// Percentiles of the report, where the command line names them.
    pub percentiles: Option<Vec<Percent>>,
    /// Progress on standard error.
    pub progress: ProgressStyle,
    /// Colours; decided by the surroundings when absent.
    pub color: Option<bool>,
    /// Only ASCII.
    pub ascii: bool,
    /// Columns, where the command line says so.
    pub width: Option<u16>,
    /// Integers instead of scaled numbers.
    pub raw: bool,
    /// JSON is indented.
    pub pretty: bool,
    /// The text report prints every warning.
    pub all_warnings: bool,
    /// Warnings that fail the run.
    pub strict: Strict,
    /// No latencies.
    pub no_latency: bool,
    /// The view of the run on the terminal, where the command line asks for one.
    pub live: Option<Live>,
    /// Who else sees the run while it goes on.
    pub web: Web,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFormat {
    /// For people.
    Text,
    /// The whole result.
    Json,
    /// A page with plots.
    Html,
    /// A title, tables and warnings for a page that knows Markdown.
    Markdown,
    /// A row for each kind of operation of each job.
    Csv,
    /// A row for each interval of each kind of each job.
    CsvSeries,
}

/// What `--format` and the ends of names of files call each form; the longer end of two goes first.
const FORMATS: [(&str, &str, RunFormat); 6] = [
    ("text", ".txt", RunFormat::Text),
    ("json", ".json", RunFormat::Json),
    ("html", ".html", RunFormat::Html),
    ("md", ".md", RunFormat::Markdown),
    ("csv-series", ".series.csv", RunFormat::CsvSeries),
    ("csv", ".csv", RunFormat::Csv),
];

impl RunFormat {
    /// The one that a file's name asks for.
    pub(crate) fn of_file(path: &str) -> Option<Self> {
        let known = FORMATS.iter().find(|(_, end, _)| path.ends_with(end));
        known.map(|(.., format)| *format)
    }

    /// The one of this word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        let known = FORMATS.iter().find(|(known, ..)| *known == word);
        known.map(|(.., format)| *format)
    }

    /// Whether it is rows, to which those of further results can be added.
    pub fn is_rows(self) -> bool {
        matches!(self, Self::Csv | Self::CsvSeries)
    }
}

/// A file that gets the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Where.
    pub path: String,
    /// In which form.
    pub format: RunFormat,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressStyle {
    /// A line on a terminal, plain in CI, else none.
    Auto,
    /// A new line now and then.
    Plain,
    /// Not at all.
    None,
    /// A JSON line per interval.
    Json,
}

/// The words after `run`.
///
/// # Errors
/// Words that are not understood.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let action = |matches: &ArgMatches| {
        repeat::read(matches)?;
        if matches.get_flag("calibrate") {
            return calibrate(matches);
        }
        run_of(matches, input(matches, words)?)
    };
    let words = &repeat::joined(words);
    parse(builder(), words, action).map_err(|refusal| with_usage(refusal, &DOOR))
}

/// What words ask for that a command understands.
fn parse(
    command: Command,
    words: &[String],
    action: impl FnOnce(&ArgMatches) -> Result<Action, Refusal>,
) -> Result<Action, Refusal> {
    match house_words::parse(command, words)? {
        Parsed::Given(matches) => action(&matches),
        Parsed::Print(page) => Ok(Action::Print(page)),
    }
}

/// It measures the instrument alone, and prints that.
fn calibrate(matches: &ArgMatches) -> Result<Action, Refusal> {
    let given = GivenFlags::of_matches(FLAGS, matches);
    let other = given.iter().find(|(flag, _)| flag.name != "calibrate");
    let other = other.map(|(flag, _)| flag.spelling());
    match other.or_else(|| all(matches, "file").into_iter().next()) {
        None => Ok(Action::Calibrate),
        Some(other) => Err(Refusal::usage(format!(
            "--calibrate measures the instrument and nothing else; leave `{other}` out"
        ))),
    }
}

fn run_of(matches: &ArgMatches, input: Input) -> Result<Action, Refusal> {
    if let Some(why) = GivenFlags::of_matches(FLAGS, matches).refusal() {
        return Err(Refusal::usage(why));
    }
    let show_plan = matches.get_flag("show-plan");
    let (store, history) = (one(matches, "store-result"), one(matches, "history"));
    if show_plan {
        refuse_result_files(store, history)?;
    }
    Ok(Action::Run(Box::new(Run {
        input,
        show_plan,
        ranks: one(matches, "ranks").map(ranks).transpose()?,
        targets: targets_per_rank(matches),
        timeout: one(matches, "timeout").map(timeout).transpose()?,
        repeat: repeat::read(matches)?,
        store: store.map(str::to_owned),
        history: history.map(str::to_owned),
        options: options(matches)?,
    })))
}

/// What ranks do with the targets of jobs.
fn targets_per_rank(matches: &ArgMatches) -> TargetsPerRank {
    match one(matches, "per-rank") {
        Some("split") => TargetsPerRank::Split,
        Some("shared") => TargetsPerRank::Shared,
        _ => TargetsPerRank::Own,
    }
}

/// How a stored result is shown by these words, which name nothing to run.
///
/// # Errors
/// Words that are not understood.
pub fn read_options(words: &[String]) -> Result<RunOptions, Refusal> {
    shown_by(builder(), &repeat::joined(words)).map_err(|refusal| with_usage(refusal, &DOOR))
}

fn shown_by(command: Command, words: &[String]) -> Result<RunOptions, Refusal> {
    // Of words that follow others the last ones hold.
    match house_words::parse(command.args_override_self(true), words)? {
        Parsed::Given(matches) => options(&matches),
        Parsed::Print(_) => Err(Refusal::usage("help is of no use for a stored result")),
    }
}

/// The command that parses the words.
pub fn builder() -> Command {
    command("weir run", FLAGS)
        .about("Run job files, or a stored plan, and report what was measured")
        .after_help(HELP)
        .override_usage(usage_line(&DOOR))
        .no_binary_name(true)
        .arg(files().help(
            "Job files, or one stored plan (*.json); `-` reads a job file from standard input",
        ))
}

/// Names of files, as many as there are.
pub(crate) fn files() -> Arg {
    Arg::new("file")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .num_args(0..)
}

pub(crate) fn all(matches: &ArgMatches, name: &str) -> Vec<String> {
    matches
        .get_many::<String>(name)
        .into_iter()
        .flatten()
        .cloned()
        .collect()
}

pub(crate) fn one<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    // Doors for a single job do not have all flags.
    let given = matches.try_get_one::<String>(name).ok().flatten();
    given.map(String::as_str)
}

fn input(matches: &ArgMatches, words: &[String]) -> Result<Input, Refusal> {
    let files = all(matches, "file");
    let (sets, sections) = (all(matches, "set"), all(matches, "section"));
    let maps = all(matches, "map");
    let read_only = matches.get_flag("readonly");
    let command = ["weir", "run"].into_iter().map(str::to_owned);
    let command = command.chain(words.iter().cloned()).collect();
    if let Some(plan) = files.iter().find(|f| suffix(f) == Some("json")) {
        if files.len() > 1 {
            return Err(Refusal::usage(format!(
                "`{plan}` is a stored plan: it is run alone"
            )));
        }
        if !(sets.is_empty() && sections.is_empty() && maps.is_empty()) {
            return Err(Refusal::usage(format!(
                "--set, --map and --section change job files; `{plan}` is a stored plan"
            )));
        }
        return Ok(Input::Plan {
            path: plan.clone(),
            read_only,
            command,
        });
    }
    if files.is_empty() {
        return Err(Refusal::usage("no job file given"));
    }
    if let Some(bad) = sets.iter().find(|s| !s.contains('=')) {
        return Err(Refusal::usage(format!(
            "--set {bad}: expected [SECTION:]KEY=VALUE"
        )));
    }
    Ok(Input::Jobs(CompileRequest {
        dialect: Dialect::Run,
        command,
        sources: files.into_iter().map(JobSource::File).collect(),
        sets,
        maps,
        sections,
        read_only,
    }))
}

/// What has no remedy of its own ends with how the door is used.
fn with_usage(mut refusal: Refusal, door: &crate::Door) -> Refusal {
    let verb = door.verb;
    if !refusal.message.contains("\n  help: ") {
        let line = usage_line(door);
        push!(
            refusal.message,
            "  help: {line}; `weir {verb} --help` says more\n"
        );
    }
    refusal
}

fn usage_line(door: &crate::Door) -> String {
    let options = if door.workload.is_some() {
        ""
    } else {
        "[OPTIONS] "
    };
    format!("weir {} {options}{}", door.verb, door.arguments)
}

pub(crate) fn suffix(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(_, suffix)| suffix)
}

fn ranks(text: &str) -> Result<u32, Refusal> {
    let known = text.parse().ok().filter(|n| (1..=MOST_RANKS).contains(n));
    known.ok_or_else(|| {
        Refusal::usage(format!(
            "--ranks {text}: expected a number from 1 to {MOST_RANKS}"
        ))
    })
}

fn timeout(text: &str) -> Result<Nanos, Refusal> {
    parse::seconds(text).map_err(|why| Refusal::usage(format!("--timeout {text}: {why}")))
}
