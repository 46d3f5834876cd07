//! JSON of IOR.

use serde::Deserialize;
use serde_json::{Map, Value};
use weir_schema::Word;

use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun, MIB};
use crate::ior::Phases;
use crate::json;

/// True if a text holds it.
pub(crate) fn is_in(text: &str) -> bool {
    json::has(text, &["\"tests\"", "\"TestID\"", "\"Command line\""])
}

#[derive(Debug, Deserialize)]
struct Document {
    #[serde(rename = "Version")]
    version: Option<String>,
    #[serde(rename = "Command line")]
    command: Option<String>,
    tests: Vec<Test>,
}

#[derive(Debug, Deserialize)]
struct Test {
    #[serde(rename = "TestID")]
    id: u64,
    #[serde(rename = "Options", default)]
    options: Map<String, Value>,
    #[serde(rename = "Results", default)]
    results: Vec<IorPhase>,
}

/// A phase; one that removes files has a time alone.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IorPhase {
    access: String,
    #[serde(rename = "bwMiB")]
    bw_mib: Option<f64>,
    iops: Option<f64>,
    latency: Option<f64>,
    open_time: Option<f64>,
    #[serde(rename = "wrRdTime")]
    transfer_time: Option<f64>,
    close_time: Option<f64>,
    total_time: Option<f64>,
}

pub(crate) fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let document: Document = json::document(text)?;
    let command = document.command.unwrap_or_default();
    let version = document.version.map(|version| format!("IOR-{version}"));
    Ok(ForeignRun {
        program: version.or_else(|| Some("IOR".to_owned())),
        command: command.split_whitespace().map(str::to_owned).collect(),
        jobs: document.tests.iter().map(of_test).collect(),
        ..ForeignRun::default()
    })
}

fn of_test(test: &Test) -> ForeignJob {
    let mut phases = Phases::default();
    for phase in &test.results {
        let figures = [
            ("bandwidth", phase.bw_mib.map(|mib| mib * MIB)),
            ("rate", phase.iops),
            ("latency", phase.latency),
            ("open time", phase.open_time),
            ("transfer time", phase.transfer_time),
            ("close time", phase.close_time),
            ("total time", phase.total_time),
        ];
        let figures = figures.into_iter();
        let figures: Vec<_> = figures.filter_map(|(name, v)| Some((name, v?))).collect();
        phases.add(&phase.access, &figures);
    }
    let said = |key: &str| test.options.get(key).and_then(Value::as_str);
    let title = [said("access"), said("xfersize"), said("api")];
    let word = |(key, value): (&String, &Value)| Word {
        key: key.clone(),
        value: Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        ),
    };
    ForeignJob {
        name: format!("test {}", test.id),
        title: title.into_iter().flatten().collect::<Vec<_>>().join(", "),
        words: test.options.iter().map(word).collect(),
        metrics: phases.metrics(),
        ..ForeignJob::default()
    }
}
