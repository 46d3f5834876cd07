//! Runs that a word names: the beginning of an id, `@-1`, `label:NAME`, `baseline`.
//!
//! In: a word. Out: ids, results, figures. Not here: files of the same name, which win.

use rusqlite::{OptionalExtension as _, Params};

use crate::entry::MetricRow;
use crate::error::HistoryError;
use crate::open::History;
use crate::rows::{RUN_COLUMNS, RUN_TABLES, RunRow, metric_row, run_row};
use crate::ulid::{is_id_prefix, is_short_id};

/// A label names so many runs, the newest.
const MOST_OF_A_LABEL: u32 = 100;
/// Largest number of ids listed where one was meant.
const LISTED: usize = 4;

/// Name of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunName {
    /// The beginning of an id.
    Id(String),
    /// The n-th last run.
    Last(u32),
    /// All runs of a label.
    Label(String),
    /// The baseline of what ran last.
    Baseline,
}

impl RunName {
    /// Parses a word as the name of a run; nothing where it is none.
    pub fn of(word: &str) -> Option<Self> {
        if let Some(label) = word.strip_prefix("label:").filter(|l| !l.is_empty()) {
            return Some(Self::Label(label.to_owned()));
        }
        if let Some(back) = word.strip_prefix("@-") {
            let back = back.parse().ok().filter(|back| *back > 0);
            return back.map(Self::Last);
        }
        if word == "baseline" {
            return Some(Self::Baseline);
        }
        is_id_prefix(word).then(|| Self::Id(word.to_ascii_uppercase()))
    }
}

impl History {
    /// The ids of the runs that a word names, oldest first; one but for labels.
    ///
    /// # Errors
    /// No such run, several whose ids begin so, too few characters of an id, no name of a run.
    pub fn resolve(&self, word: &str) -> Result<Vec<String>, HistoryError> {
        let none = || HistoryError::NoRun {
            given: word.to_owned(),
            path: self.path.clone(),
        };
        if is_short_id(word) {
            return Err(HistoryError::TooShort {
                given: word.to_owned(),
            });
        }
        let ids = match RunName::of(word).ok_or_else(none)? {
            RunName::Id(prefix) => self.of_prefix(word, &prefix)?,
            RunName::Last(back) => self.ids(
                "SELECT id FROM run ORDER BY started_ns DESC, id DESC LIMIT 1 OFFSET ?1",
                [back - 1],
            )?,
            RunName::Label(label) => {
                let mut ids = self.ids(
                    "SELECT id FROM run WHERE label = ?1 ORDER BY started_ns DESC LIMIT ?2",
                    (label, MOST_OF_A_LABEL),
                )?;
                ids.reverse();
                ids
            }
            RunName::Baseline => self.ids(
                "SELECT baseline.run_id FROM baseline JOIN run USING(plan_id, machine_id)
                 WHERE run.id = (SELECT id FROM run ORDER BY started_ns DESC, id DESC LIMIT 1)",
                [],
            )?,
        };
        if ids.is_empty() { Err(none()) } else { Ok(ids) }
    }

    fn of_prefix(&self, word: &str, prefix: &str) -> Result<Vec<String>, HistoryError> {
        // Every character of an id is below `_`.
        let ids = self.ids(
            "SELECT id FROM run WHERE id >= ?1 AND id < ?1 || '_' ORDER BY id",
            [prefix],
        )?;
        if ids.len() > 1 {
            let some: Vec<&str> = ids.iter().rev().take(LISTED).map(String::as_str).collect();
            let more = if ids.len() > LISTED { ", …" } else { "" };
            return Err(HistoryError::Ambiguous {
                given: word.to_owned(),
                count: ids.len(),
                some: some.join(", ") + more,
            });
        }
        Ok(ids)
    }

    fn ids(&self, sql: &str, parameters: impl Params) -> Result<Vec<String>, HistoryError> {
        self.all(sql, parameters, |row| row.get(0))
    }

    /// All rows of a query.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, HistoryError> {
        let rows = self.connection.prepare(sql).and_then(|mut query| {
            let rows = query.query_map(parameters, row)?;
            rows.collect::<rusqlite::Result<Vec<T>>>()
        });
        rows.map_err(|e| self.said(e))
    }

    /// A result as it was stored: JSON of a run, or of several.
    ///
    /// # Errors
    /// It was pruned.
    pub fn json(&self, id: &str) -> Result<String, HistoryError> {
        let sql = "SELECT json FROM result WHERE run_id = ?1";
        let found: Option<Vec<u8>> = self
            .connection
            .query_row(sql, [id], |row| row.get(0))
            .optional()
            .map_err(|e| self.said(e))?;
        let bytes = found.ok_or_else(|| HistoryError::Pruned(id.to_owned()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A run without its result.
    ///
    /// # Errors
    /// There is none.
    pub fn run(&self, id: &str) -> Result<RunRow, HistoryError> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM {RUN_TABLES} WHERE run.id = ?1");
        let mut rows = self.all(&sql, [id], run_row)?;
        rows.pop().ok_or_else(|| HistoryError::NoRun {
            given: id.to_owned(),
            path: self.path.clone(),
        })
    }

    /// The figures of a run, by job, kind and name.
    ///
    /// # Errors
    /// The database's error.
    pub fn metrics(&self, id: &str) -> Result<Vec<MetricRow>, HistoryError> {
        self.all(
            "SELECT job, kind, name, value, low, high, unit, better, few FROM metric
             WHERE run_id = ?1",
            [id],
            metric_row,
        )
    }

    /// The runs that are baselines.
    ///
    /// # Errors
    /// The database's error.
    pub fn baselines(&self) -> Result<Vec<RunRow>, HistoryError> {
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM {RUN_TABLES}
             WHERE run.id IN (SELECT run_id FROM baseline) ORDER BY plan.name, run.id"
        );
        self.all(&sql, [], run_row)
    }
}
