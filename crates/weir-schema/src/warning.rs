//! Warnings as data: what spoils a measurement, with a stable id.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that spoils numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable id, for example `cpu-steal`.
    pub id: String,
    /// The job it concerns; the run as a whole when absent.
    pub job: Option<String>,
    /// One sentence of cause.
    pub cause: String,
    /// One sentence of remedy.
    pub remedy: String,
}

/// Every id that a run can raise.
pub const WARNING_IDS: &[&str] = &[
    "cgroup-limit",
    "clock-fallback",
    "clock-residual",
    "compressible",
    "cpu-frequency",
    "cpu-shared",
    "cpu-steal",
    "device-shared",
    "dump-lost",
    "exchange-bounds",
    "exchange-no-time",
    "exchange-noisy",
    "exchange-short",
    "fault-idle",
    "few-samples",
    "generator-limited",
    "instrument-cost",
    "log",
    "max-time",
    "never-written",
    "not-registered",
    "not-steady",
    "oversubscribed",
    "page-cache",
    "preempted",
    "program-failed",
    "ramp",
    "short-run",
    "slow",
    "unverified",
    "wrong-data",
];

#[cfg(test)]
mod tests {
    use super::WARNING_IDS;

    #[test]
    fn the_book_explains_every_id_in_this_order() {
        let book = include_str!("../../../docs/book/src/how-weir-measures.md");
        let (_, section) = book.split_once("\n## Warnings\n").unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let ids: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
        assert_eq!(ids, WARNING_IDS);
    }
}
