//! A row of a table of stages: a label and cells.
//!
//! In: the line. Out: its cells as [`Reading`]s; a cell `n/a` ends the row with its reason. Not here:
//! what columns mean.

use crate::inputs::{InputError, LOG_HELP};
use crate::reading::Reading;

/// The cells of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    cells: Vec<Reading>,
    /// The second number of a cell that has one in brackets.
    pub(super) in_brackets: Option<Reading>,
}

impl Row {
    pub(super) fn cell(&self, at: usize) -> Option<Reading> {
        self.cells.get(at).cloned()
    }
}

/// The most cells that a row has.
const MOST_CELLS: usize = 9;

pub(super) fn row(line: &str, number: usize) -> Result<Row, InputError> {
    let mut row = Row {
        cells: Vec::new(),
        in_brackets: None,
    };
    let mut rest = line.split_whitespace().skip(1);
    while let Some(word) = rest.next() {
        if word.starts_with("n/a") {
            let reason: Vec<&str> = rest.by_ref().collect();
            let reason = reason.join(" ");
            let reason = reason.trim_start_matches('(').trim_end_matches(')');
            row.cells.push(if reason.is_empty() {
                Reading::missing("`n/a` was recorded")
            } else {
                Reading::missing(reason)
            });
            break;
        }
        let (first, second) = match word.strip_suffix(')').and_then(|w| w.split_once('(')) {
            Some((first, second)) => (first, Some(second)),
            None => (word, None),
        };
        if let Some(second) = second {
            row.in_brackets = Some(cell(second, line, number)?);
        }
        row.cells.push(cell(first, line, number)?);
    }
    if row.cells.len() > MOST_CELLS {
        let message = format!(
            "a row has at most {MOST_CELLS} numbers, this one {}",
            row.cells.len()
        );
        return Err(InputError::new(number, message, LOG_HELP));
    }
    Ok(row)
}

fn cell(text: &str, line: &str, number: usize) -> Result<Reading, InputError> {
    let label = line.split_whitespace().next().unwrap_or_default();
    let wrong = |what: &str| InputError::new(number, format!("{label}: `{text}` {what}"), LOG_HELP);
    let reading = Reading::of_text(text).ok_or_else(|| wrong("is no number"))?;
    if reading.is_negative() {
        return Err(wrong("is below 0"));
    }
    Ok(reading)
}
