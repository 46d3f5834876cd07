//! Rates of a whole group, and what it did while all its members ran: stragglers make the two
//! differ.

use weir_units::{Bytes, Nanos};

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::{Overlap, ReportEntry};
use crate::layout::{INDENT, LayoutRow};

impl Report<'_> {
    /// The group's own lines, where it has several entries that ran together.
    pub(super) fn group(&mut self, entries: &[ReportEntry<'_>], number: usize) {
        // Phases are parts of their job.
        let is_member = |e: &&ReportEntry<'_>| e.group == number && e.phase.is_none();
        let members: Vec<&ReportEntry<'_>> = entries.iter().filter(is_member).collect();
        let Some(group) = self.result.groups.get(number).filter(|_| members.len() > 1) else {
            return;
        };
        let ran = members.iter().filter(|e| e.span.is_some()).count();
        let Some(overlap) = Overlap::of(group).filter(|_| ran == members.len()) else {
            return;
        };
        let several = group.rates.len() > 1;
        let name = Text::new(Tone::Strong, format!("all {} jobs", members.len()));
        self.layout.blank();
        self.layout.flow(name, INDENT, []);
        let rows: Vec<LayoutRow> = group
            .rates
            .iter()
            .map(|rates| {
                let label = if several { rates.kind.as_str() } else { "rate" };
                let bandwidth = Some(rates.bytes_per_s).filter(|_| rates.bytes > Bytes::ZERO);
                let done = (rates.operations, rates.bytes);
                let sure = group.confidence.iter().find(|c| c.kind == rates.kind);
                let rates = (Some(rates.ops_per_s), bandwidth);
                let mut items = self.rate_items(done, rates, sure);
                if several && self.layout.is_key_value() {
                    items = items.into_iter().map(|item| item.of(label)).collect();
                }
                LayoutRow::new(label, items)
            })
            .collect();
        self.layout.rows(&rows);
        self.overlap(&overlap, &members, "jobs");
    }

    /// The rate without stragglers, below the rate of an entry that is a whole group, where the
    /// two differ by more than a percent.
    pub(super) fn straggling(&mut self, entry: &ReportEntry<'_>) {
        let group = self.result.groups.get(entry.group);
        let Some(group) = group.filter(|g| g.jobs.len() == entry.jobs.len()) else {
            return;
        };
        let Some(overlap) = Overlap::of(group).filter(|_| entry.workers.len() > 1) else {
            return;
        };
        let whole: f64 = group.rates.iter().map(|r| r.ops_per_s.0).sum();
        if (overlap.iops.0 / whole - 1.0).abs() > 0.01 {
            self.overlap(&overlap, &[entry], "workers");
        }
    }

    /// `while all workers ran: 10.5 GB/s (12.6 of 14.0 s)`.
    fn overlap(&mut self, overlap: &Overlap, members: &[&ReportEntry<'_>], who: &str) {
        let mut text = format!("while all {who} ran: {}", self.numbers.iops(overlap.iops));
        if let Some(rate) = overlap.bandwidth {
            text = format!("{text}, {}", self.numbers.bandwidth(rate));
        }
        if let Some((together, whole)) = times(members) {
            text = format!("{text} ({together} of {whole})");
        }
        self.layout.prose(" ".repeat(INDENT), INDENT, &text);
    }
}

/// The time in which all workers ran, and the time in which any did.
fn times(members: &[&ReportEntry<'_>]) -> Option<(Nanos, Nanos)> {
    let spans = || {
        members
            .iter()
            .flat_map(|e| &e.workers)
            .filter_map(|w| w.span)
    };
    let (first, last) = (
        spans().map(|s| s.start_ns).min()?,
        spans().map(|s| s.end_ns).max()?,
    );
    let (begin, end) = (
        spans().map(|s| s.start_ns).max()?,
        spans().map(|s| s.end_ns).min()?,
    );
    Some((end.checked_sub(begin)?, last.checked_sub(first)?))
}
