//! The section of one job: what it did, its figures, its plots, its phases.

use weir_schema::Span;
use weir_units::Nanos;

use super::budget::PageParts;
use super::table::{list, table};
use crate::entry::ReportEntry;
use crate::figures::{NUMBERS, done, state};
use crate::number_format::significant;
use crate::phrases::{aspects, title};
use crate::plot::escaped;
use crate::plot::{JobAcross, of_job};

/// Phases that are listed.
const PHASES: usize = 200;

pub(super) fn section(job: &JobAcross<'_, '_>, parts: &mut PageParts) {
    parts.begin(job.name);
    let name = escaped(job.name);
    let mut text = format!("<section class=\"job\" data-job=\"{name}\"><h2>{name}</h2>");
    for (run, entry) in &job.runs {
        if job.is_labelled {
            push!(text, "<h3>{}</h3>", escaped(run.label));
        }
        text += &about(entry);
    }
    parts.heading(&text);
    for plot in of_job(job) {
        parts.plot(&plot);
    }
    for (_, entry) in &job.runs {
        parts.heading(&phases(entry));
    }
    parts.heading("</section>\n");
}

/// Summary of the job: its plan, and the work done.
fn about(entry: &ReportEntry<'_>) -> String {
    let workers = entry.workers.len();
    let said = entry
        .plan
        .map(|plan| title(&aspects(plan, workers.max(1))).join(", "));
    let cpu = entry.cores().map(|(user, system)| {
        let [all, user, system] = [user + system, user, system].map(|part| significant(part, 3));
        format!("{all} processors (user {user}, system {system})")
    });
    let in_flight = entry.in_flight().map(|mean| {
        let limit = entry
            .depth_limit()
            .map_or_else(String::new, |n| format!(" of {n}"));
        format!("{}{limit} on average", significant(mean, 3))
    });
    list(&[
        ("work", said),
        ("ended", state(entry)),
        ("time", entry.time().map(|time| NUMBERS.time(time))),
        ("done", done(entry)),
        ("in flight", in_flight),
        ("processors", cpu),
    ])
}

/// Times of the ranks in its phases, where it has some.
fn phases(entry: &ReportEntry<'_>) -> String {
    let all = entry.jobs.iter().flat_map(|job| &job.phases);
    let rows = all.take(PHASES).map(|phase| {
        let spans = || phase.ranks.iter().map(|rank| rank.span);
        let first = spans().map(|s| s.start_ns).min().unwrap_or_default();
        let last = spans().map(|s| s.end_ns).max().unwrap_or_default();
        let slowest = spans().map(Span::length).max().unwrap_or(Nanos::ZERO);
        vec![
            phase.name.clone(),
            phase.repetition.to_string(),
            phase.ranks.len().to_string(),
            NUMBERS.time(last.saturating_sub(first)),
            NUMBERS.time(slowest),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = [
        "phase",
        "repetition",
        "ranks",
        "first start to last end",
        "longest of a rank",
    ];
    format!("<h3>Phases</h3>{}", table(&head.map(str::to_owned), &rows))
}
