//! Overview at the top of a page: the figures of every job, and the conditions that spoil them.

use std::collections::BTreeSet;

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

/// Every warning once, the gravest first, and how runs ended that did not end as planned.
pub(super) fn warnings(runs: &[PlottedRun<'_>]) -> String {
    let mut found = BTreeSet::new();
    for run in runs {
        for warning in &run.result.warnings {
            let label = (runs.len() > 1).then_some(run.label);
            let job = warning.job.as_deref();
            let of: Vec<&str> = label.into_iter().chain(job).collect();
            let of = of.join(" · ");
            found.insert((
                warning.gravity(),
                &warning.id,
                of,
                &warning.cause,
                &warning.remedy,
            ));
        }
    }
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
    let more = found.len().saturating_sub(WARNINGS);
    for (_, id, of, cause, remedy) in found.into_iter().take(WARNINGS) {
        let of = if of.is_empty() {
            String::new()
        } else {
            format!("{}: ", escaped(&of))
        };
        let (id, cause, remedy) = (escaped(id), escaped(cause), escaped(remedy));
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
