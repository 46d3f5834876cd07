//! `weir doctor [TARGET…]`: what of this machine would spoil a measurement.
//!
//! In: the words after `doctor`. Out: an [`Action`]. Not here: looking at the machine.

use clap::{Arg, Command, ValueHint};

use crate::door::Door;
use crate::flags::{Flag, command};
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "doctor",
        "",
        "look for what would spoil a measurement on this machine",
    )
};

/// The end of the help text: what is printed, examples, exit codes.
pub const HELP: &str = include_str!("doctor.md");

const FLAGS: &[Flag] = &[
    Flag::switch("json", "Output", "Print one JSON document"),
    Flag::switch("strict", "Output", "A FAIL makes the exit code 1"),
];

/// What the words ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Look at the machine.
    Look(Look),
}

/// What is looked at, and how it is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Files, directories and devices.
    pub targets: Vec<String>,
    /// As JSON.
    pub json: bool,
    /// A failure makes the exit code 1.
    pub strict: bool,
}

fn builder() -> Command {
    command("weir doctor", FLAGS)
        .about("Look for what would spoil a measurement on this machine")
        .after_help(HELP)
        .override_usage("weir doctor [OPTIONS] [TARGET]...")
        .no_binary_name(true)
        .arg(
            Arg::new("target")
                .value_name("TARGET")
                .value_hint(ValueHint::AnyPath)
                .num_args(0..)
                .help("Files, directories and devices that shall be measured"),
        )
}

/// The words after `doctor`.
///
/// # Errors
/// Words that are not understood: exit 2.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let targets = matches.get_many::<String>("target").into_iter().flatten();
    Ok(Action::Look(Look {
        targets: targets.cloned().collect(),
        json: matches.get_flag("json"),
        strict: matches.get_flag("strict"),
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
    fn words_name_targets_and_how_it_is_said() {
        assert_eq!(of("").unwrap(), Action::Look(Look::default()));
        let all = Look {
            targets: vec!["/a".to_owned(), "b".to_owned()],
            json: true,
            strict: true,
        };
        assert_eq!(of("--strict /a --json b").unwrap(), Action::Look(all));
        let refused = of("--jsn").unwrap_err().message;
        assert!(refused.contains("did you mean `--json`?"), "{refused}");
    }

    #[test]
    fn help_ends_with_examples_that_are_good_words() {
        let Ok(Action::Print(page)) = of("--help") else {
            panic!("help is printed")
        };
        assert!(page.ends_with(HELP), "wrapped: {page}");
        let examples = page
            .lines()
            .filter_map(|l| l.strip_prefix("    weir doctor"));
        for example in examples {
            assert!(of(example).is_ok(), "{example}");
        }
    }
}
