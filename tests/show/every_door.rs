//! Bad input at every door that measures, by its verb and by each of its links: one clear message, its
//! exit code, and nothing written. The cases come from the doors' records: a new door has them all.

mod interrupts;
mod modes;
mod outputs;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use weir_doors::flags::{Flag, Standing};
use weir_doors::house::HOUSE_FLAGS;
use weir_doors::takes::Takes;
use weir_doors::{DOORS, Door};

use crate::stage::{Said, Stage, has, is_root, said, skip};

/// Arguments of a door.
struct Line {
    verb: &'static str,
    /// They measure a little.
    short: &'static str,
    /// They measure until they are interrupted.
    long: &'static str,
    /// A file that it reads.
    input: Option<&'static str>,
    /// They need more rights than a user has.
    forbidden: Option<&'static str>,
    /// Flags that ask for forms of the peer's text.
    forms: &'static [&'static str],
}

/// Arguments of doors. One without a line has those of its first example.
const LINES: &[Line] = &[
    Line {
        verb: "run",
        short: "j.fio",
        long: "j.fio --time_based --runtime=3600",
        input: Some("j.fio"),
        forbidden: Some("--rw=read secret"),
        forms: &[],
    },
    Line {
        verb: "fio",
        short: "j.fio",
        long: "--time_based --runtime=3600 j.fio",
        input: Some("j.fio"),
        forbidden: None,
        forms: &["--output-format=json", "--minimal"],
    },
    Line {
        verb: "kio",
        short: "-d data --read-mix-percent 100 --runtime 1",
        long: "-d data --read-mix-percent 100 --runtime 3600",
        input: Some("data"),
        forbidden: Some("-d secret --read-mix-percent 100 --runtime 1"),
        forms: &["--format=csv"],
    },
    Line {
        verb: "nvme-perf",
        short: "-q 4 -o 4096 -w read -t 0.1 data",
        long: "-q 4 -o 4096 -w read -t 3600 data",
        input: Some("data"),
        forbidden: Some("-q 4 -o 4096 -w read -t 1 secret"),
        forms: &[],
    },
    Line {
        verb: "beff",
        short: "--comm-type shm --ranks 1 -n 2 -u 8 -l 8 -m 4",
        long: "--comm-type shm --ranks 1 -n 20000 -u 8 -l 8 -m 22",
        input: None,
        forbidden: None,
        forms: &["--format=table"],
    },
    Line {
        verb: "net",
        short: "lat-bw --min-time 0.0001",
        long: "lat-bw --min-time 3600",
        input: None,
        forbidden: None,
        forms: &[],
    },
    Line {
        verb: "axio",
        short: "-c c.conf --set duration=0.05",
        long: "-c c.conf --set duration=3600 --set stall_timeout=3600",
        input: Some("c.conf"),
        forbidden: Some("--example scan --server --open-to-anyone --backend packet:lo"),
        forms: &[],
    },
    Line {
        verb: "vos-perf",
        short: "-D . -P 64M -d 10 -a 1 -n 1 -R U;p",
        long: "-D . -P 64M -d 10 -n 1 -i -I -A -o 1000000 -R Q;i=1000000",
        input: None,
        forbidden: None,
        forms: &["--output-style=2.9", "--compat-truncate"],
    },
    Line {
        verb: "daos-perf",
        short: "-T vos -f ./vos -P 64M -d 10 -a 1 -n 1 -R U;p",
        long: "-T vos -f ./vos -P 64M -d 10 -a 1 -n 1 -R A;i=1000000000",
        input: None,
        forbidden: None,
        forms: &["--output-style=2.9", "--compat-truncate"],
    },
    Line {
        verb: "selftest",
        short: "--loopback -e 0:0 -s 0 -r 10",
        long: "--loopback -e 0:0 -s 0 --duration 60min",
        input: None,
        forbidden: None,
        forms: &["--output=csv"],
    },
];

/// Makes any run a long one.
const REPEAT: &str = "--repeat=1000";

/// Text of a configuration as the example of `weir axio` has it.
const CONFIGURATION: &str = include_str!("../../crates/weir-doors/src/axio/examples/scan.conf");

fn stage() -> Stage {
    let stage = Stage::in_memory();
    stage.file("j.fio", "[a]\nioengine=null\nsize=64k\nrw=read\n");
    stage.file("data", vec![5; 1 << 20]);
    stage.file("c.conf", CONFIGURATION);
    stage
}

fn content(stage: &Stage) -> Vec<(String, Vec<u8>)> {
    let names = stage.list().into_iter();
    names
        .map(|name| (name.clone(), stage.read_bytes(&name)))
        .collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Doors that measure.
fn doors() -> impl Iterator<Item = &'static Door> {
    DOORS.iter().filter(|door| door.prints())
}

fn line(door: &Door) -> Option<&'static Line> {
    LINES.iter().find(|line| line.verb == door.verb)
}

/// The arguments of a door's first example.
fn example(door: &Door) -> Vec<String> {
    let examples = door.measures.map_or(&[][..], |measures| measures.examples);
    let begin = format!("weir {} ", door.verb);
    let mut examples = examples
        .iter()
        .filter_map(|line| line.strip_prefix(&*begin));
    words(
        examples
            .next()
            .unwrap_or_else(|| panic!("{}: no example", door.verb)),
    )
}

fn long(door: &Door) -> Vec<String> {
    line(door).map_or_else(
        || [example(door), words(REPEAT)].concat(),
        |line| words(line.long),
    )
}

/// Flags of a door by the names that they have there.
fn flags(door: &'static Door) -> impl Iterator<Item = (&'static Flag, String)> {
    let is_own = |name: &str| door.flags.iter().any(|flag| flag.name == name);
    let without = door.measures.map(|measures| measures.without);
    let house = HOUSE_FLAGS.iter().filter(move |flag| {
        let has_voice = door
            .measures
            .is_some_and(|measures| measures.print.is_some());
        without.is_some_and(|names| !names.contains(&flag.name))
            && (flag.name != "voice" || has_voice)
    });
    let house = house.map(move |flag| {
        let prefix = if is_own(flag.name) { "weir-" } else { "" };
        (flag, format!("{prefix}{}", flag.name))
    });
    let own = door.flags.iter().map(|flag| (flag, flag.name.to_owned()));
    own.chain(house)
        .filter(|(flag, _)| flag.standing == Standing::Works)
}

/// The name of a flag of the house at a door.
fn house(door: &Door, name: &str) -> String {
    let is_own = door.flags.iter().any(|flag| flag.name == name);
    let is_taken = is_own && door.measures.is_some();
    format!("--{}{name}", if is_taken { "weir-" } else { "" })
}

/// The same of a flag with a value.
fn house_with_value(door: &Door, text: &str) -> String {
    match text.split_once('=') {
        Some((name, value)) => format!("{}={value}", house(door, name)),
        None => house(door, text),
    }
}

fn with_value(name: &str, value: &str) -> Vec<String> {
    if name.len() == 1 {
        vec![format!("-{name}"), value.to_owned()]
    } else {
        vec![format!("--{name}={value}")]
    }
}

/// A value that is out of range, and one with a unit that there is not.
fn wrong_values(flag: &Flag) -> Vec<String> {
    let out = match flag.takes {
        Takes::Text if flag.choices.is_empty() || flag.value.is_none() => return Vec::new(),
        Takes::Text => return vec!["zork".to_owned()],
        _ if flag.name == "store-result" => return vec!["-".to_owned()],
        Takes::Whole(i64::MIN, most) | Takes::Scaled(i64::MIN, most) => {
            most.saturating_add(1).to_string()
        }
        Takes::Whole(least, _) | Takes::Scaled(least, _) => (least - 1).to_string(),
        Takes::Number(_, most) | Takes::Percent(_, most) | Takes::SecondsWithin(_, most) => {
            format!("{}", most + 1.0)
        }
        Takes::Size(_) => "0".to_owned(),
        Takes::Percentages | Takes::Percentiles => "101".to_owned(),
        Takes::Cpus => "-1".to_owned(),
        Takes::Grammar(_) => return vec!["1;parsec".to_owned()],
        Takes::Seconds | Takes::Pause | Takes::Time | Takes::Rate(_) | Takes::BitsPerSecond => {
            "-1".to_owned()
        }
    };
    vec![out, "1parsec".to_owned()]
}

/// A program as it is called: a door by its verb, or a link.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    is_link: bool,
    /// The link chooses what it does.
    is_fixed: bool,
}

impl Program {
    /// The verb of a door, and its links.
    fn all(door: &'static Door) -> impl Iterator<Item = Self> {
        let verb = Self {
            name: door.verb,
            is_link: false,
            is_fixed: false,
        };
        let links = door.links.iter().map(|link| Self {
            name: link.name,
            is_link: true,
            is_fixed: link.words.contains(&"--selftest"),
        });
        std::iter::once(verb).chain(links)
    }

    fn command(self, stage: &Stage, arguments: &[String]) -> Command {
        let mut command = if self.is_link {
            stage.peer(&[self.name])
        } else {
            stage.weir(&[self.name])
        };
        command.args(arguments);
        command
    }

    /// Arguments with which it measures a little.
    fn short(self, door: &Door) -> Vec<String> {
        if self.is_fixed {
            return Vec::new();
        }
        line(door).map_or_else(|| example(door), |line| words(line.short))
    }

    /// Part of a refusal of an output: a link that chooses what it does has none.
    fn named(self, file: &str) -> &str {
        if self.is_fixed { "--selftest" } else { file }
    }

    /// Exit code for bad input: a peer has its own.
    fn refuses_with(self) -> i32 {
        if self.is_link && ["fio", "spdk_nvme_perf"].contains(&self.name) {
            1
        } else {
            2
        }
    }

    /// Exit code after an interrupt.
    fn interrupted_with(self) -> i32 {
        match self.name {
            "fio" if self.is_link => 128,
            "spdk_nvme_perf" => 0,
            _ => 130,
        }
    }
}

/// Complaints about calls: gathered, so that one run shows all of them.
#[derive(Default)]
struct Complaints(Vec<String>);

impl Complaints {
    /// A refusal: with its code, these words on standard error, nothing else, nothing written.
    fn refused(&mut self, stage: &Stage, program: Program, arguments: &[String], named: &[&str]) {
        let before = content(stage);
        let said = said(program.command(stage, arguments));
        let expected = program.refuses_with();
        let mut wrong = Vec::new();
        if said.code != Some(expected) {
            wrong.push(format!("code {:?}, not {expected}", said.code));
        }
        if !said.out.is_empty() {
            wrong.push("text on standard output".to_owned());
        }
        let missing = named.iter().filter(|name| !said.err.contains(**name));
        wrong.extend(missing.map(|name| format!("`{name}` is not named")));
        let lines = said.err.lines().count();
        let errors = said.err.lines().filter(|line| line.starts_with("error"));
        let errors = errors.count();
        // By the verb it is the house that refuses.
        let most = if program.is_link { 16 } else { 8 };
        if !(1..=most).contains(&lines) || errors > 1 || (errors == 0 && !program.is_link) {
            wrong.push(format!("{lines} lines, {errors} errors"));
        }
        if content(stage) != before {
            wrong.push("something was written".to_owned());
        }
        self.add(program, arguments, &wrong, &said);
    }

    fn add(&mut self, program: Program, arguments: &[String], wrong: &[String], said: &Said) {
        if !wrong.is_empty() {
            let how = if program.is_link { "" } else { "weir " };
            let call = format!("{how}{} {}", program.name, arguments.join(" "));
            let err: String = said.err.chars().take(300).collect();
            self.0
                .push(format!("{call}: {}\n    {err}", wrong.join(", ")));
        }
    }
}

/// Tries a case at every door, by its verb and by links, and fails with all that is wrong.
#[track_caller]
fn at_each_door(links: usize, case: impl Fn(&'static Door, Program, &mut Complaints)) {
    let mut complaints = Complaints::default();
    for door in doors() {
        for program in Program::all(door).take(1 + links) {
            case(door, program, &mut complaints);
        }
    }
    let all = complaints.0;
    assert!(
        all.is_empty(),
        "{} complaints\n{}",
        all.len(),
        all.join("\n")
    );
}

/// More links than any door has.
const ALL_LINKS: usize = 100;

#[test]
fn flags_that_a_door_has_not_are_refused_by_name() {
    let stage = stage();
    at_each_door(ALL_LINKS, |door, program, complaints| {
        let known: Vec<String> = flags(door).map(|(_, name)| name).collect();
        // A name of a peer may be cut short, and an option of jobs be meant.
        let is_known = |name: &str| {
            known.iter().any(|own| own.starts_with(name))
                || weir_jobfile::option_records().any(|record| record.name.starts_with(name))
        };
        let others = doors().filter(|other| other.verb != door.verb);
        let others = others.filter_map(|other| {
            let mut names = other.flags.iter().map(|flag| flag.name);
            names.find(|name| {
                name.len() > 3 && !["help", "version"].contains(name) && !is_known(name)
            })
        });
        for name in others.chain(["zork-zork"]) {
            let flag = format!("--{name}");
            let arguments = [&program.short(door)[..], std::slice::from_ref(&flag)].concat();
            complaints.refused(&stage, program, &arguments, &[name]);
        }
    });
}

#[test]
fn values_that_a_flag_does_not_take_are_refused_by_name() {
    let stage = stage();
    at_each_door(ALL_LINKS, |door, program, complaints| {
        for (flag, name) in flags(door) {
            for value in wrong_values(flag) {
                let named: &[&str] = match flag.takes {
                    // self_test leaves it alone, with a warning.
                    Takes::Whole(..) if program.name == "self_test" && value == "-1" => continue,
                    // fio does not name every value.
                    _ if program.is_link && program.name == "fio" => &[],
                    Takes::Grammar(_) | Takes::Percentages => &[&name, &value],
                    _ if program.is_link => &[&name, &value],
                    _ => &[&name, &value, ": it takes "],
                };
                let arguments = with_value(&name, &value);
                complaints.refused(&stage, program, &arguments, named);
            }
        }
    });
}

#[test]
fn flags_of_the_house_are_named_as_they_are_typed() {
    let stage = stage();
    at_each_door(0, |door, program, complaints| {
        for (flag, other, rest) in [
            ("pretty", "format", " json`"),
            ("append", "output", " FILE.csv`"),
            ("output=x.y", "output", " x.y: the suffix"),
        ] {
            let arguments = [&program.short(door)[..], &[house_with_value(door, flag)]].concat();
            let named = house(door, other) + rest;
            complaints.refused(&stage, program, &arguments, &[&named]);
        }
    });
}

#[test]
fn what_needs_more_rights_is_refused_as_lacking() {
    let stage = Stage::public();
    if is_root() && !has("setpriv") {
        return skip("no rights", "root, and no setpriv to become somebody else");
    }
    fs::copy(crate::stage::WEIR, stage.path("weir")).unwrap();
    let secret = stage.file("secret", vec![6; 1 << 16]);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let before = stage.list();
    for line in LINES {
        let Some(forbidden) = line.forbidden else {
            continue;
        };
        let program = stage.path("weir");
        let mut command = if is_root() {
            let mut command = stage.command("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &program]);
            command
        } else {
            stage.command(&program)
        };
        command.arg(line.verb).args(words(forbidden));
        let said = said(command).code(3).silent();
        assert_eq!(said.err.matches("error: ").count(), 1, "{said}");
        assert_eq!(stage.list(), before, "{said}");
    }
}
