//! The JSON of `daos health net-test -j` (spec: RPC self-test, 5).
//!
//! In: a result. Out: one document. Percentile p of n sorted latencies is the one at n·p/100, counted from
//! 0; the deviation is that of a sample. Only RPCs that succeeded count: where none did, figures are `null`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use weir_schema::{
    Failure, RpcEndpoint, RpcMaster, RpcWorkload, RunResult, UNKNOWN_RPC_ERROR, expand_endpoints,
    expand_masters, rpc_error_name,
};
use weir_stats::Histogram;

use super::exit::{MISCELLANEOUS, UNREACHABLE, most_frequent};
use super::output::{first_work, good_masters, why_nothing, works};

const PERCENTILES: [u64; 5] = [50, 75, 90, 95, 99];

/// The document, indented.
pub(super) fn json(result: &RunResult) -> String {
    let results = good_masters(result).map(|(work, master)| of_master(work, master));
    let results: Vec<Value> = results.collect();
    let configuration = first_work(&result.plan).map_or(Value::Null, |w| configuration(w, result));
    let failure = failure(result);
    let document = json!({
        "response": {"configuration": configuration, "results": results},
        "error": failure.as_ref().map(|(why, _)| why),
        "status": failure.as_ref().map_or(0, |(_, status)| *status),
    });
    weir_schema::json::indented(&document.to_string()) + "\n"
}

/// Why nothing at all succeeded, with the number of it.
fn failure(result: &RunResult) -> Option<(String, i32)> {
    let outcomes = || result.jobs().filter_map(|job| Some((job, job.rpc()?)));
    let masters = || outcomes().flat_map(|(_, done)| &done.masters);
    if masters().any(|master| master.succeeded > 0) {
        return None;
    }
    if let Some(code) = most_frequent(result) {
        let name = rpc_error_name(code).unwrap_or(UNKNOWN_RPC_ERROR);
        return Some((format!("all RPCs failed, most with -{name} ({code})"), code));
    }
    let of_masters = masters().find_map(|master| master.failure.as_ref());
    let of_jobs = result.jobs().find_map(|job| job.failure.as_ref());
    let why = of_masters.or(of_jobs);
    let lacks = |why: &&Failure| ["missing", "authentication"].contains(&why.cause.as_str());
    let code = why.filter(lacks).map_or(MISCELLANEOUS, |_| UNREACHABLE);
    let stopped = || result.jobs().map(why_nothing).next();
    let why = why.map(|why| why.message.clone()).or_else(stopped);
    let why = why.unwrap_or_else(|| "there was nothing to measure".to_owned());
    Some((format!("no RPC was sent: {why}"), code))
}

fn configuration(work: &RpcWorkload, result: &RunResult) -> Value {
    let asked = endpoints(work, result);
    let ranks: BTreeSet<u32> = asked.iter().map(|one| one.rank).collect();
    let tags: BTreeSet<u32> = asked.iter().map(|one| one.tag).collect();
    let sizes = |of: fn(&RpcWorkload) -> u32| works(&result.plan).map(of).collect::<Vec<u32>>();
    let mut all = json!({
        "group_name": work.group,
        "endpoint_ranks": ranks,
        "endpoint_tags": tags,
        "repetitions": work.repetitions,
        "send_sizes": sizes(|work| work.request.bytes),
        "reply_sizes": sizes(|work| work.reply.bytes),
        "buffer_alignment": alignment(work),
        "max_inflight_rpcs": work.in_flight(),
    });
    let masters = expand_masters(&work.masters, &[]).unwrap_or_default();
    if let Some(all) = all.as_object_mut().filter(|_| !masters.is_empty()) {
        let one = |one: &RpcEndpoint| json!({"Rank": one.rank, "Tag": one.tag});
        all.insert(
            "master_endpoints".to_owned(),
            masters.iter().map(one).collect(),
        );
    }
    all
}

/// Those of the plan; where it names all of a group, or none, those that were asked.
fn endpoints(work: &RpcWorkload, result: &RunResult) -> Vec<RpcEndpoint> {
    let planned = expand_endpoints(&work.endpoints, &[]).unwrap_or_default();
    if !planned.is_empty() {
        return planned;
    }
    let masters = result
        .jobs()
        .filter_map(|job| job.rpc())
        .flat_map(|done| &done.masters);
    let asked = masters.flat_map(|master| &master.endpoints);
    asked.map(|one| one.endpoint).collect()
}

fn alignment(work: &RpcWorkload) -> i32 {
    work.buffer_low_byte.map_or(-1, i32::from)
}

fn of_master(work: &RpcWorkload, master: &RpcMaster) -> Value {
    let targets: Vec<String> = master
        .endpoints
        .iter()
        .map(|one| one.endpoint.to_string())
        .collect();
    let of_target = master.endpoints.iter().map(|one| {
        let figures = latency(&one.latency, one.sent(), one.failures());
        (one.endpoint.to_string(), figures)
    });
    let of_target: Map<String, Value> = of_target.collect();
    let bytes = f64::from(work.request.bytes) + f64::from(work.reply.bytes);
    json!({
        "master_endpoint": master.endpoint.to_string(),
        "target_endpoints": targets,
        "target_latencies": of_target,
        "rpc_count_per_second": master.rate(),
        "rpc_bytes_per_second": master.rate() * bytes,
        "repetitions": master.requested,
        "send_size": work.request.bytes,
        "reply_size": work.reply.bytes,
        "buffer_alignment": alignment(work),
        "duration": master.duration_ns.0,
        "master_latency": latency(&master.latency, master.requested, master.failed),
    })
}

fn latency(latency: &Histogram, total: u64, failed: u64) -> Value {
    let n = latency.count();
    let percentile = |percent: u64| {
        let at = u128::from(n) * u128::from(percent) / 100;
        let at = u64::try_from(at).unwrap_or(n);
        let (bound, count) = bound(latency, at)?;
        Some(json!({
            "label": percent.to_string(),
            "cumulative_count": count,
            "upper_bound": bound,
        }))
    };
    let percentiles: Vec<Value> = PERCENTILES.into_iter().filter_map(percentile).collect();
    let spread = latency.spread().map_or(0.0, |spread| spread.deviation);
    json!({
        "avg": latency.mean().map(rounded),
        "std_dev": latency.mean().map(|_| rounded(spread)),
        "percentiles": percentiles,
        "total_rpcs": total,
        "min": latency.min(),
        "max": latency.max(),
        "fail_count": failed,
    })
}

/// The latency at a place of the sorted ones, and how many are no longer.
fn bound(latency: &Histogram, at: u64) -> Option<(u64, u64)> {
    let (min, max) = (latency.min()?, latency.max()?);
    let mut count = 0;
    let bucket = latency.buckets().find(|bucket| {
        count += bucket.count;
        count > at
    })?;
    Some((bucket.middle.clamp(min, max), count))
}

/// Four decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
