//! Output of the door from a stored result alone: HPCC's lines, or JSON.
//!
//! In: a [`RunResult`]. Out: text; none where a run did not come to its end and has no figures.
//! MB and GB are 10^6 and 10^9 bytes.

use serde_json::{Map, Value, json};
use weir_schema::{
    JobResult, LatencyBandwidthFigures, LatencyBandwidthResult, PairFigure, PairMatrix, RunResult,
    Workload, latency_bandwidth_figures,
};

use crate::pair_table;

/// Format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetFormat {
    /// HPCC's lines.
    Text,
    /// The ten figures of the summary, and the result below `weir`.
    Json,
}

/// Text for standard output; `None` for results of other workloads.
pub fn stdout(result: &RunResult, format: NetFormat) -> Option<String> {
    let is_own = |work: &Workload| matches!(work, Workload::LatencyBandwidth(_));
    if !result.plan.jobs().any(|(_, job)| is_own(&job.workload)) {
        return None;
    }
    let figures = measured(result).and_then(latency_bandwidth_figures);
    match format {
        NetFormat::Text => figures.map(|figures| page(&figures) + &matrices(result)),
        NetFormat::Json => Some(object(result, figures.as_ref())),
    }
}

/// Latency and bandwidth of a result, where a job measured them.
pub(super) fn measured(result: &RunResult) -> Option<&LatencyBandwidthResult> {
    result.jobs().find_map(JobResult::latency_bandwidth)
}

/// Tables of all pairs, on request.
fn matrices(result: &RunResult) -> String {
    let asks = |work: &Workload| matches!(work, Workload::LatencyBandwidth(work) if work.matrix);
    let Some(done) = measured(result) else {
        return String::new();
    };
    if !result.plan.jobs().any(|(_, job)| asks(&job.workload)) {
        return String::new();
    }
    let table = |matrix: &PairMatrix| {
        let unit = match matrix.figure {
            PairFigure::Latency => ("usec", 1e-6),
            PairFigure::Bandwidth | PairFigure::Throughput => ("MB/s", 1e6),
        };
        format!("\n{}", pair_table::table(matrix, "", unit))
    };
    PairMatrix::of_messages(done).iter().map(table).collect()
}

fn page(figures: &LatencyBandwidthFigures) -> String {
    let mut out = String::from("Begin of LatencyBandwidth section.\n\n");
    out += &major(figures);
    out += &details(figures);
    out += "\n";
    for (key, value) in summary(figures) {
        push!(out, "{key}={}\n", general(value));
    }
    out + "\nEnd of LatencyBandwidth section.\n"
}

fn milliseconds(seconds: f64) -> f64 {
    seconds * 1e3
}

fn megabytes(bytes: f64) -> f64 {
    bytes / 1e6
}

fn major(figures: &LatencyBandwidthFigures) -> String {
    let (ms, mb) = (milliseconds, megabytes);
    let (slowest, least) = (figures.pair_latency_s.max, figures.pair_bytes_per_s.min);
    let (natural, random) = (figures.natural_bytes_per_s, figures.random_bytes_per_s);
    let mut out = String::from("Major Benchmark results:\n------------------------\n\n");
    for (label, value, unit) in [
        ("Max Ping Pong Latency:", ms(slowest), "msecs"),
        (
            "Randomly Ordered Ring Latency:",
            ms(figures.random_latency_s),
            "msecs",
        ),
        ("Min Ping Pong Bandwidth:", mb(least), "MB/s"),
        ("Naturally Ordered Ring Bandwidth:", mb(natural), "MB/s"),
        ("Randomly  Ordered Ring Bandwidth:", mb(random), "MB/s"),
    ] {
        push!(out, "{label:33} {value:13.6} {unit}\n");
    }
    out
}

fn details(figures: &LatencyBandwidthFigures) -> String {
    let (ms, mb) = (milliseconds, megabytes);
    let (pair, rate) = (figures.pair_latency_s, figures.pair_bytes_per_s);
    let mut out = String::from("\nDetailed benchmark results:\nPing Pong:\n");
    push!(
        out,
        "Latency   min / avg / max: {:10.6} / {:10.6} / {:10.6} msecs\n",
        ms(pair.min),
        ms(pair.mean),
        ms(pair.max)
    );
    push!(
        out,
        "Bandwidth min / avg / max: {:10.3} / {:10.3} / {:10.3} MByte/s\n",
        mb(rate.min),
        mb(rate.mean),
        mb(rate.max)
    );
    out += "Ring:\n";
    for (order, latency, bandwidth) in [
        (
            "naturally ordered",
            figures.natural_latency_s,
            figures.natural_bytes_per_s,
        ),
        (
            "randomly  ordered",
            figures.random_latency_s,
            figures.random_bytes_per_s,
        ),
    ] {
        push!(
            out,
            "On {order} ring: latency= {:13.6} msec, bandwidth= {:13.6} MB/s\n",
            ms(latency),
            mb(bandwidth)
        );
    }
    out
}

/// Names and values of the summary.
fn summary(figures: &LatencyBandwidthFigures) -> [(&'static str, f64); 10] {
    let (pair, rate) = (figures.pair_latency_s, figures.pair_bytes_per_s);
    let (us, gb) = (|s: f64| s * 1e6, |bytes: f64| bytes / 1e9);
    [
        ("MaxPingPongLatency_usec", us(pair.max)),
        (
            "RandomlyOrderedRingLatency_usec",
            us(figures.random_latency_s),
        ),
        ("MinPingPongBandwidth_GBytes", gb(rate.min)),
        (
            "NaturallyOrderedRingBandwidth_GBytes",
            gb(figures.natural_bytes_per_s),
        ),
        (
            "RandomlyOrderedRingBandwidth_GBytes",
            gb(figures.random_bytes_per_s),
        ),
        ("MinPingPongLatency_usec", us(pair.min)),
        ("AvgPingPongLatency_usec", us(pair.mean)),
        ("MaxPingPongBandwidth_GBytes", gb(rate.max)),
        ("AvgPingPongBandwidth_GBytes", gb(rate.mean)),
        (
            "NaturallyOrderedRingLatency_usec",
            us(figures.natural_latency_s),
        ),
    ]
}

fn object(result: &RunResult, figures: Option<&LatencyBandwidthFigures>) -> String {
    let mut object = Map::new();
    for (key, value) in figures.into_iter().flat_map(summary) {
        object.insert(key.to_owned(), json!(value));
    }
    // Numbers of a result are finite, and everything else has a JSON form.
    let weir = weir_schema::json::value(result).unwrap_or_default();
    object.insert("weir".to_owned(), weir);
    let text = serde_json::to_string_pretty(&Value::Object(object)).unwrap_or_default();
    text + "\n"
}

/// `%g` of C: six significant digits without zeros at the end, an exponent below 1e-4 and from
/// 1e6 on.
fn general(value: f64) -> String {
    let text = format!("{value:.5e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(5 - exponent).unwrap_or(0);
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.109_431_25, "0.109431"),
            (16.5, "16.5"),
            (123_456.7, "123457"),
            (999_999.9, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_1, "0.0001"),
            (0.000_012_345_6, "1.23456e-05"),
            (100.0, "100"),
        ] {
            assert_eq!(general(value), text);
        }
    }
}
