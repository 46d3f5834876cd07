//! The differences that are meant. Each names its row in the table of the book.

use crate::beside::Case;
use crate::differ::{Difference, Topic};

/// A difference that is meant.
pub(crate) struct Allowed {
    /// The first cell of its row in the section "Differences" of `coming-from-fio.md`.
    pub(crate) row: &'static str,
    /// What is allowed to differ.
    pub(crate) topic: Topic,
    /// Whether this is it.
    pub(crate) is: fn(&Case, &Difference) -> bool,
}

/// Lines that fio takes and weir refuses: row and lines.
pub(crate) const STRICTER: &[(&str, &[&str])] = &[];

pub(crate) const ALLOWED: &[Allowed] = &[];

/// The row that allows a difference.
pub(crate) fn row(case: &Case, difference: &Difference) -> Option<&'static str> {
    if difference.topic == Topic::Refused {
        return stricter(difference);
    }
    let fits = |a: &&Allowed| a.topic == difference.topic && (a.is)(case, difference);
    ALLOWED.iter().find(fits).map(|a| a.row)
}

/// The row of the first refused line, where each line that weir points at has one.
fn stricter(difference: &Difference) -> Option<&'static str> {
    let rows: Option<Vec<_>> = pointed_at(&difference.ours)
        .into_iter()
        .map(row_of_line)
        .collect();
    rows?.first().copied()
}

fn row_of_line(line: &str) -> Option<&'static str> {
    let listed = STRICTER.iter().find(|(_, lines)| lines.contains(&line));
    listed.map(|(row, _)| *row)
}

/// The lines of job files that weir's errors point at.
fn pointed_at(errors: &str) -> Vec<&str> {
    let line = |text: &'_ str| -> Option<usize> {
        text.trim_start().split_once(" | ")?.0.trim().parse().ok()
    };
    let lines = errors.lines().filter(|l| line(l).is_some());
    lines
        .map(|l| l.split_once(" | ").unwrap_or_default().1.trim())
        .collect()
}
