//! Findings and files of a job beside its figures: a steady rate, the depth of a latency, log
//! files.

use weir_schema::{Kind, SteadyMeasure, SteadyRate, read_share};

use super::Report;
use crate::color::Tone;
use crate::entry::ReportEntry;
use crate::number_format::significant;

/// Largest number of log files that are named.
const FILES: usize = 4;

impl Report<'_> {
    pub(super) fn found(&mut self, entry: &ReportEntry<'_>) {
        if let Some(text) = steady(entry) {
            self.line("steady", Tone::Plain, None, &text);
        }
        if let Some(text) = depth(entry) {
            self.line("depth", Tone::Plain, None, &text);
        }
        if let Some(text) = mix(entry) {
            self.line("mix", Tone::Plain, None, &text);
        }
        if let Some(text) = logs(entry) {
            self.line("logs", Tone::Plain, None, &text);
        }
    }
}

/// `yes: the IOPS slope is 0.03 % of the mean over 10 s (limit 0.1 %)`.
fn steady(entry: &ReportEntry<'_>) -> Option<String> {
    let bound = entry.plan?.load().bounds.steady?;
    let found = entry.workers.iter().find_map(|w| w.steadiness.as_ref())?;
    let rate = match bound.rate {
        SteadyRate::Operations => "IOPS",
        SteadyRate::Bytes => "bandwidth",
    };
    let seconds = bound.window_ns.0 / 1_000_000_000;
    let filled = u64::try_from(found.samples.len()).unwrap_or(u64::MAX) >= seconds;
    let answer = if found.attained { "yes" } else { "no" };
    if !filled {
        return Some(format!(
            "{answer}: the run was shorter than the {seconds} s asked for"
        ));
    }
    let measure = match bound.measure {
        SteadyMeasure::Slope => "slope",
        SteadyMeasure::Deviation => "largest deviation",
    };
    let unit = match (bound.in_percent, bound.rate) {
        (true, _) => " % of the mean",
        (false, SteadyRate::Operations) => " per second",
        (false, SteadyRate::Bytes) => " B/s",
    };
    Some(format!(
        "{answer}: {rate} {measure} {}{unit} over {seconds} s (limit {})",
        significant(found.criterion, 2),
        bound.limit
    ))
}

/// `12 keeps 99 % of operations below 100 µs`.
fn depth(entry: &ReportEntry<'_>) -> Option<String> {
    let target = entry.plan?.load().pacing.latency_target?;
    let found: Vec<_> = entry.workers.iter().filter_map(|w| w.depth_found).collect();
    let depths: Vec<String> = found.iter().map(|f| f.queue_depth.0.to_string()).collect();
    let settled = !found.is_empty() && found.iter().all(|f| f.settled);
    let unsettled = if settled { "" } else { " (not settled)" };
    Some(format!(
        "{} for {} % of operations within {}{unsettled}",
        depths.join(", "),
        target.share.0,
        target.target_ns
    ))
}

/// `reads 74.9 % of operations (75 % asked)`, where bursts of both kinds are drawn.
fn mix(entry: &ReportEntry<'_>) -> Option<String> {
    let work = entry.plan?.blocks()?;
    let is_mixed = work.mix.has(Kind::Read) && work.mix.has(Kind::Write);
    let bursts = work.bursts.filter(|_| is_mixed)?;
    let share = read_share(entry.workers.iter().copied())?;
    let asked = bursts.read_share(work.mix.read_percent);
    let percent = |share: f64| significant(share * 100.0, 3);
    Some(format!(
        "reads {} % of operations ({} % asked)",
        percent(share),
        percent(asked)
    ))
}

/// The files, the first few by name.
fn logs(entry: &ReportEntry<'_>) -> Option<String> {
    let paths: Vec<&str> = entry
        .jobs
        .iter()
        .flat_map(|job| &job.logs)
        .map(String::as_str)
        .collect();
    let shown = paths.iter().take(FILES).copied().collect::<Vec<_>>();
    let more = match paths.len().saturating_sub(FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!paths.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}
