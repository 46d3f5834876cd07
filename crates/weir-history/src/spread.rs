//! Spread of a plan's figures from run to run on one machine.
//!
//! In: a result. Out: the standard deviation of each figure's logarithm over the last runs of the same
//! plan on the same machine that nothing spoiled. Runs that were kept together as one measurement are
//! left out: their figures are means, which lie closer together. Not here: what is made of it.

use std::collections::BTreeMap;

use rusqlite::OptionalExtension as _;
use weir_schema::RunResult;
use weir_stats::Moments;

use crate::entry::{JobNames, MetricRow};
use crate::error::HistoryError;
use crate::fingerprint::{machine_key, plan_fingerprint};
use crate::open::History;
use crate::rows::{spoiled_by, words};

/// Fewer runs do not say how far runs lie apart.
const FEWEST_RUNS: usize = 5;
/// Largest number of runs in a spread, the newest.
const MOST_RUNS: usize = 20;
/// Largest number of runs looked at for them.
const MOST_LOOKED_AT: u32 = 200;

/// Runs of one plan on one machine, the newest first; the series index finds them.
const SINGLE_RUNS: &str = "
SELECT run.id, run.complete, run.exit_code, run.warnings
FROM run INDEXED BY run_series LEFT JOIN result ON result.run_id = run.id
WHERE run.plan_id = ?1 AND run.machine_id = ?2 AND coalesce(result.schema, '') NOT LIKE 'weir.runs.%'
ORDER BY run.started_ns DESC LIMIT ?3";

/// Spread of a figure from run to run.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSpread {
    /// The place of its job in the plan, from 0.
    pub job: usize,
    /// The kind of operation; empty where it is of none.
    pub kind: String,
    /// Name of the figure.
    pub name: String,
    /// The standard deviation of its logarithm.
    pub deviation: f64,
    /// Runs that say so.
    pub runs: u32,
}

impl History {
    /// Spreads of the figures of other runs like this one, where there are enough of them.
    ///
    /// # Errors
    /// The database's error.
    pub fn spreads(
        &self,
        result: &RunResult,
        but_for: &[&str],
    ) -> Result<Vec<MetricSpread>, HistoryError> {
        let Some(series) = self.series_of(result)? else {
            return Ok(Vec::new());
        };
        let mut values: BTreeMap<(String, String, String), Vec<f64>> = BTreeMap::new();
        for id in self.single_runs(series, but_for)? {
            for MetricRow {
                job,
                kind,
                name,
                value,
                ..
            } in self.metrics(&id)?
            {
                values.entry((job, kind, name)).or_default().push(value);
            }
        }
        let mut names = JobNames::default();
        let jobs: Vec<String> = result.jobs().map(|job| names.next(&job.name)).collect();
        let spread = |((job, kind, name), values): ((String, String, String), Vec<f64>)| {
            Some(MetricSpread {
                job: jobs.iter().position(|of| *of == job)?,
                kind,
                name,
                deviation: deviation(&values)?,
                runs: u32::try_from(values.len()).unwrap_or(u32::MAX),
            })
        };
        Ok(values.into_iter().filter_map(spread).collect())
    }

    /// The rows of a result's plan and machine: by its id, where it is kept here, else by what they
    /// are.
    fn series_of(&self, result: &RunResult) -> Result<Option<(i64, i64)>, HistoryError> {
        if let Some(place) = &result.history
            && let Ok(run) = self.run(&place.id)
        {
            return Ok(Some((run.plan_id, run.machine_id)));
        }
        let sql = "SELECT plan.id, machine.id FROM plan, machine
                   WHERE plan.fingerprint = ?1 AND machine.key = ?2";
        let keys = (plan_fingerprint(result), machine_key(&result.host, None));
        let found = self
            .connection
            .query_row(sql, keys, |row| Ok((row.get(0)?, row.get(1)?)));
        found.optional().map_err(|e| self.said(e))
    }

    /// The ids of the last good runs of a plan on a machine.
    fn single_runs(
        &self,
        (plan, machine): (i64, i64),
        but_for: &[&str],
    ) -> Result<Vec<String>, HistoryError> {
        let which = (plan, machine, MOST_LOOKED_AT);
        let runs = self.all(SINGLE_RUNS, which, |row| {
            let warnings = words(&row.get::<_, String>(3)?);
            let is_good = spoiled_by(row.get(1)?, row.get(2)?, &warnings).is_none();
            Ok(is_good.then_some(row.get::<_, String>(0)?))
        })?;
        let good = runs.into_iter().flatten();
        let others = good.filter(|id| !but_for.contains(&id.as_str()));
        Ok(others.take(MOST_RUNS).collect())
    }
}

/// Nothing for too few runs, and where a value has no logarithm.
fn deviation(values: &[f64]) -> Option<f64> {
    let is_usable = |value: &f64| value.is_finite() && *value > 0.0;
    if values.len() < FEWEST_RUNS || !values.iter().all(is_usable) {
        return None;
    }
    let mut moments = Moments::default();
    moments.extend(values.iter().map(|value| value.ln()));
    moments.deviation()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_logarithms_of_five_or_more() {
        // Logarithms -2, -1, 0, 1, 2: the variance is 10/4.
        let values = [-2.0_f64, -1.0, 0.0, 1.0, 2.0].map(f64::exp);
        let found = deviation(&values).unwrap();
        assert!((found - 2.5_f64.sqrt()).abs() < 1e-12, "{found}");
        assert_eq!(deviation(&values[..4]), None);
        assert_eq!(deviation(&[1.0, 2.0, 0.0, 1.0, 2.0]), None);
    }
}
