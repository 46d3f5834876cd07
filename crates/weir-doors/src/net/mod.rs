//! `weir net TEST`: tests of the network between ranks. The test there is, `lat-bw`, measures what
//! the latency and bandwidth part of HPCC measures and prints its lines.
//!
//! In: the arguments after `weir net`. Out: a [`Request`]; from a result the texts of [`output`].
//! Spec: effective bandwidth, 9.

mod exit;
mod flags;
pub mod output;
mod plan;
#[cfg(test)]
mod tests;

use weir_schema::RunResult;

pub use exit::{complaints, exit_code};
pub use flags::FLAGS;
pub use output::NetFormat;

use crate::door::{Door, Manner, Measures, Operands, Printed};
use crate::flags::nearest;
use crate::given::Given;
use crate::machine::Machine;
use crate::refusal::Refusal;
use crate::request::Request;

/// The door.
pub const DOOR: Door = Door {
    flags: FLAGS,
    measures: Some(Measures {
        manner: Manner::House(Some(Operands {
            name: "TEST",
            help: "The test: lat-bw, latency and bandwidth of pairs and rings as HPCC measures them",
        })),
        print: Some(print),
        names_jobs: false,
        without: &["ranks", "rank-timeout"],
        peer_formats: &["text", "json"],
        help: HELP,
        examples: &[
            "weir net lat-bw",
            "weir net lat-bw --ranks 4 --spawn procs --seed 7",
            "weir net lat-bw --min-time 0.001 --voice peer",
            "mpirun -n 4 weir net lat-bw",
        ],
        ..Measures::new(request)
    }),
    ..Door::new(
        "net",
        "TEST",
        "latency and bandwidth of messages between ranks: lat-bw, as HPCC",
    )
};

/// Tests of this build.
const TESTS: &[&str] = &["lat-bw"];
/// Tests that are known by name.
const ABSENT: &[&str] = &["osu", "beff-full"];
/// The method, for the help text.
const HELP: &str = include_str!("help.md");

fn request(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    let list = TESTS.join(", ");
    match given.operands.as_slice() {
        [test] if test == "lat-bw" => {
            let plan = plan::of(given, machine).map_err(Refusal::usage)?;
            let timeout = plan::timeout(&plan);
            let mut request = Request::measure(given, plan);
            request.rank_timeout = timeout;
            Ok(request)
        }
        [] => Err(Refusal::usage(format!(
            "`weir net` needs a test (there is {list})"
        ))),

        [test, ..] if ABSENT.contains(&test.as_str()) => Err(Refusal::usage(format!(
            "`weir net {test}` is not in this build (there is {list})"
        ))),
        [_, stray, ..] => Err(Refusal::usage(format!("stray word `{stray}`"))),
        [test] => {
            let near = nearest(test, TESTS.iter().copied());
            let hint = near.map_or_else(String::new, |near| {
                format!("\n  help: did you mean `weir net {near}`?")
            });
            Err(Refusal::usage(format!(
                "no test `{test}` of the network (there is {list}){hint}"
            )))
        }
    }
}

/// HPCC's lines of a result; with `--format json` its summary as JSON.
#[expect(clippy::unnecessary_wraps, reason = "the form of every door's text")]
fn print(result: &RunResult, given: &Given, _: &dyn Machine) -> Result<Printed, Refusal> {
    let format = match given.house.text("format") {
        Some("json") => NetFormat::Json,
        _ => NetFormat::Text,
    };
    Ok(Printed {
        out: output::stdout(result, format).unwrap_or_default(),
        err: complaints(result),
        code: exit_code(result),
        ..Printed::default()
    })
}
