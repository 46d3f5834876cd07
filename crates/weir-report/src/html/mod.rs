//! A page that says what was measured: one file, readable without network and without its script.
//!
//! In: results with their labels, sections that others fill. Out: a document with the summary, warnings, tables and plots of
//! each job, the machine and the plan. Names come from outside: they are escaped, and the policy lets no script
//! run but our own. A page has at most 8 MB; what had to go for that is named in it. The script draws
//! nothing: it reads the coordinates of the pictures and writes them anew, so it is a small one of our
//! own. Not here: what a plot shows (`plot`).

mod budget;
mod facts;
mod job;
mod overview;
mod page;
mod runs;
mod section;
mod table;

use budget::PageParts;
use page::Page;
pub use runs::runs_section;
pub use section::{LineTone, PageSection, SectionLine, SectionPart};

use crate::plot::{self, LabelledResult, PlottedRun, jobs_across};

/// Largest number of jobs with plots.
const PLOTTED: usize = 100;

/// The results as one page, with what others found out about them.
pub fn html(results: &[LabelledResult<'_>], sections: &[PageSection]) -> String {
    let runs = PlottedRun::all(results);
    let jobs = jobs_across(&runs);
    let mut parts = PageParts::default();
    let of_runs = sections.iter().find(|section| section.id == "runs");
    let mut page = Page::of(&runs, of_runs.map(|section| section.title.as_str()));
    for found in sections {
        page.push(&section::section(found));
    }
    page.push(&overview::summary(&jobs));
    page.push(&overview::warnings(&runs));
    let plots = plot::of_runs(&runs);
    if !plots.is_empty() {
        parts.begin("");
        parts.heading("<section><h2>All jobs</h2>");
        for plot in &plots {
            parts.plot(plot);
        }
        parts.heading("</section>");
    }
    for job in jobs.iter().take(PLOTTED) {
        job::section(job, &mut parts);
    }
    parts.left_out(
        jobs.len().saturating_sub(PLOTTED),
        "the plots and tables of",
    );
    let room = budget::MOST_BYTES.saturating_sub(page.len());
    let fixed = facts::sections(&runs, room / 4);
    parts.fit(room.saturating_sub(fixed.len()));
    page.push(&parts.losses());
    parts.write(&mut page);
    page.push(&fixed);
    page.finish()
}

#[cfg(test)]
mod tests;
