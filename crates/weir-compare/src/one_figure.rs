//! The one figure of a run that a name means.
//!
//! In: a result, the name of a figure, the name of a job where several have it. Out: the figure under its
//! full name. Not here: comparing.

use thiserror::Error;
use weir_schema::{JobResult, Metric, RunResult};

use crate::compare::known_figures;
use crate::figures::{Figure, figures};

/// A name that means no figure, or several.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FigureError {
    /// No job has it.
    #[error("no job has a figure `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// The figures that there are.
        known: Vec<String>,
    },
    /// There is no such job.
    #[error("no job is called `{name}`")]
    UnknownJob {
        /// The name.
        name: String,
        /// The jobs that there are.
        known: Vec<String>,
    },
    /// Several kinds of operation have it.
    #[error("`{name}` means {}", .found.join(" or "))]
    Kinds {
        /// The name.
        name: String,
        /// Their full names.
        found: Vec<String>,
    },
    /// Several jobs have it.
    #[error("the jobs {} have a figure `{name}`", .jobs.join(", "))]
    Jobs {
        /// The name.
        name: String,
        /// Their names.
        jobs: Vec<String>,
    },
}

/// The figure of this name, of the job of this name where one is given.
///
/// # Errors
/// There is none, or more than one.
pub fn one_figure(run: &RunResult, job: Option<&str>, name: &str) -> Result<Metric, FigureError> {
    let is_meant = |of: &&JobResult| job.is_none_or(|job| of.name == job);
    let jobs: Vec<&JobResult> = run.jobs().filter(is_meant).collect();
    if let (Some(job), []) = (job, &jobs[..]) {
        return Err(FigureError::UnknownJob {
            name: job.to_owned(),
            known: run.jobs().map(|job| job.name.clone()).collect(),
        });
    }
    let of_job = |job: &&JobResult| {
        let found = figures(job, &[name.to_owned()]);
        (!found.is_empty()).then(|| (job.name.clone(), found))
    };
    let mut found: Vec<(String, Vec<Figure>)> = jobs.iter().filter_map(of_job).collect();
    if found.len() > 1 {
        return Err(FigureError::Jobs {
            name: name.to_owned(),
            jobs: found.into_iter().map(|(job, _)| job).collect(),
        });
    }
    let figures = found.pop().map(|(_, figures)| figures).unwrap_or_default();
    match &figures[..] {
        [] => Err(FigureError::Unknown {
            name: name.to_owned(),
            known: known_figures(jobs.into_iter()),
        }),
        [one] => Ok(Metric {
            better: one.better,
            ..Metric::high(one.full_name(), &one.unit, one.value)
        }),
        several => Err(FigureError::Kinds {
            name: name.to_owned(),
            found: several.iter().map(Figure::full_name).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use weir_schema::{GroupResult, Plan};

    use super::*;

    fn job(name: &str, metrics: &[&str]) -> JobResult {
        let metric = |name: &&str| Metric::low(*name, Metric::SECONDS, 2.0);
        JobResult {
            metrics: metrics.iter().map(metric).collect(),
            ..JobResult::not_started(name)
        }
    }

    fn run(jobs: Vec<JobResult>) -> RunResult {
        RunResult {
            groups: vec![GroupResult {
                jobs,
                ..GroupResult::default()
            }],
            ..RunResult::of(Plan::new("p", "run", Vec::new()))
        }
    }

    #[test]
    fn a_name_means_one_figure_of_one_job_or_says_which_there_are() {
        let run = run(vec![
            job("a", &["read p99", "write p99", "score"]),
            job("b", &["read p99"]),
        ]);
        let found = one_figure(&run, Some("a"), "read p99").unwrap();
        assert_eq!(found, Metric::low("read p99", Metric::SECONDS, 2.0));
        assert_eq!(one_figure(&run, None, "score").unwrap().name, "score");
        assert_eq!(one_figure(&run, Some("b"), "p99").unwrap().name, "read p99");
        for (job, name, says) in [
            (None, "p99", "the jobs a, b have a figure `p99`"),
            (Some("a"), "p99", "`p99` means read p99 or write p99"),
            (Some("c"), "p99", "no job is called `c`"),
            (Some("b"), "score", "no job has a figure `score`"),
        ] {
            let error = one_figure(&run, job, name).unwrap_err();
            assert_eq!(error.to_string(), says);
        }
    }
}
