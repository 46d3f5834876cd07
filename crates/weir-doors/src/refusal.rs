//! Words that a door does not accept.

use thiserror::Error;

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
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if !message.ends_with('\n') {
            message.push('\n');
        }
        Self { message, code }
    }
}
