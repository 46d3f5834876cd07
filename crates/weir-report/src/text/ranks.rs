//! Several ranks: how far their rates lie apart, and which of them are slow.

use weir_schema::{RankSummary, RunResult};
use weir_units::Iops;

use super::Report;
use crate::color::Tone;

/// A rank below this share of the median rate is slow.
const SLOW_BELOW: f64 = 0.9;
/// Largest number of slow ranks that are named.
const NAMED: usize = 8;

impl Report<'_> {
    pub(super) fn ranks(&mut self) {
        let result = self.result;
        if result.ranks.is_empty() {
            return;
        }
        self.layout.blank();
        let mut rates: Vec<(f64, &RankSummary)> =
            result.ranks.iter().map(|r| (rate(r), r)).collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        let middle = [(rates.len() - 1) / 2, rates.len() / 2];
        let median = middle.map(|at| rates[at].0).iter().sum::<f64>() / 2.0;
        if rates.iter().all(|(rate, _)| *rate <= 0.0) {
            // Their jobs count no operations.
            self.line("ranks", Tone::Plain, None, &whom(result));
            return self.failed_ranks();
        }
        let show = |rate: f64| self.numbers.iops(Iops(rate));
        let spread = format!(
            "{}  least {}  median {}  most {}",
            whom(result),
            show(rates[0].0),
            show(median),
            show(rates[rates.len() - 1].0)
        );
        self.line("ranks", Tone::Plain, None, &spread);
        let slow = rates.iter().filter(|(rate, _)| *rate < SLOW_BELOW * median);
        for (rate, rank) in slow.clone().take(NAMED) {
            let text = format!(
                "{}: {:.0} % of the median rate",
                name(rank),
                100.0 * rate / median
            );
            self.line("slow", Tone::Warn, None, &text);
        }
        let unnamed = slow.count().saturating_sub(NAMED);
        if unnamed > 0 {
            self.line("slow", Tone::Warn, None, &format!("and {unnamed} more"));
        }
        self.failed_ranks();
    }

    fn failed_ranks(&mut self) {
        for rank in self.result.ranks.iter().filter(|r| r.failed_jobs > 0) {
            let text = format!("{}: {} jobs failed", name(rank), rank.failed_jobs);
            self.line("failed", Tone::Bad, None, &text);
        }
    }
}

/// Operations per second over the rank's own time.
fn rate(rank: &RankSummary) -> f64 {
    let time = rank.span.map(weir_schema::Span::length).unwrap_or_default();
    Iops::of(rank.operations, time).map_or(0.0, |rate| rate.0)
}

/// `4 on 2 hosts`.
fn whom(result: &RunResult) -> String {
    let mut hosts: Vec<_> = result.ranks.iter().map(|r| r.hostname.as_ref()).collect();
    hosts.sort();
    hosts.dedup();
    let plural = if hosts.len() == 1 { "" } else { "s" };
    format!("{} on {} host{plural}", result.ranks.len(), hosts.len())
}

/// `rank 3 (node7)`.
fn name(rank: &RankSummary) -> String {
    match &rank.hostname {
        Some(host) => format!("rank {} ({host})", rank.rank),
        None => format!("rank {}", rank.rank),
    }
}
