//! `weir import [FORMAT] FILE [-o FILE]`: a result of another program in the form of weir's own.
//!
//! In: the arguments after `import`. Out: an [`Action`]. Not here: which formats there are, reading
//! files.

use clap::{Arg, Command, ValueHint};

use crate::door::Door;
use crate::flags::{Flag, command};
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "import",
        "FILE",
        "turn a result of fio, IOR, hyperfine and others into one of weir",
    )
};

/// The end of the help text: formats, examples, exit codes.
pub const HELP: &str = include_str!("import.md");

const FLAGS: &[Flag] = &[
    Flag::with_value(
        "column",
        "METRIC=NAME[:UNIT]",
        "Input",
        "A column of a CSV file, and what it is called as a figure",
    )
    .repeats()
    .long(
        "Its rows are samples. Of ns, us, ms, kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s and kops/s the \
         values become s, B/s and ops/s; other units stay. With the format csv only.",
    ),
    Flag::with_value(
        "output",
        "FILE",
        "Output",
        "Store the result here; standard output gets it otherwise",
    )
    .letter('o'),
];

/// Action that the arguments of `weir import` ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Import a file.
    Import(Import),
}

/// File to import, and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Format, where it is not to be detected.
    pub format: Option<String>,
    /// The file.
    pub file: String,
    /// Columns of a CSV file that become figures.
    pub columns: Vec<String>,
    /// The file that gets the result.
    pub output: Option<String>,
}

fn builder() -> Command {
    command("weir import", FLAGS)
        .about("Turn a result of another program into a stored result of weir")
        .after_help(HELP)
        .override_usage("weir import [FORMAT] FILE [-o FILE]")
        .no_binary_name(true)
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .num_args(1..=2)
                .required(true)
                .help("The file; a word before it names its format"),
        )
}

/// Reads the arguments after `import`.
///
/// # Errors
/// Words that are not understood: exit 2.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let files = matches.get_many::<String>("file").into_iter().flatten();
    let mut files: Vec<String> = files.cloned().collect();
    let file = files.pop().unwrap_or_default();
    let format = files.pop();
    let columns = matches.get_many::<String>("column").into_iter().flatten();
    let columns: Vec<String> = columns.cloned().collect();
    match (format.as_deref() == Some("csv"), columns.first()) {
        (true, None) => {
            return Err(Refusal::usage(
                "csv: nothing says what its columns are\n  help: --column METRIC=NAME:UNIT does",
            ));
        }
        (false, Some(column)) => {
            return Err(Refusal::usage(format!(
                "--column {column} acts only with the format csv\n  help: `weir import csv FILE`"
            )));
        }
        _ => {}
    }
    Ok(Action::Import(Import {
        format,
        columns,
        file,
        output: matches.get_one::<String>("output").cloned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Action, Refusal> {
        read(
            &text
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn a_word_before_the_file_names_its_format() {
        let import = |format: Option<&str>, output: Option<&str>| {
            Action::Import(Import {
                format: format.map(str::to_owned),
                columns: Vec::new(),
                file: "f.json".to_owned(),
                output: output.map(str::to_owned),
            })
        };
        assert_eq!(of("f.json").unwrap(), import(None, None));
        assert_eq!(
            of("fio f.json -o r").unwrap(),
            import(Some("fio"), Some("r"))
        );
        assert_eq!(of("f.json --output=r").unwrap(), import(None, Some("r")));
        assert!(of("").unwrap_err().message.contains("FILE"));
        assert!(of("a b c").is_err());
    }

    #[test]
    fn columns_belong_to_csv() {
        let Ok(Action::Import(import)) = of("csv f.csv --column a=b --column c=d:s") else {
            panic!("columns are taken");
        };
        assert_eq!(import.columns, ["a=b", "c=d:s"]);
        let refused = |text: &str| of(text).unwrap_err().message;
        assert!(refused("csv f.csv").contains("--column METRIC=NAME:UNIT"));
        assert!(refused("f.csv --column a=b").contains("acts only with the format csv"));
    }

    #[test]
    fn help_ends_with_examples_that_are_good_words() {
        let Ok(Action::Print(page)) = of("--help") else {
            panic!("help is printed")
        };
        assert!(page.ends_with(HELP), "wrapped: {page}");
        let examples = page
            .lines()
            .filter_map(|l| l.strip_prefix("    weir import "));
        for example in examples {
            assert!(of(example).is_ok(), "{example}");
        }
    }
}
