//! `weir run [flags] FILE…`: job files or one stored plan.
//!
//! In: the arguments after `run`. Out: a [`Request`], or a [`Refusal`] with exit code 2. Options of
//! jobs are changed with `--set`; job options as arguments belong to `weir fio`.

mod flags;
mod stored_plan;
#[cfg(test)]
mod tests;

use weir_jobfile::{CompileRequest, Dialect, JobSource};
use weir_schema::TargetsPerRank;

pub use flags::FLAGS;
pub use stored_plan::check_stored;

use crate::args;
use crate::door::{Door, Manner, Measures, Operands};
use crate::given::Given;
use crate::house::{Input, Run, suffix};
use crate::machine::Machine;
use crate::refusal::Refusal;
use crate::request::{Action, Request, Tool};

/// The house door.
pub const DOOR: Door = Door {
    flags: FLAGS,
    measures: Some(Measures {
        manner: Manner::House(Some(Operands {
            name: "FILE",
            help: "Job files, or one stored plan (*.json); `-` reads a job file from standard input",
        })),
        examples: &[
            "weir run examples/first.fio",
            "weir run --set bs=64k --set runtime=5 examples/first.fio",
            "weir run --format json --output first.json examples/first.fio",
            "weir run --show-plan examples/first.fio",
            "weir run --repeat 10 --pause 2 --store-result runs.json examples/first.fio",
            "mpirun -n 4 weir run --per-rank split examples/first.fio",
        ],
        ..Measures::new(request)
    }),
    ..Door::new(
        "run",
        "FILE…",
        "run job files or a stored plan, report what was measured",
    )
};

/// The request of these arguments.
fn request(given: &Given, _: &dyn Machine) -> Result<Request, Refusal> {
    if given.has("calibrate") {
        return calibrate(given);
    }
    let mut request = Request::new(Action::Measure(input(given)?));
    request.targets = match given.text("per-rank") {
        Some("split") => TargetsPerRank::Split,
        Some("shared") => TargetsPerRank::Shared,
        _ => TargetsPerRank::Own,
    };
    Ok(request)
}

/// The run that arguments of this door ask for.
///
/// # Errors
/// Arguments that are not understood, or that ask for no run.
pub fn read_run(args: &[String]) -> Result<Run, Refusal> {
    let given = args::read_given(&DOOR, args)?;
    let request = request(&given, &NoMachine)?;
    match request.action {
        Action::Measure(input) => Ok(Run {
            targets: request.targets,
            ..Run::read(&given, input)?
        }),
        _ => Err(Refusal::usage("these arguments run nothing")),
    }
}

/// Nothing of the machine is asked for.
struct NoMachine;

impl Machine for NoMachine {}

/// It measures the instrument alone, and prints that.
fn calibrate(given: &Given) -> Result<Request, Refusal> {
    let mut flags = given.own.iter().chain(given.house.iter());
    let other = flags.find(|(flag, _)| flag.name != "calibrate");
    let other = other.map(|(flag, _)| flag.spelling());
    match other.or_else(|| given.operands.first().cloned()) {
        None => Ok(Request::new(Action::Tool(Tool::Calibrate))),
        Some(other) => Err(Refusal::usage(format!(
            "--calibrate measures the instrument and nothing else; leave `{other}` out"
        ))),
    }
}

fn input(given: &Given) -> Result<Input, Refusal> {
    let files = given.operands.clone();
    let all = |name| given.all(name).map(str::to_owned).collect::<Vec<_>>();
    let (sets, sections, maps) = (all("set"), all("section"), all("map"));
    let read_only = given.has("readonly");
    let command = given.command();
    if let Some(plan) = files.iter().find(|f| suffix(f) == Some("json")) {
        if files.len() > 1 {
            return Err(Refusal::usage(format!(
                "`{plan}` is a stored plan: it is run alone"
            )));
        }
        if !(sets.is_empty() && sections.is_empty() && maps.is_empty()) {
            return Err(Refusal::usage(format!(
                "--set, --map and --section change job files; `{plan}` is a stored plan"
            )));
        }
        return Ok(Input::Plan {
            path: plan.clone(),
            read_only,
            command,
        });
    }
    if files.is_empty() {
        return Err(Refusal::usage("no job file given"));
    }
    if let Some(bad) = sets.iter().find(|s| !s.contains('=')) {
        return Err(Refusal::usage(format!(
            "--set {bad}: expected [SECTION:]KEY=VALUE"
        )));
    }
    Ok(Input::Jobs(CompileRequest {
        dialect: Dialect::Run,
        command,
        sources: files.into_iter().map(JobSource::File).collect(),
        sets,
        maps,
        sections,
        read_only,
    }))
}
