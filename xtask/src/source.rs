//! Rust source as the lints see it: the code alone, line for line.
//!
//! In: the text of a file. Out: the same text with comments and the contents
//! of literals blanked, its words with their lines, the extent of its test
//! modules. Not here: what is allowed (`lints`).

use std::ops::Range;

/// The text with comments, strings and characters turned into spaces; every
/// line break stays where it was.
pub(crate) fn code_only(text: &str) -> String {
    blanked(text, |_| true)
}

/// The text with comments turned into spaces.
pub(crate) fn without_comments(text: &str) -> String {
    blanked(text, |gone| gone.starts_with('/'))
}

/// The literals of the text alone; all else is turned into spaces.
pub(crate) fn literals_only(text: &str) -> String {
    let with_literals = without_comments(text);
    let code = code_only(text);
    let both = with_literals.chars().zip(code.chars());
    both.map(|(c, code)| if code.is_whitespace() { c } else { ' ' })
        .collect()
}

fn blanked(text: &str, goes: impl Fn(&str) -> bool) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let blank = blank_length(rest, code.chars().next_back());
        if blank == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let (gone, after) = rest.split_at(blank);
            if goes(gone) {
                code.extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            } else {
                code.push_str(gone);
            }
            rest = after;
        }
    }
    code
}

/// Number of bytes at the start of `rest` that are a comment or a literal.
fn blank_length(rest: &str, before: Option<char>) -> usize {
    let in_word = before.is_some_and(is_word);
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        block_comment(rest)
    } else if rest.starts_with('"') {
        quoted(rest, '"')
    } else if rest.starts_with('\'') {
        character(rest)
    } else if !in_word && rest.starts_with(['r', 'b', 'c']) {
        prefixed(rest)
    } else {
        0
    }
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let tail = &rest.as_bytes()[at..];
        if tail.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of a literal that ends at `quote` and may hold escapes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// A character literal; 0 for a lifetime, which has no closing quote.
fn character(rest: &str) -> usize {
    let mut chars = rest.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, '\''),
        _ => 0,
    }
}

/// `b"…"`, `c"…"`, `b'…'`, `r"…"`, `r#"…"#` and their combinations; 0 for a
/// word that only begins with one of these letters.
fn prefixed(rest: &str) -> usize {
    let letters = rest.find(|c| !"rbc".contains(c)).unwrap_or(rest.len());
    let (prefix, after) = rest.split_at(letters);
    if prefix.len() > 2 {
        return 0;
    }
    if !prefix.ends_with('r') {
        let literal = match after.chars().next() {
            Some('"') => quoted(after, '"'),
            Some('\'') if prefix == "b" => quoted(after, '\''),
            _ => return 0,
        };
        return letters + literal;
    }
    let hashes = after.find(|c| c != '#').unwrap_or(after.len());
    if !after[hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = letters + hashes + 1;
    rest[body..]
        .find(&end)
        .map_or(rest.len(), |at| body + at + end.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of blanked code, each with its line counted from 1.
pub(crate) fn words(code: &str) -> Vec<(usize, &str)> {
    code.lines()
        .enumerate()
        .flat_map(|(line, text)| {
            text.split(|c| !is_word(c))
                .filter(|word| !word.is_empty())
                .map(move |word| (line + 1, word))
        })
        .collect()
}

/// The lines (from 0) that modules under `#[cfg(test)]` take, attribute
/// included. rustfmt puts a module's closing brace under its first letter.
pub(crate) fn test_modules(code: &str) -> Vec<Range<usize>> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found: Vec<Range<usize>> = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let inside = found.last().is_some_and(|last| last.contains(&start));
        if inside || line.trim() != "#[cfg(test)]" {
            continue;
        }
        let opening = lines[start..]
            .iter()
            .position(|line| !line.trim_start().starts_with("#["));
        let Some(opening) = opening.map(|at| start + at) else {
            continue;
        };
        if !words(lines[opening]).iter().any(|(_, word)| *word == "mod") {
            continue;
        }
        let indent = lines[opening].len() - lines[opening].trim_start().len();
        let closing = format!("{}}}", " ".repeat(indent));
        let is_block = lines[opening].trim_end().ends_with('{');
        let end = lines[opening..]
            .iter()
            .position(|line| is_block && line.trim_end() == closing)
            .map_or(opening + 1, |at| opening + at + 1);
        found.push(start..end);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let text = "let a = \"unsafe \\\" \"; // unsafe\n/* unsafe /* in */ */ let b = 'x';\n\
                    let c = r#\"unsafe \" \"#; let d = b\"unsafe\"; let e = '\\'';\n";
        let code = code_only(text);
        assert!(!code.contains("unsafe"), "{code}");
        assert_eq!(code.lines().count(), 3);
        let names: Vec<&str> = words(&code).iter().map(|(_, word)| *word).collect();
        assert_eq!(
            names,
            ["let", "a", "let", "b", "let", "c", "let", "d", "let", "e"]
        );
    }

    #[test]
    fn lifetimes_and_words_that_look_like_prefixes_are_code() {
        let code = code_only("fn f<'a>(r: &'a str, bc: u8) { crb(r) }");
        assert_eq!(code, "fn f<'a>(r: &'a str, bc: u8) { crb(r) }");
    }

    #[test]
    fn words_know_their_lines() {
        assert_eq!(words("a b\n\nc_d!"), [(1, "a"), (1, "b"), (3, "c_d")]);
    }

    #[test]
    fn a_test_module_reaches_from_its_attribute_to_its_brace() {
        let code = "fn a() {\n}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(test_modules(code).first(), Some(&(2..7)));
        let file = "#[cfg(test)]\nmod tests;\nfn c() {\n}\n";
        assert_eq!(test_modules(file).first(), Some(&(0..2)));
        assert!(test_modules("#[cfg(test)]\nfn helper() {\n}\n").is_empty());
    }
}
