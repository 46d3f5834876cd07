//! `weir monitor`: activity of the host while something else ran.
//!
//! In: the arguments after `monitor`. Out: a [`Monitor`]. Not here: measuring, the form of the report
//! (`weir-diagnose`).

use clap::Command;
use weir_units::Nanos;

use crate::door::Door;
use crate::flags::{Flag, command};
use crate::given::GivenFlags;
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;
use crate::takes::Takes;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "monitor",
        "",
        "report what CPUs, caches, memory and interfaces did for a while",
    )
};

/// The end of the help text: the quantities, examples, exit codes.
pub const HELP: &str = include_str!("monitor.md");

const WHAT: &str = "What is measured";
const OUTPUT: &str = "Output";

const FLAGS: &[Flag] = &[
    Flag::with_value("duration", "SECONDS", WHAT, "How long")
        .letter('d')
        .takes(Takes::Number(0.001, 86_400.0))
        .default("3"),
    Flag::with_value("pid", "P", WHAT, "One process instead of the whole machine")
        .range(1, 4_194_304),
    Flag::with_value(
        "pcie",
        "FILE",
        WHAT,
        "What pcm-pcie -e -csv printed meanwhile",
    ),
    Flag::with_value("memory", "FILE", WHAT, "What pcm-memory printed meanwhile"),
    Flag::with_value(
        "pcm-csv",
        "FILE",
        WHAT,
        "What either of them printed, which is told from the file",
    )
    .repeats(),
    Flag::with_value("output", "FILE", OUTPUT, "Write the report here instead").letter('o'),
    Flag::with_value(
        "format",
        "FORMAT",
        OUTPUT,
        "A report as text, or all of it as JSON",
    )
    .choices(&["text", "json"])
    .default("text"),
];

/// Action that the arguments of `weir monitor` ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Measure.
    Monitor(Monitor),
}

/// Settings of the monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Time to measure.
    pub duration: Nanos,
    /// The process, instead of the whole machine.
    pub process: Option<u32>,
    /// File with pcm-pcie's record.
    pub pcie: Option<String>,
    /// File with pcm-memory's record.
    pub memory: Option<String>,
    /// Files of either.
    pub pcm: Vec<String>,
    /// The file of the report.
    pub output: Option<String>,
    /// JSON instead of a report.
    pub as_json: bool,
}

fn builder() -> Command {
    command("weir monitor", FLAGS)
        .about("Report what CPUs, caches, memory and interfaces did for a while")
        .after_help(HELP)
        .override_usage("weir monitor [OPTIONS]")
        .no_binary_name(true)
}

/// Reads the arguments after `monitor`.
///
/// # Errors
/// Words that are not understood: exit 2.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let given = GivenFlags::of_matches(FLAGS, &matches)?;
    Ok(Action::Monitor(Monitor {
        duration: given.seconds("duration").unwrap_or_default(),
        process: given.whole("pid"),
        pcie: given.text("pcie").map(str::to_owned),
        memory: given.text("memory").map(str::to_owned),
        pcm: given.all("pcm-csv").map(str::to_owned).collect(),
        output: given.text("output").map(str::to_owned),
        as_json: given.is("format", "json"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Action, Refusal> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        read(&words)
    }

    #[test]
    fn a_time_and_a_process_are_numbers_in_their_ranges() {
        let asked = |text: &str| match of(text) {
            Ok(Action::Monitor(asked)) => (asked.duration, asked.process, asked.output),
            other => panic!("{other:?}"),
        };
        assert_eq!(asked(""), (Nanos::from_secs(3), None, None));
        let all = asked("-d 0.5 --pid 7 -o r.rpt");
        assert_eq!(all, (Nanos(500_000_000), Some(7), Some("r.rpt".to_owned())));
        for (text, says) in [
            ("-d 0", "from 0.001 to 86400"),
            ("-d soon", "from 0.001 to 86400"),
            ("--pid 0", "from 1 to 4194304"),
            ("--pdi 1", "did you mean `--pid`?"),
            ("a", "stray word `a`"),
        ] {
            let refusal = of(text).unwrap_err();
            assert_eq!(refusal.code, crate::USAGE);
            assert!(refusal.message.contains(says), "{text}: {refusal}");
        }
    }

    #[test]
    fn help_ends_with_examples_that_are_good_words() {
        let Ok(Action::Print(page)) = of("--help") else {
            panic!("help is printed")
        };
        assert!(page.ends_with(HELP), "wrapped: {page}");
        let examples = page
            .lines()
            .filter_map(|l| l.strip_prefix("    weir monitor "));
        assert_eq!(examples.filter(|example| of(example).is_ok()).count(), 3);
    }
}
