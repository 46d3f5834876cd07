//! The section of one job: what it did, its figures, its plots, its phases.

use weir_schema::{PhaseResult, Span};
use weir_units::{Iops, Nanos};

use super::budget::PageParts;
use super::table::{list, table};
use crate::entry::ReportEntry;
use crate::figures::{NUMBERS, done, state};
use crate::number_format::significant;
use crate::phrases::{aspects, title};
use crate::plot::escaped;
use crate::plot::{JobAcross, of_job};

/// Phases that are listed, and rows of masters.
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
        parts.heading(&masters(entry));
        parts.heading(&phases(entry));
    }
    parts.heading("</section>\n");
}

/// Summary of the job: its plan, and the work done.
fn about(entry: &ReportEntry<'_>) -> String {
    let workers = entry.callers();
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
        ("target", entry.remark()),
        ("ended", state(entry)),
        ("time", entry.time().map(|time| NUMBERS.time(time))),
        ("done", done(entry)),
        ("in flight", in_flight),
        ("processors", cpu),
    ])
}

/// Rows of its masters and their endpoints, where it has some.
fn masters(entry: &ReportEntry<'_>) -> String {
    let time = |ns: Option<Nanos>| ns.map_or_else(String::new, |ns| NUMBERS.time(ns));
    let rows = entry.masters().flat_map(|master| {
        let median = master.figures.as_ref().map(|figures| figures.median_ns);
        let whole = [
            master.endpoint.to_string(),
            "all".to_owned(),
            NUMBERS.count(master.succeeded),
            NUMBERS.count(master.failed),
            NUMBERS.iops(Iops(master.rate())),
            time(median),
        ];
        let endpoints = master.endpoints.iter().map(move |one| {
            let failed = one.failed.values().sum();
            vec![
                master.endpoint.to_string(),
                one.endpoint.to_string(),
                NUMBERS.count(one.succeeded),
                NUMBERS.count(failed),
                String::new(),
                time(one.median_ns),
            ]
        });
        std::iter::once(whole.to_vec()).chain(endpoints)
    });
    let rows: Vec<Vec<String>> = rows.take(PHASES).collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["master", "endpoint", "RPCs", "failed", "rate", "median"];
    format!("<h3>Masters</h3>{}", table(&head.map(str::to_owned), &rows))
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
            parts(phase),
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
        "parts",
    ];
    format!("<h3>Phases</h3>{}", table(&head.map(str::to_owned), &rows))
}

/// The longest time of a rank in each part.
fn parts(phase: &PhaseResult) -> String {
    let parts = phase.parts().into_iter();
    let parts = parts.map(|part| format!("{} {}", part.name, NUMBERS.time(part.span.length())));
    parts.collect::<Vec<_>>().join(", ")
}
