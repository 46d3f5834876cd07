//! Rates of a whole group, and what it did while all its members ran: stragglers make the two
//! differ.

use weir_units::{Bytes, Nanos};

use super::Report;
use crate::entry::{Entry, Overlap};
use crate::paper::{INDENT, Item, Row, Text, Tone};

impl Report<'_> {
    /// The group's own lines, where it has several entries that ran together.
    pub(super) fn group(&mut self, entries: &[Entry<'_>], number: usize) {
        let members: Vec<&Entry<'_>> = entries.iter().filter(|e| e.group == number).collect();
        let Some(group) = self.result.groups.get(number).filter(|_| members.len() > 1) else {
            return;
        };
        let Some(overlap) = Overlap::of(group) else { return };
        let several = group.rates.len() > 1;
        let name = Text::new(Tone::Strong, format!("all {} jobs", members.len()));
        self.paper.blank();
        self.paper.flow(name, INDENT, []);
        let figures = self.figures;
        let rows: Vec<Row> = group
            .rates
            .iter()
            .map(|rates| {
                let strong = |text: String| Text::new(Tone::Strong, text);
                let label = if several { rates.kind.name() } else { "rate" };
                let mut items =
                    vec![Item::bare("rate", strong(figures.iops(rates.ops_per_s))).pad(12)];
                let mut done = format!("{} ops", figures.count(rates.operations));
                if rates.bytes > Bytes::ZERO {
                    let bandwidth = strong(figures.bandwidth(rates.bytes_per_s));
                    items.push(Item::bare("bandwidth", bandwidth).pad(10));
                    done = format!("{done}, {}", figures.size(rates.bytes));
                }
                items.push(Item::bare("done", done));
                if several && self.paper.is_key_value() {
                    items = items.into_iter().map(|item| item.of(label)).collect();
                }
                Row::new(label, items)
            })
            .collect();
        self.paper.rows(&rows);
        self.overlap(&overlap, &members, "jobs");
    }

    /// The rate without stragglers, below the rate of an entry that is a whole group, where the
    /// two differ by more than a percent.
    pub(super) fn straggling(&mut self, entry: &Entry<'_>) {
        let group = self.result.groups.get(entry.group);
        let Some(group) = group.filter(|g| g.jobs.len() == entry.jobs.len()) else { return };
        let Some(overlap) = Overlap::of(group).filter(|_| entry.workers.len() > 1) else { return };
        let whole: f64 = group.rates.iter().map(|r| r.ops_per_s.0).sum();
        if (overlap.iops.0 / whole - 1.0).abs() > 0.01 {
            self.overlap(&overlap, &[entry], "workers");
        }
    }

    /// `while all workers ran: 10.5 GB/s (12.6 of 14.0 s)`.
    fn overlap(&mut self, overlap: &Overlap, members: &[&Entry<'_>], who: &str) {
        let mut text = format!("while all {who} ran: {}", self.figures.iops(overlap.iops));
        if let Some(rate) = overlap.bandwidth {
            text = format!("{text}, {}", self.figures.bandwidth(rate));
        }
        if let Some((together, whole)) = times(members) {
            text = format!("{text} ({together} of {whole})");
        }
        self.paper.prose(" ".repeat(INDENT), INDENT, &text);
    }
}

/// The time in which all workers ran, and the time in which any did.
fn times(members: &[&Entry<'_>]) -> Option<(Nanos, Nanos)> {
    let spans = || members.iter().flat_map(|e| &e.workers).filter_map(|w| w.span);
    let (first, last) =
        (spans().map(|s| s.start_ns).min()?, spans().map(|s| s.end_ns).max()?);
    let (begin, end) = (spans().map(|s| s.start_ns).max()?, spans().map(|s| s.end_ns).min()?);
    Some((end.checked_sub(begin)?, last.checked_sub(first)?))
}
