//! Latencies of a job: percentiles per kind, the response first in an open loop, then the mean.

use weir_schema::Stage;
use weir_stats::Histogram;
use weir_units::Nanos;

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::{KindSum, ReportEntry};
use crate::layout::{INDENT, LayoutRow, RowItem};

/// Below this width there is no line for the mean.
const MEAN_FROM: usize = 80;

/// A kind with what was measured of a stage.
type Measured<'a> = (&'a KindSum, &'a Histogram);

impl Report<'_> {
    pub(super) fn latencies(&mut self, entry: &ReportEntry<'_>) {
        for (stage, label) in [
            (Stage::Rlat, "response"),
            (Stage::Lat, "latency"),
            (Stage::Clat, "clat"),
        ] {
            // The total says more than its last part.
            let is_part = |k: &&KindSum| stage == Stage::Clat && k.stage(Stage::Lat).is_some();
            let kinds = entry.kinds.iter().filter(|kind| !is_part(kind));
            let measured: Vec<_> = kinds.filter_map(|k| Some((k, k.stage(stage)?))).collect();
            self.percentile_rows(entry, label, &measured);
            if self.style.width >= MEAN_FROM {
                self.means(entry, stage, &measured);
            }
        }
        if entry
            .kinds
            .iter()
            .any(|k| k.is_unmerged(Stage::Lat) || k.is_unmerged(Stage::Clat))
        {
            let reason = "absent: the jobs recorded it with different precision";
            self.layout.prose("  latency   ", INDENT, reason);
        }
    }

    /// The kind's name before its items, or in their keys.
    fn named(&self, several: bool, kind: &KindSum, mut row: LayoutRow) -> LayoutRow {
        if several && !self.layout.is_key_value() {
            row.items.insert(0, RowItem::bare("", &*kind.name));
            return row;
        }
        self.with_kind(several, kind, row)
    }

    pub(super) fn percentiles(&self, histogram: &Histogram) -> Vec<RowItem> {
        let percentiles = self.style.shown_percentiles();
        let shown = percentiles.iter().filter_map(|p| {
            let value = self.percentile(histogram, p.0)?;
            Some(RowItem::keyed(format!("p{}", p.0), value))
        });
        let max = histogram
            .max()
            .map(|v| RowItem::keyed("max", self.numbers.time(Nanos(v))));
        shown.chain(max).collect()
    }

    /// A percentile, marked if few samples lie beyond it.
    pub(super) fn percentile(&self, histogram: &Histogram, percent: f64) -> Option<Text> {
        let value = self.numbers.time(Nanos(histogram.percentile(percent)?));
        let few = if histogram.few_samples(percent) {
            "~"
        } else {
            ""
        };
        Some(Text::from(value).and(Tone::Plain, few))
    }

    /// A row of percentiles for each kind; the label stands before the first.
    fn percentile_rows(&mut self, entry: &ReportEntry<'_>, label: &str, measured: &[Measured<'_>]) {
        let several = entry.kinds.len() > 1;
        let mut rows = Vec::new();
        for (number, (kind, histogram)) in measured.iter().enumerate() {
            let mut items = self.percentiles(histogram);
            if label == "response" && self.layout.is_key_value() {
                items = items.into_iter().map(|item| item.of(label)).collect();
            }
            let label = if number == 0 { label } else { "" };
            rows.push(self.named(several, kind, LayoutRow::new(label, items)));
        }
        self.layout.rows(&rows);
    }

    /// The mean of each kind, with its interval where it is of this stage.
    fn means(&mut self, entry: &ReportEntry<'_>, stage: Stage, measured: &[Measured<'_>]) {
        let several = entry.kinds.len() > 1;
        let mut rows = Vec::new();
        for (kind, histogram) in measured {
            let sure = entry.confidence(kind);
            let sure = sure.filter(|c| c.latency_stage == Some(stage));
            let half = sure.and_then(|c| c.mean_latency_ns?.half_width());
            let mut items = Vec::new();
            if let Some(mean) = histogram.mean() {
                items.push(RowItem::keyed("mean", self.numbers.mean(mean, half)));
            }
            let min = histogram.min().map(|v| self.numbers.time(Nanos(v)));
            items.extend(min.map(|value| RowItem::keyed("min", value)));
            // From the issue on, as the latency above it, and not from the intended start.
            let slat = kind.stage(Stage::Slat).filter(|_| stage != Stage::Rlat);
            let slat = slat.and_then(|h| self.percentile(h, 50.0));
            items.extend(slat.map(|value| RowItem::keyed("slat p50", value)));
            rows.push(self.named(several, kind, LayoutRow::new("", items)));
        }
        self.layout.rows(&rows);
    }
}
