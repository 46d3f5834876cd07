//! The report of several runs: each figure with what differs between runs and what is uncertain
//! within one.
//!
//! In: the runs and a style. Out: for each plan the header of its first complete run and its jobs,
//! each with its figures over all complete runs. The histograms of all runs as one are only shown.
//! Not here: the statistics (`weir-stats`).

use weir_schema::{Metric, RunResult, RunSeries, Runs, Stage, Warning};
use weir_stats::{BetweenRuns, Histogram};
use weir_units::Nanos;

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::{KindSum, ReportEntry, entries};
use crate::layout::{INDENT, LayoutRow, LineLayout, RowItem};
use crate::number_format::{NumberFormat, brief};
use crate::style::Style;
use crate::text::warnings::PlacedWarnings;

/// Latencies in the order in which they say something to a user.
const STAGES: [Stage; 3] = [Stage::Rlat, Stage::Lat, Stage::Clat];

/// The runs as text for people, each line ended.
pub fn runs_text(runs: &Runs, style: &Style) -> String {
    let mut out = String::new();
    for series in &runs.series {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &of_series(series, runs.asked, style);
    }
    out
}

fn of_series(series: &RunSeries, asked: u32, style: &Style) -> String {
    let whole: Vec<&RunResult> = series.whole().collect();
    let Some(first) = whole.first().copied().or(series.runs.first()) else {
        return format!("{}: no run came to its end\n", series.name);
    };
    // What spoils any of the runs spoils what they say together.
    let mut shown = first.clone();
    shown.warnings = warnings(series);
    let entries = entries(&shown);
    let mut report = Report {
        result: &shown,
        style,
        numbers: NumberFormat { raw: style.raw },
        layout: LineLayout::new(style),
        warnings: PlacedWarnings::of(&shown, &entries, style.all_warnings),
    };
    report.header();
    let all: Vec<Vec<ReportEntry<'_>>> = whole.iter().map(|run| self::entries(run)).collect();
    for (number, entry) in entries.iter().enumerate() {
        report.layout.blank();
        report.title(entry);
        let runs: Vec<&ReportEntry<'_>> = all.iter().filter_map(|run| run.get(number)).collect();
        report.job_between(&runs);
        report.warnings_of(number, None);
        report.failures_between(series, number);
    }
    let missing = (asked as usize).saturating_sub(whole.len());
    if missing > 0 {
        let text = format!("({} of {asked} runs)", whole.len());
        report.line("INCOMPLETE", Tone::Bad, None, &text);
    }
    report.layout.blank();
    report.shared_warnings();
    report.instrument();
    report.history_place(series.history.as_ref());
    report.layout.finish()
}

/// The warnings of all runs, each kind once per job and with how many runs it is of, and those about the runs
/// together.
fn warnings(series: &RunSeries) -> Vec<Warning> {
    let mut found: Vec<Warning> = series.warnings.clone();
    let all = series.runs.len();
    for warning in series.runs.iter().flat_map(|run| &run.warnings) {
        let same = |w: &Warning| w.id == warning.id && w.job == warning.job;
        if found.iter().any(same) {
            continue;
        }
        let has_same = |run: &&RunResult| run.warnings.iter().any(same);
        let count = series.runs.iter().filter(has_same).count();
        let mut warning = warning.clone();
        if count < all {
            let cause = warning.cause.trim_end_matches('.');
            warning.cause = format!("{cause}: {count} of {all} runs.");
        }
        found.push(warning);
    }
    found
}

/// The interval between runs: `± 14 %`.
fn plus_minus(between: &BetweenRuns) -> String {
    between
        .half_width
        .map_or_else(String::new, |half| format!(" ± {} %", brief(100.0 * half)))
}

impl Report<'_> {
    fn job_between(&mut self, runs: &[&ReportEntry<'_>]) {
        let Some(first) = runs.first() else { return };
        let several = first.kinds.len() > 1;
        for kind in &first.kinds {
            let rates = runs
                .iter()
                .filter_map(|run| rate(run, kind))
                .collect::<Vec<_>>();
            if let Some(between) = BetweenRuns::of(&rates) {
                let label = if several { &kind.name } else { "rate" };
                let metric = Metric::high("", Metric::OPS_PER_S, between.mean);
                self.headline(label, &metric, &between);
            }
        }
        for metric in first.metrics() {
            let same = runs.iter().filter_map(|run| {
                let mut own = run.metrics().into_iter();
                own.find(|m| m.name == metric.name)
            });
            let values: Vec<_> = same.map(|m| (m.value, m.half_width())).collect();
            if let Some(between) = BetweenRuns::of(&values) {
                let value = between.mean;
                self.headline(
                    &metric.name,
                    &Metric {
                        value,
                        ..metric.clone()
                    },
                    &between,
                );
            }
        }
        for kind in &first.kinds {
            let owner = several.then_some(kind.name.as_str());
            self.percentiles_between(runs, kind, owner);
        }
    }

    /// `rate  485 k ops/s ± 14 % between 10 runs (159 k … 1044 k), within a run ± 10 %`.
    fn headline(&mut self, label: &str, metric: &Metric, between: &BetweenRuns) {
        let print = |value| {
            self.numbers.metric(&Metric {
                value,
                ..metric.clone()
            })
        };
        let bare = |value| {
            let text = print(value);
            let end = text.trim_end_matches("ops/s").trim_end().len();
            text[..end].to_owned()
        };
        let runs = match between.runs {
            1 => "in 1 run".to_owned(),
            n => format!(
                "between {n} runs ({} … {})",
                bare(between.least),
                bare(between.most)
            ),
        };
        let within = between.within.map_or_else(String::new, |half| {
            format!(", within a run ± {} %", brief(100.0 * half))
        });
        let value = Text::new(Tone::Strong, print(between.mean));
        let text = format!("{} {runs}{within}", plus_minus(between));
        let words = Text::from(text.trim_start()).words();
        let atoms = [value].into_iter().chain(words);
        let atoms = atoms
            .enumerate()
            .map(|(i, atom)| (usize::from(i > 0), atom));
        self.layout.flow(format!("  {label:<9} "), INDENT, atoms);
    }

    /// Each percentile from those of the runs; below it the histograms of all runs as one.
    fn percentiles_between(
        &mut self,
        runs: &[&ReportEntry<'_>],
        kind: &KindSum,
        owner: Option<&str>,
    ) {
        let Some(stage) = STAGES.into_iter().find(|s| kind.stage(*s).is_some()) else {
            return;
        };
        let same = |run: &&ReportEntry<'_>| -> Option<Histogram> {
            let mut kinds = run.kinds.iter();
            kinds.find(|k| k.name == kind.name)?.stage(stage).cloned()
        };
        let histograms: Vec<Histogram> = runs.iter().filter_map(same).collect();
        let mut items = Vec::new();
        for percent in self.style.shown_percentiles() {
            let values = histograms.iter().filter_map(|h| h.percentile(percent.0));
            let values: Vec<_> = values.map(|ns| (Nanos(ns).as_secs_f64(), None)).collect();
            let grains = histograms
                .iter()
                .filter_map(|h| h.percentile_grain(percent.0));
            let Some(between) = BetweenRuns::of(&values) else {
                continue;
            };
            let between = between.no_finer_than(grains.fold(0.0, f64::max));
            let time = Nanos::from_secs_f64(between.mean).unwrap_or_default();
            let text = format!("{}{}", self.numbers.time(time), plus_minus(&between));
            items.push(RowItem::keyed(format!("p{}", percent.0), text));
        }
        let label = if stage == Stage::Rlat {
            "response"
        } else {
            "latency"
        };
        self.named_row(label, owner, items);
        let mut pooled = Histogram::new();
        if histograms.iter().all(|h| pooled.merge(h).is_ok()) && histograms.len() > 1 {
            let items = self.percentiles(&pooled);
            self.named_row("pooled", owner, items);
        }
    }

    fn named_row(&mut self, label: &str, owner: Option<&str>, items: Vec<RowItem>) {
        let named = |items: Vec<RowItem>, owner: &str| {
            items.into_iter().map(|item| item.of(owner)).collect()
        };
        let items = match owner {
            Some(owner) if self.layout.is_key_value() => named(items, owner),
            Some(owner) => [RowItem::bare("", owner)]
                .into_iter()
                .chain(items)
                .collect(),
            None => items,
        };
        self.row(LayoutRow::new(label, items));
    }

    /// Failures of an entry, with their run.
    fn failures_between(&mut self, series: &RunSeries, entry: usize) {
        for (number, run) in (1..).zip(&series.runs) {
            let entries = entries(run);
            let failures = entries.get(entry).map(ReportEntry::failures);
            for failure in failures.into_iter().flatten() {
                let text = format!("run {number}: {}", failure.message);
                self.line("FAILED", Tone::Bad, None, &text);
            }
        }
    }
}

/// The rate of a kind in one run, and half the width of its interval there.
fn rate(run: &ReportEntry<'_>, kind: &KindSum) -> Option<(f64, Option<f64>)> {
    let kind = run.kinds.iter().find(|k| k.name == kind.name)?;
    let half = run.confidence(kind).and_then(|c| c.ops_per_s.half_width());
    Some((run.iops(kind)?.0, half))
}
