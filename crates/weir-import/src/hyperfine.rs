//! JSON of hyperfine: how long commands took.

use serde::Deserialize;
use serde_json::{Map, Value};
use weir_schema::{Failure, Metric, Word};

use crate::Format;
use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun, of_samples};
use crate::json;

pub(crate) const FORMAT: Format = Format {
    name: "hyperfine",
    meaning: "hyperfine, --export-json",
    is_in: |text| {
        json::has(text, &["\"results\"", "\"command\"", "\"mean\""])
            && json::has(text, &["\"system\""])
    },
    read,
};

#[derive(Debug, Deserialize)]
struct Document {
    results: Vec<Timed>,
}

#[derive(Debug, Deserialize)]
struct Timed {
    command: String,
    mean: f64,
    stddev: Option<f64>,
    median: Option<f64>,
    user: Option<f64>,
    system: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    times: Vec<f64>,
    #[serde(default)]
    memory_usage_byte: Option<Vec<f64>>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
    #[serde(default)]
    parameters: Map<String, Value>,
}

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let document: Document = json::document(text)?;
    if document.results.is_empty() {
        let line = text.lines().count().max(1);
        return Err(ImportError::new(line, "the document has no results"));
    }
    Ok(ForeignRun {
        program: Some("hyperfine".to_owned()),
        jobs: document.results.into_iter().map(of_command).collect(),
        ..ForeignRun::default()
    })
}

fn of_command(command: Timed) -> ForeignJob {
    let seconds = |name: &str, value: f64| Metric::low(name, Metric::SECONDS, value);
    let wall = Metric {
        samples: command.times,
        ..seconds("wall", command.mean)
    };
    let further = [
        ("wall median", command.median),
        ("wall min", command.min),
        ("wall max", command.max),
        ("wall deviation", command.stddev),
        ("user", command.user),
        ("system", command.system),
    ];
    let further = further.into_iter();
    let further = further.filter_map(|(name, value)| Some(seconds(name, value?)));
    let memory = command.memory_usage_byte.filter(|all| !all.is_empty());
    let memory = memory.map(|all| of_samples(Metric::low("memory", "B", 0.0), all));
    let failed = command.exit_codes.iter().filter(|code| **code != Some(0));
    let failed = failed.count();
    let runs = command.exit_codes.len();
    let word = |(key, value): (String, Value)| Word {
        key,
        value: Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        ),
    };
    ForeignJob {
        name: command.command,
        title: "command".to_owned(),
        words: command.parameters.into_iter().map(word).collect(),
        metrics: [wall].into_iter().chain(further).chain(memory).collect(),
        failure: (failed > 0).then(|| {
            Failure::new(
                "exit",
                format!("{failed} of {runs} runs ended with an error"),
            )
        }),
        ..ForeignJob::default()
    }
}
