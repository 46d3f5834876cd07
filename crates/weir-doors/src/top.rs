//! Choice of the verb by the first argument, and its arguments.
//!
//! In: all arguments, the program's name first. Out: a [`Call`]. A link named like a peer is
//! that peer's door.

use clap::Command;

use crate::DOORS;
use crate::args::DoorCall;
use crate::door::Door;
use crate::flags::nearest;
use crate::mpi;
use crate::obj_run;
use crate::refusal::Refusal;

/// The page of `weir engines --help`.
const ENGINES: &str = "\
weir engines

Lists the engines of this build with their settings, and what this machine lacks
for those that it cannot run.

Examples:
    weir engines
    weir run --set ioengine=io_uring a.fio

Exit codes: 0 printed; 1 it could not be printed; 2 usage error.
";

/// Command that parses the arguments after `engines`, of which there are none.
pub(crate) fn engines_words() -> Command {
    let (_, about) = ENGINES.split_once("\n\n").unwrap_or_default();
    Command::new("engines")
        .about("List the engines and whether this machine can run them")
        .after_help(about)
        .override_usage("weir engines")
}

/// Call of `weir`, by its arguments.
#[derive(Clone, Debug)]
pub enum Call {
    /// Through a door.
    Door(DoorCall),
    /// Print this on standard output and exit with 0.
    Print(String),
}

const EXAMPLES: &str = "\
Examples:
    weir run examples/first.fio
    weir run --help
    weir fio --name=first --filename=/tmp/weir-first --size=64m --rw=randread --runtime=5
    weir beff --ranks 2 -u 64 -l 8 -m 16
    weir engines
";

/// The door that a link to the program calls.
fn linked(program: &str, words: &[String]) -> Option<Call> {
    let name = program.rsplit('/').next()?;
    let of_door = |door: &'static Door| Some((door, door.links.iter().find(|l| l.name == name)?));
    let (door, link) = DOORS.iter().find_map(of_door)?;
    let first = link.words.iter().map(ToString::to_string);
    Some(Call::Door(DoorCall {
        door,
        link: Some(link),
        args: first.chain(words.iter().cloned()).collect(),
    }))
}

/// The door of a verb.
pub fn door(verb: &str) -> Option<&'static Door> {
    DOORS.iter().find(|door| door.verb == verb)
}

/// Reads the arguments, of which the first is the program's name.
///
/// # Errors
/// An unknown verb, or none: exit code 2.
pub fn call(arguments: &[String]) -> Result<Call, Refusal> {
    let (program, words) = arguments
        .split_first()
        .map_or(("weir", arguments), |(p, w)| (p.as_str(), w));
    if let Some(call) = linked(program, words) {
        return Ok(call);
    }
    let Some((first, rest)) = words.split_first() else {
        return Err(Refusal::usage(format!("no verb given\n\n{}", page())));
    };
    match first.as_str() {
        "-V" | "--version" => Ok(Call::Print(format!("weir {}\n", env!("CARGO_PKG_VERSION")))),
        "-h" | "--help" => Ok(Call::Print(page())),
        "help" => help_of(rest),
        "obj" if rest.first().is_some_and(|word| word == "run") => {
            Ok(called(&obj_run::DOOR, &rest[1..]))
        }
        verb => match door(verb) {
            Some(door) => of_door(door, rest),
            None => Err(unknown(verb, program)),
        },
    }
}

/// Call of a door. Doors without arguments of their own have their help pages here.
fn of_door(door: &'static Door, words: &[String]) -> Result<Call, Refusal> {
    let asks = words.iter().any(|word| word == "--help" || word == "-h");
    match (door.verb, words) {
        ("mpi", _) if asks => Ok(Call::Print(mpi::HELP.to_owned())),
        ("mpi", [word]) if word == "info" => Ok(called(door, words)),
        ("mpi", _) => Err(Refusal::usage("`weir mpi` takes one word: `info`")),
        ("engines", _) if asks => Ok(Call::Print(ENGINES.to_owned())),
        ("engines", [_, ..]) => Err(Refusal::usage("`weir engines` takes no arguments")),
        _ => Ok(called(door, words)),
    }
}

/// A door that was called by its verb.
fn called(door: &'static Door, args: &[String]) -> Call {
    Call::Door(DoorCall {
        door,
        link: None,
        args: args.to_vec(),
    })
}

fn help_of(rest: &[String]) -> Result<Call, Refusal> {
    match rest.first().map(String::as_str) {
        None | Some("help" | "--help" | "-h") => Ok(Call::Print(page())),
        Some(verb) => match door(verb) {
            Some(door) => of_door(door, &["--help".to_owned()]),
            None => Err(unknown(verb, PROGRAM)),
        },
    }
}

/// The program's own name.
const PROGRAM: &str = "weir";

/// Refusal of an unknown verb. A program of another name was called through a link, and its arguments may be
/// those of a peer.
fn unknown(word: &str, program: &str) -> Refusal {
    let name = program.rsplit('/').next().unwrap_or(program);
    if !name.starts_with(PROGRAM) {
        let links = DOORS.iter().flat_map(|door| door.links);
        let links: Vec<_> = links.map(|link| link.name).collect();
        return Refusal::usage(format!(
            "weir was called as `{name}`, which is no door's name\n  help: links to it \
                 that are have the names {}; by any other name it takes a verb, and `{word}` is none",
            links.join(", ")
        ));
    }
    let verbs = DOORS.iter().map(|door| door.verb).chain(["help"]);
    let hint = nearest(word, verbs).map_or_else(
        || "`weir --help` lists the verbs".to_owned(),
        |near| format!("did you mean `weir {near}`?"),
    );
    Refusal::usage(format!("no verb `{word}`\n  help: {hint}"))
}

/// Width of the calls in the list of verbs. A longer call has its purpose on the next line.
const CALL_COLUMNS: usize = 21;

fn page() -> String {
    let mut out = String::from(
        "weir measures how fast data moves: files, devices, queues, networks.\n\nUsage: weir VERB …\n\n",
    );
    let doors = DOORS.iter().map(|d| (d.verb, d.arguments, d.purpose));
    let help = ("help", "[VERB]", "this page, or the page of a verb");
    for (name, arguments, purpose) in doors.chain([help]) {
        let call = format!("{name} {arguments}");
        if call.chars().count() > CALL_COLUMNS {
            push!(out, "  {call}\n  {:CALL_COLUMNS$}  {purpose}\n", "");
        } else {
            push!(out, "  {call:CALL_COLUMNS$}  {purpose}\n");
        }
    }
    push!(out, "\n{EXAMPLES}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{self, Arguments};

    fn of(text: &str) -> Result<Call, Refusal> {
        call(&list(&text.split(' ').collect::<Vec<_>>()))
    }

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn is_door(text: &str, verb: &str, words: &[&str]) {
        match of(text) {
            Ok(Call::Door(call)) => assert_eq!((call.door.verb, call.args), (verb, list(words))),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn printed(text: &str) -> String {
        match of(text) {
            Ok(Call::Print(page)) => page,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_first_word_picks_the_door() {
        is_door("weir run a.fio", "run", &["a.fio"]);
        is_door("weir fio --bs=4k", "fio", &["--bs=4k"]);
        is_door("weir net lat-bw", "net", &["lat-bw"]);
        is_door("weir engines", "engines", &[]);
        is_door("weir obj run --ops 1", "obj-run", &["--ops", "1"]);
        is_door("weir mpi info", "mpi", &["info"]);
        assert_eq!(of("weir mpi infos").unwrap_err().code, 2);
    }

    #[test]
    fn every_door_has_a_page() {
        for door in DOORS {
            let words = list(&["weir", "help", door.verb]);
            match call(&words).unwrap() {
                Call::Door(call) => {
                    assert_eq!(
                        (call.door.verb, &call.args),
                        (door.verb, &list(&["--help"]))
                    );
                    if door.measures.is_none() {
                        continue;
                    }
                    let page = match args::read(&call) {
                        Ok(Arguments::Print(page)) => page,
                        other => panic!("{}: {other:?}", door.verb),
                    };
                    assert!(page.contains(door.verb) && page.ends_with('\n'), "{page}");
                }
                Call::Print(page) => assert!(page.starts_with("weir "), "{page}"),
            }
        }
        assert!(printed("weir engines --help").contains("weir engines"));
    }

    #[test]
    fn links_with_names_of_peers_are_their_doors() {
        is_door("/usr/bin/fio run", "fio", &["run"]);
        assert!(of("/usr/bin/fiox runn").is_err());
        for name in ["Network_intel", "/opt/Network_xilinx", "fnet"] {
            is_door(&format!("{name} -n3"), "beff", &["-n3"]);
        }
        is_door("Network_test_intel -n3", "beff", &["--selftest", "-n3"]);
    }

    #[test]
    fn a_link_with_another_name_is_told_which_there_are() {
        let message = of("/opt/osu_bw -m 8").unwrap_err().message;
        assert!(message.contains("called as `osu_bw`, which is no door's name"));
        assert!(
            message.contains("fio, kio, kio.py, spdk_nvme_perf, Network_intel"),
            "{message}"
        );
        is_door("/opt/osu_bw run a.fio", "run", &["a.fio"]);
        assert!(
            of("/opt/weir-0.1 rnu")
                .unwrap_err()
                .message
                .contains("did you mean")
        );
    }

    #[test]
    fn an_unknown_verb_gets_the_nearest_one() {
        let refusal = of("weir rnu a.fio").unwrap_err();
        assert_eq!(refusal.code, 2);
        assert_eq!(
            refusal.message,
            "error: no verb `rnu`\n  help: did you mean `weir run`?\n"
        );
        let far = of("weir qqqqqqq").unwrap_err().message;
        assert!(far.contains("lists the verbs"));
    }

    #[test]
    fn the_page_names_every_verb_and_its_examples_are_good() {
        let page = printed("weir --help");
        for door in DOORS {
            let (verb, arguments) = (door.verb, door.arguments);
            let (_, rest) = page
                .split_once(&format!("\n  {verb} {arguments}"))
                .unwrap_or_else(|| panic!("no line of {verb}:\n{page}"));
            let gap = rest.len() - rest.trim_start().len();
            assert!(
                gap >= 2 && rest.trim_start().starts_with(door.purpose),
                "{verb} and its purpose run together:\n{page}"
            );
        }
        let examples: Vec<_> = page
            .lines()
            .filter(|l| l.starts_with("    weir "))
            .collect();
        assert!((3..=5).contains(&examples.len()));
        assert!(examples.iter().all(|e| of(e.trim()).is_ok()));
        assert!(printed("weir --version").starts_with("weir "));
    }

    #[test]
    fn the_page_of_mpi_is_its_own_and_its_examples_are_good() {
        for asked in ["mpi --help", "mpi -h", "mpi info --help", "help mpi"] {
            assert_eq!(printed(&format!("weir {asked}")), mpi::HELP, "{asked}");
        }
        let examples: Vec<_> = mpi::HELP
            .lines()
            .filter(|l| l.starts_with("    "))
            .collect();
        assert!((3..=5).contains(&examples.len()));
        for example in examples {
            let at = example.find("weir mpi").unwrap();
            is_door(&example[at..], "mpi", &["info"]);
        }
    }

    #[test]
    fn help_has_help_of_its_own() {
        for asked in ["help", "help help", "help --help", "help -h"] {
            assert_eq!(printed(&format!("weir {asked}")), page(), "{asked}");
        }
    }

    #[test]
    fn the_page_of_engines_has_examples_and_exit_codes() {
        let page = printed("weir engines --help");
        assert!(page.contains("\nExit codes: 0 "), "{page}");
        is_door("weir engines", "engines", &[]);
        is_door("weir obj run --ops 1", "obj-run", &["--ops", "1"]);
        let examples: Vec<_> = page
            .lines()
            .filter(|line| line.starts_with("    weir "))
            .collect();
        assert_eq!(examples.len(), 2);
        assert!(examples.iter().all(|e| of(e.trim()).is_ok()), "{page}");
    }

    #[test]
    fn no_verb_prints_the_page_as_an_error() {
        assert_eq!(call(&list(&["weir"])).unwrap_err().code, 2);
        assert_eq!(call(&[]).unwrap_err().code, 2);
    }
}
