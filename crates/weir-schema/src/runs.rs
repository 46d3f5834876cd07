//! Several runs of one plan, or of several in turns, and what they say together.
//!
//! In: the results of all runs. Out: headline figures over them. Not here: carrying runs out.

use serde::{Deserialize, Serialize};
use weir_stats::{BetweenRuns, Histogram};
use weir_units::{JsonSchema, Nanos};

use crate::json;
use crate::kind::KindName;
use crate::load::{RUNS_SCHEMA, SchemaError};
use crate::outcome::{Better, Interval, Metric};
use crate::result::{HistoryPlace, JobResult, LatencyPercentile, RunResult};
use crate::warning::Warning;

/// The results of several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// Always `weir.runs.v2`.
    pub schema: String,
    /// Version of the program.
    pub weir_version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Runs of each plan that were asked for.
    pub asked: u32,
    /// Pause between two runs.
    pub pause_ns: Nanos,
    /// All runs came to their end.
    pub complete: bool,
    /// The rule of their comparison, where they were measured to be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonRule>,
    /// One for each plan; their runs took turns.
    pub series: Vec<RunSeries>,
}

/// Rule of a comparison of runs: which figures, and from when on a change counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonRule {
    /// The figures, the primary one first; the usual ones where none are named.
    pub metrics: Vec<String>,
    /// The threshold of every figure that has none of its own, as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Thresholds of single figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<FigureThreshold>,
    /// Chance may pretend a change in this share of comparisons.
    pub alpha: f64,
}

/// The threshold of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureThreshold {
    /// The figure.
    pub name: String,
    /// As a share.
    pub threshold: f64,
}

/// The runs of one plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSeries {
    /// The plan's name.
    pub name: String,
    /// Place in the history, if they are kept there together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryPlace>,
    /// Headline figures over the complete runs, by job in plan order.
    pub jobs: Vec<JobBetweenRuns>,
    /// Conditions that spoil them.
    pub warnings: Vec<Warning>,
    /// Every run, in the order in which they were carried out; those that were cut short too.
    pub runs: Vec<RunResult>,
}

/// A job over several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobBetweenRuns {
    /// As in the plan.
    pub name: String,
    /// Its headline figures.
    pub figures: Vec<FigureBetweenRuns>,
}

/// A headline figure over several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureBetweenRuns {
    /// Name, unique in its job: `read rate`, `read p99`.
    pub name: String,
    /// Its unit without prefix.
    pub unit: String,
    /// The better one of two values.
    pub better: Better,
    /// The figure.
    pub between: BetweenRuns,
}

impl Runs {
    /// Reads what was stored.
    ///
    /// # Errors
    /// Not JSON, another shape, another version.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        let runs: Self = json::read(text)?;
        for run in runs.series.iter().flat_map(|series| &series.runs) {
            RunResult::from_json(&run.to_json()?)?;
        }
        Ok(runs)
    }

    /// True if the document names the schema of runs.
    pub fn is_in(text: &str) -> bool {
        let head: String = text.chars().take(200).filter(|c| *c != ' ').collect();
        head.contains(&format!("\"schema\":\"{RUNS_SCHEMA}\""))
    }

    /// As JSON: on one line, or indented for people.
    ///
    /// # Errors
    /// A number without JSON form (not finite).
    pub fn to_json(&self, is_indented: bool) -> Result<String, SchemaError> {
        let text = serde_json::to_string(self)?;
        Ok(if is_indented {
            json::indented(&text)
        } else {
            text
        })
    }
}

impl RunSeries {
    /// Adds up what was done.
    pub fn new(name: &str, mut runs: Vec<RunResult>) -> Self {
        // It warns of what only several runs can show, and here they do.
        for run in &mut runs {
            run.warnings.retain(|warning| warning.id != "slow");
        }
        let whole: Vec<&RunResult> = runs.iter().filter(|run| run.complete).collect();
        let of_first = whole.first().into_iter().flat_map(|run| run.jobs());
        let jobs = of_first.enumerate().map(|(index, job)| {
            let all: Vec<&JobResult> = whole.iter().filter_map(|r| r.jobs().nth(index)).collect();
            JobBetweenRuns {
                name: job.name.clone(),
                figures: figures(&all),
            }
        });
        let jobs: Vec<JobBetweenRuns> = jobs.collect();
        Self {
            name: name.to_owned(),
            history: None,
            warnings: jobs.iter().filter_map(differs).collect(),
            jobs,
            runs,
        }
    }

    /// The runs that say something about the plan as a whole.
    pub fn whole(&self) -> impl Iterator<Item = &RunResult> {
        self.runs.iter().filter(|run| run.complete)
    }
}

/// Figures of one job in each of its runs; each figure is of the runs that have it.
fn figures(runs: &[&JobResult]) -> Vec<FigureBetweenRuns> {
    let of_runs: Vec<Vec<Metric>> = runs.iter().map(|job| job.all_metrics()).collect();
    let mut found: Vec<FigureBetweenRuns> = Vec::new();
    for metric in of_runs.iter().flatten() {
        if found.iter().any(|f| f.name == metric.name) {
            continue;
        }
        let same = of_runs
            .iter()
            .filter_map(|m| m.iter().find(|m| m.name == metric.name));
        let values: Vec<_> = same.map(|m| (m.value, m.half_width())).collect();
        let grains = runs.iter().filter_map(|job| grain(job, &metric.name));
        let grain = grains.fold(0.0, f64::max);
        found.extend(BetweenRuns::of(&values).map(|between| FigureBetweenRuns {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            better: metric.better,
            between: between.no_finer_than(grain),
        }));
    }
    found
}

impl JobResult {
    /// Its headline figures, and all percentiles that it was to have.
    pub fn all_metrics(&self) -> Vec<Metric> {
        let mut all = self.metrics.clone();
        for (kind, percentile) in self.percentiles() {
            let name = name_of(kind, percentile);
            if all.iter().any(|m| m.name == name) {
                continue;
            }
            let value = percentile.value_ns;
            let interval = value.low.zip(value.high).map(|(low, high)| Interval {
                low: low / 1e9,
                high: high / 1e9,
            });
            all.push(Metric {
                interval,
                ..Metric::low(name, Metric::SECONDS, value.value / 1e9)
            });
        }
        all
    }

    /// The names of those percentiles that too few samples lie beyond.
    pub fn metrics_of_few_samples(&self) -> Vec<String> {
        let few = self.percentiles().filter(|(_, p)| p.few_samples);
        few.map(|(kind, p)| name_of(kind, p)).collect()
    }

    fn percentiles(&self) -> impl Iterator<Item = (&KindName, &LatencyPercentile)> {
        let all = self.confidence().iter();
        all.flat_map(|sure| sure.percentiles.iter().map(move |p| (&sure.kind, p)))
    }
}

fn name_of(kind: &KindName, percentile: &LatencyPercentile) -> String {
    format!("{kind} p{}", percentile.percent.0)
}

/// Resolution of a percentile of this name, relative to it.
fn grain(job: &JobResult, name: &str) -> Option<f64> {
    let mut all = job.percentiles();
    let (kind, percentile) = all.find(|(kind, percentile)| name_of(kind, percentile) == name)?;
    let mut whole = Histogram::new();
    let of_kind = job.workers().iter().filter_map(|w| w.kind(kind));
    for histogram in of_kind.filter_map(|k| k.stage(percentile.stage)) {
        whole.merge(histogram).ok()?;
    }
    whole.percentile_grain(percentile.percent.0)
}

/// A job whose runs lie further apart than the interval of one of them would have it.
fn differs(job: &JobBetweenRuns) -> Option<Warning> {
    let figure = job.figures.iter().find(|f| f.between.differ())?;
    let between = &figure.between;
    let cause = format!(
        "The {} of equal runs has a deviation of {:.0} %; the interval within a run is ± {:.0} %.",
        figure.name,
        between.deviation? * 100.0,
        between.within? * 100.0
    );
    Some(Warning::new("runs-differ", Some(&job.name), cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Percent;

    use crate::kind::Kind;
    use crate::result::Stage;
    use crate::sample::{self, JobSample};

    fn run(rate: u64, complete: bool) -> RunResult {
        let second = Nanos::from_secs(1);
        let reads = sample::kind(Kind::Read, rate, second, &[]);
        let mut job = sample::job_result("a", vec![sample::worker(0, second, vec![reads])]);
        let about = |v: f64| weir_stats::Estimate::within(v, v * 0.99, v * 1.01);
        let rate = f64::from(u32::try_from(rate).unwrap());
        job = sample::sure(
            job,
            vec![sample::confidence(Kind::Read, about(rate), about(1.0))],
        );
        job.conclude();
        let mut result = sample::run(vec![vec![(sample::block_job("a").over("null"), job)]]);
        result.complete = complete;
        result
    }

    #[test]
    fn the_headline_is_of_complete_runs_and_every_run_is_kept() {
        let runs = vec![
            run(100, true),
            run(1, false),
            run(200, true),
            run(400, true),
        ];
        let series = RunSeries::new("p", runs);
        assert_eq!((series.runs.len(), series.whole().count()), (4, 3));
        let rate = &series.jobs[0].figures[0];
        assert_eq!((rate.name.as_str(), rate.between.runs), ("read rate", 3));
        assert!((rate.between.mean - 200.0).abs() < 1e-9);
        assert!((rate.between.within.unwrap() - 0.01).abs() < 1e-9);
        assert_eq!(series.warnings[0].id, "runs-differ");
        assert!(
            series.warnings[0].cause.contains("deviation of 69 %"),
            "{series:?}"
        );
    }

    #[test]
    fn runs_of_one_rate_do_not_differ() {
        let series = RunSeries::new("p", vec![run(1000, true), run(1001, true), run(999, true)]);
        assert_eq!(series.warnings, []);
    }

    #[test]
    fn several_runs_do_not_ask_for_several_runs() {
        let mut first = run(1000, true);
        first.warnings = ["slow", "short-run"]
            .map(|id| Warning::new(id, None, ""))
            .to_vec();
        let series = RunSeries::new("p", vec![first, run(1001, true)]);
        let ids: Vec<&str> = series.runs[0].warnings.iter().map(|w| &*w.id).collect();
        assert_eq!(ids, ["short-run"]);
    }

    #[test]
    fn percentiles_in_one_bucket_are_known_as_well_as_it_is_narrow() {
        let second = Nanos::from_secs(1);
        let mut histogram = Histogram::new();
        histogram.record_n(100_000, 500);
        histogram.record_n(100_500, 500);
        let reads = sample::kind(Kind::Read, 1000, second, &[(Stage::Lat, histogram)]);
        let job = sample::job_result("a", vec![sample::worker(0, second, vec![reads])]);
        let about = |v: f64| weir_stats::Estimate::within(v, v * 0.99, v * 1.01);
        let mut sure = sample::confidence(Kind::Read, about(1000.0), about(1e5));
        sure.percentiles = vec![LatencyPercentile {
            stage: Stage::Lat,
            percent: Percent(50.0),
            value_ns: about(1e5),
            few_samples: false,
        }];
        let job = sample::sure(job, vec![sure]);
        let figures = figures(&[&job, &job, &job]);
        let p50 = figures.iter().find(|f| f.name == "read p50").unwrap();
        let half = p50.between.half_width.unwrap();
        assert!((0.001..0.008).contains(&half), "{p50:?}");
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let runs = Runs {
            schema: RUNS_SCHEMA.to_owned(),
            weir_version: "1".to_owned(),
            command: vec!["weir".to_owned()],
            asked: 2,
            pause_ns: Nanos(0),
            complete: true,
            comparison: Some(ComparisonRule {
                metrics: vec!["p99".to_owned()],
                threshold: None,
                thresholds: vec![FigureThreshold {
                    name: "p99".to_owned(),
                    threshold: 0.08,
                }],
                alpha: 0.01,
            }),
            series: vec![RunSeries::new("p", vec![run(100, true), run(110, true)])],
        };
        for is_indented in [false, true] {
            let text = runs.to_json(is_indented).unwrap();
            assert!(Runs::is_in(&text));
            assert_eq!(Runs::from_json(&text).unwrap(), runs);
        }
        assert!(!Runs::is_in(&run(1, true).to_json().unwrap()));
    }
}
