//! Metrics of a run so far, as Prometheus reads them: text of version 0.0.4, or `OpenMetrics`.
//!
//! In: a result, which may be that of a run that goes on, and what its jobs do at this instant. Out:
//! counters, histograms and gauges, whose names begin with `weir_`. The bounds of the histograms' buckets
//! are powers of two, which are bounds of weir's own buckets, so that the counts are exact; a value on a
//! bound counts above it. Not here: who asks for it, and how.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use weir_schema::{JobResult, KindName, RunResult, Stage};
use weir_stats::Histogram;
use weir_units::Nanos;

use crate::entry::KindSum;
use crate::progress::Activity;

/// The least and the largest bound of latencies: powers of two of nanoseconds.
const BOUNDS: std::ops::RangeInclusive<u32> = 7..=36;

const STAGES: [Stage; 5] = [
    Stage::Slat,
    Stage::Clat,
    Stage::Lat,
    Stage::Rlat,
    Stage::Errors,
];

/// Activity of a job at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct JobNow {
    /// Its name.
    pub job: String,
    /// Its activity.
    pub activity: Activity,
    /// Operations in flight.
    pub in_flight: u64,
    /// The most that can be.
    pub depth_limit: Option<u64>,
    /// Time left.
    pub remaining_ns: Option<Nanos>,
}

/// The forms in which it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prometheus' own text, 0.0.4.
    Text,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Form {
    /// Content type of the answer.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Everything that a run tells of itself.
pub fn metrics(result: &RunResult, now: &[JobNow], form: Form) -> String {
    let mut page = Page {
        out: String::new(),
        form,
    };
    let run = [
        ("version", &*result.weir_version),
        ("run_id", &*format!("{:016x}", result.run_id)),
        ("plan", &*result.plan.name),
    ];
    page.family("run_info", "gauge", "the run");
    page.sample("run_info", &run, "1");
    counters(&mut page, result);
    latencies(&mut page, result);
    gauges(&mut page, result, now);
    if form == Form::OpenMetrics {
        page.out.push_str("# EOF\n");
    }
    page.out
}

fn counters(page: &mut Page, result: &RunResult) {
    let kinds = || {
        let jobs = result.groups.iter().enumerate();
        let jobs = jobs.flat_map(|(group, jobs)| jobs.jobs.iter().map(move |job| (group, job)));
        jobs.flat_map(|(group, job)| sums(job).into_iter().map(move |sum| (group, job, sum)))
    };
    page.family("operations", "counter", "operations that completed");
    for (group, job, sum) in kinds() {
        let labels = [
            ("group", &*group.to_string()),
            ("job", &*job.name),
            ("kind", &*sum.name),
        ];
        page.sample("operations_total", &labels, &sum.sum.operations.to_string());
    }
    page.family("bytes", "counter", "bytes that they moved");
    for (group, job, sum) in kinds() {
        let labels = [
            ("group", &*group.to_string()),
            ("job", &*job.name),
            ("kind", &*sum.name),
        ];
        page.sample("bytes_total", &labels, &sum.sum.bytes.0.to_string());
    }
    page.family("errors", "counter", "operations that failed, by code");
    for (_, job, sum) in kinds() {
        for (code, count) in &sum.sum.errors {
            let code = code.to_string();
            let labels = [("job", &*job.name), ("kind", &*sum.name), ("code", &*code)];
            page.sample("errors_total", &labels, &count.to_string());
        }
    }
    page.family("worker_cpu_seconds", "counter", "processor time of workers");
    for job in result.jobs().filter(|job| !job.workers().is_empty()) {
        let time = |of: fn(&weir_schema::CpuUse) -> Nanos| -> f64 {
            job.workers().iter().map(|w| of(&w.cpu).as_secs_f64()).sum()
        };
        for (mode, seconds) in [
            ("user", time(|c| c.user_ns)),
            ("system", time(|c| c.system_ns)),
        ] {
            let labels = [("job", &*job.name), ("mode", mode)];
            page.sample("worker_cpu_seconds_total", &labels, &seconds.to_string());
        }
    }
}

fn latencies(page: &mut Page, result: &RunResult) {
    page.family("latency_seconds", "histogram", "latencies of operations");
    for job in result.jobs() {
        for sum in sums(job) {
            for stage in STAGES {
                if let Some(histogram) = sum.stage(stage) {
                    let stage = stage_name(stage);
                    let labels = [("job", &*job.name), ("kind", &*sum.name), ("stage", stage)];
                    page.histogram("latency_seconds", &labels, histogram);
                }
            }
        }
    }
}

fn gauges(page: &mut Page, result: &RunResult, now: &[JobNow]) {
    page.family("elapsed_seconds", "gauge", "since the first job began");
    let elapsed = result.duration_ns.as_secs_f64().to_string();
    page.sample("elapsed_seconds", &[], &elapsed);
    page.family("in_flight", "gauge", "operations in flight");
    for job in now {
        page.sample(
            "in_flight",
            &[("job", &job.job)],
            &job.in_flight.to_string(),
        );
    }
    page.family(
        "queue_depth_limit",
        "gauge",
        "the most that can be in flight",
    );
    for (job, limit) in now.iter().filter_map(|job| Some((job, job.depth_limit?))) {
        page.sample(
            "queue_depth_limit",
            &[("job", &job.job)],
            &limit.to_string(),
        );
    }
    page.family("remaining_seconds", "gauge", "estimate of the time left");
    for (job, left) in now.iter().filter_map(|job| Some((job, job.remaining_ns?))) {
        let left = left.as_secs_f64().to_string();
        page.sample("remaining_seconds", &[("job", &job.job)], &left);
    }
    page.family("phase", "gauge", "1 for what a job does now");
    for job in now {
        for activity in Activity::ALL {
            let labels = [("job", &*job.job), ("phase", activity.name())];
            let is_it = u8::from(activity == job.activity).to_string();
            page.sample("phase", &labels, &is_it);
        }
    }
    page.family("warning", "gauge", "what spoils the figures");
    for warning in &result.warnings {
        let job = warning.job.as_deref().unwrap_or_default();
        page.sample("warning", &[("id", &warning.id), ("job", job)], "1");
    }
}

/// Each kind over all workers of a job.
fn sums(job: &JobResult) -> Vec<KindSum> {
    let mut sums: BTreeMap<&KindName, KindSum> = BTreeMap::new();
    for kind in job.workers().iter().flat_map(|worker| &worker.kinds) {
        let new = || KindSum::new(&kind.kind, kind.kind.as_str());
        sums.entry(&kind.kind).or_insert_with(new).add(kind);
    }
    sums.into_values().collect()
}

const fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Slat => "slat",
        Stage::Clat => "clat",
        Stage::Lat => "lat",
        Stage::Rlat => "rlat",
        Stage::Errors => "errors",
    }
}

/// The page as far as it is written.
struct Page {
    out: String,
    form: Form,
}

impl Page {
    /// The head of a family; a counter's samples have `_total` behind its name.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let name = match (self.form, kind) {
            (Form::Text, "counter") => format!("{name}_total"),
            _ => name.to_owned(),
        };
        let _ = write!(
            self.out,
            "# HELP weir_{name} {help}\n# TYPE weir_{name} {kind}\n"
        );
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &str) {
        let _ = write!(self.out, "weir_{name}");
        for (at, (label, text)) in labels.iter().enumerate() {
            let before = if at == 0 { "{" } else { "," };
            let _ = write!(self.out, "{before}{label}=\"{}\"", escaped(text));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{end} {value}");
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut buckets = histogram.buckets().peekable();
        let mut below = 0;
        for bound in BOUNDS.map(|power| 1_u64 << power) {
            while let Some(bucket) = buckets.next_if(|bucket| bucket.low < bound) {
                below += bucket.count;
            }
            let seconds = Nanos(bound).as_secs_f64().to_string();
            self.bucket(name, labels, &seconds, below);
        }
        self.bucket(name, labels, "+Inf", histogram.count());
        #[expect(
            clippy::cast_precision_loss,
            reason = "the format has floating point numbers"
        )]
        let sum = histogram.sum() as f64 / 1e9;
        self.sample(&format!("{name}_sum"), labels, &sum.to_string());
        let count = histogram.count().to_string();
        self.sample(&format!("{name}_count"), labels, &count);
    }

    fn bucket(&mut self, name: &str, labels: &[(&str, &str)], bound: &str, below: u64) {
        let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound)]).collect();
        self.sample(&format!("{name}_bucket"), &labels, &below.to_string());
    }
}

/// A label's value: names are those of a plan, which may hold anything.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use weir_schema::{Kind, sample};

    use super::*;

    fn page(form: Form) -> String {
        let mut histogram = Histogram::new();
        for latency in [100, 127, 128, 5_000, 1 << 40] {
            histogram.record(latency);
        }
        let kind = sample::kind(
            Kind::Read,
            5,
            Nanos(1_000_000_000),
            &[(Stage::Lat, histogram)],
        );
        let workers = vec![
            sample::worker(0, Nanos(1_000_000_000), vec![kind.clone()]),
            sample::worker(1, Nanos(1_000_000_000), vec![kind]),
        ];
        let job = sample::block_job("a\"b\n");
        let mut result = sample::run(vec![vec![(job, sample::job_result("a\"b\n", workers))]]);
        result
            .warnings
            .push(weir_schema::Warning::new("slow", None, ""));
        let now = JobNow {
            job: "a\"b\n".to_owned(),
            activity: Activity::Measure,
            in_flight: 3,
            depth_limit: Some(64),
            remaining_ns: None,
        };
        metrics(&result, &[now], form)
    }

    #[test]
    fn counts_of_workers_add_up_and_names_are_escaped() {
        let page = page(Form::Text);
        let line = "weir_operations_total{group=\"0\",job=\"a\\\"b\\n\",kind=\"read\"} 10\n";
        assert!(page.contains(line), "{page}");
        assert!(page.contains("# TYPE weir_operations_total counter\n"));
        assert!(page.contains("weir_in_flight{job=\"a\\\"b\\n\"} 3\n"));
        assert!(page.contains("weir_queue_depth_limit{job=\"a\\\"b\\n\"} 64\n"));
        assert!(page.contains("phase=\"measure\"} 1\n") && page.contains("phase=\"ramp\"} 0\n"));
        assert!(page.contains("weir_warning{id=\"slow\",job=\"\"} 1\n"));
        assert!(!page.contains("remaining_seconds{"));
    }

    #[test]
    fn a_value_on_a_bound_counts_above_it_and_the_last_bucket_has_all() {
        let page = page(Form::Text);
        let below = |bound: &str| -> u64 {
            let line = page
                .lines()
                .find(|line| line.contains(&format!("le=\"{bound}\"")));
            line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
        };
        assert_eq!(below("0.000000128"), 4);
        assert_eq!(below("0.000000256"), 6);
        assert_eq!(below("0.000008192"), 8);
        assert_eq!(below("68.719476736"), 8);
        assert_eq!(below("+Inf"), 10);
        assert!(page.contains("stage=\"lat\"} 10\n"), "{page}");
    }

    #[test]
    fn openmetrics_names_the_family_without_total_and_has_an_end() {
        let page = page(Form::OpenMetrics);
        assert!(page.contains("# TYPE weir_operations counter\n"));
        assert!(page.contains("weir_operations_total{"));
        assert!(page.ends_with("# EOF\n"));
    }
}
