//! Texts of IOR: its report, and its CSV. Its JSON is in `ior_json`.
//!
//! In: the text. Out: a job a test; the repetitions of a phase are samples. MiB is 2^20 bytes.

use weir_schema::{Failure, Metric, Word};

use crate::Format;
use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun, MIB, of_samples, word};
use crate::ior_json;
use crate::lines::{Line, ended_lines, ends_early};

pub(crate) const FORMAT: Format = Format {
    name: "ior",
    meaning: "IOR, as text, JSON or CSV",
    is_in: |text| {
        text.contains("MPI Coordinated Test of Parallel I/O")
            || text.contains(CSV_HEADER)
            || ior_json::is_in(text)
    },
    read,
};

const CSV_HEADER: &str = "access,bw(MiB/s),IOPS";

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    if ior_json::is_in(text) {
        return ior_json::read(text);
    }
    let lines = ended_lines(text)?;
    if lines.iter().any(|line| line.text.starts_with(CSV_HEADER)) {
        return csv(text, &lines);
    }
    report(text, &lines)
}

/// Figures of all repetitions of a phase.
#[derive(Debug, Default)]
pub(crate) struct IorPhase {
    /// `write`, `read`, `remove`.
    access: String,
    /// Name, unit and values of each figure, in order.
    figures: Vec<(&'static str, Vec<f64>)>,
}

/// The phases of a test, in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Phases(Vec<IorPhase>);

impl Phases {
    /// Adds a repetition: figures by name.
    pub(crate) fn add(&mut self, access: &str, figures: &[(&'static str, f64)]) {
        let at = self.0.iter().position(|phase| phase.access == access);
        let at = at.unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push(IorPhase {
                access: access.to_owned(),
                ..IorPhase::default()
            });
        }
        let Some(phase) = self.0.get_mut(at) else {
            return;
        };
        for (name, value) in figures {
            match phase.figures.iter_mut().find(|(known, _)| known == name) {
                Some((_, values)) => values.push(*value),
                None => phase.figures.push((*name, vec![*value])),
            }
        }
    }

    pub(crate) fn metrics(self) -> Vec<Metric> {
        let all = self.0.into_iter().flat_map(|phase| {
            let IorPhase { access, figures } = phase;
            figures.into_iter().map(move |(name, values)| {
                let name = format!("{access} {name}");
                let empty = if name.ends_with("bandwidth") {
                    Metric::high(name, Metric::BYTES_PER_S, 0.0)
                } else if name.ends_with("rate") {
                    Metric::high(name, Metric::OPS_PER_S, 0.0)
                } else {
                    Metric::low(name, Metric::SECONDS, 0.0)
                };
                of_samples(empty, values)
            })
        });
        all.collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The columns of a row of results after `access`, and what each is.
const COLUMNS: [(usize, &str, f64); 7] = [
    (1, "bandwidth", MIB),
    (2, "rate", 1.0),
    (3, "latency", 1.0),
    (6, "open time", 1.0),
    (7, "transfer time", 1.0),
    (8, "close time", 1.0),
    (9, "total time", 1.0),
];

/// The figures of a row; `-` stands for what a phase does not have.
fn row(line: Line<'_>, words: &[&str]) -> Result<Vec<(&'static str, f64)>, ImportError> {
    let mut all = Vec::new();
    for (at, name, unit) in COLUMNS {
        let word = line.column(words, at)?;
        if word != "-" && word != "NA" {
            all.push((name, line.number(word)? * unit));
        }
    }
    Ok(all)
}

fn csv(text: &str, lines: &[Line<'_>]) -> Result<ForeignRun, ImportError> {
    let mut phases = Phases::default();
    let rows = lines
        .iter()
        .skip_while(|line| !line.text.starts_with(CSV_HEADER));
    for line in rows.skip(1) {
        let words: Vec<&str> = line.text.split(',').collect();
        // What a shell or a launcher adds has no columns.
        if words.len() > 1 {
            line.column(&words, 11)?;
            phases.add(words[0], &row(*line, &words)?);
        }
    }
    if phases.is_empty() {
        return Err(ends_early(text, "there is no row of results"));
    }
    let job = ForeignJob {
        name: "ior".to_owned(),
        title: "IOR".to_owned(),
        metrics: phases.metrics(),
        ..ForeignJob::default()
    };
    Ok(ForeignRun {
        program: Some("IOR".to_owned()),
        jobs: vec![job],
        ..ForeignRun::default()
    })
}

/// A test of the report, while it is read.
#[derive(Debug, Default)]
struct Test {
    id: String,
    words: Vec<Word>,
    phases: Phases,
    further: Vec<Metric>,
    failure: Option<Failure>,
}

impl Test {
    fn job(self) -> ForeignJob {
        let said = |key: &str| {
            let word = self.words.iter().find(|word| word.key == key);
            word.and_then(|word| word.value.clone())
        };
        let title = [said("access"), said("xfersize"), said("api")];
        ForeignJob {
            name: format!("test {}", self.id),
            title: title.into_iter().flatten().collect::<Vec<_>>().join(", "),
            metrics: self
                .phases
                .metrics()
                .into_iter()
                .chain(self.further)
                .collect(),
            words: self.words,
            failure: self.failure,
            ..ForeignJob::default()
        }
    }
}

/// Part of the report that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Options,
    Results,
    Summary,
}

fn report(text: &str, lines: &[Line<'_>]) -> Result<ForeignRun, ImportError> {
    let mut run = ForeignRun::default();
    let mut tests: Vec<Test> = Vec::new();
    let mut part = Part::Head;
    let mut is_finished = false;
    for line in lines {
        if let Some(id) = line.value_of("TestID") {
            part = Part::Head;
            tests.push(Test {
                id: id.to_owned(),
                ..Test::default()
            });
        }
        part = match line.text.trim_end() {
            "Options:" => Part::Options,
            "Results:" => Part::Results,
            "Summary of all tests:" => Part::Summary,
            _ => part,
        };
        if line.value_of("Finished").is_some() {
            is_finished = true;
        }
        head(&mut run, *line);
        let Some(test) = tests.last_mut() else {
            continue;
        };
        warnings(&mut run.warnings, test, *line);
        match part {
            Part::Options => test.words.extend(option(*line)),
            Part::Results => results(test, *line)?,
            Part::Summary => summary(&mut tests, *line)?,
            Part::Head => {}
        }
    }
    if !is_finished {
        return Err(ends_early(text, "there is no line `Finished`"));
    }
    run.jobs = tests.into_iter().map(Test::job).collect();
    Ok(run)
}

fn head(run: &mut ForeignRun, line: Line<'_>) {
    if let Some(at) = line.text.find(": MPI Coordinated Test") {
        run.program = line.text.get(..at).map(|name| name.trim().to_owned());
    }
    if let Some(command) = line.value_of("Command line") {
        run.command = command.split_whitespace().map(str::to_owned).collect();
    }
    if let Some(machine) = line.value_of("Machine") {
        let (kernel, host) = machine.split_once(' ').unwrap_or((machine, ""));
        run.host.kernel = Some(kernel.to_owned());
        run.host.hostname = Some(host.to_owned()).filter(|host| !host.is_empty());
    }
}

fn warnings(all: &mut Vec<String>, test: &mut Test, line: Line<'_>) {
    let Some(text) = line.text.trim_start().strip_prefix("WARNING: ") else {
        return;
    };
    if text.contains("Incorrect data") {
        test.failure = Some(Failure::new("mismatch", text));
    } else if !all.iter().any(|known| known == text) {
        all.push(text.to_owned());
    }
}

fn option(line: Line<'_>) -> Option<Word> {
    let (key, value) = line.text.split_once(':')?;
    let value = value.trim();
    (!value.is_empty()).then(|| word(key.trim(), value))
}

fn results(test: &mut Test, line: Line<'_>) -> Result<(), ImportError> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    if let [access @ ("write" | "read" | "remove"), _, ..] = words.as_slice() {
        line.column(&words, 10)?;
        test.phases.add(access, &row(line, &words)?);
    }
    Ok(())
}

/// Reads the figures that only the summary has: those at the wall.
fn summary(tests: &mut [Test], line: Line<'_>) -> Result<(), ImportError> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let [access @ ("write" | "read"), _, ..] = words.as_slice() else {
        return Ok(());
    };
    let id = line.column(&words, 12)?;
    line.column(&words, 26)?;
    let (seconds, mib) = (line.column(&words, 10)?, line.column(&words, 11)?);
    let Some(test) = tests.iter_mut().find(|test| test.id == id) else {
        return Ok(());
    };
    if seconds != "NA" {
        let name = format!("{access} time at the wall");
        let seconds = line.number(seconds)?;
        test.further
            .push(Metric::low(name, Metric::SECONDS, seconds));
    }
    if mib != "NA" {
        let name = format!("{access} bandwidth per task at the wall");
        let rate = line.number(mib)? * MIB;
        test.further
            .push(Metric::high(name, Metric::BYTES_PER_S, rate));
    }
    Ok(())
}
