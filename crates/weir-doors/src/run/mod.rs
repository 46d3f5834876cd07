//! `weir run [flags] ARG…`: job files, one stored plan, or files and devices.
//!
//! In: the arguments after `run`. Out: a [`Request`], or a [`Refusal`] with exit code 2. Every option
//! of the job language is a flag: of the jobs of targets, and over those of job files.

mod arguments;
mod examples;
mod flags;
mod stored_plan;
#[cfg(test)]
mod tests;

use weir_schema::TargetsPerRank;

pub use flags::FLAGS;
pub use stored_plan::check_stored;

use crate::args;
use crate::door::{Door, Manner, Measures, Operands};
use crate::examples::{LIST, list};
use crate::given::{Given, idle_beside};
use crate::house::Run;
use crate::machine::Machine;
use crate::refusal::Refusal;
use crate::request::{Action, Request, Tool};

/// The house door.
pub const DOOR: Door = Door {
    flags: FLAGS,
    measures: Some(Measures {
        manner: Manner::House(Some(Operands {
            name: "FILE",
            help: "Job files, or one stored plan (*.json), or devices and files to be read or written; \
                   `-` reads a job file from standard input",
        })),
        takes_options: true,
        help: include_str!("help.md"),
        examples: &[
            "weir run --example first",
            "weir run --bs=64k --runtime=5 --output first.json examples/first.fio",
            "weir run --rw=randread --bs=4k --direct=1 /dev/nvme0n1",
            "weir run --rw=write --bs=1m --size=1g --destroy data data",
            "weir run --repeat 10 --pause 2 --store-result runs.json examples/first.fio",
            "mpirun -n 4 weir run --per-rank split examples/first.fio",
        ],
        ..Measures::new(request)
    }),
    ..Door::new(
        "run",
        "FILE…",
        "run job files, a stored plan or a load on devices and files, report what was measured",
    )
};

/// The request of these arguments.
fn request(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    if given.has("calibrate") {
        refuse_all_beside(given, "calibrate", "--calibrate")?;
        return Ok(Request::new(Action::Tool(Tool::Calibrate)));
    }
    if given.is("example", LIST) {
        refuse_all_beside(given, "example", "--example list")?;
        return Ok(Request::print(list(examples::EXAMPLES)));
    }
    let mut request = Request::new(Action::Measure(arguments::input(given, machine)?));
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

/// Refuses all arguments beside a flag that needs none.
fn refuse_all_beside(given: &Given, flag: &str, mode: &str) -> Result<(), Refusal> {
    given.refuse_beside(mode, &[flag])?;
    let operand = given.operands.first();
    operand.map_or(Ok(()), |other| Err(idle_beside(other, mode)))
}
