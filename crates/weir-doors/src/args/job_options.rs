//! Options of the job language as flags of a door: `--rw=randread`.
//!
//! In: the table of options, what clap read. Out: the options that were given, in their order. Not
//! here: what an option takes and does (`weir-jobfile`).

use clap::{Arg, ArgAction, ArgMatches};
use weir_jobfile::{CommandWord, OptionRecord, ValueKind, find_option, option_records};

/// Prefix of the names of options among the names of clap's arguments.
const ID: &str = "option:";

/// An argument for each option. Help texts leave them out: there are hundreds.
pub(super) fn option_args() -> impl Iterator<Item = Arg> {
    option_records().map(|record| {
        let arg = Arg::new([ID, record.name].concat())
            .long(record.name)
            .aliases(record.aliases)
            .help(record.short)
            .value_name("VALUE")
            .action(ArgAction::Append)
            .allow_negative_numbers(true)
            .hide(true);
        match record.value {
            ValueKind::Flag | ValueKind::Bool | ValueKind::OptionalText => arg
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value(""),
            _ => arg,
        }
    })
}

/// The options among the arguments of a door.
pub(super) fn given_options(args: &[String], matches: &ArgMatches) -> Vec<CommandWord> {
    let mut found = Vec::new();
    for id in matches.ids() {
        let id = id.as_str();
        if let Some(record) = id.strip_prefix(ID).and_then(find_option) {
            let places = matches.indices_of(id).into_iter().flatten();
            let values = matches.get_many::<String>(id).into_iter().flatten();
            let words = values.map(|value| command_word(args, record, value));
            found.extend(places.zip(words));
        }
    }
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, word)| word).collect()
}

/// An option with its place and its text as typed.
fn command_word(args: &[String], record: &OptionRecord, value: &str) -> CommandWord {
    let typed = args.iter().enumerate().find_map(|(at, word)| {
        let body = word.strip_prefix("--")?;
        let (name, inline) = match body.split_once('=') {
            Some((name, inline)) => (name, Some(inline)),
            None => (body, None),
        };
        let is_named = name == record.name || record.aliases.contains(&name);
        let next = args.get(at + 1).map_or("", String::as_str);
        match inline {
            _ if !is_named => None,
            Some(inline) => (inline == value).then(|| (at, word.clone())),
            None if value.is_empty() => Some((at, word.clone())),
            None => (next == value).then(|| (at, format!("{word} {value}"))),
        }
    });
    let (at, text) = typed.unwrap_or_else(|| (0, format!("--{}={value}", record.name)));
    CommandWord {
        key: record.name.to_owned(),
        value: (!value.is_empty()).then(|| value.to_owned()),
        argument: at + 1,
        text,
    }
}
