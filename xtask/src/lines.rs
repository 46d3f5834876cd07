//! Lines: how much code the product is, and its budgets.
//!
//! In: the files of the crates, `native` and `budgets.toml`. Out: for each crate, and for all, the
//! lines that hold code: no blank lines, no comments, no tests, no examples; apart from these,
//! scripts of pages, C and samples; doors and families beside their budgets. The gate fails where a
//! part is above its budget.

mod budgets;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::{lints, source};
use budgets::Budgets;

/// The verb.
pub(crate) fn run(_: &[String]) -> Result<()> {
    let count = Count::of_tree()?;
    let crates = count.crates();
    for (name, lines) in &crates {
        println!("{lines:7}  {name}");
    }
    println!("{:7}  all\n\nbeside them:", crates.values().sum::<usize>());
    for (name, lines) in &count.beside {
        println!("{lines:7}  {name}");
    }
    println!("\n{}", Budgets::read()?.table(&count.files));
    Ok(())
}

/// The gate.
pub(crate) fn gate() -> Result<()> {
    let budgets = Budgets::read()?;
    let count = Count::of_tree()?;
    print!("{}", budgets.table(&count.files));
    let wrong = budgets.exceeded(&count.files);
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// Lines of code of a tree.
struct Count {
    /// Files of the product, by path.
    files: BTreeMap<String, usize>,
    /// Code that is no part of the total, by what it is.
    beside: BTreeMap<&'static str, usize>,
}

impl Count {
    fn of_tree() -> Result<Self> {
        let mut texts = BTreeMap::new();
        for path in lints::files_under(Path::new("crates"), "rs")? {
            let text = std::fs::read_to_string(&path)?;
            texts.insert(path, text);
        }
        let tests: BTreeSet<PathBuf> = texts
            .iter()
            .flat_map(|(path, text)| files_of_tests(path, text))
            .collect();
        let mut files = BTreeMap::new();
        let mut samples = 0;
        for (path, text) in texts.iter().filter(|(path, _)| !tests.contains(*path)) {
            let path = path.to_string_lossy();
            match part(&path) {
                Some(Part::Product) => {
                    files.insert(path.into_owned(), lines_of_code(text));
                }
                Some(Part::Sample) => samples += lines_of_code(text),
                None => (),
            }
        }
        let beside = [
            ("scripts of pages", foreign("crates", &["js"])?),
            ("C in native", foreign("native", &["c", "h"])?),
            ("samples", samples),
        ];
        Ok(Self {
            files,
            beside: beside.into(),
        })
    }

    fn crates(&self) -> BTreeMap<&str, usize> {
        let mut crates = BTreeMap::new();
        for (path, lines) in &self.files {
            let name = path.split('/').nth(1).unwrap_or_default();
            *crates.entry(name).or_default() += lines;
        }
        crates
    }
}

/// Lines of code in files of other languages, whose comments look like those of Rust.
fn foreign(folder: &str, extensions: &[&str]) -> Result<usize> {
    let mut lines = 0;
    for extension in extensions {
        for path in lints::files_under(Path::new(folder), extension)? {
            let is_product =
                folder != "crates" || path.components().any(|c| c.as_os_str() == "src");
            if is_product {
                lines += lines_of_code(&std::fs::read_to_string(path)?);
            }
        }
    }
    Ok(lines)
}

#[derive(Debug, PartialEq)]
enum Part {
    /// Code of the program.
    Product,
    /// Plans and results for tests, entries for fuzz targets, behind a feature.
    Sample,
}

/// The part of the tree that a Rust file belongs to; `None` for tests, examples and the lab, which
/// is no part of the program.
fn part(path: &str) -> Option<Part> {
    let (name, file) = path.strip_prefix("crates/")?.split_once('/')?;
    let inside = file.strip_prefix("src/")?;
    let is_test = inside
        .split('/')
        .any(|part| part == "tests" || part == "tests.rs");
    if is_test || name == "weir-lab" {
        return None;
    }
    Some(
        if inside.starts_with("sample") || inside.ends_with("fuzzing.rs") {
            Part::Sample
        } else {
            Part::Product
        },
    )
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
    fn files_of_tests_and_examples_are_no_product_and_samples_stand_apart() {
        assert_eq!(part("crates/weir-run/src/gate.rs"), Some(Part::Product));
        for path in ["sample.rs", "sample/everything.rs"] {
            let path = format!("crates/weir-schema/src/{path}");
            assert_eq!(part(&path), Some(Part::Sample), "{path}");
        }
        for path in [
            "crates/weir-run/tests/scripted_runs/execute.rs",
            "crates/weir-run/src/a/tests.rs",
            "crates/weir-run/src/a/tests/b.rs",
            "crates/weir-run/examples/loop_cost.rs",
            "crates/weir-lab/src/serial.rs",
        ] {
            assert_eq!(part(path), None, "{path}");
        }
    }

    #[test]
    fn scripts_and_c_are_counted_without_comments() {
        let script = "// A.\nconst a = 'b';\n\n/* one\n   two */\ndraw(a);\n";
        assert_eq!(lines_of_code(script), 2);
        let c = "/* SPDX */\n#include <a.h>\n\nint a(void)\n{\n\treturn '\\n';\n}\n";
        assert_eq!(lines_of_code(c), 5);
    }
}
