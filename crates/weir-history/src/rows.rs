//! Rows of the tables as plain data.
//!
//! In: rows of the database. Out: values. Not here: which rows.

use std::collections::BTreeMap;

use rusqlite::Row;
use weir_units::Nanos;

use crate::entry::MetricRow;

/// A run without its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// Start, since 1970.
    pub started_ns: u64,
    /// Duration.
    pub duration_ns: Nanos,
    /// The row of its plan.
    pub plan_id: i64,
    /// The row of its machine.
    pub machine_id: i64,
    /// Name of its plan.
    pub plan_name: String,
    /// The plan's fingerprint.
    pub plan_fingerprint: String,
    /// Name of its machine.
    pub machine_name: String,
    /// The door it came through.
    pub verb: String,
    /// A name that people gave it.
    pub label: Option<String>,
    /// Note of the user.
    pub note: Option<String>,
    /// File that it was imported from.
    pub source: Option<String>,
    /// Version of weir that made it.
    pub weir_version: String,
    /// It came to its end.
    pub complete: bool,
    /// Exit code.
    pub exit_code: u8,
    /// Ids of what spoils it.
    pub warnings: Vec<String>,
    /// Tags of the user.
    pub tags: BTreeMap<String, String>,
}

/// A figure over the runs of one plan on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesKey {
    /// The row of the plan.
    pub plan_id: i64,
    /// The row of the machine.
    pub machine_id: i64,
    /// The job.
    pub job: String,
    /// The kind of operation; empty where it is of none.
    pub kind: String,
    /// The figure.
    pub name: String,
}

/// Columns of a [`RunRow`]; `run`, `plan` and `machine` are joined.
pub(crate) const RUN_COLUMNS: &str = "run.id, run.started_ns, run.duration_ns, run.plan_id, \
    run.machine_id, plan.name, plan.fingerprint, \
    coalesce(machine.facts ->> 'name', machine.facts ->> 'hostname', substr(machine.key, 1, 8)), \
    run.verb, run.label, run.note, run.source, run.weir_version, run.complete, run.exit_code, \
    run.warnings, (SELECT json_group_object(key, value) FROM tag WHERE run_id = run.id)";

/// The tables that they come from.
pub(crate) const RUN_TABLES: &str =
    "run JOIN plan ON plan.id = run.plan_id JOIN machine ON machine.id = run.machine_id";

/// Warnings that say that something else than the plan was measured: such runs make no series.
const SPOILING: &[&str] = &[
    "cpu-shared",
    "cpu-steal",
    "device-shared",
    "generator-limited",
];

/// Reason that a run says nothing about others, if so.
pub(crate) fn spoiled_by(complete: bool, exit_code: u8, warnings: &[String]) -> Option<String> {
    if !complete {
        return Some("incomplete".to_owned());
    }
    if exit_code != 0 {
        return Some("failed".to_owned());
    }
    warnings
        .iter()
        .find(|id| SPOILING.contains(&id.as_str()))
        .cloned()
}

pub(crate) fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: row.get(0)?,
        started_ns: unsigned(row, 1)?,
        duration_ns: Nanos(unsigned(row, 2)?),
        plan_id: row.get(3)?,
        machine_id: row.get(4)?,
        plan_name: row.get(5)?,
        plan_fingerprint: row.get(6)?,
        machine_name: row.get(7)?,
        verb: row.get(8)?,
        label: row.get(9)?,
        note: row.get(10)?,
        source: row.get(11)?,
        weir_version: row.get(12)?,
        complete: row.get(13)?,
        exit_code: row.get(14)?,
        warnings: words(&row.get::<_, String>(15)?),
        tags: serde_json::from_str(&row.get::<_, String>(16)?).unwrap_or_default(),
    })
}

/// From columns `job, kind, name, value, low, high, unit, better, few`.
pub(crate) fn metric_row(row: &Row<'_>) -> rusqlite::Result<MetricRow> {
    let (low, high): (Option<f64>, Option<f64>) = (row.get(4)?, row.get(5)?);
    Ok(MetricRow {
        job: row.get(0)?,
        kind: row.get(1)?,
        name: row.get(2)?,
        value: row.get(3)?,
        interval: low.zip(high),
        unit: row.get(6)?,
        better: row.get(7)?,
        is_of_few: row.get(8)?,
    })
}

/// Counts and times fit into what the database has.
pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.max(0).cast_unsigned())
}

/// The other way; what does not fit is the largest that does.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Ids with blanks between them.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
