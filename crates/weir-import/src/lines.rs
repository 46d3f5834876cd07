//! Lines of a text with their numbers, and numbers within them.

use crate::error::ImportError;

/// A line without its end, and its number from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) text: &'a str,
}

/// The lines of a text whose program ends each of them.
///
/// # Errors
/// The last line has no end: the text was cut.
pub(crate) fn ended_lines(text: &str) -> Result<Vec<Line<'_>>, ImportError> {
    let lines: Vec<Line<'_>> = text
        .lines()
        .enumerate()
        .map(|(at, text)| Line {
            number: at + 1,
            text,
        })
        .collect();
    if text.ends_with('\n') {
        return Ok(lines);
    }
    Err(ends_early(text, "the last line has no end"))
}

/// A text that ends before it should.
pub(crate) fn ends_early(text: &str, why: &str) -> ImportError {
    let line = text.lines().count().max(1);
    ImportError::new(line, format!("the text ends too early: {why}"))
}

impl<'a> Line<'a> {
    pub(crate) fn error(self, message: impl std::fmt::Display) -> ImportError {
        ImportError::new(self.number, message)
    }

    /// Text behind `label` and a colon.
    pub(crate) fn value_of(self, label: &str) -> Option<&'a str> {
        let rest = self.text.trim_start().strip_prefix(label)?;
        Some(rest.trim_start().strip_prefix(':')?.trim())
    }

    /// A finite number.
    pub(crate) fn number(self, text: &str) -> Result<f64, ImportError> {
        let text = text.trim();
        let number = text.parse().ok().filter(|n: &f64| n.is_finite());
        number.ok_or_else(|| self.error(format!("`{text}` is no number")))
    }

    /// The number that begins a text, with the unit that follows it.
    pub(crate) fn number_with_unit(self, text: &'a str) -> Result<(f64, &'a str), ImportError> {
        let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        Ok((self.number(number)?, unit.trim()))
    }

    /// The word at a place.
    pub(crate) fn column(self, words: &[&'a str], at: usize) -> Result<&'a str, ImportError> {
        let word = words.get(at).copied();
        word.ok_or_else(|| self.error(format!("column {} is missing", at + 1)))
    }
}
