//! The house of every door that measures: its flags, and a run as they ask for it.
//!
//! In: arguments that were read ([`Given`]), a door's [`Request`](crate::Request). Out: a [`Run`], which the driver of
//! the program carries out. Not here: what a door makes of its own flags.

mod flags;
mod live;
mod options;
mod plan;
mod repeat;
mod strict;
mod web;

use std::ops::RangeInclusive;

use weir_jobfile::{CompileRequest, JobSource};
use weir_schema::{Plan, TargetsPerRank};
use weir_units::{Nanos, Percent, parse};

pub use flags::HOUSE_FLAGS;
pub use live::Live;
pub(crate) use options::{options_of_text, progress, width};
pub use plan::exit_code;
pub(crate) use repeat::joined;
pub use repeat::{Repeat, begin_anew};
pub use strict::Strict;
pub use web::Web;

use crate::door::Voice;
use crate::flags::refuse_result_files;
use crate::given::{Given, GivenFlags};
use crate::refusal::Refusal;

/// Processes of one machine that talk to each other.
const RANKS: RangeInclusive<u32> = 1..=1024;

/// What is run, and how it is shown.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where the plan comes from.
    pub input: Input,
    /// What is done with the plan.
    pub mode: Mode,
    /// Processes on this machine, where the command line says how many.
    pub ranks: Option<u32>,
    /// Use of the targets by several ranks.
    pub targets: TargetsPerRank,
    /// Silence after which a rank is lost, where the command line says so.
    pub rank_timeout: Option<Nanos>,
    /// Several runs of each plan.
    pub repeat: Option<Repeat>,
    /// The file that gets the result.
    pub store: Option<String>,
    /// The history that keeps it, or `off`, where the command line says so.
    pub history: Option<String>,
    /// Whose text is printed.
    pub voice: Voice,
    /// How it is shown.
    pub options: RunOptions,
}

/// What is done with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is run.
    Run,
    /// It is printed.
    ShowPlan,
    /// It is checked, as before a run.
    DryRun,
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
    /// The run of an input that these flags of the house ask for.
    ///
    /// # Errors
    /// Values that cannot be used, flags that contradict or cannot act.
    pub fn read(given: &Given, input: Input) -> Result<Self, Refusal> {
        let house = &given.house;
        if let Some(why) = house.refusal() {
            return Err(Refusal::usage(why));
        }
        let (store, history) = (house.text("store-result"), house.text("history"));
        let mode = match (house.has("show-plan"), house.has("dry-run")) {
            (true, true) => {
                let why = "--show-plan and --dry-run: leave one of them out";
                return Err(Refusal::usage(why));
            }
            (true, false) => Mode::ShowPlan,
            (false, true) => Mode::DryRun,
            (false, false) => Mode::Run,
        };
        if mode != Mode::Run {
            refuse_result_files(store, history)?;
        }
        Ok(Self {
            input,
            mode,
            ranks: house.text("ranks").map(ranks).transpose()?,
            targets: TargetsPerRank::default(),
            rank_timeout: house.text("rank-timeout").map(rank_timeout).transpose()?,
            repeat: repeat::read(house)?,
            store: store.map(str::to_owned),
            history: history.map(str::to_owned),
            voice: voice(given),
            options: options::options(house)?,
        })
    }

    /// A run of a plan that is made, as no flag asks for it.
    pub fn of_plan(plan: Plan) -> Self {
        Self {
            input: Input::Made(Box::new(plan)),
            mode: Mode::Run,
            ranks: None,
            targets: TargetsPerRank::default(),
            rank_timeout: None,
            repeat: None,
            store: None,
            history: None,
            voice: Voice::Weir,
            options: RunOptions::usual(),
        }
    }

    /// The command line that asks for it.
    pub fn command(&self) -> &[String] {
        match &self.input {
            Input::Made(plan) => &plan.command,
            Input::Jobs(request) => &request.command,
            Input::Plan { command, .. } => command,
        }
    }
}

/// Whose text these arguments ask for: that of `--voice`; else the peer's by its name, or where the
/// door's own flags ask for a form of it.
pub fn voice(given: &Given) -> Voice {
    let measures = given.door.measures.filter(|way| way.print.is_some());
    let asks = measures.is_some_and(|way| given.link.is_some() || (way.asks_peer)(given));
    match given.house.text("voice") {
        _ if measures.is_none() => Voice::Weir,
        Some("peer") => Voice::Peer,
        None if asks => Voice::Peer,
        _ => Voice::Weir,
    }
}

/// Whether these arguments call the peer, whose runs the history keeps only where one is named.
pub fn calls_peer(given: &Given) -> bool {
    match given.house.text("voice") {
        Some(voice) => voice == "peer",
        None => given.link.is_some(),
    }
}

/// How a run is measured and shown.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct RunOptions {
    /// What stands on standard output.
    pub format: RunFormat,
    /// File that gets the text instead of standard output.
    pub text_file: Option<String>,
    /// Files that get the report as well.
    pub outputs: Vec<Output>,
    /// Rows are added to those that a file has.
    pub append: bool,
    /// Percentiles of the report, where the command line names them.
    pub percentiles: Option<Vec<Percent>>,
    /// Progress on standard error.
    pub progress: ProgressStyle,
    /// Colours; decided by the terminal when absent.
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

impl RunOptions {
    /// Options that hold where no flag is given.
    pub fn usual() -> Self {
        let none = GivenFlags::new(HOUSE_FLAGS);
        let text = options_of_text(&none);
        text.unwrap_or_else(|refusal| unreachable!("defaults are good: {refusal}"))
    }

    /// How these arguments have a result shown.
    ///
    /// # Errors
    /// Values that cannot be used.
    pub fn read(given: &Given) -> Result<Self, Refusal> {
        options::options(&given.house)
    }
}

/// The part of a path behind its last dot.
pub(crate) fn suffix(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(_, suffix)| suffix)
}

fn ranks(text: &str) -> Result<u32, Refusal> {
    parse::whole(text, (*RANKS.start(), *RANKS.end()))
        .map_err(|why| Refusal::usage(format!("--ranks {text}: {why}")))
}

fn rank_timeout(text: &str) -> Result<Nanos, Refusal> {
    parse::seconds(text).map_err(|why| Refusal::usage(format!("--rank-timeout {text}: {why}")))
}
