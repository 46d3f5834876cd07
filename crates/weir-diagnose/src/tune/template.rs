//! Words of a command with placeholders for the settings of a trial: `{batch=1..512*2}`, later `{batch}`.
//!
//! In: the words; names that the caller fills in. Out: the dimensions that the placeholders declare; the
//! words of a trial. Braces around anything else stay as they are. Not here: which command it is.

use thiserror::Error;

use crate::tune::space::{SpaceError, TuneDimension};

/// Words with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneTemplate {
    words: Vec<Vec<WordPiece>>,
    /// Dimensions that the placeholders declare, in order.
    pub dimensions: Vec<TuneDimension>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum WordPiece {
    Text(String),
    Named(String),
}

/// Words that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// The values of a placeholder.
    #[error(transparent)]
    Values(#[from] SpaceError),
    /// A name that stands for nothing.
    #[error("{{{0}}} stands for nothing: its values are missing, as {{{0}=1..64*2}}")]
    Unknown(String),
    /// A name that is declared twice.
    #[error("{{{0}=…}} is there twice; the second is {{{0}}}")]
    Twice(String),
}

impl TuneTemplate {
    /// Reads words; the caller fills in the names of `known`.
    ///
    /// # Errors
    /// A placeholder cannot be understood.
    pub fn read(words: &[String], known: &[&str]) -> Result<Self, TemplateError> {
        let mut template = Self {
            words: Vec::new(),
            dimensions: Vec::new(),
        };
        for word in words {
            let pieces = template.pieces(word, known)?;
            template.words.push(pieces);
        }
        let declared = |name: &str| {
            known.contains(&name) || template.dimensions.iter().any(|d| d.name == name)
        };
        let named = template.words.iter().flatten();
        for piece in named {
            if let WordPiece::Named(name) = piece
                && !declared(name)
            {
                return Err(TemplateError::Unknown(name.clone()));
            }
        }
        Ok(template)
    }

    fn pieces(&mut self, word: &str, known: &[&str]) -> Result<Vec<WordPiece>, TemplateError> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let Some((name, values, behind)) = placeholder(after) else {
                text.push('{');
                rest = after;
                continue;
            };
            if let Some(values) = values {
                let is_there = self.dimensions.iter().any(|d| d.name == name);
                if is_there || known.contains(&name) {
                    return Err(TemplateError::Twice(name.to_owned()));
                }
                self.dimensions.push(TuneDimension::read(name, values)?);
            }
            pieces.push(WordPiece::Text(std::mem::take(&mut text)));
            pieces.push(WordPiece::Named(name.to_owned()));
            rest = behind;
        }
        text.push_str(rest);
        pieces.push(WordPiece::Text(text));
        Ok(pieces)
    }

    /// True if a name stands in the command.
    pub fn has(&self, name: &str) -> bool {
        let mut pieces = self.words.iter().flatten();
        pieces.any(|piece| matches!(piece, WordPiece::Named(named) if named == name))
    }

    /// The words with these values filled in.
    pub fn words(&self, value: impl Fn(&str) -> String) -> Vec<String> {
        let of_piece = |piece: &WordPiece| match piece {
            WordPiece::Text(text) => text.clone(),
            WordPiece::Named(name) => value(name),
        };
        let words = self.words.iter();
        words
            .map(|pieces| pieces.iter().map(of_piece).collect())
            .collect()
    }
}

/// Name, values and what follows of `NAME}` or `NAME=VALUES}`.
fn placeholder(after: &str) -> Option<(&str, Option<&str>, &str)> {
    let (inner, behind) = after.split_once('}')?;
    let (name, values) = match inner.split_once('=') {
        Some((name, values)) => (name, Some(values)),
        None => (inner, None),
    };
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_name =
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_letter);
    is_name.then_some((name, values, behind))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Result<TuneTemplate, TemplateError> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        TuneTemplate::read(&words, &["config"])
    }

    #[test]
    fn placeholders_are_filled_in_wherever_they_stand() {
        let template = of("run --set=bs={bs=4k..64k*2} {config} a{bs}-{d=1,8,64}.fio").unwrap();
        let names: Vec<&str> = template
            .dimensions
            .iter()
            .map(|d| d.name.as_str())
            .collect();
        assert_eq!(names, ["bs", "d"]);
        assert!(template.has("config") && !template.has("set"));
        let words = template.words(|name| format!("<{name}>"));
        assert_eq!(words.join(" "), "run --set=bs=<bs> <config> a<bs>-<d>.fio");
    }

    #[test]
    fn other_braces_stay_and_odd_placeholders_are_refused() {
        let template = of(r#"{"a":1} {} {1} ${HOME {x"#).unwrap();
        assert_eq!(
            template.words(|_| String::new()).join(" "),
            r#"{"a":1} {} {1} ${HOME {x"#
        );
        for (text, says) in [
            ("{bs}", "{bs} stands for nothing"),
            ("{bs=1,2} {bs=1,2}", "{bs=…} is there twice"),
            ("{config=1,2}", "{config=…} is there twice"),
            ("{bs=1}", "bs=1: two values"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_read_or_refused(text in "[a-z{}=.,*+@ 0-9]{0,60}") {
            if let Ok(template) = of(&text) {
                let again = template.words(|name| format!("{{{name}}}"));
                let kept = template.dimensions.is_empty();
                prop_assert!(!kept || again.join(" ") == text);
            }
        }
    }
}
