//! Conditions that fail a comparison: `--fail-if`.
//!
//! In: an expression, later the comparison. Out: a [`Condition`], or what is wrong with the words
//! before anything is measured; where it holds. Not here: exit codes, measuring again.

use thiserror::Error;
use weir_schema::Metric;

use crate::comparison::{
    Comparison, HeldCondition, JobComparison, Method, MetricComparison, PairComparison, Verdict,
};

/// The form of an expression, for messages.
const FORM: &str = "[JOB.]METRIC>NUMBER% or <, a unit instead of % for the value of B, or one of worse, unsure, \
     errors, not-comparable; a comma is an or";

/// Units of values, with their factor to the unit that figures have.
const UNITS: [(&str, &str, f64); 6] = [
    ("ns", Metric::SECONDS, 1e-9),
    ("us", Metric::SECONDS, 1e-6),
    ("µs", Metric::SECONDS, 1e-6),
    ("ms", Metric::SECONDS, 1e-3),
    ("min", Metric::SECONDS, 60.0),
    ("s", Metric::SECONDS, 1.0),
];
/// Letters before `B`, `B/s` and `ops/s`.
const PREFIXES: [(&str, f64); 9] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("", 1.0),
];

/// An expression of `--fail-if`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// One of them is enough; each as it was given.
    alternatives: Vec<(String, Alternative)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Alternative {
    Worse,
    Unsure,
    Errors,
    NotComparable,
    Figure(Bound),
}

/// A bound of a figure.
#[derive(Clone, Debug, PartialEq)]
struct Bound {
    /// As it was given: `p99`, `job.p99`.
    name: String,
    is_above: bool,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Of the change from A to B, as a share.
    Change(f64),
    /// Of B's value, in this unit; a bare number is in the unit of the figure.
    Value(f64, Option<&'static str>),
}

/// Error in an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConditionError {
    /// It has another form.
    #[error("`{0}`: expected {FORM}")]
    Form(String),
    /// Nobody has a figure of this name.
    #[error("no figure `{0}`")]
    UnknownMetric(String),
    /// There is no such job.
    #[error("no job `{0}`")]
    UnknownJob(String),
    /// The figure is in another unit.
    #[error("{metric} is in `{unit}`: `{text}` names another unit, or none")]
    Unit {
        /// The expression.
        text: String,
        /// The figure.
        metric: String,
        /// Its unit.
        unit: String,
    },
}

impl Condition {
    /// Reads an expression.
    ///
    /// # Errors
    /// Another form.
    pub fn read(text: &str) -> Result<Self, ConditionError> {
        let alternatives = text.split(',').map(|part| {
            let part = part.trim();
            let read = Alternative::read(part).ok_or_else(|| ConditionError::Form(part.to_owned()));
            Ok((part.to_owned(), read?))
        });
        Ok(Self {
            alternatives: alternatives.collect::<Result<_, _>>()?,
        })
    }

    /// True if it is about figures that cannot be compared.
    pub fn heeds_the_incomparable(&self) -> bool {
        let mut all = self.alternatives.iter();
        all.any(|(_, one)| *one == Alternative::NotComparable)
    }

    fn bounds(&self) -> impl Iterator<Item = &Bound> {
        self.alternatives.iter().filter_map(|(_, one)| match one {
            Alternative::Figure(bound) => Some(bound),
            _ => None,
        })
    }

    /// The figures that it is about, by which of these names and jobs there are.
    ///
    /// # Errors
    /// A figure or a job that there is not.
    pub fn metrics(
        &self,
        is_metric: impl Fn(&str) -> bool,
        jobs: &[String],
    ) -> Result<Vec<String>, ConditionError> {
        let metric = |bound: &Bound| {
            let known = |(job, metric): &(Option<&str>, &str)| {
                is_metric(metric) && job.is_none_or(|job| jobs.iter().any(|j| j == job))
            };
            if let Some((_, metric)) = bound.readings().find(known) {
                return Ok(metric.to_owned());
            }
            let job = bound.readings().find(|(_, metric)| is_metric(metric));
            Err(match job {
                Some((Some(job), _)) => ConditionError::UnknownJob(job.to_owned()),
                _ => ConditionError::UnknownMetric(bound.name.clone()),
            })
        };
        self.bounds().map(metric).collect()
    }
}

impl Condition {
    /// A figure that no job has would never fail anything.
    fn refuse_unknown(&self, comparison: &Comparison) -> Result<(), ConditionError> {
        let jobs = || comparison.pairs.iter().flat_map(|pair| &pair.jobs);
        let is_there = |bound: &&Bound| {
            let is_about =
                |job: &JobComparison| job.metrics.iter().any(|m| bound.is_about(&job.name, m));
            jobs().next().is_none() || jobs().any(is_about)
        };
        let odd = self.bounds().find(|bound| !is_there(bound));
        odd.map_or(Ok(()), |odd| {
            Err(ConditionError::UnknownMetric(odd.name.clone()))
        })
    }
}

impl Bound {
    /// Possible meanings of its name: a figure of any job, or one of a job, whose name may have
    /// dots as well.
    fn readings(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let dots = self.name.match_indices('.');
        let of_jobs = dots.map(|(at, _)| (Some(&self.name[..at]), &self.name[at + 1..]));
        std::iter::once((None, self.name.as_str())).chain(of_jobs)
    }

    fn is_about(&self, job: &str, metric: &MetricComparison) -> bool {
        let is_metric = |name: &str| name == metric.name || name == metric.full_name();
        self.readings()
            .any(|(of, name)| is_metric(name) && of.is_none_or(|of| of == job))
    }

    fn holds(&self, text: &str, metric: &MetricComparison) -> Result<bool, ConditionError> {
        let beyond = |value: f64, limit: f64| {
            if self.is_above {
                value > limit
            } else {
                value < limit
            }
        };
        match self.limit {
            Limit::Change(limit) => {
                // From 0 on every change is beyond any share.
                let from_zero = (metric.a == 0.0 && metric.b > 0.0).then_some(f64::INFINITY);
                let change = from_zero.or_else(|| metric.change());
                let change = change.filter(|_| metric.established);
                Ok(change.is_some_and(|change| beyond(change, limit)))
            }
            Limit::Value(limit, unit) => {
                let fits = match unit {
                    Some(unit) => unit == metric.unit,
                    None => metric.unit != Metric::SECONDS,
                };
                if fits {
                    return Ok(beyond(metric.b, limit));
                }
                Err(ConditionError::Unit {
                    text: text.to_owned(),
                    metric: metric.full_name(),
                    unit: metric.unit.clone(),
                })
            }
        }
    }
}

impl Alternative {
    fn read(text: &str) -> Option<Self> {
        match text {
            "worse" => return Some(Self::Worse),
            "unsure" => return Some(Self::Unsure),
            "errors" => return Some(Self::Errors),
            "not-comparable" => return Some(Self::NotComparable),
            _ => {}
        }
        let at = text.find(['<', '>'])?;
        let (name, limit) = (text[..at].trim(), text[at + 1..].trim());
        let limit = limit_of(limit).filter(|_| !name.is_empty())?;
        Some(Self::Figure(Bound {
            name: name.to_owned(),
            is_above: text[at..].starts_with('>'),
            limit,
        }))
    }
}

/// `3%`, `-5 %`, `500us`, `1.5GB/s`, `100k`.
fn limit_of(text: &str) -> Option<Limit> {
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let end = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok().filter(|n: &f64| n.is_finite())?;
    let unit = text[end..].trim();
    if unit == "%" {
        return Some(Limit::Change(number / 100.0));
    }
    if unit.is_empty() {
        return Some(Limit::Value(number, None));
    }
    if let Some((_, of, factor)) = UNITS.iter().find(|(name, _, _)| *name == unit) {
        return Some(Limit::Value(number * factor, Some(of)));
    }
    PREFIXES.iter().find_map(|(prefix, factor)| {
        let of = match unit.strip_prefix(prefix)?.trim_start() {
            "B" => Metric::BYTES,
            "B/s" => Metric::BYTES_PER_S,
            "" | "/s" | "ops/s" => Metric::OPS_PER_S,
            _ => return None,
        };
        Some(Limit::Value(number * factor, Some(of)))
    })
}

/// The conditions that hold. What one run a side says is not enough for any but those on values and
/// errors, unless the command line says that it is.
///
/// # Errors
/// A value in another unit than its figure.
pub fn held(
    conditions: &[Condition],
    comparison: &Comparison,
    is_single_run_enough: bool,
) -> Result<Vec<HeldCondition>, ConditionError> {
    let mut found = Vec::new();
    for condition in conditions {
        condition.refuse_unknown(comparison)?;
        for pair in &comparison.pairs {
            for (text, alternative) in &condition.alternatives {
                let places = alternative.places(text, pair, comparison, is_single_run_enough)?;
                found.extend(places.into_iter().map(|(job, metric)| HeldCondition {
                    condition: text.clone(),
                    side: pair.b.clone(),
                    job,
                    metric,
                }));
            }
        }
    }
    Ok(found)
}

/// A condition that nothing could meet, because none of its figures can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlindCondition {
    /// As it was given; several with commas between them.
    pub condition: String,
    /// The side that is not comparable with the base.
    pub side: String,
    /// Why.
    pub why: String,
}

/// The conditions that nothing could meet. One that a comma joins with `not-comparable` heeds what cannot
/// be compared by itself.
pub fn blind(conditions: &[Condition], comparison: &Comparison) -> Vec<BlindCondition> {
    let heedless = conditions.iter().filter(|c| !c.heeds_the_incomparable());
    let mut found: Vec<BlindCondition> = Vec::new();
    for (text, alternative) in heedless.flat_map(|condition| &condition.alternatives) {
        for pair in &comparison.pairs {
            let Some(why) = alternative.blind(pair) else {
                continue;
            };
            let is_same = |one: &&mut BlindCondition| one.side == pair.b && one.why == why;
            match found.iter_mut().find(is_same) {
                Some(known) => known.condition = format!("{}, {text}", known.condition),
                None => found.push(BlindCondition {
                    condition: text.clone(),
                    side: pair.b.clone(),
                    why,
                }),
            }
        }
    }
    found
}

/// A job and a figure, where a condition is about one.
type Place = (Option<String>, Option<String>);

impl Alternative {
    /// Why none of its figures can be compared; nothing where one can. For a value they have to be there,
    /// no more.
    fn blind(&self, pair: &PairComparison) -> Option<String> {
        let (bound, is_value) = match self {
            Self::Errors | Self::NotComparable => return None,
            Self::Worse | Self::Unsure => (None, false),
            Self::Figure(bound) => (Some(bound), matches!(bound.limit, Limit::Value(..))),
        };
        let mut reasons = pair.problems.clone();
        for job in &pair.jobs {
            let is_about =
                |m: &&MetricComparison| bound.is_none_or(|bound| bound.is_about(&job.name, m));
            for metric in job.metrics.iter().filter(is_about) {
                match &metric.verdict {
                    Verdict::NotComparable { why } if !is_value => reasons.push(why.clone()),
                    _ => return None,
                }
            }
        }
        let missing = || "it has no such figure".to_owned();
        Some(reasons.into_iter().next().unwrap_or_else(missing))
    }

    fn places(
        &self,
        text: &str,
        pair: &PairComparison,
        comparison: &Comparison,
        is_single_run_enough: bool,
    ) -> Result<Vec<Place>, ConditionError> {
        let counts = |metric: &MetricComparison| {
            is_single_run_enough || metric.method != Some(Method::WithinRuns)
        };
        let mut found = Vec::new();
        let all = pair
            .jobs
            .iter()
            .flat_map(|job| job.metrics.iter().map(move |m| (job, m)));
        for (job, metric) in all {
            let holds = match (self, &metric.verdict) {
                (Self::Worse, Verdict::Worse) | (Self::Unsure, Verdict::Unsure { .. }) => {
                    counts(metric)
                }
                (Self::NotComparable, Verdict::NotComparable { .. }) => true,
                (Self::Figure(bound), verdict) if bound.is_about(&job.name, metric) => {
                    let is_value = matches!(bound.limit, Limit::Value(..));
                    let says = !matches!(verdict, Verdict::NotComparable { .. }) && counts(metric);
                    bound.holds(text, metric)? && (is_value || says)
                }
                _ => false,
            };
            if holds {
                found.push(place(job, metric));
            }
        }
        let errors = comparison
            .sides
            .iter()
            .filter(|side| side.name == pair.b || side.name == pair.a);
        let whole = match self {
            Self::Errors => errors.map(|side| side.errors).sum::<u64>() > 0,
            Self::NotComparable => found.is_empty() && !pair.problems.is_empty(),
            _ => false,
        };
        if whole {
            found.push((None, None));
        }
        Ok(found)
    }
}

fn place(job: &JobComparison, metric: &MetricComparison) -> Place {
    (Some(job.name.clone()), Some(metric.full_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> Option<Limit> {
        limit_of(text)
    }

    #[test]
    fn numbers_have_units() {
        let value = |text: &str| match limit(text) {
            Some(Limit::Value(value, unit)) => (value, unit),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(limit("3%"), Some(Limit::Change(0.03)));
        assert_eq!(limit("-5 %"), Some(Limit::Change(-0.05)));
        let (time, unit) = value("500us");
        assert!((time - 5e-4).abs() < 1e-12 && unit == Some("s"));
        for (text, expected, unit) in [
            ("100k", 1e5, Some("ops/s")),
            ("2 M ops/s", 2e6, Some("ops/s")),
            ("1.5GB/s", 1.5e9, Some("B/s")),
            ("4MiB/s", 4_194_304.0, Some("B/s")),
            ("64MB", 64e6, Some("B")),
            ("7", 7.0, None),
        ] {
            let (found, of) = value(text);
            assert!(
                (found - expected).abs() < 1e-6 && of == unit,
                "{text}: {found} {of:?}"
            );
        }
        for odd in ["", "x", "3%%", "1..2", "5 parsecs", "%", "-"] {
            assert_eq!(limit(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_expression_names_figures_and_jobs() {
        let of_loops = |text: &str, jobs: &[&str]| {
            let jobs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
            Condition::read(text)?.metrics(crate::is_of_loops, &jobs)
        };
        assert_eq!(of_loops("p99>3%", &[]).unwrap(), ["p99"]);
        assert_eq!(of_loops("worse,p99.9>3%", &[]).unwrap(), ["p99.9"]);
        assert_eq!(of_loops("my.job.rate<-5%", &["my.job"]).unwrap(), ["rate"]);
        assert_eq!(
            of_loops("job.rate<-5%", &["a"]),
            Err(ConditionError::UnknownJob("job".to_owned()))
        );
        assert_eq!(
            of_loops("p98x>3%", &["a"]),
            Err(ConditionError::UnknownMetric("p98x".to_owned()))
        );
        for odd in [
            "", "wors", "p99", "p99=3%", ">3%", "p99>", "worse,", "p99>3%,x",
        ] {
            assert!(Condition::read(odd).is_err(), "{odd}");
        }
    }

    /// Words of any form are read or refused; they never panic.
    #[test]
    fn no_expression_panics() {
        let pieces = [
            "p99", ".", "<", ">", "5", "%", "µs", "-", ",", "é", " ", "worse", "MiB/s",
        ];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    for d in pieces {
                        let _ = Condition::read(&[a, b, c, d].concat());
                    }
                }
            }
        }
    }
}
