//! JSON of the benchmarks of `HPCC_FPGA`, effective bandwidth among them, with the types of any
//! version.
//!
//! Of effective bandwidth the timings become samples: the loops of a size move as many bytes as its
//! best bandwidth and time say.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use weir_schema::{Failure, HostFacts, Metric, Word};

use crate::Format;
use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun};
use crate::json;

pub(crate) const FORMAT: Format = Format {
    name: "hpcc-fpga",
    meaning: "HPCC_FPGA, --dump-json",
    is_in: |text| {
        json::has(
            text,
            &["\"config_time\"", "\"execution_time\"", "\"results\""],
        )
    },
    read,
};

#[derive(Debug, Deserialize)]
struct Document {
    name: String,
    version: Option<String>,
    device: Option<String>,
    results: BTreeMap<String, Quantity>,
    #[serde(default)]
    settings: Map<String, Value>,
    #[serde(default)]
    timings: BTreeMap<String, Value>,
    validated: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Quantity {
    unit: String,
    value: Option<f64>,
}

/// The timings of a message size.
#[derive(Debug, Deserialize)]
struct OfSize {
    #[serde(rename = "maxCalcBW")]
    bytes_per_s: Option<f64>,
    #[serde(rename = "maxMinCalculationTime")]
    seconds: Option<f64>,
    timings: Vec<OfRank>,
}

#[derive(Debug, Deserialize)]
struct OfRank {
    timings: Vec<Quantity>,
}

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let document: Document = json::document(text)?;
    let results = document.results.iter();
    let mut metrics: Vec<Metric> = results.filter_map(|(name, q)| figure(name, q)).collect();
    let mut sizes: Vec<(u32, OfSize)> = Vec::new();
    for (exponent, value) in &document.timings {
        // Other benchmarks have lists of times here, whose figures are among the results.
        if let (Ok(exponent), Ok(size)) = (
            exponent.parse::<u32>(),
            serde_json::from_value::<OfSize>(value.clone()),
        ) {
            sizes.push((exponent, size));
        }
    }
    sizes.sort_by_key(|(exponent, _)| *exponent);
    metrics.extend(
        sizes
            .iter()
            .filter_map(|(exponent, size)| of_size(*exponent, size)),
    );
    let words = document.settings.iter().map(|(key, value)| Word {
        key: key.clone(),
        value: Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        ),
    });
    let is_bad = document.validated == Some(false);
    let job = ForeignJob {
        name: document.name.clone(),
        title: "HPCC_FPGA".to_owned(),
        words: words.collect(),
        metrics,
        failure: is_bad.then(|| Failure::new("mismatch", "the file says that data was wrong")),
        ..ForeignJob::default()
    };
    Ok(ForeignRun {
        program: Some(match &document.version {
            Some(version) => format!("HPCC_FPGA {version}"),
            None => "HPCC_FPGA".to_owned(),
        }),
        host: HostFacts {
            cpu_model: document.device,
            ..HostFacts::default()
        },
        jobs: vec![job],
        ..ForeignRun::default()
    })
}

fn figure(name: &str, quantity: &Quantity) -> Option<Metric> {
    let value = quantity.value?;
    Some(match quantity.unit.as_str() {
        "B/s" => Metric::high(name, Metric::BYTES_PER_S, value),
        "KB/s" => Metric::high(name, Metric::BYTES_PER_S, value * 1e3),
        "MB/s" => Metric::high(name, Metric::BYTES_PER_S, value * 1e6),
        "GB/s" => Metric::high(name, Metric::BYTES_PER_S, value * 1e9),
        "s" => Metric::low(name, Metric::SECONDS, value),
        "us" => Metric::low(name, Metric::SECONDS, value / 1e6),
        // Residuals and other errors of calculation have no unit.
        "" => Metric::low(name, "", value),
        other => Metric::high(name, other, value),
    })
}

fn of_size(exponent: u32, size: &OfSize) -> Option<Metric> {
    let rate = size.bytes_per_s?;
    let bytes = size.seconds.map(|seconds| rate * seconds);
    let runs = size.timings.iter().map(|rank| rank.timings.len()).max();
    let slowest = |run: usize| {
        let of_ranks = size
            .timings
            .iter()
            .filter_map(|rank| rank.timings.get(run)?.value);
        of_ranks.reduce(f64::max).filter(|seconds| *seconds > 0.0)
    };
    let times = (0..runs.unwrap_or(0)).filter_map(slowest);
    let samples = times.filter_map(|seconds| Some(bytes? / seconds));
    let message = 1_u64.checked_shl(exponent)?;
    Some(Metric {
        samples: samples.collect(),
        ..Metric::high(
            format!("bandwidth at {message} B"),
            Metric::BYTES_PER_S,
            rate,
        )
    })
}
