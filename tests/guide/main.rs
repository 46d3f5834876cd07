//! The guides "Add an engine", "Add a workload", "Add a door for a peer" and "Writing a handler" are followed
//! to the letter in a copy of the tree, all in the same one.
//!
//! In: pages of `docs/book/src`, whose code blocks are marked by comments
//! `<!-- guide: create PATH -->`, `<!-- guide: append PATH -->`, ``<!-- guide: insert PATH after `LINE` -->`` and
//! `<!-- guide: run -->`. The copy lies in the build's own folder and stays there, with its build,
//! so that the second time is fast: only files that differ are written.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, outside of test functions"
)]

mod door;
mod engine;
mod handler;
mod workload;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Step that a comment of the guide asks for.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Create(String),
    Append(String),
    Insert { path: String, after: String },
    Run,
}

/// A tree of files, by path.
type Tree = BTreeMap<String, Vec<u8>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn copy() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide")
}

/// The files of the working tree that git knows or would take; none where there is no git.
fn working_tree() -> Option<Tree> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .current_dir(root())
        .output();
    let listed = listed.ok().filter(|output| output.status.success())?;
    let names = String::from_utf8(listed.stdout).unwrap();
    // A listed file that is gone was deleted and not committed yet.
    let read = |name: &str| Some((name.to_owned(), fs::read(root().join(name)).ok()?));
    Some(names.split_terminator('\0').filter_map(read).collect())
}

/// The guide's steps, each with its block.
fn steps(guide: &str) -> Vec<(Step, String)> {
    let mut steps = Vec::new();
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        let Some(words) = line.strip_prefix("<!-- guide: ") else {
            assert!(
                !line.starts_with("```"),
                "a block without a comment: {line}"
            );
            continue;
        };
        let words = words.strip_suffix(" -->").unwrap();
        let step = match words.split_once(' ') {
            Some(("create", path)) => Step::Create(path.to_owned()),
            Some(("append", path)) => Step::Append(path.to_owned()),
            Some(("insert", rest)) => {
                let (path, after) = rest.split_once(" after `").unwrap();
                Step::Insert {
                    path: path.to_owned(),
                    after: after.strip_suffix('`').unwrap().to_owned(),
                }
            }
            _ => Step::Run,
        };
        assert!(step != Step::Run || words == "run", "{line}");
        lines.find(|line| line.starts_with("```")).unwrap();
        let block = lines.by_ref().take_while(|line| *line != "```");
        steps.push((step, block.flat_map(|line| [line, "\n"]).collect()));
    }
    steps
}

/// Puts `block` after the one line of the file that says `after`.
fn insert(text: &str, after: &str, block: &str) -> String {
    let hits = text.lines().filter(|line| line.trim() == after).count();
    assert_eq!(hits, 1, "`{after}` has to stand in the file once");
    let place = |line: &str| {
        let block = if line.trim() == after { block } else { "" };
        format!("{line}\n{block}")
    };
    text.lines().map(place).collect()
}

/// Applies a step to the files; commands are returned.
fn apply(tree: &mut Tree, step: Step, block: String) -> Vec<String> {
    match step {
        Step::Create(path) => {
            let before = tree.insert(path.clone(), block.into_bytes());
            assert_eq!(before, None, "the guide creates {path}, which exists");
        }
        Step::Insert { path, after } => {
            let file = tree.get_mut(&path);
            let file = file.unwrap_or_else(|| panic!("the guide changes {path}: there is none"));
            let text = String::from_utf8(std::mem::take(file)).unwrap();
            *file = insert(&text, &after, &block).into_bytes();
        }
        Step::Append(path) => {
            let file = tree.get_mut(&path);
            let file = file.unwrap_or_else(|| panic!("the guide adds to {path}: there is none"));
            file.extend(block.into_bytes());
        }
        Step::Run => return block.lines().map(str::to_owned).collect(),
    }
    Vec::new()
}

/// Makes the copy hold these files and nothing else beside its build.
fn write(tree: &Tree) {
    for (name, content) in tree {
        let path = copy().join(name);
        if fs::read(&path).ok().as_ref() != Some(content) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
    remove_others(&copy(), tree);
}

fn remove_others(folder: &Path, tree: &Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(copy()).unwrap().to_str().unwrap();
        if name == "target" {
            continue;
        }
        if path.is_dir() {
            remove_others(&path, tree);
        } else if !tree.contains_key(name) {
            fs::remove_file(path).unwrap();
        }
    }
}

/// Runs a command line of the guide in the copy. Its build needs no network and no other folder, and is the
/// quickest that there is: what the tree has built has other features, so that none of it fits.
fn shell(line: &str) -> Output {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(copy())
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_TEST_OPT_LEVEL", "0")
        // Set for this test's own harness; what is built would depend on it.
        .env_remove("RUSTC_BOOTSTRAP")
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("CARGO_BUILD_TARGET_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {}\n{said}", output.status);
    output
}

fn stdout(line: &str) -> String {
    String::from_utf8(shell(line).stdout).unwrap()
}

/// Error output of a command line that is refused.
fn shell_fails(line: &str) -> String {
    let command = Command::new("sh")
        .args(["-c", line])
        .current_dir(copy())
        .output();
    let output = command.unwrap();
    assert!(!output.status.success(), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

/// The steps of a page, applied to the files; what it runs.
fn follow(tree: &mut Tree, page: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/book/src").join(page)).unwrap();
    let steps = steps(&page).into_iter();
    let commands = steps.flat_map(|(step, block)| apply(tree, step, block));
    commands.collect()
}

/// Runs the lines of a page; what they said.
fn said(commands: &[String]) -> Vec<String> {
    assert!(commands.len() > 1, "the guide runs something");
    commands.iter().map(|line| stdout(line)).collect()
}

#[test]
fn the_guides_work_to_the_letter() {
    let Some(mut tree) = working_tree() else {
        let reason = "the_guides_work_to_the_letter: this tree is not under git";
        if let Ok(path) = std::env::var("WEIR_SKIP_LOG") {
            let log = fs::OpenOptions::new().append(true).create(true).open(path);
            writeln!(log.unwrap(), "{reason}").unwrap();
        }
        return;
    };
    let engine = follow(&mut tree, engine::PAGE);
    let workload = follow(&mut tree, workload::PAGE);
    let handler = follow(&mut tree, handler::PAGE);
    let door = follow(&mut tree, door::PAGE);
    write(&tree);
    engine::check(&said(&engine));
    workload::check(&said(&workload));
    handler::check(&said(&handler));
    door::check(&said(&door));
}

#[test]
fn an_insertion_follows_the_line_that_is_named() {
    let text = "mod a;\n    &a::ENTRY,\nend\n";
    assert_eq!(
        insert(text, "&a::ENTRY,", "    &b::ENTRY,\n"),
        "mod a;\n    &a::ENTRY,\n    &b::ENTRY,\nend\n"
    );
}
