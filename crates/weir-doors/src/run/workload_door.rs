//! Doors that ask for one job: their own flags, and those of this door that hold for any job.
//!
//! In: a door and the words after its verb. Out: what the words ask for, as of `weir run`.

use clap::{ArgMatches, Command};
use weir_schema::Plan;

use super::{
    Action, FLAGS, HELP, Input, RunOptions, parse, run_of, shown_by, usage_line, with_usage,
};
use crate::door::{Door, WorkloadDoor};
use crate::flags::{Flag, command};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// The flags of this door that one for a single job has too.
const OF_EVERY_JOB: &[&str] = &[
    "ranks",
    "timeout",
    "show-plan",
    "store-result",
    "history",
    "format",
    "output",
    "append",
    "percentiles",
    "progress",
    "live",
    "fps",
    "web",
    "web-linger",
    "metrics-file",
    "color",
    "ascii",
    "width",
    "pretty",
    "raw",
    "warnings",
    "strict",
    "no-latency",
];

/// The command that parses the words.
pub(crate) fn workload_builder(door: &crate::Door, workload: &WorkloadDoor) -> Command {
    let shared = FLAGS.iter().filter(|f| OF_EVERY_JOB.contains(&f.name));
    let flags: Vec<Flag> = workload.flags.iter().chain(shared).copied().collect();
    let examples = workload.examples.iter().map(|line| format!("    {line}\n"));
    let exits = HELP.find("Exit codes").and_then(|at| HELP.get(at..));
    let help = format!(
        "Examples:\n{}\n{}",
        examples.collect::<String>(),
        exits.unwrap_or_default()
    );
    command(&format!("weir {}", door.verb), &flags)
        .about(door.purpose)
        .after_help(help)
        .override_usage(usage_line(door))
        .no_binary_name(true)
}

/// The words after the verb of a door that asks for one job.
///
/// # Errors
/// Words that are not understood.
pub fn read_workload(
    door: &Door,
    workload: &WorkloadDoor,
    words: &[String],
) -> Result<Action, Refusal> {
    let action = |matches: &ArgMatches| {
        if let Some(why) = GivenFlags::of_matches(workload.flags, matches).refusal() {
            return Err(Refusal::usage(why));
        }
        let job = (workload.job)(matches).map_err(Refusal::usage)?;
        let command = ["weir", door.verb].into_iter().map(str::to_owned);
        let plan = Plan {
            command: command.chain(words.iter().cloned()).collect(),
            ..Plan::new(door.verb, door.verb, vec![job])
        };
        run_of(matches, Input::Made(Box::new(plan)))
    };
    let builder = workload_builder(door, workload);
    parse(builder, words, action).map_err(|refusal| with_usage(refusal, door))
}

/// How a stored result is shown by the words of such a door.
///
/// # Errors
/// Words that are not understood.
pub fn read_workload_options(
    door: &Door,
    workload: &WorkloadDoor,
    words: &[String],
) -> Result<RunOptions, Refusal> {
    let builder = workload_builder(door, workload);
    shown_by(builder, words).map_err(|refusal| with_usage(refusal, door))
}
