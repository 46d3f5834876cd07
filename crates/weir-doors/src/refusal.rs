//! Words that a door does not accept.

use std::fmt::Display;

use thiserror::Error;

/// Exit code where words, a plan or a file cannot be used; nothing was touched.
pub const USAGE: u8 = 2;
/// Exit code where the machine lacks what is needed.
pub const LACKS: u8 = 3;

/// Why the words were refused, and the exit code that goes with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Refusal {
    /// Lines for standard error, the last one with its newline.
    pub message: String,
    /// Exit code.
    pub code: u8,
}

impl Refusal {
    /// A text without its last newline gets one, unless it is empty: then nothing is printed.
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if !message.is_empty() && !message.ends_with('\n') {
            message.push('\n');
        }
        Self { message, code }
    }

    /// Words, a plan or a file that cannot be used, and why.
    pub fn usage(why: impl Display) -> Self {
        Self::new(USAGE, format!("error: {why}"))
    }

    /// What the machine lacks.
    pub fn lacks(what: impl Display) -> Self {
        Self::new(LACKS, format!("error: {what}"))
    }
}
