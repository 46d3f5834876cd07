//! The shape of a job file: lines, sections, options, includes, each with its place.
//!
//! In: the bytes of one file. Out: a [`Document`], and a fault for each line that is none of
//! these; the other lines are read all the same. Printing a document and reading it again gives
//! the same document. Not here: what an option means, opening included files.

use std::fmt;
use std::sync::Arc;

use crate::diagnostic::{ColumnSpan, Diagnostic, Fault, MAX_LINE, Place, cut};

/// Longest name of a section in bytes.
const MAX_NAME: usize = 255;

/// The lines of a file that say something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub items: Vec<SyntaxItem>,
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct SyntaxItem {
    pub kind: ItemKind,
    pub place: Place,
}

/// Content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    /// `[name]`
    Section(String),
    /// `key=value`, or `key` alone.
    Option { key: String, value: Option<String> },
    /// `include path`
    Include(String),
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.items {
            match &item.kind {
                ItemKind::Section(name) => writeln!(f, "[{name}]")?,
                ItemKind::Option {
                    key,
                    value: Some(value),
                } => writeln!(f, "{key}={value}")?,
                ItemKind::Option { key, value: None } => writeln!(f, "{key}")?,
                ItemKind::Include(path) => writeln!(f, "include {path}")?,
            }
        }
        Ok(())
    }
}

/// Reads a file's lines. Faults are given to `report`.
pub(crate) fn parse(source: &str, bytes: &[u8], report: &mut dyn FnMut(Diagnostic)) -> Document {
    let source: Arc<str> = source.into();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut document = Document::default();
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        let line = bytes[..at].split(|b| *b == b'\n').count();
        let fault = Fault::new("job.syntax", format!("`{source}` is not a job file"))
            .label("a zero byte: this is binary data");
        report(whole_line(&source, line, "").at_key(fault));
        return document;
    }
    for (index, raw) in bytes.split(|b| *b == b'\n').enumerate() {
        match item(&source, index + 1, raw) {
            Ok(Some(item)) => document.items.push(item),
            Ok(None) => {}
            Err(diagnostic) => report(*diagnostic),
        }
    }
    document
}

fn whole_line(source: &Arc<str>, line: usize, text: &str) -> Place {
    let key = ColumnSpan {
        column: 1,
        length: text.chars().count().max(1),
    };
    Place {
        source: Arc::clone(source),
        text: text.into(),
        line,
        key,
        value: None,
    }
}

fn item(source: &Arc<str>, line: usize, raw: &[u8]) -> Result<Option<SyntaxItem>, Box<Diagnostic>> {
    let end = raw
        .iter()
        .rposition(|b| *b > b' ' && *b != 0x7f)
        .map_or(0, |i| i + 1);
    let shown = String::from_utf8_lossy(&raw[..end.min(MAX_LINE)]);
    let said = said(raw, end)
        .map_err(|fault| Box::new(whole_line(source, line, cut(&shown, 200)).at_key(fault)))?;
    let body = said.trim();
    if body.is_empty() {
        return Ok(None);
    }
    let place = |key: &str, value: Option<&str>| Place {
        source: Arc::clone(source),
        text: Arc::from(shown.as_ref()),
        line,
        key: span(said, key),
        value: value.map(|v| span(said, v)),
    };
    if body.starts_with('[') {
        let place = place(body, None);
        let name = section_name(body).map_err(|f| Box::new(place.at_key(f)))?;
        return Ok(Some(SyntaxItem {
            kind: ItemKind::Section(name),
            place,
        }));
    }
    if let Some(path) = include_path(body) {
        let kind = ItemKind::Include(path.to_owned());
        return Ok(Some(SyntaxItem {
            kind,
            place: place(body, Some(path)),
        }));
    }
    let (key, value) = match body.split_once('=') {
        Some((key, value)) => (key.trim_end(), Some(value.trim_start())),
        None => (body, None),
    };
    let kind = ItemKind::Option {
        key: key.to_owned(),
        value: value.map(str::to_owned),
    };
    Ok(Some(SyntaxItem {
        kind,
        place: place(key, value),
    }))
}

/// A line without its comment.
fn said(raw: &[u8], end: usize) -> Result<&str, Fault> {
    let syntax = |message: &str, label: &str| Fault::new("job.syntax", message).label(label);
    if raw.len() > MAX_LINE {
        let label = format!("the longest line is {MAX_LINE} bytes");
        return Err(syntax(&format!("a line of {} bytes", raw.len()), &label));
    }
    let comment = raw[..end]
        .iter()
        .position(|b| matches!(b, b';' | b'#'))
        .unwrap_or(end);
    let said = std::str::from_utf8(&raw[..comment])
        .map_err(|_| syntax("this line is not UTF-8 text", "not readable"))?;
    if said.chars().any(|c| c.is_control() && c != '\t') {
        let label = "only the end of a line may hold control characters";
        return Err(syntax("a control character within a line", label));
    }
    Ok(said)
}

/// Columns of a part of a line.
fn span(line: &str, part: &str) -> ColumnSpan {
    let offset = (part.as_ptr().addr()).wrapping_sub(line.as_ptr().addr());
    let before = line.get(..offset).map_or(0, |s| s.chars().count());
    ColumnSpan {
        column: before + 1,
        length: part.chars().count(),
    }
}

fn include_path(body: &str) -> Option<&str> {
    let rest = body.strip_prefix("include")?;
    rest.starts_with([' ', '\t'])
        .then(|| rest.trim())
        .filter(|p| !p.starts_with('='))
}

fn section_name(body: &str) -> Result<String, Fault> {
    let inner = &body[1..];
    let syntax = |message: &str, label: &str| Fault::new("job.syntax", message).label(label);
    match inner.rfind(']') {
        None => Err(syntax(
            "a section without its closing `]`",
            "expected `[name]`",
        )),
        Some(end) if end + 1 != inner.len() => Err(syntax(
            "text after a section's `]`",
            "expected `[name]` alone on its line",
        )),
        Some(0) => Err(syntax("a section without a name", "expected `[name]`")),
        Some(end) if end > MAX_NAME => Err(syntax("a section's name is too long", "255 bytes")),
        Some(end) => Ok(inner[..end].to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> (Vec<ItemKind>, Vec<Diagnostic>) {
        let mut faults = Vec::new();
        let document = parse("t", text.as_bytes(), &mut |d| faults.push(d));
        (document.items.into_iter().map(|i| i.kind).collect(), faults)
    }

    fn option(key: &str, value: Option<&str>) -> ItemKind {
        ItemKind::Option {
            key: key.into(),
            value: value.map(str::to_owned),
        }
    }

    #[test]
    fn comments_blanks_and_carriage_returns_are_stripped() {
        let (items, faults) =
            read("; c\n  # c\n[a b] \r\n\tbs = 1m \t\r\nname=x;y#z\nstonewall # now\n");
        assert!(faults.is_empty());
        assert_eq!(
            items,
            [
                ItemKind::Section("a b".into()),
                option("bs", Some("1m")),
                option("name", Some("x")),
                option("stonewall", None),
            ]
        );
    }

    #[test]
    fn every_bad_line_is_reported_and_the_others_are_read() {
        let long = "k".repeat(MAX_LINE + 1);
        let (items, faults) = read(&format!("[a\n[]\n[a]b\n{long}\n[ok]\nb\x01s=1\n"));
        assert_eq!(items, [ItemKind::Section("ok".into())]);
        assert_eq!(
            faults.iter().map(|d| d.line).collect::<Vec<_>>(),
            [1, 2, 3, 4, 6]
        );
    }

    #[test]
    fn a_binary_file_gives_one_message() {
        let (items, faults) = read("\x7fELF\0\0\n\0\n");
        assert!(items.is_empty());
        assert_eq!(faults.len(), 1);
    }

    #[test]
    fn columns_point_at_key_and_value() {
        let document = parse("t", "  bs = ä4k".as_bytes(), &mut |_| {});
        let place = &document.items[0].place;
        assert_eq!(
            place.key,
            ColumnSpan {
                column: 3,
                length: 2
            }
        );
        assert_eq!(
            place.value,
            Some(ColumnSpan {
                column: 8,
                length: 3
            })
        );
    }

    #[test]
    fn include_takes_the_rest_of_the_line() {
        assert_eq!(
            read("include a b.inc").0,
            [ItemKind::Include("a b.inc".into())]
        );
        assert_eq!(read("include=x").0, [option("include", Some("x"))]);
    }

    proptest! {
        #[test]
        fn printing_and_reading_gives_the_same_document(text in "[\\[\\]a-z0-9=;# \t\n.]{0,200}") {
            let (items, _) = read(&text);
            let document = parse("t", text.as_bytes(), &mut |_| {});
            prop_assert_eq!(read(&document.to_string()).0, items);
        }

        #[test]
        fn no_bytes_make_the_splitter_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse("t", &bytes, &mut |d| { d.render(); });
        }
    }
}
