//! One job in full: what it did, its rates, latencies, course, load and spread; then how it
//! ended (`ending`).

use weir_schema::{Confidence, PartSpan, PhaseResult, Span, WorkerResult};
use weir_stats::NoInterval;
use weir_units::{Bytes, BytesPerSec, Iops, Nanos};

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::{KindSum, ReportEntry};
use crate::layout::{INDENT, LayoutRow, RowItem};
use crate::number_format::{brief, significant};
use crate::phrases::{aspects, title};

impl Report<'_> {
    pub(super) fn job(&mut self, entry: &ReportEntry<'_>, number: usize) {
        self.title(entry);
        self.rates(entry);
        self.metrics(entry);
        self.latencies(entry);
        self.rpc(entry);
        self.path(entry);
        if let Some(row) = self.course(entry) {
            self.row(row);
        }
        self.row(self.load(entry));
        self.row(self.spread(entry));
        self.row(self.parts(entry));
        self.found(entry);
        self.problems(entry, number, None);
    }

    pub(super) fn title(&mut self, entry: &ReportEntry<'_>) {
        let workers = entry.workers.len();
        let mut parts = match entry.plan {
            // What the job does stands above.
            Some(_) if entry.phase.is_some() => {
                let plural = if workers == 1 { "" } else { "s" };
                vec![format!("{workers} worker{plural}")]
            }
            Some(plan) if workers > 0 => title(&aspects(plan, workers)),
            Some(plan) => title(&aspects(plan, usize::try_from(plan.clones).unwrap_or(1))),
            None => Vec::new(),
        };
        parts.extend(entry.remark());
        if entry.ranks > 1 && workers > 0 {
            parts.push(format!("on each of {} ranks", entry.ranks));
        }
        if entry.jobs.len() > 1 {
            parts.push(format!("{} jobs as one", entry.jobs.len()));
        }
        parts.extend(entry.time().map(|t| t.to_string()));
        let parts: Vec<Text> = parts.into_iter().map(Text::from).collect();
        let name = Text::new(Tone::Strong, entry.name()).and(Tone::Plain, "   ");
        self.layout.list(name, INDENT, &parts);
    }

    /// `rate`, or a row for each kind; then the rate without stragglers.
    fn rates(&mut self, entry: &ReportEntry<'_>) {
        let several = entry.kinds.len() > 1;
        let rows: Vec<LayoutRow> = entry
            .kinds
            .iter()
            .map(|kind| {
                let label = if several { &kind.name } else { "rate" };
                let done = (kind.sum.operations, kind.sum.bytes);
                let rates = (entry.iops(kind), entry.bandwidth(kind));
                let sure = entry.confidence(kind).filter(|_| kind.sum.operations > 0);
                let items = self.rate_items(done, rates, sure);
                self.with_kind(several, kind, LayoutRow::new(label, items))
            })
            .filter(|row| !row.items.is_empty())
            .collect();
        self.layout.rows(&rows);
        self.straggling(entry);
    }

    /// Operations per second, bytes per second, how sure they are, and what was done.
    pub(super) fn rate_items(
        &self,
        (operations, bytes): (u64, Bytes),
        (iops, bandwidth): (Option<Iops>, Option<BytesPerSec>),
        confidence: Option<&Confidence>,
    ) -> Vec<RowItem> {
        let strong = |text| Text::new(Tone::Strong, text);
        let mut items = Vec::new();
        items.extend(iops.map(|r| RowItem::bare("rate", strong(self.numbers.iops(r))).pad(12)));
        let bandwidth = bandwidth.map_or(String::new(), |rate| self.numbers.bandwidth(rate));
        items.push(RowItem::bare("bandwidth", strong(bandwidth)).pad(10));
        items.extend(plus_minus(confidence));
        let mut done = format!("{} ops", self.numbers.count(operations));
        if bytes > Bytes::ZERO {
            done = format!("{done}, {}", self.numbers.size(bytes));
        }
        items.push(RowItem::bare("done", done));
        items
    }

    /// The kind goes into the keys where items stand alone.
    pub(super) fn with_kind(&self, several: bool, kind: &KindSum, mut row: LayoutRow) -> LayoutRow {
        if several && self.layout.is_key_value() {
            row.items = row
                .items
                .into_iter()
                .map(|item| item.of(&kind.name))
                .collect();
        }
        row
    }

    /// In flight, CPU, errors.
    fn load(&self, entry: &ReportEntry<'_>) -> LayoutRow {
        let mut items = Vec::new();
        let mut label = "in flight";
        if let Some(mean) = entry.in_flight() {
            let limit = entry
                .depth_limit()
                .map_or(String::new(), |limit| format!(" of {limit}"));
            items.push(RowItem::bare(
                label,
                format!("{}{limit}", significant(mean, 3)),
            ));
        } else {
            label = "load";
        }
        items.extend(
            entry
                .cores()
                .map(|(user, system)| RowItem::keyed("CPU", cpu(user, system))),
        );
        if !entry.workers.is_empty() {
            let errors = entry.errors();
            let tone = if errors > 0 { Tone::Bad } else { Tone::Plain };
            let count = self.numbers.count(errors);
            let words = format!("{count} error{}", if errors == 1 { "" } else { "s" });
            let item = RowItem::keyed("errors", Text::new(tone, count));
            items.push(item.among(Text::new(tone, words)));
        }
        LayoutRow {
            gap: 3,
            ..LayoutRow::new(label, items)
        }
    }

    /// Longest time of a rank in each part of a phase.
    fn parts(&self, entry: &ReportEntry<'_>) -> LayoutRow {
        let parts = entry.phase.map(PhaseResult::parts).unwrap_or_default();
        let item =
            |part: &PartSpan| RowItem::keyed(&*part.name, self.numbers.time(part.span.length()));
        LayoutRow {
            gap: 3,
            ..LayoutRow::new("parts", parts.iter().map(item).collect())
        }
    }

    /// The slowest, the middle and the fastest worker.
    fn spread(&self, entry: &ReportEntry<'_>) -> LayoutRow {
        let moved = entry.kinds.iter().any(|k| k.sum.bytes > Bytes::ZERO);
        let number = |worker: &WorkerResult| {
            if entry.jobs.len() > 1 {
                worker.number
            } else {
                worker.clone
            }
        };
        let mut rates: Vec<(f64, u32)> = entry
            .workers
            .iter()
            .filter_map(|w| Some((rate(w, w.span.map(Span::length)?, moved)?, number(w))))
            .collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut items = Vec::new();
        // Threads of a packet path do not do the same.
        let are_alike = entry.jobs.iter().all(|job| job.packet_path().is_none());
        if let [slowest, .., fastest] = rates.as_slice()
            && are_alike
        {
            let unit = self
                .numbers
                .rate_unit(fastest.0, if moved { "B/s" } else { "ops/s" });
            let middle = rates.len() / 2;
            let median = if rates.len().is_multiple_of(2) {
                f64::midpoint(rates[middle - 1].0, rates[middle].0)
            } else {
                rates[middle].0
            };
            let (low, high) = (unit.print(slowest.0), unit.print(fastest.0));
            let slowest = format!("{low} {} (worker {})", unit.name, slowest.1);
            items.push(RowItem::keyed("slowest", slowest));
            items.push(RowItem::keyed("median", unit.print(median)));
            items.push(RowItem::keyed(
                "fastest",
                format!("{high} (worker {})", fastest.1),
            ));
        }
        LayoutRow {
            gap: 3,
            ..LayoutRow::new("workers", items)
        }
    }
}

/// `± 0.6 % in this run`, or why nobody knows; nothing where nobody looked.
fn plus_minus(confidence: Option<&Confidence>) -> Option<RowItem> {
    let half = sure(confidence)?.map(|half| format!("{half} in this run"));
    let text = half.unwrap_or_else(|reason| format!("unknown ({reason})"));
    Some(RowItem::keyed("±", text).pad(17))
}

/// Half the interval of the rate in percent, or why there is none; nothing where none was looked for.
pub(super) fn sure(confidence: Option<&Confidence>) -> Option<Result<String, &'static str>> {
    let rate = confidence?.ops_per_s;
    Some(match (rate.half_width(), rate.absent) {
        (_, Some(NoInterval::ShortRun)) => Err("short run"),
        (_, Some(NoInterval::SeenAtEnd)) => Err("seen at the end alone"),
        (Some(half), _) if rate.value > 0.0 => {
            Ok(format!("{} %", brief(100.0 * half / rate.value)))
        }
        _ => Err("no rate"),
    })
}

/// Bytes or operations per second of one worker.
fn rate(worker: &WorkerResult, time: Nanos, moved: bool) -> Option<f64> {
    if moved {
        let bytes = worker.kinds.iter().map(|k| k.bytes).sum();
        BytesPerSec::of(bytes, time).map(|r| r.0)
    } else {
        Iops::of(worker.kinds.iter().map(|k| k.operations).sum(), time).map(|r| r.0)
    }
}

/// `71 % of a core (user 22, system 49)`, or cores from one on.
fn cpu(user: f64, system: f64) -> String {
    let total = user + system;
    if total < 0.995 {
        let [total, user, system] = [total, user, system].map(|part| brief(part * 100.0));
        format!("{total} % of a core (user {user}, system {system})")
    } else {
        let [total, user, system] = [total, user, system].map(|part| significant(part, 3));
        format!("{total} cores (user {user}, system {system})")
    }
}
