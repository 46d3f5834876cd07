//! JSON of fio, and of doors that print as it does: `json` and `json+`.
//!
//! In: the document, whatever stands before and after it. Out: counts and rates of each direction of
//! each job; latencies as histograms where the file has bins, which are those of weir's own
//! histograms, else as the points that it has.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use weir_schema::{
    CpuUse, Failure, Kind, KindName, KindResult, Metric, SampleStatistics, Span, Stage,
    StageHistogram, Word, WorkerResult,
};
use weir_stats::Histogram;
use weir_units::{Bytes, Nanos};

use crate::Format;
use crate::error::ImportError;
use crate::fio_schema::{FioDirection, FioDocument, FioJobReport, FioLatency};
use crate::foreign::{ForeignJob, ForeignRun};
use crate::json;

pub(crate) const FORMAT: Format = Format {
    name: "fio",
    meaning: "fio, --output-format=json or json+",
    is_in: |text| json::has(text, &["\"fio version\""]),
    read,
};

/// Percentiles below this are no headline figures.
const LEAST_PERCENT: f64 = 50.0;
/// Those that the histogram of a loop gives a headline figure.
const OF_HISTOGRAMS: [f64; 2] = [50.0, 99.0];
const MILLION: u64 = 1_000_000;

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let document: FioDocument = json::document(text)?;
    let stamp = document.timestamp.map(|s| s.saturating_mul(1000));
    let jobs = document.jobs.iter().chain(&document.client_stats);
    let starts = jobs.clone().filter_map(|job| job.start_ms);
    let started_ms = starts.min().or(document.timestamp_ms).or(stamp);
    let jobs: Vec<ForeignJob> = jobs
        .map(|job| of_job(job, &document.global_options))
        .collect();
    if jobs.is_empty() {
        let line = text.lines().count().max(1);
        return Err(ImportError::new(line, "the document has no jobs"));
    }
    Ok(ForeignRun {
        program: Some(document.version.clone()),
        started_unix_ns: started_ms.unwrap_or(0).saturating_mul(MILLION),
        global_words: words(&document.global_options),
        jobs,
        ..ForeignRun::default()
    })
}

fn words(options: &Map<String, Value>) -> Vec<Word> {
    let word = |(key, value): (&String, &Value)| Word {
        key: key.clone(),
        value: match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            other => Some(other.to_string()),
        },
    };
    options.iter().map(word).collect()
}

fn of_job(job: &FioJobReport, global: &Map<String, Value>) -> ForeignJob {
    let option = |name: &str| {
        let value = job.options.get(name).or_else(|| global.get(name))?;
        value.as_str().filter(|text| !text.is_empty())
    };
    let pattern = option("rw").or_else(|| option("readwrite"));
    let size = option("bs").or_else(|| option("blocksize"));
    let depth = option("iodepth").map(|depth| format!("depth {depth}"));
    let title = [pattern, size, depth.as_deref()].into_iter().flatten();
    let name = match &job.hostname {
        Some(host) if !host.is_empty() => format!("{} on {host}", job.jobname),
        _ => job.jobname.clone(),
    };
    let directions = directions(job);
    let metrics = directions.iter().flat_map(|(kind, d)| metrics(kind, d));
    ForeignJob {
        name,
        title: title.collect::<Vec<_>>().join(" "),
        description: job.desc.clone().filter(|text| !text.is_empty()),
        engine: option("ioengine").unwrap_or_default().to_owned(),
        words: words(&job.options),
        metrics: metrics.collect(),
        failure: (job.error != 0).then(|| Failure {
            errno: Some(job.error),
            ..Failure::new("io", format!("the file says error {}", job.error))
        }),
        worker: Some(worker(job, &directions)),
    }
}

/// Directions in which anything was done.
fn directions(job: &FioJobReport) -> Vec<(KindName, &FioDirection)> {
    let all = [
        (Kind::Read.into(), &job.read),
        (Kind::Write.into(), &job.write),
        (Kind::Trim.into(), &job.trim),
        (KindName::MIXED, &job.mixed),
    ];
    let there = all
        .into_iter()
        .filter_map(|(kind, d)| Some((kind, d.as_ref()?)));
    there.filter(|(_, d)| d.total_ios > 0).collect()
}

fn worker(job: &FioJobReport, directions: &[(KindName, &FioDirection)]) -> WorkerResult {
    let runtime = directions.iter().map(|(_, d)| d.runtime).max().unwrap_or(0);
    let share = |percent: Option<f64>| {
        let time = millis(job.runtime_ms.unwrap_or(runtime)).as_secs_f64();
        Nanos::from_secs_f64(time * percent.unwrap_or(0.0) / 100.0).unwrap_or(Nanos::ZERO)
    };
    let syncs = job.sync.as_ref().filter(|sync| sync.total_ios > 0);
    let syncs = syncs.map(|sync| KindResult {
        issued: sync.total_ios,
        operations: sync.total_ios,
        stages: stage(Stage::Lat, sync.lat_ns.as_ref())
            .into_iter()
            .collect(),
        ..KindResult::new(Kind::Sync)
    });
    WorkerResult {
        span: (runtime > 0).then(|| Span {
            start_ns: Nanos::ZERO,
            end_ns: millis(runtime),
        }),
        kinds: directions
            .iter()
            .map(|(kind, d)| of_kind(kind, d))
            .chain(syncs)
            .collect(),
        cpu: CpuUse {
            user_ns: share(job.usr_cpu),
            system_ns: share(job.sys_cpu),
            minor_faults: job.minf.unwrap_or(0),
            major_faults: job.majf.unwrap_or(0),
            ..CpuUse::default()
        },
        ..WorkerResult::default()
    }
}

fn of_kind(kind: &KindName, d: &FioDirection) -> KindResult {
    let stages = [
        stage(Stage::Slat, d.slat_ns.as_ref()),
        stage(Stage::Clat, d.clat_ns.as_ref()),
        stage(Stage::Lat, d.lat_ns.as_ref()),
    ];
    KindResult {
        issued: d.total_ios.saturating_add(d.drop_ios),
        operations: d.total_ios,
        bytes: Bytes(d.io_bytes),
        short: d.short_ios,
        dropped: d.drop_ios,
        runtime_ns: millis(d.runtime),
        stages: stages.into_iter().flatten().collect(),
        bandwidth_samples: samples(
            d.bw_samples,
            [d.bw_min, d.bw_max, d.bw_mean, d.bw_dev],
            1024.0,
        ),
        iops_samples: samples(
            d.iops_samples,
            [d.iops_min, d.iops_max, d.iops_mean, d.iops_stddev],
            1.0,
        ),
        ..KindResult::new(kind)
    }
}

fn samples(count: Option<u64>, figures: [Option<f64>; 4], unit: f64) -> Option<SampleStatistics> {
    let [min, max, mean, deviation] = figures;
    Some(SampleStatistics {
        count: count.filter(|count| *count > 0)?,
        min: min? * unit,
        max: max? * unit,
        mean: mean? * unit,
        deviation: deviation? * unit,
    })
}

/// The bins are the middles of the buckets of a histogram with the usual precision.
fn stage(stage: Stage, latency: Option<&FioLatency>) -> Option<StageHistogram> {
    let latency = latency.filter(|latency| !latency.bins.is_empty())?;
    let mut histogram = Histogram::new();
    for (middle, count) in &latency.bins {
        histogram.record_n(middle.parse().ok()?, *count);
    }
    let count = latency.count.unwrap_or(histogram.count());
    let histogram = histogram.with_known(latency.min, latency.max, total(latency.mean, count));
    Some(StageHistogram { stage, histogram })
}

/// The sum of so many values of this mean.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as exact as the mean; `as` keeps to the range of the type"
)]
fn total(mean: f64, count: u64) -> u128 {
    (mean * count as f64).round() as u128
}

/// Rate, bandwidth, and latencies of the stage that has percentiles.
fn metrics(kind: &KindName, d: &FioDirection) -> Vec<Metric> {
    let name = |what: &str| format!("{kind} {what}");
    let seconds = millis(d.runtime).as_secs_f64();
    let mut all = Vec::new();
    if seconds > 0.0 {
        let rate = count(d.total_ios) / seconds;
        all.push(Metric::high(name("rate"), Metric::OPS_PER_S, rate));
    }
    if seconds > 0.0 && d.io_bytes > 0 {
        let rate = count(d.io_bytes) / seconds;
        all.push(Metric::high(name("bandwidth"), Metric::BYTES_PER_S, rate));
    }
    let stages = [d.clat_ns.as_ref(), d.lat_ns.as_ref()]
        .into_iter()
        .flatten();
    let stages: Vec<&FioLatency> = stages.filter(|l| l.count != Some(0)).collect();
    let with_points = stages.iter().find(|l| !l.percentile.is_empty());
    let Some(latency) = with_points.or(stages.last()) else {
        return all;
    };
    all.extend(points(latency).into_iter().map(|(percent, ns)| {
        Metric::low(
            name(&format!("p{percent}")),
            Metric::SECONDS,
            count(ns) / 1e9,
        )
    }));
    all.push(Metric::low(
        name("mean"),
        Metric::SECONDS,
        latency.mean / 1e9,
    ));
    if latency.bins.is_empty() {
        let (min, max) = (count(latency.min) / 1e9, count(latency.max) / 1e9);
        all.push(Metric::low(name("min"), Metric::SECONDS, min));
        all.push(Metric::low(name("max"), Metric::SECONDS, max));
    }
    all
}

/// The percentiles that are headline figures, rising.
fn points(latency: &FioLatency) -> Vec<(f64, u64)> {
    let points: &BTreeMap<String, u64> = &latency.percentile;
    let read = points
        .iter()
        .filter_map(|(percent, ns)| Some((percent.parse().ok()?, *ns)));
    let is_headline = |percent: f64| {
        let of_histograms = OF_HISTOGRAMS.iter().any(|p| (p - percent).abs() < 1e-9);
        of_histograms || (latency.bins.is_empty() && percent >= LEAST_PERCENT)
    };
    let mut all: Vec<(f64, u64)> = read.filter(|(percent, _)| is_headline(*percent)).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

fn millis(ms: u64) -> Nanos {
    Nanos(ms.saturating_mul(MILLION))
}

#[expect(clippy::cast_precision_loss, reason = "as exact as a figure is")]
fn count(n: u64) -> f64 {
    n as f64
}
