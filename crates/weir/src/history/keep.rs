//! Keeps results in the history, once the run is over and before it is reported.
//!
//! In: a result, and what its door says of history. Out: the result with its id; the exit code
//! corrected, and a line on standard error where a figure has changed. Whatever fails here costs a
//! warning and nothing else: the result is written beside. Not here: what is kept (`weir-history`).

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use weir_doors::Refusal;
use weir_doors::house::{Strict, exit_code};
use weir_history::{Entry, History, HistoryError, LEAST_CHANGE, new_id};
use weir_schema::{HistoryPlace, RunResult, Runs, SchemaError};

use super::place;
use crate::output;

/// Variable with the machine's name, by which the history distinguishes machines.
const MACHINE: &str = "WEIR_MACHINE";
/// Most runs of the new level after which a change is reported.
const RECENT: usize = 10;

/// Rule by which the history keeps a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keep<'a> {
    /// Kept in the history that the flag, else the environment names, else in the user's own.
    Always(Option<&'a str>),
    /// Kept where the environment names a history: the door is a peer's, which has none.
    WhereNamed,
    /// Kept nowhere: there is nothing to keep.
    Never,
}

/// Result that the history has kept and whose report is not printed yet.
pub(crate) struct Kept {
    history: History,
    ids: Vec<String>,
    prints_changes: bool,
}

/// Keeps a result, which then records its place in the history.
pub(crate) fn keep(result: &mut RunResult, keep: Keep<'_>) -> Option<Kept> {
    let path = keep.file()?;
    let id = new_id(result.started_unix_ns);
    result.history = Some(history_place(&path, &id));
    let machine = std::env::var(MACHINE).ok();
    let entry = Entry::of_result(&id, result, machine.as_deref()).map(|entry| Entry {
        exit_code: exit_code(result, &Strict::No),
        ..entry
    });
    match insert(&path, entry) {
        Ok(history) => Some(Kept {
            history,
            ids: vec![id],
            prints_changes: matches!(keep, Keep::Always(_)),
        }),
        Err(error) => {
            result.history = None;
            write_beside(&path, &id, &error, &result.to_json());
            None
        }
    }
}

/// Keeps several runs: those of one plan together, as they are one measurement.
pub(crate) fn keep_runs(runs: &mut Runs, keep: Keep<'_>) -> Option<Kept> {
    let path = keep.file()?;
    for series in &mut runs.series {
        let started = series.runs.first().map(|run| run.started_unix_ns);
        series.history = started.map(|ns| history_place(&path, &new_id(ns)));
    }
    let machine = std::env::var(MACHINE).ok();
    let mut kept: Option<Kept> = None;
    for number in 0..runs.series.len() {
        let series = &runs.series[number];
        let Some(id) = series.history.as_ref().map(|place| place.id.clone()) else {
            continue;
        };
        let codes = series.runs.iter().map(|run| exit_code(run, &Strict::No));
        let code = codes.max().unwrap_or(0);
        let entry = Entry::of_runs(&id, runs, series, machine.as_deref());
        let Some(entry) = entry.transpose() else {
            continue;
        };
        let entry = entry.map(|entry| Entry {
            exit_code: code,
            ..entry
        });
        match insert(&path, entry) {
            Ok(history) => {
                let before = kept.map_or_else(Vec::new, |kept| kept.ids);
                kept = Some(Kept {
                    history,
                    ids: [before, vec![id]].concat(),
                    prints_changes: true,
                });
            }
            Err(error) => {
                runs.series[number].history = None;
                let mut alone = runs.clone();
                alone.series = vec![runs.series[number].clone()];
                write_beside(&path, &id, &error, &alone.to_json(false));
            }
        }
    }
    kept
}

/// Keeps several runs under a label that the user asked for; true if all of them were kept.
pub(crate) fn save_runs(runs: &mut Runs, label: &str) -> bool {
    let wanted = runs.series.iter().filter(|s| !s.runs.is_empty()).count();
    let Some(mut kept) = keep_runs(runs, Keep::Always(None)) else {
        return wanted == 0;
    };
    let mut good = kept.ids.len() == wanted;
    for id in &kept.ids {
        if let Err(error) = kept.history.set_label(id, Some(label)) {
            output::error(&format!("error: --save {label}: {error}\n"));
            good = false;
        }
    }
    good
}

/// # Errors
/// There is no history to save runs in.
pub(crate) fn check_save() -> Result<(), Refusal> {
    place::file(None).map(drop).ok_or_else(|| {
        Refusal::usage(
            "--save: there is no history: WEIR_HISTORY is `off`, or there is no HOME\n  help: name one \
             with WEIR_HISTORY, or keep the runs in a file: --store-result",
        )
    })
}

impl Keep<'_> {
    /// Finds out before the run whether the flag names a history, or a new file in an existing directory. weir
    /// makes only that of the user's own history.
    pub(crate) fn check(self) -> Result<(), Refusal> {
        let Self::Always(Some(flag)) = self else {
            return Ok(());
        };
        let Some(path) = place::file(Some(flag)) else {
            return Ok(());
        };
        let refuse = |why: String| Err(Refusal::usage(format!("--history {flag}: {why}")));
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let folder = folder.display();
            return refuse(format!(
                "there is no directory {folder}\n  help: make it, or name another file"
            ));
        }
        if path.exists() && !is_database(&path) {
            return refuse("it is no history\n  help: name another file".to_owned());
        }
        Ok(())
    }

    /// The file of the history, where one keeps it.
    pub(crate) fn file(self) -> Option<PathBuf> {
        match self {
            Self::Always(flag) => place::file(flag),
            Self::WhereNamed => place::named().and_then(|_| place::file(None)),
            Self::Never => None,
        }
    }
}

/// True for a file that is empty, or begins as those of the library below the history do. What cannot be read
/// is found out when it is opened.
fn is_database(path: &Path) -> bool {
    let mut begin = Vec::new();
    let mut read = || File::open(path)?.take(16).read_to_end(&mut begin);
    path.is_file() && (read().is_err() || matches!(&begin[..], b"" | b"SQLite format 3\0"))
}

/// Place of a run. It names the file where that is not the default.
fn history_place(path: &Path, id: &str) -> HistoryPlace {
    let other = place::file(None).is_none_or(|usual| usual != path);
    HistoryPlace {
        id: id.to_owned(),
        file: other.then(|| path.display().to_string()),
    }
}

impl Kept {
    /// The run has left this for the shell.
    pub(crate) fn ended_with(&mut self, code: u8) {
        for id in &self.ids {
            let is_known = self.history.run(id).is_ok_and(|run| run.exit_code == code);
            if !is_known && let Err(error) = self.history.set_exit_code(id, code) {
                output::error(&format!(
                    "warning: the history has another exit code: {error}\n"
                ));
            }
        }
    }

    /// Prints a note on each figure whose level has changed lately.
    pub(crate) fn print_changes(&self) {
        for id in self.ids.iter().filter(|_| self.prints_changes) {
            let trends = self
                .history
                .run(id)
                .and_then(|run| self.history.trends(&run, None, LEAST_CHANGE));
            // A trend that cannot be had says nothing of the run.
            for trend in trends.unwrap_or_default() {
                let is_good = trend
                    .runs
                    .last()
                    .is_some_and(|run| run.spoiled_by.is_none());
                let last = trend.changes.last().filter(|change| change.runs <= RECENT);
                if let Some(change) = last.filter(|_| is_good) {
                    output::error(&format!("note: {}\n", change.sentence(&trend)));
                }
            }
        }
    }
}

fn insert(path: &Path, entry: Result<Entry, SchemaError>) -> Result<History, HistoryError> {
    let entry = entry?;
    let mut history = History::open(path)?;
    history.leave_log();
    history.insert(&entry)?;
    Ok(history)
}

/// Writes the result to a file of its own: beside the history, or where weir was started.
fn write_beside(path: &Path, id: &str, error: &HistoryError, text: &Result<String, SchemaError>) {
    let name = format!("weir-{id}.json");
    let beside = path.with_file_name(&name).display().to_string();
    let written = text.as_ref().map_err(ToString::to_string).and_then(|text| {
        let first = output::write_file(&beside, text).map(|()| beside.clone());
        first.or_else(|_| output::write_file(&name, text).map(|()| name.clone()))
    });
    let place = match written {
        Ok(file) => format!("the result is in {file}"),
        Err(why) => {
            let why = why.trim_end().trim_start_matches("error: ");
            format!("and the result cannot be written to a file either: {why}")
        }
    };
    output::error(&format!(
        "warning: the history does not have this run: {error}; {place}\n"
    ));
}
