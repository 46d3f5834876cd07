//! Agreement of the allowed differences with the book: each is in it, and no more is allowed than
//! its row says.

use crate::allowed::{ALLOWED, row};
use crate::beside::{Case, Kind};
use crate::differ::{Difference, Topic};
use crate::stricter::STRICTER;

/// First cells of the tables of differences, which all have the same head.
fn rows(book: &str) -> Vec<&str> {
    let (_, section) = book.split_once("\n## Differences\n").unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with('|'));
    let cells = lines.map(|line| line.split('|').nth(1).unwrap_or_default().trim());
    cells
        .filter(|cell| *cell != "option or behaviour" && !cell.starts_with("---"))
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

fn case_of(text: &str) -> Case {
    Case {
        seed: 0,
        number: 0,
        kind: Kind::Run,
        files: vec![("j.fio".to_owned(), text.to_owned())],
        words: vec!["j.fio".to_owned()],
    }
}

fn difference(topic: Topic, theirs: &str, ours: &str) -> Difference {
    Difference {
        topic,
        theirs: theirs.to_owned(),
        ours: ours.to_owned(),
        output: String::new(),
    }
}

/// A job of which nothing may differ, however much does.
#[test]
fn nothing_is_allowed_to_differ_in_a_plain_job() {
    let case = case_of("[one]\nioengine=psync\nrw=write\nbs=4k\nsize=64k\n");
    for (theirs, ours) in [
        ("16", "17"),
        ("65536", "4096"),
        ("one.0.0 65536", "one.0.0 0"),
        (
            "\"one\" io_bytes [0, 65536, 0, 0]",
            "\"one\" io_bytes [0, 4096, 0, 0]",
        ),
        ("one: Laying out IO file (1 file / 1MiB)", ""),
        ("--name=one --rw=write", "--name=one --rw=read"),
        ("one.0.0 Some(\"65536 bytes\")", "one.0.0 None"),
    ] {
        for topic in Topic::ALL {
            let found = difference(topic, theirs, ours);
            assert_eq!(row(&case, &found), None, "{found}");
        }
    }
}

/// A difference that a job may have is not allowed to its neighbours, nor another difference to the
/// job.
#[test]
fn a_row_allows_no_more_than_its_reason_says() {
    let counts = |name: &str, reads: u64, writes: u64| {
        format!("\"{name}\" total_ios [{reads}, {writes}, 0, 0]")
    };
    let plain = "[one]\nrw=write\nsize=64k\n";
    for (job, theirs, ours) in [
        // Writes are as many, whatever is read back; and a job that only reads has no such choice.
        ("rw=randwrite\nnorandommap\nverify=md5", (9, 16), (11, 17)),
        ("rw=randread\nnorandommap", (16, 0), (17, 0)),
        ("rw=write\nverify=md5", (16, 16), (15, 16)),
        // Never less than the region, and a block of each file more at most.
        ("rw=read\nopendir=many", (2, 0), (3, 0)),
        ("rw=read\nopendir=many", (9, 0), (6, 0)),
        // A job ends early, and not late.
        ("rw=randread\nrandom_distribution=zipf", (8, 0), (7, 0)),
    ] {
        let case = case_of(&format!("[two]\nsize=64k\n{job}\n{plain}"));
        let (theirs, ours) = (
            counts("two", theirs.0, theirs.1),
            counts("two", ours.0, ours.1),
        );
        let found = difference(Topic::Counts, &theirs, &ours);
        assert_eq!(row(&case, &found), None, "{job}: {found}");
    }
    for job in [
        "rw=randwrite\nnorandommap\nverify=md5",
        "rw=read\nopendir=many",
        "rw=randread\nrandom_distribution=zipf",
        "rw=write\nfilesize=1m",
        "rw=write\nnrfiles=2\nfilename_format=all",
        "ioengine=null\nnrfiles=2",
        "name=other",
    ] {
        let case = case_of(&format!("[two]\nsize=64k\n{job}\n{plain}"));
        for (theirs, ours) in [((0, 16), (0, 17)), ((3, 16), (2, 16)), ((2, 16), (3, 16))] {
            let (theirs, ours) = (
                counts("one", theirs.0, theirs.1),
                counts("one", ours.0, ours.1),
            );
            let found = difference(Topic::Counts, &theirs, &ours);
            assert_eq!(row(&case, &found), None, "beside {job}: {found}");
        }
        let shown = [
            "--name=two --name=one --rw=write",
            "--name=two --name=one --rw=read",
        ];
        let found = difference(Topic::Shown, shown[0], shown[1]);
        assert_eq!(row(&case, &found), None, "{job}: {found}");
        let found = difference(
            Topic::Entries,
            "one: (groupid=0, jobs=1): err= 0",
            "one: (groupid=0, jobs=1): err= 5",
        );
        assert_eq!(row(&case, &found), None, "{job}: {found}");
    }
}
