//! Overview at the top of a page: the figures of every job, and the conditions that spoil them.

use std::collections::BTreeMap;

use weir_schema::Warning;

use super::table::table;
use crate::figures::{OF_KINDS, OF_METRICS, of_kinds, of_metrics, used};
use crate::plot::escaped;
use crate::plot::{JobAcross, PlottedRun};

/// Rows of the summary, and warnings.
const ROWS: usize = 2000;
const WARNINGS: usize = 200;

pub(super) fn summary(jobs: &[JobAcross<'_, '_>]) -> String {
    let kinds = jobs.iter().flat_map(of_kinds).collect();
    let metrics = jobs.iter().flat_map(of_metrics).collect();
    let tables = [of_rows(&OF_KINDS, kinds), of_rows(&OF_METRICS, metrics)];
    format!(
        "<section id=\"summary\"><h2>Summary</h2>{}</section>\n",
        tables.concat()
    )
}

/// A table of at most so many rows, without the columns that nothing stands in.
pub(super) fn of_rows(head: &[&str], mut rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let (head, rows) = used(head, &rows);
    let mut out = table(&head, &rows);
    if more > 0 {
        push!(
            out,
            "<p class=\"warn\">And {more} more rows, which the stored result has.</p>"
        );
    }
    out
}

/// Every warning of a job once, the gravest first, with the runs that have it, below runs and jobs that did
/// not end as planned.
pub(super) fn warnings(runs: &[PlottedRun<'_>]) -> String {
    let mut found = BTreeMap::new();
    for run in runs {
        let all = &run.result.warnings;
        for (at, warning) in all.iter().enumerate() {
            let same = |w: &&Warning| w.id == warning.id && w.job == warning.job;
            let before = all[..at].iter().filter(same).count();
            let key = (
                warning.gravity(),
                &warning.id,
                warning.job.as_deref(),
                before,
            );
            let of: &mut (&Warning, Vec<&str>) =
                found.entry(key).or_insert_with(|| (warning, Vec::new()));
            if runs.len() > 1 {
                of.1.push(run.label);
            }
        }
    }
    let mut out = endings(runs);
    let more = found.len().saturating_sub(WARNINGS);
    for ((_, id, job, _), (warning, labels)) in found.into_iter().take(WARNINGS) {
        let labels = (!labels.is_empty()).then(|| labels.join(", "));
        let of: Vec<&str> = labels.as_deref().into_iter().chain(job).collect();
        let of = if of.is_empty() {
            String::new()
        } else {
            format!("{}: ", escaped(&of.join(" · ")))
        };
        let (id, cause, remedy) = (
            escaped(id),
            escaped(&warning.cause),
            escaped(&warning.remedy),
        );
        let ends = if cause.ends_with('.') { "" } else { "." };
        push!(
            out,
            "<li><b class=\"warn\">{id}</b> {of}{cause}{ends} <i>{remedy}</i></li>"
        );
    }
    if more > 0 {
        push!(out, "<li>and {more} more warnings</li>");
    }
    if out.is_empty() {
        return String::new();
    }
    format!("<section id=\"warnings\"><h2>Warnings</h2><ul>{out}</ul></section>\n")
}

/// Runs that did not end as planned, and failures of jobs.
fn endings(runs: &[PlottedRun<'_>]) -> String {
    let mut out = String::new();
    for run in runs.iter().filter(|run| !run.result.complete) {
        let why = run.result.ended_by.map_or_else(
            || "it ended before its plan".to_owned(),
            |end| format!("signal {} ended it", end.signal),
        );
        let label = if runs.len() > 1 { run.label } else { "the run" };
        push!(
            out,
            "<li class=\"bad\">INCOMPLETE: {}: {why}</li>",
            escaped(label)
        );
    }
    for run in runs {
        let entries = run.entries.iter().take(WARNINGS);
        for (entry, failure) in entries.flat_map(|e| e.failures().into_iter().map(move |f| (e, f)))
        {
            let (job, message) = (escaped(entry.name()), escaped(&failure.message));
            push!(out, "<li class=\"bad\">FAILED: {job}: {message}</li>");
        }
    }
    out
}
