//! Errors of the history.

use std::path::PathBuf;

use crate::ulid::FEWEST_CHARACTERS;

/// Error of the history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file or its directory cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The database says no.
    #[error("{}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Error of the database.
        source: rusqlite::Error,
    },
    /// A copy would replace something.
    #[error("{} is there already: name another file", .0.display())]
    Exists(PathBuf),
    /// Some other file.
    #[error("{} is no history of weir", .0.display())]
    NoHistory(PathBuf),
    /// A newer weir has changed its form.
    #[error(
        "{} was made by a newer weir (version {found}, this one writes {known}): it is only read",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The one that this program knows.
        known: u32,
    },
    /// It cannot be written.
    #[error("{} cannot be written", .0.display())]
    ReadOnly(PathBuf),
    /// No run of this name.
    #[error("no run `{given}` in {}", path.display())]
    NoRun {
        /// The name given.
        given: String,
        /// Path of the history.
        path: PathBuf,
    },
    /// Fewer characters than name a run.
    #[error(
        "`{given}` is too short for the beginning of an id: it has at least {} characters",
        FEWEST_CHARACTERS
    )]
    TooShort {
        /// The name given.
        given: String,
    },
    /// Several runs whose ids begin so.
    #[error("`{given}` is the beginning of {count} runs: {some}")]
    Ambiguous {
        /// The name given.
        given: String,
        /// Number of runs that it names.
        count: usize,
        /// The first of them.
        some: String,
    },
    /// A baseline is not to be removed.
    #[error("{0} is a baseline: `weir history baseline clear {0}` first")]
    IsBaseline(String),
    /// A result of which nothing but its figures is kept.
    #[error("of {0} only its figures are left: its result was pruned")]
    Pruned(String),
    /// A result without JSON form, or of an unknown one.
    #[error("{0}")]
    Schema(#[from] weir_schema::SchemaError),
    /// Something that this program wrote otherwise.
    #[error("{place}: {why}")]
    Form {
        /// Place of the error.
        place: String,
        /// The reason.
        why: String,
    },
}
