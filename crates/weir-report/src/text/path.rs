//! Time per packet of each stage of a packet path.

use weir_schema::Outcome;

use super::Report;
use crate::entry::ReportEntry;
use crate::layout::{LayoutRow, RowItem};
use crate::path_stages::{StageTime, stage_times};

impl Report<'_> {
    /// A row for each stage: its work, the stall beside it, the packets they are the mean of.
    pub(super) fn path(&mut self, entry: &ReportEntry<'_>) {
        let done = entry.jobs.iter().find_map(|job| match &job.outcome {
            Outcome::PacketPath(done) => Some(done.as_ref()),
            _ => None,
        });
        let times = done.map(stage_times).unwrap_or_default();
        let rows: Vec<LayoutRow> = times.iter().map(|time| self.stage_row(time)).collect();
        self.layout.rows(&rows);
    }

    fn stage_row(&self, time: &StageTime) -> LayoutRow {
        let (side, stage) = time.name.split_once(' ').unwrap_or(("", &time.name));
        let nanos = |seconds: f64| format!("{:.1} ns", seconds * 1e9);
        let items = vec![
            RowItem::bare("stage", stage),
            RowItem::keyed("work", nanos(time.work)),
            RowItem::keyed("stall", nanos(time.stall)),
            RowItem::bare(
                "packets",
                format!("{} timed packets", self.numbers.count(time.packets)),
            ),
        ];
        LayoutRow::new(side, items)
    }
}
