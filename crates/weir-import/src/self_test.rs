//! The text of `CaRT`'s `self_test`, and its JSON (`-j`, `net-test`).
//!
//! In: the text. Out: a job a message size and master. The rate of the text is in whole RPCs, its
//! latencies in whole microseconds; "MB" is 2^20 bytes, Mbits are 10^6.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_schema::{Failure, Metric};

use crate::Format;
use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun, MIB};
use crate::json;
use crate::lines::{Line, ended_lines, ends_early};

pub(crate) const FORMAT: Format = Format {
    name: "self-test",
    meaning: "self_test of CaRT, as text or JSON; daos health net-test -j",
    is_in: |text| text.contains("Results for message size (") || is_json(text),
    read,
};

fn is_json(text: &str) -> bool {
    json::has(text, &["\"response\"", "\"endpoint_ranks\"", "\"results\""])
}

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    if is_json(text) {
        return read_json(text);
    }
    let mut jobs: Vec<ForeignJob> = Vec::new();
    let mut size = "";
    let mut is_whole = false;
    for line in ended_lines(text)? {
        let text = line.text.trim();
        if let Some(rest) = text.strip_prefix("Results for message size ") {
            size = rest.trim_end_matches(':');
            is_whole = false;
        } else if let Some(master) = text.strip_prefix("Master Endpoint ") {
            // As weir says it of a master that measured nothing; the older program leaves it out.
            let (master, why) = match master.split_once(" FAILED: ") {
                Some((master, why)) => (master, Some(why)),
                None => (master, None),
            };
            jobs.push(ForeignJob {
                name: format!("{size} from {master}"),
                title: "self_test".to_owned(),
                failure: why.map(|why| Failure::new("io", why)),
                ..ForeignJob::default()
            });
            is_whole = why.is_some();
        } else if let Some(job) = jobs.last_mut() {
            let has_none = ["All RPCs for this", "No RPC for this"];
            is_whole |= has_none.iter().any(|none| text.starts_with(none)) || is_endpoint(line);
            figure(job, line)?;
        }
    }
    if !is_whole {
        return Err(ends_early(text, "a block of results is not whole"));
    }
    Ok(run(jobs))
}

fn run(jobs: Vec<ForeignJob>) -> ForeignRun {
    ForeignRun {
        program: Some("self_test".to_owned()),
        jobs,
        ..ForeignRun::default()
    }
}

/// `0:2 - 31`: the last lines of a block.
fn is_endpoint(line: Line<'_>) -> bool {
    let Some((endpoint, value)) = line.text.trim().split_once(" - ") else {
        return false;
    };
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let is_endpoint = endpoint.split_once(':');
    is_endpoint.is_some_and(|(rank, tag)| is_number(rank) && is_number(tag))
        && (value == "NA" || value.parse::<f64>().is_ok())
}

/// Labels of latencies in microseconds, and their names.
const LATENCIES: [(&str, &str); 7] = [
    ("Min", "min"),
    ("25th  %", "p25"),
    ("Median", "p50"),
    ("75th  %", "p75"),
    ("Max", "max"),
    ("Average", "mean"),
    ("Std Dev", "deviation"),
];

fn figure(job: &mut ForeignJob, line: Line<'_>) -> Result<(), ImportError> {
    let Some((label, value)) = line.text.trim().split_once(':') else {
        return Ok(());
    };
    let rate = |per_s: f64| Metric::high("bandwidth", Metric::BYTES_PER_S, per_s);
    let metric = match label.trim() {
        "RPC Bandwidth (MB/sec)" => rate(line.number(value)? * MIB),
        "RPC Bandwidth (Mbits/sec)" => rate(line.number(value)? * 125_000.0),
        "RPC Throughput (RPCs/sec)" => Metric::high("rate", Metric::OPS_PER_S, line.number(value)?),
        "RPC Failures" => {
            let failures = line.number(value)?;
            job.failure =
                (failures > 0.0).then(|| Failure::new("io", format!("{failures} RPCs failed")));
            return Ok(());
        }
        label => {
            let Some((_, name)) = LATENCIES.iter().find(|(known, _)| *known == label) else {
                return Ok(());
            };
            Metric::low(*name, Metric::SECONDS, line.number(value)? / 1e6)
        }
    };
    job.metrics.push(metric);
    Ok(())
}

#[derive(Debug, Deserialize)]
struct Document {
    response: Response,
}

#[derive(Debug, Deserialize)]
struct Response {
    results: Vec<OfSize>,
}

#[derive(Debug, Deserialize)]
struct OfSize {
    master_endpoint: String,
    rpc_count_per_second: f64,
    rpc_bytes_per_second: f64,
    send_size: u64,
    reply_size: u64,
    master_latency: Option<Latency>,
    #[serde(default)]
    target_latencies: BTreeMap<String, Latency>,
}

#[derive(Debug, Deserialize)]
struct Latency {
    // Nothing where no RPC succeeded, as weir writes it.
    avg: Option<f64>,
    std_dev: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    percentiles: Vec<Point>,
    #[serde(default)]
    fail_count: u64,
}

#[derive(Debug, Deserialize)]
struct Point {
    label: String,
    upper_bound: f64,
}

fn read_json(text: &str) -> Result<ForeignRun, ImportError> {
    let document: Document = json::document(text)?;
    Ok(run(document.response.results.iter().map(of_size).collect()))
}

fn of_size(result: &OfSize) -> ForeignJob {
    let mut metrics = vec![
        Metric::high("rate", Metric::OPS_PER_S, result.rpc_count_per_second),
        Metric::high(
            "bandwidth",
            Metric::BYTES_PER_S,
            result.rpc_bytes_per_second,
        ),
    ];
    let seconds = |name: String, ns: f64| Metric::low(name, Metric::SECONDS, ns / 1e9);
    let mut add = |before: &str, latency: &Latency| {
        let points = latency.percentiles.iter();
        let points = points.map(|point| (format!("p{}", point.label), Some(point.upper_bound)));
        let figures = [
            ("min".to_owned(), latency.min),
            ("max".to_owned(), latency.max),
            ("mean".to_owned(), latency.avg),
            ("deviation".to_owned(), latency.std_dev),
        ];
        let all = points.chain(figures);
        let all = all.filter_map(|(name, ns)| Some(seconds(format!("{before}{name}"), ns?)));
        metrics.extend(all);
    };
    if let Some(latency) = &result.master_latency {
        add("", latency);
    }
    for (endpoint, latency) in &result.target_latencies {
        add(&format!("{endpoint} "), latency);
    }
    let failed = result.master_latency.as_ref().map_or(0, |l| l.fail_count);
    ForeignJob {
        name: format!(
            "({} {}) from {}",
            result.send_size, result.reply_size, result.master_endpoint
        ),
        title: "self_test".to_owned(),
        metrics,
        failure: (failed > 0).then(|| Failure::new("io", format!("{failed} RPCs failed"))),
        ..ForeignJob::default()
    }
}
