//! The text of `vos_perf` and `daos_perf`, in the forms of all versions.
//!
//! In: the text. Out: a job a test; its iterations are samples. MB is 2^20 bytes.

use weir_schema::{Failure, Metric, Word};

use crate::Format;
use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun, MIB, of_samples, word};
use crate::lines::{Line, ended_lines, ends_early};

pub(crate) const FORMAT: Format = Format {
    name: "vos-perf",
    meaning: "vos_perf and daos_perf, what they print",
    is_in: |text| text.contains("Running test="),
    read,
};

/// Labels of figures, what they are, and the unit they are in.
const FIGURES: [(&str, &str, f64); 8] = [
    ("duration", "duration", 1.0),
    ("bandwidth", "bandwidth", MIB),
    // As versions since 2021 spell it.
    ("bandwith", "bandwidth", MIB),
    ("rate", "rate", 1.0),
    ("latency", "latency", 1e-6),
    ("MAX duration", "duration max", 1.0),
    ("MIN duration", "duration min", 1.0),
    ("Average duration", "duration average", 1.0),
];

/// A test with the values of each figure.
#[derive(Debug, Default)]
struct Test {
    name: String,
    figures: Vec<(&'static str, Vec<f64>)>,
    failed: bool,
    is_completed: bool,
}

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let mut tests: Vec<Test> = Vec::new();
    let mut words: Vec<Word> = Vec::new();
    for line in ended_lines(text)? {
        let text = line.text.trim();
        if let Some(name) = text.strip_prefix("Running test=") {
            tests.push(Test {
                name: name.to_owned(),
                ..Test::default()
            });
            continue;
        }
        let Some(test) = tests.last_mut() else {
            words.extend(parameter(line));
            continue;
        };
        if text.starts_with("Completed test=") {
            test.is_completed = true;
        } else if text == format!("{} failed", test.name) {
            test.failed = true;
        } else if let Some((name, value)) = figure(line)? {
            match test.figures.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => test.figures.push((name, vec![value])),
            }
        }
    }
    if tests.is_empty() || tests.iter().any(|test| !test.is_completed && !test.failed) {
        return Err(ends_early(text, "a test is not completed"));
    }
    let kind = words.iter().find(|word| word.key == "Test");
    let title = kind.and_then(|word| word.value.clone()).unwrap_or_default();
    let program = if title.starts_with("VOS") {
        "vos_perf"
    } else {
        "daos_perf"
    };
    Ok(ForeignRun {
        program: Some(program.to_owned()),
        global_words: words,
        jobs: tests
            .into_iter()
            .map(|test| of_test(test, &title))
            .collect(),
        ..ForeignRun::default()
    })
}

/// A line of the table at the start; the test and the pool stand below their headings.
fn parameter(line: Line<'_>) -> Option<Word> {
    let text = line.text.trim();
    let is_value = line.text.starts_with(['\t', ' ']);
    match text.split_once(" : ").or_else(|| text.split_once(": ")) {
        Some((key, value)) if is_value => Some(word(key.trim(), value.trim())),
        None if text.starts_with("VOS") || text.starts_with("DAOS") || text.starts_with("ECHO") => {
            Some(word("Test", text))
        }
        _ => None,
    }
}

/// `duration  : 1.234567   sec`.
fn figure(line: Line<'_>) -> Result<Option<(&'static str, f64)>, ImportError> {
    let Some((label, value)) = line.text.split_once(':') else {
        return Ok(None);
    };
    let label = label.trim();
    let Some((_, name, unit)) = FIGURES.iter().find(|(known, ..)| *known == label) else {
        return Ok(None);
    };
    let (value, after) = line.number_with_unit(value)?;
    if after.is_empty() {
        return Err(line.error("a figure has a unit"));
    }
    Ok(Some((name, value * unit)))
}

fn of_test(test: Test, title: &str) -> ForeignJob {
    let figures = test.figures.into_iter().map(|(name, values)| {
        let empty = match name {
            "bandwidth" => Metric::high(name, Metric::BYTES_PER_S, 0.0),
            "rate" => Metric::high(name, Metric::OPS_PER_S, 0.0),
            _ => Metric::low(name, Metric::SECONDS, 0.0),
        };
        of_samples(empty, values)
    });
    let failure = test.failed;
    ForeignJob {
        metrics: figures.collect(),
        failure: failure.then(|| Failure::new("io", format!("{} failed", test.name))),
        name: test.name,
        title: title.to_owned(),
        ..ForeignJob::default()
    }
}
