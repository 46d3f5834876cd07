//! Pruning of runs.
//!
//! In: how many are kept, and how long. Out: the runs that are pruned. What made a difference stays:
//! baselines, runs with the tag `keep`, and the runs on both sides of each change point.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::HistoryError;
use crate::list::ListFilter;
use crate::open::History;
use crate::rows::RunRow;
use crate::trend::LEAST_CHANGE;
use crate::write::forget_unused;

/// The tag of runs that stay.
const KEEP: &str = "keep";

/// Rule of pruning; where both bounds are given, a run is removed by both together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRule {
    /// There are so many newer ones of its plan on its machine.
    pub keep: Option<u32>,
    /// It began before this, since 1970.
    pub before_ns: Option<u64>,
    /// Its figures go too, and with them the run.
    pub metrics_too: bool,
}

/// Runs that were removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pruned {
    /// The runs, newest first.
    pub runs: Vec<RunRow>,
    /// Runs that stay although the rule does not keep them.
    pub spared: usize,
}

impl History {
    /// The runs that a rule has no room for. Runs whose results were pruned before are among them only
    /// where their figures go too.
    ///
    /// # Errors
    /// The database's error.
    pub fn prunable(&self, rule: &PruneRule) -> Result<Pruned, HistoryError> {
        let with_result = self.all("SELECT run_id FROM result", [], |row| row.get(0))?;
        let with_result: BTreeSet<String> = with_result.into_iter().collect();
        let mut kept: BTreeMap<(i64, i64), u32> = BTreeMap::new();
        let mut found = Vec::new();
        for run in self.runs(&ListFilter::default())? {
            let of_series = kept.entry((run.plan_id, run.machine_id)).or_default();
            let is_beyond = rule.keep.is_none_or(|keep| *of_series >= keep);
            *of_series += 1;
            let is_old = rule.before_ns.is_none_or(|before| run.started_ns < before);
            if is_beyond && is_old && (rule.metrics_too || with_result.contains(&run.id)) {
                found.push(run);
            }
        }
        let spared = self.spared(&found)?;
        let all = found.len();
        found.retain(|run| !spared.contains(&run.id));
        Ok(Pruned {
            spared: all - found.len(),
            runs: found,
        })
    }

    /// Prunes these runs.
    ///
    /// # Errors
    /// As of [`History::insert`].
    pub fn prune(&mut self, pruned: &Pruned, metrics_too: bool) -> Result<(), HistoryError> {
        let sql = if metrics_too {
            "DELETE FROM run WHERE id = ?1"
        } else {
            "DELETE FROM result WHERE run_id = ?1"
        };
        self.change(|change| {
            let mut delete = change.prepare(sql)?;
            for run in &pruned.runs {
                delete.execute([&run.id])?;
            }
            forget_unused(change)
        })?;
        self.give_room_back()
    }

    /// Those of these runs that stay whatever the rule.
    fn spared(&self, runs: &[RunRow]) -> Result<BTreeSet<String>, HistoryError> {
        let mut spared: BTreeSet<String> =
            self.baselines()?.into_iter().map(|run| run.id).collect();
        let tagged = runs.iter().filter(|run| run.tags.contains_key(KEEP));
        spared.extend(tagged.map(|run| run.id.clone()));
        let mut seen = BTreeSet::new();
        for run in runs {
            if !seen.insert((run.plan_id, run.machine_id)) {
                continue;
            }
            for trend in self.trends(run, None, LEAST_CHANGE)? {
                let ends = trend.changes.into_iter();
                spared.extend(ends.flat_map(|change| [change.last_before, change.first]));
            }
        }
        Ok(spared)
    }
}
