//! `weir history import`: runs of files.
//!
//! In: exports of `weir history export`, databases, or whatever else holds results. Out: how many runs
//! are new. A run that is there already is left as it is. Not here: what a file of results is
//! (`stored`).

use std::fs;
use std::path::Path;

use weir_doors::Refusal;
use weir_history::{Entry, History, new_id};
use weir_schema::{RunResult, Runs};

use super::counted;
use super::place::{file, refusal};
use crate::stored::Stored;
use crate::{Outcome, output, printed};

/// The longest export that is read.
const LONGEST: u64 = 1 << 32;

pub(super) fn run(flag: Option<&str>, files: &[String]) -> Outcome {
    let Some(path) = file(flag) else {
        return Err(Refusal::usage(
            "there is no history to import into: WEIR_HISTORY is `off`, or there is no HOME",
        ));
    };
    // Every file is read before anything is changed.
    let mut entries = Vec::new();
    for file in files {
        entries.extend(entries_of(file)?);
    }
    let mut history = History::open(&path).map_err(|error| refusal(&error))?;
    let added = history
        .insert_all(&entries)
        .map_err(|error| refusal(&error))?;
    let known = match entries.len() - added {
        0 => String::new(),
        1 => ", 1 is there already".to_owned(),
        known => format!(", {known} are there already"),
    };
    let added = counted(added, "run");
    Ok(printed(&format!("{added} added{known}\n")))
}

fn entries_of(file: &str) -> Result<Vec<Entry>, Refusal> {
    let refuse = |why: String| Refusal::usage(format!("{file}: {why}"));
    if is_database(Path::new(file)) {
        let other = History::open_existing(Path::new(file)).map_err(|error| refusal(&error))?;
        let lines = other.map_or(Ok(Vec::new()), |other| other.json_lines());
        let lines = lines.map_err(|error| refusal(&error))?;
        let entries = lines
            .iter()
            .map(|line| Entry::of_line(line).map_err(refuse));
        return entries.collect();
    }
    if let Ok(text) = output::read_text(file, LONGEST)
        && Entry::is_line(&text)
    {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let entry = |(number, line): (usize, &str)| {
            Entry::of_line(line).map_err(|why| refuse(format!("line {}: {why}", number + 1)))
        };
        return lines.map(entry).collect();
    }
    let wrong = |error: weir_schema::SchemaError| refuse(error.to_string());
    match Stored::read(file)? {
        Stored::One(result) => Ok(vec![of_result(file, *result).map_err(wrong)?]),
        Stored::Several(runs) => of_runs(file, *runs).map_err(wrong),
    }
}

/// True if the file begins like a database.
fn is_database(path: &Path) -> bool {
    use std::io::Read as _;
    let mut head = [0; 16];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"SQLite format 3")
}

fn of_result(file: &str, mut result: RunResult) -> Result<Entry, weir_schema::SchemaError> {
    let id = match result.history.take() {
        Some(place) => place.id,
        None => new_id(result.started_unix_ns),
    };
    let entry = Entry::of_result(&id, &result, None)?;
    Ok(from(file, entry))
}

fn of_runs(file: &str, mut runs: Runs) -> Result<Vec<Entry>, weir_schema::SchemaError> {
    let mut entries = Vec::new();
    for number in 0..runs.series.len() {
        let series = &mut runs.series[number];
        let started = series.runs.first().map_or(0, |run| run.started_unix_ns);
        let id = series
            .history
            .take()
            .map_or_else(|| new_id(started), |place| place.id);
        let entry = Entry::of_runs(&id, &runs, &runs.series[number], None)?;
        entries.extend(entry.map(|entry| from(file, entry)));
    }
    Ok(entries)
}

fn from(file: &str, entry: Entry) -> Entry {
    Entry {
        source: Some(file.to_owned()),
        ..entry
    }
}
