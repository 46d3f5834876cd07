//! Examples that ship inside the program, for the doors that have some.
//!
//! In: a door's table, the name behind its `--example`. Out: the example, or the list of all. Not here:
//! what an example means to its door.

use crate::flags::nearest;
use crate::refusal::Refusal;

/// The name that asks for the list.
pub(crate) const LIST: &str = "list";

/// Name and text of an example. Its first sentence, in a comment, says what it does.
pub(crate) type Example = (&'static str, &'static str);

/// The example of a name.
///
/// # Errors
/// There is none of this name.
pub(crate) fn find(examples: &[Example], name: &str) -> Result<Example, Refusal> {
    let found = examples.iter().find(|(known, _)| *known == name);
    found.copied().ok_or_else(|| {
        let near = nearest(name, examples.iter().map(|(known, _)| *known));
        let help = near.map_or_else(
            || "`--example list` lists them".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Refusal::usage(format!(
            "--example {name}: no example is called so\n  help: {help}"
        ))
    })
}

/// A line for each.
pub(crate) fn list(examples: &[Example]) -> String {
    let width = examples.iter().map(|(name, _)| name.len()).max();
    let width = width.unwrap_or_default();
    let line = |(name, text): &Example| format!("{name:width$}  {}\n", purpose(text));
    examples.iter().map(line).collect()
}

/// The first sentence of the comment that a text begins with.
fn purpose(text: &str) -> String {
    let comment = text.lines().map_while(|line| line.strip_prefix("# "));
    let mut sentence = String::new();
    for line in comment {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        let end = line.find(". ").map(|at| &line[..=at]);
        sentence.push_str(end.unwrap_or(line));
        if sentence.ends_with('.') {
            break;
        }
    }
    let bare = sentence.trim_start_matches("weir example: ");
    bare.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_gets_the_nearest_and_the_list_says_what_each_does() {
        const ALL: &[Example] = &[
            ("first", "# A first run: reads. No root.\n[a]\n"),
            ("longer", "# Each worker reads,\n# one by one.\n# More.\n"),
        ];
        assert_eq!(find(ALL, "first").unwrap().1, ALL[0].1);
        let message = |name| find(ALL, name).unwrap_err().message;
        assert!(message("frist").contains("did you mean `first`?"));
        assert!(message("zzz").contains("`--example list`"));
        let lines = "first   A first run: reads\nlonger  Each worker reads, one by one\n";
        assert_eq!(list(ALL), lines);
    }
}
