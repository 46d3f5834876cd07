//! `weir report RESULT… [-o FILE]…`: reports of stored results, as text, as a page, as a picture.
//!
//! In: the arguments after `report`. Out: an [`Action`], or a [`Refusal`] with exit code 2. Not here:
//! reading results, what a report says.

mod flags;

use clap::{Arg, Command};

pub use flags::FLAGS;

use crate::door::Door;
use crate::flags::command;
use crate::given::GivenFlags;
use crate::house::{self, RunFormat, RunOptions};
use crate::house_words;
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "report",
        "RESULT…",
        "report stored results: text, a page with plots, a plot alone",
    )
};

/// The end of the help text: examples, exit codes.
const HELP: &str = include_str!("help.md");

/// Action that the arguments of `weir report` ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Report results.
    Report(Box<Report>),
}

/// Results to report, and the form of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Operands that name the results.
    pub operands: Vec<String>,
    /// Format on standard output, if anything is printed there.
    pub format: Option<ReportFormat>,
    /// Files that get a report.
    pub outputs: Vec<ReportFile>,
    /// The plot that is shown alone.
    pub plot: Option<String>,
    /// The job whose plot it is.
    pub job: Option<String>,
    /// Options of text.
    pub options: RunOptions,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// Report as of `weir run`.
    Whole(RunFormat),
    /// One plot as a vector picture.
    Svg,
    /// The same in pixels.
    Png,
}

impl ReportFormat {
    fn of_word(word: &str) -> Option<Self> {
        match word {
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            other => RunFormat::of_word(other).map(Self::Whole),
        }
    }

    fn of_file(path: &str) -> Option<Self> {
        match house::suffix(path) {
            Some("svg") => Some(Self::Svg),
            Some("png") => Some(Self::Png),
            _ => RunFormat::of_file(path).map(Self::Whole),
        }
    }
}

/// A file that gets a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    /// Path of the file.
    pub path: String,
    /// Format of the file.
    pub format: ReportFormat,
}

/// Reads the arguments after `report`.
///
/// # Errors
/// Words that are not understood, that cannot act, no result.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let given = GivenFlags::of_matches(&FLAGS, &matches)?;
    if let Some(why) = given.refusal() {
        return Err(Refusal::usage(why));
    }
    let operands: Vec<String> = house_words::all(&matches, "result");
    if operands.is_empty() {
        return Err(Refusal::usage(
            "no result given\n  help: `weir run --store-result r.json FILE` stores one",
        ));
    }
    let outputs = given
        .all("output")
        .map(file)
        .collect::<Result<Vec<_>, _>>()?;
    let format = match house_words::one(&matches, "format") {
        Some(word) => ReportFormat::of_word(word),
        None if !outputs.is_empty() => None,
        None => Some(ReportFormat::Whole(RunFormat::Text)),
    };
    Ok(Action::Report(Box::new(Report {
        operands,
        format,
        outputs,
        plot: house_words::one(&matches, "plot").map(str::to_owned),
        job: house_words::one(&matches, "job").map(str::to_owned),
        options: RunOptions {
            append: matches.get_flag("append"),
            ..house::options_of_text(&given)
        },
    })))
}

fn file(path: &str) -> Result<ReportFile, Refusal> {
    let format = ReportFormat::of_file(path);
    let path = path.to_owned();
    let known = format.map(|format| ReportFile {
        path: path.clone(),
        format,
    });
    known.ok_or_else(|| {
        Refusal::usage(format!(
            "--output {path}: the suffix decides the format; known are .html, .svg, .png, \
             .txt, .json, .md, .csv and .series.csv"
        ))
    })
}

/// Command that parses the arguments.
pub fn builder() -> Command {
    command("weir report", &FLAGS)
        .about("Report stored results: text, a page with plots, a plot alone")
        .after_help(HELP)
        .override_usage("weir report [OPTIONS] RESULT…")
        .no_binary_name(true)
        .arg(
            Arg::new("result")
                .value_name("RESULT")
                .num_args(0..)
                .help("Results that --store-result stored; plots show several beside each other"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Action, Refusal> {
        let words = text.split(' ').filter(|word| !word.is_empty());
        read(&words.map(str::to_owned).collect::<Vec<_>>())
    }

    fn report(text: &str) -> Report {
        match of(text) {
            Ok(Action::Report(report)) => *report,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_suffix_decides_the_form_and_text_is_printed_where_nothing_is_asked_for() {
        let html = ReportFormat::Whole(RunFormat::Html);
        assert_eq!(
            report("r.json").format,
            Some(ReportFormat::Whole(RunFormat::Text))
        );
        let page = report("a.json b.json -o r.html --output=x.svg --plot cdf");
        assert_eq!((page.format, page.operands.len()), (None, 2));
        let formats: Vec<_> = page.outputs.iter().map(|file| file.format).collect();
        assert_eq!(formats, [html, ReportFormat::Svg]);
        assert_eq!(
            report("r.json --format png --plot cdf").format,
            Some(ReportFormat::Png)
        );
        assert_eq!(report("r.json --format html").format, Some(html));
        assert!(report("r.json --raw").options.raw);
    }

    #[test]
    fn words_that_cannot_act_are_refused_by_name() {
        for (words, says) in [
            ("", "no result given"),
            ("r.json --plot cdf", "--plot acts only with `--format svg`"),
            ("r.json -o r.md --append", "--append acts only with"),
            (
                "r.json --format svg --job a",
                "--job acts only with `--plot`",
            ),
            (
                "r.json -o r.html --raw",
                "--raw acts only with `--format text`",
            ),
            ("r.json --format html --width 80", "--width acts only"),
            (
                "r.json --format html --percentiles 50",
                "--percentiles acts only",
            ),
            ("r.json -o r.htm", "known are .html"),
            ("r.json --format htm", "did you mean `html`?"),
        ] {
            let refusal = of(words).unwrap_err();
            assert!(refusal.message.contains(says), "{words}: {refusal}");
        }
    }

    #[test]
    fn help_ends_with_examples_that_are_good_words() {
        let Ok(Action::Print(page)) = of("--help") else {
            panic!("help is printed")
        };
        assert!(page.ends_with(HELP), "wrapped: {page}");
        assert!(page.contains("-o, --output <FILE>"), "{page}");
        assert!(page.contains("refused before anything is written"));
        let examples = page
            .lines()
            .filter_map(|l| l.strip_prefix("    weir report "));
        assert_eq!(examples.filter(|e| of(e).is_ok()).count(), 5);
    }
}
