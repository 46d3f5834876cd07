//! The figures of a job that are compared, by name, and its latencies.
//!
//! In: a job of a result. Out: its headline figures, and those that follow from what it counted:
//! percentiles, CPU time. Whatever its workload, a name means the figure of that name or, of each kind
//! of operation, `KIND name`. Not here: comparing.

use weir_schema::{Better, Interval, JobResult, KindName, Metric, Stage};
use weir_stats::Histogram;
use weir_stats::significance::MeanOfLogarithms;

use crate::rule::{USUAL_METRICS, percent_of};

/// The interval within a run is so many standard errors wide to either side, with these degrees of
/// freedom.
const ERRORS_WITHIN: f64 = 2.306;
const FREEDOM_WITHIN: f64 = 8.0;
/// Losses, beside the usual figures of what came through.
const LOSSES: [&str; 2] = ["loss", "begun of the rate"];
/// Figures that a search was for: those of its steps say nothing beside them.
const FOUND: [&str; 3] = ["NDR", "PDR", "highest rate"];
/// CPU time of an operation.
const CPU_PER_OP: &str = "cpu_per_op";

/// A figure of a job in one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) kind: Option<String>,
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    pub(crate) value: f64,
    /// Interval within the run itself: the mean of its logarithm.
    pub(crate) within: Option<MeanOfLogarithms>,
    /// Resolution of the figure, as a share of itself.
    pub(crate) grain: f64,
}

impl Figure {
    fn of(metric: &Metric, kind: Option<&str>, name: &str) -> Self {
        Self {
            kind: kind.map(str::to_owned),
            name: name.to_owned(),
            unit: metric.unit.clone(),
            better: metric.better,
            value: metric.value,
            within: within(metric),
            grain: 0.0,
        }
    }

    /// `read rate`.
    pub(crate) fn full_name(&self) -> String {
        match &self.kind {
            Some(kind) => format!("{kind} {}", self.name),
            None => self.name.clone(),
        }
    }

    /// True if it is the same figure of another run.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name == other.name
    }
}

/// Error of a run's figure within the run: by its interval, or by repetitions.
fn within(metric: &Metric) -> Option<MeanOfLogarithms> {
    let mean = metric.value.ln();
    if let Some(half) = metric.half_width() {
        return Some(MeanOfLogarithms {
            mean,
            error: half / metric.value / ERRORS_WITHIN,
            freedom: FREEDOM_WITHIN,
        });
    }
    let logarithms: Vec<f64> = metric.samples.iter().map(|sample| sample.ln()).collect();
    let of_samples = MeanOfLogarithms::of(&logarithms)?;
    Some(MeanOfLogarithms { mean, ..of_samples })
}

/// The figures of these names, in their order; without names the usual ones or, where it has none of
/// them, all that it has.
pub(crate) fn figures(job: &JobResult, names: &[String]) -> Vec<Figure> {
    let latencies = latencies(job);
    let of_name = |name: &str| {
        let found = named(job, name, &latencies);
        match name.split_once(' ') {
            // That of one kind, which is no headline figure.
            Some((kind, general)) if found.is_empty() => {
                let mut found = named(job, general, &latencies);
                found.retain(|figure| figure.kind.as_deref() == Some(kind));
                found
            }
            _ => found,
        }
    };
    if !names.is_empty() {
        return names.iter().flat_map(|name| of_name(name)).collect();
    }
    let found: Vec<Figure> = FOUND.iter().flat_map(|name| of_name(name)).collect();
    if !found.is_empty() {
        return found;
    }
    let usual: Vec<Figure> = USUAL_METRICS
        .iter()
        .flat_map(|name| of_name(name))
        .collect();
    if !usual.is_empty() {
        let losses = LOSSES.iter().flat_map(|name| of_name(name));
        return usual.into_iter().chain(losses).collect();
    }
    let all = job.metrics.iter();
    all.map(|metric| Figure::of(metric, None, &metric.name))
        .collect()
}

/// The names of all figures that a job has.
pub(crate) fn names(job: &JobResult) -> Vec<String> {
    job.metrics
        .iter()
        .map(|metric| metric.name.clone())
        .collect()
}

fn named(job: &JobResult, name: &str, latencies: &[(KindName, Histogram)]) -> Vec<Figure> {
    if let Some(metric) = job.metrics.iter().find(|metric| metric.name == name) {
        return vec![Figure::of(metric, None, name)];
    }
    if name == CPU_PER_OP {
        return cpu_per_op(job).into_iter().collect();
    }
    let of_phases: Vec<String> = job.phase_metrics().map(|metric| metric.name).collect();
    let of_kinds = job.metrics.iter().filter_map(|metric| {
        let kind = metric.name.strip_suffix(name)?.strip_suffix(' ')?;
        // The kind of a phase has the phase's name in front.
        let is_kind = !kind.contains(' ') || of_phases.contains(&metric.name);
        is_kind.then(|| Figure::of(metric, Some(kind), name))
    });
    let mut found: Vec<Figure> = of_kinds.collect();
    let Some(percent) = percent_of(name) else {
        return found;
    };
    for (kind, histogram) in latencies {
        let grain = histogram.percentile_grain(percent).unwrap_or(0.0);
        if let Some(same) = found
            .iter_mut()
            .find(|f| f.kind.as_deref() == Some(kind.as_str()))
        {
            same.grain = grain;
        } else if let Some(mut figure) = percentile(job, kind, percent, name, histogram) {
            figure.grain = grain;
            found.push(figure);
        }
    }
    found
}

/// A percentile that is no headline figure.
fn percentile(
    job: &JobResult,
    kind: &KindName,
    percent: f64,
    name: &str,
    histogram: &Histogram,
) -> Option<Figure> {
    let seconds = |ns: f64| ns / 1e9;
    let value = histogram.percentile(percent)?;
    let known = job.confidence().iter().filter(|sure| sure.kind == *kind);
    let mut known = known.flat_map(|sure| &sure.percentiles);
    let estimate = known.find(|p| (p.percent.0 - percent).abs() < 1e-9);
    let interval = estimate.and_then(|p| p.value_ns.low.zip(p.value_ns.high));
    let metric = Metric {
        interval: interval.map(|(low, high)| Interval {
            low: seconds(low),
            high: seconds(high),
        }),
        ..Metric::low(name, Metric::SECONDS, seconds(value as f64))
    };
    Some(Figure::of(&metric, Some(kind.as_str()), name))
}

/// CPU time of the workers over all their operations.
fn cpu_per_op(job: &JobResult) -> Option<Figure> {
    let workers = job.workers();
    let used = workers.iter().map(|w| w.cpu.user_ns.0 + w.cpu.system_ns.0);
    let kinds = workers.iter().flat_map(|worker| &worker.kinds);
    let operations: u64 = kinds.map(|kind| kind.operations).sum();
    let value = used.sum::<u64>() as f64 / 1e9 / operations as f64;
    let metric = Metric::low(CPU_PER_OP, Metric::SECONDS, value);
    (operations > 0).then(|| Figure::of(&metric, None, CPU_PER_OP))
}

/// The latencies of each kind that is part of the rates, over all workers: those that a user would see.
pub(crate) fn latencies(job: &JobResult) -> Vec<(KindName, Histogram)> {
    let all = job.workers().iter().flat_map(|worker| &worker.kinds);
    let mut kinds: Vec<&KindName> = all
        .filter(|kind| kind.operations > 0 && !kind.kind.is_aside())
        .map(|kind| &kind.kind)
        .collect();
    kinds.sort();
    kinds.dedup();
    let of_kind = |kind: &KindName| {
        let parts = || job.workers().iter().filter_map(|worker| worker.kind(kind));
        let stages = [Stage::Rlat, Stage::Lat, Stage::Clat];
        let mut merged = stages.into_iter().filter_map(|stage| {
            let mut found = parts().filter_map(|part| part.stage(stage));
            let mut whole = found.next()?.clone();
            found.try_for_each(|one| whole.merge(one)).ok()?;
            (!whole.is_empty()).then_some(whole)
        });
        Some((kind.clone(), merged.next()?))
    };
    kinds.into_iter().filter_map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use weir_schema::{Kind, sample};
    use weir_units::Nanos;

    use super::*;

    fn job() -> JobResult {
        let second = Nanos::from_secs(1);
        let mut histogram = Histogram::new();
        histogram.record_n(1000, 990);
        histogram.record_n(9000, 10);
        let kinds = [Kind::Read, Kind::Write]
            .map(|kind| sample::kind(kind, 1000, second, &[(Stage::Lat, histogram.clone())]));
        let mut worker = sample::worker(0, second, kinds.to_vec());
        worker.cpu.user_ns = Nanos(400_000);
        worker.cpu.system_ns = Nanos(1_600_000);
        let mut job = sample::job_result("a", vec![worker]);
        job.conclude();
        job
    }

    fn found(job: &JobResult, names: &[&str]) -> Vec<(String, f64)> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let of = |f: Figure| {
            (
                format!("{} {}", f.kind.unwrap_or_default(), f.name),
                f.value,
            )
        };
        figures(job, &names).into_iter().map(of).collect()
    }

    #[test]
    fn a_name_means_every_kind_and_a_full_name_one() {
        let job = job();
        let rates = found(&job, &["rate"]);
        assert_eq!(rates[0].0, "read rate");
        assert_eq!(rates[1].0, "write rate");
        assert_eq!(found(&job, &["write rate"]).len(), 1);
        assert_eq!(found(&job, &["nothing"]), []);
        // 2 ms of CPU over 2000 operations.
        let cpu = found(&job, &["cpu_per_op"]);
        assert!((cpu[0].1 - 1e-6).abs() < 1e-15, "{cpu:?}");
    }

    #[test]
    fn any_percentile_comes_from_the_latencies() {
        let job = job();
        let p995 = found(&job, &["p99.5"]);
        assert_eq!(p995.len(), 2);
        let of_one = found(&job, &["write p99.5"]);
        assert_eq!((of_one.len(), of_one[0].0.as_str()), (1, "write p99.5"));
        assert_eq!(found(&job, &["trim p99.5"]), []);
        assert!((p995[0].1 / 9e-6 - 1.0).abs() < 0.01, "{p995:?}");
        let usual = figures(&job, &[]);
        // Two kinds of four, and the CPU time.
        assert_eq!(usual.len(), 9);
        let p99 = usual.iter().find(|f| f.name == "p99").unwrap();
        assert!(p99.grain > 0.0, "{p99:?}");
    }

    #[test]
    fn a_run_knows_its_error_by_its_interval_or_by_repetitions() {
        let mut metric = Metric::high("x", "B/s", 100.0);
        assert_eq!(within(&metric), None);
        // Logarithms 0, 0.1 and 0.2 about their mean: deviation 0.1, error 0.1/√3.
        metric.samples = [0.0_f64, 0.1, 0.2].map(f64::exp).to_vec();
        let of_samples = within(&metric).unwrap();
        assert!((of_samples.error - 0.1 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert!((of_samples.mean - 100.0_f64.ln()).abs() < 1e-9);
        metric.interval = Some(Interval {
            low: 97.694,
            high: 102.306,
        });
        let of_interval = within(&metric).unwrap();
        assert!((of_interval.error - 0.01).abs() < 1e-9, "{of_interval:?}");
    }

    #[test]
    fn a_job_without_any_usual_figure_is_compared_by_all_it_has() {
        let mut job = JobResult::not_started("b");
        job.metrics = vec![
            Metric::high("b_eff", "B/s", 1.0),
            Metric::low("x", "s", 2.0),
        ];
        let names: Vec<String> = figures(&job, &[]).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["b_eff", "x"]);
    }

    #[test]
    fn what_a_search_was_for_stands_alone() {
        let mut job = job();
        let rate = |name: &str| Metric::high(name, "ops/s", 1.0);
        job.metrics.extend([rate("PDR"), rate("NDR")]);
        let names: Vec<String> = figures(&job, &[]).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["NDR", "PDR"]);
        assert_eq!(found(&job, &["rate"]).len(), 2, "others by name");
    }
}
