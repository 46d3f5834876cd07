//! Groups of a plan, which are points of a sweep or passes that read back written data, and the progress of a
//! run through them.
//!
//! In: a plan or a result. Out: the notes of this door in a plan, the name of each group, what was left
//! undone. Not here: which points there are (`sweep`), how they are printed (`output`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use weir_schema::{GroupResult, Job, Plan, RunResult, State};
use weir_units::Nanos;

use super::number::figure;

/// The name of this door's data in a plan.
pub(crate) const EXTENSION: &str = "kio";

/// Properties that distinguish a group from the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PointName {
    /// The settings that are swept, `queue_depth=2 offset_random=1`.
    pub(super) swept: String,
    /// The group reads the data that the previous group has written.
    pub(super) reads_back: bool,
}

impl PointName {
    /// Name of a point, `queue_depth=2, read back`; empty for the only group of a plan.
    fn words(&self) -> String {
        let pass = if self.reads_back { "read back" } else { "" };
        let parts = [self.swept.as_str(), pass].into_iter();
        parts
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Stores in a plan whether the module was loaded, and the names of its groups where they have any.
pub(super) fn note(plan: &mut Plan, has_module: bool, names: &[PointName]) {
    let mut noted = json!({ "module": has_module });
    if names.iter().any(|name| *name != PointName::default()) {
        noted["points"] = json!(names);
    }
    plan.extensions.insert(EXTENSION.to_owned(), noted);
}

/// Refuses an extension that is not this door's.
pub(crate) fn check_extension(noted: &Value) -> Result<(), String> {
    let is_known = |map: &Map<String, Value>| {
        map.iter().all(|(key, value)| match key.as_str() {
            "module" => value.is_boolean(),
            "points" => read_names(value).is_some(),
            _ => false,
        })
    };
    if noted.as_object().is_some_and(is_known) {
        return Ok(());
    }
    Err(format!(
        "`extensions.{EXTENSION}` is {noted}: it has `module`, true or false, and `points`, each with \
         `swept` and `reads_back`"
    ))
}

fn read_names(noted: &Value) -> Option<Vec<PointName>> {
    serde_json::from_value(noted.clone()).ok()
}

/// True if the module was loaded; `None` where the plan does not record it.
pub(super) fn has_module(plan: &Plan) -> Option<bool> {
    plan.extensions.get(EXTENSION)?.get("module")?.as_bool()
}

/// A group with its results.
pub(super) struct PointResult<'a> {
    pub(super) jobs: &'a [Job],
    pub(super) group: &'a GroupResult,
    pub(super) name: PointName,
    /// Number from 1, and number of all points.
    number: usize,
    count: usize,
}

/// All points of a result, whether they ran or not.
pub(super) fn planned(result: &RunResult) -> impl Iterator<Item = PointResult<'_>> {
    let plan = &result.plan;
    let noted = plan.extensions.get(EXTENSION).and_then(|e| e.get("points"));
    let mut names = noted.and_then(read_names).unwrap_or_default();
    // Groups that were changed since have none.
    if names.len() != plan.groups.len() {
        names = vec![PointName::default(); plan.groups.len()];
    }
    let count = plan.groups.len();
    let groups = plan.groups.iter().zip(&result.groups).zip(names);
    groups
        .enumerate()
        .map(move |(index, ((group, done), name))| PointResult {
            jobs: &group.jobs,
            group: done,
            name,
            number: index + 1,
            count,
        })
}

/// Those that ran, if not to their end.
pub(super) fn begun(result: &RunResult) -> impl Iterator<Item = PointResult<'_>> {
    planned(result).filter(PointResult::is_begun)
}

impl PointResult<'_> {
    fn is_begun(&self) -> bool {
        let jobs = &self.group.jobs;
        jobs.iter().any(|job| job.state != State::NotStarted)
    }

    /// Title of a point, `point 2 of 4: queue_depth=2`; `None` for a single one.
    pub(super) fn title(&self) -> Option<String> {
        let (number, count) = (self.number, self.count);
        let words = self.name.words();
        let gap = if words.is_empty() { "" } else { ": " };
        (count > 1).then(|| format!("point {number} of {count}{gap}{words}"))
    }

    /// Planned time.
    pub(super) fn runtime(&self) -> Option<Nanos> {
        self.jobs.first()?.load().bounds.runtime_ns
    }

    /// Time that it ran for, where something ended it early.
    pub(super) fn cut_after(&self) -> Option<Nanos> {
        let jobs = &self.group.jobs;
        let is_cut = jobs.iter().any(|job| job.state == State::Stopped);
        let longest = jobs.iter().filter_map(|job| Some(job.span?.length())).max();
        is_cut.then(|| longest.unwrap_or_default())
    }

    /// Text about an early end, `ended by signal 2 after 1.84 of 20 s`; `None` without one.
    pub(super) fn ending(&self, result: &RunResult) -> Option<String> {
        let ran = figure(self.cut_after()?.as_secs_f64());
        let cause = match result.ended_by {
            Some(end) => format!("signal {}", end.signal),
            None => "the end of another thread".to_owned(),
        };
        let of = self.runtime().map(Nanos::as_secs_f64);
        let of = of.map_or_else(String::new, |planned| format!(" of {planned}"));
        Some(format!("ended by {cause} after {ran}{of} s"))
    }
}

/// Lines about the work left undone: one for each point that was cut short, one for those that never ran.
pub(super) fn left_undone(result: &RunResult) -> Vec<String> {
    let of_point = |point: PointResult<'_>| {
        let ending = point.ending(result)?;
        let title = point.title().map(|title| format!("{title}: "));
        Some(title.unwrap_or_default() + &ending)
    };
    let mut lines: Vec<String> = begun(result).filter_map(of_point).collect();
    lines.extend(not_begun(result));
    lines
}

/// `2 of 4 points did not run`.
pub(super) fn not_begun(result: &RunResult) -> Option<String> {
    let (all, ran) = (planned(result).count(), begun(result).count());
    match all - ran {
        0 => None,
        missing if all > 1 => Some(format!("{missing} of {all} points did not run")),
        _ => Some("nothing ran".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_back_and_others_are_refused() {
        let name = PointName {
            swept: "queue_depth=2".to_owned(),
            reads_back: true,
        };
        assert_eq!(name.words(), "queue_depth=2, read back");
        let mut plan = Plan::new("kio", "kio", Vec::new());
        note(&mut plan, true, &[PointName::default()]);
        assert_eq!(plan.extensions[EXTENSION], json!({ "module": true }));
        note(&mut plan, false, &[PointName::default(), name]);
        check_extension(&plan.extensions[EXTENSION]).unwrap();
        assert_eq!(has_module(&plan), Some(false));
        for odd in [
            json!(7),
            json!({ "modul": true }),
            json!({ "points": [{}] }),
            json!({ "points": 4 }),
        ] {
            assert!(check_extension(&odd).is_err(), "{odd}");
        }
    }
}
