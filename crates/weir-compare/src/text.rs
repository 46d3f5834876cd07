//! A comparison as text for people.
//!
//! In: the comparison, a style. Out: lines: for each side beside the base a table of its figures, what
//! is odd about them, in what machines and plans differ, and a sentence about the primary figure of each
//! job. A table too wide for its lines loses columns, the chance first; nothing is cut.

use std::fmt::Write as _;

use weir_report::{NumberFormat, Style, clean};
use weir_schema::{Better, Metric};
use weir_units::Nanos;

use crate::comparison::{
    Comparison, Difference, JobComparison, Method, MetricComparison, PairComparison, SideSummary,
    Verdict,
};
use crate::table::{Cells, Table};
use crate::words::{brief_percent, chance, signed_percent, verdict_words};

/// Facts that differ are listed up to so many.
const MOST_DIFFERENCES: usize = 8;
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The columns of the table.
const HEADS: [&str; 7] = ["metric", "A", "B", "change", "interval", "p", "verdict"];
/// The comparison as text, each line ended.
pub fn text(comparison: &Comparison, style: &Style) -> String {
    let mut out = Lines {
        style,
        text: String::new(),
    };
    for (number, pair) in comparison.pairs.iter().enumerate() {
        if number > 0 {
            out.line("", "");
        }
        out.pair(comparison, pair);
    }
    out.ending(comparison);
    out.text
}

struct Lines<'a> {
    style: &'a Style,
    text: String,
}

impl Lines<'_> {
    /// One line, blanks at its end left out.
    fn line(&mut self, text: &str, paint: &str) {
        self.painted(&[(text, paint)]);
    }

    fn painted(&mut self, pieces: &[(&str, &str)]) {
        let mut line = String::new();
        for (text, paint) in pieces {
            let text = clean(text, self.style.ascii);
            if paint.is_empty() || !self.style.color {
                line.push_str(&text);
            } else {
                let _ = write!(line, "{paint}{text}{PLAIN}");
            }
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Words of a sentence on as many lines as it needs.
    fn sentence(&mut self, lead: &str, text: &str, paint: &str) {
        let mut line = lead.to_owned();
        let mut is_empty = true;
        for word in text.split(' ') {
            let gap = usize::from(!is_empty);
            let wide = line.chars().count() + gap + word.chars().count() > self.style.width;
            if wide && !is_empty {
                self.line(&line, paint);
                line = String::from("    ");
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.line(&line, paint);
    }

    fn pair(&mut self, comparison: &Comparison, pair: &PairComparison) {
        let title = format!("compare  {} -> {}", pair.a, pair.b);
        let facts = facts(comparison, pair);
        let fits = title.chars().count() + 3 + facts.chars().count() <= self.style.width;
        if fits {
            self.painted(&[(&title, BOLD), ("   ", ""), (&facts, "")]);
        } else {
            self.sentence("", &title, BOLD);
            self.sentence("         ", &facts, "");
        }
        self.table(comparison, pair);
        for job in &pair.jobs {
            self.oddities(pair, job);
        }
        self.differences(&pair.differences);
        if !pair.problems.is_empty() {
            let problems = format!("not comparable: {}", pair.problems.join("; "));
            self.sentence("  ", &problems, RED);
        }
        for job in &pair.jobs {
            self.conclusion(pair, job);
        }
    }

    fn table(&mut self, comparison: &Comparison, pair: &PairComparison) {
        let numbers = NumberFormat {
            raw: self.style.raw,
        };
        let mut heads = HEADS.map(str::to_owned);
        heads[4] = format!("{} % interval", brief_percent(1.0 - comparison.alpha));
        let of_job = |job: &JobComparison| -> Vec<(Cells, &str)> {
            let mut kinds: Vec<_> = job.metrics.iter().filter_map(|m| m.kind.as_ref()).collect();
            kinds.sort_unstable();
            kinds.dedup();
            let metrics = job.metrics.iter();
            metrics
                .map(|m| (cells(m, numbers, kinds.len() > 1), tone(&m.verdict)))
                .collect()
        };
        let jobs: Vec<_> = pair
            .jobs
            .iter()
            .map(|job| (&job.name, of_job(job)))
            .collect();
        let rows = jobs
            .iter()
            .flat_map(|(_, rows)| rows)
            .map(|(cells, _)| cells);
        if rows.clone().next().is_none() {
            return;
        }
        let table = Table::of(&std::iter::once(&heads).chain(rows), self.style.width);
        let (line, last) = table.line(&heads);
        self.painted(&[(&line, DIM), (&last, DIM)]);
        for (name, rows) in &jobs {
            if jobs.len() > 1 {
                self.line(&format!("  {name}:"), BOLD);
            }
            for (cells, paint) in rows {
                let (line, last) = table.line(cells);
                self.painted(&[(&line, ""), (&last, paint)]);
            }
        }
    }

    /// What is odd about the figures of a job, and where its latencies differ most.
    fn oddities(&mut self, pair: &PairComparison, job: &JobComparison) {
        let owner = if pair.jobs.len() > 1 {
            format!("{}: ", job.name)
        } else {
            String::new()
        };
        for metric in &job.metrics {
            let mut odd = Vec::new();
            if metric.drifting {
                odd.push("drifting: its ratio changes with the rounds".to_owned());
            }
            if !metric.outlier_rounds.is_empty() {
                let rounds: Vec<String> =
                    metric.outlier_rounds.iter().map(u32::to_string).collect();
                odd.push(format!("outlier round {}", rounds.join(", ")));
            }
            if !odd.is_empty() {
                let text = format!("{owner}{}: {}", metric.full_name(), odd.join("; "));
                self.sentence("  ! ", &text, "");
            }
        }
        for gap in &job.gaps {
            let kind = if job.gaps.len() > 1 {
                format!(" of {}", gap.kind)
            } else {
                String::new()
            };
            let text = format!(
                "{owner}largest gap of the latency distributions{kind}: {} % of operations at {}",
                brief_percent(gap.share),
                gap.at_ns
            );
            self.sentence("  ", &text, "");
        }
        for text in of_single_runs(job) {
            self.sentence("  ", &format!("{owner}{text}"), "");
        }
    }

    fn differences(&mut self, all: &[Difference]) {
        for difference in all.iter().take(MOST_DIFFERENCES) {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            let (a, b) = (value(&difference.a), value(&difference.b));
            self.sentence(
                "  differs  ",
                &format!("{}: {a} -> {b}", difference.name),
                "",
            );
        }
        let more = all.len().saturating_sub(MOST_DIFFERENCES);
        if more > 0 {
            self.line(
                &format!("  differs  {more} more; --format json has all"),
                "",
            );
        }
    }

    fn conclusion(&mut self, pair: &PairComparison, job: &JobComparison) {
        let Some(primary) = job.metrics.first().filter(|_| pair.problems.is_empty()) else {
            return;
        };
        let several = pair.jobs.len() > 1;
        let owner = if several {
            format!("{}: ", job.name)
        } else {
            String::new()
        };
        let text = format!("{owner}{}", sentence(pair, primary));
        self.sentence("  ", &text, tone(&primary.verdict));
    }

    fn ending(&mut self, comparison: &Comparison) {
        for held in &comparison.held {
            let place = [&held.job, &held.metric].into_iter().flatten();
            let place: Vec<&str> = place.map(String::as_str).collect();
            let place = if place.is_empty() {
                String::new()
            } else {
                format!(" ({})", place.join(", "))
            };
            let text = format!("{} holds for {}{place}", held.condition, held.side);
            self.sentence("  FAILED  ", &text, RED);
        }
        match comparison.confirmed {
            Some(true) => self.sentence("  ", "confirmed in fresh rounds, which these are", RED),
            Some(false) => {
                self.sentence("  ", "not confirmed in fresh rounds, which these are", "");
            }
            None => {}
        }
    }
}

/// What intervals of one run a side hold, and what they do not.
fn of_single_runs(job: &JobComparison) -> Vec<String> {
    let metrics = || job.metrics.iter();
    let spreads = metrics().filter_map(|metric| Some((metric, metric.run_spread?)));
    let fewest = spreads.clone().map(|(_, spread)| spread.runs).min();
    let apart = spreads.map(|(metric, spread)| {
        let deviation = brief_percent(spread.a.max(spread.b));
        format!("{} {deviation} %", metric.full_name())
    });
    let apart = apart.collect::<Vec<_>>().join(", ");
    let known = fewest.map(|runs| {
        format!("(one run each; standard deviation over {runs} other runs of the history: {apart})")
    });
    let is_alone = |metric: &MetricComparison| metric.method == Some(Method::WithinRuns);
    let alone: Vec<String> = metrics()
        .filter(|metric| is_alone(metric))
        .map(MetricComparison::full_name)
        .collect();
    let which = match (alone.is_empty(), &known) {
        (true, _) => None,
        (false, None) => Some(String::new()),
        (false, Some(_)) => Some(format!("{}: ", alone.join(", "))),
    };
    let unknown = which.map(|which| {
        format!(
            "({which}within one run each: what differs from run to run is not in these intervals; \
             `weir compare --run` measures it)"
        )
    });
    known.into_iter().chain(unknown).collect()
}

fn cells(metric: &MetricComparison, numbers: NumberFormat, with_kind: bool) -> Cells {
    let print = |value: f64| {
        if value.is_finite() {
            numbers.metric(&Metric {
                unit: metric.unit.clone(),
                ..Metric::high("", "", value)
            })
        } else {
            "none".to_owned()
        }
    };
    let name = if with_kind {
        metric.full_name()
    } else {
        metric.name.clone()
    };
    let interval = metric.ratio.and_then(|ratio| ratio.low.zip(ratio.high));
    let interval = interval.map_or_else(String::new, |(low, high)| {
        let [low, high] = [low, high].map(|end| signed_percent(end - 1.0));
        format!("{low} … {high} %")
    });
    [
        name,
        print(metric.a),
        print(metric.b),
        metric.change().map_or_else(String::new, |change| {
            format!("{} %", signed_percent(change))
        }),
        interval,
        metric.p_adjusted.map_or_else(String::new, chance),
        verdict_words(&metric.verdict),
    ]
}

fn tone(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Better => GREEN,
        Verdict::Worse => RED,
        _ => "",
    }
}

/// `10 rounds ABBA, host7, 11 min`.
fn facts(comparison: &Comparison, pair: &PairComparison) -> String {
    let of = |name: &str| comparison.sides.iter().find(|side| side.name == name);
    let (a, b) = (of(&pair.a), of(&pair.b));
    let runs = |side: Option<&SideSummary>| side.map_or(0, |side| side.runs);
    let plural = |n: u32| if n == 1 { "" } else { "s" };
    let (of_a, of_b) = (runs(a), runs(b));
    let mut facts = vec![if comparison.in_turns {
        let order = if comparison.sides.len() > 2 {
            "in turns"
        } else {
            "ABBA"
        };
        format!("{of_a} round{} {order}", plural(of_a))
    } else if of_a == of_b {
        format!("{of_a} run{} each", plural(of_a))
    } else {
        format!("{of_a} and {of_b} runs")
    }];
    let left_out = a.map_or(0, |s| s.left_out).max(b.map_or(0, |s| s.left_out));
    if left_out > 0 {
        facts.push(format!("{left_out} cut short left out"));
    }
    let host = |side: Option<&SideSummary>| side.and_then(|side| side.hostname.clone());
    if let Some(host) = host(a).filter(|name| host(b).as_ref() == Some(name)) {
        facts.push(host);
    }
    if comparison.in_turns {
        facts.push(long_time(comparison.span_ns));
    }
    facts.join(", ")
}

/// `11 min`: nobody asks for the seconds.
fn long_time(time: Nanos) -> String {
    let minutes = time.0 / 60_000_000_000;
    match minutes {
        0 => time.to_string(),
        1..120 => format!("{minutes} min"),
        _ => format!("{} h", minutes / 60),
    }
}

/// What is said of the primary figure.
fn sentence(pair: &PairComparison, metric: &MetricComparison) -> String {
    let (a, b, name) = (&pair.a, &pair.b, metric.full_name());
    let change = metric.change().unwrap_or(0.0);
    let at_least = |ratio: weir_stats::Estimate| {
        let end = if change > 0.0 { ratio.low } else { ratio.high };
        end.map(|end| format!(" (at least {} %)", signed_percent(end - 1.0)))
    };
    let at_least = metric.ratio.and_then(at_least).unwrap_or_default();
    let change = signed_percent(change);
    match &metric.verdict {
        Verdict::Better => format!("{b} is better in {name}: {change} %{at_least}."),
        Verdict::Worse => format!("{b} is worse in {name}: {change} %{at_least}."),
        Verdict::Same { within } => {
            let within = brief_percent(*within);
            format!("{a} and {b} are the same in {name}, within {within} %.")
        }
        Verdict::Small => {
            let threshold = brief_percent(metric.threshold);
            let better = match metric.better {
                Better::Higher => "higher",
                Better::Lower => "lower",
            };
            format!(
                "{b} differs in {name} by {change} %, below the threshold of {threshold} % \
                 ({better} is better)."
            )
        }
        Verdict::Unsure { .. } => {
            let more = verdict_words(&metric.verdict);
            let more = more.strip_prefix("unsure").unwrap_or_default();
            let more = more.strip_prefix(", ").map_or_else(String::new, |more| {
                format!(
                    ": {} rounds may settle it",
                    more.trim_start_matches('~').replace('>', "more than ")
                )
            });
            format!("Whether {b} differs in {name} is not sure{more}.")
        }
        Verdict::NotComparable { why } => format!("{name} is not comparable: {why}."),
    }
}
