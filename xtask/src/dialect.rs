//! Dialect: words of a peer's command line stay in the doors and in the job language.
//!
//! In: the book's table of options, which is made from the records of `weir-jobfile` (gate
//! `options`), the records of the doors' flags, `dialect.toml`. Out: one line for each word of
//! theirs in the code or in a literal of a crate below them. Comments may explain what a peer
//! calls a thing, and tests may speak as users do.
//! Not here: words of the house in a door's output.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::lints::files_under;
use crate::source;

/// Crates that may speak a dialect: the job language, the doors, who wires them; the lab, which is no
/// part of the program and speaks those of QEMU and the kernel.
const SPEAKERS: &[&str] = &[
    "crates/weir-lab/",
    "crates/weir-jobfile/",
    "crates/weir-import/",
    "crates/weir-doors/",
    "crates/weir/",
];

/// The table of options that is made from their records.
const OPTIONS: &str = "docs/book/src/options.md";

/// The doors: a folder for each that has a dialect of its own.
pub(crate) const DOORS: &str = "crates/weir-doors/src";

/// Content of `dialect.toml`.
#[derive(Debug, Default)]
struct Exceptions {
    /// Words of the dialects that are English, or the system's own.
    plain: BTreeSet<String>,
    /// Fields of plan and result that have a peer's name: good in code, not in a literal.
    fields: BTreeSet<String>,
    /// Reasons by word and path; the path is a file, or a folder that ends in `/`.
    excused: BTreeMap<String, BTreeMap<String, String>>,
}

/// The gate.
pub(crate) fn run() -> Result<()> {
    let exceptions = Exceptions::parse(&std::fs::read_to_string("dialect.toml")?)?;
    let mut words = all_options()?;
    words.extend(flags_in(DOORS, |path| !is_house_door(path))?);
    let mut found = Found::default();
    for path in files_under(Path::new("crates"), "rs")? {
        let path = path.to_string_lossy().into_owned();
        if is_below(&path) {
            found.look_at(&path, &std::fs::read_to_string(&path)?, &words, &exceptions);
        }
    }
    let wrong = found.wrong(&words, &exceptions);
    if !wrong.is_empty() {
        bail!("{} violations\n{}", wrong.len(), wrong.join("\n"));
    }
    println!("{} words of dialects, none below the doors", words.len());
    Ok(())
}

/// Every option of the job language, and every alias.
pub(crate) fn all_options() -> Result<BTreeSet<String>> {
    Ok(options(&std::fs::read_to_string(OPTIONS)?))
}

/// Every flag of the doors in this folder, in whichever file its record stands.
pub(crate) fn all_flags(folder: &str) -> Result<BTreeSet<String>> {
    flags_in(folder, |_| true)
}

fn flags_in(folder: &str, wanted: impl Fn(&Path) -> bool) -> Result<BTreeSet<String>> {
    let mut words = BTreeSet::new();
    for path in files_under(Path::new(folder), "rs")? {
        if wanted(&path) {
            words.extend(flags(&std::fs::read_to_string(path)?));
        }
    }
    Ok(words)
}

/// A door that is one file, for a job of one workload: its words are the house's.
fn is_house_door(path: &Path) -> bool {
    path.parent() == Some(Path::new(DOORS)) && !path.ends_with("flags.rs")
}

/// The code of a crate below the doors, without its tests.
fn is_below(path: &str) -> bool {
    let is_code = path.contains("/src/") && !path.ends_with("/tests.rs");
    is_code && !SPEAKERS.iter().any(|speaker| path.starts_with(speaker))
}

/// Options and their aliases: the words in backquotes of a table's first column.
fn options(table: &str) -> BTreeSet<String> {
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let columns = rows.filter_map(|row| row.split(" |").next());
    columns
        .flat_map(|column| column.split(['`', ',', ' ']))
        .filter(|word| word.len() > 1)
        .map(str::to_owned)
        .collect()
}

/// The names of flags: the first literal of each `Flag::…(`.
fn flags(code: &str) -> BTreeSet<String> {
    let records = code.split("Flag::").skip(1);
    let literal = |record: &str| {
        let (_, arguments) = record.split_once('(')?;
        let name = arguments.trim_start().strip_prefix('"')?;
        name.split('"').next().map(str::to_owned)
    };
    records
        .filter_map(literal)
        .filter(|word| word.len() > 1)
        .collect()
}

impl Exceptions {
    fn parse(text: &str) -> Result<Self> {
        let mut table: toml::Table = toml::from_str(text).context("dialect.toml")?;
        let mut list = |name: &'static str| {
            let words = table.remove(name).unwrap_or(toml::Value::Array(Vec::new()));
            words.try_into().context(name)
        };
        Ok(Self {
            plain: list("plain")?,
            fields: list("fields")?,
            excused: table
                .try_into()
                .context("dialect.toml: [word] \"path\" = \"why\"")?,
        })
    }

    /// The place in the file that excuses a word.
    fn excuse(&self, word: &str, path: &str) -> Option<&str> {
        let places = self.excused.get(word)?.keys();
        let mut fitting = places.filter(|place| path == *place || place.ends_with('/'));
        fitting.find(|place| path.starts_with(*place)).map(|p| &**p)
    }
}

/// Findings in the files.
#[derive(Debug, Default)]
struct Found {
    wrong: Vec<String>,
    /// Plain words and excuses that were needed.
    used: BTreeSet<(String, String)>,
}

impl Found {
    fn look_at(
        &mut self,
        path: &str,
        text: &str,
        words: &BTreeSet<String>,
        exceptions: &Exceptions,
    ) {
        let tests = source::test_modules(&source::code_only(text));
        let (code, literals) = (source::code_only(text), source::literals_only(text));
        let both = code.lines().zip(literals.lines()).enumerate();
        for (at, (code, literals)) in both {
            if tests.iter().any(|test| test.contains(&at)) {
                continue;
            }
            let identifiers = tokens(code).map(|word| (word, true));
            let all = identifiers.chain(tokens(literals).map(|word| (word, false)));
            for (word, is_identifier) in all.filter(|(word, _)| words.contains(*word)) {
                let is_plain = exceptions.plain.contains(word);
                if is_plain || is_identifier && exceptions.fields.contains(word) {
                    self.used.insert((word.to_owned(), String::new()));
                } else if let Some(place) = exceptions.excuse(word, path) {
                    self.used.insert((word.to_owned(), place.to_owned()));
                } else {
                    self.wrong.push(format!(
                        "{path}:{}: `{word}` is a word of a door: say it plainly, or give the \
                         reason in dialect.toml",
                        at + 1
                    ));
                }
            }
        }
    }

    /// Violations, with the exceptions that nothing needs any more.
    fn wrong(mut self, words: &BTreeSet<String>, exceptions: &Exceptions) -> Vec<String> {
        for word in exceptions.plain.union(&exceptions.fields) {
            if !words.contains(word) || !self.used.contains(&(word.clone(), String::new())) {
                let what = "no word of a door, or used nowhere";
                self.wrong.push(format!("dialect.toml: {word}: {what}"));
            }
        }
        for (word, places) in &exceptions.excused {
            for place in places.keys() {
                if !self.used.contains(&(word.clone(), place.clone())) {
                    let line = format!("dialect.toml: [{word}] {place}: does not say it");
                    self.wrong.push(line);
                }
            }
        }
        self.wrong
    }
}

/// Identifiers, and words of literals with their hyphens.
fn tokens(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .map(|word| word.trim_matches('-'))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "| option | takes |\n|---|---|\n| `nrfiles`, `nr_files` | number |\n\
                         | `size` | bytes |\n| `wait_for` | text |\n";
    const PATH: &str = "crates/weir-block/src/a.rs";

    fn wrong(code: &str, exceptions: &str) -> Vec<String> {
        let exceptions = Exceptions::parse(exceptions).unwrap();
        let words = options(TABLE);
        let mut found = Found::default();
        found.look_at(PATH, code, &words, &exceptions);
        found.wrong(&words, &exceptions)
    }

    #[test]
    fn options_and_flags_are_read_from_their_records() {
        assert_eq!(
            options(TABLE),
            ["nr_files", "nrfiles", "size", "wait_for"]
                .map(str::to_owned)
                .into()
        );
        let code = "Flag::switch(\"help\", HELP, \"x\"),\n Flag::with_value(\n  \"comm-type\",";
        let both = ["comm-type", "help"].map(str::to_owned).into();
        assert_eq!(flags(code), both);
    }

    #[test]
    fn a_word_of_a_door_is_refused_in_literals_and_identifiers() {
        let code = "//! In nr_files.\nfn a() {\n    b(\"order them with wait_for\");\n}\n\
                    fn nr_files() {}\n";
        let wrong = wrong(code, "plain = []");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("crates/weir-block/src/a.rs:3: `wait_for` is a word"));
        assert!(wrong[1].starts_with("crates/weir-block/src/a.rs:5: `nr_files`"));
        assert!(is_below(PATH));
        assert!(!is_below("crates/weir-doors/src/fio/a.rs"));
        assert!(!is_below("crates/weir-block/tests/a.rs"));
    }

    #[test]
    fn plain_words_tests_and_excused_places_pass_and_idle_exceptions_do_not() {
        let code = "fn size() { wait_for(); }\n#[cfg(test)]\nmod tests {\n    // nr_files\n    \
                    fn nr_files() {}\n}\n";
        let plain = "plain = [\"size\"]\n";
        let here = format!("{plain}[wait_for]\n\"crates/weir-block/\" = \"why\"\n");
        assert_eq!(wrong(code, &here), [""; 0]);
        assert_eq!(wrong(code, plain).len(), 1);
        let field = format!("fields = [\"wait_for\"]\n{plain}");
        assert_eq!(wrong(code, &field), [""; 0]);
        assert_eq!(
            wrong("fn size() { wait_for(\"wait_for\"); }", &field).len(),
            1
        );
        let elsewhere = format!("{here}\"crates/weir-run/\" = \"why\"\n");
        assert_eq!(
            wrong(code, &elsewhere),
            ["dialect.toml: [wait_for] crates/weir-run/: does not say it"]
        );
        let idle = here.replace("\"size\"", "\"size\", \"nrfiles\"");
        assert_eq!(wrong(code, &idle).len(), 1);
    }
}
