//! The text report: one screen that says what was measured, how sure it is and what spoils it.
//!
//! In: a result and a style. Out: lines no wider than the style's width, in a fixed order:
//! header, jobs (in full, or as a table when there are many), warnings about the whole run,
//! the instrument's own cost. Nothing is cut; what does not fit is continued below. Not here:
//! how lines are filled (`layout`), how numbers are printed (`number_format`).

mod found;
mod group;
mod header;
mod job;
mod latency;
mod metrics;
mod path;
mod problems;
mod ranks;
mod rpc;
mod runs;
mod spark;
mod table;
mod warnings;

use weir_schema::{HistoryPlace, JobResult, RunResult, State};

use crate::color::Tone;
use crate::entry::{ReportEntry, entries};
use crate::layout::{INDENT, LayoutRow, LineLayout};
use crate::number_format::{NumberFormat, significant};
use crate::style::Style;
pub use runs::runs_text;
use warnings::PlacedWarnings;

/// Largest number of jobs shown in full; more become a table.
const IN_FULL: usize = 4;

/// Parts that the whole report needs.
struct Report<'a> {
    result: &'a RunResult,
    style: &'a Style,
    numbers: NumberFormat,
    layout: LineLayout<'a>,
    warnings: PlacedWarnings<'a>,
}

/// The result as text for people, each line ended.
pub fn text(result: &RunResult, style: &Style) -> String {
    let entries = entries(result);
    let mut report = Report {
        result,
        style,
        numbers: NumberFormat { raw: style.raw },
        layout: LineLayout::new(style),
        warnings: PlacedWarnings::of(result, &entries, style.all_warnings),
    };
    report.header();
    if entries.len() > IN_FULL {
        report.layout.blank();
        report.table(&entries);
    } else {
        report.in_full(&entries);
    }
    report.ranks();
    report.foot(&entries);
    report.layout.finish()
}

impl Report<'_> {
    fn in_full(&mut self, entries: &[ReportEntry<'_>]) {
        for (i, entry) in entries.iter().enumerate() {
            self.layout.blank();
            self.job(entry, i);
            if entries
                .get(i + 1)
                .is_none_or(|next| next.group != entry.group)
            {
                self.group(entries, entry.group);
            }
        }
    }

    /// Warnings about the whole run or a job that has no entry, and what the instrument itself costs.
    fn foot(&mut self, entries: &[ReportEntry<'_>]) {
        let result = self.result;
        self.layout.blank();
        self.shared_warnings();
        if !result.complete && entries.iter().all(|e| e.state() == State::Done) {
            let cause = result
                .ended_by
                .map(|end| format!("(signal {})", end.signal));
            let cause = cause.unwrap_or_else(|| "(ended before its plan)".into());
            self.line("INCOMPLETE", Tone::Bad, None, &cause);
        }
        self.instrument();
        self.history_place(result.history.as_ref());
    }

    /// Place of the result in the history, and the command that prints it again.
    fn history_place(&mut self, place: Option<&HistoryPlace>) {
        let Some(HistoryPlace { id, file }) = place else {
            return;
        };
        let file = file
            .as_deref()
            .map(|file| format!("WEIR_HISTORY={} ", for_shell(file)));
        let file = file.unwrap_or_default();
        // The characters of the time: nothing else began in the same millisecond.
        let short: String = id.chars().take(10).collect();
        let text = format!("{id} in history; again: {file}weir show {short}");
        self.layout.prose("result      ", INDENT, &text);
    }

    fn instrument(&mut self) {
        let facts = &self.result.instrument;
        let text = match (facts.ns_per_op, &facts.absent) {
            (Some(ns), _) => {
                let own = significant(ns, 3);
                let jobs = self.result.jobs().filter_map(JobResult::loop_ns_per_op);
                let least = jobs
                    .min_by(f64::total_cmp)
                    .filter(|least| *least < 0.8 * ns);
                let least = least.map_or(String::new(), |ns| significant(ns, 3) + " to ");
                let read = significant(self.result.clock.read_ns, 2);
                format!("{least}{own} ns per operation (clock read {read} ns)")
            }
            (None, Some(reason)) => format!("not measured: {reason}"),
            (None, None) => return,
        };
        self.layout.prose("instrument  ", INDENT, &text);
    }

    fn row(&mut self, row: LayoutRow) {
        if !row.items.is_empty() {
            self.layout.row(row);
        }
    }
}

/// A word that a shell leaves as it is.
fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=".contains(c);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
