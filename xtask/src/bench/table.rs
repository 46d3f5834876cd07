//! The table of a bench, and its place in `bench/README.md`.
//!
//! In: comparisons. Out: Markdown; the part of a file between the two markers
//! of a bench, replaced or appended. Not here: the statistics (`ab`).

use anyhow::{Context, Result};

use super::{Metric, Target};
use crate::ab::{Comparison, Spread};

const HEAD: &str = "| case | metric | weir | peer | weir / peer | 95 % interval | target | |\n\
                    |---|---|--:|--:|--:|---|---|---|\n";

/// One line: a metric of a case.
pub(super) fn row(case: &str, metric: &Metric, result: &Comparison) -> String {
    let (target, met) = match metric.target {
        Target::AtMost(limit) => (format!("≤ {limit}"), result.ratio <= limit),
    };
    format!(
        "| {case} | {} ({}) | {} | {} | **{:.3}** | {:.3} … {:.3} | {target} | {} |\n",
        metric.name,
        metric.unit,
        value(&result.weir),
        value(&result.peer),
        result.ratio,
        result.low,
        result.high,
        if met { "met" } else { "missed" },
    )
}

pub(super) fn render(rows: &[String]) -> String {
    format!(
        "{HEAD}{}\nMedians ± median absolute deviation; the interval is a bootstrap over rounds.\n",
        rows.concat()
    )
}

/// Four significant digits; the deviation as a share of the median.
fn value(spread: &Spread) -> String {
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

    #[test]
    fn a_row_says_whether_the_target_is_met() {
        let side = |median| Spread {
            median,
            deviation: median / 100.0,
        };
        let result = Comparison {
            weir: side(3.0),
            peer: side(4.0),
            ratio: 0.75,
            low: 0.7,
            high: 0.8,
        };
        let metric = |limit| Metric {
            name: "wall time",
            unit: "ms",
            target: Target::AtMost(limit),
        };
        let line = row("start", &metric(0.9), &result);
        assert_eq!(
            line,
            "| start | wall time (ms) | 3.000 ± 1.0 % | 4.000 ± 1.0 % | **0.750** \
             | 0.700 … 0.800 | ≤ 0.9 | met |\n"
        );
        assert!(row("start", &metric(0.5), &result).contains("missed"));
    }

    #[test]
    fn values_have_four_significant_digits() {
        assert_eq!(significant(1_234_567.8), "1234568");
        assert_eq!(significant(12.345), "12.35");
        assert_eq!(significant(0.012_34), "0.0123");
    }
}
