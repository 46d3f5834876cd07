//! The differences that are meant. Each names its row in the table of the book.

use crate::beside::{Case, Kind};
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

type IsStricter = fn(&str, &str) -> bool;

/// What fio takes and weir refuses: row, and whether an option with its value is this.
const STRICTER: &[(&str, IsStricter)] = &[
    (
        "an engine that needs no file, without `size`",
        |key, value| key == "ioengine" && value == "null",
    ),
    (
        "numbers with more behind them (`bs=1x`, `rwmixread=50%`)",
        |key, value| {
            matches!(
                (key, value),
                ("rwmixread", "50%") | ("rw" | "readwrite", "randread:x")
            )
        },
    ),
    ("shares of more than 100% (`size=101%`)", |_, value| {
        value == "101%"
    }),
    ("`mem=malloc:FILE`", |_, value| value == "malloc:file"),
    ("`cpus_allowed=x`", |key, value| {
        key == "cpus_allowed" && value == "x"
    }),
    (
        "a switch with another number (`group_reporting=2`)",
        |_, value| value == "2",
    ),
    ("a negative number", |_, value| value.starts_with('-')),
    ("a number that its option cannot hold", |_, value| {
        value == "4g"
    }),
];

/// How options fit together, which fio looks at only when it runs.
const PARSE_ONLY: &str = "`--parse-only`";
const RELATED: &[&str] = &[
    "job.none",
    "job.engine",
    "job.conflict",
    "job.wait",
    "job.group",
];

const fn allow(row: &'static str, topic: Topic, is: fn(&Case, &Difference) -> bool) -> Allowed {
    Allowed { row, topic, is }
}

pub(crate) const ALLOWED: &[Allowed] = &[
    allow(
        "a region smaller than `filesize`",
        Topic::Counts,
        |case, _| case.mentions("filesize"),
    ),
    allow(NO_ROOM, Topic::Exit, |_, found| no_room(found)),
    allow(NO_ROOM, Topic::Layout, |_, found| no_room(found)),
    allow(NO_ROOM, Topic::Entries, |_, found| no_room(found)),
    allow(SHORTER, Topic::Layout, |_, found| never_grows(found)),
    allow(SHORTER, Topic::Counts, |_, found| never_grows(found)),
    allow(
        "how often `fdatasync` was called, in JSON",
        Topic::Counts,
        |case, found| {
            case.mentions("fdatasync")
                && (found.theirs.contains("short_ios") || found.theirs.contains("Number"))
        },
    ),
    allow(SIZELESS, Topic::Entries, |case, _| sizeless(case)),
    allow(SIZELESS, Topic::Counts, |case, _| sizeless(case)),
    allow(NO_ROOM, Topic::Refused, |_, found| {
        let errors = refusals(&found.ours);
        errors.iter().all(|(code, _)| *code == "job.conflict")
            && found
                .ours
                .contains("must not be less than minimum block size")
    }),
    allow(
        "`filename` in a global section and again in the job",
        Topic::Layout,
        |case, _| twice_named(case),
    ),
    allow(
        "`filename` in a global section and again in the job",
        Topic::Counts,
        |case, _| twice_named(case),
    ),
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
            let reason = case.text().contains("rw") || case.text().contains("readwrite=readwrite");
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

const SHORTER: &str = "a read job on a file that is shorter than `size`";

fn never_grows(found: &Difference) -> bool {
    found.told.contains("(a file never grows for a read job)")
}

fn twice_named(case: &Case) -> bool {
    case.text()
        .lines()
        .filter(|l| l.trim().starts_with("filename="))
        .count()
        > 1
}

const SIZELESS: &str = "`offset` on a character device";

fn sizeless(case: &Case) -> bool {
    case.text().contains("/dev/zero") && case.text().contains("offset")
}

const NO_ROOM: &str = "a block that is larger than `size`";

fn no_room(found: &Difference) -> bool {
    found.told.contains("is smaller than a block of")
}

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
        && let Some(row) = stricter(case, difference)
    {
        return Some(row);
    }
    let fits = |a: &&Allowed| a.topic == difference.topic && (a.is)(case, difference);
    ALLOWED.iter().find(fits).map(|a| a.row)
}

/// The row of the first refusal, where each of them has one.
fn stricter(case: &Case, difference: &Difference) -> Option<&'static str> {
    let rows: Option<Vec<_>> = refusals(&difference.ours)
        .into_iter()
        .map(|(code, line)| {
            let related = RELATED.contains(&code) && case.kind == Kind::Parse;
            if related {
                Some(PARSE_ONLY)
            } else {
                row_of_line(line)
            }
        })
        .collect();
    rows?.first().copied()
}

fn row_of_line(line: &str) -> Option<&'static str> {
    let line = line.trim_start_matches('-').split([';', '#']).next()?;
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    let listed = STRICTER.iter().find(|(_, is)| is(key.trim(), value.trim()));
    listed.map(|(row, _)| *row)
}

/// Code and line of each error that weir tells.
fn refusals(errors: &str) -> Vec<(&str, &str)> {
    errors
        .split("error[")
        .skip(1)
        .map(|part| (part.split(']').next().unwrap_or_default(), quoted(part)))
        .collect()
}

/// The line that an error shows behind its number.
fn quoted(error: &str) -> &str {
    let mut lines = error.lines().filter_map(|line| line.split_once(" | "));
    let numbered = lines.find(|(number, _)| number.trim().parse::<usize>().is_ok());
    numbered.map_or("", |(_, line)| line.trim())
}

/// First cells of the table of differences.
fn rows(book: &str) -> Vec<&str> {
    let table = book.split("## Differences").nth(1).unwrap_or_default();
    let rows = table.lines().filter(|l| l.starts_with('|')).skip(2);
    rows.map(|l| l.split('|').nth(1).unwrap_or_default().trim())
        .collect()
}

#[test]
fn every_difference_that_is_allowed_has_a_row_in_the_book() {
    let path = crate::stage::root().join("docs/book/src/coming-from-fio.md");
    let book = std::fs::read_to_string(path).unwrap();
    let rows = rows(&book);
    let allowed = ALLOWED
        .iter()
        .map(|a| a.row)
        .chain(STRICTER.iter().map(|s| s.0));
    for row in allowed {
        assert!(rows.contains(&row), "no row `{row}` in the table");
    }
    let mut unique = rows.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), rows.len(), "a row stands twice");
}
