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
pub(crate) const STRICTER: &[(&str, &[&str])] = &[(
    "an engine that needs no file, without `size`",
    &["ioengine=null", "--ioengine=null"],
)];

const fn allow(row: &'static str, topic: Topic, is: fn(&Case, &Difference) -> bool) -> Allowed {
    Allowed { row, topic, is }
}

pub(crate) const ALLOWED: &[Allowed] = &[
    allow(
        "block sizes that differ, at random offsets",
        Topic::Counts,
        |case, _| several_sizes(case) && case.text().contains("rand"),
    ),
    allow(
        "a region that ends within a block",
        Topic::Counts,
        |case, found| {
            let (theirs, ours) = (sum(&found.theirs), sum(&found.ours));
            let blocks = if found.theirs.contains("total_ios") {
                1
            } else {
                64 << 10
            };
            let reason = case.mentions("filesize") || case.text().contains("rw");
            reason && theirs > ours && theirs - ours <= 18 * blocks
        },
    ),
    allow("an entry of nobody", Topic::Entries, |_, found| {
        let theirs = found.theirs.replace(", \"null 4294967295 0\"", "");
        let theirs = theirs.replace("\"null 4294967295 0\"", "");
        theirs == found.ours && theirs != found.theirs
    }),
    allow(
        "`--showcmd` of a job with `name=`",
        Topic::Shown,
        |case, _| case.mentions("name"),
    ),
    allow(
        "`--showcmd` with a global section below a job",
        Topic::Shown,
        |case, _| {
            let text = case.text();
            text.rfind("[global")
                .is_some_and(|at| text[..at].contains("[one]"))
        },
    ),
    allow(
        "`--showcmd` of words that a shell would split",
        Topic::Shown,
        |_, found| found.ours.replace('\'', "") == found.theirs,
    ),
    allow(
        "`--showcmd` with a job of the command line",
        Topic::Shown,
        |case, _| case.words.iter().any(|w| w.starts_with("--name=")),
    ),
    allow(
        "`--section` that names nothing",
        Topic::Refused,
        |case, _| case.words.iter().any(|w| w == "--section=nobody"),
    ),
];

fn several_sizes(case: &Case) -> bool {
    let split = |l: &str| {
        let (key, value) = l.split_once('=').unwrap_or_default();
        match key.trim().trim_start_matches('-') {
            "bs" | "blocksize" => value.contains(','),
            key => key.starts_with("bsrange") || key == "bssplit" || key == "blocksize_range",
        }
    };
    case.text().lines().any(split)
}

/// The sum of the numbers in brackets.
fn sum(text: &str) -> u64 {
    let list = text
        .rsplit_once('[')
        .unwrap_or_default()
        .1
        .trim_end_matches(']');
    list.split(", ").filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// The row that allows a difference.
pub(crate) fn row(case: &Case, difference: &Difference) -> Option<&'static str> {
    if difference.topic == Topic::Refused
        && let Some(row) = stricter(difference)
    {
        return Some(row);
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
