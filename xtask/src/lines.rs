//! Lines: how much code the product is.
//!
//! In: the Rust files of the crates. Out: for each crate, and for all, the lines that hold code:
//! no blank lines, no comments, no tests, no examples. A figure to steer by, no gate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{lints, source};

/// The verb.
pub(crate) fn run(_: &[String]) -> Result<()> {
    let mut crates: BTreeMap<String, usize> = BTreeMap::new();
    let mut texts = BTreeMap::new();
    for path in lints::files_under(Path::new("crates"), "rs")? {
        let text = std::fs::read_to_string(&path)?;
        texts.insert(path, text);
    }
    let tests: BTreeSet<PathBuf> = texts
        .iter()
        .flat_map(|(path, text)| files_of_tests(path, text))
        .collect();
    for (path, text) in texts.iter().filter(|(path, _)| !tests.contains(*path)) {
        if let Some(name) = product(&path.to_string_lossy()) {
            *crates.entry(name.to_owned()).or_default() += lines_of_code(text);
        }
    }
    for (name, lines) in &crates {
        println!("{lines:7}  {name}");
    }
    println!("{:7}  all", crates.values().sum::<usize>());
    Ok(())
}

/// The crate of a file that is part of the program.
fn product(path: &str) -> Option<&str> {
    let (name, file) = path.strip_prefix("crates/")?.split_once('/')?;
    let inside = file.strip_prefix("src/")?;
    let is_test = inside
        .split('/')
        .any(|part| part == "tests" || part == "tests.rs");
    // Of plans and results for tests, behind a feature.
    let is_sample = inside.starts_with("sample");
    // Kernels for tests.
    let is_lab = name == "weir-lab";
    (!is_test && !is_sample && !is_lab).then_some(name)
}

/// The files of modules that only tests have: `#[cfg(test)] mod sample;` of `output/mod.rs` is
/// `output/sample.rs`.
fn files_of_tests(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => path.with_file_name(""),
        _ => path.with_extension(""),
    };
    let parts = text.split("#[cfg(test)]").skip(1);
    let module = |part: &str| {
        let words: Vec<&str> = part.lines().nth(1)?.split_whitespace().collect();
        let [.., "mod", name] = words[..] else {
            return None;
        };
        Some(folder.join(name.strip_suffix(';')?).with_extension("rs"))
    };
    parts.filter_map(module).collect()
}

/// Lines that hold more than blanks and comments, and lie in no module of tests.
fn lines_of_code(text: &str) -> usize {
    let code = source::without_comments(text);
    let tests = source::test_modules(&source::code_only(text));
    let lines = code.lines().enumerate();
    lines
        .filter(|(at, line)| {
            !line.trim().is_empty() && !tests.iter().any(|module| module.contains(at))
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_tests_is_a_file_beside_or_below() {
        let text = "#[cfg(test)]\npub(crate) mod sample;\nmod text;\n#[cfg(test)]\nmod tests {}\n";
        let files = |path| files_of_tests(Path::new(path), text);
        assert_eq!(files("a/mod.rs"), [Path::new("a/sample.rs")]);
        assert_eq!(files("a/b.rs"), [Path::new("a/b/sample.rs")]);
    }

    #[test]
    fn comments_blanks_and_tests_are_no_code_and_texts_are() {
        let text = "//! A.\n\nfn a() {\n    // why\n    b(\"one\n    two\");\n}\n\n\
                    #[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
        assert_eq!(lines_of_code(text), 4);
    }

    #[test]
    fn files_of_tests_examples_and_samples_are_no_product() {
        assert_eq!(product("crates/weir-run/src/gate.rs"), Some("weir-run"));
        for path in [
            "crates/weir-run/tests/scripted_runs/execute.rs",
            "crates/weir-run/src/a/tests.rs",
            "crates/weir-run/src/a/tests/b.rs",
            "crates/weir-run/examples/loop_cost.rs",
            "crates/weir-schema/src/sample.rs",
            "crates/weir-lab/src/serial.rs",
        ] {
            assert_eq!(product(path), None, "{path}");
        }
    }
}
