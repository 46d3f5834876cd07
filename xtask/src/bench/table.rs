//! The table of a bench, and its place in the page of the bench.
//!
//! In: comparisons. Out: Markdown; the part of a file between the two markers
//! of a bench, replaced or appended. Not here: the statistics (`ab`).

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::{Metric, Target, side};
use crate::ab::{Comparison, Spread};

const HEAD: &str = "| case | metric | weir | peer | weir / peer | 95 % interval | target | |\n\
                    |---|---|--:|--:|--:|---|---|---|\n";

/// One line: a metric of a case.
pub(super) struct Row {
    case: String,
    metric: String,
    weir: String,
    peer: String,
    ratio: String,
    interval: String,
    target: String,
    verdict: &'static str,
}

impl Row {
    /// A metric measured in rounds.
    pub(super) fn of(case: &str, metric: &Metric, result: &Comparison) -> Self {
        let value = result.ratio.map(|ratio| ratio.value);
        let ends = result.ratio.and_then(|r| Some((r.low?, r.high?)));
        let mut row = Self::empty(case, metric);
        row.weir = spread(&result.weir);
        row.peer = spread(&result.peer);
        row.interval = ends.map_or("–".to_owned(), |(low, high)| {
            format!("{low:.3} … {high:.3}")
        });
        row.judged(value, metric.target)
    }

    /// A metric that is counted once a side, without rounds.
    pub(super) fn counted(case: &str, metric: &Metric, weir: f64, peer: f64) -> Self {
        let mut row = Self::empty(case, metric);
        row.weir = significant(weir);
        row.peer = significant(peer);
        row.interval.replace_range(.., "counted");
        row.judged(Some(weir / peer), metric.target)
    }

    /// A share of weir's own runs.
    pub(super) fn share(case: &str, metric: &Metric, hits: usize, of: usize) -> Self {
        let mut row = Self::empty(case, metric);
        row.weir = format!("{hits} of {of}");
        let share = (of > 0).then(|| hits as f64 / of as f64);
        row.judged(share, metric.target)
    }

    /// A metric that could not be measured.
    pub(super) fn not_measured(case: &str, metric: &Metric, why: &str) -> Self {
        let mut row = Self::empty(case, metric);
        row.interval = format!("not measured: {}", why.replace(['\n', '|'], " "));
        row
    }

    fn empty(case: &str, metric: &Metric) -> Self {
        let none = || "–".to_owned();
        Self {
            case: case.to_owned(),
            metric: format!("{} ({})", metric.name, metric.unit),
            weir: none(),
            peer: none(),
            ratio: none(),
            interval: none(),
            target: match aim(metric.target) {
                Target::AtLeast(limit) => format!("≥ {}", brief(limit)),
                Target::AtMost(limit) => format!("≤ {}", brief(limit)),
                Target::None => none(),
            },
            verdict: "",
        }
    }

    fn judged(mut self, ratio: Option<f64>, target: Target) -> Self {
        let Some(ratio) = ratio else { return self };
        let verdict = |met| if met { "met" } else { "missed" };
        self.ratio = format!("**{ratio:.3}**");
        self.verdict = match aim(target) {
            Target::AtLeast(limit) => verdict(ratio >= limit),
            Target::AtMost(limit) => verdict(ratio <= limit),
            Target::None => "",
        };
        self
    }

    fn cells(&self) -> [&str; 8] {
        [
            &self.case,
            &self.metric,
            &self.weir,
            &self.peer,
            &self.ratio,
            &self.interval,
            &self.target,
            self.verdict,
        ]
    }
}

/// Targets are for peers: another build of weir has none.
fn aim(target: Target) -> Target {
    match side::other() {
        Some(_) => Target::None,
        None => target,
    }
}

/// Rows as they come, for the terminal.
pub(super) fn plain(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let [_, metric, weir, peer, ratio, interval, target, verdict] = row.cells();
        let ratio = ratio.trim_matches('*');
        let _ = writeln!(
            text,
            "  {metric}: {weir} / {peer} = {ratio} ({interval}), target {target} {verdict}"
        );
    }
    text
}

/// The table.
pub(super) fn render(rows: &[Row]) -> String {
    let mut text = HEAD.to_owned();
    for row in rows {
        let _ = writeln!(text, "| {} |", row.cells().join(" | "));
    }
    format!(
        "{text}\nMedians ± median absolute deviation; the interval is a bootstrap over rounds.\n"
    )
}

/// Four significant digits; the deviation as a share of the median.
fn spread(spread: &Spread) -> String {
    let percent = 100.0 * spread.deviation / spread.median;
    format!("{} ± {percent:.1} %", significant(spread.median))
}

fn significant(value: f64) -> String {
    let digits = (0..4).find(|&digits| value.abs() >= 10_f64.powi(3 - digits));
    let decimals = digits.unwrap_or(4);
    format!("{value:.*}", usize::try_from(decimals).unwrap_or(0))
}

/// Puts `text` between the markers of `bench`, at the end of the file if they
/// are not there yet.
pub(super) fn write(path: &str, bench: &str, text: &str) -> Result<()> {
    let old = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
    std::fs::write(path, replace(&old, bench, text)).with_context(|| path.to_owned())
}

fn replace(old: &str, bench: &str, text: &str) -> String {
    let begin = format!("<!-- bench:{bench} begin -->");
    let end = format!("<!-- bench:{bench} end -->");
    let block = format!("{begin}\n{text}{end}");
    let place = old.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    match place {
        Some((before, after)) => format!("{before}{block}{after}"),
        None => format!("{}\n\n## {bench}\n\n{block}\n", old.trim_end()),
    }
}

/// A limit without digits that say nothing: `0.75`, `0.455`.
fn brief(limit: f64) -> f64 {
    (limit * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_appended_once_and_replaced_after() {
        let first = replace("# Benches\n", "fio", "one\n");
        assert_eq!(
            first,
            "# Benches\n\n## fio\n\n<!-- bench:fio begin -->\none\n<!-- bench:fio end -->\n"
        );
        let second = replace(&first, "fio", "two\n");
        assert_eq!(second, first.replace("one", "two"));
        assert!(replace(&second, "net", "three\n").starts_with(&second));
    }

    fn metric(target: Target) -> Metric {
        Metric {
            name: "wall time",
            unit: "ms",
            target,
        }
    }

    #[test]
    fn a_row_says_whether_the_target_is_met() {
        let side = |median| Spread {
            median,
            deviation: median / 100.0,
        };
        let result = Comparison {
            weir: side(3.0),
            peer: side(4.0),
            ratio: Some(weir_stats::Estimate::within(0.75, 0.7, 0.8)),
        };
        let line = |target| render(&[Row::of("start", &metric(target), &result)]);
        assert!(
            line(Target::AtMost(0.9)).contains(
                "| start | wall time (ms) | 3.000 ± 1.0 % | 4.000 ± 1.0 % | **0.750** \
                 | 0.700 … 0.800 | ≤ 0.9 | met |\n"
            ),
            "{}",
            line(Target::AtMost(0.9))
        );
        assert!(line(Target::AtMost(0.5)).contains("| ≤ 0.5 | missed |"));
        assert!(line(Target::AtMost(1.0 / 2.2)).contains("| ≤ 0.455 |"));
        assert!(line(Target::AtLeast(0.7)).contains("| ≥ 0.7 | met |"));
        assert!(line(Target::None).contains("| – |  |"));
    }

    #[test]
    fn a_row_without_a_value_says_why_and_judges_nothing() {
        let row = Row::not_measured("psync", &metric(Target::AtMost(1.0)), "no valgrind");
        let text = render(&[row]);
        assert!(
            text.contains("| – | not measured: no valgrind | ≤ 1 |  |"),
            "{text}"
        );
    }

    #[test]
    fn values_have_four_significant_digits() {
        assert_eq!(significant(1_234_567.8), "1234568");
        assert_eq!(significant(12.345), "12.35");
        assert_eq!(significant(0.012_34), "0.0123");
    }
}
