//! The repository's own lints: what rustc and clippy cannot say.
//!
//! In: every Rust file of the tree, `unsafe.toml`, the Markdown files. Out:
//! one line per violation, `path:line: what is wrong`.
//! Checked: a header in every module; names that say nothing; file length;
//! names of tests; where `unsafe` may be; links between the texts; the book's lists of its pages.
//! Not here: words (`wording`); SAFETY comments and function length (clippy has those).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{source, wording};

/// Lines a file may have without its test modules.
const FILE_LINES: usize = 500;

/// Names that say where something was put, not what it is.
const EMPTY_NAMES: &[&str] = &[
    "common", "core", "helper", "helpers", "misc", "util", "utils",
];

/// Pages of the book that list the others.
const BOOK_LISTS: &[&str] = &["SUMMARY.md", "index.md"];

/// A Rust file: its path, its text, and the text without comments and literals.
struct File {
    path: String,
    text: String,
    code: String,
}

/// The gate.
pub(crate) fn run() -> Result<()> {
    let rust = ["crates", "xtask", "fuzz", "tests"]
        .iter()
        .map(|folder| files_under(Path::new(folder), "rs"))
        .collect::<Result<Vec<_>>>()?
        .concat();
    let files = rust
        .iter()
        .map(|path| read(path))
        .collect::<Result<Vec<_>>>()?;
    let islands: BTreeMap<String, String> =
        toml::from_str(&std::fs::read_to_string("unsafe.toml")?)
            .context("unsafe.toml: \"path\" = \"why\"")?;

    let mut wrong: Vec<String> = files.iter().flat_map(file_lints).collect();
    wrong.extend(unsafe_lints(&files, &islands));
    wrong.extend(link_lints()?);
    wrong.extend(book_lints()?);
    if !wrong.is_empty() {
        bail!("{} violations\n{}", wrong.len(), wrong.join("\n"));
    }
    println!(
        "{} Rust files, {} unsafe islands",
        files.len(),
        islands.len()
    );
    Ok(())
}

fn read(path: &Path) -> Result<File> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(File {
        path: path.to_string_lossy().into_owned(),
        code: source::code_only(&text),
        text,
    })
}

/// All files with this extension, in order; build outputs and hidden folders
/// are left out.
pub(crate) fn files_under(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !folder.exists() {
        return Ok(found);
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_symlink() || name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            found.extend(files_under(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn file_lints(file: &File) -> Vec<String> {
    let mut wrong = Vec::new();
    if !file.text.starts_with("//!") {
        wrong.push(format!("{}:1: a module starts with `//!`", file.path));
    }
    wrong.extend(length_lint(file));
    wrong.extend(name_lints(file));
    wrong.extend(test_name_lints(file));
    wrong.extend(wording::lints(&file.path, &file.text, &file.code));
    wrong
}

/// Files stay small enough to be read in one go. Files of tests are free.
fn length_lint(file: &File) -> Option<String> {
    let is_tests = file.path.contains("/tests/") || file.path.ends_with("tests.rs");
    let tests: usize = source::test_modules(&file.code)
        .iter()
        .map(ExactSizeIterator::len)
        .sum();
    let lines = file.text.lines().count() - tests;
    (lines > FILE_LINES && !is_tests).then(|| {
        format!(
            "{}:1: {lines} lines without tests, {FILE_LINES} is the limit: split it by topic",
            file.path
        )
    })
}

/// Crates, folders, files and inline modules have a name that says what
/// they are.
fn name_lints(file: &File) -> Vec<String> {
    let stem = file.path.trim_end_matches(".rs");
    let from_path = stem
        .split('/')
        .flat_map(|part| part.split('-'))
        .map(|name| (1, name));
    let words = source::words(&file.code);
    let inline = words
        .windows(2)
        .filter(|pair| pair[0].1 == "mod")
        .map(|pair| pair[1]);
    from_path
        .chain(inline)
        .filter(|(_, name)| EMPTY_NAMES.contains(name))
        .map(|(line, name)| format!("{}:{line}: `{name}` says nothing: name the idea", file.path))
        .collect()
}

/// A test's name is a sentence.
fn test_name_lints(file: &File) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut is_test = false;
    let lines = file.code.lines().enumerate();
    for (line, text) in lines {
        is_test |= text.trim() == "#[test]";
        let words = source::words(text);
        let name = words.windows(2).find(|pair| pair[0].1 == "fn");
        let Some(&[_, (_, name)]) = name else {
            continue;
        };
        if is_test && (name.starts_with("test_") || name == "test") {
            wrong.push(format!(
                "{}:{}: `{name}`: a test's name is a sentence that states the behaviour",
                file.path,
                line + 1
            ));
        }
        is_test = false;
    }
    wrong
}

/// `unsafe` lives on the listed islands; a crate without one forbids it.
fn unsafe_lints(files: &[File], islands: &BTreeMap<String, String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for file in files {
        let lines = source::words(&file.code)
            .into_iter()
            .filter(|(_, word)| *word == "unsafe");
        for (line, _) in lines {
            if islands.contains_key(&file.path) {
                used.insert(file.path.as_str());
            } else {
                wrong.push(format!(
                    "{}:{line}: `unsafe` outside the islands of unsafe.toml",
                    file.path
                ));
            }
        }
    }
    for idle in islands.keys().filter(|path| !used.contains(path.as_str())) {
        wrong.push(format!("unsafe.toml: {idle} holds no `unsafe`"));
    }
    for root in files.iter().filter(|file| is_crate_root(&file.path)) {
        let source = root
            .path
            .trim_end_matches("lib.rs")
            .trim_end_matches("main.rs");
        let has_island = islands.keys().any(|path| path.starts_with(source));
        if !has_island && !root.code.contains("#![forbid(unsafe_code)]") {
            wrong.push(format!("{}:1: needs `#![forbid(unsafe_code)]`", root.path));
        }
    }
    wrong
}

fn is_crate_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs")
}

/// Relative links in the Markdown files lead to files that exist.
fn link_lints() -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for folder in ["docs", "bench", "crates", "examples", "tests"] {
        texts.extend(files_under(Path::new(folder), "md")?);
    }
    for entry in std::fs::read_dir(".")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            texts.push(path);
        }
    }
    let mut wrong = Vec::new();
    for path in texts {
        let text = std::fs::read_to_string(&path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for (line, target) in links(&text) {
            if !folder.join(target).exists() {
                let path = path.display();
                wrong.push(format!(
                    "{path}:{line}: the link to `{target}` leads nowhere"
                ));
            }
        }
    }
    Ok(wrong)
}

/// The book's contents and its first page list all other pages.
fn book_lints() -> Result<Vec<String>> {
    let book = Path::new("docs/book/src");
    let pages = files_under(book, "md")?;
    let pages = pages.iter().filter_map(|page| page.file_name()?.to_str());
    let pages: Vec<&str> = pages.collect();
    let mut wrong = Vec::new();
    for list in BOOK_LISTS {
        let list = book.join(list);
        let text = std::fs::read_to_string(&list)?;
        let missing = missing_pages(&text, &pages).into_iter();
        wrong.extend(missing.map(|page| format!("{}:1: no link to {page}", list.display())));
    }
    Ok(wrong)
}

/// Pages that a list does not link to, but for the two lists.
fn missing_pages<'a>(list: &str, pages: &[&'a str]) -> Vec<&'a str> {
    let listed: BTreeSet<&str> = links(list).into_iter().map(|(_, target)| target).collect();
    let others = pages.iter().filter(|page| !BOOK_LISTS.contains(page));
    others
        .filter(|page| !listed.contains(*page))
        .copied()
        .collect()
}

/// The targets of `[text](target)` that are files of this tree, with lines.
fn links(markdown: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in markdown.lines().enumerate() {
        for after in text.split("](").skip(1) {
            let target = after.split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                found.push((line + 1, target));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
            code: source::code_only(text),
        }
    }

    #[test]
    fn a_good_file_passes() {
        let good = file("crates/a/src/pacing.rs", "//! Pacing.\n\nfn run() {}\n");
        assert_eq!(file_lints(&good), [""; 0]);
    }

    #[test]
    fn a_module_without_a_header_is_named() {
        let wrong = file_lints(&file("crates/a/src/b.rs", "fn run() {}\n"));
        assert_eq!(wrong, ["crates/a/src/b.rs:1: a module starts with `//!`"]);
    }

    #[test]
    fn tests_do_not_count_for_the_length_of_a_file() {
        let code = "fn a() {}\n".repeat(490);
        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "    fn b() {}\n".repeat(90)
        );
        let text = format!("//! Long.\n{code}{tests}");
        assert_eq!(length_lint(&file("crates/a/src/b.rs", &text)), None);
        let text = format!("//! Long.\n{code}{code}");
        let wrong = length_lint(&file("crates/a/src/b.rs", &text)).unwrap();
        assert!(wrong.contains("981 lines without tests"), "{wrong}");
        assert_eq!(length_lint(&file("crates/a/tests/b.rs", &text)), None);
    }

    #[test]
    fn empty_names_are_refused_for_crates_files_and_inline_modules() {
        let named = |path, text| name_lints(&file(path, text)).len();
        assert_eq!(named("crates/weir-core/src/lib.rs", "//! A."), 1);
        assert_eq!(named("crates/weir-run/src/utils.rs", "//! A."), 1);
        assert_eq!(named("crates/weir-run/src/a.rs", "//! A.\nmod misc {}"), 1);
        assert_eq!(
            named("crates/weir-run/src/a.rs", "use core::mem; // mod misc"),
            0
        );
    }

    #[test]
    fn a_test_whose_name_begins_with_test_is_refused() {
        let text = "//! A.\n#[test]\nfn test_b() {}\nfn test_bench() {}\n#[test]\nfn b_is_c() {}\n";
        let wrong = test_name_lints(&file("crates/a/src/a.rs", text));
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("crates/a/src/a.rs:3: `test_b`"));
    }

    #[test]
    fn unsafe_is_allowed_on_the_islands_alone() {
        let island = file("crates/a/src/raw.rs", "//! A.\nunsafe fn a() {}\n");
        let root = file("crates/a/src/lib.rs", "//! A. unsafe in words\n");
        let islands = |path: &str| BTreeMap::from([(path.to_owned(), "why".to_owned())]);
        let files = [island, root];
        assert_eq!(
            unsafe_lints(&files, &islands("crates/a/src/raw.rs")),
            [""; 0]
        );
        assert_eq!(
            unsafe_lints(&files, &BTreeMap::new()),
            [
                "crates/a/src/raw.rs:2: `unsafe` outside the islands of unsafe.toml",
                "crates/a/src/lib.rs:1: needs `#![forbid(unsafe_code)]`",
            ]
        );
        let wrong = unsafe_lints(&files[1..], &islands("crates/a/src/raw.rs"));
        assert_eq!(
            wrong,
            ["unsafe.toml: crates/a/src/raw.rs holds no `unsafe`"]
        );
    }

    #[test]
    fn links_to_files_are_found_and_addresses_are_not() {
        let text = "see [a](b.md#c) and\n[d](https://e.org) [f](#g) [h](../i/j.md)";
        assert_eq!(links(text), [(1, "b.md"), (2, "../i/j.md")]);
    }

    #[test]
    fn a_page_that_a_list_of_the_book_lacks_is_named() {
        let pages = ["SUMMARY.md", "a.md", "b.md", "index.md"];
        let list = "- [A](a.md): first\n";
        assert_eq!(missing_pages(list, &pages), ["b.md"]);
    }
}
