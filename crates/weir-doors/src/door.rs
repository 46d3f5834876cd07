//! A door as a record: its names, its flags, its way from arguments to a request and from a result
//! to text.
//!
//! In: nothing. Out: the records in [`crate::DOORS`], from which verbs, links, help, manual and
//! `weir show` are made, and which the one driver of the program carries out. Not here: the driver.

use clap::Command;
use weir_schema::RunResult;
pub use weir_schema::Voice;

use crate::DOORS;
use crate::args::{self, Arguments, DoorCall};
use crate::flags::{Flag, command};
use crate::given::Given;
use crate::house::RunFormat;
use crate::machine::Machine;
use crate::observer::Observer;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::selftest::LogSettings;
use crate::takes::Takes;

/// A door.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    /// The sub-command.
    pub verb: &'static str,
    /// Arguments after the verb, for the list of verbs.
    pub arguments: &'static str,
    /// Purpose in a short phrase.
    pub purpose: &'static str,
    /// Links to the program that are this door.
    pub links: &'static [DoorLink],
    /// Flags of a door that prints results.
    pub flags: &'static [Flag],
    /// The way through a door that the driver carries out.
    pub measures: Option<Measures>,
    /// Arguments as a clap command, of a door that reads them itself: for the manual and
    /// completions.
    pub words: Option<fn() -> Command>,
}

/// The way through a door that measures.
#[derive(Clone, Copy, Debug)]
pub struct Measures {
    /// Syntax of the arguments.
    pub manner: Manner,
    /// Makes a request of the arguments.
    pub read: ReadRequest,
    /// Makes the peer's text of a result; `None` where the door has no peer and weir's report is all.
    pub print: Option<PrintMeasured>,
    /// Live text of the peer.
    pub observe: Option<MakeObserver>,
    /// Flag of the door that asks for a form of the peer's text. The plain verb prints such a form too.
    pub peers_form: fn(&Given) -> Option<&'static str>,
    /// Forms of weir's report that the text in the peer's voice has too.
    pub peer_formats: &'static [&'static str],
    /// Reads the environment variables that every call obeys: the file for the messages of standard error,
    /// beside the terminal.
    pub variables: fn(&dyn Machine) -> Result<Option<LogSettings>, Refusal>,
    /// Refusals name the job: its user may not know the only job of a plan.
    pub names_jobs: bool,
    /// The peer's exit code of a refusal.
    pub peer_code: fn(&Refusal, &DoorCall, &dyn Machine) -> u8,
    /// Flags of the house that this door does not take, since its own do the same.
    pub without: &'static [&'static str],
    /// True if every option of the job language is a flag too.
    pub takes_options: bool,
    /// Sentences after the list of flags in the help text.
    pub help: &'static str,
    /// Command lines to begin with, for the end of the help text.
    pub examples: &'static [&'static str],
}

/// Function that makes a request of arguments.
pub type ReadRequest = fn(&Given, &dyn Machine) -> Result<Request, Refusal>;

/// Function that makes the peer's text of a result and the arguments that it was measured with.
pub type PrintMeasured = fn(&RunResult, &Given, &dyn Machine) -> Result<Printed, Refusal>;

/// The live text of a run that these arguments ask for.
pub type MakeObserver = fn(&Given, &dyn Machine) -> Box<dyn Observer>;

/// Syntax of a door's arguments.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// Syntax of weir's own verbs: `--flag value`, `--flag=value`; operands under this name, where there are
    /// any.
    House(Option<Operands>),
    /// Syntax of a peer.
    Getopt(&'static Getopt),
    /// By the door itself: options of another language stand among its flags.
    Own(ReadArguments),
}

/// From the arguments of a call to their values.
pub type ReadArguments = fn(&DoorCall) -> Result<Arguments, Refusal>;

/// Settings of a reader of a peer's arguments.
#[derive(Clone, Copy, Debug)]
pub struct Getopt {
    /// True if a prefix of the flag's name is accepted where no other flag has it.
    pub abbreviates: fn(&Flag) -> bool,
    /// The name of the flag that this name is an alias of.
    pub alias: fn(&str) -> Option<&'static str>,
    /// Letters may be joined, `-un`.
    pub letters_stand_together: bool,
    /// The argument after a flag is its value even where it looks like a flag.
    pub takes_any_value: bool,
    /// The peer's refusals are one line.
    pub is_one_line: bool,
    /// Takes an argument that is not a flag; the error is the reason why it is refused.
    pub operand: fn(&str, &Given) -> Result<(), String>,
    /// The peer's reason against a value for which the house has this one; `None` where the peer takes
    /// the value.
    pub wrong_value: fn(&Flag, &str, String) -> Option<String>,
    /// A refusal, also in the peer's words where it has some.
    pub refuse: fn(&str) -> Refusal,
    /// The page that `--help` prints.
    pub help: fn() -> String,
}

/// Arguments that are no flags.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// Name in help texts.
    pub name: &'static str,
    /// Line in help texts.
    pub help: &'static str,
}

/// A link to the program that calls a door.
#[derive(Clone, Copy, Debug)]
pub struct DoorLink {
    /// The name of the link.
    pub name: &'static str,
    /// Arguments put before those of the call.
    pub words: &'static [&'static str],
}

/// Text of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// Text for standard output.
    pub out: String,
    /// Text for standard error.
    pub err: String,
    /// Form of weir's report that follows on standard output.
    pub report: Option<RunFormat>,
    /// The exit code.
    pub code: u8,
    /// Files with their text.
    pub files: Vec<PrintedFile>,
}

/// File that a door writes about a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedFile {
    /// Path of the file.
    pub path: String,
    /// Content of the file.
    pub text: String,
    /// The text is rows, which are appended to those of the file.
    pub appends: bool,
}

impl Door {
    /// A door without links.
    pub(crate) const fn new(
        verb: &'static str,
        arguments: &'static str,
        purpose: &'static str,
    ) -> Self {
        Self {
            verb,
            arguments,
            purpose,
            links: &[],
            flags: &[],
            measures: None,
            words: None,
        }
    }

    /// The door's arguments as a clap command, named like its verb.
    pub fn command(&self) -> Command {
        let command = match (self.words, &self.measures) {
            (Some(words), _) => words(),
            (None, Some(measures)) => args::command(self, measures),
            (None, None) => command(self.verb, self.flags).about(self.purpose),
        };
        command.name(self.verb).no_binary_name(false)
    }

    /// The doors that print results, which are those that write plans.
    pub fn printing() -> Vec<&'static str> {
        let printing = DOORS.iter().filter(|door| door.prints());
        printing.map(|door| door.verb).collect()
    }

    /// True if the door prints results.
    pub fn prints(&self) -> bool {
        self.measures.is_some() || !self.flags.is_empty()
    }
}

impl Measures {
    /// A door without a peer, read in the manner of the house.
    pub const fn new(read: ReadRequest) -> Self {
        Self {
            manner: Manner::House(None),
            read,
            print: None,
            observe: None,
            peers_form: |_| None,
            peer_formats: &[],
            variables: |_| Ok(None),
            names_jobs: true,
            peer_code: |refusal, _, _| refusal.code,
            without: &[],
            takes_options: false,
            help: "",
            examples: &[],
        }
    }
}

impl Getopt {
    /// Names written out, letters alone, no operands, refusals of several lines.
    pub(crate) const fn new(refuse: fn(&str) -> Refusal, help: fn() -> String) -> Self {
        Self {
            abbreviates: |_| false,
            alias: |_| None,
            letters_stand_together: false,
            takes_any_value: false,
            is_one_line: false,
            wrong_value: |flag, value, why| Some(too_small(flag, value).unwrap_or(why)),
            operand: |word, _| {
                Err(format!(
                    "stray word `{word}`: every option begins with a dash"
                ))
            },
            refuse,
            help,
        }
    }
}

/// Reason against a number below the range of its flag.
fn too_small(flag: &Flag, value: &str) -> Option<String> {
    let Takes::Whole(min, max) = flag.takes else {
        return None;
    };
    let name = flag.spelling();
    let is_below = value.parse::<i64>().is_ok_and(|n| n < min);
    is_below.then(|| format!("{name} must be >= {min} (a whole number from {min} to {max})"))
}

impl DoorLink {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, words: &[] }
    }
}
