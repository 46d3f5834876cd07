//! Arguments of weir's own doors, parsed by clap.
//!
//! In: a command made of flags, arguments. Out: what was given, or the help that was asked for; a refusal in
//! the form of every refusal of weir: what is wrong, and a line of help. Not here: what values mean.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command, ValueHint};

use crate::flags::nearest;
use crate::refusal::Refusal;

/// Outcome of parsing arguments.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// They are understood.
    Given(ArgMatches),
    /// They ask for this text.
    Print(String),
}

/// Parses the arguments.
///
/// # Errors
/// Words that are not understood: exit code 2.
pub(crate) fn parse(command: Command, words: &[String]) -> Result<Parsed, Refusal> {
    let name = command.get_name().to_owned();
    let names = |arg| {
        Arg::get_long(arg)
            .into_iter()
            .chain(Arg::get_all_aliases(arg).unwrap_or_default())
    };
    let flags = command.get_arguments().flat_map(names);
    let flags: Vec<String> = flags.map(str::to_owned).collect();
    if let Some(flag) = empty_value(&command, words) {
        return Err(Refusal::usage(format!(
            "--{flag}=: a value is missing\n  help: without one, leave the `=` out"
        )));
    }
    match command.try_get_matches_from(words) {
        Ok(given) => Ok(Parsed::Given(given)),
        Err(asked) if !asked.use_stderr() => Ok(Parsed::Print(asked.to_string())),
        Err(error) => {
            let (what, near) = wrong(&error, &flags);
            let help = near.map_or_else(
                || format!("`{name} --help` says more"),
                |near| format!("did you mean `{near}`?"),
            );
            Err(Refusal::usage(format!("{what}\n  help: {help}")))
        }
    }
}

/// The flag with an optional value that has an empty one, as an unset variable of a shell leaves behind.
fn empty_value<'a>(command: &'a Command, words: &[String]) -> Option<&'a str> {
    let is_optional = |arg: &&Arg| arg.get_num_args().is_some_and(|n| n.min_values() == 0);
    let mut flags = command.get_arguments().filter(is_optional);
    flags.find_map(|arg| {
        let name = arg.get_long()?;
        let empty = format!("--{name}=");
        let mut options = words.iter().take_while(|word| *word != "--");
        options.any(|word| *word == empty).then_some(name)
    })
}

/// `RUN` of `<RUN>...`; an option with its value stays as it is.
fn bare(word: &str) -> &str {
    let inner = word.trim_end_matches("...").strip_prefix('<');
    inner
        .and_then(|inner| inner.strip_suffix('>'))
        .unwrap_or(word)
}

/// Message about the error, and the word that may be meant.
fn wrong(error: &clap::Error, flags: &[String]) -> (String, Option<String>) {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let word = context(ContextKind::InvalidArg);
    match (error.kind(), context(ContextKind::InvalidValue)) {
        (ErrorKind::UnknownArgument, _) if word.starts_with('-') => {
            let name = word.trim_start_matches('-');
            let near = nearest(name, flags.iter().map(String::as_str));
            let near = near.map(|near| format!("--{near}"));
            (format!("no option `{word}`"), near)
        }
        (ErrorKind::UnknownArgument, _) => (format!("stray word `{word}`"), None),
        (ErrorKind::MissingRequiredArgument, _) => {
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) => missing.as_slice(),
                _ => &[],
            };
            let missing: Vec<&str> = missing.iter().map(|word| bare(word)).collect();
            (format!("{} is missing", missing.join(", ")), None)
        }
        (ErrorKind::InvalidValue, value) if !value.is_empty() => {
            let choices = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(choices)) => choices.as_slice(),
                _ => &[],
            };
            let near = nearest(value, choices.iter().map(String::as_str));
            // `--format <FORMAT>`
            let flag = word.split(' ').next().unwrap_or(word);
            let list = choices.join(", ");
            let what = format!("{flag} {value}: it takes one of {list}");
            (what, near.map(str::to_owned))
        }
        _ => {
            let all = error.to_string();
            let first = all.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            (first.to_owned(), None)
        }
    }
}

/// Argument with any number of file names.
pub(crate) fn files() -> Arg {
    Arg::new("file")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .num_args(0..)
}

/// All values of an argument; none where the command does not have it.
pub(crate) fn all(matches: &ArgMatches, name: &str) -> Vec<String> {
    let values = matches.try_get_many::<String>(name).ok().flatten();
    values.into_iter().flatten().cloned().collect()
}

/// The value of an argument; `None` where the command does not have it.
pub(crate) fn one<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    let given = matches.try_get_one::<String>(name).ok().flatten();
    given.map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::command;
    use crate::house::HOUSE_FLAGS as FLAGS;

    fn message(args: &str) -> String {
        let args: Vec<String> = args.split(' ').map(str::to_owned).collect();
        let command = command("weir run", FLAGS).no_binary_name(true);
        parse(command, &args).unwrap_err().message
    }

    #[test]
    fn every_refusal_says_what_is_wrong_and_what_to_do() {
        for (args, what, help) in [
            (
                "--formt json",
                "no option `--formt`",
                "did you mean `--format`?",
            ),
            ("--foo", "no option `--foo`", "`weir run --help` says more"),
            ("x", "stray word `x`", "`weir run --help` says more"),
            (
                "--format jsn",
                "--format jsn: it takes one of text, json, html, md, csv, csv-series",
                "did you mean `json`?",
            ),
            (
                "--format",
                "a value is required for '--format <FORMAT>' but none was supplied",
                "`weir run --help` says more",
            ),
            (
                "--raw --raw",
                "the argument '--raw' cannot be used multiple times",
                "`weir run --help` says more",
            ),
        ] {
            assert_eq!(message(args), format!("error: {what}\n  help: {help}\n"));
        }
    }
}
