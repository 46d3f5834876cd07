//! Results that an earlier build stored, and words given by a peer's name: what is printed stays the same,
//! byte for byte.
//!
//! In: `tests/fixtures/<door>`, which holds stored results, what `weir show` prints of them (`show.txt`) and
//! what a peer's name answers where no time is measured (`by-name.txt`). In both a line that begins with
//! `@@` is a command line, its exit code, the beginning of standard error, or the absence of a last newline.
//! `WEIR_WRITE_FIXTURES=1` writes what this build prints in their place, for changes that are meant.

use std::fs;
use std::path::Path;

use crate::stage::{Stage, WEIR, peer, root, said};

/// The doors that measure, with their files.
const FILES: [(&str, &[&str]); 8] = [
    ("run", &["show.txt"]),
    ("fio", &["show.txt", "by-name.txt"]),
    ("kio", &["show.txt", "by-name.txt"]),
    ("nvme-perf", &["show.txt", "by-name.txt"]),
    ("beff", &["show.txt", "by-name.txt"]),
    ("net", &["show.txt"]),
    ("axio", &["show.txt", "by-name.txt"]),
    ("selftest", &["show.txt", "by-name.txt"]),
];

const MARK: &str = "@@ ";
const EXIT: &str = "@@ exit ";
const ERR: &str = "@@ err";
const NO_NEWLINE: &str = "@@ no newline at the end";

/// The command of a line, where it has one.
fn command_of(line: &str) -> Option<&str> {
    let is_other = [EXIT, ERR, NO_NEWLINE].iter().any(|m| line.starts_with(m));
    line.strip_prefix(MARK).filter(|_| !is_other)
}

/// The words of a command; those in quotes are one.
fn words(command: &str) -> Vec<&str> {
    let parts = command.split('"').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    parts.collect::<Vec<Vec<_>>>().concat()
}

/// A copy of a door's folder, as far as commands read it.
fn stage_of(folder: &Path) -> Stage {
    let stage = Stage::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "txt") {
            let name = path.file_name().unwrap().to_str().unwrap();
            fs::copy(&path, stage.path(name)).unwrap();
        }
    }
    stage
}

/// The text that stands for a stream.
fn kept(text: &str) -> String {
    assert!(!text.lines().any(|line| line.starts_with(MARK)), "{text}");
    if text.is_empty() || text.ends_with('\n') {
        return text.to_owned();
    }
    format!("{text}\n{NO_NEWLINE}\n")
}

/// The file as this build makes it, by the commands that stand in it.
fn made_again(stage: &Stage, file: &str) -> String {
    let one = |command: &str| {
        let words = words(command);
        let mut process = match words[0] {
            "weir" => stage.command(WEIR),
            name => stage.command(peer(name)),
        };
        process.args(&words[1..]).env("TZ", "UTC");
        let said = said(process);
        let err = match &*said.err {
            "" => String::new(),
            err => format!("{ERR}\n{}", kept(err)),
        };
        let (code, out) = (said.code.unwrap(), kept(&said.out));
        format!("{MARK}{command}\n{EXIT}{code}\n{out}{err}")
    };
    file.lines().filter_map(command_of).map(one).collect()
}

/// The first line that differs, with its command.
fn difference(file: &str, expected: &str, found: &str) -> Option<String> {
    if expected == found {
        return None;
    }
    let (mut theirs, mut ours) = (expected.split('\n'), found.split('\n'));
    let (mut command, mut number) = ("", 0);
    loop {
        number += 1;
        let (was, is) = (theirs.next(), ours.next());
        command = was.and_then(command_of).unwrap_or(command);
        if was != is {
            let shown =
                |line: Option<&str>| line.map_or("(the end)".to_owned(), |l| format!("{l:?}"));
            let (was, is) = (shown(was), shown(is));
            return Some(format!(
                "{file}:{number}: {command}\n  was {was}\n  is  {is}"
            ));
        }
    }
}

#[test]
fn stored_results_and_peers_names_print_the_bytes_that_they_printed() {
    let is_written = std::env::var_os("WEIR_WRITE_FIXTURES").is_some();
    let mut differences = Vec::new();
    for (door, files) in FILES {
        let folder = root().join("tests/fixtures").join(door);
        let stage = stage_of(&folder);
        for file in files {
            let expected = fs::read_to_string(folder.join(file)).unwrap();
            assert!(expected.starts_with(MARK), "{door}/{file} holds no command");
            let found = made_again(&stage, &expected);
            if is_written {
                fs::write(folder.join(file), &found).unwrap();
            }
            let path = format!("tests/fixtures/{door}/{file}");
            differences.extend(difference(&path, &expected, &found));
        }
    }
    assert!(
        is_written || differences.is_empty(),
        "{}",
        differences.join("\n")
    );
}

#[test]
fn a_difference_is_named_by_its_line_and_command() {
    let expected = "@@ fio -v\n@@ exit 0\nfio-3\n";
    assert_eq!(difference("f", expected, expected), None);
    for (found, says) in [
        (
            "@@ fio -v\n@@ exit 0\nfio-4\n",
            "f:3: fio -v\n  was \"fio-3\"\n  is  \"fio-4\"",
        ),
        (
            "@@ fio -v\n@@ exit 0\n",
            "f:3: fio -v\n  was \"fio-3\"\n  is  \"\"",
        ),
        (
            "@@ fio -v\n@@ exit 0\nfio-3",
            "f:4: fio -v\n  was \"\"\n  is  (the end)",
        ),
    ] {
        assert_eq!(difference("f", expected, found).as_deref(), Some(says));
    }
}
