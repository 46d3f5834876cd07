//! RPCs by master and endpoint: how many, how fast, what failed.
//!
//! In: what the masters of a job measured. Out: a row for each, below it a row for each of its slowest
//! endpoints. Not here: all of them together, which is what the rows of any loop say.

use weir_schema::{RpcEndpointResult, RpcMaster};
use weir_units::Iops;

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::ReportEntry;
use crate::layout::{INDENT, LayoutRow, RowItem};

/// Largest number of masters with a row, and of endpoints of each.
const MOST_ROWS: usize = 8;

impl Report<'_> {
    pub(super) fn rpc(&mut self, entry: &ReportEntry<'_>) {
        let masters: Vec<&RpcMaster> = entry.masters().collect();
        for master in masters.iter().take(MOST_ROWS) {
            self.master(master);
        }
        if let Some(more) = masters
            .len()
            .checked_sub(MOST_ROWS)
            .filter(|more| *more > 0)
        {
            let text = format!("{} of {} masters are not shown", more, masters.len());
            self.layout.prose("  masters   ", INDENT, &text);
        }
    }

    fn master(&mut self, master: &RpcMaster) {
        let label = format!("from {}", master.endpoint);
        if let Some(failure) = &master.failure {
            let text = Text::new(Tone::Bad, failure.message.as_str());
            self.row(LayoutRow::new(label, vec![RowItem::keyed("failed", text)]));
            return;
        }
        let mut rows = vec![self.master_row(label, master)];
        let mut slowest: Vec<&RpcEndpointResult> = master.endpoints.iter().collect();
        // Those without any reply first.
        slowest.sort_by_key(|one| std::cmp::Reverse(one.median_ns.map_or(u64::MAX, |ns| ns.0)));
        slowest.truncate(MOST_ROWS);
        slowest.sort_by_key(|one| one.endpoint);
        rows.extend(slowest.iter().map(|one| self.endpoint_row(one)));
        self.layout.rows(&rows);
        let more = master.endpoints.len() - slowest.len();
        if more > 0 {
            let text = format!("{more} faster endpoints are not shown");
            self.layout.prose("            ", INDENT, &text);
        }
    }

    fn master_row(&self, label: String, master: &RpcMaster) -> LayoutRow {
        // Where pairs had turns, each has a rate of its own, and all of them together have none.
        let has_turns = master.endpoints.iter().any(|one| one.turn_ns.is_some());
        let rate = if has_turns {
            "pair by pair".to_owned()
        } else {
            self.numbers.iops(Iops(master.rate()))
        };
        let mut items = vec![RowItem::bare("rate", rate)];
        let figures = master.figures.as_ref();
        let median = figures.map_or_else(|| "none".to_owned(), |f| self.numbers.time(f.median_ns));
        items.push(RowItem::keyed("median", median));
        items.extend(self.spoilt("failed", master.failed));
        items.extend(self.spoilt("not sent", master.not_sent));
        items.extend(self.spoilt("wrong payloads", master.mismatches));
        items.extend(self.spoilt("late replies", master.late_replies));
        let path = master.bulk_path.as_deref();
        let path = path.map_or(String::new(), |path| format!(", {path}"));
        items.push(RowItem::bare(
            "transport",
            format!("{}{path}", master.transport),
        ));
        LayoutRow::new(label, items)
    }

    fn endpoint_row(&self, one: &RpcEndpointResult) -> LayoutRow {
        let median = one.median_ns.map(|ns| self.numbers.time(ns));
        let median = median.unwrap_or_else(|| "none".to_owned());
        let mut items = vec![
            RowItem::bare("RPCs", format!("{} RPCs", self.numbers.count(one.sent()))),
            RowItem::keyed("median", median),
        ];
        let rate = one.rate().map(|rate| self.numbers.iops(Iops(rate)));
        items.extend(rate.map(|rate| RowItem::bare("rate", rate)));
        let first = one
            .first
            .and_then(|first| first.rpc_ns.zip(first.connect_ns));
        items.extend(first.map(|(rpc, connect)| {
            let (rpc, connect) = (self.numbers.time(rpc), self.numbers.time(connect));
            RowItem::keyed("first", format!("{rpc} after {connect} to connect"))
        }));
        for (code, count) in &one.failed {
            items.extend(self.spoilt(&code.to_string(), *count));
        }
        LayoutRow::new(format!("  to {}", one.endpoint), items)
    }

    /// A count that should be 0, where it is not.
    fn spoilt(&self, what: &str, count: u64) -> Option<RowItem> {
        let count = (count > 0).then(|| self.numbers.count(count))?;
        Some(RowItem::keyed(what, Text::new(Tone::Bad, count)))
    }
}
