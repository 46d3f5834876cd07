//! The door of effective bandwidth: `HPCC_FPGA`'s command line, text and JSON.
//!
//! In: the words after `weir beff`, or after a link with a peer's name. Out: an [`Action`]; from
//! a result the texts of [`output`] and the exit code. House words stay out of what is printed
//! in the peer's formats.

mod argv;
mod baseline;
mod card;
pub(crate) mod comm;
mod device;
mod exit;
mod flags;
mod help;
mod inject;
pub mod output;
mod plan;
mod request;
mod schedule;
mod setting_flags;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use weir_schema::{ExchangeWorkload, Job, Plan, Warning, Workload};

use crate::door::{Door, DoorLink};

pub use baseline::Baseline;
pub use exit::{complaints, exit_code};
pub use flags::FLAGS;
pub use help::HELP;
pub use request::{BeffEnvironment, read};
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
    words: Some(help::words),
    ..Door::new(
        "beff",
        "…",
        "effective bandwidth between ranks, as HPCC_FPGA b_eff measures it",
    )
};

/// What the words ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Test the door and its transports, after a note where a word has no meaning there.
    SelfTest(Option<String>),
    /// A run, or what stands for it.
    Run(Box<BeffRun>),
}

/// What is run, and how it is shown.
#[derive(Clone, Debug)]
pub struct BeffRun {
    /// Ranks and one job.
    pub plan: Plan,
    /// How it is shown.
    pub options: BeffOptions,
    /// What is done with it.
    pub mode: BeffMode,
    /// Warnings that the words gave rise to.
    pub warnings: Vec<Warning>,
    /// Notes for standard error.
    pub notes: Vec<String>,
    /// Made-up devices by rank, where asked for.
    pub devices: Option<Vec<u32>>,
    /// File of the result to compare with, which becomes [`BeffOptions::baseline`].
    pub baseline: Option<String>,
}

/// What is done with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeffMode {
    /// It is run.
    Run,
    /// Its configuration, and what a model predicts, are shown.
    Test,
    /// It is printed.
    ShowPlan,
}

/// How a result is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct BeffOptions {
    /// On standard output.
    pub format: BeffFormat,
    /// JSON with the types of `HPCC_FPGA` 1.3, without weir's keys.
    pub hpcc_json: bool,
    /// Headings of version 1.2.
    pub text_1_2: bool,
    /// File that gets the JSON.
    pub dump_json: Option<String>,
    /// File that gets the whole result.
    pub store: Option<String>,
    /// What percentages are of.
    pub line_rate_bits_per_s: Option<f64>,
    /// Only the table and what follows from it.
    pub quiet: bool,
    /// Ranks that a model predicts.
    pub simulate: Option<u32>,
    /// What the result is compared with.
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
            store: None,
            line_rate_bits_per_s: None,
            quiet: false,
            simulate: None,
            baseline: None,
        }
    }
}

/// The form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeffFormat {
    /// As the peer prints it.
    Text,
    /// weir's own table.
    Table,
    /// As `--dump-json` stores it.
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
