//! The one reader of a door's arguments, by the door's manner.
//!
//! In: a door, the link it was called by, arguments. Out: what is [`Given`], or the help that was asked
//! for; a refusal that names the argument and the nearest that is. Not here: what values mean.

mod getopt;
mod job_options;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, ValueHint};

use crate::door::{Door, DoorLink, Manner, Measures, Operands};
use crate::flags::{Flag, command as command_of, find};
use crate::given::{Given, GivenFlags};
use crate::house::{HOUSE_FLAGS, check_voice, joined};
use crate::house_words::{self, Parsed};
use crate::refusal::{Refusal, USAGE};

/// Exit codes of weir's own voice, for help texts.
const EXIT_CODES: &str = "\
Exit codes: 0 good; 1 the run had failures; 2 usage or plan error, nothing was
touched; 3 this machine lacks something, which is named; 130 or 143
interrupted, the report is marked.
";
/// The operands among clap's arguments.
const OPERANDS: &str = "operand";

/// A door that was called, with the arguments after its name.
#[derive(Clone, Debug)]
pub struct DoorCall {
    /// The door.
    pub door: &'static Door,
    /// The link that the program was called by, where it was one of the door's.
    pub link: Option<&'static DoorLink>,
    /// Arguments, those of the link first.
    pub args: Vec<String>,
}

/// Arguments, read.
#[derive(Clone, Debug)]
pub enum Arguments {
    /// They are understood.
    Given(Box<Given>),
    /// They ask for this text.
    Print(String),
}

impl DoorCall {
    /// True if the peer is called, by its name or by `--voice`, in arguments that need not be understood.
    pub fn calls_peer(&self) -> bool {
        let voice = self.args.iter().enumerate().rev().find_map(|(at, word)| {
            let value = word.trim_start_matches('-').strip_prefix("voice")?;
            let next = self.args.get(at + 1).map(String::as_str);
            let value = value
                .strip_prefix('=')
                .or(next.filter(|_| value.is_empty()));
            value.filter(|_| word.starts_with('-'))
        });
        voice == Some("peer") || (self.link.is_some() && voice != Some("weir"))
    }
}

/// Reads the arguments of a door.
///
/// # Errors
/// Arguments that are not understood: exit code 2.
pub fn read(call: &DoorCall) -> Result<Arguments, Refusal> {
    let read = read_by(call, false).and_then(|read| match &read {
        Arguments::Given(given) => check_voice(given).map(|()| read),
        Arguments::Print(_) => Ok(read),
    });
    read.map_err(|refusal| with_usage(refusal, call))
}

/// Reads arguments that follow those of a stored result: the last of several values holds.
///
/// # Errors
/// Arguments that are not understood: exit code 2.
pub fn read_again(call: &DoorCall) -> Result<Given, Refusal> {
    match read_by(call, true).map_err(|refusal| with_usage(refusal, call))? {
        Arguments::Given(given) => Ok(Given {
            is_again: true,
            ..*given
        }),
        Arguments::Print(_) => Err(Refusal::usage("help is of no use for a stored result")),
    }
}

/// Reads arguments of a door that ask for no help.
///
/// # Errors
/// Arguments that are not understood: exit code 2.
pub fn read_given(door: &'static Door, args: &[String]) -> Result<Given, Refusal> {
    read_again(&DoorCall {
        door,
        link: None,
        args: args.to_vec(),
    })
}

fn read_by(call: &DoorCall, is_again: bool) -> Result<Arguments, Refusal> {
    let Some(measures) = &call.door.measures else {
        return Err(Refusal::usage(format!(
            "`weir {}` measures nothing",
            call.door.verb
        )));
    };
    if let Manner::Own(read) = measures.manner {
        return read(call);
    }
    if let Manner::Getopt(manner) = measures.manner {
        let given = getopt::read(call, measures, manner, is_again)?;
        return Ok(if given.has("help") {
            Arguments::Print((manner.help)())
        } else {
            Arguments::Given(Box::new(given))
        });
    }
    let command = command(call.door, measures).args_override_self(is_again);
    match house_words::parse(command, &joined(&call.args))? {
        Parsed::Given(matches) => {
            let given = given(call, &matches);
            given.own.check(Flag::spelling)?;
            given.house.check(|flag| house_spelling(call.door, flag))?;
            Ok(Arguments::Given(Box::new(given)))
        }
        Parsed::Print(page) => Ok(Arguments::Print(page)),
    }
}

/// The flags of the house that a door takes, with the names they have there: a flag of the door's own
/// keeps its name.
pub(crate) fn house_flags(
    door: &Door,
    measures: &Measures,
) -> impl Iterator<Item = (&'static Flag, String)> {
    let has_peer = measures.print.is_some();
    let without = measures.without;
    HOUSE_FLAGS
        .iter()
        .filter(move |flag| !without.contains(&flag.name) && (has_peer || flag.name != "voice"))
        .map(|flag| (flag, house_name(door, flag)))
}

/// The name of a flag of the house at a door.
fn house_name(door: &Door, flag: &Flag) -> String {
    let is_taken = door.flags.iter().any(|known| known.name == flag.name);
    let prefix = if is_taken { "weir-" } else { "" };
    format!("{prefix}{}", flag.name)
}

/// The same with its dashes.
pub(crate) fn house_spelling(door: &Door, flag: &Flag) -> String {
    Flag::spelling_of(&house_name(door, flag))
}

/// A text about flags of the house, with the names that they have at a door.
pub fn at_door(door: &Door, text: &str) -> String {
    let mut parts = text.split("--");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c != '-' && !c.is_ascii_alphanumeric());
        let name = &part[..end.unwrap_or(part.len())];
        let name = find(HOUSE_FLAGS, name).map(|flag| house_name(door, flag));
        let prefix = name.is_some_and(|name| name.starts_with("weir-"));
        push!(out, "--{}{part}", if prefix { "weir-" } else { "" });
    }
    out
}

/// The command that reads the arguments of a door in the manner of the house, and from which help,
/// manual and completions are made.
pub(crate) fn command(door: &Door, measures: &Measures) -> Command {
    let house = house_flags(door, measures).map(|(flag, name)| {
        let arg = flag.to_house_arg(&name);
        match arg.get_long_help().map(ToString::to_string) {
            Some(text) => arg.long_help(at_door(door, &text)),
            None => arg,
        }
    });
    let mut command = command_of(&format!("weir {}", door.verb), door.flags)
        .args(house)
        .about(door.purpose)
        .after_help(after_help(measures))
        .override_usage(usage_line(door))
        .no_binary_name(true);
    if measures.takes_options {
        command = command.args(job_options::option_args());
    }
    if let Manner::House(Some(operands)) = &measures.manner {
        command = command.arg(operand_arg(operands));
    }
    command
}

fn operand_arg(operands: &Operands) -> Arg {
    let hint = if operands.name == "FILE" {
        ValueHint::FilePath
    } else {
        ValueHint::Unknown
    };
    Arg::new(OPERANDS)
        .value_name(operands.name)
        .value_hint(hint)
        .num_args(0..)
        .help(operands.help)
}

fn after_help(measures: &Measures) -> String {
    let mut out = String::new();
    if !measures.help.is_empty() {
        push!(out, "{}\n", measures.help);
    }
    if !measures.examples.is_empty() {
        out.push_str("Examples:\n");
        for example in measures.examples {
            push!(out, "    {example}\n");
        }
        out.push('\n');
    }
    out + EXIT_CODES
}

fn given(call: &DoorCall, matches: &ArgMatches) -> Given {
    let mut house = GivenFlags::new(HOUSE_FLAGS);
    for flag in HOUSE_FLAGS {
        let id = flag.house_id();
        let is_given = matches.try_contains_id(&id).unwrap_or(false)
            && matches.value_source(&id) == Some(ValueSource::CommandLine);
        if is_given {
            let values = matches.get_raw(&id).into_iter().flatten();
            for value in values {
                house.add(flag, &value.to_string_lossy());
            }
        }
    }
    let mut own = GivenFlags::new(call.door.flags);
    for id in matches.ids() {
        let is_given = matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        if let Some(flag) = find(call.door.flags, id.as_str()).filter(|_| is_given) {
            let values = matches.get_raw(id.as_str()).into_iter().flatten();
            for value in values {
                own.add(flag, &value.to_string_lossy());
            }
        }
    }
    let operands = matches.try_get_many::<String>(OPERANDS).ok().flatten();
    Given {
        door: call.door,
        link: call.link.map(|link| link.name),
        is_again: false,
        args: call.args.clone(),
        own,
        house,
        options: job_options::given_options(&call.args, matches),
        operands: operands.into_iter().flatten().cloned().collect(),
    }
}

/// Ends a refusal of arguments without a remedy with the usage of the door, unless a peer's syntax is that
/// of the call.
pub fn with_usage(mut refusal: Refusal, call: &DoorCall) -> Refusal {
    let verb = call.door.verb;
    let is_house = |measures: &Measures| matches!(measures.manner, Manner::House(_));
    let is_ours = call.door.measures.as_ref().is_none_or(is_house) || !call.calls_peer();
    let is_plain = refusal.code == USAGE && refusal.message.starts_with("error: ");
    if is_ours && is_plain && !refusal.message.contains("\n  help: ") {
        let line = usage_line(call.door);
        push!(
            refusal.message,
            "  help: {line}; `weir {verb} --help` says more\n"
        );
    }
    refusal
}

fn usage_line(door: &Door) -> String {
    let options = if door.arguments.contains("OPTIONS") {
        ""
    } else {
        "[OPTIONS] "
    };
    format!("weir {} {options}{}", door.verb, door.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DOORS;
    use crate::flags::Standing;
    use crate::machine::SampleMachine;

    fn page(door: &'static Door) -> String {
        let call = DoorCall {
            door,
            link: None,
            args: vec!["--help".to_owned()],
        };
        match read(&call) {
            Ok(Arguments::Print(page)) => page,
            other => panic!("{}: {other:?}", door.verb),
        }
    }

    #[test]
    fn every_measuring_door_has_a_page_with_all_flags_and_examples_that_are_understood() {
        for door in DOORS {
            let Some(measures) = &door.measures else {
                continue;
            };
            let page = page(door);
            let house = house_flags(door, measures).map(|(_, name)| Flag::spelling_of(&name));
            let is_there = |flag: &&Flag| !matches!(flag.standing, Standing::Refused(_));
            let own = door.flags.iter().filter(is_there).map(Flag::spelling);
            for name in own.chain(house) {
                assert!(page.contains(&name), "{}: {name}", door.verb);
            }
            assert!(page.trim_end().ends_with(EXIT_CODES.trim_end()), "{page}");
            let examples: Vec<&str> = page
                .lines()
                .filter_map(|l| l.strip_prefix("    "))
                .collect();
            let begin = format!("weir {} ", door.verb);
            let own = examples
                .iter()
                .filter(|line| !line.starts_with(' ') && line.contains(&begin));
            for line in own.clone() {
                let launcher = line.starts_with("mpirun").then_some(4);
                let (_, args) = line.split_once(&begin).unwrap();
                // A shell takes what is quoted as one word.
                let parts = args.split('"').enumerate();
                let words = parts.flat_map(|(place, part)| match place % 2 {
                    0 => part.split_whitespace().collect(),
                    _ => vec![part],
                });
                let args: Vec<String> = words.map(str::to_owned).collect();
                let given = read_given(door, &args).unwrap_or_else(|why| panic!("{line}: {why}"));
                let request = (measures.read)(&given, &SampleMachine(launcher));
                assert!(request.is_ok(), "{line}: {request:?}");
            }
            assert!((3..=6).contains(&own.count()), "{page}");
        }
    }

    #[test]
    fn a_flag_of_the_house_steps_aside_for_one_of_the_doors_own() {
        const OWN: &[Flag] = &[Flag::with_value("format", "F", "Own", "The peer's format")];
        const DOOR: Door = Door {
            flags: OWN,
            measures: Some(Measures::new(|_, _| Ok(crate::Request::print("")))),
            ..Door::new("peer", "[OPTIONS]", "a peer")
        };
        let args = ["--format", "own", "--weir-format", "json", "--raw"].map(str::to_owned);
        let given = read_given(&DOOR, &args).unwrap();
        assert_eq!(given.text("format"), Some("own"));
        assert_eq!(given.house.text("format"), Some("json"));
        assert!(given.house.has("raw") && !given.has("raw"));
        assert_eq!(given.command()[..3], ["weir", "peer", "--format"]);
    }
}
