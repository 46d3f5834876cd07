//! A door as a record: its names, its flags, its way from arguments to a request and from a result
//! to text.
//!
//! In: nothing. Out: the records in [`crate::DOORS`], from which verbs, links, help, manual and
//! `weir show` are made, and which the one driver of the program carries out. Not here: the driver.

use clap::Command;
use weir_schema::RunResult;
pub use weir_schema::Voice;

use crate::DOORS;
use crate::args;
use crate::flags::{Flag, command};
use crate::given::Given;
use crate::house::RunFormat;
use crate::machine::Machine;
use crate::observer::Observer;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::selftest::LogSettings;

/// A door.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    /// The sub-command.
    pub verb: &'static str,
    /// Arguments after the verb, for the list of verbs.
    pub arguments: &'static str,
    /// Purpose in a few words.
    pub purpose: &'static str,
    /// Links to the program that are this door.
    pub links: &'static [DoorLink],
    /// Its own flags, of a door that prints results.
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
    /// How arguments are read.
    pub manner: Manner,
    /// From arguments to a request.
    pub read: ReadRequest,
    /// From a result to the peer's text; `None` where the door has no peer and weir's report is all.
    pub print: Option<PrintMeasured>,
    /// Live text of the peer.
    pub observe: Option<MakeObserver>,
    /// Whether the door's own flags ask for a form of the peer's, which is printed by the verb too.
    pub asks_peer: fn(&Given) -> bool,
    /// From environment variables to their demands on every call.
    pub variables: fn(&dyn Machine) -> Result<CallVariables, Refusal>,
    /// Whether refusals name the job: its user may not know the only job of a plan.
    pub names_jobs: bool,
    /// Flags of the house that this door does not take, since its own do the same.
    pub without: &'static [&'static str],
    /// Sentences after the list of flags in the help text.
    pub help: &'static str,
    /// Command lines to begin with, for the end of the help text.
    pub examples: &'static [&'static str],
}

/// Demands of environment variables on a call.
#[derive(Clone, Debug)]
pub struct CallVariables {
    /// The file that gets what is said on standard error as well.
    pub log: Option<LogSettings>,
    /// The exit code of a refusal that has this one.
    pub refusal_code: fn(u8) -> u8,
}

impl Default for CallVariables {
    fn default() -> Self {
        Self {
            log: None,
            refusal_code: |code| code,
        }
    }
}

/// From arguments to a request.
pub type ReadRequest = fn(&Given, &dyn Machine) -> Result<Request, Refusal>;

/// From a result, and the arguments that led to it, to the peer's text.
pub type PrintMeasured = fn(&RunResult, &Given, &dyn Machine) -> Result<Printed, Refusal>;

/// The live text of a run that these arguments ask for.
pub type MakeObserver = fn(&Given, &dyn Machine) -> Box<dyn Observer>;

/// How a door's arguments are read.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// As weir's own verbs: `--flag value`, `--flag=value`; operands by this name, where there are
    /// any.
    House(Option<Operands>),
    /// As a peer reads them.
    Getopt(&'static Getopt),
}

/// Settings of a reader of a peer's arguments.
#[derive(Clone, Copy, Debug)]
pub struct Getopt {
    /// Whether the name of a flag may be cut short where it alone begins so.
    pub abbreviates: fn(&Flag) -> bool,
    /// The name of the flag that another name stands for.
    pub alias: fn(&str) -> Option<&'static str>,
    /// Whether letters may stand together, `-un`.
    pub letters_stand_together: bool,
    /// Whether the argument after a flag is its value even where it looks like a flag.
    pub takes_any_value: bool,
    /// Whether refusals are one line.
    pub is_one_line: bool,
    /// Takes an argument that is no flag, or says why it is refused.
    pub operand: fn(&str, &Given) -> Result<(), String>,
    /// A refusal in the peer's words.
    pub refuse: fn(&str) -> Refusal,
    /// The page that `--help` prints.
    pub help: fn() -> String,
}

/// Arguments that are no flags.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// Their name in help texts.
    pub name: &'static str,
    /// Their line in help texts.
    pub help: &'static str,
}

/// A link to the program that stands for a door.
#[derive(Clone, Copy, Debug)]
pub struct DoorLink {
    /// The name of the link.
    pub name: &'static str,
    /// Arguments that go before those it is called with.
    pub words: &'static [&'static str],
}

/// Text of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// On standard output.
    pub out: String,
    /// On standard error.
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
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Whether rows are added to those that the file has.
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

    /// Its arguments as a clap command, named like its verb.
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

    /// Whether it prints results.
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
            asks_peer: |_| false,
            variables: |_| Ok(CallVariables::default()),
            names_jobs: true,
            without: &[],
            help: "",
            examples: &[],
        }
    }
}

impl DoorLink {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, words: &[] }
    }
}
