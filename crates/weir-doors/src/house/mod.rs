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

use weir_jobfile::{CompileRequest, JobSource};
use weir_schema::{Plan, TargetsPerRank};
use weir_units::{Nanos, Percent};

pub use flags::HOUSE_FLAGS;
pub use live::Live;
pub(crate) use options::{options_of_text, progress};
pub use plan::{exit_code, planned_work};
pub(crate) use repeat::joined;
pub use repeat::{Repeat, begin_anew};
pub use strict::Strict;
pub use web::Web;

use crate::args::house_spelling;
use crate::door::Voice;
use crate::flags::Flag;
use crate::given::{Given, GivenFlags};
use crate::refusal::Refusal;

/// Flags that change the plan, or whose text is printed of it.
const OF_PLANS: &[&str] = &["percentiles", "no-latency", "rank-timeout", "voice"];

/// A run: its input, its mode and its display.
#[derive(Clone, Debug)]
pub struct Run {
    /// Source of the plan.
    pub input: Input,
    /// Use of the plan.
    pub mode: Mode,
    /// Processes on this machine, where the command line states their number.
    pub ranks: Option<u32>,
    /// Use of the targets by several ranks.
    pub targets: TargetsPerRank,
    /// Silence after which a rank is lost, where the command line states it.
    pub rank_timeout: Option<Nanos>,
    /// Several runs of each plan.
    pub repeat: Option<Repeat>,
    /// The file that gets the result.
    pub store: Option<String>,
    /// History that keeps the run, or `off`, where the command line states it.
    pub history: Option<String>,
    /// Whose text is printed.
    pub voice: Voice,
    /// Display of the result.
    pub options: RunOptions,
}

/// Use of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Run the plan.
    Run,
    /// Print the plan.
    ShowPlan,
    /// Check the plan, as before a run.
    DryRun,
}

/// Source of a plan.
#[derive(Clone, Debug)]
pub enum Input {
    /// The plan that the arguments describe.
    Made(Box<Plan>),
    /// Job files.
    Jobs(CompileRequest),
    /// Files and devices of the command line, each with a job of its own.
    Targets {
        /// Their jobs, in the order of the targets.
        jobs: CompileRequest,
        /// The targets.
        targets: Vec<String>,
        /// Those of them whose data may be lost.
        destroyed: Vec<String>,
    },
    /// A stored plan.
    Plan {
        /// Path of the plan's file.
        path: String,
        /// Refuse every write, even where the plan allows it.
        read_only: bool,
        /// Arguments of the command line.
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
        let modes = [("show-plan", Mode::ShowPlan), ("dry-run", Mode::DryRun)];
        let mode = modes.into_iter().find(|(flag, _)| house.has(flag));
        // A dry run takes them: it is the command of the run with a word behind it.
        if house.has("show-plan") {
            given.refuse_house("--show-plan", &[OF_PLANS, &["show-plan"]].concat())?;
        }
        if let Some(why) = house.refusal() {
            return Err(Refusal::usage(why));
        }
        Ok(Self {
            input,
            mode: mode.map_or(Mode::Run, |(_, mode)| mode),
            ranks: house.whole("ranks"),
            targets: TargetsPerRank::default(),
            rank_timeout: house.seconds("rank-timeout"),
            repeat: repeat::read(house)?,
            store: house.text("store-result").map(str::to_owned),
            history: house.text("history").map(str::to_owned),
            voice: voice(given),
            options: options::options(house),
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
            Input::Jobs(request) | Input::Targets { jobs: request, .. } => &request.command,
            Input::Plan { command, .. } => command,
        }
    }
}

/// Whose text these arguments ask for: that of `--voice`; else the peer's by its name, or where the
/// door's own flags ask for a form of it.
pub fn voice(given: &Given) -> Voice {
    let measures = given.door.measures.filter(|way| way.print.is_some());
    let asks =
        measures.is_some_and(|way| given.link.is_some() || (way.peers_form)(given).is_some());
    match given.house.text("voice") {
        _ if measures.is_none() => Voice::Weir,
        Some("peer") => Voice::Peer,
        None if asks => Voice::Peer,
        _ => Voice::Weir,
    }
}

/// # Errors
/// A form of the text of one voice where the other speaks.
pub(crate) fn check_voice(given: &Given) -> Result<(), Refusal> {
    let form = given.door.measures.and_then(|way| (way.peers_form)(given));
    let formats = given.door.measures.map_or(&[][..], |way| way.peer_formats);
    let mut reports = given.house.iter().filter(|(flag, _)| flag.name == "format");
    let report = reports.find(|(_, format)| !formats.contains(format));
    let why = match (form.map(Flag::spelling_of), report) {
        (Some(form), _) if given.house.is("voice", "weir") => {
            format!("{form} with --voice weir, whose report does not have it")
        }
        (form, Some((flag, value))) if voice(given) == Voice::Peer => {
            let peer = form.as_deref().unwrap_or("this voice");
            let flag = house_spelling(given.door, flag);
            format!("{flag} {value} is a form of weir's report, and {peer} asks for the peer's")
        }
        _ => return Ok(()),
    };
    Err(Refusal::usage(why + "; leave one of them out"))
}

/// True if these arguments call the peer. The history keeps the peer's runs only where a history is named.
pub fn calls_peer(given: &Given) -> bool {
    match given.house.text("voice") {
        Some(voice) => voice == "peer",
        None => given.link.is_some(),
    }
}

/// Options of measuring a run and of showing its result.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct RunOptions {
    /// Format on standard output.
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
    /// Columns, where the command line states them.
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
    /// Web view of the run.
    pub web: Web,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFormat {
    /// Text for people.
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

/// Formats by the word of `--format` and the suffix of a file. The longer of two suffixes comes first.
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

    /// The format of this word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        let known = FORMATS.iter().find(|(known, ..)| *known == word);
        known.map(|(.., format)| *format)
    }

    /// True if the format is rows, to which those of further results can be added.
    pub fn is_rows(self) -> bool {
        matches!(self, Self::Csv | Self::CsvSeries)
    }
}

/// A file that gets the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Path of the file.
    pub path: String,
    /// Format of the file.
    pub format: RunFormat,
}

/// Display of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressStyle {
    /// A line on a terminal, plain in CI, else none.
    Auto,
    /// A new line now and then.
    Plain,
    /// No display.
    None,
    /// A JSON line per interval.
    Json,
}

impl RunOptions {
    /// Options that hold where no flag is given.
    pub fn usual() -> Self {
        options_of_text(&GivenFlags::new(HOUSE_FLAGS))
    }

    /// Reads the options from these arguments.
    pub fn read(given: &Given) -> Self {
        options::options(&given.house)
    }
}

/// The part of a path behind its last dot.
pub(crate) fn suffix(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(_, suffix)| suffix)
}
