//! `weir show RUN [--as DOOR] [WORDS…]`: prints a stored result again, as its own door printed it
//! or as another would.
//!
//! In: the arguments after `show`. Out: an [`Action`]. The door reads the further arguments:
//! they follow those that the result was measured with, or stand alone with `--as`, and choose how
//! the result is printed; all others are refused. Not here: reading the file, printing.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};

use crate::DOORS;
use crate::args::house_flags;
use crate::door::Door;
use crate::flags::{Flag, find, nearest};
use crate::given::GivenFlags;
use crate::house::HOUSE_FLAGS;
use crate::house_words::files;
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    words: Some(command),
    ..Door::new(
        "show",
        "RUN",
        "print a stored result or a run of the history, as its door or another prints it",
    )
};

/// The page of `weir show --help`, without the flags of each door.
const HELP: &str = include_str!("show.md");

/// Action that the arguments of `weir show` ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Print a stored result.
    Show(Show),
}

/// Result to print, and the form of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Show {
    /// The file of the result, or the name of a run.
    pub file: String,
    /// Format of another program, where it is not to be detected.
    pub from: Option<String>,
    /// The door that prints it, where another than its own shall.
    pub door: Option<String>,
    /// Words for that door.
    pub words: Vec<String>,
}

/// Command that parses the arguments, without the flags of the door that prints.
fn command() -> Command {
    let door = Arg::new("as")
        .long("as")
        .value_name("DOOR")
        .help("Print it as this door does")
        .value_parser(PossibleValuesParser::new(Door::printing()));
    let page = page();
    let (_, about) = page.split_once("\n\n").unwrap_or_default();
    let from = Arg::new("from")
        .long("from")
        .value_name("FORMAT")
        .help("Read it as this format of another program");
    Command::new("show")
        .arg(from)
        .about(DOOR.purpose)
        .after_help(about.to_owned())
        .override_usage("weir show FILE [--from FORMAT] [--as DOOR] [WORDS]...")
        .arg(door)
        .arg(files().required(true).help("The stored result"))
}

/// Reads the arguments after `show`.
///
/// # Errors
/// No file, a door that prints no results: exit 2.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let mut door = None;
    let mut file = None;
    let mut from = None;
    let mut rest = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(Action::Print(page())),
            "--as" if door.is_none() => {
                let name = words
                    .next()
                    .ok_or_else(|| Refusal::usage("--as needs a door"))?;
                door = Some(printing(name)?);
            }
            other if door.is_none() && other.starts_with("--as=") => {
                door = Some(printing(&other["--as=".len()..])?);
            }
            "--from" if from.is_none() => {
                let name = words.next();
                let name = name.ok_or_else(|| Refusal::usage("--from needs a format"))?;
                from = Some(name.to_owned());
            }
            other if from.is_none() && other.starts_with("--from=") => {
                from = Some(other["--from=".len()..].to_owned());
            }
            other if file.is_none() && !other.starts_with('-') => file = Some(other.to_owned()),
            other if file.is_none() => {
                return Err(Refusal::usage(format!(
                    "`weir show` needs a stored result before `{other}`"
                )));
            }
            other => rest.push(other.to_owned()),
        }
    }
    let file = file.ok_or_else(|| {
        let what = "a run of the history, or a file that --store-result stored";
        Refusal::usage(format!("`weir show` needs {what}"))
    })?;
    Ok(Action::Show(Show {
        file,
        from,
        door,
        words: rest,
    }))
}

/// Refuses arguments that do not choose how this door prints a result, and those that exclude each other or
/// an argument of the measurement.
///
/// # Errors
/// The first such argument, by its name: exit code 2.
pub fn check_words(door: &'static Door, own: &[String], words: &[String]) -> Result<(), Refusal> {
    refuse_others(door, words)?;
    let new = flags_among(door, words);
    let all = flags_among(door, &[own, words].concat());
    let idle = all.iter().flat_map(GivenFlags::idle);
    let mut idle = idle.filter(|(flag, _)| new.iter().any(|given| given.has(flag.name)));
    idle.next().map_or(Ok(()), |(flag, when)| {
        let name = flag.spelling();
        Err(Refusal::usage(format!(
            "{name} acts only {when}\n  help: leave it out"
        )))
    })
}

/// An argument's name, and the value that it contains.
fn parts(word: &str) -> (&str, Option<&str>) {
    word.split_once('=')
        .map_or((word, None), |(name, value)| (name, Some(value)))
}

/// The flags of the door and of the house among the arguments; all others are skipped.
fn flags_among(door: &Door, words: &[String]) -> [GivenFlags; 2] {
    let mut own = GivenFlags::new(door.flags);
    let mut of_house = GivenFlags::new(HOUSE_FLAGS);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = parts(word);
        let bare = name.trim_start_matches('-');
        let known = match find(door.flags, bare) {
            Some(flag) => Some((flag, &mut own)),
            None => house_names(door)
                .find(|(_, name)| name == bare)
                .map(|(flag, _)| (flag, &mut of_house)),
        };
        if let Some((flag, given)) = known.filter(|_| name.starts_with('-')) {
            let needed = flag.value.is_some() && !flag.optional && value.is_none();
            let next = if needed { words.next() } else { None };
            given.add(flag, value.or(next.map(String::as_str)).unwrap_or_default());
        }
    }
    [own, of_house]
}

/// The flags of the house that a door takes, by the names they have there.
fn house_names(door: &Door) -> impl Iterator<Item = (&'static Flag, String)> {
    door.measures
        .iter()
        .flat_map(|measures| house_flags(door, measures))
}

fn refuse_others(door: &Door, words: &[String]) -> Result<(), Refusal> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = parts(word);
        let bare = name.trim_start_matches('-');
        let flags = printing_flags(door);
        let known = flags.iter().find(|(_, known)| known == bare);
        let Some((flag, _)) = known.filter(|_| name.starts_with('-')) else {
            let near = nearest(bare, flags.iter().map(|(_, name)| name.as_str()));
            let help = near.map_or_else(
                || help_with(door, name, bare),
                |near| format!("did you mean `--{near}`?"),
            );
            let verb = door.verb;
            return Err(Refusal::usage(format!(
                "`{name}` has no meaning for a stored result that `{verb}` prints\n  help: {help}"
            )));
        };
        if flag.value.is_some() && !flag.optional && value.is_none() {
            words.next();
        }
    }
    Ok(())
}

/// Help for a flag that a door does not print by.
fn help_with(door: &Door, name: &str, bare: &str) -> String {
    let has = |door: &Door| printing_flags(door).iter().any(|(_, name)| name == bare);
    if DOORS.iter().any(|other| other.verb == "run" && has(other)) {
        return format!("`--as run {name}` is a word of weir's own report");
    }
    let names = spellings(door);
    match names.as_slice() {
        [] => "`weir show --help` lists the words that have".to_owned(),
        names => format!("`{}` takes {}", door.verb, names.join(", ")),
    }
}

/// Flags that choose how a door prints a result, with their names there.
fn printing_flags(door: &Door) -> Vec<(&'static Flag, String)> {
    let own = door.flags.iter().map(|flag| (flag, flag.name.to_owned()));
    let all = own.chain(house_names(door));
    all.filter(|(flag, _)| flag.prints).collect()
}

/// The same with their dashes.
fn spellings(door: &Door) -> Vec<String> {
    let all = printing_flags(door).into_iter();
    all.map(|(_, name)| Flag::spelling_of(&name)).collect()
}

/// The page of `weir show --help`, with the flags of each door.
fn page() -> String {
    let mut list = String::new();
    for door in DOORS.iter().filter(|door| door.prints()) {
        let mut verb = door.verb;
        let names = spellings(door);
        for few in names.chunks(4) {
            push!(list, "  {verb:9} {}\n", few.join(" "));
            verb = "";
        }
    }
    HELP.replace("WORDS by door.\n", &format!("WORDS by door:\n{list}"))
}

fn printing(name: &str) -> Result<String, Refusal> {
    let known = Door::printing();
    if known.contains(&name) {
        return Ok(name.to_owned());
    }
    let near = nearest(name, known.iter().copied()).map_or_else(String::new, |near| {
        format!("\n  help: did you mean `--as {near}`?")
    });
    let list = known.join(", ");
    Err(Refusal::usage(format!(
        "--as {name}: no door of this name prints results (these do: {list}){near}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Action, Refusal> {
        read(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn show(file: &str, door: Option<&str>, words: &[&str]) -> Action {
        Action::Show(Show {
            file: file.to_owned(),
            from: None,
            door: door.map(str::to_owned),
            words: words.iter().map(ToString::to_string).collect(),
        })
    }

    #[test]
    fn words_after_the_file_are_the_doors() {
        assert_eq!(of("r.json").unwrap(), show("r.json", None, &[]));
        let words = of("r.json --format csv --as run --raw").unwrap();
        assert_eq!(
            words,
            show("r.json", Some("run"), &["--format", "csv", "--raw"])
        );
        assert_eq!(of("--as=fio r").unwrap(), show("r", Some("fio"), &[]));
    }

    #[test]
    fn the_format_of_another_program_may_be_given() {
        for text in ["r.json --from fio", "--from=fio r.json"] {
            let Ok(Action::Show(show)) = of(text) else {
                panic!("{text}");
            };
            assert_eq!((show.from.as_deref(), &*show.file), (Some("fio"), "r.json"));
        }
        assert!(of("r.json --from").is_err());
    }

    #[test]
    fn a_door_that_prints_nothing_is_refused() {
        let message = |text| of(text).unwrap_err().message;
        assert!(message("r.json --as foi").contains("did you mean `--as fio`?"));
        assert!(message("--raw r.json").contains("before `--raw`"));
        assert!(read(&[]).unwrap_err().message.contains("--store-result"));
    }
}
