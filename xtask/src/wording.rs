//! Lint of words: doc comments that name the thing first, and names in plain engineering English.
//!
//! In: the text and the code of a Rust file. Out: one line per violation, `path:line: …`. Not here:
//! the other lints (`lints`).

use crate::source;

/// Words that begin no paragraph of a doc comment, as they name nothing.
const NAMELESS: &[&str] = &["What", "How", "Whether"];

/// Names of the old private vocabulary.
const RETIRED: &[&str] = &[
    "Carry",
    "Crew",
    "Elsewhere",
    "LAST_WORDS",
    "OWN_WAYS",
    "Party",
    "Ride",
    "Seat",
    "TOLD",
    "Way",
    "Wish",
    "crew",
    "deed",
    "deeds",
    "speaks",
    "surroundings",
    "tell",
    "told",
];

/// Beginnings of names of the old private vocabulary.
const RETIRED_BEGINNINGS: &[&str] = &["forewarn", "tell_"];

/// The violations of one file.
pub(crate) fn lints(path: &str, text: &str, code: &str) -> Vec<String> {
    let nameless = nameless_lines(text).map(|(line, word)| {
        format!("{path}:{line}: a doc comment names the thing first: none begins with \"{word}\"")
    });
    let words = source::words(code).into_iter();
    let retired = words
        .filter(|(_, word)| is_retired(word))
        .map(|(line, word)| {
            format!("{path}:{line}: `{word}`: call it by a plain engineering word")
        });
    nameless.chain(retired).collect()
}

/// Lines at which a paragraph of a doc comment begins with a word that names nothing.
fn nameless_lines(text: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let mut is_within = false;
    (1..).zip(text.lines()).filter_map(move |(line, text)| {
        let doc = doc(text).filter(|doc| !doc.is_empty());
        let begins = !std::mem::replace(&mut is_within, doc.is_some_and(|d| !d.starts_with('#')));
        let first = doc?.split(|c: char| !c.is_alphanumeric()).next()?;
        let word = NAMELESS.iter().find(|word| **word == first)?;
        begins.then_some((line, *word))
    })
}

/// Text of a line of a doc comment.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let doc = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))?;
    Some(doc.trim())
}

fn is_retired(word: &str) -> bool {
    let begins = |beginning: &&str| word.starts_with(*beginning);
    RETIRED.contains(&word) || RETIRED_BEGINNINGS.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        lints(path, text, &source::code_only(text))
    }

    #[test]
    fn a_paragraph_that_names_nothing_is_refused_wherever_it_begins() {
        let text = "//! What it is.\n\n/// Queue of calls.\n///\n/// How they wait.\n///\n\
                    /// # Errors\n/// Whether it is.\nfn a() {} /// no\n// What a comment may say.\n";
        let lines: Vec<usize> = nameless_lines(text).map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 5, 8]);
        let sound =
            "//! Queue.\n\n/// Number of calls, by\n/// What they want; Whatever.\nfn a() {}\n";
        assert_eq!(of("crates/a/src/a.rs", sound), [""; 0]);
    }

    #[test]
    fn a_name_of_the_old_vocabulary_is_refused_in_code_alone() {
        let text = "//! told\nfn tell_all(told: u8) { let telling = \"crew\"; }\nstruct Crews;\n";
        assert_eq!(
            of("crates/a/src/a.rs", text),
            [
                "crates/a/src/a.rs:2: `tell_all`: call it by a plain engineering word",
                "crates/a/src/a.rs:2: `told`: call it by a plain engineering word",
            ]
        );
    }
}
