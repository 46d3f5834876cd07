//! A comparison as a section of a page.
//!
//! In: the comparison. Out: its sentences and its table as plain data. Not here: the page.

use weir_report::{LineTone, NumberFormat, PageSection, SectionLine, SectionPart};

use crate::comparison::{Comparison, PairComparison};
use crate::remarks::{Mark, Remark, RemarkTone, endings, facts, remarks};
use crate::table::{heads, rows_of};

/// Section of a page: the conclusions first, then the table of each side beside the base, then the
/// other remarks.
pub fn page_section(comparison: &Comparison) -> PageSection {
    let mut parts = Vec::new();
    for pair in &comparison.pairs {
        let facts = facts(comparison, pair);
        parts.push(SectionPart::Heading(format!(
            "{} → {}: {facts}",
            pair.a, pair.b
        )));
        let (conclusions, others): (Vec<Remark>, Vec<Remark>) = remarks(pair)
            .into_iter()
            .partition(|remark| remark.mark == Mark::Conclusion);
        parts.push(lines(&conclusions));
        parts.push(table(comparison, pair));
        parts.push(lines(&others));
    }
    parts.push(lines(&endings(comparison)));
    PageSection {
        id: "compare",
        title: "Comparison".to_owned(),
        parts,
    }
}

fn table(comparison: &Comparison, pair: &PairComparison) -> SectionPart {
    let is_named = pair.jobs.len() > 1;
    let rows = pair.jobs.iter().flat_map(|job| {
        let rows = rows_of(job, NumberFormat { raw: false }).into_iter();
        rows.map(move |(mut cells, _)| {
            if is_named {
                cells[0] = format!("{} · {}", job.name, cells[0]);
            }
            cells.to_vec()
        })
    });
    SectionPart::Table {
        head: heads(comparison).to_vec(),
        rows: rows.collect(),
    }
}

fn lines(remarks: &[Remark]) -> SectionPart {
    let line = |remark: &Remark| {
        let lead = match remark.mark {
            Mark::Conclusion | Mark::Note | Mark::Oddity => "",
            Mark::Difference => "differs: ",
            Mark::Failure => "FAILED: ",
        };
        SectionLine {
            text: format!("{lead}{}", remark.text),
            tone: match (remark.mark, remark.tone) {
                (Mark::Oddity, _) => LineTone::Odd,
                (_, RemarkTone::Plain) => LineTone::Plain,
                (_, RemarkTone::Good) => LineTone::Good,
                (_, RemarkTone::Bad) => LineTone::Bad,
            },
        }
    };
    SectionPart::Lines(remarks.iter().map(line).collect())
}
