//! What a door is: its names, its way from words to a plan, its way from a result to text.
//!
//! In: nothing. Out: the records in [`crate::DOORS`], from which verbs, links, help and `weir show`
//! are made. A door whose plan needs nothing of this machine has a [`DoorPath`], and the program
//! carries it out without knowing it; one that asks for a job of one workload is a [`WorkloadDoor`]
//! and has no other code of its own. Not here: what is done with a plan.

use clap::{ArgMatches, Command};
use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{Job, Plan, RunResult};

use crate::DOORS;
use crate::flags::{Flag, command};
use crate::refusal::Refusal;
use crate::run;

/// A door.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    /// The sub-command.
    pub verb: &'static str,
    /// What follows it, for the list of verbs.
    pub arguments: &'static str,
    /// What it is for, in a few words.
    pub purpose: &'static str,
    /// Links to the program that are this door.
    pub links: &'static [DoorLink],
    /// Its flags, where it prints results: `weir show` takes those that choose how.
    pub printing: &'static [Flag],
    /// From words to a plan and from a result to text, where that needs nothing else.
    pub path: Option<DoorPath>,
    /// Its words ask for a job of one workload; all else is as `weir run` does it.
    pub workload: Option<WorkloadDoor>,
    /// Its words as a clap command, also where something else parses them: what its page of the
    /// manual and its completions are made from. That of its printing flags where absent.
    pub words: Option<fn() -> Command>,
}

/// A door whose words ask for one job. Ranks, progress, report and stored results have the flags and
/// the form of `weir run`.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadDoor {
    /// What its own flags are.
    pub flags: &'static [Flag],
    /// The job that they ask for; else what is wrong with a value, and what it takes.
    pub job: fn(&ArgMatches) -> Result<Job, String>,
    /// Command lines to begin with, for the help text.
    pub examples: &'static [&'static str],
}

/// A link to the program that stands for a door.
#[derive(Clone, Copy, Debug)]
pub struct DoorLink {
    /// The name of the link.
    pub name: &'static str,
    /// Words that go before those it is called with.
    pub words: &'static [&'static str],
}

/// From the words after a verb to what they ask for, for so many ranks of a launcher, over the
/// transports of this build.
pub type ReadWords =
    fn(&[String], Option<u32>, &TransportCatalogue) -> Result<DoorRequest, Refusal>;

/// From a result, and the words that led to it, to what is printed.
pub type PrintResult = fn(&RunResult, &[String], &TransportCatalogue) -> Result<Printed, Refusal>;

/// The way through a door.
#[derive(Clone, Copy, Debug)]
pub struct DoorPath {
    /// What the words after the verb ask for.
    pub read: ReadWords,
    /// What is printed of a result that the same words led to.
    pub print: PrintResult,
}

/// What words ask for.
#[derive(Clone, Debug)]
pub enum DoorRequest {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Carry a plan out.
    Measure {
        /// The plan, with the door's verb and its words, by which `weir show` prints the result again.
        plan: Box<Plan>,
        /// The file that gets the result.
        store: Option<String>,
        /// The history that keeps it, or `off`, where the words say so.
        history: Option<String>,
    },
}

/// What is printed of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// On standard output.
    pub out: String,
    /// On standard error.
    pub err: String,
    /// The exit code.
    pub code: u8,
}

impl Door {
    /// One without links.
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
            printing: &[],
            path: None,
            workload: None,
            words: None,
        }
    }

    /// One of a workload.
    pub const fn of_workload(
        verb: &'static str,
        purpose: &'static str,
        workload: WorkloadDoor,
    ) -> Self {
        Self {
            workload: Some(workload),
            printing: run::FLAGS,
            ..Self::new(verb, "[OPTIONS]", purpose)
        }
    }

    /// Its words as a clap command, named like its verb.
    pub fn command(&self) -> Command {
        let command = match (self.words, &self.workload) {
            (Some(words), _) => words(),
            (None, Some(workload)) => run::workload_builder(self, workload),
            (None, None) => command(self.verb, self.printing).about(self.purpose),
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
        !self.printing.is_empty()
    }
}

impl DoorLink {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, words: &[] }
    }
}
