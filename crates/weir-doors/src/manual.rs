//! `weir man` and `weir completions`: the manual and the completions of shells, made of the arguments of
//! every door.
//!
//! In: the arguments after the verb. Out: an [`Action`]. What a page says are the records of the door:
//! there is no second copy to keep true. Not here: writing files.

use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::DOORS;
use crate::door::Door;
use crate::flags::{Flag, command, nearest};
use crate::house_words::{Parsed, parse};
use crate::new::NewFiles;
use crate::refusal::Refusal;

/// Pages of the manual.
pub const MAN: Door = Door {
    words: Some(man_words),
    ..Door::new(
        "man",
        "[VERB]",
        "print a page of the manual, or write them all",
    )
};

/// Completions.
pub const COMPLETIONS: Door = Door {
    words: Some(completion_words),
    ..Door::new(
        "completions",
        "SHELL",
        "print what completes weir's words in bash, zsh or fish",
    )
};

const SHELLS: &[(&str, Shell)] = &[
    ("bash", Shell::Bash),
    ("zsh", Shell::Zsh),
    ("fish", Shell::Fish),
];

const FLAGS: &[Flag] = &[Flag::with_value(
    "all",
    "DIR",
    "Output",
    "Write every page into this directory",
)];

const MAN_HELP: &str = "\
A page is in the source form of the manual, for `man -l -`. With --all DIR the pages are files:
weir.1, weir-run.1 and so on.

Examples:
    weir man run | man -l -
    weir man | man -l -
    weir man --all /usr/local/share/man/man1

Exit codes: 0 good; 1 it could not be printed; 2 usage error, or a file that cannot be written.
";

const COMPLETION_HELP: &str = "\
Examples:
    weir completions bash > /usr/share/bash-completion/completions/weir
    weir completions zsh > /usr/share/zsh/vendor-completions/_weir
    weir completions fish > ~/.config/fish/completions/weir.fish

Exit codes: 0 good; 1 it could not be printed; 2 usage error.
";

/// Action that the arguments of `weir manual` ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Write pages.
    Write(NewFiles),
}

fn man_words() -> Command {
    command("weir man", FLAGS)
        .about("Print a page of the manual, or write all of them")
        .after_help(MAN_HELP)
        .override_usage("weir man [VERB]\n       weir man --all DIR")
        .no_binary_name(true)
        .arg(
            Arg::new("verb")
                .value_name("VERB")
                .value_hint(ValueHint::Other)
                .help("The verb; the page of weir itself without one"),
        )
}

fn completion_words() -> Command {
    let shells = SHELLS.iter().map(|(name, _)| *name);
    command("weir completions", &[])
        .about("Print what completes weir's words in a shell")
        .after_help(COMPLETION_HELP)
        .override_usage("weir completions SHELL")
        .no_binary_name(true)
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .help("The shell")
                .value_parser(clap::builder::PossibleValuesParser::new(shells)),
        )
}

/// Reads the arguments after `man`.
///
/// # Errors
/// Words that are not understood, no such verb: exit 2.
pub fn read_man(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(man_words(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let word = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    match (word("verb"), word("all")) {
        (None, None) => Ok(Action::Print(page(program())?)),
        (Some(verb), None) => Ok(Action::Print(page(of_verb(verb)?)?)),
        (None, Some(directory)) => all(directory),
        (Some(verb), Some(_)) => Err(Refusal::usage(format!(
            "--all writes the pages of all verbs; leave `{verb}` out"
        ))),
    }
}

/// Reads the arguments after `completions`.
///
/// # Errors
/// Words that are not understood: exit 2.
pub fn read_completions(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(completion_words(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let name = matches.get_one::<String>("shell");
    let shell = SHELLS
        .iter()
        .find(|(shell, _)| name.is_some_and(|n| n == shell));
    let mut script = Vec::new();
    if let Some((_, shell)) = shell {
        clap_complete::generate(*shell, &mut program(), "weir", &mut script);
    }
    text(script).map(Action::Print)
}

fn all(directory: &str) -> Result<Action, Refusal> {
    let of_doors = DOORS.iter().map(|door| (file(door), of_door(door)));
    let commands = [("weir.1".to_owned(), program())]
        .into_iter()
        .chain(of_doors);
    let files: Result<_, Refusal> = commands
        .map(|(name, command)| Ok((name, page(command)?)))
        .collect();
    Ok(Action::Write(NewFiles {
        directory: directory.to_owned(),
        force: true,
        files: files?,
    }))
}

fn file(door: &Door) -> String {
    format!("weir-{}.1", door.verb)
}

/// weir with every verb.
fn program() -> Command {
    Command::new("weir")
        .about("Measures how fast data moves: files, devices, queues, networks")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .override_usage("weir COMMAND [WORDS]...")
        .subcommand_help_heading("COMMANDS")
        .subcommands(DOORS.iter().map(Door::command))
}

fn of_verb(verb: &str) -> Result<Command, Refusal> {
    let door = DOORS.iter().find(|door| door.verb == verb);
    door.map(of_door).ok_or_else(|| {
        let near = nearest(verb, DOORS.iter().map(|door| door.verb));
        let help = near.map_or_else(
            || "`weir --help` lists the verbs".to_owned(),
            |near| format!("did you mean `weir man {near}`?"),
        );
        Refusal::usage(format!("no verb `{verb}`\n  help: {help}"))
    })
}

fn of_door(door: &Door) -> Command {
    door.command()
        .display_name(format!("weir-{}", door.verb))
        .bin_name(format!("weir {}", door.verb))
}

/// A page in the source form of the manual.
fn page(command: Command) -> Result<String, Refusal> {
    let mut out = Vec::new();
    Man::new(command.mut_args(with_full_stop))
        .source(concat!("weir ", env!("CARGO_PKG_VERSION")))
        .manual("weir")
        .render(&mut out)
        .map_err(Refusal::usage)?;
    Ok(escaped(&text(out)?))
}

/// The argument with its help as sentences. On a page the short and the long help are one paragraph.
fn with_full_stop(arg: Arg) -> Arg {
    let Some(help) = arg.get_long_help().map(ToString::to_string) else {
        return arg;
    };
    match help.split_once('\n') {
        Some((short, long)) if !short.ends_with(['.', '?', '!', ':', '…']) && !long.is_empty() => {
            arg.long_help(format!("{short}.\n{long}"))
        }
        _ => arg,
    }
}

/// Escapes characters beyond ASCII for every formatter of manual pages.
fn escaped(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    for c in page.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            push!(out, "\\[u{:04X}]", u32::from(c));
        }
    }
    out
}

fn text(bytes: Vec<u8>) -> Result<String, Refusal> {
    String::from_utf8(bytes).map_err(Refusal::usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Standing;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn man(text: &str) -> String {
        match read_man(&words(text)) {
            Ok(Action::Print(page)) => page,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn each_page_names_each_flag_of_its_door() {
        for door in DOORS {
            // In pages a dash that is one is written so.
            let page = man(door.verb).replace("\\-", "-");
            let works = |flag: &&Flag| !matches!(flag.standing, Standing::Refused(_));
            for flag in door.flags.iter().filter(works) {
                let bold = format!("\\fB{}\\fR", flag.spelling());
                assert!(page.contains(&bold), "{}: {bold}", door.verb);
            }
            assert!(page.contains(&format!("weir-{}", door.verb)), "{page}");
        }
    }

    #[test]
    fn the_short_help_ends_where_the_long_one_begins() {
        let page = man("compare");
        let ended = "with each of these values of a job option.\nActs only with ";
        assert!(page.contains(ended), "{page}");
        // What no further sentence follows stays as it is.
        assert!(page.contains("run them in turns\n"), "{page}");
    }

    #[test]
    fn the_page_of_weir_has_headings_in_capitals() {
        let page = man("");
        assert!(page.contains("\\fBweir\\fR COMMAND [WORDS]"), "{page}");
        let headings = page.lines().filter_map(|line| line.strip_prefix(".SH "));
        let headings: Vec<&str> = headings.collect();
        assert!(headings.contains(&"COMMANDS"), "{headings:?}");
        let is_capital = |heading: &&str| !heading.contains(char::is_lowercase);
        assert!(headings.iter().all(is_capital), "{headings:?}");
    }

    #[test]
    fn pages_are_ascii() {
        for door in DOORS {
            assert!(man(door.verb).is_ascii(), "{}", door.verb);
        }
        assert_eq!(escaped("1 …"), "1 \\[u2026]");
    }

    #[test]
    fn options_of_jobs_are_on_the_page_of_the_door_that_takes_them() {
        let page = man("fio").replace("\\-", "-");
        for option in ["--ioengine", "--rw", "--iodepth"] {
            assert!(page.contains(option), "{option}");
        }
    }

    #[test]
    fn all_pages_are_files() {
        let Ok(Action::Write(written)) = read_man(&words("--all d")) else {
            panic!("pages are written");
        };
        assert_eq!(written.files.len(), DOORS.len() + 1);
        assert_eq!(written.directory, "d");
        let names = |name: &str| written.files.iter().any(|(file, _)| file == name);
        assert!(names("weir.1") && names("weir-fio.1"));
    }

    #[test]
    fn completions_know_every_verb_and_flag() {
        for (shell, _) in SHELLS {
            let Ok(Action::Print(script)) = read_completions(&words(shell)) else {
                panic!("{shell}");
            };
            for door in DOORS {
                assert!(script.contains(door.verb), "{shell}: {}", door.verb);
            }
            assert!(script.contains("store-result"), "{shell}");
        }
    }

    #[test]
    fn what_is_not_there_is_refused_with_the_nearest() {
        let refused = |text: &str| read_man(&words(text)).unwrap_err().message;
        assert!(refused("rnu").contains("did you mean `weir man run`?"));
        assert!(refused("run --all d").contains("leave `run` out"));
        let shell = read_completions(&words("fihs")).unwrap_err();
        assert!(shell.message.contains("fish"), "{shell}");
        assert!(read_completions(&[]).is_err());
    }

    #[test]
    fn examples_of_the_help_are_good_words() {
        for help in [MAN_HELP, COMPLETION_HELP] {
            for line in help.lines().filter_map(|l| l.strip_prefix("    weir ")) {
                let line = line.split(['|', '>']).next().unwrap();
                let is_good = match line.split_once(' ') {
                    Some(("man", rest)) => read_man(&words(rest)).is_ok(),
                    Some((_, rest)) => read_completions(&words(rest)).is_ok(),
                    None => false,
                };
                assert!(is_good, "{line}");
            }
        }
    }
}
