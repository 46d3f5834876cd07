//! Remarks on a comparison beside its table, for all renderings for people.
//!
//! In: a side beside the base. Out: sentences in their order: what is odd about figures, in what
//! machines and plans differ, why figures are not comparable, what came of the primary figure of each
//! job. Not here: the table, how sentences are laid out.

use weir_schema::Better;
use weir_units::Nanos;

use crate::comparison::{
    Comparison, Difference, JobComparison, Method, MetricComparison, PairComparison, SideSummary,
    Verdict,
};
use crate::words::{brief_percent, change_words, verdict_words};

/// Facts that differ are listed up to so many.
const MOST_DIFFERENCES: usize = 8;

/// A sentence.
pub(crate) struct Remark {
    pub(crate) mark: Mark,
    pub(crate) text: String,
    pub(crate) tone: RemarkTone,
}

/// Subject of a sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A conclusion of the comparison.
    Conclusion,
    /// A further note.
    Note,
    /// An oddity.
    Oddity,
    /// A difference besides figures.
    Difference,
    /// A condition that holds.
    Failure,
}

/// Tone of a sentence: good news or bad.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemarkTone {
    Plain,
    Good,
    Bad,
}

impl RemarkTone {
    pub(crate) fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Better => Self::Good,
            Verdict::Worse => Self::Bad,
            _ => Self::Plain,
        }
    }
}

impl Remark {
    fn plain(mark: Mark, text: String) -> Self {
        Self {
            mark,
            text,
            tone: RemarkTone::Plain,
        }
    }
}

/// All that is said of a side beside the base.
pub(crate) fn remarks(pair: &PairComparison) -> Vec<Remark> {
    let mut all: Vec<Remark> = pair.jobs.iter().flat_map(|job| of_job(pair, job)).collect();
    all.extend(differences(&pair.differences));
    if !pair.problems.is_empty() {
        all.push(Remark {
            mark: Mark::Note,
            text: format!("not comparable: {}", pair.problems.join("; ")),
            tone: RemarkTone::Bad,
        });
    }
    all.extend(pair.jobs.iter().filter_map(|job| conclusion(pair, job)));
    all
}

/// Conditions that hold, and the result of their confirmation.
pub(crate) fn endings(comparison: &Comparison) -> Vec<Remark> {
    let of_held = comparison.held.iter().map(|held| {
        let place: Vec<&str> = [&held.job, &held.metric]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let place = if place.is_empty() {
            String::new()
        } else {
            format!(" ({})", place.join(", "))
        };
        Remark {
            mark: Mark::Failure,
            text: format!("{} holds for {}{place}", held.condition, held.side),
            tone: RemarkTone::Bad,
        }
    });
    let confirmed = comparison.confirmed.map(|is_confirmed| {
        let (not, tone) = if is_confirmed {
            ("", RemarkTone::Bad)
        } else {
            ("not ", RemarkTone::Plain)
        };
        Remark {
            mark: Mark::Conclusion,
            text: format!("{not}confirmed in fresh rounds, which these are"),
            tone,
        }
    });
    of_held.chain(confirmed).collect()
}

/// Remarks on a job: oddities of its figures, the place where its latencies differ most, the
/// meaning of its intervals.
fn of_job(pair: &PairComparison, job: &JobComparison) -> Vec<Remark> {
    let owner = owner(pair, job);
    let mut all = Vec::new();
    for metric in &job.metrics {
        let mut odd = Vec::new();
        if metric.drifting {
            odd.push("drifting: its ratio changes with the rounds".to_owned());
        }
        if !metric.outlier_rounds.is_empty() {
            let rounds: Vec<String> = metric.outlier_rounds.iter().map(u32::to_string).collect();
            odd.push(format!("outlier round {}", rounds.join(", ")));
        }
        if !odd.is_empty() {
            let text = format!("{owner}{}: {}", metric.full_name(), odd.join("; "));
            all.push(Remark::plain(Mark::Oddity, text));
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
        all.push(Remark::plain(Mark::Note, text));
    }
    let notes = of_single_runs(job).into_iter();
    all.extend(notes.map(|text| Remark::plain(Mark::Note, format!("{owner}{text}"))));
    all
}

/// The job that a sentence is about, where there are several.
fn owner(pair: &PairComparison, job: &JobComparison) -> String {
    if pair.jobs.len() > 1 {
        format!("{}: ", job.name)
    } else {
        String::new()
    }
}

fn differences(all: &[Difference]) -> Vec<Remark> {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let text = |d: &Difference| format!("{}: {} -> {}", d.name, value(&d.a), value(&d.b));
    let mut texts: Vec<String> = all.iter().take(MOST_DIFFERENCES).map(text).collect();
    let more = all.len().saturating_sub(MOST_DIFFERENCES);
    if more > 0 {
        texts.push(format!("{more} more; --format json has all"));
    }
    let remark = |text| Remark::plain(Mark::Difference, text);
    texts.into_iter().map(remark).collect()
}

fn conclusion(pair: &PairComparison, job: &JobComparison) -> Option<Remark> {
    let primary = job.metrics.first().filter(|_| pair.problems.is_empty())?;
    Some(Remark {
        mark: Mark::Conclusion,
        text: format!("{}{}", owner(pair, job), sentence(pair, primary)),
        tone: RemarkTone::of(&primary.verdict),
    })
}

/// Meaning of the intervals of one run a side.
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

/// `10 rounds ABBA, host7, 11 min`.
pub(crate) fn facts(comparison: &Comparison, pair: &PairComparison) -> String {
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

/// Sentence about the primary figure.
fn sentence(pair: &PairComparison, metric: &MetricComparison) -> String {
    let (a, b, name) = (&pair.a, &pair.b, metric.full_name());
    let change = metric.change().unwrap_or(0.0);
    let at_least = |ratio: weir_stats::Estimate| {
        let end = if change > 0.0 { ratio.low } else { ratio.high };
        end.map(|end| format!(" (at least {})", change_words(end - 1.0)))
    };
    let at_least = metric.ratio.and_then(at_least).unwrap_or_default();
    let change = if metric.a == 0.0 {
        "it was 0".to_owned()
    } else {
        change_words(change)
    };
    match &metric.verdict {
        Verdict::Better => format!("{b} is better in {name}: {change}{at_least}."),
        Verdict::Worse => format!("{b} is worse in {name}: {change}{at_least}."),
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
                "{b} differs in {name} by {change}, below the threshold of {threshold} % \
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
