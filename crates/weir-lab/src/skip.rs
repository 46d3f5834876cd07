//! Tests that cannot be done here: one loud line, or a failure where everything is required.
//!
//! In: why. Out: a line on standard error and in the file of `WEIR_SKIP_LOG`.

use std::fs;
use std::io::Write as _;

use anyhow::Result;

use crate::lab::missing;

/// Says that a test could not be done.
pub fn skip(test: &str, reason: &str) {
    // Not through the test harness, which swallows what a passing test prints.
    let _ = writeln!(std::io::stderr(), "SKIP kernel_lab: {test}: {reason}");
    if let Ok(path) = std::env::var("WEIR_SKIP_LOG") {
        let log = fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = log.and_then(|mut log| writeln!(log, "{test}: {reason}"));
    }
}

/// Value of a result; nothing, after a line, where a prerequisite is missing and `WEIR_LAB` is not
/// `require`.
///
/// # Errors
/// Every other failure, and that one where it is required.
pub fn or_skip<T>(test: &str, result: Result<T>) -> Result<Option<T>> {
    let required = std::env::var("WEIR_LAB").is_ok_and(|word| word == "require");
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match missing(&error) {
            Some(reason) if !required => {
                skip(test, &reason.to_string());
                Ok(None)
            }
            _ => Err(error),
        },
    }
}
