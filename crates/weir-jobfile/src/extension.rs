//! The `fio` extension of plans and jobs: values that only fio's output needs.
//!
//! In: options while a plan is made, or a plan. Out: [`FioPlan`] and [`FioJob`]. Without an
//! extension everything is as fio has it when nothing is said. Not here: what is recorded and done.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_schema::{Extensions, Job, Plan};

/// The key of the extension.
const DOOR: &str = "fio";

/// Values of a plan that fio's output needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FioPlan {
    /// For each of the plan's global words, the jobs that it is for.
    pub global_words: Vec<WordReach>,
    /// Notes about the words that made it.
    pub notes: Vec<String>,
}

/// The jobs that a word is for which is given for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WordReach {
    /// Jobs that stand above it: it changes nothing in them.
    pub below: u32,
    /// Jobs up to the end of the file it stands in: it changes nothing in those of further files.
    pub until: Option<u32>,
}

impl WordReach {
    /// It is for the job of this number.
    pub fn holds(self, job: usize) -> bool {
        let until = self.until.map_or(usize::MAX, |n| n as usize);
        (self.below as usize..until).contains(&job)
    }
}

/// Values of a job that fio's output needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct FioJob {
    /// Print percentiles of the submission latency.
    pub percentiles_of_slat: bool,
    /// Of the completion latency.
    pub percentiles_of_clat: bool,
    /// Of the total latency.
    pub percentiles_of_lat: bool,
    /// Kinds are printed apart, and once more as one.
    pub unify_too: bool,
}

impl Default for FioJob {
    fn default() -> Self {
        Self {
            percentiles_of_slat: false,
            percentiles_of_clat: true,
            percentiles_of_lat: false,
            unify_too: false,
        }
    }
}

impl FioPlan {
    /// That of a plan.
    pub fn of(plan: &Plan) -> Self {
        read(&plan.extensions)
    }

    /// Keeps in a plan what was said about the words that made it.
    pub fn keep_notes(plan: &mut Plan, notes: Vec<String>) {
        let of_plan = Self::of(plan);
        plan.extensions = Self { notes, ..of_plan }.extensions();
    }

    /// As part of a plan.
    pub(crate) fn extensions(&self) -> Extensions {
        written(self)
    }
}

impl FioJob {
    /// That of a job.
    pub fn of(job: &Job) -> Self {
        read(&job.extensions)
    }

    /// As part of a job.
    pub(crate) fn extensions(self) -> Extensions {
        written(&self)
    }
}

/// Refuses what nothing reads of the extensions of a plan that shall be carried out.
///
/// # Errors
/// Where it stands, and why.
pub fn check_extensions(plan: &Plan) -> Result<(), String> {
    check::<FioPlan>(&plan.extensions)?;
    let of_job = |job: &Job| check::<FioJob>(&job.extensions);
    plan.jobs()
        .try_for_each(|(_, job)| of_job(job).map_err(|why| format!("{}: {why}", job.name)))
}

fn check<T: DeserializeOwned>(extensions: &Extensions) -> Result<(), String> {
    if let Some(other) = extensions.keys().find(|name| *name != DOOR) {
        return Err(format!(
            "`extensions` has `{other}`, which nothing reads (there is `{DOOR}`)"
        ));
    }
    let read = extensions.get(DOOR).map(T::deserialize).transpose();
    read.map(|_| ())
        .map_err(|error| format!("`extensions.{DOOR}`: {error}"))
}

/// Reads an extension; the default where it is missing or has another form.
fn read<T: Default + DeserializeOwned>(extensions: &Extensions) -> T {
    let found = extensions.get(DOOR).map(T::deserialize);
    found.and_then(Result::ok).unwrap_or_default()
}

/// Nothing where nothing was said.
fn written<T: Default + PartialEq + Serialize>(data: &T) -> Extensions {
    let said = Some(data).filter(|data| **data != T::default());
    let value = said.and_then(|data| serde_json::to_value(data).ok());
    value
        .map(|value| (DOOR.to_owned(), value))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_comes_back_and_nothing_takes_no_room() {
        assert!(FioJob::default().extensions().is_empty());
        let said = FioJob {
            unify_too: true,
            ..FioJob::default()
        };
        assert_eq!(read::<FioJob>(&said.extensions()), said);
        let other = [(DOOR.to_owned(), serde_json::json!({"unknown": 1}))].into();
        assert_eq!(read::<FioJob>(&other), FioJob::default());
        let refusal = check::<FioJob>(&other).unwrap_err();
        assert!(refusal.starts_with("`extensions.fio`: unknown field `unknown`"));
        assert_eq!(check::<FioJob>(&said.extensions()), Ok(()));
        let reach = WordReach {
            below: 1,
            until: Some(3),
        };
        assert_eq!(
            [0, 1, 2, 3].map(|n| reach.holds(n)),
            [false, true, true, false]
        );
    }
}
