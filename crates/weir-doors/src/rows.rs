//! Files of rows that several runs add to, as reading a command line asks about them.

use std::fmt;

/// Reason for which rows cannot be added to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnfitRows {
    /// The first line is this other one.
    OtherHead(String),
    /// The first line is no text.
    NoRows,
    /// The last row has no end of line, so that the next one would become a part of it.
    OpenEnd,
    /// The file cannot be read or written.
    Io(String),
}

impl From<std::io::Error> for UnfitRows {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

impl fmt::Display for UnfitRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherHead(_) => "its first line is not the head of these rows",
            Self::NoRows => "it holds no rows",
            Self::OpenEnd => "its last row has no end, and the next one would become a part of it",
            Self::Io(error) => error,
        })
    }
}
