//! The list of runs: the newest that a filter lets through, each with its main figure.
//!
//! In: a filter. Out: rows, newest first, and the course of the main figure of each plan on each
//! machine. Not here: how they are printed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::OptionalExtension as _;
use rusqlite::types::Value;

use crate::entry::MetricRow;
use crate::error::HistoryError;
use crate::open::History;
use crate::rows::{RUN_COLUMNS, RUN_TABLES, RunRow, SeriesKey, metric_row, run_row, signed};

/// Number of runs in the course of a figure.
const COURSE: u32 = 20;

/// Filter of listed runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Name of the plan, or the beginning of its fingerprint.
    pub plan: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// Name of the machine, or the beginning of its key.
    pub machine: Option<String>,
    /// Not before this, since 1970.
    pub since_ns: Option<u64>,
    /// Tags that all of them have.
    pub tags: Vec<(String, String)>,
    /// The newest so many.
    pub limit: Option<u32>,
}

/// A run and its main figure.
#[derive(Clone, Debug, PartialEq)]
pub struct ListRow {
    /// The run.
    pub run: RunRow,
    /// Its main figure.
    pub main: Option<MetricRow>,
}

/// Runs that were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// Newest first.
    pub rows: Vec<ListRow>,
    /// The main figure of the last runs of a plan on a machine, oldest first.
    pub courses: BTreeMap<(i64, i64), Vec<f64>>,
}

impl History {
    /// The runs that a filter lets through, newest first.
    ///
    /// # Errors
    /// The database's error.
    pub fn runs(&self, filter: &ListFilter) -> Result<Vec<RunRow>, HistoryError> {
        let (conditions, mut values) = conditions(filter);
        values.push(Value::Integer(filter.limit.map_or(-1, i64::from)));
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM {RUN_TABLES} WHERE {conditions}
             ORDER BY run.started_ns DESC, run.id DESC LIMIT ?"
        );
        self.all(&sql, rusqlite::params_from_iter(values), run_row)
    }

    /// Number of runs.
    ///
    /// # Errors
    /// The database's error.
    pub fn count(&self) -> Result<u64, HistoryError> {
        let counted = self.all("SELECT count(*) FROM run", [], |row| {
            crate::rows::unsigned(row, 0)
        })?;
        Ok(counted.first().copied().unwrap_or(0))
    }

    /// The same with main figures and their course.
    ///
    /// # Errors
    /// The database's error.
    pub fn list(&self, filter: &ListFilter) -> Result<Listed, HistoryError> {
        // One look at the database: all rows are of one moment, and its locks are taken once.
        let look = self.connection.unchecked_transaction();
        let look = look.map_err(|e| self.said(e))?;
        let figure = "SELECT job, kind, name, value, low, high, unit, better, few FROM metric
                      WHERE run_id = ?1 AND job = ?2 AND kind = ?3 AND name = ?4";
        let mut figure = look.prepare(figure).map_err(|e| self.said(e))?;
        let mut listed = Listed::default();
        let mut keys: BTreeMap<(i64, i64), Option<SeriesKey>> = BTreeMap::new();
        for run in self.runs(filter)? {
            let of = (run.plan_id, run.machine_id);
            let key = match keys.entry(of) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let main = main_figures(&self.metrics(&run.id)?).into_iter().next();
                    let key = main.map(|row| key_of(&run, &row));
                    if let Some(key) = &key {
                        let course = self.series(key, COURSE)?;
                        let values = course.iter().map(|run| run.value);
                        listed.courses.insert(of, values.collect());
                    }
                    new.insert(key)
                }
            };
            let main = match key {
                Some(key) => {
                    let which = (&run.id, &key.job, &key.kind, &key.name);
                    let row = figure.query_row(which, metric_row).optional();
                    row.map_err(|e| self.said(e))?
                }
                None => None,
            };
            listed.rows.push(ListRow { run, main });
        }
        Ok(listed)
    }
}

/// The series that a figure of a run belongs to.
pub(crate) fn key_of(run: &RunRow, row: &MetricRow) -> SeriesKey {
    SeriesKey {
        plan_id: run.plan_id,
        machine_id: run.machine_id,
        job: row.job.clone(),
        kind: row.kind.clone(),
        name: row.name.clone(),
    }
}

/// The figure of each job that says most: how fast it was.
pub(crate) fn main_figures(rows: &[MetricRow]) -> Vec<MetricRow> {
    let rank = |row: &MetricRow| match row.name.as_str() {
        "rate" => 0,
        "b_eff" => 1,
        "bandwidth" => 2,
        _ if row.better > 0 => 3,
        _ => 4,
    };
    let mut main: Vec<MetricRow> = Vec::new();
    for row in rows {
        match main.iter_mut().find(|m| m.job == row.job) {
            Some(best) if rank(row) < rank(best) => best.clone_from(row),
            Some(_) => {}
            None => main.push(row.clone()),
        }
    }
    main
}

/// The conditions behind WHERE, and their values.
fn conditions(filter: &ListFilter) -> (String, Vec<Value>) {
    let mut conditions = vec!["1".to_owned()];
    let mut values = Vec::new();
    let mut add = |condition: &str, all: Vec<Value>| {
        conditions.push(condition.to_owned());
        values.extend(all);
    };
    let text = |text: &String| Value::Text(text.clone());
    if let Some(plan) = &filter.plan {
        let prefix = Value::Text(format!("{plan}*"));
        let condition = "(plan.name = ? OR length(?) >= 4 AND plan.fingerprint GLOB ?)";
        add(condition, vec![text(plan), text(plan), prefix]);
    }
    if let Some(label) = &filter.label {
        add("run.label = ?", vec![text(label)]);
    }
    if let Some(machine) = &filter.machine {
        let prefix = Value::Text(format!("{machine}*"));
        let condition = "(machine.facts ->> 'name' = ? OR machine.facts ->> 'hostname' = ? \
                         OR length(?) >= 4 AND machine.key GLOB ?)";
        let name = || text(machine);
        add(condition, vec![name(), name(), name(), prefix]);
    }
    if let Some(since) = filter.since_ns {
        add("run.started_ns >= ?", vec![Value::Integer(signed(since))]);
    }
    for (key, value) in &filter.tags {
        let condition =
            "EXISTS (SELECT 1 FROM tag WHERE run_id = run.id AND key = ? AND value = ?)";
        add(condition, vec![text(key), text(value)]);
    }
    (conditions.join(" AND "), values)
}
