//! The door of effective bandwidth: `HPCC_FPGA`'s command line, text and JSON.
//!
//! In: the arguments after `weir beff`, or after a link with a peer's name. Out: a
//! [`Request`](crate::Request); from a result the texts of [`output`] and the exit code. House words
//! stay out of what is printed in the peer's formats.

mod baseline;
mod card;
pub(crate) mod comm;
mod device;
mod exit;
mod flags;
mod inject;
pub mod output;
mod plan;
mod request;
mod schedule;
mod setting_flags;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use weir_schema::{ExchangeWorkload, Job, Plan, RunResult, Workload};

use crate::door::{Door, DoorLink, Getopt, Manner, Measures, Printed, PrintedFile};
use crate::given::Given;
use crate::machine::Machine;
use crate::refusal::Refusal;

pub use baseline::Baseline;
pub use exit::{complaints, exit_code};
pub use flags::FLAGS;
pub use schedule::LoopSchedule;
pub use setting_flags::in_flags;

/// The door; its links have the names of the benchmark, built for one kind of device or the other,
/// and of its functional test.
pub const DOOR: Door = Door {
    links: &[
        DoorLink::new("Network_intel"),
        DoorLink::new("Network_xilinx"),
        DoorLink::new("fnet"),
        DoorLink {
            name: "Network_test_intel",
            words: &["--selftest"],
        },
    ],
    flags: FLAGS,
    measures: Some(Measures {
        manner: Manner::Getopt(&Getopt::new(refuse, || {
            DOOR.command().render_help().to_string()
        })),
        print: Some(print),
        names_jobs: false,
        peers_form,
        without: &["ranks", "rank-timeout", "percentiles", "no-latency"],
        help: include_str!("help.md"),
        examples: &[
            "weir beff --ranks 2 -u 64 -l 8 -m 16",
            "weir beff --ranks 1 --comm-type file -u 5 -l 5 --min-size 6 -m 8",
            "weir beff --ranks 2 -u 64 -l 8 -m 10 --format table --model fit",
            "weir beff --model 520n --test",
            "weir beff --list-comm",
        ],
        ..Measures::new(request::read)
    }),
    ..Door::new(
        "beff",
        "[OPTIONS]",
        "effective bandwidth between ranks, as HPCC_FPGA b_eff measures it",
    )
};

/// A refusal, which the peer begins with a sentence of its own. Known options that are not supported have a message of their own.
fn refuse(why: &str) -> Refusal {
    if let Some((name, _)) = why
        .strip_prefix("no option `--accl-")
        .and_then(|rest| rest.split_once('`'))
    {
        return Refusal::usage(format!(
            "--accl-{name}: comm-type ACCL is not available in this build"
        ));
    }
    if why.starts_with("--") && why.contains(" is not available: ") {
        return Refusal::usage(why);
    }
    let peer = format!("error: Input parameters could not be parsed! {why}");
    Refusal::usage(why).by_peer(peer)
}

/// Flag of a form or of figures that the report of weir does not have: the door's own text is
/// printed in either voice.
fn peers_form(given: &Given) -> Option<&'static str> {
    const FLAGS: &[&str] = &[
        "format",
        "text-compat",
        "line-rate",
        "quiet",
        "model",
        "simulate",
        "baseline",
        "pcie-read",
        "pcie-write",
        "pcie-reverse",
        "kernel-latency",
    ];
    let dumped = given.is("dump-json", "-").then_some("dump-json");
    let named = FLAGS.iter().copied().find(|flag| given.has(flag));
    named.or(dumped)
}

/// The peer's text of a result, and the file of `--dump-json`.
fn print(result: &RunResult, given: &Given, machine: &dyn Machine) -> Result<Printed, Refusal> {
    let options = request::options(given, machine)?;
    let file = options.dump_json.as_ref().map(|path| PrintedFile {
        path: path.clone(),
        text: output::dump(result, &options).unwrap_or_default(),
        appends: false,
    });
    Ok(Printed {
        out: output::stdout(result, &options).unwrap_or_default(),
        err: complaints(result),
        code: exit_code(result),
        files: file.into_iter().collect(),
        ..Printed::default()
    })
}

/// Display of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct BeffOptions {
    /// Format on standard output.
    pub format: BeffFormat,
    /// JSON with the types of `HPCC_FPGA` 1.3, without weir's keys.
    pub hpcc_json: bool,
    /// Headings of version 1.2.
    pub text_1_2: bool,
    /// File that gets the JSON.
    pub dump_json: Option<String>,
    /// Rate that counts as 100 %.
    pub line_rate_bits_per_s: Option<f64>,
    /// Only the table and the lines after it.
    pub quiet: bool,
    /// Ranks that a model predicts.
    pub simulate: Option<u32>,
    /// Stored result to compare with.
    pub baseline: Option<Baseline>,
}

impl BeffOptions {
    /// A form, and nothing else that differs from the default.
    pub const fn of(format: BeffFormat) -> Self {
        Self {
            format,
            hpcc_json: false,
            text_1_2: false,
            dump_json: None,
            line_rate_bits_per_s: None,
            quiet: false,
            simulate: None,
            baseline: None,
        }
    }
}

/// Format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeffFormat {
    /// The peer's text.
    Text,
    /// weir's own table.
    Table,
    /// JSON as `--dump-json` stores it.
    Json,
    /// Comma-separated values.
    Csv,
    /// A table in Markdown.
    Markdown,
}

/// The exchange that the door speaks of: the first one of a plan, and its place among the jobs.
fn first_exchange(plan: &Plan) -> Option<(usize, &Job, &ExchangeWorkload)> {
    let jobs = plan.jobs().map(|(_, job)| job).enumerate();
    let mut exchanges = jobs.filter_map(|(place, job)| match &job.workload {
        Workload::Exchange(work) => Some((place, job, work.as_ref())),
        _ => None,
    });
    exchanges.next()
}
