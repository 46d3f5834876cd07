//! `weir selftest`, also reached by a link named `self_test`: requests to servers and their replies, with
//! the arguments and the text of the `self_test` of `CaRT`.
//!
//! In: arguments, the machine, stored samples. Out: a [`Request`](crate::Request); from a result the texts of
//! [`output`] and the exit code. Spec: RPC self-test, 1 to 5 and 8.2. Not here: servers, transports,
//! running a plan.

mod cart;
mod contradictions;
mod endpoints;
mod exit;
mod flags;
mod further;
mod grammar;
mod head;
mod messages;
pub mod output;
mod plan;
mod print;
mod rate_search;
mod rate_table;
mod request;
mod rows;
pub mod samples;
mod sizes;
mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod values;
mod variables;

use std::path::Path;

pub use exit::{exit_code, in_style_of};
pub use flags::FLAGS;
pub use rate_search::{RateGoal, RateSearch};
pub use sizes::MessagePair;
pub use variables::{LogLevel, LogSettings, TableDirectory, log_settings};
pub(crate) use variables::{UsedVariables, table_file};

use head::HeadFacts;

use crate::door::{Door, DoorLink, Getopt, Manner, Measures};
use crate::given::{Given, GivenFlags};
use crate::house::RunOptions;
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    links: &[DoorLink::new("self_test")],
    flags: FLAGS,
    measures: Some(Measures {
        manner: Manner::Getopt(&Getopt {
            // Older versions' own names are none that others could be short for.
            abbreviates: |flag| {
                flag.category == flags::REFERENCE && !["singleton", "nopmix"].contains(&flag.name)
            },
            letters_stand_together: true,
            takes_any_value: true,
            is_one_line: true,
            operand: stray,
            wrong_value: values::peers_reason,
            ..Getopt::new(
                |why| Refusal::usage(why),
                || DOOR.command().render_help().to_string(),
            )
        }),
        print: Some(|result, given, machine| Ok(print::print(result, given, machine))),
        observe: Some(print::observer),
        peers_form: |given| peers_form(given),
        variables: exit::variables,
        peer_code: |refusal, call, machine| exit::peer_code(refusal.code, call, machine),
        names_jobs: false,
        without: &["ranks", "rank-timeout", "no-latency"],
        help: include_str!("help.md"),
        examples: &[
            "weir selftest --loopback -e 0:0-2 -s 0,b1m -r 1000",
            "weir selftest --loopback -e 0:0 -s 0 -i 1 --percentiles 90,99,99.9",
            "weir selftest --loopback -e 0:0-2 -s b4k -r 100 --matrix --voice peer",
            "weir selftest --transport null -e 0:0 -s 0 --output json-cart",
        ],
        ..Measures::new(request::read)
    }),
    ..Door::new(
        "selftest",
        "[OPTIONS]",
        "RPCs to servers and their replies, as self_test of CaRT measures them",
    )
};

/// Refuses an argument that is no option, nor the value of one.
fn stray(word: &str, given: &Given) -> Result<(), String> {
    let is_size = word.starts_with(|c: char| c.is_ascii_digit() || "(eibEIB".contains(c))
        && word.contains(|c: char| c.is_ascii_digit() || c == '(');
    let is_plan = Path::new(word).extension().is_some_and(|end| end == "json");
    let help = if is_plan {
        format!("`weir run {word}` runs a stored plan, `weir show {word}` prints a result")
    } else if is_size && given.has("message-sizes") {
        "message sizes are one word, in quotes: -s \"(0 0) (b1m 0)\"".to_owned()
    } else {
        "`weir selftest --help` lists the options".to_owned()
    };
    Err(format!("`{word}` is no option; {help}"))
}

/// The flag that asks for a form of the peer's text, which is printed in either voice.
fn peers_form(given: &GivenFlags) -> Option<&'static str> {
    let mut flags = given.iter().map(|(flag, _)| flag);
    flags.find(|flag| flag.prints).map(|flag| flag.name)
}

/// The refusal of an option's value.
fn refuse(name: &str, value: &str, why: &str) -> Refusal {
    let gap = if value.is_empty() { "" } else { " " };
    Refusal::usage(format!("--{name}{gap}{value}: {why}"))
}

/// Options of the text of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTestOptions {
    /// The form.
    pub format: SelfTestFormat,
    /// Bandwidth in 10^6 bit/s.
    pub is_mbits: bool,
    /// Of latencies in the text.
    pub unit: TimeUnit,
    /// Further lines for these.
    pub percentiles: Vec<f64>,
    /// Further lines: transport, in flight, CPU.
    pub is_verbose: bool,
    /// The rate is searched for that keeps this.
    pub goal: Option<RateGoal>,
    /// Facts for the lines before the results.
    pub head: HeadFacts,
}

/// Form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTestFormat {
    /// As `self_test` prints it.
    Text,
    /// The whole result.
    Json,
    /// As `daos health net-test -j` prints it.
    CartJson,
    /// A row for each master, and for each of its endpoints.
    Csv,
    /// Metrics for a server that collects them.
    Prometheus,
}

/// The unit of latencies in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Whole microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// Microseconds, with decimals where the median is short.
    Auto,
}

impl SelfTestOptions {
    /// Options that these arguments ask for.
    pub fn read(given: &Given) -> Self {
        let percentiles = RunOptions::read(given).percentiles.unwrap_or_default();
        let mut percentiles: Vec<f64> = percentiles.iter().map(|percent| percent.0).collect();
        percentiles.sort_by(f64::total_cmp);
        percentiles.dedup();
        Self {
            format: match given.text("output") {
                Some("json") => SelfTestFormat::Json,
                Some("json-cart") => SelfTestFormat::CartJson,
                Some("csv") => SelfTestFormat::Csv,
                Some("prom") => SelfTestFormat::Prometheus,
                _ => SelfTestFormat::Text,
            },
            is_mbits: given.has("Mbits"),
            unit: match given.text("time-unit") {
                Some("ns") => TimeUnit::Nanos,
                Some("auto") => TimeUnit::Auto,
                _ => TimeUnit::Micros,
            },
            percentiles,
            is_verbose: given.has("verbose"),
            goal: given.parsed("find-max", |text| {
                rate_search::goal(text, given.is("arrival", "poisson"))
            }),
            head: HeadFacts::read(given),
        }
    }
}
