//! A comparison for programs: JSON, CSV, Markdown, `JUnit`.
//!
//! In: the comparison. Out: text in one of these forms. CSV is that of RFC 4180 with bare line feeds;
//! what is missing is empty.

use std::fmt::Write as _;

use weir_report::NumberFormat;
use weir_schema::Metric;

use crate::comparison::{Comparison, JobComparison, MetricComparison, PairComparison, Verdict};
use crate::words::{chance, change_words, verdict_words};

const CSV_HEADS: &str = "base,side,job,kind,metric,unit,a,b,ratio,ratio_low,ratio_high,p,p_adjusted,\
                         threshold,verdict,within,more_rounds,runs_a,runs_b,drifting,outlier_rounds";

/// All of it.
pub fn json(comparison: &Comparison) -> String {
    // Numbers of figures that nobody has are null.
    serde_json::to_string(comparison).map_or_else(|_| String::new(), |text| text + "\n")
}

fn figures(
    comparison: &Comparison,
) -> impl Iterator<Item = (&PairComparison, &JobComparison, &MetricComparison)> {
    comparison.pairs.iter().flat_map(|pair| {
        let jobs = pair.jobs.iter();
        jobs.flat_map(move |job| job.metrics.iter().map(move |metric| (pair, job, metric)))
    })
}

/// A row per side, job and figure.
pub fn csv(comparison: &Comparison) -> String {
    let mut out = format!("{CSV_HEADS}\n");
    let number = |value: f64| {
        if value.is_finite() {
            value.to_string()
        } else {
            String::new()
        }
    };
    let maybe = |value: Option<f64>| value.map_or_else(String::new, number);
    for (pair, job, metric) in figures(comparison) {
        let (within, more) = match metric.verdict {
            Verdict::Same { within } => (Some(within), None),
            Verdict::Unsure { more_rounds } => (None, more_rounds),
            _ => (None, None),
        };
        let rounds: Vec<String> = metric.outlier_rounds.iter().map(u32::to_string).collect();
        let row = [
            pair.a.clone(),
            pair.b.clone(),
            job.name.clone(),
            metric.kind.clone().unwrap_or_default(),
            metric.name.clone(),
            metric.unit.clone(),
            number(metric.a),
            number(metric.b),
            maybe(metric.ratio.map(|r| r.value)),
            maybe(metric.ratio.and_then(|r| r.low)),
            maybe(metric.ratio.and_then(|r| r.high)),
            maybe(metric.p),
            maybe(metric.p_adjusted),
            number(metric.threshold),
            metric.verdict.word().to_owned(),
            maybe(within),
            more.map_or_else(String::new, |more| more.to_string()),
            metric.a_runs.len().to_string(),
            metric.b_runs.len().to_string(),
            metric.drifting.to_string(),
            rounds.join(" "),
        ];
        out += &row.map(|cell| quoted(&cell)).join(",");
        out.push('\n');
    }
    out
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// A table for a comment on a change.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::new();
    let numbers = NumberFormat { raw: false };
    for pair in &comparison.pairs {
        let _ = write!(
            out,
            "### {} → {}\n\n| job | metric | A | B | change | p | verdict |\n\
             |---|---|--:|--:|--:|--:|---|\n",
            cell(&pair.a),
            cell(&pair.b)
        );
        for job in &pair.jobs {
            for metric in &job.metrics {
                let print = |value: f64| {
                    numbers.metric(&Metric {
                        unit: metric.unit.clone(),
                        ..Metric::high("", "", value)
                    })
                };
                let change = metric.change().map(change_words);
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} | {} |",
                    cell(&job.name),
                    cell(&metric.full_name()),
                    print(metric.a),
                    print(metric.b),
                    change.unwrap_or_default(),
                    metric.p_adjusted.map_or_else(String::new, chance),
                    verdict_words(&metric.verdict)
                );
            }
        }
        out.push('\n');
        for problem in &pair.problems {
            let _ = writeln!(out, "- not comparable: {}", cell(problem));
        }
        for held in comparison.held.iter().filter(|held| held.side == pair.b) {
            let metric = held.metric.as_deref().unwrap_or_default();
            let _ = writeln!(
                out,
                "- **failed**: `{}` {}",
                cell(&held.condition),
                cell(metric)
            );
        }
    }
    out
}

/// Text that neither ends a cell nor begins a tag.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A test case per figure, for a CI that shows tests: one fails where a condition holds for it, and is
/// skipped where figures are not comparable.
pub fn junit(comparison: &Comparison) -> String {
    let mut cases = String::new();
    let mut counts = [0_usize; 3];
    for (pair, job, metric) in figures(comparison) {
        let name = metric.full_name();
        let is_here = |held: &&crate::HeldCondition| {
            held.side == pair.b
                && held.job.as_ref().is_none_or(|of| *of == job.name)
                && held.metric.as_ref().is_none_or(|of| *of == name)
        };
        let held = comparison.held.iter().find(is_here);
        let words = verdict_words(&metric.verdict);
        let words = match metric.change() {
            Some(change) => format!("{}, {words}", change_words(change)),
            None => words,
        };
        let inner = match (held, &metric.verdict) {
            (Some(held), _) => {
                counts[1] += 1;
                let message = format!("{}: {words}", held.condition);
                format!("<failure message=\"{}\"/>", attribute(&message))
            }
            (None, Verdict::NotComparable { why }) => {
                counts[2] += 1;
                format!("<skipped message=\"{}\"/>", attribute(why))
            }
            _ => {
                format!("<system-out>{}</system-out>", attribute(&words))
            }
        };
        counts[0] += 1;
        let _ = writeln!(
            cases,
            "    <testcase classname=\"{}\" name=\"{}\">{inner}</testcase>",
            attribute(&format!("{} -> {}.{}", pair.a, pair.b, job.name)),
            attribute(&name)
        );
    }
    let [tests, failures, skipped] = counts;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"weir compare\" \
         tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n{cases}  \
         </testsuite>\n</testsuites>\n"
    )
}

/// Text for XML; what XML 1.0 cannot hold becomes a question mark.
fn attribute(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(cell("</script>|x"), "&lt;/script>\\|x");
        assert_eq!(attribute("<a b=\"\u{1}\">"), "&lt;a b=&quot;?&quot;&gt;");
    }
}
