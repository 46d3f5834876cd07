//! The headline figures of each workload, from its outcome.
//!
//! In: workers, or what ranks measured. Out: [`Metric`]s, in the order of a report. Pure: results
//! of several ranks get theirs anew from what was merged. What was not measured has no metric.

use weir_stats::{Estimate, Histogram};
use weir_units::BytesPerSec;

use crate::exchange::{ExchangeResult, SizeResult, Transfer};
use crate::exchange_figures::{
    effective_bytes_per_s, exchange_figures, repetitions_s, size_figures,
};
use crate::kind::KindName;
use crate::latency_bandwidth::LatencyBandwidthResult;
use crate::latency_bandwidth_figures::{PairRange, latency_bandwidth_figures};
use crate::outcome::{Interval, LoopOutcome, Metric};
use crate::packet_path_result::{PacketPathOutcome, PathSide, PathThread};
use crate::rates::total_rate;
use crate::result::{Confidence, CpuUse, KindResult, Stage, WorkerResult, rated_kinds};
use crate::rpc_result::RpcOutcome;

/// Percentiles among the metrics of a loop.
const PERCENTILES: [f64; 2] = [50.0, 99.0];

/// The metrics of a kind that each report has rows for; any other gets a line of its own.
const IN_ROWS: [&str; 2] = ["rate", "bandwidth"];
/// Further ones where it has a histogram of latencies.
const IN_LATENCY_ROWS: [&str; 3] = ["p50", "p99", "mean"];

/// The names of all of them.
pub(crate) fn names_in_rows(workers: &[WorkerResult]) -> Vec<String> {
    let mut names = Vec::new();
    for kind in rated_kinds(workers.iter()) {
        let mut parts = workers.iter().filter_map(|w| w.kind(&kind));
        let is_timed = parts.any(|part| {
            let mut stages = SEEN_BY_USERS.iter().filter_map(|stage| part.stage(*stage));
            stages.any(|histogram| !histogram.is_empty())
        });
        let further = IN_LATENCY_ROWS.iter().filter(|_| is_timed);
        let all = IN_ROWS.iter().chain(further);
        names.extend(all.map(|what| format!("{kind} {what}")));
    }
    names
}

/// Those of the loop, and how many failed.
pub(crate) fn rpc_metrics(done: &RpcOutcome) -> Vec<Metric> {
    let mut all = loop_metrics(&done.workers);
    #[expect(clippy::cast_precision_loss, reason = "a count far below 2^53")]
    let failures = done.failures() as f64;
    if !done.masters.is_empty() {
        all.push(Metric::low("rpc failures", "", failures));
    }
    all
}

/// Those of the loop over messages, and packets per second, in all and per CPU that was busy.
pub(crate) fn packet_path_metrics(done: &PacketPathOutcome) -> Vec<Metric> {
    let packets = done.packets_per_s();
    let packets = packets.map(|rate| Metric::high("packet rate", "packets/s", rate));
    // What is around a stage alone uses the CPU too.
    let per_core = done.packets_per_s().filter(|_| done.only_stage.is_none());
    let per_core = per_core.zip(cpus_used(&done.workers));
    let per_core =
        per_core.map(|(rate, cpus)| Metric::high("packet rate per core", "packets/s", rate / cpus));
    let mut all: Vec<Metric> = packets.into_iter().chain(per_core).collect();
    all.extend(loop_metrics(&done.workers));
    if done.only_stage.is_none() {
        all.extend(path_losses(done));
    }
    all
}

/// The share of messages without an answer, which every path has; the share begun of those that a rate asked for;
/// other losses where there were any.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn path_losses(done: &PacketPathOutcome) -> impl Iterator<Item = Metric> {
    let sum = |of: fn(&PathThread) -> u64| {
        (done.sum(PathSide::Client, of) + done.sum(PathSide::Server, of)) as f64
    };
    let (begun, intended) = (sum(|one| one.begun), sum(|one| one.intended));
    let (late, dropped) = (sum(|one| one.late), sum(PathThread::dropped));
    let all = [
        (begun > 0.0).then(|| Metric::low("loss", "", sum(|one| one.lost) / begun)),
        (intended > 0.0).then(|| Metric::high("begun of the rate", "", begun / intended)),
        (late > 0.0).then(|| Metric::low("messages late", "", late)),
        (dropped > 0.0).then(|| Metric::low("packets dropped", "", dropped)),
    ];
    all.into_iter().flatten()
}

/// The CPU time of all workers over the time of the one that took longest.
fn cpus_used(done: &LoopOutcome) -> Option<f64> {
    let spans = done.workers.iter().filter_map(|worker| worker.span);
    let span = spans
        .map(|span| span.length().as_secs_f64())
        .reduce(f64::max)?;
    let used = done.workers.iter().map(|worker| {
        let CpuUse {
            user_ns, system_ns, ..
        } = worker.cpu;
        user_ns.as_secs_f64() + system_ns.as_secs_f64()
    });
    let used: f64 = used.sum();
    (span > 0.0 && used > 0.0).then(|| used / span)
}

/// Rate, bandwidth and latencies of each kind, over all workers.
pub(crate) fn loop_metrics(done: &LoopOutcome) -> Vec<Metric> {
    let known = |kind: &KindName| done.confidence.iter().find(|c| c.kind == *kind);
    let of_kind = |kind: &KindName| kind_metrics(kind, &done.workers, known(kind));
    let kinds = rated_kinds(done.workers.iter());
    kinds.iter().flat_map(of_kind).collect()
}

fn kind_metrics(
    kind: &KindName,
    workers: &[WorkerResult],
    sure: Option<&Confidence>,
) -> Vec<Metric> {
    let parts: Vec<&KindResult> = workers.iter().filter_map(|w| w.kind(kind)).collect();
    let name = |what: &str| format!("{kind} {what}");
    let spans = workers.iter().filter_map(|w| w.span);
    let operations: u64 = parts.iter().map(|k| k.operations).sum();
    let bytes: u64 = parts.iter().map(|k| k.bytes.0).sum();
    if operations == 0 || spans.clone().next().is_none() {
        return Vec::new();
    }
    let rate = total_rate(operations, spans.clone()).0;
    let mut all = vec![Metric {
        interval: sure.and_then(|c| interval(c.ops_per_s, 1.0)),
        ..Metric::high(name("rate"), Metric::OPS_PER_S, rate)
    }];
    if bytes > 0 {
        let BytesPerSec(rate) = BytesPerSec(total_rate(bytes, spans).0);
        all.push(Metric {
            interval: sure.and_then(|c| interval(c.bytes_per_s?, 1.0)),
            ..Metric::high(name("bandwidth"), Metric::BYTES_PER_S, rate)
        });
    }
    let Some((stage, latency)) = latency(&parts) else {
        return all;
    };
    for percent in PERCENTILES {
        let found = sure.iter().flat_map(|c| &c.percentiles);
        let estimate = found
            .filter(|p| p.stage == stage && (p.percent.0 - percent).abs() < 1e-9)
            .find_map(|p| interval(p.value_ns, 1e-9));
        all.extend(latency.percentile(percent).map(|ns| Metric {
            interval: estimate,
            ..Metric::low(name(&format!("p{percent}")), Metric::SECONDS, seconds(ns))
        }));
    }
    let mean = sure.filter(|c| c.latency_stage == Some(stage));
    all.extend(latency.mean().map(|ns| Metric {
        interval: mean.and_then(|c| interval(c.mean_latency_ns?, 1e-9)),
        ..Metric::low(name("mean"), Metric::SECONDS, ns / 1e9)
    }));
    all
}

#[expect(clippy::cast_precision_loss, reason = "a latency far below 2^53 ns")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn interval(estimate: Estimate, factor: f64) -> Option<Interval> {
    Some(Interval {
        low: estimate.low? * factor,
        high: estimate.high? * factor,
    })
}

/// Stages of the latency that a user would see: from the intended start where there was one.
const SEEN_BY_USERS: [Stage; 3] = [Stage::Rlat, Stage::Lat, Stage::Clat];

/// The first of them that was recorded, of all parts together.
fn latency(parts: &[&KindResult]) -> Option<(Stage, Histogram)> {
    SEEN_BY_USERS.into_iter().find_map(|stage| {
        let mut found = parts.iter().filter_map(|k| k.stage(stage));
        let mut all = found.next()?.clone();
        // Histograms of different precision have no exact sum.
        let merged = found.try_for_each(|h| all.merge(h));
        (merged.is_ok() && !all.is_empty()).then_some((stage, all))
    })
}

/// The bandwidth at each size; the effective bandwidth where all sizes were measured.
pub fn exchange_metrics(done: &ExchangeResult, replications: u32, is_whole: bool) -> Vec<Metric> {
    let figures = exchange_figures(done, replications);
    let effective = effective_bytes_per_s(&figures).filter(|_| is_whole);
    let effective = effective.map(|value| Metric::high("b_eff", Metric::BYTES_PER_S, value));
    let sizes = done.sizes.iter();
    let sizes = sizes.filter_map(|size| size_metric(size, replications));
    let all = effective.into_iter().chain(sizes);
    // A run that took no time that the clock can tell has no rate.
    all.filter(|metric| metric.value.is_finite()).collect()
}

fn size_metric(size: &SizeResult, replications: u32) -> Option<Metric> {
    let figures = size_figures(size, replications)?;
    let bytes = figures.message_bytes();
    let name = match size.transfer {
        None => format!("bandwidth at {bytes} B"),
        Some(Transfer::HostToDevice) => format!("host to device bandwidth at {bytes} B"),
        Some(Transfer::DeviceToHost) => format!("device to host bandwidth at {bytes} B"),
        Some(Transfer::KernelLaunch) => {
            let seconds = figures.usec_per_message / 1e6;
            return Some(Metric::low(
                "kernel launch latency",
                Metric::SECONDS,
                seconds,
            ));
        }
    };
    let repetitions = repetitions_s(size).into_iter();
    let samples = repetitions.map(|s| figures.bytes / s);
    Some(Metric {
        samples: samples.filter(|rate| rate.is_finite()).collect(),
        ..Metric::high(name, Metric::BYTES_PER_S, figures.bytes_per_s)
    })
}

/// The ten figures, where the run is whole.
pub fn latency_bandwidth_metrics(done: &LatencyBandwidthResult) -> Vec<Metric> {
    let Some(figures) = latency_bandwidth_figures(done) else {
        return Vec::new();
    };
    let low = |name: &str, value| Metric::low(name, Metric::SECONDS, value);
    let high = |name: &str, value| Metric::high(name, Metric::BYTES_PER_S, value);
    let spread = |PairRange { min, mean, max }| [("min", min), ("mean", mean), ("max", max)];
    let latencies = spread(figures.pair_latency_s);
    let bandwidths = spread(figures.pair_bytes_per_s);
    let mut all = Vec::new();
    all.extend(latencies.map(|(which, s)| low(&format!("ping-pong latency {which}"), s)));
    all.extend(bandwidths.map(|(which, rate)| high(&format!("ping-pong bandwidth {which}"), rate)));
    all.extend([
        low("natural ring latency", figures.natural_latency_s),
        low("random ring latency", figures.random_latency_s),
        high("natural ring bandwidth", figures.natural_bytes_per_s),
        high("random ring bandwidth", figures.random_bytes_per_s),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use weir_units::Nanos;

    use super::*;
    use crate::exchange::{Method, RankTimes};
    use crate::kind::Kind;
    use crate::sample::{job_result, kind, worker};

    fn named(metrics: &[Metric], name: &str) -> Metric {
        let found = metrics.iter().find(|m| m.name == name);
        found.unwrap_or_else(|| panic!("no {name}")).clone()
    }

    #[test]
    fn a_loop_has_a_rate_and_the_latency_that_a_user_sees() {
        let second = Nanos::from_secs(1);
        let histogram = |ns| {
            let mut histogram = Histogram::new();
            histogram.record_n(ns, 100);
            histogram
        };
        let stages = [
            (Stage::Lat, histogram(1000)),
            (Stage::Rlat, histogram(2000)),
        ];
        let reads = kind(Kind::Read, 100, second, &stages);
        let syncs = kind(Kind::Sync, 5, second, &[]);
        let done = LoopOutcome {
            workers: vec![worker(0, second, vec![reads, syncs])],
            ..LoopOutcome::default()
        };
        let metrics = loop_metrics(&done);
        assert_eq!(metrics.len(), 5);
        assert!((named(&metrics, "read rate").value - 100.0).abs() < 1e-9);
        let bandwidth = named(&metrics, "read bandwidth");
        assert!((bandwidth.value - 409_600.0).abs() < 1e-6);
        let p99 = named(&metrics, "read p99");
        assert!((p99.value / 2e-6 - 1.0).abs() < 0.01, "{p99:?}");
    }

    #[test]
    fn a_metric_that_no_row_shows_is_one_of_the_jobs_own() {
        let second = Nanos::from_secs(1);
        let reads = kind(Kind::Read, 100, second, &[]);
        let mut job = job_result("a", vec![worker(0, second, vec![reads])]);
        job.conclude();
        assert_eq!(job.own_metrics(), Vec::<&Metric>::new());
        job.metrics.push(Metric::high("read share", "", 0.5));
        assert_eq!(job.own_metrics(), [&job.metrics[2]]);
    }

    #[test]
    fn an_exchange_that_was_cut_short_has_no_effective_bandwidth() {
        let size = SizeResult {
            exponent: 3,
            loop_length: 10,
            warmup: 0,
            method: Method::Sendrecv,
            transfer: None,
            ranks: vec![RankTimes {
                times_ns: vec![Nanos(160), Nanos(80)],
                ..RankTimes::default()
            }],
        };
        let done = ExchangeResult {
            sizes: vec![size],
            ..ExchangeResult::default()
        };
        let whole = exchange_metrics(&done, 1, true);
        assert!((named(&whole, "b_eff").value - 1e9).abs() < 1.0);
        let at = named(&whole, "bandwidth at 8 B");
        assert_eq!(at.samples.len(), 2);
        let cut = exchange_metrics(&done, 1, false);
        assert_eq!(cut.len(), 1);
    }
}
