//! Latencies of a job: percentiles per kind, the response first in an open loop, then the mean.

use weir_schema::Stage;
use weir_stats::Histogram;
use weir_units::Nanos;

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::{KindSum, ReportEntry};
use crate::layout::{INDENT, Row, RowItem};

/// Below this width there is no line for the mean.
const MEAN_FROM: usize = 80;

impl Report<'_> {
    pub(super) fn latencies(&mut self, entry: &ReportEntry<'_>) {
        let several = entry.kinds.len() > 1;
        let mut rows = Vec::new();
        for (stage, label) in [
            (Stage::Rlat, "response"),
            (Stage::Lat, "latency"),
            (Stage::Clat, "clat"),
        ] {
            let mut label = label;
            for kind in &entry.kinds {
                // The total says more than its last part.
                if stage == Stage::Clat && kind.stage(Stage::Lat).is_some() {
                    continue;
                }
                let Some(histogram) = kind.stage(stage) else {
                    continue;
                };
                let mut items = self.percentiles(histogram);
                if stage == Stage::Rlat && self.layout.is_key_value() {
                    items = items.into_iter().map(|item| item.of("response")).collect();
                }
                rows.push(self.named(several, kind, Row::new(label, items)));
                label = "";
            }
        }
        self.layout.rows(&rows);
        if self.style.width >= MEAN_FROM {
            self.means(entry, several);
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
    fn named(&self, several: bool, kind: &KindSum, mut row: Row) -> Row {
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

    fn means(&mut self, entry: &ReportEntry<'_>, several: bool) {
        let mut rows = Vec::new();
        for kind in &entry.kinds {
            let measured = [Stage::Lat, Stage::Clat, Stage::Rlat]
                .into_iter()
                .find_map(|stage| Some((stage, kind.stage(stage)?)));
            let Some((stage, histogram)) = measured else {
                continue;
            };
            let estimate = entry.confidence(kind).and_then(|c| c.mean_latency_ns);
            let half = estimate
                .filter(|_| stage == Stage::Lat)
                .and_then(|e| e.half_width());
            let mut items = Vec::new();
            if let Some(mean) = histogram.mean() {
                items.push(RowItem::keyed("mean", self.numbers.mean(mean, half)));
            }
            items.extend(
                histogram
                    .min()
                    .map(|v| RowItem::keyed("min", self.numbers.time(Nanos(v)))),
            );
            let slat = kind
                .stage(Stage::Slat)
                .and_then(|h| self.percentile(h, 50.0));
            items.extend(slat.map(|value| RowItem::keyed("slat p50", value)));
            rows.push(self.named(several, kind, Row::new("", items)));
        }
        self.layout.rows(&rows);
    }
}
