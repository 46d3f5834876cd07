//! File of the history: the one of the command line, of the environment, or in the user's directory for
//! program state.
//!
//! In: a flag's value, the environment. Out: a file, or none. Not here: opening it.

use std::env;
use std::path::{Path, PathBuf};

use weir_doors::Refusal;
use weir_history::{History, HistoryError, RunName};

/// Variable that names the file, or `off`.
const VARIABLE: &str = "WEIR_HISTORY";
/// Word for no history.
const OFF: &str = "off";

/// File that the flag or the environment names, else the user's own; `None` where history is off, or without
/// a place for it.
pub(super) fn file(flag: Option<&str>) -> Option<PathBuf> {
    match flag.map(PathBuf::from).or_else(named) {
        Some(path) if path == Path::new(OFF) => None,
        Some(path) => Some(path),
        None => own(),
    }
}

/// History that the environment names: a file, or `off`.
pub(super) fn named() -> Option<PathBuf> {
    let variable = env::var_os(VARIABLE).filter(|value| !value.is_empty());
    variable.map(PathBuf::from)
}

/// `~/.local/state/weir/history.db`.
fn own() -> Option<PathBuf> {
    let directory = |name| {
        let path = env::var_os(name).map(PathBuf::from);
        path.filter(|path: &PathBuf| path.is_absolute())
    };
    let state = directory("XDG_STATE_HOME")
        .or_else(|| directory("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("weir/history.db"))
}

/// The history that a verb reads or changes.
///
/// # Errors
/// History is off, or the file cannot be opened.
pub(crate) fn open(flag: Option<&str>) -> Result<Option<History>, Refusal> {
    open_or(flag, "name one with --history or WEIR_HISTORY")
}

/// Opens the history, with a remedy for a missing one.
fn open_or(flag: Option<&str>, help: &str) -> Result<Option<History>, Refusal> {
    let Some(path) = file(flag) else {
        return Err(Refusal::usage(format!(
            "there is no history: WEIR_HISTORY is `off`, or there is no HOME\n  help: {help}"
        )));
    };
    History::open_existing(&path).map_err(|error| refusal(&error))
}

/// Ids and results of the runs that an argument names, oldest first; `None` where it is no name of a run,
/// or may also name a file and there is no history.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub(crate) fn texts(word: &str) -> Result<Option<Vec<(String, String)>>, Refusal> {
    let Some(name) = RunName::of(word) else {
        return Ok(None);
    };
    let may_be_file = matches!(name, RunName::Id(_));
    // Not every verb that takes a name of a run has --history.
    let history = match open_or(None, "name one with WEIR_HISTORY") {
        Ok(Some(history)) => history,
        Ok(None) | Err(_) if may_be_file => return Ok(None),
        Ok(None) => {
            return Err(Refusal::usage(format!(
                "{word}: the history has no run yet\n  help: `weir run` begins one"
            )));
        }
        Err(refusal) => return Err(refusal),
    };
    let ids = history.resolve(word).map_err(|error| match error {
        HistoryError::NoRun { .. } if may_be_file => {
            Refusal::usage(format!("{error}, and no file of this name"))
        }
        error => refusal(&error),
    })?;
    let text = |id: String| {
        let text = history.json(&id).map_err(|error| refusal(&error))?;
        Ok((id, text))
    };
    ids.into_iter()
        .map(text)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Refusal of a verb that a history error ends.
pub(crate) fn refusal(error: &HistoryError) -> Refusal {
    match error {
        HistoryError::Database { .. }
        | HistoryError::ReadOnly(_)
        | HistoryError::File { .. }
        | HistoryError::Newer { .. } => Refusal::lacks(error),
        HistoryError::NoRun { given, .. } if given == "baseline" => Refusal::usage(
            "what ran last has no baseline\n  help: `weir history baseline set RUN` makes one",
        ),
        HistoryError::NoRun { .. } => {
            Refusal::usage(format!("{error}\n  help: `weir history` lists the runs"))
        }
        _ => Refusal::usage(error),
    }
}
