//! `weir history [VERB]`: runs that were kept, their trends, and labels and notes on them.
//!
//! In: the arguments after `history`. Out: an [`Action`], or a [`Refusal`] with exit code 2. Every verb has
//! a page of its own. Not here: the database.

mod flags;
#[cfg(test)]
mod tests;
mod values;

use clap::Arg;

use crate::door::Door;
use crate::flags::{command, nearest};
use crate::given::GivenFlags;
use crate::house_words::{self, Parsed, all};
use crate::refusal::Refusal;
use flags::{VERBS, VerbRecord};

/// The door.
pub const DOOR: Door = Door {
    words: Some(words),
    ..Door::new(
        "history",
        "[VERB]",
        "list the runs that were kept, show how figures change, label, prune, export",
    )
};

/// The page of `weir history --help`, without its verbs.
const HELP: &str = include_str!("help.md");
/// The verb where none is named.
const LIST: &str = "list";

/// Action that the arguments of `weir history` ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Do something with a history.
    Do {
        /// File of the history, where the arguments name one.
        file: Option<String>,
        /// Request to carry out.
        request: Request,
    },
}

/// Request to a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// List runs.
    List {
        /// Runs to list.
        filter: RunFilter,
        /// Form of the output.
        style: ListStyle,
    },
    /// Show figures over time.
    Trend {
        /// The figure; the main one of each job without it.
        figure: Option<String>,
        /// The plan; that of the last run without it.
        filter: RunFilter,
        /// Smallest change that counts.
        least_change: f64,
        /// Form of the output.
        style: ListStyle,
    },
    /// Write runs to a file or standard output.
    Export {
        /// Runs to export.
        filter: RunFilter,
        /// Format of the export.
        format: ExportFormat,
        /// File to write; standard output without it.
        output: Option<String>,
    },
    /// Add runs from files.
    Import {
        /// Exports, or anything that holds results.
        files: Vec<String>,
    },
    /// Give a run tags, and take others.
    Tag {
        /// Run to tag.
        run: String,
        /// Names and values.
        given: Vec<(String, String)>,
        /// Names.
        taken: Vec<String>,
    },
    /// Give a run a label, or take it.
    Label {
        /// Run to label.
        run: String,
        /// The label.
        label: Option<String>,
    },
    /// Note something about a run, or take it back.
    Note {
        /// Run to annotate.
        run: String,
        /// Text of the note; `None` removes it.
        note: Option<String>,
    },
    /// Make a run the baseline of its plan.
    SetBaseline(String),
    /// List the baselines.
    ShowBaselines,
    /// Make it one no longer.
    ClearBaseline(String),
    /// Remove runs.
    Remove(Vec<String>),
    /// Remove old runs.
    Prune {
        /// Runs of each plan on each machine that stay.
        keep: Option<u32>,
        /// Age in seconds below which runs stay.
        older_s: Option<u64>,
        /// Print the runs that would be removed.
        dry_run: bool,
        /// Figures too.
        metrics_too: bool,
    },
    /// Look for faults.
    Check,
    /// Print the file's path.
    Path,
}

/// Selection of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The plan's name, or the beginning of its fingerprint.
    pub plan: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// The machine's name, or the beginning of its key.
    pub machine: Option<String>,
    /// The beginning of the time that counts.
    pub since: Option<Since>,
    /// Tags that all of them have.
    pub tags: Vec<(String, String)>,
    /// Largest number of runs, the newest first.
    pub limit: Option<u32>,
}

/// The beginning of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Seconds before now.
    Ago(u64),
    /// Since 1970.
    UnixSeconds(u64),
}

/// Form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListStyle {
    /// Prints one JSON document.
    pub json: bool,
    /// Only ASCII characters.
    pub ascii: bool,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A line of JSON for each run.
    JsonLines,
    /// A row for each figure.
    Csv,
    /// A database.
    Database,
}

/// Reads the arguments after `history`.
///
/// # Errors
/// An unknown verb, or arguments that it does not take.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let first = words.first().map(String::as_str);
    let (name, rest) = match first {
        None => (LIST, words),
        Some("--help" | "-h" | "help") if words.len() == 1 => return Ok(Action::Print(page())),
        Some(word) if word.starts_with('-') => (LIST, words),
        Some(word) => (word, &words[1..]),
    };
    let Some(verb) = VERBS.iter().find(|verb| verb.name == name) else {
        let near = nearest(name, VERBS.iter().map(|verb| verb.name));
        let help = near.map_or_else(
            || "`weir history --help` lists the verbs".to_owned(),
            |near| format!("did you mean `weir history {near}`?"),
        );
        return Err(Refusal::usage(format!(
            "no verb `{name}` of the history\n  help: {help}"
        )));
    };
    match house_words::parse(builder(verb), rest)? {
        Parsed::Print(page) => Ok(Action::Print(page)),
        Parsed::Given(matches) => {
            let given = GivenFlags::of_matches(verb.flags, &matches)?;
            let request = (verb.read)(&given, &all(&matches, "operand")).map_err(|why| {
                Refusal::usage(format!(
                    "{why}\n  help: `weir history {name} --help` says more"
                ))
            })?;
            let file = given.text("history").map(str::to_owned);
            Ok(Action::Do { file, request })
        }
    }
}

/// Command that parses the arguments of a verb.
fn builder(verb: &VerbRecord) -> clap::Command {
    let examples = verb.examples.iter().map(|line| format!("    {line}\n"));
    let help = format!("Examples:\n{}", examples.collect::<String>());
    let built = command(&format!("weir history {}", verb.name), verb.flags)
        .about(verb.about)
        .after_help(help)
        .override_usage(format!("weir history {}", verb.usage))
        .no_binary_name(true);
    // `RUN` of `rm RUN...`: what is said to be missing.
    let word = verb.usage.split(' ').nth(1).unwrap_or("WORD");
    let word = word.trim_end_matches("...").trim_matches(['[', ']']);
    match verb.operands {
        None => built,
        Some((least, most)) => built.arg(
            Arg::new("operand")
                .value_name(word)
                .hide(true)
                .required(least > 0)
                .num_args(least..=most),
        ),
    }
}

/// All verbs, for the manual and for completions.
fn words() -> clap::Command {
    let verbs = VERBS.iter().map(|verb| builder(verb).name(verb.name));
    command("weir history", &[])
        .about("The runs that were kept, and how their figures change")
        .override_usage("weir history [VERB] [WORDS]...")
        .subcommand_help_heading("COMMANDS")
        .subcommands(verbs)
}

/// The page of `weir history --help`, with its verbs.
fn page() -> String {
    let mut list = String::new();
    for verb in VERBS {
        push!(list, "  {:38}{}\n", verb.usage, verb.about);
    }
    HELP.replace("VERBS.\n", &list)
}
