//! The headline figures that workers do not say in full: a line each, whatever the workload.

use weir_schema::Metric;

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::ReportEntry;
use crate::layout::{INDENT, LayoutRow, RowItem};
use crate::number_format::brief;

impl Report<'_> {
    /// The figures of an entry whose own lines do not show them.
    pub(super) fn metrics(&mut self, entry: &ReportEntry<'_>) {
        let metrics = entry.metrics();
        let columns = |metric: &&Metric| self.layout.columns(&metric.name.as_str().into());
        let widths: Vec<usize> = metrics.iter().map(columns).collect();
        let widest = widths.iter().copied().max().unwrap_or(0);
        for (metric, width) in metrics.into_iter().zip(widths) {
            let value = Text::new(Tone::Strong, self.numbers.metric(metric));
            let sure = sure(metric);
            if self.layout.is_key_value() {
                self.row(LayoutRow::new(
                    "",
                    vec![RowItem::keyed(&*metric.name, value)],
                ));
                continue;
            }
            let lead = format!("  {}{}  ", metric.name, " ".repeat(widest - width));
            let atoms = [value].into_iter().chain(sure.map(Text::from));
            let atoms = atoms.enumerate().map(|(i, atom)| (2 * i, atom));
            self.layout.flow(lead, INDENT, atoms);
        }
    }

    /// The same under the entry's name, where nothing else stands below it.
    pub(super) fn named_metrics(&mut self, entry: &ReportEntry<'_>) {
        if entry.metrics().is_empty() {
            return;
        }
        self.layout.blank();
        let name = Text::new(Tone::Strong, entry.name());
        self.layout.flow(name, INDENT, []);
        self.metrics(entry);
    }
}

/// Half the interval in percent of the value.
fn sure(metric: &Metric) -> Option<String> {
    let half = metric.half_width().filter(|_| metric.value > 0.0)?;
    Some(format!("± {} %", brief(100.0 * half / metric.value)))
}
