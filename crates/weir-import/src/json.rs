//! JSON documents, alone or among other text.
//!
//! In: a text. Out: the first document in it, as a type; else the line that is wrong. What stands
//! before and after it is passed over.

use serde::de::DeserializeOwned;

use crate::error::ImportError;

/// The first document of a text: what follows the first line that begins with a brace.
///
/// # Errors
/// No document, or one that cannot be read.
pub(crate) fn document<T: DeserializeOwned>(text: &str) -> Result<T, ImportError> {
    let Some(start) = start(text) else {
        return Err(ImportError::new(
            text.lines().count().max(1),
            "there is no JSON document",
        ));
    };
    let (before, rest) = text.split_at(start);
    let lines_before = before.matches('\n').count();
    let mut documents = serde_json::Deserializer::from_str(rest).into_iter::<T>();
    match documents.next() {
        Some(Ok(document)) => Ok(document),
        Some(Err(e)) => {
            let text = e.to_string();
            let what = text.split(" at line ").next().unwrap_or(&text);
            let message = format!("column {}: {what}", e.column());
            Err(ImportError::new(lines_before + e.line().max(1), message))
        }
        None => Err(ImportError::new(lines_before + 1, "the document is empty")),
    }
}

/// Begin of the first document.
pub(crate) fn start(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let blanks = line.len() - line.trim_start().len();
        if line[blanks..].starts_with('{') {
            return Some(at + blanks);
        }
        at += line.len();
    }
    None
}

/// True if the first document of a text has all of these words.
pub(crate) fn has(text: &str, words: &[&str]) -> bool {
    let Some(rest) = start(text).and_then(|start| text.get(start..)) else {
        return false;
    };
    words.iter().all(|word| rest.contains(word))
}
