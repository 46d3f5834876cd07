//! The history as files of other forms, and back.
//!
//! In: which runs. Out: a line of JSON for each, rows of CSV for their figures, or another database;
//! from such lines, entries. Not here: where they are written.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_schema::{RunResult, Runs};

use crate::entry::Entry;
use crate::error::HistoryError;
use crate::list::ListFilter;
use crate::open::History;
use crate::rows::RunRow;
use crate::tables;
use crate::text::date;

/// Filter of the exported runs.
pub type ExportFilter = ListFilter;

/// The form of a line.
const LINE: &str = "weir.history.v1";

/// The columns of CSV.
const COLUMNS: &str = "run_id,time_utc,label,plan,machine,verb,source,weir_version,complete,\
    exit_code,warnings,job,kind,metric,value,low,high,unit,better";

/// A run as a line of JSON.
#[derive(Serialize, Deserialize)]
struct Line {
    schema: String,
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
    exit_code: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    result: Value,
}

/// The first line of CSV.
pub fn csv_header() -> String {
    format!("{COLUMNS}\n")
}

impl History {
    /// A run as a line of JSON, its result in it; nothing where that was pruned.
    ///
    /// # Errors
    /// The database's error.
    pub fn json_line(&self, run: &RunRow) -> Result<Option<String>, HistoryError> {
        let json = match self.json(&run.id) {
            Err(HistoryError::Pruned(_)) => return Ok(None),
            json => json?,
        };
        let form = |why: serde_json::Error| HistoryError::Form {
            place: run.id.clone(),
            why: why.to_string(),
        };
        let names = self.all(
            "SELECT facts ->> 'name' FROM machine WHERE id = ?1",
            [run.machine_id],
            |row| row.get(0),
        )?;
        let line = Line {
            schema: LINE.to_owned(),
            id: run.id.clone(),
            label: run.label.clone(),
            note: run.note.clone(),
            source: run.source.clone(),
            tags: run.tags.clone(),
            exit_code: run.exit_code,
            machine: names.into_iter().next().flatten(),
            result: serde_json::from_str(&json).map_err(form)?,
        };
        let text = serde_json::to_string(&line).map_err(form)?;
        Ok(Some(text + "\n"))
    }

    /// Such lines of all runs, oldest first.
    ///
    /// # Errors
    /// The database's error.
    pub fn json_lines(&self) -> Result<Vec<String>, HistoryError> {
        let mut runs = self.runs(&ListFilter::default())?;
        runs.reverse();
        let lines = runs.iter().map(|run| self.json_line(run).transpose());
        lines.flatten().collect()
    }

    /// A row of CSV for each figure of a run.
    ///
    /// # Errors
    /// The database's error.
    pub fn csv_rows(&self, run: &RunRow) -> Result<String, HistoryError> {
        let mut rows = String::new();
        for metric in self.metrics(&run.id)? {
            let (low, high) = metric.interval.unzip();
            let number = |number: Option<f64>| number.map_or(String::new(), |n| n.to_string());
            let cells = [
                run.id.clone(),
                date(run.started_ns).replacen(' ', "T", 1) + "Z",
                run.label.clone().unwrap_or_default(),
                run.plan_name.clone(),
                run.machine_name.clone(),
                run.verb.clone(),
                run.source.clone().unwrap_or_default(),
                run.weir_version.clone(),
                u8::from(run.complete).to_string(),
                run.exit_code.to_string(),
                run.warnings.join(" "),
                metric.job,
                metric.kind,
                metric.name,
                metric.value.to_string(),
                number(low),
                number(high),
                metric.unit,
                metric.better.to_string(),
            ];
            rows.push_str(&cells.map(|cell| quoted(&cell)).join(","));
            rows.push('\n');
        }
        Ok(rows)
    }

    /// The whole database, in a file that is not there yet.
    ///
    /// # Errors
    /// The file is there, or cannot be written.
    pub fn copy_to(&self, to: &Path) -> Result<(), HistoryError> {
        if to.exists() {
            return Err(HistoryError::Exists(to.to_owned()));
        }
        tables::copy(&self.connection, to).map_err(|source| {
            // What is there of it is no history. The error that matters is the one being reported.
            let _ = std::fs::remove_file(to);
            HistoryError::Database {
                path: to.to_owned(),
                source,
            }
        })
    }

    /// Faults of the database, a line each; empty if it is whole.
    ///
    /// # Errors
    /// It cannot be read at all.
    pub fn faults(&self) -> Result<Vec<String>, HistoryError> {
        let mut faults: Vec<String> = self.all("PRAGMA integrity_check", [], |row| row.get(0))?;
        faults.retain(|line| line != "ok");
        let loose = self.all("PRAGMA foreign_key_check", [], |row| {
            let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
            Ok(format!("a row of `{table}` belongs to none of `{parent}`"))
        })?;
        faults.extend(loose);
        for run in self.runs(&ListFilter::default())? {
            let read = match self.json(&run.id) {
                Err(HistoryError::Pruned(_)) => continue,
                Err(error) => Err(error.to_string()),
                Ok(json) => read(&json).map(|_| ()),
            };
            faults.extend(read.err().map(|why| format!("result of {}: {why}", run.id)));
        }
        Ok(faults)
    }
}

/// A result as it is stored.
enum Document {
    One(Box<RunResult>),
    Several(Box<Runs>),
}

fn read(json: &str) -> Result<Document, String> {
    let wrong = |error: weir_schema::SchemaError| error.to_string();
    if Runs::is_in(json) {
        let runs = Runs::from_json(json).map_err(wrong)?;
        return Ok(Document::Several(Box::new(runs)));
    }
    let result = RunResult::from_json(json).map_err(wrong)?;
    Ok(Document::One(Box::new(result)))
}

impl Entry {
    /// True if a text holds lines of [`History::json_line`].
    pub fn is_line(text: &str) -> bool {
        let head: String = text.chars().take(60).filter(|c| *c != ' ').collect();
        head.starts_with(&format!("{{\"schema\":\"{LINE}\""))
    }

    /// The run of a line of [`History::json_line`].
    ///
    /// # Errors
    /// The error in the line.
    pub fn of_line(line: &str) -> Result<Self, String> {
        let line: Line = serde_json::from_str(line).map_err(|e| e.to_string())?;
        let machine = line.machine.as_deref();
        let wrong = |error: weir_schema::SchemaError| error.to_string();
        let entry = match read(&line.result.to_string())? {
            Document::One(result) => Self::of_result(&line.id, &result, machine).map_err(wrong)?,
            Document::Several(runs) => {
                let series = runs.series.first().ok_or("it holds no run")?;
                let entry = Self::of_runs(&line.id, &runs, series, machine).map_err(wrong)?;
                entry.ok_or("it holds no run")?
            }
        };
        if !crate::is_id_prefix(&line.id) || line.id.len() != 26 {
            return Err(format!("`{}` is no id", line.id));
        }
        Ok(Self {
            label: line.label,
            note: line.note,
            source: line.source,
            tags: line.tags,
            exit_code: line.exit_code,
            ..entry
        })
    }
}

/// As RFC 4180 has it.
fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
