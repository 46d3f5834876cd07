//! A result in the emulator's voice: tables of a run, rates of a search, the exit code.
//!
//! In: a result, arguments. Out: text; while the run lasts the table of each iteration that has ended.
//! Not here: the tables themselves (`output`).

use weir_schema::{Announcement, PathSide, Plan, RunResult};

use super::{output, search, verb, work_of};
use crate::door::Printed;
use crate::given::Given;
use crate::house::{RunOptions, exit_code};
use crate::machine::Machine;
use crate::observer::{Observer, Snapshot};
use crate::refusal::Refusal;

/// True if the whole result is printed as JSON.
pub(super) fn is_json(given: &Given) -> bool {
    given.house.is("format", "json")
}

/// Prints a result.
pub(super) fn print(
    result: &RunResult,
    given: &Given,
    _: &dyn Machine,
) -> Result<Printed, Refusal> {
    let options = RunOptions::read(given);
    let search = search::of_words(verb(&given.operands)?, given)?;
    let is_found = search.as_ref().is_none_or(|s| s.has_found_all(result));
    let out = match &search {
        _ if is_json(given) => json(result, options.pretty)?,
        Some(search) => search.text(result),
        None => output::head(&result.plan) + &tables(result, given.has("both"), 0),
    };
    Ok(Printed {
        out,
        err: failures(result),
        code: exit_code(result, &options.strict).max(u8::from(!is_found)),
        ..Printed::default()
    })
}

fn json(result: &RunResult, is_pretty: bool) -> Result<String, Refusal> {
    let text = if is_pretty {
        result.to_pretty_json()
    } else {
        result.to_json()
    };
    Ok(text.map_err(Refusal::usage)? + "\n")
}

/// The tables from an iteration on, and the text after the last one.
fn tables(result: &RunResult, has_server: bool, first: usize) -> String {
    let (Some(work), Some(done)) = (work_of(&result.plan), output::measured(result)) else {
        return String::new();
    };
    let rest = done.iterations.iter().skip(first);
    let rest = rest.map(|one| output::table(one, work, has_server));
    rest.collect::<String>() + &output::ending(done, work)
}

/// Failures of jobs, for standard error.
fn failures(result: &RunResult) -> String {
    let mut out = String::new();
    for job in result.jobs() {
        if let Some(failure) = &job.failure {
            push!(out, "error: {}: {}\n", job.name, failure.message);
        }
    }
    out
}

/// The tables of a run while it lasts.
pub(super) fn observer(given: &Given, machine: &dyn Machine) -> Box<dyn Observer> {
    Box::new(Tables {
        is_json: is_json(given),
        has_server: given.has("both"),
        is_input_held: machine.is_input_held(),
        shown: 0,
    })
}

/// Prints the table of each iteration when it has ended.
#[derive(Debug)]
struct Tables {
    is_json: bool,
    has_server: bool,
    /// Standard input is held open by the program that started this side and waits for READY.
    is_input_held: bool,
    /// Iterations that are printed.
    shown: usize,
}

impl Observer for Tables {
    fn begin(&mut self, plan: &Plan) -> String {
        if self.is_json {
            String::new()
        } else {
            output::head(plan)
        }
    }

    fn announce(&mut self, announcement: &Announcement) -> Option<String> {
        match announcement {
            Announcement::Listening { address } if self.is_input_held => {
                Some(format!("READY {address}\n"))
            }
            _ => None,
        }
    }

    fn look(&mut self, snapshot: &Snapshot<'_>) -> String {
        if self.is_json {
            return String::new();
        }
        let result = (snapshot.result)();
        let Some((work, done)) = work_of(&result.plan).zip(output::measured(&result)) else {
            return String::new();
        };
        // The server's figures come when all is over.
        if work.side == Some(PathSide::Client) && self.has_server {
            return String::new();
        }
        let ended = done.iterations.iter().skip(self.shown);
        self.shown = self.shown.max(done.iterations.len());
        let text = ended.map(|one| output::table(one, work, self.has_server));
        text.collect()
    }

    fn rest(&mut self, result: &RunResult, _: &dyn Machine, mut whole: Printed) -> Printed {
        if !self.is_json {
            whole.out = tables(result, self.has_server, self.shown);
        }
        whole
    }
}
