//! `weir compare`: two sides or more, stored or measured in turns, and whether they differ.
//!
//! In: the arguments after `compare`. Out: an [`Action`], or a [`Refusal`] with exit code 2. Not here:
//! reading results, carrying runs out, the statistics (`weir-compare`).

mod flags;
mod sides;

use clap::{Arg, ArgMatches, Command};
use weir_compare::{Condition, Rule, USUAL_METRICS};
use weir_units::Nanos;

pub use flags::FLAGS;
pub use sides::{CompareInput, RoundsOf, StoredSide};

use crate::door::Door;
use crate::flags::command;
use crate::given::GivenFlags;
use crate::house::{ProgressStyle, Run, suffix};
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "compare",
        "A B…",
        "say whether results, job files or commands differ, and how surely",
    )
};

/// The end of the help text: examples, exit codes.
const HELP: &str = include_str!("help.md");

/// Rounds where their number is not given.
const USUAL_ROUNDS: u32 = 10;
/// Pause before each run of a job that is compared with itself.
const SHORT_SETTLE: Nanos = Nanos(100_000_000);

/// Action that the arguments of `weir compare` ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Compare something.
    Compare(Box<Compare>),
}

/// A comparison: its sides, its rule and its display.
#[derive(Clone, Debug)]
pub struct Compare {
    /// The sides.
    pub input: CompareInput,
    /// Rule by which the sides are judged.
    pub rule: Rule,
    /// The command line states the rate of false alarms.
    pub is_alpha_given: bool,
    /// Conditions that make the exit code 1.
    pub fail_if: Vec<Condition>,
    /// A change has to appear again in fresh rounds.
    pub confirm: bool,
    /// One run per side is enough.
    pub single_run_ok: bool,
    /// Display of the comparison.
    pub show: CompareShow,
}

impl Compare {
    /// A job beside itself, in as many rounds as it takes to establish a change.
    pub(crate) fn with_itself(name: &str, run: &Run) -> Self {
        let silent = || {
            let mut run = run.clone();
            run.options.progress = ProgressStyle::None;
            Box::new(run)
        };
        let sides = [name.to_owned(), format!("{name} again")].map(|name| (name, silent()));
        Self {
            input: CompareInput::Rounds {
                rounds: Rounds {
                    count: None,
                    until_sure: false,
                    warmup: 1,
                    settle: SHORT_SETTLE,
                    prepare: None,
                    drop_caches: false,
                },
                of: RoundsOf::Plans(sides.to_vec()),
                command: run.command().to_vec(),
                store: None,
                save: None,
                progress: ProgressStyle::Auto,
            },
            rule: Rule::default(),
            is_alpha_given: false,
            fail_if: Vec::new(),
            confirm: false,
            single_run_ok: false,
            show: CompareShow::default(),
        }
    }
}

/// Display of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompareShow {
    /// Format on standard output, if anything is printed there.
    pub format: Option<CompareFormat>,
    /// Files that get the comparison.
    pub outputs: Vec<CompareFile>,
    /// Colours; decided by the surroundings when absent.
    pub color: Option<bool>,
    /// Only ASCII.
    pub ascii: bool,
    /// Columns, where the command line states them.
    pub width: Option<u16>,
    /// Integers instead of scaled numbers.
    pub raw: bool,
}

/// A file that gets a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareFile {
    /// Path of the file.
    pub path: String,
    /// Format of the file.
    pub format: CompareFormat,
}

/// The form of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareFormat {
    /// Text for people.
    Text,
    /// All of it.
    Json,
    /// A row per figure.
    Csv,
    /// A table in Markdown.
    Markdown,
    /// A page with plots.
    Html,
    /// A test case per figure.
    Junit,
}

impl CompareFormat {
    /// The format of this name on the command line.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Text,
            "json" => Self::Json,
            "csv" => Self::Csv,
            "md" => Self::Markdown,
            "html" => Self::Html,
            "junit" => Self::Junit,
            _ => return None,
        })
    }

    /// The format for a file's suffix.
    fn of_file(path: &str) -> Option<Self> {
        match suffix(path)? {
            "txt" => Some(Self::Text),
            "xml" => Some(Self::Junit),
            other => Self::named(other).filter(|_| !matches!(other, "text" | "junit")),
        }
    }
}

/// Rounds in which every side has its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Number of rounds, where the command line states it.
    pub count: Option<u32>,
    /// Goes on until the primary figure is settled, which is checked after certain numbers of rounds.
    pub until_sure: bool,
    /// Rounds before, which are not counted.
    pub warmup: u32,
    /// Pause before each run.
    pub settle: Nanos,
    /// Shell command before each run.
    pub prepare: Option<String>,
    /// The system's page cache is dropped before each run.
    pub drop_caches: bool,
}

/// Numbers of rounds after which the primary figure is checked.
const LOOKS: [u32; 5] = [10, 14, 20, 28, 40];

impl Rounds {
    /// Numbers of rounds after which the sides are compared, for this many figures. With several of them the
    /// first sure comparison ends the rounds.
    ///
    /// # Errors
    /// Fewer rounds than the exact test needs for this many figures.
    pub fn looks(&self, figures: usize, alpha: f64) -> Result<Vec<u32>, Refusal> {
        if self.until_sure {
            return Ok(LOOKS.to_vec());
        }
        let least = weir_compare::least_rounds(figures, alpha);
        let s = if figures == 1 { "" } else { "s" };
        match self.count {
            None => Ok(vec![USUAL_ROUNDS.max(least)]),
            Some(count) if count >= least => Ok(vec![count]),
            Some(count) => Err(Refusal::usage(format!(
                "--rounds {count}: with {figures} figure{s} the exact test establishes no difference in \
                 fewer than {least} rounds\n  help: --rounds {least}, or compare fewer figures"
            ))),
        }
    }

    /// The share of comparisons in which chance may pretend a change, at each look.
    pub fn alpha_of_a_look(&self, alpha: f64) -> f64 {
        if self.until_sure {
            alpha / f64::from(u8::try_from(LOOKS.len()).unwrap_or(u8::MAX))
        } else {
            alpha
        }
    }
}

/// Reads the arguments after `compare`.
///
/// # Errors
/// Words that are not understood.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let given = GivenFlags::of_matches(FLAGS, &matches)?;
    if let Some(why) = given.refusal() {
        return Err(Refusal::usage(why));
    }
    let fail_if = all(&matches, "fail-if");
    let read = |text: &String| {
        Condition::read(text).map_err(|why| Refusal::usage(format!("--fail-if {why}")))
    };
    Ok(Action::Compare(Box::new(Compare {
        input: sides::read(&given, &matches, words)?,
        rule: rule(&given, &matches)?,
        is_alpha_given: given.has("alpha"),
        fail_if: fail_if.iter().map(read).collect::<Result<_, _>>()?,
        confirm: matches.get_flag("confirm"),
        single_run_ok: matches.get_flag("single-run-ok"),
        show: show(&given, &matches)?,
    })))
}

/// Command that parses the arguments.
pub fn builder() -> Command {
    command("weir compare", FLAGS)
        .about("Compare stored results, job files or commands: what changed, and how sure that is")
        .after_help(HELP)
        .override_usage("weir compare [OPTIONS] A B…")
        .no_binary_name(true)
        .mut_arg("a", |arg| arg.num_args(1..))
        .mut_arg("b", |arg| arg.num_args(1..))
        .mut_arg("cmd", |arg| arg.allow_hyphen_values(true))
        .arg(Arg::new("operand").value_name("A B").num_args(0..).help(
            "Stored results, the first of them the base, or one with the runs of several plans; with \
             --run job files or plans",
        ))
}

fn all(matches: &ArgMatches, name: &str) -> Vec<String> {
    let all = matches.get_many::<String>(name).into_iter().flatten();
    all.cloned().collect()
}

fn one<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

fn rule(given: &GivenFlags, matches: &ArgMatches) -> Result<Rule, Refusal> {
    let names = one(matches, "metrics").map(|list| list.split(',').map(str::trim));
    let mut metrics: Vec<String> = Vec::new();
    for name in names.into_iter().flatten() {
        if name.is_empty() || metrics.iter().any(|known| known == name) {
            let list = one(matches, "metrics").unwrap_or_default();
            return Err(Refusal::usage(format!(
                "--metrics {list}: `{name}` is no name, or stands there twice\n  help: names with \
                 commas between them: {}",
                USUAL_METRICS.join(",")
            )));
        }
        metrics.push(name.to_owned());
    }
    let mut rule = Rule {
        metrics,
        allow_different: matches.get_flag("allow-different"),
        ..Rule::default()
    };
    if let Some(alpha) = given.text("alpha").and_then(|text| text.parse().ok()) {
        rule.alpha = alpha;
    }
    for part in one(matches, "threshold")
        .into_iter()
        .flat_map(|list| list.split(','))
    {
        let (name, text) = match part.split_once('=') {
            Some((name, text)) => (Some(name.trim()), text.trim()),
            None => (None, part.trim()),
        };
        let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
        let percent = number.ok().filter(|p| (0.0..=1000.0).contains(p));
        let share = percent.map(|p| p / 100.0).ok_or_else(|| {
            Refusal::usage(format!(
                "--threshold {part}: expected per cent from 0 to 1000, or METRIC=PER CENT"
            ))
        })?;
        match name {
            Some(name) => rule.thresholds.push((name.to_owned(), share)),
            None => rule.threshold = Some(share),
        }
    }
    Ok(rule)
}

fn rounds(given: &GivenFlags, matches: &ArgMatches) -> Result<Rounds, Refusal> {
    let count: Option<u32> = given.whole("rounds");
    let until_sure = matches.get_flag("until-sure");
    if let Some(count) = count.filter(|_| until_sure) {
        return Err(Refusal::usage(format!(
            "--rounds {count}: --until-sure decides how many; leave one of them out"
        )));
    }
    Ok(Rounds {
        count,
        until_sure,
        warmup: given.number("warmup"),
        settle: given.seconds("settle").unwrap_or_default(),
        prepare: one(matches, "prepare").map(str::to_owned),
        drop_caches: matches.get_flag("drop-caches"),
    })
}

fn show(given: &GivenFlags, matches: &ArgMatches) -> Result<CompareShow, Refusal> {
    let outputs = all(matches, "output").into_iter().map(file);
    let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    let format = one(matches, "format").and_then(CompareFormat::named);
    Ok(CompareShow {
        format: format.or(outputs.is_empty().then_some(CompareFormat::Text)),
        outputs,
        color: match one(matches, "color") {
            Some("always") => Some(true),
            Some("never") => Some(false),
            _ => None,
        },
        ascii: matches.get_flag("ascii"),
        width: given.whole("width"),
        raw: matches.get_flag("raw"),
    })
}

fn file(path: String) -> Result<CompareFile, Refusal> {
    match CompareFormat::of_file(&path) {
        Some(format) => Ok(CompareFile { path, format }),
        None => Err(Refusal::usage(format!(
            "--output {path}: the suffix decides the format; known are .txt, .json, .csv, .md, .html \
             and .xml (junit)"
        ))),
    }
}

#[cfg(test)]
mod tests;
