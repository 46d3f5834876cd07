//! The peer's JSON: keys sorted, weir's own below the key `weir`, or the peer's types alone.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use weir_schema::{ExchangeResult, Prediction, SizeFigures, SizeResult, Transfer};

use super::number::{indented, one_line};
use super::text::VERSION;
use super::transfers::TransferFigures;
use super::{Comparison, NAME, SCHEMA, Value, View};

/// The whole object: one line in the peer's version, else indented.
pub(super) fn page(view: &View<'_>) -> String {
    let object = sorted(object(view));
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and every key is text.
    let _ = if view.options.hpcc_json {
        object.serialize(&mut serde_json::Serializer::with_formatter(
            &mut bytes,
            one_line(),
        ))
    } else {
        object.serialize(&mut serde_json::Serializer::with_formatter(
            &mut bytes,
            indented(),
        ))
    };
    bytes.push(b'\n');
    String::from_utf8_lossy(&bytes).into_owned()
}

fn object(view: &View<'_>) -> Json {
    let compat = view.options.hpcc_json;
    let result = view.result;
    let ended = (result.started_unix_ns + result.duration_ns.0) / 1_000_000_000;
    let library_path = result.program.as_ref().and_then(|p| p.library_path.clone());
    let (version, subversion) = view.mpi();
    let mut results: Map<String, Json> = view.parts.iter().filter_map(mean).collect();
    if let Some(b_eff) = view.effective {
        let b_eff = json!({"unit": "B/s", "value": b_eff});
        results.insert("b_eff".to_owned(), b_eff);
    }
    let mut out = json!({
        "config_time": view.built(),
        "execution_time": View::date(ended),
        "git_commit": view.commit(),
        "version": VERSION,
        "name": NAME,
        "device": if view.is_test() { "TEST RUN: Not selected!" } else { view.device() },
        "environment": {"LD_LIBRARY_PATH": library_path.unwrap_or_default()},
        "mpi": {"version": version, "subversion": subversion},
        "errors": view.done.map_or_else(Map::new, errors),
        "results": results,
        "settings": settings(view),
        "timings": timings(view, None, &view.figures),
        "validated": view.is_valid(),
    });
    if let (false, Json::Object(map)) = (compat, &mut out) {
        map.insert("weir".to_owned(), own(view));
    }
    out
}

/// Exponent and wrong bytes of all ranks, where there are any.
fn errors(done: &ExchangeResult) -> Map<String, Json> {
    let wrong = |s: &SizeResult| s.ranks.iter().map(|r| r.wrong_bytes).sum::<u64>();
    let sizes = done.sizes.iter().filter(|s| wrong(s) > 0);
    sizes
        .map(|s| (s.exponent.to_string(), json!(wrong(s))))
        .collect()
}

fn settings(view: &View<'_>) -> Map<String, Json> {
    let compat = view.options.hpcc_json;
    let value = |value: Value| match value {
        Value::Text(text) if compat => leading_integer(&text),
        Value::Text(text) => json!(text),
        Value::Number(number) => json!(number),
        Value::Switch(on) => json!(on),
    };
    let all = view.settings().into_iter();
    all.map(|(name, v)| (name.to_owned(), value(v))).collect()
}

/// Converts text as the peer does: to the number at its beginning, else to whether it means yes.
fn leading_integer(text: &str) -> Json {
    let text = text.trim_start();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = text[..digits].parse::<i64>();
    number.map_or_else(|_| json!(text == "Yes"), |number| json!(number))
}

/// Timings of exchanges, or of the transfers in place of them.
fn timings(
    view: &View<'_>,
    transfer: Option<Transfer>,
    figures: &[SizeFigures],
) -> Map<String, Json> {
    let compat = view.options.hpcc_json;
    let mut out = Map::new();
    let sizes = view.done.iter().flat_map(|d| &d.sizes);
    for size in sizes.filter(|size| size.transfer == transfer) {
        let figures = figures.iter().find(|f| f.exponent == size.exponent);
        let mut ranks: Vec<Json> = size.ranks.iter().map(|r| rank(size, r, compat)).collect();
        if compat && !ranks.is_empty() {
            // The peer's list begins with rank 1 and ends with rank 0.
            ranks.rotate_left(1);
        }
        let entry = json!({
            "maxCalcBW": figures.map(|f| f.bytes_per_s),
            "maxMinCalculationTime": figures.map(|f| f.time_s),
            "timings": ranks,
        });
        out.insert(size.exponent.to_string(), entry);
    }
    out
}

/// The mean of a kind of transfers, by its key.
fn mean(part: &TransferFigures) -> Option<(String, Json)> {
    let (value, unit) = part.mean()?;
    let value = json!({"unit": unit, "value": value});
    Some((part.key().to_owned(), value))
}

/// A kind of transfers in full.
fn part(view: &View<'_>, part: &TransferFigures) -> (String, Json) {
    let sizes: Map<String, Json> = part.figures.iter().map(statistics).collect();
    let value = json!({
        "timings": timings(view, Some(part.transfer), &part.figures),
        "sizes": sizes,
    });
    (part.key().to_owned(), value)
}

fn rank(size: &SizeResult, rank: &weir_schema::RankTimes, compat: bool) -> Json {
    let times = rank.times_ns.iter().map(|t| t.as_secs_f64());
    let times: Vec<Json> = times.map(|s| json!({"unit": "s", "value": s})).collect();
    let mut out = json!({
        "looplength": size.loop_length,
        "messageSize": size.exponent,
        "timings": times,
    });
    if let (false, Json::Object(map)) = (compat, &mut out) {
        map.insert("rank".to_owned(), json!(rank.rank));
    }
    out
}

/// Members that weir adds to the peer's JSON.
fn own(view: &View<'_>) -> Json {
    let (result, work) = (view.result, view.work);
    let done = view.done;
    let planned = work.sizes.iter().map(|s| {
        let bytes = s.bytes().0;
        json!({"exponent": s.exponent, "bytes": bytes, "looplength": s.loop_length})
    });
    let sizes: Map<String, Json> = view.figures.iter().map(statistics).collect();
    let seconds = |t: Option<weir_units::Nanos>| t.map(weir_units::Nanos::as_secs_f64);
    json!({
        "schema": SCHEMA,
        "version": result.weir_version,
        "complete": result.complete,
        "failure": result.jobs().find_map(|j| j.failure.as_ref()).map(|f| &f.message),
        "cpu": result.host.cpu_model,
        "cpus": result.host.cpus,
        "kernel": result.host.kernel,
        "hosts": hosts(done),
        "ranks": done.map(|d| &d.ranks),
        "mpi": done.and_then(|d| d.mpi.as_ref()),
        "transport": view.job.engine.name,
        "transport_settings": view.job.engine.settings,
        "memory_interleaving": view.word("i").is_some(),
        "pairing": done.map(|d| d.pairing),
        "method": work.method,
        "validation": work.validation,
        "seed": work.seed,
        "warmup": work.warmup,
        "inject": work.faults,
        "plan": planned.collect::<Vec<_>>(),
        "sizes": sizes,
        "barrier_s": seconds(done.and_then(|d| d.barrier_ns)),
        "transfers": view.parts.iter().map(|p| part(view, p)).collect::<Map<_, _>>(),
        "lost": view.lost(),
        "loopback": done.is_some_and(|d| d.loopback),
        "noisy": view.figures.iter().any(SizeFigures::is_noisy),
        "warnings": result.warnings,
        "line_rate_bits_per_s": view.options.line_rate_bits_per_s,
        "baseline": view.comparison.as_ref().map(|c| baseline(view, c)),
        "model": view.prediction.as_ref().map(|p| model(view, p)),
    })
}

/// The nodes of the ranks, each once.
fn hosts(done: Option<&ExchangeResult>) -> Vec<&str> {
    let ranks = done.map_or(&[][..], |d| &d.ranks);
    let mut out: Vec<&str> = ranks.iter().filter_map(|r| r.hostname.as_deref()).collect();
    out.sort_unstable();
    out.dedup();
    out
}

fn statistics(row: &SizeFigures) -> (String, Json) {
    let value = json!({
        "minMaxTime": row.min_max_time_s,
        "maxMaxTime": row.max_max_time_s,
        "meanBW": row.mean_bytes_per_s,
        "p50": row.p50_s,
        "p95": row.p95_s,
        "stddev": row.deviation_s,
        "cov": row.cov,
        "noisy": row.is_noisy(),
        "usecPerMessage": row.usec_per_message,
    });
    (row.exponent.to_string(), value)
}

fn baseline(view: &View<'_>, beside: &Comparison) -> Json {
    let of = view.options.baseline.as_ref();
    let sizes: Map<String, Json> = view
        .figures
        .iter()
        .map(|row| {
            let beside = beside.of(row);
            let entry = beside.map(|(there, ratio)| json!({"maxCalcBW": there, "ratio": ratio}));
            (row.exponent.to_string(), json!(entry))
        })
        .collect();
    json!({
        "file": of.map(|b| &b.file),
        "b_eff": beside.effective.map(|(there, _)| there),
        "ratio": beside.effective.map(|(_, ratio)| ratio),
        "common_sizes": beside.common,
        "sizes": sizes,
        "missing_here": beside.missing,
        "differences": of.map(|b| b.differences(&view.result.plan)),
    })
}

fn model(view: &View<'_>, prediction: &Prediction) -> Json {
    let b_eff = prediction.effective_bytes_per_s;
    let sizes = prediction.sizes.iter();
    let sizes: Map<String, Json> = sizes.map(|(e, b)| (e.to_string(), json!(b))).collect();
    let fit = prediction.fit.map(|fit| {
        json!({
            "latency_ns": fit.latency_s * 1e9,
            "bandwidth_gb_per_s": fit.bytes_per_s.map(|b| b / 1e9),
            "half_bandwidth_bytes": fit.half_bandwidth_bytes(),
            "r_squared": fit.r_squared,
        })
    });
    let simulated = view
        .simulated
        .as_ref()
        .map(|s| json!({"ranks": s.ranks, "b_eff": s.effective_bytes_per_s}));
    json!({
        "spec": view.word("model"),
        "ranks": prediction.ranks,
        "b_eff": b_eff,
        "ratio": view.effective.map(|e| e / b_eff),
        "sizes": sizes,
        "fit": fit,
        "simulated": simulated,
    })
}

/// Keys in order, at every depth.
fn sorted(value: Json) -> Json {
    match value {
        Json::Object(map) => {
            let mut all: Vec<(String, Json)> = map.into_iter().collect();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            Json::Object(all.into_iter().map(|(k, v)| (k, sorted(v))).collect())
        }
        Json::Array(all) => Json::Array(all.into_iter().map(sorted).collect()),
        other => other,
    }
}
