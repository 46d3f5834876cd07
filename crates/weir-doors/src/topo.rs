//! `weir topo`: which CPUs, memory, disks and network interfaces belong together.
//!
//! In: the arguments after `topo`. Out: an [`Action`]. Not here: looking at the machine.

use clap::{Command, ValueHint};

use crate::door::Door;
use crate::flags::{Flag, command};
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "topo",
        "",
        "show which CPUs, memory, disks and network interfaces belong together",
    )
};

/// The end of the help text: the output, examples, exit codes.
pub const HELP: &str = include_str!("topo.md");

const FLAGS: &[Flag] = &[
    Flag::with_value("format", "FORMAT", "Output", "How it is printed")
        .choices(&["text", "json"])
        .default("text"),
    Flag::with_value(
        "root",
        "DIR",
        "What is looked at",
        "Read /sys below this directory, not this machine's",
    )
    .long("For a copy of another machine's."),
];

/// Action that the arguments of `weir topo` ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Look at the machine.
    Show(ShowTopology),
}

/// Machine to show, and the form of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShowTopology {
    /// Prints JSON.
    pub json: bool,
    /// The directory that holds its `/sys`; this machine's own where absent.
    pub root: Option<String>,
}

fn builder() -> Command {
    command("weir topo", FLAGS)
        .about("Show which CPUs, memory, disks and network interfaces belong together")
        .after_help(HELP)
        .override_usage("weir topo [OPTIONS]")
        .no_binary_name(true)
        .mut_arg("root", |arg| arg.value_hint(ValueHint::DirPath))
}

/// Reads the arguments after `topo`.
///
/// # Errors
/// Words that are not understood: exit 2.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let word = |name| matches.get_one::<String>(name).cloned();
    Ok(Action::Show(ShowTopology {
        json: word("format").is_some_and(|format| format == "json"),
        root: word("root"),
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
    fn words_say_which_machine_and_how_it_is_printed() {
        let show = |json, root: Option<&str>| {
            let root = root.map(str::to_owned);
            Ok::<_, String>(Action::Show(ShowTopology { json, root }))
        };
        let said = |text: &str| of(text).map_err(|refusal| refusal.message);
        assert_eq!(said(""), show(false, None));
        assert_eq!(said("--format=text"), show(false, None));
        assert_eq!(said("--root /a --format json"), show(true, Some("/a")));
        assert!(said("--format yaml").unwrap_err().contains("yaml"));
        assert!(said("eth0").is_err());
    }

    #[test]
    fn help_ends_with_examples_that_are_good_words() {
        let Ok(Action::Print(page)) = of("--help") else {
            panic!("help is printed")
        };
        assert!(page.ends_with(HELP), "wrapped: {page}");
        let mut examples = page.lines().filter_map(|l| l.strip_prefix("    weir topo"));
        assert!(examples.all(|example| of(example).is_ok()));
    }
}
