//! The plots of results: of each job, over all results that have it, and of whole runs.
//!
//! In: results with their labels. Out: [`Plot`]s in the order of a report; only those of what was
//! measured. Not here: how a plot is drawn.

mod course;
mod distribution;
mod figures;
mod heat;
mod latency;
mod load;
mod pairs;
mod path_stages;
mod spread;
mod steps;
mod times;

pub(crate) use figures::sized;

use super::{LabelledResult, Plot};
use crate::entry::{KindSum, ReportEntry, entries};
use weir_schema::{RunResult, Stage};
use weir_stats::Histogram;

/// Largest number of members shown one by one.
const MEMBERS: usize = 64;

/// One of the results that are shown together.
pub(crate) struct PlottedRun<'a> {
    pub(crate) label: &'a str,
    pub(crate) result: &'a RunResult,
    pub(crate) entries: Vec<ReportEntry<'a>>,
}

impl<'a> PlottedRun<'a> {
    /// Each of them, in order.
    pub(crate) fn all(results: &'a [LabelledResult<'a>]) -> Vec<Self> {
        let runs = results.iter().map(|labelled| Self {
            label: &labelled.label,
            result: labelled.result,
            entries: entries(labelled.result),
        });
        runs.collect()
    }
}

/// A job, in each of the results that have it.
pub(crate) struct JobAcross<'r, 'a> {
    pub(crate) name: &'a str,
    pub(crate) runs: Vec<(&'r PlottedRun<'a>, &'r ReportEntry<'a>)>,
    /// True if several results are shown together, even if one of them alone has this job.
    pub(crate) is_labelled: bool,
}

/// Every job once, in the order in which results have them. Jobs are the same by name, or where each
/// result has one job alone.
pub(crate) fn jobs_across<'r, 'a>(runs: &'r [PlottedRun<'a>]) -> Vec<JobAcross<'r, 'a>> {
    let are_single = runs.iter().all(|run| run.entries.len() == 1);
    let mut jobs: Vec<JobAcross<'r, 'a>> = Vec::new();
    for run in runs {
        for entry in &run.entries {
            let is_free = |job: &&mut JobAcross<'r, 'a>| {
                let is_in = job.runs.iter().any(|(other, _)| std::ptr::eq(*other, run));
                !is_in && (are_single || job.name == entry.name())
            };
            // Entries of one result alone have no others to match.
            let same = if runs.len() > 1 {
                jobs.iter_mut().find(is_free)
            } else {
                None
            };
            match same {
                Some(job) => job.runs.push((run, entry)),
                None => jobs.push(JobAcross {
                    name: entry.name(),
                    runs: vec![(run, entry)],
                    is_labelled: runs.len() > 1,
                }),
            }
        }
    }
    jobs
}

impl<'r, 'a> JobAcross<'r, 'a> {
    /// Every kind of every result.
    fn kinds(
        &self,
    ) -> impl Iterator<Item = (&'r PlottedRun<'a>, &'r ReportEntry<'a>, &'r KindSum)> {
        self.runs
            .iter()
            .flat_map(|(run, entry)| entry.kinds.iter().map(move |kind| (*run, *entry, kind)))
    }

    /// Name of a line of this kind.
    fn line_name(&self, run: &PlottedRun<'_>, what: &str, are_several: bool) -> String {
        match (self.is_labelled, are_several) {
            (true, true) => format!("{}: {what}", run.label),
            (true, false) => run.label.to_owned(),
            (false, _) => what.to_owned(),
        }
    }

    /// Several kinds, in any of the results.
    fn has_several_kinds(&self) -> bool {
        self.runs.iter().any(|(_, entry)| entry.kinds.len() > 1)
    }
}

/// The plots of one job.
pub(crate) fn of_job(job: &JobAcross<'_, '_>) -> Vec<Plot> {
    let mut plots = Vec::new();
    plots.extend(course::throughput(job));
    plots.extend(latency::over_time(job));
    plots.extend(heat::map(job));
    plots.extend(distribution::latencies(job));
    plots.extend(figures::of_job(job));
    plots.extend(path_stages::times(job));
    plots.extend(pairs::matrices(job));
    plots.extend(load::depth(job));
    plots.extend(load::cpu(job));
    plots.extend(spread::of_workers(job));
    plots
}

/// The plots of whole runs.
pub(crate) fn of_runs(runs: &[PlottedRun<'_>]) -> Vec<Plot> {
    let mut plots = steps::of_runs(runs);
    plots.extend(spread::of_ranks(runs));
    plots
}

/// The latency that a user sees of a kind: the response, where there is one.
fn seen(kind: &KindSum) -> Option<(Stage, &Histogram)> {
    let stages = [Stage::Rlat, Stage::Lat, Stage::Clat];
    stages
        .into_iter()
        .find_map(|stage| Some((stage, kind.stage(stage)?)))
}

/// The begin of a sentence or title.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

#[cfg(test)]
mod tests;
