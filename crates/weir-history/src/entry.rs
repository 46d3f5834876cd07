//! Entry of the history: the result as it is, and its figures where they are found by name.
//!
//! In: a result, or the runs of one plan with what they say together. Out: an [`Entry`]. Pure. Not
//! here: the database.

use std::collections::BTreeMap;

use weir_schema::{
    Better, JobResult, Metric, Outcome, RunResult, RunSeries, Runs, SchemaError, json,
};
use weir_units::Nanos;

use crate::fingerprint::{machine_key, plan_fingerprint};

/// Longer runs are kept with intervals of a second.
const LONG: Nanos = Nanos::from_secs(600);
const SECOND: Nanos = Nanos::from_secs(1);

/// A run as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// Start, since 1970.
    pub started_ns: u64,
    /// Duration.
    pub duration_ns: Nanos,
    /// Fingerprint of its plan.
    pub plan_fingerprint: String,
    /// Name of its plan.
    pub plan_name: String,
    /// The same as JSON.
    pub plan_json: String,
    /// Key of its machine.
    pub machine_key: String,
    /// Facts about that, as JSON.
    pub machine_facts: String,
    /// The door it came through.
    pub verb: String,
    /// A name that people gave it.
    pub label: Option<String>,
    /// Note of the user.
    pub note: Option<String>,
    /// File that it was imported from.
    pub source: Option<String>,
    /// Version of weir that made it.
    pub weir_version: String,
    /// It came to its end.
    pub complete: bool,
    /// Exit code.
    pub exit_code: u8,
    /// Ids of what spoils it.
    pub warnings: Vec<String>,
    /// Tags of the user.
    pub tags: BTreeMap<String, String>,
    /// The form of the result.
    pub schema: String,
    /// The result itself; nothing where it was pruned.
    pub json: Option<String>,
    /// Its figures.
    pub metrics: Vec<MetricRow>,
}

/// A figure of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricRow {
    /// The job.
    pub job: String,
    /// The kind of operation; empty where it is of none.
    pub kind: String,
    /// Name of the figure.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Its unit.
    pub unit: String,
    /// 1: the higher the better; -1: the lower; 0: neither.
    pub better: i8,
    /// Too few samples lie beyond it.
    pub is_of_few: bool,
}

impl MetricRow {
    /// `read p99`; `b_eff` where it is of no kind.
    pub fn full_name(&self) -> String {
        format!("{} {}", self.kind, self.name)
            .trim_start()
            .to_owned()
    }

    /// True if a word names it: `p99`, `read p99`, `JOB.p99`, `JOB.read p99`.
    pub fn is_named(&self, word: &str) -> bool {
        let own = word
            .strip_prefix(&self.job)
            .and_then(|rest| rest.strip_prefix('.'));
        [Some(word), own]
            .into_iter()
            .flatten()
            .any(|word| word == self.name || word == self.full_name())
    }
}

impl Entry {
    /// A run. `machine`: what the machine is called, where somebody says so.
    ///
    /// # Errors
    /// A number without JSON form.
    pub fn of_result(
        id: &str,
        result: &RunResult,
        machine: Option<&str>,
    ) -> Result<Self, SchemaError> {
        let schema = result.schema.clone();
        Ok(Self {
            schema,
            json: Some(kept(result).to_json()?),
            metrics: metrics_of(result),
            ..Self::about(id, result, machine)?
        })
    }

    /// Several runs of one plan, kept as one: their figures are those over all of them. Nothing where
    /// there was no run.
    ///
    /// # Errors
    /// A number without JSON form.
    pub fn of_runs(
        id: &str,
        runs: &Runs,
        series: &RunSeries,
        machine: Option<&str>,
    ) -> Result<Option<Self>, SchemaError> {
        let Some(first) = series.runs.first() else {
            return Ok(None);
        };
        let mut all = runs.clone();
        all.series = vec![series.clone()];
        for run in all.series.iter_mut().flat_map(|series| &mut series.runs) {
            *run = kept(run);
        }
        let durations = series.runs.iter().map(|run| run.duration_ns.0);
        let of_runs = series.runs.iter().flat_map(|run| &run.warnings);
        let warnings = series.warnings.iter().chain(of_runs);
        Ok(Some(Self {
            duration_ns: Nanos(durations.sum()),
            complete: series.runs.iter().all(|run| run.complete),
            warnings: ids(warnings.map(|warning| warning.id.as_str())),
            schema: runs.schema.clone(),
            json: Some(all.to_json(false)?),
            metrics: metrics_of_series(series, first),
            ..Self::about(id, first, machine)?
        }))
    }

    /// Facts of a run beside its figures.
    fn about(id: &str, result: &RunResult, machine: Option<&str>) -> Result<Self, SchemaError> {
        let named = machine.filter(|name| !name.is_empty());
        let mut facts = json::value(&result.host)?;
        if let (Some(name), Some(facts)) = (named, facts.as_object_mut()) {
            facts.insert("name".to_owned(), name.into());
        }
        Ok(Self {
            id: id.to_owned(),
            started_ns: result.started_unix_ns,
            duration_ns: result.duration_ns,
            plan_fingerprint: plan_fingerprint(result),
            plan_name: result.plan.name.clone(),
            plan_json: serde_json::to_string(&result.plan)?,
            machine_key: machine_key(&result.host, named),
            machine_facts: facts.to_string(),
            verb: result.plan.door.clone(),
            label: None,
            note: None,
            source: None,
            weir_version: result.weir_version.clone(),
            complete: result.complete,
            exit_code: 0,
            warnings: ids(result.warnings.iter().map(|warning| warning.id.as_str())),
            tags: BTreeMap::new(),
            schema: String::new(),
            json: None,
            metrics: Vec::new(),
        })
    }
}

/// Each once, in order.
fn ids<'a>(warnings: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut ids: Vec<String> = warnings.map(str::to_owned).collect();
    ids.sort();
    ids.dedup();
    ids
}

fn metrics_of(result: &RunResult) -> Vec<MetricRow> {
    let mut names = JobNames::default();
    let of_job = |job: &JobResult| {
        let name = names.next(&job.name);
        let few = job.metrics_of_few_samples();
        let all = job.all_metrics().into_iter();
        all.map(|metric| MetricRow {
            is_of_few: few.contains(&metric.name),
            ..row(&name, job, &metric)
        })
        .collect::<Vec<_>>()
    };
    finite(result.jobs().flat_map(of_job))
}

fn metrics_of_series(series: &RunSeries, first: &RunResult) -> Vec<MetricRow> {
    let mut names = JobNames::default();
    let jobs = series.jobs.iter().zip(first.jobs());
    let of_job = |(over_runs, job): (&weir_schema::JobBetweenRuns, &JobResult)| {
        let name = names.next(&over_runs.name);
        let figures = over_runs.figures.iter();
        figures
            .map(|figure| {
                let metric = Metric {
                    better: figure.better,
                    ..Metric::high(&*figure.name, &figure.unit, figure.between.mean)
                };
                MetricRow {
                    interval: figure.between.interval(),
                    ..row(&name, job, &metric)
                }
            })
            .collect::<Vec<_>>()
    };
    finite(jobs.flat_map(of_job))
}

/// A table holds no figure twice, and none that is no number.
fn finite(rows: impl Iterator<Item = MetricRow>) -> Vec<MetricRow> {
    rows.filter(|row| row.value.is_finite()).collect()
}

fn row(job_name: &str, job: &JobResult, metric: &Metric) -> MetricRow {
    let mut kinds = job.workers().iter().flat_map(|worker| &worker.kinds);
    let of_kind = kinds.find_map(|kind| {
        let kind = kind.kind.as_str();
        let rest = metric.name.strip_prefix(kind)?.strip_prefix(' ')?;
        Some((kind, rest))
    });
    let (kind, name) = of_kind.unwrap_or(("", &metric.name));
    MetricRow {
        job: job_name.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        value: metric.value,
        interval: metric.interval.map(|i| (i.low, i.high)),
        unit: metric.unit.clone(),
        better: match metric.better {
            Better::Higher => 1,
            Better::Lower => -1,
        },
        is_of_few: false,
    }
}

/// Names of jobs need not differ; those in the table do.
#[derive(Default)]
pub(crate) struct JobNames {
    given: BTreeMap<String, u32>,
}

impl JobNames {
    pub(crate) fn next(&mut self, name: &str) -> String {
        let times = self.given.entry(name.to_owned()).or_default();
        *times += 1;
        match *times {
            1 => name.to_owned(),
            times => format!("{name} #{times}"),
        }
    }
}

/// A run as it is kept: without its RPCs one by one; where it was long, with series of a second.
fn kept(result: &RunResult) -> RunResult {
    let mut result = result.clone();
    let is_long = result.duration_ns > LONG;
    for job in result.groups.iter_mut().flat_map(|group| &mut group.jobs) {
        if let Outcome::Rpc(done) = &mut job.outcome {
            done.masters.iter_mut().for_each(|one| one.samples.clear());
        }
        let workers = job.workers_mut().iter_mut().filter(|_| is_long);
        for kind in workers.flat_map(|worker| &mut worker.kinds) {
            let interval = kind.series.interval().0.max(1);
            let factor = usize::try_from(SECOND.0 / interval).unwrap_or(1);
            kind.series = kind.series.coarser(factor);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use weir_schema::sample;
    use weir_schema::{Job, Kind, Plan, RUNS_SCHEMA, RpcWorkload};
    use weir_stats::Estimate;

    use super::*;

    fn run(rate: u64) -> RunResult {
        let second = Nanos::from_secs(1);
        let reads = sample::kind(Kind::Read, rate, second, &[]);
        let job = sample::job_result("a", vec![sample::worker(0, second, vec![reads])]);
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let about = Estimate::within(rate as f64, rate as f64 * 0.99, rate as f64 * 1.01);
        let sure = vec![sample::confidence(Kind::Read, about, about)];
        let mut job = sample::sure(job, sure);
        job.conclude();
        let plan = || sample::block_job("a");
        sample::run(vec![vec![(plan(), job.clone()), (plan(), job)]])
    }

    fn found<'a>(entry: &'a Entry, job: &str, name: &str) -> &'a MetricRow {
        let mut rows = entry.metrics.iter();
        let is_it = |row: &&MetricRow| row.job == job && row.name == name;
        rows.find(is_it).unwrap_or_else(|| panic!("{entry:?}"))
    }

    #[test]
    fn figures_are_found_by_job_kind_and_name() {
        let entry = Entry::of_result("X", &run(100), None).unwrap();
        let rate = found(&entry, "a", "rate");
        assert_eq!((rate.kind.as_str(), rate.unit.as_str()), ("read", "ops/s"));
        assert!((rate.value - 100.0).abs() < 1e-9 && rate.better == 1);
        assert_eq!(rate.interval, Some((99.0, 101.0)));
        assert_eq!(
            found(&entry, "a #2", "rate").value.to_bits(),
            rate.value.to_bits()
        );
        let again = RunResult::from_json(entry.json.as_deref().unwrap()).unwrap();
        assert_eq!(again, run(100));
    }

    #[test]
    fn rpcs_one_by_one_are_not_kept() {
        let job = Job::of_rpcs("a", RpcWorkload::default());
        let result = sample::everything(Plan::new("p", "run", vec![job]));
        let samples = |json: &str| {
            let result = RunResult::from_json(json).unwrap();
            result.groups[0].jobs[0].rpc().unwrap().masters[0]
                .samples
                .len()
        };
        assert!(samples(&result.to_json().unwrap()) > 0);
        let entry = Entry::of_result("X", &result, None).unwrap();
        assert_eq!(samples(&entry.json.unwrap()), 0);
    }

    #[test]
    fn several_runs_are_one_entry_with_what_they_say_together() {
        let series = RunSeries::new("p", vec![run(100), run(400)]);
        let runs = Runs {
            schema: RUNS_SCHEMA.to_owned(),
            weir_version: "1".to_owned(),
            command: Vec::new(),
            asked: 2,
            pause_ns: Nanos::ZERO,
            complete: true,
            comparison: None,
            series: vec![series, RunSeries::new("q", Vec::new())],
        };
        let entry = Entry::of_runs("X", &runs, &runs.series[0], None)
            .unwrap()
            .unwrap();
        assert!((found(&entry, "a", "rate").value - 200.0).abs() < 1e-9);
        assert_eq!(entry.plan_fingerprint, plan_fingerprint(&run(100)));
        let kept = Runs::from_json(entry.json.as_deref().unwrap()).unwrap();
        assert_eq!(kept.series[..], runs.series[..1]);
        assert_eq!(
            Entry::of_runs("X", &runs, &runs.series[1], None).unwrap(),
            None
        );
    }

    #[test]
    fn long_runs_are_kept_by_the_second() {
        let mut long = run(100);
        let points = |result: &RunResult| {
            result.jobs().next().unwrap().workers()[0].kinds[0]
                .series
                .len()
        };
        let series = &mut long.groups[0].jobs[0].workers_mut()[0].kinds[0].series;
        *series = weir_stats::Series::new(Nanos::from_millis(100));
        for _ in 0..25 {
            series.push(1, weir_units::Bytes(1)).unwrap();
        }
        let kept = |result: &RunResult| {
            let entry = Entry::of_result("X", result, None).unwrap();
            points(&RunResult::from_json(&entry.json.unwrap()).unwrap())
        };
        assert_eq!(kept(&long), 25);
        long.duration_ns = Nanos::from_secs(601);
        assert_eq!(kept(&long), 3);
    }
}
