//! A figure over the runs of one plan on one machine, and the runs at which it changed.
//!
//! In: which figure. Out: its runs, oldest first; the change points among those that nothing spoiled;
//! what else was new at each. Not here: the test for a change (`weir-stats`), how it is printed.

use serde_json::Value;
use weir_stats::change_points::{self, ChangePoint};

use crate::error::HistoryError;
use crate::list::{key_of, main_figures};
use crate::open::History;
use crate::rows::{RunRow, SeriesKey, spoiled_by, unsigned, words};

/// Levels that differ by less of themselves count as one, where nobody says otherwise.
pub const LEAST_CHANGE: f64 = 0.01;
/// Largest number of runs looked at, the newest.
pub(crate) const MOST_RUNS: u32 = 100;

/// The series index finds the runs, the key of the table each figure.
pub(crate) const SERIES: &str = "
SELECT run.id, run.started_ns, run.complete, run.exit_code, run.warnings,
       metric.value, metric.low, metric.high
FROM run INDEXED BY run_series CROSS JOIN metric ON metric.run_id = run.id
WHERE run.plan_id = ?1 AND run.machine_id = ?2
      AND metric.job = ?3 AND metric.kind = ?4 AND metric.name = ?5
ORDER BY run.started_ns DESC LIMIT ?6";

/// Facts in which runs differ while their machine is the same, by where they stand in a result.
const FACTS: &[(&str, &str)] = &[
    ("weir", "/weir_version"),
    ("commit", "/program/commit"),
    ("kernel", "/host/kernel"),
    ("system", "/host/os"),
    ("host", "/host/hostname"),
    ("governor", "/host/governor"),
    ("clock", "/clock/source"),
    ("target", "/host/devices/0/target"),
    ("file system", "/host/devices/0/file_system"),
    ("scheduler", "/host/devices/0/scheduler"),
    ("driver", "/host/devices/0/driver"),
];

/// One run of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRun {
    /// Its id.
    pub id: String,
    /// Start, since 1970.
    pub started_ns: u64,
    /// The figure.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Reason that it says nothing about the others, if so.
    pub spoiled_by: Option<String>,
}

/// A figure over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// Key of the series.
    pub key: SeriesKey,
    /// Its unit.
    pub unit: String,
    /// 1: the higher the better; -1: the lower; 0: neither.
    pub better: i8,
    /// The runs, oldest first.
    pub runs: Vec<SeriesRun>,
    /// Changes of its level, in order.
    pub changes: Vec<Change>,
}

/// The beginning of a new level.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The place among the runs of the trend.
    pub index: usize,
    /// Its first run.
    pub first: String,
    /// The last run of the old level.
    pub last_before: String,
    /// Runs of the new level, until the next.
    pub runs: usize,
    /// The change, with its distance from the old level.
    pub point: ChangePoint,
    /// Facts that changed there too: `kernel 6.11 -> 6.12`.
    pub with: Vec<String>,
}

impl History {
    /// The last runs of a series, oldest first.
    ///
    /// # Errors
    /// The database's error.
    pub fn series(&self, key: &SeriesKey, most: u32) -> Result<Vec<SeriesRun>, HistoryError> {
        let which = (
            key.plan_id,
            key.machine_id,
            &key.job,
            &key.kind,
            &key.name,
            most,
        );
        let mut runs = self.all(SERIES, which, |row| {
            let warnings = words(&row.get::<_, String>(4)?);
            let (low, high): (Option<f64>, Option<f64>) = (row.get(6)?, row.get(7)?);
            Ok(SeriesRun {
                id: row.get(0)?,
                started_ns: unsigned(row, 1)?,
                value: row.get(5)?,
                interval: low.zip(high),
                spoiled_by: spoiled_by(row.get(2)?, row.get(3)?, &warnings),
            })
        })?;
        runs.reverse();
        Ok(runs)
    }

    /// The trends that a run is part of: of its main figures, or of those that a word names: `p99`,
    /// `read p99`, `JOB.p99`, `JOB.read p99`. Levels that differ by less than `least_change` of
    /// themselves count as one.
    ///
    /// # Errors
    /// The database's error.
    pub fn trends(
        &self,
        run: &RunRow,
        figure: Option<&str>,
        least_change: f64,
    ) -> Result<Vec<Trend>, HistoryError> {
        let rows = self.metrics(&run.id)?;
        let rows = match figure {
            None => main_figures(&rows),
            Some(word) => rows.into_iter().filter(|row| row.is_named(word)).collect(),
        };
        let mut trends = Vec::new();
        for row in rows {
            let key = key_of(run, &row);
            let runs = self.series(&key, MOST_RUNS)?;
            let changes = self.changes(&runs, least_change)?;
            trends.push(Trend {
                key,
                unit: row.unit,
                better: row.better,
                runs,
                changes,
            });
        }
        Ok(trends)
    }

    fn changes(&self, runs: &[SeriesRun], least: f64) -> Result<Vec<Change>, HistoryError> {
        let good: Vec<usize> = (0..runs.len())
            .filter(|at| runs[*at].spoiled_by.is_none())
            .collect();
        let values: Vec<f64> = good.iter().map(|at| runs[*at].value).collect();
        let points = change_points::change_points(&values, least);
        let mut changes = Vec::new();
        for (number, point) in points.iter().enumerate() {
            let end = points.get(number + 1).map_or(good.len(), |next| next.index);
            let index = good[point.index];
            let first = &runs[index].id;
            let last_before = &runs[good[point.index - 1]].id;
            changes.push(Change {
                index,
                first: first.clone(),
                last_before: last_before.clone(),
                runs: end - point.index,
                point: *point,
                with: self.differences(last_before, first)?,
            });
        }
        Ok(changes)
    }

    /// Differences of two runs of one plan on one machine, beside their figures.
    fn differences(&self, before: &str, after: &str) -> Result<Vec<String>, HistoryError> {
        let (old, new) = (self.run(before)?, self.run(after)?);
        let mut all = Vec::new();
        let mut note = |what: &str, old: Option<String>, new: Option<String>| {
            if old != new {
                let or_none = |fact: Option<String>| fact.unwrap_or_else(|| "none".to_owned());
                all.push(format!("{what} {} -> {}", or_none(old), or_none(new)));
            }
        };
        // Of a pruned run nothing but its row is known.
        if let (Ok(old), Ok(new)) = (self.facts(before), self.facts(after)) {
            for (what, place) in FACTS {
                note(what, fact(&old, place), fact(&new, place));
            }
        } else {
            let version = |run: &RunRow| Some(run.weir_version.clone());
            note("weir", version(&old), version(&new));
        }
        let keys = old
            .tags
            .keys()
            .chain(new.tags.keys().filter(|k| !old.tags.contains_key(*k)));
        for key in keys {
            let of = |run: &RunRow| run.tags.get(key).cloned();
            note(&format!("tag {key}"), of(&old), of(&new));
        }
        Ok(all)
    }

    /// A result's first run as JSON.
    fn facts(&self, id: &str) -> Result<Value, HistoryError> {
        let json = self.json(id)?;
        let value: Value = serde_json::from_str(&json).unwrap_or_default();
        let several = value.pointer("/series/0/runs/0").cloned();
        Ok(several.unwrap_or(value))
    }
}

fn fact(result: &Value, place: &str) -> Option<String> {
    let fact = result.pointer(place)?;
    Some(
        fact.as_str()
            .map_or_else(|| fact.to_string(), str::to_owned),
    )
    .filter(|f| f != "null")
}
