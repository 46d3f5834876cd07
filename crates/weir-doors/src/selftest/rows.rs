//! Results as rows: comma-separated values, and metrics for a server that collects them.
//!
//! In: a result. Out: text; a row for each master, then one for each of its endpoints.

use weir_schema::{RpcEndpointResult, RpcMaster, RpcWorkload, RunResult};

use super::output::{good_masters, percentile};
use super::sizes::{reply_word, request_word};

const COLUMNS: &str = "send_bytes,send_kind,reply_bytes,reply_kind,in_flight,master,endpoint,\
                       succeeded,failed,not_sent,duration_ns,rpcs_per_s,bytes_per_s,min_ns,p25_ns,\
                       median_ns,p75_ns,max_ns,mean_ns,deviation_ns";

fn bytes_per_s(work: &RpcWorkload, master: &RpcMaster) -> f64 {
    master.rate() * (f64::from(work.request.bytes) + f64::from(work.reply.bytes))
}

/// Comma-separated values; the endpoint of a master's own row is `all`.
pub(super) fn csv(result: &RunResult) -> String {
    let mut out = format!("{COLUMNS}\n");
    for (work, master) in good_masters(result) {
        let (request, reply) = (work.request, work.reply);
        let bytes = f64::from(request.bytes) + f64::from(reply.bytes);
        let lead = format!(
            "{},{},{},{},{},{}",
            request.bytes,
            request_word(request.kind),
            reply.bytes,
            reply_word(reply.kind),
            work.in_flight(),
            master.endpoint
        );
        push!(
            out,
            "{lead},all,{},{},{},{},{},{}",
            master.succeeded,
            master.failed,
            master.not_sent,
            master.duration_ns.0,
            master.rate(),
            bytes_per_s(work, master)
        );
        match &master.figures {
            Some(f) => push!(
                out,
                ",{},{},{},{},{},{},{}\n",
                f.min_ns.0,
                f.p25_ns.0,
                f.median_ns.0,
                f.p75_ns.0,
                f.max_ns.0,
                f.mean_ns,
                f.deviation_ns
            ),
            None => out.push_str(",,,,,,,\n"),
        }
        for one in &master.endpoints {
            endpoint_row(&mut out, &lead, one, bytes);
        }
    }
    out
}

/// Rates where it was called alone.
fn endpoint_row(out: &mut String, lead: &str, one: &RpcEndpointResult, bytes: f64) {
    let number = |ns: Option<u64>| ns.map_or_else(String::new, |ns| ns.to_string());
    let real = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    push!(
        out,
        "{lead},{},{},{},,{},{},{},{},,{},,{},{},\n",
        one.endpoint,
        one.succeeded,
        one.failures(),
        number(one.turn_ns.map(|ns| ns.0)),
        real(one.rate()),
        real(one.rate().map(|rate| rate * bytes)),
        number(one.latency.min()),
        number(one.median_ns.map(|ns| ns.0)),
        number(one.latency.max()),
        real(one.latency.mean())
    );
}

/// A metric: its name behind `weir_selftest_`, what it is, its value of a master.
type MetricOf = (
    &'static str,
    &'static str,
    fn(&RpcWorkload, &RpcMaster) -> f64,
);

const METRICS: [MetricOf; 5] = [
    (
        "rpcs_per_second",
        "RPCs per second that succeeded.",
        |_, master| master.rate(),
    ),
    (
        "bytes_per_second",
        "Bytes of requests and replies per second.",
        bytes_per_s,
    ),
    ("succeeded", "RPCs that succeeded.", |_, master| {
        count(master.succeeded)
    }),
    ("failed", "RPCs that failed.", |_, master| {
        count(master.failed)
    }),
    ("not_sent", "RPCs that were not sent.", |_, master| {
        count(master.not_sent)
    }),
];

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and times far below 2^53"
)]
fn count(number: u64) -> f64 {
    number as f64
}

/// Metrics as text.
pub(super) fn prometheus(result: &RunResult) -> String {
    let all: Vec<_> = good_masters(result).collect();
    let mut out = String::new();
    let head = |out: &mut String, name: &str, help: &str| {
        push!(
            out,
            "# HELP weir_selftest_{name} {help}\n# TYPE weir_selftest_{name} gauge\n"
        );
    };
    for (name, help, value) in METRICS {
        head(&mut out, name, help);
        for (work, master) in &all {
            let value = value(work, master);
            push!(
                out,
                "weir_selftest_{name}{{{}}} {value}\n",
                labels(work, master)
            );
        }
    }
    head(
        &mut out,
        "latency_seconds",
        "Latency of RPCs that succeeded.",
    );
    for (work, master) in &all {
        for (quantile, percent) in [
            ("0.5", 50.0),
            ("0.9", 90.0),
            ("0.99", 99.0),
            ("0.999", 99.9),
        ] {
            if let Some(time) = percentile(master, percent) {
                let labels = labels(work, master);
                let seconds = count(time.0) / 1e9;
                push!(
                    out,
                    "weir_selftest_latency_seconds{{{labels},quantile=\"{quantile}\"}} {seconds}\n"
                );
            }
        }
    }
    out
}

fn labels(work: &RpcWorkload, master: &RpcMaster) -> String {
    format!(
        "send=\"{}:{}\",reply=\"{}:{}\",in_flight=\"{}\",master=\"{}\"",
        work.request.bytes,
        request_word(work.request.kind),
        work.reply.bytes,
        reply_word(work.reply.kind),
        work.in_flight(),
        master.endpoint
    )
}
