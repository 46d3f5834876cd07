//! Budget of a page: the parts of each job, and the parts that are left out where there is too
//! much.
//!
//! In: headings, tables and plots in order. Out: those that fit, and the names of what went: first plots that show members one by one, then latencies by interval, then the last jobs.

use super::page::Page;
use super::table;
use crate::plot::escaped;
use crate::plot::{Detail, Plot, counts, inline};

/// A page is never larger.
pub(super) const MOST_BYTES: usize = 8_000_000;

/// Everything between the summary and the facts.
#[derive(Default)]
pub(super) struct PageParts {
    jobs: Vec<JobParts>,
    losses: Vec<String>,
}

/// Parts of one job on the page.
#[derive(Default)]
struct JobParts {
    name: String,
    pieces: Vec<Piece>,
}

/// Text of the document, or a plot.
struct Piece {
    text: String,
    detail: Detail,
}

impl PageParts {
    /// Begins the parts of this job.
    pub(super) fn begin(&mut self, name: &str) {
        self.jobs.push(JobParts {
            name: name.to_owned(),
            pieces: Vec::new(),
        });
    }

    fn push(&mut self, piece: Piece) {
        match self.jobs.last_mut() {
            Some(job) => job.pieces.push(piece),
            None => self.jobs.push(JobParts {
                name: String::new(),
                pieces: vec![piece],
            }),
        }
    }

    /// Text of the document.
    pub(super) fn heading(&mut self, text: &str) {
        self.push(Piece {
            text: text.to_owned(),
            detail: Detail::Figures,
        });
    }

    pub(super) fn plot(&mut self, plot: &Plot) {
        let counts = counts(plot).map(|counts| format!(" data-plot=\"{counts}\""));
        let marked = counts.unwrap_or_default();
        let table = table::folded("Figures", &plot.table);
        let (title, caption) = (escaped(&plot.title), escaped(&plot.caption));
        let name = escaped(&plot.name);
        self.push(Piece {
            text: format!(
                "<figure data-name=\"{name}\"{marked}><h3>{title}</h3><div class=\"picture\">{}</div>\
                 <figcaption>{caption}</figcaption>{table}</figure>\n",
                inline(plot)
            ),
            detail: plot.detail,
        });
    }

    /// Records that some jobs have no part at all.
    pub(super) fn left_out(&mut self, jobs: usize, what: &str) {
        if jobs > 0 {
            let are = if jobs == 1 {
                "1 job".to_owned()
            } else {
                format!("{jobs} jobs")
            };
            self.losses.push(format!("{what} {are}"));
        }
    }

    /// All that is to be in the page.
    pub(super) fn bytes(&self) -> usize {
        let pieces = self.jobs.iter().flat_map(|job| &job.pieces);
        pieces.map(|piece| piece.text.len()).sum()
    }

    /// Drops what does not fit into so much room.
    pub(super) fn fit(&mut self, room: usize) {
        for (detail, what) in [
            (Detail::Members, "the figures of single members of"),
            (Detail::OverTime, "the latencies over time of"),
        ] {
            if self.bytes() <= room {
                return;
            }
            let mut dropped = 0;
            for job in &mut self.jobs {
                let before = job.pieces.len();
                job.pieces.retain(|piece| piece.detail < detail);
                dropped += usize::from(job.pieces.len() < before);
            }
            self.left_out(dropped, what);
        }
        let mut dropped = 0;
        let mut bytes = self.bytes();
        while bytes > room {
            let Some(job) = self.jobs.pop() else { break };
            bytes -= job
                .pieces
                .iter()
                .map(|piece| piece.text.len())
                .sum::<usize>();
            dropped += usize::from(!job.name.is_empty());
        }
        self.left_out(dropped, "the plots and tables of");
    }

    /// List of the parts that are not in the page, for its reader; empty where all are.
    pub(super) fn losses(&self) -> String {
        if self.losses.is_empty() {
            return String::new();
        }
        format!(
            "<p class=\"warn\" id=\"losses\">Left out, as the page would be too large: {}. The stored \
             result has them.</p>\n",
            escaped(&self.losses.join("; "))
        )
    }

    pub(super) fn write(&self, page: &mut Page) {
        for piece in self.jobs.iter().flat_map(|job| &job.pieces) {
            page.push(&piece.text);
        }
    }
}
