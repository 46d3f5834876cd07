//! A text that cannot be read, and where.

use std::fmt::Display;

use thiserror::Error;

/// A text that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}: {message}")]
pub struct ImportError {
    /// The line, from 1.
    pub line: usize,
    /// The error there.
    pub message: String,
}

impl ImportError {
    pub(crate) fn new(line: usize, message: impl Display) -> Self {
        Self {
            line,
            message: message.to_string(),
        }
    }
}
