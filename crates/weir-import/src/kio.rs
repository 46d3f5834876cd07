//! Reports of kio: YAML of a run, CSV of several.
//!
//! In: the text. Out: of YAML a job for the whole and one a thread, of CSV a job a row. Times are in
//! µs, `MBps` are 10^6 bytes a second. Of YAML only what kio writes is read: maps in block form.

use weir_schema::{HostFacts, Metric, Word};

use crate::Format;
use crate::error::ImportError;
use crate::fields::fields;
use crate::foreign::{ForeignJob, ForeignRun, word};
use crate::lines::{Line, ended_lines, ends_early};

pub(crate) const FORMAT: Format = Format {
    name: "kio",
    meaning: "kio, --output-yaml or --output-csv",
    is_in: |text| text.contains(CSV_HEADER) || (text.contains("kio_version:") && is_yaml(text)),
    read,
};

const CSV_HEADER: &str = "timestamp,hostname,kio_version,label,";
/// Columns of a row.
const COLUMNS: usize = 25;

fn is_yaml(text: &str) -> bool {
    text.lines().any(|line| line == "results:")
}

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let lines = ended_lines(text)?;
    if text.contains(CSV_HEADER) {
        csv(text, &lines)
    } else {
        yaml(text, &lines)
    }
}

/// The figure of one of the six keys.
fn figure(line: Line<'_>, key: &str, value: &str) -> Result<Option<Metric>, ImportError> {
    let time = |name: &str| {
        Ok(Metric::low(
            name,
            Metric::SECONDS,
            line.number(value)? / 1e6,
        ))
    };
    Ok(Some(match key {
        "bw_MBps" => Metric::high("bandwidth", Metric::BYTES_PER_S, line.number(value)? * 1e6),
        "iops" => Metric::high("rate", Metric::OPS_PER_S, line.number(value)?),
        "completed" => Metric::high("completed", "ops", line.number(value)?),
        "lat_usec" => time("mean")?,
        "slat_usec" => time("slat mean")?,
        "clat_usec" => time("clat mean")?,
        _ => return Ok(None),
    }))
}

/// A document for each point of a sweep, one for a run.
fn yaml(text: &str, lines: &[Line<'_>]) -> Result<ForeignRun, ImportError> {
    let mut run = ForeignRun::default();
    let points: Vec<&[Line<'_>]> = lines.split(|line| line.text.trim_end() == "---").collect();
    for point in &points {
        let (mut jobs, words) = document(text, point, &mut run)?;
        if let [_] = *points {
            run.global_words = words;
        } else {
            let name = point.iter().find_map(|line| point_name(line.text));
            for job in &mut jobs {
                job.words.clone_from(&words);
                job.name.extend(name.iter().flat_map(|name| [", ", name]));
            }
        }
        run.jobs.append(&mut jobs);
    }
    let promised = lines.first().and_then(|line| point_count(line.text));
    if promised.is_some_and(|count| count > points.len()) {
        return Err(ends_early(text, "points of its sweep are missing"));
    }
    Ok(run)
}

/// 2 of `# point 1 of 2: queue_depth=1`.
fn point_count(line: &str) -> Option<usize> {
    let (numbers, _) = line.strip_prefix("# point ")?.split_once(": ")?;
    numbers.split_once(" of ")?.1.parse().ok()
}

/// `queue_depth=4` of `# point 2 of 2: queue_depth=4`.
fn point_name(line: &str) -> Option<&str> {
    let (_, name) = line.strip_prefix("# point ")?.split_once(": ")?;
    Some(name.trim())
}

/// The jobs of a document, and the words of its configuration.
fn document(
    text: &str,
    lines: &[Line<'_>],
    run: &mut ForeignRun,
) -> Result<(Vec<ForeignJob>, Vec<Word>), ImportError> {
    let (mut jobs, mut words): (Vec<ForeignJob>, Vec<Word>) = Default::default();
    // The keys above a line, each with its indentation.
    let mut path: Vec<(usize, &str)> = Vec::new();
    let is_said = |line: &&Line<'_>| !line.text.trim().is_empty() && !line.text.starts_with('#');
    for line in lines.iter().filter(is_said) {
        let indent = line.text.len() - line.text.trim_start().len();
        let Some((key, value)) = line.text.trim().split_once(':') else {
            return Err(line.error("a line has a key and a colon"));
        };
        let value = value.trim().trim_matches('\'');
        path.retain(|(above, _)| *above < indent);
        path.push((indent, key));
        let keys: Vec<&str> = path.iter().map(|(_, key)| *key).collect();
        match keys.as_slice() {
            ["results", "summary"] => jobs.push(job("all threads")),
            ["results", "threads", thread] => jobs.push(job(&format!("thread {thread}"))),
            ["results", .., key] => {
                if let Some(job) = jobs.last_mut() {
                    job.metrics.extend(figure(*line, key, value)?);
                }
            }
            ["config", rest @ ..] if !value.is_empty() => {
                words.push(word(&rest.join("."), value));
            }
            ["system", key] => system(run, key, value),
            _ => {}
        }
    }
    let is_whole = path.first().is_some_and(|(_, key)| *key == "system")
        && path.last().is_some_and(|(_, key)| *key == "timestamp")
        && lines
            .iter()
            .rfind(is_said)
            .is_some_and(|line| line.text.trim().len() >= TIMESTAMP);
    if !is_whole || jobs.is_empty() {
        return Err(ends_early(text, "there is no `timestamp` below `system`"));
    }
    Ok((jobs, words))
}

/// `timestamp: ` and a date with a time.
const TIMESTAMP: usize = "timestamp: YYYY/MM/DD HH:MM:SS".len();

fn job(name: &str) -> ForeignJob {
    ForeignJob {
        name: name.to_owned(),
        title: "kio".to_owned(),
        ..ForeignJob::default()
    }
}

fn system(run: &mut ForeignRun, key: &str, value: &str) {
    match key {
        "hostname" => run.host.hostname = Some(value.to_owned()),
        "kio_version" => run.program = Some(format!("kio {value}")),
        _ => {}
    }
}

fn csv(text: &str, lines: &[Line<'_>]) -> Result<ForeignRun, ImportError> {
    let mut rows = lines.iter().filter(|line| !line.text.is_empty());
    let header = rows.next().map_or(Vec::new(), |line| fields(line.text));
    let mut run = ForeignRun::default();
    for (number, line) in rows.enumerate() {
        let fields = fields(line.text);
        if header.len() != COLUMNS || fields.len() != COLUMNS {
            return Err(line.error(format!("a row has {COLUMNS} columns")));
        }
        let mut job = job(&format!("row {}", number + 1));
        for (key, value) in header.iter().zip(&fields) {
            match (key.as_str(), figure(*line, key, value)?) {
                ("hostname" | "kio_version", _) => system(&mut run, key, value),
                ("label", _) if !value.is_empty() => job.name.clone_from(value),
                (_, Some(metric)) => job.metrics.push(metric),
                (_, None) if !value.is_empty() => job.words.push(Word {
                    key: key.clone(),
                    value: Some(value.clone()),
                }),
                _ => {}
            }
        }
        run.jobs.push(job);
    }
    if run.jobs.is_empty() {
        return Err(ends_early(text, "there is no row"));
    }
    run.host = HostFacts {
        hostname: run.host.hostname.take(),
        ..HostFacts::default()
    };
    Ok(run)
}
